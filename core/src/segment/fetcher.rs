//! The fetcher: what the one process of a server that talks to the registry does next about segments. A state machine that does
//! nothing by itself, as [`Lessee`](crate::lease::Lessee): its caller asks [`Fetcher::next`], does that, and reports by
//! [`Fetcher::answer`]. It may be lost at any time: a new one goes on with what shared memory holds.

use super::change::{TagRefusal, TagWrite, create, drop_tag, give_back, grant, raise, restore};
use super::held::Held;
use super::record::{Range, State, StoredTag, Tag, TagRecord};
use super::steps::{FetchAnswer, FetchMoment, NextFetch, NotDone, Order, Slot, TagEvent, TagStanding};
use super::terms::{RangeTerms, Use};
use crate::lease::{NamespaceRecord, Version};
use crate::time::{Micros, MonotonicMicros};
use std::collections::{BTreeMap, VecDeque};

/// See the head of this module.
#[derive(Clone, Debug)]
pub struct Fetcher {
    terms: RangeTerms,
    /// For how many tags there is a place.
    capacity: usize,
    slots: Vec<KnownTag>,
    /// With which sizes tags begin that were used in an earlier run.
    sizes: BTreeMap<Tag, u64>,
    todo: FetchTodo,
    /// What somebody waits for, and the record that was sent for it.
    order: Option<(Order, Option<TagRecord>)>,
    /// Ranges are next, where one is due: the last was an order.
    is_turn_of_ranges: bool,
    tells: VecDeque<Slot>,
    /// When to look at all records.
    look_at: MonotonicMicros,
    /// The namespace's record at the last look.
    looked_under: Option<NamespaceRecord>,
    not_before: MonotonicMicros,
    failures: u32,
    /// When the first of them was.
    failing_since: MonotonicMicros,
    conflicts: u32,
    /// When to give up giving back; `None` unless the server stops.
    stop_by: Option<MonotonicMicros>,
    /// What is still to be given back; `None` before the records were read.
    giving: Option<VecDeque<Slot>>,
    events: Vec<TagEvent>,
}

/// What the fetcher knows of a tag that has a place.
#[derive(Clone, Debug)]
struct KnownTag {
    tag: Tag,
    standing: TagStanding,
    floor: u64,
    /// The record as it was last read or stored.
    stored: Option<StoredTag>,
    /// Whether the record is behind what this server was granted.
    is_behind: bool,
    /// The size of the last range.
    size: Option<u64>,
    /// How many numbers were granted since the fetcher began, with what was held then; `None` before the first look.
    granted: Option<u64>,
    /// Where the registry was away: when to ask for the next range, if numbers are left until then.
    not_before: MonotonicMicros,
    /// When the last range was granted, and how many numbers were taken by then.
    since: Option<(MonotonicMicros, u64)>,
    /// Two moments, a while apart, and how many numbers were taken by then.
    marks: Option<[(MonotonicMicros, u64); 2]>,
    end_said_at: Option<MonotonicMicros>,
}

#[derive(Clone, Debug)]
enum FetchTodo {
    Rest,
    /// Read the record of the order's tag.
    ReadOrder,
    WriteOrder(TagWrite),
    ReadSlot(Slot),
    Grant(Slot, TagWrite, Range),
    Install(Slot, Range),
    Restore(Slot, TagWrite),
    ReadAll,
    Close,
    GiveBack(Slot, TagWrite),
    Done,
}

impl KnownTag {
    fn new(tag: Tag) -> Self {
        Self {
            tag,
            standing: TagStanding::Live,
            floor: 0,
            stored: None,
            is_behind: false,
            size: None,
            granted: None,
            not_before: MonotonicMicros(i64::MIN),
            since: None,
            marks: None,
            end_said_at: None,
        }
    }

    /// How many numbers were taken since the fetcher began.
    fn taken(&self, held: &Held) -> u64 {
        self.granted.unwrap_or(0).saturating_sub(held.left())
    }

    /// How it was used since the last range was granted.
    fn used(&self, held: &Held, now: MonotonicMicros) -> Use {
        self.used_since(self.since, held, now)
    }

    /// How it was used since a moment, with how many numbers were taken by then.
    fn used_since(&self, mark: Option<(MonotonicMicros, u64)>, held: &Held, now: MonotonicMicros) -> Use {
        let (at, before) = mark.unwrap_or((now, 0));
        Use { count: self.taken(held).saturating_sub(before), length: now.saturating_since(at) }
    }

    /// The rate by which it is decided: that of [`Self::used`]; or that of the last time, where more was used in it. Of a range
    /// that was granted in the evening, the whole night says nothing about the morning.
    fn rate(&self, terms: &RangeTerms, held: &Held, now: MonotonicMicros) -> Use {
        let last = self.used_since(self.marks.map(|marks| marks[0]), held, now);
        terms.higher(self.used(held, now), last, self.size.unwrap_or(0))
    }

    fn mark(&mut self, terms: &RangeTerms, held: &Held, now: MonotonicMicros) {
        let mark = (now, self.taken(held));
        let marks = self.marks.get_or_insert([mark; 2]);
        if now.saturating_since(marks[1].0) >= terms.mark_every() {
            *marks = [marks[1], mark];
        }
    }
}

impl Fetcher {
    /// How often the end of a tag is reported.
    pub const END_EVERY: Micros = Micros::from_secs(3600);

    /// No two looks at the rates of tags follow each other faster.
    const SHORTEST_WAIT: Micros = Micros::from_millis(100);

    /// How long it waits for the lessee to find a namespace.
    const NAMESPACE_WAIT: Micros = Micros::from_secs(1);

    /// A fetcher for these tags, which have the first places, and as many in all.
    pub fn new(terms: RangeTerms, capacity: usize, tags: Vec<Tag>, sizes: BTreeMap<Tag, u64>) -> Self {
        let start = MonotonicMicros(i64::MIN);
        Self {
            terms,
            capacity,
            slots: tags.into_iter().map(KnownTag::new).collect(),
            sizes,
            todo: FetchTodo::Rest,
            order: None,
            is_turn_of_ranges: false,
            tells: VecDeque::new(),
            look_at: start,
            looked_under: None,
            not_before: start,
            failures: 0,
            failing_since: start,
            conflicts: 0,
            stop_by: None,
            giving: None,
            events: Vec::new(),
        }
    }

    /// The settings have changed. Also looks at all records at once.
    pub fn configure(&mut self, terms: RangeTerms) {
        self.terms = terms;
        self.look_at = MonotonicMicros(i64::MIN);
    }

    /// Somebody wants something done. Answered by [`TagEvent::Answered`], one order after the other: a new one takes the place of
    /// one that was not answered yet, for which nobody waits any more.
    pub fn order(&mut self, order: Order) {
        if self.stop_by.is_some() {
            return self.finish(Err(NotDone::Failed));
        }
        if matches!(self.todo, FetchTodo::ReadOrder | FetchTodo::WriteOrder(_)) {
            self.todo = FetchTodo::Rest;
        }
        self.order = Some((order, None));
        self.not_before = MonotonicMicros(i64::MIN);
    }

    /// Whether an order is being carried out.
    pub const fn is_busy(&self) -> bool {
        self.order.is_some()
    }

    /// The server stops: from now on no session takes numbers, and what is left is given back, up to an instant.
    pub fn stop(&mut self, by: MonotonicMicros) {
        if self.stop_by.is_none() {
            self.stop_by = Some(by);
            self.not_before = MonotonicMicros(i64::MIN);
            // A range that is granted and not installed is a gap.
            self.todo = FetchTodo::Close;
            if self.order.is_some() {
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

    /// What is granted where the write of [`NextFetch::Write`] is stored: what was held before, the range, and how the tag was used
    /// in the last time. `None` where it grants nothing.
    pub fn granting(&self, moment: &FetchMoment<'_>) -> Option<(Held, Range, Use)> {
        let FetchTodo::Grant(slot, _, range) = &self.todo else { return None };
        let held = held(moment, *slot);
        Some((held, *range, self.slots[*slot].used(&held, moment.monotonic)))
    }

    /// What happened since the last call, in order.
    pub fn take_events(&mut self) -> Vec<TagEvent> {
        std::mem::take(&mut self.events)
    }

    /// What sessions are to be told, a [`NextFetch::Tell`]; before they learn what came of an order.
    pub fn take_tell(&mut self) -> Option<NextFetch> {
        let slot = self.tells.pop_front()?;
        let KnownTag { tag, standing, floor, .. } = &self.slots[slot];
        Some(NextFetch::Tell { slot, tag: tag.clone(), standing: *standing, floor: *floor })
    }

    /// What to do next. The same again, where that was not answered.
    pub fn next(&mut self, moment: &FetchMoment<'_>) -> NextFetch {
        self.note_use(moment);
        if let Some(tell) = self.take_tell() {
            return tell;
        }
        if self.stop_by.is_some_and(|by| moment.monotonic >= by) && !matches!(self.todo, FetchTodo::Close) {
            return NextFetch::Done;
        }
        if moment.monotonic < self.not_before {
            return NextFetch::Wait(self.not_before.saturating_since(moment.monotonic));
        }
        if matches!(self.todo, FetchTodo::Rest)
            && let Some(wait) = self.rest(moment)
        {
            return NextFetch::Wait(wait);
        }
        match &self.todo {
            FetchTodo::Rest => NextFetch::Wait(Micros(0)),
            FetchTodo::ReadOrder => match &self.order {
                Some((order, _)) => NextFetch::Read(order.tag().clone()),
                None => self.leave(),
            },
            FetchTodo::ReadSlot(slot) => NextFetch::Read(self.slots[*slot].tag.clone()),
            FetchTodo::WriteOrder(write)
            | FetchTodo::Grant(_, write, _)
            | FetchTodo::Restore(_, write)
            | FetchTodo::GiveBack(_, write) => match moment.namespace {
                Some(namespace) => NextFetch::Write(write.clone(), namespace.clone()),
                None => self.leave(),
            },
            FetchTodo::Install(slot, range) => NextFetch::Install(*slot, *range),
            FetchTodo::ReadAll => NextFetch::ReadAll,
            FetchTodo::Close => NextFetch::Close,
            FetchTodo::Done => NextFetch::Done,
        }
    }

    /// What came of [`Self::next`]. An answer that does not belong to it counts as a failure.
    pub fn answer(&mut self, moment: &FetchMoment<'_>, answer: FetchAnswer) {
        if matches!(answer, FetchAnswer::Failed | FetchAnswer::Unknown) {
            return self.fail(moment, answer == FetchAnswer::Unknown);
        }
        let todo = std::mem::replace(&mut self.todo, FetchTodo::Rest);
        if std::mem::take(&mut self.failures) > 0
            && moment.monotonic.saturating_since(self.failing_since) >= RangeTerms::LONG_OUTAGE
        {
            self.spread(moment);
        }
        match (todo, answer) {
            (FetchTodo::ReadAll, FetchAnswer::All(found)) => self.found_all(moment, found),
            (FetchTodo::ReadOrder, FetchAnswer::One(found))
            | (FetchTodo::WriteOrder(_), FetchAnswer::Conflict(found)) => {
                self.go_on_with_order(moment, found);
            }
            (FetchTodo::WriteOrder(write), FetchAnswer::Stored(version)) => {
                let record = write.record.clone();
                self.note_stored(&write, version);
                self.finish(Ok(record));
            }
            (FetchTodo::ReadSlot(slot), FetchAnswer::One(found)) => self.ask(moment, slot, found),
            (FetchTodo::Grant(slot, ..), FetchAnswer::Conflict(found)) => {
                self.conflicts += 1;
                // Others ask for ranges, too.
                if self.conflicts > 1 {
                    self.pause(moment, self.terms.pauses.contend_after(self.conflicts - 1, moment.chance));
                }
                self.ask(moment, slot, found);
            }
            (FetchTodo::Grant(slot, write, range), FetchAnswer::Stored(version)) => {
                self.note_stored(&write, version);
                self.conflicts = 0;
                self.todo = FetchTodo::Install(slot, range);
            }
            (FetchTodo::Install(slot, range), FetchAnswer::Installed) => self.installed(moment, slot, range),
            (FetchTodo::Restore(_, write), FetchAnswer::Stored(version)) => self.note_stored(&write, version),
            (FetchTodo::Restore(slot, _), FetchAnswer::Conflict(found)) => self.note(moment, slot, found),
            (FetchTodo::Close, FetchAnswer::Closed) => {
                let is_empty = moment.held.iter().all(|held| held.left() == 0);
                self.todo = if is_empty { FetchTodo::Done } else { FetchTodo::ReadAll };
            }
            (FetchTodo::GiveBack(slot, write), FetchAnswer::Stored(_)) => {
                let (tag, next) = (self.slots[slot].tag.clone(), write.record.next);
                self.events.push(TagEvent::GivenBack { tag, next });
                self.give_next(moment);
            }
            // Something was granted since.
            (FetchTodo::GiveBack(..), FetchAnswer::Conflict(_)) => self.give_next(moment),
            (FetchTodo::GiveBack(..), FetchAnswer::OtherNamespace) => self.todo = FetchTodo::Done,
            // The lessee looks at it.
            (FetchTodo::WriteOrder(_), FetchAnswer::OtherNamespace) => self.finish(Err(NotDone::Failed)),
            (FetchTodo::Grant(..) | FetchTodo::Restore(..), FetchAnswer::OtherNamespace) => {
                self.pause(moment, Self::NAMESPACE_WAIT);
            }
            (todo, _) => {
                self.todo = todo;
                self.fail(moment, false);
            }
        }
    }

    // What is done when.

    /// Nothing is under way: chooses what to do, or returns how long there is nothing.
    fn rest(&mut self, moment: &FetchMoment<'_>) -> Option<Micros> {
        let Some(namespace) = moment.namespace else {
            if self.order.is_some() {
                self.finish(Err(NotDone::Failed));
            }
            return Some(Self::NAMESPACE_WAIT);
        };
        // Orders and ranges take turns: sessions that ask for a tag which is not there must not keep others from their numbers.
        if self.order.is_none() || self.is_turn_of_ranges {
            self.is_turn_of_ranges = false;
            if self.begin_range(moment, namespace) {
                return None;
            }
        }
        if self.order.is_some() {
            self.todo = FetchTodo::ReadOrder;
            return None;
        }
        Some(self.idle_for(moment))
    }

    /// Begins what is to be done without an order. Returns whether there was something.
    fn begin_range(&mut self, moment: &FetchMoment<'_>, namespace: &NamespaceRecord) -> bool {
        // What the registry has forgotten is put right before anything is asked for.
        let is_other = self.looked_under.as_ref().is_some_and(|seen| seen != namespace);
        if !self.slots.is_empty() && (is_other || moment.monotonic >= self.look_at) {
            self.todo = FetchTodo::ReadAll;
            return true;
        }
        let behind = self.slots.iter().enumerate().filter(|(_, known)| known.is_behind).find_map(|(slot, known)| {
            let write = restore(&known.tag, known.stored.as_ref(), top(moment, slot))?;
            Some(FetchTodo::Restore(slot, write))
        });
        if let Some(todo) = behind {
            self.todo = todo;
            return true;
        }
        let urgent = self.most_urgent(moment);
        if let Some(slot) = urgent {
            self.fetch(moment, slot);
        }
        urgent.is_some()
    }

    /// The tag whose next range is due, and whose numbers last for the shortest time.
    fn most_urgent(&self, moment: &FetchMoment<'_>) -> Option<Slot> {
        let due = self.slots.iter().enumerate().filter_map(|(slot, known)| {
            let held = held(moment, slot);
            let used = known.rate(&self.terms, &held, moment.monotonic);
            let is_due = known.standing == TagStanding::Live
                && held.after.is_none()
                && (held.left() == 0 || moment.monotonic >= known.not_before)
                && self.terms.is_due(held.left(), known.size.unwrap_or(0), used);
            let lasts = if held.left() == 0 { Some(Micros(0)) } else { used.lasts(held.left()) };
            // Of those without numbers, the one that has waited for the longest time.
            is_due.then(|| (lasts.unwrap_or(Micros(i64::MAX)), known.since.map(|(at, _)| at), slot))
        });
        due.min().map(|(_, _, slot)| slot)
    }

    /// Until a range is due at the present rates, or the next look.
    fn idle_for(&self, moment: &FetchMoment<'_>) -> Micros {
        let look = match self.slots.is_empty() {
            true => RangeTerms::LOOK_EVERY,
            false => self.look_at.saturating_since(moment.monotonic),
        };
        let due = self.slots.iter().enumerate().filter_map(|(slot, known)| {
            let held = held(moment, slot);
            let is_open = known.standing == TagStanding::Live && held.after.is_none();
            let used = known.rate(&self.terms, &held, moment.monotonic);
            let due = self.terms.due_in(held.left(), known.size.unwrap_or(0), used).filter(|_| is_open)?;
            let not_before = known.not_before.saturating_since(moment.monotonic);
            // What was put off is asked for once nothing is left.
            let empty = used.lasts(held.left()).unwrap_or(not_before);
            Some(due.max(not_before.min(empty)))
        });
        due.min().map_or(look, |due| due.min(look)).max(Self::SHORTEST_WAIT)
    }

    /// The registry is back. What is due by now waits for a while by chance, unless nothing is left of it: other servers have found
    /// out, too.
    fn spread(&mut self, moment: &FetchMoment<'_>) {
        for (slot, known) in self.slots.iter_mut().enumerate() {
            let held = held(moment, slot);
            let used = known.rate(&self.terms, &held, moment.monotonic);
            let chance = moment.chance.rotate_left(slot as u32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
            let wait = RangeTerms::spread_after(used.lasts(held.left()), chance);
            known.not_before = moment.monotonic.saturating_add(wait);
        }
    }

    /// Asks for the next range, from the version that was last seen.
    fn fetch(&mut self, moment: &FetchMoment<'_>, slot: Slot) {
        match self.slots[slot].stored.clone() {
            Some(stored) => self.ask(moment, slot, Some(stored)),
            None => self.todo = FetchTodo::ReadSlot(slot),
        }
    }

    // What follows from answers.

    /// The record of a tag was found: asks for a range from there.
    fn ask(&mut self, moment: &FetchMoment<'_>, slot: Slot, found: Option<StoredTag>) {
        self.note(moment, slot, found);
        let held = held(moment, slot);
        let known = &self.slots[slot];
        if known.standing != TagStanding::Live || self.stop_by.is_some() {
            return;
        }
        let bounds = known.stored.as_ref().map(|stored| stored.record.bounds);
        let size = match (bounds, known.size) {
            (Some(bounds), Some(before)) => {
                self.terms.next_size(bounds, before, known.rate(&self.terms, &held, moment.monotonic))
            }
            (Some(bounds), None) => bounds.nearest(self.sizes.get(&known.tag).copied().unwrap_or(0)),
            (None, _) => 1,
        };
        match grant(&known.tag, known.stored.as_ref(), size, held.top()) {
            Ok((write, range)) => {
                self.todo = FetchTodo::Grant(slot, write, range);
            }
            Err(refusal) => self.stand(slot, standing_of(refusal)),
        }
    }

    fn installed(&mut self, moment: &FetchMoment<'_>, slot: Slot, range: Range) {
        let known = &mut self.slots[slot];
        known.granted = Some(known.granted.unwrap_or(0) + range.count());
        known.size = Some(range.count());
        known.since = Some((moment.monotonic, known.taken(&held(moment, slot))));
        let Some(record) = known.stored.as_ref().map(|stored| &stored.record) else { return };
        let is_near = RangeTerms::is_near_end(record.left(), known.size.unwrap_or(1));
        let was_said = known.end_said_at.is_some_and(|at| moment.monotonic.saturating_since(at) < Self::END_EVERY);
        if is_near && !was_said {
            known.end_said_at = Some(moment.monotonic);
            self.events.push(TagEvent::NearEnd { tag: known.tag.clone(), left: record.left() });
        }
    }

    fn found_all(&mut self, moment: &FetchMoment<'_>, mut found: BTreeMap<Tag, StoredTag>) {
        for slot in 0..self.slots.len() {
            let stored = found.remove(&self.slots[slot].tag);
            self.note(moment, slot, stored);
        }
        if self.stop_by.is_some() {
            self.giving = Some((0..self.slots.len()).collect());
            return self.give_next(moment);
        }
        self.look_at = moment.monotonic.saturating_add(RangeTerms::look_after(moment.chance));
        self.looked_under = moment.namespace.cloned();
    }

    /// Takes note of a tag's record as it was found.
    fn note(&mut self, moment: &FetchMoment<'_>, slot: Slot, found: Option<StoredTag>) {
        let top = top(moment, slot);
        let known = &mut self.slots[slot];
        let is_missing = found.as_ref().is_none_or(|stored| stored.record.state == State::Forgotten);
        if is_missing && known.standing != TagStanding::Missing {
            self.events.push(TagEvent::Missing(known.tag.clone()));
        }
        let Some(stored) = found else {
            known.is_behind = true;
            known.stored = None;
            return self.stand(slot, TagStanding::Missing);
        };
        let record = &stored.record;
        if is_missing {
            known.is_behind = record.next < top;
        } else if record.next < top {
            let news = TagEvent::RolledBack { tag: known.tag.clone(), next: record.next, known: top };
            // Said once, for as long as it stands so.
            if !std::mem::replace(&mut known.is_behind, true) {
                self.events.push(news);
            }
        } else {
            known.is_behind = false;
        }
        let standing = match record.state {
            State::Dropped => TagStanding::Dropped,
            State::Forgotten => TagStanding::Missing,
            State::Live if record.next.max(top).max(record.floor) > record.last => TagStanding::UsedUp,
            State::Live => TagStanding::Live,
        };
        if record.floor > known.floor {
            known.floor = record.floor;
            self.tells.push_back(slot);
        }
        known.stored = Some(stored);
        self.stand(slot, standing);
    }

    /// Sessions are told what has changed.
    fn stand(&mut self, slot: Slot, standing: TagStanding) {
        if std::mem::replace(&mut self.slots[slot].standing, standing) != standing && !self.tells.contains(&slot) {
            self.tells.push_back(slot);
        }
    }

    /// A write of ours was confirmed.
    fn note_stored(&mut self, write: &TagWrite, version: Version) {
        if let Some(slot) = self.slot_of(&write.tag) {
            let record = &write.record;
            let known = &mut self.slots[slot];
            if record.floor > known.floor {
                known.floor = record.floor;
                self.tells.push_back(slot);
            }
            let standing = match record.state {
                State::Dropped => TagStanding::Dropped,
                State::Forgotten => TagStanding::Missing,
                State::Live => TagStanding::Live,
            };
            known.stored = Some(StoredTag { version, record: record.clone() });
            known.is_behind = false;
            self.stand(slot, standing);
        }
    }

    fn slot_of(&self, tag: &Tag) -> Option<Slot> {
        self.slots.iter().position(|known| known.tag == *tag)
    }

    /// The record of the order's tag was found.
    fn go_on_with_order(&mut self, moment: &FetchMoment<'_>, found: Option<StoredTag>) {
        let Some((order, sent)) = self.order.take() else { return };
        self.is_turn_of_ranges = true;
        let slot = self.slot_of(order.tag());
        if let Some(slot) = slot {
            self.note(moment, slot, found.clone());
        }
        let (tag, found) = (order.tag(), found.as_ref());
        let known = slot.map_or(0, |slot| top(moment, slot));
        let write = match (found, &sent) {
            // The answer was lost. What can be read may not be durable yet, and never be.
            (Some(stored), Some(sent)) if stored.record == *sent => {
                Ok(TagWrite { tag: tag.clone(), expected: Some(stored.version), record: sent.clone() })
            }
            _ => match &order {
                Order::Attach(tag) => {
                    let outcome = self.attach(tag, slot, found);
                    self.events.push(TagEvent::Answered(outcome));
                    return;
                }
                Order::Create(_, plan) => create(tag, found, plan, known),
                Order::Raise(_, above) => raise(tag, found, *above, known),
                Order::Drop(_) => drop_tag(tag, found, known),
            },
        };
        match write {
            Ok(write) => {
                self.order = Some((order, Some(write.record.clone())));
                self.todo = FetchTodo::WriteOrder(write);
            }
            Err(refusal) => self.events.push(TagEvent::Answered(Err(NotDone::Refused(refusal)))),
        }
    }

    /// Gives a tag a place, if it is live.
    fn attach(&mut self, tag: &Tag, slot: Option<Slot>, found: Option<&StoredTag>) -> Result<TagRecord, NotDone> {
        let stored = match found {
            Some(stored) if stored.record.state == State::Forgotten => {
                return Err(NotDone::Refused(TagRefusal::Missing));
            }
            None => return Err(NotDone::Refused(TagRefusal::Missing)),
            Some(stored) if stored.record.state == State::Dropped => return Err(NotDone::Refused(TagRefusal::Dropped)),
            Some(stored) => stored,
        };
        if slot.is_none() {
            if self.slots.len() >= self.capacity {
                return Err(NotDone::Full);
            }
            let floor = stored.record.floor;
            self.slots.push(KnownTag {
                stored: Some(stored.clone()),
                floor,
                granted: Some(0),
                ..KnownTag::new(tag.clone())
            });
            self.tells.push_back(self.slots.len() - 1);
        }
        Ok(stored.record.clone())
    }

    fn finish(&mut self, outcome: Result<TagRecord, NotDone>) {
        self.order = None;
        self.is_turn_of_ranges = true;
        self.events.push(TagEvent::Answered(outcome));
    }

    // What is left is given back.

    /// The records were read, and nothing is taken any more.
    fn give_next(&mut self, moment: &FetchMoment<'_>) {
        while let Some(slot) = self.giving.as_mut().and_then(VecDeque::pop_front) {
            let known = &self.slots[slot];
            let write = known.stored.as_ref().and_then(|stored| give_back(&known.tag, stored, &held(moment, slot)));
            if let Some(write) = write {
                self.todo = FetchTodo::GiveBack(slot, write);
                return;
            }
        }
        self.todo = FetchTodo::Done;
    }

    // What goes wrong.

    /// Without a namespace, or without an order, nothing goes on.
    fn leave(&mut self) -> NextFetch {
        if self.stop_by.is_some() {
            self.todo = FetchTodo::Done;
            return NextFetch::Done;
        }
        if matches!(std::mem::replace(&mut self.todo, FetchTodo::Rest), FetchTodo::WriteOrder(_)) {
            self.finish(Err(NotDone::Failed));
        }
        NextFetch::Wait(Self::SHORTEST_WAIT)
    }

    fn fail(&mut self, moment: &FetchMoment<'_>, is_unknown: bool) {
        if self.failures == 0 {
            self.failing_since = moment.monotonic;
        }
        self.failures = self.failures.saturating_add(1);
        let pause = self.terms.pauses.retry_after(self.failures, moment.chance);
        match std::mem::replace(&mut self.todo, FetchTodo::Rest) {
            FetchTodo::WriteOrder(_) if is_unknown && self.failures == 1 => {
                self.todo = FetchTodo::ReadOrder;
                return;
            }
            FetchTodo::WriteOrder(_) | FetchTodo::ReadOrder => {
                let was_sent = self.order.as_ref().is_some_and(|(_, sent)| sent.is_some());
                let is_unknown = is_unknown || was_sent;
                self.finish(Err(if is_unknown { NotDone::Unknown } else { NotDone::Failed }));
            }
            // What may have been granted is abandoned: the next request is made from what stands then.
            FetchTodo::Grant(slot, ..) | FetchTodo::Restore(slot, _) if is_unknown => self.slots[slot].stored = None,
            FetchTodo::GiveBack(..) => return self.give_next(moment),
            // It is not lost: it is in memory, and the caller does that.
            todo @ (FetchTodo::Install(..) | FetchTodo::Close | FetchTodo::Done) => self.todo = todo,
            _ if self.stop_by.is_some() => self.todo = FetchTodo::Done,
            _ => {}
        }
        if self.stop_by.is_none() {
            self.pause(moment, pause);
        }
    }

    fn pause(&mut self, moment: &FetchMoment<'_>, length: Micros) {
        self.not_before = moment.monotonic.saturating_add(length);
    }

    /// What is held at the beginning counts as granted then.
    fn note_use(&mut self, moment: &FetchMoment<'_>) {
        for (slot, known) in self.slots.iter_mut().enumerate() {
            let held = held(moment, slot);
            known.granted.get_or_insert(held.left());
            if known.since.is_none() && held.left() > 0 {
                (known.since, known.size) = (Some((moment.monotonic, 0)), known.size.or(Some(held.left())));
            }
            known.mark(&self.terms, &held, moment.monotonic);
        }
    }
}

/// What is held of a tag.
fn held(moment: &FetchMoment<'_>, slot: Slot) -> Held {
    moment.held.get(slot).copied().unwrap_or_default()
}

/// The first number that this server was not granted; 0 where it was granted none.
fn top(moment: &FetchMoment<'_>, slot: Slot) -> u64 {
    held(moment, slot).top()
}

const fn standing_of(refusal: TagRefusal) -> TagStanding {
    match refusal {
        TagRefusal::UsedUp { .. } | TagRefusal::AboveLast { .. } | TagRefusal::Exists => TagStanding::UsedUp,
        TagRefusal::Missing => TagStanding::Missing,
        TagRefusal::Dropped => TagStanding::Dropped,
    }
}
