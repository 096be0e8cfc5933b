//! Under which name a registry of keys and values has what a server holds of a tag: the number of its worker, and the tag. The clients of
//! etcd and Redis read it here, so that neither takes for a holder what the other would not.

use snowflake_core::lease::WorkerNumber;
use snowflake_core::segment::{Holding, Tag};

/// The holder of these names; `None` where no client has written them so.
pub(crate) fn holder(worker: &str, tag: &str) -> Option<(Tag, WorkerNumber)> {
    let number = worker.parse().ok().filter(|number: &u64| number.to_string() == worker)?;
    Some((Tag::new(tag).ok()?, WorkerNumber(number)))
}

/// By tag, and then by worker.
pub(crate) fn sorted(mut holdings: Vec<(Tag, WorkerNumber, Holding)>) -> Vec<(Tag, WorkerNumber, Holding)> {
    holdings.sort_unstable_by(|(one, w, _), (other, v, _)| (one, w).cmp(&(other, v)));
    holdings
}
