//! The processor's time-stamp counter (TSC), where the kernel itself keeps time by it. To read it alone costs less than half
//! of what reading the clock does, which waits for what comes before, reads it, and calculates.
//!
//! It is used on x86-64 under Linux while the kernel's clock source is `tsc`: then the kernel has found that it counts at one
//! rate, without a pause, and alike on all processors (`arch/x86/kernel/tsc.c`). Elsewhere its rate counts as unknown, and
//! nothing is told by it.

use crate::clock;
use once_cell::sync::OnceCell;

/// The counter and the monotonic clock at one moment.
#[derive(Clone, Copy)]
struct Reading {
    count: u64,
    nanos: i64,
}

/// When the postmaster started, which its children inherit; not set where the counter is not used.
static START: OnceCell<Reading> = OnceCell::new();

/// The rate is not told from less time than this, in nanoseconds.
const SHORTEST: i64 = 10_000_000;

/// Called once, in the postmaster.
pub fn init() {
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    if cfg!(all(target_arch = "x86_64", target_os = "linux"))
        && std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
    {
        START.get_or_init(Reading::take);
    }
}

/// Whether the counter is used on this machine.
pub fn usable() -> bool {
    START.get().is_some()
}

/// The counter. Its rate is [`per_micro`].
#[inline]
pub fn read() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction, and Linux leaves it open to all processes.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// How many counts surely pass in less than a microsecond, so that a time told from it is never too long. 0 where that is
/// not known, or not yet.
pub fn per_micro() -> u64 {
    let Some(start) = START.get() else { return 0 };
    let now = Reading::take();
    let (nanos, counts) = (now.nanos - start.nanos, now.count.saturating_sub(start.count));
    if nanos < SHORTEST {
        return 0;
    }
    // Less 1/128: the monotonic clock may be slewed by up to 1/2000, and the two were read a moment apart.
    let per_micro = u128::from(counts) * 1000 * 127 / (nanos.unsigned_abs() as u128 * 128);
    u64::try_from(per_micro).unwrap_or(0)
}

impl Reading {
    /// Of a few tries the one that was over soonest: the others were interrupted.
    fn take() -> Self {
        let tries: [_; 5] = std::array::from_fn(|_| {
            let count = read();
            let nanos = clock::monotonic_nanos();
            (read().wrapping_sub(count), Self { count, nanos })
        });
        tries.into_iter().min_by_key(|&(took, _)| took).map_or(tries[0].1, |(_, reading)| reading)
    }
}
