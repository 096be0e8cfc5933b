//! What must be so in every state, and what must be reached at least once: a check in which nothing was claimed after a crash says
//! nothing about crashes.

use super::super::state::*;
use super::{REPEATED, World};
use stateright::Property;

impl World {
    pub(super) fn expected(&self) -> Vec<Property<Self>> {
        fn claimed(state: &State, born: Born) -> bool {
            let is_so = |watched: Watched| state.servers.iter().any(|s| s.born == born && s.token == watched.by);
            state.watched.is_some_and(is_so)
        }
        /// The record of the worker whose ID is watched, where that is still the one under which it was claimed.
        fn claimed_of(state: &State) -> Option<Record> {
            let watched = state.watched?;
            Some(state.registry[watched.worker as usize]).filter(|record| record.owner == watched.by)
        }
        fn is_claimed_above_another(state: &State) -> bool {
            claimed_of(state).is_some_and(|record| record.from > 0)
        }
        fn is_opened_again(state: &State) -> bool {
            let by = state.watched.map(|watched| watched.by);
            let is_so = |s: &Server| s.closed.is_none() && by == Some(s.token);
            state.left.closings == 0 && state.servers.iter().any(is_so) && is_claimed_above_another(state)
        }
        let mut properties = vec![
            Property::always(REPEATED, |_, state: &State| !state.is_claimed_twice),
            Property::sometimes("claimed after a take-over", |_, state| is_claimed_above_another(state)),
        ];
        let budget = &self.budget;
        if budget.crashes + budget.session_crashes > 0 {
            properties.push(Property::sometimes("claimed after a crash", |_, s| claimed(s, Born::AfterCrash)));
        }
        if budget.stops > 0 {
            properties.push(Property::sometimes("claimed after a stop", |_, s| claimed(s, Born::AfterStop)));
        }
        if budget.copies + budget.forks > 0 {
            properties.push(Property::sometimes("claimed by a copy", |_, s| claimed(s, Born::Copied)));
        }
        if budget.closings > 0 {
            properties.push(Property::sometimes("claimed after a line was closed", |_, s| is_opened_again(s)));
        }
        if budget.hand_backs > 0 {
            properties.push(Property::sometimes("claimed after a hand-back", |_, state: &State| {
                state.left.hand_backs == 0 && is_claimed_above_another(state)
            }));
        }
        if self.remembers && self.is_known && budget.wipes > 0 {
            properties.push(Property::sometimes("claimed by a new lease after a loss", |_, state: &State| {
                let from = state.namespace.leases_from;
                from > 0 && claimed_of(state).is_some_and(|record| record.from >= from)
            }));
            properties.push(Property::sometimes("claimed by a lease that was stored again", |_, state: &State| {
                let from = state.namespace.leases_from;
                claimed_of(state).is_some_and(|record| record.from < from && record.until > from)
            }));
        }
        if budget.failovers > 0 {
            properties.push(Property::sometimes("claimed after a failover", |_, state: &State| {
                state.left.failovers == 0 && is_claimed_above_another(state)
            }));
        }
        if budget.rewinds > 0 {
            properties.push(Property::sometimes("claimed after a rewind", |_, state: &State| {
                state.left.rewinds == 0 && state.watched.is_some()
            }));
        }
        properties
    }
}
