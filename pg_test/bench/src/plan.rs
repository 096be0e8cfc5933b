//! How much is measured.

use std::time::Duration;

/// The sizes of a run.
pub struct Plan {
    /// Whether this is the short run, whose figures are rough.
    pub quick: bool,
    /// Rounds of measures that take a fraction of a second.
    pub short_rounds: usize,
    /// Rounds of measures that take seconds.
    pub long_rounds: usize,
    /// Rounds where contenders differ little.
    pub mixed_rounds: usize,
    /// For about how long a single expression is called.
    pub calls: Duration,
    /// How many seconds a load of pgbench lasts.
    pub load: u32,
    /// Numbers of clients.
    pub clients: &'static [usize],
    /// Numbers of sessions where each has a core of its own; 1 and 2 are always measured, others where there are so many cores.
    pub sessions: &'static [usize],
    /// How long such sessions work.
    pub spell: Duration,
    /// How many IDs a batch has.
    pub batch: u32,
    /// How many seconds the IDs last that are made where the layout is the limit.
    pub sustained: u32,
    /// Rows that one INSERT makes.
    pub inserted: u32,
    /// Rows of the table that is decoded.
    pub decoded: u32,
    /// Rows of the tables that are queried by time.
    pub analysed: u32,
    /// Numbers of databases.
    pub databases: &'static [usize],
    /// Numbers of clients where growth is measured; 2, which has all cores busy, is one of them.
    pub connections: &'static [usize],
    /// How often a measure of a single statement is repeated.
    pub once: usize,
}

impl Plan {
    /// The run that the documentation shows: some minutes.
    pub const FULL: Self = Self {
        quick: false,
        short_rounds: 9,
        long_rounds: 3,
        mixed_rounds: 15,
        calls: Duration::from_millis(100),
        load: 3,
        clients: &[1, 2, 8, 64],
        sessions: &[1, 2, 4, 8, 16],
        spell: Duration::from_secs(3),
        batch: 2_000_000,
        sustained: 4,
        inserted: 1_000_000,
        decoded: 10_000_000,
        analysed: 10_000_000,
        databases: &[1, 10, 100],
        connections: &[1, 2, 64, 200],
        once: 30,
    };

    /// The run that takes less than a minute.
    pub const QUICK: Self = Self {
        quick: true,
        short_rounds: 3,
        long_rounds: 1,
        mixed_rounds: 2,
        calls: Duration::from_millis(25),
        load: 1,
        clients: &[2, 64],
        sessions: &[1, 2, 4, 8, 16],
        spell: Duration::from_millis(250),
        batch: 400_000,
        sustained: 1,
        inserted: 100_000,
        decoded: 1_000_000,
        analysed: 100_000,
        databases: &[1, 10],
        connections: &[2, 200],
        once: 5,
    };
}
