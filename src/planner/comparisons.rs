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

use super::derived::{self, Derived};
use super::functions::{self, IdTime};
use super::nodes::{At, Expr, List, list};
use super::operators::{self, Accepts};
use super::state::{Planner, Rel};
use super::{bounds, join_tree, lists, rising};
use pgrx::pg_sys::{self, Node};
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
pub struct Rewriter<'a, 'p> {
    /// The planner's state of the query, whose expressions are preprocessed.
    planner: Planner<'p>,
    /// Reads an expression as the time of an ID; `None` where it is something else.
    time_of: &'a dyn Fn(Expr<'p>) -> Option<IdTime<'p>>,
    /// Whether an equality with the time of another table is rewritten, too. A hash or merge join needs it as it is.
    of_joins: bool,
    /// Whether conditions are added by which more rows may pass, and the conditions stay.
    is_wide: bool,
    /// Whether the query has a condition `id IS NOT NULL`, once that was looked for.
    excludes_nulls: OnceCell<bool>,
}

/// Adds to the conditions of a query, or puts in their place, what follows from those on the times of a table's IDs. Returns what was added. The
/// query's expressions are preprocessed, and not distributed yet.
pub fn rewrite<'p>(planner: Planner<'p>, table: Rel<'p>, which: Use) -> Vec<Expr<'p>> {
    let mut added = Vec::new();
    let of_table = |expression| rising::time_of(planner, expression, table.number());
    let rewriter = Rewriter::new(planner, &of_table);
    match which {
        Use::Plain => {}
        Use::Both => {
            for part in join_tree::parts(planner).into_iter().filter(|part| !part.is_full_join()) {
                part.change(|conditions| rewriter.with_implied(conditions, table.number(), &mut added));
            }
        }
        Use::IdsOnly => {
            for part in join_tree::parts(planner) {
                part.change(|conditions| rewriter.rewritten(conditions, Place::List));
            }
            // Row-level security has a list of lists.
            if let Some(entry) = planner.entry(table.number()) {
                entry.set_guards(entry.guards().mapped(|conditions| rewriter.conditions(conditions)));
            }
        }
    }
    added
}

impl<'a, 'p> Rewriter<'a, 'p> {
    /// Of a query whose expressions are preprocessed.
    pub fn new(planner: Planner<'p>, time_of: &'a dyn Fn(Expr<'p>) -> Option<IdTime<'p>>) -> Self {
        Self { planner, time_of, of_joins: false, is_wide: true, excludes_nulls: OnceCell::new() }
    }

    /// One that rewrites conditions of joins by equal times, too.
    pub fn of_joins(planner: Planner<'p>, time_of: &'a dyn Fn(Expr<'p>) -> Option<IdTime<'p>>) -> Self {
        Self { of_joins: true, ..Self::new(planner, time_of) }
    }

    /// One that leaves conditions alone that do not say the same of the ID.
    pub fn exact(planner: Planner<'p>, time_of: &'a dyn Fn(Expr<'p>) -> Option<IdTime<'p>>) -> Self {
        Self { is_wide: false, ..Self::new(planner, time_of) }
    }

    /// Conditions with what follows from those on a table alone; `None` where nothing does.
    fn with_implied(
        &self,
        conditions: List<'p, Node>,
        table: u32,
        added: &mut Vec<Expr<'p>>,
    ) -> Option<List<'p, Node>> {
        let mut all = Vec::new();
        let mut made = Vec::new();
        for condition in conditions.iter() {
            all.push(condition);
            if is_candidate_within(condition) && self.planner.tables_of(condition).only() == Some(table) {
                let implied = self.implied(condition);
                all.extend(&implied);
                made.extend(implied);
            }
        }
        if made.is_empty() {
            return None;
        }
        let all = bounds::without_implied(&all, &made);
        added.extend(made);
        Some(list(&all))
    }

    /// What follows for IDs from a condition of the query, which stays as it is. The condition follows from that, too, unless it
    /// [is wide](Self::is_wider).
    pub fn implied(&self, condition: Expr<'p>) -> Vec<Expr<'p>> {
        let own = match self.alternatives_of_list(condition) {
            Some(alternatives) => lists::any_of(&alternatives),
            // Of most conditions of a query.
            None if condition.cast::<pg_sys::BoolExpr>().is_none() && !is_candidate_within(condition) => {
                return Vec::new();
            }
            None => condition.copy(),
        };
        match self.rewritten(list(&[own]), Place::List) {
            Some(new) => new.iter().filter(|&one| one != own).collect(),
            None if own.cast::<pg_sys::BoolExpr>().is_some() && !own.says(condition) => vec![own],
            None => Vec::new(),
        }
    }

    /// The alternatives of a list of times. Where conditions are evaluated for each row, a list takes less time.
    fn alternatives_of_list(&self, condition: Expr<'p>) -> Option<Vec<Expr<'p>>> {
        self.is_wide.then(|| lists::alternatives(self.planner, condition, &|time| (self.time_of)(time).is_some()))?
    }

    /// Whether more rows may pass what follows from a condition.
    pub fn is_wider(&self, condition: Expr<'p>) -> bool {
        condition.cast().is_some_and(|operation| self.wide_bounds(operation).is_some())
    }

    /// Conditions that row-level security has.
    fn conditions(&self, conditions: Expr<'p>) -> Expr<'p> {
        let rewritten = conditions.list().and_then(|list| self.rewritten(list, Place::List));
        rewritten.and_then(List::node).unwrap_or(conditions)
    }

    /// Conditions that are combined by AND; `None` where none of them changes, or only within an OR.
    fn rewritten(&self, conditions: List<'p, Node>, place: Place) -> Option<List<'p, Node>> {
        for condition in conditions.iter() {
            if let Some(combination) = condition.cast::<pg_sys::BoolExpr>() {
                self.rewrite_combination(combination);
            }
        }
        // For most queries, this is all.
        let is_candidate =
            |condition: Expr<'p>| condition.cast::<pg_sys::BoolExpr>().is_none() && is_candidate_within(condition);
        if !conditions.iter().any(is_candidate) {
            return None;
        }
        let (mut new, mut made) = (Vec::new(), Vec::new());
        for condition in conditions.iter() {
            let of_null = || self.of_null(condition.cast()?);
            let of_bounds = condition.cast().and_then(|operation| self.bounds(operation, place));
            match of_bounds.or_else(of_null) {
                Some(bounds) => {
                    new.extend(&bounds);
                    made.extend(bounds);
                }
                None => {
                    new.push(condition);
                    let wide = condition.cast().and_then(|operation| self.wide_bounds(operation)).unwrap_or_default();
                    new.extend(&wide);
                    made.extend(wide);
                }
            }
        }
        Some(list(&bounds::without_implied(&new, &made)))
    }

    fn rewrite_combination(&self, combination: At<'p, pg_sys::BoolExpr>) {
        match combination.boolop() {
            pg_sys::BoolExprType::AND_EXPR => {
                if let Some(new) = self.rewritten(combination.args(), Place::Alternative) {
                    combination.set_args(new);
                }
            }
            pg_sys::BoolExprType::OR_EXPR => {
                combination.set_args(combination.args().iter().flat_map(|one| self.alternatives(one)).collect());
            }
            // The planner has moved every NOT inwards that it could.
            _ => {}
        }
    }

    /// An alternative of an OR, rewritten: mostly one, and more where it is an OR itself. A combination has two parts at least, and no OR is a
    /// part of an OR.
    fn alternatives(&self, alternative: Expr<'p>) -> Vec<Expr<'p>> {
        if let Some(combination) = alternative.cast::<pg_sys::BoolExpr>() {
            self.rewrite_combination(combination);
            let parts: Vec<Expr<'p>> = combination.args().iter().collect();
            return match (combination.boolop(), &parts[..]) {
                (pg_sys::BoolExprType::AND_EXPR, &[only]) => self.alternatives(only),
                (pg_sys::BoolExprType::OR_EXPR, _) => parts,
                _ => vec![alternative],
            };
        }
        let of_null = || self.of_null(alternative.cast()?);
        let of_bounds = alternative.cast().and_then(|operation| self.bounds(operation, Place::Alternative));
        let wide = || {
            let wide = self.wide_bounds(alternative.cast()?)?;
            Some([alternative].into_iter().chain(wide).collect())
        };
        match of_bounds.or_else(of_null).or_else(wide) {
            None => vec![alternative],
            Some(bounds) => match bounds[..] {
                [only] => vec![only],
                _ => vec![list(&bounds).all_of()],
            },
        }
    }

    /// `id IS NULL` for a time that is NULL. (`id IS NOT NULL` is not made: see [`excludes_nulls`].)
    fn of_null(&self, test: At<'p, pg_sys::NullTest>) -> Option<Vec<Expr<'p>>> {
        let is_null = test.kind() == pg_sys::NullTestType::IS_NULL;
        let time = (self.time_of)(test.arg()).filter(|time| is_null && is_column(time.id))?;
        if !time.may_be_called() {
            return None;
        }
        time.keep_in_plan(self.planner);
        let new = test.duplicate();
        new.set_arg(time.id.without_labels().copy());
        Some(vec![new.node()])
    }

    /// The comparisons of the ID that stand for one of its time, to be combined by AND; `None` where the operation is none, or
    /// must stay as it is.
    fn bounds(&self, operation: At<'p, pg_sys::OpExpr>, place: Place) -> Option<Vec<Expr<'p>>> {
        let (accepts, left_type, right_type) = operators::of_times(operation.opno().to_u32())?;
        let mut operands = operation.args().iter();
        let (left, right) = (operands.next()?, operands.next()?);
        // The ID is compared twice, and before conditions that would have come before the comparison of the time. An expression would
        // be evaluated twice, and could fail where those exclude the row: `val::bigint`.
        let time_of = |side, of_type| {
            let time = if of_type == pg_sys::TIMESTAMPTZOID { (self.time_of)(side) } else { None };
            time.filter(|time| is_column(time.id))
        };
        let bounds = |accepts, time, other: Expr<'p>, of_type| {
            let is_steady = !other.is_volatile();
            is_steady.then(|| bounds::of_comparison(self.planner, accepts, &time, other, of_type))?
        };
        let is_equality = accepts == Accepts::Equal;
        let is_join = is_equality && !self.of_joins && of_different_tables(self.planner, left, right);
        // Its other side would be evaluated twice.
        if is_join || is_equality && (left.has_subplan() || right.has_subplan()) {
            return None;
        }
        let by_left = || bounds(accepts, time_of(left, left_type)?, right, right_type);
        let by_right = || bounds(accepts.commuted(), time_of(right, right_type)?, left, left_type);
        let found = by_left().or_else(by_right)?;
        let excludes_nulls = || *self.excludes_nulls.get_or_init(|| excludes_nulls(self.planner));
        (place != Place::Alternative || !excludes_nulls()).then_some(found)
    }
}

impl<'p> Rewriter<'_, 'p> {
    /// Comparisons of the ID that follow from one of what is made of its time, which must stay.
    fn wide_bounds(&self, operation: At<'p, pg_sys::OpExpr>) -> Option<Vec<Expr<'p>>> {
        if !self.is_wide || !derived::is_candidate(operation) {
            return None;
        }
        let is_time = |node| (self.time_of)(node).is_some_and(|time| is_column(time.id));
        derived::comparisons(operation.node()).find_map(|(accepts, side, other)| {
            let derived = Derived::read(self.planner, side, &is_time)?;
            let is_join = !self.of_joins && accepts == Accepts::Equal && of_different_tables(self.planner, side, other);
            let time = (self.time_of)(derived.time).filter(|time| !is_join && time.may_be_bounded())?;
            derived.bounds(self.planner, accepts, &time, other)
        })
    }
}

/// Whether two expressions are of different tables.
fn of_different_tables<'p>(planner: Planner<'p>, left: Expr<'p>, right: Expr<'p>) -> bool {
    let (left, right) = (planner.tables_of(left), planner.tables_of(right));
    !left.is_empty() && !right.is_empty() && !left.overlaps(right)
}

/// Whether an expression is a column, perhaps of a table that an outer join may make NULL.
fn is_column(expression: Expr<'_>) -> bool {
    let expression = expression.without_labels();
    match expression.cast::<pg_sys::PlaceHolderVar>() {
        Some(placeholder) => is_column(placeholder.expr()),
        None => expression.cast::<pg_sys::Var>().is_some_and(|column| column.levels_up() == 0),
    }
}

/// Whether a condition may compare the time of an ID. Calls nothing of PostgreSQL.
fn is_candidate_within(node: Expr<'_>) -> bool {
    if let Some(combination) = node.cast::<pg_sys::BoolExpr>() {
        return combination.args().iter().any(is_candidate_within);
    }
    if let Some(test) = node.cast::<pg_sys::NullTest>() {
        return functions::may_be_ours(test.arg());
    }
    if let Some(list) = node.cast::<pg_sys::ScalarArrayOpExpr>() {
        return list.args().get(0).is_some_and(|side| functions::may_be_ours(derived::origin(side)));
    }
    node.cast::<pg_sys::OpExpr>().is_some_and(|operation| {
        operators::of_times(operation.opno().to_u32()).is_some() && operation.args().iter().any(functions::may_be_ours)
            || derived::is_candidate(operation)
    })
}

/// Whether a condition of the query is `id IS NOT NULL`, as the planner itself adds to `SELECT max(id)`. Beside it, no OR of
/// comparisons of the ID is made: for `(id < 10 OR id > 20) AND id IS NOT NULL`, some minor versions of PostgreSQL, 16.14 among
/// them, overlook the default partition.
fn excludes_nulls(planner: Planner<'_>) -> bool {
    let is_not_null = |condition: Expr<'_>| {
        condition.cast::<pg_sys::NullTest>().is_some_and(|test| {
            test.kind() == pg_sys::NullTestType::IS_NOT_NULL && test.arg().is_stored_as(pg_sys::INT8OID)
        })
    };
    join_tree::parts(planner).into_iter().any(|part| part.conditions().iter().any(is_not_null))
}
