//! What the fetcher is about to do: one of these at a time. The fetcher alone uses them; what its caller is told follows from them,
//! in [`next`](super::next).

use super::super::change::TagWrite;
use super::super::record::Range;
use super::super::steps::Slot;

#[derive(Clone, Debug)]
pub(super) enum Todo {
    Rest,
    /// Read the record of the request's tag.
    ReadForRequest,
    WriteForRequest(TagWrite),
    ReadSlot(Slot),
    Grant(Slot, TagWrite, Range),
    Install(Slot, Range),
    Restore(Slot, TagWrite),
    ReadAll,
    Close,
    GiveBack(Slot, TagWrite),
    Done,
}
