//! Orders whose keys PostgreSQL makes by `DEFAULT snowflake_next()`, with sqlx.

use crate::Order;
use snowflake_core::{Layout, UnixMicros};
use sqlx::PgConnection;
use std::error::Error;
use std::time::SystemTime;

/// Adds an order and returns its key.
///
/// # Errors
/// Those of the server.
pub async fn add(connection: &mut PgConnection, item: &str, quantity: i32) -> sqlx::Result<i64> {
    let query = sqlx::query_scalar("INSERT INTO orders (item, quantity) VALUES ($1, $2) RETURNING id");
    query.bind(item).bind(quantity).fetch_one(connection).await
}

/// Adds orders by one statement, from as many items and quantities. Returns their keys in the same order.
///
/// # Errors
/// Those of the server.
pub async fn add_many(connection: &mut PgConnection, items: &[String], quantities: &[i32]) -> sqlx::Result<Vec<i64>> {
    let query = sqlx::query_scalar(
        "INSERT INTO orders (item, quantity) \
         SELECT item, quantity FROM unnest($1::text[], $2::int[]) WITH ORDINALITY AS o (item, quantity, n) \
         ORDER BY n RETURNING id",
    );
    let mut keys: Vec<i64> = query.bind(items).bind(quantities).fetch_all(connection).await?;
    // Keys rise in the order in which they are made.
    keys.sort_unstable();
    Ok(keys)
}

/// The layout of the database's keys. It never changes, so a program may ask once, or have it in its configuration.
///
/// # Errors
/// Those of the server.
pub async fn layout(connection: &mut PgConnection) -> Result<Layout, Box<dyn Error>> {
    let text: String = sqlx::query_scalar("SELECT snowflake_database_layout()").fetch_one(connection).await?;
    Ok(text.parse()?)
}

/// The orders of a range of time, which is a range of the primary key.
///
/// # Errors
/// Those of the server.
pub async fn between(
    connection: &mut PgConnection,
    layout: &Layout,
    since: SystemTime,
    until: SystemTime,
) -> sqlx::Result<Vec<Order>> {
    let query = sqlx::query_as("SELECT id, item, quantity FROM orders WHERE id BETWEEN $1 AND $2 ORDER BY id");
    let lowest = layout.lowest_id_from(UnixMicros::from(since)).unwrap_or(i64::MAX);
    query.bind(lowest).bind(layout.highest_id_before(UnixMicros::from(until))).fetch_all(connection).await
}
