//! The functions that SQL calls. Their SQL declarations, by hand, are in `sql/`; a `timestamptz` passes as the number
//! that it is (see [`crate::timestamptz`]).

mod decode;
mod layouts;
mod next;
mod partitions;
mod range;
mod status;
mod text;
