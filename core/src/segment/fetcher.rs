//! The fetcher: what the one process of a server that talks to the registry does next about segments. A state machine that does
//! nothing by itself, as [`Lessee`](crate::lease::Lessee): its caller asks [`Fetcher::next`], does that, and reports by
//! [`Fetcher::answer`]. It may be lost at any time: a new one goes on with what shared memory holds.

use super::change::{Plan, Refusal, Write, create, drop_tag, give_back, grant, raise, restore};
use super::held::Held;
use super::record::{Range, Record, State, Stored, Tag};
use super::terms::{Terms, Use};
use crate::lease::{NamespaceRecord, Version};
use crate::time::{Micros, MonotonicMicros};
use std::collections::{BTreeMap, VecDeque};

/// What is so at the moment of a call.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The time of the monotonic clock.
    pub monotonic: MonotonicMicros,
    /// Any number, drawn anew for each call.
    pub chance: u64,
    /// The namespace's record, as the lessee last found it good.
    pub namespace: Option<&'a NamespaceRecord>,
    /// What is held of each tag, by slot. Where sessions are to take no more, what was left then.
    pub held: &'a [Held],
}

/// The place of a tag in shared memory. A tag keeps it for as long as the server runs.
pub type Slot = usize;

/// What sessions are told of a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Numbers come, if not now.
    #[default]
    Live,
    /// There are no more numbers than those that are held.
    UsedUp,
    /// The tag was dropped: no number is taken any more, also of those that are held.
    Dropped,
    /// The registry does not know the tag. What is held can be used.
    Missing,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing for so long, or until something happens. Not answered.
    Wait(Micros),
    /// Tell sessions. A tag that has no place yet gets this one. Not answered.
    Tell {
        /// The tag's place.
        slot: Slot,
        /// The tag.
        tag: Tag,
        /// How it stands.
        standing: Standing,
        /// No number below this one may be taken.
        floor: u64,
    },
    /// Read the records of all tags.
    ReadAll,
    /// Read the record of a tag.
    Read(Tag),
    /// Store a record, if the version is as expected, and the namespace's record is this.
    Write(Write, NamespaceRecord),
    /// Bring a range to the sessions, after what they have.
    Install(Slot, Range),
    /// Let no session take numbers any more.
    Close,
    /// Nothing any more.
    Done,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The registry did not answer, or not as expected. Nothing was stored.
    Failed,
    /// The registry did not answer a [`Next::Write`]. Whether the record was stored is not known.
    Unknown,
    /// All records.
    All(BTreeMap<Tag, Stored>),
    /// The tag's record, if there is one.
    One(Option<Stored>),
    /// The record was stored, and this is its version.
    Stored(Version),
    /// Another version was found: this one. Nothing was stored.
    Conflict(Option<Stored>),
    /// The namespace's record is another one than was expected. Nothing was stored.
    OtherNamespace,
    /// The range was installed.
    Installed,
    /// No session takes numbers any more.
    Closed,
}

/// What somebody wants done with a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Numbers of the tag are wanted: it is looked for, and gets a place.
    Attach(Tag),
    /// [`create`].
    Create(Tag, Plan),
    /// [`raise`].
    Raise(Tag, u64),
    /// [`drop_tag`].
    Drop(Tag),
}

impl Order {
    /// The tag.
    pub const fn tag(&self) -> &Tag {
        match self {
            Self::Attach(tag) | Self::Create(tag, _) | Self::Raise(tag, _) | Self::Drop(tag) => tag,
        }
    }
}

/// Why an order was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// By the record.
    Refused(Refusal),
    /// There is no place for another tag.
    Full,
    /// The registry does not answer, or has no namespace for this server.
    Failed,
    /// The registry did not answer. Whether it was carried out is not known.
    Unknown,
}

/// What people may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The order was carried out, and the record is this; or not.
    Answered(Result<Record, NotDone>),
    /// The registry has forgotten grants of this tag: it was rolled back.
    RolledBack {
        /// The tag.
        tag: Tag,
        /// The next number by the registry.
        next: u64,
        /// Numbers below this one were granted.
        known: u64,
    },
    /// The registry has no record of the tag any more.
    Missing(Tag),
    /// The tag comes to its end: so many numbers are left. At most once an hour.
    NearEnd {
        /// The tag.
        tag: Tag,
        /// How many were not granted yet.
        left: u64,
    },
    /// What was left was given back: the next number is this.
    GivenBack {
        /// The tag.
        tag: Tag,
        /// The next number.
        next: u64,
    },
}

/// See the head of this module.
#[derive(Clone, Debug)]
pub struct Fetcher {
    terms: Terms,
    /// For how many tags there is a place.
    capacity: usize,
    slots: Vec<Known>,
    /// With which sizes tags begin that were used in an earlier run.
    sizes: BTreeMap<Tag, u64>,
    todo: Todo,
    /// What somebody waits for, and the record that was sent for it.
    order: Option<(Order, Option<Record>)>,
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
    events: Vec<Event>,
}

/// What the fetcher knows of a tag that has a place.
#[derive(Clone, Debug)]
struct Known {
    tag: Tag,
    standing: Standing,
    floor: u64,
    /// The record as it was last read or stored.
    stored: Option<Stored>,
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
    end_said_at: Option<MonotonicMicros>,
}

#[derive(Clone, Debug)]
enum Todo {
    Rest,
    /// Read the record of the order's tag.
    ReadOrder,
    WriteOrder(Write),
    ReadSlot(Slot),
    Grant(Slot, Write, Range),
    Install(Slot, Range),
    Restore(Slot, Write),
    ReadAll,
    Close,
    GiveBack(Slot, Write),
    Done,
}

impl Known {
    fn new(tag: Tag) -> Self {
        Self {
            tag,
            standing: Standing::Live,
            floor: 0,
            stored: None,
            is_behind: false,
            size: None,
            granted: None,
            not_before: MonotonicMicros(i64::MIN),
            since: None,
            end_said_at: None,
        }
    }

    /// How many numbers were taken since the fetcher began.
    fn taken(&self, held: &Held) -> u64 {
        self.granted.unwrap_or(0).saturating_sub(held.left())
    }

    /// How it was used since the last range was granted.
    fn used(&self, held: &Held, now: MonotonicMicros) -> Use {
        let (at, before) = self.since.unwrap_or((now, 0));
        Use { count: self.taken(held).saturating_sub(before), length: now.saturating_since(at) }
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
    pub fn new(terms: Terms, capacity: usize, tags: Vec<Tag>, sizes: BTreeMap<Tag, u64>) -> Self {
        let start = MonotonicMicros(i64::MIN);
        Self {
            terms,
            capacity,
            slots: tags.into_iter().map(Known::new).collect(),
            sizes,
            todo: Todo::Rest,
            order: None,
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
    pub fn configure(&mut self, terms: Terms) {
        self.terms = terms;
        self.look_at = MonotonicMicros(i64::MIN);
    }

    /// Somebody wants something done. Answered by [`Event::Answered`], one order after the other: a new one takes the place of
    /// one that was not answered yet, for which nobody waits any more.
    pub fn order(&mut self, order: Order) {
        if self.stop_by.is_some() {
            return self.finish(Err(NotDone::Failed));
        }
        if matches!(self.todo, Todo::ReadOrder | Todo::WriteOrder(_)) {
            self.todo = Todo::Rest;
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
            self.todo = Todo::Close;
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
    pub fn record(&self, slot: Slot) -> Option<&Record> {
        self.slots.get(slot)?.stored.as_ref().map(|stored| &stored.record)
    }

    /// What is granted where the write of [`Next::Write`] is stored: what was held before, the range, and how the tag was used
    /// in the last time. `None` where it grants nothing.
    pub fn granting(&self, moment: &Moment<'_>) -> Option<(Held, Range, Use)> {
        let Todo::Grant(slot, _, range) = &self.todo else { return None };
        let held = held(moment, *slot);
        Some((held, *range, self.slots[*slot].used(&held, moment.monotonic)))
    }

    /// What happened since the last call, in order.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// What sessions are to be told, a [`Next::Tell`]; before they learn what came of an order.
    pub fn take_tell(&mut self) -> Option<Next> {
        let slot = self.tells.pop_front()?;
        let Known { tag, standing, floor, .. } = &self.slots[slot];
        Some(Next::Tell { slot, tag: tag.clone(), standing: *standing, floor: *floor })
    }

    /// What to do next. The same again, where that was not answered.
    pub fn next(&mut self, moment: &Moment<'_>) -> Next {
        self.note_use(moment);
        if let Some(tell) = self.take_tell() {
            return tell;
        }
        if self.stop_by.is_some_and(|by| moment.monotonic >= by) && !matches!(self.todo, Todo::Close) {
            return Next::Done;
        }
        if moment.monotonic < self.not_before {
            return Next::Wait(self.not_before.saturating_since(moment.monotonic));
        }
        if matches!(self.todo, Todo::Rest)
            && let Some(wait) = self.rest(moment)
        {
            return Next::Wait(wait);
        }
        match &self.todo {
            Todo::Rest => Next::Wait(Micros(0)),
            Todo::ReadOrder => match &self.order {
                Some((order, _)) => Next::Read(order.tag().clone()),
                None => self.leave(),
            },
            Todo::ReadSlot(slot) => Next::Read(self.slots[*slot].tag.clone()),
            Todo::WriteOrder(write) | Todo::Grant(_, write, _) | Todo::Restore(_, write) | Todo::GiveBack(_, write) => {
                match moment.namespace {
                    Some(namespace) => Next::Write(write.clone(), namespace.clone()),
                    None => self.leave(),
                }
            }
            Todo::Install(slot, range) => Next::Install(*slot, *range),
            Todo::ReadAll => Next::ReadAll,
            Todo::Close => Next::Close,
            Todo::Done => Next::Done,
        }
    }

    /// What came of [`Self::next`]. An answer that does not belong to it counts as a failure.
    pub fn answer(&mut self, moment: &Moment<'_>, answer: Answer) {
        if matches!(answer, Answer::Failed | Answer::Unknown) {
            return self.fail(moment, answer == Answer::Unknown);
        }
        let todo = std::mem::replace(&mut self.todo, Todo::Rest);
        if std::mem::take(&mut self.failures) > 0
            && moment.monotonic.saturating_since(self.failing_since) >= Terms::LONG_OUTAGE
        {
            self.spread(moment);
        }
        match (todo, answer) {
            (Todo::ReadAll, Answer::All(found)) => self.found_all(moment, found),
            (Todo::ReadOrder, Answer::One(found)) | (Todo::WriteOrder(_), Answer::Conflict(found)) => {
                self.go_on_with_order(moment, found);
            }
            (Todo::WriteOrder(write), Answer::Stored(version)) => {
                let record = write.record.clone();
                self.note_stored(&write, version);
                self.finish(Ok(record));
            }
            (Todo::ReadSlot(slot), Answer::One(found)) => self.ask(moment, slot, found),
            (Todo::Grant(slot, ..), Answer::Conflict(found)) => {
                self.conflicts += 1;
                // Others ask for ranges, too.
                if self.conflicts > 1 {
                    self.pause(moment, self.terms.pauses.contend_after(self.conflicts - 1, moment.chance));
                }
                self.ask(moment, slot, found);
            }
            (Todo::Grant(slot, write, range), Answer::Stored(version)) => {
                self.note_stored(&write, version);
                self.conflicts = 0;
                self.todo = Todo::Install(slot, range);
            }
            (Todo::Install(slot, range), Answer::Installed) => self.installed(moment, slot, range),
            (Todo::Restore(_, write), Answer::Stored(version)) => self.note_stored(&write, version),
            (Todo::Restore(slot, _), Answer::Conflict(found)) => self.note(moment, slot, found),
            (Todo::Close, Answer::Closed) => {
                let is_empty = moment.held.iter().all(|held| held.left() == 0);
                self.todo = if is_empty { Todo::Done } else { Todo::ReadAll };
            }
            (Todo::GiveBack(slot, write), Answer::Stored(_)) => {
                let (tag, next) = (self.slots[slot].tag.clone(), write.record.next);
                self.events.push(Event::GivenBack { tag, next });
                self.give_next(moment);
            }
            // Something was granted since.
            (Todo::GiveBack(..), Answer::Conflict(_)) => self.give_next(moment),
            (Todo::GiveBack(..), Answer::OtherNamespace) => self.todo = Todo::Done,
            // The lessee looks at it.
            (Todo::WriteOrder(_), Answer::OtherNamespace) => self.finish(Err(NotDone::Failed)),
            (Todo::Grant(..) | Todo::Restore(..), Answer::OtherNamespace) => {
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
    fn rest(&mut self, moment: &Moment<'_>) -> Option<Micros> {
        let Some(namespace) = moment.namespace else {
            if self.order.is_some() {
                self.finish(Err(NotDone::Failed));
            }
            return Some(Self::NAMESPACE_WAIT);
        };
        if self.order.is_some() {
            self.todo = Todo::ReadOrder;
            return None;
        }
        // What the registry has forgotten is put right before anything is asked for.
        let is_other = self.looked_under.as_ref().is_some_and(|seen| seen != namespace);
        if !self.slots.is_empty() && (is_other || moment.monotonic >= self.look_at) {
            self.todo = Todo::ReadAll;
            return None;
        }
        let behind = self.slots.iter().enumerate().filter(|(_, known)| known.is_behind).find_map(|(slot, known)| {
            let write = restore(&known.tag, known.stored.as_ref()?, top(moment, slot))?;
            Some(Todo::Restore(slot, write))
        });
        if let Some(todo) = behind {
            self.todo = todo;
            return None;
        }
        match self.most_urgent(moment) {
            Some(slot) => {
                self.fetch(moment, slot);
                None
            }
            None => Some(self.idle_for(moment)),
        }
    }

    /// The tag whose next range is due, and whose numbers last for the shortest time.
    fn most_urgent(&self, moment: &Moment<'_>) -> Option<Slot> {
        let due = self.slots.iter().enumerate().filter_map(|(slot, known)| {
            let held = held(moment, slot);
            let used = known.used(&held, moment.monotonic);
            let is_due = known.standing == Standing::Live
                && held.after.is_none()
                && (held.left() == 0 || moment.monotonic >= known.not_before)
                && self.terms.is_due(held.left(), known.size.unwrap_or(0), used);
            let lasts = if held.left() == 0 { Some(Micros(0)) } else { used.lasts(held.left()) };
            is_due.then(|| (lasts.unwrap_or(Micros(i64::MAX)), slot))
        });
        due.min().map(|(_, slot)| slot)
    }

    /// Until a range is due at the present rates, or the next look.
    fn idle_for(&self, moment: &Moment<'_>) -> Micros {
        let look = match self.slots.is_empty() {
            true => Terms::LOOK_EVERY,
            false => self.look_at.saturating_since(moment.monotonic),
        };
        let due = self.slots.iter().enumerate().filter_map(|(slot, known)| {
            let held = held(moment, slot);
            let is_open = known.standing == Standing::Live && held.after.is_none();
            let used = known.used(&held, moment.monotonic);
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
    fn spread(&mut self, moment: &Moment<'_>) {
        for (slot, known) in self.slots.iter_mut().enumerate() {
            let held = held(moment, slot);
            let used = known.used(&held, moment.monotonic);
            let chance = moment.chance.rotate_left(slot as u32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
            let wait = Terms::spread_after(used.lasts(held.left()), chance);
            known.not_before = moment.monotonic.saturating_add(wait);
        }
    }

    /// Asks for the next range, from the version that was last seen.
    fn fetch(&mut self, moment: &Moment<'_>, slot: Slot) {
        match self.slots[slot].stored.clone() {
            Some(stored) => self.ask(moment, slot, Some(stored)),
            None => self.todo = Todo::ReadSlot(slot),
        }
    }

    // What follows from answers.

    /// The record of a tag was found: asks for a range from there.
    fn ask(&mut self, moment: &Moment<'_>, slot: Slot, found: Option<Stored>) {
        self.note(moment, slot, found);
        let held = held(moment, slot);
        let known = &self.slots[slot];
        if known.standing != Standing::Live || self.stop_by.is_some() {
            return;
        }
        let bounds = known.stored.as_ref().map(|stored| stored.record.bounds);
        let size = match (bounds, known.size) {
            (Some(bounds), Some(before)) => self.terms.next_size(bounds, before, known.used(&held, moment.monotonic)),
            (Some(bounds), None) => bounds.nearest(self.sizes.get(&known.tag).copied().unwrap_or(0)),
            (None, _) => 1,
        };
        match grant(&known.tag, known.stored.as_ref(), size, held.top()) {
            Ok((write, range)) => {
                self.todo = Todo::Grant(slot, write, range);
            }
            Err(refusal) => self.stand(slot, standing_of(refusal)),
        }
    }

    fn installed(&mut self, moment: &Moment<'_>, slot: Slot, range: Range) {
        let known = &mut self.slots[slot];
        known.granted = Some(known.granted.unwrap_or(0) + range.count());
        known.size = Some(range.count());
        known.since = Some((moment.monotonic, known.taken(&held(moment, slot))));
        let Some(record) = known.stored.as_ref().map(|stored| &stored.record) else { return };
        let is_near = Terms::is_near_end(record.left(), known.size.unwrap_or(1));
        let was_said = known.end_said_at.is_some_and(|at| moment.monotonic.saturating_since(at) < Self::END_EVERY);
        if is_near && !was_said {
            known.end_said_at = Some(moment.monotonic);
            self.events.push(Event::NearEnd { tag: known.tag.clone(), left: record.left() });
        }
    }

    fn found_all(&mut self, moment: &Moment<'_>, mut found: BTreeMap<Tag, Stored>) {
        for slot in 0..self.slots.len() {
            let stored = found.remove(&self.slots[slot].tag);
            self.note(moment, slot, stored);
        }
        if self.stop_by.is_some() {
            self.giving = Some((0..self.slots.len()).collect());
            return self.give_next(moment);
        }
        self.look_at = moment.monotonic.saturating_add(Terms::look_after(moment.chance));
        self.looked_under = moment.namespace.cloned();
    }

    /// Takes note of a tag's record as it was found.
    fn note(&mut self, moment: &Moment<'_>, slot: Slot, found: Option<Stored>) {
        let top = top(moment, slot);
        let known = &mut self.slots[slot];
        let Some(stored) = found else {
            if known.standing != Standing::Missing {
                self.events.push(Event::Missing(known.tag.clone()));
            }
            known.stored = None;
            return self.stand(slot, Standing::Missing);
        };
        let record = &stored.record;
        if record.next < top {
            let news = Event::RolledBack { tag: known.tag.clone(), next: record.next, known: top };
            // Said once, for as long as it stands so.
            if !std::mem::replace(&mut known.is_behind, true) {
                self.events.push(news);
            }
        } else {
            known.is_behind = false;
        }
        let standing = match record.state {
            State::Dropped => Standing::Dropped,
            State::Live if record.next.max(top).max(record.floor) > record.last => Standing::UsedUp,
            State::Live => Standing::Live,
        };
        if record.floor > known.floor {
            known.floor = record.floor;
            self.tells.push_back(slot);
        }
        known.stored = Some(stored);
        self.stand(slot, standing);
    }

    /// Sessions are told what has changed.
    fn stand(&mut self, slot: Slot, standing: Standing) {
        if std::mem::replace(&mut self.slots[slot].standing, standing) != standing && !self.tells.contains(&slot) {
            self.tells.push_back(slot);
        }
    }

    /// A write of ours was confirmed.
    fn note_stored(&mut self, write: &Write, version: Version) {
        if let Some(slot) = self.slot_of(&write.tag) {
            let record = &write.record;
            let known = &mut self.slots[slot];
            if record.floor > known.floor {
                known.floor = record.floor;
                self.tells.push_back(slot);
            }
            let standing = match record.state {
                State::Dropped => Standing::Dropped,
                State::Live => Standing::Live,
            };
            known.stored = Some(Stored { version, record: record.clone() });
            known.is_behind = false;
            self.stand(slot, standing);
        }
    }

    fn slot_of(&self, tag: &Tag) -> Option<Slot> {
        self.slots.iter().position(|known| known.tag == *tag)
    }

    /// The record of the order's tag was found.
    fn go_on_with_order(&mut self, moment: &Moment<'_>, found: Option<Stored>) {
        let Some((order, sent)) = self.order.take() else { return };
        let slot = self.slot_of(order.tag());
        if let Some(slot) = slot {
            self.note(moment, slot, found.clone());
        }
        let (tag, found) = (order.tag(), found.as_ref());
        let known = slot.map_or(0, |slot| top(moment, slot));
        let write = match (found, &sent) {
            // The answer was lost. What can be read may not be durable yet, and never be.
            (Some(stored), Some(sent)) if stored.record == *sent => {
                Ok(Write { tag: tag.clone(), expected: Some(stored.version), record: sent.clone() })
            }
            _ => match &order {
                Order::Attach(tag) => {
                    let outcome = self.attach(tag, slot, found);
                    self.events.push(Event::Answered(outcome));
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
                self.todo = Todo::WriteOrder(write);
            }
            Err(refusal) => self.events.push(Event::Answered(Err(NotDone::Refused(refusal)))),
        }
    }

    /// Gives a tag a place, if it is live.
    fn attach(&mut self, tag: &Tag, slot: Option<Slot>, found: Option<&Stored>) -> Result<Record, NotDone> {
        let stored = match found {
            None => return Err(NotDone::Refused(Refusal::Missing)),
            Some(stored) if stored.record.state == State::Dropped => return Err(NotDone::Refused(Refusal::Dropped)),
            Some(stored) => stored,
        };
        if slot.is_none() {
            if self.slots.len() >= self.capacity {
                return Err(NotDone::Full);
            }
            let floor = stored.record.floor;
            self.slots.push(Known { stored: Some(stored.clone()), floor, granted: Some(0), ..Known::new(tag.clone()) });
            self.tells.push_back(self.slots.len() - 1);
        }
        Ok(stored.record.clone())
    }

    fn finish(&mut self, outcome: Result<Record, NotDone>) {
        self.order = None;
        self.events.push(Event::Answered(outcome));
    }

    // What is left is given back.

    /// The records were read, and nothing is taken any more.
    fn give_next(&mut self, moment: &Moment<'_>) {
        while let Some(slot) = self.giving.as_mut().and_then(VecDeque::pop_front) {
            let known = &self.slots[slot];
            let write = known.stored.as_ref().and_then(|stored| give_back(&known.tag, stored, &held(moment, slot)));
            if let Some(write) = write {
                self.todo = Todo::GiveBack(slot, write);
                return;
            }
        }
        self.todo = Todo::Done;
    }

    // What goes wrong.

    /// Without a namespace, or without an order, nothing goes on.
    fn leave(&mut self) -> Next {
        if self.stop_by.is_some() {
            self.todo = Todo::Done;
            return Next::Done;
        }
        if matches!(std::mem::replace(&mut self.todo, Todo::Rest), Todo::WriteOrder(_)) {
            self.finish(Err(NotDone::Failed));
        }
        Next::Wait(Self::SHORTEST_WAIT)
    }

    fn fail(&mut self, moment: &Moment<'_>, is_unknown: bool) {
        if self.failures == 0 {
            self.failing_since = moment.monotonic;
        }
        self.failures = self.failures.saturating_add(1);
        let pause = self.terms.pauses.retry_after(self.failures, moment.chance);
        match std::mem::replace(&mut self.todo, Todo::Rest) {
            Todo::WriteOrder(_) if is_unknown && self.failures == 1 => {
                self.todo = Todo::ReadOrder;
                return;
            }
            Todo::WriteOrder(_) | Todo::ReadOrder => {
                let was_sent = self.order.as_ref().is_some_and(|(_, sent)| sent.is_some());
                let is_unknown = is_unknown || was_sent;
                self.finish(Err(if is_unknown { NotDone::Unknown } else { NotDone::Failed }));
            }
            // What may have been granted is abandoned: the next request is made from what stands then.
            Todo::Grant(slot, ..) | Todo::Restore(slot, _) if is_unknown => self.slots[slot].stored = None,
            Todo::GiveBack(..) => return self.give_next(moment),
            // It is not lost: it is in memory, and the caller does that.
            todo @ (Todo::Install(..) | Todo::Close | Todo::Done) => self.todo = todo,
            _ if self.stop_by.is_some() => self.todo = Todo::Done,
            _ => {}
        }
        if self.stop_by.is_none() {
            self.pause(moment, pause);
        }
    }

    fn pause(&mut self, moment: &Moment<'_>, length: Micros) {
        self.not_before = moment.monotonic.saturating_add(length);
    }

    /// What is held at the beginning counts as granted then.
    fn note_use(&mut self, moment: &Moment<'_>) {
        for (slot, known) in self.slots.iter_mut().enumerate() {
            let held = held(moment, slot);
            known.granted.get_or_insert(held.left());
            if known.since.is_none() && held.left() > 0 {
                (known.since, known.size) = (Some((moment.monotonic, 0)), known.size.or(Some(held.left())));
            }
        }
    }
}

/// What is held of a tag.
fn held(moment: &Moment<'_>, slot: Slot) -> Held {
    moment.held.get(slot).copied().unwrap_or_default()
}

/// The first number that this server was not granted; 0 where it was granted none.
fn top(moment: &Moment<'_>, slot: Slot) -> u64 {
    held(moment, slot).top()
}

const fn standing_of(refusal: Refusal) -> Standing {
    match refusal {
        Refusal::UsedUp { .. } | Refusal::AboveLast { .. } | Refusal::Exists => Standing::UsedUp,
        Refusal::Missing => Standing::Missing,
        Refusal::Dropped => Standing::Dropped,
    }
}
