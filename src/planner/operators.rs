//! The operators that compare times, and those that compare IDs. Their OIDs are those of PostgreSQL's `pg_operator.dat`, which never
//! change.

use pgrx::pg_sys::{DATEOID, Oid, TIMESTAMPOID, TIMESTAMPTZOID};

/// What a comparison accepts on its left side, relative to its right side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Less than it.
    Less,
    /// At most it.
    LessOrEqual,
    /// The same.
    Equal,
    /// At least it.
    GreaterOrEqual,
    /// More than it.
    Greater,
}

impl Accepts {
    /// The same comparison with the sides exchanged.
    pub const fn commuted(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Equal => Self::Equal,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Greater => Self::Less,
        }
    }
}

/// An operator that compares `bigint` with `bigint`, and its function, as in `pg_proc.dat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfIds {
    /// The operator's OID.
    pub operator: u32,
    /// Its function's.
    pub function: u32,
}

/// `>=`
pub const AT_LEAST: OfIds = OfIds { operator: 415, function: 472 };
/// `>`
pub const ABOVE: OfIds = OfIds { operator: 413, function: 470 };
/// `<=`
pub const AT_MOST: OfIds = OfIds { operator: 414, function: 471 };
/// `<`
const BELOW: u32 = 412;

/// Whether an operator bounds IDs.
pub const fn bounds_ids(operator: u32) -> bool {
    operator == AT_LEAST.operator || operator == ABOVE.operator || operator == AT_MOST.operator || operator == BELOW
}

/// What an operator compares, and the types of its sides, one of which is `timestamptz`; `None` where it compares something else.
pub const fn of_times(operator: u32) -> Option<(Accepts, Oid, Oid)> {
    use Accepts::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    const BY_NUMBER: [Accepts; 5] = [Less, LessOrEqual, Equal, GreaterOrEqual, Greater];
    let (first, left, right) = match operator {
        1320 => return Some((Equal, TIMESTAMPTZOID, TIMESTAMPTZOID)),
        1322 => return Some((Less, TIMESTAMPTZOID, TIMESTAMPTZOID)),
        1323 => return Some((LessOrEqual, TIMESTAMPTZOID, TIMESTAMPTZOID)),
        1324 => return Some((Greater, TIMESTAMPTZOID, TIMESTAMPTZOID)),
        1325 => return Some((GreaterOrEqual, TIMESTAMPTZOID, TIMESTAMPTZOID)),
        2358..=2362 => (2358, DATEOID, TIMESTAMPTZOID),
        2384..=2388 => (2384, TIMESTAMPTZOID, DATEOID),
        2534..=2538 => (2534, TIMESTAMPOID, TIMESTAMPTZOID),
        2540..=2544 => (2540, TIMESTAMPTZOID, TIMESTAMPOID),
        _ => return None,
    };
    Some((BY_NUMBER[(operator - first) as usize], left, right))
}
