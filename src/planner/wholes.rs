//! Tables that have members: partitions, children by inheritance, and the parts of a UNION ALL.
//!
//! Partitions by ID are pruned by conditions on the ID. So for a table that has members, those are added which follow from conditions on
//! its times. They say nothing new, and the planner would take a row for twice as rare. So a member gets what it has a use for: one
//! that has members itself, both; a foreign table, whose server knows only IDs, those on the ID instead; any other, none.

use super::comparisons::{Rewriter, Use};
use super::functions::IdTime;
use super::nodes::{cast, elements, list, numbers};
use super::operators::{self, Accepts};
use super::statistics::Expressions;
use super::{bounds, comparisons, lists, rising, statistics, twins, versions};
use pg_sys::{AppendRelInfo, List, Node, PlannerInfo, RelOptInfo, RestrictInfo};
use pgrx::prelude::*;
use std::ffi::CString;

/// What becomes of a table's conditions on its times.
///
/// # Safety
/// The planner's state, and a table of it.
pub unsafe fn use_of(root: *mut PlannerInfo, table: *mut RelOptInfo) -> Use {
    // SAFETY: as above; the array has an element for each number of a table in the query.
    unsafe {
        let entry = *(*root).simple_rte_array.add((*table).relid as usize);
        if (*entry).rtekind != pg_sys::RTEKind::RTE_RELATION {
            Use::Plain
        } else if !(*entry).securityQuals.is_null() || (*entry).relkind as u8 == pg_sys::RELKIND_FOREIGN_TABLE {
            Use::IdsOnly
        } else if (*entry).inh || is_extended_later(entry) {
            Use::Both
        } else {
            Use::Plain
        }
    }
}

/// Adds to the conditions of a query what a table has a use for.
///
/// # Safety
/// The planner's state of a query whose expressions are preprocessed, and not distributed yet; and a table of it that is no member.
pub unsafe fn add_conditions(root: *mut PlannerInfo, table: *mut RelOptInfo) {
    // SAFETY: as above.
    unsafe {
        let which = use_of(root, table);
        if which == Use::Both || twins::has_any(table) {
            lists::spread(root, (*table).relid);
        }
        if which != Use::Plain {
            let added = comparisons::rewrite(root, table, which);
            if let Some(state) = Expressions::of_table(table) {
                state.conditions.implied = list(&added);
            }
        }
    }
}

/// Whether a table has children that PostgreSQL does not add: the query asks for ONLY the table, or an extension adds its children by itself, as
/// TimescaleDB does.
///
/// # Safety
/// A table of the query.
unsafe fn is_extended_later(entry: *mut pg_sys::RangeTblEntry) -> bool {
    // SAFETY: as above.
    unsafe { (*entry).relkind as u8 == pg_sys::RELKIND_RELATION && pg_sys::has_subclass((*entry).relid) }
}

/// Whether the whole that a table is about to be added to has conditions that are there for a member which was added before. Calls nothing
/// of PostgreSQL, and takes no memory.
///
/// # Safety
/// As [`hand_down`].
pub unsafe fn has_others(root: *mut PlannerInfo, member: *mut RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        rising::place(root, member).is_some_and(|(_, whole)| {
            elements::<RestrictInfo>((*whole).baserestrictinfo)
                .any(|one| numbers((*one).clause_relids).any(|table| table != (*whole).relid as usize))
        })
    }
}

/// Notes that an extension may add members to a table later. It has conditions on the ID until then.
///
/// # Safety
/// A table of the planner.
pub unsafe fn expect_members(table: *mut RelOptInfo) {
    // SAFETY: as above.
    if let Some(state) = unsafe { Expressions::of_table(table) } {
        state.conditions.expects_members = true;
    }
}

/// Whether an extension may add members to a table later. Calls nothing of PostgreSQL.
///
/// # Safety
/// A table of the planner.
pub unsafe fn expects_members(table: *mut RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe { Expressions::of_table(table) }.is_some_and(|state| state.conditions.expects_members)
}

/// Whether there may be something to do when the paths of a table are made. TimescaleDB takes the indexes, and so what is known of its times,
/// from a compressed chunk; its hypertable has that still. Calls nothing of PostgreSQL.
///
/// # Safety
/// The planner's state, and a table of it.
pub unsafe fn is_prepared(root: *mut PlannerInfo, table: *mut RelOptInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        statistics::is_prepared(table)
            || (*table).indexlist.is_null()
                && rising::place(root, table).is_some_and(|(_, whole)| statistics::is_prepared(whole))
    }
}

/// The conditions of a table without those that were added for members, which it has not got.
///
/// # Safety
/// A table of the planner.
pub unsafe fn own_conditions(table: *mut RelOptInfo) -> *mut List {
    // SAFETY: as above.
    unsafe {
        match Expressions::of_table(table) {
            Some(state) if state.conditions.expects_members => {
                without((*table).baserestrictinfo, state.conditions.implied)
            }
            _ => (*table).baserestrictinfo,
        }
    }
}

/// Sees to it that a table that is about to be added to a whole gets the conditions that it has a use for: it gets those that the whole has.
///
/// # Safety
/// The planner's state, and a member that is looked at, and not added yet.
pub unsafe fn hand_down(root: *mut PlannerInfo, member: *mut RelOptInfo) {
    // SAFETY: as above.
    unsafe {
        let Some((place, whole)) = rising::place(root, member) else { return };
        let own = match Expressions::of_table(whole) {
            Some(state) => {
                let state = &mut state.conditions;
                if state.all.is_null() {
                    state.all = (*whole).baserestrictinfo;
                    state.handed_down = without(state.all, state.implied);
                }
                state.handed_down
            }
            None => of_whole(root, whole),
        };
        // What is there for one member alone is taken away before the next one is added; but only tables come here.
        let which = use_of(root, member);
        let has_use = which != Use::Plain || twins::has_any(member);
        (*whole).baserestrictinfo = match which {
            _ if has_use && is_before_query(root, place) => own,
            Use::Plain => {
                let is_child = (*whole).rtekind == pg_sys::RTEKind::RTE_RELATION && (*whole).part_scheme.is_null();
                let own = if twins::has_any(member) { with_alternatives(root, place, member, own) } else { own };
                if is_child && is_excluded(root, member, own) {
                    with_implied(root, place, member, own, false)
                } else {
                    own
                }
            }
            Use::Both => {
                let own = with_alternatives(root, place, member, own);
                with_implied(root, place, member, own, false)
            }
            Use::IdsOnly => with_implied(root, place, member, own, true),
        };
    }
}

/// Whether the next member of the same UNION ALL is no table, but a query.
///
/// # Safety
/// The planner's state, and a member's place.
unsafe fn is_before_query(root: *mut PlannerInfo, place: *mut AppendRelInfo) -> bool {
    // SAFETY: as above; the array has an element for each number of a table in the query.
    unsafe {
        let kind = |number: pg_sys::Index| (**(*root).simple_rte_array.add(number as usize)).rtekind;
        if kind((*place).parent_relid) != pg_sys::RTEKind::RTE_SUBQUERY {
            return false;
        }
        let mut others = elements::<AppendRelInfo>((*root).append_rel_list).skip_while(|&one| one != place).skip(1);
        others
            .find(|&one| (*one).parent_relid == (*place).parent_relid)
            .is_some_and(|next| kind((*next).child_relid) != pg_sys::RTEKind::RTE_RELATION)
    }
}

/// A condition that a UNION ALL has for one of its members.
///
/// What it says of the member would say something else of the whole: PostgreSQL looks for conditions of the whole that contradict each other, too.
/// So it is a column that the whole has for the moment: the condition is what the column is in that member.
#[repr(C)]
struct OfMember {
    /// What the planner sees. It has a pointer to this, so it comes first.
    restriction: RestrictInfo,
    /// The condition of the whole that it takes the place of, or NULL.
    instead_of: *mut RestrictInfo,
    /// What the member's columns were before.
    place: *mut AppendRelInfo,
}

/// The conditions that a whole gets for one of its members.
struct ForMember {
    root: *mut PlannerInfo,
    member: *mut RelOptInfo,
    place: *mut AppendRelInfo,
    is_part: bool,
}

impl ForMember {
    /// # Safety
    /// The planner's state, a member that is about to be added, and what it has from its whole.
    unsafe fn new(root: *mut PlannerInfo, member: *mut RelOptInfo, place: *mut AppendRelInfo) -> Self {
        // SAFETY: as above; the array has an element for each number of a table in the query.
        let whole = unsafe { &**(*root).simple_rte_array.add((*place).parent_relid as usize) };
        Self { root, member, place, is_part: whole.rtekind == pg_sys::RTEKind::RTE_SUBQUERY }
    }

    /// A condition of the whole that is this one of the member, and applies as one of the whole does.
    ///
    /// # Safety
    /// A condition of the whole, and one of the member.
    unsafe fn add(&self, like: *mut RestrictInfo, condition: *mut Node, instead: bool) -> *mut RestrictInfo {
        // SAFETY: as above; what becomes of the columns of a whole is in their order.
        unsafe {
            let clause = if self.is_part { self.column(condition) } else { condition };
            let new = pgrx::PgMemoryContexts::CurrentMemoryContext.palloc_struct::<OfMember>();
            let instead_of = if instead { like } else { std::ptr::null_mut() };
            new.write(OfMember { restriction: std::ptr::read(like), instead_of, place: self.place });
            let new = &raw mut (*new).restriction;
            (*new).clause = clause.cast();
            (*new).orclause = std::ptr::null_mut();
            // Of the member: so it is known again.
            (*new).clause_relids = (*self.member).relids;
            new
        }
    }

    /// A column of the whole that is this condition in the member.
    ///
    /// # Safety
    /// A condition of the member.
    unsafe fn column(&self, condition: *mut Node) -> *mut Node {
        // SAFETY: as above. The list of all members has the place as it was.
        unsafe {
            let current = (*self.root).append_rel_array.add((*self.member).relid as usize);
            if *current == self.place {
                let copy = pgrx::PgMemoryContexts::CurrentMemoryContext.palloc_struct::<AppendRelInfo>();
                copy.copy_from_nonoverlapping(self.place, 1);
                (*copy).translated_vars = pg_sys::list_copy((*copy).translated_vars);
                *current = copy;
            }
            (**current).translated_vars = pg_sys::lappend((**current).translated_vars, condition.cast());
            let number = (*(**current).translated_vars).length as i16;
            let whole = (*self.place).parent_relid as i32;
            pg_sys::makeVar(whole as _, number, pg_sys::BOOLOID, -1, pg_sys::InvalidOid, 0).cast()
        }
    }
}

/// The conditions of a whole that are its own, and not of a member that was added before.
///
/// # Safety
/// The planner's state, and a table of it that has members.
unsafe fn of_whole(root: *mut PlannerInfo, whole: *mut RelOptInfo) -> *mut List {
    // SAFETY: as above. What is not of the whole alone was made here.
    unsafe {
        let is_own = |one: *mut RestrictInfo| pg_sys::bms_is_subset((*one).clause_relids, (*whole).relids);
        if elements((*whole).baserestrictinfo).all(is_own) {
            return (*whole).baserestrictinfo;
        }
        let mut own: Vec<*mut RestrictInfo> = Vec::new();
        for one in elements::<RestrictInfo>((*whole).baserestrictinfo) {
            let before = if is_own(one) {
                one
            } else {
                let of_member = &*one.cast::<OfMember>();
                *(*root).append_rel_array.add((*of_member.place).child_relid as usize) = of_member.place;
                of_member.instead_of
            };
            if !before.is_null() && own.last() != Some(&before) {
                own.push(before);
            }
        }
        list(&own)
    }
}

/// The conditions without those that were added, which come in this order.
///
/// # Safety
/// Conditions of the planner, and expressions.
unsafe fn without(conditions: *mut List, implied: *mut List) -> *mut List {
    // SAFETY: as above.
    unsafe {
        let implied: Vec<*mut Node> = elements(implied).collect();
        let mut next = 0;
        let mut is_own = |condition: *mut Node| {
            if !compares_ids(condition) {
                return true;
            }
            let is_same = |one: &*mut Node| *one == condition || pg_sys::equal(one.cast(), condition.cast());
            match implied[next..].iter().position(is_same) {
                Some(at) => next += at + 1,
                None => return true,
            }
            false
        };
        let own: Vec<*mut RestrictInfo> =
            elements::<RestrictInfo>(conditions).filter(|&one| is_own((*one).clause.cast())).collect();
        list(&own)
    }
}

/// Whether a condition may be one that is made here: a comparison of IDs, or several.
///
/// # Safety
/// A condition.
unsafe fn compares_ids(condition: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe {
        cast::<pg_sys::BoolExpr>(condition).is_some()
            || cast::<pg_sys::NullTest>(condition).is_some()
            || cast::<pg_sys::OpExpr>(condition).is_some_and(|one| operators::bounds_ids(one.opno.to_u32()))
    }
}

/// The conditions of a whole, with those for a member that follow from them, or with those in their place.
///
/// # Safety
/// The planner's state, a member and its place, and the conditions of the whole.
unsafe fn with_implied(
    root: *mut PlannerInfo,
    place: *mut AppendRelInfo,
    member: *mut RelOptInfo,
    conditions: *mut List,
    instead: bool,
) -> *mut List {
    // SAFETY: as above.
    unsafe {
        let time_of = |expression| IdTime::read(expression);
        let rewriter = Rewriter::new(root, &time_of);
        let for_member = ForMember::new(root, member, place);
        // With the columns that it has by now.
        let mut place = *(*root).append_rel_array.add((*member).relid as usize);
        let (mut all, mut more, mut added) = (Vec::new(), Vec::new(), Vec::new());
        for condition in elements::<RestrictInfo>(conditions) {
            let of_member = pg_sys::adjust_appendrel_attrs(root, (*condition).clause.cast(), 1, &raw mut place);
            let implied = rewriter.implied(of_member);
            if !instead || implied.is_empty() {
                all.push(condition);
            }
            more.extend(implied.iter().map(|&one| for_member.add(condition, one, instead)));
            added.extend(implied);
        }
        if let Some(state) = Expressions::of_table(member) {
            state.conditions.implied = list(&added);
        }
        all.extend(more);
        list(&all)
    }
}

/// The conditions of a whole, with an OR for a member in place of each list of its times. (Those of a table are ORs before its conditions are
/// distributed.)
///
/// # Safety
/// As [`with_implied`].
unsafe fn with_alternatives(
    root: *mut PlannerInfo,
    mut place: *mut AppendRelInfo,
    member: *mut RelOptInfo,
    conditions: *mut List,
) -> *mut List {
    // SAFETY: as above.
    unsafe {
        let is_list = |one: *mut RestrictInfo| cast::<pg_sys::ScalarArrayOpExpr>((*one).clause.cast()).is_some();
        if !elements::<RestrictInfo>(conditions).any(is_list) {
            return conditions;
        }
        let for_member = ForMember::new(root, member, place);
        let mut all = Vec::new();
        for condition in elements::<RestrictInfo>(conditions) {
            let mut of_member = || pg_sys::adjust_appendrel_attrs(root, (*condition).clause.cast(), 1, &raw mut place);
            let alternatives =
                if is_list(condition) { lists::alternatives(root, of_member(), (*member).relid) } else { None };
            all.push(
                alternatives
                    .map_or(condition, |alternatives| for_member.add(condition, lists::any_of(&alternatives), true)),
            );
        }
        list(&all)
    }
}

/// Whether a child's CHECK constraints on its IDs exclude all rows that the query asks for. PostgreSQL finds that out if it knows the conditions on the
/// ID.
///
/// # Safety
/// The planner's state, a child, and the conditions of its parent.
unsafe fn is_excluded(root: *mut PlannerInfo, child: *mut RelOptInfo, conditions: *mut List) -> bool {
    // SAFETY: as above; the query has locked its tables. PostgreSQL reads constraints in the same way.
    unsafe {
        if pg_sys::constraint_exclusion as u32 == pg_sys::ConstraintExclusionType::CONSTRAINT_EXCLUSION_OFF {
            return false;
        }
        let Some((mut place, _)) = rising::place(root, child) else { return false };
        let time_of = |expression| IdTime::read(expression);
        let rewriter = Rewriter::new(root, &time_of);
        let implied: Vec<*mut Node> = elements::<RestrictInfo>(conditions)
            .flat_map(|condition| {
                let clause = (*condition).clause.cast();
                rewriter.implied(pg_sys::adjust_appendrel_attrs(root, clause, 1, &raw mut place))
            })
            .collect();
        if implied.is_empty() {
            return false;
        }
        let entry = *(*root).simple_rte_array.add((*child).relid as usize);
        let table = pg_sys::table_open((*entry).relid, pg_sys::NoLock as pg_sys::LOCKMODE);
        let constraints = (*(*table).rd_att).constr;
        let count = if constraints.is_null() { 0 } else { (*constraints).num_check as usize };
        let mut checks = std::ptr::null_mut();
        for at in 0..count {
            let check = &*(*constraints).check.add(at);
            if check.ccvalid {
                let text = CString::from(std::ffi::CStr::from_ptr(check.ccbin));
                let expression = pg_sys::stringToNode(text.as_ptr()).cast();
                let expression = pg_sys::eval_const_expressions(root, expression);
                let expression = pg_sys::canonicalize_qual(expression.cast(), true);
                pg_sys::ChangeVarNodes(expression.cast(), 1, (*child).relid as i32, 0);
                checks = pg_sys::list_concat(checks, pg_sys::make_ands_implicit(expression));
            }
        }
        pg_sys::table_close(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        !checks.is_null() && pg_sys::predicate_refuted_by(checks, list(&implied), false)
    }
}

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

/// The paths of a table that has members are made. Conditions of joins are as before, and the others are all there again: PostgreSQL prunes by
/// them when the query runs.
///
/// # Safety
/// The planner's state, and a table of it that has members, and whose paths are made.
pub unsafe fn restore(root: *mut PlannerInfo, whole: *mut RelOptInfo) {
    // SAFETY: as above.
    unsafe {
        let Some(state) = Expressions::of_table(whole) else {
            (*whole).baserestrictinfo = with_those_of_members(root, whole);
            return;
        };
        let state = &mut state.conditions;
        if !state.all.is_null() {
            (*whole).baserestrictinfo = state.all;
        }
        if state.has_more_of_joins {
            (*whole).joininfo = state.of_joins;
            state.has_more_of_joins = false;
        }
    }
}

/// The conditions of a UNION ALL, and those that its members have got.
///
/// # Safety
/// As [`restore`].
unsafe fn with_those_of_members(root: *mut PlannerInfo, whole: *mut RelOptInfo) -> *mut List {
    // SAFETY: as above.
    unsafe {
        let mut all: Vec<*mut RestrictInfo> = elements(of_whole(root, whole)).collect();
        let own = all.len();
        for place in elements::<AppendRelInfo>((*root).append_rel_list) {
            let member = *(*root).simple_rel_array.add((*place).child_relid as usize);
            if (*place).parent_relid != (*whole).relid || member.is_null() || (*member).part_scheme.is_null() {
                continue;
            }
            if let Some(state) = Expressions::of_table(member) {
                let implied = elements::<Node>(state.conditions.implied);
                all.extend(implied.map(|condition| versions::restriction(root, condition)));
            }
        }
        if all.len() == own { of_whole(root, whole) } else { list(&all) }
    }
}
