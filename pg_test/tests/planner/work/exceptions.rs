//! What may do more work with the parameter on, each with its reason.

use super::draft::Query;
use super::measure::Work;

/// A query that does too much.
pub struct Case<'a> {
    pub query: &'a Query,
    pub on: &'a Work,
    pub off: &'a Work,
    /// With a column, but without index-only scans.
    pub from_rows: &'a Work,
}

/// An exception: its reason, and whether it is this one.
type Exception = (&'static str, fn(&Case) -> bool);

const EXCEPTIONS: [Exception; 1] = [(
    "PostgreSQL fetches the row where an index has an expression and not the column",
    |case| case.query.has_index_on_time && !case.on.exceeds(case.off) && !case.on.exceeds(case.from_rows),
)];

/// Why this case may be as it is.
pub fn reason(case: &Case) -> Option<&'static str> {
    EXCEPTIONS.iter().find(|(_, is_it)| is_it(case)).map(|(reason, _)| *reason)
}
