//! What PostgreSQL and the system are asked, and how: texts, relations, rights, background processes, clocks. Knows nothing of IDs.
//!
//! Calls of PostgreSQL's functions that need no more than a transaction stand here, each behind a safe function: [`catalog`], [`process`],
//! [`read_only`], [`random`], [`wal`].

pub mod abort;
pub mod background;
pub mod catalog;
pub mod domain;
pub mod encoding;
pub mod flag;
pub mod foreign;
pub mod given;
pub mod guc;
pub mod held;
pub mod integers;
pub mod open_relation;
pub mod own;
pub mod process;
pub mod questions;
pub mod random;
pub mod read_only;
pub mod restricted;
pub mod snapshot;
pub mod subtransaction;
pub mod time;
pub mod value;
pub mod wal;
pub mod wording;
