//! Queries that many tests use.

use postgres::types::FromSqlOwned;
use postgres::{Client, Row};

/// A table whose key is made by its default.
pub const ORDERS: &str = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), note text)";

/// Makes an ID.
pub const NEXT: &str = "SELECT snowflake_next()";

/// The one value that a query returns.
///
/// # Panics
/// Where the query fails, or returns more or less.
#[track_caller]
pub fn value<T: FromSqlOwned>(client: &mut Client, query: &str) -> T {
    client.query_one(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}")).get(0)
}

/// An ID.
///
/// # Panics
/// Where it is refused.
#[track_caller]
pub fn next(client: &mut Client) -> i64 {
    value(client, NEXT)
}

/// So many IDs of one call.
///
/// # Panics
/// Where they are refused.
#[track_caller]
pub fn batch(client: &mut Client, count: i32) -> Vec<i64> {
    ids(&client.query("SELECT snowflake_next($1)", &[&count]).unwrap_or_else(|error| panic!("{error:?}")))
}

/// The first column of all rows.
pub fn ids(rows: &[Row]) -> Vec<i64> {
    rows.iter().map(|row| row.get(0)).collect()
}
