//! In a hostile world ([`snowflake_test::hostile`]), what the extension's scripts make, and what its functions run, is PostgreSQL's own.

use postgres::Client;
use snowflake_test::hosted::create_database;
use snowflake_test::{Cluster, hostile};

/// A server with a hostile database of this role, who is no superuser; sessions there find hostile names first.
fn server() -> Cluster {
    let cluster = Cluster::options().create();
    cluster.start();
    create_database(&cluster, "shop");
    hostile::fill(&cluster, "shop", &["owner"]);
    hostile::put_first(&cluster, "shop");
    cluster
}

fn sprung(cluster: &Cluster) -> Vec<String> {
    hostile::sprung(cluster).into_iter().collect()
}

/// The world is one: what is written without care runs mallory's code, with pg_catalog last on the path and even first.
#[test]
fn careless_statements_run_code_of_others() {
    let cluster = server();
    let springs = |client: &mut Client, statement: &str, what: &str| {
        assert!(!sprung(&cluster).contains(&what.to_owned()), "{what} before {statement}");
        // Some fail by it.
        let _ = client.batch_execute(statement);
        assert!(sprung(&cluster).contains(&what.to_owned()), "{statement}: {:?}", sprung(&cluster));
    };
    let mut last = cluster.client_of("owner", "shop");
    last.batch_execute("SET search_path = pg_catalog, \"$user\", public").unwrap();
    for (statement, what) in [
        ("SELECT 1.5 * 2", "operator * as owner"),
        ("SELECT count(1)", "function count as owner"),
        ("SELECT format('%s', 'x'::name)", "function format as owner"),
        ("SELECT quote_literal(5)", "function quote_literal as owner"),
        ("SELECT 1.5::float8 / 2", "operator / as owner"),
        ("SELECT 'nothing'::mallory_code.anything::bigint", "cast to int8 as owner"),
        ("SELECT mallory_code.int8(5::bigint)", "cast from int8 as owner"),
    ] {
        springs(&mut last, statement, what);
    }
    let mut first = cluster.client_of("owner", "shop");
    for (statement, what) in [
        ("SELECT 1 = 1", "operator = as owner"),
        ("SELECT 1 IN (2, 3) OR 1 < 2", "operator < as owner"),
        ("SELECT clock_timestamp()", "function clock_timestamp as owner"),
        ("SELECT 'a'::text", "type text as owner"),
        ("SELECT FROM pg_class", "relation as owner"),
    ] {
        springs(&mut first, statement, what);
    }
    assert!(!sprung(&cluster).iter().any(|what| what.ends_with("as postgres")), "the owner alone has called");
}
