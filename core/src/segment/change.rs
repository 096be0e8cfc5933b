//! What is written into a tag's record: to create it, to be granted a range, to raise it, to drop it, to give a rest
//! back. Each change is one compare-and-swap on the version that was read.

use super::held::Held;
use super::record::{Range, Sizes, State, StoredTag, Tag, TagRecord};
use crate::lease::Version;
use thiserror::Error;

/// A compare-and-swap of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TagWrite {
    /// Whose record.
    pub tag: Tag,
    /// The version that must be found; `None`: there must be no record.
    pub expected: Option<Version>,
    /// The record to be stored.
    pub record: TagRecord,
}

/// A tag as somebody wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSegment {
    /// The first number.
    pub first: u64,
    /// The last number, at most [`TagRecord::HIGHEST`].
    pub last: u64,
    /// How large ranges are.
    pub bounds: Sizes,
}

/// Why a change is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TagRefusal {
    /// The registry has no record of the tag. It is never taken for a new one: the registry may have forgotten it.
    #[error("there is no such tag")]
    Missing,
    /// The tag was dropped.
    #[error("the tag was dropped")]
    Dropped,
    /// There is a tag of that name.
    #[error("there is such a tag")]
    Exists,
    /// No number is left.
    #[error("the last number of the tag, {last}, was granted")]
    UsedUp {
        /// The last number.
        last: u64,
    },
    /// The number is above the tag's last.
    #[error("the last number of the tag is {last}")]
    AboveLast {
        /// The last number.
        last: u64,
    },
}

/// Creates a tag. One of that name that was dropped or forgotten goes on above what is known of it, and so does one of which this
/// server was granted numbers below `known`, though the registry has no record of it.
///
/// # Errors
/// [`TagRefusal::Exists`], or [`TagRefusal::UsedUp`], where all numbers of the plan were used before.
pub fn create(tag: &Tag, found: Option<&StoredTag>, plan: &NewSegment, known: u64) -> Result<TagWrite, TagRefusal> {
    if found.is_some_and(|stored| stored.record.state == State::Live) {
        return Err(TagRefusal::Exists);
    }
    let used = found.map_or(0, |stored| stored.record.next);
    let next = plan.first.max(used).max(known);
    if next > plan.last {
        return Err(TagRefusal::UsedUp { last: plan.last });
    }
    let NewSegment { first, last, bounds } = *plan;
    let record = TagRecord { next, floor: next, first, last, state: State::Live, bounds };
    Ok(write(tag, found, record))
}

/// Asks for the next `size` numbers, or as many as there are. They are granted once the write is confirmed; where it is not
/// answered, nobody uses them. `known` is the first number that this server has not been granted: it is above the record's
/// where the registry was rolled back.
///
/// # Errors
/// Where the tag is not there, or used up.
pub fn grant(tag: &Tag, found: Option<&StoredTag>, size: u64, known: u64) -> Result<(TagWrite, Range), TagRefusal> {
    let record = live(found)?;
    let first = record.next.max(known).max(record.floor);
    if first > record.last {
        return Err(TagRefusal::UsedUp { last: record.last });
    }
    let end = first.saturating_add(size.max(1)).min(record.last + 1);
    Ok((write(tag, found, TagRecord { next: end, ..record.clone() }), Range { first, end }))
}

/// Has the registry know again what it has forgotten: numbers below `known` were granted. `None` where it knows. A tag without a
/// record gets one and stays forgotten: nobody is granted numbers before somebody creates it, who then goes on above.
pub fn restore(tag: &Tag, found: Option<&StoredTag>, known: u64) -> Option<TagWrite> {
    let before = found.map_or(TagRecord::forgotten(), |stored| stored.record.clone());
    (before.next < known).then(|| write(tag, found, TagRecord { next: known, ..before }))
}

/// Has all later numbers be above this one, on every server as soon as it looks.
///
/// # Errors
/// Where the tag is not there, or has no such number.
pub fn raise(tag: &Tag, found: Option<&StoredTag>, above: u64, known: u64) -> Result<TagWrite, TagRefusal> {
    let record = live(found)?;
    if above > record.last {
        return Err(TagRefusal::AboveLast { last: record.last });
    }
    let floor = record.floor.max(above + 1);
    Ok(write(tag, found, TagRecord { next: record.next.max(known).max(floor), floor, ..record.clone() }))
}

/// Drops a tag. Its record stays, so that what was used stays known.
///
/// # Errors
/// Where the tag is not there.
pub fn drop_tag(tag: &Tag, found: Option<&StoredTag>, known: u64) -> Result<TagWrite, TagRefusal> {
    let record = live(found)?;
    let next = record.next.max(known);
    Ok(write(tag, found, TagRecord { next, floor: next, state: State::Dropped, ..record.clone() }))
}

/// Gives back what is left, where nothing was granted since: then it ends where the record's next number is. The caller has
/// closed the counter. `None` where nothing can be given back.
pub fn give_back(tag: &Tag, found: &StoredTag, held: &Held) -> Option<TagWrite> {
    let record = &found.record;
    let next = held.unused_from().max(record.floor);
    let is_on_top = record.next == held.top() && next < record.next;
    is_on_top.then(|| write(tag, Some(found), TagRecord { next, ..record.clone() }))
}

fn live(found: Option<&StoredTag>) -> Result<&TagRecord, TagRefusal> {
    match found {
        None => Err(TagRefusal::Missing),
        Some(stored) if stored.record.state == State::Forgotten => Err(TagRefusal::Missing),
        Some(stored) if stored.record.state == State::Dropped => Err(TagRefusal::Dropped),
        Some(stored) => Ok(&stored.record),
    }
}

fn write(tag: &Tag, found: Option<&StoredTag>, record: TagRecord) -> TagWrite {
    TagWrite { tag: tag.clone(), expected: found.map(|stored| stored.version), record }
}
