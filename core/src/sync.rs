//! Atomics, or loom's in place of them.

#[cfg(not(loom))]
mod real {
    pub use std::sync::atomic::{AtomicU64, Ordering};

    /// Pauses for a fraction of a microsecond after a lost compare-and-swap. That leaves the word's cache line to the
    /// core that has it, which makes several claims in this time, rather than move the line between cores for every
    /// claim: moving it takes longer than a claim.
    #[cold]
    pub fn back_off() {
        (0..32).for_each(|_| std::hint::spin_loop());
    }
}
#[cfg(loom)]
mod real {
    pub use loom::hint::spin_loop as back_off;
    pub use loom::sync::atomic::{AtomicU64, Ordering};
}

pub(crate) use real::{AtomicU64, Ordering, back_off};
