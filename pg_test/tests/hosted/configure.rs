//! `snowflake_configure()` while other sessions configure, and make the first ID.

use postgres::Client;
use snowflake_test::check::{refused, wait_for};
use snowflake_test::hosted::{self, DATABASE, create_database, run_script};
use snowflake_test::query::next;
use snowflake_test::{Cluster, value};
use std::thread;

/// A server with the script, and no worker ID yet.
fn not_configured() -> Cluster {
    let cluster = hosted::options().create();
    cluster.start();
    create_database(&cluster, DATABASE);
    run_script(&cluster, DATABASE);
    cluster
}

fn owner(cluster: &Cluster) -> Client {
    cluster.client_of("owner", DATABASE)
}

/// Waits until a session waits for an advisory lock.
fn somebody_waits(cluster: &Cluster) {
    let mut client = cluster.client_of("postgres", DATABASE);
    wait_for("a session waits for the lock", || {
        value(&mut client, "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)")
    });
}

/// An ID of now, of worker 1.
#[track_caller]
fn is_of_now(cluster: &Cluster, id: i64) {
    let query = format!(
        "SELECT snowflake_worker({id}) = 1 AND snowflake_timestamp({id}) BETWEEN clock_timestamp() - interval '5 minutes' \
         AND clock_timestamp() + interval '1 minute'"
    );
    assert!(value::<bool>(&mut owner(cluster), &query), "{id}");
}

#[test]
fn what_is_on_record_is_read_under_the_lock() {
    for (call, refusal) in [("snowflake_configure(1, layout => 'default')", true), ("snowflake_configure(2)", false)] {
        let cluster = not_configured();
        let mut first = owner(&cluster);
        first.batch_execute("BEGIN; SELECT snowflake_configure(1, layout => 'sonyflake')").unwrap();
        let id = next(&mut first);
        thread::scope(|scope| {
            let second = scope.spawn(|| {
                let query = format!("SELECT {call}");
                if refusal {
                    let error = refused(&mut owner(&cluster), &query, "55000");
                    assert_eq!(error.message(), "IDs were made in this database already");
                } else {
                    owner(&cluster).batch_execute(&query).unwrap();
                }
            });
            somebody_waits(&cluster);
            first.batch_execute("COMMIT").unwrap();
            second.join().unwrap();
        });
        let layout: String = value(&mut owner(&cluster), "SELECT snowflake_database_layout()");
        assert_eq!(layout, "timestamp=39 sequence=8 worker=16 tick=10ms epoch=2014-09-01T00:00:00Z", "{call}");
        is_of_now(&cluster, id);
    }
}
