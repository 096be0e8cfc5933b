//! Orders whose keys PostgreSQL makes by `DEFAULT snowflake_next()`, with tokio-postgres.

use serde::{Deserialize, Serialize};
use snowflake_core::{Layout, NotAnId};
use std::error::Error;
use std::time::SystemTime;
use tokio_postgres::Client;

/// The table.
pub const SCHEMA: &str =
    "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), item text NOT NULL, quantity int NOT NULL)";

/// An order. In JSON, its key is text: JavaScript reads a number of 63 bits as another number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// Adds an order and returns its key.
///
/// # Errors
/// Those of the server.
pub async fn add(client: &Client, item: &str, quantity: i32) -> Result<i64, tokio_postgres::Error> {
    let query = "INSERT INTO orders (item, quantity) VALUES ($1, $2) RETURNING id";
    Ok(client.query_one(query, &[&item, &quantity]).await?.get(0))
}

/// Adds orders by one statement, from as many items and quantities. Returns their keys in the same order.
///
/// # Errors
/// Those of the server.
pub async fn add_many(
    client: &Client,
    items: &[String],
    quantities: &[i32],
) -> Result<Vec<i64>, tokio_postgres::Error> {
    let query = "INSERT INTO orders (item, quantity) \
                 SELECT item, quantity FROM unnest($1::text[], $2::int[]) WITH ORDINALITY AS o (item, quantity, n) \
                 ORDER BY n RETURNING id";
    let mut keys: Vec<i64> = client.query(query, &[&items, &quantities]).await?.iter().map(|row| row.get(0)).collect();
    // Keys rise in the order in which they are made.
    keys.sort_unstable();
    Ok(keys)
}

/// The layout of the database's keys. It never changes, so a program may ask once, or have it in its configuration.
///
/// # Errors
/// Those of the server.
pub async fn layout(client: &Client) -> Result<Layout, Box<dyn Error>> {
    Ok(client.query_one("SELECT snowflake_database_layout()", &[]).await?.get::<_, &str>(0).parse()?)
}

/// When a key was made, without the database.
///
/// # Errors
/// Where the number is no key of this layout.
pub fn created_at(layout: &Layout, id: i64) -> Result<SystemTime, NotAnId> {
    Ok(layout.timestamp(id)?.into())
}
