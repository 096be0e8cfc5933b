//! The form of a sequence's page. PostgreSQL makes such a page in one form only: one line pointer, behind it free space, then the one tuple,
//! then the special space with a number. So nothing that is read from the page says where to look next: all of it is compared with that
//! form, and the tuple lies where it always does. A page of any other form is damaged.

//! That one tuple is never updated or locked, so two fields of its header mean nothing: the command that made it, and
//! the place of its next version. Both are written to the log and read back with the rest, `setval` and `nextval` leave
//! them alone, and no SQL can set them. There a sequence can *keep* a number of ours: what restores a dump replaces the
//! value and not that, and what copies the file has both. ALTER SEQUENCE, where it writes a new file, clears it.

use pgrx::pg_sys::{self, HeapTupleFields, HeapTupleHeaderData, ItemIdData, ItemPointerData, PageHeaderData};
use std::mem::offset_of;

/// The bytes of a page.
pub type Bytes = [u8; SIZE];
/// The length of a page.
const SIZE: usize = pg_sys::BLCKSZ as usize;

/// The number at the start of the special space: `SEQ_MAGIC` in PostgreSQL's `commands/sequence.c`.
const MAGIC: u32 = 0x1717;
/// Where the special space begins.
const SPECIAL: usize = SIZE - aligned(size_of::<u32>());
/// Where the line pointers end, and the free space begins.
const LOWER: usize = offset_of!(PageHeaderData, pd_linp) + size_of::<ItemIdData>();
/// The length of the tuple's header, and so where its data begins.
const HEADER: usize = aligned(offset_of!(HeapTupleHeaderData, t_bits));
/// The length of the tuple: no byte follows `is_called`.
const LENGTH: usize = HEADER + offset_of!(SequenceTuple, is_called) + size_of::<bool>();
/// Where the free space ends, and the tuple begins.
pub const UPPER: usize = SPECIAL - aligned(LENGTH);
/// Where the tuple's data begins.
const DATA: usize = UPPER + HEADER;
/// Where the tuple's header has room for a number that is kept, and behind it, for a check of that.
const KEPT: usize = offset_of!(HeapTupleFields, t_field3);
const CHECK: usize = KEPT + size_of::<i64>();
// The two fields are neighbours. Their last two bytes are the number of a line pointer.
const _: () = assert!(KEPT + size_of::<pg_sys::CommandId>() == offset_of!(HeapTupleHeaderData, t_ctid));
const _: () =
    assert!(CHECK + size_of::<u16>() == offset_of!(HeapTupleHeaderData, t_ctid) + size_of::<ItemPointerData>());
/// How many columns it has.
const COLUMNS: u16 = 3;

/// PostgreSQL's `MAXALIGN`.
const fn aligned(length: usize) -> usize {
    length.next_multiple_of(pg_sys::MAXIMUM_ALIGNOF as usize)
}

/// The line pointer: 15 bits of the tuple's offset, 2 of its state, 15 of its length, in the order in which C lays out bit-fields.
const fn line_pointer() -> u32 {
    let (offset, state, length) = (UPPER as u32, pg_sys::LP_NORMAL, LENGTH as u32);
    if cfg!(target_endian = "big") { offset << 17 | state << 15 | length } else { offset | state << 15 | length << 17 }
}

/// The tuple of a sequence, with the names of `FormData_pg_sequence_data` in PostgreSQL's `commands/sequence.h`. What
/// the fields mean in each of our sequences, [`crate::record`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SequenceTuple {
    /// The value. `setval`, and so a dump that is restored, sets it.
    pub last_value: i64,
    /// Set to 0 by `setval`.
    pub log_cnt: i64,
    /// Set by `setval`, too.
    pub is_called: bool,
}

/// What a sequence holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    pub tuple: SequenceTuple,
    /// The number that it keeps, whatever its value is.
    pub kept: Option<i64>,
}

/// What stands behind a number that is kept. Not what PostgreSQL writes there, which is 1 behind a 0; and below the
/// highest numbers, which have a meaning for it.
const fn check(number: i64) -> u16 {
    let folded = number ^ number >> 32;
    (folded ^ folded >> 16 ^ 0x5345) as u16 & 0x7fff
}

/// What a page holds before its free space, and behind it.
pub struct Parts {
    pub before: [u8; LOWER],
    pub behind: [u8; SIZE - UPPER],
}

impl Parts {
    /// To be filled.
    pub const fn new() -> Self {
        Self { before: [0; LOWER], behind: [0; SIZE - UPPER] }
    }

    /// Those of a page.
    pub fn of(page: &Bytes) -> Self {
        Self { before: at(page, 0), behind: at(page, UPPER) }
    }

    /// What the sequence holds; `None` where the page is damaged.
    pub fn content(&self) -> Option<Content> {
        let number = i64::from_ne_bytes(at(&self.behind, KEPT));
        let is_kept = u16::from_ne_bytes(at(&self.behind, CHECK)) == check(number);
        self.tuple().map(|tuple| Content { tuple, kept: is_kept.then_some(number) })
    }

    /// The tuple; `None` where the page is damaged. PostgreSQL takes one that is filled with zeros for a new page, and reads it.
    pub fn tuple(&self) -> Option<SequenceTuple> {
        let header = |field: usize| usize::from(u16::from_ne_bytes(at(&self.before, field)));
        let of_tuple = |field: usize| u16::from_ne_bytes(at(&self.behind, field));
        let value = |field: usize| i64::from_ne_bytes(at(&self.behind, HEADER + field));
        let is_called = self.behind[HEADER + offset_of!(SequenceTuple, is_called)];
        let is_intact = header(offset_of!(PageHeaderData, pd_flags)) & !(pg_sys::PD_VALID_FLAG_BITS as usize) == 0
            && header(offset_of!(PageHeaderData, pd_lower)) == LOWER
            && header(offset_of!(PageHeaderData, pd_upper)) == UPPER
            && header(offset_of!(PageHeaderData, pd_special)) == SPECIAL
            && header(offset_of!(PageHeaderData, pd_pagesize_version))
                == SIZE | pg_sys::PG_PAGE_LAYOUT_VERSION as usize
            && u32::from_ne_bytes(at(&self.before, offset_of!(PageHeaderData, pd_linp))) == line_pointer()
            && of_tuple(offset_of!(HeapTupleHeaderData, t_infomask2)) & pg_sys::HEAP_NATTS_MASK as u16 == COLUMNS
            && of_tuple(offset_of!(HeapTupleHeaderData, t_infomask)) & pg_sys::HEAP_HASNULL as u16 == 0
            && usize::from(self.behind[offset_of!(HeapTupleHeaderData, t_hoff)]) == HEADER
            && is_called <= 1
            && u32::from_ne_bytes(at(&self.behind, SPECIAL - UPPER)) == MAGIC;
        is_intact.then(|| SequenceTuple {
            last_value: value(offset_of!(SequenceTuple, last_value)),
            log_cnt: value(offset_of!(SequenceTuple, log_cnt)),
            is_called: is_called == 1,
        })
    }
}

/// Replaces the tuple of a page that is not damaged, and nothing else.
pub fn set_tuple(page: &mut Bytes, new: SequenceTuple) {
    let mut put = |field: usize, bytes: &[u8]| page[DATA + field..][..bytes.len()].copy_from_slice(bytes);
    put(offset_of!(SequenceTuple, last_value), &new.last_value.to_ne_bytes());
    put(offset_of!(SequenceTuple, log_cnt), &new.log_cnt.to_ne_bytes());
    put(offset_of!(SequenceTuple, is_called), &[new.is_called.into()]);
}

/// Has a page that is not damaged keep a number.
pub fn keep(page: &mut Bytes, number: i64) {
    let header = &mut page[UPPER..DATA];
    header[KEPT..CHECK].copy_from_slice(&number.to_ne_bytes());
    header[CHECK..][..size_of::<u16>()].copy_from_slice(&check(number).to_ne_bytes());
}

/// So many bytes from here on. All places are constants of this file.
fn at<const COUNT: usize>(bytes: &[u8], place: usize) -> [u8; COUNT] {
    std::array::from_fn(|index| bytes[place + index])
}
