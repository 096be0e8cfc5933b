//! What keeps a server from numbers of segments.

use super::record::Tag;

/// Why a server is not granted numbers; of one tag, where there are several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The last request failed; whoever has sent it knows why.
    Failing,
    /// The registry does not know the tag any more.
    Missing(Tag),
    /// All numbers of the tag were granted.
    UsedUp(Tag),
    /// There was no place for this tag.
    Full(Tag),
    /// Servers collide on the tag.
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
}
