//! Where the planners of PostgreSQL's majors differ.

use super::nodes::{cast, elements};
use super::operators::{self, Accepts};
use pgrx::pg_sys::{
    self, Cost, EquivalenceClass, EquivalenceMember, IndexPath, Node, PlannerInfo, RelOptInfo, RestrictInfo,
    Selectivity,
};

/// A condition, as the planner has those of a query.
///
/// # Safety
/// The planner's state, and an expression of its query.
pub unsafe fn restriction(root: *mut PlannerInfo, condition: *mut Node) -> *mut RestrictInfo {
    let none = std::ptr::null_mut();
    // SAFETY: as above.
    #[cfg(not(since_pg16))]
    return unsafe { pg_sys::make_restrictinfo(root, condition.cast(), true, false, false, 0, none, none, none) };
    // SAFETY: as above.
    #[cfg(since_pg16)]
    return unsafe {
        pg_sys::make_restrictinfo(root, condition.cast(), true, false, false, false, 0, none, none, none)
    };
}

/// Tells how the sides of a comparison of IDs are hashed, as PostgreSQL's `check_memoizable()` does for the conditions of a query. Where one
/// condition of a join lacks this, rows for equal values are not kept (`Memoize`), but read again.
///
/// # Safety
/// A condition of the planner.
pub unsafe fn set_hashed(condition: *mut RestrictInfo) {
    // SAFETY: as above.
    unsafe {
        if cast::<pg_sys::OpExpr>((*condition).clause.cast()).is_none() {
            return;
        }
        let equal = operators::of_ids(Accepts::Equal);
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
///
/// # Safety
/// Two conditions of the planner.
pub unsafe fn place_like(condition: *mut RestrictInfo, other: *mut RestrictInfo) {
    // SAFETY: as above.
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

/// The function that the description of an index has.
///
/// # Safety
/// What estimates the cost of a path over an index.
pub unsafe fn estimate(declared: Declared) -> Estimate {
    // SAFETY: as above.
    #[cfg(not(since_pg16))]
    unsafe {
        std::mem::transmute(declared)
    }
    #[cfg(since_pg16)]
    declared
}

/// Sets in which way rows are compared.
pub const fn set_comparison(rows: &mut pg_sys::RowCompareExpr, accepts: Accepts) {
    #[cfg(not(since_pg18))]
    {
        rows.rctype = accepts.strategy();
    }
    #[cfg(since_pg18)]
    {
        rows.cmptype = accepts.strategy() as _;
    }
}

/// Whether a column is one that an outer join may make NULL. Before 16, the planner has that elsewhere.
pub const fn is_made_null(column: &pg_sys::Var) -> bool {
    #[cfg(not(since_pg16))]
    {
        let _ = column;
        false
    }
    #[cfg(since_pg16)]
    {
        !column.varnullingrels.is_null()
    }
}

/// The members of a class of equal expressions that are of a table of the query.
///
/// # Safety
/// A class of the planner.
pub unsafe fn members(class: *mut EquivalenceClass) -> impl Iterator<Item = *mut EquivalenceMember> {
    // SAFETY: as above. From 18 on, those of partitions are in lists of their own.
    unsafe {
        elements::<EquivalenceMember>((*class).ec_members)
            .filter(|&member| !(*member).em_is_child && !(*member).em_is_const)
    }
}

/// Whether an expression is a column of a table that is declared NOT NULL.
///
/// # Safety
/// The planner's state, a table of it that is one of the database, and an expression of the table.
pub unsafe fn is_not_null(root: *mut PlannerInfo, table: *mut RelOptInfo, expression: *mut Node) -> bool {
    // SAFETY: as above.
    let column = unsafe { cast::<pg_sys::Var>(expression) }.map_or(0, |column| column.varattno);
    // SAFETY: as above.
    column > 0 && unsafe { is_column_not_null(root, table, column) }
}

/// Whether a column of a table is declared NOT NULL.
///
/// # Safety
/// The planner's state, and a table of it that is one of the database.
unsafe fn is_column_not_null(root: *mut PlannerInfo, table: *mut RelOptInfo, column: i16) -> bool {
    #[cfg(since_pg17)]
    {
        let _ = root;
        // SAFETY: as above.
        unsafe { pg_sys::bms_is_member(column.into(), (*table).notnullattnums) }
    }
    #[cfg(not(since_pg17))]
    // SAFETY: as above; the tuple of an attribute is what its struct says.
    unsafe {
        let relation = (**(*root).simple_rte_array.add((*table).relid as usize)).relid;
        let cache = pg_sys::SysCacheIdentifier::ATTNUM as _;
        let tuple = pg_sys::SearchSysCache2(cache, pg_sys::Datum::from(relation), pg_sys::Datum::from(column));
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
