//! What the extension has on disk: a sequence whose page is damaged, and a record that a crash follows.

mod form;

use snowflake_test::{Cluster, Stop};
use std::fs;

#[test]
fn a_damaged_sequence_is_an_error_and_stops_no_other_database() {
    let cluster = Cluster::options().start();
    cluster.client().batch_execute("CREATE DATABASE other").unwrap();
    let mut other = cluster.client_of("postgres", "other");
    other.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let mut client = cluster.client();
    client.query_one("SELECT snowflake_next()", &[]).unwrap();

    for (name, query) in [
        ("layout", "SELECT snowflake_timestamp(1)"),
        ("epoch", "SELECT snowflake_timestamp(1)"),
        ("reservation", "SELECT snowflake_next()"),
    ] {
        let file = client.query_one(&format!("SELECT pg_relation_filepath('_snowflake.{name}')"), &[]).unwrap();
        let file = cluster.data().join(file.get::<_, String>(0));
        client.batch_execute("CHECKPOINT").unwrap();
        drop(client);
        cluster.stop(Stop::Fast);
        let whole = fs::read(&file).unwrap();
        let mut damaged = whole.clone();
        damaged[..8192].fill(0);
        fs::write(&file, damaged).unwrap();
        cluster.start();

        client = cluster.client();
        for query in [query, "SELECT snowflake_next()"] {
            let error = client.query(query, &[]).unwrap_err();
            let error = error.as_db_error().unwrap();
            assert_eq!(error.code().code(), "XX001", "{name}: {error:?}");
            assert_eq!(error.message(), format!("sequence _snowflake.{name} is damaged"));
            assert!(error.detail().is_some() && error.hint().is_some(), "{error:?}");
        }
        cluster.client_of("postgres", "other").query_one("SELECT snowflake_next()", &[]).unwrap();

        drop(client);
        cluster.stop(Stop::Fast);
        fs::write(&file, whole).unwrap();
        cluster.start();
        client = cluster.client();
        client.query_one("SELECT snowflake_next()", &[]).unwrap();
    }
}

/// As PostgreSQL's `setval`, an adoption that was acknowledged is on disk.
#[test]
fn an_adopted_layout_outlives_a_crash() {
    const OTHER: &str = "pg_snowflake.layout = 'timestamp=41 worker=9 sequence=13 epoch=2025-01-01T00:00:00Z'";
    let layout = |cluster: &Cluster, of: &str| -> String {
        cluster.client().query_one(&format!("SELECT snowflake_{of}_layout()"), &[]).unwrap().get(0)
    };
    let cluster = Cluster::options().set("autovacuum = off").start();
    cluster.stop(Stop::Fast);
    cluster.append("postgresql.conf", OTHER);
    cluster.start();
    assert_ne!(layout(&cluster, "database"), layout(&cluster, "server"));
    cluster.stop_writers();
    cluster.client().batch_execute("SELECT snowflake_adopt_layout()").unwrap();
    cluster.stop(Stop::Kill);
    cluster.start();
    assert_eq!(layout(&cluster, "database"), layout(&cluster, "server"));
    cluster.client().query_one("SELECT snowflake_next()", &[]).unwrap();
}
