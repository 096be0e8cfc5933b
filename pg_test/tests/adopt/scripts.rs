//! The scripts of `examples/moving-in` where others have made the ground: names that match better than PostgreSQL's own, default
//! privileges that give less or more than the usual, tables of other roles.

use postgres::Client;
use snowflake_test::check::{refused, wait_for};
use snowflake_test::programs::output;
use snowflake_test::{Cluster, hostile, value};
use std::path::Path;
use std::thread;

/// A server with a database `prey`, in which merchant owns tables, and clerk writes.
fn server() -> Cluster {
    let cluster = Cluster::options().start();
    call(&mut cluster.client(), "CREATE ROLE merchant LOGIN; CREATE ROLE clerk LOGIN");
    call(&mut cluster.client(), "CREATE DATABASE prey");
    let mut superuser = cluster.client_of("postgres", "prey");
    superuser
        .batch_execute(
            "CREATE SCHEMA \"Of IDs\"; CREATE EXTENSION pg_snowflake SCHEMA \"Of IDs\"; GRANT USAGE ON SCHEMA \"Of IDs\" TO merchant; GRANT CREATE ON DATABASE prey TO merchant;
             CREATE SCHEMA shop AUTHORIZATION merchant; GRANT USAGE ON SCHEMA shop TO clerk; SET ROLE merchant;
             CREATE TABLE shop.orders (id serial PRIMARY KEY, parent_id integer REFERENCES shop.orders, note text DEFAULT 'n');
             CREATE TABLE shop.lines (order_id integer DEFAULT 1 REFERENCES shop.orders ON DELETE CASCADE,
                 line integer CHECK (order_id > 0), PRIMARY KEY (order_id, line));
             CREATE TABLE shop.counted (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n integer);
             CREATE TABLE shop.users (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text, made date DEFAULT '2026-01-01');
             CREATE TABLE shop.notes (id bigserial PRIMARY KEY, user_id uuid REFERENCES shop.users, CHECK (id > 0));
             INSERT INTO shop.orders (parent_id) SELECT nullif(n / 2, 0) FROM generate_series(1, 3000) n;
             INSERT INTO shop.lines SELECT n, 1 FROM generate_series(1, 3000) n;
             INSERT INTO shop.counted (n) VALUES (1), (2);
             INSERT INTO shop.users (name) VALUES ('a'), ('b'); INSERT INTO shop.notes (user_id) SELECT id FROM shop.users;
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA shop TO clerk;
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA shop TO clerk",
        )
        .unwrap();
    cluster
}

/// Runs statements by psql, and returns what it writes of errors.
fn psql(cluster: &Cluster, user: &str, statements: &str) -> String {
    let file = cluster.new_file("statements.sql");
    std::fs::write(&file, format!("SET client_min_messages = warning;\n{statements}")).unwrap();
    let mut psql = cluster.program("psql");
    psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--username", user, "--dbname", "prey", "--file"]).arg(file);
    output(&mut psql).errors
}

/// A script of `examples/moving-in`.
fn script(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/moving-in").join(name)).unwrap()
}

const PREPARE: &str = "CALL moving.prepare('shop.lines', 'order_id'); CALL moving.prepare('shop.orders', 'parent_id');
    CALL moving.prepare('shop.orders', 'id');";

const WRITE: &str = "INSERT INTO shop.orders (parent_id) VALUES (7); UPDATE shop.orders SET parent_id = 8 WHERE id OPERATOR(pg_catalog.=) 9;
    INSERT INTO shop.lines (order_id, line) VALUES (3, 77); DELETE FROM shop.lines WHERE line OPERATOR(pg_catalog.=) 77";

fn call(client: &mut Client, statements: &str) {
    client.batch_execute(statements).unwrap_or_else(|error| panic!("{statements}: {error:?}"));
}

/// All steps, and each of them again or taken back, while a clerk writes.
fn move_all(cluster: &Cluster) {
    let clerk = "SET ROLE clerk;";
    let moved = format!(
        "{staged}\n{PREPARE}\nSELECT percent FROM moving.progress;\nCALL moving.backfill(3, '1 ms');\nCALL moving.abandon();\n
         {PREPARE}\n{PREPARE}\nCALL moving.backfill(5, '0');\nSELECT moving.index_statements() \\gexec\nSELECT moving.index_statements() \\gexec
         CALL moving.check();\n{clerk} {WRITE}; RESET ROLE;\nCALL moving.swap('shop.orders', 'id');\nCALL moving.validate();\nCALL moving.finish();
         SELECT first_id, adopted_at, highest_before FROM moving.result;\nCALL moving.remove();\n{clerk} {WRITE}; RESET ROLE;\n
         {staged}\nCALL moving.prepare('shop.counted', 'id');\nCALL moving.backfill();\nSELECT moving.index_statements() \\gexec
         CALL moving.check();\nCALL moving.swap('shop.counted', 'id', '1 min');\nCALL moving.validate();\nCALL moving.finish();\nCALL moving.remove();\n
         {uuid}\nCALL from_uuid.move('shop.users', keep_as => 'uuid', order_by => 'made');\nDROP SCHEMA from_uuid CASCADE;\n",
        staged = script("staged.sql"),
        uuid = script("from-uuid.sql"),
    );
    let wrong = psql(cluster, "merchant", &moved);
    let wrong: Vec<_> = wrong.lines().filter(|line| line.contains("ERROR") || line.contains("WARNING")).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    let types = "SELECT string_agg(format_type(atttypid, NULL), ' ' ORDER BY attrelid, attname) FROM pg_attribute WHERE attrelid IN \
                 ('shop.orders'::regclass, 'shop.lines'::regclass, 'shop.counted'::regclass, 'shop.users'::regclass) AND attnum > 0 \
                 AND NOT attisdropped AND attname ~ 'id$'";
    let mut superuser = cluster.client_of("postgres", "prey");
    call(&mut superuser, "SET search_path = pg_catalog");
    assert_eq!(value::<String>(&mut superuser, types), "bigint bigint bigint bigint bigint uuid");
}

#[test]
fn in_a_hostile_world_nothing_of_others_runs() {
    let cluster = server();
    call(&mut cluster.client_of("postgres", "prey"), "GRANT clerk TO merchant");
    hostile::fill(&cluster, "prey", &["merchant"]);
    hostile::put_first(&cluster, "prey");
    move_all(&cluster);
    assert!(hostile::sprung(&cluster).is_empty(), "{:#?}", hostile::sprung(&cluster));
}

/// Where functions are not for PUBLIC, clients write all the same, at each step; and nobody else may touch the tools, where everything is
/// for PUBLIC.
#[test]
fn whatever_default_privileges_are_clients_write_and_change_no_tool() {
    let none = "REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC";
    let all = ["SCHEMAS", "TABLES", "FUNCTIONS"].map(|kind| format!("GRANT ALL ON {kind} TO clerk, PUBLIC"));
    for change in [vec![none.to_owned()], all.to_vec()] {
        let cluster = server();
        for change in &change {
            call(&mut cluster.client_of("merchant", "prey"), &format!("ALTER DEFAULT PRIVILEGES {change}"));
        }
        let mut clerk = cluster.client_of("clerk", "prey");
        let mut write = |after: &str| {
            clerk.batch_execute(WRITE).unwrap_or_else(|error| panic!("{change:?}: after {after}: {error:?}"));
        };
        let script = script("staged.sql");
        for step in [
            &script,
            PREPARE,
            "CALL moving.backfill()",
            "SELECT moving.index_statements() \\gexec",
            "CALL moving.check()",
        ] {
            assert_eq!(psql(&cluster, "merchant", step), "");
            write(step);
        }
        let mut superuser = cluster.client_of("postgres", "prey");
        let of_others = "SELECT string_agg(acl::text, ' ') FROM (SELECT unnest(nspacl) AS acl, nspname AS name FROM pg_namespace \
             WHERE nspname = 'moving' UNION ALL SELECT unnest(relacl), relname FROM pg_class WHERE relnamespace = 'moving'::regnamespace \
             UNION ALL SELECT unnest(proacl), proname FROM pg_proc WHERE pronamespace = 'moving'::regnamespace AND prorettype <> 'trigger'::regtype \
             ) made WHERE acl::text NOT LIKE 'merchant=%' AND name <> 'same'";
        assert_eq!(value::<Option<String>>(&mut superuser, of_others), None, "{change:?}");
        for step in [
            "CALL moving.swap('shop.orders', 'id')",
            "CALL moving.validate()",
            "CALL moving.finish()",
            "CALL moving.remove()",
        ] {
            assert_eq!(psql(&cluster, "merchant", step), "");
            write(step);
        }
    }
}

/// A table's triggers, constraints and indexes run code of its owner's: so nobody else moves it, not even a superuser.
#[test]
fn tables_of_others_are_not_moved() {
    let cluster = server();
    let mut superuser = cluster.client_of("postgres", "prey");
    for name in ["staged.sql", "from-uuid.sql"] {
        assert_eq!(psql(&cluster, "postgres", &script(name)), "");
    }
    let error = refused(&mut superuser, "CALL moving.prepare('shop.orders', 'id')", "42501");
    assert_eq!(error.message(), "table shop.orders belongs to merchant");
    let error = refused(&mut superuser, "CALL from_uuid.move('shop.users', keep_as => 'uuid')", "P0001");
    assert!(error.detail().is_some_and(|detail| detail.contains("table shop.users belongs to merchant")), "{error:?}");
    call(&mut superuser, "BEGIN; DROP EXTENSION pg_snowflake CASCADE; CREATE TABLE shop.early (id serial PRIMARY KEY)");
    refused(&mut superuser, "CALL moving.prepare('shop.early', 'id')", "42883");
    call(&mut superuser, "ROLLBACK");
    // Given away in the middle.
    call(&mut superuser, "CREATE TABLE shop.own (id serial PRIMARY KEY)");
    call(&mut superuser, "INSERT INTO shop.own DEFAULT VALUES");
    call(&mut superuser, "CALL moving.prepare('shop.own', 'id')");
    call(&mut superuser, "ALTER TABLE shop.own OWNER TO merchant");
    for step in ["backfill()", "check()", "swap('shop.own', 'id')", "abandon()"] {
        refused(&mut superuser, &format!("CALL moving.{step}"), "42501");
    }
}

/// A name may stand for another table when a lock is granted: whoever owns the schema can drop what is in it.
#[test]
fn tables_that_take_the_place_of_ones_own() {
    let cluster = server();
    let mut superuser = cluster.client_of("postgres", "prey");
    let mut merchant = cluster.client_of("merchant", "prey");
    call(
        &mut merchant,
        "CREATE FUNCTION shop.trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
            IF current_user <> 'merchant' THEN RAISE LOG 'sprung: as %', current_user; END IF; RETURN NEW; END $$",
    );
    for name in ["staged.sql", "from-uuid.sql"] {
        assert_eq!(psql(&cluster, "postgres", &script(name)), "");
    }
    for step in ["backfill()", "check()", "swap('shop.own', 'id')", "abandon()"] {
        call(
            &mut superuser,
            "DROP TABLE IF EXISTS shop.own; TRUNCATE moving.columns; CREATE TABLE shop.own (id serial PRIMARY KEY)",
        );
        call(&mut superuser, "INSERT INTO shop.own DEFAULT VALUES");
        call(&mut superuser, "CALL moving.prepare('shop.own', 'id')");
        let attack = "DROP TABLE shop.own; CREATE TABLE shop.own (id integer, id_moving bigint); INSERT INTO shop.own VALUES (1, NULL); \
                      CREATE TRIGGER trap BEFORE UPDATE ON shop.own FOR EACH ROW EXECUTE FUNCTION shop.trap()";
        takes_the_place(&cluster, attack, &format!("CALL moving.{step}"));
        call(&mut superuser, "DROP FUNCTION IF EXISTS moving.same CASCADE; DROP SCHEMA moving CASCADE");
        assert_eq!(psql(&cluster, "postgres", &script("staged.sql")), "");
    }
    call(&mut superuser, "CREATE TABLE shop.keys (id uuid PRIMARY KEY)");
    let attack = "ALTER SCHEMA shop RENAME TO old; CREATE SCHEMA shop; CREATE TABLE shop.keys (id uuid PRIMARY KEY)";
    let locked = format!("LOCK TABLE shop.keys; {attack}");
    call(&mut superuser, "GRANT ALL ON shop.keys TO merchant");
    takes_the_place(&cluster, &locked, "CALL from_uuid.move('shop.keys', keep_as => 'uuid')");
}

/// While a superuser's call waits for a table, merchant puts another one in its place.
fn takes_the_place(cluster: &Cluster, attack: &str, step: &str) {
    let mut onlooker = cluster.client();
    let mut merchant = cluster.client_of("merchant", "prey");
    let mut transaction = merchant.transaction().unwrap();
    transaction.batch_execute(attack).unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| cluster.client_of("postgres", "prey").batch_execute(step).unwrap_err());
        let waiting = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        wait_for("the call waits", || value(&mut onlooker, waiting));
        transaction.commit().unwrap();
        let error = waits.join().unwrap();
        let code = error.code().map(|code| code.code().to_owned());
        assert!(["40001", "42P01"].map(str::to_owned).map(Some).contains(&code), "{step}: {error:?}");
    });
    assert!(hostile::sprung(cluster).is_empty(), "{step}: {:?}", hostile::sprung(cluster));
}

/// What a table's own triggers look for, they find on the session's `search_path`; and that is the same afterwards.
#[test]
fn triggers_find_what_they_use() {
    let cluster = server();
    let mut client = cluster.client_of("merchant", "prey");
    call(
        &mut client,
        "SET search_path = shop; CREATE TABLE seen (id bigint);
         CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO seen VALUES (NEW.id); RETURN NEW; END';
         CREATE TRIGGER note AFTER UPDATE ON counted FOR EACH ROW EXECUTE FUNCTION note();
         CREATE FUNCTION is_small(n integer) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN n < (SELECT 1000 + count(*) FROM seen); END';
         ALTER TABLE counted ADD CHECK (is_small(n) AND id > 0)",
    );
    let steps = "SET search_path = shop;\n\\set before :ON_ERROR_STOP\n";
    let moved = format!(
        "{steps}{}CALL moving.prepare('counted', 'id');\nCALL moving.backfill();\nSELECT moving.index_statements() \\gexec\n
         CALL moving.check();\nCALL moving.swap('counted', 'id');\nCALL moving.validate();\nCALL moving.finish();\nCALL moving.remove();\n
         SELECT 1 / (current_setting('search_path') = 'shop')::integer; INSERT INTO counted (n) VALUES (3);",
        script("staged.sql")
    );
    assert_eq!(psql(&cluster, "merchant", &moved), "");
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM seen"), 2);
}

/// A backfill that its policies keep rows from would not end with equal columns.
#[test]
fn rows_that_their_owner_does_not_see_are_in_the_way() {
    let cluster = server();
    let mut merchant = cluster.client_of("merchant", "prey");
    call(
        &mut merchant,
        "CREATE POLICY p ON shop.counted USING (n > 1); ALTER TABLE shop.counted ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
    );
    assert_eq!(psql(&cluster, "merchant", &script("staged.sql")), "");
    let hidden = |step: &str| {
        let error = psql(&cluster, "merchant", step);
        let is_said = error.contains("row-level security hides rows of shop.counted from its owner");
        assert!(is_said && error.contains("NO FORCE ROW LEVEL SECURITY"), "{step}: {error}");
    };
    hidden("CALL moving.prepare('shop.counted', 'id')");
    call(&mut merchant, "ALTER TABLE shop.counted NO FORCE ROW LEVEL SECURITY");
    assert_eq!(psql(&cluster, "merchant", "CALL moving.prepare('shop.counted', 'id')"), "");
    call(&mut merchant, "ALTER TABLE shop.counted FORCE ROW LEVEL SECURITY");
    hidden("CALL moving.backfill()");
    call(&mut merchant, "ALTER TABLE shop.counted NO FORCE ROW LEVEL SECURITY");
    assert_eq!(
        psql(
            &cluster,
            "merchant",
            "CALL moving.backfill(); SELECT moving.index_statements() \\gexec\nCALL moving.check()"
        ),
        ""
    );
}
