//! Segments: numbers of a tag are unique over all servers, whatever happens.

use crate::{leasing, registry, with_each_registry};
use postgres::Client;
use snowflake_test::check::{self, refused, wait_for};
use snowflake_test::load::End;
use snowflake_test::programs::{continue_process, stop_process};
use snowflake_test::query::value;
use snowflake_test::registries::{Kind, Server};
use snowflake_test::{Cluster, Installation, Stop, ids, millis, seconds, variable};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

with_each_registry!(
    numbers_are_unique_over_servers_and_rise_on_each,
    a_crash_leaves_a_gap_and_a_clean_stop_none,
    a_session_that_crashes_leaves_a_gap,
    while_the_registry_is_away_numbers_go_on_as_long_as_they_last,
    a_registry_that_was_wiped_stops_and_does_not_begin_again,
    after_a_wipe_a_tag_goes_on_above_what_all_servers_were_granted,
    a_tag_is_created_raised_and_dropped_for_all_servers,
    at_its_end_a_tag_has_an_error_of_its_own,
    a_promoted_standby_takes_numbers_of_its_own,
    servers_that_crash_under_load_repeat_nothing,
    a_server_that_was_frozen_repeats_nothing,
    a_copy_of_a_running_server_takes_numbers_of_its_own,
    all_servers_are_listed_with_what_they_hold,
    servers_that_use_one_tag_as_fast_as_they_can_share_it,
);

fn numbers(client: &mut Client, count: i32) -> Vec<i64> {
    ids(&client.query(&format!("SELECT snowflake_segment_next('orders', {count})"), &[]).unwrap())
}

fn create(cluster: &Cluster, arguments: &str) {
    let create = format!("SELECT snowflake_segment_create('orders'{arguments})");
    wait_for("the tag is created", || cluster.client().query(&create, &[]).is_ok());
}

/// A server that has leased its worker.
fn server(registry: &Server) -> Cluster {
    let cluster = leasing(&registry.url()).patient().start();
    wait_for("it has a lease", || cluster.client().query("SELECT snowflake_next()", &[]).is_ok());
    cluster
}

/// Takes numbers until it is told to stop; what is refused is tried again.
fn take_until(cluster: &Cluster, done: &AtomicBool) -> Vec<i64> {
    take_counting(cluster, done, &AtomicUsize::new(0))
}

/// The same, and counts them.
fn take_counting(cluster: &Cluster, done: &AtomicBool, count: &AtomicUsize) -> Vec<i64> {
    let mut list = Vec::new();
    while !done.load(SeqCst) {
        let Ok(mut client) = cluster.try_client_of("postgres") else { continue };
        while !done.load(SeqCst) {
            match client.query("SELECT snowflake_segment_next('orders') FROM generate_series(1, 20)", &[]) {
                Ok(rows) => {
                    count.fetch_add(rows.len(), SeqCst);
                    list.extend(ids(&rows));
                }
                Err(_) if client.is_closed() => break,
                Err(_) => thread::sleep(millis(10)),
            }
        }
    }
    list
}

fn numbers_are_unique_over_servers_and_rise_on_each(kind: Kind) {
    let registry = registry(kind);
    let servers = [server(&registry), server(&registry)];
    create(&servers[0], ", last => 2147483647");
    for cluster in &servers {
        let table =
            "CREATE TABLE orders (number integer PRIMARY KEY DEFAULT snowflake_segment_next('orders'), note text)";
        cluster.client().batch_execute(table).unwrap();
        cluster.client().batch_execute("INSERT INTO orders (note) VALUES ('a'), ('b')").unwrap();
    }
    let done = AtomicBool::new(false);
    let lists: Vec<Vec<i64>> = thread::scope(|scope| {
        let done = &done;
        let all: Vec<_> = servers
            .iter()
            .flat_map(|cluster| (0..3).map(move |_| cluster))
            .map(|cluster| scope.spawn(move || take_until(cluster, done)))
            .collect();
        thread::sleep(millis(3000));
        done.store(true, SeqCst);
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let stored = servers
        .each_ref()
        .map(|cluster| ids(&cluster.client().query("SELECT number::bigint FROM orders ORDER BY number", &[]).unwrap()));
    lists.iter().for_each(|list| check::rising(list));
    let count = check::distinct(&[lists, stored.to_vec()].concat());
    assert!(count > 1000, "{count}");
    // What a session takes is above all that was taken on its server before.
    for cluster in &servers {
        let before = numbers(&mut cluster.client(), 5);
        let after = numbers(&mut cluster.client(), 3000);
        check::rising(&[before, after].concat());
        check::no_errors(cluster);
    }
}

/// Ranges are too small for what is taken, so all servers ask for one after the other. Meanwhile, each uses a tag of its own for the
/// first time, and raises the busy one. SERVERS=8 SECONDS=40 is a longer form.
fn servers_that_use_one_tag_as_fast_as_they_can_share_it(kind: Kind) {
    let registry = registry(kind);
    let servers: Vec<Cluster> = (0..variable("SERVERS").unwrap_or(3)).map(|_| server(&registry)).collect();
    create(&servers[0], ", largest_range => 100");
    let done = AtomicBool::new(false);
    let lists: Vec<Vec<i64>> = thread::scope(|scope| {
        let done = &done;
        let take = |cluster: &Cluster| {
            let mut client = cluster.client();
            let mut list = Vec::new();
            while !done.load(SeqCst) {
                list.extend(numbers(&mut client, 500));
            }
            list
        };
        let all: Vec<_> = servers.iter().map(|cluster| scope.spawn(move || take(cluster))).collect();
        thread::sleep(seconds(1));
        for (number, cluster) in servers.iter().enumerate() {
            let calm =
                format!("SELECT snowflake_segment_create('calm {number}') + snowflake_segment_next('calm {number}')");
            assert_eq!(value::<i64>(&mut cluster.client(), &calm), 2);
            cluster.client().batch_execute("SELECT snowflake_segment_raise('orders', 100)").unwrap();
        }
        thread::sleep(seconds(variable("SECONDS").unwrap_or(6)));
        done.store(true, SeqCst);
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    check::distinct(&lists);
    let counts: Vec<usize> = lists.iter().map(Vec::len).collect();
    println!("{kind:?}: {counts:?}");
    assert!(counts.iter().min().unwrap() * 5 >= *counts.iter().max().unwrap(), "{kind:?}: {counts:?}");
}

fn a_crash_leaves_a_gap_and_a_clean_stop_none(kind: Kind) {
    let registry = registry(kind);
    let cluster = server(&registry);
    create(&cluster, "");
    assert_eq!(numbers(&mut cluster.client(), 7), (1..=7).collect::<Vec<_>>());
    cluster.restart(Stop::Fast);
    assert!(cluster.log().contains("gave numbers of segment \"orders\" back, from 8 on"), "{}", cluster.log());
    let next = cluster.retry(|client| client.query("SELECT snowflake_segment_next('orders')", &[]));
    assert_eq!(ids(&next), [8]);
    cluster.restart(Stop::Immediate);
    let next = cluster.retry(|client| client.query("SELECT snowflake_segment_next('orders')", &[]));
    let next = ids(&next)[0];
    assert!(next > 8 && next <= 8 + 60, "{next}: a range and the next one");
}

fn a_session_that_crashes_leaves_a_gap(kind: Kind) {
    let registry = registry(kind);
    let cluster = server(&registry);
    create(&cluster, "");
    let before = numbers(&mut cluster.client(), 100);
    cluster.crash_session("postgres");
    let after = cluster.retry(|client| client.query("SELECT snowflake_segment_next('orders', 100)", &[]));
    check::rising(&[before, ids(&after)].concat());
}

fn while_the_registry_is_away_numbers_go_on_as_long_as_they_last(kind: Kind) {
    let mut registry = registry(kind);
    let cluster = server(&registry);
    create(&cluster, ", smallest_range => 100");
    let mut client = cluster.client();
    numbers(&mut client, 1);
    registry.kill();
    // At least what is left of the first range.
    let held: i64 = value(&mut client, "SELECT held FROM snowflake_segments(false) WHERE tag = 'orders'");
    assert!(held >= 99, "{held}");
    numbers(&mut client, 99);
    client.batch_execute("SET pg_snowflake.max_wait = '300ms'").unwrap();
    let error = refused(&mut client, "SELECT snowflake_segment_next('orders', 100000)", "55000");
    assert_eq!(error.message(), "this server has no numbers of segment \"orders\"");
    let error = refused(&mut client, "SELECT snowflake_segment_next('other')", "55000");
    assert!(error.message().contains("segment \"other\""), "{error:?}");
    registry.start();
    client.batch_execute("SET pg_snowflake.max_wait = '60s'").unwrap();
    numbers(&mut client, 1000);
}

fn a_registry_that_was_wiped_stops_and_does_not_begin_again(kind: Kind) {
    let mut registry = registry(kind);
    let cluster = server(&registry);
    create(&cluster, "");
    let mut client = cluster.client();
    let before = numbers(&mut client, 50);
    registry.wipe();
    client.batch_execute("SET pg_snowflake.max_wait = '60s'").unwrap();
    let error = refused(&mut client, "SELECT snowflake_segment_next('orders', 100000)", "42704");
    assert_eq!(error.message(), "segment \"orders\" does not exist");
    assert!(cluster.log().contains("the registry has no segment \"orders\" any more"), "{}", cluster.log());
    // Also without a first number, this server begins above what it was granted.
    create(&cluster, "");
    let after = numbers(&mut client, 10);
    check::rising(&[before, after].concat());
}

/// Also above the numbers that another server holds and has not used: no table shows them.
fn after_a_wipe_a_tag_goes_on_above_what_all_servers_were_granted(kind: Kind) {
    let mut registry = registry(kind);
    let servers = [server(&registry), server(&registry)];
    let clients = &mut servers.each_ref().map(|cluster| cluster.client());
    create(&servers[0], ", smallest_range => 1000");
    let mut taken: Vec<Vec<i64>> = clients.iter_mut().map(|client| numbers(client, 5)).collect();
    registry.wipe();
    for client in clients.iter_mut() {
        wait_for("it has noticed", || {
            value::<String>(client, "SELECT state FROM snowflake_segments(false) WHERE tag = 'orders'") == "missing"
        });
        let has_told = "SELECT coalesce(next_granted > greatest(current_until, after_until), false)
                        FROM snowflake_segments() WHERE is_this_server";
        wait_for("it has told", || client.query_one(has_told, &[]).is_ok_and(|row| row.get(0)));
    }
    let highest = taken.iter().flatten().max().unwrap();
    let text = "SELECT string_agg(concat_ws(' ', state, first, held > 0), ', ') FROM snowflake_segments() WHERE is_this_server";
    assert_eq!(value::<String>(&mut clients[0], text), "missing t");
    // The highest numbers are those of the other one.
    create(&servers[0], &format!(", {}", highest + 1));
    for _ in 0..2 {
        taken.extend(clients.iter_mut().map(|client| numbers(client, 3000)));
    }
    check::distinct(&taken);
}

fn a_tag_is_created_raised_and_dropped_for_all_servers(kind: Kind) {
    let registry = registry(kind);
    let servers = [server(&registry), server(&registry)];
    let [mut first, mut second] = servers.each_ref().map(|cluster| cluster.client());
    let error = refused(&mut first, "SELECT snowflake_segment_next('orders')", "42704");
    assert_eq!(error.message(), "segment \"orders\" does not exist");
    create(&servers[0], ", 10");
    refused(&mut second, "SELECT snowflake_segment_create('orders')", "42710");
    assert_eq!(numbers(&mut first, 2), [10, 11]);
    assert_eq!(numbers(&mut second, 2).len(), 2);
    let next: i64 = value(&mut first, "SELECT snowflake_segment_raise('orders', 5000)");
    assert_eq!(next, 5001);
    assert!(numbers(&mut first, 1)[0] > 5000);
    // It looks once a minute, and when it is told to.
    second.batch_execute("SELECT pg_reload_conf()").unwrap();
    wait_for("the other server has looked", || numbers(&mut second, 1)[0] > 5000);
    let used: i64 = value(&mut second, "SELECT snowflake_segment_drop('orders')");
    let error = refused(&mut second, "SELECT snowflake_segment_next('orders')", "42704");
    assert_eq!(error.message(), "segment \"orders\" was dropped");
    first.batch_execute("SELECT pg_reload_conf()").unwrap();
    wait_for("the other server has looked", || first.query("SELECT snowflake_segment_next('orders')", &[]).is_err());
    create(&servers[0], "");
    let again = numbers(&mut first, 1)[0];
    assert!(again >= used, "{again} {used}");
}

fn at_its_end_a_tag_has_an_error_of_its_own(kind: Kind) {
    let registry = registry(kind);
    let cluster = server(&registry);
    create(&cluster, ", 1, 25");
    let mut client = cluster.client();
    let taken: Vec<i64> = (0..25).map(|_| value(&mut client, "SELECT snowflake_segment_next('orders')")).collect();
    assert_eq!(taken, (1..=25).collect::<Vec<_>>());
    let error = refused(&mut client, "SELECT snowflake_segment_next('orders')", "2200H");
    assert_eq!(error.message(), "segment \"orders\" is used up");
    assert!(cluster.log().contains("segment \"orders\" comes to its end"), "{}", cluster.log());
    value::<i64>(&mut client, "SELECT snowflake_segment_drop('orders')");
    create(&cluster, ", 1, 1000");
    assert_eq!(numbers(&mut client, 1), [26]);
}

fn a_promoted_standby_takes_numbers_of_its_own(kind: Kind) {
    let registry = registry(kind);
    let primary = server(&registry);
    create(&primary, "");
    let before = numbers(&mut primary.client(), 50);
    let standby = primary.standby();
    refused(&mut standby.client(), "SELECT snowflake_segment_next('orders')", "25006");
    standby.promote();
    let after = standby.retry(|client| client.query("SELECT snowflake_segment_next('orders', 50)", &[]));
    let beside = numbers(&mut primary.client(), 50);
    check::distinct(&[before, ids(&after), beside]);
}

/// Two servers that take numbers, with what each session was given, and what happens meanwhile.
fn while_taking(servers: &[Cluster; 2], happens: impl FnOnce(&dyn Fn(usize))) -> Vec<Vec<i64>> {
    let (done, counts) = (AtomicBool::new(false), [const { AtomicUsize::new(0) }; 2]);
    // So many numbers more of each server.
    let until_taken = |more: usize| {
        let before = counts.each_ref().map(|count| count.load(SeqCst));
        wait_for("numbers are taken", || {
            counts.iter().zip(before).all(|(count, before)| count.load(SeqCst) >= before + more)
        });
    };
    thread::scope(|scope| {
        let done = &done;
        let sessions = servers.iter().zip(&counts).flat_map(|both| [both; 3]);
        let sessions: Vec<_> =
            sessions.map(|(cluster, count)| scope.spawn(move || take_counting(cluster, done, count))).collect();
        let end = End(done);
        until_taken(200);
        happens(&until_taken);
        drop(end);
        sessions.into_iter().map(|session| session.join().unwrap()).collect()
    })
}

fn servers_that_crash_under_load_repeat_nothing(kind: Kind) {
    let registry = registry(kind);
    let servers = [server(&registry), server(&registry)];
    create(&servers[0], "");
    let lists = while_taking(&servers, |until_taken| {
        for (crashed, how) in [(0, Stop::Kill), (1, Stop::Immediate), (0, Stop::Fast)] {
            servers[crashed].restart(how);
            until_taken(200);
        }
        servers[1].crash_any_session();
        until_taken(200);
    });
    lists.iter().for_each(|list| check::rising(list));
    check::distinct(&lists);
}

/// For longer than its lease: while it stands still, others are granted ranges.
fn a_server_that_was_frozen_repeats_nothing(kind: Kind) {
    let registry = registry(kind);
    let options = leasing(&registry.url()).patient().set("pg_snowflake.registry_window = '3s'");
    let servers = [options.clone().start(), options.start()];
    create(&servers[0], "");
    let lists = while_taking(&servers, |until_taken| {
        servers[0].pause();
        let others = numbers(&mut servers[1].client(), 5000);
        thread::sleep(millis(4000));
        servers[0].resume();
        until_taken(500);
        check::rising(&others);
    });
    lists.iter().for_each(|list| check::rising(list));
    check::distinct(&lists);
}

/// Its file of sizes comes along, and no range.
fn a_copy_of_a_running_server_takes_numbers_of_its_own(kind: Kind) {
    let registry = registry(kind);
    let original = server(&registry);
    create(&original, "");
    let mut lists = vec![numbers(&mut original.client(), 500)];
    let copy = Cluster::empty(Installation::under_test(), false);
    copy.copy_from(&original, &[]);
    lists.push(numbers(&mut original.client(), 5));
    copy.start();
    let servers = [original, copy];
    wait_for("the copy has a lease", || servers[1].client().query("SELECT snowflake_next()", &[]).is_ok());
    lists.extend(while_taking(&servers, |until_taken| until_taken(500)));
    check::distinct(&lists);
}

fn all_servers_are_listed_with_what_they_hold(kind: Kind) {
    let registry = registry(kind);
    let servers = [server(&registry), server(&registry)];
    let [mut first, mut second] = servers.each_ref().map(|cluster| cluster.client());
    create(&servers[0], "");
    wait_for("another tag is created", || first.query("SELECT snowflake_segment_create('unused', 1, 9)", &[]).is_ok());
    numbers(&mut first, 3);
    let of_second = numbers(&mut second, 2);
    let worker = |client: &mut Client| value::<i32>(client, "SELECT worker_id FROM snowflake_status()");
    let (here, there) = (worker(&mut first), worker(&mut second));
    // What the other server took of its range since it was granted, only that one knows.
    let listed: String = value(
        &mut first,
        "SELECT string_agg(concat_ws(' ', tag, state, worker_id, is_this_server, CASE WHEN is_this_server THEN current_from END,
                                      current_until), ', '
                 ORDER BY tag, is_this_server DESC) FROM snowflake_segments()",
    );
    assert_eq!(listed, format!("orders live {here} t 4 10, orders live {there} f {}, unused live f", of_second[0] + 9));
    let sums: bool = value(
        &mut first,
        "SELECT bool_and(held = current_until - current_from + 1 + coalesce(after_until - after_from + 1, 0)
                         AND host <> '' AND as_of BETWEEN now() - interval '10 min' AND now() + interval '1 min'
                         AND next_granted > current_until AND first = 1)
         FROM snowflake_segments() WHERE worker_id IS NOT NULL",
    );
    assert!(sums);
    // This server alone, and without the registry.
    let alone =
        "SELECT string_agg(concat_ws(' ', tag, worker_id, is_this_server), ', ') FROM snowflake_segments(false)";
    assert_eq!(value::<String>(&mut first, alone), format!("orders {here} t"));

    // One that has crashed holds nothing, as soon as its lease is another's; one that was stopped, at once.
    let others = "SELECT count(*) FROM snowflake_segments() WHERE worker_id IS NOT NULL AND NOT is_this_server";
    assert_eq!(value::<i64>(&mut first, others), 1);
    drop(second);
    servers[1].stop(Stop::Fast);
    assert_eq!(value::<i64>(&mut first, others), 0);
    let dropped = "SELECT snowflake_segment_drop('orders')";
    value::<i64>(&mut first, dropped);
    assert_eq!(value::<String>(&mut first, "SELECT state FROM snowflake_segments() WHERE tag = 'orders'"), "dropped");
}

/// Requests about segments that hang do not keep the lease from being renewed in time. The table of tags alone is locked.
#[test]
fn a_request_about_a_segment_that_hangs_delays_no_renewal() {
    let registry = registry(Kind::Postgres);
    let window: f64 = 18.0;
    let cluster = leasing(&registry.url()).set("pg_snowflake.registry_window = '18s'").start();
    wait_for("it has a lease", || cluster.client().query("SELECT snowflake_next()", &[]).is_ok());
    create(&cluster, "");
    numbers(&mut cluster.client(), 5);
    let [mut locking, mut looking] = [registry.cluster().client(), registry.cluster().client()];
    locking.batch_execute("BEGIN; LOCK TABLE snowflake_registry.segments IN ACCESS EXCLUSIVE MODE").unwrap();
    let left = "SELECT extract(epoch FROM granted_until - clock_timestamp())::float8 FROM snowflake_registry.workers";
    let start = Instant::now();
    let mut least = window;
    thread::scope(|scope| {
        // More than are held, so that the process asks again and again.
        let waits = scope.spawn(|| {
            let mut client = cluster.client();
            client.batch_execute("SET pg_snowflake.max_wait = '15s'").unwrap();
            refused(
                &mut client,
                "SELECT count(snowflake_segment_next('orders')) FROM generate_series(1, 1000)",
                "55000",
            );
        });
        while start.elapsed() < seconds(30) {
            least = least.min(value::<f64>(&mut looking, left));
            thread::sleep(millis(20));
        }
        waits.join().unwrap();
    });
    // A renewal in time leaves two thirds, and a call of the registry may take a sixth.
    assert!(least > 0.61 * window, "{least} s were left of a lease of {window} s");
    locking.batch_execute("ROLLBACK").unwrap();
    cluster.retry(|client| client.query("SELECT snowflake_segment_next('orders', 1000)", &[]));
}

/// Those sessions ask the process again and again.
#[test]
fn sessions_that_ask_for_what_is_not_there_keep_nobody_waiting() {
    let registry = registry(Kind::ALL[0]);
    let cluster = server(&registry);
    create(&cluster, "");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let end = End(&done);
        for _ in 0..16 {
            scope.spawn(|| {
                let mut client = cluster.client();
                while !done.load(SeqCst) {
                    refused(&mut client, "SELECT snowflake_segment_next('other')", "42704");
                }
            });
        }
        let mut client = cluster.client();
        client.batch_execute("SET pg_snowflake.max_wait = '10s'").unwrap();
        check::rising(&numbers(&mut client, 5000));
        value::<i64>(&mut client, "SELECT count(*) FROM snowflake_segments()");
        drop(end);
    });
}

/// A listing looks at the clock, which may have to note a step.
#[test]
fn a_listing_ends_when_the_clock_was_stepped() {
    let registry = registry(Kind::ALL[0]);
    let cluster = server(&registry);
    create(&cluster, "");
    numbers(&mut cluster.client(), 1);
    for step in 0..20 {
        let (ended, ends) = mpsc::channel();
        let mut client = cluster.client();
        client.batch_execute("SELECT count(*) FROM snowflake_segments(false)").unwrap();
        cluster.step_clock(["-3s", "-1s"][step % 2]);
        thread::spawn(move || {
            client.batch_execute("SELECT count(*) FROM snowflake_segments(false)").unwrap();
            ended.send(()).unwrap();
        });
        ends.recv_timeout(seconds(20)).expect("it ends");
    }
}

/// A tag that the server has not used yet is looked for within the time that its numbers are waited for.
#[test]
fn a_call_waits_for_no_longer_than_it_may() {
    let registry = registry(Kind::ALL[0]);
    let cluster = server(&registry);
    create(&cluster, "");
    let mut client = cluster.client();
    let pid: i32 = value(&mut client, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'pg_snowflake lease'");
    let pid = u32::try_from(pid).unwrap();
    stop_process(pid);
    client.batch_execute("SET pg_snowflake.max_wait = '5s'").unwrap();
    let start = Instant::now();
    refused(&mut client, "SELECT snowflake_segment_next('orders')", "55000");
    let waited = start.elapsed();
    continue_process(pid);
    assert!(waited >= seconds(5) && waited < seconds(9), "{waited:?}");
    client.batch_execute("SET pg_snowflake.max_wait = '60s'").unwrap();
    numbers(&mut client, 1);
}

/// The recipe of docs/segments.md: a role that may take numbers of one tag, and of no other.
#[test]
fn one_role_takes_numbers_of_one_tag() {
    let registry = registry(Kind::ALL[0]);
    let cluster = server(&registry);
    create(&cluster, "");
    let mut client = cluster.client();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/segments.md")).unwrap();
    let recipe = page.split("```text\n").find_map(|block| block.split_once("```")?.0.strip_prefix("CREATE FUNCTION"));
    client.batch_execute("CREATE ROLE clerk LOGIN").unwrap();
    client.batch_execute(&format!("CREATE FUNCTION{}", recipe.expect("the page has the recipe"))).unwrap();
    let table = "CREATE TABLE orders (number bigint PRIMARY KEY DEFAULT order_number(), note text);
                 GRANT INSERT (note), SELECT ON orders TO clerk";
    client.batch_execute(table).unwrap();
    let mut clerk = cluster.client_of("clerk", "postgres");
    clerk.batch_execute("INSERT INTO orders (note) VALUES ('a')").unwrap();
    assert_eq!(value::<i64>(&mut clerk, "SELECT number FROM orders"), 1);
    for call in [
        "SELECT snowflake_segment_next('orders')",
        "SELECT snowflake_segment_next('orders', 5)",
        "SELECT snowflake_segment_create('mine')",
        "SELECT snowflake_segment_raise('orders', 5)",
        "SELECT snowflake_segment_drop('orders')",
        "SELECT * FROM snowflake_segments()",
    ] {
        refused(&mut clerk, call, "42501");
    }
}

/// What is given is checked before the registry is asked.
#[test]
fn odd_arguments_are_refused() {
    let registry = registry(Kind::ALL[0]);
    let cluster = server(&registry);
    let mut client = cluster.client();
    for call in [
        "SELECT snowflake_segment_next('')",
        "SELECT snowflake_segment_next(repeat('x', 64))",
        "SELECT snowflake_segment_next(E'a\\nb')",
        "SELECT snowflake_segment_next('orders', -1)",
        "SELECT snowflake_segment_create(NULL)",
        "SELECT snowflake_segment_create('orders', -1)",
        "SELECT snowflake_segment_create('orders', NULL)",
        "SELECT snowflake_segment_create('orders', 5, 4)",
        "SELECT snowflake_segment_create('orders', smallest_range => 0)",
        "SELECT snowflake_segment_create('orders', smallest_range => 5, largest_range => 4)",
        "SELECT snowflake_segment_raise('orders', -1)",
    ] {
        refused(&mut client, call, "22023");
    }
    assert_eq!(
        value::<i64>(&mut client, "SELECT count(*) FROM (SELECT snowflake_segment_next(NULL)) x WHERE 1 = 1"),
        1
    );
    create(&cluster, "");
    refused(
        &mut client,
        "SELECT snowflake_segment_raise('orders', 9223372036854775807) + snowflake_segment_next('orders')",
        "2200H",
    );
    // Long and short forms of a text, and several tags from one call site.
    wait_for("another tag is created", || client.query("SELECT snowflake_segment_create('b')", &[]).is_ok());
    client.batch_execute("SELECT snowflake_segment_create('c'); CREATE TABLE t (tag text); INSERT INTO t SELECT unnest(ARRAY['b', 'c', 'b', 'c'])").unwrap();
    let mixed = ids(&client.query("SELECT snowflake_segment_next(tag) FROM t", &[]).unwrap());
    assert_eq!(mixed, [1, 1, 2, 2]);
}

#[test]
fn without_a_registry_there_are_no_segments() {
    let cluster = Cluster::options().start();
    let error = refused(&mut cluster.client(), "SELECT snowflake_segment_next('orders')", "55000");
    assert_eq!(error.message(), "this server has no registry of segments");
}

/// A server has places for so many tags, and a wrong name takes none.
#[test]
fn there_are_so_many_places() {
    let registry = registry(Kind::ALL[0]);
    let cluster = leasing(&registry.url()).patient().set("pg_snowflake.max_segments = 2").start();
    for tag in ["a", "b", "c"] {
        let create = format!("SELECT snowflake_segment_create('{tag}')");
        wait_for("the tag is created", || cluster.client().query(&create, &[]).is_ok());
    }
    let mut client = cluster.client();
    for _ in 0..5 {
        refused(&mut client, "SELECT snowflake_segment_next('unknown')", "42704");
    }
    for tag in ["a", "b"] {
        assert_eq!(value::<i64>(&mut client, &format!("SELECT snowflake_segment_next('{tag}')")), 1);
    }
    refused(&mut client, "SELECT snowflake_segment_next('c')", "53400");
    let listed: String = value(
        &mut client,
        "SELECT string_agg(concat_ws(' ', tag, state, first), ', ' ORDER BY tag) FROM snowflake_segments(false)",
    );
    assert_eq!(listed, "a live 1, b live 1");
}
