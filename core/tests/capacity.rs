//! What a layout has room for.

use proptest::prelude::*;
use snowflake_core::capacity::{
    Backfill, Doubles, Lengths, Lifetime, Misfit, Need, Rate, Room, Sorting, Verdict, YEAR, backfill, burst, doubles,
    lifetime, likely_layouts, misfits, rate, room, sorting, sustained,
};
use snowflake_core::notation::BUILT_IN;
use snowflake_core::{Field, Layout, Line, Micros, Parts, Policy, Reach, Tick, Ticks, UnixMicros};
use std::collections::BTreeSet;

fn layout(text: &str) -> Layout {
    text.parse().unwrap()
}

fn at(text: &str) -> UnixMicros {
    UnixMicros::parse(text).unwrap()
}

const NOW: UnixMicros = UnixMicros(1_790_000_000_000_000); // in 2026

#[test]
fn lifetime_is_compared_with_the_years_that_are_needed() {
    let default = layout("default"); // ends in 2093
    for (years, expected) in [
        (None, Lifetime::Lasts),
        (Some(0), Lifetime::Lasts),
        (Some(66), Lifetime::Lasts),
        (Some(67), Lifetime::TooShort),
    ] {
        assert_eq!(lifetime(&default, NOW, years), expected, "{years:?}");
    }
    assert_eq!(lifetime(&default, NOW, Some(u32::MAX)), Lifetime::TooShort);
    assert_eq!(lifetime(&layout("baidu"), NOW, None), Lifetime::Over);
    assert_eq!(lifetime(&default, at("2023-12-31T23:59:59.999Z"), None), Lifetime::NotBegun);
    assert_eq!(lifetime(&default, default.epoch(), None), Lifetime::Lasts);
    assert_eq!(lifetime(&default, default.end() - Micros(1), Some(0)), Lifetime::Lasts);
    assert_eq!(lifetime(&default, default.end(), Some(0)), Lifetime::Over);
    assert_eq!(lifetime(&default, default.end() - YEAR, Some(1)), Lifetime::Lasts);
    assert_eq!(lifetime(&default, default.end() - YEAR + Micros(1), Some(1)), Lifetime::TooShort);
}

#[test]
fn verdicts_have_names() {
    assert_eq!([Verdict::Ok, Verdict::Warning, Verdict::Problem].map(Verdict::name), ["ok", "warning", "problem"]);
}

#[test]
fn servers_are_compared_with_workers() {
    let need = |servers, datacenters, leases| Need { servers: Some(servers), datacenters, leases };
    let three = layout("timestamp=41 worker=3 sequence=9");
    for (servers, without, with) in [
        (4, Room::Enough, Room::Enough),
        (5, Room::Enough, Room::FewSpare),
        (7, Room::Enough, Room::FewSpare),
        (8, Room::Enough, Room::NoneSpare),
        (9, Room::TooMany, Room::TooMany),
        (u32::MAX, Room::TooMany, Room::TooMany),
    ] {
        // A layout without datacenters does not care how many there are.
        for datacenters in [None, Some(1), Some(100)] {
            assert_eq!(room(&three, &need(servers, datacenters, false)), without, "{servers}");
            assert_eq!(room(&three, &need(servers, datacenters, true)), with, "{servers}");
        }
    }
    let twitter = layout("twitter"); // 32 datacenters with 32 workers each
    for (servers, datacenters, expected) in [
        (1024, None, Room::Enough),
        (1025, None, Room::TooMany),
        (33, Some(1), Room::TooMany),
        (64, Some(2), Room::Enough),
        (65, Some(2), Room::TooMany),
        (33, Some(33), Room::TooManyDatacenters),
        (1, Some(0), Room::Enough),
    ] {
        assert_eq!(room(&twitter, &need(servers, datacenters, false)), expected, "{servers} in {datacenters:?}");
    }
    assert_eq!(room(&twitter, &need(17, Some(1), true)), Room::FewSpare);
    assert_eq!(room(&twitter, &Need::default()), Room::Enough);
}

#[test]
fn rates_are_compared_with_what_a_server_can_make() {
    let default = layout("default");
    for (needed, expected) in [
        (None, Rate::Enough),
        (Some(2_048_000.0), Rate::Enough),
        (Some(2_048_001.0), Rate::Tight),
        (Some(4_096_000.0), Rate::Tight),
        (Some(4_096_001.0), Rate::TooFast),
        (Some(f64::INFINITY), Rate::TooFast),
    ] {
        assert_eq!(rate(&default, needed), expected, "{needed:?}");
    }
    assert_eq!(burst(&default, Micros::from_millis(100)), 409_600);
    let minutes = layout("timestamp=25 worker=10 sequence=1 tick=60s");
    assert!(sustained(&minutes) < 0.04 && rate(&minutes, Some(0.05)) == Rate::TooFast);
    assert_eq!(burst(&minutes, Micros::from_millis(100)), 0);
}

#[test]
fn javascript_is_asked_about_the_time_that_is_required() {
    assert_eq!(doubles(&layout("cosid-js"), NOW, Some(1000)), Doubles::Exact);
    // 2^31 ms after the epoch.
    let end = at("2024-01-25T20:31:23.648Z");
    assert_eq!(layout("default").exact_until(), Some(end));
    assert_eq!(doubles(&layout("default"), NOW, None), Doubles::Inexact(end));
    let young = layout("default").with_epoch(NOW).unwrap();
    let end = young.exact_until().unwrap();
    assert_eq!(doubles(&young, NOW, None), Doubles::ExactUntil(end));
    assert_eq!(doubles(&young, NOW, Some(1)), Doubles::ExactUntil(end));
    assert_eq!(doubles(&young, NOW, Some(0)), Doubles::ExactLongEnough(end));
    // One bit more than 53, so the first half of the time is exact.
    let half = layout("timestamp=41 worker=3 sequence=10");
    assert!(matches!(doubles(&half, NOW, Some(30)), Doubles::ExactLongEnough(_)));
    for (finding, matters, verdict) in [
        (Doubles::Inexact(NOW), None, Verdict::Warning),
        (Doubles::Inexact(NOW), Some(true), Verdict::Problem),
        (Doubles::ExactUntil(NOW), Some(true), Verdict::Problem),
        (Doubles::Inexact(NOW), Some(false), Verdict::Ok),
        (Doubles::ExactLongEnough(NOW), Some(true), Verdict::Ok),
        (Doubles::Exact, Some(true), Verdict::Ok),
    ] {
        assert_eq!(finding.verdict(matters), verdict);
    }
}

#[test]
fn rows_from_before_the_epoch_need_an_earlier_one() {
    let default = layout("default");
    assert_eq!(backfill(&default, default.epoch()), Backfill::Possible);
    assert_eq!(backfill(&default, default.end()), Backfill::AfterEnd);
    let oldest = at("2021-03-04T05:06:07Z");
    let Backfill::BeforeEpoch(Some(earlier)) = backfill(&default, oldest) else { panic!() };
    assert_eq!(earlier.epoch(), at("2021-03-04T00:00:00Z"));
    assert_eq!(backfill(&earlier, oldest), Backfill::Possible);
    assert_eq!(backfill(&default, UnixMicros(-1)), Backfill::BeforeEpoch(None));
    assert_eq!(backfill(&default, UnixMicros(i64::MIN)), Backfill::BeforeEpoch(None));
}

#[test]
fn numbers_that_exist_must_sort_below() {
    let default = layout("default");
    let next = default.lowest_id_from(NOW).unwrap();
    assert_eq!(sorting(&default, NOW, 1000), Sorting::Below(next));
    assert_eq!(sorting(&default, NOW, next - 1), Sorting::Below(next));
    assert!(matches!(sorting(&default, NOW, next), Sorting::NotBelow(..)));
    assert_eq!(sorting(&layout("baidu"), NOW, 1000), Sorting::NoNext);
    assert_eq!(sorting(&default, UnixMicros(0), -1), Sorting::NoNext);

    // An ID of pgEdge's from an hour ago.
    let pgedge = layout("pgedge").lowest_id_from(NOW - Micros::from_secs(3600)).unwrap();
    let Sorting::NotBelow(_, likely) = sorting(&default, NOW, pgedge) else { panic!() };
    assert_eq!(likely.first(), Some(&"pgedge"), "{likely:?}");
    assert!(!likely.contains(&"default"));

    // Another server's clock may be a minute ahead.
    for (time, is_likely) in [
        (NOW, true),
        (NOW + Micros::from_secs(59), true),
        (NOW + Micros::from_secs(61), false),
        (NOW - YEAR, true),
        (NOW - YEAR - Micros::from_secs(1), false),
    ] {
        let id = layout("pgedge").lowest_id_from(time).unwrap();
        assert_eq!(likely_layouts(id, NOW).contains(&"pgedge"), is_likely, "{time:?}");
    }
}

#[test]
fn lengths_that_do_not_go_together_are_found() {
    let fine = Lengths {
        max_burst: Micros::from_millis(100),
        max_lead: Micros::from_secs(600),
        reserve_ahead: Micros::from_secs(1),
        window: Some(Micros::from_secs(60)),
    };
    let default = layout("default");
    assert_eq!(misfits(&default, &fine), []);
    assert_eq!(misfits(&default, &Lengths { max_burst: Micros(0), ..fine }), []); // as somebody wants it
    assert_eq!(misfits(&layout("timestamp=31 worker=16 sequence=16 tick=1s"), &fine), [Misfit::NoBurst]);
    let short = Lengths { max_lead: Micros(0), ..fine };
    assert_eq!(misfits(&default, &short), [Misfit::ReservesBeyondLead, Misfit::LeasesBeyondLead]);
    assert_eq!(misfits(&default, &Lengths { window: None, ..short }), [Misfit::ReservesBeyondLead]);
    assert_eq!(misfits(&default, &Lengths { reserve_ahead: fine.max_lead, ..fine }), []);
}

/// Layouts in which IDs can be made, with an epoch in the past.
fn layouts() -> impl Strategy<Value = Layout> {
    (30_u32..=43, 0_u32..=4, 1_u32..=6, 1_u32..=8, prop_oneof![Just(1_000_i64), Just(10_000)], 0_i64..50).prop_map(
        |(timestamp, datacenter, worker, sequence, tick, years)| {
            let mut fields = vec![(Field::Timestamp, timestamp)];
            fields.extend((datacenter > 0).then_some((Field::Datacenter, datacenter)));
            fields.extend([(Field::Worker, worker), (Field::Sequence, sequence)]);
            Layout::new(&fields, Micros(tick), UnixMicros(YEAR.0 * years)).unwrap()
        },
    )
}

proptest! {
    /// Where there is room, each server has a worker of its own; where there is none, two have the same.
    #[test]
    fn room_is_for_so_many_workers(layout in layouts(), servers in 1_u32..400, datacenters in 1_u32..20) {
        let has_datacenters = layout.max(Field::Datacenter) > 0;
        let mut seen = BTreeSet::new();
        let mut fits = true;
        for server in 0..servers {
            // Each in its turn in the next datacenter.
            let (datacenter, worker) =
                if has_datacenters { (Some(server % datacenters), server / datacenters) } else { (None, server) };
            match layout.place_worker(datacenter, Some(worker)) {
                Ok(bits) => prop_assert!(seen.insert(bits.0)),
                Err(_) => fits = false,
            }
        }
        let need = Need { servers: Some(servers), datacenters: Some(datacenters.min(servers)), leases: false };
        prop_assert_eq!(room(&layout, &need) == Room::Enough, fits);
        let leased = room(&layout, &Need { leases: true, ..need });
        prop_assert_eq!(leased.verdict() == Verdict::Problem, !fits);
    }

    /// Before the instant, all IDs are below 2^53; from then on there is one that is not.
    #[test]
    fn ids_are_exact_until_then(layout in layouts()) {
        match layout.exact_until() {
            None => prop_assert!(layout.max_id() < 1 << 53),
            Some(end) => {
                prop_assert!(layout.highest_id_before(end) < 1 << 53);
                prop_assert!(layout.highest_id_until(end) >= 1 << 53);
            }
        }
    }

    /// A line gives so many IDs at once as a tick has, and as a peak may take in advance; not one more.
    #[test]
    fn a_peak_takes_a_tick_and_the_burst(layout in layouts(), burst_ms in 0_i64..50) {
        let max_burst = Micros::from_millis(burst_ms);
        let line = Line::new();
        line.switch_worker(&layout, layout.place_number(0).unwrap());
        let policy = Policy { max_burst: layout.ticks_in(max_burst), max_lead: Ticks(1000), spread: 1 };
        let reach = Reach { policy, limit: layout.last_tick(), now: Tick(1000), gives_way: false };
        let mut claimed = 0;
        while let Ok(claim) = line.claim(&layout, &reach, 1 << 20) {
            claimed += claim.count;
        }
        prop_assert_eq!(claimed, layout.max(Field::Sequence) + 1 + burst(&layout, max_burst));
    }

    /// Rows of a time have IDs exactly where they are said to.
    #[test]
    fn backfill_is_possible_where_an_id_can_be_encoded(layout in layouts(), instant in -YEAR.0..400 * YEAR.0) {
        let datacenter = (layout.max(Field::Datacenter) > 0).then_some(0);
        let parts = Parts { timestamp: UnixMicros(instant), datacenter, worker: Some(0), sequence: 0 };
        prop_assert_eq!(backfill(&layout, parts.timestamp) == Backfill::Possible, layout.encode(&parts).is_ok());
    }

    /// Whatever the numbers, nothing overflows, and a layout that is named reads the ID.
    #[test]
    fn likely_layouts_read_the_id(id in any::<i64>(), now in 0..100 * YEAR.0) {
        for name in likely_layouts(id, UnixMicros(now)) {
            let built_in = BUILT_IN.iter().find(|built_in| built_in.name == name).unwrap();
            prop_assert!(built_in.notation.parse::<Layout>().unwrap().decode(id).is_ok());
        }
    }
}
