//! A server in recovery reads IDs, and makes none.

use snowflake_test::{Cluster, Stop, kill};

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
    cluster.start().unwrap();

    let mut client = cluster.client();
    for query in ["SELECT snowflake_next()", "SELECT snowflake_next(2)"] {
        let error = client.query(query, &[]).unwrap_err();
        let error = error.as_db_error().unwrap();
        assert_eq!(error.code().code(), "25006");
        assert_eq!(error.message(), "cannot execute snowflake_next() during recovery");
    }
    let query = "SELECT count(*) FROM t WHERE snowflake_between(id, now() - interval '1 hour', 'infinity') \
                 AND (snowflake_decode(id)).worker_id = 1";
    assert_eq!(client.query_one(query, &[]).unwrap().get::<_, i64>(0), 1);

    // The same session makes IDs after the promotion.
    client.query_one("SELECT pg_promote()", &[]).unwrap();
    assert!(client.query_one("SELECT snowflake_next()", &[]).is_ok());
}

/// One session dies of SIGKILL: the server makes its shared memory anew, and IDs go on.
#[test]
fn the_crash_of_one_session_is_survived() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let last: i64 = client.query_one("SELECT snowflake_next()", &[]).unwrap().get(0);
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[]).unwrap().get(0);
    kill(pid.unsigned_abs());
    drop(client);
    let next: i64 = cluster.retry(|client| Ok(client.query_one("SELECT snowflake_next()", &[])?.get(0)));
    assert!(next > last);
}
