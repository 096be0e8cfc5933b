//! IDs that tell nothing: `examples/opaque-ids/opaque-ids.sql`. It needs pgcrypto, which the PostgreSQL that is fetched for 14 and 16 lacks.

use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::{Cluster, hostile, run, value};
use std::collections::BTreeSet;
use std::path::Path;

/// A server with the example, and a role of an application; `None`, and a line that says so, where there is no pgcrypto.
fn server() -> Option<Cluster> {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let available = "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pgcrypto')";
    if !value::<bool>(&mut client, available) {
        println!("left out: this PostgreSQL has no pgcrypto");
        return None;
    }
    install(&cluster);
    client
        .batch_execute(
            "CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA opaque TO app;
             GRANT EXECUTE ON FUNCTION opaque.public_id(bigint, text), opaque.internal_id(uuid, text) TO app;
             CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), n integer);
             INSERT INTO orders (n) SELECT n FROM generate_series(1, 5000) n;
             INSERT INTO orders VALUES (0, 0), (9223372036854775807, 0), (-1, 0), (-9223372036854775808, 0);
             GRANT SELECT ON orders TO app; ANALYZE orders",
        )
        .unwrap();
    Some(cluster)
}

fn install(cluster: &Cluster) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/opaque-ids/opaque-ids.sql");
    let copy = cluster.new_file("opaque-ids.sql");
    std::fs::copy(script, &copy).unwrap();
    run(cluster.program("psql").args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file"]).arg(copy));
}

const BACK: &str = "
    SELECT bool_and(opaque.internal_id(opaque.public_id(id, 'order'), 'order') = id) AND count(*) = 5004
        AND count(DISTINCT opaque.public_id(id, 'order')) = 5004 FROM orders";

#[test]
fn each_has_one_public_form_and_comes_back() {
    let Some(cluster) = server() else { return };
    let mut app = cluster.client_of("app", "postgres");
    assert!(value::<bool>(&mut app, BACK));
    // Another kind's is none, nor is what somebody changes or guesses.
    let none = "SELECT count(opaque.internal_id(opaque.public_id(id, 'order'), 'customer')) + count(opaque.internal_id(gen_random_uuid(), 'order')) \
        FROM orders";
    assert_eq!(value::<i64>(&mut app, none), 0);
    let none = "SELECT count(*) FROM orders WHERE opaque.public_id(id, 'order') = opaque.public_id(id, 'customer')";
    assert_eq!(value::<i64>(&mut app, none), 0);
    // Neither order nor time shows: half of all neighbors rise.
    let rising = "SELECT count(*) FILTER (WHERE public > before) FROM (SELECT opaque.public_id(id, 'order') AS public, \
        lag(opaque.public_id(id, 'order')) OVER (ORDER BY id) AS before FROM orders) AS neighbors";
    let rising: i64 = value(&mut app, rising);
    assert!((2300..2700).contains(&rising), "{rising}");
}

#[test]
fn a_row_is_found_by_the_index() {
    let Some(cluster) = server() else { return };
    let mut app = cluster.client_of("app", "postgres");
    app.batch_execute("PREPARE find(uuid) AS SELECT n FROM orders WHERE id = opaque.internal_id($1, 'order')").unwrap();
    for mode in ["force_custom_plan", "force_generic_plan"] {
        app.batch_execute(&format!("SET plan_cache_mode = {mode}")).unwrap();
        let explain = "EXPLAIN (COSTS OFF) EXECUTE find('00000000-0000-0000-0000-000000000000')";
        let plan: Vec<String> = app.query(explain, &[]).unwrap().iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(plan.contains("Index Cond: (id = opaque.internal_id("), "{mode}: {plan}");
    }
}

#[test]
fn only_who_may_turns_them_and_nobody_reads_the_key() {
    let Some(cluster) = server() else { return };
    let mut app = cluster.client_of("app", "postgres");
    refused(&mut app, "SELECT * FROM opaque.keys", "42501");
    cluster.client().batch_execute("CREATE ROLE other LOGIN; GRANT USAGE ON SCHEMA opaque TO other").unwrap();
    let mut other = cluster.client_of("other", "postgres");
    refused(&mut other, "SELECT opaque.public_id(1, 'order')", "42501");
    refused(&mut other, "SELECT opaque.internal_id(gen_random_uuid(), 'order')", "42501");
    // The names in the functions are those of their author.
    app.batch_execute(
        "CREATE FUNCTION pg_temp.encrypt(bytea, bytea, text) RETURNS bytea LANGUAGE sql AS 'SELECT $2'; SET search_path = pg_temp, public",
    )
    .unwrap();
    assert!(value::<bool>(&mut app, "SELECT opaque.internal_id(opaque.public_id(5, 'order'), 'order') = 5"));
}

/// After a new key, the public IDs are others, and the old ones are still read, until the old key goes.
#[test]
fn keys_change() {
    let Some(cluster) = server() else { return };
    let mut client = cluster.client();
    let find = |client: &mut Client, public: &str| -> Option<i64> {
        value(client, &format!("SELECT opaque.internal_id('{public}', 'order')"))
    };
    let before: String = value(&mut client, "SELECT opaque.public_id(7, 'order')::text");
    client.batch_execute("INSERT INTO opaque.keys (key) VALUES (sha256(gen_random_uuid()::text::bytea))").unwrap();
    let after: String = value(&mut client, "SELECT opaque.public_id(7, 'order')::text");
    assert_ne!(before, after);
    assert_eq!((find(&mut client, &before), find(&mut client, &after)), (Some(7), Some(7)));
    client.batch_execute("DELETE FROM opaque.keys WHERE number = 1").unwrap();
    assert_eq!((find(&mut client, &before), find(&mut client, &after)), (None, Some(7)));
    assert!(value::<bool>(&mut client, BACK));
}

/// The functions run as whoever made them: no name in them may be somebody else's.
#[test]
fn nothing_of_others_runs() {
    let cluster = Cluster::options().hostile().create();
    cluster.start();
    let mut client = cluster.client();
    if !value::<bool>(&mut client, "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pgcrypto')") {
        println!("left out: this PostgreSQL has no pgcrypto");
        return;
    }
    hostile::put_first(&cluster, "postgres");
    install(&cluster);
    let mut client = cluster.client();
    let back = "SELECT opaque.internal_id(opaque.public_id(5, 'order'), 'order')";
    assert_eq!(value::<i64>(&mut client, back), 5);
    assert_eq!(hostile::sprung(&cluster), BTreeSet::new());
}
