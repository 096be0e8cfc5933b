//! Comparisons of an ID's time become comparisons of the ID, which an index on the ID can serve:
//!
//! ```sql
//! WHERE snowflake_timestamp(id) >= now() - interval '1 hour'
//! -- is planned as
//! WHERE id >= _snowflake.min_id(now() - interval '1 hour')
//! ```
//!
//! This happens when views are inlined and constants are folded, and before the planner distributes the conditions to the
//! tables. Outer joins, EXISTS, and UPDATE and DELETE have nothing special then.

use super::functions::{self, IdTime};
use super::nodes::{cast, copy, elements, list};
use super::operators::{self, Accepts};
use super::{bounds, joins};
use pgrx::pg_sys::{self, Node};

/// Where a condition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In a list of conditions that are combined by AND.
    List,
    /// The same, of a FULL JOIN, which can use only conditions of equality; or of a semi-join, as of IN with a subquery, whose rows
    /// PostgreSQL makes unique only where there are no other conditions.
    OfEqualities,
    /// In an OR.
    Alternative,
}

/// Rewrites conditions.
#[derive(Clone, Copy)]
pub struct Rewriter<'a> {
    /// The planner's state of the query, whose expressions are preprocessed.
    pub root: *mut pg_sys::PlannerInfo,
    /// Reads an expression as the time of an ID; `None` where it is something else.
    pub time_of: &'a dyn Fn(*mut Node) -> Option<IdTime>,
}

/// Rewrites all conditions of a query.
///
/// # Safety
/// The planner's state of a query whose expressions are preprocessed, and not distributed yet.
pub unsafe fn rewrite(root: *mut pg_sys::PlannerInfo) {
    // SAFETY: as above. Row-level security has a list of lists.
    unsafe {
        let rewriter = Rewriter { root, time_of: &|expression| IdTime::read(expression) };
        let query = (*root).parse;
        rewriter.rewrite_join_tree((*query).jointree.cast());
        for table in elements::<pg_sys::RangeTblEntry>((*query).rtable) {
            for (at, conditions) in elements::<Node>((*table).securityQuals).enumerate() {
                (*(*(*table).securityQuals).elements.add(at)).ptr_value =
                    rewriter.conditions(conditions, Place::List).cast();
            }
        }
    }
}

/// Whether a condition of a query may compare the time of an ID. Calls nothing of PostgreSQL, and takes no memory.
///
/// # Safety
/// As [`rewrite`].
pub unsafe fn has_candidates(root: *mut pg_sys::PlannerInfo) -> bool {
    // SAFETY: as above.
    unsafe {
        let query = (*root).parse;
        is_candidate_within((*query).jointree.cast())
            || elements::<pg_sys::RangeTblEntry>((*query).rtable)
                .any(|table| elements::<Node>((*table).securityQuals).any(|conditions| is_candidate_within(conditions)))
    }
}

/// # Safety
/// A part of a join tree, or conditions.
unsafe fn is_candidate_within(node: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe {
        if let Some(from) = cast::<pg_sys::FromExpr>(node) {
            elements::<Node>(from.fromlist).any(|part| is_candidate_within(part)) || is_candidate_within(from.quals)
        } else if let Some(join) = cast::<pg_sys::JoinExpr>(node) {
            [join.larg, join.rarg, join.quals].into_iter().any(|part| is_candidate_within(part))
        } else if let Some(conditions) = cast::<pg_sys::List>(node) {
            elements::<Node>(conditions).any(|condition| is_candidate_within(condition))
        } else if let Some(combination) = cast::<pg_sys::BoolExpr>(node) {
            elements::<Node>(combination.args).any(|condition| is_candidate_within(condition))
        } else {
            cast::<pg_sys::OpExpr>(node).is_some_and(|operation| {
                operators::of_times(operation.opno.to_u32()).is_some()
                    && elements::<Node>(operation.args).any(|side| functions::may_be_ours(side))
            })
        }
    }
}

impl Rewriter<'_> {
    /// # Safety
    /// A part of the query's join tree.
    unsafe fn rewrite_join_tree(&self, node: *mut Node) {
        // SAFETY: as above. Conditions are lists, whose elements are combined by AND.
        unsafe {
            if let Some(from) = cast::<pg_sys::FromExpr>(node) {
                elements(from.fromlist).for_each(|part| self.rewrite_join_tree(part));
                from.quals = self.conditions(from.quals, Place::List);
            } else if let Some(join) = cast::<pg_sys::JoinExpr>(node) {
                self.rewrite_join_tree(join.larg);
                self.rewrite_join_tree(join.rarg);
                let wants_equalities =
                    matches!(join.jointype, pg_sys::JoinType::JOIN_FULL | pg_sys::JoinType::JOIN_SEMI);
                let place = if wants_equalities { Place::OfEqualities } else { Place::List };
                join.quals = self.conditions(join.quals, place);
            }
        }
    }

    /// # Safety
    /// The conditions of a part of the join tree.
    unsafe fn conditions(&self, conditions: *mut Node, place: Place) -> *mut Node {
        // SAFETY: as above.
        unsafe {
            match cast::<pg_sys::List>(conditions).and_then(|conditions| self.rewritten(conditions, place)) {
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
            if !elements::<Node>(conditions).any(|condition| is_candidate(condition)) {
                return None;
            }
            let (mut new, mut made) = (Vec::new(), Vec::new());
            for condition in elements::<Node>(conditions) {
                match cast::<pg_sys::OpExpr>(condition).and_then(|operation| self.bounds(operation, place)) {
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
                    for (at, alternative) in elements::<Node>(combination.args).enumerate() {
                        if let Some(combination) = cast::<pg_sys::BoolExpr>(alternative) {
                            self.rewrite_combination(combination);
                        } else if let Some(bounds) = cast::<pg_sys::OpExpr>(alternative)
                            .and_then(|operation| self.bounds(operation, Place::Alternative))
                        {
                            let new = match bounds[..] {
                                [only] => only,
                                _ => pg_sys::make_andclause(list(&bounds)).cast(),
                            };
                            (*(*combination.args).elements.add(at)).ptr_value = new.cast();
                        }
                    }
                }
                // The planner has moved every NOT inwards that it could.
                _ => {}
            }
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
            let time_of = |side, of_type| if of_type == pg_sys::TIMESTAMPTZOID { (self.time_of)(side) } else { None };
            let bounds =
                |accepts, time, other, of_type| bounds::of_comparison(self.root, accepts, &time, other, of_type);
            if accepts == Accepts::Equal && joins::of_different_tables(self.root, left, right) {
                if place != Place::List || joins::has_bounds(operation) {
                    return None;
                }
                let by_left = || bounds(accepts, time_of(copy(left), left_type)?, copy(right), right_type);
                let by_right = || bounds(accepts, time_of(copy(right), right_type)?, copy(left), left_type);
                let implied: Vec<*mut Node> = [by_left(), by_right()].into_iter().flatten().flatten().collect();
                return (!implied.is_empty()).then(|| joins::with_bounds(operation, &implied));
            }
            let by_left = || bounds(accepts, time_of(left, left_type)?, right, right_type);
            let by_right = || bounds(accepts.commuted(), time_of(right, right_type)?, left, left_type);
            let found = by_left().or_else(by_right)?;
            (place != Place::Alternative || !excludes_nulls((*(*self.root).parse).jointree.cast())).then_some(found)
        }
    }

    /// A condition that belongs to no list, as those that are combined by AND; `None` where it does not change. The condition itself
    /// stays as it is.
    ///
    /// # Safety
    /// A condition of the query.
    pub unsafe fn one(&self, condition: *mut Node) -> Option<*mut pg_sys::List> {
        // SAFETY: as above.
        unsafe {
            if cast::<pg_sys::BoolExpr>(condition).is_some() {
                let new = copy(condition);
                self.rewritten(list(&[new]), Place::List);
                return (!pg_sys::equal(new.cast(), condition.cast())).then(|| list(&[new]));
            }
            self.rewritten(list(&[condition]), Place::List)
        }
    }
}

/// Whether an expression compares times.
///
/// # Safety
/// An expression.
unsafe fn is_candidate(expression: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe { cast::<pg_sys::OpExpr>(expression) }
        .is_some_and(|operation| operators::of_times(operation.opno.to_u32()).is_some())
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
                    && pg_sys::exprType(test.arg.cast()) == pg_sys::INT8OID
            })
        };
        is_in_part || cast::<pg_sys::List>(conditions).is_some_and(|conditions| elements(conditions).any(is_not_null))
    }
}
