//! `snowflake_create_partitions()` where other sessions work on the table, by other roles, and in another encoding.

use snowflake_test::check::{self, refused};
use snowflake_test::{Cluster, value};

/// Each waits for the session before it, sees the partitions that it made, and makes the rest.
#[test]
fn sessions_that_make_the_same_ones_at_once() {
    let cluster = Cluster::options().start();
    cluster.client().batch_execute("CREATE TABLE t (id bigint PRIMARY KEY) PARTITION BY RANGE (id)").unwrap();
    let made = cluster.sessions(8, |session, client| {
        // Its snapshot is from before the others are done, and has none of their partitions.
        if session % 2 == 0 {
            client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class").unwrap();
        }
        let days = "SELECT snowflake_create_partitions('t', '1 day', '2026-01-01 00:00+00', '2026-01-31 00:00+00')";
        let made = client.query(days, &[]).unwrap().len();
        if session % 2 == 0 {
            client.batch_execute("COMMIT").unwrap();
        }
        made
    });
    assert_eq!(made.iter().sum::<usize>(), 30, "{made:?}");
}

/// The call waits for a transaction that inserts into the default partition, and then finds its row.
#[test]
fn a_row_that_comes_into_the_default_partition_meanwhile() {
    let cluster = Cluster::options().start();
    let mut writer = cluster.client();
    writer
        .batch_execute(
            "CREATE TABLE t (id bigint PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE t_rest PARTITION OF t DEFAULT",
        )
        .unwrap();
    writer.batch_execute("BEGIN; INSERT INTO t VALUES (snowflake_min_id('2026-01-02 00:00+00'))").unwrap();
    let error = std::thread::scope(|scope| {
        let maker = scope.spawn(|| {
            let days = "SELECT snowflake_create_partitions('t', '1 day', '2026-01-01 00:00+00', '2026-01-31 00:00+00')";
            cluster.client().query(days, &[]).unwrap_err()
        });
        let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 't'::regclass AND NOT granted)";
        check::wait_for("the call waits for the row", || value(&mut cluster.client(), waits));
        writer.batch_execute("COMMIT").unwrap();
        maker.join().unwrap()
    });
    let error = error.as_db_error().unwrap();
    assert_eq!(error.message(), "default partition \"t_rest\" has rows of a partition that is to be made");
}

/// A role that does not own the table is refused at once, though another session has it locked.
#[test]
fn they_are_refused_before_anything_is_waited_for() {
    let cluster = Cluster::options().start();
    let mut owner = cluster.client();
    owner
        .batch_execute("CREATE TABLE t (id bigint PRIMARY KEY) PARTITION BY RANGE (id); CREATE ROLE other LOGIN")
        .unwrap();
    owner.batch_execute("BEGIN; LOCK t IN ACCESS EXCLUSIVE MODE").unwrap();
    let mut other = cluster.client_of("other", "postgres");
    other.batch_execute("SET lock_timeout = '60s'").unwrap();
    let seconds = "SELECT snowflake_create_partitions('t', '1 s', '2024-01-01 00:00+00', '2093-01-01 00:00+00')";
    refused(&mut other, seconds, "42501");
    // So is the owner, with an error that can be seen without the lock.
    let mut owner = cluster.client();
    owner.batch_execute("SET lock_timeout = '60s'").unwrap();
    refused(&mut owner, seconds, "54000");
}

/// In a database that is not UTF-8, names are not either.
#[test]
fn in_a_database_of_another_encoding() {
    let cluster = Cluster::options().start();
    cluster.client().batch_execute("CREATE DATABASE latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0").unwrap();
    let mut client = cluster.client_of("postgres", "latin1");
    client
        .batch_execute(
            "CREATE EXTENSION pg_snowflake; CREATE TABLE \"été\" (\"clé\" bigint PRIMARY KEY) PARTITION BY RANGE (\"clé\");
             CREATE TABLE \"été autre\" PARTITION OF \"été\" DEFAULT; CREATE TABLE \"cité\" (\"clé\" bigint)",
        )
        .unwrap();
    let days = |table, until| {
        format!(
            "SELECT snowflake_create_partitions('{table}', '1 day', '2026-01-01 00:00+00', '{until} 00:00+00')::text"
        )
    };
    let rows = client.query(&days("été", "2026-01-02"), &[]).unwrap();
    assert_eq!(rows[0].get::<_, String>(0), "\"été_20260101\"");
    client.batch_execute("INSERT INTO \"été\" VALUES (snowflake_min_id('2026-01-03 00:00+00'))").unwrap();
    for (table, code) in [("été", "23514"), ("cité", "42809")] {
        let error = refused(&mut client, &days(table, "2026-01-04"), code);
        assert!(error.message().contains("t?"), "{error}");
    }
}
