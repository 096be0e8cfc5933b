//! Runs a query in all ways, and compares the rows and the work.

use super::super::compare::{self, Row};
use super::draft::Query;
use super::exceptions::{self, Case};
use super::measure::Work;
use super::Way;
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
struct Run {
    title: &'static str,
    statement: String,
    rows: Vec<Row>,
    work: Work,
    plan: String,
}

/// A way: its name, the form of the tables, and what is set.
type Set = (&'static str, Way, &'static str);

/// With the parameter, without it, and with a column in place of it.
const WAYS: [Set; 3] = [
    ("plan_by_time on", Way::Ids, "pg_snowflake.plan_by_time = on"),
    ("plan_by_time off", Way::Ids, OFF),
    ("a column for the time", Way::Column, OFF),
];

const OFF: &str = "pg_snowflake.plan_by_time = off";

/// As PostgreSQL would use an index on an expression: it cannot take the expression's value from there, and fetches the row.
const FROM_ROWS: Set = ("a column, without index-only scans", Way::Column, "enable_indexonlyscan = off");

/// Judges a query. With `off_only`, the parameter is never on: then there is nothing to find.
///
/// # Errors
/// With a report where rows or work are not as they should be.
pub fn judge(client: &mut Client, query: &Query, off_only: bool, show: bool) -> Result<Verdict, String> {
    let mut runs = Vec::new();
    for (title, way, set) in WAYS {
        runs.push(run(client, query, (title, way, if off_only { OFF } else { set }))?);
    }
    let all = |runs: &[Run]| -> String { runs.iter().map(Run::report).collect() };
    if show {
        println!("{}", all(&runs));
    }
    let [on, off, column] = &runs[..] else { unreachable!() };
    for other in [off, column] {
        // Rows of a sample depend on where they are.
        if query.is_sample && std::ptr::eq(other, column) {
            continue;
        }
        if let Some(difference) = compare::difference_of(&on.rows, &other.rows, query.order) {
            return Err(format!("{} / {}: {difference}\n\n{}{}", on.title, other.title, about(query), all(&runs)));
        }
    }
    let best = if off_only || query.is_sample || off.work.total() < column.work.total() { off } else { column };
    if !on.work.exceeds(&best.work) {
        let differs = (on.work.cost - off.work.cost).abs() > 1e-6;
        return Ok(Verdict::Agrees { differs, saves: off.work.exceeds(&on.work) });
    }
    let from_rows = run(client, query, FROM_ROWS)?;
    let case = Case { query, on: &on.work, off: &off.work, from_rows: &from_rows.work };
    if let Some(reason) = exceptions::reason(&case) {
        return Ok(Verdict::Excepted(reason));
    }
    runs.push(from_rows);
    let [on, off, column, _] = &runs[..] else { unreachable!() };
    let best = if query.is_sample || off.work.total() < column.work.total() { off } else { column };
    let too_much = format!("{} does the work of {:.0} pages, {} of {:.0}", on.title, on.work.total(), best.title, best.work.total());
    Err(format!("{too_much}\n\n{}{}", about(query), all(&runs)))
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

fn run(client: &mut Client, query: &Query, (title, way, set): Set) -> Result<Run, String> {
    let mut begin = format!("BEGIN; SET LOCAL {set}");
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
