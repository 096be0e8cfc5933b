//! What is measured. Each module gives one or more groups of results, of type [`crate::results::Group`].

pub mod analytics;
pub mod calls;
pub mod ceiling;
pub mod clients;
pub mod decoding;
pub mod growth;
pub mod inserts;
pub mod once;
pub mod planning;
