//! The lessee: what the one process of a server that talks to the registry does next. A state machine that does nothing
//! by itself: its caller asks [`Lessee::next`], does that, and reports by [`Lessee::answer`]. It is the process's own,
//! and may be lost at any time: a new one finds the lease again by its token.
//!
//! [`state`] has all of it; what it is to do next, [`next`]; what follows from answers, [`answer`] and [`found`]; from
//! failures, [`fail`]. The other modules each have one part of the state, and what can be said of that alone.

mod answer;
mod clock;
mod fail;
mod found;
mod giving;
mod in_use;
mod knowledge;
mod next;
mod state;
mod todo;
mod trouble;

pub use state::Lessee;
