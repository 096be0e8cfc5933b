//! From pgEdge's extension `snowflake`. It is not installed where tests run; a schema stands in for it, whose function
//! makes IDs in the same form: 41 bits of milliseconds since 2023, 10 bits of the node, 12 bits of a counter.

use super::schema::survives_a_restore;
use snowflake_test::check::{refused, rising};
use snowflake_test::{Cluster, ids, value};

const STAND_IN: &str = r"
    CREATE SCHEMA snowflake;
    CREATE FUNCTION snowflake.nextval(seq regclass) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        now bigint := floor(extract(epoch FROM clock_timestamp() - '2023-01-01 00:00+00') * 1000);
        last bigint := coalesce(pg_sequence_last_value(seq), 0);
    BEGIN
        RETURN setval(seq, greatest((now << 22) + (7 << 12), last + 1));
    END $$;
    CREATE TABLE orders (id bigserial PRIMARY KEY, note text);
    CREATE TABLE lines (order_id bigint REFERENCES orders);
    INSERT INTO orders (note) SELECT 'before pgEdge' FROM generate_series(1, 3);
    ALTER TABLE orders ALTER id SET DEFAULT snowflake.nextval('orders_id_seq'::regclass);
    INSERT INTO orders (note) SELECT 'pgEdge' FROM generate_series(1, 3);
    INSERT INTO lines SELECT id FROM orders;";

const TIMES: &str = "SELECT bool_and(abs(extract(epoch FROM clock_timestamp() - snowflake_timestamp(id))) < 600 \
                     AND snowflake_worker(id) = 7) FROM orders WHERE id > 1000000";

/// In the layout of pgEdge, old IDs keep their meaning, and new ones are above them.
#[test]
fn ids_go_on_in_the_same_layout() {
    let cluster = Cluster::options().set("pg_snowflake.layout = 'pgedge'").set("pg_snowflake.worker_id = 7").start();
    let mut client = cluster.client();
    client.batch_execute(STAND_IN).unwrap();
    let rows =
        client.query("SELECT statement FROM snowflake_adopt_plan('orders') WHERE kind = 'statement'", &[]).unwrap();
    let statements: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(
        statements,
        [
            "LOCK TABLE public.orders IN ACCESS EXCLUSIVE MODE;",
            "ALTER TABLE public.orders ALTER COLUMN id SET DEFAULT public.snowflake_next();",
            "COMMENT ON SEQUENCE public.orders_id_seq IS \
             '[snowflake_adopt: DEFAULT snowflake.nextval(''public.orders_id_seq''::regclass)]';",
        ]
    );
    client.batch_execute("SELECT snowflake_adopt('orders')").unwrap();
    client.batch_execute("INSERT INTO orders (note) SELECT 'new' FROM generate_series(1, 3)").unwrap();
    assert!(value::<bool>(&mut client, TIMES));
    let all = ids(&client
        .query("SELECT id FROM orders ORDER BY CASE note WHEN 'new' THEN 2 WHEN 'pgEdge' THEN 1 ELSE 0 END, id", &[])
        .unwrap());
    rising(&all);
    assert_eq!(all.len(), 9);
    // The way back is to pgEdge's function.
    client.batch_execute("BEGIN; SELECT snowflake_release('orders')").unwrap();
    let default = "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'orders'::regclass AND adnum = 1";
    assert_eq!(value::<String>(&mut client, default), "snowflake.nextval('orders_id_seq'::regclass)");
    client.batch_execute("ROLLBACK").unwrap();
    client.batch_execute("DROP SCHEMA snowflake CASCADE").unwrap();
    survives_a_restore(&cluster, "postgres");
}

/// In the default layout, whose epoch is a year later, new IDs would sort below the old ones. That is refused before an
/// ID is made, so the server can still take the right layout.
#[test]
fn the_wrong_layout_is_refused() {
    let cluster = Cluster::options().set("pg_snowflake.worker_id = 7").start();
    let mut client = cluster.client();
    client.batch_execute(STAND_IN).unwrap();
    let obstacle: String =
        value(&mut client, "SELECT note FROM snowflake_adopt_plan('orders') WHERE kind = 'obstacle'");
    assert!(obstacle.contains("which is not above it"), "{obstacle}");
    let error = refused(&mut client, "SELECT * FROM snowflake_adopt('orders')", "55000");
    assert!(error.hint().unwrap().contains("pg_snowflake.layout"), "{error:?}");
    // No ID of the wrong layout was made: the layout can be changed.
    drop(client);
    cluster.append("postgresql.conf", "pg_snowflake.layout = 'pgedge'\n");
    cluster.restart(snowflake_test::Stop::Fast);
    let mut client = cluster.client();
    client.batch_execute("SELECT snowflake_adopt_layout()").unwrap();
    client.batch_execute("SELECT snowflake_adopt('orders')").unwrap();
    client.batch_execute("INSERT INTO orders (note) VALUES ('new')").unwrap();
    assert!(value::<bool>(&mut client, TIMES));
}
