//! The example on a real server.

use snowflake_core::{Layout, UnixMicros};
use snowflake_example::{Order, SCHEMA, add, add_many, created_at, layout};
use snowflake_test::clients;
use std::collections::BTreeSet;
use std::time::SystemTime;
use tokio_postgres::{Client, NoTls};

const MANY: i32 = 5000;

async fn connect(config: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(config, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// How many INSERT statements the server has executed since the last call.
async fn insert_statements(client: &Client) -> i64 {
    client.query_one("SELECT test.insert_statements()", &[]).await.unwrap().get(0)
}

async fn many(client: &Client) -> Vec<Order> {
    let quantities: Vec<i32> = (0..MANY).collect();
    let items: Vec<String> = quantities.iter().map(|n| format!("item {n}")).collect();
    let keys = add_many(client, &items, &quantities).await.unwrap();
    let orders = keys.into_iter().zip(items).zip(quantities);
    orders.map(|((id, item), quantity)| Order { id, item, quantity }).collect()
}

async fn stored(client: &Client) -> Vec<Order> {
    let rows = client.query("SELECT id, item, quantity FROM orders ORDER BY quantity", &[]).await.unwrap();
    rows.iter().map(|row| Order { id: row.get(0), item: row.get(1), quantity: row.get(2) }).collect()
}

#[test]
fn orders() {
    let server = clients::server();
    let config = format!("host={} port={} user=postgres dbname=postgres", server.socket().display(), server.port());
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let client = connect(&config).await;
        client.batch_execute(SCHEMA).await.unwrap();

        let id = add(&client, "lamp", -1).await.unwrap();
        let lamp = Order { id, item: "lamp".to_owned(), quantity: -1 };
        assert_eq!(stored(&client).await, [lamp], "the key comes back");
        client.batch_execute("TRUNCATE orders").await.unwrap();
        insert_statements(&client).await;

        let orders = many(&client).await;
        assert_eq!(insert_statements(&client).await, 1, "many are one statement");
        assert_eq!(stored(&client).await, orders);
        assert_eq!(orders.iter().map(|order| order.id).collect::<BTreeSet<_>>().len(), orders.len());

        let layout = layout(&client).await.unwrap();
        for row in client.query("SELECT id, snowflake_timestamp(id) FROM orders", &[]).await.unwrap() {
            assert_eq!(created_at(&layout, row.get(0)), Ok(row.get::<_, SystemTime>(1)));
        }
    });
}

#[test]
fn keys_survive_json() {
    let order = Order { id: 382304429472247813, item: "lamp".to_owned(), quantity: 1 };
    let text = serde_json::to_string(&order).unwrap();
    assert_eq!(text, r#"{"id":"382304429472247813","item":"lamp","quantity":1}"#);
    assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), order);
    assert!(serde_json::from_str::<Order>(&text.replace("813", "x")).is_err());
}

#[test]
fn the_time_of_a_published_key() {
    let layout: Layout = "default".parse().unwrap();
    let published = UnixMicros::parse("2026-11-20T23:01:18.859Z").unwrap();
    assert_eq!(created_at(&layout, 382304429472247813), Ok(published.into()));
    assert!(created_at(&layout, -1).is_err());
}
