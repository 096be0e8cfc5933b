//! What a whole's conditions become for one of its members: PostgreSQL gives a member those that its whole has when it is added.

use super::comparisons::Rewriter;
use super::functions::IdTime;
use super::nodes::{cast, elements, list};
use super::statistics::Expressions;
use super::{lists, rising, versions};
use pg_sys::{AppendRelInfo, List, Node, PlannerInfo, RelOptInfo, RestrictInfo};
use pgrx::prelude::*;
use std::ffi::CString;

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
    /// The columns of the member before, and of the queries that are added after it.
    places: *mut List,
}

/// Whether a condition of a member takes the place of one of its whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Instead {
    No,
    /// It does, as the first that does so.
    First,
    /// Others have done so.
    More,
}

/// The conditions that a whole gets for one of its members.
struct ForMember {
    root: *mut PlannerInfo,
    member: *mut RelOptInfo,
    place: *mut AppendRelInfo,
    /// Those members of a UNION ALL after it, until the next table, that are queries. They get what the whole has then, and are not looked at
    /// when they are added.
    queries: Vec<*mut AppendRelInfo>,
    is_part: bool,
}

impl ForMember {
    /// # Safety
    /// The planner's state, a member that is about to be added, and what it has from its whole.
    unsafe fn new(root: *mut PlannerInfo, member: *mut RelOptInfo, place: *mut AppendRelInfo) -> Self {
        // SAFETY: as above; the array has an element for each number of a table in the query.
        unsafe {
            let kind = |number: pg_sys::Index| (**(*root).simple_rte_array.add(number as usize)).rtekind;
            let whole = (*place).parent_relid;
            let mut new = Self {
                root,
                member,
                place,
                queries: Vec::new(),
                is_part: kind(whole) == pg_sys::RTEKind::RTE_SUBQUERY,
            };
            // Partitions have none, and may be thousands.
            if new.is_part {
                let others = elements::<AppendRelInfo>((*root).append_rel_list).skip_while(|&one| one != place).skip(1);
                new.queries = others
                    .filter(|&one| (*one).parent_relid == whole)
                    .take_while(|&one| kind((*one).child_relid) != pg_sys::RTEKind::RTE_RELATION)
                    .collect();
            }
            new
        }
    }

    /// A condition of the whole that is this one of the member, and applies as one of the whole does. The condition of the whole that it takes
    /// the place of, if any, stays that of the queries.
    ///
    /// # Safety
    /// A condition of the whole, and one of the member.
    unsafe fn add(&self, like: *mut RestrictInfo, condition: *mut Node, instead: Instead) -> *mut RestrictInfo {
        // SAFETY: as above; what becomes of the columns of a whole is in their order.
        unsafe {
            let of_queries = (instead == Instead::First).then(|| (*like).clause.cast());
            let clause = if self.is_part { self.column(condition, of_queries) } else { condition };
            let new = pgrx::PgMemoryContexts::CurrentMemoryContext.palloc_struct::<OfMember>();
            let instead_of = if instead == Instead::No { std::ptr::null_mut() } else { like };
            let places: Vec<*mut AppendRelInfo> =
                [self.place].into_iter().chain(self.queries.iter().copied()).collect();
            new.write(OfMember { restriction: std::ptr::read(like), instead_of, places: list(&places) });
            let new = &raw mut (*new).restriction;
            (*new).clause = clause.cast();
            (*new).orclause = std::ptr::null_mut();
            // Of the member: so it is known again.
            (*new).clause_relids = (*self.member).relids;
            new
        }
    }

    /// A column of the whole that is this condition in the member; and in the queries, a condition of the whole, or true.
    ///
    /// # Safety
    /// A condition of the member, and one of the whole.
    unsafe fn column(&self, condition: *mut Node, of_queries: Option<*mut Node>) -> *mut Node {
        // SAFETY: as above; the array has an element for each number of a table in the query.
        unsafe {
            for &query in &self.queries {
                // With the columns that it has by now.
                let mut place = *(*self.root).append_rel_array.add((*query).child_relid as usize);
                let is = match of_queries {
                    Some(clause) => pg_sys::adjust_appendrel_attrs(self.root, clause, 1, &raw mut place),
                    None => pg_sys::makeBoolConst(true, false),
                };
                self.append(query, is);
            }
            let number = self.append(self.place, condition);
            let whole = (*self.place).parent_relid as i32;
            pg_sys::makeVar(whole as _, number, pg_sys::BOOLOID, -1, pg_sys::InvalidOid, 0).cast()
        }
    }

    /// Has a member of the whole have one more column, and returns its number. The list of all members has them as they were.
    ///
    /// # Safety
    /// A member's place, as that list has it, and an expression of the member.
    unsafe fn append(&self, place: *mut AppendRelInfo, column: *mut Node) -> i16 {
        // SAFETY: as above.
        unsafe {
            let current = (*self.root).append_rel_array.add((*place).child_relid as usize);
            if *current == place {
                let copy = pgrx::PgMemoryContexts::CurrentMemoryContext.palloc_struct::<AppendRelInfo>();
                copy.copy_from_nonoverlapping(place, 1);
                (*copy).translated_vars = pg_sys::list_copy((*copy).translated_vars);
                *current = copy;
            }
            (**current).translated_vars = pg_sys::lappend((**current).translated_vars, column.cast());
            (*(**current).translated_vars).length as i16
        }
    }
}

/// The conditions of a whole that are its own, and not of a member that was added before.
///
/// # Safety
/// The planner's state, and a table of it that has members.
pub unsafe fn of_whole(root: *mut PlannerInfo, whole: *mut RelOptInfo) -> *mut List {
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
                for place in elements::<AppendRelInfo>(of_member.places) {
                    *(*root).append_rel_array.add((*place).child_relid as usize) = place;
                }
                of_member.instead_of
            };
            if !before.is_null() && own.last() != Some(&before) {
                own.push(before);
            }
        }
        list(&own)
    }
}

/// The conditions of a whole, with those for a member that follow from them, or with those in their place.
///
/// # Safety
/// The planner's state, a member and its place, and the conditions of the whole.
pub unsafe fn with_implied(
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
            more.extend(implied.iter().enumerate().map(|(number, &one)| {
                let instead = match number {
                    _ if !instead => Instead::No,
                    0 => Instead::First,
                    _ => Instead::More,
                };
                for_member.add(condition, one, instead)
            }));
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
pub unsafe fn with_alternatives(
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
            all.push(alternatives.map_or(condition, |alternatives| {
                for_member.add(condition, lists::any_of(&alternatives), Instead::First)
            }));
        }
        list(&all)
    }
}

/// Whether a child's constraints on its IDs, by CHECK or NOT NULL, exclude all rows that the query asks for. PostgreSQL finds that out if it
/// knows the conditions on the ID.
///
/// # Safety
/// The planner's state, a child, and the conditions of its parent.
pub unsafe fn is_excluded(root: *mut PlannerInfo, child: *mut RelOptInfo, conditions: *mut List) -> bool {
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
        let asked_for_null = |&one: &*mut Node| cast::<pg_sys::NullTest>(one).map(|test| test.arg.cast());
        if implied.iter().filter_map(asked_for_null).any(|id| versions::is_not_null(root, child, id)) {
            return true;
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
