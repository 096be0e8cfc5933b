//! Comparisons of an ID's time as comparisons of the ID:
//!
//! ```sql
//! WHERE snowflake_timestamp(id) >= now() - interval '1 hour'
//! -- is the same as
//! WHERE id >= _snowflake.min_id(now() - interval '1 hour')
//! ```
//!
//! Where they are added to the conditions of a query, or take their place, this happens when views are inlined and constants are folded, and before
//! the planner distributes the conditions to the tables. Outer joins, EXISTS, and UPDATE and DELETE have nothing special then.

use super::functions::{self, IdTime};
use super::nodes::{cast, copy, elements, list, without_labels};
use super::operators::{self, Accepts};
use super::{bounds, rising};
use pgrx::pg_sys::{self, Node, PlannerInfo, RelOptInfo};
use std::cell::OnceCell;

/// What becomes of a table's conditions on its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// They stay. Twins of its indexes serve them.
    Plain,
    /// The same, and conditions on the ID are added.
    Both,
    /// Those on the ID take their place: another server knows only those, and only those may be evaluated before a row is known to be one
    /// that the user may see.
    IdsOnly,
}

/// Where a condition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In a list of conditions that are combined by AND.
    List,
    /// In an OR.
    Alternative,
}

/// Rewrites conditions.
pub struct Rewriter<'a> {
    /// The planner's state of the query, whose expressions are preprocessed.
    root: *mut PlannerInfo,
    /// Reads an expression as the time of an ID; `None` where it is something else.
    time_of: &'a dyn Fn(*mut Node) -> Option<IdTime>,
    /// Whether an equality with the time of another table is rewritten, too. A hash or merge join needs it as it is.
    of_joins: bool,
    /// Whether the query has a condition `id IS NOT NULL`, once that was looked for.
    excludes_nulls: OnceCell<bool>,
}

/// Adds to the conditions of a query, or puts in their place, what follows from those on the times of a table's IDs. Returns what was added.
///
/// # Safety
/// The planner's state of a query whose expressions are preprocessed, and not distributed yet; and a table of it.
pub unsafe fn rewrite(root: *mut PlannerInfo, table: *mut RelOptInfo, which: Use) -> Vec<*mut Node> {
    let mut added = Vec::new();
    // SAFETY: as above. Row-level security has a list of lists.
    unsafe {
        let of_table = |expression| rising::time_of(root, expression, (*table).relid);
        let rewriter = Rewriter::new(root, &of_table);
        let join_tree = (*(*root).parse).jointree.cast();
        match which {
            Use::Plain => {}
            Use::Both => rewriter.add_to_join_tree(join_tree, (*table).relid, &mut added),
            Use::IdsOnly => {
                rewriter.rewrite_join_tree(join_tree);
                let entry = *(*root).simple_rte_array.add((*table).relid as usize);
                for (at, conditions) in elements::<Node>((*entry).securityQuals).enumerate() {
                    (*(*(*entry).securityQuals).elements.add(at)).ptr_value = rewriter.conditions(conditions).cast();
                }
            }
        }
    }
    added
}

impl<'a> Rewriter<'a> {
    /// # Safety
    /// The planner's state of a query whose expressions are preprocessed.
    pub unsafe fn new(root: *mut PlannerInfo, time_of: &'a dyn Fn(*mut Node) -> Option<IdTime>) -> Self {
        Self { root, time_of, of_joins: false, excludes_nulls: OnceCell::new() }
    }

    /// One that rewrites conditions of joins by equal times, too.
    ///
    /// # Safety
    /// As [`Self::new`].
    pub unsafe fn of_joins(root: *mut PlannerInfo, time_of: &'a dyn Fn(*mut Node) -> Option<IdTime>) -> Self {
        // SAFETY: as above.
        Self { of_joins: true, ..unsafe { Self::new(root, time_of) } }
    }

    /// Adds what follows from conditions on a table alone.
    ///
    /// # Safety
    /// A part of the query's join tree.
    unsafe fn add_to_join_tree(&self, node: *mut Node, table: pg_sys::Index, added: &mut Vec<*mut Node>) {
        // SAFETY: as above.
        unsafe {
            let mut add_to = |conditions: *mut Node| match cast::<pg_sys::List>(conditions) {
                Some(list) => self.with_implied(list, table, added).cast(),
                None => conditions,
            };
            if let Some(from) = cast::<pg_sys::FromExpr>(node) {
                from.quals = add_to(from.quals);
                elements(from.fromlist).for_each(|part| self.add_to_join_tree(part, table, added));
            } else if let Some(join) = cast::<pg_sys::JoinExpr>(node) {
                // A FULL JOIN can use only conditions of equality.
                if join.jointype != pg_sys::JoinType::JOIN_FULL {
                    join.quals = add_to(join.quals);
                }
                self.add_to_join_tree(join.larg, table, added);
                self.add_to_join_tree(join.rarg, table, added);
            }
        }
    }

    /// # Safety
    /// Conditions of the query.
    unsafe fn with_implied(
        &self,
        conditions: *mut pg_sys::List,
        table: pg_sys::Index,
        added: &mut Vec<*mut Node>,
    ) -> *mut pg_sys::List {
        // SAFETY: as above.
        unsafe {
            let mut all = Vec::new();
            let mut made = Vec::new();
            for condition in elements::<Node>(conditions) {
                all.push(condition);
                let mut number = 0;
                if is_candidate_within(condition)
                    && pg_sys::bms_get_singleton_member(pg_sys::pull_varnos(self.root, condition), &raw mut number)
                    && number as pg_sys::Index == table
                {
                    let implied = self.implied(condition);
                    all.extend(&implied);
                    made.extend(implied);
                }
            }
            if made.is_empty() {
                return conditions;
            }
            let all = bounds::without_implied(&all, &made);
            added.extend(made);
            list(&all)
        }
    }

    /// What follows for IDs from a condition, which stays as it is. The condition follows from that, too.
    ///
    /// # Safety
    /// A condition of the query.
    pub unsafe fn implied(&self, condition: *mut Node) -> Vec<*mut Node> {
        // SAFETY: as above.
        unsafe {
            let own = copy(condition);
            match self.rewritten(list(&[own]), Place::List) {
                Some(new) => elements(new).filter(|&one| one != own).collect(),
                None if cast::<pg_sys::BoolExpr>(own).is_some() && !pg_sys::equal(own.cast(), condition.cast()) => {
                    vec![own]
                }
                None => Vec::new(),
            }
        }
    }

    /// # Safety
    /// A part of the query's join tree.
    unsafe fn rewrite_join_tree(&self, node: *mut Node) {
        // SAFETY: as above. Conditions are lists, whose elements are combined by AND.
        unsafe {
            if let Some(from) = cast::<pg_sys::FromExpr>(node) {
                elements(from.fromlist).for_each(|part| self.rewrite_join_tree(part));
                from.quals = self.conditions(from.quals);
            } else if let Some(join) = cast::<pg_sys::JoinExpr>(node) {
                self.rewrite_join_tree(join.larg);
                self.rewrite_join_tree(join.rarg);
                join.quals = self.conditions(join.quals);
            }
        }
    }

    /// # Safety
    /// The conditions of a part of the join tree.
    unsafe fn conditions(&self, conditions: *mut Node) -> *mut Node {
        // SAFETY: as above.
        unsafe {
            match cast::<pg_sys::List>(conditions).and_then(|conditions| self.rewritten(conditions, Place::List)) {
                Some(new) => new.cast(),
                None => conditions,
            }
        }
    }

    /// Conditions that are combined by AND; `None` where none of them changes, or only within an OR.
    ///
    /// # Safety
    /// A list of conditions of the query.
    unsafe fn rewritten(&self, conditions: *mut pg_sys::List, place: Place) -> Option<*mut pg_sys::List> {
        // SAFETY: as above.
        unsafe {
            for condition in elements::<Node>(conditions) {
                if let Some(combination) = cast::<pg_sys::BoolExpr>(condition) {
                    self.rewrite_combination(combination);
                }
            }
            // For most queries, this is all.
            let is_candidate =
                |condition| cast::<pg_sys::BoolExpr>(condition).is_none() && is_candidate_within(condition);
            if !elements::<Node>(conditions).any(is_candidate) {
                return None;
            }
            let (mut new, mut made) = (Vec::new(), Vec::new());
            for condition in elements::<Node>(conditions) {
                let of_null = || cast::<pg_sys::NullTest>(condition).and_then(|test| self.of_null(test));
                let of_bounds = cast::<pg_sys::OpExpr>(condition).and_then(|operation| self.bounds(operation, place));
                match of_bounds.or_else(of_null) {
                    Some(bounds) => {
                        new.extend(&bounds);
                        made.extend(bounds);
                    }
                    None => new.push(condition),
                }
            }
            Some(list(&bounds::without_implied(&new, &made)))
        }
    }

    /// # Safety
    /// A condition of the query.
    unsafe fn rewrite_combination(&self, combination: &mut pg_sys::BoolExpr) {
        // SAFETY: as above.
        unsafe {
            match combination.boolop {
                pg_sys::BoolExprType::AND_EXPR => {
                    if let Some(new) = self.rewritten(combination.args, Place::Alternative) {
                        combination.args = new;
                    }
                }
                pg_sys::BoolExprType::OR_EXPR => {
                    let alternatives: Vec<*mut Node> = elements::<Node>(combination.args).collect();
                    let new: Vec<*mut Node> = alternatives.into_iter().flat_map(|one| self.alternatives(one)).collect();
                    combination.args = list(&new);
                }
                // The planner has moved every NOT inwards that it could.
                _ => {}
            }
        }
    }

    /// An alternative of an OR, rewritten: mostly one, and more where it is an OR itself. A combination has two parts at least, and no OR is a
    /// part of an OR.
    ///
    /// # Safety
    /// A condition of the query.
    unsafe fn alternatives(&self, alternative: *mut Node) -> Vec<*mut Node> {
        // SAFETY: as above.
        unsafe {
            if let Some(combination) = cast::<pg_sys::BoolExpr>(alternative) {
                self.rewrite_combination(combination);
                let parts: Vec<*mut Node> = elements(combination.args).collect();
                return match (combination.boolop, &parts[..]) {
                    (pg_sys::BoolExprType::AND_EXPR, &[only]) => self.alternatives(only),
                    (pg_sys::BoolExprType::OR_EXPR, _) => parts,
                    _ => vec![alternative],
                };
            }
            let of_null = || cast::<pg_sys::NullTest>(alternative).and_then(|test| self.of_null(test));
            let of_bounds =
                cast::<pg_sys::OpExpr>(alternative).and_then(|operation| self.bounds(operation, Place::Alternative));
            match of_bounds.or_else(of_null) {
                None => vec![alternative],
                Some(bounds) => match bounds[..] {
                    [only] => vec![only],
                    _ => vec![pg_sys::make_andclause(list(&bounds)).cast()],
                },
            }
        }
    }

    /// `id IS NULL` for a time that is NULL. (`id IS NOT NULL` is not made: see [`excludes_nulls`].)
    ///
    /// # Safety
    /// A condition of the query.
    unsafe fn of_null(&self, test: &mut pg_sys::NullTest) -> Option<Vec<*mut Node>> {
        // SAFETY: as above.
        unsafe {
            let is_null = test.nulltesttype == pg_sys::NullTestType::IS_NULL;
            let time = (self.time_of)(test.arg.cast()).filter(|time| is_null && is_column(time.id))?;
            if !time.may_be_called() {
                return None;
            }
            time.keep_in_plan(self.root);
            let new = copy(std::ptr::from_mut(test).cast());
            (*new.cast::<pg_sys::NullTest>()).arg = copy(without_labels(time.id)).cast();
            Some(vec![new])
        }
    }

    /// The comparisons of the ID that stand for one of its time, to be combined by AND; `None` where the operation is none, or
    /// must stay as it is.
    ///
    /// # Safety
    /// A condition of the query.
    unsafe fn bounds(&self, operation: &mut pg_sys::OpExpr, place: Place) -> Option<Vec<*mut Node>> {
        let (accepts, left_type, right_type) = operators::of_times(operation.opno.to_u32())?;
        // SAFETY: as above; a comparison has two operands.
        unsafe {
            let mut operands = elements::<Node>(operation.args);
            let (left, right) = (operands.next()?, operands.next()?);
            // The ID is compared twice, and before conditions that would have come before the comparison of the time. An expression would
            // be evaluated twice, and could fail where those exclude the row: `val::bigint`.
            let time_of = |side, of_type| {
                let time = if of_type == pg_sys::TIMESTAMPTZOID { (self.time_of)(side) } else { None };
                time.filter(|time| is_column(time.id))
            };
            let bounds =
                |accepts, time, other, of_type| bounds::of_comparison(self.root, accepts, &time, other, of_type);
            let is_equality = accepts == Accepts::Equal;
            let is_join = is_equality && !self.of_joins && of_different_tables(self.root, left, right);
            // Its other side would be evaluated twice.
            if is_join || is_equality && (has_subplan(left) || has_subplan(right)) {
                return None;
            }
            let by_left = || bounds(accepts, time_of(left, left_type)?, right, right_type);
            let by_right = || bounds(accepts.commuted(), time_of(right, right_type)?, left, left_type);
            let found = by_left().or_else(by_right)?;
            let excludes_nulls =
                || *self.excludes_nulls.get_or_init(|| excludes_nulls((*(*self.root).parse).jointree.cast()));
            (place != Place::Alternative || !excludes_nulls()).then_some(found)
        }
    }
}

/// Whether two expressions are of different tables.
///
/// # Safety
/// The planner's state, and two expressions of its query.
unsafe fn of_different_tables(root: *mut PlannerInfo, left: *mut Node, right: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe {
        let (left, right) = (pg_sys::pull_varnos(root, left), pg_sys::pull_varnos(root, right));
        !left.is_null() && !right.is_null() && !pg_sys::bms_overlap(left, right)
    }
}

/// # Safety
/// An expression.
unsafe fn has_subplan(expression: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe { pg_sys::contain_subplans(expression) }
}

/// Whether an expression is a column, perhaps of a table that an outer join may make NULL.
///
/// # Safety
/// An expression.
unsafe fn is_column(expression: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe {
        let expression = without_labels(expression);
        match cast::<pg_sys::PlaceHolderVar>(expression) {
            Some(placeholder) => is_column(placeholder.phexpr.cast()),
            None => cast::<pg_sys::Var>(expression).is_some_and(|column| column.varlevelsup == 0),
        }
    }
}

/// Whether a condition may compare the time of an ID. Calls nothing of PostgreSQL.
///
/// # Safety
/// A condition.
unsafe fn is_candidate_within(node: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe {
        if let Some(combination) = cast::<pg_sys::BoolExpr>(node) {
            return elements::<Node>(combination.args).any(|condition| is_candidate_within(condition));
        }
        if let Some(test) = cast::<pg_sys::NullTest>(node) {
            return functions::may_be_ours(test.arg.cast());
        }
        cast::<pg_sys::OpExpr>(node).is_some_and(|operation| {
            operators::of_times(operation.opno.to_u32()).is_some()
                && elements::<Node>(operation.args).any(|side| functions::may_be_ours(side))
        })
    }
}

/// Whether a condition of the query is `id IS NOT NULL`, as the planner itself adds to `SELECT max(id)`. Beside it, no OR of
/// comparisons of the ID is made: for `(id < 10 OR id > 20) AND id IS NOT NULL`, some minor versions of PostgreSQL, 16.14 among
/// them, overlook the default partition.
///
/// # Safety
/// A part of the query's join tree.
unsafe fn excludes_nulls(node: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe {
        let (is_in_part, conditions) = if let Some(from) = cast::<pg_sys::FromExpr>(node) {
            (elements(from.fromlist).any(|part| excludes_nulls(part)), from.quals)
        } else if let Some(join) = cast::<pg_sys::JoinExpr>(node) {
            (excludes_nulls(join.larg) || excludes_nulls(join.rarg), join.quals)
        } else {
            return false;
        };
        let is_not_null = |condition: *mut Node| {
            cast::<pg_sys::NullTest>(condition).is_some_and(|test| {
                test.nulltesttype == pg_sys::NullTestType::IS_NOT_NULL
                    && pg_sys::IsBinaryCoercible(pg_sys::exprType(test.arg.cast()), pg_sys::INT8OID)
            })
        };
        is_in_part || cast::<pg_sys::List>(conditions).is_some_and(|conditions| elements(conditions).any(is_not_null))
    }
}
