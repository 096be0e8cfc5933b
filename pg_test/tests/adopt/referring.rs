//! Tables that refer to the key that moves: their columns become wider, too, and what they carry may not bear that.

use super::staged::{call, load_staged, make_indexes};
use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::{Cluster, value};

/// With a function that takes an integer, and a trigger that calls it.
const DEPS: &str = "
    REVOKE CREATE ON SCHEMA public FROM PUBLIC;
    CREATE TABLE crates (id serial PRIMARY KEY, name text);
    CREATE TABLE deps (id serial PRIMARY KEY, crate_id integer REFERENCES crates, n integer);
    CREATE FUNCTION touch(i integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT i';
    CREATE FUNCTION touches() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM touch(CASE TG_OP WHEN 'DELETE' THEN OLD.crate_id ELSE NEW.crate_id END); RETURN coalesce(NEW, OLD); END $$;
    CREATE FUNCTION keeps() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO kept VALUES (NEW.crate_id); RETURN NEW; END $$;
    CREATE TABLE kept (crate_id integer)";

const ROWS: &str = "INSERT INTO crates (name) VALUES ('a'); INSERT INTO deps (crate_id) SELECT id FROM crates";

/// What each of these does to rows of the referring table that have a wider key.
const BREAKING: [&str; 7] = [
    "CREATE TRIGGER t AFTER INSERT ON deps FOR EACH ROW EXECUTE FUNCTION touches()",
    "CREATE TRIGGER t BEFORE UPDATE ON deps FOR EACH ROW EXECUTE FUNCTION touches()",
    "CREATE TRIGGER t BEFORE DELETE ON deps FOR EACH ROW EXECUTE FUNCTION touches()",
    "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON deps DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION touches()",
    "CREATE TRIGGER t AFTER INSERT ON deps FOR EACH ROW EXECUTE FUNCTION keeps()",
    "ALTER TABLE deps ADD CHECK (crate_id < 1000000 OR coalesce(n, 0) > 7)",
    // What comes of a row with a new key alone.
    "CREATE TRIGGER t AFTER UPDATE OF n ON deps FOR EACH ROW EXECUTE FUNCTION keeps()",
];

const TYPES: &str = "SELECT string_agg(format_type(atttypid, NULL), ' ' ORDER BY attrelid, attnum) FROM pg_attribute \
    WHERE (attrelid, attname) IN (('crates'::regclass, 'id'), ('deps'::regclass, 'crate_id'))";

fn server() -> (Cluster, Client) {
    let cluster = Cluster::options().start();
    let client = cluster.client();
    (cluster, client)
}

#[test]
fn what_breaks_a_table_that_refers_to_the_key_is_noticed() {
    let (_cluster, mut client) = server();
    for breaking in BREAKING {
        call(&mut client, &format!("BEGIN; {DEPS}; {ROWS}; {breaking}; COMMIT"));
        let error = client.batch_execute("SELECT * FROM snowflake_adopt('crates')").expect_err(breaking);
        let error = error.as_db_error().unwrap_or_else(|| panic!("{breaking}"));
        assert_eq!(error.message(), "rows of table public.deps could not be written any more", "{breaking}: {error:?}");
        assert_eq!(value::<String>(&mut client, TYPES), "integer integer");
        // Nothing of the try is left, and clients go on.
        call(
            &mut client,
            "INSERT INTO deps (crate_id) SELECT id FROM crates; UPDATE deps SET crate_id = crate_id, n = 5",
        );
        assert_eq!(
            value::<String>(&mut client, "SELECT concat((SELECT count(*) FROM crates), (SELECT count(*) FROM deps))"),
            "12"
        );
        call(&mut client, "DROP TABLE crates, deps, kept; DROP FUNCTION touches, keeps, touch");
    }
}

/// What the text of a function shows, the plan names: a call with the key, and nothing of the name that takes it.
#[test]
fn the_plan_names_functions_that_take_an_integer() {
    let (_cluster, mut client) = server();
    call(
        &mut client,
        &format!(
            "{DEPS}; CREATE FUNCTION calls() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN\n PERFORM touch(NEW.crate_id); RETURN NULL; END $$;
             CREATE TRIGGER t AFTER INSERT ON deps FOR EACH ROW EXECUTE FUNCTION calls()"
        ),
    );
    let obstacles =
        "SELECT coalesce(string_agg(note, ' '), '') FROM snowflake_adopt_plan('crates') WHERE kind = 'obstacle'";
    let expected = "line 2 of function public.calls() gives the key to touch(), which takes an integer: PERFORM touch(NEW.crate_id); \
                    RETURN NULL; END (to pass over this: pg_snowflake.waive = 'functions')";
    assert_eq!(value::<String>(&mut client, obstacles), expected);
    refused(&mut client, "SELECT * FROM snowflake_adopt('crates')", "55000");
    call(&mut client, "CREATE FUNCTION touch(i bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT i'");
    assert_eq!(value::<String>(&mut client, obstacles), "");
    call(&mut client, "SELECT * FROM snowflake_adopt('crates'); INSERT INTO deps DEFAULT VALUES");
}

/// Without rows, the row of the defaults shows it.
#[test]
fn an_empty_table_is_tried_too() {
    let (_cluster, mut client) = server();
    call(&mut client, &format!("{DEPS}; {}", BREAKING[0]));
    let error = refused(&mut client, "SELECT * FROM snowflake_adopt('crates')", "55000");
    assert!(error.detail().unwrap().contains("touch(bigint)"), "{error:?}");
}

/// A table that refers to itself, one that refers by its key, and one below that.
#[test]
fn what_bears_it_is_moved() {
    let (_cluster, mut client) = server();
    call(
        &mut client,
        "CREATE TABLE categories (id serial PRIMARY KEY, parent_id integer REFERENCES categories, path text UNIQUE NOT NULL);
         CREATE TABLE details (category_id integer PRIMARY KEY REFERENCES categories, text text NOT NULL);
         CREATE TABLE notes (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, category_id integer NOT NULL REFERENCES details,
             twice bigint GENERATED ALWAYS AS (n * 2) STORED, n integer);
         CREATE TABLE parted (category_id integer REFERENCES categories, day date) PARTITION BY RANGE (day);
         CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM ('2020-01-01') TO ('2030-01-01');
         INSERT INTO categories (path) VALUES ('a'), ('b'); UPDATE categories SET parent_id = 1;
         INSERT INTO details SELECT id, path FROM categories; INSERT INTO notes (category_id) SELECT category_id FROM details;
         INSERT INTO parted VALUES (1, '2024-01-01'); SELECT * FROM snowflake_adopt('categories');
         INSERT INTO categories (parent_id, path) VALUES (2, 'c'); INSERT INTO details SELECT max(id), 'c' FROM categories;
         INSERT INTO notes (category_id) SELECT max(category_id) FROM details; UPDATE notes SET n = 3;
         INSERT INTO parted SELECT max(id), '2024-01-01' FROM categories; DELETE FROM notes WHERE id = 1",
    );
    assert_eq!(value::<i64>(&mut client, "SELECT sum(n) FROM notes"), 6);
}

/// The schema of a package registry, of 18 tables, with functions and triggers as such schemas have them.
const REGISTRY: &str = include_str!("registry.sql");

const TABLES: [&str; 18] = [
    "users",
    "crates",
    "versions",
    "keywords",
    "categories",
    "teams",
    "dependencies",
    "crates_keywords",
    "crates_categories",
    "crate_owners",
    "follows",
    "version_downloads",
    "api_tokens",
    "badges",
    "version_authors",
    "readme_renderings",
    "emails",
    "crate_owner_invitations",
];

/// Rows of all tables, once more: what is new refers to what was there, and to what is new.
const WRITES: &str = include_str!("registry_rows.sql");

/// Each table by itself: either nothing of it has changed, or all tables can be written as before.
#[test]
fn tables_of_a_registry_can_be_written_whatever_was_adopted() {
    let (_cluster, mut client) = server();
    call(&mut client, REGISTRY);
    call(&mut client, WRITES);
    let mut refused = Vec::new();
    for table in TABLES {
        let wide = "SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid WHERE relnamespace = 'public'::regnamespace \
             AND relkind = 'r' AND atttypid = 'int8'::regtype";
        let before: i64 = value(&mut client, wide);
        if let Err(error) = client.batch_execute(&format!("SELECT * FROM snowflake_adopt('{table}')")) {
            let error = error.as_db_error().unwrap();
            assert!(["55000", "42702", "42804"].contains(&error.code().code()), "{table}: {error:?}");
            assert_eq!(value::<i64>(&mut client, wide), before, "{table}");
            refused.push(table);
        }
        client.batch_execute(WRITES).unwrap_or_else(|error| panic!("after {table}: {error:?}"));
    }
    // Their functions take integers; the others have no key of a number.
    for narrow in ["crates", "versions", "users"] {
        assert!(refused.contains(&narrow), "{refused:?}");
    }
    assert!(refused.len() < 12, "{refused:?}");
    // With functions that take bigint, all that have such a key are moved.
    call(
        &mut client,
        "DROP TRIGGER touch_crate ON versions; DROP TRIGGER count_dependency ON dependencies; DROP TRIGGER follow ON follows",
    );
    for table in ["crates", "versions", "users"] {
        call(&mut client, &format!("SELECT * FROM snowflake_adopt('{table}')"));
        client.batch_execute(WRITES).unwrap_or_else(|error| panic!("after {table}: {error:?}"));
    }
}

/// In stages, by the same rules: before anything is changed.
#[test]
fn stages_notice_it_too() {
    for breaking in BREAKING {
        let (cluster, mut client) = server();
        call(&mut client, &format!("{DEPS}; {ROWS}; {breaking}"));
        if breaking.contains("UPDATE OF") {
            continue;
        }
        load_staged(&cluster);
        call(&mut client, "CALL moving.prepare('deps', 'crate_id')");
        call(&mut client, "CALL moving.prepare('crates', 'id')");
        call(&mut client, "CALL moving.backfill()");
        make_indexes(&cluster);
        call(&mut client, "CALL moving.check()");
        let error = refused(&mut client, "CALL moving.swap('crates', 'id')", "55000");
        assert_eq!(error.message(), "rows of table public.deps could not be written any more", "{breaking}: {error:?}");
        assert_eq!(value::<String>(&mut client, TYPES), "integer integer");
        call(&mut client, "INSERT INTO deps (crate_id) SELECT id FROM crates; UPDATE deps SET n = 5");
        call(&mut client, "CALL moving.abandon()");
        call(&mut client, "CALL moving.remove()");
        call(&mut client, "INSERT INTO deps (crate_id) SELECT id FROM crates");
    }
}

/// The key's own rows, too: what snowflake_adopt() refuses, the swap does not make.
#[test]
fn stages_try_the_key_before_anything_is_changed() {
    let (cluster, mut client) = server();
    call(
        &mut client,
        &format!(
            "{DEPS}; INSERT INTO crates (name) VALUES ('a');
             CREATE FUNCTION logs() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM touch(NEW.id + 0); RETURN NULL; END $$;
             CREATE TRIGGER t AFTER INSERT ON crates FOR EACH ROW EXECUTE FUNCTION logs()"
        ),
    );
    refused(&mut client, "SELECT * FROM snowflake_adopt('crates')", "55000");
    load_staged(&cluster);
    call(&mut client, "CALL moving.prepare('deps', 'crate_id')");
    call(&mut client, "CALL moving.prepare('crates', 'id')");
    call(&mut client, "CALL moving.backfill()");
    make_indexes(&cluster);
    call(&mut client, "CALL moving.check()");
    let error = refused(&mut client, "CALL moving.swap('crates', 'id')", "55000");
    assert_eq!(error.message(), "rows of table public.crates could not be written any more", "{error:?}");
    assert!(error.detail().unwrap().contains("touch(bigint)"), "{error:?}");
    call(&mut client, "INSERT INTO crates (name) VALUES ('b')");
    // Without the trigger it goes on from there; and back, as long as the old type holds all keys.
    call(&mut client, "DROP TRIGGER t ON crates; CALL moving.swap('crates', 'id')");
    call(&mut client, "CALL moving.validate()");
    refused(&mut client, "CALL moving.take_back('crates', 'id')", "55000");
    call(&mut client, "CALL moving.finish()");
    assert_eq!(value::<String>(&mut client, TYPES), "bigint bigint");
    call(&mut client, "INSERT INTO crates (name) VALUES ('c'); INSERT INTO deps (crate_id) SELECT max(id) FROM crates");
    let error = refused(&mut client, "CALL moving.take_back('crates', 'id')", "22003");
    assert!(
        error.detail().unwrap().contains("column public.crates.id has values that integer does not hold: 1"),
        "{error:?}"
    );
    assert_eq!(value::<String>(&mut client, TYPES), "bigint bigint");
    call(
        &mut client,
        "DELETE FROM deps WHERE crate_id > 1000; DELETE FROM crates WHERE id > 1000; CALL moving.take_back('crates', 'id')",
    );
    assert_eq!(value::<String>(&mut client, TYPES), "integer integer");
    assert_eq!(value::<i32>(&mut client, "INSERT INTO crates (name) VALUES ('d') RETURNING id"), 3);
    assert_eq!(
        value::<String>(
            &mut client,
            "SELECT seqtypid::regtype::text FROM pg_sequence WHERE seqrelid = 'crates_id_seq'::regclass"
        ),
        "integer"
    );
    call(&mut client, "INSERT INTO deps (crate_id) VALUES (3); CALL moving.remove()");
}
