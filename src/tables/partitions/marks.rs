//! The marks of partitions, by OID: they say from which key on those of a partition are IDs of a
//! layout. [`snowflake_core::pieces::mark`] is what they look like.

use crate::postgres::open_relation::OpenRelation;
use crate::postgres::{catalog, encoding};
use pgrx::prelude::*;
use snowflake_core::Layout;
use snowflake_core::pieces::mark::Mark;
use std::ffi::CStr;
use std::ops::Range;

/// How new partitions are marked.
#[derive(Clone, Copy)]
pub struct Marking {
    layout: Layout,
    after: i64,
}

impl Marking {
    /// Those are marked that end after an ID.
    pub const fn new(layout: Layout, after: i64) -> Self {
        Self { layout, after }
    }

    /// Marks a new partition, which has these IDs.
    pub fn set(&self, partition: pg_sys::Oid, ids: &Range<i64>) {
        if ids.end > self.after {
            set_mark(partition, Some((ids.start, &self.layout)));
        }
    }
}

/// The mark of a partition.
pub fn mark(partition: pg_sys::Oid) -> Option<Mark> {
    Mark::read(&comment(partition)?)
}

fn comment(relation: pg_sys::Oid) -> Option<String> {
    // SAFETY: any OID; the result is a new string, or NULL.
    let text = unsafe {
        let text = pg_sys::GetComment(relation, pg_sys::RelationRelationId, 0);
        (!text.is_null()).then(|| CStr::from_ptr(text))
    };
    text.map(encoding::read_name)
}

/// Whether this is the mark of a partition, or that it has none.
pub fn has_mark(partition: pg_sys::Oid, wanted: Option<(i64, &Layout)>) -> bool {
    mark(partition).map(|mark| (mark.from, mark.layout)) == wanted.map(|(from, layout)| (from, *layout))
}

/// Gives a relation of the caller's a mark, or takes it away; the user's comment stays. Waits for
/// others who change it, as COMMENT ON does. Returns whether there is such a relation.
pub fn set_mark(partition: pg_sys::Oid, mark: Option<(i64, &Layout)>) -> bool {
    let lock = pg_sys::ShareUpdateExclusiveLock;
    let Some(open) = OpenRelation::open_and_keep_locked(partition, lock) else { return false };
    // Its owner may have changed before the lock was granted.
    if !catalog::owns(partition) {
        return false;
    }
    let users = Mark::users_own(comment(open.oid()).as_deref());
    let text = match mark {
        Some((from, layout)) => Some(Mark { comment: users, from, layout: *layout }.write()),
        None => users,
    };
    let text = text.map(|text| encoding::statement(&text));
    // SAFETY: the relation is locked. No text removes the comment. The next statement sees it.
    unsafe {
        let text = text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        pg_sys::CreateComments(open.oid(), pg_sys::RelationRelationId, 0, text);
        pg_sys::CommandCounterIncrement();
    }
    true
}
