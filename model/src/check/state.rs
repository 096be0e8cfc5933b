//! What the check remembers, as small as can be: there are millions of these.

/// Microseconds since 1970, the epoch of the check's layouts.
pub type Instant = u8;
/// A position of a line.
pub type Position = u8;
/// A tick.
pub type Tick = u8;
/// The number of a worker.
pub type Worker = u8;
/// The secret of a run; 0 is nobody's.
pub type Token = u8;

pub const MAX_SERVERS: usize = 3;
pub const MAX_WORKERS: usize = 3;
pub const MAX_IN_FLIGHT: usize = 2;

/// A worker's record. All zero: there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Record {
    pub owner: Token,
    pub from: Instant,
    pub until: Instant,
    /// The data directory of the owner. Only where a broken rule asks for it.
    pub system: u8,
}

/// What a request expects whose version can come again: it was lost by a failover, or it is that there is no record.
pub const LOST: Record = Record { owner: Token::MAX, from: 0, until: 0, system: 0 };

/// A compare-and-swap under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    pub worker: Worker,
    /// Empty where versions are compared: then it is the record as it stands.
    pub expected: Record,
    pub new: Record,
}

/// A range that is on its way to the sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Grant {
    pub worker: Worker,
    pub from: Instant,
    pub until: Instant,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// There is no such data directory yet.
    #[default]
    Unborn,
    Down,
    Up,
    /// Has given its worker back while its sessions go on, which breaks a rule.
    Stopping,
}

/// What came before a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Born {
    #[default]
    First,
    AfterCrash,
    AfterStop,
    Copied,
}

/// What the process that talks to the registry is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    #[default]
    Idle,
    /// For the answer to a request.
    Waiting(Grant, Request),
    /// The registry has made the change, and does not say so before it is durable.
    Unconfirmed(Grant),
    /// At this step of an installation.
    Installing(Installation, u8),
}

/// The steps of an installation, as they were planned: the three of the core, or fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Installation {
    pub raise: Option<Tick>,
    pub switches: bool,
    pub grant: Grant,
}

/// A server. `system`, `reserved` and `known` are durable, `token` is the postmaster's; all else is shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Server {
    pub phase: Phase,
    pub born: Born,
    pub system: u8,
    /// No tick from this one on was claimed by this data directory. While a server is up, it may have reserved more.
    pub reserved: Tick,
    pub token: Token,
    /// The last position claimed or given up.
    pub last: Position,
    /// Whether the line was raised to the reservation in this run.
    pub is_raised: bool,
    /// [`snowflake_core::lease::Published::resumed`].
    pub is_resumed: bool,
    pub worker: Option<Worker>,
    /// Where the grant in use begins; only where lines are lowered by hand.
    pub from: Option<Instant>,
    /// The highest end published in this run, of which sessions have copies.
    pub end: Option<Instant>,
    pub closed: Option<Position>,
    pub task: Task,
    /// The grant that sessions claim of, in the postmaster's memory; only where sessions crash.
    pub kept: Option<Grant>,
    /// Durable: which life of the namespace it has seen. Only where the registry forgets.
    pub known: u8,
}

/// The record of the namespace. Life 0: there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Namespace {
    pub life: u8,
    pub leases_from: Instant,
    /// Whether it was confirmed of another registry than the one that has it.
    pub is_elsewhere: bool,
}

/// What may still happen, so that there is an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Budget {
    pub crashes: u8,
    /// Crashes of sessions, which the postmaster survives.
    pub session_crashes: u8,
    pub stops: u8,
    /// The process that talks to the registry closes the line and gives back, and the server goes on.
    pub closings: u8,
    pub copies: u8,
    /// Copies of a running machine with its memory.
    pub forks: u8,
    /// Requests that arrive twice.
    pub duplicates: u8,
    pub hand_backs: u8,
    /// Lines that are lowered by hand.
    pub rewinds: u8,
    /// Grants of servers that are gone which are shortened by hand.
    pub shortenings: u8,
    pub wipes: u8,
    /// Failovers of the registry, which lose what is not durable.
    pub failovers: u8,
}

/// Requests under way: a sorted set, as of two equal ones the second finds its work done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    /// Empty beyond the count.
    requests: [Request; MAX_IN_FLIGHT],
    count: u8,
}

/// An ID that was claimed, so that it is noticed when it is claimed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watched {
    pub worker: Worker,
    pub position: Position,
    /// The run that has claimed it.
    pub by: Token,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    pub registry: [Record; MAX_WORKERS],
    /// Only where the registry forgets.
    pub namespace: Namespace,
    /// How many lives it had.
    pub lives: u8,
    /// The highest end of a grant that was ever stored. Only where the registry forgets.
    pub highest: Instant,
    /// It is at least so late, and all clocks say so: somebody has taken a worker over whose grant ended here. Only where
    /// the registry forgets.
    pub time: Instant,
    /// What of it a failover does not lose. Empty where there is none.
    pub durable: [Record; MAX_WORKERS],
    pub servers: [Server; MAX_SERVERS],
    pub network: Network,
    /// The highest token that a run had.
    pub runs: Token,
    pub left: Budget,
    pub watched: Option<Watched>,
    pub is_claimed_twice: bool,
}

impl Network {
    pub fn send(&mut self, request: Request) {
        if let Err(place) = self.binary_search(&request) {
            self.insert(place, request);
        }
    }

    fn insert(&mut self, place: usize, request: Request) {
        self.requests.copy_within(place..MAX_IN_FLIGHT - 1, place + 1);
        self.requests[place] = request;
        self.count += 1;
    }

    pub fn remove(&mut self, at: usize) -> Request {
        let removed = self.requests[at];
        self.requests.copy_within(at + 1.., at);
        self.count -= 1;
        self.requests[usize::from(self.count)] = Request::default();
        removed
    }

    pub fn retain(&mut self, is_kept: impl Fn(&Request) -> bool) {
        for at in (0..self.len()).rev() {
            if !is_kept(&self.requests[at]) {
                self.remove(at);
            }
        }
    }
}

impl std::ops::Deref for Network {
    type Target = [Request];

    fn deref(&self) -> &[Request] {
        &self.requests[..usize::from(self.count)]
    }
}

/// Requests that were different, and are told apart no more, are still as many.
impl FromIterator<Request> for Network {
    fn from_iter<T: IntoIterator<Item = Request>>(requests: T) -> Self {
        let mut network = Self::default();
        for request in requests {
            let place = network.partition_point(|other| *other < request);
            network.insert(place, request);
        }
        network
    }
}
