//! What a whole's conditions become for one of its members: PostgreSQL gives a member those that its whole has when it is added.

use super::comparisons::Rewriter;
use super::functions::IdTime;
use super::lists::Listed;
use super::nodes::{Expr, List, made};
use super::remembered::{Remembered, RememberedBy, remember, remembered};
use super::state::{MemberPlace, Planner, Rel, Restriction};
use super::statistics::Expressions;
use super::{elements, gathered, lists, versions};
use pg_sys::RestrictInfo;
use pgrx::prelude::*;
use std::ffi::CString;

/// A condition that a UNION ALL has for one of its members.
///
/// What it says of the member would say something else of the whole: PostgreSQL looks for conditions of the whole that contradict each other, too.
/// So it is a column that the whole has for the moment: the condition is what the column is in that member.
struct OfMember<'p> {
    /// The condition of the whole that it takes the place of.
    instead_of: Option<Restriction<'p>>,
    /// The columns of the member before, and of the queries that are added after it.
    places: Vec<MemberPlace<'p>>,
}

/// Such conditions, as they are remembered.
enum AllOfMembers {}

// SAFETY: the same type for each lifetime, which is that of what it has of the planner's.
unsafe impl Remembered for AllOfMembers {
    type Of<'p> = OfMember<'p>;
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
struct ForMember<'p> {
    planner: Planner<'p>,
    member: Rel<'p>,
    place: MemberPlace<'p>,
    /// Those members of a UNION ALL after it, until the next table, that are queries. They get what the whole has then, and are not looked at
    /// when they are added.
    queries: Vec<MemberPlace<'p>>,
    is_part: bool,
}

impl<'p> ForMember<'p> {
    /// For a member that is about to be added, and what it has from its whole.
    fn new(planner: Planner<'p>, member: Rel<'p>, place: MemberPlace<'p>) -> Self {
        let is = |number, kind| planner.entry(number).is_some_and(|entry| entry.kind() == kind);
        let whole = place.parent();
        let is_part = is(whole, pg_sys::RTEKind::RTE_SUBQUERY);
        let mut queries = Vec::new();
        // Partitions have none, and may be thousands.
        if is_part {
            let others = planner.places().iter().skip_while(|&one| one != place).skip(1);
            queries = others
                .filter(|one| one.parent() == whole)
                .take_while(|one| !is(one.child(), pg_sys::RTEKind::RTE_RELATION))
                .collect();
        }
        Self { planner, member, place, queries, is_part }
    }

    /// A condition of the whole that is this one of the member, and applies as one of the whole does. The condition of the whole that it takes
    /// the place of, if any, stays that of the queries.
    fn add(&self, like: Restriction<'p>, condition: Expr<'p>, instead: Instead) -> Restriction<'p> {
        let of_queries = (instead == Instead::First).then(|| like.clause());
        let clause = if self.is_part { self.column(condition, of_queries) } else { condition };
        let new = like.duplicate();
        new.set_clause(clause);
        new.set_or_clause(None);
        // Of the member: so it is known again.
        new.set_numbers(self.member.numbers());
        let instead_of = (instead != Instead::No).then_some(like);
        let places = [self.place].into_iter().chain(self.queries.iter().copied()).collect();
        let by = RememberedBy::condition(self.planner, clause);
        remember::<AllOfMembers>(self.planner, by, OfMember { instead_of, places });
        new
    }

    /// A column of the whole that is this condition in the member; and in the queries, a condition of the whole, or true.
    fn column(&self, condition: Expr<'p>, of_queries: Option<Expr<'p>>) -> Expr<'p> {
        for &query in &self.queries {
            // With the columns that it has by now.
            let place = self.planner.place(query.child()).unwrap_or(query);
            let is = match of_queries {
                Some(clause) => self.planner.of_member(clause, place),
                None => self.planner.truth(true),
            };
            self.append(query, is);
        }
        let number = self.append(self.place, condition);
        let whole = self.place.parent() as i32;
        // SAFETY: this makes a new node, for a column that each member has, as it was appended to them in their order.
        unsafe { made(pg_sys::makeVar(whole as _, number, pg_sys::BOOLOID, -1, pg_sys::InvalidOid, 0)) }
    }

    /// Has a member of the whole have one more column, and returns its number. The list of all members has them as they were.
    fn append(&self, place: MemberPlace<'p>, column: Expr<'p>) -> i16 {
        let mut current = self.planner.place(place.child()).unwrap_or(place);
        if current == place {
            current = place.duplicate();
            self.planner.set_place(current);
        }
        current.set_columns(current.columns().with(column));
        current.columns().len() as i16
    }
}

/// The conditions of a whole that are its own, and not of a member that was added before.
pub fn of_whole<'p>(planner: Planner<'p>, whole: Rel<'p>) -> List<'p, RestrictInfo> {
    let is_own = |one: Restriction<'p>| one.numbers().is_within(whole.numbers());
    if whole.conditions().iter().all(is_own) {
        return whole.conditions();
    }
    let mut own: Vec<Restriction> = Vec::new();
    for one in whole.conditions().iter() {
        // What is not of the whole alone was made here.
        let before = if is_own(one) {
            Some(one)
        } else {
            let by = RememberedBy::condition(planner, one.clause());
            remembered::<AllOfMembers>(planner, by, |_| true).and_then(|of_member| {
                of_member.places.iter().for_each(|&place| planner.set_place(place));
                of_member.instead_of
            })
        };
        if let Some(before) = before.filter(|before| own.last() != Some(before)) {
            own.push(before);
        }
    }
    own.into_iter().collect()
}

/// The conditions of a whole, with those for a member that follow from them, or with those in their place.
pub fn with_implied<'p>(
    planner: Planner<'p>,
    place: MemberPlace<'p>,
    member: Rel<'p>,
    conditions: List<'p, RestrictInfo>,
    instead: bool,
) -> List<'p, RestrictInfo> {
    let time_of = |expression| IdTime::read(expression);
    let rewriter = Rewriter::new(planner, &time_of);
    let for_member = ForMember::new(planner, member, place);
    // With the columns that it has by now.
    let place = planner.place(member.number()).unwrap_or(place);
    let (mut all, mut more, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for condition in conditions.iter() {
        let own = planner.of_member(condition.clause(), place);
        let implied = rewriter.implied(own);
        let instead = instead && !rewriter.is_wider(own);
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
    if let Some(state) = Expressions::of_table(planner, member) {
        state.conditions.implied.set(added.into_iter().collect());
    }
    all.into_iter().chain(more).collect()
}

/// The conditions of a whole for a member, with an OR in place of each list of its times; but a list stays where the member can be read by
/// [one element after the other](elements), unless the list may [exclude it later](super::wholes::is_excluded_later).
pub fn with_alternatives<'p>(
    planner: Planner<'p>,
    place: MemberPlace<'p>,
    member: Rel<'p>,
    conditions: List<'p, RestrictInfo>,
    is_excluded_later: bool,
) -> List<'p, RestrictInfo> {
    if conditions.iter().any(|one| lists::may_have_any(one.clause())) {
        gathered::expect(planner, member);
    }
    if !conditions.iter().any(|one| lists::has_any(one.clause())) {
        return conditions;
    }
    let for_member = ForMember::new(planner, member, place);
    let excludes = |list| is_excluded_later && Listed::read(planner, list).is_some_and(|list| list.is_known_later());
    let stays = |list| elements::serve(planner, member, list) && !excludes(list);
    let spread = |condition: Restriction<'p>| {
        let own = lists::has_any(condition.clause()).then(|| planner.of_member(condition.clause(), place));
        let spread = own.and_then(|own| lists::spread_condition(planner, own, member.number(), &stays));
        spread.map_or(condition, |spread| for_member.add(condition, spread, Instead::First))
    };
    conditions.iter().map(spread).collect()
}

/// Whether a child's constraints on its IDs, by CHECK or NOT NULL, exclude all rows that the query asks for, by the conditions of its parent.
/// PostgreSQL finds that out if it knows the conditions on the ID.
pub fn is_excluded<'p>(planner: Planner<'p>, child: Rel<'p>, conditions: List<'p, RestrictInfo>) -> bool {
    let Some((place, _)) = child.place(planner) else { return false };
    let time_of = |expression| IdTime::read(expression);
    let rewriter = Rewriter::new(planner, &time_of);
    let of_child = conditions.iter().map(|condition| planner.of_member(condition.clause(), place));
    let implied: Vec<Expr> = of_child.flat_map(|condition| rewriter.implied(condition)).collect();
    if implied.is_empty() {
        return false;
    }
    let asked_for_null = |one: &Expr<'p>| one.cast::<pg_sys::NullTest>().map(|test| test.arg());
    if implied.iter().filter_map(asked_for_null).any(|id| versions::is_not_null(planner, child, id)) {
        return true;
    }
    let Some(entry) = planner.entry(child.number()) else { return false };
    let implied: List<_> = implied.into_iter().collect();
    // SAFETY: the query has locked its tables, and the table is open while its constraints are read, as PostgreSQL reads them. What is made of them
    // are new trees.
    unsafe {
        if pg_sys::constraint_exclusion as u32 == pg_sys::ConstraintExclusionType::CONSTRAINT_EXCLUSION_OFF {
            return false;
        }
        let table = pg_sys::table_open(entry.oid(), pg_sys::NoLock as pg_sys::LOCKMODE);
        let constraints = (*(*table).rd_att).constr;
        let count = if constraints.is_null() { 0 } else { (*constraints).num_check as usize };
        let mut checks = std::ptr::null_mut();
        for at in 0..count {
            let check = (*constraints).check.add(at);
            if (*check).ccvalid {
                let text = CString::from(std::ffi::CStr::from_ptr((*check).ccbin));
                let expression = pg_sys::stringToNode(text.as_ptr()).cast();
                let expression = pg_sys::eval_const_expressions(planner.as_ptr(), expression);
                let expression = pg_sys::canonicalize_qual(expression.cast(), true);
                pg_sys::ChangeVarNodes(expression.cast(), 1, child.number() as i32, 0);
                checks = pg_sys::list_concat(checks, pg_sys::make_ands_implicit(expression));
            }
        }
        pg_sys::table_close(table, pg_sys::NoLock as pg_sys::LOCKMODE);
        !checks.is_null() && pg_sys::predicate_refuted_by(checks, implied.as_ptr(), false)
    }
}
