//! Functions that run for rows: what the plan says of them, and sessions that have called them before, while a column becomes wider.

use super::staged::{call, load_staged, make_indexes};
use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::{Cluster, value};
use std::thread;

/// The functions do not name the table of their triggers.
const TABLES: &str = r#"
    CREATE TABLE audit (of_table name, key bigint, was bigint);
    CREATE SCHEMA "Of 's"; CREATE TABLE orders (id serial PRIMARY KEY, parent_id integer REFERENCES orders, n integer DEFAULT 0);
    CREATE TABLE lines (id bigserial PRIMARY KEY, order_id integer REFERENCES orders ON UPDATE CASCADE ON DELETE CASCADE);
    CREATE FUNCTION "Of 's"."Watch it"() RETURNS trigger LANGUAGE plpgsql COST 7 AS $$
    DECLARE r record; BEGIN
        r := NEW; INSERT INTO audit VALUES (TG_TABLE_NAME, NEW.id, r.id); NEW.n := NEW.n + 1; RETURN NEW;
    END $$;
    CREATE FUNCTION line() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP <> 'DELETE' AND NEW.order_id IS NOT NULL THEN PERFORM set_config('of.line', NEW.order_id::text, true); END IF;
        RETURN coalesce(NEW, OLD);
    END $$;
    CREATE FUNCTION total(of_order bigint) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE o orders; last record; BEGIN
        SELECT * INTO o FROM orders WHERE id = of_order; FOR last IN SELECT id FROM orders LOOP o.id := last.id; END LOOP; RETURN o.id + last.id;
    END $$;
    CREATE PROCEDURE make(INOUT made bigint) LANGUAGE plpgsql SECURITY DEFINER AS $$
    DECLARE o orders%ROWTYPE; BEGIN
        INSERT INTO orders DEFAULT VALUES RETURNING * INTO o; made := o.id;
    END $$;
    CREATE TRIGGER watch BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION "Of 's"."Watch it"();
    CREATE TRIGGER "a line" AFTER INSERT OR UPDATE OR DELETE ON lines FOR EACH ROW EXECUTE FUNCTION line();
    INSERT INTO orders (parent_id) SELECT nullif(n - 1, 0) FROM generate_series(1, 50) n; INSERT INTO lines (order_id) SELECT 1 + n % 50 FROM generate_series(1, 99) n"#;

/// What sessions do again and again: by triggers, functions, a procedure, references.
const WORK: [&str; 6] = [
    "INSERT INTO orders (parent_id) VALUES (1)",
    "INSERT INTO lines (order_id) VALUES (2)",
    "UPDATE orders SET n = n + 1 WHERE id = 3",
    "UPDATE lines SET order_id = 4 WHERE id = 5",
    "SELECT total(3)",
    "CALL make(NULL)",
];

fn work(client: &mut Client) {
    WORK.iter().for_each(|statement| call(client, statement));
}

fn sessions(cluster: &Cluster) -> Vec<Client> {
    let mut sessions: Vec<Client> = (0..5).map(|_| cluster.client()).collect();
    // More than the five calls after which PostgreSQL may keep one query plan for all.
    for _ in 0..7 {
        sessions.iter_mut().for_each(work);
    }
    sessions
}

fn notes(client: &mut Client, kind: &str) -> Vec<String> {
    let query = format!("SELECT coalesce(statement, note) FROM snowflake_adopt_plan('orders') WHERE kind = '{kind}'");
    client.query(&query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

#[test]
fn sessions_that_are_open_go_on() {
    let cluster = Cluster::options().start();
    call(&mut cluster.client(), TABLES);
    let of_functions = "SELECT string_agg(concat_ws(' ', oid::regprocedure, procost, prosecdef, provolatile, proacl), E'\\n' ORDER BY oid) \
                        FROM pg_proc WHERE prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql')";
    let before: String = value(&mut cluster.client(), of_functions);
    let mut sessions = sessions(&cluster);
    let planned = notes(&mut cluster.client(), "note").join("\n");
    for function in
        ["\"Of 's\".\"Watch it\"() runs for rows: trigger watch on table public.orders", "public.line() runs for rows"]
    {
        assert!(planned.contains(function), "{planned}");
    }
    assert!(!planned.contains("have them compiled again"), "{planned}");
    call(&mut cluster.client(), "SELECT snowflake_adopt('orders')");
    sessions.iter_mut().for_each(work);
    assert_eq!(value::<String>(&mut cluster.client(), of_functions), before);
    let ids = "SELECT count(*) FROM audit WHERE of_table = 'orders' AND key > 1000000000000";
    // 5 sessions, each of which inserts two orders.
    assert_eq!(value::<i64>(&mut cluster.client(), ids), 10);
}

/// The same in stages: none of the sessions sees an error between the first step and the last.
#[test]
fn sessions_that_are_open_go_on_through_all_stages() {
    let cluster = Cluster::options().start();
    call(&mut cluster.client(), TABLES);
    load_staged(&cluster);
    let mut sessions = sessions(&cluster);
    let mut client = cluster.client();
    for step in [
        "prepare('lines', 'order_id')",
        "prepare('orders', 'parent_id')",
        "prepare('orders', 'id')",
        "backfill(1, '0')",
        "",
        "check()",
        "swap('orders', 'id')",
        "validate()",
        "finish()",
        "remove()",
    ] {
        match step {
            "" => make_indexes(&cluster),
            step => call(&mut client, &format!("CALL moving.{step}")),
        }
        sessions.iter_mut().for_each(work);
    }
}

/// A function of another role cannot be touched. The plan says so, and in which line a variable is too small.
#[test]
fn the_plan_says_what_it_cannot_do() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(
        &mut client,
        "CREATE ROLE owner LOGIN; CREATE ROLE other; GRANT CREATE ON SCHEMA public TO owner, other; SET ROLE other;
         CREATE FUNCTION of_other() RETURNS trigger LANGUAGE plpgsql AS $$
         DECLARE
             small integer;
         BEGIN
             small := NEW.id;
             RETURN NEW;
         END $$;
         SET ROLE owner; CREATE TABLE orders (id serial PRIMARY KEY);
         CREATE TRIGGER t BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION of_other(); RESET ROLE",
    );
    let mut owner = cluster.client_of("owner", "postgres");
    let planned = notes(&mut owner, "obstacle").join("\n");
    assert!(
        planned.contains(
            "line 5 of function public.of_other() may put the key into a variable that is too small: small := NEW.id;"
        ),
        "{planned}"
    );
    let planned = notes(&mut owner, "note").join("\n");
    assert!(
        planned.contains("must connect again, as only their owners can have them compiled again: public.of_other()"),
        "{planned}"
    );
    assert!(!notes(&mut owner, "statement").join("\n").contains("of_other"), "{planned}");
}

/// Many tables share a function: two moves at once change its row one after the other.
#[test]
fn two_moves_share_a_function() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(&mut client, "CREATE FUNCTION shared() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'");
    for table in ["a", "b"] {
        call(
            &mut client,
            &format!(
                "CREATE TABLE {table} (id serial PRIMARY KEY); CREATE TRIGGER t BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION shared()"
            ),
        );
    }
    let mut first = client.transaction().unwrap();
    first.batch_execute("SELECT snowflake_adopt('a')").unwrap();
    thread::scope(|scope| {
        let second = scope.spawn(|| cluster.client().batch_execute("SELECT snowflake_adopt('b')"));
        let waits = "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%snowflake_adopt(''b''%' \
                     AND pid <> pg_backend_pid()";
        snowflake_test::check::wait_for("the second waits", || value(&mut cluster.client(), waits));
        first.commit().unwrap();
        second.join().unwrap().unwrap();
    });
}

/// By ranges or lists of the old key, no partition would take a new ID.
#[test]
fn partitions_by_the_old_key_are_in_the_way() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(
        &mut client,
        "CREATE TABLE orders (id bigserial, n integer, PRIMARY KEY (id, n)) PARTITION BY RANGE (id, n);
         CREATE TABLE p PARTITION OF orders FOR VALUES FROM (MINVALUE, MINVALUE) TO (1000, 0);
         CREATE TABLE q PARTITION OF orders FOR VALUES FROM (1000, 0) TO (2000, 0) PARTITION BY LIST (id);
         CREATE TABLE r PARTITION OF q DEFAULT; INSERT INTO orders (n) SELECT generate_series(1, 9)",
    );
    let obstacles = notes(&mut client, "obstacle");
    assert!(matches!(&*obstacles, [one] if one.contains("public.orders is partitioned by the key")), "{obstacles:?}");
    refused(&mut client, "SELECT snowflake_adopt('orders')", "55000");
    // What the hint says.
    call(&mut client, "CREATE TABLE rest PARTITION OF orders FOR VALUES FROM (2000, 0) TO (MAXVALUE, MAXVALUE)");
    call(&mut client, "SELECT snowflake_adopt('orders'); INSERT INTO orders (n) VALUES (1)");
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM rest"), 1);
}
