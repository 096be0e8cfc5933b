//! The operators that compare times, and those that compare IDs. Their OIDs are those of PostgreSQL's `pg_operator.dat`, which never
//! change.

use pgrx::pg_sys::{self, DATEOID, Oid, TIMESTAMPOID, TIMESTAMPTZOID};

/// The family of operators that order `bigint`: `integer_ops` of btree, in PostgreSQL's `pg_opfamily.dat`.
pub const INTEGER_OPS: u32 = 1976;

/// The same for `timestamptz`: `datetime_ops`.
pub const DATETIME_OPS: u32 = 434;

/// The family that does for `timestamptz` what this one does for `bigint`; `None` where the operators of this one do not compare.
pub const fn of_times_like(family: u32) -> Option<u32> {
    match family {
        INTEGER_OPS => Some(DATETIME_OPS),
        // BRIN's integer_minmax_ops and datetime_minmax_ops
        4054 => Some(4059),
        // BRIN's integer_minmax_multi_ops and datetime_minmax_multi_ops
        4602 => Some(4605),
        _ => None,
    }
}

/// The values that a comparison accepts on its left side, relative to its right side.
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
    /// The same comparison, which accepts what is equal, too.
    pub const fn or_equal(self) -> Self {
        match self {
            Self::Less => Self::LessOrEqual,
            Self::Greater => Self::GreaterOrEqual,
            same => same,
        }
    }

    /// Its number among the operators of a btree family.
    pub const fn strategy(self) -> u32 {
        match self {
            Self::Less => 1,
            Self::LessOrEqual => 2,
            Self::Equal => 3,
            Self::GreaterOrEqual => 4,
            Self::Greater => 5,
        }
    }

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

/// `=` of `timestamptz`.
pub const EQUAL_TIMES: u32 = 1320;

/// What an operator compares, and the types of its sides, one of which is `timestamptz`; `None` where it compares something else.
pub const fn of_times(operator: u32) -> Option<(Accepts, Oid, Oid)> {
    use Accepts::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    const BY_NUMBER: [Accepts; 5] = [Less, LessOrEqual, Equal, GreaterOrEqual, Greater];
    let (first, left, right) = match operator {
        EQUAL_TIMES => return Some((Equal, TIMESTAMPTZOID, TIMESTAMPTZOID)),
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

/// The operator that compares `bigint` with `bigint` in this way.
pub fn of_ids(accepts: Accepts) -> Oid {
    let operator = match accepts {
        Accepts::Less => BELOW,
        Accepts::LessOrEqual => AT_MOST.operator,
        Accepts::Equal => 410,
        Accepts::GreaterOrEqual => AT_LEAST.operator,
        Accepts::Greater => ABOVE.operator,
    };
    operator.into()
}

/// In which way an operator compares two IDs; `None` where it does something else.
pub const fn of_two_ids(operator: u32) -> Option<Accepts> {
    match operator {
        BELOW => Some(Accepts::Less),
        414 => Some(Accepts::LessOrEqual),
        410 => Some(Accepts::Equal),
        415 => Some(Accepts::GreaterOrEqual),
        413 => Some(Accepts::Greater),
        _ => None,
    }
}

/// The operator of the same family and types that compares in another way.
///
/// # Safety
/// A look-up in the catalog, of an operator of a btree family.
pub unsafe fn in_family(operator: Oid, family: Oid, accepts: Accepts) -> Option<Oid> {
    let (mut strategy, mut left, mut right) = (0, pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: as above.
    let found = unsafe {
        pg_sys::get_op_opfamily_properties(operator, family, false, &raw mut strategy, &raw mut left, &raw mut right);
        pg_sys::get_opfamily_member(family, left, right, accepts.strategy() as _)
    };
    (found != pg_sys::InvalidOid).then_some(found)
}
