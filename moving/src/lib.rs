//! Which statements give an existing table snowflake IDs ([`adopt`]), and take them away again ([`release`]). Pure: what
//! the catalogue says comes in as [`Facts`], and a [`Plan`] comes out, which is shown or carried out. Knows no PostgreSQL
//! but its SQL.
//!
//! 1. [`target::choose`] finds the column, or says why the table cannot be adopted
//! 2. [`adopt`] and [`release`] list the statements, and what stands in the way of them
#![forbid(unsafe_code)]

mod adopt;
mod facts;
mod plan;
mod release;
pub mod target;
mod views;

pub use adopt::{Adoption, adopt};
pub use facts::{Column, Facts, ForeignKey, Oid, Relation, Role, Sequence, Source, Values, Width};
pub use plan::{Actor, Plan, Step, literal};
pub use release::{Release, ReleaseError, release};
pub use views::View;
