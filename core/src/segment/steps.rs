//! What the [`Fetcher`](super::Fetcher) is asked, says and is told.

use super::change::{NewSegment, TagRefusal, TagWrite};
use super::held::Held;
use super::record::{Range, StoredTag, Tag, TagRecord};
use crate::lease::{NamespaceRecord, Version};
use crate::time::{Micros, MonotonicMicros};
use std::collections::BTreeMap;

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
pub enum TagStanding {
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
        standing: TagStanding,
        /// No number below this one may be taken.
        floor: u64,
    },
    /// Read the records of all tags.
    ReadAll,
    /// Read the record of a tag.
    Read(Tag),
    /// Store a record, if the version is as expected, and the namespace's record is this.
    Write(TagWrite, NamespaceRecord),
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
    All(BTreeMap<Tag, StoredTag>),
    /// The tag's record, if there is one.
    One(Option<StoredTag>),
    /// The record was stored, and this is its version.
    Stored(Version),
    /// Another version was found: this one. Nothing was stored.
    Conflict(Option<StoredTag>),
    /// The namespace's record is another one than was expected. Nothing was stored.
    OtherNamespace,
    /// The range was installed.
    Installed,
    /// No session takes numbers any more.
    Closed,
}

/// What somebody wants done with a tag, and waits for: its record is read, and written where it is to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Numbers of the tag are wanted: it is looked for, and gets a place.
    Attach(Tag),
    /// [`create`](super::create).
    Create(Tag, NewSegment),
    /// [`raise`](super::raise).
    Raise(Tag, u64),
    /// [`drop_tag`](super::drop_tag).
    Drop(Tag),
}

impl Request {
    /// The tag.
    pub const fn tag(&self) -> &Tag {
        match self {
            Self::Attach(tag) | Self::Create(tag, _) | Self::Raise(tag, _) | Self::Drop(tag) => tag,
        }
    }
}

/// Why a request was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// By the record.
    Refused(TagRefusal),
    /// There is no place for another tag.
    Full,
    /// The registry does not answer, or has no namespace for this server.
    Failed,
    /// The registry did not answer. Whether it was carried out is not known.
    Unknown,
}

/// What people may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagEvent {
    /// The request was carried out, and the record is this; or not.
    Answered(Result<TagRecord, NotDone>),
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
    /// Servers ask for ranges of the tag all the time, and collide, as its largest range is too small. At most once a minute.
    TooSmall {
        /// The tag.
        tag: Tag,
        /// So many conflicts there were since this server began to use it.
        conflicts: u64,
        /// The largest range now.
        largest: u64,
        /// One that is large enough.
        enough: u64,
    },
    /// What was left was given back: the next number is this.
    GivenBack {
        /// The tag.
        tag: Tag,
        /// The next number.
        next: u64,
    },
}
