//! Where the planners of PostgreSQL's majors differ.

use super::nodes::elements;
use pgrx::pg_sys::{self, EquivalenceClass, EquivalenceMember, Node, PathKey, PlannerInfo, RelOptInfo};

/// The direction of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the lowest to the highest.
    Ascending,
    /// From the highest to the lowest.
    Descending,
}

#[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16", feature = "pg17"))]
mod directions {
    pub const ASCENDING: i32 = pgrx::pg_sys::BTLessStrategyNumber as i32;
    pub const DESCENDING: i32 = pgrx::pg_sys::BTGreaterStrategyNumber as i32;
}
#[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16", feature = "pg17")))]
mod directions {
    use pgrx::pg_sys::CompareType;
    pub const ASCENDING: CompareType::Type = CompareType::COMPARE_LT;
    pub const DESCENDING: CompareType::Type = CompareType::COMPARE_GT;
}

/// The direction of a key.
///
/// # Safety
/// A key of the planner.
pub unsafe fn direction(key: *mut PathKey) -> Direction {
    // SAFETY: as above.
    #[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16", feature = "pg17"))]
    let found = unsafe { (*key).pk_strategy };
    // SAFETY: as above.
    #[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16", feature = "pg17")))]
    let found = unsafe { (*key).pk_cmptype };
    if found == directions::DESCENDING { Direction::Descending } else { Direction::Ascending }
}

/// The key of an order by a class of equal expressions; the same one for the same order.
///
/// # Safety
/// The planner's state, and a class of it.
pub unsafe fn path_key(
    root: *mut PlannerInfo,
    class: *mut EquivalenceClass,
    family: u32,
    direction: Direction,
    nulls_first: bool,
) -> *mut PathKey {
    let direction = match direction {
        Direction::Ascending => directions::ASCENDING,
        Direction::Descending => directions::DESCENDING,
    };
    // SAFETY: as above.
    unsafe { pg_sys::make_canonical_pathkey(root, class, family.into(), direction, nulls_first) }
}

/// The class of a `bigint` column of a table; made where it is missing, if wanted, else NULL.
///
/// # Safety
/// The planner's state, a column of a table of it, and the table.
pub unsafe fn class_of(
    root: *mut PlannerInfo,
    column: *mut Node,
    family: u32,
    table: *mut RelOptInfo,
    create: bool,
) -> *mut EquivalenceClass {
    // SAFETY: as above.
    unsafe {
        let families = pg_sys::lappend_oid(std::ptr::null_mut(), family.into());
        let relids = (*table).relids;
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        return pg_sys::get_eclass_for_sort_expr(
            root,
            column.cast(),
            std::ptr::null_mut(),
            families,
            pg_sys::INT8OID,
            pg_sys::InvalidOid,
            0,
            relids,
            create,
        );
        #[cfg(not(any(feature = "pg14", feature = "pg15")))]
        pg_sys::get_eclass_for_sort_expr(
            root,
            column.cast(),
            families,
            pg_sys::INT8OID,
            pg_sys::InvalidOid,
            0,
            relids,
            create,
        )
    }
}

/// The calls of functions in a class of equal expressions, of this table or of others. Almost all queries have nothing but columns there.
///
/// # Safety
/// A class of the planner, and a table.
pub unsafe fn calls(
    class: *mut EquivalenceClass,
    table: *mut RelOptInfo,
) -> impl Iterator<Item = *mut EquivalenceMember> {
    #[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16", feature = "pg17"))]
    let _ = table;
    // SAFETY: as above.
    let all = unsafe { elements::<EquivalenceMember>((*class).ec_members) };
    // From 18 on, the members of a partition are in a list of its own.
    // SAFETY: as above; there are so many lists.
    #[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16", feature = "pg17")))]
    let all = all.chain(unsafe {
        let relid = (*table).relid as usize;
        let has_list = !(*class).ec_childmembers.is_null() && relid < (*class).ec_childmembers_size as usize;
        elements(if has_list { *(*class).ec_childmembers.add(relid) } else { std::ptr::null_mut() })
    });
    // SAFETY: as above.
    all.filter(|&member| unsafe { (*(*member).em_expr).type_ == pg_sys::NodeTag::T_FuncExpr })
}

/// Those of [`calls`] that are of this table alone, and are not made NULL by an outer join.
///
/// # Safety
/// A class of the planner, and a table.
pub unsafe fn members(
    class: *mut EquivalenceClass,
    table: *mut RelOptInfo,
) -> impl Iterator<Item = *mut EquivalenceMember> {
    // SAFETY: as above.
    unsafe { calls(class, table) }.filter(move |&member| unsafe {
        #[cfg(any(feature = "pg14", feature = "pg15"))]
        if !(*member).em_nullable_relids.is_null() {
            return false;
        }
        pg_sys::bms_equal((*member).em_relids, (*table).relids)
    })
}

/// Whether a column of a table is declared NOT NULL.
///
/// # Safety
/// The planner's state, and a table of it that is one of the database.
pub unsafe fn is_not_null(root: *mut PlannerInfo, table: *mut RelOptInfo, column: i16) -> bool {
    #[cfg(not(any(feature = "pg14", feature = "pg15", feature = "pg16")))]
    {
        let _ = root;
        // SAFETY: as above.
        unsafe { pg_sys::bms_is_member(column.into(), (*table).notnullattnums) }
    }
    #[cfg(any(feature = "pg14", feature = "pg15", feature = "pg16"))]
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
