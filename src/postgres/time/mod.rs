//! Time, as the system, the processor and PostgreSQL have it.

pub mod clock;
pub mod counter;
pub mod timestamptz;
pub mod wait;
