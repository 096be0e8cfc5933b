//! What tables have beside their rows, and what a move in stages keeps of it, whatever names it all has: the dump before and after differs in
//! types, defaults and positions only.

use super::schema::{difference, rows, schema};
use super::staged::{call, load_staged, make_indexes};
use postgres::Client;
use snowflake_test::check::{refused, wait_for};
use snowflake_test::directories::server_directory;
use snowflake_test::{Cluster, value};

/// Schema, tables, columns, indexes, constraints with names that need quotes; one is as long as names can be, in characters of three bytes.
const TABLES: &str = r#"
    CREATE ROLE "The ""Clerk""" ; CREATE ROLE reader;
    CREATE SCHEMA "It's \ ""here"""; SET search_path = "It's \ ""here""", public;
    CREATE TABLE "Ord ers" ("Ord Id" serial PRIMARY KEY, "長長長長長長長長長長長長長長長長長長長長長" integer, "select" text,
        n integer NOT NULL DEFAULT 5, CONSTRAINT "it's" CHECK ("Ord Id" > -5 AND n > 0));
    ALTER TABLE "Ord ers" ADD CONSTRAINT "of \ itself" FOREIGN KEY ("長長長長長長長長長長長長長長長長長長長長長") REFERENCES "Ord ers" DEFERRABLE INITIALLY DEFERRED;
    ALTER TABLE "Ord ers" ADD CONSTRAINT "with two" UNIQUE (n, "Ord Id") INCLUDE ("select") WITH (fillfactor = 71) DEFERRABLE INITIALLY DEFERRED;
    ALTER TABLE "Ord ers" ADD CONSTRAINT "n alone" UNIQUE ("select") INCLUDE ("Ord Id");
    CREATE TABLE "Lines\" (order_id smallint NOT NULL DEFAULT 1 REFERENCES "Ord ers" ON DELETE CASCADE ON UPDATE CASCADE,
        "Line" integer, of_text text REFERENCES "Ord ers" ("select"));
    ALTER TABLE "Lines\" ADD PRIMARY KEY (order_id, "Line") WITH (fillfactor = 55);
    CREATE UNIQUE INDEX "Part ial" ON "Ord ers" ("長長長長長長長長長長長長長長長長長長長長長" DESC NULLS LAST, "select" COLLATE "C" text_pattern_ops)
        WITH (fillfactor = 80, deduplicate_items = off) WHERE "長長長長長長長長長長長長長長長長長長長長長" > 10 AND "Ord Id" < 100000;
    CREATE INDEX "an 'Ex' pression" ON "Ord ers" (("Ord Id" / 2), n) INCLUDE ("select");
    ALTER INDEX "an 'Ex' pression" ALTER COLUMN 1 SET STATISTICS 77;
    CREATE INDEX "H" ON "Ord ers" USING hash ("Ord Id") WITH (fillfactor = 60);
    CREATE INDEX "B" ON "Ord ers" USING brin ("Ord Id", n) WITH (pages_per_range = 4);
    CREATE INDEX untouched ON "Ord ers" (n);
    CREATE STATISTICS "S'" (ndistinct, mcv) ON "Ord Id", n FROM "Ord ers"; ALTER STATISTICS "S'" SET STATISTICS 33;
    COMMENT ON STATISTICS "S'" IS 'it''s \ here';
    CREATE STATISTICS "ex pr" ON ("Ord Id" % 10), "select" FROM "Ord ers";
    ALTER TABLE "Ord ers" ALTER "Ord Id" SET STATISTICS 500, ALTER "Ord Id" SET (n_distinct = -0.5, n_distinct_inherited = 100);
    ALTER TABLE "Lines\" ALTER order_id SET STATISTICS 0;
    ALTER TABLE "Lines\" CLUSTER ON "Lines\_pkey"; ALTER TABLE "Lines\" REPLICA IDENTITY USING INDEX "Lines\_pkey";
    COMMENT ON COLUMN "Ord ers"."Ord Id" IS 'which \ it''s'; COMMENT ON INDEX "Part ial" IS 'some'; COMMENT ON INDEX "Ord ers_pkey" IS 'the key''s';
    COMMENT ON CONSTRAINT "Ord ers_pkey" ON "Ord ers" IS 'a key'; COMMENT ON CONSTRAINT "it's" ON "Ord ers" IS '"checked"';
    GRANT SELECT ("Ord Id", n), INSERT ("Ord Id"), UPDATE ("Ord Id") ON "Ord ers" TO "The ""Clerk""";
    GRANT REFERENCES ("Ord Id") ON "Ord ers" TO reader WITH GRANT OPTION; GRANT SELECT (order_id) ON "Lines\" TO PUBLIC;
    ALTER TABLE "Ord ers" SET (autovacuum_enabled = off, fillfactor = 90); ALTER TABLE "Lines\" FORCE ROW LEVEL SECURITY;
    INSERT INTO "Ord ers" ("長長長長長長長長長長長長長長長長長長長長長", "select") SELECT nullif(n / 2, 0), 't' || n FROM generate_series(1, 300) n;
    INSERT INTO "Lines\" SELECT n, 1, 't1' FROM generate_series(1, 300) n;
    ANALYZE "Ord ers", "Lines\"; RESET search_path"#;

const STEPS: [&str; 4] = [
    r#"CALL moving.prepare('"It''s \ ""here"""."Lines\"', 'order_id')"#,
    r#"CALL moving.prepare('"It''s \ ""here"""."Ord ers"', '長長長長長長長長長長長長長長長長長長長長長')"#,
    r#"CALL moving.prepare('"It''s \ ""here"""."Ord ers"', 'Ord Id')"#,
    "CALL moving.backfill(1, '0')",
];

/// Without what a type makes of it, and without the order of columns.
pub fn comparable(lines: &[String]) -> Vec<String> {
    let wide = |line: &String| {
        let line = line.replace("smallint", "bigint").replace("integer", "bigint").replace("::bigint", "");
        let line = line.trim().trim_end_matches(',').replace(['(', ')'], "");
        // Statistics name their columns by position.
        match line.split_once(" ON ").filter(|_| line.starts_with("CREATE STATISTICS")) {
            Some((before, on)) => {
                let (columns, table) = on.rsplit_once(" FROM ").unwrap();
                let mut columns: Vec<&str> = columns.split(", ").collect();
                columns.sort_unstable();
                format!("{before} ON {} FROM {table}", columns.join(", "))
            }
            None => line,
        }
    };
    let mut lines: Vec<String> = lines.iter().filter(|line| !line.starts_with("--")).map(wide).collect();
    lines.sort();
    lines
}

/// The kept sequence gets room for IDs, and its type is on record.
fn of_sequence(line: &String) -> bool {
    line == "AS bigint" || line.contains("[snowflake_adopt: nextval of this sequence; of type ")
}

#[test]
fn a_move_in_stages_keeps_what_tables_have_under_all_names() {
    let cluster = Cluster::options().start();
    cluster.client().batch_execute(TABLES).unwrap();
    let (before, rows_before) = (schema(&cluster, "postgres"), rows(&cluster, "postgres").len());
    load_staged(&cluster);
    let mut client = cluster.client();
    STEPS.iter().for_each(|step| call(&mut client, step));
    make_indexes(&cluster);
    call(&mut client, "CALL moving.check()");
    call(&mut client, r#"CALL moving.swap('"It''s \ ""here"""."Ord ers"', 'Ord Id')"#);
    for step in ["validate()", "finish()", "remove()"] {
        call(&mut client, &format!("CALL moving.{step}"));
    }
    let (gone, new) = difference(&comparable(&before), &comparable(&schema(&cluster, "postgres")));
    let of_default = |line: &String| line.contains("SET DEFAULT") || line.contains("DEFAULT public.snowflake_next");
    let of_key = |line: &String| of_default(line) || of_sequence(line) || line.starts_with("\"Ord Id\" bigint");
    assert!(gone.iter().all(of_key), "{gone:#?} {new:#?}");
    assert!(new.iter().all(|line| of_default(line) || of_sequence(line)), "{gone:#?} {new:#?}");
    assert_eq!(rows(&cluster, "postgres").len(), rows_before);
    call(&mut client, r#"INSERT INTO "It's \ ""here"""."Ord ers" ("select") VALUES ('new')"#);
    let count = r#"SELECT count(*) FROM "It's \ ""here"""."Ord ers" WHERE "Ord Id" > 1000000000000"#;
    assert_eq!(value::<i64>(&mut client, count), 1);
}

/// The tablespace of an index stays, whatever the session's is.
#[test]
fn indexes_stay_where_they_are() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let (one, other) = (server_directory("one"), server_directory("other"));
    for (name, directory) in [("\"The 'one'\"", &one), ("other", &other)] {
        call(&mut client, &format!("CREATE TABLESPACE {name} LOCATION '{}'", directory.path().display()));
    }
    call(
        &mut client,
        "CREATE TABLE t (id serial PRIMARY KEY, n integer); CREATE INDEX i ON t (id, n) TABLESPACE \"The 'one'\"",
    );
    load_staged(&cluster);
    call(&mut client, "SET default_tablespace = other");
    call(&mut client, "CALL moving.prepare('t', 'id')");
    for row in client.query("SELECT moving.index_statements()", &[]).unwrap() {
        call(&mut client, row.get(0));
    }
    assert_eq!(value::<String>(&mut client, "SHOW default_tablespace"), "other");
    for step in ["backfill()", "check()", "swap('t', 'id')", "validate()", "finish()", "remove()"] {
        call(&mut client, &format!("CALL moving.{step}"));
    }
    let spaces = "SELECT string_agg(coalesce(tablespace::text, '-'), ' ' ORDER BY indexname) FROM pg_indexes WHERE tablename = 't'";
    assert_eq!(value::<String>(&mut client, spaces), "The 'one' -");
}

/// What cannot be kept is said by the first step.
#[test]
fn the_first_step_says_what_cannot_be_kept() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(
        &mut client,
        "CREATE TABLE t (id serial PRIMARY KEY, n integer, EXCLUDE USING btree (id WITH =));
         CREATE FUNCTION narrow(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT $1';
         CREATE TABLE u (id serial PRIMARY KEY); CREATE INDEX ON u (narrow(id))",
    );
    load_staged(&cluster);
    refused(&mut client, "CALL moving.prepare('t', 'id')", "P0001");
    refused(&mut client, "CALL moving.prepare('u', 'id')", "42883");
    refused(&mut client, "CALL moving.prepare('t', 'none')", "P0001");
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM moving.columns"), 0);
    // What the plan says is in the way, too, before rows are read.
    call(
        &mut client,
        "CREATE TABLE v (id serial PRIMARY KEY); INSERT INTO v SELECT FROM generate_series(1, 9); CREATE VIEW w AS SELECT id FROM v",
    );
    let error = refused(&mut client, "CALL moving.prepare('v', 'id')", "55000");
    assert!(error.detail().is_some_and(|detail| detail.contains("view public.w")), "{error:?}");
    call(&mut client, "DROP VIEW w; CALL moving.prepare('v', 'id'); CREATE VIEW w AS SELECT id FROM v");
    let error = client.batch_execute("CALL moving.backfill()").unwrap_err();
    assert!(error.as_db_error().unwrap().detail().unwrap().contains("view public.w"), "{error:?}");
    assert_eq!(value::<i64>(&mut client, "SELECT sum(next_block)::bigint FROM moving.columns"), 0);
}

/// What psql does, up to a step.
fn steps(cluster: &Cluster, client: &mut Client, steps: &[&str]) {
    for step in steps {
        match *step {
            "indexes" => make_indexes(cluster),
            step => call(client, &format!("CALL moving.{step}")),
        }
    }
}

/// All prepared columns change places in one swap, and each key that it is called for gets IDs.
#[test]
fn two_keys_move_together() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(
        &mut client,
        "CREATE TABLE a (id serial PRIMARY KEY, n integer); CREATE TABLE b (id serial PRIMARY KEY, a_id integer REFERENCES a);
         INSERT INTO a (n) VALUES (1); INSERT INTO b (a_id) VALUES (1)",
    );
    load_staged(&cluster);
    let before_swap =
        ["prepare('a', 'id')", "prepare('b', 'a_id')", "prepare('b', 'id')", "backfill()", "indexes", "check()"];
    steps(&cluster, &mut client, &before_swap);
    let error = refused(&mut client, "CALL moving.swap('a', 'n')", "42703");
    assert!(error.hint().is_some_and(|hint| hint.contains("moving.prepare('public.a', 'n')")), "{error:?}");
    // Behind the locks, those of all keys are looked at.
    call(&mut client, "INSERT INTO b (id) VALUES (7); CREATE VIEW v AS SELECT id FROM b");
    let error = refused(&mut client, "CALL moving.swap('a', 'id')", "P0001");
    assert!(error.detail().is_some_and(|detail| detail.contains("view public.v")), "{error:?}");
    call(&mut client, "DROP VIEW v");
    steps(&cluster, &mut client, &["swap('a', 'id')", "swap('a', 'id')"]);
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM moving.result"), 1);
    // What is found until its turn comes, too.
    call(
        &mut client,
        "CREATE ROLE clerk; GRANT INSERT ON b TO clerk; REVOKE EXECUTE ON FUNCTION snowflake_next() FROM PUBLIC",
    );
    let error = refused(&mut client, "CALL moving.swap('b', 'id')", "P0001");
    assert!(error.detail().is_some_and(|detail| detail.contains("clerk")), "{error:?}");
    call(&mut client, "GRANT EXECUTE ON FUNCTION snowflake_next() TO PUBLIC");
    steps(&cluster, &mut client, &["swap('b', 'id')", "swap('b', 'id')", "validate()", "finish()"]);
    call(&mut client, "INSERT INTO a (n) VALUES (2); INSERT INTO b (a_id) SELECT max(id) FROM a");
    let new = "SELECT count(*) FROM a JOIN b ON a.id = a_id WHERE least(a.id, b.id) > 1000000000000";
    assert_eq!(value::<i64>(&mut client, new), 1);
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM moving.result"), 2);
    call(&mut client, "CALL moving.remove()");
}

/// One move after the other, with the same statistics and constraints.
#[test]
fn what_is_of_two_moves_stays() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(
        &mut client,
        "CREATE TABLE a (id serial PRIMARY KEY); CREATE TABLE b (id serial PRIMARY KEY, a_id integer REFERENCES a, CHECK (id > -7 OR a_id > 0));
         CREATE STATISTICS s ON id, a_id FROM b; COMMENT ON STATISTICS s IS 'of both'; INSERT INTO a VALUES (1); INSERT INTO b VALUES (1, 1)",
    );
    load_staged(&cluster);
    let first = ["prepare('b', 'id')", "backfill()", "indexes", "check()", "swap('b', 'id')"];
    steps(&cluster, &mut client, &first);
    let second = ["prepare('b', 'a_id')", "prepare('a', 'id')", "backfill()", "indexes", "check()"];
    steps(&cluster, &mut client, &second);
    let error = refused(&mut client, "CALL moving.swap('a', 'id')", "P0001");
    assert!(
        error.detail().is_some_and(|detail| detail.contains("CALL moving.validate() has not validated")),
        "{error:?}"
    );
    steps(&cluster, &mut client, &["validate()", "swap('a', 'id')", "validate()", "finish()", "remove()"]);
    let kept = "SELECT string_agg(pg_get_statisticsobjdef(oid) || obj_description(oid, 'pg_statistic_ext'), '') FROM pg_statistic_ext";
    assert_eq!(value::<String>(&mut client, kept), "CREATE STATISTICS public.s ON id, a_id FROM bof both");
    assert!(value::<bool>(
        &mut client,
        "SELECT bool_and(convalidated) AND count(*) = 1 FROM pg_constraint WHERE contype = 'c' AND conrelid = 'b'::regclass"
    ));
}

/// A column of its own refuses a move, with these words and this advice, and no longer once that is done.
fn in_the_way(client: &mut Client, make: &str, prepare: &str, detail: &str, hint: &str) {
    call(client, &format!("BEGIN; {make}"));
    let error = refused(client, &format!("CALL moving.{prepare}"), "55000");
    assert!(error.detail().is_some_and(|text| text.contains(detail)), "{make}: {error:?}");
    assert!(error.hint().is_some_and(|text| text.contains(hint)), "{make}: {error:?}");
    call(client, "ROLLBACK");
}

const TRIGGER: &str =
    "CREATE FUNCTION higher() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.id := NEW.id + 100; RETURN NEW; END'";

/// What the swap makes again is made for `bigint` by the first step, and is to call what it called before.
#[test]
fn what_would_call_something_else_is_in_the_way() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(
        &mut client,
        "CREATE TABLE t (id serial PRIMARY KEY, n integer, CHECK (id > -5 AND abs(id) % 2 < 3)); INSERT INTO t (n) VALUES (1);
         CREATE FUNCTION narrow(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT $1';
         CREATE FUNCTION two(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT $1';
         CREATE FUNCTION two(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT -$1';
         CREATE FUNCTION wide(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT $1';
         CREATE OPERATOR @@@ (LEFTARG = integer, RIGHTARG = integer, FUNCTION = int4mul);
         CREATE OPERATOR @@@ (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = int84mul);
         ALTER TABLE t ADD CHECK (wide(id) > 0 AND narrow(n) > 0); CREATE INDEX ON t (wide(id))",
    );
    load_staged(&cluster);
    let of_function = "It calls function public.two(integer); then it would call function public.two(bigint).";
    let of_operator =
        "It calls operator public.@@@(integer,integer); then it would call operator public.@@@(bigint,integer).";
    for (make, detail) in [
        ("ALTER TABLE t ADD CHECK (two(id) > 0)", of_function),
        ("ALTER TABLE t ADD CHECK (id @@@ 2 > 0) NOT VALID", of_operator),
        ("CREATE STATISTICS s ON (two(id)), n FROM t", of_function),
        ("CREATE INDEX ON t (two(id), n)", of_function),
        ("CREATE INDEX ON t (n) WHERE id @@@ 3 > 5", of_operator),
    ] {
        in_the_way(&mut client, make, "prepare('t', 'id')", detail, "after the swap");
    }
    let mut cannot_be_made = |make: &str, step: &str, what: &str| {
        call(&mut client, &format!("BEGIN; {make}"));
        let error = refused(&mut client, &format!("CALL moving.{step}"), "42883");
        assert_eq!(error.message(), format!("{what} cannot be made for bigint"));
        assert_eq!(error.detail(), Some("function public.narrow(bigint) does not exist"));
        call(&mut client, "ROLLBACK");
    };
    let check = "ALTER TABLE t ADD CONSTRAINT c CHECK (narrow(id) > 0)";
    cannot_be_made(check, "prepare('t', 'id')", "constraint c on table public.t");
    cannot_be_made("CREATE STATISTICS s ON (narrow(id)), n FROM t", "prepare('t', 'id')", "statistics object public.s");
    cannot_be_made("CREATE INDEX i ON t (narrow(id))", "prepare('t', 'id')", "index public.i");
    steps(&cluster, &mut cluster.client(), &["prepare('t', 'id')", "backfill()", "indexes", "check()"]);
    // Behind the locks.
    cannot_be_made(check, "swap('t', 'id')", "constraint c on table public.t");
    steps(&cluster, &mut client, &["swap('t', 'id')", "validate()", "finish()", "remove()"]);
}

/// Foreign keys are made again with all their triggers.
#[test]
fn triggers_that_are_disabled_are_in_the_way() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let tables = "CREATE TABLE t (id serial PRIMARY KEY, n bigint, UNIQUE (n) INCLUDE (id)); CREATE TABLE other (id integer PRIMARY KEY);
         CREATE TABLE w (t_id integer REFERENCES t, n bigint CONSTRAINT \"by n\" REFERENCES t (n), o integer REFERENCES other)";
    call(&mut client, tables);
    load_staged(&cluster);
    for (key, prepare) in [
        ("w_t_id_fkey", "prepare('t', 'id')"),
        ("w_t_id_fkey", "prepare('w', 't_id')"),
        ("w_o_fkey", "prepare('w', 'o')"),
        ("\"by n\"", "prepare('t', 'id')"),
    ] {
        let trigger = format!(
            "DO $$ BEGIN EXECUTE (SELECT format('ALTER TABLE w DISABLE TRIGGER %I', tgname) FROM pg_trigger JOIN pg_constraint k \
                ON k.oid = tgconstraint WHERE quote_ident(conname) = '{key}' AND tgrelid = 'w'::regclass LIMIT 1); END $$"
        );
        let detail = format!("foreign key {key} of public.w has triggers that are disabled");
        in_the_way(&mut client, &trigger, prepare, &detail, "Enable such triggers");
    }
}

/// Only their owners make foreign keys and statistics again.
#[test]
fn what_belongs_to_others_is_in_the_way() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(&mut client, "CREATE ROLE other; CREATE TABLE t (id serial PRIMARY KEY, n bigint, UNIQUE (n) INCLUDE (id))");
    load_staged(&cluster);
    for column in ["t_id integer REFERENCES t", "t_id bigint REFERENCES t", "t_id bigint REFERENCES t (n)"] {
        in_the_way(
            &mut client,
            &format!("CREATE TABLE w ({column}); ALTER TABLE w OWNER TO other"),
            "prepare('t', 'id')",
            "foreign key w_t_id_fkey of public.w belongs to other",
            "Drop such a foreign key",
        );
    }
    in_the_way(
        &mut client,
        "CREATE STATISTICS s ON id, n FROM t; ALTER STATISTICS s OWNER TO other",
        "prepare('t', 'id')",
        "statistics object public.s belongs to other",
        "OWNER TO the owner of the table",
    );
    call(&mut client, "CALL moving.prepare('t', 'id')");
}

/// Indexes with a column that is prepared later are made once more, with both.
#[test]
fn a_column_is_prepared_after_the_indexes() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(
        &mut client,
        "CREATE TABLE emp (id serial PRIMARY KEY, boss_id integer REFERENCES emp, n integer, UNIQUE (n, id));
         CREATE UNIQUE INDEX pair ON emp (boss_id, id); CREATE INDEX few ON emp (boss_id) WHERE id > 5;
         INSERT INTO emp (boss_id, n) SELECT nullif(n / 2, 0), n FROM generate_series(1, 100) n",
    );
    let before = schema(&cluster, "postgres");
    load_staged(&cluster);
    steps(&cluster, &mut client, &["prepare('emp', 'id')", "backfill()"]);
    let early = client.query("SELECT moving.index_statements()", &[]).unwrap();
    steps(&cluster, &mut client, &["indexes", "check()", "prepare('emp', 'boss_id')", "backfill()", "check()"]);
    // Also where statements from before run late.
    for run_late in [false, true] {
        for row in early.iter().filter(|_| run_late) {
            call(&mut client, row.get(0));
        }
        let error = refused(&mut client, "CALL moving.swap('emp', 'id')", "P0001");
        let missing = "the index for public.few is missing or invalid; the index for public.pair is missing or invalid";
        assert_eq!(error.detail(), Some(missing));
    }
    make_indexes(&cluster);
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM moving.index_statements()"), 0);
    steps(&cluster, &mut client, &["swap('emp', 'id')", "validate()", "finish()", "remove()"]);
    let (gone, new) = difference(&comparable(&before), &comparable(&schema(&cluster, "postgres")));
    let of_column = |line: &String| line.starts_with("id bigint") || line.contains("DEFAULT") || of_sequence(line);
    assert!(gone.iter().chain(&new).all(of_column), "{gone:#?} {new:#?}");
}

/// Names in the statements that make indexes are PostgreSQL's own, though others match exactly on the session's `search_path`; and that is the
/// same afterwards.
#[test]
fn statements_of_indexes_call_nothing_of_others() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(
        &mut client,
        "CREATE ROLE mallory; GRANT CREATE ON SCHEMA public TO mallory;
         CREATE TABLE t (id serial PRIMARY KEY, list text[], word text); INSERT INTO t (list, word) VALUES ('{a}', 'b');
         CREATE INDEX ON t (cardinality(list), id); CREATE INDEX ON t ((id::bigint || word));
         SET ROLE mallory;
         CREATE FUNCTION public.cardinality(text[]) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RAISE ''sprung''; END';
         CREATE FUNCTION public.glue(bigint, text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RAISE ''sprung''; END';
         CREATE OPERATOR public.|| (LEFTARG = bigint, RIGHTARG = text, FUNCTION = public.glue);
         RESET ROLE",
    );
    load_staged(&cluster);
    steps(&cluster, &mut client, &["prepare('t', 'id')", "backfill()"]);
    let statements = "SELECT moving.index_statements()";
    // Some of them, as where one fails; and all.
    let path = "\"$user\", public, \"The 'other'\"";
    for (count, kept) in [(2, "pg_catalog, pg_temp"), (usize::MAX, "\"$user\", public")] {
        for row in client.query(statements, &[]).unwrap().iter().take(count) {
            call(&mut client, row.get(0));
        }
        assert_eq!(value::<String>(&mut client, "SHOW search_path"), kept);
    }
    let key: u32 = value(&mut client, "SELECT 't_pkey'::regclass::oid");
    call(&mut client, &format!("DROP INDEX \"{key}_moving\""));
    call(&mut client, &format!("SET search_path = {path}"));
    for row in client.query(statements, &[]).unwrap() {
        call(&mut client, row.get(0));
    }
    assert_eq!(value::<String>(&mut client, "SHOW search_path"), path);
    steps(&cluster, &mut client, &["check()", "swap('t', 'id')", "validate()", "finish()", "remove()"]);
    let of_others = "SELECT count(*) FROM pg_depend JOIN pg_index ON classid = 'pg_class'::regclass AND objid = indexrelid \
                     WHERE indrelid = 't'::regclass AND refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)";
    assert_eq!(value::<i64>(&mut client, of_others), 0);
}

/// What keeps the columns equal is to be the last of all that change a row.
#[test]
fn nothing_changes_a_row_after_the_trigger_that_copies() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(
        &mut client,
        &format!("CREATE TABLE t (id serial PRIMARY KEY, n integer); INSERT INTO t (n) VALUES (1), (2); {TRIGGER}"),
    );
    load_staged(&cluster);
    for (name, when) in [
        ("\"~late\"", "INSERT"),
        ("\"été\"", "UPDATE"),
        ("\"{x}\"", "INSERT OR UPDATE OF n"),
        ("zzz_moving_2", "INSERT"),
    ] {
        let make = format!("CREATE TRIGGER {name} BEFORE {when} ON t FOR EACH ROW EXECUTE FUNCTION higher()");
        in_the_way(
            &mut client,
            &make,
            "prepare('t', 'id')",
            &format!("trigger {name} "),
            "ALTER TRIGGER ... RENAME TO",
        );
    }
    in_the_way(
        &mut client,
        "CREATE RULE r AS ON UPDATE TO t DO INSTEAD NOTHING",
        "prepare('t', 'id')",
        "rule r on public.t",
        "Drop",
    );
    call(
        &mut client,
        "CREATE TRIGGER \"~\" AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION higher();
         CREATE TRIGGER \"~~\" BEFORE DELETE ON t FOR EACH ROW EXECUTE FUNCTION higher();
         CREATE TRIGGER early BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION higher()",
    );
    call(&mut client, "CALL moving.prepare('t', 'id')");
    call(&mut client, "CREATE TRIGGER \"~late\" BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION higher()");
    refused_in_procedure(&mut client, "CALL moving.backfill()", "55000");
    call(&mut client, "DROP TRIGGER \"~late\" ON t");
    refused_in_procedure(&mut client, "CALL moving.check()", "55000");
    call(&mut client, "CALL moving.backfill()");
    call(&mut client, "CREATE TRIGGER \"~late\" BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION higher()");
    refused_in_procedure(&mut client, "CALL moving.check()", "55000");
    call(&mut client, "INSERT INTO t (n) VALUES (3); DROP TRIGGER \"~late\" ON t");
    // The row that it has changed is found, and writers go on.
    refused_in_procedure(&mut client, "CALL moving.check()", "23514");
    assert_eq!(value::<i64>(&mut client, "SELECT count(*) FROM pg_constraint WHERE conname = 'id_moving'"), 0);
    call(&mut client, "INSERT INTO t (n) VALUES (4); UPDATE t SET n = 5 WHERE n = 3");
    call(&mut client, "CALL moving.backfill()");
    call(
        &mut client,
        "DROP TRIGGER early ON t; ALTER TABLE t DISABLE TRIGGER zzz_moving_1; UPDATE t SET id_moving = -1 WHERE n = 2",
    );
    call(&mut client, "ALTER TABLE t ENABLE ALWAYS TRIGGER zzz_moving_1");
    refused_in_procedure(&mut client, "CALL moving.check()", "23514");
    steps(
        &cluster,
        &mut client,
        &["backfill()", "indexes", "check()", "swap('t', 'id')", "validate()", "finish()", "remove()"],
    );
}

/// A procedure that commits is called by itself.
fn refused_in_procedure(client: &mut Client, step: &str, code: &str) {
    let error = client.batch_execute(step).expect_err(step);
    assert_eq!(error.code().map(|code| code.code()), Some(code), "{step}: {error:?}");
}

/// Subscribers get columns that they do not have: that is said first.
#[test]
fn what_is_published_moves_when_subscribers_are_ready() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(&mut client, "CREATE TABLE t (id serial PRIMARY KEY, n integer); INSERT INTO t (n) VALUES (1)");
    load_staged(&cluster);
    for published in ["TABLE t", "ALL TABLES"] {
        let make = format!("CREATE PUBLICATION \"to others\" FOR {published}");
        let hint = if published == "TABLE t" {
            "first change column id to bigint, and add columns id_moving and id_moving_old"
        } else {
            "first load this script"
        };
        in_the_way(&mut client, &make, "prepare('t', 'id')", "publication \"to others\"", hint);
    }
    call(
        &mut client,
        "CREATE PUBLICATION p FOR TABLE t; CALL moving.prepare('t', 'id', subscribers_are_ready => true)",
    );
    steps(
        &cluster,
        &mut client,
        &["backfill()", "indexes", "check()", "swap('t', 'id')", "validate()", "finish()", "remove()"],
    );
    call(&mut client, "CREATE TABLE u (id serial PRIMARY KEY)");
    load_staged(&cluster);
    steps(&cluster, &mut client, &["prepare('u', 'id')", "backfill()", "indexes", "check()"]);
    call(&mut client, "ALTER PUBLICATION p ADD TABLE u");
    let error = refused(&mut client, "CALL moving.swap('u', 'id')", "P0001");
    assert!(error.detail().is_some_and(|detail| detail.contains("publication p")), "{error:?}");
    steps(&cluster, &mut client, &["prepare('u', 'id')", "prepare('u', 'id', true)", "swap('u', 'id')"]);
}

/// With what the hint says, no subscriber stops, whatever is published.
#[test]
fn subscribers_that_are_ready_go_on() {
    let publisher = Cluster::options().set("wal_level = logical").start();
    let subscriber = Cluster::options().start();
    for published in ["TABLE t", "ALL TABLES"] {
        let mut source = publisher.client();
        let mut client = subscriber.client();
        let table = "DROP SCHEMA IF EXISTS moving CASCADE; DROP TABLE IF EXISTS t; CREATE TABLE t (id serial PRIMARY KEY, n integer)";
        call(&mut source, table);
        call(&mut client, table);
        call(
            &mut source,
            &format!(
                "DROP PUBLICATION IF EXISTS p; CREATE PUBLICATION p FOR {published}; INSERT INTO t (n) SELECT 1 FROM generate_series(1, 100)"
            ),
        );
        let host = publisher.socket().display();
        call(&mut client, &format!("CREATE SUBSCRIPTION s CONNECTION 'host={host} user=postgres' PUBLICATION p"));
        wait_for("the rows are there", || value::<i64>(&mut client, "SELECT count(*) FROM t") == 100);
        load_staged(&publisher);
        if published == "ALL TABLES" {
            load_staged(&subscriber);
        }
        call(&mut client, "ALTER TABLE t ALTER id TYPE bigint, ADD id_moving bigint, ADD id_moving_old bigint");
        let all = [
            "prepare('t', 'id', subscribers_are_ready => true)",
            "backfill(1, '0')",
            "indexes",
            "check()",
            "swap('t', 'id')",
            "validate()",
            "finish()",
            "remove()",
        ];
        for step in all {
            steps(&publisher, &mut source, &[step]);
            call(
                &mut source,
                "INSERT INTO t (n) VALUES (2); UPDATE t SET n = n + 1 WHERE id = 7; DELETE FROM t WHERE n = 2 AND id > 105",
            );
            let rows = "SELECT string_agg(concat_ws(' ', id, n), ',' ORDER BY id) FROM t";
            let expected: String = value(&mut source, rows);
            wait_for(step, || value::<String>(&mut client, rows) == expected);
        }
        call(&mut client, "ALTER TABLE t DROP id_moving, DROP id_moving_old");
        call(&mut source, "INSERT INTO t (n) VALUES (3)");
        wait_for("the last row", || value(&mut client, "SELECT count(*) = 1 FROM t WHERE n = 3"));
        call(&mut client, "DROP SUBSCRIPTION s");
        assert!(!subscriber.log().contains("ERROR:"), "{}", subscriber.log());
    }
}

/// What refers to a column would stay with the old one, that nobody fills: of the key, and of what refers to it.
#[test]
fn what_would_stay_with_the_old_column_is_in_the_way() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(
        &mut client,
        &format!(
            "CREATE TABLE t (id serial PRIMARY KEY, n integer); CREATE TABLE u (id integer REFERENCES t, n integer);
             INSERT INTO t (n) VALUES (1); INSERT INTO u VALUES (1, 1); {TRIGGER}; CREATE DOMAIN small AS integer; CREATE DOMAIN smaller AS small"
        ),
    );
    load_staged(&cluster);
    for table in ["t", "u"] {
        for (make, detail) in [
            ("CREATE VIEW v AS SELECT id FROM %", "view public.v depends on column public.%.id"),
            ("CREATE MATERIALIZED VIEW m AS SELECT n FROM % WHERE id > 0", "materialized view public.m depends on"),
            ("ALTER TABLE % ADD g integer GENERATED ALWAYS AS (id * 2) STORED", "column g of table public.%"),
            ("CREATE POLICY p ON % USING (id > 0)", "policy p on table public.%"),
            (
                "CREATE TRIGGER a BEFORE UPDATE OF id ON % FOR EACH ROW EXECUTE FUNCTION higher()",
                "trigger a on table public.% depends on column public.%.id",
            ),
            (
                "CREATE TRIGGER a AFTER INSERT ON % FOR EACH ROW WHEN (NEW.id > 7) EXECUTE FUNCTION higher()",
                "trigger a on table public.% depends on column public.%.id",
            ),
            ("CREATE RULE r AS ON DELETE TO % DO ALSO INSERT INTO t (n) VALUES (OLD.id)", "rule r on table public.%"),
            (
                "CREATE FUNCTION f() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT max(id) FROM %; END",
                "function public.f() depends on column public.%.id",
            ),
            ("CREATE TABLE kept (row_of %)", "column public.kept.row_of has rows of public.% in it"),
            (
                "CREATE DOMAIN d AS %[]; CREATE TABLE kept (row_of d)",
                "column public.kept.row_of has rows of public.% in it",
            ),
        ] {
            let prepare = format!("prepare('{table}', 'id')");
            in_the_way(&mut client, &make.replace('%', table), &prepare, &detail.replace('%', table), "after the swap");
        }
        if value::<i32>(&mut client, "SELECT current_setting('server_version_num')::integer") >= 150_000 {
            for published in ["% WHERE (id > 0)", "% (id)"] {
                let make = format!("CREATE PUBLICATION p FOR TABLE {}", published.replace('%', table));
                let prepare = format!("prepare('{table}', 'id', subscribers_are_ready => true)");
                in_the_way(
                    &mut client,
                    &make,
                    &prepare,
                    &format!("publication of table public.{table} in"),
                    "after the swap",
                );
            }
        }
    }
    in_the_way(
        &mut client,
        "CREATE TABLE w (id smaller REFERENCES t)",
        "prepare('t', 'id')",
        "column public.w.id, which refers to it, is of type public.smaller",
        "bigint",
    );
    in_the_way(
        &mut client,
        "ALTER TABLE t ALTER id DROP DEFAULT, ALTER id ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME s); CREATE TABLE w (n integer DEFAULT nextval('s'))",
        "prepare('t', 'id')",
        "default value for column n of table public.w depends on sequence public.s",
        "after the swap",
    );
    call(&mut client, "CREATE DOMAIN big AS bigint; CREATE TABLE w (id big REFERENCES t)");
    steps(&cluster, &mut client, &["prepare('u', 'id')", "prepare('t', 'id')"]);
    call(&mut client, "CREATE VIEW v AS SELECT id FROM u");
    refused_in_procedure(&mut client, "CALL moving.backfill()", "55000");
    call(&mut client, "DROP VIEW v");
    steps(&cluster, &mut client, &["backfill()", "indexes", "check()"]);
    // Behind the locks.
    call(&mut client, "ALTER TABLE u ADD g integer GENERATED ALWAYS AS (id * 2) STORED");
    let error = refused(&mut client, "CALL moving.swap('t', 'id')", "P0001");
    assert!(error.detail().is_some_and(|detail| detail.contains("column g of table public.u")), "{error:?}");
    call(&mut client, "ALTER TABLE u DROP g");
    steps(&cluster, &mut client, &["swap('t', 'id')", "validate()", "finish()", "remove()"]);
}

/// A partitioned table that refers to the key is said first; one that is referred to stays so.
#[test]
fn foreign_keys_of_partitioned_tables() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(
        &mut client,
        "CREATE TABLE t (id serial PRIMARY KEY, n integer, UNIQUE (n) INCLUDE (id)); INSERT INTO t (n) VALUES (1);
         CREATE TABLE parts (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
         CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (10); INSERT INTO parts VALUES (1)",
    );
    load_staged(&cluster);
    let partitioned = "PARTITION BY RANGE (k); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)";
    for columns in [
        "k bigint, t_id bigint REFERENCES t",
        "k integer, t_id integer REFERENCES t",
        "k integer, t_n integer REFERENCES t (n)",
    ] {
        in_the_way(
            &mut client,
            &format!("CREATE TABLE p ({columns}) {partitioned}"),
            "prepare('t', 'id')",
            "public.p, which is partitioned",
            "Drop",
        );
    }
    in_the_way(
        &mut client,
        &format!(
            "CREATE TABLE p (k integer, t_id integer) {partitioned}; ALTER TABLE p1 ADD FOREIGN KEY (t_id) REFERENCES t"
        ),
        "prepare('t', 'id')",
        "column public.p1.t_id, which refers to it, is in a partition or an inheritance tree",
        "bigint",
    );
    call(
        &mut client,
        "CREATE TABLE u (id serial PRIMARY KEY, part_id integer REFERENCES parts); INSERT INTO u (part_id) VALUES (1)",
    );
    let before = schema(&cluster, "postgres");
    steps(
        &cluster,
        &mut client,
        &[
            "prepare('u', 'part_id')",
            "prepare('u', 'id')",
            "backfill()",
            "indexes",
            "check()",
            "swap('u', 'id')",
            "validate()",
            "finish()",
            "remove()",
        ],
    );
    let (gone, new) = difference(&comparable(&before), &comparable(&schema(&cluster, "postgres")));
    let of_column = |line: &String| line.starts_with("id bigint") || line.contains("DEFAULT") || of_sequence(line);
    assert!(gone.iter().chain(&new).all(of_column), "{gone:#?} {new:#?}");
    refused(&mut client, "INSERT INTO u (part_id) VALUES (2)", "23503");
}

/// A label of a column belongs to a module that this cannot ask.
#[test]
fn security_labels_are_in_the_way() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    call(&mut client, "CREATE TABLE t (id serial PRIMARY KEY, n integer); SET allow_system_table_mods = on");
    load_staged(&cluster);
    // As SECURITY LABEL does, for which no module is installed.
    let label = "INSERT INTO pg_seclabel SELECT 't'::regclass, 'pg_class'::regclass, %, 'a module', 'secret'";
    in_the_way(
        &mut client,
        &label.replace('%', "1"),
        "prepare('t', 'id')",
        "column id of table public.t has a security label of a module",
        "after the swap",
    );
    call(&mut client, &label.replace('%', "0"));
    call(&mut client, &label.replace('%', "2"));
    call(&mut client, "CALL moving.prepare('t', 'id')");
}
