//! All that the fetcher knows, and what its caller may tell it or look at between two steps: settings, a request of somebody who waits,
//! a stop; sizes and uses, for people and for the next run.

use super::super::held::Held;
use super::super::record::{Range, Tag, TagRecord};
use super::super::steps::{Moment, Next, NotDone, Request, Slot, TagEvent, TagStanding};
use super::super::terms::{RangeTerms, Use};
use super::super::trouble::Trouble;
use super::known::{KnownTag, held};
use super::todo::Todo;
use crate::lease::NamespaceRecord;
use crate::time::{Micros, MonotonicMicros};
use std::collections::{BTreeMap, VecDeque};

/// What the one process of a server that talks to the registry does next about segments. A state machine that does nothing by
/// itself: its caller asks [`Fetcher::next`], does that, and reports by [`Fetcher::answer`]. It may be lost at any time: a new one
/// goes on with what shared memory holds.
#[derive(Clone, Debug)]
pub struct Fetcher {
    pub(super) terms: RangeTerms,
    /// For how many tags there is a place.
    pub(super) capacity: usize,
    pub(super) slots: Vec<KnownTag>,
    /// With which sizes tags begin that were used in an earlier run.
    pub(super) sizes: BTreeMap<Tag, u64>,
    pub(super) todo: Todo,
    /// What somebody waits for, and the record that was sent for it.
    pub(super) request: Option<(Request, Option<TagRecord>)>,
    /// Ranges are next, where one is due: the last was a request.
    pub(super) is_turn_of_ranges: bool,
    pub(super) tells: VecDeque<Slot>,
    pub(super) look: Look,
    pub(super) not_before: MonotonicMicros,
    pub(super) failures: Failures,
    /// The tag for which there was no place.
    pub(super) full_for: Option<Tag>,
    /// When the request was sent that is under way, and how long one takes to be answered.
    pub(super) sent_at: Option<MonotonicMicros>,
    pub(super) latency: Micros,
    /// When to give up giving back; `None` unless the server stops.
    pub(super) stop_by: Option<MonotonicMicros>,
    /// What is still to be given back; `None` before the records were read.
    pub(super) giving: Option<VecDeque<Slot>>,
    pub(super) events: Vec<TagEvent>,
}

/// The next look at all records.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub at: MonotonicMicros,
    /// The namespace's record at the last look.
    pub under: Option<NamespaceRecord>,
}

/// Requests in a row that the registry did not answer.
#[derive(Clone, Debug)]
pub(super) struct Failures {
    pub count: u32,
    /// When the first of them was.
    since: MonotonicMicros,
}

impl Failures {
    /// One more.
    pub fn add(&mut self, now: MonotonicMicros) {
        if self.count == 0 {
            self.since = now;
        }
        self.count = self.count.saturating_add(1);
    }

    /// The registry has answered. Returns whether it had not for so long that other servers wait, too.
    pub fn end(&mut self, now: MonotonicMicros) -> bool {
        std::mem::take(&mut self.count) > 0 && now.saturating_since(self.since) >= RangeTerms::LONG_OUTAGE
    }
}

impl Fetcher {
    /// How often the end of a tag is reported.
    pub const END_EVERY: Micros = Micros::from_secs(3600);

    /// No two looks at the rates of tags follow each other faster.
    pub(super) const SHORTEST_WAIT: Micros = Micros::from_millis(100);

    /// A registry that takes longer is not waited for by others.
    const LONGEST_LATENCY: Micros = Micros::from_millis(250);

    /// How long it waits for the lessee to find a namespace.
    pub(super) const NAMESPACE_WAIT: Micros = Micros::from_secs(1);

    /// A fetcher for these tags, which have the first places, and as many in all.
    pub fn new(terms: RangeTerms, capacity: usize, tags: Vec<Tag>, sizes: BTreeMap<Tag, u64>) -> Self {
        let start = MonotonicMicros(i64::MIN);
        Self {
            terms,
            capacity,
            slots: tags.into_iter().map(KnownTag::new).collect(),
            sizes,
            todo: Todo::Rest,
            request: None,
            is_turn_of_ranges: false,
            tells: VecDeque::new(),
            look: Look { at: start, under: None },
            not_before: start,
            failures: Failures { count: 0, since: start },
            full_for: None,
            sent_at: None,
            latency: Micros::from_millis(1),
            stop_by: None,
            giving: None,
            events: Vec::new(),
        }
    }

    /// The settings have changed. Also looks at all records at once.
    pub fn configure(&mut self, terms: RangeTerms) {
        self.terms = terms;
        self.look.at = MonotonicMicros(i64::MIN);
    }

    /// Somebody wants something done. Answered by [`TagEvent::Answered`], one request after the other: a new one takes the place of
    /// one that was not answered yet, for which nobody waits any more.
    pub fn request(&mut self, request: Request) {
        if self.stop_by.is_some() {
            return self.finish(Err(NotDone::Failed));
        }
        if matches!(self.todo, Todo::ReadForRequest | Todo::WriteForRequest(_)) {
            self.todo = Todo::Rest;
        }
        self.request = Some((request, None));
        self.not_before = MonotonicMicros(i64::MIN);
    }

    /// Whether a request is being carried out.
    pub const fn is_busy(&self) -> bool {
        self.request.is_some()
    }

    /// The server stops: from now on no session takes numbers, and what is left is given back, up to an instant.
    pub fn stop(&mut self, by: MonotonicMicros) {
        if self.stop_by.is_none() {
            self.stop_by = Some(by);
            self.not_before = MonotonicMicros(i64::MIN);
            // A range that is granted and not installed is a gap.
            self.todo = Todo::Close;
            if self.request.is_some() {
                self.finish(Err(NotDone::Failed));
            }
        }
    }

    /// The size of the last range of each tag, for the next run.
    pub fn sizes(&self) -> impl Iterator<Item = (&Tag, u64)> {
        self.slots.iter().filter_map(|known| Some((&known.tag, known.size?)))
    }

    /// The size of the last range, and the use since it was granted; by slot.
    pub fn used(&self, slot: Slot, held: &Held, now: MonotonicMicros) -> Option<(u64, Use)> {
        let known = self.slots.get(slot)?;
        Some((known.size.unwrap_or(0), known.used(held, now)))
    }

    /// The record of a tag as it was last read or stored; by slot.
    pub fn record(&self, slot: Slot) -> Option<&TagRecord> {
        self.slots.get(slot)?.stored.as_ref().map(|stored| &stored.record)
    }

    /// How many conflicts there were with other servers since this one uses the tag; by slot.
    pub fn conflicts(&self, slot: Slot) -> u64 {
        self.slots.get(slot).map_or(0, |known| known.contention.total)
    }

    /// Where servers collide on the tag, as its largest range is too small: that, and one that is large enough; by slot.
    pub fn too_small(&self, slot: Slot, held: &Held, now: MonotonicMicros) -> Option<(u64, u64)> {
        let known = self.slots.get(slot)?;
        let largest = known.stored.as_ref()?.record.bounds.largest;
        known.too_small(&self.terms, held, now).map(|enough| (largest, enough))
    }

    /// What keeps the server from numbers, of the tag that has the worst. `None`, too, where it stops; and of a tag that was dropped, which is
    /// what somebody wanted.
    pub fn trouble(&self, moment: &Moment<'_>) -> Option<Trouble> {
        if self.stop_by.is_some() {
            return None;
        }
        if self.failures.count > 0 {
            return Some(Trouble::Failing);
        }
        let standing = |wanted| self.slots.iter().find(|known| known.standing == wanted).map(|known| known.tag.clone());
        let too_small = || {
            (0..self.slots.len()).find_map(|slot| {
                let (largest, enough) = self.too_small(slot, &held(moment, slot), moment.monotonic)?;
                let tag = self.slots[slot].tag.clone();
                Some(Trouble::TooSmall { tag, conflicts: self.conflicts(slot), largest, enough })
            })
        };
        (standing(TagStanding::Missing).map(Trouble::Missing))
            .or_else(|| standing(TagStanding::UsedUp).map(Trouble::UsedUp))
            .or_else(|| self.full_for.clone().map(Trouble::Full))
            .or_else(too_small)
    }

    /// What is granted where the write of [`Next::Write`] is stored: what was held before, the range, and how the tag was used
    /// in the last time. `None` where it grants nothing.
    pub fn granting(&self, moment: &Moment<'_>) -> Option<(Held, Range, Use)> {
        let Todo::Grant(slot, _, range) = &self.todo else { return None };
        let held = held(moment, *slot);
        Some((held, *range, self.slots[*slot].used(&held, moment.monotonic)))
    }

    /// What happened since the last call, in order.
    pub fn take_events(&mut self) -> Vec<TagEvent> {
        std::mem::take(&mut self.events)
    }

    /// What sessions are to be told, a [`Next::Tell`]; before they learn what came of a request.
    pub fn take_tell(&mut self) -> Option<Next> {
        let slot = self.tells.pop_front()?;
        let KnownTag { tag, standing, floor, .. } = &self.slots[slot];
        Some(Next::Tell { slot, tag: tag.clone(), standing: *standing, floor: *floor })
    }

    pub(super) fn slot_of(&self, tag: &Tag) -> Option<Slot> {
        self.slots.iter().position(|known| known.tag == *tag)
    }

    /// Sessions are told what has changed.
    pub(super) fn stand(&mut self, slot: Slot, standing: TagStanding) {
        if std::mem::replace(&mut self.slots[slot].standing, standing) != standing && !self.tells.contains(&slot) {
            self.tells.push_back(slot);
        }
    }

    pub(super) fn finish(&mut self, outcome: Result<TagRecord, NotDone>) {
        self.request = None;
        self.is_turn_of_ranges = true;
        self.events.push(TagEvent::Answered(outcome));
    }

    /// A request was answered.
    pub(super) fn note_latency(&mut self, now: MonotonicMicros) {
        if let Some(sent_at) = self.sent_at.take() {
            let took = now.saturating_since(sent_at).min(Self::LONGEST_LATENCY);
            self.latency = Micros((self.latency.0 * 3 + took.0) / 4);
        }
    }

    pub(super) fn pause(&mut self, moment: &Moment<'_>, length: Micros) {
        self.not_before = moment.monotonic.saturating_add(length);
    }
}
