//! What sqlx makes of `snowflake_id`: an error, as types must fit, but where the field says which type it reads.

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, query, query_as, query_scalar};

const KEY: i64 = 382_304_429_472_247_813;

/// A key of the type, in the form of a `bigint`.
#[derive(Clone, Copy, Debug, PartialEq, sqlx::Type)]
#[sqlx(type_name = "snowflake_id")]
struct SnowflakeId(i64);

#[tokio::test]
async fn snowflake_id() {
    let mut connection = PgConnectOptions::new().connect().await.unwrap();
    let connection = &mut connection;
    let table = "CREATE TEMPORARY TABLE typed_orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), parent snowflake_id)";
    query(table).execute(&mut *connection).await.unwrap();
    query("INSERT INTO typed_orders VALUES ($1, $2)").bind(KEY).bind(5_i16).execute(&mut *connection).await.unwrap();
    let found = "SELECT id FROM typed_orders WHERE id = $1";
    assert!(query_scalar::<_, i64>(found).bind(KEY).fetch_one(&mut *connection).await.is_err());
    let number: i64 = query_scalar("SELECT id::bigint FROM typed_orders").fetch_one(&mut *connection).await.unwrap();
    assert_eq!(number, KEY);
    // sqlx keeps statements by their text, with the types of the first call: so this is another text.
    let insert = "INSERT INTO typed_orders (id, parent) VALUES ($1, $2)";
    query(insert).bind(SnowflakeId(KEY + 1)).bind(SnowflakeId(KEY)).execute(&mut *connection).await.unwrap();
    let read: (SnowflakeId, SnowflakeId) = query_as("SELECT id, parent FROM typed_orders WHERE id > $1")
        .bind(KEY)
        .fetch_one(&mut *connection)
        .await
        .unwrap();
    assert_eq!(read, (SnowflakeId(KEY + 1), SnowflakeId(KEY)));
}
