//! Random layouts, IDs and times, for tests that compare two programs.

use fastrand::Rng;
use std::fmt::Write as _;

/// 0001-01-01 and 9999-12-31T23:59:59.999999 in microseconds since 1970: the times that Python has.
const TIMES: [i64; 2] = [-62_135_596_800_000_000, 253_402_300_799_999_999];

/// A layout in its notation. Ticks from a microsecond to a minute; as many bits as fit below the year 10000, and often all 63.
pub fn layout(draw: &mut Rng) -> String {
    let ticks = [("1us", 1), ("10us", 10), ("125us", 125), ("1ms", 1000), ("7ms", 7000), ("10ms", 10_000)];
    let longer = [("1s", 1_000_000), ("60s", 60_000_000)];
    let epochs = [
        ("1970-01-01T00:00:00Z", 0),
        ("2010-11-04T01:42:54.657Z", 1_288_834_974_657_000),
        ("2023-02-28T23:59:59.999999Z", 1_677_628_799_999_999),
        ("2024-01-01T00:00:00Z", 1_704_067_200_000_000),
    ];
    let lengths = if draw.u8(0..4) == 0 { &longer[..] } else { &ticks[..] };
    let (tick, micros) = *draw.choice(lengths).unwrap();
    let (epoch, since_1970) = *draw.choice(&epochs).unwrap();
    // The most bits with which the time ends before the year 10000.
    let most = ((TIMES[1] - since_1970) / micros).ilog2();
    let width = draw.u32(most.saturating_sub(12).max(1)..=most.min(60));
    let mut text = format!("timestamp={width}");
    let mut others = ["datacenter", "worker", "sequence"];
    draw.shuffle(&mut others);
    let others = &others[..draw.usize(0..=3)];
    let mut left = 63 - width;
    for (n, name) in others.iter().enumerate() {
        let after = (others.len() - n - 1) as u32;
        let fills = after == 0 && draw.bool();
        let width = if fills { left.min(31) } else { draw.u32(1..=(left - after).min(16)) };
        write!(text, " {name}={width}").unwrap();
        left -= width;
    }
    text + &format!(" tick={tick} epoch={epoch}")
}

/// A number that may be an ID, near an end or anywhere.
pub fn id(draw: &mut Rng) -> i64 {
    match draw.u8(0..8) {
        0 => draw.i64(0..5),
        1 => i64::MAX - draw.i64(0..5),
        _ => draw.i64(0..i64::MAX) >> draw.u8(0..40),
    }
}

/// A time in microseconds since 1970, from the year 1 to 9999.
pub fn time(draw: &mut Rng) -> i64 {
    match draw.u8(0..8) {
        0 => *draw.choice(&[TIMES[0], TIMES[1], 0, -1, 1_704_067_200_000_000, 1_704_067_199_999_999]).unwrap(),
        1 => draw.i64(TIMES[0]..=TIMES[1]),
        2 => draw.i64(0..10_000_000_000_000) * 1000,
        _ => draw.i64(0..5_000_000_000_000_000),
    }
}
