//! A namespace of the registry: the servers whose workers must differ. All of them have one layout.

use crate::layout::Layout;
use crate::time::UnixMicros;
use thiserror::Error;

/// The record of a namespace. Every change of a worker's record is made under the condition that this one stands as the
/// server has read it. So no lease is stored, or renewed, in a registry that has forgotten the namespace, or has it for
/// another layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceRecord {
    /// The layout in the canonical notation.
    pub layout: String,
    /// Drawn by chance when the record is made: one that was lost and made again has another.
    pub life: u64,
    /// No new lease begins before this instant: what was granted before the registry forgot it ends there.
    pub leases_from: Option<UnixMicros>,
}

/// What a server knows of the namespace, when it finds its record or finds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Which life it has seen, in this run or an earlier one; `None`: it never saw the namespace.
    pub life: Option<u64>,
    /// Whether it has found that a record of its own was lost.
    pub is_record_lost: bool,
    /// The highest end of a grant that it has.
    pub granted_until: Option<UnixMicros>,
    /// Where all ends that may have been granted by now.
    pub over_at: UnixMicros,
}

/// The servers of the namespace have another layout.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the layout of the namespace is \"{theirs}\", and that of this server \"{ours}\"")]
pub struct OtherLayout {
    /// The layout on record, as it was found.
    pub theirs: String,
    /// The layout of this server.
    pub ours: String,
}

/// Compares a namespace's record with the layout of a server and with what it knows. Returns the record that is to be
/// stored in its place; `None` where it can stay as it is.
///
/// A server that knows the namespace, and finds no record of it, or one of another life, knows that the registry has
/// forgotten what it had stored. Then it puts on record from when on new leases are safe, unless somebody else has.
///
/// # Errors
/// Where the layouts differ: IDs of the two would repeat each other.
pub fn check_namespace(
    layout: &Layout,
    found: Option<&NamespaceRecord>,
    known: &Known,
    chance: u64,
) -> Result<Option<NamespaceRecord>, OtherLayout> {
    let ours = layout.to_string();
    let has_forgotten = known.is_record_lost || known.life.is_some_and(|life| found.is_none_or(|f| f.life != life));
    let over_at = known.granted_until.unwrap_or(known.over_at).max(known.over_at);
    let Some(found) = found else {
        let leases_from = has_forgotten.then_some(over_at);
        return Ok(Some(NamespaceRecord { layout: ours, life: chance.max(1), leases_from }));
    };
    if found.layout != ours {
        return Err(OtherLayout { theirs: found.layout.clone(), ours });
    }
    let is_covered = found.leases_from.is_some_and(|from| known.granted_until.is_none_or(|until| until <= from));
    Ok((has_forgotten && !is_covered).then(|| NamespaceRecord { leases_from: Some(over_at), ..found.clone() }))
}
