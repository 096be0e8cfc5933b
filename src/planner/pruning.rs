//! Partitions are pruned while the query runs by conditions of joins, too.

use super::comparisons::Rewriter;
use super::derived::Derived;
use super::functions::IdTime;
use super::nodes::Expr;
use super::operators::Accepts;
use super::state::{Planner, Rel, Restriction};
use super::statistics::{Conditions, Expressions};
use super::{bounds, versions};

/// The paths of a partition are made, and those of the whole are next. PostgreSQL looks for conditions of joins that it can prune partitions by
/// while the query runs; so those on the ID are there meanwhile.
pub fn add_joins<'p>(planner: Planner<'p>, member: Rel<'p>) {
    let mut whole = member;
    while let Some((_, above)) = whole.place(planner) {
        whole = above;
    }
    if whole.partitioning().is_none() {
        return;
    }
    let Some(state) = Expressions::of_table(planner, whole).filter(|state| !state.conditions.has_more_of_joins.get())
    else {
        return;
    };
    let of_whole = |expression| {
        let is_of_whole = |time: &IdTime<'p>| planner.tables_of(time.id).is_same(whole.numbers());
        IdTime::read(expression).filter(is_of_whole)
    };
    let before = whole.joins();
    let mut more: Vec<Restriction> = Vec::new();
    let rewriter = Rewriter::of_joins(planner, &of_whole);
    for condition in before.iter() {
        for implied in rewriter.implied(condition.clause()) {
            let new = versions::restriction(planner, implied);
            versions::place_like(new, condition);
            more.push(new);
        }
    }
    more.extend(of_classes(planner, whole, &of_whole).into_iter().map(|one| versions::restriction(planner, one)));
    for &condition in &more {
        // They say nothing new.
        condition.set_selectivity(1.0);
        condition.set_outer_selectivity(1.0);
        versions::set_hashed(condition);
    }
    state.conditions.of_joins.set(before);
    state.conditions.has_more_of_joins.set(true);
    whole.set_joins(before.iter().chain(more).collect());
}

/// What follows for IDs from classes of equal times. `of_whole` reads an expression as a time of the whole.
fn of_classes<'p>(
    planner: Planner<'p>,
    whole: Rel<'p>,
    of_whole: &dyn Fn(Expr<'p>) -> Option<IdTime<'p>>,
) -> Vec<Expr<'p>> {
    let mut all = Vec::new();
    let is_time = |node| of_whole(node).is_some();
    for class in whole.class_numbers().iter().filter_map(|number| planner.classes().get(number)) {
        let made = versions::members(class).filter_map(|member| Derived::read(planner, member.expr(), &is_time));
        for derived in made {
            let Some(time) = of_whole(derived.time) else { continue };
            for other in versions::members(class).filter(|other| !other.relids().overlaps(whole.numbers())) {
                all.extend(derived.bounds(planner, Accepts::Equal, &time, other.expr()).into_iter().flatten());
            }
        }
        let times: Vec<IdTime> = versions::members(class).filter_map(|member| of_whole(member.expr())).collect();
        for time in times {
            for other in versions::members(class).filter(|other| !other.relids().overlaps(whole.numbers())) {
                if other.expr().is_volatile() {
                    continue;
                }
                let made = bounds::of_comparison(planner, Accepts::Equal, &time, other.expr(), other.datatype());
                all.extend(made.into_iter().flatten());
            }
        }
    }
    all
}

/// Takes them away again.
pub fn remove_joins<'p>(whole: Rel<'p>, conditions: &Conditions<'p>) {
    if conditions.has_more_of_joins.replace(false) {
        whole.set_joins(conditions.of_joins.get());
    }
}
