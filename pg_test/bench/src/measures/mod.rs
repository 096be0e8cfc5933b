//! What is measured, a module each. Each gives a [`crate::results::Group`] or two.

pub mod calls;
pub mod ceiling;
pub mod clients;
pub mod decoding;
pub mod growth;
pub mod inserts;
pub mod once;
