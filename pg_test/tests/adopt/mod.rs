//! Moving in and out, where that takes several sessions, a crash, or schemas that were made elsewhere.

mod back;
mod encodings;
mod foreign;
mod kept;
mod others;
mod pgedge;
mod random;
mod round;
mod schema;
mod sessions;
mod staged;
mod together;
mod uuid;
