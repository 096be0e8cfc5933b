//! How safe a reservation is on synchronous standbys, and how safe a session wants it.

use crate::postgres::process::{self, names_standbys};
use pgrx::pg_sys::{SyncCommitLevel, TimestampTz};

// How safe a session wants its reservations to be: levels of `synchronous_commit`. PostgreSQL's indexes for what
// standbys have confirmed are one lower.

/// On this server alone: off or local.
pub const HERE: i64 = 0;
/// The standby has received it and written it, without a flush to disk: remote_write.
const WRITTEN: i64 = 1;
/// The standby has it on disk: on, or remote_apply. It need not have replayed it, as a standby replays all that it has
/// before it is promoted.
const FLUSHED: i64 = 2;

/// In place of a configuration: the confirmation holds whatever the configuration.
const ANY: TimestampTz = TimestampTz::MIN;

/// How safe a reservation is on synchronous standbys.
#[derive(Clone, Copy)]
pub struct Confirmed {
    /// The level of `synchronous_commit` that it has reached.
    level: i64,
    /// When the session read the configuration with which that holds.
    configuration: i64,
}

impl Confirmed {
    /// The standbys have confirmed it.
    pub const fn for_good(level: i64) -> Self {
        Self { level, configuration: ANY }
    }

    /// No standby is named, in the configuration that the session has read. A later one may name some.
    pub fn while_none_is_named(level: i64) -> Self {
        Self { level, configuration: process::configuration_read_at() }
    }

    /// From the numbers that [`Self::to_numbers`] gave.
    pub const fn from_numbers([level, configuration]: [i64; 2]) -> Self {
        Self { level, configuration }
    }

    /// As numbers, to be kept.
    pub const fn to_numbers(self) -> [i64; 2] {
        [self.level, self.configuration]
    }

    /// Whether this session may claim from the reservation: either no synchronous standbys are named, or the standbys
    /// have confirmed it at the level that the session asks for now. Reads the session's own value of
    /// `synchronous_standby_names`, which is cheap. It may be out of date; [`crate::reservation`] asks the server for each
    /// reservation.
    pub fn is_enough(self) -> bool {
        let holds = |configuration| configuration == ANY || configuration == process::configuration_read_at();
        !names_standbys() || (asked() <= self.level && holds(self.configuration))
    }

    /// Whether the session could ask for more by raising `synchronous_commit`: then each claim must check.
    pub fn may_be_exceeded(self) -> bool {
        self.level < FLUSHED && names_standbys()
    }
}

/// The level that this session's `synchronous_commit` asks for.
pub fn asked() -> i64 {
    match process::synchronous_commit() as SyncCommitLevel::Type {
        SyncCommitLevel::SYNCHRONOUS_COMMIT_OFF | SyncCommitLevel::SYNCHRONOUS_COMMIT_LOCAL_FLUSH => HERE,
        SyncCommitLevel::SYNCHRONOUS_COMMIT_REMOTE_WRITE => WRITTEN,
        _ => FLUSHED,
    }
}
