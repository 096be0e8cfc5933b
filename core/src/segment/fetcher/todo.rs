//! What the fetcher is about to do: one of these at a time. The fetcher alone uses them; what its caller is told follows from them,
//! in [`next`](super::next).

use super::super::change::TagWrite;
use super::super::record::Range;
use super::super::steps::Slot;

#[derive(Clone, Debug)]
pub(super) enum FetchTodo {
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
