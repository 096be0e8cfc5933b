//! The row that is tried before a move and after it.

use super::staged::call;
use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::{Cluster, value};
use std::sync::mpsc;

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
    let (mut client, notices) = listening(&cluster);
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
            heard.iter().any(|it| it.starts_with("rows of table public.t could not be written any more\n")),
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

/// A session that hears what is warned of.
fn listening(cluster: &Cluster) -> (Client, mpsc::Receiver<String>) {
    let (tell, notices) = mpsc::channel();
    let mut config = postgres::Config::new();
    config.host_path(cluster.socket()).user("postgres").dbname("postgres");
    let said = |notice: &postgres::error::DbError| {
        [Some(notice.message()), notice.detail(), notice.hint()].into_iter().flatten().collect::<Vec<_>>().join("\n")
    };
    let client =
        config.notice_callback(move |notice| tell.send(said(&notice)).unwrap()).connect(postgres::NoTls).unwrap();
    (client, notices)
}

/// What runs at the end of a transaction is reached, too, whatever has it run there.
#[test]
fn deferred_constraints_are_tried() {
    let (_cluster, mut client) = server(
        "CREATE TABLE log (key integer); CREATE TABLE other (id bigint PRIMARY KEY); CREATE TABLE later (id bigint PRIMARY KEY);
         CREATE FUNCTION logs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'INSERT INTO log VALUES ($1)' USING NEW.id; RETURN NULL; END $$;
         CREATE FUNCTION passes_on() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'INSERT INTO later VALUES ($1)' USING NEW.id; RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER t AFTER INSERT ON later DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION logs();
         CREATE TABLE t_1 (id bigserial PRIMARY KEY);
         CREATE CONSTRAINT TRIGGER t AFTER INSERT ON t_1 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION logs();
         CREATE TABLE t_2 (id bigserial PRIMARY KEY);
         CREATE CONSTRAINT TRIGGER t AFTER INSERT ON t_2 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION passes_on();
         CREATE TABLE t_3 (id bigserial PRIMARY KEY); CREATE TRIGGER t AFTER INSERT ON t_3 FOR EACH ROW EXECUTE FUNCTION passes_on();
         CREATE TABLE t_4 (id bigserial PRIMARY KEY, code text NOT NULL); INSERT INTO t_4 (code) VALUES ('a');
         CREATE CONSTRAINT TRIGGER t AFTER INSERT ON t_4 DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION logs()",
    );
    for table in ["t_1", "t_2", "t_3", "t_4"] {
        let state = format!(
            "SELECT concat((SELECT count(*) FROM {table}), (SELECT count(*) FROM log), pg_get_expr(adbin, adrelid))
                             FROM pg_attrdef WHERE adrelid = '{table}'::regclass AND adnum = 1"
        );
        let before: String = value(&mut client, &state);
        let error = refused(&mut client, &format!("SELECT snowflake_adopt('{table}')"), "55000");
        assert_eq!(error.message(), format!("rows of table public.{table} could not be written any more"), "{error:?}");
        assert!(error.detail().unwrap().contains("integer out of range"), "{error:?}");
        assert_eq!(value::<String>(&mut client, &state), before);
    }
}

/// What waits for the end of the caller's transaction goes on waiting: nothing of it runs, and what is deferred stays so.
#[test]
fn what_others_have_deferred_waits_on() {
    let (cluster, mut client) = server(
        "CREATE TABLE ran (what text); CREATE TABLE other (id bigint PRIMARY KEY); CREATE TABLE t (id bigserial PRIMARY KEY);
         CREATE FUNCTION notes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE LOG 'ran for % in %', TG_TABLE_NAME, current_query(); INSERT INTO ran VALUES (TG_TABLE_NAME); RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER t AFTER INSERT ON other DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION notes();
         CREATE CONSTRAINT TRIGGER t AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION notes()",
    );
    let (mut session, notices) = listening(&cluster);
    call(&mut session, "BEGIN; INSERT INTO other VALUES (1); SELECT snowflake_adopt('t')");
    let heard: Vec<String> = notices.try_iter().collect();
    let [warning] = &heard[..] else { panic!("{heard:?}") };
    assert!(warning.starts_with("table public.t could not be tried: cannot fire deferred trigger"), "{warning}");
    assert!(warning.contains("Call this in a transaction of its own"), "{warning}");
    assert!(!cluster.log().contains("ran for"), "nothing runs but at the end");
    call(&mut session, "INSERT INTO t DEFAULT VALUES");
    assert!(!cluster.log().contains("ran for"));
    call(&mut session, "COMMIT");
    assert_eq!(value::<String>(&mut client, "SELECT string_agg(what, ',' ORDER BY what) FROM ran"), "other,t");
    // What has nothing that is deferred is tried all the same.
    call(
        &mut session,
        "BEGIN; INSERT INTO other VALUES (2); CREATE TABLE plain (id serial PRIMARY KEY); SELECT snowflake_adopt('plain'); ROLLBACK",
    );
    assert_eq!(notices.try_iter().collect::<Vec<_>>(), [""; 0]);
    // Where nothing waits, they are tried, and stay deferred.
    call(
        &mut session,
        "SELECT snowflake_release('t'); TRUNCATE ran; BEGIN; SELECT snowflake_adopt('t'); INSERT INTO t DEFAULT VALUES",
    );
    assert_eq!(notices.try_iter().collect::<Vec<_>>(), [""; 0]);
    assert_eq!(value::<i64>(&mut session, "SELECT count(*) FROM ran"), 0);
    call(&mut session, "COMMIT");
    assert_eq!(value::<i64>(&mut session, "SELECT count(*) FROM ran"), 1);
}

/// A row that fails before the move already shows nothing of the move. So that is said, by the plan as far as the catalogue shows it.
#[test]
fn what_could_not_be_tried_is_said() {
    let (cluster, mut client) = server(
        "CREATE TABLE parent (id bigint PRIMARY KEY); CREATE TABLE log (key integer);
         CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'never'; END $$;
         CREATE FUNCTION fills() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.code := NEW.id; RETURN NEW; END $$;
         CREATE TABLE unique_code (id serial PRIMARY KEY, code text NOT NULL UNIQUE, note text); INSERT INTO unique_code (code) VALUES ('x');
         CREATE TABLE no_rows (id serial PRIMARY KEY, code text NOT NULL);
         CREATE TABLE refers (id serial PRIMARY KEY, parent_id bigint NOT NULL DEFAULT 5 REFERENCES parent);
         CREATE TABLE never_written (id serial PRIMARY KEY); CREATE TRIGGER t BEFORE INSERT ON never_written FOR EACH ROW EXECUTE FUNCTION never();
         CREATE TABLE filled (id serial PRIMARY KEY, code text NOT NULL); CREATE TRIGGER t BEFORE INSERT ON filled FOR EACH ROW EXECUTE FUNCTION fills();
         CREATE TABLE copied (id serial PRIMARY KEY, code text NOT NULL); INSERT INTO copied (code) VALUES ('x');
         CREATE TABLE several (id serial PRIMARY KEY, a text NOT NULL, b text NOT NULL, UNIQUE (a, b), UNIQUE (id, a)); INSERT INTO several (a, b) VALUES ('x', 'y');
         CREATE TABLE some_null (id serial PRIMARY KEY, a text NOT NULL, b text UNIQUE); INSERT INTO some_null (a) VALUES ('x')",
    );
    let (mut session, notices) = listening(&cluster);
    for (table, of_plan, says) in [
        (
            "unique_code",
            "a row of defaults lacks a value of code; a copy of the newest row is no other one for the unique index unique_code_code_key",
            "null value in column \"code\"",
        ),
        (
            "no_rows",
            "a row of defaults lacks a value of code; there is no row to copy",
            "null value in column \"code\"",
        ),
        (
            "several",
            "a row of defaults lacks a value of a and b; a copy of the newest row is no other one for the unique index several_a_b_key",
            "null value in column \"a\"",
        ),
        ("refers", "", "violates foreign key constraint"),
        ("never_written", "", "never"),
        ("filled", "", ""),
        ("copied", "", ""),
        ("some_null", "", ""),
    ] {
        let plan = format!(
            "SELECT coalesce(string_agg(note, E'\\n'), '') FROM snowflake_adopt_plan('{table}') WHERE note LIKE '%trial row%'"
        );
        let found: String = value(&mut session, &plan);
        assert!(found.contains(of_plan) && found.is_empty() == of_plan.is_empty(), "{table}: {found}");
        notices.try_iter().for_each(drop);
        call(&mut session, &format!("SELECT snowflake_adopt('{table}')"));
        let heard: Vec<String> = notices.try_iter().collect();
        if says.is_empty() {
            assert_eq!(heard, [""; 0], "{table}");
            continue;
        }
        let [warning] = &heard[..] else { panic!("{table}: {heard:?}") };
        let begin = format!("table public.{table} could not be tried: ");
        assert!(warning.starts_with(&begin) && warning.contains(says), "{table}: {warning}");
        assert!(warning.contains("Whether rows can be written after the move was not seen"), "{table}: {warning}");
    }
    // A row that makes a write possible is all it takes.
    call(
        &mut session,
        "INSERT INTO parent VALUES (5); SELECT snowflake_release('refers'); SELECT snowflake_adopt('refers')",
    );
    assert_eq!(notices.try_iter().collect::<Vec<_>>(), [""; 0]);
    call(&mut session, "SET pg_snowflake.probe = off; CREATE TABLE untried (id serial PRIMARY KEY)");
    let plan = "SELECT string_agg(note, E'\\n') FROM snowflake_adopt_plan('untried') WHERE kind = 'note'";
    assert!(value::<String>(&mut session, plan).contains("no trial row is written, as pg_snowflake.probe is off"));
    let _ = &mut client;
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
