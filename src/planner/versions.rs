//! Where the planners of PostgreSQL's majors differ.

use super::nodes::{At, Expr, made};
use super::operators::{self, Accepts};
use super::state::{Index, Planner, Rel, Restriction};
use pgrx::pg_sys::{self, Cost, EquivalenceClass, EquivalenceMember, IndexPath, PlannerInfo, Selectivity};

/// A condition, as the planner has those of a query.
pub fn restriction<'p>(planner: Planner<'p>, condition: Expr<'p>) -> Restriction<'p> {
    let none = std::ptr::null_mut();
    let (root, clause) = (planner.as_ptr(), condition.as_ptr().cast());
    // SAFETY: this makes a new node for an expression; there are no sets of tables.
    unsafe {
        #[cfg(not(since_pg16))]
        let new = pg_sys::make_restrictinfo(root, clause, true, false, false, 0, none, none, none);
        #[cfg(since_pg16)]
        let new = pg_sys::make_restrictinfo(root, clause, true, false, false, false, 0, none, none, none);
        made(new)
    }
}

/// Tells how the sides of a comparison of IDs are hashed, as PostgreSQL's `check_memoizable()` does for the conditions of a query. Where one
/// condition of a join lacks this, rows for equal values are not kept (`Memoize`), but read again.
pub fn set_hashed(condition: Restriction<'_>) {
    let sides = condition.clause().cast::<pg_sys::OpExpr>().map(|comparison| comparison.args());
    // The operator reads both.
    if !sides.is_some_and(|sides| sides.iter().all(|side| side.type_of() == pg_sys::INT8OID)) {
        return;
    }
    let equal = operators::of_ids(Accepts::Equal);
    let condition = condition.as_ptr();
    // SAFETY: fields of a condition, both sides of which are of the type that the operator compares.
    unsafe {
        #[cfg(not(since_pg15))]
        {
            (*condition).hasheqoperator = equal;
        }
        #[cfg(since_pg15)]
        {
            (*condition).left_hasheqoperator = equal;
            (*condition).right_hasheqoperator = equal;
        }
    }
}

/// Has a condition of joins apply where another one does.
pub fn place_like(condition: Restriction<'_>, other: Restriction<'_>) {
    let (condition, other) = (condition.as_ptr(), other.as_ptr());
    // SAFETY: fields of two conditions of one query, which may share sets of tables.
    unsafe {
        (*condition).is_pushed_down = (*other).is_pushed_down;
        (*condition).outer_relids = (*other).outer_relids;
        (*condition).required_relids = (*other).required_relids;
        #[cfg(not(since_pg16))]
        {
            (*condition).outerjoin_delayed = (*other).outerjoin_delayed;
            (*condition).nullable_relids = (*other).nullable_relids;
        }
        #[cfg(since_pg16)]
        {
            (*condition).incompatible_relids = (*other).incompatible_relids;
            (*condition).has_clone = (*other).has_clone;
            (*condition).is_clone = (*other).is_clone;
        }
    }
}

/// How a cache of the catalog is numbered where a change is told.
#[cfg(not(since_pg19))]
pub type CacheNumber = i32;
/// How a cache of the catalog is numbered where a change is told.
#[cfg(since_pg19)]
pub type CacheNumber = pg_sys::SysCacheIdentifier::Type;

/// What estimates the cost of a path over an index.
pub type Estimate = unsafe extern "C-unwind" fn(
    *mut PlannerInfo,
    *mut IndexPath,
    f64,
    *mut Cost,
    *mut Cost,
    *mut Selectivity,
    *mut f64,
    *mut f64,
);

/// The same, as the description of an index has it: before 16, without its arguments.
#[cfg(not(since_pg16))]
pub type Declared = unsafe extern "C-unwind" fn();
/// The same, as the description of an index has it.
#[cfg(since_pg16)]
pub type Declared = Estimate;

/// The function as the description of an index has it.
pub fn declared(estimate: Estimate) -> Declared {
    // SAFETY: PostgreSQL calls it with these arguments, however it is declared.
    #[cfg(not(since_pg16))]
    unsafe {
        std::mem::transmute(estimate)
    }
    #[cfg(since_pg16)]
    estimate
}

/// The function that estimates the cost of a path over an index.
pub fn estimate_of(index: Index<'_>) -> Option<Estimate> {
    // SAFETY: a field of an index. PostgreSQL calls what is in it with these arguments, however it is declared.
    unsafe {
        let estimate = (*index.as_ptr()).amcostestimate;
        #[cfg(not(since_pg16))]
        let estimate = std::mem::transmute::<Option<Declared>, Option<Estimate>>(estimate);
        estimate
    }
}

/// Whether the cost of a path over an index is estimated by this function: the index was made here, or is a copy of one that was.
pub fn is_estimated_by(index: Index<'_>, estimate: Estimate) -> bool {
    estimate_of(index).is_some_and(|function| std::ptr::fn_addr_eq(function, estimate))
}

/// Sets in which way rows are compared.
pub fn set_comparison(rows: At<'_, pg_sys::RowCompareExpr>, accepts: Accepts) {
    let rows = rows.as_ptr();
    // SAFETY: a field of the comparison, which holds such numbers.
    unsafe {
        #[cfg(not(since_pg18))]
        {
            (*rows).rctype = accepts.strategy();
        }
        #[cfg(since_pg18)]
        {
            (*rows).cmptype = accepts.strategy() as _;
        }
    }
}

/// The table of a column. Before 15, PostgreSQL declares the number otherwise.
#[inline]
pub fn table_of(column: At<'_, pg_sys::Var>) -> u32 {
    column.number() as _
}

/// Whether a column is one that an outer join may make NULL. Before 16, the planner has that elsewhere.
pub fn is_made_null(column: At<'_, pg_sys::Var>) -> bool {
    #[cfg(not(since_pg16))]
    {
        let _ = column;
        false
    }
    #[cfg(since_pg16)]
    {
        !column.made_null_by().is_empty()
    }
}

/// The members of a class of equal expressions that are of a table of the query. From 18 on, those of partitions are in lists of their own.
pub fn members<'p>(class: At<'p, EquivalenceClass>) -> impl Iterator<Item = At<'p, EquivalenceMember>> {
    class.members().iter().filter(|member| !member.is_child() && !member.is_const())
}

/// Whether an expression is a column of a table that is declared NOT NULL. The table is one of the database.
pub fn is_not_null<'p>(planner: Planner<'p>, table: Rel<'p>, expression: Expr<'p>) -> bool {
    let column = expression.cast::<pg_sys::Var>().map_or(0, |column| column.attribute());
    column > 0 && is_column_not_null(planner, table, column)
}

#[cfg(since_pg17)]
fn is_column_not_null(_: Planner<'_>, table: Rel<'_>, column: i16) -> bool {
    table.not_null().has(column.unsigned_abs().into())
}

#[cfg(not(since_pg17))]
fn is_column_not_null(planner: Planner<'_>, table: Rel<'_>, column: i16) -> bool {
    // Children of an inheritance parent may have NULLs all the same.
    let is_enforced = |entry: &super::state::RangeEntry<'_>| {
        !entry.has_members() || entry.relkind() as u8 == pg_sys::RELKIND_PARTITIONED_TABLE
    };
    let Some(entry) = planner.entry(table.number()).filter(is_enforced) else { return false };
    let cache = pg_sys::SysCacheIdentifier::ATTNUM as _;
    // SAFETY: a look-up in the catalog; the tuple of an attribute, which is held meanwhile, is what its struct says.
    unsafe {
        let tuple = pg_sys::SearchSysCache2(cache, pg_sys::Datum::from(entry.oid()), pg_sys::Datum::from(column));
        if tuple.is_null() {
            return false;
        }
        let data = (*tuple).t_data;
        let attribute = data.cast::<u8>().add((*data).t_hoff.into()).cast::<pg_sys::FormData_pg_attribute>();
        let is_not_null = (*attribute).attnotnull;
        pg_sys::ReleaseSysCache(tuple);
        is_not_null
    }
}

/// How many elements an array most probably has.
pub fn expected_elements<'p>(planner: Planner<'p>, array: Expr<'p>) -> f64 {
    let array = array.as_ptr();
    // SAFETY: this reads an expression.
    unsafe {
        #[cfg(not(since_pg17))]
        {
            let _ = planner;
            pg_sys::estimate_array_length(array).into()
        }
        #[cfg(since_pg17)]
        {
            pg_sys::estimate_array_length(planner.as_ptr(), array)
        }
    }
}
