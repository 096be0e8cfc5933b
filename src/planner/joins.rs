//! Two tables that are joined by equal times. That condition stays, as a hash or merge join needs it. The bounds are added to it, so
//! that an index on the ID can serve a nested loop. They say nothing new, which the planner's estimates must take into account:
//! see [`set_selectivities`].

use super::nodes::{cast, elements};
use pgrx::pg_sys::{self, Node};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The location in the query's text of the bounds that are added to an equality, and of the equality itself. PostgreSQL uses -1 for
/// nodes that have none, and treats all negative numbers alike.
const IMPLIED: i32 = -2;
const HAS_BOUNDS: i32 = -3;

/// Whether bounds were added to an equality of the query whose first table was looked at last.
static HAS_ANY: AtomicBool = AtomicBool::new(false);

/// A query's first table is looked at. All of its tables are, before the next query's.
pub fn begin() {
    HAS_ANY.store(false, Relaxed);
}

/// Whether bounds were added to any equality since [`begin`].
pub fn has_any() -> bool {
    HAS_ANY.load(Relaxed)
}

/// Whether two expressions are of different tables.
///
/// # Safety
/// The planner's state, and two expressions of its query.
pub unsafe fn of_different_tables(root: *mut pg_sys::PlannerInfo, left: *mut Node, right: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe {
        let (left, right) = (pg_sys::pull_varnos(root, left), pg_sys::pull_varnos(root, right));
        !left.is_null() && !right.is_null() && !pg_sys::bms_overlap(left, right)
    }
}

/// Passes on the sides of the equalities that bounds were added to. Takes no memory: it runs for each table of every query.
///
/// # Safety
/// A part of a query's join tree whose conditions are rewritten.
pub unsafe fn for_each_side(node: *mut Node, found: &mut dyn FnMut(*mut Node)) {
    // SAFETY: as above.
    unsafe {
        let conditions = if let Some(from) = cast::<pg_sys::FromExpr>(node) {
            elements::<Node>(from.fromlist).for_each(|part| for_each_side(part, found));
            from.quals
        } else if let Some(join) = cast::<pg_sys::JoinExpr>(node) {
            for_each_side(join.larg, found);
            for_each_side(join.rarg, found);
            join.quals
        } else {
            return;
        };
        if let Some(conditions) = cast::<pg_sys::List>(conditions) {
            let operations = elements::<Node>(conditions).filter_map(|condition| cast::<pg_sys::OpExpr>(condition));
            let equalities = operations.filter(|operation| has_bounds(operation));
            equalities.for_each(|equality| elements::<Node>(equality.args).for_each(&mut *found));
        }
    }
}

/// Says that the bounds which are added to an equality exclude nothing that the equality does not exclude.
///
/// # Safety
/// A table of the planner whose conditions are distributed.
pub unsafe fn set_selectivities(table: *mut pg_sys::RelOptInfo) {
    // SAFETY: as above.
    unsafe {
        for restriction in elements::<pg_sys::RestrictInfo>((*table).joininfo) {
            let operation = cast::<pg_sys::OpExpr>((*restriction).clause.cast());
            if operation.is_some_and(|operation| operation.location == IMPLIED) {
                (*restriction).norm_selec = 1.0;
                (*restriction).outer_selec = 1.0;
            }
        }
    }
}

/// Whether bounds were added to an equality.
pub const fn has_bounds(equality: &pg_sys::OpExpr) -> bool {
    equality.location == HAS_BOUNDS
}

/// The equality and the bounds that it implies, marked as such.
///
/// # Safety
/// The bounds are operations.
pub unsafe fn with_bounds(equality: &mut pg_sys::OpExpr, implied: &[*mut Node]) -> Vec<*mut Node> {
    for &bound in implied {
        // SAFETY: as above.
        unsafe { (*bound.cast::<pg_sys::OpExpr>()).location = IMPLIED };
    }
    equality.location = HAS_BOUNDS;
    HAS_ANY.store(true, Relaxed);
    [&[std::ptr::from_mut(equality).cast()], implied].concat()
}
