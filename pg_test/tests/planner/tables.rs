//! The tables: IDs of several layouts under several indexes, each with a twin that has the time as a column; and views.

use super::instants::{DAY, HOUR, SECOND, day, written};
use super::unions::{self, Unions};
use fastrand::Rng;
use postgres::Client;
use snowflake_test::value;
use std::fmt::Write as _;

/// A layout, computed here once more.
pub struct Layout {
    /// What a call names; `None` for that of the database.
    pub name: Option<&'static str>,
    /// When tick 0 begins.
    pub epoch: i64,
    /// The length of a tick.
    pub tick: i64,
    timestamp_bits: u32,
    lower_bits: u32,
}

/// That of the database.
pub const DEFAULT: Layout =
    Layout { name: None, epoch: day(2024, 1, 1), tick: 1000, timestamp_bits: 41, lower_bits: 22 };
const SONYFLAKE: Layout =
    Layout { name: Some("sonyflake"), epoch: day(2014, 9, 1), tick: 10_000, timestamp_bits: 39, lower_bits: 24 };
/// Its last ID is of November 2024.
const BAIDU: Layout = Layout {
    name: Some("baidu"),
    epoch: day(2016, 5, 19) + 16 * HOUR,
    tick: SECOND,
    timestamp_bits: 28,
    lower_bits: 35,
};
const COCKROACH: Layout =
    Layout { name: Some("cockroach"), epoch: day(2015, 1, 1), tick: 10, timestamp_bits: 48, lower_bits: 15 };
/// 53 bits, and a tick that divides no second.
pub const OWN: Layout = Layout {
    name: Some("timestamp=37 worker=6 sequence=10 tick=7ms epoch=2020-01-01T00:00:00Z"),
    epoch: day(2020, 1, 1),
    tick: 7000,
    timestamp_bits: 37,
    lower_bits: 16,
};

impl Layout {
    fn last_tick(&self) -> i64 {
        (1 << self.timestamp_bits) - 1
    }

    /// When the last tick ends.
    pub fn end(&self) -> i64 {
        self.start_of(self.last_tick() + 1)
    }

    fn start_of(&self, tick: i64) -> i64 {
        self.epoch + tick * self.tick
    }

    fn tick_at(&self, instant: i64) -> i64 {
        ((instant - self.epoch).div_euclid(self.tick)).clamp(0, self.last_tick())
    }

    /// The lowest ID of a tick.
    fn lowest(&self, instant: i64) -> i64 {
        self.tick_at(instant) << self.lower_bits
    }
}

/// Where most times are: three months in which several time zones begin or end their summer time.
pub const SINCE: i64 = day(2024, 2, 1);
pub const UNTIL: i64 = day(2024, 5, 1);

/// A table.
pub struct Table {
    pub name: &'static str,
    pub layout: &'static Layout,
    /// The times of its rows.
    pub times: Vec<i64>,
    /// Whether its rows name their layout in a column.
    pub mixed: bool,
}

/// How a table is created.
pub struct Definition {
    name: &'static str,
    layout: &'static Layout,
    rows: usize,
    /// The definition of the ID's column, and what follows.
    id: &'static str,
    after: &'static str,
}

/// A table of a layout: its name, number of rows, the definition of the ID, and what follows, where `{t}` is the table or
/// its twin, and `{time}` the time of its IDs.
pub const fn table(
    name: &'static str,
    layout: &'static Layout,
    rows: usize,
    id: &'static str,
    after: &'static str,
) -> Definition {
    Definition { name, layout, rows, id, after }
}

const TABLES: [Definition; 32] = [
    table("plain", &DEFAULT, 1200, "bigint PRIMARY KEY", ""),
    table("descending", &DEFAULT, 300, "bigint NOT NULL", "CREATE INDEX ON {t} (id DESC)"),
    table("by_tenant", &DEFAULT, 400, "bigint NOT NULL", "CREATE INDEX ON {t} (tenant, id)"),
    table("by_tenant_down", &DEFAULT, 300, "bigint NOT NULL", "CREATE INDEX ON {t} (tenant DESC, id DESC, n)"),
    table("by_n", &DEFAULT, 300, "bigint NOT NULL", "CREATE UNIQUE INDEX ON {t} (id, n)"),
    table("covered", &DEFAULT, 400, "bigint NOT NULL", "CREATE UNIQUE INDEX ON {t} (id) INCLUDE (tenant, n, due)"),
    table("partial", &DEFAULT, 400, "bigint NOT NULL", "CREATE INDEX ON {t} (id) WHERE n > 3"),
    table("partly", &DEFAULT, 400, "bigint PRIMARY KEY", PARTLY),
    table("bare", &DEFAULT, 300, "bigint", ""),
    table("typed", &DEFAULT, 300, "event_id PRIMARY KEY", ""),
    table("of_type", &DEFAULT, 400, "snowflake_id PRIMARY KEY", ""),
    table("of_type_by_tenant", &DEFAULT, 300, "snowflake_id NOT NULL", "CREATE INDEX ON {t} (tenant, id DESC)"),
    table("of_type_timed", &OWN, 300, "snowflake_id PRIMARY KEY", "CREATE INDEX ON {t} (({time}))"),
    table("gaps", &DEFAULT, 300, "bigint UNIQUE", ""),
    table("gaps_first", &DEFAULT, 300, "bigint", "CREATE INDEX ON {t} (id NULLS FIRST)"),
    table("gaps_down", &DEFAULT, 300, "bigint", "CREATE INDEX ON {t} (id DESC NULLS LAST, n)"),
    table("expressed", &DEFAULT, 300, "bigint PRIMARY KEY", "CREATE INDEX ON {t} (({time}))"),
    table("guarded", &DEFAULT, 400, "bigint PRIMARY KEY", GUARD),
    table("pieces", &DEFAULT, 500, "bigint PRIMARY KEY", ""),
    table("deep_pieces", &SONYFLAKE, 400, "bigint NOT NULL", "CREATE INDEX ON {t} (id)"),
    table("sony", &SONYFLAKE, 400, "bigint PRIMARY KEY", ""),
    table("baidu", &BAIDU, 400, "bigint PRIMARY KEY", ""),
    table("cockroach", &COCKROACH, 300, "bigint PRIMARY KEY", ""),
    table("own", &OWN, 400, "bigint PRIMARY KEY", ""),
    table("timed", &DEFAULT, 300, "bigint NOT NULL", "CREATE INDEX ON {t} (({time}))"),
    table("timed_own", &OWN, 300, "bigint", "CREATE INDEX ON {t} (tenant, ({time}) DESC)"),
    table("timed_part", &DEFAULT, 300, "bigint", "CREATE INDEX ON {t} (tenant) WHERE {time} >= '2024-03-10+00'"),
    table("timed_parts", &DEFAULT, 300, "bigint NOT NULL", TIMED_PARTS),
    table("time_pieces", &DEFAULT, 400, "bigint NOT NULL", ""),
    table("deep_time_pieces", &SONYFLAKE, 400, "bigint NOT NULL", "CREATE INDEX ON {t} (id)"),
    table("heirs", &DEFAULT, 400, "bigint NOT NULL", HEIRS),
    table("estimated", &DEFAULT, 400, "bigint PRIMARY KEY", STATISTICS),
];

/// Partial indexes beside a full one.
const PARTLY: &str = "CREATE INDEX ON {t} (id) WHERE n > 3; CREATE INDEX ON {t} (id, n) WHERE tenant = 2";

/// Partial indexes over the time, or of a part of it.
const TIMED_PARTS: &str = "
    CREATE INDEX ON {t} (({time}), n) WHERE {time} < '2024-03-10 00:00:02+00' AND n > 2;
    CREATE INDEX ON {t} (n) WHERE {time} IS NOT NULL";

/// Tables that inherit, with what their rows are checked for. Rows are moved there later.
const HEIRS: &str = "
    CREATE TABLE {t}_old (CHECK ({time} < '2024-03-10 00:00:02+00'), PRIMARY KEY (id)) INHERITS ({t});
    CREATE TABLE {t}_new (CHECK ({time} >= '2024-03-10 00:00:02+00')) INHERITS ({t});
    CREATE INDEX ON {t}_new (({time}))";

/// Moves rows to the tables that inherit.
const INHERIT: &str = "
    WITH moved AS (DELETE FROM ONLY {t} WHERE {time} < '2024-03-10 00:00:02+00' AND tenant <> 3 RETURNING *)
    INSERT INTO {t}_old SELECT * FROM moved;
    WITH moved AS (DELETE FROM ONLY {t} WHERE {time} >= '2024-03-10 00:00:02+00' AND tenant <> 3 RETURNING *)
    INSERT INTO {t}_new SELECT * FROM moved";

/// Statistics that somebody made.
const STATISTICS: &str = "
    CREATE STATISTICS {t}_time (KINDS) ON ({time}), n FROM {t};
    CREATE STATISTICS {t}_days ON (date_trunc('day', {time} AT TIME ZONE 'UTC')) FROM {t}";

/// Row-level security that uses the time.
pub const GUARD: &str = "
    ALTER TABLE {t} ENABLE ROW LEVEL SECURITY;
    CREATE POLICY seen ON {t} USING ({time} < '2024-03-20+00' OR tenant = 1);
    CREATE POLICY not_seen ON {t} AS RESTRICTIVE USING ({time} >= '2024-02-10' AND n IS NOT NULL)";

/// Views of every table, and a function like a view. `{columns}` are the table's and the time.
const VIEWS: [&str; 9] = [
    "CREATE VIEW {t}_d AS SELECT {decoded} FROM {t}",
    "CREATE VIEW {t}_v AS SELECT {columns} FROM {t}",
    "CREATE VIEW {t}_n AS SELECT * FROM (SELECT * FROM {t}_v WHERE n IS DISTINCT FROM 3) AS kept WHERE tenant >= 0",
    "CREATE VIEW {t}_b WITH (security_barrier) AS SELECT {columns} FROM {t} WHERE tenant <> 2",
    "CREATE VIEW {t}_m WITH (security_barrier) AS SELECT * FROM {t}_v WHERE created_at >= '2024-02-20+00'",
    "CREATE VIEW {t}_u AS SELECT * FROM {t}_v WHERE n > 5 UNION ALL SELECT {plain} FROM plain{twin}",
    "CREATE VIEW {t}_i {invoker} AS SELECT {columns} FROM {t}",
    "CREATE VIEW {t}_o AS SELECT * FROM (SELECT {columns} FROM {t} OFFSET 0) AS fenced",
    "CREATE FUNCTION {t}_since(since timestamptz) RETURNS SETOF {t}_v LANGUAGE sql STABLE \
     AS 'SELECT * FROM {t}_v WHERE created_at >= since'",
];

/// The suffixes of views through which rows can be changed.
pub const UPDATABLE: [&str; 5] = ["v", "d", "b", "m", "i"];

/// All tables, and what the generator knows of them.
pub struct Schema {
    pub tables: Vec<Table>,
    pub major: i64,
    /// How many rows `moments` has; its `k` are from 1.
    pub moments: i64,
    /// For each of the views that are a UNION ALL, the number of the table whose times are in it.
    pub unions: Vec<usize>,
}

/// The time of an ID, as the table's views have it.
pub fn plain_time(table: &Table, id: &str) -> String {
    if table.mixed {
        let layout = id.replace("id", "layout");
        return format!("snowflake_timestamp({id}, {layout})");
    }
    match table.layout.name {
        None => format!("snowflake_timestamp({id})"),
        Some(name) => format!("snowflake_timestamp({id}, '{name}')"),
    }
}

impl Schema {
    /// Creates and fills all tables.
    pub fn create(client: &mut Client, seed: u64) -> Self {
        let now: i64 = value(client, "SELECT (extract(epoch FROM date_trunc('minute', now())) * 1000000)::bigint");
        let major: i64 = value(client, "SELECT current_setting('server_version_num')::bigint / 10000");
        client
            .batch_execute(
                "CREATE ROLE reader; CREATE TABLE sink (id bigint, t timestamptz); GRANT ALL ON sink TO reader;
                 CREATE DOMAIN event_id AS bigint CHECK (VALUE >= 0);
                 ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO reader",
            )
            .unwrap();
        let mut schema = Self { tables: Vec::new(), major, moments: 0, unions: Vec::new() };
        let mut rng = Rng::with_seed(seed);
        let common: Vec<i64> = (0..60).map(|_| rng.i64(SINCE / SECOND..UNTIL / SECOND) * SECOND).collect();
        for definition in &TABLES {
            schema.create_table(client, &mut rng, definition, &common, now);
        }
        schema.create_mixed(client, &mut rng);
        schema.create_moments(client, &mut rng, &common);
        schema.create_unions(client, &mut rng);
        client.batch_execute("VACUUM ANALYZE").unwrap();
        schema
    }

    /// Creates further tables, and leaves only these to the generator.
    pub fn only(&mut self, client: &mut Client, definitions: &[Definition]) {
        self.tables.clear();
        self.unions.clear();
        let common = [day(2024, 3, 1), day(2024, 3, 10)];
        for definition in definitions {
            self.create_table(client, &mut Rng::with_seed(1), definition, &common, UNTIL);
        }
    }

    fn create_table(&mut self, client: &mut Client, rng: &mut Rng, definition: &Definition, common: &[i64], now: i64) {
        let times = times(rng, definition.layout, definition.rows, common, now);
        let table = Table { name: definition.name, layout: definition.layout, times, mixed: false };
        let nullable = matches!(definition.id, "bigint" | "bigint UNIQUE");
        let ids = ids(rng, &table, nullable);
        create_with_twin(client, rng, &table, definition, &ids);
        create_views(client, &table, self.major);
        self.tables.push(table);
    }

    /// A table whose rows are of different layouts.
    fn create_mixed(&mut self, client: &mut Client, rng: &mut Rng) {
        let mut rows = Vec::new();
        let mut times = Vec::new();
        for name in ["plain", "sony", "own", "cockroach"] {
            let table = self.tables.iter().find(|table| table.name == name).unwrap();
            let layout = table.layout.name.unwrap_or("default");
            for &time in table.times.iter().take(80) {
                let id = table.layout.lowest(time) | rng.i64(0..1 << table.layout.lower_bits);
                rows.push(format!("({id}, {}, {}, '{}+00', '{layout}')", rng.u8(..5), rng.u8(..10), written(time)));
                times.push(time);
            }
        }
        let table = Table { name: "mixed", layout: &DEFAULT, times, mixed: true };
        let columns =
            "id bigint PRIMARY KEY, tenant integer NOT NULL, n integer, due timestamptz, layout text NOT NULL";
        client
            .batch_execute(&format!("CREATE TABLE mixed ({columns}); INSERT INTO mixed VALUES {}", rows.join(", ")))
            .unwrap();
        client
            .batch_execute(&format!(
                "CREATE TABLE mixed_twin ({columns}, created_at timestamptz);
                 INSERT INTO mixed_twin SELECT *, snowflake_timestamp(id, layout) FROM mixed;
                 CREATE INDEX ON mixed_twin (created_at)"
            ))
            .unwrap();
        create_views(client, &table, self.major);
        self.tables.push(table);
    }

    /// What a UNION ALL is made of.
    pub fn parts_of_unions(&self) -> Unions<'_> {
        Unions { tables: &self.tables, views: self.unions.len(), has_invokers: self.major >= 15 }
    }

    /// Views that are a UNION ALL, of tables, and of those before them.
    fn create_unions(&mut self, client: &mut Client, rng: &mut Rng) {
        for number in 0..unions::VIEWS {
            let first = rng.usize(..self.tables.len());
            for view in self.parts_of_unions().view(rng, &self.tables[first], number) {
                client.batch_execute(&view).unwrap_or_else(|error| panic!("{view}: {error:?}"));
            }
            self.unions.push(first);
        }
    }

    /// Instants of all three types. Arithmetic with those of the first three columns does not overflow.
    fn create_moments(&mut self, client: &mut Client, rng: &mut Rng, common: &[i64]) {
        client
            .batch_execute(
                "CREATE TABLE moments (k integer PRIMARY KEY, tenant integer, at timestamptz, ts timestamp, d date, \
                 far_at timestamptz, far_ts timestamp, far_d date, until timestamptz)",
            )
            .unwrap();
        let near = ["NULL", "infinity", "-infinity", "1970-01-01", "3000-01-01", "2024-01-01", "2093-09-07"];
        let far_at = ["294276-12-31 23:59:59.999999+00", "4714-11-24 00:00:00+00 BC", "infinity", "-infinity"];
        let far_ts = ["294276-12-31 23:59:59.999999", "4714-11-24 00:00:00 BC", "infinity", "-infinity"];
        let far_d = ["5874897-12-31", "4714-11-24 BC", "infinity", "-infinity"];
        let quoted = |text: &str| if text == "NULL" { text.to_owned() } else { format!("'{text}'") };
        let mut rows = Vec::new();
        for k in 1..=40 {
            let mut ordinary = |zone: &str| {
                if rng.u8(..100) < 15 {
                    return quoted(near[rng.usize(..near.len())]);
                }
                let table = &self.tables[rng.usize(..self.tables.len())];
                let from = if rng.bool() { common } else { &table.times };
                let instant = from[rng.usize(..from.len())].clamp(SINCE, UNTIL) + [0, 0, 1, -1, HOUR][rng.usize(..5)];
                format!("'{}{zone}'", written(instant))
            };
            let (at, ts, d, until) = (ordinary("+00"), ordinary(""), ordinary(""), ordinary("+00"));
            let mut far = |texts: &[&str], ordinary: &str| {
                if rng.bool() { quoted(texts[rng.usize(..texts.len())]) } else { ordinary.to_owned() }
            };
            let (far_at, far_ts, far_d) = (far(&far_at, &at), far(&far_ts, &ts), far(&far_d, &d));
            rows.push(format!("({k}, {}, {at}, {ts}, {d}, {far_at}, {far_ts}, {far_d}, {until})", k % 5));
        }
        self.moments = 40;
        client.batch_execute(&format!("INSERT INTO moments VALUES {}", rows.join(", "))).unwrap();
    }
}

/// Times of rows: many in a few seconds, several in the same tick, some that other tables have too, some of the last two days, and the ends of
/// the layout.
fn times(rng: &mut Rng, layout: &Layout, count: usize, common: &[i64], now: i64) -> Vec<i64> {
    let edges = [layout.epoch, layout.epoch + layout.tick, layout.end() - 1, layout.end() - layout.tick - 1];
    let mut times: Vec<i64> = edges.into();
    while times.len() < count {
        let time = match rng.u8(..100) {
            0..30 => common[rng.usize(..common.len())],
            30..50 => day(2024, 3, 10) + rng.i64(0..5 * SECOND),
            50..65 if now < layout.end() => now - rng.i64(0..2 * DAY),
            65..78 => *times.last().unwrap(),
            78..80 => layout.epoch + rng.i64(0..layout.end() - layout.epoch),
            _ => SINCE + rng.i64(0..UNTIL - SINCE),
        };
        times.push(layout.start_of(layout.tick_at(time)));
    }
    times.iter().map(|&time| layout.start_of(layout.tick_at(time))).collect()
}

/// An ID for each time, all distinct.
fn ids(rng: &mut Rng, table: &Table, nullable: bool) -> Vec<Option<i64>> {
    let mut used = std::collections::HashSet::new();
    let mut id = |&time: &i64| {
        loop {
            let lower = match rng.u8(..10) {
                0 => 0,
                1 => (1 << table.layout.lower_bits) - 1,
                _ => rng.i64(0..1 << table.layout.lower_bits),
            };
            let id = table.layout.lowest(time) | lower;
            if used.insert(id) {
                return (!nullable || rng.u8(..10) > 0).then_some(id);
            }
        }
    };
    table.times.iter().map(&mut id).collect()
}

fn create_with_twin(client: &mut Client, rng: &mut Rng, table: &Table, definition: &Definition, ids: &[Option<i64>]) {
    let name = table.name;
    let mut rows = String::new();
    for (id, &time) in ids.iter().zip(&table.times) {
        let id = id.map_or("NULL".to_owned(), |id| id.to_string());
        let n = if rng.u8(..10) == 0 { "NULL".to_owned() } else { rng.u8(..10).to_string() };
        let due = match rng.u8(..10) {
            0 => "NULL".to_owned(),
            1 => "'infinity'".to_owned(),
            2 | 3 => format!("'{}+00'", written(time)),
            _ => format!("'{}+00'", written(time.clamp(SINCE, UNTIL) + rng.i64(-DAY..DAY))),
        };
        let comma = if rows.is_empty() { "" } else { ", " };
        write!(rows, "{comma}({id}, {}, {n}, {due})", rng.u8(..5)).unwrap();
    }
    let (ours, twin) = (plain_time(table, "id"), "created_at");
    // PostgreSQL asserts, and does not see to it, that a query has one condition on an expression that there are dependencies of.
    let has_assertions: String = value(client, "SHOW debug_assertions");
    let kinds = if has_assertions == "on" { "ndistinct, mcv" } else { "ndistinct, dependencies, mcv" };
    for (t, time, column) in
        [(name.to_owned(), ours.as_str(), ""), (format!("{name}_twin"), twin, ", created_at timestamptz")]
    {
        let columns = format!("id {}, tenant integer NOT NULL, n integer, due timestamptz{column}", definition.id);
        let create = format!("CREATE TABLE {t} ({columns}){}", partitions(table, &t, time));
        client.batch_execute(&create).unwrap_or_else(|error| panic!("{create}: {error:?}"));
        let after = definition.after.replace("{t}", &t).replace("{time}", time).replace("KINDS", kinds);
        client.batch_execute(&after).unwrap_or_else(|error| panic!("{after}: {error:?}"));
    }
    client.batch_execute(&format!("INSERT INTO {name} VALUES {rows}")).unwrap();
    client
        .batch_execute(&format!(
            "INSERT INTO {name}_twin SELECT id, tenant, n, due, {ours} FROM {name};
             CREATE INDEX ON {name}_twin (created_at)"
        ))
        .unwrap();
    if definition.after == HEIRS {
        for (t, time) in [(name.to_owned(), ours.as_str()), (format!("{name}_twin"), twin)] {
            client.batch_execute(&INHERIT.replace("{t}", &t).replace("{time}", time)).unwrap();
        }
    }
}

/// What makes a table partitioned, and its partitions. `time` is the time of its IDs.
fn partitions(table: &Table, t: &str, time: &str) -> String {
    let (by_time, deep) = match table.name {
        "pieces" => (false, false),
        "deep_pieces" => (false, true),
        "time_pieces" => (true, false),
        "deep_time_pieces" => (true, true),
        _ => return String::new(),
    };
    let days = [(2024, 1, 1), (2024, 2, 15), (2024, 3, 10), (2024, 4, 1), (2024, 6, 1)];
    let mut bounds = days.map(|(year, month, first)| {
        let instant = day(year, month, first);
        if by_time { format!("'{}+00'", written(instant)) } else { table.layout.lowest(instant).to_string() }
    });
    if by_time {
        // Some minor versions, 16.14 among them, overlook a default partition: WHERE (t < 1 OR t > 2) AND t IS NOT NULL.
        bounds[0] = "MINVALUE".to_owned();
        bounds[4] = "MAXVALUE".to_owned();
    }
    let key = if by_time { format!("({time})") } else { "id".to_owned() };
    let mut text = format!(" PARTITION BY RANGE ({key})");
    for (number, bound) in bounds.windows(2).enumerate() {
        write!(text, "; CREATE TABLE {t}_{number} PARTITION OF {t} FOR VALUES FROM ({}) TO ({})", bound[0], bound[1])
            .unwrap();
        if deep && number == 1 {
            write!(
                text,
                " PARTITION BY LIST (tenant); CREATE TABLE {t}_low PARTITION OF {t}_1 FOR VALUES IN (0, 1, 2); \
                 CREATE TABLE {t}_high PARTITION OF {t}_1 DEFAULT"
            )
            .unwrap();
        }
    }
    if !by_time {
        write!(text, "; CREATE TABLE {t}_rest PARTITION OF {t} DEFAULT").unwrap();
    }
    text
}

fn create_views(client: &mut Client, table: &Table, major: i64) {
    let invoker = if major < 15 { "" } else { "WITH (security_invoker)" };
    let (time, decoded) = (plain_time(table, "id"), plain_time(table, "id").replace("_timestamp(", "_decode("));
    for (twin, time, decoded, plain) in [
        ("", time.as_str(), &format!("({decoded}).timestamp"), "snowflake_timestamp(id)"),
        ("_twin", "created_at", &"created_at".to_owned(), "created_at"),
    ] {
        for view in VIEWS {
            let columns = |time: &str| format!("id::bigint AS id, tenant, n, due, {time} AS created_at");
            let view = view
                .replace("{t}", &format!("{}{twin}", table.name))
                .replace("{twin}", twin)
                .replace("{invoker}", invoker)
                .replace("{columns}", &columns(time))
                .replace("{decoded}", &columns(decoded))
                .replace("{plain}", &columns(plain));
            client.batch_execute(&view).unwrap_or_else(|error| panic!("{view}: {error:?}"));
        }
    }
}
