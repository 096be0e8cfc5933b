//! What a query says of the times of a table's IDs, and which of its expressions rise with an ID: its time, and lengths of that.
//!
//! `date_bin()` of a time rises with it, and so does `date_trunc()` in UTC. `date_trunc()` in any other time zone does not: where
//! clocks go back at midnight, a day comes twice.

use super::functions::{self, IdTime};
use super::nodes::{cast, elements, text, without_labels};
use super::{operators, versions};
use pgrx::pg_sys::{self, Node, NodeTag, PlannerInfo, RelOptInfo};

/// OIDs as in PostgreSQL's `pg_proc.dat`: `date_bin(interval, timestamptz, timestamptz)`, `date_trunc(text, timestamptz, text)`.
const DATE_BIN: u32 = 6178;
const DATE_TRUNC: u32 = 1284;

/// An expression that rises with an ID.
#[derive(Clone, Copy)]
pub struct Rising {
    /// The expression.
    pub expression: *mut Node,
    /// The time that it is, or that it is a length of.
    pub time: IdTime,
}

/// What a query says of the times of a table's IDs.
#[derive(Default)]
pub struct Asked {
    /// What its conditions compare.
    pub compared: Vec<IdTime>,
    /// What it sorts, groups and partitions its rows by.
    pub sorted: Vec<Rising>,
}

impl Rising {
    /// Reads an expression; `None` where it is something else.
    ///
    /// # Safety
    /// The pointer is to an expression.
    unsafe fn read(expression: *mut Node) -> Option<Self> {
        // SAFETY: as above.
        unsafe {
            let time = match length(expression) {
                Some((is_rising, time)) => IdTime::read(time).filter(|_| is_rising())?,
                None => IdTime::read(expression)?,
            };
            Some(Self { expression, time })
        }
    }
}

/// Where an expression is a call of one of the functions that make lengths of a time: whether its result rises with the time,
/// and the time.
///
/// # Safety
/// The pointer is to an expression.
unsafe fn length(expression: *mut Node) -> Option<(impl FnOnce() -> bool, *mut Node)> {
    // SAFETY: as above; these functions have three arguments.
    unsafe {
        let call = cast::<pg_sys::FuncExpr>(expression)?;
        let function = call.funcid.to_u32();
        if function != DATE_BIN && function != DATE_TRUNC {
            return None;
        }
        let mut arguments = elements::<Node>(call.args);
        let (unit, time, place) = (arguments.next()?, arguments.next()?, arguments.next()?);
        let is_rising = move || {
            cast::<pg_sys::Const>(unit).is_some()
                && match function {
                    DATE_BIN => cast::<pg_sys::Const>(place).is_some(),
                    _ => text(place).is_some_and(|zone| zone == "UTC"),
                }
        };
        Some((is_rising, time))
    }
}

/// Whether a query may say something of the times of a table's IDs. Calls nothing of PostgreSQL, and takes no memory: it runs for
/// each table of every query.
///
/// # Safety
/// As [`of_table`].
pub unsafe fn has_candidates(root: *mut PlannerInfo, table: *mut RelOptInfo) -> bool {
    let mut found = false;
    // SAFETY: expressions of the query.
    let mut look = |expression| found |= unsafe { may_be_rising(expression) };
    // SAFETY: as above.
    unsafe {
        for_each_compared(root, table, &mut look);
        for_each_sorted(root, &mut look);
        let mut member = table;
        while let Some((place, parent)) = place(root, member) {
            if (*parent).rtekind == pg_sys::RTEKind::RTE_SUBQUERY {
                elements::<Node>((*place).translated_vars).for_each(&mut look);
            }
            member = parent;
        }
    }
    found
}

/// What the query says of the times of a table's IDs: of those whose bounds the user may ask for. A table that is a member of another one,
/// as a partition is, has what the query says of that.
///
/// # Safety
/// The planner's state of a query whose expressions are preprocessed, and a table of it.
pub unsafe fn of_table(root: *mut PlannerInfo, table: *mut RelOptInfo) -> Asked {
    let mut asked = Asked::default();
    // SAFETY: as above.
    unsafe {
        let is_of_use = |time: &IdTime| time.layout().is_some() && time.may_be_bounded();
        let is_same = |one: *mut Node, other: *mut Node| pg_sys::equal(one.cast(), other.cast());
        let [compared, sorted] = expressions(root, table);
        for expression in compared {
            if !asked.compared.iter().any(|known| is_same(known.call, expression)) {
                asked.compared.extend(IdTime::read(expression).filter(is_of_use));
            }
        }
        for expression in sorted {
            if !asked.sorted.iter().any(|known| is_same(known.expression, expression)) {
                asked.sorted.extend(Rising::read(expression).filter(|rising| is_of_use(&rising.time)));
            }
        }
    }
    asked
}

/// The expressions of a table alone that the query compares, and those that it sorts by.
///
/// # Safety
/// As [`of_table`].
unsafe fn expressions(root: *mut PlannerInfo, table: *mut RelOptInfo) -> [Vec<*mut Node>; 2] {
    // SAFETY: as above.
    unsafe {
        if let Some((mut place, parent)) = place(root, table) {
            return expressions(root, parent)
                .map(|of_parent| of_parent.into_iter().filter_map(|one| of_member(root, &mut place, one)).collect());
        }
        let is_whole = (*table).rtekind == pg_sys::RTEKind::RTE_SUBQUERY;
        let of_table = |expression| {
            let of_table = |expression| is_of_table(root, without_labels(expression), (*table).relid);
            if may_be_rising(expression) {
                let time = length(expression).map_or(expression, |(_, time)| time);
                let call = cast::<pg_sys::FuncExpr>(time);
                return call.is_some_and(|call| elements::<Node>(call.args).next().is_some_and(of_table));
            }
            is_whole && cast::<pg_sys::Var>(expression).is_some() && of_table(expression)
        };
        let (mut compared, mut sorted) = (Vec::new(), Vec::new());
        for_each_compared(root, table, &mut |expression| compared.extend(of_table(expression).then_some(expression)));
        for_each_sorted(root, &mut |expression| sorted.extend(of_table(expression).then_some(expression)));
        [compared, sorted]
    }
}

/// Reads an expression as the time of an ID of this table alone; `None` where it is something else.
///
/// # Safety
/// The planner's state, and an expression of its query.
pub unsafe fn time_of(root: *mut PlannerInfo, expression: *mut Node, table: pg_sys::Index) -> Option<IdTime> {
    // SAFETY: as above.
    unsafe { IdTime::read(expression).filter(|time| is_of_table(root, without_labels(time.id), table)) }
}

/// Whether an expression is of this table alone, and not made NULL by an outer join.
///
/// # Safety
/// The planner's state, and an expression of its query.
unsafe fn is_of_table(root: *mut PlannerInfo, expression: *mut Node, table: pg_sys::Index) -> bool {
    // SAFETY: as above.
    unsafe {
        if let Some(column) = cast::<pg_sys::Var>(expression) {
            return column.varno as pg_sys::Index == table
                && column.varlevelsup == 0
                && !versions::is_made_null(column);
        }
        let mut number = 0;
        let is_of_one = pg_sys::bms_get_singleton_member(pg_sys::pull_varnos(root, expression), &raw mut number);
        is_of_one && number as pg_sys::Index == table
    }
}

/// An expression of a table as one of its member; `None` where it is a column that the member does not have.
///
/// # Safety
/// The planner's state, the place of a member, and an expression of its table.
unsafe fn of_member(
    root: *mut PlannerInfo,
    place: &mut *mut pg_sys::AppendRelInfo,
    expression: *mut Node,
) -> Option<*mut Node> {
    // SAFETY: as above; the translations of the columns are in their order.
    unsafe {
        match cast::<pg_sys::Var>(expression) {
            Some(column) => {
                let at = usize::try_from(column.varattno).ok()?.checked_sub(1)?;
                elements::<Node>((**place).translated_vars).nth(at)
            }
            None => Some(pg_sys::adjust_appendrel_attrs(root, expression, 1, place)),
        }
    }
}

/// What a table that is a member of another one has from that, and that; `None` where it is no member.
///
/// # Safety
/// The planner's state, and a table of it.
pub unsafe fn place(
    root: *mut PlannerInfo,
    table: *mut RelOptInfo,
) -> Option<(*mut pg_sys::AppendRelInfo, *mut RelOptInfo)> {
    // SAFETY: as above; a member has an entry in this array, whose numbers are those of tables of the query.
    unsafe {
        if (*table).reloptkind != pg_sys::RelOptKind::RELOPT_OTHER_MEMBER_REL {
            return None;
        }
        let place = *(*root).append_rel_array.add((*table).relid as usize);
        Some((place, *(*root).simple_rel_array.add((*place).parent_relid as usize)))
    }
}

/// Whether an expression looks like the time of an ID, or a length of one. Calls nothing of PostgreSQL.
///
/// # Safety
/// The pointer is to an expression.
unsafe fn may_be_rising(expression: *mut Node) -> bool {
    // SAFETY: as above.
    unsafe { functions::may_be_ours(length(expression).map_or(expression, |(_, time)| time)) }
}

/// Passes on what is compared as times are: in the query's conditions, and in those that guard the table's rows.
///
/// # Safety
/// As [`of_table`].
unsafe fn for_each_compared(root: *mut PlannerInfo, table: *mut RelOptInfo, found: &mut dyn FnMut(*mut Node)) {
    // SAFETY: as above; the array has an element for each number of a table in the query.
    unsafe {
        for_each_operand((*(*root).parse).jointree.cast(), found);
        let entry = *(*root).simple_rte_array.add((*table).relid as usize);
        for_each_operand((*entry).securityQuals.cast(), found);
    }
}

/// # Safety
/// A part of a query's join tree, conditions, or NULL.
unsafe fn for_each_operand(node: *mut Node, found: &mut dyn FnMut(*mut Node)) {
    if node.is_null() {
        return;
    }
    // SAFETY: as above; the tag tells the type. Comparisons have operands.
    unsafe {
        let mut each = |list: *mut pg_sys::List| elements::<Node>(list).for_each(&mut *found);
        match (*node).type_ {
            NodeTag::T_OpExpr => {
                let comparison = &*node.cast::<pg_sys::OpExpr>();
                if operators::of_times(comparison.opno.to_u32()).is_some() {
                    each(comparison.args);
                }
            }
            NodeTag::T_ScalarArrayOpExpr => {
                let comparison = &*node.cast::<pg_sys::ScalarArrayOpExpr>();
                if operators::of_times(comparison.opno.to_u32()).is_some() {
                    each(comparison.args);
                }
            }
            NodeTag::T_RowCompareExpr => {
                let comparison = &*node.cast::<pg_sys::RowCompareExpr>();
                each(comparison.largs);
                each(comparison.rargs);
            }
            NodeTag::T_NullTest => found((*node.cast::<pg_sys::NullTest>()).arg.cast()),
            NodeTag::T_List => elements(node.cast()).for_each(|one| for_each_operand(one, found)),
            NodeTag::T_BoolExpr => {
                elements((*node.cast::<pg_sys::BoolExpr>()).args).for_each(|one| for_each_operand(one, found));
            }
            NodeTag::T_FromExpr => {
                let from = &*node.cast::<pg_sys::FromExpr>();
                elements(from.fromlist).for_each(|part| for_each_operand(part, found));
                for_each_operand(from.quals, found);
            }
            NodeTag::T_JoinExpr => {
                let join = &*node.cast::<pg_sys::JoinExpr>();
                [join.larg, join.rarg, join.quals].into_iter().for_each(|part| for_each_operand(part, found));
            }
            _ => {}
        }
    }
}

/// Passes on what the rows are sorted, grouped or partitioned by.
///
/// # Safety
/// As [`of_table`].
unsafe fn for_each_sorted(root: *mut PlannerInfo, found: &mut dyn FnMut(*mut Node)) {
    // SAFETY: as above.
    unsafe {
        elements::<pg_sys::TargetEntry>((*(*root).parse).targetList)
            .filter(|&entry| (*entry).ressortgroupref > 0)
            .for_each(|entry| found((*entry).expr.cast()));
    }
}
