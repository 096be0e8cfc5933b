//! Numbers by chance, the same ones for the same seed.

use snowflake_core::Micros;

/// SplitMix64.
pub struct Chance(pub u64);

impl Chance {
    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    /// A number below a positive one.
    pub fn below(&mut self, end: usize) -> usize {
        (self.draw() % end as u64) as usize
    }

    /// A length from 0 on and below another, positive one.
    pub fn within(&mut self, length: Micros) -> Micros {
        Micros((self.draw() % length.0.unsigned_abs()) as i64)
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.draw().is_multiple_of(times)
    }
}
