//! What a table and its views have beside their columns: it is kept, or it stands in the way and the plan says so, before anything
//! is done.

use super::schema::{difference, schema};
use postgres::Client;
use snowflake_test::check::refused;
use snowflake_test::{Cluster, value};

fn run(client: &mut Client, statements: &str) {
    client.batch_execute(statements).unwrap_or_else(|error| panic!("{statements}: {error:?}"));
}

fn notes(client: &mut Client, kind: &str, plan: &str) -> String {
    let query = format!(
        "SELECT coalesce(string_agg(note, E'\\n'), '') FROM snowflake_adopt_plan({plan}) WHERE kind = '{kind}'"
    );
    value(client, &query)
}

/// Privileges that new views get by default, options of the rows that are stored out of line, targets of statistics.
#[test]
fn views_indexes_and_statistics_are_what_they_were() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    run(
        &mut client,
        "CREATE ROLE reader; CREATE ROLE writer;
         CREATE TABLE goods (id serial PRIMARY KEY, name text);
         INSERT INTO goods (name) VALUES ('a'), ('b');
         CREATE VIEW plain AS SELECT id, name FROM goods;
         CREATE VIEW granted AS SELECT id FROM plain; GRANT SELECT ON granted TO reader;
         CREATE VIEW revoked AS SELECT id FROM goods; REVOKE ALL ON revoked FROM CURRENT_USER;
         CREATE MATERIALIZED VIEW stored WITH (fillfactor = 80, toast.autovacuum_enabled = off, toast.vacuum_truncate = off)
             AS SELECT id, name FROM goods;
         CREATE INDEX by_half ON goods ((id / 2), (length(name)));
         ALTER INDEX by_half ALTER COLUMN 1 SET STATISTICS 500;
         ALTER INDEX by_half ALTER COLUMN 2 SET STATISTICS 0;
         CREATE STATISTICS of_goods ON id, name FROM goods; ALTER STATISTICS of_goods SET STATISTICS 77;
         ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO reader, PUBLIC;
         ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT INSERT ON TABLES TO writer",
    );
    let before = schema(&cluster, "postgres");
    run(&mut client, "SELECT snowflake_adopt('goods', views => 'recreate')");
    let (mut gone, mut new) = difference(&before, &schema(&cluster, "postgres"));
    gone.retain(|line| !line.starts_with("--"));
    let default = "ALTER TABLE ONLY public.goods ALTER COLUMN id SET DEFAULT nextval('public.goods_id_seq'::regclass);";
    assert_eq!(gone, [default, "AS integer", "id integer NOT NULL,"]);
    new.retain(|line| !line.starts_with("--") && !line.starts_with("COMMENT ON SEQUENCE public.goods_id_seq IS"));
    assert_eq!(new, ["id bigint DEFAULT public.snowflake_next() NOT NULL,"]);
}

/// Each of these would end in an error of PostgreSQL's, or in a loss.
#[test]
fn what_always_fails_stands_in_the_way() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    run(
        &mut client,
        "CREATE ROLE viewer; REVOKE CREATE ON SCHEMA public FROM PUBLIC;
         CREATE FUNCTION half(integer) RETURNS integer LANGUAGE sql IMMUTABLE RETURN $1 / 2;
         CREATE FUNCTION sum_of(text, integer) RETURNS integer LANGUAGE sql IMMUTABLE RETURN $2;
         CREATE AGGREGATE last (integer) (SFUNC = int4larger, STYPE = integer);
         CREATE FUNCTION whole(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE RETURN $1;
         CREATE TABLE called (id serial PRIMARY KEY, n integer);
         CREATE VIEW halves AS SELECT n, half(id) FROM called;
         CREATE TABLE second (id serial PRIMARY KEY); CREATE VIEW seconds AS SELECT sum_of('a'::text, id) FROM second;
         CREATE TABLE lasts (id serial PRIMARY KEY); CREATE VIEW last_of AS SELECT last(id) FROM lasts;
         CREATE TABLE owned (id serial PRIMARY KEY); CREATE VIEW of_viewer AS SELECT id FROM owned;
         ALTER VIEW of_viewer OWNER TO viewer;
         CREATE TABLE referred (id serial PRIMARY KEY); CREATE TABLE refers (referred_id integer REFERENCES referred);
         ALTER TABLE refers DISABLE TRIGGER ALL;
         CREATE DOMAIN positive AS bigint CHECK (VALUE > 0); CREATE DOMAIN little AS positive CHECK (VALUE < 1000000);
         CREATE TABLE of_domain (id little PRIMARY KEY);
         CREATE TABLE key_of_domain (id bigserial PRIMARY KEY); CREATE TABLE to_domain (key_id little REFERENCES key_of_domain);
         CREATE TABLE own (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
         CREATE TABLE takes (id integer DEFAULT nextval('own_id_seq'));
         CREATE TABLE counted (id serial PRIMARY KEY, n integer); CREATE STATISTICS of_others ON id, n FROM counted;
         ALTER STATISTICS of_others SET STATISTICS 55; ALTER STATISTICS of_others OWNER TO viewer;
         CREATE STATISTICS plain ON id, n FROM counted; ALTER STATISTICS plain OWNER TO viewer;
         CREATE ROLE keeper; ALTER TABLE counted OWNER TO keeper;
         CREATE TABLE ranges (id serial PRIMARY KEY); CREATE INDEX ON ranges USING brin (id int4_minmax_multi_ops)",
    );
    for (table, obstacle) in [
        (
            "called",
            "view public.halves cannot be created again because of function public.half(integer), which would be given",
        ),
        ("second", "function public.sum_of(text,integer), which would be given a bigint"),
        ("lasts", "function public.last(integer), which would be given a bigint"),
        ("owned", "its owner, viewer, who may not create objects in schema public"),
        ("referred", "foreign key refers_referred_id_fkey of public.refers has triggers that are disabled"),
        ("of_domain", "constraint of the domain public.little: CHECK ("),
        ("key_of_domain", "constraint of the domain public.little: CHECK ("),
        ("own", "sequence public.own_id_seq is used by default value for column id of table public.takes"),
        ("counted", "statistics public.of_others belong to role viewer"),
        ("ranges", "index public.ranges_id_idx, whose operator class int4_minmax_multi_ops is not for bigint"),
    ] {
        let found = notes(&mut client, "obstacle", &format!("'{table}', 'id', views => 'recreate'"));
        assert!(found.contains(obstacle), "{table}: {found}");
        assert_eq!(found.lines().count(), 1, "{table}: {found}");
        let adopt = format!("SELECT snowflake_adopt('{table}', 'id', views => 'recreate')");
        let error = refused(&mut client, &adopt, "55000");
        assert!(error.detail().is_some_and(|detail| detail.contains(obstacle)), "{table}: {error:?}");
    }
    // What only looks like it: another column, and a function that takes what an ID is.
    run(&mut client, "DROP VIEW halves; CREATE VIEW halves AS SELECT half(n), whole(id) AS id FROM called");
    run(&mut client, "SELECT snowflake_adopt('called', views => 'recreate')");
    run(&mut client, "ALTER TABLE refers ENABLE TRIGGER ALL; SELECT snowflake_adopt('referred')");
    run(&mut client, "ALTER DOMAIN little DROP CONSTRAINT little_check; SELECT snowflake_adopt('of_domain')");
    run(&mut client, "INSERT INTO of_domain DEFAULT VALUES");
}

/// LOCK TABLE refuses foreign tables: these are locked as they are changed.
#[test]
fn a_foreign_partition_is_in_nobodys_way() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let has_fdw: bool =
        value(&mut client, "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgres_fdw')");
    if !has_fdw {
        // Some builds of PostgreSQL have no contrib modules.
        return;
    }
    // What the server asks of itself, it sees once it is committed.
    run(&mut client, "CREATE TABLE there (id bigint, k integer); CREATE TABLE nothing (id integer, k integer)");
    run(
        &mut client,
        &format!(
            "CREATE EXTENSION postgres_fdw; CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '{}', dbname 'postgres');
             CREATE USER MAPPING FOR postgres SERVER loopback OPTIONS (user 'postgres');
             CREATE TABLE t (id bigserial, k integer NOT NULL) PARTITION BY LIST (k); CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1);
             CREATE FOREIGN TABLE t2 PARTITION OF t FOR VALUES IN (2) SERVER loopback OPTIONS (table_name 'there'); INSERT INTO t (k) VALUES (1), (2)",
            cluster.socket().display()
        ),
    );
    for call in ["adopt", "release"] {
        run(&mut client, &format!("SELECT snowflake_{call}('t', 'id'); INSERT INTO t (k) VALUES (1), (2)"));
    }
    assert_eq!(value::<i64>(&mut client, "SELECT count(DISTINCT id) FROM t"), 6);
    // The table on the other server would not become wider.
    run(
        &mut client,
        "CREATE TABLE narrow (id serial, k integer) PARTITION BY LIST (k);
         CREATE FOREIGN TABLE narrow_1 PARTITION OF narrow FOR VALUES IN (1) SERVER loopback OPTIONS (table_name 'nothing')",
    );
    let found = notes(&mut client, "obstacle", "'narrow', 'id'");
    assert!(
        found.contains("foreign table public.narrow_1, as the table on the other server keeps its type"),
        "{found}"
    );
}

/// A foreign key into a partitioned table has a part on each partition.
#[test]
fn the_plan_names_locks_on_partitions_at_the_other_end() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    run(
        &mut client,
        "CREATE TABLE parted (id bigserial PRIMARY KEY) PARTITION BY HASH (id);
         CREATE TABLE parted_1 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 0) PARTITION BY HASH (id);
         CREATE TABLE parted_1_1 PARTITION OF parted_1 FOR VALUES WITH (MODULUS 1, REMAINDER 0);
         CREATE TABLE parted_2 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 1);
         CREATE TABLE orders (id serial PRIMARY KEY);
         CREATE TABLE lines (parted_id integer REFERENCES parted, order_id integer REFERENCES orders,
             FOREIGN KEY (order_id) REFERENCES parted)",
    );
    for table in ["orders", "parted"] {
        let planned = format!(
            "SELECT string_agg(DISTINCT t, ' ' ORDER BY t) FROM snowflake_adopt_plan('{table}'), regexp_split_to_table(locks, ', ') t"
        );
        let planned: String = value(&mut client, &planned);
        let mut transaction = client.transaction().unwrap();
        transaction.batch_execute(&format!("SELECT snowflake_adopt('{table}')")).unwrap();
        let taken = super::locked(&mut transaction);
        transaction.rollback().unwrap();
        assert_eq!(planned, taken, "{table}");
    }
}

/// What the plan tells of clients is what happens to them.
#[test]
fn clients_are_told_of_what_they_meet() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    run(
        &mut client,
        "CREATE ROLE application; CREATE TABLE orders (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, note text);
         GRANT SELECT, INSERT, UPDATE ON orders TO application",
    );
    let mut other = cluster.client();
    run(&mut other, "PREPARE add AS INSERT INTO orders (note) VALUES ('a') RETURNING id");
    run(&mut other, "EXECUTE add");
    let notes = notes(&mut client, "note", "'orders'");
    assert!(
        notes.contains("cached plan must not change result type")
            && notes.contains("other sessions open in this database now: 1")
            && notes.contains("GENERATED ALWAYS refused"),
        "{notes}"
    );
    run(&mut client, "SELECT snowflake_adopt('orders')");
    let error = refused(&mut other, "EXECUTE add", "0A000");
    assert_eq!(error.message(), "cached plan must not change result type");
    run(&mut other, "DEALLOCATE add; PREPARE add AS INSERT INTO orders (note) VALUES ('a') RETURNING id; EXECUTE add");
    // As the note has it.
    run(&mut other, "SET ROLE application; INSERT INTO orders VALUES (7, 'of the client''s own')");
    run(
        &mut client,
        "REVOKE INSERT, UPDATE ON orders FROM application; GRANT INSERT (note), UPDATE (note) ON orders TO application",
    );
    refused(&mut other, "INSERT INTO orders VALUES (8, 'of the client''s own')", "42501");
    refused(&mut other, "UPDATE orders SET id = 8", "42501");
    run(&mut other, "INSERT INTO orders (note) VALUES ('b'); UPDATE orders SET note = 'c'");
}
