//! What a query reads: a table with the time written as a call, or a view or subquery that has it as a column.

use super::generator::Generator;
use super::tables::{Table, UPDATABLE, plain_time};

/// An item of FROM. In the text of a query, `‹a›` stands for the item with the alias `a`, `‹a.t›` for its time, and
/// `‹a.base›` for the table below it.
pub struct Source<'a> {
    pub alias: &'static str,
    pub table: &'a Table,
    /// The item, and its time: with IDs, and in the twin.
    from: [String; 2],
    time: [String; 2],
    /// Whether it is a table, and not a view or subquery.
    pub is_table: bool,
}

impl Source<'_> {
    /// Puts this source into the text of a query.
    pub fn put(&self, text: &str, twin: bool) -> String {
        let (alias, way) = (self.alias, usize::from(twin));
        let base = format!("{}{}", self.table.name, ["", "_twin"][way]);
        text.replace(&format!("‹{alias}›"), &self.from[way])
            .replace(&format!("‹{alias}.t›"), &self.time[way])
            .replace(&format!("‹{alias}.base›"), &base)
    }
}

/// The marker of a source's time.
pub fn time_of(alias: &str) -> String {
    format!("‹{alias}.t›")
}

/// Subqueries. `{columns}` are the table's and the time as `created_at`, `{time}` is the time.
const SUBQUERIES: [&str; 10] = [
    "(SELECT {columns} FROM {t})",
    "(SELECT {columns} FROM {t} WHERE n > 2 OFFSET 0)",
    "(SELECT * FROM (SELECT {columns} FROM {t}) AS inner_one WHERE created_at > '2024-02-10+00')",
    "(SELECT {columns} FROM {t} UNION ALL SELECT {columns} FROM {t} WHERE tenant = 2)",
    "(WITH kept AS MATERIALIZED (SELECT {columns} FROM {t} WHERE n <> 4) SELECT * FROM kept)",
    "(WITH kept AS NOT MATERIALIZED (SELECT {columns} FROM {t}) SELECT * FROM kept WHERE tenant <> 1)",
    "(SELECT DISTINCT {columns} FROM {t})",
    "(SELECT id, tenant, n, due, max({time}) AS created_at FROM {t} GROUP BY id, tenant, n, due)",
    "(SELECT {columns} FROM {t} ORDER BY {time} DESC, id, tenant, n, due LIMIT 200)",
    "(SELECT {columns}, row_number() OVER (PARTITION BY tenant ORDER BY {time}, id, n, due) AS place FROM {t})",
];

impl<'a> Generator<'a> {
    /// Adds an item to the query.
    pub fn source(&mut self, alias: &'static str) {
        let table = self.table();
        self.add(alias, table, 100);
    }

    /// Adds the table of this number, or its view with this suffix.
    pub fn source_of(&mut self, alias: &'static str, number: usize, view: Option<&str>) {
        let table = &self.schema.tables[number];
        let source = match view {
            Some(view) => self.view(alias, table, view),
            None => self.table_itself(alias, table),
        };
        self.sources.push(source);
    }

    /// Adds a view or subquery, which has the time as `created_at`.
    pub fn column_source(&mut self, alias: &'static str) {
        let table = self.table();
        self.add(alias, table, 60);
    }

    fn add(&mut self, alias: &'static str, table: &'a Table, kinds: u8) {
        let source = match 99 - self.rng.u8(..kinds) {
            0..40 => self.table_itself(alias, table),
            40..65 => self.union_all(alias, table),
            65..90 => {
                let views = [
                    "v",
                    "v",
                    "v",
                    "d",
                    "n",
                    "b",
                    "m",
                    "u",
                    "o",
                    "i",
                    "since('2024-02-10+00')",
                    "since(now() - interval '2 years')",
                ];
                let view = self.one_of(&views);
                self.view(alias, table, view)
            }
            _ => self.subquery(alias, table),
        };
        self.sources.push(source);
    }

    /// Adds a UNION ALL.
    pub fn union_source(&mut self, alias: &'static str) {
        let table = self.table();
        let source = self.union_all(alias, table);
        self.sources.push(source);
    }

    /// Adds an item whose rows can be changed.
    pub fn target(&mut self, alias: &'static str) {
        let table = self.table();
        let source = if self.chance(60) || table.mixed {
            self.table_itself(alias, table)
        } else {
            let view = self.one_of(&UPDATABLE);
            self.view(alias, table, view)
        };
        self.sources.push(source);
    }

    /// Any table; a second item has often the one of the first.
    fn table(&mut self) -> &'a Table {
        if !self.sources.is_empty() && self.chance(30) {
            return self.sources[0].table;
        }
        &self.schema.tables[self.rng.usize(..self.schema.tables.len())]
    }

    fn table_itself(&mut self, alias: &'static str, table: &'a Table) -> Source<'a> {
        let time = self.call(table, &format!("{alias}.id"));
        Source {
            alias,
            table,
            from: ["", "_twin"].map(|twin| format!("{}{twin} AS {alias}", table.name)),
            time: [time, format!("{alias}.created_at")],
            is_table: true,
        }
    }

    fn view(&self, alias: &'static str, table: &'a Table, view: &str) -> Source<'a> {
        let view = if view == "i" && self.schema.major < 15 { "v" } else { view };
        Source {
            alias,
            table,
            from: ["", "_twin"].map(|twin| format!("{}{twin}_{view} AS {alias}", table.name)),
            time: [(); 2].map(|()| format!("{alias}.created_at")),
            is_table: false,
        }
    }

    /// A UNION ALL whose first member is of this table, or a view of another one.
    fn union_all(&mut self, alias: &'static str, table: &'a Table) -> Source<'a> {
        let time = [(); 2].map(|()| format!("{alias}.created_at"));
        if self.chance(50) && !self.schema.unions.is_empty() {
            let number = self.rng.usize(..self.schema.unions.len());
            let table = &self.schema.tables[self.schema.unions[number]];
            let from = ["", "_twin"].map(|twin| format!("union_{number}{twin} AS {alias}"));
            return Source { alias, table, from, time, is_table: false };
        }
        let from = self.schema.parts_of_unions().query(&mut self.rng, table);
        Source { alias, table, from: from.map(|query| format!("({query}) AS {alias}")), time, is_table: false }
    }

    fn subquery(&mut self, alias: &'static str, table: &'a Table) -> Source<'a> {
        let time = [self.call(table, "id"), "created_at".to_owned()];
        let subquery = self.one_of(&SUBQUERIES);
        let from = [0, 1].map(|way| {
            let columns = format!("id, tenant, n, due, {} AS created_at", time[way]);
            let t = format!("{}{}", table.name, ["", "_twin"][way]);
            let text = subquery.replace("{columns}", &columns).replace("{time}", &time[way]).replace("{t}", &t);
            format!("{text} AS {alias}")
        });
        Source { alias, table, from, time: [(); 2].map(|()| format!("{alias}.created_at")), is_table: false }
    }

    /// The time of an ID, in one of the ways to write it.
    fn call(&mut self, table: &Table, id: &str) -> String {
        if table.mixed {
            return plain_time(table, id);
        }
        match (table.layout.name, self.rng.u8(..12)) {
            (_, 11) => plain_time(table, &format!("{id} + 0")),
            (Some(name), 10) if self.prepared => {
                self.parameters.push(("text", format!("'{name}'")));
                format!("snowflake_timestamp({id}, ${})", self.parameters.len())
            }
            (None, 0) => format!("snowflake_timestamp({id}, 'default')"),
            (None, 1) => format!("snowflake_timestamp(id => {id})"),
            (None, 2..4) => format!("(snowflake_decode({id})).timestamp"),
            (Some(name), 0..3) => format!("(snowflake_decode({id}, '{name}')).timestamp"),
            _ => plain_time(table, id),
        }
    }
}
