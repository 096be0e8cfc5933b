//! Any text as a layout: it is refused, or it is a layout whose notation reads back and whose arithmetic does not
//! overflow.

#![no_main]

use libfuzzer_sys::fuzz_target;
use snowflake_core::notation::LONGEST;
use snowflake_core::{Field, Layout, UnixMicros};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let layout: Layout = match text.parse() {
        Ok(layout) => layout,
        Err(error) => {
            assert!((1..=text.chars().count() + 1).contains(&error.at), "{error:?}");
            assert!((1..=2 * LONGEST).contains(&error.to_string().len()), "{error}");
            return;
        }
    };
    assert!(text.len() <= LONGEST);
    let written = layout.to_string();
    assert!(written.len() <= LONGEST / 2, "{written}");
    assert_eq!(written.parse(), Ok(layout), "{written}");

    let fields = layout.fields();
    assert_eq!(fields[0].0, Field::Timestamp);
    let width: u32 = fields.iter().map(|&(_, width)| width).sum();
    assert_eq!(layout.max_id(), ((1_u64 << width) - 1) as i64);
    assert_eq!(Layout::new(&fields, layout.tick_length(), layout.epoch()), Ok(layout));
    assert_eq!(layout.with_epoch(layout.epoch()), Ok(layout));
    assert!(layout.end() > layout.epoch());
    assert!(layout.end().0 <= UnixMicros::MAX_WRITTEN.0 + 1);
    assert!(layout.ids_per_second() <= (layout.max(Field::Sequence) + 1) * 1_000_000);
    let _ = (layout.fits_double(), layout.check_makes_ids());

    let last_start = layout.start_of(layout.last_tick());
    for id in [0, 1, layout.max_id() / 2, layout.max_id()] {
        let parts = layout.decode(id).unwrap();
        assert_eq!(layout.encode(&parts), Ok(id));
        assert_eq!(layout.timestamp(id), Ok(parts.timestamp));
        let lowest = layout.lowest_id_from(parts.timestamp).unwrap();
        let highest = layout.highest_id_until(parts.timestamp);
        assert!((lowest..=highest).contains(&id));
        assert_eq!(layout.highest_id_before(parts.timestamp), lowest - 1);
    }
    assert_eq!(layout.decode(0).unwrap().timestamp, layout.epoch());
    assert_eq!(layout.decode(layout.max_id()).unwrap().timestamp, last_start);
    assert!(layout.decode(-1).is_err());
    assert_eq!(layout.decode(layout.max_id().wrapping_add(1)).ok(), None);

    let reach = |at| (layout.lowest_id_from(at), layout.highest_id_until(at), layout.highest_id_before(at));
    assert_eq!(layout.lowest_id_from(layout.epoch()), Some(0));
    assert_eq!(layout.lowest_id_from(UnixMicros(last_start.0 + 1)), None);
    for before in [i64::MIN, -1] {
        assert_eq!(reach(UnixMicros(before)), (Some(0), -1, -1));
    }
    for after in [layout.end(), UnixMicros(i64::MAX)] {
        assert_eq!(reach(after), (None, layout.max_id(), layout.max_id()));
    }
    for far in [i64::MIN, -1, i64::MAX] {
        let far = UnixMicros(far);
        let _ = (layout.tick_at(far), layout.first_tick_from(far));
    }
});
