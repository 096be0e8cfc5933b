//! Layouts: published IDs, and what holds for every possible layout.

use proptest::prelude::*;
use snowflake_core::{EncodeError, Field, FieldError, Layout, LayoutError, Micros, Parts, Position, Tick, UnixMicros};

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn at(text: &str) -> UnixMicros {
    UnixMicros::parse(text).unwrap()
}

#[test]
fn published_twitter_ids_decode() {
    let twitter = layout("twitter");
    for (id, timestamp, datacenter, worker, sequence) in [
        (1541815603606036480, "2022-06-28T16:07:40.105Z", 11, 26, 0), // Wikipedia, "Snowflake ID"
        (210462857140252672, "2012-06-06T20:07:10.010Z", 1, 3, 0),    // Twitter's documentation
        (i64::MAX, "2080-07-10T17:30:30.208Z", 31, 31, 4095),
        (20, "2010-11-04T01:42:54.657Z", 0, 0, 20), // from before the scheme: tick 0
    ] {
        let parts = Parts { timestamp: at(timestamp), datacenter: Some(datacenter), worker: Some(worker), sequence };
        assert_eq!(twitter.decode(id), Ok(parts), "{id}");
        assert_eq!(twitter.encode(&parts), Ok(id), "{id}");
    }
    assert_eq!(twitter.end(), at("2080-07-10T17:30:30.209Z"));
}

#[test]
fn default_layout_ends_in_2093() {
    let default = layout("default");
    assert_eq!(default.end(), at("2093-09-06T15:47:35.552Z"));
    assert_eq!((default.max(Field::Worker), default.max(Field::Sequence)), (1023, 4095));
    assert_eq!(default.max_id(), i64::MAX);
}

#[test]
fn sequence_may_stand_above_the_worker() {
    let sonyflake = layout("sonyflake");
    let parts = Parts { timestamp: at("2023-09-01T00:00:00Z"), datacenter: None, worker: Some(1), sequence: 0 };
    assert_eq!(sonyflake.decode(476467565690880001), Ok(parts));
    assert_eq!(sonyflake.encode(&parts), Ok(476467565690880001));
}

#[test]
fn a_worker_has_a_number_in_the_whole_layout() {
    let twitter = layout("twitter"); // 32 datacenters with 32 workers each
    let number = twitter.number_worker(Some(11), Some(26)).unwrap();
    assert_eq!(number, 11 * 32 + 26);
    assert_eq!(twitter.place_number(number), twitter.place_worker(Some(11), Some(26)).ok());
    assert_eq!(twitter.place_number(1023), twitter.place_worker(Some(31), Some(31)).ok());
    assert_eq!(twitter.place_number(1024), None);
    assert!(twitter.number_worker(Some(32), Some(0)).is_err());
    assert!(twitter.has_workers());
    assert!(!layout("timestamp=41 sequence=22").has_workers());
}

#[test]
fn numbers_that_are_no_ids_are_refused() {
    let narrow = layout("timestamp=41 worker=3 sequence=9"); // 53 bits
    assert!(narrow.decode((1 << 53) - 1).is_ok());
    for id in [-1, i64::MIN, 1 << 53, i64::MAX] {
        assert_eq!(narrow.decode(id).unwrap_err().0, id);
        assert!(narrow.timestamp(id).is_err());
        assert!(narrow.field(id, Field::Worker).is_err());
    }
}

#[test]
fn fields_must_be_given_as_the_layout_has_them() {
    let (default, twitter) = (layout("default"), layout("twitter"));
    assert_eq!(default.place_worker(None, None), Err(FieldError::Missing(Field::Worker)));
    assert_eq!(default.place_worker(Some(0), Some(1)), Err(FieldError::NoSuchField(Field::Datacenter)));
    assert_eq!(twitter.place_worker(None, Some(1)), Err(FieldError::Missing(Field::Datacenter)));
    let too_high = FieldError::TooHigh { field: Field::Worker, value: 1024, max: 1023 };
    assert_eq!(default.place_worker(None, Some(1024)), Err(too_high));
    assert_eq!(too_high.to_string(), "worker 1024 is above the layout's highest, 1023");

    let parts = Parts { timestamp: default.epoch(), datacenter: None, worker: Some(0), sequence: 4096 };
    let too_high = FieldError::TooHigh { field: Field::Sequence, value: 4096, max: 4095 };
    assert_eq!(default.encode(&parts), Err(EncodeError::Field(too_high)));
    for timestamp in [UnixMicros(default.epoch().0 - 1), default.end(), UnixMicros(i64::MAX), UnixMicros(i64::MIN)] {
        assert!(matches!(default.encode(&Parts { timestamp, sequence: 0, ..parts }), Err(EncodeError::Time(_))));
    }
}

#[test]
fn bounds_of_instants_are_exact() {
    let default = layout("default");
    let epoch = default.epoch().0;
    let lowest = |us| default.lowest_id_from(UnixMicros(epoch + us)).unwrap();
    let highest = |us| default.highest_id_until(UnixMicros(epoch + us));
    let before = |us| default.highest_id_before(UnixMicros(epoch + us));
    const TICK: i64 = 1 << 22;
    assert_eq!((lowest(0), lowest(1), lowest(1000), lowest(1001)), (0, TICK, TICK, 2 * TICK));
    assert_eq!((highest(0), highest(999), highest(1000)), (TICK - 1, TICK - 1, 2 * TICK - 1));
    assert_eq!((before(0), before(1), before(1000), before(1001)), (-1, TICK - 1, TICK - 1, 2 * TICK - 1));

    let end = default.end().0 - epoch;
    assert_eq!(lowest(end - 1000), i64::MAX - TICK + 1);
    assert_eq!(default.lowest_id_from(UnixMicros(epoch + end - 999)), None, "the next tick is past the end");
    assert_eq!((highest(end - 1001), before(end - 1000)), (i64::MAX - TICK, i64::MAX - TICK));
    assert_eq!((highest(end - 1000), before(end - 999)), (i64::MAX, i64::MAX));
}

#[test]
fn instants_outside_the_time_of_a_layout_have_bounds() {
    for layout in [
        layout("default"),
        layout("timestamp=41 worker=3 sequence=9"),
        layout("timestamp=41 worker=10 sequence=12 epoch=1970-01-01T00:00:00Z"),
    ] {
        for instant in [UnixMicros(layout.epoch().0 - 1), UnixMicros(-1), UnixMicros(i64::MIN)] {
            assert_eq!(layout.lowest_id_from(instant), Some(0));
            assert_eq!((layout.highest_id_until(instant), layout.highest_id_before(instant)), (-1, -1));
        }
        for instant in [layout.end(), UnixMicros(layout.end().0 + 1), UnixMicros(i64::MAX)] {
            assert_eq!(layout.lowest_id_from(instant), None);
            assert_eq!(layout.highest_id_until(instant), layout.max_id());
            assert_eq!(layout.highest_id_before(instant), layout.max_id());
        }
    }
}

/// Any layout: fields in any order below the timestamp, any tick, any epoch. Combinations that make no layout are left
/// out.
fn any_layout() -> impl Strategy<Value = Layout> {
    let below = prop::sample::subsequence(vec![Field::Datacenter, Field::Worker], 0..=2)
        .prop_map(|mut fields| {
            fields.push(Field::Sequence);
            fields
        })
        .prop_shuffle();
    let tick = prop_oneof![Just(1), Just(10), Just(1000), Just(10_000), Just(1_000_000), 1..=Layout::MAX_TICK_LENGTH.0];
    (below, 1_u32..=62, prop::array::uniform3(1_u32..=31), tick, 0..=UnixMicros::MAX_WRITTEN.0).prop_filter_map(
        "no such layout",
        |(below, timestamp, widths, tick, epoch)| {
            let mut fields = vec![(Field::Timestamp, timestamp)];
            fields.extend(below.into_iter().zip(widths));
            Layout::new(&fields, Micros(tick), UnixMicros(epoch)).ok()
        },
    )
}

/// A number from 0 to `max`, often one of these two.
fn up_to(max: u64) -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(max), 0..=max]
}

fn any_id() -> impl Strategy<Value = (Layout, u64, u64, Option<u64>, Option<u64>)> {
    any_layout().prop_flat_map(|layout| {
        let part = |field| {
            let present = layout.fields().iter().any(|&(other, _)| other == field);
            up_to(layout.max(field)).prop_map(move |value| present.then_some(value))
        };
        (
            Just(layout),
            up_to(layout.max(Field::Timestamp)),
            up_to(layout.max(Field::Sequence)),
            part(Field::Datacenter),
            part(Field::Worker),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn encode_and_decode_are_inverse((layout, tick, sequence, datacenter, worker) in any_id(), within in 0.0..1.0) {
        let start = layout.start_of(Tick(tick as i64));
        let small = |value: u64| u32::try_from(value).unwrap();
        let parts = Parts {
            timestamp: start,
            datacenter: datacenter.map(small),
            worker: worker.map(small),
            sequence: small(sequence),
        };
        let id = layout.encode(&parts).unwrap();
        prop_assert!((0..=layout.max_id()).contains(&id));
        prop_assert_eq!(layout.decode(id), Ok(parts));
        prop_assert_eq!(layout.timestamp(id), Ok(parts.timestamp));
        prop_assert_eq!(layout.field(id, Field::Worker), Ok(parts.worker));
        prop_assert_eq!(layout.field(id, Field::Datacenter), Ok(parts.datacenter));
        prop_assert_eq!(layout.field(id, Field::Sequence), Ok(Some(parts.sequence)));

        let later = (layout.tick_length().0 as f64 * within) as i64;
        let within_tick = Parts { timestamp: UnixMicros(start.0 + later), ..parts };
        prop_assert_eq!(layout.encode(&within_tick), Ok(id));

        prop_assert!(layout.lowest_id_from(start).unwrap() <= id);
        prop_assert!(layout.highest_id_until(start) >= id);
        prop_assert!(layout.highest_id_before(start) < id);
    }

    #[test]
    fn ids_rise_with_positions((layout, tick, sequence, datacenter, worker) in any_id(), ahead in 1_u64..10_000) {
        let worker = layout.place_worker(datacenter.map(|v| v as u32), worker.map(|v| v as u32)).unwrap();
        let position = layout.position(Tick(tick as i64), sequence);
        prop_assert_eq!(layout.tick_of(position), Tick(tick as i64));
        let later = Position(position.0 + ahead);
        if layout.tick_of(later) <= layout.last_tick() {
            prop_assert!(layout.compose(position, worker) < layout.compose(later, worker));
        }
    }

    #[test]
    fn ranges_of_ids_are_ranges_of_time(
        (layout, tick, sequence, datacenter, worker) in any_id(),
        near in -3_i64..=3,
        any in any::<i64>(),
    ) {
        let worker = layout.place_worker(datacenter.map(|v| v as u32), worker.map(|v| v as u32)).unwrap();
        let id = layout.compose(layout.position(Tick(tick as i64), sequence), worker);
        let timestamp = layout.timestamp(id).unwrap();
        for instant in [
            timestamp.0 + near,
            timestamp.0 + near * layout.tick_length().0,
            layout.epoch().0 + near,
            layout.end().0 + near,
            layout.end().0 + near * layout.tick_length().0,
            i64::MIN.saturating_add(near),
            i64::MAX.saturating_add(near),
            any,
        ] {
            let instant = UnixMicros(instant);
            let (until, before) = (layout.highest_id_until(instant), layout.highest_id_before(instant));
            prop_assert_eq!(id <= until, timestamp <= instant, "{}", instant.0);
            prop_assert_eq!(id <= before, timestamp < instant, "{}", instant.0);
            let at_or_after = layout.lowest_id_from(instant).is_some_and(|lowest| id >= lowest);
            prop_assert_eq!(at_or_after, timestamp >= instant, "{}", instant.0);
            prop_assert!((-1..=layout.max_id()).contains(&until) && (-1..=layout.max_id()).contains(&before));
        }
    }

    #[test]
    fn notation_reads_back(layout in any_layout()) {
        prop_assert_eq!(layout.to_string().parse::<Layout>().unwrap(), layout);
    }

    #[test]
    fn any_text_is_a_layout_or_an_error(text in "\\PC*|([a-z]{1,9}=[0-9a-z:TZ.-]{0,20} ?){1,5}") {
        if let Ok(layout) = text.parse::<Layout>() {
            prop_assert_eq!(layout.to_string().parse::<Layout>().unwrap(), layout);
        }
    }

    #[test]
    fn another_epoch_moves_only_the_times(layout in any_layout(), epoch in 0..=UnixMicros::MAX_WRITTEN.0) {
        match layout.with_epoch(UnixMicros(epoch)) {
            Ok(moved) => {
                prop_assert_eq!(moved.fields(), layout.fields());
                prop_assert_eq!(moved.end().0 - moved.epoch().0, layout.end().0 - layout.epoch().0);
            }
            Err(error) => prop_assert_eq!(error, LayoutError::EndsTooLate),
        }
    }
}
