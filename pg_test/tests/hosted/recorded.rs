//! A default that stands on record as text, in the comment of a sequence, is put back as one expression, or not at all.

use postgres::Client;
use snowflake_test::Cluster;
use snowflake_test::check::refused;
use snowflake_test::hosted::{DATABASE, server};
use snowflake_test::value;

fn owner(cluster: &Cluster) -> Client {
    cluster.client_of("owner", DATABASE)
}

/// A table whose key makes IDs, and had a default before that this is on record for.
fn adopted(client: &mut Client, recorded: &str) {
    client
        .batch_execute(
            "DROP TABLE IF EXISTS made; CREATE TABLE made (id bigint PRIMARY KEY DEFAULT abs(-7), n integer); \
             SELECT snowflake_adopt('made')",
        )
        .unwrap();
    let memo = format!("[snowflake_adopt: DEFAULT {recorded}; snowflake_release() drops this sequence]");
    let comment: String = value(client, &format!("SELECT quote_literal($memo${memo}$memo$)"));
    client.batch_execute(&format!("COMMENT ON SEQUENCE made_id_before_snowflake IS {comment}")).unwrap();
}

/// Most would do something else than to set a default, if they were run.
const MORE_THAN_ONE: [&str; 20] = [
    "1; DROP TABLE untouched; SELECT 1",
    "1, DROP COLUMN n",
    "1), DROP COLUMN n, ALTER id SET DEFAULT (1",
    "(1), DROP COLUMN n",
    "(1)); DROP TABLE untouched; SELECT ((1)",
    "abs(']'), DROP COLUMN n, ALTER id SET DEFAULT abs('[')",
    "length('a'), DROP COLUMN n -- '",
    "length('\\'), DROP COLUMN n, ALTER id SET DEFAULT length(' ')",
    "length('\\''), DROP COLUMN n, ALTER id SET DEFAULT length('')",
    "length(E'\\''), DROP COLUMN n, ALTER id SET DEFAULT length(E'\\'')",
    "length(xE'\\'), DROP COLUMN n, ALTER id SET DEFAULT length('')",
    "length(éE'\\'), DROP COLUMN n, ALTER id SET DEFAULT length('')",
    "length(E'a'\n'\\''), DROP COLUMN n, ALTER id SET DEFAULT length(E'a'\n'')",
    "length(E'a'\n'\''), DROP COLUMN n, ALTER id SET DEFAULT length('a')",
    "length($$a$$), DROP COLUMN n, ALTER id SET DEFAULT length($$($$)",
    "length($a$'$a$); DROP TABLE untouched; SELECT length($a$'$a$)",
    "length(\"a\"), DROP COLUMN n, ALTER id SET DEFAULT length(\"(\")",
    "1 /* ( */, DROP COLUMN n /* ) */",
    "1 -- (\n, DROP COLUMN n",
    "",
];

/// The other setting of `standard_conforming_strings`, which PostgreSQL has up to 18.
fn other_strings() -> &'static str {
    if snowflake_test::Installation::under_test().major() < 19 { "off" } else { "on" }
}

#[test]
fn what_is_on_record_is_one_expression() {
    let cluster = server();
    let mut client = owner(&cluster);
    client.batch_execute("CREATE TABLE untouched ()").unwrap();
    for recorded in MORE_THAN_ONE {
        adopted(&mut client, recorded);
        for strings in ["on", other_strings()] {
            client.batch_execute(&format!("SET standard_conforming_strings = {strings}")).unwrap();
            for call in ["SELECT snowflake_release('made')", "SELECT snowflake_release_plan('made')"] {
                let error = refused(&mut client, call, "55000");
                assert_eq!(error.message(), "column public.made.id cannot be released yet", "{recorded}: {error:?}");
                assert!(error.detail().unwrap().contains(recorded), "{recorded}: {error:?}");
            }
        }
        client.batch_execute("SET standard_conforming_strings = on; SELECT n FROM made, untouched").unwrap();
    }
    // With a start, it gets a sequence of its own.
    assert_eq!(value::<i64>(&mut client, "SELECT snowflake_release('made', start => 5)"), 5);
    assert_eq!(value::<i64>(&mut client, "INSERT INTO made DEFAULT VALUES RETURNING id"), 5);
}

/// Whatever PostgreSQL writes for a default.
#[test]
fn every_default_is_put_back() {
    let cluster = server();
    let mut client = owner(&cluster);
    client
        .batch_execute(
            "CREATE FUNCTION \"f (é, '\"(VARIADIC text[]) RETURNS bigint LANGUAGE sql RETURN cardinality($1); \
             CREATE TYPE pair AS (a integer, b integer)",
        )
        .unwrap();
    for default in [
        "length(E'a\\nb')",
        "length('a''b)];,--/*\"$$')",
        "length(E'\\\\''\\n[b]')",
        "\"f (é, '\"('é', 'E', E'\\\\', '}')",
        "(ARRAY[[1, 2], [3, 4]])[1][2]",
        "- (-3)",
        "CASE WHEN 'x' ~ '^[(]' THEN 1 ELSE 2 END",
        "(ROW(1, 2)::pair).a",
        "extract(year FROM timestamptz '2026-01-01 00:00+00')::bigint",
        "1e3 * 0.5::numeric",
        "length(B'101'::text) + length(current_setting('search_path'))",
        "coalesce(nullif(5, 6), greatest(1, 2))",
    ] {
        let table = format!("DROP TABLE IF EXISTS made; CREATE TABLE made (id bigint PRIMARY KEY DEFAULT {default})");
        client.batch_execute(&table).unwrap();
        let written = "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'made'::regclass";
        let before: String = value(&mut client, written);
        let others = format!("SET standard_conforming_strings = {}", other_strings());
        client
            .batch_execute(&format!(
                "{others}; SELECT snowflake_adopt('made'); SET standard_conforming_strings = on; \
                 SELECT snowflake_release('made'); SELECT snowflake_adopt('made'); {others}; \
                 SELECT snowflake_release('made'); SET standard_conforming_strings = on"
            ))
            .unwrap();
        assert_eq!(value::<String>(&mut client, written), before, "{default}");
        let left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'made%before%'";
        assert_eq!(value::<i64>(&mut client, left), 0, "{default}");
    }
}

/// A comment of several lines stays, also one that looks like a record, and is none.
#[test]
fn comments_of_the_user() {
    let cluster = server();
    let mut client = owner(&cluster);
    for comment in ["one", "one\n\ntwo\n", "[snowflake_adopt: ?]", "[snowflake_adopt: no default] "] {
        let table = format!(
            "DROP TABLE IF EXISTS keys; CREATE TABLE keys (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY); \
             COMMENT ON SEQUENCE keys_id_seq IS '{comment}'; SELECT snowflake_adopt('keys'); SELECT snowflake_release('keys')"
        );
        client.batch_execute(&table).unwrap();
        let kept = "SELECT obj_description('keys_id_seq'::regclass, 'pg_class')";
        assert_eq!(value::<String>(&mut client, kept), comment);
    }
}
