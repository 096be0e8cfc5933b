//! Orders whose keys PostgreSQL makes by `DEFAULT snowflake_next()`, with tokio-postgres.

use snowflake_core::Layout;
use std::error::Error;
use tokio_postgres::Client;

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
