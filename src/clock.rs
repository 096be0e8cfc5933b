//! The clocks: what time it is, and how much time has passed.

use snowflake_core::UnixMicros;

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

/// Nanoseconds since the machine was started; as [`monotonic_nanos`], but goes on while the machine is suspended.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub fn boot_nanos() -> i64 {
    let time = read(libc::CLOCK_BOOTTIME);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// [`monotonic_nanos`] in microseconds.
pub fn monotonic_micros() -> i64 {
    monotonic_nanos() / 1000
}

/// [`now`] less [`monotonic_micros`]: changes only when the clock is stepped, as both are slewed alike. `None` where the
/// process was interrupted between reading them.
pub fn offset() -> Option<i64> {
    let before = monotonic_micros();
    let now = now().0;
    let after = monotonic_micros();
    (after - before < 500).then_some(now - before)
}

#[inline]
fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of our own. These clocks exist on every system that asks for them here, so the
    // call does not fail.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time
}
