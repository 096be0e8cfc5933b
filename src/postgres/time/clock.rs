//! The clocks: what time it is, and how much time has passed.

use snowflake_core::{MonotonicMicros, UnixMicros};

/// The system's time of day. May be stepped either way at any moment.
#[inline]
pub fn now() -> UnixMicros {
    let time = read(libc::CLOCK_REALTIME);
    UnixMicros(time.tv_sec * 1_000_000 + time.tv_nsec / 1000)
}

/// Nanoseconds since some start that all processes of the machine share. Never goes back.
pub fn monotonic_nanos() -> i64 {
    let time = read(libc::CLOCK_MONOTONIC);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// [`monotonic_nanos`] in microseconds.
pub fn monotonic_micros() -> MonotonicMicros {
    MonotonicMicros(monotonic_nanos() / 1000)
}

/// Nanoseconds since the machine was started; as [`monotonic_nanos`], but where the system has such a clock, goes on
/// while the machine is suspended.
pub fn boot_nanos() -> i64 {
    #[cfg(target_os = "linux")]
    let time = read(libc::CLOCK_BOOTTIME);
    #[cfg(not(target_os = "linux"))]
    let time = read(libc::CLOCK_MONOTONIC);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// [`boot_nanos`] in microseconds.
#[inline]
pub fn boot_micros() -> MonotonicMicros {
    MonotonicMicros(boot_nanos() / 1000)
}

#[inline]
fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of our own. These clocks exist on every system that asks for them here, so
    // the call does not fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}
