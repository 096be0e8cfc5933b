//! What the registry knows of the time, beside this server's clock: both are looked at once all records were read. Guards against a lease
//! that begins years ahead, and against a mark of a loss that is over before the leases of others are, or years later.

use super::super::record::WorkerNumber;
use super::super::steps::{Found, Moment};
use super::super::terms::Terms;
use crate::clock::BelievedClock;
use crate::layout::Layout;
use crate::time::{Micros, MonotonicMicros, UnixMicros};
use std::collections::BTreeMap;

/// How far leases are renewed; `None` where none is.
fn renewed(moment: &Moment, found: &Found) -> Option<UnixMicros> {
    let ends = found.records.values().map(|stored| (stored.record.granted_until, stored.record.owner.is_some()));
    // Who has given a worker back later than a lease ended shows that nobody renews that one.
    let last = ends.filter(|&(until, is_leased)| is_leased || until <= moment.now).max();
    last.filter(|&(_, is_leased)| is_leased).map(|(until, _)| until)
}

/// Who granted so far, or had the worker before, had a clock or a line that was here.
fn granted_at(terms: &Terms, until: UnixMicros) -> UnixMicros {
    until.saturating_add(Micros(-terms.window.0))
}

/// The latest time that anything shows: this server's clock, what the registry shows and is believed, and this server's highest end.
pub(super) fn latest(
    layout: &Layout,
    terms: &Terms,
    now: UnixMicros,
    (shown, granted_until): (Option<UnixMicros>, Option<UnixMicros>),
) -> UnixMicros {
    let latest = now.max(shown.unwrap_or(now)).max(granted_until.map_or(now, |until| granted_at(terms, until)));
    latest.min(layout.end()).max(layout.epoch())
}

/// The times that the registry shows: its own, and how far leases are renewed. One that is no further ahead of this server's clock than an ID
/// may be is believed at once: it makes others wait for little longer. One beyond that is believed when it has gone on for a minute as time
/// does. The end of a lease that nobody renews stands still, and a registry that was booted with a wrong clock is set right.
#[derive(Clone, Debug, Default)]
pub(super) struct TimesShown {
    /// Those that are so far ahead, as they were seen first; `None`: the registry's own.
    far: BTreeMap<Option<WorkerNumber>, Sight>,
}

/// A time that was shown, and when.
#[derive(Clone, Copy, Debug)]
struct Sight {
    shown: UnixMicros,
    at: MonotonicMicros,
}

impl TimesShown {
    /// The latest one that is believed; and by how much one is ahead that is to be looked at again. With `must_know`, there is no time for that.
    /// Then it is believed, but for that of a lease which was not renewed: a mark that is too late makes others wait, and one that is too early
    /// lets them repeat IDs.
    pub fn look(
        &mut self,
        moment: &Moment,
        found: &Found,
        terms: &Terms,
        must_know: bool,
    ) -> (Option<UnixMicros>, Option<Micros>) {
        let leased = found.records.iter().filter(|(_, stored)| stored.record.owner.is_some());
        let leases = leased.map(|(worker, stored)| (Some(*worker), granted_at(terms, stored.record.granted_until)));
        let before = std::mem::take(&mut self.far);
        let (mut believed, mut in_doubt) = (None, None);
        for (source, shown) in leases.chain(found.time.map(|time| (None, time))) {
            let ahead = shown.saturating_since(moment.now);
            if ahead <= terms.max_lead.max(terms.max_jump) {
                believed = believed.max(Some(shown));
                continue;
            }
            let now = Sight { shown, at: moment.monotonic };
            let first = before.get(&source).copied().filter(|first| !first.leaps_to(&now, terms)).unwrap_or(now);
            self.far.insert(source, first);
            match first.goes_on_to(&now, terms) {
                Some(true) => believed = believed.max(Some(shown)),
                None if must_know && (source.is_none() || first.until(&now).1 > Micros(0)) => {
                    believed = believed.max(Some(shown));
                }
                None if !must_know => in_doubt = in_doubt.max(Some(ahead)),
                Some(false) | None => {}
            }
        }
        (believed, in_doubt)
    }
}

impl Sight {
    /// How much later another one was seen, and by how much more is shown then.
    fn until(&self, other: &Self) -> (Micros, Micros) {
        (other.at.saturating_since(self.at), other.shown.saturating_since(self.shown))
    }

    /// Whether it has leapt meanwhile. Renewals come in steps.
    fn leaps_to(&self, other: &Self, terms: &Terms) -> bool {
        let (length, by) = self.until(other);
        by > length + length + terms.window
    }

    /// Whether it has gone on as time does; `None` while that cannot be told yet. A lease that is renewed is so within half a window.
    fn goes_on_to(&self, other: &Self, terms: &Terms) -> Option<bool> {
        let (length, by) = self.until(other);
        (length >= BelievedClock::LASTING.max(terms.standstill())).then_some(by >= length / 2)
    }
}

/// Whether the clock is believed before the first lease of a run, when there is nothing on this server to compare it with.
#[derive(Clone, Debug, Default)]
pub(super) struct ClockAtStart {
    /// Since when the clock is ahead of what the registry knows.
    ahead_since: Option<MonotonicMicros>,
    /// Whether it is believed now.
    is_believed: bool,
}

impl ClockAtStart {
    /// By how much the clock is ahead of what the registry knows, while that is not believed. What the registry knows is its
    /// own time, or that leases are renewed. A clock that stays ahead for a minute is believed, as is one that leaps while the
    /// server runs.
    pub fn ahead(&mut self, moment: &Moment, found: &Found, max_jump: Micros) -> Option<Micros> {
        if self.is_believed || moment.seen.end.is_some() {
            return None;
        }
        let ahead = moment.now.saturating_since(found.time.or(renewed(moment, found)).unwrap_or(moment.now));
        if ahead <= max_jump {
            self.ahead_since = None;
            return None;
        }
        let since = *self.ahead_since.get_or_insert(moment.monotonic);
        self.is_believed = moment.monotonic.saturating_since(since) >= BelievedClock::LASTING;
        (!self.is_believed).then_some(ahead)
    }
}
