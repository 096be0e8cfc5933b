//! The same calls, of the library in one database and of the extension in SQL in another one: the same results and the same errors, in
//! random layouts. What is left out is listed, too.

use postgres::Client;
use snowflake_test::hosted::{self, DATABASE, create_database, run_script};
use snowflake_test::{Cluster, check, value};
use std::fmt::Write as _;

/// How many layouts are drawn.
const LAYOUTS: usize = 150;

/// Functions of the library that are not in the extension in SQL.
/// The type `snowflake_id` is one that only a superuser can create.
const LEFT_OUT: [&str; 37] = [
    "_snowflake.earliest(text,\"any\")",
    "_snowflake.id_from(integer)",
    "_snowflake.id_from(numeric)",
    "_snowflake.id_from(smallint)",
    "_snowflake.id_in(cstring)",
    "_snowflake.id_out(snowflake_id)",
    "_snowflake.id_recv(internal)",
    "_snowflake.id_send(snowflake_id)",
    "_snowflake.id_to_json(snowflake_id)",
    "_snowflake.id_to_numeric(snowflake_id)",
    "_snowflake.latest(text,\"any\")",
    "_snowflake.max_id(date)",
    "_snowflake.max_id(date,text)",
    "_snowflake.max_id(timestamp without time zone)",
    "_snowflake.max_id(timestamp without time zone,text)",
    "_snowflake.max_id_before(date)",
    "_snowflake.max_id_before(date,text)",
    "_snowflake.max_id_before(timestamp without time zone)",
    "_snowflake.max_id_before(timestamp without time zone,text)",
    "_snowflake.min_id(date)",
    "_snowflake.min_id(date,text)",
    "_snowflake.min_id(timestamp with time zone)",
    "_snowflake.min_id(timestamp with time zone,text)",
    "_snowflake.min_id(timestamp without time zone)",
    "_snowflake.min_id(timestamp without time zone,text)",
    "_snowflake.sorted(anyarray)",
    "snowflake_adopt_all(regclass[],text)",
    "snowflake_adopt_all_plan(regclass[],text)",
    "snowflake_adopt_layout()",
    "snowflake_rewind(bigint)",
    "snowflake_segment_create(text,bigint,bigint,bigint,bigint)",
    "snowflake_segment_drop(text)",
    "snowflake_segment_next(text)",
    "snowflake_segment_next(text,integer)",
    "snowflake_segment_raise(text,bigint)",
    "snowflake_segments(boolean)",
    "snowflake_server_layout()",
];

fn both() -> (Cluster, Client, Client) {
    let cluster = Cluster::options().start();
    create_database(&cluster, DATABASE);
    run_script(&cluster, DATABASE);
    let library = cluster.client();
    let mut sql = cluster.client_of("owner", DATABASE);
    sql.batch_execute("SELECT snowflake_configure(1)").unwrap();
    (cluster, library, sql)
}

/// The answer as text, or the error.
fn answer(client: &mut Client, query: &str) -> String {
    match client.query(query, &[]) {
        Ok(rows) => {
            rows.iter().map(|row| row.get::<_, Option<String>>(0).unwrap_or_else(|| "NULL".to_owned()) + "\n").collect()
        }
        Err(error) => {
            let error = error.as_db_error().unwrap_or_else(|| panic!("{query}: {error:?}")).clone();
            format!("{} {} | {:?} | {:?}", error.code().code(), error.message(), error.detail(), error.hint())
        }
    }
}

#[track_caller]
fn same(library: &mut Client, sql: &mut Client, query: &str) {
    let (expected, found) = (answer(library, query), answer(sql, query));
    assert_eq!(found, expected, "{query}");
}

/// A layout, of which some are none.
pub fn draw_layout(draw: &mut fastrand::Rng) -> String {
    let built_in = [
        "default",
        "twitter",
        "discord",
        "instagram",
        "mastodon",
        "sonyflake",
        "baidu",
        "cosid-js",
        "yitter",
        "cockroach",
    ];
    if draw.u8(0..4) == 0 {
        return built_in[draw.usize(0..built_in.len())].to_owned();
    }
    let mut text = format!("timestamp={}", draw.u8(20..48));
    let mut others = ["datacenter", "worker", "sequence"];
    draw.shuffle(&mut others);
    for name in others.iter().take(draw.usize(0..4)) {
        write!(text, " {name}={}", draw.u8(1..16)).unwrap();
    }
    if draw.bool() {
        let tick = ["1us", "10us", "125us", "1ms", "7ms", "10ms", "1s", "60s"];
        write!(text, " tick={}", tick[draw.usize(0..tick.len())]).unwrap();
    }
    if draw.bool() {
        let epoch =
            ["1970-01-01T00:00:00Z", "2014-09-01T00:00:00Z", "2010-11-04T01:42:54.657Z", "2023-02-28T23:59:59.999999Z"];
        write!(text, " epoch={}", epoch[draw.usize(0..epoch.len())]).unwrap();
    }
    text
}

fn draw_id(draw: &mut fastrand::Rng) -> i64 {
    match draw.u8(0..8) {
        0 => -draw.i64(1..1000),
        1 => draw.i64(0..5),
        2 => i64::MAX - draw.i64(0..5),
        _ => draw.i64(0..i64::MAX) >> draw.u8(0..40),
    }
}

pub fn draw_instant(draw: &mut fastrand::Rng) -> String {
    let named = [
        "infinity",
        "-infinity",
        "4713-01-01 BC",
        "294276-12-31 23:59:59.999999",
        "1970-01-01",
        "9999-12-31 23:59:59.999999",
        "2106-02-07 06:28:15.999999",
        "2106-02-07 06:28:16.000001",
        "2024-01-01",
    ];
    if draw.u8(0..5) == 0 {
        return format!("timestamptz '{}'", named[draw.usize(0..named.len())]);
    }
    let seconds = draw.i64(0..253_402_300_800) >> draw.u8(0..12);
    format!(
        "timestamptz 'epoch' + {seconds} * interval '1 second' + {} * interval '1 microsecond'",
        draw.u32(0..1_000_000)
    )
}

#[test]
fn decoding_and_bounds_in_random_layouts() {
    let (_cluster, mut library, mut sql) = both();
    let mut draw = fastrand::Rng::with_seed(29);
    for number in 0..LAYOUTS {
        if number == LAYOUTS / 2 {
            with_old_strings(&mut sql);
        }
        let layout = draw_layout(&mut draw);
        // All at once where nothing fails; one by one for errors.
        for expression in [
            format!("snowflake_timestamp({}, '{layout}')::text", draw_id(&mut draw)),
            format!("extract(epoch FROM snowflake_timestamp({}, '{layout}'))::text", draw_id(&mut draw)),
            format!("snowflake_decode({}, '{layout}')::text", draw_id(&mut draw)),
            format!("snowflake_worker({}, '{layout}')::text", draw_id(&mut draw)),
            format!("snowflake_datacenter({}, '{layout}')::text", draw_id(&mut draw)),
            format!("snowflake_sequence({}, '{layout}')::text", draw_id(&mut draw)),
            format!("snowflake_min_id({}, '{layout}')::text", draw_instant(&mut draw)),
            format!("snowflake_max_id({}, '{layout}')::text", draw_instant(&mut draw)),
            format!("snowflake_max_id_before({}, '{layout}')::text", draw_instant(&mut draw)),
            format!(
                "snowflake_between({}, {}, {}, '{layout}')::text",
                draw_id(&mut draw),
                draw_instant(&mut draw),
                draw_instant(&mut draw)
            ),
            format!(
                "snowflake_encode({}, {}, {}, {}, '{layout}')::text",
                draw_instant(&mut draw),
                ["NULL", "0", "7", "-1", "70000"][draw.usize(0..5)],
                ["NULL", "0", "3", "-2", "2000000000"][draw.usize(0..5)],
                ["NULL", "NULL", "1", "-3", "33"][draw.usize(0..5)],
            ),
        ] {
            same(&mut library, &mut sql, &format!("SELECT {expression}"));
        }
        // Columns, which are not evaluated by the planner: times around the ticks of many IDs.
        let ids: Vec<String> = (0..20).map(|_| (draw_id(&mut draw) >> 2).abs().to_string()).collect();
        let query = format!(
            "SELECT concat_ws(' ', id, at, snowflake_min_id(at, '{layout}'), snowflake_max_id(at, '{layout}'), \
             snowflake_max_id_before(at, '{layout}'), snowflake_min_id(at + interval '1 us', '{layout}'), \
             snowflake_max_id_before(at - interval '1 us', '{layout}')) \
             FROM unnest('{{{}}}'::bigint[]) AS id, LATERAL (SELECT snowflake_timestamp(id, '{layout}') AS at OFFSET 0) AS s",
            ids.join(",")
        );
        same(&mut library, &mut sql, &query);
    }
}

/// Texts in bodies are read by the caller's setting. From 19 on there is one way only.
fn with_old_strings(client: &mut Client) {
    let _ = client.batch_execute("SET standard_conforming_strings = off");
}

#[test]
fn notation() {
    let (_cluster, mut library, mut sql) = both();
    for layout in [
        "",
        " ",
        "twiter",
        "default",
        "timestamp=41 worker=x sequence=12",
        "timestamp=41 worker=+9 sequence=12",
        "timestamp=41 worker=09 sequence=12",
        "timestamp=41 sequence=12 tick=01ms",
        "timestamp=41 worker sequence=12",
        "timestamp=41 shard=9 sequence=12",
        "timestamp=41 sequence=12 tick=1h",
        "timestamp=41 sequence=12 tick=1ms tick=1ms",
        "timestamp=41 sequence=12 epoch=2024-01-01",
        "timestamp=41 tick=1ms sequence=12",
        "timestamp=41 worker=11 sequence=12",
        "worker=10 sequence=12",
        "timestamp=41 worker=10 sequence=0",
        "worker=10 timestamp=41 sequence=12",
        "timestamp=20 worker=32 sequence=1",
        "timestamp=40 worker=1 worker=2 sequence=1",
        "timestamp=62 sequence=1",
        "timestamp=41 sequence=12 tick=0ms",
        "timestamp=41 sequence=12 tick=61s",
        "timestamp=4294967295 sequence=4294967295",
        "timestamp=4294967296",
        "timestamp=41 tick=99999999999999999999s",
        "timestamp=41 tick=9223372036854775807s",
        "ü=1",
        "ü worker=1",
        "timestamp=41\tworker=10\nsequence=12",
        "  timestamp=41   worker=10  sequence=12  ",
        "=",
        "timestamp=",
        "tick=",
        "epoch=",
        "timestamp=41 epoch=2024-13-01T00:00:00Z",
        "timestamp=41 epoch=1969-12-31T23:59:59Z",
        "timestamp=41 epoch=2024-01-01T00:00:60Z",
        "timestamp=41 epoch=2024-01-01T00:00:00.000Z",
        "timestamp=41 epoch=2024-01-01T00:00:00.500Z epoch=2024-01-01T00:00:00Z",
        "timestamp=41 epoch=9999-12-31T23:59:59.999999Z",
        "timestamp=1 tick=1us epoch=9999-12-31T23:59:59.999997Z",
        "timestamp=41 timestamp=41",
        "tick=1ms",
        "timestamp=41=41",
    ] {
        let text = layout.replace('\'', "''");
        for query in ["SELECT snowflake_timestamp(5, '{}')::text", "SELECT snowflake_max_id('infinity', '{}')::text"] {
            same(&mut library, &mut sql, &query.replace("{}", &text));
        }
    }
    for long in ["a".repeat(300), format!("{}=1", "ü".repeat(100)), format!("timestamp=41 {}", "x".repeat(200))] {
        same(&mut library, &mut sql, &format!("SELECT snowflake_timestamp(5, '{long}')::text"));
    }
    // makes_ids follows from the clock.
    same(&mut library, &mut sql, "SELECT s::text FROM snowflake_layouts() AS s");
    same(&mut library, &mut sql, "SELECT snowflake_database_layout()");
}

#[test]
fn text_forms() {
    let (_cluster, mut library, mut sql) = both();
    let mut draw = fastrand::Rng::with_seed(31);
    let forms = [
        "decimal",
        "hex",
        "base32",
        "base36",
        "base58",
        "base58-bwmarrin",
        "base62",
        "base64url",
        "shortcode",
        "Base62",
        "",
    ];
    for _ in 0..200 {
        let form = forms[draw.usize(0..forms.len())];
        let id = draw_id(&mut draw);
        same(&mut library, &mut sql, &format!("SELECT snowflake_to_text({id}, '{form}')"));
        if id >= 0 && !form.is_empty() && form != "Base62" {
            let text: String = value(&mut library, &format!("SELECT snowflake_to_text({id}, '{form}')"));
            for text in [
                text.clone(),
                text.to_uppercase(),
                text.to_lowercase(),
                format!("0{text}"),
                format!("{text}Z"),
                text[1..].to_owned(),
            ] {
                same(&mut library, &mut sql, &format!("SELECT snowflake_from_text('{text}', '{form}')::text"));
            }
        }
    }
    for (text, form) in [
        ("", "hex"),
        ("", "base36"),
        ("oOiIlL0000000", "base32"),
        ("zzzzzzzzzzz", "base62"),
        ("__________8", "base64url"),
        ("AAAAAAAAAAB", "base64url"),
        ("é", "base36"),
        ("0", "base36"),
        ("00", "base36"),
        ("9223372036854775808", "decimal"),
    ] {
        same(&mut library, &mut sql, &format!("SELECT snowflake_from_text('{text}', '{form}')::text"));
    }
    same(&mut library, &mut sql, &format!("SELECT snowflake_from_text('{}', 'hex')::text", "0".repeat(65)));
    same(
        &mut library,
        &mut sql,
        "SELECT concat_ws(' ', snowflake_time_encoder('2026-01-01'), snowflake_time_decoder('0264905529753600000'))",
    );
    for null in [
        "snowflake_timestamp(NULL)",
        "snowflake_timestamp(5, NULL)",
        "snowflake_min_id(NULL)",
        "snowflake_to_text(NULL, 'hex')",
        "snowflake_from_text('0', NULL)",
        "snowflake_encode(now(), 1, NULL)",
        "snowflake_encode(NULL, 1)",
        "snowflake_between(NULL, NULL, NULL)",
        "snowflake_decode(NULL)",
        "snowflake_age(NULL)",
        "snowflake_next(NULL)",
        "snowflake_encode(now(), NULL)",
        "snowflake_encode(now(), 1, 5000)",
        "snowflake_encode('infinity', 1)",
        "snowflake_next(-1)",
        "snowflake_worker(-7)",
        "snowflake_encode('2020-01-01', 1)",
    ] {
        same(&mut library, &mut sql, &format!("SELECT {null}::text"));
    }
}

#[test]
fn partitions() {
    let (_cluster, mut library, mut sql) = both();
    let make = "
        CREATE TABLE events (id bigint, at text) PARTITION BY RANGE (id);
        CREATE TABLE listed (id bigint) PARTITION BY LIST (id);
        CREATE TABLE texts (id text) PARTITION BY RANGE (id);
        CREATE TABLE plain (id bigint);
        CREATE TABLE rest (id bigint) PARTITION BY RANGE (id);
        CREATE TABLE rest_default PARTITION OF rest DEFAULT;
        INSERT INTO rest VALUES (snowflake_min_id('2026-05-05') + 3);
        CREATE TABLE name_of_a_table_that_is_as_long_as_names_can_be_at_most (id bigint) PARTITION BY RANGE (id);
        CREATE TABLE taken (id bigint) PARTITION BY RANGE (id);
        CREATE TABLE taken_20260101 ();";
    library.batch_execute(make).unwrap();
    sql.batch_execute(make).unwrap();
    with_old_strings(&mut sql);
    for call in [
        "'events', '1 month', '2026-01-01', '2026-07-01'",
        "'events', '1 month', '2026-01-01', '2026-12-31 23:59:59'",
        "'events', '1 month', '2026-01-01', '2026-12-31 23:59:59'",
        "'events', '1 year', '2026-01-01', '2030-01-01'",
        "'events', '6 hours', '2027-01-31 03:00', '2027-02-02'",
        "'events', '1 month 3 days 02:00:01', '2028-01-31', '2028-06-01'",
        "'events', '1 second', '2030-01-01', '2031-01-01'",
        "'events', '1 month', '2093-01-01', '2093-09-06'",
        "'events', '1 month', '2100-01-01', '2101-01-01'",
        "'events', '1 month', '2020-01-01', '2024-01-01'",
        "'events', '1 month', '2026-01-01', 'infinity'",
        "'events', '1 month', '2026-01-01', '2026-01-01'",
        "'events', '-1 month', '2026-01-01', '2026-02-01'",
        "'events', '0.5 seconds', '2026-01-01', '2026-02-01'",
        "'events', '178000000 years', '2041-01-01', '2042-01-01'",
        "'events', NULL, '2026-01-01', '2026-02-01'",
        "NULL, '1 month', '2026-01-01', '2026-02-01'",
        "'events', '1 month', NULL, '2026-02-01'",
        "'listed', '1 month', '2026-01-01', '2026-02-01'",
        "'texts', '1 month', '2026-01-01', '2026-02-01'",
        "'plain', '1 month', '2026-01-01', '2026-02-01'",
        "4000000000::oid, '1 month', '2026-01-01', '2026-02-01'",
        "'rest', '1 month', '2026-01-01', '2026-05-01'",
        "'rest', '1 month', '2026-01-01', '2026-07-01'",
        "'name_of_a_table_that_is_as_long_as_names_can_be_at_most', '1 month', '2026-01-01', '2026-02-01'",
        "'taken', '1 month', '2026-01-01', '2026-02-01'",
        // From within one of them on.
        "'events', '1 month', '2026-12-17 11:00', '2027-01-31 02:59'",
        "'events', '1 day', '2026-12-17 11:00', '2026-12-19'",
        "'rest', '1 month', '2026-04-17 11:00:00.123456', '2026-05-01'",
        "'events', '6 hours', '2027-02-02 05:00', '2027-02-03 00:00:00.5'",
    ] {
        same(&mut library, &mut sql, &format!("SELECT snowflake_create_partitions({call})::text"));
    }
    let all = "SELECT c.oid::regclass::text || ' ' || pg_get_expr(relpartbound, c.oid) FROM pg_class AS c WHERE relispartition ORDER BY 1";
    same(&mut library, &mut sql, all);
}

/// What the library does as the owner of a table, the extension in SQL refuses: calls of somebody who has the rights of the owner.
#[test]
fn calls_that_are_refused() {
    let (cluster, mut library, mut sql) = both();
    library.batch_execute("CREATE ROLE app LOGIN").unwrap();
    let make = "CREATE SCHEMA app AUTHORIZATION app; CREATE TABLE app.events (id bigint) PARTITION BY RANGE (id); \
                ALTER TABLE app.events OWNER TO app";
    library.batch_execute(make).unwrap();
    let mut superuser = cluster.client_of("postgres", DATABASE);
    superuser.batch_execute(make).unwrap();
    let call = "SELECT snowflake_create_partitions('app.events', '1 day', '2026-01-01', '2026-01-02')::text";
    assert_eq!(answer(&mut library, call), "app.events_20260101\n");
    assert!(
        answer(&mut superuser, call)
            .starts_with("42501 table app.events belongs to role app, and the caller is role postgres")
    );
    // Without the rights, both say the same.
    library.batch_execute("ALTER TABLE app.events OWNER TO postgres; GRANT USAGE ON SCHEMA app TO PUBLIC").unwrap();
    superuser.batch_execute("ALTER TABLE app.events OWNER TO postgres; GRANT USAGE ON SCHEMA app TO PUBLIC").unwrap();
    same(&mut cluster.client_of("app", "postgres"), &mut sql, call);
}

/// The answers of both, without digits: many tell the moment.
#[track_caller]
fn same_but_for_numbers(library: &mut Client, sql: &mut Client, query: &str) {
    let query = format!("SELECT row::text FROM ({query}) AS row");
    let [expected, found] =
        [library, sql].map(|client| answer(client, &query).replace(|c: char| c.is_ascii_digit(), ""));
    assert_eq!(found, expected, "{query}");
}

#[test]
fn upkeep_of_partitions() {
    let (_cluster, mut library, mut sql) = both();
    let make = "
        CREATE TABLE events (id bigint PRIMARY KEY, note text) PARTITION BY RANGE (id);
        CREATE TABLE odd (id bigint) PARTITION BY RANGE (id);
        CREATE TABLE odd_first PARTITION OF odd FOR VALUES FROM (MINVALUE) TO (5000);
        CREATE TABLE odd_rest PARTITION OF odd DEFAULT;
        CREATE TABLE plain (id bigint);
        CREATE TABLE local (id bigint) PARTITION BY RANGE (id);
        CREATE TABLE passed (id bigint) PARTITION BY RANGE (id);
        SELECT count(*) FROM snowflake_create_partitions('local', '1 day', date_trunc('day', now()) + interval '5 h', now() + interval '30 h');
        SELECT count(*) FROM snowflake_create_partitions('passed', '1 day', date_trunc('day', now()) - interval '9 days', now());
        CREATE TABLE far (id bigint) PARTITION BY RANGE (id);
        DO $$ BEGIN EXECUTE format('CREATE TABLE far_rest PARTITION OF far FOR VALUES FROM (%s) TO (MAXVALUE)',
            snowflake_min_id(date_trunc('day', now()) + interval '2 days') + 1); END $$;
        CREATE VIEW of_passed AS SELECT * FROM passed;
        SELECT count(*) FROM snowflake_declare_keys('passed')";
    for client in [&mut library, &mut sql] {
        client.batch_execute(make).unwrap();
        client.batch_execute("SET intervalstyle = 'postgres_verbose'; SET timezone = 'Asia/Kathmandu'").unwrap();
    }
    with_old_strings(&mut sql);
    for call in [
        "'events', '1 day', '3 days', dry_run => true",
        "'events', '1 day', '3 days'",
        "'events', '1 day', '3 days'",
        "'events', '1 month', '40 days'",
        "'events', '1 month', '80 days', '1 day', 'drop'",
        "'events', '7 days', '20 days', dry_run => true",
        "'odd', '1 day', '2 days', '1 day', 'detach concurrently'",
        "'local', '1 day', '4 days'",
        "'local', '6 hours', '6 days'",
        "'far', '1 day', '1 day'",
        "'far', '1 day', '4 days'",
        "'passed', '1 day', '1 day', '6 days', dry_run => true",
        "'passed', '1 day', '1 day', '6 days', 'detach concurrently'",
        "'passed', '1 day', '1 day', '6 days'",
        "'passed', '1 day', '1 day', '3 days', 'drop'",
        "'passed', '1 day', '1 day', '0 days', 'drop'",
        "'plain', '1 day', '1 day'",
        "NULL, '1 day', '1 day'",
        "'events', NULL, '1 day'",
        "'events', '1 day', NULL",
        "'events', '1 day', '1 day', '-1 day'",
        "'events', '1 day', '-1 month 1 day'",
        "'events', '1.5 s', '1 day'",
        "'events', '1 day', '1 day', '1 day', 'keep'",
        "'events', '1 day', '1 day', '1 day', NULL",
        "'odd', '1 day', '2 days'",
        "'events', '1 day', '1 day', default_rows => 'drop'",
        "'events', '1 month', '100 years'",
        "'events', '1000 years', '1 day'",
        "1, '1 day', '1 day'",
    ] {
        same_but_for_numbers(&mut library, &mut sql, &format!("SELECT * FROM snowflake_maintain_partitions({call})"));
    }
    let bounds = "SELECT inhrelid::regclass || ' ' || pg_get_expr(relpartbound, inhrelid) FROM pg_inherits \
                  JOIN pg_class ON oid = inhrelid ORDER BY 1";
    same(&mut library, &mut sql, bounds);
    for client in [&mut library, &mut sql] {
        client.batch_execute("SET default_transaction_read_only = on").unwrap();
    }
    same(&mut library, &mut sql, "SELECT snowflake_maintain_partitions('events', '1 day', '90 days')::text");
    same_but_for_numbers(
        &mut library,
        &mut sql,
        "SELECT * FROM snowflake_maintain_partitions('events', '1 day', '90 days', dry_run => true)",
    );
}

/// What is seen from inside a database. Settings of the server are the library's, and so are leases.
#[test]
fn preflight_in_random_layouts() {
    let (_cluster, mut library, mut sql) = both();
    let make = "CREATE TABLE small (id bigserial PRIMARY KEY); INSERT INTO small SELECT FROM generate_series(1, 1000);
        CREATE TABLE negative (id bigint PRIMARY KEY); INSERT INTO negative VALUES (-5), (7);
        CREATE TABLE empty (id bigint PRIMARY KEY); CREATE TABLE two (a bigint, b bigint, PRIMARY KEY (a, b)); INSERT INTO two VALUES (1, 2);
        CREATE TABLE named (id text PRIMARY KEY); CREATE VIEW seen AS SELECT * FROM small; CREATE TABLE none (a text);
        CREATE TABLE high (id bigint PRIMARY KEY); INSERT INTO high VALUES (9223372036854775807);
        CREATE TABLE parts (id bigint PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE part PARTITION OF parts DEFAULT;
        CREATE TABLE edge (id bigint PRIMARY KEY)";
    let edge: i64 = value(&mut library, "SELECT snowflake_encode(now(), 7, 5, NULL, 'pgedge')");
    for client in [&mut library, &mut sql] {
        client.batch_execute(make).unwrap();
        client.batch_execute(&format!("INSERT INTO edge VALUES ({edge})")).unwrap();
    }
    let mut draw = fastrand::Rng::with_seed(43);
    let mut different = Vec::new();
    let mut ask = |library: &mut Client, sql: &mut Client, arguments: &str| {
        // The moment, and what is set in another way.
        let query = format!(
            "SELECT regexp_replace(regexp_replace(regexp_replace(concat_ws(' | ', subject, verdict, finding, replace(advice, 'pg_snowflake.epoch =', 'the epoch')), \
             '[0-9]{{16,}}', 'ID', 'g'), '(true from|up to|could be of [a-z, ]*[(]|since|until) [-0-9]+ [0-9:.+]+', 'THEN', 'g'), '[0-9]+[.][0-9] years', 'N years', 'g') \
             FROM snowflake_preflight({arguments}) WHERE subject NOT IN ('server', 'database')"
        );
        let [expected, found] = [library, sql].map(|client| answer(client, &query));
        if found != expected {
            different.push(format!("{arguments}\nsql:     {found}\nlibrary: {expected}"));
        }
    };
    for _ in 0..LAYOUTS / 2 {
        let layout = draw_layout(&mut draw);
        let number = |draw: &mut fastrand::Rng, most: i32| {
            if draw.bool() { "NULL".to_owned() } else { draw.i32(0..most).to_string() }
        };
        let arguments = format!(
            "'{layout}', {}, {}, {}, {}, {}, {}, {}, {}",
            if draw.u8(0..3) == 0 { draw_instant(&mut draw) } else { "NULL".to_owned() },
            number(&mut draw, 3000),
            number(&mut draw, 40),
            ["NULL", "true", "false"][draw.usize(0..3)],
            ["NULL", "3.7", "20000", "1e7", "'infinity'", "'nan'", "0"][draw.usize(0..7)],
            number(&mut draw, 300),
            ["NULL", "true", "false"][draw.usize(0..3)],
            if draw.bool() { draw_instant(&mut draw) } else { "NULL".to_owned() },
        );
        ask(&mut library, &mut sql, &arguments);
    }
    for keys in ["small", "negative", "empty", "two", "named", "seen", "none", "high", "parts", "part", "edge"] {
        for layout in ["NULL", "'pgedge'", "'baidu'", "'sonyflake'"] {
            ask(&mut library, &mut sql, &format!("{layout}, keys => '{{{keys}}}'"));
        }
        ask(&mut library, &mut sql, &format!("keys => '{{{keys}}}', key_column => 'b'"));
    }
    ask(&mut library, &mut sql, "keys => '{small,NULL}'");
    ask(&mut library, &mut sql, "keys => ARRAY[99999999]::regclass[]");
    assert!(different.is_empty(), "{}", different.join("\n\n"));
}

#[test]
fn the_same_functions_but_for_those_that_are_listed() {
    let (_cluster, mut library, mut sql) = both();
    let list = |client: &mut Client, of: &str| -> Vec<String> {
        let query = format!(
            "SELECT concat_ws(' ', p.oid::regprocedure, 'returns', pg_get_function_result(p.oid), 'of', pg_get_function_arguments(p.oid), \
             obj_description(p.oid, 'pg_proc')) FROM pg_proc AS p WHERE {of} ORDER BY 1"
        );
        client.query(&query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    };
    let in_extension = "EXISTS (SELECT FROM pg_depend AS d JOIN pg_extension AS e ON refobjid = e.oid \
                        WHERE d.objid = p.oid AND deptype = 'e' AND extname = 'pg_snowflake') AND obj_description(p.oid, 'pg_proc') NOT LIKE 'part of %'";
    let is_left_out = |function: &String| {
        LEFT_OUT.iter().chain(&["snowflake_workers()"]).any(|name| function.starts_with(&format!("{name} ")))
    };
    let status = |function: &String| function.starts_with("snowflake_status()");
    let of_library = list(&mut library, in_extension);
    assert_eq!(
        of_library.iter().filter(|function| is_left_out(function)).count(),
        LEFT_OUT.len() + 1,
        "{of_library:#?}"
    );
    let expected: Vec<String> =
        of_library.into_iter().filter(|function| !is_left_out(function) && !status(function)).collect();
    let found = list(&mut sql, "proname LIKE 'snowflake\\_%'");
    let found: Vec<String> = found
        .into_iter()
        .filter(|function| !function.starts_with("snowflake_configure(") && !status(function))
        .collect();
    check::same_entries(("sql/hosted", &found), ("the library, and not in LEFT_OUT", &expected));
    // The columns of the status are some of the library's.
    let columns = |client: &mut Client| -> Vec<String> {
        let query = "SELECT unnest(proargnames) || ' ' || format_type(unnest(proallargtypes), NULL) FROM pg_proc \
                     WHERE proname = 'snowflake_status'";
        client.query(query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    };
    let all = columns(&mut library);
    assert!(columns(&mut sql).iter().all(|column| all.contains(column)));
    assert!(hosted::script().len() < 305_000);
}

/// The table of docs/hosted.md, row by row.
fn rows_of_the_page() -> Vec<Vec<String>> {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/hosted.md")).unwrap();
    let table = page.split("| the library's | in SQL |").nth(1).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect()).collect()
}

/// Names of functions in a text, such as `snowflake_next()`.
fn functions_in(text: &str) -> Vec<String> {
    let parts = text.split('`').skip(1).step_by(2).filter(|part| part.ends_with("()"));
    parts.map(|part| part.trim_end_matches("()").to_owned()).collect()
}

/// What the page calls missing is what is left out here, and the other way round.
#[test]
fn the_page_has_each_difference() {
    let rows = rows_of_the_page();
    assert!(rows.len() > 10, "{rows:?}");
    let mut missing: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| row[1] == "missing") {
        missing.extend(functions_in(&row[0]));
        // A plan stands beside its function, and segments beside their page.
        if row[0].contains("its plan") {
            missing.extend(functions_in(&row[0]).into_iter().map(|name| name + "_plan"));
        }
        if row[0].contains("segments.md") {
            missing.extend(
                LEFT_OUT
                    .iter()
                    .filter(|name| name.starts_with("snowflake_segment"))
                    .map(|name| name.split('(').next().unwrap().to_owned()),
            );
        }
    }
    let mut left_out: Vec<String> = LEFT_OUT
        .iter()
        .chain(&["snowflake_workers()"])
        .filter(|name| !name.starts_with("_snowflake."))
        .map(|name| name.split('(').next().unwrap().to_owned())
        .collect();
    missing.sort();
    missing.dedup();
    left_out.sort();
    left_out.dedup();
    check::same_entries(("docs/hosted.md", &missing), ("LEFT_OUT", &left_out));
    for row in rows.iter().filter(|row| row[1] != "missing") {
        for name in functions_in(&row[0]) {
            assert!(!left_out.contains(&name), "{row:?}");
            assert!(hosted::script().contains(&format!("FUNCTION {name}(")), "{row:?}");
        }
    }
    // What to do instead is there.
    for name in rows.iter().filter_map(|row| row.get(2)).flat_map(|cell| functions_in(cell)) {
        assert!(hosted::script().contains(&format!("FUNCTION {name}(")), "{name}");
    }
}

/// In place of the type, a domain: tables are declared alike, and JSON has numbers.
#[test]
fn the_type_is_a_domain() {
    let (_cluster, mut library, mut sql) = both();
    for client in [&mut library, &mut sql] {
        client
            .batch_execute("CREATE TABLE typed (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), refers snowflake_id REFERENCES typed)")
            .unwrap();
        client
            .batch_execute(
                "INSERT INTO typed VALUES (5, 5), (DEFAULT, 5); CREATE VIEW seen AS SELECT id + 1 AS next FROM typed",
            )
            .unwrap();
    }
    for query in [
        "SELECT (id + 1)::text FROM typed WHERE id = 5",
        "SELECT count(*)::text FROM typed WHERE snowflake_timestamp(id) > now() - interval '1 day'",
    ] {
        same(&mut library, &mut sql, query);
    }
    let json = "SELECT to_json(t)::text FROM (SELECT id, id::text AS said FROM typed WHERE id = 5) AS t";
    assert_eq!(answer(&mut library, json), "{\"id\":\"5\",\"said\":\"5\"}\n");
    assert_eq!(answer(&mut sql, json), "{\"id\":5,\"said\":\"5\"}\n");
}
