//! A namespace of the registry: the servers whose workers must differ. All of them have one layout.

use crate::layout::Layout;
use thiserror::Error;

/// The servers of the namespace have another layout.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the layout of the namespace is \"{theirs}\", and that of this server \"{ours}\"")]
pub struct OtherLayout {
    /// The layout on record, as it was found.
    pub theirs: String,
    /// The layout of this server.
    pub ours: String,
}

/// What the namespace's record holds: the layout in the canonical notation.
pub fn namespace_record(layout: &Layout) -> String {
    layout.to_string()
}

/// Compares the layout with the one on record.
///
/// # Errors
/// Where they differ: IDs of the two would repeat each other.
pub fn check_namespace(layout: &Layout, found: &str) -> Result<(), OtherLayout> {
    let ours = namespace_record(layout);
    if found == ours { Ok(()) } else { Err(OtherLayout { theirs: found.to_owned(), ours }) }
}
