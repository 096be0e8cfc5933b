//! The system's resolver, asked by threads of their own: nothing ends its wait for a name server that is away, and this process must
//! end when the server stops.

use snowflake_registry::{Lookup, Resolver};
use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{io, thread};

/// The names that are being looked up: one thread for each.
static RUNNING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

fn running() -> MutexGuard<'static, BTreeSet<String>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A resolver that blocks nobody. Its threads call nothing but the system's resolver.
pub fn apart() -> Resolver {
    Resolver::elsewhere(start)
}

fn start(name: &str, lookup: Lookup) -> io::Result<()> {
    if !running().insert(name.to_owned()) {
        return Err(io::Error::other("the system's resolver has not answered yet"));
    }
    let thread_name = name.to_owned();
    let run = move || {
        lookup();
        running().remove(&thread_name);
    };
    let started = without_signals(|| thread::Builder::new().spawn(run));
    if started.is_err() {
        running().remove(name);
    }
    started.map(drop)
}

/// A thread inherits which signals are blocked. PostgreSQL's handlers are for the first thread alone.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let before = block(None);
    let result = start();
    block(Some(before));
    result
}

/// Blocks these signals for this thread, or all; returns which were blocked before.
fn block(signals: Option<libc::sigset_t>) -> libc::sigset_t {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: each set is filled by the call that is given it first; neither can fail, with valid arguments.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, &signals.unwrap_or(all.assume_init()), before.as_mut_ptr());
        before.assume_init()
    }
}
