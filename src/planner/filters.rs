//! The filters, which are evaluated for each row of a table: a comparison of the ID takes less time than one of its time.
//!
//! When the paths of a table are made, all that its conditions are still for is the plan. Those of a sequential scan are the table's; index scans
//! have a list of their own.

use super::comparisons::Rewriter;
use super::nodes::{copy, elements, list};
use super::{bounds, lists, rising, wholes};
use pg_sys::{Node, NodeTag, Path, PlannerInfo, RelOptInfo, RestrictInfo};
use pgrx::prelude::*;

/// Puts comparisons of a table's IDs in the place of those of their times, unless only indexes are read. Others may add paths that read something
/// else: batches of rows that are compressed, for example, by the lowest and the highest ID of each.
///
/// # Safety
/// The planner's state, and a table of it whose paths are made.
pub unsafe fn rewrite(root: *mut PlannerInfo, table: *mut RelOptInfo, others_add_paths: bool) {
    // SAFETY: as above.
    unsafe {
        let reads_all = |list| elements::<Path>(list).any(|path| (*path).type_ != NodeTag::T_IndexPath);
        if !others_add_paths && !reads_all((*table).pathlist) && !reads_all((*table).partial_pathlist) {
            return;
        }
        let of_table = |expression| rising::time_of(root, expression, (*table).relid);
        let rewriter = Rewriter::new(root, &of_table);
        let (mut all, mut made, mut is_changed) = (Vec::new(), Vec::new(), false);
        for restriction in elements::<RestrictInfo>(wholes::own_conditions(table)) {
            let condition: *mut Node = (*restriction).clause.cast();
            if let Some(list) = lists::gathered(condition) {
                all.push((restriction, list));
                is_changed = true;
                continue;
            }
            let implied = rewriter.implied(condition);
            if implied.is_empty() {
                all.push((restriction, condition));
            }
            all.extend(implied.iter().map(|&one| (restriction, one)));
            made.extend(implied);
        }
        if made.is_empty() && !is_changed {
            return;
        }
        let conditions: Vec<*mut Node> = all.iter().map(|&(_, condition)| condition).collect();
        let needed = bounds::without_implied(&conditions, &made);
        let mut needed = needed.iter().peekable();
        all.retain(|(_, condition)| needed.next_if(|&one| one == condition).is_some());
        let new: Vec<*mut RestrictInfo> = all.into_iter().map(|(like, condition)| instead(like, condition)).collect();
        (*table).baserestrictinfo = list(&new);
    }
}

/// Another condition in place of one, of which only the condition itself, and how and when it may be evaluated, matter from here on.
///
/// # Safety
/// A condition of the planner, and an expression.
unsafe fn instead(restriction: *mut RestrictInfo, condition: *mut Node) -> *mut RestrictInfo {
    // SAFETY: as above.
    unsafe {
        if condition == (*restriction).clause.cast() {
            return restriction;
        }
        let new = pgrx::PgMemoryContexts::CurrentMemoryContext.palloc_struct::<RestrictInfo>();
        new.copy_from_nonoverlapping(restriction, 1);
        (*new).clause = copy(condition).cast();
        (*new).orclause = std::ptr::null_mut();
        // Not known yet.
        (*new).eval_cost.startup = -1.0;
        new
    }
}
