//! The shared memory of the server: the line of positions, and what the lock for transitions guards. Made anew at
//! every start and after every crash of a backend.

use crate::clock;
use pgrx::lwlock::PgLwLockExclusiveGuard;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{PGRXSharedMemory, PgAtomic, PgLwLock, pg_shmem_init};
use snowflake_core::{Line, Pace, UnixMicros, WorkerBits};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};

/// Read and moved without a lock; see [`Line`] for which of its methods want [`transitions`] held.
// SAFETY: the names are this extension's own.
static LINE: PgAtomic<SharedLine> = unsafe { PgAtomic::new(c"pg_snowflake line") };

/// The lock's name is also the wait event that pg_stat_activity shows.
// SAFETY: as above.
static TRANSITIONS: PgLwLock<Transitions> = unsafe { PgLwLock::new(c"pg_snowflake") };

// SAFETY: as above.
static COUNTERS: PgAtomic<Counters> = unsafe { PgAtomic::new(c"pg_snowflake counters") };

/// Whether the library was preloaded, so that the three above exist.
static EXISTS: AtomicBool = AtomicBool::new(false);

/// Its own cache lines: nothing else is written beside the word that all sessions claim from.
#[derive(Default)]
#[repr(C, align(128))]
struct SharedLine(Line);

// SAFETY: atomics only, no pointers.
unsafe impl PGRXSharedMemory for SharedLine {}

/// What transitions change. In the lock there is only arithmetic, and the page of a reservation: no waiting, no memory
/// allocation.
pub struct Transitions {
    /// The life of this shared memory: drawn at random when it is made, never 0.
    pub run: i64,
    /// What the server did before this run.
    pub start: Start,
    /// When this run began.
    pub started_at: UnixMicros,
    /// The furthest that any database has reserved in this run.
    pub highest_reserved: UnixMicros,
    /// When a tick was last opened while the clock was behind.
    pub pace: Pace,
    /// The worker whose IDs are made now; `None` while `worker_id` is unset.
    pub worker: Option<WorkerBits>,
    /// When the configuration that says so was read; see [`crate::settings::Worker`].
    pub worker_read_at: i64,
    /// The clock less the monotonic clock, when they were last compared.
    clock_offset: Option<i64>,
}

/// What came before a run.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// The server was shut down.
    CleanShutdown,
    /// The server, or one of its sessions, crashed.
    Crash,
    /// The server was a standby, or still is.
    Standby,
    /// The server was recovered from a backup, perhaps to a point in time.
    Recovery,
}

impl Start {
    /// The name in `snowflake_status`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CleanShutdown => "clean shutdown",
            Self::Crash => "crash",
            Self::Standby => "standby",
            Self::Recovery => "recovery",
        }
    }

    /// Finds out, when shared memory is made; the working directory is the data directory.
    fn find() -> Self {
        if Path::new("standby.signal").exists() {
            return Self::Standby;
        }
        if Path::new("recovery.signal").exists() || Path::new("backup_label").exists() {
            return Self::Recovery;
        }
        // SAFETY: the file was read by the postmaster before; both pointers are valid.
        let state = unsafe {
            let mut intact = false;
            (*pg_sys::get_controlfile(pg_sys::DataDir, &raw mut intact)).state
        };
        match state {
            pg_sys::DBState::DB_SHUTDOWNED => Self::CleanShutdown,
            pg_sys::DBState::DB_SHUTDOWNED_IN_RECOVERY | pg_sys::DBState::DB_IN_ARCHIVE_RECOVERY => Self::Standby,
            _ => Self::Crash,
        }
    }
}

impl Transitions {
    fn new() -> Self {
        Self {
            run: draw_run(),
            start: Start::find(),
            started_at: clock::now(),
            highest_reserved: UnixMicros(0),
            pace: Pace::default(),
            worker: None,
            worker_read_at: i64::MIN,
            clock_offset: None,
        }
    }

    /// Notes whether the clock was set back since the last look.
    pub fn watch_clock(&mut self) {
        let Some(offset) = clock::offset() else { return };
        if let Some(before) = self.clock_offset.replace(offset)
            && before - offset >= SMALLEST_STEP
        {
            let counters = counters();
            counters.clock_steps.fetch_add(1, Relaxed);
            counters.largest_clock_step.fetch_max(before - offset, Relaxed);
        }
    }
}

/// A difference of the clocks below this, in microseconds, is not taken for a step.
const SMALLEST_STEP: i64 = 1000;

/// A number that no other run has: 63 random bits, not 0.
fn draw_run() -> i64 {
    let mut bytes = [0; 8];
    // SAFETY: the buffer has the length given.
    let drawn = unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) };
    if !drawn {
        let code = PgSqlErrorCode::ERRCODE_INTERNAL_ERROR;
        ErrorReport::new(code, "could not draw a random number", "").report(PgLogLevel::FATAL);
    }
    (i64::from_ne_bytes(bytes) & i64::MAX).max(1)
}

/// Counts since the start of the run, for `snowflake_status`. Microseconds where they count time.
#[derive(Default)]
pub struct Counters {
    /// Reservations written.
    pub reservations: AtomicI64,
    /// Calls that waited.
    pub waits: AtomicI64,
    /// How long they waited in all.
    pub wait_time: AtomicI64,
    /// Steps back of the clock that were noticed.
    pub clock_steps: AtomicI64,
    /// The largest of them.
    pub largest_clock_step: AtomicI64,
    /// Calls that ended with an error of this extension.
    pub errors: AtomicI64,
}

// SAFETY: atomics only, no pointers.
unsafe impl PGRXSharedMemory for Counters {}

// SAFETY: plain numbers, no pointers.
unsafe impl PGRXSharedMemory for Transitions {}

/// Asks for the shared memory. Called while the library is preloaded.
pub fn init() {
    EXISTS.store(true, Relaxed);
    pg_shmem_init!(LINE);
    pg_shmem_init!(TRANSITIONS = Transitions::new());
    pg_shmem_init!(COUNTERS);
}

/// Whether there is shared memory: false where the library was not preloaded. The functions below need it.
pub fn exists() -> bool {
    EXISTS.load(Relaxed)
}

/// The server's line.
#[inline]
pub fn line() -> &'static Line {
    &LINE.get().0
}

/// Takes the lock for transitions.
pub fn transitions() -> PgLwLockExclusiveGuard<'static, Transitions> {
    TRANSITIONS.exclusive()
}

/// The counters, which need no lock.
pub fn counters() -> &'static Counters {
    COUNTERS.get()
}
