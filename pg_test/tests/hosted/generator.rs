//! The generator repeats no ID in its database, whatever ends a call, and nothing that it locks stays locked.

use postgres::{Client, NoTls};
use snowflake_test::check::{self, refused, wait_for};
use snowflake_test::hosted::{self, DATABASE, create_database, run_script, server, server_of};
use snowflake_test::load::{self, Record, TABLE};
use snowflake_test::pgbouncer::{PgBouncer, Pool};
use snowflake_test::query::{batch, next};
use snowflake_test::{Cluster, Stop, ids, millis, value};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// So few IDs in a tick that a load uses all of them.
const NARROW: &str = "timestamp=41 worker=16 sequence=6";

fn client(cluster: &Cluster) -> Client {
    cluster.client_of("postgres", DATABASE)
}

fn with_table(cluster: Cluster) -> Cluster {
    cluster.client_of("owner", DATABASE).batch_execute(TABLE).unwrap();
    cluster
}

fn during(cluster: &Cluster, work: impl FnOnce()) -> Record {
    load::run_during_in(&[DATABASE], 6, || cluster, work).1
}

/// Nobody holds an advisory lock, and the next call does not wait for one.
fn nothing_is_locked(cluster: &Cluster) {
    wait_for("sessions have ended", || {
        value(&mut client(cluster), "SELECT NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory')")
    });
    let mut client = client(cluster);
    client.batch_execute("SET statement_timeout = '60s'").unwrap();
    check::rising(&batch(&mut client, 1000));
}

/// How far the next IDs are ahead of the clock, in seconds.
fn lead(client: &mut Client) -> f64 {
    let query =
        "SELECT max(extract(epoch FROM snowflake_timestamp(id) - clock_timestamp()))::float8 FROM snowflake_next(3) id";
    value(client, query)
}

#[test]
fn sessions_at_once() {
    for layout in ["default", NARROW, "sonyflake", "timestamp=31 worker=19 sequence=13 tick=1s"] {
        let cluster = with_table(server_of(hosted::options(), layout));
        let record = during(&cluster, || thread::sleep(millis(1000)));
        assert!(record.refused.is_empty(), "{layout}: {:?}", record.messages);
        let count = record.check(&[&cluster]);
        assert!(count > 1_000, "{layout}: {count}");
        nothing_is_locked(&cluster);
    }
}

#[test]
fn ids_have_the_time_of_the_clock() {
    let cluster = server();
    let mut client = client(&cluster);
    let query = "SELECT count(*) FROM generate_series(1, 2000), LATERAL (SELECT clock_timestamp() AS before) a, \
                 LATERAL (SELECT snowflake_next() AS id WHERE before IS NOT NULL) b \
                 WHERE snowflake_timestamp(id) NOT BETWEEN before - interval '1 ms' AND clock_timestamp()";
    assert_eq!(value::<i64>(&mut client, query), 0);
    assert_eq!(value::<i32>(&mut client, "SELECT snowflake_worker(snowflake_next())"), 1);
    // Rare IDs are not all multiples of a large number.
    let rests: Vec<i64> = (0..40)
        .map(|_| {
            thread::sleep(millis(2));
            next(&mut client) % 64
        })
        .collect();
    let mut sorted = rests.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert!(sorted.len() > 10, "{rests:?}");
}

#[test]
fn cancels_and_terminations_at_every_point() {
    let cluster = with_table(server_of(hosted::options(), NARROW));
    let mut killed = 0_i64;
    let record = during(&cluster, || {
        let mut killer = client(&cluster);
        for round in 0..600 {
            let action = if round % 3 == 0 { "pg_terminate_backend" } else { "pg_cancel_backend" };
            let query = format!(
                "SELECT count(*) FILTER (WHERE {action}(pid)) FROM (SELECT pid FROM pg_stat_activity WHERE state = 'active' \
                 AND datname = '{DATABASE}' AND pid <> pg_backend_pid() ORDER BY random() LIMIT 2) AS victims"
            );
            killed += value::<i64>(&mut killer, &query);
            thread::sleep(millis(3));
        }
    });
    let others: Vec<_> = record.refused.iter().filter(|code| !["57014", "57P01"].contains(&code.as_str())).collect();
    assert!(others.is_empty(), "{:?}", record.messages);
    assert!(killed > 50, "{killed}");
    let count = record.check(&[&cluster]);
    assert!(count > 500, "{count}");
    nothing_is_locked(&cluster);
    // What a cancel leaves half done makes IDs run ahead by a second at most.
    assert!(lead(&mut client(&cluster)) < 3.0);
}

/// Sessions sleep now and then between the steps of the generator, so that others come in between. Without the lock, or without the second
/// look at the base, this finds repeated IDs within seconds.
#[test]
fn pauses_between_all_steps() {
    let cluster = with_table(server_of(hosted::options(), NARROW));
    let mut client = cluster.client_of("owner", DATABASE);
    client
        .batch_execute(
            "CREATE FUNCTION public.paused(x bigint) RETURNS bigint LANGUAGE plpgsql SET search_path = pg_catalog AS
             'BEGIN IF random() < 0.05 THEN PERFORM pg_sleep(random() * 0.02); END IF; RETURN x; END'",
        )
        .unwrap();
    let mut script = hosted::script().to_owned();
    for (step, paused) in [
        ("floor bigint := _snowflake.clock();", "floor bigint := public.paused(_snowflake.clock());"),
        ("floor := _snowflake.clock();", "floor := public.paused(_snowflake.clock());"),
        ("needed := greatest(first, needs);", "needed := public.paused(greatest(first, needs));"),
        ("IF first > lowest OR", "needed := public.paused(needed); IF first > lowest OR"),
        ("IF needed >= \"end\" OR", "needed := public.paused(needed); IF needed >= \"end\" OR"),
    ] {
        assert!(script.contains(step), "{step}");
        script = script.replace(step, paused);
    }
    client.batch_execute(&script).unwrap();
    let lists = cluster.sessions(8, |number, _| {
        let mut client = cluster.client_of("postgres", DATABASE);
        (0..80)
            .flat_map(|round| if (number + round) % 2 == 0 { batch(&mut client, 100) } else { vec![next(&mut client)] })
            .collect::<Vec<i64>>()
    });
    lists.iter().for_each(|list| check::rising(list));
    check::distinct(&lists);
    nothing_is_locked(&cluster);
}

/// A session that needs longer than a tick to look at what it has drawn gets its ID all the same.
#[test]
fn a_session_that_is_slower_than_a_tick() {
    let cluster = server();
    let mut client = cluster.client_of("owner", DATABASE);
    let step = "number := nextval('_snowflake.number');";
    let script = hosted::script();
    assert!(script.contains(step));
    client.batch_execute(&script.replace(step, &format!("{step} PERFORM pg_sleep(0.003);"))).unwrap();
    client.batch_execute("SET statement_timeout = '20s'").unwrap();
    let ids: Vec<i64> = (0..20)
        .map(|_| {
            thread::sleep(millis(5));
            next(&mut client)
        })
        .collect();
    check::rising(&ids);
}

/// The clock is read between the number that is read and the base that is set by it. Here, that draws numbers, as other sessions would. They
/// are of the old base, so the base must rise all the same.
#[test]
fn numbers_that_are_drawn_while_a_tick_is_opened() {
    const DRAWN: i64 = 3000;
    let cluster = server_of(hosted::options(), NARROW);
    let mut client = client(&cluster);
    let mut last = next(&mut client);
    let clock = format!(
        "CREATE OR REPLACE FUNCTION _snowflake.clock(l bigint[]) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
         DECLARE
             callers text;
         BEGIN
             GET DIAGNOSTICS callers = PG_CONTEXT;
             IF callers LIKE '%function _snowflake.open(%' THEN
                 PERFORM nextval('_snowflake.number') FROM generate_series(1, {DRAWN});
             END IF;
             RETURN floor((extract(epoch FROM clock_timestamp()) * 1000000 - l[2]) / l[1])::bigint << l[12]::integer;
         END $$"
    );
    client.batch_execute(&clock).unwrap();
    let base = |client: &mut Client| value::<i64>(client, "SELECT last_value FROM _snowflake.base");
    // How often the base rose by less than what was drawn meanwhile: with the number that is the last one by then, it would have fallen.
    let mut close = 0;
    for attempt in 0.. {
        assert!(attempt < 1000, "the base rose by less than what was drawn {close} times");
        thread::sleep(millis(10 + attempt * 17 % 100));
        let before = base(&mut client);
        let id = next(&mut client);
        let risen = base(&mut client) - before;
        assert!(id > last && risen >= 0, "{id} after {last}, and the base rose by {risen}");
        last = id;
        close += i32::from(0 < risen && risen < DRAWN);
        if close == 5 {
            break;
        }
    }
}

#[test]
fn timeouts_and_errors() {
    let cluster = with_table(server_of(hosted::options(), NARROW));
    let mut lists = cluster.sessions(4, |number, _| {
        let mut client = client(&cluster);
        client.batch_execute(&format!("SET statement_timeout = {}", 2 + number)).unwrap();
        let mut list = Vec::new();
        for round in 0..200 {
            let query = if round % 2 == 0 { "SELECT snowflake_next(20000)" } else { "SELECT snowflake_next()" };
            match client.query(query, &[]) {
                Ok(rows) => list.extend(ids(&rows)),
                Err(error) => assert_eq!(error.code().unwrap().code(), "57014", "{error:?}"),
            }
        }
        list
    });
    lists.push(batch(&mut client(&cluster), 1000));
    lists.iter().for_each(|list| check::rising(list));
    check::distinct(&lists);
    nothing_is_locked(&cluster);
}

#[test]
fn transactions_that_end_in_every_way() {
    let cluster = with_table(server_of(hosted::options().set("max_prepared_transactions = 10"), "default"));
    let mut list = Vec::new();
    let mut one = client(&cluster);
    for round in 0..20 {
        let mut transaction = one.transaction().unwrap();
        list.push(transaction.query_one("SELECT snowflake_next()", &[]).unwrap().get(0));
        let mut savepoint = transaction.savepoint("s").unwrap();
        list.extend(ids(&savepoint.query("SELECT snowflake_next(50)", &[]).unwrap()));
        assert!(savepoint.query("SELECT snowflake_next() / 0", &[]).is_err());
        savepoint.rollback().unwrap();
        list.push(transaction.query_one("SELECT snowflake_next()", &[]).unwrap().get(0));
        if round % 2 == 0 { transaction.rollback().unwrap() } else { transaction.commit().unwrap() }
    }
    // A transaction that is prepared, and one that is idle, hold up nobody.
    one.batch_execute("BEGIN; INSERT INTO stored (session) VALUES (7); PREPARE TRANSACTION 'p'").unwrap();
    one.batch_execute("BEGIN; INSERT INTO stored (session) VALUES (8)").unwrap();
    let mut other = client(&cluster);
    for _ in 0..20 {
        list.extend(batch(&mut other, 10));
        thread::sleep(millis(2));
    }
    one.batch_execute("COMMIT").unwrap();
    one.batch_execute("COMMIT PREPARED 'p'").unwrap();
    let stored = load::stored(&cluster, DATABASE);
    assert_eq!(stored.len(), 2);
    check::rising(&list);
    check::distinct(&[list, stored]);
}

#[test]
fn a_clock_that_goes_back() {
    let cluster = with_table(server());
    let mut list = batch(&mut client(&cluster), 100);
    for offset in ["-5s", "-0.2s", "-300s", "-590s"] {
        cluster.step_clock(offset);
        list.extend(batch(&mut client(&cluster), 100));
        list.push(next(&mut client(&cluster)));
    }
    check::rising(&list);
    cluster.step_clock("-700s");
    let error = refused(&mut client(&cluster), "SELECT snowflake_next()", "55000");
    let seconds =
        error.message().strip_prefix("the clock is ").and_then(|rest| rest.strip_suffix(" s behind the last ID"));
    let seconds: f64 = seconds.unwrap_or_else(|| panic!("{error:?}")).parse().unwrap();
    assert!((600.0..=702.0).contains(&seconds), "{error:?}");
    cluster.step_clock("+0s");
    list.extend(batch(&mut client(&cluster), 100));
    check::rising(&list);
    // It goes back and forth under load.
    let record = during(&cluster, || {
        for offset in ["-1s", "+3s", "-60s", "+0s", "-0.15s", "+0s"] {
            cluster.step_clock(offset);
            thread::sleep(millis(200));
        }
    });
    assert!(record.refused.is_empty(), "{:?}", record.messages);
    record.check(&[&cluster]);
}

#[test]
fn a_clock_that_is_set_forward_while_a_session_waits() {
    let cluster = server();
    let mut holder = cluster.client_of("postgres", DATABASE);
    holder.batch_execute("SELECT pg_advisory_lock(1936617062, 1)").unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| next(&mut client(&cluster)));
        thread::sleep(millis(200));
        cluster.step_clock("+60s");
        thread::sleep(millis(100));
        holder.batch_execute("SELECT pg_advisory_unlock(1936617062, 1)").unwrap();
        assert!(waiting.join().unwrap() > 0);
    });
}

#[test]
fn a_clock_that_leaps() {
    let cluster = server();
    let mut client = client(&cluster);
    next(&mut client);
    cluster.step_clock("+3600s");
    assert!(value::<bool>(&mut client, "SELECT snowflake_timestamp(snowflake_next()) > now() - interval '1 minute'"));
    cluster.step_clock("+0s");
    refused(&mut client, "SELECT snowflake_next()", "55000");
    cluster.step_clock("+3100s");
    next(&mut client);
}

#[test]
fn a_read_only_transaction() {
    let cluster = server();
    let mut client = client(&cluster);
    client.batch_execute("SET default_transaction_read_only = on").unwrap();
    refused(&mut client, "SELECT snowflake_next()", "25006");
    assert_eq!(value::<i32>(&mut client, "SELECT snowflake_worker(5 << 12)"), 5);
}

#[test]
fn a_clock_that_stands_still() {
    let cluster = server_of(hosted::options(), NARROW);
    let mut client = client(&cluster);
    let mut list = batch(&mut client, 10);
    cluster.step_clock("2040-01-01 00:00:00");
    // The burst is 100 ms, of 64 IDs each.
    list.extend(batch(&mut client, 6000));
    check::rising(&list);
    let error = refused(&mut client, "SELECT snowflake_next(1000)", "55000");
    assert_eq!(error.message(), "the clock stands still");
    nothing_stays_locked_while_the_clock_stands(&cluster);
}

fn nothing_stays_locked_while_the_clock_stands(cluster: &Cluster) {
    let locked = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory')";
    assert!(!value::<bool>(&mut client(cluster), locked));
}

#[test]
fn more_than_a_tick_has() {
    let cluster = server_of(hosted::options(), NARROW);
    let lists = cluster.sessions(6, |_, _| {
        let mut client = client(&cluster);
        let mut leads = Vec::new();
        let list: Vec<i64> = (0..20)
            .flat_map(|_| {
                let list = batch(&mut client, 500);
                let query = format!(
                    "SELECT extract(epoch FROM snowflake_timestamp({}) - clock_timestamp())::float8",
                    list[list.len() - 1]
                );
                leads.push(value::<f64>(&mut client, &query));
                list
            })
            .collect();
        let largest = leads.into_iter().fold(f64::MIN, f64::max);
        assert!(largest <= 0.11, "ahead of the clock by {largest} s");
        list
    });
    lists.iter().for_each(|list| check::rising(list));
    check::distinct(&lists);
}

/// Sessions insert rows, each in a transaction of its own, while this runs. A row with an ID that another row has would be refused.
fn during_inserts<'a>(server: impl Fn() -> &'a Cluster + Sync, work: impl FnOnce()) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let Ok(mut client) = server().try_client_of(DATABASE) else {
                        thread::sleep(millis(10));
                        continue;
                    };
                    while !done.load(Ordering::Relaxed) {
                        if let Err(error) = client.execute("INSERT INTO stored (session) VALUES (1), (2)", &[]) {
                            assert!(error.code().is_none_or(|code| code.code() != "23505"), "{error:?}");
                            break;
                        }
                        thread::sleep(millis(1));
                    }
                }
            });
        }
        let end = load::End(&done);
        work();
        drop(end);
    });
}

#[test]
fn a_crash() {
    let cluster = with_table(server());
    let record = during(&cluster, || {
        for _ in 0..3 {
            thread::sleep(millis(400));
            cluster.restart(Stop::Kill);
        }
        thread::sleep(millis(400));
    });
    let count = record.check(&[&cluster]);
    assert!(count > 500, "{count}");
    nothing_is_locked(&cluster);
}

/// What was returned and not committed may come again then; what is stored does not.
#[test]
fn a_crash_with_the_clock_set_back() {
    let cluster = with_table(server());
    during_inserts(
        || &cluster,
        || {
            for offset in ["-1s", "-30s", "-100s"] {
                thread::sleep(millis(500));
                cluster.stop(Stop::Kill);
                cluster.step_clock(offset);
                cluster.start();
            }
            thread::sleep(millis(500));
        },
    );
    let count = load::stored(&cluster, DATABASE).len();
    assert!(count > 200, "{count}");
}

/// The tables of docs/hosted-promise.md. A tick is long, so that a call that draws from it writes nothing by itself, and the clock is behind
/// the next tick when the server is back.
#[test]
fn what_a_crash_loses() {
    for (statements, is_kept) in [
        ("SELECT snowflake_next() AS id", false),
        ("BEGIN; INSERT INTO stored (session) VALUES (1) RETURNING id", false),
        ("INSERT INTO stored (session) VALUES (1) RETURNING id", true),
    ] {
        let options = hosted::options().set("autovacuum = off");
        let cluster = with_table(server_of(options, "timestamp=31 worker=10 sequence=20 tick=60s"));
        let mut opening = client(&cluster);
        // The second begins a new tick; its WAL waits for a commit that has something to write.
        next(&mut opening);
        opening.batch_execute("CHECKPOINT").unwrap();
        cluster.stop_writers();
        cluster.step_clock("+120s");
        opening.batch_execute("BEGIN; SELECT snowflake_next()").unwrap();
        let mut other = client(&cluster);
        let mut last = None;
        for message in other.simple_query(statements).unwrap() {
            if let postgres::SimpleQueryMessage::Row(row) = message {
                last = row.get(0).map(|id| id.parse::<i64>().unwrap());
            }
        }
        let last = last.unwrap();
        cluster.stop(Stop::Kill);
        cluster.step_clock("+0s");
        cluster.start();
        let id = next(&mut client(&cluster));
        assert_eq!(id > last, is_kept, "{statements}: {last}, then {id}");
    }
}

#[test]
fn a_standby_that_is_promoted_with_its_clock_back() {
    let first = with_table(server());
    let second = first.standby();
    let mut there = client(&second);
    let layout: String = value(&mut there, "SELECT snowflake_database_layout()");
    assert!(layout.starts_with("timestamp=41"), "{layout}");
    refused(&mut there, "SELECT snowflake_next()", "25006");
    let servers = [&first, &second];
    let primary = AtomicUsize::new(0);
    during_inserts(
        || servers[primary.load(Ordering::Relaxed)],
        || {
            thread::sleep(millis(800));
            first.stop(Stop::Kill);
            second.step_clock("-100s");
            second.promote();
            primary.store(1, Ordering::Relaxed);
            thread::sleep(millis(800));
        },
    );
    let stored = load::stored(&second, DATABASE);
    assert!(stored.len() > 100, "{}", stored.len());
    let highest = stored.into_iter().max().unwrap();
    assert!(batch(&mut there, 10)[0] > highest);
}

#[test]
fn a_copy_of_the_database_needs_a_number_of_its_own() {
    let cluster = with_table(server());
    client(&cluster).batch_execute("INSERT INTO stored (session) SELECT 0 FROM generate_series(1, 100)").unwrap();
    cluster.client().batch_execute(&format!("CREATE DATABASE copy TEMPLATE {DATABASE} OWNER owner")).unwrap();
    let mut copy = cluster.client_of("owner", "copy");
    let error = refused(&mut copy, "SELECT snowflake_next()", "55000");
    assert_eq!(error.message(), "this database has no worker ID");
    assert!(error.detail().unwrap().contains("a copy"), "{error:?}");
    copy.batch_execute("SELECT snowflake_configure(2)").unwrap();
    copy.batch_execute("INSERT INTO stored (session) SELECT 0 FROM generate_series(1, 100)").unwrap();
    let list = ids(&copy.query("SELECT id FROM stored ORDER BY id", &[]).unwrap());
    assert_eq!(list.len(), 200);
    assert_eq!(value::<i32>(&mut copy, "SELECT snowflake_worker(max(id)) FROM stored"), 2);
    // The original goes on with its own.
    assert_eq!(value::<i32>(&mut client(&cluster), "SELECT snowflake_worker(snowflake_next())"), 1);
}

#[test]
fn behind_pgbouncer() {
    let cluster = with_table(server_of(hosted::options().listening(), "default"));
    let bouncer = PgBouncer::before(&cluster, Pool::Transaction, 2);
    let lists = thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    let url = format!("host=127.0.0.1 port={} user=postgres dbname={DATABASE}", bouncer.port());
                    let mut client = Client::connect(&url, NoTls).unwrap();
                    let mut list = Vec::new();
                    for _ in 0..60 {
                        // Without a prepared statement, which belongs to a session of the server.
                        for message in client.simple_query("SELECT snowflake_next(20) AS id").unwrap() {
                            if let postgres::SimpleQueryMessage::Row(row) = message {
                                list.push(row.get(0).unwrap().parse::<i64>().unwrap());
                            }
                        }
                    }
                    list
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    lists.iter().for_each(|list| check::rising(list));
    assert_eq!(check::distinct(&lists), 6 * 60 * 20);
    nothing_is_locked(&cluster);
}

#[test]
fn a_lock_that_somebody_else_holds_is_an_error_that_names_him() {
    let cluster = server();
    cluster.client().batch_execute("CREATE ROLE mallory LOGIN").unwrap();
    let mut mallory = cluster.client_of("mallory", DATABASE);
    mallory.batch_execute("SELECT pg_advisory_lock(1936617062, 1)").unwrap();
    let pid: i32 = value(&mut mallory, "SELECT pg_backend_pid()");
    let error = refused(&mut client(&cluster), "SELECT snowflake_next()", "55P03");
    assert!(error.detail().unwrap().contains(&pid.to_string()), "{error:?}");
    drop(mallory);
    nothing_is_locked(&cluster);
}

/// It has no process.
#[test]
fn a_prepared_transaction_that_holds_the_lock_is_named() {
    let cluster = server_of(hosted::options().set("max_prepared_transactions = 2"), "default");
    let mut owner = cluster.client_of("owner", DATABASE);
    owner.batch_execute("BEGIN; SELECT snowflake_configure(2); PREPARE TRANSACTION 'kept'").unwrap();
    let error = refused(&mut client(&cluster), "SELECT snowflake_next()", "55P03");
    let detail = "It is the advisory lock (1936617062, 1), of prepared transaction 'kept'.";
    assert_eq!(error.detail(), Some(detail), "{error:?}");
    assert!(error.hint().unwrap().contains("COMMIT PREPARED"), "{error:?}");
    owner.batch_execute("COMMIT PREPARED 'kept'").unwrap();
    nothing_is_locked(&cluster);
}

#[test]
fn a_record_that_is_replaced_in_a_session() {
    let cluster = server();
    create_database(&cluster, "other");
    run_script(&cluster, "other");
    let mut client = cluster.client_of("owner", "other");
    client.batch_execute("SELECT snowflake_configure(3)").unwrap();
    refused(&mut client, "SELECT snowflake_timestamp(-1)", "22003");
    // What a dump does where the layout was not chosen here, in a session that has plans with the default one.
    let unbound = "ALTER SEQUENCE _snowflake.layout MINVALUE 0 NO MAXVALUE; ALTER SEQUENCE _snowflake.epoch MINVALUE 0 NO MAXVALUE";
    client.batch_execute(unbound).unwrap();
    let make = "SELECT snowflake_worker(snowflake_next(), 'sonyflake')";
    let from =
        "SELECT form, at FROM (SELECT (l)[14] AS form, (l)[2] AS at FROM _snowflake.layout('sonyflake') AS l) AS s";
    let ahead = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint + 2000";
    client
        .batch_execute(&format!(
            "SELECT snowflake_status(); SELECT setval('_snowflake.layout', form), setval('_snowflake.epoch', at), \
             setval('_snowflake.reservation', {ahead}) FROM ({from}) AS s"
        ))
        .unwrap();
    assert_eq!(value::<i32>(&mut client, make), 3);
    assert!(value::<String>(&mut client, "SELECT snowflake_database_layout()").contains("sequence=8 worker=16"));
    assert!(lead(&mut client) > 0.5);
}
