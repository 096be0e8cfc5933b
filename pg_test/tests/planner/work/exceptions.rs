//! What may do more work with the parameter on, each with its reason.

use super::draft::Query;
use super::measure::Work;

/// A query that does too much.
#[expect(dead_code, reason = "what an exception may look at")]
pub struct Case<'a> {
    pub query: &'a Query,
    pub on: &'a Work,
    pub off: &'a Work,
    pub column: &'a Work,
    /// With the parameter on.
    pub plan: &'a str,
}

/// An exception: its reason, and whether it is this one.
type Exception = (&'static str, fn(&Case) -> bool);

const EXCEPTIONS: [Exception; 0] = [];

/// Why this case may be as it is.
pub fn reason(case: &Case) -> Option<&'static str> {
    EXCEPTIONS.iter().find(|(_, is_it)| is_it(case)).map(|(reason, _)| *reason)
}
