//! Planning takes a constant for each partition, member and condition. What it takes with the parameter is compared with what it takes
//! without, side by side in one session, so that a slow machine is as slow for both.

use std::fs;

use postgres::{Client, SimpleQueryMessage};
use serde_json::Value;
use snowflake_test::Cluster;

/// What planning a query takes: milliseconds of a processor, which others on a busy machine do not add to, and from PostgreSQL 17 on
/// kilobytes.
#[derive(Clone, Copy, Debug)]
struct Planning {
    time: f64,
    memory: f64,
}

impl Planning {
    fn least(self, other: Self) -> Self {
        Self { time: self.time.min(other.time), memory: self.memory.min(other.memory) }
    }
}

/// How often it is measured, at most.
const ATTEMPTS: usize = 4;

/// How often each is planned. The shortest time counts, as others disturb it least.
const ROUNDS: usize = 5;

/// How many times larger the larger one is.
const LARGER: u32 = 8;

/// How much faster the addition may grow: far below the square.
const FACTOR: f64 = 3.0;

/// What the parameter may add of what is there without it. Less says nothing of growth.
const SMALL: f64 = 0.3;

struct Session {
    _cluster: Cluster,
    client: Client,
    process: i32,
    has_memory: bool,
}

impl Session {
    fn new() -> Self {
        let cluster = super::cluster_with(&["max_locks_per_transaction = 1024"]);
        let mut client = cluster.client();
        let major: i32 =
            snowflake_test::value(&mut client, "SELECT current_setting('server_version_num')::integer / 10000");
        let process = snowflake_test::value(&mut client, "SELECT pg_backend_pid()");
        Self { _cluster: cluster, client, process, has_memory: major >= 17 }
    }

    /// Milliseconds for which a processor has run the server's process so far.
    fn processor(&self) -> f64 {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.process)).unwrap();
        let nanoseconds: f64 = text.split(' ').next().unwrap().parse().unwrap();
        nanoseconds / 1e6
    }

    fn run(&mut self, text: &str) {
        self.client.batch_execute(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    }

    fn plan(&mut self, query: &str, state: &str) -> Planning {
        let options = if self.has_memory { "MEMORY, FORMAT JSON" } else { "FORMAT JSON" };
        let text = format!("SET pg_snowflake.plan_by_time = {state}; EXPLAIN ({options}) {query}");
        let before = self.processor();
        let messages = self.client.simple_query(&text).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        let row = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        };
        let time = self.processor() - before;
        let plan: Value = serde_json::from_str(&messages.iter().find_map(row).unwrap()).unwrap();
        Planning { time, memory: plan[0]["Planning"]["Memory Used"].as_f64().unwrap_or(0.0) }
    }

    /// With the parameter on, and off.
    fn both(&mut self, query: &str) -> [Planning; 2] {
        // Tables that are planned for the first time are read from the catalogue.
        self.plan(query, "on");
        let mut least = [Planning { time: f64::MAX, memory: f64::MAX }; 2];
        for _ in 0..ROUNDS {
            for (least, state) in least.iter_mut().zip(["on", "off"]) {
                let found = self.plan(query, state);
                *least = least.least(found);
            }
        }
        least
    }

    /// What the parameter adds to planning grows with the size and not with its square.
    #[track_caller]
    fn grows_with_the_size(&mut self, title: &str, small: &str, large: &str) {
        self.grows(title, f64::from(LARGER), |session| [session.both(small), session.both(large)]);
    }

    /// What the first adds to the second grows no faster than that does, or than this, of a small and a large one. Where it seems to, it is measured
    /// again, as a processor that is shared may be slow for all of one measurement.
    #[track_caller]
    fn grows(&mut self, title: &str, larger: f64, measured: impl Fn(&mut Self) -> [[Planning; 2]; 2]) {
        let mut least = measured(self);
        for _ in 1..ATTEMPTS {
            if self.excess(least, larger).is_none() {
                return;
            }
            for (least, found) in least.iter_mut().flatten().zip(measured(self).into_iter().flatten()) {
                *least = least.least(found);
            }
        }
        if let Some(excess) = self.excess(least, larger) {
            panic!("{title}: {excess}; with and without, small and large: {least:?}");
        }
    }

    /// How much faster it grows, where that is too much.
    fn excess(&self, [small, large]: [[Planning; 2]; 2], larger: f64) -> Option<String> {
        let figures: [fn(&Planning) -> f64; 2] = [|planning| planning.time, |planning| planning.memory];
        figures.into_iter().take(1 + usize::from(self.has_memory)).find_map(|figure| {
            let added = |[on, off]: &[Planning; 2]| (figure(on) - figure(off)).max(SMALL * figure(off));
            let larger = (figure(&large[1]) / figure(&small[1])).max(larger);
            let (small, large) = (added(&small), added(&large));
            let times = large / small;
            (times > FACTOR * larger).then(|| {
                format!(
                    "added to what costs {larger:.0} times as much is {times:.0} times as much ({small:.3}, {large:.3})"
                )
            })
        })
    }
}

/// A table `name` of so many partitions by the ID, a day each, with an index.
fn partitions(name: &str, count: u32) -> String {
    format!(
        "CREATE TABLE {name} (id bigint, n integer) PARTITION BY RANGE (id); CREATE INDEX ON {name} (id); \
         DO $$ BEGIN FOR i IN 0..{} LOOP EXECUTE format('CREATE TABLE {name}_%s PARTITION OF {name} FOR VALUES FROM (%s) TO (%s)', i, \
         snowflake_min_id('2025-01-01'::timestamptz + i * interval '1 day'), \
         snowflake_min_id('2025-01-01'::timestamptz + (i + 1) * interval '1 day')); END LOOP; END $$; ANALYZE {name}",
        count - 1
    )
}

const T: &str = "snowflake_timestamp(id)";

#[test]
fn planning_grows_with_the_number_of_partitions() {
    let mut session = Session::new();
    session.run(&(partitions("small", 250) + ";" + &partitions("large", 250 * LARGER)));
    for query in [
        format!("SELECT * FROM parts ORDER BY {T} DESC LIMIT 10"),
        format!("SELECT * FROM parts WHERE {T} >= '2025-02-01' AND {T} < now() + interval '10 years'"),
        format!("SELECT max({T}) FROM parts"),
    ] {
        session.grows_with_the_size(&query, &query.replace("parts", "small"), &query.replace("parts", "large"));
    }
}

#[test]
fn planning_grows_with_the_number_of_partitions_that_are_joined() {
    let mut session = Session::new();
    for (name, count) in [("small", 50), ("large", 50 * LARGER)] {
        session.run(&(partitions(&format!("{name}_a"), count) + ";" + &partitions(&format!("{name}_b"), count)));
    }
    let join =
        "SELECT count(*) FROM parts_a AS a JOIN parts_b AS b ON snowflake_timestamp(a.id) = snowflake_timestamp(b.id)";
    session.grows_with_the_size(join, &join.replace("parts", "small"), &join.replace("parts", "large"));
}

#[test]
fn planning_grows_with_the_number_of_members() {
    let mut session = Session::new();
    let member =
        |number: u32, layout: &str| format!("SELECT id, snowflake_timestamp(id{layout}) AS t FROM member_{number}");
    session.run(&format!(
        "DO $$ BEGIN FOR i IN 0..{} LOOP EXECUTE format('CREATE TABLE member_%s (id bigint PRIMARY KEY)', i); END LOOP; END $$",
        50 * LARGER
    ));
    for other in ["", ", 'sonyflake'"] {
        let mut all = |name: &str, count: u32| {
            let members: Vec<_> =
                (0..count).map(|number| member(number, if number == 3 { other } else { "" })).collect();
            session.run(&format!("CREATE OR REPLACE VIEW {name} AS {}", members.join(" UNION ALL ")));
        };
        all("small", 50);
        all("large", 50 * LARGER);
        for query in [
            "SELECT * FROM parts WHERE t >= '2026-01-01' AND t < '2026-02-01'",
            "SELECT * FROM parts ORDER BY t DESC LIMIT 10",
        ] {
            let title = format!("{query}, one of them {other}");
            session.grows_with_the_size(&title, &query.replace("parts", "small"), &query.replace("parts", "large"));
        }
    }
}

#[test]
fn planning_grows_with_the_number_of_conditions() {
    let mut session = Session::new();
    session.run(
        "CREATE TABLE r (id bigint PRIMARY KEY, n integer); \
         INSERT INTO r SELECT snowflake_min_id('2026-01-01'::timestamptz + n * interval '1 minute'), n FROM generate_series(1, 5000) n; \
         ANALYZE r",
    );
    for joined in [" AND ", " OR "] {
        let query = |count: u32| {
            let all: Vec<_> =
                (0..count).map(|n| format!("{T} >= timestamptz '2026-01-01+00' + {n} * interval '1 s'")).collect();
            format!("SELECT count(*) FROM r WHERE {}", all.join(joined))
        };
        session.grows_with_the_size(&format!("conditions with{joined}"), &query(75), &query(75 * LARGER));
    }
    let constants = |count: u32| {
        let all: Vec<_> = (0..count).map(|n| format!("'2026-01-02 00:00:{:02}.{n:06}+00'", n % 60)).collect();
        format!("SELECT count(*) FROM r WHERE {T} IN ({})", all.join(", "))
    };
    session.grows_with_the_size("times in a list", &constants(75), &constants(75 * LARGER));
}

/// A join of several tables by equal times takes longer with each table as one by equal columns does: the number of ways to join them is
/// what takes the time.
#[test]
fn planning_grows_with_the_number_of_joins_as_with_a_column() {
    let mut session = Session::new();
    for number in 0..6 {
        session.run(&format!(
            "CREATE TABLE r{number} (id bigint PRIMARY KEY, created_at timestamptz); INSERT INTO r{number} SELECT snowflake_min_id(at), at \
             FROM (SELECT '2026-01-01'::timestamptz + n * interval '1 minute' AS at FROM generate_series(1, 2000) n) x; \
             CREATE INDEX ON r{number} (created_at); ANALYZE r{number}"
        ));
    }
    let query = |tables: usize, time: fn(usize) -> String| {
        let joins: Vec<_> = (1..tables).map(|n| format!(" JOIN r{n} ON {} = {}", time(n), time(n - 1))).collect();
        format!("SELECT count(*) FROM r0{}", joins.concat())
    };
    session.grows("joins by equal times", 2.0, |session| {
        [3, 6].map(|tables| {
            let [on, _] = session.both(&query(tables, |n| format!("snowflake_timestamp(r{n}.id)")));
            let [column, _] = session.both(&query(tables, |n| format!("r{n}.created_at")));
            [on, column]
        })
    });
}
