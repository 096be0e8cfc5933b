//! Segments: plain numbers by tag.

use super::batch::{self, Arguments, BLOCK, Batch};
use super::leases;
use crate::errors::Error;
use crate::errors::segments::SegmentError;
use crate::generator::segments;
use crate::postgres::encoding;
use crate::postgres::given::Given;
use crate::postgres::time::timestamptz;
use crate::registry_process::{host_name, listing};
use crate::server::believed;
use crate::shared;
use crate::shared::segments::{Kind, ShownRecord, SlotState, TagPlace, bounds};
use pgrx::datum::Interval;
use pgrx::prelude::*;
use pgrx::{pg_sys, varlena};
use snowflake_core::lease::WorkerNumber;
use snowflake_core::segment::{Held, NewSegment, Range, State, Tag, TagRecord, TagStanding, Use};
use snowflake_core::{Micros, UnixMicros};
use snowflake_registry::listing::SegmentHolder;
use std::collections::BTreeMap;

export!(
    segment_next as snowflake_segment_next,
    batch::next::<Numbers> as snowflake_segment_next_many,
    snowflake_segment_create_wrapper as snowflake_segment_create,
    snowflake_segment_raise_wrapper as snowflake_segment_raise,
    snowflake_segment_drop_wrapper as snowflake_segment_drop,
    snowflake_segments_wrapper as snowflake_segments,
);

/// The tag of the last call of one call site, and its place.
struct Cached {
    place: &'static TagPlace,
    length: usize,
    text: [u8; Tag::LONGEST],
}

/// `snowflake_segment_next(tag)`. Has no guard of pgrx's: nothing here panics or raises an error, and [`next_slowly`], which may,
/// has one.
///
/// # Safety
/// To be called by PostgreSQL only, as a strict function.
unsafe extern "C-unwind" fn segment_next(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: `call` is valid, as it comes from PostgreSQL, and its argument is a text, as the function is strict. What `fn_extra` points
    // to was made by `next_slowly`, and lives as long.
    unsafe {
        let text = (*(*call).args.as_ptr()).value.cast_mut_ptr::<pg_sys::varlena>();
        // Neither compressed nor stored elsewhere: its bytes are at hand.
        let is_plain = match varlena::varatt_is_1b(text) {
            true => !varlena::varatt_is_1b_e(text),
            false => varlena::varatt_is_4b_u(text),
        };
        if is_plain
            && let Some(cached) = (*(*call).flinfo).fn_extra.cast::<Cached>().as_ref()
            && cached.text.get(..cached.length) == Some(varlena::varlena_to_byte_slice(text))
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
    // SAFETY: `segment_next` has the call from PostgreSQL; its argument is a text.
    let arguments = unsafe { Arguments::of(call) };
    // PostgreSQL calls a strict function without NULL.
    let Some(given) = arguments.get::<Given<'_>>(0) else { raise_bad_tag("") };
    let (place, range) = segments::claim(&tag_of(given), 1).unwrap_or_else(|error| error.raise());
    let bytes = given.bytes();
    let mut cached = Cached { place, length: bytes.len(), text: [0; Tag::LONGEST] };
    cached.text[..bytes.len()].copy_from_slice(bytes);
    // SAFETY: the call is valid. Nothing but this sets its `fn_extra`, and the context lives as long as `flinfo`.
    unsafe {
        let info = &mut *(*call).flinfo;
        if info.fn_extra.is_null() {
            info.fn_extra = pg_sys::MemoryContextAlloc(info.fn_mcxt, size_of::<Cached>());
        }
        info.fn_extra.cast::<Cached>().write(cached);
    }
    pg_sys::Datum::from(range.first as i64)
}

/// The batch of `snowflake_segment_next(tag, count)`.
struct Numbers {
    length: usize,
    tag: [u8; Tag::LONGEST],
    /// How many numbers are not yet claimed.
    left: u64,
    /// The numbers that are claimed and not yet returned.
    claimed: Range,
}

impl Batch for Numbers {
    fn asked_for(arguments: &Arguments) -> Self {
        let tag = arguments.get(0).map_or_else(|| raise_bad_tag(""), tag_of);
        let text = tag.as_str().as_bytes();
        let left = arguments.count(1);
        let mut numbers = Self { length: text.len(), tag: [0; Tag::LONGEST], left, claimed: Range::default() };
        numbers.tag[..text.len()].copy_from_slice(text);
        numbers
    }

    #[inline(always)]
    fn claimed(&mut self) -> Option<i64> {
        let number = self.claimed.first;
        (number < self.claimed.end).then(|| {
            self.claimed.first += 1;
            number as i64
        })
    }

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
    changed("snowflake_segment_create", &tag, Kind::Create(NewSegment { first, last, bounds }))
}

#[pg_extern(sql = "")]
fn snowflake_segment_raise(tag: Given, above: i64) -> Option<i64> {
    changed("snowflake_segment_raise", &tag_of(tag), Kind::Raise(number(above)))
}

#[pg_extern(sql = "")]
fn snowflake_segment_drop(tag: Given) -> Option<i64> {
    changed("snowflake_segment_drop", &tag_of(tag), Kind::Drop)
}

rows! {
    fn snowflake_segments(all_servers: bool) {
        listed(all_servers).unwrap_or_else(|error| error.raise())
    }

    row SegmentRow { tag, standing, record, holder },
        // Of a tag that the registry has forgotten, no more is known than what was granted.
        let known = record.filter(|_| standing != TagStanding::Missing),
        let holder = holder.as_ref() => {
        tag: String = encoding::shown(tag.as_str());
        state: &'static str = name_of(standing);
        first: Option<i64> = known.and_then(|record| shown(record.first));
        last: Option<i64> = known.and_then(|record| shown(record.last));
        next_granted: Option<i64> = record.and_then(|record| shown(record.next.min(TagRecord::HIGHEST)));
        worker_id: Option<i32> = holder.and_then(|holder| leases::numbers(holder.worker?)[0]);
        datacenter_id: Option<i32> = holder.and_then(|holder| leases::numbers(holder.worker?)[1]);
        host: Option<String> = holder.map(|holder| encoding::shown(&holder.host));
        is_this_server: bool = holder.is_some_and(|holder| holder.is_this_server);
        as_of: Option<i64> = holder.map(|holder| timestamptz::to_datum(holder.as_of));
        current_from: Option<i64> = holder.and_then(|holder| shown(holder.current()?.first));
        current_until: Option<i64> = holder.and_then(|holder| shown(holder.current()?.end - 1));
        after_from: Option<i64> = holder.and_then(|holder| shown(holder.held.after?.first));
        after_until: Option<i64> = holder.and_then(|holder| shown(holder.held.after?.end - 1));
        held: Option<i64> = holder.map(|holder| shown(holder.held.left()).unwrap_or(i64::MAX));
        range_size: Option<i64> = holder.map(|holder| shown(holder.size).unwrap_or(i64::MAX));
        per_second: Option<f64> = holder.and_then(Holder::per_second);
        lasts: Option<Interval> = holder.and_then(Holder::lasts);
        conflicts: Option<i64> = holder.and_then(|holder| shown(holder.counts?.0));
        waits: Option<i64> = holder.and_then(|holder| shown(holder.counts?.1));
    }
}

/// What a row is made of: a tag, as far as it is known, and a server that holds numbers of it.
struct SegmentRow {
    tag: Tag,
    standing: TagStanding,
    record: Option<ShownRecord>,
    holder: Option<Holder>,
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
    /// Conflicts and waits; `None` for other servers.
    counts: Option<(u64, u64)>,
}

impl Holder {
    /// The range that it takes numbers from.
    fn current(&self) -> Option<Range> {
        Some(self.held.current).filter(|range| range.count() > 0)
    }

    fn per_second(&self) -> Option<f64> {
        let Use { count, length } = self.used;
        (length > Micros(0)).then(|| count as f64 * 1e6 / length.0 as f64)
    }

    /// How long what it holds is enough.
    fn lasts(&self) -> Option<Interval> {
        self.used.lasts(self.held.left()).map(|lasts| Interval::from_micros(lasts.0))
    }
}

/// A row for each server that holds numbers of a tag, or one without a server. What this server holds is as of now, by shared memory.
fn listed(all_servers: bool) -> Result<Vec<SegmentRow>, Error> {
    let own = segments::list()?;
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
        counts: Some((state.conflicts, state.waits)),
    };
    let mut own: BTreeMap<Tag, (SlotState, Held)> =
        own.into_iter().map(|(tag, state, held)| (tag, (state, held))).collect();
    let mut rows = Vec::new();
    for segment in if all_servers { listing::segments()? } else { Vec::new() } {
        let own = own.remove(&segment.tag);
        let standing = own.map_or_else(|| standing_of(&segment.record), |(state, _)| state.standing);
        let record = Some(ShownRecord::of(&segment.record));
        let mut holders: Vec<Holder> = own.iter().map(|(state, held)| here(state, *held)).collect();
        if segment.record.state == State::Live {
            let others = segment.holders.into_iter().filter(|holder| me != Some(holder.worker));
            holders.extend(others.map(|SegmentHolder { worker, host, holding }| Holder {
                worker: Some(worker),
                host,
                is_this_server: false,
                as_of: holding.granted_at,
                held: holding.held(),
                size: holding.size(),
                used: holding.used,
                counts: None,
            }));
        }
        let row = |holder| SegmentRow { tag: segment.tag.clone(), standing, record, holder };
        match holders.is_empty() {
            true => rows.push(row(None)),
            false => rows.extend(holders.into_iter().map(Some).map(row)),
        }
    }
    rows.extend(own.into_iter().map(|(tag, (state, held))| SegmentRow {
        tag,
        standing: state.standing,
        record: state.record,
        holder: Some(here(&state, held)),
    }));
    rows.sort_by(|one, other| one.tag.cmp(&other.tag));
    Ok(rows)
}

/// How a tag stands by the registry's record.
const fn standing_of(record: &TagRecord) -> TagStanding {
    match record.state {
        State::Dropped => TagStanding::Dropped,
        State::Forgotten => TagStanding::Missing,
        State::Live if record.left() == 0 => TagStanding::UsedUp,
        State::Live => TagStanding::Live,
    }
}

const fn name_of(standing: TagStanding) -> &'static str {
    match standing {
        TagStanding::Live => "live",
        TagStanding::UsedUp => "used up",
        TagStanding::Dropped => "dropped",
        TagStanding::Missing => "missing",
    }
}
