//! Several tables by one plan.

use snowflake_test::check::refused;
use snowflake_test::{Cluster, value};

const TABLES: &str = "
    CREATE TABLE customers (id serial PRIMARY KEY, invited_by integer REFERENCES customers);
    CREATE TABLE orders (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer_id integer REFERENCES customers);
    CREATE TABLE lines (id serial PRIMARY KEY, order_id integer REFERENCES orders, customer_id integer REFERENCES customers);
    CREATE TABLE codes (code text PRIMARY KEY);
    CREATE VIEW orders_of AS SELECT o.id, c.id AS customer FROM orders o JOIN customers c ON c.id = customer_id;
    CREATE VIEW below AS SELECT l.id, customer FROM lines l JOIN orders_of b ON b.id = order_id;
    INSERT INTO customers DEFAULT VALUES; INSERT INTO orders (customer_id) VALUES (1); INSERT INTO lines VALUES (7, 1, 1)";

const ALL: &str = "'{lines, orders, customers}'";

fn server() -> Cluster {
    let cluster = Cluster::options().start();
    cluster.client().batch_execute(TABLES).unwrap();
    cluster
}

/// Each table is locked and rewritten once, whatever refers to what, and views over several of them come back.
#[test]
fn several_tables_by_one_plan() {
    let cluster = server();
    let mut client = cluster.client();
    let plan = format!(
        "SELECT statement, coalesce(rewrites, '') FROM snowflake_adopt_all_plan({ALL}, 'recreate') \
         WHERE kind = 'statement' AND statement ~ 'TYPE bigint|LOCK|DROP VIEW' ORDER BY step"
    );
    let plan: Vec<(String, String)> =
        client.query(&plan, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
    let plan: Vec<(&str, &str)> = plan.iter().map(|(statement, rewrites)| (&**statement, &**rewrites)).collect();
    let table = |name: &'static str, columns: &str| {
        let columns: Vec<String> =
            columns.split(' ').map(|column| format!("ALTER COLUMN {column} TYPE bigint")).collect();
        (format!("ALTER TABLE public.{name} {};", columns.join(", ")), format!("public.{name}"))
    };
    let mut rewrites: Vec<(String, String)> =
        plan[3..].iter().map(|(statement, table)| ((*statement).to_owned(), (*table).to_owned())).collect();
    rewrites.sort();
    assert_eq!(
        plan[..3],
        [
            ("LOCK TABLE public.customers, public.orders, public.lines IN ACCESS EXCLUSIVE MODE;", ""),
            ("DROP VIEW public.below;", ""),
            ("DROP VIEW public.orders_of;", ""),
        ]
    );
    assert_eq!(
        rewrites,
        [
            table("customers", "id invited_by"),
            table("lines", "id order_id customer_id"),
            table("orders", "id customer_id")
        ]
    );
    let mut found = client
        .query(
            &format!("SELECT tbl::text, col, first_id, highest_before FROM snowflake_adopt_all({ALL}, 'recreate')"),
            &[],
        )
        .unwrap();
    found.sort_by_key(|row| row.get::<_, String>(0));
    let names: Vec<(String, String, i64)> = found.iter().map(|row| (row.get(0), row.get(1), row.get(3))).collect();
    let row = |table: &str, highest| (table.to_owned(), "id".to_owned(), highest);
    assert_eq!(names, [row("customers", 1), row("lines", 7), row("orders", 1)]);
    let first: i64 = found[0].get(2);
    assert!(found.iter().all(|row| row.get::<_, i64>(2) == first) && first > 1_000_000_000_000);
    client
        .batch_execute(
            "INSERT INTO customers DEFAULT VALUES; INSERT INTO orders (customer_id) SELECT max(id) FROM customers",
        )
        .unwrap();
    client.batch_execute("INSERT INTO lines (order_id) SELECT max(id) FROM orders").unwrap();
    assert!(value::<bool>(
        &mut client,
        &format!("SELECT bool_and((id >= {first}) = (id > 7)) AND count(*) = 2 FROM below")
    ));
    // Once more: those that have IDs are left alone, and where all have, it says so.
    client.batch_execute("CREATE TABLE later (id serial PRIMARY KEY)").unwrap();
    let again = "SELECT string_agg(tbl::text, ' ') FROM snowflake_adopt_all('{orders, later, later}')";
    assert_eq!(value::<String>(&mut client, again), "later");
    let error = refused(&mut client, "SELECT * FROM snowflake_adopt_all('{orders, later}')", "55000");
    assert_eq!(error.message(), "columns public.orders.id, public.later.id make snowflake IDs already");
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM snowflake_adopt_all('{}')"), 0);
    refused(&mut client, "SELECT * FROM snowflake_adopt_all(NULL)", "22004");
    refused(&mut client, "SELECT * FROM snowflake_adopt_all_plan('{orders, NULL}')", "22004");
}

/// What is in the way of one is in the way of all, and nothing is done.
#[test]
fn all_of_them_or_none() {
    let cluster = server();
    let mut client = cluster.client();
    let types = "SELECT count(*) FROM pg_attribute WHERE atttypid = 'int8'::regtype AND attrelid IN ('orders'::regclass, 'lines'::regclass)";
    let error = refused(&mut client, &format!("SELECT * FROM snowflake_adopt_all({ALL})"), "55000");
    assert!(
        error.message().starts_with("columns public.lines.id, public.orders.id, public.customers.id cannot"),
        "{error:?}"
    );
    refused(&mut client, "SELECT * FROM snowflake_adopt_all('{lines, codes}', 'recreate')", "42804");
    client
        .batch_execute(
            "CREATE ROLE other; GRANT CREATE ON SCHEMA public TO other; CREATE TABLE apart (id serial PRIMARY KEY)",
        )
        .unwrap();
    client.batch_execute("ALTER TABLE apart OWNER TO other").unwrap();
    let error = refused(&mut client, "SELECT * FROM snowflake_adopt_all('{lines, apart}', 'recreate')", "55000");
    assert!(error.detail().is_some_and(|detail| detail.contains("public.apart to other")), "{error:?}");
    assert_eq!(value::<i64>(&mut client, types), 0);
}

/// The names of what says that there was no default are cut off at the same place.
#[test]
fn records_of_several_tables_have_names_of_their_own() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let long = "a_table_with_a_name_that_is_very_long_and_is_cut_off_when_more_";
    for last in ["1", "2"] {
        let table = format!("{}{last}", &long[..61]);
        client.batch_execute(&format!("CREATE TABLE {table} (id bigint PRIMARY KEY)")).unwrap();
    }
    let adopt = "SELECT count(*) FROM snowflake_adopt_all((SELECT array_agg(oid::regclass) FROM pg_class WHERE relname LIKE 'a_table%' AND relkind = 'r'))";
    assert_eq!(value::<i64>(&mut client, adopt), 2);
    let markers = "SELECT count(*) FROM pg_class WHERE relkind = 'S' AND obj_description(oid) LIKE '%no default%'";
    assert_eq!(value::<i64>(&mut client, markers), 2);
}

/// The names of columns come as the catalogue has them, whatever a statement would have to quote.
#[test]
fn columns_are_named_as_the_catalogue_names_them() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let names = ["Ord Id", "it's", "back\\slash", "a \"word\"", "größe", "select", "plain"];
    for (number, name) in names.iter().enumerate() {
        let quoted = name.replace('"', "\"\"");
        client.batch_execute(&format!("CREATE TABLE t{number} (\"{quoted}\" serial PRIMARY KEY)")).unwrap();
    }
    let tables: Vec<String> = (0..names.len()).map(|number| format!("t{number}")).collect();
    let all = format!(
        "SELECT tbl::text, col FROM snowflake_adopt_all('{{{}}}') JOIN pg_attribute ON attrelid = tbl AND attname = col \
         ORDER BY 1",
        tables.join(",")
    );
    let found: Vec<String> = client.query(&all, &[]).unwrap().iter().map(|row| row.get(1)).collect();
    assert_eq!(found, names);
}
