//! Whether the clock is believed before the first lease of a run, when there is nothing on this server to compare it with.
//! Guards against a lease that begins years ahead. Called once all records were read.

use super::super::steps::{Found, Moment};
use crate::clock::BelievedClock;
use crate::time::{Micros, MonotonicMicros};

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
        let ends = found.records.values().map(|stored| (stored.record.granted_until, stored.record.owner.is_some()));
        // Who has given a worker back later than a lease ended shows that nobody renews that one.
        let last = ends.filter(|&(until, is_leased)| is_leased || until <= moment.now).max();
        let renewed = last.filter(|&(_, is_leased)| is_leased).map(|(until, _)| until);
        let ahead = moment.now.saturating_since(found.time.or(renewed).unwrap_or(moment.now));
        if ahead <= max_jump {
            self.ahead_since = None;
            return None;
        }
        let since = *self.ahead_since.get_or_insert(moment.monotonic);
        self.is_believed = moment.monotonic.saturating_since(since) >= BelievedClock::LASTING;
        (!self.is_believed).then_some(ahead)
    }
}
