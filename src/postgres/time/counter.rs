//! The processor's counter: on x86-64 the time-stamp counter (TSC), on 64-bit Arm the virtual counter of the generic timer (CNTVCT). Reading it
//! costs less than half as much as reading the clock: `clock_gettime` reads the same counter, but waits for earlier instructions first, and then
//! converts the count.
//!
//! It is used on Linux, where the processor says that the counter runs at a constant rate and never stops, and while it is the kernel's own clock
//! source; the kernel makes sure that the counters of all processors agree. Elsewhere the clock is read.

pub use steady::{NAME, init, rate, read, usable};

#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux"))]
mod steady {
    pub use super::processor::{NAME, read};

    use super::processor;
    use crate::postgres::time::clock;
    use once_cell::sync::OnceCell;
    use snowflake_core::counter::Rate;

    /// The counter and the clock of [`clock::boot_nanos`] at one moment.
    #[derive(Clone, Copy)]
    struct Reading {
        count: u64,
        nanos: i64,
    }

    /// Taken when the postmaster starts; its children inherit it.
    static START: OnceCell<Reading> = OnceCell::new();

    /// Takes the first reading. Called in the postmaster.
    pub fn init() {
        START.get_or_init(Reading::take);
    }

    /// Whether the counter can be used now.
    pub fn usable() -> bool {
        const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        processor::is_steady()
            && std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == processor::CLOCK_SOURCE)
    }

    /// How fast the counter runs, where it is [`usable`]: measured from the postmaster's start on, and compared with what the processor says.
    pub fn rate() -> Rate {
        let Some(start) = START.get() else { return Rate::NONE };
        let now = Reading::take();
        Rate::measured(now.count.saturating_sub(start.count), now.nanos - start.nanos, processor::frequency())
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

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod processor {
    use std::arch::x86_64::{__cpuid, _rdtsc};

    /// As the status calls it.
    pub const NAME: &str = "tsc";

    /// As the kernel calls it.
    pub const CLOCK_SOURCE: &str = "tsc";

    /// Whether the processor has an invariant TSC: one that power saving neither slows down nor stops. Bit 8 of EDX of
    /// CPUID leaf 0x80000007 (AMD64 Architecture Programmer's Manual, volume 3; Intel's Software Developer's Manual,
    /// volume 2).
    pub fn is_steady() -> bool {
        __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
    }

    /// Its frequency is not told by all processors.
    pub fn frequency() -> Option<u64> {
        None
    }

    /// The counter.
    #[inline]
    pub fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction, and Linux lets all processes use it.
        unsafe { _rdtsc() }
    }
}

#[cfg(all(target_arch = "aarch64", target_os = "linux"))]
mod processor {
    use std::arch::asm;

    /// As the status calls it.
    pub const NAME: &str = "cntvct";

    /// As the kernel calls it.
    pub const CLOCK_SOURCE: &str = "arch_sys_counter";

    /// By the architecture, the counter runs at a constant rate, and in all states of power (Arm Architecture Reference Manual for A-profile,
    /// "The Generic Timer").
    pub fn is_steady() -> bool {
        true
    }

    /// What the firmware says of the frequency, in hertz. Nothing in the processor depends on it, so it may be wrong.
    pub fn frequency() -> Option<u64> {
        let hertz: u64;
        // SAFETY: the instruction reads a register into another one. Linux lets all processes read this one, or reads it for them.
        unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags)) };
        Some(hertz)
    }

    /// The counter.
    #[inline]
    pub fn read() -> u64 {
        let count: u64;
        // SAFETY: the instruction reads a register into another one, anew in each call, as it is not `pure`. Linux lets all processes read it, or reads
        // it for them.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
        count
    }
}

#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), target_os = "linux")))]
mod steady {
    use snowflake_core::counter::Rate;

    pub const NAME: &str = "none";

    pub fn init() {}

    pub fn usable() -> bool {
        false
    }

    pub fn read() -> u64 {
        0
    }

    pub fn rate() -> Rate {
        Rate::NONE
    }
}
