//! The rules of the core, each of which can be broken by itself.

use super::state::{Held, Range, Request, TagRecord, TagState};
use snowflake_core::lease::Version;
use snowflake_core::segment::{self, NewSegment, Sizes, Tag};

/// A rule that is broken; the number is that of the rule in `snowflake_core::segment`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// 1: nothing is compared.
    NotCompared,
    /// 1: the next number is compared, not the version.
    NextCompared,
    /// 1: versions come again after a failover.
    VersionsAgain,
    /// 2: a range is used before it is confirmed.
    UsedBeforeStored,
    /// 2: what is read back after an answer was lost counts as confirmed.
    ReadCounts,
    /// 2: the answer to a request that was given up counts for the next one.
    AnswerOfAnother,
    /// 3: the end of a range is put in place before its start.
    EndFirst,
    /// 5: ranges survive a crash, as if they were on disk.
    Persisted,
    /// 6: what is left is given back while sessions take numbers.
    NotClosed,
    /// 6: it is given back whatever was granted since.
    GivenBackAnyway,
    /// 6: with what lies between two ranges.
    GapGivenBack,
    /// 7: a tag without a record begins anew.
    BegunAnew,
    /// 8: a server takes what the registry says for all that was granted.
    NotRestored,
    /// 9: a tag that is dropped is forgotten.
    DropForgets,
    /// 10: the namespace's record is not expected.
    NamespaceUnchecked,
}

/// The first number of each tag.
pub const FIRST: u8 = 1;

#[derive(Clone, Debug)]
pub struct Rules {
    pub broken: Option<Break>,
    /// The last number of each tag.
    pub last: u8,
    tag: Tag,
}

fn wide(range: Range) -> segment::Range {
    segment::Range { first: range.first.into(), end: range.end.into() }
}

fn narrow(number: u64) -> u8 {
    u8::try_from(number).expect("a small number")
}

fn range(range: segment::Range) -> Range {
    Range { first: narrow(range.first), end: narrow(range.end) }
}

impl Held {
    pub fn of_core(&self) -> segment::Held {
        segment::Held { current: wide(self.current), after: self.after.map(wide) }
    }

    fn top(&self) -> u64 {
        self.of_core().top()
    }
}

impl Rules {
    pub fn new(last: u8) -> Self {
        Self { broken: None, last, tag: Tag::new("t").expect("a tag") }
    }

    /// These, but for one.
    pub fn breaking(&self, rule: Break) -> Self {
        Self { broken: Some(rule), ..self.clone() }
    }

    pub fn is_broken(&self, rule: Break) -> bool {
        self.broken == Some(rule)
    }

    fn plan(&self, first: u8) -> NewSegment {
        let last = self.last.into();
        NewSegment { first: first.into(), last, bounds: Sizes { smallest: 1, largest: 2 } }
    }

    fn stored(&self, record: TagRecord) -> Option<segment::StoredTag> {
        let state = match record.state {
            TagState::Live => segment::State::Live,
            TagState::Dropped => segment::State::Dropped,
            TagState::Forgotten => segment::State::Forgotten,
        };
        let NewSegment { last, bounds, .. } = self.plan(FIRST);
        let first = FIRST.into();
        let floor = if record.state == TagState::Forgotten { 0 } else { first };
        let core = segment::TagRecord { next: record.next.into(), floor, first, last, state, bounds };
        (record.version > 0).then(|| segment::StoredTag { version: Version(record.version.into()), record: core })
    }

    fn request(write: &segment::TagWrite, expected: TagRecord) -> Request {
        assert_eq!(write.expected.map_or(0, |version| version.0), u64::from(expected.version));
        let state = match write.record.state {
            segment::State::Live => TagState::Live,
            segment::State::Dropped => TagState::Dropped,
            segment::State::Forgotten => TagState::Forgotten,
        };
        let new = TagRecord { version: 0, next: narrow(write.record.next), state };
        Request { expected, new, ..Request::default() }
    }

    /// Asks for so many numbers.
    pub fn grant(&self, record: TagRecord, size: u8, held: &Held) -> Option<Request> {
        if record.version == 0 && self.is_broken(Break::BegunAnew) {
            let new = TagRecord { version: 0, next: FIRST + size, state: TagState::Live };
            let range = Range { first: FIRST, end: FIRST + size };
            return Some(Request { expected: record, new, range, ..Request::default() });
        }
        let known = if self.is_broken(Break::NotRestored) { 0 } else { held.top() };
        let found = self.stored(record);
        let (write, granted) = segment::grant(&self.tag, found.as_ref(), size.into(), known).ok()?;
        Some(Request { range: range(granted), ..Self::request(&write, record) })
    }

    /// Tells the registry what it has forgotten.
    pub fn restore(&self, record: TagRecord, held: &Held) -> Option<Request> {
        if self.is_broken(Break::NotRestored) {
            return None;
        }
        let found = self.stored(record);
        segment::restore(&self.tag, found.as_ref(), held.top()).map(|write| Self::request(&write, record))
    }

    /// Creates a tag.
    pub fn create(&self, record: TagRecord, first: u8, held: &Held) -> Option<Request> {
        let found = self.stored(record);
        let write = segment::create(&self.tag, found.as_ref(), &self.plan(first), held.top()).ok()?;
        Some(Self::request(&write, record))
    }

    /// Drops a tag.
    pub fn drop_tag(&self, record: TagRecord, held: &Held) -> Option<Request> {
        let write = segment::drop_tag(&self.tag, self.stored(record).as_ref(), held.top()).ok()?;
        let request = Self::request(&write, record);
        let forgotten = TagRecord { next: FIRST, ..request.new };
        Some(if self.is_broken(Break::DropForgets) { Request { new: forgotten, ..request } } else { request })
    }

    /// Gives back what is left.
    pub fn give_back(&self, record: TagRecord, held: &Held) -> Option<Request> {
        let found = self.stored(record)?;
        let core = held.of_core();
        if self.is_broken(Break::GivenBackAnyway) || self.is_broken(Break::GapGivenBack) {
            let is_anyway = self.is_broken(Break::GivenBackAnyway);
            let next = if is_anyway { core.unused_from() } else { core.current.first };
            let is_given = next < u64::from(record.next) && (is_anyway || core.top() == u64::from(record.next));
            let new = TagRecord { version: 0, next: narrow(next), ..record };
            return is_given.then(|| Request { expected: record, new, ..Request::default() });
        }
        segment::give_back(&self.tag, &found, &core).map(|write| Self::request(&write, record))
    }

    /// Whether a request finds what it expects.
    pub fn is_expected(&self, request: &Request, record: TagRecord, life: u8) -> bool {
        if request.life != life && !self.is_broken(Break::NamespaceUnchecked) {
            return false;
        }
        match self.broken {
            Some(Break::NotCompared) => (request.expected.version == 0) == (record.version == 0),
            Some(Break::NextCompared) => {
                (request.expected.version == 0, request.expected.next, request.expected.state)
                    == (record.version == 0, record.next, record.state)
            }
            _ => request.expected.version == record.version,
        }
    }
}
