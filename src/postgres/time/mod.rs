//! Time, as the system, the processor and PostgreSQL have it.

pub mod clock;
pub mod timestamptz;
pub mod tsc;
pub mod wait;
