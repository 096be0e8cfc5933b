//! Whole numbers in a column, read without SQL: by the access methods of the table and of its index, with no name, no plan, and
//! nobody's code. A query would run functions of the table's owner already when it is planned, and find the table by a name. What the
//! caller may see is for the caller of this to check.

use crate::postgres::abort;
use crate::postgres::catalog;
use crate::postgres::open_relation::OpenRelation;
use pgrx::htup::heap_getattr_raw;
use pgrx::prelude::*;
use std::ffi::CStr;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::ptr;

/// The operator family of PostgreSQL's integers, as in `pg_opfamily.dat`: indexes of it call none but PostgreSQL's own functions.
const INTEGER_OPS: u32 = 1976;

/// PostgreSQL's integer types, widest first, with the functions that compare a value with a `bigint`: at least, and at most.
const WIDTHS: [(pg_sys::Oid, u32, u32); 3] = [
    (pg_sys::INT8OID, pg_sys::F_INT8GE, pg_sys::F_INT8LE),
    (pg_sys::INT4OID, pg_sys::F_INT48GE, pg_sys::F_INT48LE),
    (pg_sys::INT2OID, pg_sys::F_INT28GE, pg_sys::F_INT28LE),
];

/// A column of whole numbers of a table that is open. Rows are those that are committed by now, and those of the own transaction.
pub struct IntegerColumn<'r> {
    table: &'r OpenRelation,
    number: i16,
    /// Which of [`WIDTHS`] its values are stored as.
    width: usize,
}

/// Which of the values is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Lowest,
    Highest,
}

impl<'r> IntegerColumn<'r> {
    /// The column with this name; `None` where there is none, where its values are not stored as those of an integer type, or where the
    /// relation itself stores no rows: a partitioned table, a foreign one, a view.
    pub fn named(table: &'r OpenRelation, name: &CStr) -> Option<Self> {
        Self::numbered(table, catalog::column_number(table.oid(), name)?)
    }

    /// The same, by its number.
    pub fn numbered(table: &'r OpenRelation, number: i16) -> Option<Self> {
        let has_rows = [pg_sys::RELKIND_RELATION, pg_sys::RELKIND_MATVIEW].contains(&table.kind());
        let of = catalog::column_type(table.oid(), number);
        let width = WIDTHS.iter().position(|&(integer, ..)| catalog::is_stored_as(of, integer))?;
        (number > 0 && has_rows).then_some(Self { table, number, width })
    }

    /// The lowest of these values that a row has.
    pub fn lowest(&self, among: RangeInclusive<i64>) -> Option<i64> {
        match self.index() {
            Some(index) => self.by_index(&index, End::Lowest, &among),
            None => self.by_rows(&among).map(|(lowest, _)| lowest),
        }
    }

    /// The highest of these values that a row has.
    pub fn highest(&self, among: RangeInclusive<i64>) -> Option<i64> {
        match self.index() {
            Some(index) => self.by_index(&index, End::Highest, &among),
            None => self.by_rows(&among).map(|(_, highest)| highest),
        }
    }

    /// Both.
    pub fn ends(&self, among: RangeInclusive<i64>) -> Option<(i64, i64)> {
        match self.index() {
            Some(index) => {
                let end = |end| self.by_index(&index, end, &among);
                end(End::Lowest).zip(end(End::Highest))
            }
            None => self.by_rows(&among),
        }
    }

    /// An index whose first column this is, with all rows in it. Also one that older snapshots must not use
    /// (`pg_index.indcheckxmin`), as a scan takes a new snapshot.
    fn index(&self) -> Option<OpenRelation> {
        // SAFETY: the table is open. The list is one of OIDs, or NULL. An index that is open has this row and these arrays.
        unsafe {
            let list = pg_sys::RelationGetIndexList(self.table.as_ptr());
            let length = list.as_ref().map_or(0, |list| list.length as usize);
            let indexes = (0..length).map(|place| (*(*list).elements.add(place)).oid_value);
            indexes.filter_map(|index| OpenRelation::open(index, pg_sys::AccessShareLock)).find(|index| {
                let relation = &*index.as_ptr();
                let row = &*relation.rd_index;
                (*relation.rd_rel).relam == pg_sys::BTREE_AM_OID
                    && row.indisvalid
                    && *row.indkey.values.as_ptr() == self.number
                    && (*relation.rd_opfamily).to_u32() == INTEGER_OPS
                    && pg_sys::heap_attisnull(
                        relation.rd_indextuple,
                        pg_sys::Anum_pg_index_indpred as i32,
                        ptr::null_mut(),
                    )
            })
        }
    }

    fn by_index(&self, index: &OpenRelation, end: End, among: &RangeInclusive<i64>) -> Option<i64> {
        let (_, at_least, at_most) = WIDTHS[self.width];
        // NULL is neither.
        let limits = [
            (pg_sys::BTGreaterEqualStrategyNumber, at_least, *among.start()),
            (pg_sys::BTLessEqualStrategyNumber, at_most, *among.end()),
        ];
        self.value(&Scan::by_index(self, index, limits).next(end)?)
    }

    fn by_rows(&self, among: &RangeInclusive<i64>) -> Option<(i64, i64)> {
        let mut found: Option<(i64, i64)> = None;
        self.each(|value| {
            if let Some(value) = value.filter(|value| among.contains(value)) {
                found = found.map(|(lowest, highest)| (lowest.min(value), highest.max(value))).or(Some((value, value)));
            }
        });
        found
    }

    /// How many rows have one of these values, and how many have none of them.
    pub fn count(&self, among: &RangeInclusive<i64>) -> (i64, i64) {
        let (mut inside, mut outside) = (0, 0);
        self.each(|value| if value.is_some_and(|value| among.contains(&value)) { inside += 1 } else { outside += 1 });
        (inside, outside)
    }

    /// Takes the value of each row.
    fn each(&self, mut take: impl FnMut(Option<i64>)) {
        let mut scan = Scan::of(self.table);
        while let Some(row) = scan.next(End::Lowest) {
            take(self.value(&row));
            pgrx::check_for_interrupts!();
        }
    }

    /// The value in a row of the table.
    fn value(&self, row: &TableRow<'_>) -> Option<i64> {
        match WIDTHS[self.width].0 {
            pg_sys::INT2OID => row.get::<i16>(self.number).map(i64::from),
            pg_sys::INT4OID => row.get::<i32>(self.number).map(i64::from),
            _ => row.get(self.number),
        }
    }
}

/// Where a sequence is.
pub struct SequencePosition {
    /// The last value; where there was none, the first.
    pub last: i64,
    /// Whether it was given out.
    pub is_called: bool,
}

/// Where a sequence is; `None` where there is no such sequence. It is stored as a table of one row.
pub fn position(sequence: pg_sys::Oid) -> Option<SequencePosition> {
    // The columns of each sequence, as in PostgreSQL's `sequence.h`.
    const LAST_VALUE: i16 = 1;
    const IS_CALLED: i16 = 3;
    let open =
        OpenRelation::open(sequence, pg_sys::AccessShareLock).filter(|open| open.kind() == pg_sys::RELKIND_SEQUENCE)?;
    let mut scan = Scan::of(&open);
    let row = scan.next(End::Lowest)?;
    Some(SequencePosition { last: row.get(LAST_VALUE)?, is_called: row.get(IS_CALLED)? })
}

/// Whether a table has a row that this transaction has inserted.
pub fn has_row_of(table: pg_sys::Oid, transaction: u32) -> bool {
    let Some(open) = OpenRelation::open(table, pg_sys::AccessShareLock) else { return false };
    if open.kind() != pg_sys::RELKIND_RELATION {
        return false;
    }
    let mut scan = Scan::of(&open);
    while let Some(row) = scan.next(End::Lowest) {
        if row.inserted_by() == transaction {
            return true;
        }
        pgrx::check_for_interrupts!();
    }
    false
}

/// The rows of a table that are committed by now, and those of the own transaction.
struct Scan<'r> {
    table: &'r OpenRelation,
    /// The order of its index; `None` where it has none.
    is_descending: Option<bool>,
    scan: pg_sys::SysScanDesc,
    snapshot: pg_sys::Snapshot,
}

impl<'r> Scan<'r> {
    /// All rows, in any order.
    fn of(table: &'r OpenRelation) -> Self {
        // SAFETY: the table is open for as long as the scan. A snapshot that is registered is kept until the end of the scan.
        unsafe {
            let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot());
            let scan =
                pg_sys::systable_beginscan(table.as_ptr(), pg_sys::InvalidOid, false, snapshot, 0, ptr::null_mut());
            Self { table, is_descending: None, scan, snapshot }
        }
    }

    /// Those whose column is within limits: each with the number of its operator in the operator family, and its function.
    fn by_index(column: &IntegerColumn<'r>, index: &'r OpenRelation, limits: [(u32, u32, i64); 2]) -> Self {
        let mut keys = [pg_sys::ScanKeyData::default(); 2];
        // SAFETY: both relations are open for as long as the scan. The functions are PostgreSQL's own, for the type of the column and a
        // bigint. An index has an option for each of its columns.
        unsafe {
            for (key, (strategy, function, value)) in keys.iter_mut().zip(limits) {
                pg_sys::ScanKeyEntryInitialize(
                    key,
                    0,
                    column.number,
                    strategy as pg_sys::StrategyNumber,
                    pg_sys::INT8OID,
                    pg_sys::InvalidOid,
                    function.into(),
                    value.into(),
                );
            }
            let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot());
            let scan = pg_sys::systable_beginscan_ordered(
                column.table.as_ptr(),
                index.as_ptr(),
                snapshot,
                keys.len() as i32,
                keys.as_mut_ptr(),
            );
            let is_descending =
                u32::from((*(*index.as_ptr()).rd_indoption).unsigned_abs()) & pg_sys::INDOPTION_DESC != 0;
            Self { table: column.table, is_descending: Some(is_descending), scan, snapshot }
        }
    }

    /// The next row; of an index, from this end.
    fn next(&mut self, end: End) -> Option<TableRow<'_>> {
        let direction = match self.is_descending {
            Some(is_descending) if (end == End::Lowest) == is_descending => {
                pg_sys::ScanDirection::BackwardScanDirection
            }
            _ => pg_sys::ScanDirection::ForwardScanDirection,
        };
        // SAFETY: the scan has not ended.
        let row = unsafe {
            match self.is_descending {
                Some(_) => pg_sys::systable_getnext_ordered(self.scan, direction),
                None => pg_sys::systable_getnext(self.scan),
            }
        };
        (!row.is_null()).then_some(TableRow { table: self.table, row })
    }
}

impl Drop for Scan<'_> {
    fn drop(&mut self) {
        if abort::is_under_way() {
            return;
        }
        // SAFETY: ends what was begun.
        unsafe {
            match self.is_descending {
                Some(_) => pg_sys::systable_endscan_ordered(self.scan),
                None => pg_sys::systable_endscan(self.scan),
            }
            pg_sys::UnregisterSnapshot(self.snapshot);
        }
    }
}

/// A row, until the next one is fetched.
struct TableRow<'s> {
    table: &'s OpenRelation,
    row: pg_sys::HeapTuple,
}

impl TableRow<'_> {
    /// The transaction that has inserted it, also where it is so old that it is frozen.
    fn inserted_by(&self) -> u32 {
        // SAFETY: a row of a table, not one that is being made.
        unsafe { (*(*self.row).t_data).t_choice.t_heap.t_xmin.into() }
    }

    /// The value of a column, which is stored as this type is; `None` for NULL.
    fn get<T: FromDatum>(&self, column: i16) -> Option<T> {
        let column = NonZeroUsize::new(column.unsigned_abs().into())?;
        // SAFETY: a row of the table, and one of its columns, of this type.
        unsafe { T::from_datum(heap_getattr_raw(self.row, column, (*self.table.as_ptr()).rd_att)?, false) }
    }
}
