//! The statistics of a time, from those of its ID: PostgreSQL has none of an expression.

use super::functions::IdTime;
use super::nodes::{At, Expr, is_stored_as, list};
use super::operators::{ABOVE, EQUAL_TIMES};
use super::state::{Index, Planner};
use crate::postgres::time::timestamptz;
use crate::postgres::{abort, foreign};
use pg_sys::VariableStatData;
use pgrx::prelude::*;
use snowflake_core::Layout;
use std::cell::Cell;

/// A row of `pg_statistic`, if there is one, and whether the user may know what it tells.
pub type Statistics<'p> = (Option<At<'p, pg_sys::HeapTupleData>>, bool);

/// What the catalog knows of a column.
pub struct ColumnStatistics<'p> {
    tuple: At<'p, pg_sys::HeapTupleData>,
    data: VariableStatData,
}

impl<'p> ColumnStatistics<'p> {
    /// What it knows of an ID.
    fn of(planner: Planner<'p>, id: Expr<'p>) -> Option<Self> {
        let mut data = VariableStatData::default();
        let id = id.without_labels();
        // SAFETY: this fills the data. Its row stays until it is freed.
        unsafe {
            pg_sys::examine_variable(planner.as_ptr(), id.as_ptr(), 0, &raw mut data);
            At::new(data.statsTuple).map(|tuple| Self { tuple, data })
        }
    }

    /// The values and numbers of one kind of statistics.
    fn slot(&self, kind: u32, wanted: u32) -> Option<(Vec<i64>, Vec<f32>)> {
        let mut slot = pg_sys::AttStatsSlot::default();
        let tuple = self.tuple.as_ptr();
        // SAFETY: a row of statistics, which is not freed yet. The slot has so many values and numbers, and is freed as PostgreSQL does; values of a
        // type that is stored as `bigint` are numbers.
        unsafe {
            if !pg_sys::get_attstatsslot(&raw mut slot, tuple, kind as i32, pg_sys::InvalidOid, wanted as i32) {
                return None;
            }
            // Of bigint, of a domain over it, or of a type that is stored so.
            let count = if is_stored_as(slot.valuetype, pg_sys::INT8OID) { slot.nvalues as usize } else { 0 };
            let values = (0..count).map(|at| (*slot.values.add(at)).value() as i64).collect();
            let numbers = (0..slot.nnumbers as usize).map(|at| *slot.numbers.add(at)).collect();
            pg_sys::free_attstatsslot(&raw mut slot);
            Some((values, numbers))
        }
    }

    /// The row of the catalog: its fixed part.
    fn row(&self) -> &pg_sys::FormData_pg_statistic {
        // SAFETY: a row of this catalog is what its struct says. Nobody changes it, and it is freed with this.
        unsafe {
            let header = (*self.tuple.as_ptr()).t_data;
            &*header.cast::<u8>().add((*header).t_hoff.into()).cast()
        }
    }
}

impl Drop for ColumnStatistics<'_> {
    fn drop(&mut self) {
        if let Some(free) = self.data.freefunc
            && !abort::is_under_way()
        {
            let tuple = self.tuple.as_ptr();
            // SAFETY: the function that belongs to this row, mostly PostgreSQL's own, and that of another extension where that has supplied it. This
            // is in the call of one of the hooks.
            unsafe { foreign::call(|| free(tuple)) };
        }
    }
}

/// What is known already, or is now. To find it out may ask for it again.
pub fn once<T: Copy>(place: &Cell<Option<T>>, find: impl FnOnce() -> T) -> T {
    place.get().unwrap_or_else(|| {
        let found = find();
        place.set(Some(found));
        found
    })
}

/// How well the order of an index that begins with an ID agrees with that of the table's rows: from -1 to 1, 0 where that is not known.
/// As PostgreSQL's `btcostestimate()` reckons.
pub fn correlation<'p>(planner: Planner<'p>, index: Index<'p>, time: &IdTime<'p>) -> f64 {
    let known = ColumnStatistics::of(planner, time.id);
    let slot = known.and_then(|known| known.slot(pg_sys::STATISTIC_KIND_CORRELATION, pg_sys::ATTSTATSSLOT_NUMBERS));
    let correlation = slot.and_then(|(_, numbers)| numbers.first().copied()).map_or(0.0, f64::from);
    let correlation = if index.is_falling(0) == Some(true) { -correlation } else { correlation };
    if index.key_count() > 1 { correlation * 0.75 } else { correlation }
}

/// The values that a query compares a time with. Making statistics takes as long as the rest of the planning of a short query, so those
/// that nobody looks at are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compared {
    /// With nothing.
    No,
    /// With constants: `timestamptz` up to this one.
    UpTo(i64),
    /// With what is known only when the query runs, or with other tables.
    WithAny,
}

/// The statistics of a time, as a row of `pg_statistic`; `None` where the catalog has none of the ID.
pub fn statistics<'p>(
    planner: Planner<'p>,
    time: &IdTime<'p>,
    rows: f64,
    compared: Compared,
) -> Option<Statistics<'p>> {
    let layout = time.layout()?;
    let known = ColumnStatistics::of(planner, time.id)?;
    let mut row = StatisticsRow::new();
    let of_id = known.row();
    row.set(pg_sys::Anum_pg_statistic_stanullfrac, of_id.stanullfrac);
    row.set(pg_sys::Anum_pg_statistic_stawidth, size_of::<i64>() as i32);
    let mut ticks = None;
    if let Some((mut ids, _)) = known.slot(pg_sys::STATISTIC_KIND_HISTOGRAM, pg_sys::ATTSTATSSLOT_VALUES) {
        if compared == Compared::No {
            ids = ids.first().into_iter().chain(ids.last()).copied().collect();
        } else if is_in_last_bin(&layout, compared, &ids) {
            extend(planner, time.id, &mut ids);
        }
        let instants: Vec<i64> = ids.iter().filter_map(|&id| instant(&layout, id)).collect();
        if let [first, .., last] = instants[..] {
            ticks = Some((last - first) as f64 / layout.tick_length().0 as f64 + 1.0);
            if compared != Compared::No {
                row.add(pg_sys::STATISTIC_KIND_HISTOGRAM, LESS, &instants, &[]);
            }
        }
    }
    let both = pg_sys::ATTSTATSSLOT_VALUES | pg_sys::ATTSTATSSLOT_NUMBERS;
    let most_common = if compared == Compared::No { None } else { known.slot(pg_sys::STATISTIC_KIND_MCV, both) };
    if let Some((ids, shares)) = most_common {
        let (instants, shares) = merged(&layout, &ids, &shares);
        if !instants.is_empty() {
            row.add(pg_sys::STATISTIC_KIND_MCV, EQUAL_TIMES, &instants, &shares);
        }
    }
    // At most one for each tick.
    let distinct = f64::from(of_id.stadistinct);
    let count = if distinct < 0.0 { -distinct * rows } else { distinct };
    let distinct = ticks.filter(|&ticks| ticks < count).unwrap_or(distinct);
    row.set(pg_sys::Anum_pg_statistic_stadistinct, distinct as f32);
    Some((row.tuple(planner), known.data.acl_ok))
}

/// Statistics that say only how many different values there are.
pub fn distinct(planner: Planner<'_>, count: f64) -> Statistics<'_> {
    let mut row = StatisticsRow::new();
    row.set(pg_sys::Anum_pg_statistic_stanullfrac, 0.0f32);
    row.set(pg_sys::Anum_pg_statistic_stawidth, 0);
    row.set(pg_sys::Anum_pg_statistic_stadistinct, count as f32);
    (row.tuple(planner), true)
}

/// A sample of a column of type `bigint`: the values of its histogram, and its most common values.
pub fn sample<'p>(planner: Planner<'p>, column: Expr<'p>) -> Vec<i64> {
    let Some(known) = ColumnStatistics::of(planner, column) else { return Vec::new() };
    let kinds = [pg_sys::STATISTIC_KIND_HISTOGRAM, pg_sys::STATISTIC_KIND_MCV];
    kinds
        .into_iter()
        .filter_map(|kind| known.slot(kind, pg_sys::ATTSTATSSLOT_VALUES))
        .flat_map(|(values, _)| values)
        .collect()
}

/// An array of `timestamptz`, in PostgreSQL's memory.
pub fn array(instants: &[i64]) -> pg_sys::Datum {
    let mut datums: Vec<_> = instants.iter().map(|&instant| pg_sys::Datum::from(instant)).collect();
    let (count, length) = (datums.len() as i32, size_of::<i64>() as i32);
    let of_type = pg_sys::TIMESTAMPTZOID;
    // SAFETY: so many values of this type, which are passed as such, and copied.
    unsafe { pg_sys::construct_array(datums.as_mut_ptr(), count, of_type, length, true, b'd' as _) }.into()
}

/// `<` of `timestamptz`, as in PostgreSQL's `pg_operator.dat`.
const LESS: u32 = 1322;

fn instant(layout: &Layout, id: i64) -> Option<i64> {
    layout.timestamp(id).ok().map(timestamptz::to_datum)
}

/// Whether what a time is compared with may be in the last bin of a histogram, or above: only then it matters where that ends.
fn is_in_last_bin(layout: &Layout, compared: Compared, histogram: &[i64]) -> bool {
    let [.., before, _] = histogram else { return false };
    instant(layout, *before).is_none_or(|before| compared > Compared::UpTo(before))
}

/// The times of the most common IDs, and which share of the rows has each.
fn merged(layout: &Layout, ids: &[i64], shares: &[f32]) -> (Vec<i64>, Vec<f32>) {
    let (mut instants, mut sums) = (Vec::<i64>::new(), Vec::<f32>::new());
    for (&id, &share) in ids.iter().zip(shares) {
        let Some(instant) = instant(layout, id) else { continue };
        match instants.iter().position(|&known| known == instant) {
            Some(at) => sums[at] += share,
            None => {
                instants.push(instant);
                sums.push(share);
            }
        }
    }
    (instants, sums)
}

/// Moves the end of a histogram to the highest ID that is in the table now. PostgreSQL reads that from an index for an estimate of how many IDs
/// are above the end, and that estimate tells it.
fn extend<'p>(planner: Planner<'p>, id: Expr<'p>, histogram: &mut [i64]) {
    let bins = histogram.len() as f64 - 1.0;
    let [.., before, last] = histogram else { return };
    let sides = list(&[id.without_labels().copy(), planner.id(*last)]);
    let (operator, none) = (ABOVE.operator().into(), pg_sys::InvalidOid);
    // SAFETY: an operator that compares two of these: an ID is stored as a `bigint`.
    let share = unsafe { pg_sys::restriction_selectivity(planner.as_ptr(), operator, sides.as_ptr(), none, 0) };
    // Of the last bin. PostgreSQL takes a very small share for any that is smaller.
    let above = share * bins;
    if above > 0.02 && above < 0.999_999 {
        *last = before.saturating_add(((*last - *before) as f64 / (1.0 - above)) as i64);
    }
}

/// A row of `pg_statistic`.
struct StatisticsRow {
    values: [pg_sys::Datum; pg_sys::Natts_pg_statistic as usize],
    nulls: [bool; pg_sys::Natts_pg_statistic as usize],
    kinds: u32,
}

impl StatisticsRow {
    fn new() -> Self {
        let mut row = Self {
            values: [pg_sys::Datum::from(0); pg_sys::Natts_pg_statistic as usize],
            nulls: [false; pg_sys::Natts_pg_statistic as usize],
            kinds: 0,
        };
        for kind in 0..pg_sys::STATISTIC_NUM_SLOTS {
            row.nulls[(pg_sys::Anum_pg_statistic_stanumbers1 + kind) as usize - 1] = true;
            row.nulls[(pg_sys::Anum_pg_statistic_stavalues1 + kind) as usize - 1] = true;
        }
        row
    }

    fn set(&mut self, column: u32, value: impl IntoDatum) {
        let datum = value.into_datum();
        self.nulls[column as usize - 1] = datum.is_none();
        self.values[column as usize - 1] = datum.unwrap_or(pg_sys::Datum::from(0));
    }

    /// Adds one kind of statistics.
    fn add(&mut self, kind: u32, operator: u32, values: &[i64], numbers: &[f32]) {
        let at = self.kinds;
        self.kinds += 1;
        self.set(pg_sys::Anum_pg_statistic_stakind1 + at, kind as i16);
        self.set(pg_sys::Anum_pg_statistic_staop1 + at, pg_sys::Oid::from(operator));
        self.set(pg_sys::Anum_pg_statistic_stavalues1 + at, array(values));
        if !numbers.is_empty() {
            self.set(pg_sys::Anum_pg_statistic_stanumbers1 + at, numbers.to_vec());
        }
    }

    fn tuple<'p>(mut self, _: Planner<'p>) -> Option<At<'p, pg_sys::HeapTupleData>> {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        // SAFETY: a new row of the catalog, with values of all of its columns.
        unsafe {
            let relation = pg_sys::table_open(pg_sys::StatisticRelationId, lock);
            let tuple = pg_sys::heap_form_tuple((*relation).rd_att, self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
            pg_sys::table_close(relation, lock);
            At::new(tuple)
        }
    }
}
