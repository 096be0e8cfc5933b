//! A layout as two numbers: the form in which a database has it on record.
//!
//! The first number has the length of a tick, in microseconds, in bits 32 to 57, and below it a byte for each field,
//! from the highest field (bits 24 to 31) to the lowest; the rest is 0 where there are fewer than four. A byte is
//! `width + 64 * field`, with timestamp 0, datacenter 1, worker 2, sequence 3. The second number is the epoch in
//! microseconds since 1970.

use crate::layout::{Field, Layout};
use crate::time::{Micros, UnixMicros};

const FIELD_BITS: u32 = 8;
const WIDTH_BITS: u32 = 6;
const TICK_SHIFT: u32 = 32;

impl Layout {
    /// The layout as two numbers, the form in which it is stored where only numbers can be. The first is positive, the
    /// second not negative.
    pub fn to_numbers(&self) -> (i64, i64) {
        let mut bytes = [0_u8; 4];
        for (byte, (field, width)) in bytes.iter_mut().zip(self.fields()) {
            *byte = (field as u8) << WIDTH_BITS | width as u8;
        }
        (self.tick_length().0 << TICK_SHIFT | i64::from(u32::from_be_bytes(bytes)), self.epoch().0)
    }

    /// The layout of which [`Self::to_numbers`] made these two; `None` where there is none.
    pub fn from_numbers(form: i64, epoch: i64) -> Option<Self> {
        let mut fields = Vec::with_capacity(Field::ALL.len());
        for byte in (0..4).rev().map(|place| form >> (place * FIELD_BITS) & 0xff).filter(|&byte| byte != 0) {
            fields.push((Field::ALL[(byte >> WIDTH_BITS) as usize], (byte & ((1 << WIDTH_BITS) - 1)) as u32));
        }
        let layout = Self::new(&fields, Micros(form >> TICK_SHIFT), UnixMicros(epoch)).ok()?;
        (layout.to_numbers() == (form, epoch)).then_some(layout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notation::BUILT_IN;

    #[test]
    fn layouts_come_back_and_nothing_else_does() {
        for built_in in BUILT_IN {
            let layout: Layout = built_in.notation.parse().unwrap();
            let (form, epoch) = layout.to_numbers();
            assert!(form > 0 && epoch >= 0, "{}", built_in.name);
            assert_eq!(Layout::from_numbers(form, epoch), Some(layout), "{}", built_in.name);
            assert_ne!(Layout::from_numbers(form, epoch + 1), Some(layout));
            assert_eq!(Layout::from_numbers(form | 1 << 62, epoch), None, "{}", built_in.name);
        }
        for (form, epoch) in [(0, 0), (1, 0), (-1, 0), (i64::MAX, 0), (i64::MIN, i64::MIN)] {
            assert_eq!(Layout::from_numbers(form, epoch), None, "{form} {epoch}");
        }
    }

    /// Numbers that are on record in databases stay what they are.
    #[test]
    fn numbers_of_released_versions() {
        let numbers = |text: &str| text.parse::<Layout>().unwrap().to_numbers();
        assert_eq!(numbers("default"), (1000 << 32 | 0x29_8a_cc_00, 1_704_067_200_000_000));
        assert_eq!(numbers("twitter"), (1000 << 32 | 0x29_45_85_cc, 1_288_834_974_657_000));
        assert_eq!(numbers("sonyflake"), (10_000 << 32 | 0x27_c8_90_00, 1_409_529_600_000_000));
    }
}
