//! Makes a wait inside PostgreSQL end for every interrupt. PostgreSQL's wait for a synchronous standby ends only for a
//! cancel and a termination, since a commit can do nothing about others. In the middle of a statement there are more: a
//! transaction timeout, a client that is gone, an error of a parallel worker, a DROP DATABASE that waits for all
//! sessions.
//!
//! All of them come as signals. During the wait, [`handle`] runs after PostgreSQL's own signal handlers. Where these
//! have left an interrupt pending, it sets the flag of a cancel, which ends the wait, and remembers whether there was a
//! real one.

use crate::postgres::flag::Flag;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Cancel and statement timeout; other timeouts; all that other processes ask for.
const SIGNALS: [c_int; 3] = [libc::SIGINT, libc::SIGALRM, libc::SIGUSR1];

// The statics below are of this process alone, which has one thread, and are accessed by it and by the handler that interrupts it. Each is
// written before the handler that reads it can run, or read after it has run. So nothing else orders the accesses: all are relaxed.

/// PostgreSQL's handlers of these, and whether they are told where the signal came from, as from PostgreSQL 19 on.
static HANDLERS: [Handler; 3] =
    [const { Handler { address: AtomicUsize::new(0), wants_info: AtomicBool::new(false) } }; 3];

/// A handler that is told where the signal came from.
type HandlerWithInfo = extern "C-unwind" fn(c_int, *mut libc::siginfo_t, *mut c_void);

struct Handler {
    address: AtomicUsize,
    /// The handler was installed with `SA_SIGINFO`: it has the three arguments of [`handle`], and not only the first.
    wants_info: AtomicBool,
}

/// The statement was cancelled during the wait.
static CANCELLED: AtomicBool = AtomicBool::new(false);

/// The flag of a cancel was set only to end the wait.
static MADE_UP: AtomicBool = AtomicBool::new(false);

/// Runs a wait of PostgreSQL's which by itself ends only for a cancel and a termination, so that it ends for every
/// interrupt. Returns whether there was one, before or during the wait. Then it is pending, and the caller must check
/// for interrupts before it does anything else.
pub fn during(wait: impl FnOnce()) -> bool {
    CANCELLED.store(false, Relaxed);
    MADE_UP.store(false, Relaxed);
    let watch = Watch::begin();
    // An interrupt that came before the handlers were installed would not end the wait.
    let early = Flag::interrupt().is_set();
    if !early {
        wait();
    }
    drop(watch);
    let made_up = MADE_UP.load(Relaxed);
    // From here on, only PostgreSQL's own handlers set the flags.
    if made_up {
        Flag::cancel().set(false);
    }
    // In this order, or a real cancel that came at the same time would be lost.
    let cancelled = CANCELLED.load(Relaxed);
    if cancelled {
        Flag::cancel().set(true);
    }
    let interrupted = early || made_up || cancelled || Flag::termination().is_set();
    if interrupted {
        // Not set where the postmaster has died.
        Flag::interrupt().set(true);
    }
    interrupted
}

/// The time in which [`handle`] runs after PostgreSQL's handlers.
struct Watch {
    /// The handlers before.
    replaced: [Option<libc::sigaction>; 3],
}

impl Watch {
    fn begin() -> Self {
        let mut replaced = [None; 3];
        for ((signal, handler), replaced) in SIGNALS.into_iter().zip(&HANDLERS).zip(&mut replaced) {
            let mut action = change_action(signal, None);
            // A signal that is ignored stays ignored.
            if action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN {
                *replaced = Some(action);
                handler.address.store(action.sa_sigaction, Relaxed);
                handler.wants_info.store(action.sa_flags & libc::SA_SIGINFO != 0, Relaxed);
                action.sa_sigaction = handle as HandlerWithInfo as usize;
                action.sa_flags |= libc::SA_SIGINFO;
                change_action(signal, Some(&action));
            }
        }
        Self { replaced }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        for (signal, replaced) in SIGNALS.into_iter().zip(&self.replaced) {
            if let Some(action) = replaced {
                change_action(signal, Some(action));
            }
        }
    }
}

/// What is done on a signal, and with `Some`, what is to be done from now on: what was done before, or [`handle`].
fn change_action(signal: c_int, new: Option<&libc::sigaction>) -> libc::sigaction {
    // SAFETY: zeros are a valid value, and are overwritten. The handler of the new action is one that may run as such at any time.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, new.map_or(std::ptr::null(), std::ptr::from_ref), &raw mut before);
        before
    }
}

/// Runs PostgreSQL's handler, and then sees what it has left pending. Only loads and stores, as in any signal handler.
extern "C-unwind" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    for (watched, handler) in SIGNALS.into_iter().zip(&HANDLERS) {
        if watched == signal {
            let address = handler.address.load(Relaxed);
            // SAFETY: the address of the handler that was there, which is of the type that its flag says. `begin` has noted both before this
            // could run.
            unsafe {
                if handler.wants_info.load(Relaxed) {
                    let before: HandlerWithInfo = std::mem::transmute(address);
                    before(signal, info, context);
                } else {
                    let before: extern "C-unwind" fn(c_int) = std::mem::transmute(address);
                    before(signal);
                }
            }
        }
    }
    let pending = Flag::interrupt().is_set();
    if Flag::cancel().is_set() {
        if signal == libc::SIGINT {
            CANCELLED.store(true, Relaxed);
        }
    } else if pending {
        MADE_UP.store(true, Relaxed);
        Flag::cancel().set(true);
    }
}
