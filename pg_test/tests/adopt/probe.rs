//! The row that is tried before a move and after it.

use super::staged::call;
use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::{Cluster, value};

fn server(statements: &str) -> (Cluster, Client) {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    // The row's functions find names in it only where nobody else can create anything there, as from PostgreSQL 15 on.
    call(&mut client, "REVOKE CREATE ON SCHEMA public FROM PUBLIC");
    call(&mut client, statements);
    (cluster, client)
}

/// The type that a key has before the move is used up: a value below all others tells what fails by the move alone.
#[test]
fn a_full_key_is_tried_by_a_value_that_fits() {
    let (_cluster, mut client) = server(
        "CREATE TABLE log (key integer); CREATE TABLE full_table (id serial PRIMARY KEY); INSERT INTO full_table VALUES (1), (2147483647);
         CREATE FUNCTION logs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (NEW.id); RETURN NULL; END $$;
         CREATE TRIGGER a AFTER INSERT ON full_table FOR EACH ROW EXECUTE FUNCTION logs()",
    );
    let error = refused(&mut client, "SELECT snowflake_adopt('full_table')", "55000");
    assert!(error.detail().unwrap().contains("integer out of range"), "{error:?}");
    call(
        &mut client,
        "DROP TRIGGER a ON full_table; SELECT snowflake_adopt('full_table'); INSERT INTO full_table DEFAULT VALUES",
    );
}

/// What would fail at each INSERT after the move: nothing is moved.
#[test]
fn a_move_that_breaks_writing_is_not_made() {
    let (_cluster, mut client) = server(
        "CREATE TABLE log (key integer, at timestamptz DEFAULT now()); CREATE TABLE plain (id serial PRIMARY KEY, n integer NOT NULL);
         CREATE FUNCTION narrow() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE small integer; BEGIN small := NEW.id; RETURN NEW; END $$;
         CREATE FUNCTION logs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (NEW.id); RETURN NULL; END $$;
         CREATE FUNCTION of_integer(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT $1';
         INSERT INTO plain (n) VALUES (7)",
    );
    for (number, what) in [
        "CREATE TRIGGER t BEFORE INSERT ON TABLE_ FOR EACH ROW EXECUTE FUNCTION narrow()",
        "CREATE TRIGGER t AFTER INSERT ON TABLE_ FOR EACH ROW EXECUTE FUNCTION logs()",
        "ALTER TABLE TABLE_ ADD CHECK (id < 1000000)",
        "ALTER TABLE TABLE_ ALTER id TYPE bigint, ADD CHECK (id % 3 <> 0 OR id < 1000), ADD CHECK (id % 3 = 0 OR id < 1000)",
        "CREATE RULE r AS ON INSERT TO TABLE_ DO ALSO INSERT INTO log VALUES (NEW.id)",
    ]
    .iter()
    .enumerate()
    {
        for of_rows in ["", "n integer NOT NULL,"] {
            let table = format!("t{number}{}", of_rows.len());
            call(&mut client, &format!("CREATE TABLE {table} (id serial PRIMARY KEY, {of_rows} note text)"));
            if !of_rows.is_empty() {
                // By the defaults alone, no row can be written: the newest is copied.
                call(&mut client, &format!("INSERT INTO {table} (n) SELECT generate_series(1, 3)"));
            }
            if what.contains("CREATE RULE") {
                call(&mut client, &format!("ALTER TABLE {table} ALTER id TYPE bigint"));
            }
            call(&mut client, &what.replace("TABLE_", &table));
            let state = format!("SELECT concat_ws(' ', format_type(atttypid, NULL), (SELECT last_value FROM {table}_id_seq), \
                (SELECT count(*) FROM {table}), (SELECT count(*) FROM log)) FROM pg_attribute WHERE attrelid = '{table}'::regclass AND attname = 'id'");
            let before: String = value(&mut client, &state);
            // What the text shows is waived: the row is tried, and fails.
            call(&mut client, "SET pg_snowflake.waive = 'functions, checks'");
            let plan = format!("SELECT count(*) FILTER (WHERE kind = 'obstacle') FROM snowflake_adopt_plan('{table}')");
            assert_eq!(value::<i64>(&mut client, &plan), 0, "{what}");
            call(&mut client, "RESET pg_snowflake.waive");
            refused(&mut client, &format!("SELECT snowflake_adopt('{table}')"), "55000");
            let is_in_plan = value::<i64>(&mut client, &plan) > 0;
            assert_eq!(is_in_plan, what.contains("narrow()") || what.contains("< 1000000"), "{what}");
            if is_in_plan {
                call(&mut client, "SET pg_snowflake.waive = 'functions, checks'; BEGIN");
                call(&mut client, &format!("SELECT snowflake_adopt('{table}')"));
                call(&mut client, "ROLLBACK; RESET pg_snowflake.waive");
                continue;
            }
            let error = client.batch_execute(&format!("SELECT snowflake_adopt('{table}')")).unwrap_err();
            let error = error.as_db_error().unwrap();
            assert_eq!(error.message(), format!("rows of table public.{table} could not be written any more"), "{what}: {error:?}");
            assert_eq!(value::<String>(&mut client, &state), before, "{what}");
            call(&mut client, &format!("SET pg_snowflake.probe = off; SELECT snowflake_adopt('{table}'); RESET pg_snowflake.probe"));
        }
    }
}

/// What fails for reasons of its own does not hinder a move; and nothing of the try stays.
#[test]
fn what_failed_before_is_no_hindrance() {
    let (_cluster, mut client) = server(
        "CREATE TABLE parent (id bigint PRIMARY KEY); CREATE TABLE log (key bigint);
         CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'never'; END $$;
         CREATE FUNCTION logs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (NEW.id); RETURN NULL; END $$;
         CREATE TABLE a (id serial PRIMARY KEY, parent_id bigint NOT NULL DEFAULT 5 REFERENCES parent);
         CREATE TABLE b (id serial PRIMARY KEY, code text NOT NULL UNIQUE); INSERT INTO b (code) VALUES ('x');
         CREATE TABLE c (id serial PRIMARY KEY); CREATE TRIGGER t BEFORE INSERT ON c FOR EACH ROW EXECUTE FUNCTION never();
         CREATE TABLE d (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, twice bigint GENERATED ALWAYS AS (n * 2) STORED, n integer);
         CREATE TRIGGER t AFTER INSERT ON d FOR EACH ROW EXECUTE FUNCTION logs(); INSERT INTO d (n) VALUES (1), (2);
         CREATE TABLE e (id smallserial PRIMARY KEY); INSERT INTO e VALUES (32767);
         CREATE TABLE f (id bigserial PRIMARY KEY, other integer GENERATED ALWAYS AS IDENTITY); ALTER TABLE f ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
    );
    for table in ["a", "b", "c", "d", "e", "f"] {
        let rows = format!("SELECT concat((SELECT count(*) FROM {table}), ' ', (SELECT count(*) FROM log))");
        let before: String = value(&mut client, &rows);
        call(&mut client, &format!("SELECT snowflake_adopt('{table}')"));
        assert_eq!(value::<String>(&mut client, &rows), before, "{table}");
    }
    // The sequence of the key is not asked: the way back goes on where it was.
    assert_eq!(value::<i64>(&mut client, "SELECT snowflake_release('d', start => 3)"), 3);
}

/// All that runs for the row runs as the owner of the table, and finds nothing that others have put into its way.
#[test]
fn it_runs_as_the_owner_alone() {
    let (cluster, mut client) = server(
        "CREATE ROLE owner; CREATE ROLE thief LOGIN; CREATE SCHEMA shop AUTHORIZATION owner; GRANT USAGE, CREATE ON SCHEMA shop TO thief;
         CREATE TABLE ran (by name); GRANT INSERT, SELECT ON ran TO PUBLIC; SET ROLE owner;
         CREATE TABLE shop.orders (id serial PRIMARY KEY, by name DEFAULT current_user, n integer);
         CREATE FUNCTION shop.watch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF current_user <> 'owner' THEN RAISE 'as %', current_user; END IF;
             NEW.n := helper(1); RETURN NEW; END $$;
         CREATE TRIGGER t BEFORE INSERT ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.watch(); RESET ROLE",
    );
    // As somebody else who may create functions in the schema.
    let mut thief = cluster.client_of("thief", "postgres");
    call(
        &mut thief,
        "CREATE FUNCTION shop.helper(integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.ran VALUES (current_user); \
         RAISE WARNING 'stolen'; PERFORM set_config('of.thief', current_user, false); RETURN 1; END $$",
    );
    call(&mut client, "SET search_path = shop, public; SELECT snowflake_adopt('shop.orders')");
    assert_eq!(value::<String>(&mut client, "SELECT coalesce(current_setting('of.thief', true), '')"), "");
    assert_eq!(value::<String>(&mut client, "SHOW search_path"), "shop, public");
    // He himself may write by it, of course.
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM ran"), 0);
}

/// What the text of the catalogue shows stands in the way, by a name with which it can be waived; then the row that is tried makes a warning.
#[test]
fn what_breaks_every_insert_is_in_the_way_and_can_be_waived() {
    let cluster = Cluster::options().start();
    let (tell, notices) = std::sync::mpsc::channel();
    let mut config = postgres::Config::new();
    config.host_path(cluster.socket()).user("postgres").dbname("postgres");
    let mut client = config
        .notice_callback(move |notice| tell.send(notice.message().to_owned()).unwrap())
        .connect(postgres::NoTls)
        .unwrap();
    call(
        &mut client,
        "CREATE FUNCTION narrow() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE small integer; BEGIN small := NEW.\"Ord Id\"; RETURN NEW; END $$",
    );
    for (waiver, define, says) in [
        (
            "casts",
            "CREATE INDEX \"by parity\" ON t ((\"Ord Id\" % 2), n)",
            "index public.\"by parity\" casts \"Ord Id\" to integer",
        ),
        ("casts", "CREATE INDEX ON t (n) WHERE \"Ord Id\" % 2 = 1", "casts \"Ord Id\" to integer"),
        ("casts", "ALTER TABLE t ADD CHECK (\"Ord Id\"::smallint + n > 0)", "casts \"Ord Id\" to smallint"),
        (
            "checks",
            "ALTER TABLE t ADD CONSTRAINT \"few\" CHECK (\"Ord Id\" < 1000)",
            "no new ID passes the constraint few",
        ),
        (
            "functions",
            "CREATE TRIGGER w BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION narrow()",
            "small := NEW.\"Ord Id\"",
        ),
    ] {
        let of_type = if define.contains("::smallint") { "bigserial" } else { "smallserial" };
        call(&mut client, &format!("CREATE TABLE t (\"Ord Id\" {of_type} PRIMARY KEY, n integer DEFAULT 1); {define}"));
        let obstacles = "SELECT string_agg(note, E'\\n') FROM snowflake_adopt_plan('t') WHERE kind = 'obstacle'";
        let found: String = value(&mut client, obstacles);
        assert!(
            found.contains(says) && found.contains(&format!("pg_snowflake.waive = '{waiver}'")),
            "{define}: {found}"
        );
        refused(&mut client, "SELECT snowflake_adopt('t')", "55000");
        let others = ["casts", "checks", "functions", "partitions"].map(|name| if name == waiver { "" } else { name });
        call(&mut client, &format!("SET pg_snowflake.waive = '{}'", others.join(",")));
        refused(&mut client, "SELECT snowflake_adopt('t')", "55000");
        call(&mut client, &format!("SET pg_snowflake.waive = '{waiver}'; SELECT snowflake_adopt('t')"));
        let heard: Vec<String> = notices.try_iter().collect();
        assert!(
            heard.iter().any(|it| it == "rows of table public.t could not be written any more"),
            "{define}: {heard:?}"
        );
        call(&mut client, "RESET pg_snowflake.waive; DROP TABLE t");
    }
    refused(&mut client, "SET pg_snowflake.waive = 'all'", "22023");
    // What only looks like one, or lets new IDs pass.
    call(
        &mut client,
        "CREATE TABLE t (\"Ord Id\" serial PRIMARY KEY, n integer DEFAULT 1, CHECK (\"Ord Id\" > 0), CHECK (\"Ord Id\" + n > 0));
         CREATE INDEX ON t ((\"Ord Id\" % 2), (\"Ord Id\"::text)); CREATE INDEX ON t (n) WHERE n::smallint > 0; SELECT snowflake_adopt('t'); INSERT INTO t DEFAULT VALUES",
    );
}

/// Whoever catches a cancel goes on in his own transaction, as himself, and what he commits is there.
#[test]
fn a_cancel_that_the_caller_catches_ends_the_attempt() {
    let (cluster, mut client) = server(
        "CREATE TABLE marks (who text DEFAULT current_user); CREATE ROLE hers; CREATE TABLE slow (id serial PRIMARY KEY);
         CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$;
         CREATE TRIGGER t BEFORE INSERT ON slow FOR EACH ROW EXECUTE FUNCTION waits();
         CREATE TABLE checked (id serial PRIMARY KEY, CHECK (pg_sleep(60) IS NOT NULL AND id < 1000000000)); ALTER TABLE checked OWNER TO hers",
    );
    for table in ["slow", "checked"] {
        call(&mut client, "SET statement_timeout = '1s'");
        let caught = format!(
            "DO $$ BEGIN
                 BEGIN PERFORM snowflake_adopt('{table}'); RAISE 'not canceled'; EXCEPTION WHEN query_canceled THEN INSERT INTO marks DEFAULT VALUES; END;
             END $$"
        );
        call(&mut client, &caught);
        call(&mut client, "RESET statement_timeout; INSERT INTO marks DEFAULT VALUES");
        call(&mut client, "BEGIN; INSERT INTO marks DEFAULT VALUES; COMMIT");
        let mut other = cluster.client();
        let marks =
            "SELECT count(*)::text || string_agg(DISTINCT who || current_setting('search_path'), ',') FROM marks";
        assert_eq!(value::<String>(&mut other, marks), "3postgres\"$user\", public", "{table}");
        let path: String = value(&mut client, "SELECT current_user || current_setting('search_path')");
        assert_eq!(path, "postgres\"$user\", public", "{table}");
        assert_eq!(value::<i64>(&mut other, "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock'"), 0);
        call(&mut client, "TRUNCATE marks");
    }
}
