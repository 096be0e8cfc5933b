//! What can happen, one thing at a time, and how it is told to people: the ways to repeated IDs are printed as such lines.

use super::super::state::{Instant, Tick, Worker};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Lease {
        server: usize,
        worker: Worker,
        now: Instant,
    },
    Deliver {
        request: usize,
        again: bool,
    },
    Lose {
        request: usize,
    },
    Forget {
        server: usize,
    },
    Install {
        server: usize,
    },
    /// With the choice to watch that ID from now on.
    Claim {
        server: usize,
        now: Tick,
        watches: bool,
    },
    Resume {
        server: usize,
    },
    Crash {
        server: usize,
        reserved: Tick,
    },
    SessionCrash {
        server: usize,
        reserved: Tick,
    },
    Restore {
        server: usize,
    },
    Start {
        server: usize,
    },
    CopyDirectory {
        server: usize,
        to: usize,
        reserved: Tick,
    },
    Fork {
        server: usize,
        to: usize,
    },
    Stop {
        server: usize,
    },
    Close {
        server: usize,
    },
    HandBack {
        server: usize,
        worker: Worker,
    },
    Rewind {
        server: usize,
        to: Tick,
    },
    Shorten {
        server: usize,
        worker: Worker,
        to: Instant,
    },
    Wipe,
    Look {
        server: usize,
    },
    StoreAgain {
        server: usize,
        now: Instant,
    },
    Sync,
    ReadBack {
        server: usize,
    },
    Failover,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |server: usize| ["s1", "s2", "s3"][server];
        match *self {
            Self::Lease { server, worker, now } => {
                write!(f, "{} reads worker {worker}, and asks for it at {now}", name(server))
            }
            Self::Deliver { request, again } => {
                write!(f, "request #{request} reaches the registry{}", if again { ", and will again" } else { "" })
            }
            Self::Lose { request } => write!(f, "request #{request} is lost"),
            Self::Forget { server } => write!(f, "{}'s process for the registry starts anew", name(server)),
            Self::Install { server } => write!(f, "{} does the next step of the installation", name(server)),
            Self::Claim { server, now, watches } => {
                let watched = if watches { ", an ID that is watched" } else { "" };
                write!(f, "a session of {} claims at tick {now}{watched}", name(server))
            }
            Self::Resume { server } => write!(f, "{} raises its line to the reservation", name(server)),
            Self::Crash { server, reserved } => write!(f, "{} crashes, with reservation {reserved}", name(server)),
            Self::SessionCrash { server, reserved } => {
                write!(f, "a session of {} crashes, with reservation {reserved}; the postmaster lives", name(server))
            }
            Self::Restore { server } => write!(f, "{} goes on with the grant from before the crash", name(server)),
            Self::Start { server } => write!(f, "{} starts", name(server)),
            Self::CopyDirectory { server, to, reserved } => {
                write!(f, "{}'s data is copied to {}, with reservation {reserved}", name(server), name(to))
            }
            Self::Fork { server, to } => {
                write!(f, "{}'s machine is copied with its memory: {}", name(server), name(to))
            }
            Self::Stop { server } => write!(f, "{} stops, and sends its worker back", name(server)),
            Self::Close { server } => write!(f, "{} closes its line, and sends its worker back", name(server)),
            Self::HandBack { server, worker } => write!(f, "{} sends worker {worker} back", name(server)),
            Self::Rewind { server, to } => write!(f, "{}'s line is lowered to tick {to} by hand", name(server)),
            Self::Shorten { server, worker, to } => {
                write!(f, "{} shortens the grant of worker {worker} to {to} by hand", name(server))
            }
            Self::Wipe => write!(f, "the registry is wiped"),
            Self::Look { server } => write!(f, "{} looks at the namespace's record", name(server)),
            Self::StoreAgain { server, now } => {
                write!(f, "{} finds no record of its worker, and asks for it at {now}", name(server))
            }
            Self::Sync => write!(f, "what the registry shows is durable, and it says so"),
            Self::ReadBack { server } => write!(f, "{} hears no answer, and reads its record back", name(server)),
            Self::Failover => write!(f, "the registry fails over, and loses what was not durable"),
        }
    }
}
