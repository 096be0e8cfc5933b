//! The examples on a real server.

use snowflake_core::{Layout, UnixMicros};
use snowflake_example::{Order, SCHEMA, created_at, orders_sqlx, orders_tokio_postgres};
use snowflake_test::{Cluster, clients};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, Executor, PgConnection, query, query_as, query_scalar};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};
use tokio_postgres::{Client, NoTls};

const MANY: i32 = 5000;
const PUBLISHED: i64 = 382_304_429_472_247_813;
const TYPED: &str =
    "CREATE TEMPORARY TABLE typed_orders (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), parent snowflake_id)";

async fn by_tokio_postgres(server: &Cluster) -> Client {
    let config = format!("host={} port={} user=postgres dbname=postgres", server.socket().display(), server.port());
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn by_sqlx(server: &Cluster) -> PgConnection {
    let options = PgConnectOptions::new_without_pgpass().socket(server.socket()).port(server.port());
    options.username("postgres").database("postgres").connect().await.unwrap()
}

/// A server with the table, on which the statements of the examples are run.
fn on_a_server(work: impl AsyncFnOnce(&Cluster)) {
    let server = clients::hostile_server();
    server.client().batch_execute(SCHEMA).unwrap();
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work(&server));
    clients::check_statements(&server);
}

/// What somebody else sees on the server: in a thread, as its client blocks.
fn seen<T: Send>(server: &Cluster, look: impl FnOnce(&mut postgres::Client) -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(|| look(&mut server.client())).join().unwrap())
}

/// How many INSERT statements the server has executed since the last call.
fn insert_statements(server: &Cluster) -> i64 {
    seen(server, |client| snowflake_test::value(client, "SELECT test.insert_statements()"))
}

fn stored(server: &Cluster) -> Vec<Order> {
    let rows = seen(server, |client| client.query("SELECT id, item, quantity FROM orders ORDER BY quantity", &[]));
    let order = |row: &postgres::Row| Order { id: row.get(0), item: row.get(1), quantity: row.get(2) };
    rows.unwrap().iter().map(order).collect()
}

fn lamp(id: i64) -> Order {
    Order { id, item: "lamp".to_owned(), quantity: -1 }
}

fn many() -> (Vec<String>, Vec<i32>) {
    ((0..MANY).map(|n| format!("item {n}")).collect(), (0..MANY).collect())
}

/// Many orders were one statement, and have these keys.
fn check_many(server: &Cluster, keys: &[i64]) {
    assert_eq!(insert_statements(server), 1, "many are one statement");
    let (items, quantities) = many();
    let orders = keys.iter().zip(items).zip(quantities).map(|((&id, item), quantity)| Order { id, item, quantity });
    assert_eq!(stored(server), orders.collect::<Vec<_>>());
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
}

#[test]
fn tokio_postgres() {
    on_a_server(async |server| {
        let client = by_tokio_postgres(server).await;
        let id = orders_tokio_postgres::add(&client, "lamp", -1).await.unwrap();
        assert_eq!(stored(server), [lamp(id)], "the key comes back");
        client.batch_execute("TRUNCATE orders").await.unwrap();
        insert_statements(server);

        let (items, quantities) = many();
        check_many(server, &orders_tokio_postgres::add_many(&client, &items, &quantities).await.unwrap());
        let layout = orders_tokio_postgres::layout(&client).await.unwrap();
        for row in client.query("SELECT id, snowflake_timestamp(id) FROM orders", &[]).await.unwrap() {
            assert_eq!(created_at(&layout, row.get(0)), Ok(row.get::<_, SystemTime>(1)));
        }
    });
}

#[test]
fn sqlx() {
    on_a_server(async |server| {
        let connection = &mut by_sqlx(server).await;
        let id = orders_sqlx::add(connection, "lamp", -1).await.unwrap();
        assert!(id > 1 << 53);
        let rows = query_as::<_, Order>("SELECT id, item, quantity FROM orders");
        assert_eq!(rows.fetch_all(&mut *connection).await.unwrap(), [lamp(id)], "the key comes back");
        connection.execute("TRUNCATE orders").await.unwrap();
        insert_statements(server);

        let (items, quantities) = many();
        check_many(server, &orders_sqlx::add_many(connection, &items, &quantities).await.unwrap());
        let layout = orders_sqlx::layout(connection).await.unwrap();
        let since = SystemTime::from(UnixMicros::parse("2026-11-20T00:00:00Z").unwrap());
        let until = since + Duration::from_secs(86_400);
        let moment = Duration::from_millis(10);
        let days = [since - moment, since, until - moment, until];
        let ids = days.map(|at| layout.lowest_id_from(UnixMicros::from(at)).unwrap() + 5);
        for id in ids {
            query("INSERT INTO orders VALUES ($1, 'lamp', 1)").bind(id).execute(&mut *connection).await.unwrap();
        }
        let found = orders_sqlx::between(connection, &layout, since, until).await.unwrap();
        assert_eq!(found.iter().map(|order| order.id).collect::<Vec<_>>(), ids[1..3]);
    });
}

#[test]
fn keys_survive_json() {
    let order = Order { id: PUBLISHED, item: "lamp".to_owned(), quantity: 1 };
    let text = serde_json::to_string(&order).unwrap();
    assert_eq!(text, r#"{"id":"382304429472247813","item":"lamp","quantity":1}"#);
    assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), order);
    assert!(serde_json::from_str::<Order>(&text.replace("813", "x")).is_err());
}

#[test]
fn the_time_of_a_published_key() {
    let layout: Layout = "default".parse().unwrap();
    let published = UnixMicros::parse("2026-11-20T23:01:18.859Z").unwrap();
    assert_eq!(created_at(&layout, PUBLISHED), Ok(published.into()));
    assert!(created_at(&layout, -1).is_err());
}

/// What tokio-postgres, and postgres, which is built on it, make of `snowflake_id`: an error, as types must fit. So the statement converts.
#[test]
fn snowflake_id_by_tokio_postgres() {
    on_a_server(async |server| {
        let client = by_tokio_postgres(server).await;
        client.batch_execute(TYPED).await.unwrap();
        let insert = "INSERT INTO typed_orders VALUES ($1, $2)";
        assert!(client.execute(insert, &[&PUBLISHED, &PUBLISHED]).await.is_err());
        let insert = "INSERT INTO typed_orders VALUES ($1::bigint, $2::bigint)";
        client.execute(insert, &[&PUBLISHED, &PUBLISHED]).await.unwrap();
        // A condition has operators of bigint, and so a parameter of that type.
        let read = client.query_one("SELECT id FROM typed_orders WHERE id = $1", &[&PUBLISHED]).await.unwrap();
        assert!(read.try_get::<_, i64>(0).is_err());
        let read = client.query_one("SELECT id::bigint FROM typed_orders WHERE id = $1", &[&PUBLISHED]).await.unwrap();
        assert_eq!(read.get::<_, i64>(0), PUBLISHED);
    });
}

/// A key of the type, in the form of a `bigint`.
#[derive(Clone, Copy, Debug, PartialEq, sqlx::Type)]
#[sqlx(type_name = "snowflake_id")]
struct SnowflakeId(i64);

/// What sqlx makes of `snowflake_id`: an error, as types must fit, but where the field says which type it reads.
#[test]
fn snowflake_id_by_sqlx() {
    on_a_server(async |server| {
        let connection = &mut by_sqlx(server).await;
        query(TYPED).execute(&mut *connection).await.unwrap();
        let insert = query("INSERT INTO typed_orders VALUES ($1, $2)");
        insert.bind(PUBLISHED).bind(5_i16).execute(&mut *connection).await.unwrap();
        let found = query_scalar::<_, i64>("SELECT id FROM typed_orders WHERE id = $1").bind(PUBLISHED);
        assert!(found.fetch_one(&mut *connection).await.is_err());
        let number = query_scalar::<_, i64>("SELECT id::bigint FROM typed_orders");
        assert_eq!(number.fetch_one(&mut *connection).await.unwrap(), PUBLISHED);
        // sqlx keeps statements by their text, with the types of the first call: so this is another text.
        let insert = query("INSERT INTO typed_orders (id, parent) VALUES ($1, $2)");
        let pair = (SnowflakeId(PUBLISHED + 1), SnowflakeId(PUBLISHED));
        insert.bind(pair.0).bind(pair.1).execute(&mut *connection).await.unwrap();
        let read = query_as::<_, (SnowflakeId, SnowflakeId)>("SELECT id, parent FROM typed_orders WHERE id > $1")
            .bind(PUBLISHED);
        assert_eq!(read.fetch_one(&mut *connection).await.unwrap(), pair);
    });
}
