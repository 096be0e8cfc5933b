//! A server in recovery reads IDs, and makes none.

use snowflake_test::check::refused;
use snowflake_test::query::{NEXT, next};
use snowflake_test::{Cluster, Stop, value};

#[test]
fn in_recovery_making_is_refused_and_decoding_works() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    client
        .batch_execute("CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_next()); INSERT INTO t DEFAULT VALUES")
        .unwrap();
    drop(client);
    cluster.stop(Stop::Fast);
    cluster.append("standby.signal", "");
    cluster.start();

    let mut client = cluster.client();
    for (query, function) in [
        (NEXT, "snowflake_next"),
        ("SELECT snowflake_next(2)", "snowflake_next"),
        ("SELECT snowflake_rewind(1)", "snowflake_rewind"),
    ] {
        let error = refused(&mut client, query, "25006");
        assert_eq!(error.message(), format!("cannot execute {function}() during recovery"));
    }
    let query = "SELECT count(*) FROM t WHERE snowflake_between(id, now() - interval '1 hour', 'infinity') \
                 AND (snowflake_decode(id)).worker_id = 1";
    assert_eq!(value::<i64>(&mut client, query), 1);

    // The same session makes IDs after the promotion.
    client.query_one("SELECT pg_promote()", &[]).unwrap();
    assert!(client.query_one(NEXT, &[]).is_ok());
}

/// One session gets SIGKILL: the server makes its shared memory anew, and IDs go on.
#[test]
fn the_crash_of_one_session_is_survived() {
    let cluster = Cluster::options().start();
    let last = next(&mut cluster.client());
    cluster.crash_session("postgres");
    assert!(cluster.next_once_up() > last);
}
