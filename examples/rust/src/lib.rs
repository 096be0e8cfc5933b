//! Orders whose keys PostgreSQL makes by `DEFAULT snowflake_next()`: by [tokio-postgres](orders_tokio_postgres), and by
//! [sqlx](orders_sqlx).

use serde::{Deserialize, Serialize};
use snowflake_core::{Layout, NotAnId};
use std::time::SystemTime;

pub mod orders_sqlx;
pub mod orders_tokio_postgres;

/// The table.
pub const SCHEMA: &str =
    "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL, quantity int NOT NULL)";

/// An order. In JSON, its key is text: JavaScript reads a number of 63 bits as another number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, sqlx::FromRow)]
pub struct Order {
    /// The key.
    #[serde(with = "as_text")]
    pub id: i64,
    /// What is ordered.
    pub item: String,
    /// How many.
    pub quantity: i32,
}

mod as_text {
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    pub fn serialize<S: Serializer>(id: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// When a key was made, without the database.
///
/// # Errors
/// Where the number is no key of this layout.
pub fn created_at(layout: &Layout, id: i64) -> Result<SystemTime, NotAnId> {
    Ok(layout.timestamp(id)?.into())
}
