//! What this server knows of its namespace, and how far it takes the registry at its word. Guards what was granted against a
//! registry that has forgotten it: rule 14 of [`lease`](super::super).

use super::super::namespace::NamespaceRecord;
use crate::time::UnixMicros;

#[derive(Clone, Debug, Default)]
pub(super) struct Knowledge {
    /// The namespace's record, as it was last found good.
    pub record: Option<NamespaceRecord>,
    /// Whether that was since the last failure.
    pub is_checked: bool,
    /// Which life of the namespace this server has noted.
    pub life: Option<u64>,
    /// From when on leases were safe by the namespace's record, when this server last worked under it.
    pub worked_under: Option<UnixMicros>,
    /// Whether a record of this run's was lost, and nothing was done about it yet.
    pub is_record_lost: bool,
    /// The latest time that anything showed, where all records were read as the registry may have forgotten, until that is dealt with.
    pub latest: Option<UnixMicros>,
    /// Whether they could not be read then.
    pub has_failed_to_survey: bool,
    pub trust: Trust,
}

impl Knowledge {
    /// Before when the namespace's record allows no new lease.
    fn noted(&self) -> Option<UnixMicros> {
        self.record.as_ref()?.leases_from
    }

    /// Before when no new lease begins.
    pub fn leases_from(&self) -> Option<UnixMicros> {
        self.noted().filter(|from| !self.trust.is_given && self.trust.overruled != Some(*from))
    }

    /// Whether nothing is to be done about a loss of what was granted up to then.
    pub fn has_noted_loss(&self, end: UnixMicros) -> bool {
        self.trust.is_given || self.leases_from().is_some_and(|from| from >= end)
    }

    /// A lease was confirmed: it uses up what was said of the registry.
    pub fn use_up_trust(&mut self) {
        if std::mem::take(&mut self.trust.is_given) {
            self.trust.overruled = self.noted();
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Trust {
    /// Whether the registry is taken at its word, also where it has forgotten.
    pub is_given: bool,
    /// Whether the settings say so. One lease uses that up, as they may say so for ever.
    is_told: bool,
    /// From when on new leases are safe by the namespace's record, where the registry was taken at its word in spite of that. Until it
    /// forgets again.
    pub overruled: Option<UnixMicros>,
}

impl Trust {
    /// What the settings say now. Returns whether that is news.
    pub fn set(&mut self, trusts: bool) -> bool {
        let is_news = trusts != self.is_told;
        if is_news {
            (self.is_given, self.is_told) = (trusts, trusts);
        }
        is_news
    }
}
