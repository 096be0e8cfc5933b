//! The shared memory of the server: the line of positions, and what the lock for transitions guards. It is made at
//! every start of the server, and again after the crash of a session. Beside it, what a process keeps of its own:
//! [`admission`], [`confirmed`], [`waits`].

/// Defines pieces of shared memory: `PgAtomic`, which is used without a lock, and `PgLwLock`, behind a lock of its own. Each has the name by
/// which PostgreSQL knows it, and is made by [`init`].
macro_rules! in_shared_memory {
    ($($(#[$doc:meta])* static $piece:ident: $access:ident<$type:ident> = $name:expr;)*) => {$(
        $(#[$doc])*
        static $piece: $access<$type> = {
            const NAME: &std::ffi::CStr = $name;
            // SAFETY: the names begin with that of this extension, and no two pieces have the same one.
            unsafe { $access::new(NAME) }
        };

        const _: () = {
            const fn owns_nothing<T: Send + Sync + 'static>() -> bool {
                !std::mem::needs_drop::<T>()
            }
            assert!(owns_nothing::<$type>());
        };

        // SAFETY: several processes may use a value at once as several threads may, since it is `Sync`. It refers to no memory of one process:
        // a type with a pointer is not `Sync`, one with a box needs to be dropped, and no type here has a reference.
        unsafe impl PGRXSharedMemory for $type {}
    )*};
}

pub mod admission;
pub mod confirmed;
mod fixed_text;
pub mod segments;
mod start;
pub mod waits;

pub use fixed_text::FixedText;
pub use start::Start;

use crate::postgres::process;
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

/// The name of the lock for transitions is also the wait event that pg_stat_activity shows.
const LOCK: &CStr = c"pg_snowflake";
/// That of the lock for the news of the lease.
const NEWS_LOCK: &CStr = c"pg_snowflake lease";

in_shared_memory! {
    /// Read and moved without a lock; see [`Line`] for what orders its atomics, and which of its methods need the lock of [`transitions`].
    static LINE: PgAtomic<SharedLine> = c"pg_snowflake line";

    static TRANSITIONS: PgLwLock<Transitions> = LOCK;

    static LEASE_NEWS: PgLwLock<LeaseNews> = NEWS_LOCK;

    static COUNTERS: PgAtomic<Counters> = c"pg_snowflake counters";

    static NOTICES: PgAtomic<Notices> = c"pg_snowflake notices";

    static LEASE_KEPT: PgAtomic<LeaseKept> = c"pg_snowflake lease kept";
}

/// Whether the library was preloaded, so that the six above exist. Set in the postmaster before it starts other processes; nothing else
/// orders it.
static EXISTS: AtomicBool = AtomicBool::new(false);

/// On cache lines of its own, so that no session loses the line's word from its cache because something beside it is
/// written.
#[derive(Default)]
#[repr(C, align(128))]
struct SharedLine(Line);

/// The state that transitions change. Under the lock, there is only arithmetic, and writing of the register and of the page of
/// its copy: nothing that waits, and no memory allocation.
pub struct Transitions {
    /// How the run before ended.
    pub start: Start,
    /// When this run began.
    pub started_at: UnixMicros,
    /// The server's reservation; `None` until the first session of the run has read it.
    pub reserved: Option<RegisterState>,
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
pub struct RegisterState {
    /// The value in it.
    pub reserved: Reserved,
    /// The log position up to which the log must be flushed before anyone relies on this; 0: it is flushed.
    pub logged_at: pg_sys::XLogRecPtr,
    /// The origin's number.
    pub origin: u16,
}

/// Whether this postmaster has made shared memory before: it does so again after the crash of a session. Of the postmaster alone.
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

/// The numbers that every session that claims reads about once a millisecond, without a lock. All are relaxed.
#[repr(C, align(128))]
struct Notices {
    /// Counted up when all sessions must be admitted again. That is sound only because it is done under the lock for transitions, together
    /// with the changes that it tells of. A session reads the number before it takes that lock to be admitted. So where it has read the new
    /// number, the lock has it see the changes, too; and where it has read the old one, it finds later that the number is another.
    admissions: AtomicU64,
    /// [`BelievedClock`], each number in an atomic of its own; written under the lock for transitions, read without it. A reader may find
    /// one number changed and the next not yet, in any order where the processor orders memory weakly: a new `leap_since`, say, with an
    /// old `leap_offset`. Then [`BelievedClock::peek`] either finds that the clock was stepped or has leapt, and the caller looks again under the
    /// lock; or it goes by an offset that was believed shortly before. That concerns the time of IDs for a moment, and not that they are
    /// distinct, which rests on the line alone.
    clock_offset: AtomicI64,
    /// See `clock_offset`.
    leap_offset: AtomicI64,
    /// See `clock_offset`. [`NO_LEAP`] where there is none.
    leap_since: AtomicI64,
    /// Nothing orders it: a session that sees it late publishes the worker itself, or waits for a keeper that is gone until it looks again.
    /// Either way, the lock for transitions decides which configuration is the latest.
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
        // of it. The callback lives as long as the process.
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

extern "C-unwind" fn remember(_code: i32, _argument: pg_sys::Datum) {
    // A child of the postmaster inherits the callback, and has nothing to remember.
    if process::is_child_of_postmaster() {
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
///
/// Written under the lock for transitions, so by one process at a time; read by the postmaster when all its children have ended. `SeqCst`
/// keeps the four stores in their order for whoever reads them after a crash in between.
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

/// Counts since the start of the run, for `snowflake_status`. Microseconds where they count time. Those of which nothing else is said are
/// relaxed: nothing is decided by them, and no other number must fit them.
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
    /// lock. `SeqCst`: a session counts itself before it takes the lock for transitions to read the reservation, and the keeper looks
    /// here while it holds that lock to give the reservation back. So one of them sees the other.
    pub sessions: AtomicI64,
    /// Those of them that are connected for replication. `SeqCst`: changed before `sessions` is, so whoever sees such a session
    /// counted there sees it here.
    pub senders: AtomicI64,
    /// Calls that ended with an error of this extension.
    pub errors: AtomicI64,
    /// The number of the process that leases the worker, in PostgreSQL's array of processes, plus 1; 0 while it does not run.
    /// Relaxed: whoever reads an old number wakes up another process, which sleeps again.
    pub lessee: AtomicI64,
    /// The numbers of the wait events that have names, in the order in which `waits` has them; 0 without.
    /// Relaxed: a session that does not see one yet shows its wait without a name.
    pub wait_events: [AtomicU32; WAITS],
    /// How many listings of the registry were asked for: of workers, and of segments. Relaxed: each number is taken by one session, and the
    /// process that makes listings looks again when it is woken up.
    pub listings_wanted: [AtomicI64; 2],
    /// Up to which of those they were made. Relaxed: counted up after the errors are in the news of the lease, behind whose lock the session
    /// reads them, and after the listing is in a file.
    pub listings_made: [AtomicI64; 2],
}

/// News from the process that leases the worker.
#[derive(Default)]
pub struct LeaseNews {
    /// What keeps the server from its lease; empty where nothing does.
    pub lease: FixedText,
    /// What keeps it from numbers of segments.
    pub segments: FixedText,
    /// Why the last request about segments failed; empty where it did not.
    pub segments_error: FixedText,
    /// Why the last listing failed, of workers and of segments; empty where it did not.
    pub listing_errors: [FixedText; 2],
}

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

/// Takes the lock for transitions. The caller [may](may_wait).
pub fn transitions() -> PgLwLockExclusiveGuard<'static, Transitions> {
    may_wait();
    TRANSITIONS.exclusive()
}

/// Takes the lock for the news of the lease. The caller [may](may_wait).
pub fn lease_news() -> PgLwLockExclusiveGuard<'static, LeaseNews> {
    may_wait();
    LEASE_NEWS.exclusive()
}

/// In development: stops what holds one of the locks here, and does what may wait, or may take one. It could wait for itself, for ever and without
/// interrupts. What does so seldom calls this always. A guard that no name is given to is held to the end of its statement.
pub fn may_wait() {
    // SAFETY: the locks of these names were requested together with the shared memory; without that, PostgreSQL raises an error.
    let is_held =
        |name: &CStr| unsafe { pg_sys::LWLockHeldByMe(&raw mut (*pg_sys::GetNamedLWLockTranche(name.as_ptr())).lock) };
    debug_assert!(!is_held(LOCK) && !is_held(NEWS_LOCK), "this session holds a lock of pg_snowflake already");
}

/// The counters.
pub fn counters() -> &'static Counters {
    COUNTERS.get()
}

/// The number of the server's last withdrawal of all admissions. A session that was admitted before it must be admitted
/// again. See [`Notices`] for what orders it.
#[inline]
pub fn admissions() -> u64 {
    NOTICES.get().admissions.load(Relaxed)
}

/// Withdraws the admissions of all sessions. They notice it within a millisecond of claiming. The argument proves that the caller holds the
/// lock, under which it has made the changes that sessions are to see.
pub fn withdraw_admissions(_lock: &mut Transitions) {
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
