//! Runs a query in all ways, and compares what it returns.

use super::generator::{Order, Query};
use postgres::{Client, SimpleQueryMessage};
use std::fmt::Write as _;

/// A row, each of its columns as text.
pub type Row = Vec<Option<String>>;

/// What was found of a query whose results agree.
pub struct Outcome {
    pub plans_differ: bool,
    pub rows: usize,
}

/// What one way to run a query gives.
pub struct Run {
    way: &'static str,
    statements: Vec<String>,
    plan: Vec<String>,
    /// By statement.
    pub results: Vec<Vec<Row>>,
}

/// The three ways.
pub const ON: &str = "with plan_by_time on";
pub const OFF: &str = "with plan_by_time off";
pub const TWIN: &str = "with a column for the time";

/// Runs a query with the parameter on, with it off, and on the twins, in one transaction that is rolled back.
///
/// # Errors
/// With a report where a way fails, or the ways do not agree.
pub fn all_ways(client: &mut Client, query: &Query, show: bool) -> Result<Outcome, String> {
    let mut done = Vec::new();
    for run in each_way(client, query) {
        done.push(run.map_err(|error| format!("{}\n{error}", settings(query)))?);
    }
    if show {
        done.iter().for_each(|run| println!("{}", run.report()));
    }
    for pair in done.windows(2) {
        if let Some(difference) = difference(&pair[0], &pair[1], query.order) {
            let all: String = done.iter().map(Run::report).collect();
            return Err(format!("{difference}\n\n{}\n{all}", settings(query)));
        }
    }
    let rows = done[0].results.iter().map(Vec::len).sum();
    Ok(Outcome { plans_differ: done[0].plan != done[1].plan, rows })
}

/// Runs a query in each way, in one transaction that is rolled back. A way that fails gives a report.
pub fn each_way(client: &mut Client, query: &Query) -> [Result<Run, String>; 3] {
    let mut begin = "BEGIN".to_owned();
    for (name, value) in &query.settings {
        write!(begin, "; SET LOCAL {name} = '{value}'").unwrap();
    }
    client.batch_execute(&begin).unwrap_or_else(|error| panic!("{begin}: {error:?}"));
    let runs = [ON, OFF, TWIN].map(|way| {
        client.batch_execute("SAVEPOINT way").unwrap();
        let run = run(client, query, way);
        client.batch_execute("ROLLBACK TO way; DEALLOCATE ALL").unwrap();
        run
    });
    client.batch_execute("ROLLBACK").unwrap();
    runs
}

/// The settings of a query, as SQL.
pub fn settings(query: &Query) -> String {
    query.settings.iter().map(|(name, value)| format!("SET {name} = '{value}';\n")).collect()
}

fn run(client: &mut Client, query: &Query, way: &'static str) -> Result<Run, String> {
    let (statements, explained) = query.statements(way == TWIN, "EXPLAIN (COSTS OFF)");
    let value = if way == ON { "on" } else { "off" };
    let mut all = vec![format!("SET LOCAL pg_snowflake.plan_by_time = {value}")];
    let before = all.len() + explained;
    all.extend(statements.iter().cloned());
    let text = all.join(";\n");
    let answer = client.simple_query(&text);
    let messages = answer.map_err(|error| {
        assert!(!client.is_closed(), "{way}, the server ends: {error:?}\n{}{text}", settings(query));
        let said = error.as_db_error().map_or_else(|| format!("{error:?}"), |error| format!("{error} ({error:?})"));
        format!("{way}, the query fails: {said}\n{text}")
    })?;
    let mut results = vec![Vec::new()];
    for message in messages {
        match message {
            SimpleQueryMessage::Row(row) => {
                let row = (0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect();
                results.last_mut().unwrap().push(row);
            }
            SimpleQueryMessage::CommandComplete(_) => results.push(Vec::new()),
            _ => {}
        }
    }
    let mut results = results.split_off(before);
    results.truncate(statements.len() - explained);
    let plan = results.remove(0).into_iter().map(|mut row: Row| row.remove(0).unwrap()).collect();
    Ok(Run { way, statements, plan, results })
}

/// What differs between two ways, if anything does.
fn difference(one: &Run, other: &Run, order: Order) -> Option<String> {
    let title = format!("{} / {}", one.way, other.way);
    let mut pairs = one.results.iter().zip(&other.results).enumerate();
    pairs.find_map(|(number, (ours, theirs))| {
        difference_of(ours, theirs, order).map(|difference| format!("{title}: result {number} {difference}"))
    })
}

/// What differs between two results, if anything does.
pub fn difference_of(ours: &[Row], theirs: &[Row], order: Order) -> Option<String> {
    let of = |row: &Row| {
        let columns: Vec<&str> = row.iter().map(|column| column.as_deref().unwrap_or("NULL")).collect();
        columns.join(" | ")
    };
    let keys = match order {
        Order::Any => 0,
        Order::Keys(keys) => keys,
        Order::Total => usize::MAX,
    };
    let key = |row: &Row| row[..keys.min(row.len())].to_vec();
    let in_order = ours.iter().zip(theirs).position(|(ours, theirs)| key(ours) != key(theirs));
    if let Some(at) = in_order {
        let (ours, theirs) = (of(&ours[at]), of(&theirs[at]));
        return Some(format!("differs in order from row {at} on:\n  {ours}\n  {theirs}"));
    }
    let sorted = |rows: &[Row]| {
        let mut rows = rows.to_vec();
        rows.sort_unstable();
        rows
    };
    let (ours, theirs) = (sorted(ours), sorted(theirs));
    if ours == theirs {
        return None;
    }
    let only = |these: &[Row], those: &[Row]| {
        let only: Vec<String> = these.iter().filter(|row| !those.contains(row)).take(5).map(of).collect();
        only.join("\n  ")
    };
    Some(format!(
        "has {} and {} rows\nonly in the first:\n  {}\nonly in the second:\n  {}",
        ours.len(),
        theirs.len(),
        only(&ours, &theirs),
        only(&theirs, &ours)
    ))
}

impl Run {
    /// What was run, how it was planned, and how much it returned.
    pub fn report(&self) -> String {
        let rows: Vec<usize> = self.results.iter().map(Vec::len).collect();
        format!("-- {}: {rows:?} rows\n{};\n{}\n\n", self.way, self.statements.join(";\n"), self.plan.join("\n"))
    }
}
