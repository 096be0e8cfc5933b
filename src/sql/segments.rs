//! Segments: plain numbers by tag.

#![expect(clippy::type_complexity, reason = "pg_extern reads the columns from the signature")]

use super::leases;
use crate::errors::Error;
use crate::errors::segments::SegmentError;
use crate::errors::values::ValueError;
use crate::generator::segments;
use crate::postgres::encoding;
use crate::postgres::given::Given;
use crate::postgres::time::timestamptz;
use crate::registry_process::{host_name, listing};
use crate::server::believed;
use crate::shared;
use crate::shared::segments::{Kind, SeenTag, SlotState, TagPlace, bounds};
use pgrx::datum::Interval;
use pgrx::iter::TableIterator;
use pgrx::prelude::*;
use pgrx::{fcinfo, name, pg_sys, varlena};
use snowflake_core::lease::WorkerNumber;
use snowflake_core::segment::{Held, Holding, Plan, Range, State, Tag, TagRecord, TagStanding, Use};
use snowflake_core::{Micros, UnixMicros};
use snowflake_registry::listing::SegmentHolder;
use std::collections::BTreeMap;

export!(
    segment_next as snowflake_segment_next,
    segment_next_many as snowflake_segment_next_many,
    snowflake_segment_create_wrapper as snowflake_segment_create,
    snowflake_segment_raise_wrapper as snowflake_segment_raise,
    snowflake_segment_drop_wrapper as snowflake_segment_drop,
    snowflake_segments_wrapper as snowflake_segments,
);

/// A batch claims at most this many numbers at once.
const BLOCK: u64 = 1024;

/// The tag of the last call of one call site, and its place.
struct Cached {
    place: &'static TagPlace,
    length: usize,
    text: [u8; Tag::LONGEST],
}

/// The bytes of a text, where they are at hand: neither compressed nor stored elsewhere.
///
/// # Safety
/// It is a text.
#[inline(always)]
unsafe fn plain<'a>(text: *const pg_sys::varlena) -> Option<&'a [u8]> {
    // SAFETY: as above.
    unsafe {
        let is_plain = match varlena::varatt_is_1b(text) {
            true => !varlena::varatt_is_1b_e(text),
            false => varlena::varatt_is_4b_u(text),
        };
        is_plain.then(|| varlena::varlena_to_byte_slice(text))
    }
}

/// `snowflake_segment_next(tag)`. Has no guard of pgrx's: nothing here panics or raises an error, and [`next_slowly`], which may,
/// has one.
///
/// # Safety
/// To be called by PostgreSQL only, as a strict function.
unsafe extern "C-unwind" fn segment_next(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: `call` is valid, as it comes from PostgreSQL, and its argument is a text. What `fn_extra` points to was made by
    // `next_slowly`, and lives as long.
    unsafe {
        if let Some(cached) = (*(*call).flinfo).fn_extra.cast::<Cached>().as_ref()
            && let Some(text) = plain((*(*call).args.as_ptr()).value.cast_mut_ptr())
            && cached.text.get(..cached.length) == Some(text)
            && let Some(range) = cached.place.counter.claim(1)
        {
            return pg_sys::Datum::from(range.first as i64);
        }
        next_slowly(call)
    }
}

#[cold]
#[inline(never)]
#[pg_guard]
unsafe extern "C-unwind" fn next_slowly(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: as above.
    let given: Option<Given<'_>> = unsafe { fcinfo::pg_getarg(call, 0) };
    let Some(given) = given else {
        // SAFETY: as above.
        return unsafe { fcinfo::pg_return_null(call) };
    };
    let tag = tag_of(given);
    let (place, range) = segments::claim(&tag, 1).unwrap_or_else(|error| error.raise());
    let bytes = given.bytes();
    let mut cached = Cached { place, length: bytes.len(), text: [0; Tag::LONGEST] };
    cached.text[..bytes.len()].copy_from_slice(bytes);
    // SAFETY: as above; the context lives as long as `flinfo`.
    unsafe {
        let info = &mut *(*call).flinfo;
        if info.fn_extra.is_null() {
            info.fn_extra = pg_sys::MemoryContextAlloc(info.fn_mcxt, size_of::<Cached>());
        }
        info.fn_extra.cast::<Cached>().write(cached);
    }
    pg_sys::Datum::from(range.first as i64)
}

/// `snowflake_segment_next(tag, count)`: implements the protocol of value-per-call functions itself, as `snowflake_next(count)` does.
///
/// # Safety
/// To be called by PostgreSQL only.
unsafe extern "C-unwind" fn segment_next_many(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: `call` is valid, as it comes from PostgreSQL. The context, if there is one, was made by `next_block`.
    unsafe {
        let context = (*(*call).flinfo).fn_extra.cast::<pg_sys::FuncCallContext>();
        if !context.is_null()
            && let Some(number) = (*(*context).user_fctx.cast::<Numbers>()).claimed()
        {
            (*(*call).resultinfo.cast::<pg_sys::ReturnSetInfo>()).isDone = pg_sys::ExprDoneCond::ExprMultipleResult;
            return number.into();
        }
        next_block(call)
    }
}

/// Claims a block and returns its first number, or ends the set.
#[cold]
#[inline(never)]
#[pg_guard]
unsafe extern "C-unwind" fn next_block(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: as in `snowflake_next(count)`: the context and what is allocated in it live until the set ends.
    unsafe {
        if (*(*call).flinfo).fn_extra.is_null() {
            let given: Option<Given<'_>> = fcinfo::pg_getarg(call, 0);
            let tag = given.map(tag_of).unwrap_or_else(|| raise_bad_tag(""));
            let count: i32 = fcinfo::pg_getarg(call, 1).unwrap_or(0);
            let left = u64::try_from(count).unwrap_or_else(|_| Error::from(ValueError::NegativeCount(count)).raise());
            let context = pg_sys::init_MultiFuncCall(call);
            let numbers =
                pg_sys::MemoryContextAlloc((*context).multi_call_memory_ctx, size_of::<Numbers>()).cast::<Numbers>();
            numbers.write(Numbers::new(&tag, left));
            (*context).user_fctx = numbers.cast();
        }
        let context = (*(*call).flinfo).fn_extra.cast::<pg_sys::FuncCallContext>();
        let numbers = (*context).user_fctx.cast::<Numbers>();
        let results = (*call).resultinfo.cast::<pg_sys::ReturnSetInfo>();
        (*numbers).claim();
        if let Some(number) = (*numbers).claimed() {
            (*results).isDone = pg_sys::ExprDoneCond::ExprMultipleResult;
            return number.into();
        }
        pg_sys::end_MultiFuncCall(call, context);
        (*results).isDone = pg_sys::ExprDoneCond::ExprEndResult;
        fcinfo::pg_return_null(call)
    }
}

/// A batch, of which blocks are claimed as the query reads them. Nothing in it needs to be dropped.
struct Numbers {
    length: usize,
    tag: [u8; Tag::LONGEST],
    /// How many numbers are not yet claimed.
    left: u64,
    /// The numbers that are claimed and not yet returned.
    claimed: Range,
}

impl Numbers {
    fn new(tag: &Tag, left: u64) -> Self {
        let text = tag.as_str().as_bytes();
        let mut numbers = Self { length: text.len(), tag: [0; Tag::LONGEST], left, claimed: Range::default() };
        numbers.tag[..text.len()].copy_from_slice(text);
        numbers
    }

    /// The next number that is claimed already. Does not panic.
    #[inline(always)]
    fn claimed(&mut self) -> Option<i64> {
        let number = self.claimed.first;
        (number < self.claimed.end).then(|| {
            self.claimed.first += 1;
            number as i64
        })
    }

    /// Claims the next block, if numbers are left.
    fn claim(&mut self) {
        if self.left > 0 {
            let tag = str::from_utf8(&self.tag[..self.length]).ok().and_then(|tag| Tag::new(tag).ok());
            let tag = tag.unwrap_or_else(|| raise_bad_tag(""));
            (_, self.claimed) = segments::claim(&tag, self.left.min(BLOCK)).unwrap_or_else(|error| error.raise());
            self.left -= self.claimed.count();
        }
    }
}

/// The tag that a caller names.
fn tag_of(given: Given<'_>) -> Tag {
    let text = given.read();
    Tag::new(&text).unwrap_or_else(|_| raise_bad_tag(&text))
}

fn raise_bad_tag(text: &str) -> ! {
    Error::from(SegmentError::BadTag(text.to_owned())).raise()
}

fn raise_bad(detail: &'static str) -> ! {
    Error::from(SegmentError::BadPlan(detail)).raise()
}

/// A number that a tag can have.
fn number(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_else(|_| raise_bad(SegmentError::NUMBERS))
}

fn changed(function: &'static str, tag: &Tag, kind: Kind) -> Option<i64> {
    let next = segments::change(function, tag, kind).unwrap_or_else(|error| error.raise());
    shown(next)
}

/// `None` above the highest number there is.
fn shown(number: u64) -> Option<i64> {
    i64::try_from(number).ok()
}

#[pg_extern(sql = "")]
fn snowflake_segment_create(
    tag: Option<Given>,
    first: Option<i64>,
    last: Option<i64>,
    smallest_range: Option<i64>,
    largest_range: Option<i64>,
) -> Option<i64> {
    let tag = tag.map(tag_of).unwrap_or_else(|| raise_bad_tag(""));
    let (first, last) = (number(first.unwrap_or(-1)), number(last.unwrap_or(-1)));
    if last < first {
        raise_bad(SegmentError::NUMBERS);
    }
    let size =
        |size: i64| u64::try_from(size).ok().filter(|size| *size > 0).unwrap_or_else(|| raise_bad(SegmentError::SIZES));
    let (smallest, largest) = (smallest_range.map(size), largest_range.map(size));
    if smallest.zip(largest).is_some_and(|(smallest, largest)| smallest > largest) {
        raise_bad(SegmentError::SIZES);
    }
    let bounds = bounds(last - first + 1, smallest, largest);
    changed("snowflake_segment_create", &tag, Kind::Create(Plan { first, last, bounds }))
}

#[pg_extern(sql = "")]
fn snowflake_segment_raise(tag: Given, above: i64) -> Option<i64> {
    changed("snowflake_segment_raise", &tag_of(tag), Kind::Raise(number(above)))
}

#[pg_extern(sql = "")]
fn snowflake_segment_drop(tag: Given) -> Option<i64> {
    changed("snowflake_segment_drop", &tag_of(tag), Kind::Drop)
}

#[pg_extern(sql = "")]
fn snowflake_segments(
    all_servers: bool,
) -> TableIterator<
    'static,
    (
        name!(tag, String),
        name!(state, &'static str),
        name!(first, Option<i64>),
        name!(last, Option<i64>),
        name!(next_granted, Option<i64>),
        name!(worker_id, Option<i32>),
        name!(datacenter_id, Option<i32>),
        name!(host, Option<String>),
        name!(is_this_server, bool),
        name!(as_of, Option<i64>),
        name!(current_from, Option<i64>),
        name!(current_until, Option<i64>),
        name!(after_from, Option<i64>),
        name!(after_until, Option<i64>),
        name!(held, Option<i64>),
        name!(range_size, Option<i64>),
        name!(per_second, Option<f64>),
        name!(lasts, Option<Interval>),
    ),
> {
    let rows = rows(all_servers).unwrap_or_else(|error| error.raise());
    TableIterator::new(rows.into_iter().map(|(tag, segment, holder)| columns(&tag, segment, holder)))
}

/// A tag, as far as it is known.
#[derive(Clone, Copy)]
struct ShownTag {
    state: &'static str,
    record: Option<SeenTag>,
}

/// A server that holds numbers of a tag.
struct Holder {
    worker: Option<WorkerNumber>,
    host: String,
    is_this_server: bool,
    as_of: UnixMicros,
    held: Held,
    size: u64,
    used: Use,
}

type SegmentRow = (
    String,
    &'static str,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i32>,
    Option<i32>,
    Option<String>,
    bool,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<i64>,
    Option<f64>,
    Option<Interval>,
);

/// A row for each server that holds numbers of a tag, or one without a server. What this server holds is as of now, by shared memory.
fn rows(all_servers: bool) -> Result<Vec<(Tag, ShownTag, Option<Holder>)>, Error> {
    let listed = segments::list()?;
    // In a statement of its own: the lock is held to its end, and the clock may take it.
    let me = shared::transitions().lease.worker;
    let now = believed::now();
    let here = |state: &SlotState, held| Holder {
        worker: me,
        host: host_name(),
        is_this_server: true,
        as_of: now,
        held,
        size: state.size,
        used: Use { count: state.used.0, length: state.used.1 },
    };
    let mut own: BTreeMap<Tag, (SlotState, Held)> =
        listed.into_iter().map(|(tag, state, held)| (tag, (state, held))).collect();
    let mut rows = Vec::new();
    for segment in if all_servers { listing::segments()? } else { Vec::new() } {
        let before = rows.len();
        let mut shown = ShownTag { state: state_of(&segment.record), record: Some(SeenTag::of(&segment.record)) };
        if let Some((state, held)) = own.remove(&segment.tag) {
            let of_here = ShownTag { state: standing_of(state.standing), ..shown };
            rows.push((segment.tag.clone(), of_here, Some(here(&state, held))));
            shown = of_here;
        }
        let is_live = segment.record.state == State::Live;
        for SegmentHolder { worker, host, holding } in segment.holders {
            if is_live && me != Some(worker) {
                let Holding { granted_at: as_of, used, .. } = holding;
                let (held, size) = (holding.held(), holding.size());
                let holder = Holder { worker: Some(worker), host, is_this_server: false, as_of, held, size, used };
                rows.push((segment.tag.clone(), shown, Some(holder)));
            }
        }
        if rows.len() == before {
            rows.push((segment.tag, shown, None));
        }
    }
    let of_own = |(tag, (state, held)): (Tag, (SlotState, Held))| {
        let shown = ShownTag { state: standing_of(state.standing), record: state.record };
        (tag, shown, Some(here(&state, held)))
    };
    rows.extend(own.into_iter().map(of_own));
    rows.sort_by(|(one, ..), (other, ..)| one.cmp(other));
    Ok(rows)
}

const fn standing_of(standing: TagStanding) -> &'static str {
    match standing {
        TagStanding::Live => "live",
        TagStanding::UsedUp => "used up",
        TagStanding::Dropped => "dropped",
        TagStanding::Missing => "missing",
    }
}

const fn state_of(record: &TagRecord) -> &'static str {
    standing_of(match record.state {
        State::Dropped => TagStanding::Dropped,
        State::Forgotten => TagStanding::Missing,
        State::Live if record.left() == 0 => TagStanding::UsedUp,
        State::Live => TagStanding::Live,
    })
}

fn columns(tag: &Tag, ShownTag { state, record }: ShownTag, holder: Option<Holder>) -> SegmentRow {
    let holder = holder.as_ref();
    // Of a tag that the registry has forgotten, no more is known than what was granted.
    let known = record.filter(|_| state != standing_of(TagStanding::Missing));
    let last_of = |range: Range| shown(range.end - 1);
    let current = holder.map(|holder| holder.held.current).filter(|range| range.count() > 0);
    let after = holder.and_then(|holder| holder.held.after);
    let [worker_id, datacenter_id] = holder.and_then(|holder| holder.worker).map_or([None; 2], leases::numbers);
    let per_second = |used: Use| (used.length > Micros(0)).then(|| used.count as f64 * 1e6 / used.length.0 as f64);
    (
        encoding::shown(tag.as_str()),
        state,
        known.and_then(|record| shown(record.first)),
        known.and_then(|record| shown(record.last)),
        record.map(|record| record.next.min(TagRecord::HIGHEST)).and_then(shown),
        worker_id,
        datacenter_id,
        holder.map(|holder| encoding::shown(&holder.host)),
        holder.is_some_and(|holder| holder.is_this_server),
        holder.map(|holder| timestamptz::to_datum(holder.as_of)),
        current.and_then(|range| shown(range.first)),
        current.and_then(last_of),
        after.and_then(|range| shown(range.first)),
        after.and_then(last_of),
        holder.map(|holder| shown(holder.held.left()).unwrap_or(i64::MAX)),
        holder.map(|holder| shown(holder.size).unwrap_or(i64::MAX)),
        holder.and_then(|holder| per_second(holder.used)),
        holder.and_then(|holder| holder.used.lasts(holder.held.left())).map(|lasts| Interval::from_micros(lasts.0)),
    )
}
