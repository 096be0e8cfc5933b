//! The statistics of a time, from those of its ID: PostgreSQL has none of an expression.

use super::derived::Derived;
use super::functions::IdTime;
use super::nodes::{At, Expr};
use super::operators::{ABOVE, BELOW, EQUAL, EQUAL_TIMES};
use super::state::{Index, Planner};
use crate::postgres::time::timestamptz;
use crate::postgres::{abort, catalog, foreign, value};
use pg_sys::VariableStatData;
use pgrx::array::RawArray;
use pgrx::prelude::*;
use snowflake_core::Layout;
use std::borrow::Cow;
use std::cell::Cell;
use std::mem::offset_of;
use std::ptr::NonNull;

/// What is known of an expression.
#[derive(Clone, Copy, Default)]
pub struct Statistics<'p> {
    /// A row of `pg_statistic`, if there is one.
    pub row: Option<At<'p, pg_sys::HeapTupleData>>,
    /// Whether the user may know what it tells.
    pub may_be_known: bool,
    /// How well the order of the ID that it is made of agrees with that of the table's rows, where that was looked at.
    pub correlation: Option<f64>,
}

/// How many kinds of statistics a row has room for.
const KINDS: usize = pg_sys::STATISTIC_NUM_SLOTS as usize;

/// What PostgreSQL aligns whatever it is to, in bytes.
const ALIGNMENT: usize = pg_sys::MAXIMUM_ALIGNOF as usize;

/// What the catalog knows of a column.
pub struct ColumnStatistics<'p> {
    tuple: At<'p, pg_sys::HeapTupleData>,
    data: VariableStatData,
    /// The share of NULLs, how many different values there are, and which kinds of statistics follow, as the catalog has them.
    nulls: f32,
    distinct: f32,
    kinds: [i16; KINDS],
}

impl<'p> ColumnStatistics<'p> {
    /// What it knows of an ID.
    fn of(planner: Planner<'p>, id: Expr<'p>) -> Option<Self> {
        let mut data = VariableStatData::default();
        let id = id.without_labels();
        // SAFETY: this fills the data. Its row stays until it is freed.
        unsafe {
            pg_sys::examine_variable(planner.as_ptr(), id.as_ptr(), 0, &raw mut data);
            let tuple = At::new(data.statsTuple)?;
            // A row of this catalog begins with what its struct says.
            let header = (*data.statsTuple).t_data;
            let row: *const pg_sys::FormData_pg_statistic = header.cast::<u8>().add((*header).t_hoff.into()).cast();
            let kinds = [(*row).stakind1, (*row).stakind2, (*row).stakind3, (*row).stakind4, (*row).stakind5];
            Some(Self { tuple, data, nulls: (*row).stanullfrac, distinct: (*row).stadistinct, kinds })
        }
    }

    /// The values of one kind of statistics, where they are stored as `bigint` is: of bigint, of a domain over it, or of a type like that.
    fn values(&self, kind: u32) -> Option<&[i64]> {
        self.array(kind, pg_sys::Anum_pg_statistic_stavalues1, catalog::is_stored_as_bigint)
    }

    /// The numbers of one kind of statistics.
    fn numbers(&self, kind: u32) -> Option<&[f32]> {
        self.array(kind, pg_sys::Anum_pg_statistic_stanumbers1, |of_type| of_type == pg_sys::FLOAT4OID)
    }

    /// How well the order of its values agrees with that of the table's rows: from -1 to 1.
    fn correlation(&self) -> Option<f64> {
        self.numbers(pg_sys::STATISTIC_KIND_CORRELATION)?.first().copied().map(f64::from)
    }

    /// What the row has of one kind of statistics, in one of the columns that follow `first`; `None` where it has none, or elements that are not `T`.
    /// Nothing is copied, unlike by PostgreSQL's `get_attstatsslot()`, which takes four times as long.
    fn array<T>(&self, kind: u32, first: u32, is_t: impl Fn(pg_sys::Oid) -> bool) -> Option<&[T]> {
        let slot = self.kinds.iter().position(|&one| u32::try_from(one) == Ok(kind))?;
        let (cache, mut is_null) = (pg_sys::SysCacheIdentifier::STATRELATTINH as _, true);
        let column = first as pg_sys::AttrNumber + slot as pg_sys::AttrNumber;
        // SAFETY: a row of statistics, which stays as long as this. Its arrays have one dimension and no NULLs, of which the elements follow
        // each other, as far as their type is the one that was asked for.
        unsafe {
            let array = pg_sys::SysCacheGetAttr(cache, self.tuple.as_ptr(), column, &raw mut is_null);
            if is_null {
                return None;
            }
            let array = NonNull::new(pg_sys::pg_detoast_datum(array.cast_mut_ptr()).cast::<pg_sys::ArrayType>())?;
            let array_type = array.as_ref();
            let is_plain = array_type.ndim == 1 && array_type.dataoffset == 0 && is_t(array_type.elemtype);
            is_plain.then(|| RawArray::from_ptr(array).data::<T>().as_ref())
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
/// As PostgreSQL's `btcostestimate()` reckons. With the statistics of the time, if they were asked for.
pub fn correlation<'p>(
    planner: Planner<'p>,
    index: Index<'p>,
    time: &IdTime<'p>,
    known: Option<Statistics<'p>>,
) -> f64 {
    let look_up = || ColumnStatistics::of(planner, time.id).and_then(|known| known.correlation());
    let correlation = known.and_then(|known| known.correlation).or_else(look_up).unwrap_or(0.0);
    let correlation = if index.is_falling(0) == Some(true) { -correlation } else { correlation };
    if index.key_count() > 1 { correlation * 0.75 } else { correlation }
}

/// The values that a query compares a time with. Making statistics takes as long as the rest of the planning of a short query, so those
/// that nobody looks at are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compared {
    /// With nothing.
    No,
    /// With nothing, but looked at for NULL.
    ForNull,
    /// With values that it must be equal to, in an equality or a list: how they are spread does not matter.
    Equal,
    /// With constants: `timestamptz` up to this one.
    UpTo(i64),
    /// With what is known only when the query runs, or with other tables.
    WithAny,
}

/// The statistics of a time, or of what is made of it, as a row of `pg_statistic`; `None` where the catalog has none of the ID.
pub fn statistics<'p>(
    planner: Planner<'p>,
    time: &IdTime<'p>,
    derived: Option<&Derived<'p>>,
    rows: f64,
    compared: Compared,
) -> Option<Statistics<'p>> {
    let layout = time.layout()?;
    let known = ColumnStatistics::of(planner, time.id)?;
    let values = Values::of(derived.map_or(pg_sys::TIMESTAMPTZOID, |derived| derived.expression.type_of()))?;
    let arguments = derived.map(|derived| derived.about_arguments(planner));
    let value = |id| {
        let instant = instant(&layout, id)?;
        derived.map_or(Some(instant), |derived| derived.about(instant, arguments.as_ref()?.as_deref()?))
    };
    let mut row = StatisticsRow::default();
    row.fixed.stanullfrac = known.nulls;
    row.fixed.stawidth = size_of::<i64>() as i32;
    let (mut ticks, mut are_few) = (None, false);
    if let Some(ids) = known.values(pg_sys::STATISTIC_KIND_HISTOGRAM) {
        let mut ids = Cow::Borrowed(ids);
        if compared <= Compared::Equal {
            ids = ids.first().into_iter().chain(ids.last()).copied().collect();
        } else if is_in_last_bin(&layout, compared, &ids) {
            extend(planner, &known, ids.to_mut());
        }
        let ids = of_layout(&layout, &ids);
        let ends = ids.first().zip(ids.last()).filter(|_| ids.len() > 1);
        if let Some((first, last)) =
            ends.and_then(|(&first, &last)| instant(&layout, first).zip(instant(&layout, last)))
        {
            let grain =
                arguments.as_ref().zip(derived).and_then(|(known, derived)| Some(derived.grain(known.as_deref()?)));
            let grain = grain.unwrap_or(1).max(layout.tick_length().0);
            ticks = Some((last - first) as f64 / grain as f64 + 1.0);
            if compared > Compared::Equal {
                let mut all: Vec<i64> = match derived {
                    // Each has one, and nothing is asked for each.
                    None => ids.iter().map(|&id| instant(&layout, id).unwrap_or_default()).collect(),
                    Some(_) => ids.iter().filter_map(|&id| value(id)).collect(),
                };
                // A time rises with its ID; what is made of it may not.
                let few = derived.and_then(|_| {
                    all.sort_unstable();
                    shares_of_few(&all)
                });
                if let Some((few, shares)) = few {
                    ticks = Some(few.len() as f64);
                    row.add(pg_sys::STATISTIC_KIND_MCV, values.equal, &values, &few, &shares);
                    are_few = true;
                } else if all.len() > 1 {
                    row.add(pg_sys::STATISTIC_KIND_HISTOGRAM, values.less, &values, &all, &[]);
                }
            }
        }
    }
    if compared >= Compared::Equal
        && !are_few
        && let Some(ids) = known.values(pg_sys::STATISTIC_KIND_MCV)
        && let Some(shares) = known.numbers(pg_sys::STATISTIC_KIND_MCV)
    {
        let (all, shares) = merged(value, ids, shares);
        if !all.is_empty() {
            row.add(pg_sys::STATISTIC_KIND_MCV, values.equal, &values, &all, &shares);
        }
    }
    // At most one for each tick.
    let distinct = f64::from(known.distinct);
    let count = if distinct < 0.0 { -distinct * rows } else { distinct };
    let distinct = ticks.filter(|&ticks| ticks < count).unwrap_or(distinct);
    row.fixed.stadistinct = distinct as f32;
    let (may_be_known, correlation) = (known.data.acl_ok, known.correlation());
    Some(Statistics { row: row.tuple(planner), may_be_known, correlation })
}

/// Statistics that say only how many different values there are.
pub fn distinct(planner: Planner<'_>, count: f64) -> Statistics<'_> {
    let mut row = StatisticsRow::default();
    row.fixed.stadistinct = count as f32;
    Statistics { row: row.tuple(planner), may_be_known: true, correlation: None }
}

/// A sample of a column of type `bigint`: the values of its histogram, and its most common values.
pub fn sample<'p>(planner: Planner<'p>, column: Expr<'p>) -> Vec<i64> {
    let Some(known) = ColumnStatistics::of(planner, column) else { return Vec::new() };
    let values = |kind| known.values(kind).unwrap_or_default();
    [values(pg_sys::STATISTIC_KIND_HISTOGRAM), values(pg_sys::STATISTIC_KIND_MCV)].concat()
}

/// The first and the last time of a sample of IDs.
pub fn ends<'p>(planner: Planner<'p>, id: Expr<'p>, layout: &Layout) -> Option<(i64, i64)> {
    let known = ColumnStatistics::of(planner, id)?;
    let values = |kind| known.values(kind).unwrap_or_default();
    let histogram = of_layout(layout, values(pg_sys::STATISTIC_KIND_HISTOGRAM));
    let common = values(pg_sys::STATISTIC_KIND_MCV);
    let ids = histogram.first().into_iter().chain(histogram.last()).chain(common);
    let times = ids.filter_map(|&id| instant(layout, id));
    times.fold(None, |ends, time| {
        let (first, last) = ends.unwrap_or((time, time));
        Some((time.min(first), time.max(last)))
    })
}

/// A type of values that there are statistics of, with its operators `<` and `=` as in PostgreSQL's `pg_operator.dat`.
struct Values {
    of_type: pg_sys::Oid,
    less: u32,
    equal: u32,
}

impl Values {
    const fn of(of_type: pg_sys::Oid) -> Option<Self> {
        let (less, equal) = match of_type {
            pg_sys::TIMESTAMPTZOID => (1322, EQUAL_TIMES),
            pg_sys::TIMESTAMPOID => (2062, 2060),
            pg_sys::DATEOID => (1095, 1093),
            pg_sys::INT4OID => (97, 96),
            pg_sys::FLOAT8OID => (672, 670),
            pg_sys::NUMERICOID => (1754, 1752),
            pg_sys::INTERVALOID => (1332, 1330),
            _ => return None,
        };
        Some(Self { of_type, less, equal })
    }

    /// One of them, in the units of [`snowflake_core::inverse`].
    fn datum(&self, value: i64) -> Option<pg_sys::Datum> {
        let number = value as f64 / 1e6;
        match self.of_type {
            pg_sys::DATEOID | pg_sys::INT4OID => i32::try_from(value).ok()?.into_datum(),
            pg_sys::FLOAT8OID => number.into_datum(),
            pg_sys::NUMERICOID => AnyNumeric::try_from(number).ok()?.into_datum(),
            pg_sys::INTERVALOID => pgrx::datum::Interval::new(0, 0, value).ok()?.into_datum(),
            _ => Some(pg_sys::Datum::from(value)),
        }
    }

    fn array(&self, values: &[i64]) -> pg_sys::Datum {
        let values = match self.of_type {
            // Of most queries by time, a hundred.
            pg_sys::TIMESTAMPTZOID => values.iter().map(|&value| pg_sys::Datum::from(value)).collect(),
            _ => values.iter().filter_map(|&value| self.datum(value)).collect(),
        };
        value::array_of(self.of_type, values)
    }
}

fn instant(layout: &Layout, id: i64) -> Option<i64> {
    layout.timestamp(id).ok().map(timestamptz::to_datum)
}

/// Those of a histogram that are IDs: it is in order, so they follow each other.
fn of_layout<'i>(layout: &Layout, histogram: &'i [i64]) -> &'i [i64] {
    let first = histogram.partition_point(|&id| id < 0);
    let after = histogram.partition_point(|&id| id <= layout.max_id());
    histogram.get(first..after).unwrap_or_default()
}

/// Whether what a time is compared with may be in the last bin of a histogram, or above: only then it matters where that ends.
fn is_in_last_bin(layout: &Layout, compared: Compared, histogram: &[i64]) -> bool {
    let [.., before, _] = histogram else { return false };
    instant(layout, *before).is_none_or(|before| compared > Compared::UpTo(before))
}

/// The values of a sample, which is in order, with the share of each; `None` where most have no more than a few.
fn shares_of_few(sample: &[i64]) -> Option<(Vec<i64>, Vec<f32>)> {
    let most = sample.len() / 4;
    let runs: Vec<(i64, usize)> = sample.chunk_by(|one, other| one == other).map(|run| (run[0], run.len())).collect();
    // Values that are not in the sample have what is left.
    let share = |&(_, count): &(i64, usize)| count as f32 / (sample.len() + 1) as f32;
    (1..=most)
        .contains(&runs.len())
        .then(|| (runs.iter().map(|&(value, _)| value).collect(), runs.iter().map(share).collect()))
}

/// What is made of the most common IDs, and which share of the rows has each.
fn merged(value: impl Fn(i64) -> Option<i64>, ids: &[i64], shares: &[f32]) -> (Vec<i64>, Vec<f32>) {
    let (mut instants, mut sums) = (Vec::<i64>::new(), Vec::<f32>::new());
    for (&id, &share) in ids.iter().zip(shares) {
        let Some(instant) = value(id) else { continue };
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
/// are above the end, and that estimate tells it. As it copies the whole histogram that it is given, it is given the last values alone.
fn extend<'p>(planner: Planner<'p>, known: &ColumnStatistics<'p>, histogram: &mut [i64]) {
    const IDS: Values = Values { of_type: pg_sys::INT8OID, less: BELOW, equal: EQUAL };
    let [.., before, last] = histogram else { return };
    let end = [before.saturating_sub(1), *before, *last];
    let mut row = StatisticsRow::default();
    row.add(pg_sys::STATISTIC_KIND_HISTOGRAM, IDS.less, &IDS, &end, &[]);
    let Some(row) = row.tuple(planner) else { return };
    let mut data = VariableStatData { statsTuple: row.as_ptr(), vartype: IDS.of_type, ..known.data };
    let mut above = pg_sys::FmgrInfo::default();
    // SAFETY: an operator that compares two of these, and its function: an ID is stored as a `bigint`. The row is of the memory of the query.
    let share = unsafe {
        pg_sys::fmgr_info(ABOVE.function().into(), &raw mut above);
        let (root, data, above) = (planner.as_ptr(), &raw mut data, &raw mut above);
        let (operator, none, last) = (ABOVE.operator().into(), pg_sys::InvalidOid, pg_sys::Datum::from(*last));
        pg_sys::ineq_histogram_selectivity(root, data, operator, above, true, false, none, last, IDS.of_type)
    };
    // Of the last bin. PostgreSQL takes a very small share for any that is smaller.
    let above = share * (end.len() - 1) as f64;
    if above > 0.02 && above < 0.999_999 {
        *last = before.saturating_add(((*last - *before) as f64 / (1.0 - above)) as i64);
    }
}

/// A row of `pg_statistic`.
#[derive(Default)]
struct StatisticsRow {
    /// The columns that every row has.
    fixed: pg_sys::FormData_pg_statistic,
    /// The others: first the numbers of each kind of statistics, then the values of each.
    arrays: [Option<pg_sys::Datum>; 2 * KINDS],
    kinds: usize,
}

impl StatisticsRow {
    /// Adds one kind of statistics, of at most two.
    fn add(&mut self, kind: u32, operator: u32, of_type: &Values, values: &[i64], numbers: &[f32]) {
        let (kind, operator, fixed) = (kind as i16, pg_sys::Oid::from(operator), &mut self.fixed);
        match self.kinds {
            0 => (fixed.stakind1, fixed.staop1) = (kind, operator),
            _ => (fixed.stakind2, fixed.staop2) = (kind, operator),
        }
        self.arrays[self.kinds] = if numbers.is_empty() { None } else { numbers.to_vec().into_datum() };
        self.arrays[KINDS + self.kinds] = Some(of_type.array(values));
        self.kinds += 1;
    }

    /// The row as PostgreSQL's `heap_form_tuple()` makes it, which takes ten times as long.
    fn tuple<'p>(self, _: Planner<'p>) -> Option<At<'p, pg_sys::HeapTupleData>> {
        const COLUMNS: usize = pg_sys::Natts_pg_statistic as usize;
        const FIXED_COLUMNS: usize = COLUMNS - 2 * KINDS;
        // Where the header has the bits, and where the columns begin.
        const BITS: usize = offset_of!(pg_sys::HeapTupleHeaderData, t_bits);
        const START: usize = (BITS + COLUMNS.div_ceil(8)).next_multiple_of(ALIGNMENT);
        let mut length = START + size_of::<pg_sys::FormData_pg_statistic>();
        let mut present: u32 = (1 << FIXED_COLUMNS) - 1;
        // SAFETY: each is an array that was made here; the row is as long as what is written into it. It begins with the header, where a bit says for
        // each column that it is not NULL. Then come the columns: arrays of `float4` are aligned as that is, `anyarray`s as everything can be. Between
        // them are zeros.
        unsafe {
            let place = |(at, array): (usize, &Option<pg_sys::Datum>)| {
                let array = array.as_ref()?.cast_mut_ptr::<pg_sys::varlena>();
                let start = length.next_multiple_of(if at < KINDS { align_of::<f32>() } else { ALIGNMENT });
                let size = pgrx::varsize(array);
                length = start + size;
                present |= 1 << (FIXED_COLUMNS + at);
                Some((start, array, size))
            };
            let arrays: Vec<_> = self.arrays.iter().enumerate().filter_map(place).collect();
            let tuple = pg_sys::palloc0(size_of::<pg_sys::HeapTupleData>() + length).cast::<pg_sys::HeapTupleData>();
            let header = tuple.add(1).cast::<pg_sys::HeapTupleHeaderData>();
            (*tuple).t_len = length as u32;
            (*tuple).t_data = header;
            (*header).t_infomask2 = COLUMNS as u16;
            (*header).t_infomask = (pg_sys::HEAP_HASNULL | pg_sys::HEAP_HASVARWIDTH) as u16;
            (*header).t_hoff = START as u8;
            let row = header.cast::<u8>();
            row.add(BITS).cast::<[u8; 4]>().write(present.to_le_bytes());
            row.add(START).cast::<pg_sys::FormData_pg_statistic>().write(self.fixed);
            for (start, array, size) in arrays {
                row.add(start).copy_from_nonoverlapping(array.cast(), size);
            }
            At::new(tuple)
        }
    }
}
