//! Conditions on what is made of the time of an ID, at random, in the forms in which people write them.

use fastrand::Rng;
use snowflake_test::value;

/// Zones: with summer time in either half of the year, at midnight, by half an hour; with days that are missing or come twice; far from UTC.
pub const ZONES: [&str; 50] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Pacific/Kiritimati",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/Johannesburg",
    "Africa/Lagos",
    "Africa/Monrovia",
    "Africa/Nairobi",
    "America/Anchorage",
    "America/Argentina/Buenos_Aires",
    "America/Asuncion",
    "America/Bogota",
    "America/Caracas",
    "America/Chicago",
    "America/Denver",
    "America/Halifax",
    "America/Havana",
    "America/Los_Angeles",
    "America/Mexico_City",
    "America/Nuuk",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Amman",
    "Asia/Beirut",
    "Asia/Dhaka",
    "Asia/Jerusalem",
    "Asia/Kathmandu",
    "Asia/Manila",
    "Asia/Pyongyang",
    "Asia/Shanghai",
    "Asia/Tehran",
    "Asia/Tokyo",
    "Atlantic/Azores",
    "Australia/Adelaide",
    "Australia/Sydney",
    "Europe/Dublin",
    "Europe/Istanbul",
    "Europe/Lisbon",
    "Europe/London",
    "Europe/Moscow",
    "Pacific/Apia",
    "Pacific/Auckland",
    "Pacific/Chatham",
    "Pacific/Fakaofo",
];

/// Zones that say their offsets themselves. Those of the last two are farther from UTC than any place is.
const WITH_OFFSETS: [&str; 3] = ["EST5EDT", "FOO+20", "ABC-150DEF+100,M3.2.0,M11.1.0"];

const UNITS: [&str; 9] = ["second", "minute", "hour", "day", "day", "week", "month", "quarter", "year"];
const INTERVALS: [&str; 8] =
    ["1 hour", "-90 minutes", "1 day", "1 day 3 hours", "1 month", "-1 month 2 days", "13 months", "0"];
const STRIDES: [&str; 4] = ["15 minutes", "1 day", "7 hours 3 minutes", "1 week"];

fn one_of(rng: &mut Rng, of: &[&'static str]) -> &'static str {
    of[rng.usize(..of.len())]
}

/// What is made of a time, which stands where `{}` is.
fn expression(rng: &mut Rng) -> String {
    let (unit, zone, interval) = (one_of(rng, &UNITS), one_of(rng, &ZONES), one_of(rng, &INTERVALS));
    let sign = one_of(rng, &["+", "-"]);
    match rng.u8(..24) {
        0..3 => format!("date_trunc('{unit}', {{}})"),
        3 if zone != "UTC" => format!("date_trunc('{unit}', {{}} AT TIME ZONE '{zone}')"),
        3..5 => format!("date_trunc('{unit}', {{}}, '{zone}')"),
        5..8 => "({})::date".to_owned(),
        8 => format!("({{}} AT TIME ZONE '{zone}')"),
        9 => format!("({{}} AT TIME ZONE interval '{}')", one_of(rng, &["2 hours", "-05:30"])),
        10 => format!("({{}} AT TIME ZONE '{zone}')::date"),
        11 => format!("date_bin('{}', {{}}, '2001-02-16 20:05+00')", one_of(rng, &STRIDES)),
        12..14 => format!("({{}} {sign} interval '{interval}')"),
        14 => format!("(({{}})::timestamp {sign} interval '{interval}')"),
        15 => one_of(rng, &["extract(epoch FROM {})", "date_part('epoch', {})", "extract(epoch FROM ({})::date)"])
            .to_owned(),
        16 => one_of(rng, &["extract(year FROM {})", "date_part('isoyear', {})", "extract(year FROM ({})::date)"])
            .to_owned(),
        17 => {
            one_of(rng, &["('2024-03-01'::timestamptz - {})", "({} - '2024-03-01 12:00+02'::timestamptz)"]).to_owned()
        }
        18 => one_of(rng, &["({})::timestamp", "({})::timestamptz(0)", "({})::timestamp(1)"]).to_owned(),
        19 => one_of(rng, &["(({})::date + 3)", "('2024-03-10'::date - ({})::date)"]).to_owned(),
        20 => "extract(epoch FROM '2024-03-01'::timestamptz - {})".to_owned(),
        21 => format!("date_trunc('{unit}', {{}} {sign} interval '{interval}')::date"),
        22 => format!("(({{}} AT TIME ZONE '{zone}') AT TIME ZONE '{}')", one_of(rng, &ZONES)),
        _ => format!("(({{}})::date {sign} interval '{interval}')"),
    }
}

/// A condition on what is made of a time, which is compared with what is made of others, the texts of three of them.
pub fn condition(rng: &mut Rng, time: &str, others: [&str; 3]) -> String {
    let [low, high, more] = others;
    let made = expression(rng);
    let of = |time: &str| made.replace("{}", time);
    let operator = one_of(rng, &["=", "=", "<", "<=", ">", ">=", "<>"]);
    match rng.u8(..20) {
        0..7 => format!("{} {operator} {}", of(time), of(low)),
        7 => format!("{} {operator} {}", of(low), of(time)),
        8..10 => format!("{} BETWEEN {} AND {}", of(time), of(low), of(high)),
        10..12 => format!("{} IN ({}, {}, {})", of(time), of(low), of(high), of(more)),
        12 => format!("{} = ANY (ARRAY[{}, {}, NULL])", of(time), of(low), of(high)),
        13 => {
            let test = one_of(rng, &["TRUE", "NOT FALSE", "FALSE", "NOT TRUE", "UNKNOWN"]);
            format!("({} {operator} {}) IS {test}", of(time), of(low))
        }
        14 => {
            let test = one_of(rng, &["TRUE", "NOT FALSE", "FALSE", "NOT TRUE"]);
            format!("({time} {operator} {low}) IS {test}")
        }
        15..17 => {
            let bounds = one_of(rng, &["[)", "(]", "[]", "()"]);
            let range = format!("tstzrange(least({low}, {high}), greatest({low}, {high}), '{bounds}')");
            match rng.u8(..4) {
                0 => format!("{time} <@ {range}"),
                1 => format!("{range} @> {time}"),
                2 => format!("tstzrange({time}, {time}, '[]') && {range}"),
                _ => format!("tstzrange({time}, {time} + interval '1 hour') && {range}"),
            }
        }
        17 => {
            let ranges =
                [(low, high), (high, more)].map(|(a, b)| format!("tstzrange(least({a}, {b}), greatest({a}, {b}))"));
            format!("{time} <@ tstzmultirange({})", ranges.join(", "))
        }
        18 => format!(
            "({time})::date <@ daterange(least({0}, {1}), greatest({0}, {1}))",
            format_args!("({low})::date"),
            format_args!("({high})::date")
        ),
        _ => {
            format!("{time} < {low} + interval '{}' AND {} {operator} {}", one_of(rng, &INTERVALS), of(time), of(more))
        }
    }
}

/// What is made of a time `t`: the steps, the expression, and the arguments of the steps.
const WAYS: [(&str, &str, &str); 41] = [
    ("date local", "t::date", ""),
    ("local", "t::timestamp", ""),
    ("local_in", "t AT TIME ZONE 'America/Sao_Paulo'", ", 'America/Sao_Paulo'::text"),
    ("local_in", "t AT TIME ZONE 'EST'", ", 'EST'::text"),
    ("local_in", "t AT TIME ZONE interval '-03:30'", ", interval '-03:30'"),
    ("local_in", "t AT TIME ZONE interval '00:00:00.5'", ", interval '00:00:00.5'"),
    ("instant_in local", "t::timestamp AT TIME ZONE interval '-00:01:00.75'", ", interval '-00:01:00.75'"),
    ("instant trunc local", "date_trunc('second', t)", ", 'second'::text"),
    ("instant trunc local", "date_trunc('minute', t)", ", 'minute'::text"),
    ("instant trunc local", "date_trunc('hour', t)", ", 'hour'::text"),
    ("instant trunc local", "date_trunc('day', t)", ", 'day'::text"),
    ("instant trunc local", "date_trunc('week', t)", ", 'week'::text"),
    ("instant trunc local", "date_trunc('month', t)", ", 'month'::text"),
    ("instant trunc local", "date_trunc('quarter', t)", ", 'quarter'::text"),
    ("instant trunc local", "date_trunc('year', t)", ", 'year'::text"),
    ("instant trunc local", "date_trunc('decade', t)", ", 'decade'::text"),
    ("instant trunc local", "date_trunc('century', t)", ", 'century'::text"),
    ("instant trunc local", "date_trunc('millennium', t)", ", 'millennium'::text"),
    (
        "instant_in trunc local_in",
        "date_trunc('day', t, 'Africa/Cairo')",
        ", 'Africa/Cairo'::text, 'day'::text, 'Africa/Cairo'::text",
    ),
    ("plus", "t + interval '1 month 3 days -5 hours'", ", interval '1 month 3 days -5 hours'"),
    ("minus", "t - interval '17 months 1 day'", ", interval '17 months 1 day'"),
    ("plus local", "t::timestamp + interval '-7 months 40 days'", ", interval '-7 months 40 days'"),
    ("year local", "extract(year FROM t)", ""),
    ("isoyear local", "extract(isoyear FROM t)", ""),
    ("epoch", "extract(epoch FROM t)", ""),
    ("epoch", "date_part('epoch', t)", ""),
    ("epoch local", "extract(epoch FROM t::timestamp)", ""),
    ("until", "'2001-01-01 13:00+00'::timestamptz - t", ", '2001-01-01 13:00+00'::timestamptz"),
    ("since local", "t::timestamp - '2001-01-01 13:00'::timestamp", ", '2001-01-01 13:00'::timestamp"),
    ("until date local", "'2001-01-01'::date - t::date", ", '2001-01-01'::date"),
    ("epoch until", "extract(epoch FROM '2001-01-01+00'::timestamptz - t)", ", '2001-01-01+00'::timestamptz"),
    ("bin", "date_bin('37 minutes', t, '2001-01-01')", ", interval '37 minutes'"),
    ("round", "t::timestamptz(0)", ""),
    ("round local", "t::timestamp(1)", ""),
    ("instant local_in", "(t AT TIME ZONE 'Asia/Manila')::timestamptz", ", 'Asia/Manila'::text"),
    ("instant midnight date local", "t::date::timestamptz", ""),
    ("local_in", "t AT TIME ZONE 'FOO+20'", ", 'FOO+20'::text"),
    (
        "date local_in",
        "(t AT TIME ZONE 'ABC-150DEF+100,M3.2.0,M11.1.0')::date",
        ", 'ABC-150DEF+100,M3.2.0,M11.1.0'::text",
    ),
    ("instant_in local", "t::timestamp AT TIME ZONE 'FOO-160'", ", 'FOO-160'::text"),
    ("plus midnight plus_days date local", "(t::date + 3) + interval '1 month'", ", interval '1 month', 3"),
    (
        "date trunc plus local",
        "date_trunc('day', t::timestamp + interval '1 hour')::date",
        ", 'day'::text, interval '1 hour'",
    ),
];

/// Times of two centuries, and around each change of the zone that a day shows.
const TIMES: &str = "
    CREATE TEMP TABLE times AS
    WITH days AS (
        SELECT t, extract(timezone FROM t) AS utc_offset
        FROM generate_series('1900-01-01 00:00+00'::timestamptz, '2039-12-31', '1 day') AS t
    ), changes AS (
        SELECT t FROM (SELECT t, utc_offset <> lag(utc_offset) OVER (ORDER BY t) AS is_other FROM days) AS all_days
        WHERE is_other
    )
    SELECT t + by * interval '31 minutes 7.000001 seconds' AS t FROM changes, generate_series(-50, 50, 7) AS by
    UNION ALL SELECT date_trunc('day', t) + by * interval '1 microsecond' FROM changes, generate_series(-1, 1) AS by
    UNION ALL
    SELECT '1890-01-01'::timestamptz + number * interval '199 days 5 hours 17 minutes 13.5 seconds'
    FROM generate_series(0, 300) AS number";

#[test]
fn no_time_is_out_of_its_bounds() {
    let cluster = snowflake_test::Cluster::options().start();
    let mut client = cluster.client();
    let mut checked = 0;
    for zone in ZONES.into_iter().chain(WITH_OFFSETS) {
        client.batch_execute(&format!("SET timezone = '{zone}'; DROP TABLE IF EXISTS times; {TIMES}")).unwrap();
        for (way, made, arguments) in WAYS {
            let bound = |function: &str| format!("_snowflake.{function}('{way} =', made{arguments})");
            let (earliest, latest) = (bound("earliest"), bound("latest"));
            let sql = format!(
                "SELECT count(*), count(*) FILTER (WHERE t >= {earliest} AND t <= {latest}), min(t)::text
                 FROM (SELECT t, {made} AS made FROM times) AS all_times"
            );
            let row = client.query_one(&sql, &[]).unwrap();
            let [all, within]: [i64; 2] = [row.get(0), row.get(1)];
            assert!(all > 300);
            assert_eq!(all, within, "{zone}: {made}");
            checked += all;
        }
    }
    assert!(checked > 1_000_000, "{checked}");
}

/// A bound of a range may be infinite, and so may what is made of a time, from 17 on.
#[test]
fn ranges_with_infinite_bounds_have_the_same_rows() {
    let cluster = snowflake_test::Cluster::options().start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE TABLE r (id bigint PRIMARY KEY);
             INSERT INTO r SELECT snowflake_min_id('2026-01-01+00'::timestamptz + i * interval '1 min') FROM generate_series(1, 3000) AS i;
             CREATE VIEW v AS SELECT id, snowflake_timestamp(id) AS t FROM r",
        )
        .unwrap();
    let has_infinite = snowflake_test::Installation::under_test().major() >= 17;
    let added = if has_infinite {
        &["", " + interval 'infinity'", " - interval 'infinity'", " + interval '1 h'"][..]
    } else {
        &["", " + interval '1 h'"]
    };
    let ends = ["NULL", "'infinity'", "'-infinity'", "'2026-01-02'"];
    let mut checked = 0;
    for (made, range, of_type) in [
        ("(t{})", "tstzrange", "timestamptz"),
        ("(t{})::date", "daterange", "date"),
        ("(t{})::timestamp", "tsrange", "timestamp"),
        ("(t AT TIME ZONE 'UTC'{})", "tsrange", "timestamp"),
    ] {
        for more in added {
            for (low, high) in ends.iter().flat_map(|low| ends.map(|high| (*low, high))) {
                for bounds in ["[]", "[)", "(]", "()"] {
                    let value = made.replace("{}", more);
                    let range = format!("{range}({low}, {high}, '{bounds}')");
                    for condition in [
                        format!("{value} <@ {range}"),
                        format!("{value} <@ {range}::text::{}", range.split('(').next().unwrap()),
                    ] {
                        let mut counted = |by_time| {
                            client.batch_execute(&format!("SET pg_snowflake.plan_by_time = {by_time}")).unwrap();
                            client
                                .query_one(&format!("SELECT count(*) FROM v WHERE {condition}"), &[])
                                .map(|row| row.get::<_, i64>(0))
                                .map_err(|error| error.as_db_error().unwrap().message().to_owned())
                        };
                        assert_eq!(counted("on"), counted("off"), "{condition}, of {of_type}");
                        checked += 1;
                    }
                }
            }
        }
    }
    assert!(checked > 900, "{checked}");
}

/// A generated query may have hundreds of them. Beyond some, they are filters.
#[test]
fn any_number_of_expressions_can_be_compared() {
    let cluster = snowflake_test::Cluster::options().start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE TABLE r (id bigint PRIMARY KEY, tenant integer); CREATE INDEX ON r (tenant, id);
             INSERT INTO r SELECT snowflake_min_id('2026-01-01+00'::timestamptz + i * interval '1 min'), i % 10 FROM generate_series(1, 3000) AS i; ANALYZE r",
        )
        .unwrap();
    let all: Vec<String> =
        (1..=800).map(|n| format!("snowflake_timestamp(id) + interval '{n} min' = '2026-01-02 00:00+00'")).collect();
    // Each with another takes longer by the square.
    client.batch_execute("SET statement_timeout = '20s'").unwrap();
    for count in [20, 40, 800] {
        let query = format!("SELECT count(*) FROM r WHERE {}", all[..count].join(" OR "));
        assert_eq!(client.query_one(&query, &[]).unwrap().get::<_, i64>(0), count as i64);
    }
}

/// Functions and operators of a time, each with one other argument, its type, and a value of it.
const WITH_ARGUMENTS: [(&str, &str, &str); 15] = [
    ("date_trunc({}, t)", "text", "day"),
    ("date_trunc({}, t::timestamp)", "text", "month"),
    ("date_trunc({}, t, 'Europe/Berlin')", "text", "hour"),
    ("date_trunc('day', t, {})", "text", "Asia/Kolkata"),
    ("date_bin({}, t, '2001-01-01 00:07+00')", "interval", "1 day"),
    ("date_bin('1 day', t, {})", "timestamptz", "2001-01-01 03:00+00"),
    ("date_bin('1 day', t::timestamp, {})", "timestamp", "2001-01-01 03:00"),
    ("date_bin('1 day', t::timestamp, {})::date", "timestamp", "2001-01-01 03:00"),
    ("(t AT TIME ZONE {})", "text", "America/New_York"),
    ("(t AT TIME ZONE {})", "interval", "-05:30"),
    ("(t::timestamp AT TIME ZONE {})", "interval", "02:00"),
    ("(t + {})", "interval", "1 day"),
    ("((t::date) - {})", "integer", "3"),
    ("(t - {} + timestamptz '2026-01-01 00:00+00')", "timestamptz", "2026-01-01 00:00+00"),
    ("(timestamptz '2026-01-01 00:00+00' - ({} - t))", "timestamptz", "2026-01-01 00:00+00"),
];

/// All of them are strict, so that such an argument makes the comparison NULL.
#[test]
fn what_an_argument_makes_null_is_not_left_out() {
    let cluster = snowflake_test::Cluster::options().start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE TABLE r (id bigint PRIMARY KEY, n integer);
             INSERT INTO r SELECT snowflake_min_id('2026-01-01+00'::timestamptz + i * interval '1 h'), i FROM generate_series(1, 500) AS i; ANALYZE r;
             SET timezone = 'Europe/Berlin'; SET plan_cache_mode = force_generic_plan",
        )
        .unwrap();
    let (mut checked, mut differing) = (0, Vec::new());
    for (made, of_type, value) in WITH_ARGUMENTS {
        let conditions = ["IS NOT FALSE", "IS NOT TRUE", "IS FALSE", "IS TRUE"]
            .map(|test| format!("({made} > '2026-01-10') {test}"))
            .into_iter()
            .chain(["=", "<="].map(|operator| format!("({made} {operator} '2026-01-10') IS NOT TRUE")))
            .chain(["NULL, {}", "{}, NULL"].map(|ends| {
                let range = format!("tstzrange({})", ends.replace("{}", &format!("{made}::timestamptz")));
                format!("{range} && tstzrange('2026-01-04', '2026-01-05')")
            }));
        for condition in conditions {
            let of_column = format!("(CASE WHEN n % 3 > 0 THEN '{value}' END::{of_type})");
            let of_subselect = format!("(SELECT max('{value}'::{of_type}) FROM r WHERE n < 0)");
            let plain = [of_column, of_subselect].map(|argument| condition.replace("{}", &argument));
            let prepared = condition.replace("{}", "$1");
            let prepare = format!(
                "PREPARE q({of_type}) AS SELECT count(*) FROM (SELECT n, snowflake_timestamp(id) AS t FROM r) AS v WHERE {prepared}"
            );
            let mut counted = |by_time: &str| {
                client.batch_execute(&format!("SET pg_snowflake.plan_by_time = {by_time}; {prepare}")).unwrap();
                let mut statements = vec!["EXECUTE q(NULL)".to_owned(), format!("EXECUTE q('{value}')")];
                statements.extend(plain.iter().map(|condition| {
                    format!(
                        "SELECT count(*) FROM (SELECT n, snowflake_timestamp(id) AS t FROM r) AS v WHERE {condition}"
                    )
                }));
                let counts = statements.iter().map(|statement| {
                    let rows = client.simple_query(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
                    let count = rows.iter().find_map(|row| match row {
                        postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
                        _ => None,
                    });
                    (statement.clone(), count)
                });
                let counts: Vec<_> = counts.collect();
                client.batch_execute("DEALLOCATE q").unwrap();
                counts
            };
            let (on, off) = (counted("on"), counted("off"));
            checked += on.len();
            differing.extend(
                on.into_iter().zip(off).filter(|(on, off)| on != off).map(|(on, off)| (prepared.clone(), on, off)),
            );
        }
    }
    assert!(differing.is_empty(), "{} of {checked}: {differing:#?}", differing.len());
    assert!(checked > 400, "{checked}");
}

/// Each partition is planned with all alternatives of an OR.
#[test]
fn lists_in_an_or_do_not_multiply_with_partitions() {
    let cluster = snowflake_test::Cluster::options().start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE TABLE r (id bigint NOT NULL, tenant integer) PARTITION BY RANGE (id);
             DO $$ BEGIN FOR i IN 0..99 LOOP EXECUTE format('CREATE TABLE r_%s PARTITION OF r FOR VALUES FROM (%s) TO (%s)', i,
                snowflake_min_id('2025-01-01+00'::timestamptz + i * interval '1 day'),
                snowflake_min_id('2025-01-01+00'::timestamptz + (i + 1) * interval '1 day')); END LOOP; END $$;
             CREATE INDEX ON r (id); CREATE INDEX ON r (tenant, id);
             INSERT INTO r SELECT snowflake_min_id('2025-01-01+00'::timestamptz + i * interval '15 min'), i % 10 FROM generate_series(1, 9000) AS i;
             CREATE VIEW v AS SELECT tenant, snowflake_timestamp(id) AS t FROM r",
        )
        .unwrap();
    let list = |count: usize, of_type: &str| {
        let times = (1..=count).map(|n| format!("{of_type} '2025-{:02}-{:02} 00:00+00'", 1 + n / 28, 1 + n % 28));
        times.collect::<Vec<_>>().join(", ")
    };
    let conditions = [
        format!("tenant = 3 OR t IN ({})", list(100, "timestamptz")),
        format!("tenant = 3 OR t::date IN ({})", list(100, "date")),
        format!("tenant = 3 OR t IN ({}) OR t::date IN ({})", list(1, "timestamptz"), list(90, "date")),
        format!("tenant = 3 OR tenant = 4 AND t::date IN ({})", list(100, "date")),
    ];
    client.batch_execute("SET timezone = 'UTC'; SET enable_seqscan = off").unwrap();
    for condition in conditions {
        let mut counted = |by_time: &str| {
            client.batch_execute(&format!("SET pg_snowflake.plan_by_time = {by_time}")).unwrap();
            value::<i64>(&mut client, &format!("SELECT count(*) FROM v WHERE {condition}"))
        };
        assert_eq!(counted("off"), counted("on"), "{condition}");
        let plan = client.query(&format!("EXPLAIN SELECT count(*) FROM v WHERE {condition}"), &[]).unwrap();
        assert!(plan.len() < 1500, "{} lines: {condition}", plan.len());
    }
    // By a few, partitions are pruned.
    let query = "EXPLAIN SELECT * FROM v WHERE t::date IN ('2025-01-05', '2025-04-01') OR t = '2025-03-01 00:00+00'";
    let plan: Vec<String> = client.query(query, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    // Autovacuum may have made a scan of the index alone possible.
    let is_read = |line: &&String| line.contains("Heap Scan on r_") || line.contains("Scan using r_");
    assert_eq!(plan.iter().filter(is_read).count(), 3, "{plan:#?}");
}

/// What is not known when the query is planned is computed once, to read an index, and not for each row.
#[test]
fn no_bound_is_computed_for_each_row() {
    let cluster = snowflake_test::Cluster::options().start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE TABLE r (id bigint PRIMARY KEY, tenant integer); CREATE TABLE bare (id bigint, tenant integer);
             INSERT INTO r SELECT snowflake_min_id('2026-01-01+00'::timestamptz + i * interval '1 min'), i % 10 FROM generate_series(1, 3000) AS i;
             INSERT INTO bare SELECT * FROM r; CREATE INDEX ON r (tenant); CREATE TABLE p (during tstzrange, tenant integer);
             INSERT INTO p SELECT tstzrange(snowflake_timestamp(id), snowflake_timestamp(id) + interval '1 h'), tenant FROM r WHERE id % 7 = 0;
             CREATE TABLE guarded (LIKE r INCLUDING ALL); INSERT INTO guarded SELECT * FROM r; ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
             CREATE POLICY p ON guarded USING (tenant < 9); CREATE ROLE reader; GRANT SELECT ON guarded, r, bare, p TO reader; ANALYZE",
        )
        .unwrap();
    client
        .batch_execute(
            "SET ROLE reader; SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off",
        )
        .unwrap();
    let mut checked = 0;
    for table in ["r", "bare", "guarded"] {
        for condition in [
            "T <@ tstzrange(now() - interval '1 year', now())",
            "tstzrange(now() - interval '1 year', now()) @> T AND tenant = 5",
            "T::date <@ daterange(current_date - 365, current_date)",
            "T::date >= '2020-01-01'",
            "date_trunc('month', T) = '2026-01-01'",
            "T <@ tstzmultirange(tstzrange(now() - interval '1 year', now()))",
            "tstzrange(T, T + interval '1 h') && tstzrange(now() - interval '1 year', now())",
            "T < now()",
            "T >= now() - interval '100 years' AND T < now()",
            "T = now() - interval '1 day'",
        ] {
            // Row-level security has comparisons of IDs alone evaluated first: with one call, in place of another.
            if table == "guarded" && condition.contains("now()") && !condition.contains("range") {
                continue;
            }
            let query = format!("FROM {table} WHERE {}", condition.replace('T', "snowflake_timestamp(id)"));
            let plan: Vec<String> = client
                .query(&format!("EXPLAIN (COSTS OFF) SELECT * {query}"), &[])
                .unwrap()
                .iter()
                .map(|row| row.get(0))
                .collect();
            let plan = plan.join("\n");
            assert!(plan.contains("Seq Scan"), "{query}\n{plan}");
            assert!(
                !["earliest", "latest", "min_id", "max_id"].iter().any(|call| plan.contains(call)),
                "{query}\n{plan}"
            );
            let mut counted = |by_time| {
                client.batch_execute(&format!("SET pg_snowflake.plan_by_time = {by_time}")).unwrap();
                client.query_one(&format!("SELECT count(*) {query}"), &[]).unwrap().get::<_, i64>(0)
            };
            let off = counted("off");
            assert_eq!(counted("on"), off, "{query}");
            checked += 1;
        }
    }
    assert_eq!(checked, 27);
    // Of an alternative, and of a join, the range itself comes first.
    let alternative = "EXPLAIN (COSTS OFF) SELECT * FROM r WHERE tenant = 1 OR snowflake_timestamp(id) <@ tstzrange(now() - interval '1 year', now())";
    let plan: Vec<String> = client.query(alternative, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    assert!(plan.iter().any(|line| line.contains("Filter: ") && line.contains("<@")), "{plan:#?}");
    for (table, has_bounds) in [("r", true), ("bare", false)] {
        let query = format!(
            "EXPLAIN (COSTS OFF) SELECT * FROM {table} x JOIN p ON x.tenant = p.tenant AND snowflake_timestamp(id) <@ during"
        );
        let plan: Vec<String> = client.query(&query, &[]).unwrap().iter().map(|row| row.get(0)).collect();
        let filter = plan.iter().find_map(|line| line.split_once("Join Filter: ")).unwrap().1;
        assert_eq!(filter.contains("earliest"), has_bounds, "{filter}");
        assert!(filter.find("<@").unwrap() < filter.find("earliest").unwrap_or(usize::MAX), "{filter}");
    }
}

/// Where a zone does not change, what is read is what is asked for.
#[test]
fn bounds_are_narrow() {
    let cluster = snowflake_test::Cluster::options().start();
    let mut client = cluster.client();
    client.batch_execute("SET timezone = 'Europe/Berlin'").unwrap();
    for (way, value, arguments, length) in [
        ("date local", "'2026-01-05'::date", "", "23:59:59.999999"),
        ("instant trunc local", "'2026-01-05'::timestamptz", ", 'hour'::text", "00:59:59.999999"),
        ("instant trunc local", "'2026-02-01'::timestamptz", ", 'month'::text", "31 days 23:59:59.999999"),
        ("year local", "2026::numeric", "", "364 days 23:59:59.999999"),
        ("plus", "'2026-01-05'::timestamptz", ", interval '2 days'", "00:00:00"),
        ("bin", "'2026-01-05'::timestamptz", ", interval '15 minutes'", "00:15:00"),
    ] {
        let bound = |function: &str| format!("_snowflake.{function}('{way} =', {value}{arguments})");
        let sql = format!("SELECT ({} - {})::text, '{length}'", bound("latest"), bound("earliest"));
        let row = client.query_one(&sql, &[]).unwrap();
        let [is, expected]: [String; 2] = [row.get(0), row.get(1)];
        let most = format!("SELECT interval '{is}' <= interval '{expected}'");
        assert!(client.query_one(&most, &[]).unwrap().get::<_, bool>(0), "{way}: {is}, {expected}");
    }
    for (way, value) in
        [("date local <", "'infinity'::date"), ("epoch >", "'NaN'::numeric"), ("until =", "interval '1'")]
    {
        let infinite = format!("SELECT _snowflake.earliest('{way}', {value}, NULL::timestamptz) = '-infinity'");
        assert!(client.query_one(&infinite, &[]).unwrap().get::<_, bool>(0), "{way}");
    }
}

/// The table of forms says what the planner does.
#[test]
fn each_form_of_the_page_reads_what_it_says() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/planner.md")).unwrap();
    let (_, section) = page.split_once("## What is made of a time").unwrap();
    let rows: Vec<(&str, &str)> =
        section.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix("` |")?.split_once("` | `")).collect();
    assert!(rows.len() > 15);
    let cluster = snowflake_test::Cluster::options().start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "SET timezone = 'Europe/Berlin'; SET enable_seqscan = off; CREATE TABLE orders (id bigint PRIMARY KEY);
             CREATE VIEW orders_by_time AS SELECT snowflake_timestamp(id) AS created_at, * FROM orders",
        )
        .unwrap();
    for (condition, reads) in rows {
        let sql = format!("EXPLAIN (COSTS OFF) SELECT * FROM orders_by_time WHERE {condition}");
        let plan: Vec<String> = client.query(&sql, &[]).unwrap().iter().map(|row| row.get(0)).collect();
        let read: Vec<String> = plan
            .iter()
            .filter_map(|line| line.split_once("Index Cond: "))
            .map(|(_, text)| without_types(text))
            .collect();
        // From 17 on, PostgreSQL itself makes two comparisons of this.
        let reads = match condition.contains("<@ daterange") && snowflake_test::Installation::under_test().major() >= 17
        {
            true => reads.replace("'date local <=', '2026-01-05'", "'date local <', '2026-01-06'"),
            false => reads.to_owned(),
        };
        assert_eq!(read.join(" or "), reads, "{condition}");
    }
}

/// A condition as the page has it.
fn without_types(text: &str) -> String {
    let types = ["::bigint", "::text", " with time zone", " without time zone", "::timestamp", "::interval"];
    let text = types.iter().fold(text.to_owned(), |text, of_type| text.replace(of_type, ""));
    // Numbers have no quotes.
    let mut parts: Vec<&str> = text.split('\'').collect();
    let mut new = parts.remove(0).to_owned();
    while parts.len() > 1 {
        let (within, after) = (parts.remove(0), parts.remove(0));
        let is_number = within.bytes().all(|byte| byte.is_ascii_digit()) && !after.starts_with("::");
        let quote = if is_number { "" } else { "'" };
        new.push_str(&format!("{quote}{within}{quote}{after}"));
    }
    new
}
