//! Which statements give an existing table snowflake IDs ([`adopt`]), and take them away again ([`release`]). Pure: what
//! the catalogue says comes in as [`Facts`], and a [`MovePlan`] comes out, which is shown or carried out. Knows no PostgreSQL
//! but its SQL.
//!
//! 1. [`target::choose`] finds the column, or says why the table cannot be adopted
//! 2. [`adopt`] and [`release`] list the statements, and what stands in the way of them
#![forbid(unsafe_code)]

mod adopt;
mod facts;
mod functions;
mod partitioned;
mod plan;
mod record;
mod release;
mod sequences;
pub mod target;
mod views;
mod waiver;
mod writers;

pub use adopt::{Adoption, adopt, adopt_all, is_done};
pub use facts::{Column, Facts, ForeignKey, Oid, Relation, Role, Source, Values, Width};
pub use functions::{Call, Function};
pub use partitioned::PartitionedByKey;
pub use plan::{Actor, MovePlan, MoveStep, literal};
pub use record::Before;
pub use release::{Release, ReleaseError, begins_at, put_back, release};
pub use sequences::{LastValue, Options, Sequence};
pub use views::View;
pub use waiver::Waiver;
pub use writers::{Writer, shut_out};
