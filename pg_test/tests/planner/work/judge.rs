//! Runs a query in all ways, and compares the rows and the work.

use super::super::compare::{self, Row};
use super::Way;
use super::draft::{Query, Reads};
use super::exceptions::{self, Case};
use super::measure::Work;
use postgres::{Client, SimpleQueryMessage};
use std::fmt::Write as _;

/// What was found.
pub enum Verdict {
    /// All is well; whether the parameter changes the plan's cost, and whether it saves work.
    Agrees { differs: bool, saves: bool },
    /// It does too much, which is allowed.
    Excepted(&'static str),
}

/// A way to run a query: its name, the form of the tables, and whether the parameter is on.
#[derive(Clone, Copy)]
struct Kind {
    title: &'static str,
    way: Way,
    state: &'static str,
}

const ON: Kind = Kind { title: "plan_by_time on", way: Way::Ids, state: "on" };
const OFF: Kind = Kind { title: "plan_by_time off", way: Way::Ids, state: "off" };
const COLUMN: Kind = Kind { title: "a column for the time", way: Way::Column, state: "off" };

/// What one way gives.
pub struct Run {
    kind: Kind,
    rows: Vec<Row>,
    pub work: Work,
}

/// Runs one query.
pub struct Session<'a> {
    client: &'a mut Client,
    query: &'a Query,
    /// Statements to run before it.
    before: Vec<String>,
}

/// Judges a query. With `off_only`, the parameter is never on: then there is nothing to find.
///
/// # Errors
/// With a report where rows or work are not as they should be. The session is of no more use then.
pub fn judge(client: &mut Client, query: &Query, off_only: bool, show: bool) -> Result<Verdict, String> {
    let mut session = Session { client, query, before: Vec::new() };
    // `now()` is the same in all ways. What a change leaves is removed after each, which takes a transaction of its own.
    if query.changes.is_none() {
        session.ask("BEGIN")?;
    }
    let on = session.run(if off_only { OFF } else { ON }, "")?;
    let off = session.run(OFF, "")?;
    let column = session.run(COLUMN, "")?;
    if show {
        println!("{}", session.report(&[&on, &off, &column]));
    }
    // Rows of a sample depend on where they are.
    for other in [Some(&off), (!query.is_sample).then_some(&column)].into_iter().flatten() {
        if let Some(difference) = compare::difference_of(&on.rows, &other.rows, query.order) {
            let titles = format!("{} / {}", on.kind.title, other.kind.title);
            return Err(format!("{titles}: {difference}\n\n{}", session.report(&[&on, &off, &column])));
        }
    }
    let best = if off_only || query.is_sample || off.work.total() < column.work.total() { &off } else { &column };
    let verdict = if on.work.exceeds(&best.work) {
        let mut case = Case { on: &on.work, off: &off.work, column: &column.work, again: &mut session };
        let Some(reason) = exceptions::reason(&mut case)? else {
            let (title, too_much, enough) = (best.kind.title, on.work.total(), best.work.total());
            let found = format!("on, it does the work of {too_much:.0} pages, {title} of {enough:.0}");
            return Err(format!("{found}\n\n{}", session.report(&[&on, &off, &column])));
        };
        Verdict::Excepted(reason)
    } else {
        let differs = (on.work.cost - off.work.cost).abs() > 1e-6;
        Verdict::Agrees { differs, saves: off.work.exceeds(&on.work) }
    };
    if query.changes.is_none() {
        session.ask("ROLLBACK")?;
    }
    Ok(verdict)
}

impl Session<'_> {
    /// What the query reads.
    pub fn reads(&self) -> Reads {
        self.query.reads
    }

    /// The server's major version.
    ///
    /// # Errors
    /// Where it cannot be asked.
    pub fn major(&mut self) -> Result<u32, String> {
        let rows = self.ask("SHOW server_version_num")?;
        let version = rows.into_iter().flatten().flatten().next().and_then(|number| number.parse::<u32>().ok());
        version.map(|number| number / 10_000).ok_or_else(|| "no version".to_owned())
    }

    /// The query, as the generator has made it.
    pub fn text(&self) -> &str {
        self.query.text()
    }

    /// Runs the query with a column for the time, and with something set.
    ///
    /// # Errors
    /// Where it fails.
    pub fn column(&mut self, setting: &str) -> Result<Run, String> {
        self.run(COLUMN, setting)
    }

    /// Runs the query with a column for the time, which has an index of its own where the ID has one.
    ///
    /// # Errors
    /// Where it fails.
    pub fn column_alone(&mut self) -> Result<Run, String> {
        let indexes = self.query.on_id_alone.iter().map(|table| format!("CREATE INDEX ON {table} (created_at)"));
        self.run_with(indexes.collect(), COLUMN)
    }

    /// Runs the query with `plan_by_time` on, and with the ID in each index on the time.
    ///
    /// # Errors
    /// Where it fails.
    pub fn on_with_the_id(&mut self) -> Result<Run, String> {
        self.run_with(self.query.with_the_id.clone(), ON)
    }

    /// Runs the query with `plan_by_time` on, and with statistics of the time of each table.
    ///
    /// # Errors
    /// Where it fails.
    pub fn on_with_statistics(&mut self) -> Result<Run, String> {
        self.run_with(self.query.statistics.clone(), ON)
    }

    fn run_with(&mut self, before: Vec<String>, kind: Kind) -> Result<Run, String> {
        self.before = before;
        let run = self.run(kind, "");
        self.before.clear();
        run
    }

    /// Runs the query with `plan_by_time` on, and with something else set.
    ///
    /// # Errors
    /// Where it fails.
    pub fn on(&mut self, setting: &str) -> Result<Run, String> {
        self.run(ON, setting)
    }

    fn ask(&mut self, text: &str) -> Result<Vec<Row>, String> {
        let messages = self.client.simple_query(text).map_err(|error| {
            let said = error.as_db_error().map_or_else(|| format!("{error:?}"), |error| format!("{error} ({error:?})"));
            format!("{said}\n{}{text};\n", self.about())
        })?;
        let row = |message| match message {
            SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect())
            }
            _ => None,
        };
        Ok(messages.into_iter().filter_map(row).collect())
    }

    /// The tables, as statements, and the settings.
    fn about(&self) -> String {
        let made: String = self.query.made_by.iter().map(|line| format!("{line};\n")).collect();
        made + &self.query.settings.iter().map(|(name, value)| format!("SET {name} = '{value}';\n")).collect::<String>()
    }

    /// Begins a way, and prepares the statement.
    fn begin(&mut self, Kind { way, state, .. }: Kind, setting: &str) -> Result<(), String> {
        let mut begin = if self.query.changes.is_some() { "BEGIN" } else { "SAVEPOINT way" }.to_owned();
        write!(begin, "; SET LOCAL pg_snowflake.plan_by_time = {state}").unwrap();
        for (name, value) in &self.query.settings {
            write!(begin, "; SET LOCAL {name} = '{value}'").unwrap();
        }
        if !setting.is_empty() {
            write!(begin, "; SET LOCAL {setting}").unwrap();
        }
        self.ask(&begin)?;
        for statement in self.before.clone() {
            self.ask(&statement)?;
        }
        if let Some(prepare) = self.query.statements(way).0 {
            self.ask(&prepare)?;
        }
        // A change is undone before the statement runs again.
        self.ask("SAVEPOINT before").map(drop)
    }

    fn end(&mut self, kind: Kind) -> Result<(), String> {
        self.ask(if self.query.changes.is_some() { "ROLLBACK" } else { "ROLLBACK TO way" })?;
        self.ask("DEALLOCATE ALL")?;
        if let Some(changed) = &self.query.changes {
            self.ask(&format!("VACUUM {}", changed[kind.way as usize]))?;
        }
        Ok(())
    }

    fn run(&mut self, kind: Kind, setting: &str) -> Result<Run, String> {
        let statement = self.query.statements(kind.way).1;
        self.begin(kind, setting)?;
        let explained = self.ask(&format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {statement}"))?;
        self.ask("ROLLBACK TO before")?;
        let rows = self.ask(&statement)?;
        self.end(kind)?;
        Ok(Run { kind, rows, work: Work::of(&lines(explained)) })
    }

    /// What was run, how it is planned, and what it did.
    fn report(&mut self, runs: &[&Run]) -> String {
        let mut report = self.about();
        for Run { kind, rows, work } in runs {
            let (prepare, statement) = self.query.statements(kind.way);
            let plan = self.begin(*kind, "").and_then(|()| self.ask(&format!("EXPLAIN {statement}")));
            let plan = plan.map_or_else(|error| error, lines);
            let (Work { pages, rows: seen, cost, .. }, returned) = (work, rows.len());
            writeln!(
                report,
                "-- {}: {returned} rows; looked at {pages} pages and {seen} rows, at an estimated cost of {cost}",
                kind.title
            )
            .unwrap();
            writeln!(report, "{}{statement};\n{plan}\n", prepare.map(|text| text + ";\n").unwrap_or_default()).unwrap();
            let _ = self.end(*kind);
        }
        report
    }
}

fn lines(rows: Vec<Row>) -> String {
    rows.into_iter().flatten().flatten().collect::<Vec<_>>().join("\n")
}
