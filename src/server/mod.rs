//! What all sessions of the server go by: [`believed`], the time to make IDs by, and [`worker`], whose IDs they are.

pub mod believed;
pub mod worker;
