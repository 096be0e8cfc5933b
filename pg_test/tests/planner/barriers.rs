//! What a condition calls is called when it would be without the planner's help. A security-barrier view and row-level
//! security hide rows from functions that are not leakproof: a condition with such a function is not evaluated for a
//! hidden row. One with a volatile function is evaluated for every row.

use super::compare;
use super::conditions::Kind;
use super::generator::{Generator, Order};
use super::settings;
use super::tables::{DEFAULT, Definition, GUARD, OWN, Schema, table};
use snowflake_test::{Cluster, value};

/// A table, the view that hides some of its rows, if that is not done by row-level security, and which it hides.
const HIDING: [(&str, Option<&str>, &str); 4] = [
    ("veiled", Some("b"), "tenant = 2"),
    ("veiled_times", Some("m"), "created_at < '2024-02-20+00'"),
    ("veiled_own", Some("b"), "tenant = 2"),
    ("kept", None, "NOT (created_at < '2024-03-20+00' OR tenant = 1) OR created_at < '2024-02-10+00' OR n IS NULL"),
];

const TABLES: [Definition; 4] = [
    table("veiled", &DEFAULT, 300, "bigint PRIMARY KEY", ""),
    table("veiled_times", &DEFAULT, 300, "bigint PRIMARY KEY", ""),
    table("veiled_own", &OWN, 300, "bigint NOT NULL", "CREATE INDEX ON {t} (tenant, id)"),
    table("kept", &DEFAULT, 300, "bigint PRIMARY KEY", GUARD),
];

/// Cheap, so that the planner would evaluate it first.
const REVEAL: &str = "
    CREATE FUNCTION reveal(due timestamptz) RETURNS timestamptz LANGUAGE plpgsql STABLE COST 0.0001 AS $$
    BEGIN
        IF due = '1999-12-31+00' THEN RAISE 'a hidden row is revealed'; END IF;
        RETURN due;
    END $$";

#[test]
fn nothing_is_evaluated_for_hidden_rows() {
    let cluster = Cluster::options().set("autovacuum = off").start();
    let mut client = cluster.client();
    let mut schema = Schema::create(&mut client, 1);
    schema.only(&mut client, &TABLES);
    client.batch_execute(REVEAL).unwrap();
    for (table, _, hides) in HIDING {
        let mark = format!(
            "UPDATE {table}_twin SET due = '1999-12-31+00' WHERE {hides};
             UPDATE {table} SET due = twin.due FROM {table}_twin AS twin WHERE twin.id = {table}.id"
        );
        client.batch_execute(&mark).unwrap();
    }
    client.batch_execute("VACUUM ANALYZE").unwrap();
    let hidden: i64 = value(&mut client, "SELECT count(*) FROM kept WHERE due = '1999-12-31+00'");
    assert!(hidden > 20);

    let known = settings::known(&mut client);
    let mut differ = 0;
    for number in 1..=500 {
        let mut generator = Generator::new(&schema, &known, 2, number);
        let at = number as usize % HIDING.len();
        generator.source_of("a", at, HIDING[at].1);
        let mut subject = generator.subject("a");
        subject.others = vec![("reveal(a.due)".to_owned(), Kind::Timestamptz)];
        let [first, second] = [(); 2].map(|()| generator.condition(&subject));
        let text = format!("SELECT a.id, ‹a.t› AS t FROM ‹a› WHERE {first} AND ({second}) ORDER BY t, id");
        let mut query = generator.finish("barriers", text, Vec::new(), Order::Total);
        query.settings.push(("role".to_owned(), "reader".to_owned()));
        let outcome =
            compare::all_ways(&mut client, &query, false).unwrap_or_else(|report| panic!("{number}: {report}"));
        differ += usize::from(outcome.plans_differ);
    }
    assert!(differ > 150, "only {differ} plans differ");
}

/// Every other call returns a time before all others.
const TURNS: &str = "
    CREATE SEQUENCE turns;
    CREATE FUNCTION turn() RETURNS timestamptz LANGUAGE sql VOLATILE AS
        $$ SELECT CASE WHEN nextval('turns') % 2 = 0 THEN 'infinity' ELSE '-infinity' END::timestamptz $$;
    CREATE TABLE timed (id bigint PRIMARY KEY);
    INSERT INTO timed SELECT snowflake_next() FROM generate_series(1, 100);
    SET enable_seqscan = off";

#[test]
fn a_volatile_function_is_called_for_every_row() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    client.batch_execute(TURNS).unwrap();
    for condition in ["time >= turn()", "turn() < time", "time BETWEEN turn() AND 'infinity'", "NOT time < turn()"] {
        let condition = condition.replace("time", "snowflake_timestamp(id)");
        let found: i64 = value(&mut client, &format!("SELECT count(*) FROM timed WHERE {condition}"));
        assert_eq!(found, 50, "{condition}");
    }
    // Not one list, for which it is called once.
    let twice = "(turn() = '2026-01-01' OR turn() = '-infinity')";
    for scan in ["enable_seqscan", "enable_indexscan"] {
        client.batch_execute(&format!("RESET ALL; SET {scan} = off")).unwrap();
        let query = format!("SELECT count(*) FROM timed WHERE snowflake_timestamp(id) > '2026-01-01' AND {twice}");
        let found: i64 = value(&mut client, &query);
        assert_eq!(found, 0, "{scan}");
    }
}
