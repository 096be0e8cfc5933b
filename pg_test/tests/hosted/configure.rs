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

/// The layout on record, and that at which its sequences start: a dump with rows of generated columns has only the latter.
fn on_record(client: &mut Client) -> (String, String) {
    let query = "SELECT (SELECT concat_ws(' ', form, epoch) FROM _snowflake.record()), \
                 (SELECT string_agg(seqstart::text, ' ' ORDER BY seqrelid::regclass::text DESC) FROM pg_sequence \
                  WHERE seqrelid IN ('_snowflake.layout'::regclass, '_snowflake.epoch'::regclass))";
    let row = client.query_one(query, &[]).unwrap();
    (row.get(0), row.get(1))
}

/// `setval()` is not undone by a rollback. The start and the bounds of a sequence are, and with the bounds another layout than
/// the one before; and new plans of other sessions.
#[test]
fn a_configuration_that_is_rolled_back_is_made_good_by_the_next() {
    let cluster = not_configured();
    let mut client = owner(&cluster);
    client.batch_execute("BEGIN; SELECT snowflake_configure(1); ROLLBACK").unwrap();
    assert_ne!(on_record(&mut client).0, on_record(&mut client).1, "only the value stays");
    client.batch_execute("SELECT snowflake_configure(1)").unwrap();
    assert_eq!(on_record(&mut client).0, on_record(&mut client).1);
    let mut other = owner(&cluster);
    let read = "EXECUTE read (0)";
    let prepare =
        "SET plan_cache_mode = force_generic_plan; PREPARE read (bigint) AS SELECT snowflake_timestamp($1)::text";
    other.batch_execute(prepare).unwrap();
    let before: String = value(&mut other, read);
    for (layout, again) in
        [("sonyflake", ""), ("sonyflake", ", layout => 'sonyflake'"), ("default", ", layout => 'default'")]
    {
        client.batch_execute(&format!("BEGIN; SELECT snowflake_configure(1, layout => '{layout}'); ROLLBACK")).unwrap();
        client.batch_execute(&format!("SELECT snowflake_configure(1{again})")).unwrap();
        let (recorded, start) = on_record(&mut client);
        assert_eq!(start, recorded, "{layout}{again}");
        let epoch: String = value(&mut owner(&cluster), "SELECT snowflake_timestamp(0)::text");
        assert_eq!(epoch != before, again.contains("sonyflake"), "{layout}{again}");
        assert_eq!(value::<String>(&mut other, read), epoch, "{layout}{again}");
    }
    next(&mut other);
}

/// Whatever ends a call leaves what was on record before.
#[test]
fn a_configuration_that_fails_changes_nothing() {
    let cluster = not_configured();
    let mut client = owner(&cluster);
    client.batch_execute("CREATE TABLE keys (id bigint DEFAULT snowflake_next()); SET lock_timeout = '100ms'").unwrap();
    let numbers = "SELECT string_agg(concat_ws(' ', sequencename, last_value), ',' ORDER BY sequencename) \
                   FROM pg_sequences WHERE schemaname = '_snowflake'";
    for configured in [None, Some("SELECT snowflake_configure(1)")] {
        if let Some(configured) = configured {
            client.batch_execute(configured).unwrap();
        }
        let before = (on_record(&mut client), value::<String>(&mut client, numbers));
        let mut other = owner(&cluster);
        other.batch_execute("BEGIN; LOCK TABLE keys").unwrap();
        refused(&mut client, "SELECT snowflake_configure(2, layout => 'sonyflake')", "55P03");
        other.batch_execute("ROLLBACK").unwrap();
        assert_eq!((on_record(&mut client), value::<String>(&mut client, numbers)), before);
    }
}

/// A session stands still just before or after a step of the generator, while the database gets another number. Once that is done, no ID
/// has the old one.
#[test]
fn a_worker_that_changes_while_a_session_draws() {
    const PAUSE: &str = " PERFORM public.paused();";
    for (before, after, clock) in [
        ("IF place IS NULL OR place < mark.reached THEN", "base := pg_sequence_last_value('_snowflake.base');", "+5s"),
        // The position that was drawn before is ahead of the clock, and so is looked at first.
        ("LOOP", "l := _snowflake.layout();", "-5s"),
    ] {
        let cluster = hosted::server();
        let mut client = owner(&cluster);
        let paused = "CREATE FUNCTION public.paused() RETURNS void LANGUAGE plpgsql AS \
                      'BEGIN PERFORM pg_advisory_lock_shared(7); PERFORM pg_advisory_unlock_shared(7); END'";
        client.batch_execute(paused).unwrap();
        let step = hosted::script().split(before).find(|rest| rest.trim_start().starts_with(after)).unwrap();
        let script = hosted::script().replacen(&format!("{before}{step}"), &format!("{before}{PAUSE}{step}"), 1);
        client.batch_execute(&script).unwrap();
        let mut other = owner(&cluster);
        next(&mut other);
        cluster.step_clock(clock);
        client.batch_execute("SELECT pg_advisory_lock(7)").unwrap();
        let id = thread::scope(|scope| {
            let drawing = scope.spawn(|| next(&mut other));
            somebody_waits(&cluster);
            client.batch_execute("SELECT snowflake_configure(2); SELECT pg_advisory_unlock(7)").unwrap();
            drawing.join().unwrap()
        });
        assert_eq!(value::<i32>(&mut client, &format!("SELECT snowflake_worker({id})")), 2, "{after}");
        assert!(next(&mut owner(&cluster)) > id);
    }
}
