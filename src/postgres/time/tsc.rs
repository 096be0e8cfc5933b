//! The processor's time-stamp counter (TSC). Reading it costs less than half as much as reading the clock:
//! `clock_gettime` reads the same counter, but waits for earlier instructions first, and then converts the count.
//!
//! It is used on x86-64 Linux, where the processor says that the counter runs at a constant rate and never stops, and
//! while it is the kernel's own clock source; the kernel makes sure that the counters of all processors agree.
//! Elsewhere the clock is read.

pub use counter::{init, per_micro, read, usable};

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod counter {
    use crate::postgres::time::clock;
    use once_cell::sync::OnceCell;
    use std::arch::x86_64::{__cpuid, _rdtsc};

    /// The counter and the clock of [`clock::boot_nanos`] at one moment.
    #[derive(Clone, Copy)]
    struct Reading {
        count: u64,
        nanos: i64,
    }

    /// Taken when the postmaster starts; its children inherit it.
    static START: OnceCell<Reading> = OnceCell::new();

    /// The shortest time over which the rate is measured, in nanoseconds.
    const SHORTEST: i64 = 10_000_000;

    /// Takes the first reading. Called in the postmaster.
    pub fn init() {
        START.get_or_init(Reading::take);
    }

    /// Whether the counter can be used now.
    pub fn usable() -> bool {
        const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        is_invariant() && std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
    }

    /// Whether the processor has an invariant TSC: one that power saving neither slows down nor stops. Bit 8 of EDX of
    /// CPUID leaf 0x80000007 (AMD64 Architecture Programmer's Manual, volume 3; Intel's Software Developer's Manual,
    /// volume 2).
    fn is_invariant() -> bool {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
    }

    /// The counter.
    #[inline]
    pub fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction, and Linux lets all processes use it.
        unsafe { _rdtsc() }
    }

    /// How many counts pass in a microsecond, where the counter is [`usable`]; a little too few rather than too many,
    /// so that what is to hold for a number of microseconds ends early rather than late. 0 until the rate is known,
    /// which is measured from the postmaster's start on.
    pub fn per_micro() -> u64 {
        let Some(start) = START.get() else { return 0 };
        let now = Reading::take();
        let (nanos, counts) = (now.nanos - start.nanos, now.count.saturating_sub(start.count));
        if nanos < SHORTEST {
            return 0;
        }
        // Less 1/128: the clock may be slewed by up to 1/2000, and counter and clock were not read at the same instant.
        let per_micro = u128::from(counts) * 1000 * 127 / (u128::from(nanos.unsigned_abs()) * 128);
        u64::try_from(per_micro).unwrap_or(0)
    }

    impl Reading {
        /// The quickest of five readings: others may have been interrupted between counter and clock.
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
