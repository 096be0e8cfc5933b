//! The fetcher: what the one process of a server that talks to the registry does next about segments. A state machine that does
//! nothing by itself, as [`Lessee`](crate::lease::Lessee): its caller asks [`Fetcher::next`], does that, and reports by
//! [`Fetcher::answer`]. It may be lost at any time: a new one goes on with what shared memory holds.
//!
//! [`state`] has all of it; what it is to do next, [`next`]; what follows from answers, [`answer`]; what somebody waits for,
//! [`requests`]; what follows from failures, [`fail`]. What it knows of one tag, and how fast that is used, has [`known`].

mod answer;
mod fail;
mod known;
mod next;
mod requests;
mod state;
mod todo;

pub use state::Fetcher;
