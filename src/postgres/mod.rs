//! What PostgreSQL and the system are asked, and how: texts, relations, rights, background processes, clocks. Knows nothing of IDs.

pub mod abort;
pub mod background;
pub mod encoding;
pub mod given;
pub mod open_relation;
pub mod own;
pub mod restricted;
pub mod time;
pub mod wording;
