//! Published IDs of built-in layouts, and the parts that their publishers say they have.

use snowflake_core::notation::BUILT_IN;
use snowflake_core::{EncodeError, Field, Layout, LayoutError, Parts, UnixMicros};

/// The README of Baidu's generator has other widths and another epoch than its defaults.
const BAIDU_README: &str = "timestamp=29 worker=21 sequence=13 tick=1s epoch=2016-09-19T16:00:00Z";

/// Layout, ID, timestamp, datacenter, worker, sequence, and where that is published.
type Vector = (&'static str, i64, &'static str, Option<u32>, Option<u32>, u32, &'static str);

const VECTORS: &[Vector] = &[
    ("twitter", 1541815603606036480, "2022-06-28T16:07:40.105Z", Some(11), Some(26), 0, "Wikipedia, Snowflake ID"),
    ("twitter", 210462857140252672, "2012-06-06T20:07:10.010Z", Some(1), Some(3), 0, "Twitter's documentation"),
    ("twitter", i64::MAX, "2080-07-10T17:30:30.208Z", Some(31), Some(31), 4095, "the layout's maximum"),
    ("twitter", 20, "2010-11-04T01:42:54.657Z", Some(0), Some(0), 20, "from before the scheme: tick 0"),
    ("discord", 175928847299117063, "2016-04-30T11:18:25.796Z", Some(0), Some(1), 7, "discord/discord-api-docs"),
    ("discord", 0, "2015-01-01T00:00:00Z", Some(0), Some(0), 0, "discord/discord-api-docs"),
    ("discord", 862026798833074178, "2021-07-06T17:46:44.525Z", Some(0), Some(8), 2, "MrGunflame/snowflaked-rs"),
    ("instagram", 1787135824035452364, "2018-05-25T15:46:53.635Z", None, Some(133), 460, "subzeroid/instagrapi"),
    ("instagram", 908540701891980503, "2015-01-29T10:15:13.321Z", None, Some(4187), 215, "subzeroid/instagrapi"),
    ("mastodon", 103270115826048975, "2019-12-08T03:48:33.849Z", None, None, 40911, "mastodon/documentation"),
    ("sonyflake", 100663298, "2014-09-01T00:00:00.060Z", None, Some(2), 0, "elciok/sonyflakex"),
    ("sonyflake", 476467565690880001, "2023-09-01T00:00:00Z", None, Some(1), 0, "xudongcc/sonyflake-js"),
    (BAIDU_README, 180363646902239241, "2017-01-19T04:15:46Z", None, Some(4), 9, "baidu/uid-generator, README"),
    ("cosid", 295913926632165376, "2022-03-20T05:36:17.924Z", None, Some(5), 0, "Ahoo-Wang/CosId"),
    ("yitter", 129053495681099, "2021-02-18T10:20:03.094Z", None, Some(1), 11, "yitter/IdGenerator, README"),
    ("tsid", 38390726480144748, "2020-04-15T22:31:02.458Z", None, Some(74), 2412, "f4b6a3/tsid-creator"),
    ("tsid", 38358284406638839, "2020-04-15T20:22:07.665Z", None, Some(4), 2295, "f4b6a3/tsid-creator"),
    ("cockroach", 235191684988928001, "2017-04-10T17:26:46.210Z", None, Some(1), 0, "cockroachdb/cockroach#15721"),
];

fn at(text: &str) -> UnixMicros {
    UnixMicros::parse(text).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn published_ids_decode_and_encode() {
    for &(name, id, timestamp, datacenter, worker, sequence, source) in VECTORS {
        let layout: Layout = name.parse().unwrap();
        let parts = layout.decode(id).unwrap();
        assert_eq!(parts, Parts { timestamp: at(timestamp), datacenter, worker, sequence }, "{name} {id}: {source}");
        assert_eq!(layout.encode(&parts), Ok(id), "{name} {id}: {source}");
    }
}

/// By the start of the last tick.
#[test]
fn layouts_end_when_their_publishers_say() {
    for (name, last) in [
        ("default", "2093-09-06T15:47:35.551Z"),
        ("twitter", "2080-07-10T17:30:30.208Z"),
        ("discord", "2084-09-06T15:47:35.551Z"),
        ("sonyflake", "2188-11-16T03:28:58.870Z"),
        ("sonyflake2", "2199-03-19T03:28:58.870Z"),
        ("leaf", "2080-07-10T17:30:30.208Z"),
        ("baidu", "2024-11-20T13:24:15Z"),
        ("cosid", "2089-08-30T07:47:35.551Z"),
        ("cosid-js", "2089-08-30T07:47:35.551Z"),
        ("tsid", "2089-09-06T15:47:35.551Z"),
        ("cockroach", "2104-03-13T02:56:07.106550Z"),
        ("pgedge", "2092-09-06T15:47:35.551Z"),
    ] {
        let layout: Layout = name.parse().unwrap();
        assert_eq!(layout.start_of(layout.last_tick()), at(last), "{name}");
    }
}

#[test]
fn which_layouts_make_ids_and_fit_double_precision() {
    for built_in in BUILT_IN {
        let layout: Layout = built_in.name.parse().unwrap();
        let expected = match built_in.name {
            "mastodon" => Err(LayoutError::Missing(Field::Worker)),
            "cockroach" => Err(LayoutError::Missing(Field::Sequence)),
            _ => Ok(()),
        };
        assert_eq!(layout.check_makes_ids(), expected, "{}", built_in.name);
        assert_eq!(layout.fits_double(), built_in.name == "cosid-js", "{}", built_in.name);
    }
    for (name, ids_per_second) in
        [("default", 4_096_000), ("sonyflake", 25_600), ("baidu", 8_192), ("cosid-js", 512_000), ("cockroach", 100_000)]
    {
        assert_eq!(name.parse::<Layout>().unwrap().ids_per_second(), ids_per_second, "{name}");
    }
}

#[test]
fn a_layout_without_a_sequence_has_only_sequence_0() {
    let cockroach: Layout = "cockroach".parse().unwrap();
    let parts = Parts { timestamp: at("2026-01-01T00:00:00Z"), datacenter: None, worker: Some(5), sequence: 0 };
    let id = cockroach.encode(&parts).unwrap();
    assert_eq!(cockroach.decode(id), Ok(parts));
    assert_eq!(cockroach.field(id, Field::Sequence), Ok(None));
    assert!(matches!(cockroach.encode(&Parts { sequence: 1, ..parts }), Err(EncodeError::Field(_))));
}
