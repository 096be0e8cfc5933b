//! The conditions of partial indexes: `WHERE id >= snowflake_min_id('2026-01-09')` holds for what the query wants from that day on. PostgreSQL proves it by
//! the conditions of the query, which are on the time.

use super::functions::IdTime;
use super::nodes::{cast, copy, elements, list};
use super::operators::{self, Accepts};
use super::times;
use crate::postgres::time::timestamptz;
use pgrx::pg_sys::{self, List, Node};

/// Conditions of an index in terms of a time, too. Each still says the same: where the time is as the second alternative says, the ID is as
/// the first one does.
///
/// # Safety
/// The conditions of an index, and the time of an ID of its table.
pub unsafe fn with_times(conditions: *mut List, time: &IdTime) -> *mut List {
    // SAFETY: as above.
    unsafe {
        let with_time = |condition: *mut Node| match by_time(condition, time) {
            Some(by_time) => pg_sys::make_orclause(list(&[copy(condition), by_time])).cast(),
            None => condition,
        };
        list(&elements::<Node>(conditions).map(with_time).collect::<Vec<_>>())
    }
}

/// A condition on a time from which one on its ID follows, which compares it with a constant.
///
/// # Safety
/// As [`with_times`].
unsafe fn by_time(condition: *mut Node, time: &IdTime) -> Option<*mut Node> {
    let layout = time.layout()?;
    // SAFETY: as above; a comparison has two sides.
    unsafe {
        let comparison = cast::<pg_sys::OpExpr>(condition)?;
        let mut sides = elements::<Node>(comparison.args);
        let (left, right) = (sides.next()?, cast::<pg_sys::Const>(sides.next()?)?);
        if right.constisnull || !pg_sys::equal(left.cast(), time.id.cast()) {
            return None;
        }
        let id = right.constvalue.value() as i64;
        // The same for the next ID.
        let (is_lower, id) = match operators::of_two_ids(comparison.opno.to_u32())? {
            Accepts::GreaterOrEqual => (true, id),
            Accepts::Greater => (true, id.checked_add(1)?),
            Accepts::Less => (false, id),
            Accepts::LessOrEqual => (false, id.checked_add(1)?),
            Accepts::Equal => return None,
        };
        let instant = layout.timestamp(id).ok()?;
        let accepts = match (is_lower, layout.lowest_id_from(instant) == Some(id)) {
            (true, true) => Accepts::GreaterOrEqual,
            (true, false) => Accepts::Greater,
            (false, _) => Accepts::Less,
        };
        let operator = operators::in_family(operators::EQUAL_TIMES.into(), operators::DATETIME_OPS.into(), accepts)?;
        let none = pg_sys::InvalidOid;
        let other = times::constant(timestamptz::to_datum(instant));
        let call = copy(time.call);
        let new = pg_sys::make_opclause(operator, pg_sys::BOOLOID, false, call.cast(), other.cast(), none, none);
        pg_sys::set_opfuncid(new.cast());
        Some(new.cast())
    }
}
