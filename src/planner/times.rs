//! The statistics of a time, from those of its ID: PostgreSQL has none of an expression.

use super::functions::IdTime;
use super::nodes::{copy, list, without_labels};
use super::operators::{ABOVE, EQUAL_TIMES};
use crate::postgres::time::timestamptz;
use pg_sys::{IndexOptInfo, Node, PlannerInfo, VariableStatData};
use pgrx::prelude::*;
use snowflake_core::Layout;

/// A row of `pg_statistic`, which may be NULL, and whether the user may know what it tells.
pub type Statistics = (pg_sys::HeapTuple, bool);

/// What the catalog knows of a column.
pub struct Known {
    tuple: pg_sys::HeapTuple,
    data: VariableStatData,
}

impl Known {
    /// What it knows of an ID.
    ///
    /// # Safety
    /// The planner's state, and an expression of its query.
    unsafe fn of(root: *mut PlannerInfo, id: *mut Node) -> Option<Self> {
        let mut data = VariableStatData::default();
        // SAFETY: as above.
        unsafe { pg_sys::examine_variable(root, without_labels(id), 0, &raw mut data) };
        let tuple = data.statsTuple;
        (!tuple.is_null()).then(|| Self { tuple, data })
    }

    /// The values and numbers of one kind of statistics.
    fn slot(&self, kind: u32, wanted: u32) -> Option<(Vec<i64>, Vec<f32>)> {
        let mut slot = pg_sys::AttStatsSlot::default();
        // SAFETY: a tuple of statistics. The result is freed as PostgreSQL does.
        unsafe {
            if !pg_sys::get_attstatsslot(&raw mut slot, self.tuple, kind as i32, pg_sys::InvalidOid, wanted as i32) {
                return None;
            }
            // Of bigint, of a domain over it, or of a type that is stored so.
            let is_of_ids = pg_sys::IsBinaryCoercible(slot.valuetype, pg_sys::INT8OID);
            let count = if is_of_ids { slot.nvalues as usize } else { 0 };
            let values = (0..count).map(|at| (*slot.values.add(at)).value() as i64).collect();
            let numbers = (0..slot.nnumbers as usize).map(|at| *slot.numbers.add(at)).collect();
            pg_sys::free_attstatsslot(&raw mut slot);
            Some((values, numbers))
        }
    }

    /// The row of the catalog.
    fn row(&self) -> &pg_sys::FormData_pg_statistic {
        // SAFETY: a tuple of the catalog is what its struct says.
        unsafe {
            let header = (*self.tuple).t_data;
            &*header.cast::<u8>().add((*header).t_hoff.into()).cast()
        }
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        if let Some(free) = self.data.freefunc {
            // SAFETY: the function that frees this tuple.
            unsafe { free(self.tuple) };
        }
    }
}

/// A constant of type `timestamptz`.
pub fn constant(timestamptz: i64) -> *mut Node {
    let (value, length) = (pg_sys::Datum::from(timestamptz), size_of::<i64>() as i32);
    // SAFETY: a value that is passed as such.
    unsafe { pg_sys::makeConst(pg_sys::TIMESTAMPTZOID, -1, pg_sys::InvalidOid, length, value, false, true).cast() }
}

/// How well the order of an index that begins with an ID agrees with that of the table's rows: from -1 to 1, 0 where that is not known.
/// As PostgreSQL's `btcostestimate()` reckons.
///
/// # Safety
/// The planner's state, an index of a table of it, and the time of the ID.
pub unsafe fn correlation(root: *mut PlannerInfo, index: *mut IndexOptInfo, time: &IdTime) -> f64 {
    // SAFETY: as above; an index has a column.
    unsafe {
        let known = Known::of(root, time.id);
        let slot = known.and_then(|known| known.slot(pg_sys::STATISTIC_KIND_CORRELATION, pg_sys::ATTSTATSSLOT_NUMBERS));
        let correlation = slot.and_then(|(_, numbers)| numbers.first().copied()).map_or(0.0, f64::from);
        let correlation = if *(*index).reverse_sort { -correlation } else { correlation };
        if (*index).nkeycolumns > 1 { correlation * 0.75 } else { correlation }
    }
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
///
/// # Safety
/// The planner's state, and a time that was read from its query.
pub unsafe fn statistics(root: *mut PlannerInfo, time: &IdTime, rows: f64, compared: Compared) -> Option<Statistics> {
    let layout = time.layout()?;
    // SAFETY: as above.
    unsafe {
        let known = Known::of(root, time.id)?;
        let mut row = StatisticsRow::new();
        let of_id = known.row();
        row.set(pg_sys::Anum_pg_statistic_stanullfrac, of_id.stanullfrac);
        row.set(pg_sys::Anum_pg_statistic_stawidth, size_of::<i64>() as i32);
        let mut ticks = None;
        if let Some((mut ids, _)) = known.slot(pg_sys::STATISTIC_KIND_HISTOGRAM, pg_sys::ATTSTATSSLOT_VALUES) {
            if compared == Compared::No {
                ids = ids.first().into_iter().chain(ids.last()).copied().collect();
            } else if is_in_last_bin(&layout, compared, &ids) {
                extend(root, time.id, &mut ids);
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
        Some((row.tuple(), known.data.acl_ok))
    }
}

/// Statistics that say only how many different values there are.
pub fn distinct(count: f64) -> pg_sys::HeapTuple {
    let mut row = StatisticsRow::new();
    row.set(pg_sys::Anum_pg_statistic_stanullfrac, 0.0f32);
    row.set(pg_sys::Anum_pg_statistic_stawidth, 0);
    row.set(pg_sys::Anum_pg_statistic_stadistinct, count as f32);
    row.tuple()
}

/// A sample of a column of type `bigint`: the values of its histogram, and its most common values.
///
/// # Safety
/// The planner's state, and a column of its query.
pub unsafe fn sample(root: *mut PlannerInfo, column: *mut Node) -> Vec<i64> {
    // SAFETY: as above.
    let Some(known) = (unsafe { Known::of(root, column) }) else { return Vec::new() };
    let kinds = [pg_sys::STATISTIC_KIND_HISTOGRAM, pg_sys::STATISTIC_KIND_MCV];
    kinds
        .into_iter()
        .filter_map(|kind| known.slot(kind, pg_sys::ATTSTATSSLOT_VALUES))
        .flat_map(|(values, _)| values)
        .collect()
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
///
/// # Safety
/// The planner's state, an expression of its query, and its histogram.
unsafe fn extend(root: *mut PlannerInfo, id: *mut Node, histogram: &mut [i64]) {
    let bins = histogram.len() as f64 - 1.0;
    let [.., before, last] = histogram else { return };
    let (value, length) = (pg_sys::Datum::from(*last), size_of::<i64>() as i32);
    // SAFETY: as above; an operator that compares two of these.
    let share = unsafe {
        let end = pg_sys::makeConst(pg_sys::INT8OID, -1, pg_sys::InvalidOid, length, value, false, true);
        let sides = list::<Node>(&[copy(without_labels(id)), end.cast()]);
        pg_sys::restriction_selectivity(root, ABOVE.operator.into(), sides, pg_sys::InvalidOid, 0)
    };
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
        let mut datums: Vec<_> = values.iter().map(|&value| pg_sys::Datum::from(value)).collect();
        let length = size_of::<i64>() as i32;
        // SAFETY: so many values of this type, which are passed as such.
        let array = unsafe {
            pg_sys::construct_array(
                datums.as_mut_ptr(),
                datums.len() as i32,
                pg_sys::TIMESTAMPTZOID,
                length,
                true,
                b'd' as _,
            )
        };
        self.set(pg_sys::Anum_pg_statistic_stavalues1 + at, pg_sys::Datum::from(array));
        if !numbers.is_empty() {
            self.set(pg_sys::Anum_pg_statistic_stanumbers1 + at, numbers.to_vec());
        }
    }

    fn tuple(mut self) -> pg_sys::HeapTuple {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        // SAFETY: a tuple of the catalog, with all of its columns.
        unsafe {
            let relation = pg_sys::table_open(pg_sys::StatisticRelationId, lock);
            let tuple = pg_sys::heap_form_tuple((*relation).rd_att, self.values.as_mut_ptr(), self.nulls.as_mut_ptr());
            pg_sys::table_close(relation, lock);
            tuple
        }
    }
}
