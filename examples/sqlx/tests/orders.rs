//! The example, on the server that libpq's environment variables name.

use snowflake_core::UnixMicros;
use snowflake_example_sqlx::{Order, SCHEMA, add, add_many, between, layout};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Executor, PgConnection};
use std::time::{Duration, SystemTime};

const MANY: i32 = 5000;

async fn insert_statements(connection: &mut PgConnection) -> i64 {
    sqlx::query_scalar("SELECT test.insert_statements()").fetch_one(connection).await.unwrap()
}

async fn stored(connection: &mut PgConnection) -> Vec<Order> {
    let query = sqlx::query_as("SELECT id, item, quantity FROM orders ORDER BY quantity");
    query.fetch_all(connection).await.unwrap()
}

#[tokio::test]
async fn orders() {
    let mut connection = PgConnectOptions::new().connect().await.unwrap();
    connection.execute("DROP TABLE IF EXISTS orders").await.unwrap();
    connection.execute(SCHEMA).await.unwrap();

    let id = add(&mut connection, "lamp", -1).await.unwrap();
    assert!(id > 1 << 53);
    assert_eq!(stored(&mut connection).await, [Order { id, item: "lamp".to_owned(), quantity: -1 }]);
    connection.execute("TRUNCATE orders").await.unwrap();
    insert_statements(&mut connection).await;

    let quantities: Vec<i32> = (0..MANY).collect();
    let items: Vec<String> = quantities.iter().map(|n| format!("item {n}")).collect();
    let keys = add_many(&mut connection, &items, &quantities).await.unwrap();
    assert_eq!(insert_statements(&mut connection).await, 1, "many are one statement");
    let expected = keys.iter().zip(items).zip(quantities).map(|((&id, item), quantity)| Order { id, item, quantity });
    assert_eq!(stored(&mut connection).await, expected.collect::<Vec<_>>());

    let layout = layout(&mut connection).await.unwrap();
    let since = SystemTime::from(UnixMicros::parse("2026-11-20T00:00:00Z").unwrap());
    let until = since + Duration::from_secs(86_400);
    let moment = Duration::from_millis(10);
    let days = [since - moment, since, until - moment, until];
    let ids = days.map(|at| layout.lowest_id_from(UnixMicros::from(at)).unwrap() + 5);
    for id in ids {
        sqlx::query("INSERT INTO orders VALUES ($1, 'lamp', 1)").bind(id).execute(&mut connection).await.unwrap();
    }
    let found = between(&mut connection, &layout, since, until).await.unwrap();
    assert_eq!(found.iter().map(|order| order.id).collect::<Vec<_>>(), ids[1..3]);
}

#[test]
fn keys_survive_json() {
    let order = Order { id: 382304429472247813, item: "lamp".to_owned(), quantity: 1 };
    let text = serde_json::to_string(&order).unwrap();
    assert_eq!(text, r#"{"id":"382304429472247813","item":"lamp","quantity":1}"#);
    assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), order);
}
