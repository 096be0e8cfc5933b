//! The operators that compare times, and those that compare IDs. Their OIDs are those of PostgreSQL's `pg_operator.dat`, which never
//! change.

use super::nodes::{Expr, compared};
use pgrx::pg_sys::{self, DATEOID, INT8OID, Oid, TIMESTAMPOID, TIMESTAMPTZOID};

/// The family of operators that order `bigint`: `integer_ops` of btree, in PostgreSQL's `pg_opfamily.dat`.
pub const INTEGER_OPS: u32 = 1976;

/// The same for `timestamptz`: `datetime_ops`.
pub const DATETIME_OPS: u32 = 434;

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

/// An operator that compares two values of one type, and its function, as in `pg_proc.dat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparing {
    operator: u32,
    function: u32,
    of_type: Oid,
}

impl Comparing {
    const fn ids(operator: u32, function: u32) -> Self {
        Self { operator, function, of_type: INT8OID }
    }

    const fn times(operator: u32, function: u32) -> Self {
        Self { operator, function, of_type: TIMESTAMPTZOID }
    }

    /// The operator's OID.
    pub const fn operator(self) -> u32 {
        self.operator
    }

    /// The OID of its function.
    pub const fn function(self) -> u32 {
        self.function
    }

    /// A comparison by this operator; `None` where a side is of another type, which the operator would read as what it is not.
    pub fn of<'p>(self, left: Expr<'p>, right: Expr<'p>) -> Option<Expr<'p>> {
        if left.type_of() != self.of_type || right.type_of() != self.of_type {
            return None;
        }
        Some(compared((self.operator, self.function), left, right))
    }
}

/// `>=`
pub const AT_LEAST: Comparing = Comparing::ids(415, 472);
/// `>`
pub const ABOVE: Comparing = Comparing::ids(413, 470);
/// `<=`
pub const AT_MOST: Comparing = Comparing::ids(414, 471);
/// `<`
pub const BELOW: u32 = 412;
/// `=`
pub const EQUAL: u32 = 410;

/// Whether an operator bounds IDs.
pub const fn bounds_ids(operator: u32) -> bool {
    operator == AT_LEAST.operator || operator == ABOVE.operator || operator == AT_MOST.operator || operator == BELOW
}

/// `=` of `timestamptz`.
pub const EQUAL_TIMES: u32 = 1320;

/// The operator that compares `timestamptz` with `timestamptz` in this way.
pub const fn of_instants(accepts: Accepts) -> Comparing {
    match accepts {
        Accepts::Less => Comparing::times(1322, 1154),
        Accepts::LessOrEqual => Comparing::times(1323, 1155),
        Accepts::Equal => Comparing::times(EQUAL_TIMES, 1152),
        Accepts::GreaterOrEqual => Comparing::times(1325, 1156),
        Accepts::Greater => Comparing::times(1324, 1157),
    }
}

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

/// Whether an operator is one of [`compares`] that accepts what is equal alone.
pub fn is_equality(operator: Oid) -> bool {
    compares(operator.to_u32()) == Some(Accepts::Equal)
}

/// How an operator compares that may have what is made of a time on one of its sides: those of btree's families of `datetime`, `numeric`,
/// `float`, `interval` and, for numbers of days, `integer`; `None` where it is another one.
pub const fn compares(operator: u32) -> Option<Accepts> {
    use Accepts::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    // Of two types, in the order of their strategies.
    const BY_NUMBER: [Accepts; 5] = [Less, LessOrEqual, Equal, GreaterOrEqual, Greater];
    let first = match operator {
        2345..=2349 => 2345,
        2358..=2362 => 2358,
        2371..=2375 => 2371,
        2384..=2388 => 2384,
        2534..=2538 => 2534,
        2540..=2544 => 2540,
        // Of one: date, timestamptz, timestamp, interval, numeric, double precision, integer; and of integer and bigint.
        1095 | 1322 | 2062 | 1332 | 1754 | 672 | 97 | 37 => return Some(Less),
        1096 | 1323 | 2063 | 1333 | 1755 | 673 | 523 | 80 => return Some(LessOrEqual),
        1093 | 1320 | 2060 | 1330 | 1752 | 670 | 96 | 15 => return Some(Equal),
        1098 | 1325 | 2065 | 1335 | 1757 | 675 | 525 | 82 => return Some(GreaterOrEqual),
        1097 | 1324 | 2064 | 1334 | 1756 | 674 | 521 | 76 => return Some(Greater),
        _ => return None,
    };
    Some(BY_NUMBER[(operator - first) as usize])
}

/// The operator that compares `bigint` with `bigint` in this way.
pub fn of_ids(accepts: Accepts) -> Oid {
    let operator = match accepts {
        Accepts::Less => BELOW,
        Accepts::LessOrEqual => AT_MOST.operator,
        Accepts::Equal => EQUAL,
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
        EQUAL => Some(Accepts::Equal),
        415 => Some(Accepts::GreaterOrEqual),
        413 => Some(Accepts::Greater),
        _ => None,
    }
}

/// The operator of the same family and types that compares in another way. The operator is one of a btree family.
pub fn in_family(operator: Oid, family: Oid, accepts: Accepts) -> Option<Oid> {
    let (mut strategy, mut left, mut right) = (0, pg_sys::InvalidOid, pg_sys::InvalidOid);
    // SAFETY: look-ups in the catalog; an operator of another family is an ERROR.
    let found = unsafe {
        pg_sys::get_op_opfamily_properties(operator, family, false, &raw mut strategy, &raw mut left, &raw mut right);
        pg_sys::get_opfamily_member(family, left, right, accepts.strategy() as _)
    };
    (found != pg_sys::InvalidOid).then_some(found)
}

/// Operators by which a range has a value, by their OIDs: where the value is, and whether the other side is a multirange.
pub const CONTAIN: [(u32, usize, bool); 4] = [(3889, 1, false), (3891, 0, false), (2869, 1, true), (2872, 0, true)];

/// `<@` of a value and a range, and its function.
pub const WITHIN: (u32, u32) = (3891, 3860);

/// `&&`: which of its sides are multiranges.
pub const OVERLAP: [(u32, [bool; 2]); 3] = [(3888, [false, false]), (2866, [false, true]), (2867, [true, false])];
