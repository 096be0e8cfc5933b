//! Runs a query in all ways, and compares the rows and the work.

use super::super::compare::{self, Row};
use super::Way;
use super::draft::Query;
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

/// One way to run a query.
pub struct Run {
    title: &'static str,
    statement: String,
    rows: Vec<Row>,
    pub work: Work,
    plan: String,
}

/// A way: its name, the form of the tables, and whether the parameter is on.
#[derive(Clone, Copy)]
struct Kind {
    title: &'static str,
    way: Way,
    state: &'static str,
}

const ON: Kind = Kind { title: "plan_by_time on", way: Way::Ids, state: "on" };
const OFF: Kind = Kind { title: "plan_by_time off", way: Way::Ids, state: "off" };
const COLUMN: Kind = Kind { title: "a column for the time", way: Way::Column, state: "off" };

/// What exceptions may ask.
pub struct Session<'a> {
    client: &'a mut Client,
    query: &'a Query,
}

impl Session<'_> {
    /// Runs the query with a column for the time, and with this turned off.
    ///
    /// # Errors
    /// Where it fails.
    pub fn column(&mut self, without: &str) -> Result<Run, String> {
        run(self.client, self.query, COLUMN, without)
    }

    /// Runs the query with the parameter on, and with this turned off.
    ///
    /// # Errors
    /// Where it fails.
    pub fn on(&mut self, without: &str) -> Result<Run, String> {
        run(self.client, self.query, ON, without)
    }
}

/// Judges a query. With `off_only`, the parameter is never on: then there is nothing to find.
///
/// # Errors
/// With a report where rows or work are not as they should be.
pub fn judge(client: &mut Client, query: &Query, off_only: bool, show: bool) -> Result<Verdict, String> {
    let [on, off, column] = [if off_only { OFF } else { ON }, OFF, COLUMN].map(|kind| run(client, query, kind, ""));
    let runs = [on?, off?, column?];
    let all = || runs.iter().map(Run::report).collect::<String>();
    if show {
        println!("{}", all());
    }
    let [on, off, column] = &runs;
    // Rows of a sample depend on where they are.
    for other in [Some(off), (!query.is_sample).then_some(column)].into_iter().flatten() {
        if let Some(difference) = compare::difference_of(&on.rows, &other.rows, query.order) {
            return Err(format!("{} / {}: {difference}\n\n{}{}", on.title, other.title, about(query), all()));
        }
    }
    let best = if off_only || query.is_sample || off.work.total() < column.work.total() { off } else { column };
    if !on.work.exceeds(&best.work) {
        let differs = (on.work.cost - off.work.cost).abs() > 1e-6;
        return Ok(Verdict::Agrees { differs, saves: off.work.exceeds(&on.work) });
    }
    let again = &mut Session { client, query };
    let mut case = Case { query, on: &on.work, off: &off.work, column: &column.work, again };
    if let Some(reason) = exceptions::reason(&mut case)? {
        return Ok(Verdict::Excepted(reason));
    }
    let (title, too_much, enough) = (best.title, on.work.total(), best.work.total());
    Err(format!("on, it does the work of {too_much:.0} pages, {title} of {enough:.0}\n\n{}{}", about(query), all()))
}

/// What the query is about.
fn about(query: &Query) -> String {
    let made: String = query.made_by.iter().map(|line| format!("{line};\n")).collect();
    made + &query.settings.iter().map(|(name, value)| format!("SET {name} = '{value}';\n")).collect::<String>()
}

impl Run {
    fn report(&self) -> String {
        let Work { pages, rows, cost } = self.work;
        format!(
            "-- {}: {} rows; looked at {pages} pages and {rows} rows, at an estimated cost of {cost}\n{}\n{}\n\n",
            self.title,
            self.rows.len(),
            self.statement,
            self.plan
        )
    }
}

fn run(client: &mut Client, query: &Query, Kind { title, way, state }: Kind, without: &str) -> Result<Run, String> {
    let mut begin = format!("BEGIN; SET LOCAL pg_snowflake.plan_by_time = {state}");
    if !without.is_empty() {
        write!(begin, "; SET LOCAL {without} = off").unwrap();
    }
    for (name, value) in &query.settings {
        write!(begin, "; SET LOCAL {name} = '{value}'").unwrap();
    }
    let (prepare, statement) = query.statements(way);
    let in_full = prepare.iter().map(|text| format!("{text};\n")).collect::<String>() + &statement + ";";
    let mut ask = |text: &str| {
        client.simple_query(text).map_err(|error| {
            let said = error.as_db_error().map_or_else(|| format!("{error:?}"), |error| format!("{error} ({error:?})"));
            format!("{title}: {said}\n{}{begin};\n{in_full}", about(query))
        })
    };
    ask(&begin)?;
    if let Some(prepare) = &prepare {
        ask(prepare)?;
    }
    // A change is undone before the statement runs again.
    ask("SAVEPOINT before")?;
    let explained = rows(ask(&format!("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {statement}"))?);
    ask("ROLLBACK TO before")?;
    let plan = rows(ask(&format!("EXPLAIN {statement}"))?);
    let returned = rows(ask(&statement)?);
    ask("ROLLBACK")?;
    if prepare.is_some() {
        ask("DEALLOCATE ALL")?;
    }
    if let Some(changed) = &query.changes {
        ask(&format!("VACUUM {}", changed[way as usize]))?;
    }
    let lines = |rows: Vec<Row>| rows.into_iter().flatten().flatten().collect::<Vec<_>>().join("\n");
    Ok(Run { title, statement: in_full, rows: returned, work: Work::of(&lines(explained)), plan: lines(plan) })
}

fn rows(messages: Vec<SimpleQueryMessage>) -> Vec<Row> {
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect()),
        _ => None,
    };
    messages.into_iter().filter_map(row).collect()
}
