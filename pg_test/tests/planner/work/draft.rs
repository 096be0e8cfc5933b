//! The state of a query that is being made.

use super::super::generator::Order;
use super::tables::{Schema, Table};
use super::{Way, draw};
use fastrand::Rng;
use std::collections::BTreeMap;

/// An item of FROM. In the text of a query, `‹a›` stands for the item with the alias `a`, and `‹a.t›` for its time.
pub struct Item<'a> {
    alias: &'static str,
    pub table: &'a Table,
    /// With IDs, and with a column.
    from: [String; 2],
    time: [String; 2],
    /// What it reads.
    tables: Vec<&'a Table>,
}

impl Item<'_> {
    fn is_union(&self) -> bool {
        self.tables.len() > 1
    }
}

/// A finished query.
pub struct Query {
    /// Its kind.
    pub shape: &'static str,
    /// Settings for its transaction.
    pub settings: Vec<(&'static str, &'static str)>,
    /// With IDs, and with a column.
    statement: [String; 2],
    /// Types and values; `None` where it is not prepared.
    parameters: Option<Vec<(&'static str, String)>>,
    /// What must agree about the order of rows.
    pub order: Order,
    /// Whether it reads a sample, whose rows depend on where they are stored.
    pub is_sample: bool,
    /// The tables that it changes, in both forms, for VACUUM.
    pub changes: Option<[String; 2]>,
    /// The statements that made what it reads, with IDs.
    pub made_by: Vec<String>,
    pub reads: Reads,
    /// Those of the tables with a column that have an index on the ID alone.
    pub on_id_alone: Vec<String>,
    /// Statements that create the indexes on the time again, with the ID.
    pub with_the_id: Vec<String>,
    /// Statements that make statistics of the time of each table.
    pub statistics: Vec<String>,
}

/// What is there for a query to use.
#[derive(Clone, Copy, Default)]
pub struct Reads {
    /// An index on the time.
    pub has_index_on_time: bool,
    /// An index on the ID that serves ranges, or partitions by it.
    pub has_ids: bool,
    /// Several tables as one.
    pub is_union: bool,
}

impl Reads {
    fn of(table: &Table) -> Self {
        Self { has_index_on_time: table.has_index_on_time(), has_ids: table.has_ids(), is_union: false }
    }

    fn and(self, other: Self) -> Self {
        Self {
            has_index_on_time: self.has_index_on_time || other.has_index_on_time,
            has_ids: self.has_ids || other.has_ids,
            is_union: self.is_union || other.is_union,
        }
    }
}

impl Query {
    /// The statement, with IDs.
    pub fn text(&self) -> &str {
        &self.statement[0]
    }

    /// The statements to run before the query itself, and that.
    pub fn statements(&self, way: Way) -> (Option<String>, String) {
        let statement = &self.statement[way as usize];
        let Some(parameters) = &self.parameters else { return (None, statement.clone()) };
        let (types, values): (Vec<&str>, Vec<&str>) =
            parameters.iter().map(|(kind, value)| (*kind, value.as_str())).unzip();
        let list = |items: &[&str]| if items.is_empty() { String::new() } else { format!(" ({})", items.join(", ")) };
        (Some(format!("PREPARE query{} AS {statement}", list(&types))), format!("EXECUTE query{}", list(&values)))
    }
}

/// Makes one query.
pub struct Draft<'a> {
    pub schema: &'a Schema,
    pub rng: Rng,
    pub items: Vec<Item<'a>>,
    parameters: Option<Vec<(&'static str, String)>>,
    settings: Vec<(&'static str, &'static str)>,
    pub is_sample: bool,
    pub changes: Option<[String; 2]>,
    /// Whether bounds may depend on when the query runs.
    pub may_use_now: bool,
}

/// Plans with workers, for small tables.
const PARALLEL: [(&str, &str); 4] = [
    ("max_parallel_workers_per_gather", "2"),
    ("parallel_setup_cost", "10"),
    ("min_parallel_table_scan_size", "0"),
    ("min_parallel_index_scan_size", "0"),
];

impl<'a> Draft<'a> {
    pub fn new(schema: &'a Schema, mut rng: Rng) -> Self {
        let parameters = (rng.u8(..100) < 30).then(Vec::new);
        let mut settings = vec![("timezone", "UTC")];
        // Most tables are in memory, where a page costs about the same wherever it is.
        if rng.u8(..100) < 70 {
            settings.push(("random_page_cost", "1.1"));
        }
        if parameters.is_some() {
            settings.push(("plan_cache_mode", draw(&mut rng, &["force_generic_plan", "force_custom_plan"])));
        }
        if rng.u8(..100) < 4 {
            settings.extend(PARALLEL);
        } else {
            settings.push(("max_parallel_workers_per_gather", "0"));
        }
        if rng.u8(..100) < 10 {
            settings.push(("enable_partitionwise_join", "on"));
            settings.push(("enable_partitionwise_aggregate", "on"));
        }
        Self {
            schema,
            rng,
            items: Vec::new(),
            parameters,
            settings,
            is_sample: false,
            changes: None,
            may_use_now: true,
        }
    }

    /// Has constants in place of parameters.
    pub fn has_no_parameters(&mut self) {
        self.parameters = None;
    }

    /// Puts the items into a text, in one of the two forms.
    pub fn put(&self, text: &str, way: Way) -> String {
        self.items.iter().fold(text.to_owned(), |text, item| {
            text.replace(&format!("‹{}›", item.alias), &item.from[way as usize])
                .replace(&format!("‹{}.t›", item.alias), &item.time[way as usize])
        })
    }

    /// The settings, as SQL.
    pub fn set_local(&self) -> String {
        let lines: Vec<_> = self.settings.iter().map(|(name, value)| format!("SET LOCAL {name} = '{value}'")).collect();
        lines.join("; ")
    }

    fn tables(&self) -> impl Iterator<Item = &'a Table> {
        self.items.iter().flat_map(|item| item.tables.iter().copied())
    }

    /// The statements that made the items, with IDs.
    pub fn made_by(&self) -> Vec<String> {
        let mut all: Vec<String> = self.tables().flat_map(|table| table.made_by.clone()).collect();
        all.dedup();
        all
    }

    /// Ends the query.
    pub fn finish(self, shape: &'static str, statement: &str, order: Order) -> Query {
        let statement = Way::BOTH.map(|way| self.put(statement, way));
        let made_by = self.made_by();
        let mut reads = self.tables().map(Reads::of).fold(Reads::default(), Reads::and);
        reads.is_union = shape == "UNION ALL" || self.items.iter().any(|item| item.is_union());
        // Each once.
        let tables: BTreeMap<&str, &Table> = self.tables().map(|table| (table.name.as_str(), table)).collect();
        let tables = || tables.values().copied();
        let on_id_alone =
            tables().filter(|table| table.has_index_on_id_alone()).map(|table| table.named(Way::Column)).collect();
        let with_the_id = tables().flat_map(Table::indexes_with_the_id).collect();
        let statistics = tables().flat_map(Table::statistics).collect();
        let Self { parameters, settings, is_sample, changes, .. } = self;
        Query {
            shape,
            settings,
            statement,
            parameters,
            order,
            is_sample,
            changes,
            made_by,
            reads,
            on_id_alone,
            with_the_id,
            statistics,
        }
    }

    /// True so many times of 100.
    pub fn chance(&mut self, percent: u8) -> bool {
        self.rng.u8(..100) < percent
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        draw(&mut self.rng, choices)
    }

    /// A parameter, where the query may have some; else the value.
    pub fn parameter(&mut self, kind: &'static str, value: String) -> String {
        let Some(parameters) = &mut self.parameters else { return value };
        parameters.push((kind, value));
        format!("${}", parameters.len())
    }

    /// Adds an item: a table, its view, or a view that is a UNION ALL.
    pub fn item(&mut self, alias: &'static str) {
        match self.rng.u8(..100) {
            0..20 => self.union_item(alias),
            20..50 => self.view_item(alias),
            _ => self.table_item(alias),
        }
    }

    fn table(&mut self) -> &'a Table {
        if !self.items.is_empty() && self.chance(20) {
            return self.items[0].table;
        }
        &self.schema.tables[self.rng.usize(..self.schema.tables.len())]
    }

    /// Adds a table.
    pub fn table_item(&mut self, alias: &'static str) {
        let table = self.table();
        let (dot, decoded) = (format!("{alias}."), self.chance(20));
        let from = Way::BOTH.map(|way| format!("{} AS {alias}", table.named(way)));
        let time = Way::BOTH.map(|way| if decoded { table.decoded(way, &dot) } else { table.time(way, &dot) });
        self.items.push(Item { alias, table, from, time, tables: vec![table] });
    }

    /// Adds the view of a table.
    pub fn view_item(&mut self, alias: &'static str) {
        let table = self.table();
        let from = Way::BOTH.map(|way| format!("{}_v AS {alias}", table.named(way)));
        self.items.push(Item { alias, table, from, time: created(alias), tables: vec![table] });
    }

    /// Adds a UNION ALL.
    pub fn union_item(&mut self, alias: &'static str) {
        let number = self.rng.usize(..self.schema.unions.len());
        let members = &self.schema.unions[number];
        let table = &self.schema.tables[members[self.rng.usize(..members.len())]];
        let tables = members.iter().map(|&member| &self.schema.tables[member]).collect();
        let from = Way::BOTH.map(|way| format!("all_{number}{} AS {alias}", way.suffix()));
        self.items.push(Item { alias, table, from, time: created(alias), tables });
    }

    /// Adds a table, of whose rows a sample is read.
    pub fn sample_item(&mut self, alias: &'static str) {
        let table = self.table();
        let (method, percent) = (self.one_of(&["BERNOULLI", "SYSTEM"]), self.one_of(&["1", "10", "50"]));
        let sample = format!("TABLESAMPLE {method} ({percent}) REPEATABLE ({})", self.rng.u8(..));
        let from = Way::BOTH.map(|way| format!("{} AS {alias} {sample}", table.named(way)));
        let time = Way::BOTH.map(|way| table.time(way, &format!("{alias}.")));
        self.items.push(Item { alias, table, from, time, tables: vec![table] });
        self.is_sample = true;
    }

    /// Adds a table or its view, whose rows are changed.
    pub fn target_item(&mut self, alias: &'static str) {
        if self.chance(60) {
            self.table_item(alias);
        } else {
            self.view_item(alias);
        }
        let table = self.items.last().unwrap().table;
        self.changes = Some(Way::BOTH.map(|way| self.schema.names_for_vacuum(table, way).join(", ")));
        self.may_use_now = false;
    }

    /// The table of an item.
    pub fn table_of(&self, alias: &str) -> &'a Table {
        self.items.iter().find(|item| item.alias == alias).unwrap().table
    }
}

fn created(alias: &str) -> [String; 2] {
    [(); 2].map(|()| format!("{alias}.created_at"))
}
