//! The figures of a run.

use snowflake_core::Micros;
use std::fmt;

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Report {
    name: &'static str,
    /// Since when it is measured.
    from: Micros,
    /// The time from the start of a server to its lease, of those that were started since then.
    first: Vec<Micros>,
    /// For each lease that was gained since then, how far its start was ahead of the clock; 0 where it was behind.
    leads: Vec<Micros>,
    /// How long sessions of one server found no lease, for each time.
    waits: Vec<Micros>,
    /// The requests of each second.
    pub(super) seconds: Vec<u32>,
    /// The longest that a request took in the registry.
    pub(super) slowest: Micros,
    pub(super) lost: usize,
    pub(super) taken_over: usize,
    pub(super) expired: usize,
    pub(super) given_back: usize,
    pub(super) refused: usize,
    /// How many servers were up and had no lease at the end.
    pub waiting: usize,
    /// How many ranges of IDs were compared.
    pub ranges: usize,
    /// How many of them have IDs that another run has made, too.
    pub repeated: usize,
}

impl Report {
    pub(super) const fn new(name: &'static str) -> Self {
        Self {
            name,
            from: Micros(0),
            first: Vec::new(),
            leads: Vec::new(),
            waits: Vec::new(),
            seconds: Vec::new(),
            slowest: Micros(0),
            lost: 0,
            taken_over: 0,
            expired: 0,
            given_back: 0,
            refused: 0,
            waiting: 0,
            ranges: 0,
            repeated: 0,
        }
    }

    /// Figures are of what happens from now on; repeated IDs are of the whole run.
    pub(super) fn begin(&mut self, now: Micros) {
        let (ranges, repeated) = (self.ranges, self.repeated);
        *self = Self { from: now, ranges, repeated, ..Self::new(self.name) };
    }

    pub(super) fn gained(&mut self, started_at: Micros, now: Micros, lead: Micros) {
        if started_at >= self.from {
            self.first.push(now - started_at);
        }
        self.leads.push(lead.max(Micros(0)));
    }

    pub(super) fn waited(&mut self, length: Micros) {
        self.waits.push(length);
    }

    /// How many leases were gained.
    pub fn leases(&self) -> usize {
        self.leads.len()
    }

    /// How many grants ended before they were renewed.
    pub const fn expired(&self) -> usize {
        self.expired
    }

    /// How often a server was told that there is no worker for it, at most once a minute.
    pub const fn refused(&self) -> usize {
        self.refused
    }

    /// The longest that sessions of one server found no lease.
    pub fn longest_wait(&self) -> Micros {
        self.waits.iter().copied().max().unwrap_or_default()
    }

    /// The most requests in one second.
    pub fn peak(&self) -> u32 {
        self.measured().iter().copied().max().unwrap_or(0)
    }

    fn measured(&self) -> &[u32] {
        let first = (self.from.0 / 1_000_000) as usize;
        self.seconds.get(first..).unwrap_or(&[])
    }

    /// The heading of the table that [`Display`](fmt::Display) writes a line of.
    pub const HEADING: &'static str = concat!(
        "                                          requests  mean  peak  slowest   leases  first lease   no lease     ",
        "lead    lead  taken  ended  told   ranges with\n",
        "scenario                                    in all    /s    /s   answer   gained  half    all   longest  ",
        "servers    most   over  early  none  repeated IDs",
    );
}

fn seconds(length: Micros) -> f64 {
    length.0 as f64 / 1e6
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: u64 = self.measured().iter().map(|&count| u64::from(count)).sum();
        let mean = all as f64 / self.measured().len().max(1) as f64;
        let mut first = self.first.clone();
        first.sort_unstable();
        let at = |index: usize| first.get(index).copied().map_or(0.0, seconds);
        let leads = || self.leads.iter().copied().filter(|&lead| lead > Micros(0));
        write!(
            f,
            "{:<41} {:>8} {:>5.1} {:>5} {:>7.2}s {:>8} {:>4.1}s {:>5.1}s {:>8.1}s {:>8} {:>6.1}s {:>6} {:>6} {:>5}  \
             {} of {}",
            self.name,
            all,
            mean,
            self.peak(),
            seconds(self.slowest),
            self.leases(),
            at(first.len() / 2),
            at(first.len().saturating_sub(1)),
            seconds(self.longest_wait()),
            leads().count(),
            leads().max().map_or(0.0, seconds),
            self.taken_over,
            self.expired,
            self.refused,
            self.repeated,
            self.ranges,
        )
    }
}
