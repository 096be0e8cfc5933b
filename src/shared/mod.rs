//! The shared memory of the server: the line of positions, and what the lock for transitions guards. It is made at
//! every start of the server, and again after the crash of a session. Beside it, what a process keeps of its own:
//! [`admission`], [`confirmed`], [`waits`].

pub mod admission;
pub mod confirmed;
mod fixed_text;
pub mod segments;
mod start;
pub mod waits;

pub use fixed_text::FixedText;
pub use start::Start;

use crate::postgres::time::clock;
use pgrx::lwlock::PgLwLockExclusiveGuard;
use pgrx::prelude::*;
use pgrx::{PGRXSharedMemory, PgAtomic, PgLwLock, pg_shmem_init};
use snowflake_core::clock::{BelievedClock, Leap};
use snowflake_core::lease::{Grant, Published, WorkerNumber};
use snowflake_core::reservation::Reserved;
use snowflake_core::{Line, Micros, MonotonicMicros, Pace, UnixMicros, WorkerBits};
use std::ffi::CStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// Read and moved without a lock; see [`Line`] for which of its methods need the lock of [`transitions`].
// SAFETY: the names are this extension's own.
static LINE: PgAtomic<SharedLine> = unsafe { PgAtomic::new(c"pg_snowflake line") };

/// The name of the lock for transitions is also the wait event that pg_stat_activity shows.
const LOCK: &CStr = c"pg_snowflake";

// SAFETY: as above.
static TRANSITIONS: PgLwLock<Transitions> = unsafe { PgLwLock::new(LOCK) };

// SAFETY: as above.
static LEASE_NEWS: PgLwLock<LeaseNews> = unsafe { PgLwLock::new(c"pg_snowflake lease") };

// SAFETY: as above.
static COUNTERS: PgAtomic<Counters> = unsafe { PgAtomic::new(c"pg_snowflake counters") };

// SAFETY: as above.
static NOTICES: PgAtomic<Notices> = unsafe { PgAtomic::new(c"pg_snowflake notices") };

// SAFETY: as above.
static LEASE_KEPT: PgAtomic<LeaseKept> = unsafe { PgAtomic::new(c"pg_snowflake lease kept") };

/// Whether the library was preloaded, so that the six above exist.
static EXISTS: AtomicBool = AtomicBool::new(false);

/// On cache lines of its own, so that no session loses the line's word from its cache because something beside it is
/// written.
#[derive(Default)]
#[repr(C, align(128))]
struct SharedLine(Line);

// SAFETY: atomics only, no pointers.
unsafe impl PGRXSharedMemory for SharedLine {}

/// The state that transitions change. Under the lock, there is only arithmetic, and writing of the register and of the page of
/// its copy: nothing that waits, and no memory allocation.
pub struct Transitions {
    /// How the run before ended.
    pub start: Start,
    /// When this run began.
    pub started_at: UnixMicros,
    /// The server's reservation; `None` until the first session of the run has read it.
    pub reserved: Option<Held>,
    /// Since when a session waits for the process that creates the register; `None` where none does.
    pub creating_since: Option<MonotonicMicros>,
    /// The limits of the lease; none where workers are not leased.
    pub lease: Published,
    /// When a tick was last opened while the clock was behind.
    pub pace: Pace,
    /// The worker whose IDs are made now; `None` while `worker_id` is unset.
    pub worker: Option<WorkerBits>,
    /// When the configuration that says so was read; see [`crate::server::worker`].
    pub worker_read_at: i64,
    /// The worker before this one, and the instant before which all of its IDs are.
    pub previous_worker: Option<(WorkerBits, UnixMicros)>,
}

/// The register as this run knows it.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// The value in it.
    pub reserved: Reserved,
    /// The log position up to which the log must be flushed before anyone relies on this; 0: it is flushed.
    pub logged_at: pg_sys::XLogRecPtr,
    /// The origin's number.
    pub origin: u16,
}

/// Whether this postmaster has made shared memory before: it does so again after the crash of a session.
static RAN_BEFORE: AtomicBool = AtomicBool::new(false);

impl Transitions {
    fn new() -> Self {
        Self {
            start: Start::find(),
            started_at: clock::now(),
            reserved: None,
            creating_since: None,
            lease: Published::new(!RAN_BEFORE.swap(true, Relaxed)),
            pace: Pace::default(),
            worker: None,
            worker_read_at: i64::MIN,
            previous_worker: None,
        }
    }
}

/// The numbers that every session that claims reads about once a millisecond, without a lock. Written under the lock for
/// transitions.
#[repr(C, align(128))]
struct Notices {
    /// Counted up when all sessions must be admitted again.
    admissions: AtomicU64,
    /// [`BelievedClock`], each number in an atomic of its own. A reader that finds one number changed and the next not
    /// yet sees a clock that was stepped or has leapt, and then looks again under the lock.
    clock_offset: AtomicI64,
    leap_offset: AtomicI64,
    /// [`NO_LEAP`] where there is none.
    leap_since: AtomicI64,
    has_keeper: AtomicBool,
}

const NO_LEAP: i64 = i64::MIN;

/// The believed clock of the run before, where a session's crash has ended that run; kept in the postmaster's memory.
static REMEMBERED: Mutex<Option<BelievedClock>> = Mutex::new(None);

impl Notices {
    fn new() -> Self {
        let remembered = REMEMBERED.lock().ok().and_then(|remembered| *remembered);
        let clock = remembered.unwrap_or_else(|| BelievedClock::new(clock::now(), clock::boot_micros()));
        let new = Self {
            admissions: AtomicU64::new(1),
            clock_offset: AtomicI64::new(0),
            leap_offset: AtomicI64::new(0),
            leap_since: AtomicI64::new(NO_LEAP),
            has_keeper: AtomicBool::new(false),
        };
        new.set_clock(&clock);
        // SAFETY: in the postmaster, which calls this when it makes shared memory, and the callback before it lets go
        // of it.
        unsafe { pg_sys::on_shmem_exit(Some(remember), pg_sys::Datum::from(0)) };
        new
    }

    fn clock(&self) -> BelievedClock {
        let since = self.leap_since.load(Relaxed);
        let leap_offset = Micros(self.leap_offset.load(Relaxed));
        let leap = (since != NO_LEAP).then_some(Leap { offset: leap_offset, since: MonotonicMicros(since) });
        BelievedClock { offset: Micros(self.clock_offset.load(Relaxed)), leap }
    }

    fn set_clock(&self, clock: &BelievedClock) {
        self.clock_offset.store(clock.offset.0, Relaxed);
        self.leap_offset.store(clock.leap.map_or(0, |leap| leap.offset.0), Relaxed);
        self.leap_since.store(clock.leap.map_or(NO_LEAP, |leap| leap.since.0), Relaxed);
    }
}

/// The lease of the run before, where a session's crash has ended that run; kept in the postmaster's memory, as is the token that it
/// belongs to.
static REMEMBERED_LEASE: Mutex<Option<Grant>> = Mutex::new(None);

unsafe extern "C-unwind" fn remember(_code: i32, _argument: pg_sys::Datum) {
    // SAFETY: a flag of this process. A child of the postmaster inherits the callback, and has nothing to remember.
    if unsafe { pg_sys::IsUnderPostmaster } {
        return;
    }
    if let Ok(mut remembered) = REMEMBERED.lock() {
        *remembered = Some(NOTICES.get().clock());
    }
    if let Ok(mut remembered) = REMEMBERED_LEASE.lock() {
        *remembered = LEASE_KEPT.get().read();
    }
}

/// The grant that sessions claim of, for after a session's crash. It says nothing of what the crash may have spoilt: it is about what
/// the registry has stored. In numbers of its own, as the lock for transitions may be held by the session that crashed.
#[derive(Default)]
struct LeaseKept {
    worker: AtomicU64,
    from: AtomicI64,
    until: AtomicI64,
    /// Over the numbers above, so that a grant that was half written, or overwritten by whatever crashed, counts as none.
    check: AtomicU64,
}

impl LeaseKept {
    fn check_of(grant: &Grant) -> u64 {
        let mut hasher = DefaultHasher::new();
        (0x1ea5e_u32, grant).hash(&mut hasher);
        hasher.finish()
    }

    fn write(&self, grant: Option<Grant>) {
        self.check.store(0, SeqCst);
        if let Some(grant) = grant {
            self.worker.store(grant.worker.0, SeqCst);
            self.from.store(grant.from.0, SeqCst);
            self.until.store(grant.until.0, SeqCst);
            self.check.store(Self::check_of(&grant), SeqCst);
        }
    }

    fn read(&self) -> Option<Grant> {
        let grant = Grant {
            worker: WorkerNumber(self.worker.load(SeqCst)),
            from: UnixMicros(self.from.load(SeqCst)),
            until: UnixMicros(self.until.load(SeqCst)),
        };
        (self.check.load(SeqCst) == Self::check_of(&grant)).then_some(grant)
    }
}

// SAFETY: atomics only, no pointers.
unsafe impl PGRXSharedMemory for LeaseKept {}

/// Notes the grant that sessions claim of, for after a session's crash; or that they claim no more. The second argument proves that the
/// caller holds the lock.
pub fn keep_lease(grant: Option<Grant>, _lock: &mut Transitions) {
    LEASE_KEPT.get().write(grant);
}

/// The grant of the run before, where a session's crash has ended that run.
pub fn kept_lease() -> Option<Grant> {
    REMEMBERED_LEASE.lock().ok().and_then(|remembered| *remembered)
}

/// How many kinds of waits have names.
pub const WAITS: usize = 5;

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
    /// Leaps forward that were not believed at once.
    pub clock_leaps: AtomicI64,
    /// Processes that may claim. An atomic, as processes subtract themselves at their exit, where they can take no
    /// lock.
    pub sessions: AtomicI64,
    /// Calls that ended with an error of this extension.
    pub errors: AtomicI64,
    /// The number of the process that leases the worker, in PostgreSQL's array of processes, plus 1; 0 while it does not run.
    pub lessee: AtomicI64,
    /// The numbers of the wait events that have names, in the order in which `waits` has them; 0 without.
    pub wait_events: [AtomicU32; WAITS],
    /// How many listings of the registry were asked for, and up to which of them they were made: of workers, and of segments.
    pub listings_wanted: [AtomicI64; 2],
    /// See `listings_wanted`.
    pub listings_made: [AtomicI64; 2],
}

// SAFETY: atomics only, no pointers.
unsafe impl PGRXSharedMemory for Counters {}

// SAFETY: as above.
unsafe impl PGRXSharedMemory for Notices {}

// SAFETY: plain numbers, no pointers.
unsafe impl PGRXSharedMemory for Transitions {}

/// News from the process that leases the worker.
#[derive(Default)]
pub struct LeaseNews {
    /// Why its last request failed; empty where it did not.
    pub error: FixedText,
    /// The reason why the server has no lease.
    pub trouble: FixedText,
    /// Why the last listing failed, of workers and of segments; empty where it did not.
    pub listing_errors: [FixedText; 2],
}

// SAFETY: plain numbers, no pointers.
unsafe impl PGRXSharedMemory for LeaseNews {}

/// Requests the shared memory. Called while the library is preloaded.
pub fn init() {
    EXISTS.store(true, Relaxed);
    pg_shmem_init!(LINE);
    pg_shmem_init!(TRANSITIONS = Transitions::new());
    pg_shmem_init!(LEASE_NEWS = LeaseNews::default());
    pg_shmem_init!(COUNTERS);
    pg_shmem_init!(NOTICES = Notices::new());
    pg_shmem_init!(LEASE_KEPT);
    segments::init();
}

/// Whether there is shared memory: not where the library was not preloaded. The functions below need it.
pub fn exists() -> bool {
    EXISTS.load(Relaxed)
}

/// The server's line.
#[inline]
pub fn line() -> &'static Line {
    &LINE.get().0
}

/// Takes the lock for transitions. The caller does not hold it: it would wait for itself, for ever and without interrupts.
pub fn transitions() -> PgLwLockExclusiveGuard<'static, Transitions> {
    debug_assert!(!holds_transitions(), "this session holds the lock for transitions already");
    TRANSITIONS.exclusive()
}

/// Whether this session holds the lock for transitions.
fn holds_transitions() -> bool {
    // SAFETY: the lock of that name was requested together with the shared memory.
    unsafe { pg_sys::LWLockHeldByMe(&raw mut (*pg_sys::GetNamedLWLockTranche(LOCK.as_ptr())).lock) }
}

/// Takes the lock for the news of the lease.
pub fn lease_news() -> PgLwLockExclusiveGuard<'static, LeaseNews> {
    LEASE_NEWS.exclusive()
}

/// The counters.
pub fn counters() -> &'static Counters {
    COUNTERS.get()
}

/// The number of the server's last withdrawal of all admissions. A session that was admitted before it must be admitted
/// again.
#[inline]
pub fn admissions() -> u64 {
    NOTICES.get().admissions.load(Relaxed)
}

/// Withdraws the admissions of all sessions. They notice it within a millisecond of claiming.
pub fn withdraw_admissions() {
    NOTICES.get().admissions.fetch_add(1, Relaxed);
}

/// The clock as the server believes it.
#[inline]
pub fn believed_clock() -> BelievedClock {
    NOTICES.get().clock()
}

/// Changes it. The second argument proves that the caller holds the lock.
pub fn set_believed_clock(clock: &BelievedClock, _lock: &mut Transitions) {
    NOTICES.get().set_clock(clock);
}

/// Whether the keeper runs, which reads the configuration for all sessions.
pub fn has_keeper() -> bool {
    NOTICES.get().has_keeper.load(Relaxed)
}

/// Sets whether it does.
pub fn set_has_keeper(runs: bool) {
    NOTICES.get().has_keeper.store(runs, Relaxed);
}
