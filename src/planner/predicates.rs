//! The conditions of partial indexes: `WHERE id >= snowflake_min_id('2026-01-09')` holds for what the query wants from that day on. PostgreSQL proves it by
//! the conditions of the query, which are on the time.

use super::functions::IdTime;
use super::nodes::{Expr, List, list};
use super::operators::{self, Accepts};
use super::state::Planner;
use crate::postgres::time::timestamptz;
use pgrx::pg_sys::{self, Node};

/// The conditions of an index in terms of the time of an ID, too. Each still says the same: where the time is as the second alternative says, the ID
/// is as the first one does.
pub fn with_times<'p>(planner: Planner<'p>, conditions: List<'p, Node>, time: &IdTime<'p>) -> List<'p, Node> {
    let with_time = |condition: Expr<'p>| match by_time(planner, condition, time) {
        Some(by_time) => list(&[condition.copy(), by_time]).any_of(),
        None => condition,
    };
    conditions.iter().map(with_time).collect()
}

/// A condition on a time from which one on its ID follows, which compares it with a constant.
fn by_time<'p>(planner: Planner<'p>, condition: Expr<'p>, time: &IdTime<'p>) -> Option<Expr<'p>> {
    let layout = time.layout()?;
    let comparison = condition.cast::<pg_sys::OpExpr>()?;
    let mut sides = comparison.args().iter();
    let (left, right) = (sides.next()?, sides.next()?.cast::<pg_sys::Const>()?);
    if right.constisnull() || !left.says(time.id) {
        return None;
    }
    let id = right.constvalue().value() as i64;
    // The same for the next ID.
    let (is_lower, id) = match operators::of_two_ids(comparison.opno().to_u32())? {
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
    operators::of_instants(accepts).of(time.call.copy(), planner.time(timestamptz::to_datum(instant)))
}
