//! What the check remembers.

pub const SERVERS: usize = 2;
pub const TAGS: usize = 2;
pub const MAX_IN_FLIGHT: usize = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TagState {
    #[default]
    Live,
    Dropped,
    Forgotten,
}

/// A record. Version 0: there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TagRecord {
    pub version: u8,
    pub next: u8,
    pub state: TagState,
}

/// Numbers that follow each other: `first <= n < end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    pub first: u8,
    pub end: u8,
}

/// A compare-and-swap under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    pub tag: u8,
    /// The life of the namespace that it expects.
    pub life: u8,
    /// The record that it expects.
    pub expected: TagRecord,
    /// Without its version.
    pub new: TagRecord,
    /// What is granted by it; empty where it is no grant.
    pub range: Range,
    /// The server, and its run.
    pub server: u8,
    pub run: u8,
}

/// What a server holds of a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Held {
    /// What is left of the range in use.
    pub current: Range,
    pub after: Option<Range>,
    /// Half of the next range is in place: its start, before its end.
    pub is_moving: bool,
}

/// What the process that talks to the registry is at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    #[default]
    Idle,
    /// For the answer to a request.
    Waiting(Request),
    /// The registry has made the change, and does not say so before it is durable.
    Unconfirmed(Request),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    #[default]
    Down,
    Up,
    /// Has given back, while its sessions go on: that breaks a rule.
    Stopping,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Server {
    pub phase: Phase,
    pub run: u8,
    pub held: [Held; TAGS],
    pub task: Task,
}

/// What may still happen, so that there is an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Budget {
    pub crashes: u8,
    pub stops: u8,
    /// Data directories that are copied.
    pub copies: u8,
    /// Copies of a running machine with its memory.
    pub forks: u8,
    /// Requests that arrive twice.
    pub duplicates: u8,
    /// Tags that are dropped and created again.
    pub drops: u8,
    /// The registry loses everything.
    pub wipes: u8,
    /// After that, tags that are created again above all that was used, by somebody who has looked.
    pub repairs: u8,
    /// After that, tags that are created again at their first number, once all servers have told what they were granted.
    pub recreations: u8,
    /// The same by somebody who has not looked.
    pub careless: u8,
    /// The registry is as it was before.
    pub rollbacks: u8,
    /// Failovers of the registry, which lose what is not durable.
    pub failovers: u8,
}

/// Requests under way: a sorted list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network {
    requests: [Request; MAX_IN_FLIGHT],
    count: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    pub registry: [TagRecord; TAGS],
    /// What of it a failover does not lose. Only where there is one.
    pub durable: [TagRecord; TAGS],
    /// What a rollback brings back. Only where there is one.
    pub backup: Option<[TagRecord; TAGS]>,
    /// The life of the namespace.
    pub life: u8,
    /// The highest version there was.
    pub versions: u8,
    pub runs: u8,
    pub servers: [Server; SERVERS],
    pub network: Network,
    /// A bit for each number that was taken.
    pub taken: [u16; TAGS],
    /// Above all that was granted.
    pub highest: [u8; TAGS],
    pub left: Budget,
    pub is_taken_twice: bool,
}

impl Network {
    pub fn is_full(&self) -> bool {
        usize::from(self.count) == MAX_IN_FLIGHT
    }

    pub fn send(&mut self, request: Request) {
        let count = usize::from(self.count);
        self.requests[count] = request;
        self.count += 1;
        self.requests[..=count].sort_unstable();
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
