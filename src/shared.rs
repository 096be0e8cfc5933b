//! The shared memory of the server: the line of positions, and what the lock for transitions guards. Made anew at
//! every start and after every crash of a backend.

use pgrx::lwlock::PgLwLockExclusiveGuard;
use pgrx::prelude::*;
use pgrx::{PGRXSharedMemory, PgAtomic, PgLwLock, pg_shmem_init};
use snowflake_core::{Line, Pace, WorkerBits};
use std::sync::atomic::{AtomicBool, Ordering};

/// Read and moved without a lock; see [`Line`] for which of its methods want [`transitions`] held.
// SAFETY: the names are this extension's own.
static LINE: PgAtomic<SharedLine> = unsafe { PgAtomic::new(c"pg_snowflake line") };

/// The lock's name is also the wait event that pg_stat_activity shows.
// SAFETY: as above.
static TRANSITIONS: PgLwLock<Transitions> = unsafe { PgLwLock::new(c"pg_snowflake") };

/// Whether the library was preloaded, so that the two above exist.
static EXISTS: AtomicBool = AtomicBool::new(false);

/// Its own cache lines: nothing else is written beside the word that all sessions claim from.
#[derive(Default)]
#[repr(C, align(128))]
struct SharedLine(Line);

// SAFETY: atomics only, no pointers.
unsafe impl PGRXSharedMemory for SharedLine {}

/// What transitions change. In the lock there is only arithmetic: no waiting, no memory allocation, no error.
#[derive(Default)]
pub struct Transitions {
    /// When a tick was last opened while the clock was behind.
    pub pace: Pace,
    /// The worker whose IDs are made now; `None` while `worker_id` is unset.
    pub worker: Option<WorkerBits>,
    /// When the configuration that says so was read; see [`crate::settings::Worker`].
    pub worker_read_at: i64,
}

// SAFETY: plain numbers, no pointers.
unsafe impl PGRXSharedMemory for Transitions {}

/// Asks for the shared memory. Called while the library is preloaded.
pub fn init() {
    EXISTS.store(true, Ordering::Relaxed);
    pg_shmem_init!(LINE);
    pg_shmem_init!(TRANSITIONS);
}

/// Whether there is shared memory: false where the library was not preloaded. The functions below need it.
pub fn exists() -> bool {
    EXISTS.load(Ordering::Relaxed)
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
