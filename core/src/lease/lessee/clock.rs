//! What the registry knows of the time, beside this server's clock: both are looked at once all records were read. Guards against a lease
//! that begins years ahead, and against a mark of a loss that is over before the leases of others are, or years later.

use super::super::steps::{Found, Moment};
use super::super::terms::Terms;
use crate::clock::BelievedClock;
use crate::layout::Layout;
use crate::time::{Micros, MonotonicMicros, UnixMicros};

/// How far leases are renewed; `None` where none is.
fn renewed(moment: &Moment, found: &Found) -> Option<UnixMicros> {
    let ends = found.records.values().map(|stored| (stored.record.granted_until, stored.record.owner.is_some()));
    // Who has given a worker back later than a lease ended shows that nobody renews that one.
    let last = ends.filter(|&(until, is_leased)| is_leased || until <= moment.now).max();
    last.filter(|&(_, is_leased)| is_leased).map(|(until, _)| until)
}

/// The latest time that anything shows: this server's clock, that of the registry, or how far its leases are renewed where it has none; and
/// this server's highest end. Who granted that, or had the worker before, had a clock or a line that was there, less a window.
pub(super) fn latest(
    layout: &Layout,
    terms: &Terms,
    moment: &Moment,
    (found, granted_until): (Option<&Found>, Option<UnixMicros>),
) -> UnixMicros {
    let granted_at = |until: UnixMicros| until.saturating_add(Micros(-terms.window.0));
    let shown = found.and_then(|found| found.time.or_else(|| renewed(moment, found).map(granted_at)));
    let latest = moment.now.max(shown.unwrap_or(moment.now)).max(granted_until.map_or(moment.now, granted_at));
    latest.min(layout.end()).max(layout.epoch())
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
