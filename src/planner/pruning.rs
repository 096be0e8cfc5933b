//! Partitions are pruned while the query runs by conditions of joins, too.

use super::bounds;
use super::comparisons::Rewriter;
use super::functions::IdTime;
use super::nodes::{elements, list, numbers};
use super::operators::Accepts;
use super::statistics::{Conditions, Expressions};
use super::{rising, versions};
use pg_sys::{Node, PlannerInfo, RelOptInfo, RestrictInfo};
use pgrx::prelude::*;

/// The paths of a partition are made, and those of the whole are next. PostgreSQL looks for conditions of joins that it can prune partitions by
/// while the query runs; so those on the ID are there meanwhile.
///
/// # Safety
/// The planner's state, and a member whose paths are made.
pub unsafe fn add_joins(root: *mut PlannerInfo, member: *mut RelOptInfo) {
    // SAFETY: as above.
    unsafe {
        let mut whole = member;
        while let Some((_, above)) = rising::place(root, whole) {
            whole = above;
        }
        if (*whole).part_scheme.is_null() {
            return;
        }
        let Some(state) = Expressions::of_table(whole).filter(|state| !state.conditions.has_more_of_joins) else {
            return;
        };
        let of_whole = |expression| {
            let is_of_whole = |time: &IdTime| pg_sys::bms_equal(pg_sys::pull_varnos(root, time.id), (*whole).relids);
            IdTime::read(expression).filter(is_of_whole)
        };
        let mut all: Vec<*mut RestrictInfo> = elements((*whole).joininfo).collect();
        let rewriter = Rewriter::of_joins(root, &of_whole);
        for condition in elements::<RestrictInfo>((*whole).joininfo) {
            for implied in rewriter.implied((*condition).clause.cast()) {
                let new = versions::restriction(root, implied);
                versions::place_like(new, condition);
                all.push(new);
            }
        }
        for implied in of_classes(root, whole, &of_whole) {
            all.push(versions::restriction(root, implied));
        }
        for &condition in &all[elements::<RestrictInfo>((*whole).joininfo).len()..] {
            // They say nothing new.
            (*condition).norm_selec = 1.0;
            (*condition).outer_selec = 1.0;
            versions::set_hashed(condition);
        }
        state.conditions.of_joins = (*whole).joininfo;
        state.conditions.has_more_of_joins = true;
        (*whole).joininfo = list(&all);
    }
}

/// What follows for IDs from classes of equal times.
///
/// # Safety
/// The planner's state, a table of it, and what reads an expression as a time of that.
unsafe fn of_classes(
    root: *mut PlannerInfo,
    whole: *mut RelOptInfo,
    of_whole: &dyn Fn(*mut Node) -> Option<IdTime>,
) -> Vec<*mut Node> {
    let mut all = Vec::new();
    // SAFETY: as above.
    unsafe {
        for number in numbers((*whole).eclass_indexes) {
            let class: *mut pg_sys::EquivalenceClass = (*(*(*root).eq_classes).elements.add(number)).ptr_value.cast();
            let times: Vec<IdTime> =
                versions::members(class).filter_map(|member| of_whole((*member).em_expr.cast())).collect();
            for time in times {
                let others =
                    versions::members(class).filter(|&other| !pg_sys::bms_overlap((*other).em_relids, (*whole).relids));
                for other in others {
                    let expression = (*other).em_expr.cast();
                    all.extend(
                        bounds::of_comparison(root, Accepts::Equal, &time, expression, (*other).em_datatype)
                            .into_iter()
                            .flatten(),
                    );
                }
            }
        }
    }
    all
}

/// Takes them away again.
///
/// # Safety
/// A table of the planner, and what is known of its conditions.
pub unsafe fn remove_joins(whole: *mut RelOptInfo, conditions: &mut Conditions) {
    if conditions.has_more_of_joins {
        // SAFETY: as above.
        unsafe { (*whole).joininfo = conditions.of_joins };
        conditions.has_more_of_joins = false;
    }
}
