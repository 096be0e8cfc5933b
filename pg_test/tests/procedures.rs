//! What an operator of servers with numbers does, step by step as docs/promise.md and docs/runbook.md say, and what a tired one does.
//! Where that repeats IDs, it is shown here, and the page warns of it. `leases/procedures.rs` has those with a registry.

use snowflake_test::check::{self, refused, repeated, wait_for};
use snowflake_test::load::TABLE;
use snowflake_test::query::{batch, next, value};
use snowflake_test::{Cluster, Options, Stop, ids, run};
use std::collections::BTreeSet;
use std::process::Command;
use std::thread;

/// A session uses all positions of a millisecond.
fn numbered(number: u32) -> Options {
    Cluster::options()
        .with_clock()
        .narrow()
        .set(&format!("pg_snowflake.worker_id = {number}\npg_snowflake.sequence_spread = 1"))
}

/// Gives IDs whose times span so many milliseconds.
fn claim(server: &Cluster, length: i64) -> Vec<i64> {
    let (mut client, mut list) = (server.client(), Vec::new());
    while list.is_empty() || list[list.len() - 1] - list[0] < length << 22 {
        list.extend(batch(&mut client, 200));
    }
    list
}

/// Both make IDs at the same time, until some are made twice.
fn until_ids_repeat(servers: [&Cluster; 2]) {
    let mut lists = Vec::new();
    wait_for("IDs repeat", || {
        thread::scope(|scope| {
            let made = servers.map(|server| scope.spawn(|| claim(server, 50)));
            lists.extend(made.map(|list| list.join().unwrap()));
        });
        repeated(&lists) > 0
    });
}

/// "Handing a worker ID to another server" without its third step; `worker::two_servers_swap_their_workers_under_load` takes it.
#[test]
fn a_number_that_is_handed_over_without_waiting_repeats_ids() {
    let (old, new) = (numbered(1).create(), numbered(2).start());
    old.step_clock("+3s");
    old.start();
    old.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let given = claim(&old, 500);
    old.reload(&[("pg_snowflake.worker_id", "-1")]);
    // The new server's clock says that there is time left.
    let is_past: bool = {
        let until: String = value(&mut old.client(), "SELECT previous_until::text FROM snowflake_status()");
        value(&mut new.client(), &format!("SELECT snowflake_timestamp(snowflake_next()) >= '{until}'"))
    };
    assert!(!is_past, "the machine is too slow for this test");
    new.reload(&[("pg_snowflake.worker_id", "1")]);
    assert!(repeated(&[given, claim(&new, 6000)]) > 0);
}

/// "A single server": a standby is promoted while the old primary may still run. With another number, nothing repeats; without, all does.
#[test]
fn a_standby_is_promoted_beside_its_primary() {
    let primary = numbered(1).start();
    let [right, wrong] = [(), ()].map(|()| primary.standby());
    right.append("postgresql.conf", "pg_snowflake.worker_id = 2\n");
    right.restart(Stop::Fast);
    let before = claim(&primary, 10);
    for standby in [&right, &wrong] {
        standby.catch_up_with(&primary);
        standby.promote();
        standby.next_once_up();
    }
    let status = "SELECT format('%s %s %s', started_after, lead, lead <= interval '1.2 s') FROM snowflake_status()";
    let after: String = value(&mut right.client(), status);
    assert!(after.starts_with("standby ") && after.ends_with(" t"), "{after}");
    let no_lead = "SELECT lead <= interval '0.2 s' FROM snowflake_status()";
    wait_for("the lead is over", || {
        next(&mut right.client());
        value(&mut right.client(), no_lead)
    });
    let lists = thread::scope(|scope| {
        let made = [&primary, &right].map(|server| scope.spawn(|| claim(server, 2000)));
        made.map(|list| list.join().unwrap())
    });
    check::distinct(&[&[before][..], &lists].concat());
    until_ids_repeat([&primary, &wrong]);
}

/// "Two servers with one worker ID": which IDs were made twice is found by what the page says.
#[test]
fn ids_that_two_servers_made_are_found() {
    let servers = [(), ()].map(|()| numbered(1).start());
    for server in &servers {
        server
            .client()
            .batch_execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), note text)")
            .unwrap();
    }
    let insert = "INSERT INTO orders (note) SELECT 'x' FROM generate_series(1, 2000) RETURNING id";
    let made = |server: &Cluster| ids(&server.client().query(insert, &[]).unwrap());
    let mut lists = Vec::new();
    wait_for("IDs repeat", || {
        thread::scope(|scope| {
            let both = servers.each_ref().map(|server| scope.spawn(|| made(server)));
            lists.extend(both.map(|list| list.join().unwrap()));
        });
        repeated(&lists) > 0
    });
    // First, one of them gets another number.
    servers[1].reload(&[("pg_snowflake.worker_id", "2")]);
    let other = "SELECT snowflake_worker(snowflake_next()) = 2";
    wait_for("it is in use", || value(&mut servers[1].client(), other));
    lists.extend(servers.each_ref().map(made));
    let files = servers.each_ref().map(|server| {
        let file = server.new_file("ids");
        // As in docs/runbook.md.
        let copy = format!(
            "\\copy (SELECT id FROM orders WHERE id >= snowflake_min_id('2024-01-20') AND snowflake_worker(id) = 1 ORDER BY 1) TO '{}'",
            file.display()
        );
        run(server.program("psql").args(["--quiet", "--command", &copy]));
        file
    });
    let compare = format!("comm -12 <(sort {}) <(sort {})", files[0].display(), files[1].display());
    let found = run(Command::new("bash").args(["-c", &compare]));
    let found: BTreeSet<i64> = found.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(found.len(), repeated(&lists), "all that repeat, and no others");
}

/// "IDs are far ahead of the clock": back to the highest ID that is kept, in all databases. The mistakes: an ID below one of this database,
/// which is refused, and below one of another database, which is not.
#[test]
fn a_rewind_below_an_id_that_another_database_keeps_repeats_it() {
    let server = numbered(1).start();
    server.database("other");
    for database in ["postgres", "other"] {
        server.client_of("postgres", database).batch_execute(TABLE).unwrap();
    }
    server.step_clock("+4s");
    let insert = "INSERT INTO stored (session) SELECT 1 FROM generate_series(1, 30000) RETURNING id";
    let kept = ids(&server.client_of("postgres", "other").query(insert, &[]).unwrap());
    let own: i64 = value(&mut server.client(), "INSERT INTO stored (session) VALUES (1) RETURNING id");
    server.step_clock("+0s");
    let mut client = server.client();
    let too_low: i64 = value(&mut client, "SELECT snowflake_max_id(now())");
    let rewind = format!("SELECT snowflake_rewind({too_low})");
    let error = refused(&mut client, &rewind, "55000");
    assert_eq!(error.message(), "this database holds IDs above the one to go back to");
    client.execute("DELETE FROM stored WHERE id = $1", &[&own]).unwrap();
    client.query_one(&rewind, &[]).unwrap();
    assert!(repeated(&[kept, claim(&server, 6000)]) > 0);
}

/// The same after a restore from a server whose clock was ahead: the database goes on at once, above what this server's databases have. The hint
/// names all of them, as the highest ID may be in another one.
#[test]
fn a_database_from_a_server_that_was_ahead_goes_back() {
    let options = || Cluster::options().with_clock().set("pg_snowflake.max_wait = '200ms'");
    let (ahead, right) = (options().create(), options().start());
    ahead.step_clock("+1h");
    ahead.start();
    ahead.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    ahead.client().batch_execute(TABLE).unwrap();
    let mut lists =
        vec![ids(&ahead.client().query("INSERT INTO stored (session) VALUES (1), (1) RETURNING id", &[]).unwrap())];
    // The rows with wrong times are not kept, and there is one of a right time.
    let last: i64 = value(&mut right.client(), "SELECT snowflake_next()");
    ahead.client().execute("INSERT INTO stored VALUES ($1, 2)", &[&last]).unwrap();
    let file = ahead.new_file("dump.sql");
    let dump = run(ahead.program("pg_dump").args(["--clean", "--if-exists"]));
    std::fs::write(&file, dump).unwrap();
    right.database("other");
    let mut other = right.client_of("postgres", "other");
    other.batch_execute(TABLE).unwrap();
    right.step_clock("+4s");
    let insert = "INSERT INTO stored (session) SELECT 1 FROM generate_series(1, 30000) RETURNING id";
    lists.push(ids(&other.query(insert, &[]).unwrap()));
    right.step_clock("+0s");
    run(right.program("psql").args(["--quiet", "--set=ON_ERROR_STOP=1", "--file"]).arg(&file));
    let mut client = right.client();
    let error = refused(&mut client, "SELECT snowflake_next()", "55000");
    assert!(error.message().starts_with("the IDs of this database reach up to"), "{error:?}");
    assert!(error.hint().unwrap().contains("the highest ID that any database of this server holds"), "{error:?}");
    // The mistake is refused: rows of that time are there.
    refused(&mut client, &format!("SELECT snowflake_rewind({last})"), "55000");
    client.batch_execute("DELETE FROM stored WHERE session = 1").unwrap();
    let highest: i64 = value(&mut client, "SELECT max(id) FROM stored");
    assert_eq!(highest, last);
    let highest = highest.max(value(&mut other, "SELECT max(id) FROM stored"));
    client.query_one("SELECT snowflake_rewind($1)", &[&highest]).unwrap();
    // As many as the clock reaches the others with.
    lists.push(batch(&mut client, 30_000));
    assert!(value::<bool>(&mut client, "SELECT snowflake_timestamp(snowflake_next()) < now() + interval '10 s'"));
    check::distinct(&lists);
}
