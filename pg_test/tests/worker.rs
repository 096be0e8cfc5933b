//! A changed worker: a reload takes effect in statements that run, and two servers can swap their numbers under load,
//! if they wait as the documentation says.

use postgres::Client;
use snowflake_test::load::{self, TABLE};
use snowflake_test::query::{batch, next};
use snowflake_test::{Cluster, check, ids, millis, value};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// One statement that makes IDs for so many seconds, and says when it made each.
fn long_statement(client: &mut Client, seconds: f64) -> Vec<(i64, f64)> {
    let query = "SELECT id, extract(epoch FROM at)::float8 FROM generate_series(1, 500000),
                     LATERAL (SELECT snowflake_next() AS id, clock_timestamp() AS at, generate_series AS g OFFSET 0) made,
                     LATERAL (SELECT CASE WHEN g % 20 = 0 THEN pg_sleep(0.001) END) slept";
    client.batch_execute("CREATE TEMP TABLE IF NOT EXISTS made (id bigint, at float8); TRUNCATE made").unwrap();
    client
        .batch_execute(&format!(
            "DO $$ DECLARE r record; finish timestamptz := clock_timestamp() + interval '{seconds} s'; BEGIN \
             FOR r IN {query} LOOP INSERT INTO made VALUES (r.id, r.extract); \
             EXIT WHEN clock_timestamp() > finish; END LOOP; END $$"
        ))
        .unwrap();
    let rows = client.query("SELECT id, at FROM made ORDER BY ctid", &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn worker_of(id: i64) -> i64 {
    id >> 12 & 1023
}

/// Waits until a fresh server has made an ID.
fn until_ids_are_made(cluster: &Cluster) {
    let made = "SELECT last_time IS NOT NULL FROM snowflake_status()";
    check::wait_for("an ID is made", || value(&mut cluster.client(), made));
}

#[test]
fn a_reload_takes_effect_within_a_second_in_a_statement_that_runs() {
    let cluster = Cluster::options().start();
    let (made, changed) = thread::scope(|scope| {
        let statement = scope.spawn(|| long_statement(&mut cluster.client(), 5.0));
        until_ids_are_made(&cluster);
        thread::sleep(millis(1000));
        cluster.reload(&[("pg_snowflake.worker_id", "77")]);
        let changed =
            "SELECT extract(epoch FROM clock_timestamp())::float8 FROM snowflake_status() WHERE worker_id = 77";
        let mut client = cluster.client();
        let mut at = None;
        check::wait_for("the worker is in use", || {
            at = client.query_opt(changed, &[]).unwrap().map(|row| row.get::<_, f64>(0));
            at.is_some()
        });
        (statement.join().unwrap(), at.unwrap())
    });
    let list: Vec<i64> = made.iter().map(|&(id, _)| id).collect();
    check::rising(&list);
    let late = made.iter().filter(|&&(id, at)| worker_of(id) == 1 && at > changed + 1.0).count();
    assert_eq!(late, 0, "IDs of the old worker a second after the change");
    assert!(made.iter().any(|&(id, _)| worker_of(id) == 1) && made.iter().any(|&(id, _)| worker_of(id) == 77));
}

#[test]
fn without_a_worker_a_statement_that_runs_ends_and_the_status_says_until_when_the_number_is_in_use() {
    let cluster = Cluster::options().start();
    cluster.client().batch_execute("CREATE TABLE made (id bigint)").unwrap();
    let highest: i64 = thread::scope(|scope| {
        let statement = scope.spawn(|| {
            let mut client = cluster.client();
            let error = client
                .batch_execute(
                    "DO $$ BEGIN LOOP INSERT INTO made SELECT snowflake_next() FROM generate_series(1, 100); COMMIT; END LOOP; END $$",
                )
                .unwrap_err();
            let error = error.as_db_error().unwrap();
            assert_eq!(error.message(), "pg_snowflake.worker_id is not set");
            // Not the number that was given away.
            assert!(error.hint().unwrap().contains("pg_snowflake.worker_id = 2;"), "{error:?}");
            assert!(error.detail().unwrap().contains("Number 1, which this server had"), "{error:?}");
            value(&mut client, "SELECT max(id) FROM made")
        });
        let stored = "SELECT EXISTS (SELECT FROM made)";
        check::wait_for("IDs are stored", || value(&mut cluster.client(), stored));
        cluster.reload(&[("pg_snowflake.worker_id", "-1")]);
        statement.join().unwrap()
    });
    let query =
        "SELECT worker_id IS NULL, previous_worker_id, snowflake_min_id(previous_until) > $1 FROM snowflake_status()";
    let row = cluster.client().query_one(query, &[&highest]).unwrap();
    assert_eq!((row.get(0), row.get(1), row.get(2)), (true, 1, true));
}

/// The procedure of docs/servers.md: give the number up, wait until it is free, and only then use it elsewhere.
fn hand_over(from: &Cluster, to: &Cluster, number: &str, spare: &str) {
    from.reload(&[("pg_snowflake.worker_id", spare)]);
    let query = "SELECT previous_until::text FROM snowflake_status() WHERE previous_worker_id = $1::int";
    let number_given_up: i32 = number.parse().unwrap();
    let mut until: Option<String> = None;
    check::wait_for("the worker changes", || {
        until = from.client().query_opt(query, &[&number_given_up]).unwrap().map(|row| row.get(0));
        until.is_some()
    });
    let free = format!("SELECT snowflake_timestamp(snowflake_next()) >= '{}'", until.unwrap());
    check::wait_for(&free, || value(&mut to.client(), &free));
    to.reload(&[("pg_snowflake.worker_id", number)]);
}

#[test]
fn two_servers_swap_their_workers_under_load() {
    let servers = [1, 2].map(|worker| {
        let server = Cluster::options().set(&format!("pg_snowflake.worker_id = {worker}")).start();
        server.client().batch_execute(TABLE).unwrap();
        server
    });
    let [a, b] = &servers;
    let done = AtomicBool::new(false);
    let (records, statements) = thread::scope(|scope| {
        let end = load::End(&done);
        let loads = [a, b].map(|server| {
            let done = &done;
            scope.spawn(move || {
                load::run_during(
                    3,
                    || server,
                    || {
                        while !done.load(Ordering::Relaxed) {
                            thread::sleep(millis(10));
                        }
                    },
                )
                .1
            })
        });
        let statements = [a, b].map(|server| scope.spawn(|| long_statement(&mut server.client(), 8.0)));
        thread::sleep(millis(500));
        for round in 0..4 {
            let (a, b) = if round % 2 == 0 { (a, b) } else { (b, a) };
            // Here a has number 1, and b has 2.
            hand_over(a, b, "1", "3");
            hand_over(b, a, "2", "1");
            thread::sleep(millis(300));
        }
        let statements = statements.map(|statement| statement.join().unwrap());
        drop(end);
        (loads.map(|load| load.join().unwrap()), statements)
    });
    let mut lists: Vec<Vec<i64>> =
        statements.iter().map(|made| made.iter().map(|&(id, _)| id).collect::<Vec<i64>>()).collect();
    lists.iter().for_each(|list| check::rising(list));
    for (record, server) in records.iter().zip([a, b]) {
        record.check(&[server]);
        lists.push(record.all());
    }
    let count = check::distinct(&lists);
    let workers: BTreeSet<i64> = lists.concat().into_iter().map(worker_of).collect();
    assert_eq!(workers, BTreeSet::from([1, 2, 3]));
    assert!(count > 10_000, "{count}");
}

/// After the change, a batch still gives out what it claimed before: IDs below all that are claimed after it.
#[test]
fn a_cursor_over_a_batch_rises_across_the_change() {
    let cluster = Cluster::options().set("pg_snowflake.worker_id = 900").start();
    let mut client = cluster.client();
    client.batch_execute("BEGIN; DECLARE batch NO SCROLL CURSOR FOR SELECT snowflake_next(5000)").unwrap();
    let mut list = ids(&client.query("FETCH 100 FROM batch", &[]).unwrap());
    cluster.reload(&[("pg_snowflake.worker_id", "5")]);
    let mut first = 0;
    check::wait_for("the worker changes", || {
        first = next(&mut cluster.client());
        worker_of(first) == 5
    });
    list.extend(ids(&client.query("FETCH ALL FROM batch", &[]).unwrap()));
    check::rising(&list);
    assert_eq!(list.len(), 5000);
    let old = list.iter().filter(|&&id| worker_of(id) == 900).max().unwrap();
    assert!(*old < first);
    assert_eq!(worker_of(*list.last().unwrap()), 5);
}

/// Worker and datacenter change together: no ID has the old worker and the new datacenter, or the other way round.
#[test]
fn worker_and_datacenter_change_at_one_moment() {
    let cluster = Cluster::options()
        .set("pg_snowflake.layout = 'twitter'")
        .set("pg_snowflake.worker_id = 1")
        .set("pg_snowflake.datacenter_id = 1")
        .start();
    cluster.client().batch_execute(TABLE).unwrap();
    let ((), record) = load::run_during(
        4,
        || &cluster,
        || {
            for number in [1, 2, 3, 4, 5, 6] {
                if number > 1 {
                    let number = number.to_string();
                    let both = ["worker_id", "datacenter_id"].map(|name| format!("pg_snowflake.{name}"));
                    cluster.reload(&both.each_ref().map(|name| (name.as_str(), number.as_str())));
                }
                let made = format!("SELECT EXISTS (SELECT FROM stored WHERE snowflake_worker(id) = {number})");
                check::wait_for("IDs of this worker", || value(&mut cluster.client(), &made));
                thread::sleep(millis(100));
            }
        },
    );
    let pairs: BTreeSet<(i64, i64)> = record.all().iter().map(|id| (id >> 17 & 31, id >> 12 & 31)).collect();
    assert_eq!(pairs, BTreeSet::from([1, 2, 3, 4, 5, 6].map(|number| (number, number))));
}

/// The clock of the new server does not tell whether a number is free: it may have leapt without being believed, or be
/// set back before the first ID. An ID of its own tells.
#[test]
fn a_number_is_free_once_an_id_of_the_new_server_is_past_it() {
    // A session uses all positions of a millisecond.
    let options = |worker: i32| {
        Cluster::options()
            .with_clock()
            .narrow()
            .set(&format!("pg_snowflake.worker_id = {worker}"))
            .set("pg_snowflake.sequence_spread = 1")
    };
    let (old, new) = (options(1).create(), options(2).start());
    // By more than the first half of this test takes on a slow machine.
    old.step_clock("+15s");
    old.start();
    old.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let claim = |server: &Cluster, length: i64| -> Vec<i64> {
        let (mut client, mut list) = (server.client(), Vec::new());
        while list.is_empty() || list[list.len() - 1] - list[0] < length << 22 {
            list.extend(batch(&mut client, 200));
        }
        list
    };
    let given = claim(&old, 300);
    old.reload(&[("pg_snowflake.worker_id", "-1")]);
    let mut client = new.client();
    next(&mut client);
    // A leap, which is not believed.
    new.step_clock("+40s");
    let until: String = value(&mut old.client(), "SELECT previous_until::text FROM snowflake_status()");
    let mut is_past = |time: &str| -> bool { value(&mut client, &format!("SELECT {time} >= '{until}'")) };
    assert!(is_past("clock_timestamp()"));
    assert!(!is_past("snowflake_timestamp(snowflake_next())"), "the machine is too slow for this test");
    check::wait_for("the new server is past the time", || is_past("snowflake_timestamp(snowflake_next())"));
    new.reload(&[("pg_snowflake.worker_id", "1")]);
    // The leap is over: the new server gives IDs of the true time.
    new.step_clock("+0s");
    check::distinct(&[given, claim(&new, 8000)]);
}
