//! What a query says of the times of a table's IDs, and which of its expressions rise with an ID: its time, and lengths of that.
//!
//! `date_bin()` of a time rises with it, and so does `date_trunc()` in UTC. `date_trunc()` in any other time zone does not: where
//! clocks go back at midnight, a day comes twice.

use super::derived::{self, Derived};
use super::functions::{self, IdTime};
use super::nodes::Expr;
use super::state::{MemberPlace, Planner, Rel};
use super::{operators, versions};
use pgrx::pg_sys::{self, NodeTag};
use std::cell::Cell;

/// OIDs as in PostgreSQL's `pg_proc.dat`: `date_bin(interval, timestamptz, timestamptz)`, `date_trunc(text, timestamptz, text)`.
const DATE_BIN: u32 = 6178;
const DATE_TRUNC: u32 = 1284;

/// How many different expressions that are made of a table's times are of interest: an index has a twin for each. Further ones are filters only.
/// Of members, which may be many, fewer are.
const MOST_DERIVED: usize = 32;
const MOST_DERIVED_OF_MEMBER: usize = 8;

/// An expression that rises with an ID.
#[derive(Clone, Copy)]
pub struct Rising<'p> {
    /// The expression.
    pub expression: Expr<'p>,
    /// The time that it is, or that it is a length of.
    pub time: IdTime<'p>,
}

/// What a query says of the times of a table's IDs.
#[derive(Default)]
pub struct Asked<'p> {
    /// What its conditions compare.
    pub compared: Vec<IdTime<'p>>,
    /// What its conditions compare that is made of such a time.
    pub derived: Vec<(Derived<'p>, IdTime<'p>)>,
    /// What it sorts, groups and partitions its rows by.
    pub sorted: Vec<Rising<'p>>,
}

impl<'p> Rising<'p> {
    /// Reads an expression; `None` where it is something else.
    fn read(expression: Expr<'p>) -> Option<Self> {
        let time = match length(expression) {
            Some((is_rising, time)) => IdTime::read(time).filter(|_| is_rising())?,
            None => IdTime::read(expression)?,
        };
        Some(Self { expression, time })
    }
}

/// Where an expression is a call of one of the functions that make lengths of a time: whether its result rises with the time,
/// and the time.
#[inline]
fn length(expression: Expr<'_>) -> Option<(impl FnOnce() -> bool, Expr<'_>)> {
    let call = expression.cast::<pg_sys::FuncExpr>()?;
    let function = call.funcid().to_u32();
    if function != DATE_BIN && function != DATE_TRUNC {
        return None;
    }
    let mut arguments = call.args().iter();
    let (unit, time, place) = (arguments.next()?, arguments.next()?, arguments.next()?);
    let is_rising = move || {
        unit.cast::<pg_sys::Const>().is_some()
            && match function {
                DATE_BIN => place.cast::<pg_sys::Const>().is_some(),
                _ => place.text().is_some_and(|zone| zone == "UTC"),
            }
    };
    Some((is_rising, time))
}

/// Whether a query may say something of the times of a table's IDs. Calls nothing of PostgreSQL, and takes no memory: it runs for
/// each table of every query.
pub fn has_candidates<'p>(planner: Planner<'p>, table: Rel<'p>) -> bool {
    let mut found = query_has_candidates(planner, table);
    for_each_guarding(planner, table.number(), &mut |expression| {
        found |= functions::may_be_ours(derived::origin(expression))
    });
    let mut member = table;
    while let Some((place, parent)) = member.place(planner) {
        if parent.entry_kind() == pg_sys::RTEKind::RTE_SUBQUERY {
            place.columns().iter().for_each(|expression| found |= may_be_rising(expression));
        }
        member = parent;
    }
    found
}

thread_local! {
    /// Of the query that a table was last looked at for: where its state is, and whether it may say something of times.
    static LAST: Cell<(usize, bool)> = const { Cell::new((0, false)) };
}

/// Whether the conditions of a query, or what it sorts by, may say something of times. That is the same for each of its tables, so a join of ten
/// is looked through once.
///
/// The state of another query may have been in the same place. So the last answer counts only where a table of this query was looked at before.
fn query_has_candidates<'p>(planner: Planner<'p>, table: Rel<'p>) -> bool {
    let own = planner.as_ptr().addr();
    let was_looked_at =
        |number| planner.rel(number).is_some_and(|table| table.entry_kind() == pg_sys::RTEKind::RTE_RELATION);
    let (last, answer) = LAST.get();
    if last == own && (1..table.number()).any(was_looked_at) {
        return answer;
    }
    let mut found = false;
    for_each_joined(planner, &mut |expression| found |= functions::may_be_ours(derived::origin(expression)));
    for_each_sorted(planner, &mut |expression| found |= may_be_rising(expression));
    LAST.set((own, found));
    found
}

/// What the query says of the times of a table's IDs: compared are those whose bounds the user may ask for. A table that is a member of another one,
/// as a partition is, has what the query says of that.
pub fn of_table<'p>(planner: Planner<'p>, table: Rel<'p>) -> Asked<'p> {
    let mut asked = Asked::default();
    let is_of_use = |time: &IdTime| time.layout().is_some() && time.may_be_bounded();
    let is_in_order = |time: &IdTime| time.layout().is_some() && time.may_be_called();
    let [mut compared, mut sorted] = expressions(planner, table);
    // Of a table that is joined with itself, one is read from 18 on, with the conditions of both.
    if cfg!(since_pg18) && table.kind() == pg_sys::RelOptKind::RELOPT_BASEREL {
        let (own, others) = (table.number(), planner.same_tables(table));
        for (other, _) in others.filter(|&(number, _)| number != own) {
            let of_own = |one| planner.of_other(one, other, own);
            let [more_compared, more_sorted] = own_expressions(planner, other, false);
            compared.extend(more_compared.into_iter().map(of_own));
            sorted.extend(more_sorted.into_iter().map(of_own));
        }
    }
    let is_member = table.kind() == pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL;
    let most_derived = if is_member { MOST_DERIVED_OF_MEMBER } else { MOST_DERIVED };
    for expression in compared {
        if let Some(time) = IdTime::read(expression) {
            if !asked.compared.iter().any(|known| known.call.says(expression)) {
                asked.compared.extend(Some(time).filter(is_of_use));
            }
        } else if asked.derived.len() < most_derived
            && !asked.derived.iter().any(|(known, _)| known.expression.says(expression))
        {
            asked.derived.extend(derived_of(planner, expression).filter(|(_, time)| is_of_use(time)));
        }
    }
    for expression in sorted {
        if !asked.sorted.iter().any(|known| known.expression.says(expression)) {
            asked.sorted.extend(Rising::read(expression).filter(|rising| is_in_order(&rising.time)));
        }
    }
    asked
}

/// Reads an expression as made of the time of an ID; `None` where it is something else.
pub fn derived_of<'p>(planner: Planner<'p>, expression: Expr<'p>) -> Option<(Derived<'p>, IdTime<'p>)> {
    let derived = Derived::read(planner, expression, &functions::may_be_ours)?;
    let time = IdTime::read(derived.time)?;
    Some((derived, time))
}

/// The expressions of a table alone that the query compares, and those that it sorts by.
fn expressions<'p>(planner: Planner<'p>, table: Rel<'p>) -> [Vec<Expr<'p>>; 2] {
    if let Some((place, parent)) = table.place(planner) {
        return expressions(planner, parent)
            .map(|of_parent| of_parent.into_iter().filter_map(|one| of_member(planner, place, one)).collect());
    }
    own_expressions(planner, table.number(), table.entry_kind() == pg_sys::RTEKind::RTE_SUBQUERY)
}

/// The same of a table that is no member, by its number in the query; whether it is a subquery.
fn own_expressions<'p>(planner: Planner<'p>, table: u32, is_whole: bool) -> [Vec<Expr<'p>>; 2] {
    let of_table = |expression: Expr<'p>| {
        let of_table = |expression: Expr<'p>| is_of_table(planner, expression.without_labels(), table);
        if may_be_rising(expression) {
            let time = length(expression).map_or(expression, |(_, time)| time);
            let call = time.cast::<pg_sys::FuncExpr>();
            return call.is_some_and(|call| call.args().get(0).is_some_and(of_table));
        }
        is_whole && expression.cast::<pg_sys::Var>().is_some() && of_table(expression)
    };
    let (mut compared, mut sorted) = (Vec::new(), Vec::new());
    let mut look = |expression: Expr<'p>| {
        let origin = derived::origin(expression);
        let is_made_of = origin != expression.without_labels()
            && (functions::may_be_ours(origin) || is_whole && origin.cast::<pg_sys::Var>().is_some())
            && planner.tables_of(expression).only() == Some(table)
            && of_table(origin);
        if is_made_of || of_table(expression) {
            compared.push(expression.without_labels());
        }
    };
    for_each_joined(planner, &mut look);
    for_each_guarding(planner, table, &mut look);
    for_each_sorted(planner, &mut |expression| sorted.extend(of_table(expression).then_some(expression)));
    [compared, sorted]
}

/// Reads an expression as the time of an ID of this table alone; `None` where it is something else.
pub fn time_of<'p>(planner: Planner<'p>, expression: Expr<'p>, table: u32) -> Option<IdTime<'p>> {
    IdTime::read(expression).filter(|time| is_of_table(planner, time.id.without_labels(), table))
}

/// Whether an expression is of this table alone, and not made NULL by an outer join.
fn is_of_table<'p>(planner: Planner<'p>, expression: Expr<'p>, table: u32) -> bool {
    if let Some(column) = expression.cast::<pg_sys::Var>() {
        return versions::table_of(column) == table && column.levels_up() == 0 && !versions::is_made_null(column);
    }
    planner.tables_of(expression).only() == Some(table)
}

/// An expression of a table as one of its member; `None` where it is a column that the member does not have.
fn of_member<'p>(planner: Planner<'p>, place: MemberPlace<'p>, expression: Expr<'p>) -> Option<Expr<'p>> {
    match expression.cast::<pg_sys::Var>() {
        Some(column) => {
            let at = usize::try_from(column.attribute()).ok()?.checked_sub(1)?;
            place.columns().get(at)
        }
        None => Some(planner.of_member(expression, place)),
    }
}

/// Whether an expression looks like the time of an ID, or a length of one. Calls nothing of PostgreSQL.
#[inline]
fn may_be_rising(expression: Expr<'_>) -> bool {
    functions::may_be_ours(length(expression).map_or(expression, |(_, time)| time))
}

/// Passes on what is compared as times are in the query's conditions.
fn for_each_joined<'p>(planner: Planner<'p>, found: &mut dyn FnMut(Expr<'p>)) {
    if let Some(tree) = planner.join_tree() {
        for_each_operand(tree, found);
    }
}

/// The same in the conditions that guard a table's rows.
fn for_each_guarding<'p>(planner: Planner<'p>, table: u32, found: &mut dyn FnMut(Expr<'p>)) {
    if let Some(guards) = planner.entry(table).and_then(|entry| entry.guards().node()) {
        for_each_operand(guards, found);
    }
}

/// Of a part of a query's join tree, or of conditions.
fn for_each_operand<'p>(node: Expr<'p>, found: &mut dyn FnMut(Expr<'p>)) {
    let is_of_times = |operator: pg_sys::Oid| operators::compares(operator.to_u32()).is_some();
    match node.tag() {
        NodeTag::T_OpExpr => match node.cast::<pg_sys::OpExpr>().filter(|one| is_of_times(one.opno())) {
            Some(one) => one.args().iter().for_each(found),
            None => derived::operands(node, found),
        },
        NodeTag::T_BooleanTest => derived::operands(node, found),
        NodeTag::T_ScalarArrayOpExpr => {
            if let Some(one) = node.cast::<pg_sys::ScalarArrayOpExpr>().filter(|one| is_of_times(one.opno())) {
                one.args().iter().for_each(found);
            }
        }
        NodeTag::T_RowCompareExpr => {
            if let Some(rows) = node.cast::<pg_sys::RowCompareExpr>() {
                rows.left().iter().chain(rows.right().iter()).for_each(found);
            }
        }
        NodeTag::T_NullTest => {
            if let Some(test) = node.cast::<pg_sys::NullTest>() {
                found(test.arg());
            }
        }
        NodeTag::T_List => {
            if let Some(conditions) = node.list() {
                conditions.iter().for_each(|one| for_each_operand(one, found));
            }
        }
        NodeTag::T_BoolExpr => {
            if let Some(combination) = node.cast::<pg_sys::BoolExpr>() {
                combination.args().iter().for_each(|one| for_each_operand(one, found));
            }
        }
        NodeTag::T_FromExpr => {
            if let Some(from) = node.cast::<pg_sys::FromExpr>() {
                from.fromlist().iter().chain(from.quals()).for_each(|part| for_each_operand(part, found));
            }
        }
        NodeTag::T_JoinExpr => {
            if let Some(join) = node.cast::<pg_sys::JoinExpr>() {
                let parts = [join.left(), join.right()].into_iter().chain(join.quals());
                parts.for_each(|part| for_each_operand(part, found));
            }
        }
        _ => {}
    }
}

/// Passes on what the rows are sorted, grouped or partitioned by.
fn for_each_sorted<'p>(planner: Planner<'p>, found: &mut dyn FnMut(Expr<'p>)) {
    let targets = planner.query().targets().iter();
    targets.filter(|target| target.sort_group() > 0).for_each(|target| found(target.expr()));
}
