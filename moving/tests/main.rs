//! The tests of the plans by the API, in one binary.
mod plans;
mod target;
mod whole;
