//! How far ahead a grant reaches, and when to talk to the registry next.

use crate::time::Micros;

/// The settings about leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How far a grant reaches ahead of the clock, or of the line where that is ahead. Positive.
    pub window: Micros,
    /// How far ahead of the clock a worker's old grant may end for this server to start above it.
    pub max_lead: Micros,
    /// How far ahead of what the registry knows a clock may be at the start to be believed at once.
    pub max_jump: Micros,
}

impl Terms {
    /// The longest pause between two attempts while the registry does not answer, whatever the window.
    pub const LONGEST_RETRY: Micros = Micros::from_secs(5);

    /// The longest pause between two looks for a worker while all are taken, whatever the window.
    pub const LONGEST_LOOK: Micros = Micros::from_secs(10);

    /// No two requests of a server that tries again follow each other faster than half of this.
    pub const SHORTEST_RETRY: Micros = Micros::from_millis(100);

    /// How long after a grant was stored it is renewed: a third of the window, less up to 20 % by chance, so that
    /// servers that were started together do not renew together for ever.
    pub fn renew_after(&self, chance: u64) -> Micros {
        less_by_chance(self.window / 3, 5, chance)
    }

    /// How long to wait after so many failures in a row (at least 1): from [`Self::SHORTEST_RETRY`], twice as long each
    /// time, up to a twelfth of the window or [`Self::LONGEST_RETRY`], whichever is shorter; and of that up to half
    /// less by chance.
    pub fn retry_after(&self, failures: u32, chance: u64) -> Micros {
        let longest = (self.window / 12).min(Self::LONGEST_RETRY).max(Self::SHORTEST_RETRY);
        let doubled = Micros(Self::SHORTEST_RETRY.0 << failures.saturating_sub(1).min(16));
        less_by_chance(doubled.min(longest), 2, chance)
    }

    /// How long to wait after somebody else was faster, so many times in a row (at least 1): some milliseconds at
    /// first, up to a second.
    pub fn contend_after(&self, conflicts: u32, chance: u64) -> Micros {
        less_by_chance(Micros(4_000 << conflicts.saturating_sub(1).min(8)), 1, chance)
    }

    /// How long to wait before looking for a worker again, where there was none: a sixth of the window or
    /// [`Self::LONGEST_LOOK`], whichever is shorter, less up to half by chance.
    pub fn look_after(&self, chance: u64) -> Micros {
        let longest = (self.window / 6).min(Self::LONGEST_LOOK).max(Self::SHORTEST_RETRY);
        less_by_chance(longest, 2, chance)
    }

    /// How long a call about something else may take, while nothing is to be done about the lease for so long: half of that, as a
    /// request may take two calls. So no renewal waits for another request. `None` where there is no time for one.
    pub fn spare(until_next: Micros) -> Option<Micros> {
        Some(until_next / 2).filter(|spare| *spare >= Self::SHORTEST_RETRY)
    }

    /// How long a record must not have changed before its server counts as gone: half the window. A server that lives
    /// renews after a third.
    pub fn standstill(&self) -> Micros {
        self.window / 2
    }

    /// Whether there is so little left of a grant that it is renewed before its time. A renewal in time leaves two
    /// thirds.
    pub fn is_short(&self, left: Micros) -> bool {
        left < self.window / 2
    }

    /// Whether a grant ends so soon that no time may be lost between two attempts to renew it.
    pub fn is_urgent(&self, left: Micros) -> bool {
        left > Micros(0) && left < self.window / 4
    }

    /// The longest pause between two attempts then.
    pub fn retry_urgently(&self) -> Micros {
        (self.window / 60).max(Self::SHORTEST_RETRY)
    }

    /// Whether a server that takes its own worker over after a crash can find itself further ahead of the clock than
    /// it may make IDs. Worth a warning at the start.
    pub fn leads_too_far(&self) -> bool {
        self.window > self.max_lead
    }
}

/// Less by up to one part in so many.
fn less_by_chance(length: Micros, part: i64, chance: u64) -> Micros {
    let most = (length.0 / part).unsigned_abs();
    Micros(length.0 - (chance % (most + 1)) as i64)
}
