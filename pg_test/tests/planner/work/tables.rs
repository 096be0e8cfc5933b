//! Random tables, each twice: with the time in the ID alone, and with the same rows and the time as a column of its own.

use super::super::instants::{DAY, SECOND, written};
use super::indexes::{self, Index};
use super::{Way, draw};
use fastrand::Rng;
use postgres::Client;
use snowflake_test::value;

/// The tables that each schema has.
const TABLES: usize = 9;
/// How long before the test the first rows are.
pub const SPAN: i64 = 60 * DAY;
/// The tenants of all tables, from 0.
pub const TENANTS: u8 = 8;
/// `n` is below this.
pub const HIGHEST_N: u16 = 1000;

/// How a table is divided.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Division {
    None,
    ById,
    ByTime,
    /// By `(snowflake_decode(id)).timestamp`.
    ByDecoded,
    TenantThenId,
    TenantThenTime,
    IdThenTenant,
    /// Children by inheritance, each with some of the time; the parent is empty.
    Heirs,
}

/// A table, and its form with a column.
pub struct Table {
    pub name: String,
    /// What a call names; `None` for the layout of the database.
    pub layout: Option<&'static str>,
    pub division: Division,
    pub nullable: bool,
    /// Some rows: time, ID and tenant.
    pub known: Vec<(i64, i64, i32)>,
    pub indexes: Vec<Index>,
    /// The statements that made it.
    pub made_by: Vec<String>,
}

/// What queries may read.
pub struct Schema {
    pub tables: Vec<Table>,
    /// Members of the views `all_0`, `all_1` and so on, by their numbers.
    pub unions: Vec<Vec<usize>>,
    /// The hour in which the test began; the last rows are of then.
    pub base: i64,
    /// How many rows `few` and `many` have.
    pub probes: [u32; 2],
}

impl Table {
    /// The name in one of the two forms.
    pub fn named(&self, way: Way) -> String {
        format!("{}{}", self.name, way.suffix())
    }

    pub fn has_index_on_time(&self) -> bool {
        self.indexes.iter().any(Index::is_on_time)
    }

    /// Whether it has an index on the ID and nothing else.
    pub fn has_index_on_id_alone(&self) -> bool {
        self.division != Division::Heirs && self.indexes.iter().any(Index::is_on_id_alone)
    }

    /// Those of its indexes that have the time and not the ID, with that, as statements.
    pub fn indexes_with_the_id(&self) -> Vec<String> {
        let has_children = self.division == Division::Heirs;
        self.indexes.iter().filter(|_| !has_children).filter_map(|index| index.with_the_id(self)).collect()
    }

    /// Statements that make statistics of its time.
    pub fn statistics(&self) -> [String; 2] {
        let (name, time) = (&self.name, self.time(Way::Ids, ""));
        [format!("CREATE STATISTICS {name}_time ON ({time}) FROM {name}"), format!("ANALYZE {name}")]
    }

    /// Whether it has anything on the ID that serves its ranges.
    pub fn has_ids(&self) -> bool {
        let by_id = [Division::ById, Division::TenantThenId, Division::IdThenTenant].contains(&self.division);
        by_id || self.indexes.iter().any(Index::is_on_id)
    }

    /// The time of an ID, as a call.
    pub fn call(&self, function: &str, argument: &str) -> String {
        match self.layout {
            None => format!("{function}({argument})"),
            Some(layout) => format!("{function}({argument}, '{layout}')"),
        }
    }

    /// The time in one of the two forms, under an alias with its dot, or none.
    pub fn time(&self, way: Way, alias: &str) -> String {
        match way {
            Way::Ids => self.call("snowflake_timestamp", &format!("{alias}id")),
            Way::Column => format!("{alias}created_at"),
        }
    }

    /// The same, written as a field.
    pub fn decoded(&self, way: Way, alias: &str) -> String {
        match way {
            Way::Ids => format!("({}).timestamp", self.call("snowflake_decode", &format!("{alias}id"))),
            Way::Column => format!("{alias}created_at"),
        }
    }
}

impl Schema {
    /// Creates one, in a database that has none.
    pub fn create(client: &mut Client, rng: &mut Rng) -> Self {
        let base: i64 = value(client, "SELECT (extract(epoch FROM date_trunc('hour', now())) * 1000000)::bigint");
        // What is judged has no part in making the tables.
        client.batch_execute("SET pg_snowflake.plan_by_time = off").unwrap();
        let mut schema = Self { tables: Vec::new(), unions: Vec::new(), base, probes: [25, 1000] };
        for number in 0..TABLES {
            let table = schema.create_table(client, rng, number);
            schema.tables.push(table);
        }
        schema.create_unions(client, rng);
        schema.create_probes(client, rng);
        for line in ["VACUUM FREEZE", "ANALYZE", "RESET pg_snowflake.plan_by_time"] {
            client.batch_execute(line).unwrap();
        }
        schema
    }

    /// Removes all that was created.
    pub fn drop(client: &mut Client) {
        client
            .batch_execute(
                "DROP SCHEMA public CASCADE; CREATE SCHEMA public; \
                 CREATE EXTENSION IF NOT EXISTS pg_snowflake",
            )
            .unwrap();
    }

    fn create_table(&self, client: &mut Client, rng: &mut Rng, number: usize) -> Table {
        use Division::{ByDecoded, ById, ByTime, Heirs, IdThenTenant, None, TenantThenId, TenantThenTime};
        let division = if number < 4 {
            None
        } else {
            draw(rng, &[ById, ById, ByTime, ByDecoded, TenantThenId, TenantThenTime, IdThenTenant, Heirs, Heirs])
        };
        let layout = draw(rng, &[Option::None, Option::None, Some("sonyflake"), Some("cockroach")]);
        let layout = if rng.u8(..10) < 5 { Option::None } else { layout };
        let mut table = Table {
            name: format!("w{number}"),
            layout,
            division,
            nullable: rng.u8(..10) < 3,
            known: Vec::new(),
            indexes: Vec::new(),
            made_by: Vec::new(),
        };
        table.indexes = indexes::random(rng, &table, self.base);
        let hash_by_tenant = rng.bool();
        let rows = rows(rng, &table, self.base);
        for way in Way::BOTH {
            let made_from = match way {
                Way::Ids => rows.clone(),
                Way::Column => format!(
                    "SELECT id, tenant, n, pad, {} AS created_at FROM {} AS a ORDER BY tableoid, ctid",
                    table.time(Way::Ids, ""),
                    table.name
                ),
            };
            let mut lines = self.definition(&table, way, hash_by_tenant);
            let (name, columns) = (table.named(way), if way == Way::Ids { "" } else { ", created_at" });
            if division == Heirs {
                for (child, range) in self.pieces().iter().enumerate() {
                    let only = format!(
                        "{} >= '{}+00' AND {0} < '{}+00'",
                        if way == Way::Ids { table.time(Way::Ids, "") } else { "created_at".into() },
                        written(range[0]),
                        written(range[1])
                    );
                    let or_null = if child == 0 { " OR id IS NULL" } else { "" };
                    lines.push(format!(
                        "INSERT INTO {name}_{child} SELECT id, tenant, n, pad{columns} FROM ({made_from}) AS r \
                         WHERE {only}{or_null}"
                    ));
                }
            } else {
                lines.push(format!("INSERT INTO {name} {made_from}"));
            }
            let children = self.leaves(&table, way);
            for index in &table.indexes {
                lines.extend(index.statements(&table, way, &children));
            }
            let created = match way {
                Way::Ids => table.time(way, ""),
                Way::Column => "created_at".to_owned(),
            };
            let columns = "id, tenant, n, pad";
            lines.push(format!("CREATE VIEW {name}_v AS SELECT {columns}, {created} AS created_at FROM {name}"));
            for line in lines {
                client.batch_execute(&line).unwrap_or_else(|error| panic!("{line}: {error:?}"));
                if way == Way::Ids {
                    table.made_by.push(line);
                }
            }
        }
        let known = format!(
            "SELECT (extract(epoch FROM {}) * 1000000)::bigint, id::bigint, tenant FROM {} WHERE id IS NOT NULL \
             ORDER BY hashint8(id), id LIMIT 60",
            table.time(Way::Ids, ""),
            table.name
        );
        let known = client.query(&known, &[]).unwrap();
        table.known = known.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
        table
    }

    /// The four ranges of time that tables are divided into.
    fn pieces(&self) -> [[i64; 2]; 4] {
        [0, 1, 2, 3]
            .map(|piece| [0, 1].map(|end| self.base - SPAN + (piece + end) * SPAN / 4 + end * (piece / 3) * DAY))
    }

    /// The statements that create a table and its parts.
    fn definition(&self, table: &Table, way: Way, hash_by_tenant: bool) -> Vec<String> {
        let name = table.named(way);
        let null = if table.nullable { "" } else { " NOT NULL" };
        let created = if way == Way::Ids { String::new() } else { format!(", created_at timestamptz{null}") };
        // Of some, whatever the seed, for both ways.
        let of = match table.named(Way::Ids).bytes().map(u32::from).sum::<u32>() % 4 {
            0 => "snowflake_id",
            _ => "bigint",
        };
        let columns = format!("id {of}{null}, tenant integer NOT NULL, n integer, pad text{created}");
        let by_id = if way == Way::Ids { "id".to_owned() } else { "created_at".to_owned() };
        let by_time = match (table.division, way) {
            (Division::ByDecoded, _) => table.decoded(way, ""),
            _ => table.time(way, ""),
        };
        let by_time = if way == Way::Ids { format!("({by_time})") } else { by_time };
        let of_tenant = if hash_by_tenant { "HASH (tenant)" } else { "LIST (tenant)" };
        let mut lines = Vec::new();
        let ranges = |parent: &str, by_id: bool, then: &str, lines: &mut Vec<String>| {
            for (number, range) in self.pieces().iter().enumerate() {
                let [from, to] = range.map(|instant| {
                    let instant = format!("'{}+00'", written(instant));
                    if by_id && way == Way::Ids { table.call("snowflake_min_id", &instant) } else { instant }
                });
                lines.push(format!(
                    "CREATE TABLE {parent}_{number} PARTITION OF {parent} FOR VALUES FROM ({from}) TO ({to}){then}"
                ));
            }
            if table.nullable {
                lines.push(format!("CREATE TABLE {parent}_rest PARTITION OF {parent} DEFAULT{then}"));
            }
        };
        let tenants = |parent: &str, lines: &mut Vec<String>, then: &str| {
            for number in 0..3 {
                let values = if hash_by_tenant {
                    format!("FOR VALUES WITH (MODULUS 3, REMAINDER {number})")
                } else {
                    ["FOR VALUES IN (0, 1, 2)", "FOR VALUES IN (3, 4)", "DEFAULT"][number].to_owned()
                };
                lines.push(format!("CREATE TABLE {parent}_t{number} PARTITION OF {parent} {values}{then}"));
            }
        };
        match table.division {
            Division::None => lines.push(format!("CREATE TABLE {name} ({columns})")),
            Division::Heirs => {
                lines.push(format!("CREATE TABLE {name} ({columns})"));
                lines.extend((0..4).map(|child| format!("CREATE TABLE {name}_{child} () INHERITS ({name})")));
            }
            Division::ById | Division::ByTime | Division::ByDecoded => {
                let is_id = table.division == Division::ById;
                let key = if is_id { &by_id } else { &by_time };
                lines.push(format!("CREATE TABLE {name} ({columns}) PARTITION BY RANGE ({key})"));
                ranges(&name, is_id, "", &mut lines);
            }
            Division::TenantThenId | Division::TenantThenTime => {
                let is_id = table.division == Division::TenantThenId;
                let key = if is_id { &by_id } else { &by_time };
                lines.push(format!("CREATE TABLE {name} ({columns}) PARTITION BY {of_tenant}"));
                tenants(&name, &mut lines, &format!(" PARTITION BY RANGE ({key})"));
                for number in 0..3 {
                    ranges(&format!("{name}_t{number}"), is_id, "", &mut lines);
                }
            }
            Division::IdThenTenant => {
                lines.push(format!("CREATE TABLE {name} ({columns}) PARTITION BY RANGE ({by_id})"));
                ranges(&name, true, &format!(" PARTITION BY {of_tenant}"), &mut lines);
                let last = if table.nullable { vec!["rest"] } else { Vec::new() };
                for number in ["0", "1", "2", "3"].into_iter().chain(last) {
                    tenants(&format!("{name}_{number}"), &mut lines, "");
                }
            }
        }
        lines
    }

    /// The tables that hold the rows of a divided one.
    /// A table, and its children where VACUUM does not find them.
    pub fn names_for_vacuum(&self, table: &Table, way: Way) -> Vec<String> {
        let children = if table.division == Division::Heirs { self.leaves(table, way) } else { Vec::new() };
        [vec![table.named(way)], children].concat()
    }

    fn leaves(&self, table: &Table, way: Way) -> Vec<String> {
        let name = table.named(way);
        let rest = if table.nullable && table.division != Division::Heirs { vec!["rest"] } else { Vec::new() };
        let ranges: Vec<&str> = ["0", "1", "2", "3"].into_iter().chain(rest).collect();
        let of = |parents: &[String], parts: &[&str]| -> Vec<String> {
            parents.iter().flat_map(|parent| parts.iter().map(move |part| format!("{parent}_{part}"))).collect()
        };
        let tenants = ["t0", "t1", "t2"];
        match table.division {
            Division::None => Vec::new(),
            Division::TenantThenId | Division::TenantThenTime => of(&of(&[name], &tenants), &ranges),
            Division::IdThenTenant => of(&of(&[name], &ranges), &tenants),
            _ => of(&[name], &ranges),
        }
    }

    /// Views that are a UNION ALL, often of tables of one layout.
    fn create_unions(&mut self, client: &mut Client, rng: &mut Rng) {
        for number in 0..4 {
            let first = rng.usize(..self.tables.len());
            let mut members = vec![first];
            let mixed = rng.u8(..5) == 0;
            while members.len() < 2 + number / 2 {
                let other = rng.usize(..self.tables.len());
                if mixed || rng.u8(..20) == 0 || self.tables[other].layout == self.tables[first].layout {
                    members.push(other);
                }
            }
            for way in Way::BOTH {
                let all: Vec<String> = members
                    .iter()
                    .map(|&member| {
                        let table = &self.tables[member];
                        let (time, name) = (table.time(way, ""), table.named(way));
                        format!("SELECT id, tenant, n, pad, {time} AS created_at FROM {name}")
                    })
                    .collect();
                let view = format!("CREATE VIEW all_{number}{} AS {}", way.suffix(), all.join(" UNION ALL "));
                client.batch_execute(&view).unwrap();
            }
            self.unions.push(members);
        }
    }

    /// Instants to join with, most of them of rows.
    fn create_probes(&self, client: &mut Client, rng: &mut Rng) {
        for (name, count) in ["few", "many"].into_iter().zip(self.probes) {
            let mut rows = Vec::new();
            for k in 0..count {
                let table = &self.tables[rng.usize(..self.tables.len())];
                let instant = match rng.u8(..10) {
                    0 => self.base - rng.i64(0..DAY),
                    1 => self.base - rng.i64(0..SPAN),
                    _ => table.known[rng.usize(..table.known.len())].0,
                };
                let until = instant + [60, 600, 3600, 86400][rng.usize(..4)] * SECOND;
                let [at, until] = [instant, until].map(written);
                rows.push(format!("({k}, {}, '{at}+00', '{until}+00', '{at}', '{at}')", rng.u8(..TENANTS)));
            }
            client
                .batch_execute(&format!(
                    "CREATE TABLE {name} (k integer NOT NULL, tenant integer NOT NULL, at timestamptz NOT NULL, \
                     until timestamptz NOT NULL, ts timestamp NOT NULL, d date NOT NULL); \
                     INSERT INTO {name} VALUES {}",
                    rows.join(", ")
                ))
                .unwrap();
        }
    }
}

/// A query that makes the rows of a table. What looks random depends on the row's number and the seed alone, so that all
/// versions have the same rows.
fn rows(rng: &mut Rng, table: &Table, base: i64) -> String {
    let count = draw(rng, &[3000, 5000, 8000, 8000, 12_000, 18_000]);
    // How many rows have a time in common.
    let grain = draw(rng, &["0.001", "0.001", "1", "60", "600", "3600"]);
    // How much more of the rows are recent.
    let power = draw(rng, &["1", "1", "1", "3"]);
    let order =
        draw(rng, &["at, i", "at, i", "r2, i", "tenant, at, i", "at DESC, i", "at + interval '6 hours' * r2, i"]);
    let (pad, seed) = (draw(rng, &[10, 60, 150]), rng.i32(..));
    let random = |number: i32| {
        format!("(hashint8extended(i, {}) & 1073741823) / 1073741824.0::float8", seed.wrapping_add(number))
    };
    let [r1, r2, r3, r4, r5] = [1, 2, 3, 4, 5].map(random);
    let start = written(base - SPAN);
    let bits = if table.layout == Some("cockroach") { 32767 } else { 0x3f_ffff };
    let id = table.call("snowflake_min_id", "at");
    let id = if table.nullable {
        format!("CASE WHEN r4 > 0.03 THEN {id} | (i & {bits}) END")
    } else {
        format!("{id} | (i & {bits})")
    };
    format!(
        "SELECT {id} AS id, tenant, n, repeat('x', {pad}) AS pad FROM ( \
         SELECT i, {r2} AS r2, {r4} AS r4, floor({TENANTS} * {r3})::integer AS tenant, \
         CASE WHEN {r4} < 0.9 THEN floor({HIGHEST_N} * {r5})::integer END AS n, \
         '{start}+00'::timestamptz + interval '1 second' * (floor({} * (1 - ({r1}) ^ {power}) / {grain}) * {grain}) AS at \
         FROM generate_series(1, {count}::bigint) AS i) AS made ORDER BY {order}",
        SPAN / SECOND - 1
    )
}
