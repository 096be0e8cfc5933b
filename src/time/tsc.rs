//! The processor's time-stamp counter (TSC). To read it alone costs less than half of what reading the clock does, which
//! waits for what comes before, reads it, and calculates.
//!
//! It is used on x86-64 under Linux where the processor says that it counts at one rate and without a pause, and while the
//! kernel, which also sees to it that it counts alike on all processors, keeps time by it. Elsewhere its rate is unknown,
//! and nothing is told by it.

pub use counter::{init, per_micro, read, usable};

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod counter {
    use crate::time::clock;
    use once_cell::sync::OnceCell;
    use std::arch::x86_64::{__cpuid, _rdtsc};

    /// The counter and the clock of [`clock::boot_nanos`] at one moment.
    #[derive(Clone, Copy)]
    struct Reading {
        count: u64,
        nanos: i64,
    }

    /// When the postmaster started, which its children inherit.
    static START: OnceCell<Reading> = OnceCell::new();

    /// The rate is not told from less time than this, in nanoseconds.
    const SHORTEST: i64 = 10_000_000;

    /// Called once, in the postmaster.
    pub fn init() {
        START.get_or_init(Reading::take);
    }

    /// Whether the counter can be used now.
    pub fn usable() -> bool {
        const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        is_invariant() && std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
    }

    /// Whether the processor says that nothing changes or stops the counter: bit 8 of EDX of leaf 0x80000007 (AMD's and
    /// Intel's manuals on CPUID).
    fn is_invariant() -> bool {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
    }

    /// The counter.
    #[inline]
    pub fn read() -> u64 {
        // SAFETY: every processor of this architecture has the instruction, and Linux leaves it open to all processes.
        unsafe { _rdtsc() }
    }

    /// How many counts surely pass in less than a microsecond, so that a time told from it is never too long, where the
    /// counter is [`usable`]. 0 where that is not known yet.
    pub fn per_micro() -> u64 {
        let Some(start) = START.get() else { return 0 };
        let now = Reading::take();
        let (nanos, counts) = (now.nanos - start.nanos, now.count.saturating_sub(start.count));
        if nanos < SHORTEST {
            return 0;
        }
        // Less 1/128: the clock may be slewed by up to 1/2000, and the two were read a moment apart.
        let per_micro = u128::from(counts) * 1000 * 127 / (u128::from(nanos.unsigned_abs()) * 128);
        u64::try_from(per_micro).unwrap_or(0)
    }

    impl Reading {
        /// Of a few tries the one that was over soonest: the others were interrupted.
        fn take() -> Self {
            let tries: [_; 5] = std::array::from_fn(|_| {
                let count = read();
                let nanos = clock::boot_nanos();
                (read().wrapping_sub(count), Self { count, nanos })
            });
            tries.into_iter().min_by_key(|&(took, _)| took).map_or(tries[0].1, |(_, reading)| reading)
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod counter {
    pub fn init() {}

    pub fn usable() -> bool {
        false
    }

    pub fn read() -> u64 {
        0
    }

    pub fn per_micro() -> u64 {
        0
    }
}
