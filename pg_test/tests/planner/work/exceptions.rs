//! What may do more work with the parameter on, each with its reason.

use super::draft::Query;
use super::judge::{Run, Session};
use super::measure::Work;

/// A query that does too much.
pub struct Case<'a> {
    pub query: &'a Query,
    pub on: &'a Work,
    pub off: &'a Work,
    pub column: &'a Work,
    /// Runs it again, in one of the ways, with something set.
    pub again: &'a mut Session<'a>,
}

/// An exception: its reason, and whether it is this one.
type Exception = (&'static str, fn(&mut Case) -> Result<bool, String>);

const EXCEPTIONS: [Exception; 3] = [
    ("PostgreSQL does as much with a column, where its estimates mislead it", misled),
    ("PostgreSQL fetches the row where an index has an expression and not the column", fetched),
    ("PostgreSQL estimates that a plan which does less costs about the same", tied),
];

/// Why this case may be as it is.
///
/// # Errors
/// Where a way fails.
pub fn reason(case: &mut Case) -> Result<Option<&'static str>, String> {
    for (reason, is_it) in EXCEPTIONS {
        if is_it(case)? {
            return Ok(Some(reason));
        }
    }
    Ok(None)
}

/// With the indexes of the ID and those of the time, there is more to choose from than without the hooks, and more to be wrong about: such as
/// that the rows for a LIMIT are spread evenly. That is so where the time is a column with the same indexes, too.
fn misled(case: &mut Case) -> Result<bool, String> {
    Ok(!case.on.exceeds(case.column) && case.on.is_estimated_as(case.off))
}

/// An index on a column is enough for an index-only scan; one on an expression is not, as PostgreSQL asks it for the column.
fn fetched(case: &mut Case) -> Result<bool, String> {
    if !case.query.has_index_on_time || case.on.exceeds(case.off) {
        return Ok(false);
    }
    let column = case.again.column("enable_indexonlyscan")?;
    Ok(!case.on.exceeds(&column.work))
}

/// What is chosen between at nearly the same cost depends on a page more or less.
fn tied(case: &mut Case) -> Result<bool, String> {
    for kind in [
        "seqscan",
        "indexscan",
        "indexonlyscan",
        "bitmapscan",
        "nestloop",
        "hashjoin",
        "mergejoin",
        "sort",
        "hashagg",
        "memoize",
    ] {
        let other: Run = case.again.on(&format!("enable_{kind}"))?;
        let best = if case.off.total() < case.column.total() { case.off } else { case.column };
        if other.work.is_estimated_as(case.on) && !other.work.exceeds(best) {
            return Ok(true);
        }
    }
    Ok(false)
}
