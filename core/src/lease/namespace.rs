//! A namespace of the registry: the servers whose workers must differ. All of them have one layout.

use crate::layout::Layout;
use crate::time::UnixMicros;
use thiserror::Error;

/// The record of a namespace. Every change of a worker's record is made under the condition that this one stands as the
/// server has read it. So no lease is stored, or renewed, in a registry that has forgotten the namespace, or has it for
/// another layout.
#[derive(Clone, Debug, Default)]
pub struct NamespaceRecord {
    /// The layout in the canonical notation.
    pub layout: String,
    /// Drawn by chance when the record is made: one that was lost and made again has another.
    pub life: u64,
    /// No new lease begins before this instant: what was granted before the registry forgot it ends there.
    pub leases_from: Option<UnixMicros>,
    /// Of which registry this was last confirmed: its identity, as words `name=value`. `None` in records of versions that
    /// stored none, and where the registry had none to show.
    pub registry: Option<String>,
    /// The identity of the registry in which the record was found, as far as it is shown to this server. It is read with the
    /// record, and not stored.
    pub here: Option<String>,
}

/// Two are the same where the same is stored.
impl PartialEq for NamespaceRecord {
    fn eq(&self, other: &Self) -> bool {
        let stored = |of: &Self| (of.life, of.leases_from);
        stored(self) == stored(other) && (&self.layout, &self.registry) == (&other.layout, &other.registry)
    }
}

impl Eq for NamespaceRecord {}

impl NamespaceRecord {
    /// Whether the registry was restored, rebuilt or failed over since the record was confirmed. So it may have lost what
    /// it had stored since.
    pub fn is_elsewhere(&self) -> bool {
        parts(&self.registry).any(|(name, confirmed)| value(&self.here, name).is_some_and(|here| here != confirmed))
    }

    /// Whether a registry that shows this identity may be another one than that in which the record was found.
    pub fn is_not(&self, here: Option<&str>) -> bool {
        self.here.is_some() && self.here.as_deref() != here
    }

    /// The identity by which the record is confirmed in the registry in which it was found. What others see of it, and this
    /// server does not, stays: servers whose rights differ would take turns at it.
    fn confirmed(&self) -> Option<String> {
        let unseen =
            parts(&self.registry).filter(|(name, _)| !self.is_elsewhere() && value(&self.here, name).is_none());
        let all = parts(&self.here).chain(unseen);
        let words: Vec<String> = all.map(|(name, value)| format!("{name}={value}")).collect();
        (!words.is_empty()).then(|| words.join(" "))
    }
}

fn parts(identity: &Option<String>) -> impl Iterator<Item = (&str, &str)> {
    identity.iter().flat_map(|text| text.split(' ')).filter_map(|word| word.split_once('='))
}

fn value<'a>(identity: &'a Option<String>, name: &str) -> Option<&'a str> {
    parts(identity).find(|(other, _)| *other == name).map(|(_, value)| value)
}

/// What a server knows of the namespace, when it finds its record or finds none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Which life it has seen, in this run or an earlier one; `None`: it never saw the namespace.
    pub life: Option<u64>,
    /// From when on new leases were safe by that record, when it last worked under it in this run.
    pub noted: Option<UnixMicros>,
    /// Whether it has found that a record of its own was lost.
    pub is_record_lost: bool,
    /// The highest end of a grant that it has.
    pub granted_until: Option<UnixMicros>,
    /// The latest time that anything shows: a server's own clock may be slow.
    pub now: UnixMicros,
    /// Where all ends that may have been granted by then.
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

impl Known {
    /// A server that knows nothing of the namespace, or takes the registry at its word.
    pub const NOTHING: Self = Self {
        life: None,
        noted: None,
        is_record_lost: false,
        granted_until: None,
        now: UnixMicros(0),
        over_at: UnixMicros(0),
    };
}

/// Whether the registry may have forgotten what it had stored, by what was found and by what a server knows. Then the server finds out what
/// time it is before it puts that on record.
pub fn may_have_forgotten(found: Option<&NamespaceRecord>, known: &Known) -> bool {
    has_forgotten(found, known) || found.is_some_and(NamespaceRecord::is_elsewhere)
}

fn has_forgotten(found: Option<&NamespaceRecord>, known: &Known) -> bool {
    let is_other = |life| found.is_none_or(|found| found.life != life);
    known.is_record_lost || known.life.is_some_and(is_other) || found.is_some_and(|found| has_gone_back(found, known))
}

/// Whether the mark is lower than the one that the server knows of the same life, or gone: nobody lowers it, so the record is an older one.
fn has_gone_back(found: &NamespaceRecord, known: &Known) -> bool {
    known.life == Some(found.life) && found.leases_from < known.noted
}

/// Whether what is on record covers the loss that a server knows of. A mark that is still to come does. One that is over may be older than
/// the loss: a registry that was rolled back shows the mark of a life before the one that the server knows. In that life, it is of this loss
/// where the server had not seen it before: a rollback that took the server's record would have taken an older mark, too. One that has gone
/// back never does: it is from before the loss.
fn covers(found: &NamespaceRecord, known: &Known) -> bool {
    found.leases_from.is_some_and(|from| {
        let is_of_this_loss = from > known.now || known.life == Some(found.life) && known.noted != Some(from);
        is_of_this_loss && !has_gone_back(found, known) && known.granted_until.is_none_or(|until| until <= from)
    })
}

/// Compares a namespace's record with the layout of a server and with what it knows. Returns the record that is to be
/// stored in its place; `None` where it can stay as it is.
///
/// A server that knows the namespace, and finds no record of it, one of another life, or one from before a mark that it knows,
/// knows that the registry has forgotten what it had stored. Any server, also one that knows nothing, knows that it may have,
/// where the record was confirmed of a registry with another identity. Then it puts on record from when on new leases are
/// safe, unless somebody else has; and the identity that the registry has now.
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
    let has_forgotten = has_forgotten(found, known);
    // A server that takes the registry at its word knows of no end.
    let over_at = Some(known.granted_until.unwrap_or(known.over_at).max(known.over_at)).filter(|end| end.0 > 0);
    let Some(found) = found else {
        let leases_from = over_at.filter(|_| has_forgotten);
        let new = NamespaceRecord { layout: ours, life: chance.max(1), leases_from, ..NamespaceRecord::default() };
        return Ok(Some(new));
    };
    if found.layout != ours {
        return Err(OtherLayout { theirs: found.layout.clone(), ours });
    }
    let is_news = found.is_elsewhere() || has_forgotten && !covers(found, known);
    // What is on record already stays, where it is later, and so does what was.
    let noted = known.noted.filter(|_| has_gone_back(found, known));
    // Never the mark on record itself: an operator who has overruled that one knew nothing of this loss.
    let other = found.leases_from.filter(|_| over_at.is_some()).map(|from| UnixMicros(from.0.saturating_add(1)));
    let leases_from = if is_news { found.leases_from.max(over_at).max(noted).max(other) } else { found.leases_from };
    let is_confirmed = parts(&found.here).all(|(name, here)| value(&found.registry, name) == Some(here));
    let registry = if is_confirmed { found.registry.clone() } else { found.confirmed() };
    let record = NamespaceRecord { leases_from, registry, ..found.clone() };
    Ok((record != *found).then_some(record))
}
