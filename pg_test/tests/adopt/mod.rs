//! Moving in and out, where that takes several sessions, a crash, or schemas that were made elsewhere.

mod back;
mod encodings;
mod kept;
mod others;
mod pgedge;
mod schema;
mod sessions;
mod staged;
