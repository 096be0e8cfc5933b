//! What an operator does, step by step as docs/leases.md and docs/runbook.md say, and what a tired one does. Where that repeats IDs, it
//! is shown here, and the page warns of it.

use crate::forgotten::{short, wait_for_ids};
use crate::{leasing, registry, status, with_each_registry, worker};
use snowflake_test::check::{self, refused, repeated, wait_for};
use snowflake_test::preloaded::dead_resolver;
use snowflake_test::proxy::{Mode, Proxy};
use snowflake_test::query::{batch, next, value};
use snowflake_test::registries::{Kind, Server};
use snowflake_test::{Cluster, Installation, Options, Stop, run, seconds};
use std::collections::BTreeSet;
use std::thread;
use std::time::Instant;

with_each_registry!(an_old_backup_of_the_registry_is_restored, the_registry_is_lost_and_servers_move_to_another,);

/// One number for all: whoever leases at the wrong time has that of another.
fn pinned(url: &str) -> Options {
    leasing(url).set("pg_snowflake.worker_id = 3\npg_snowflake.max_wait = '200ms'\npg_snowflake.sequence_spread = 1")
}

/// A server that reaches the registry by a proxy, and keeps its lease for as long as these tests cut it off.
fn behind_a_proxy(registry: &Server) -> (Proxy, Options) {
    let proxy = Proxy::before(registry.port());
    let url = registry.kind().url(false, "", &format!("127.0.0.1:{}", proxy.port()));
    (proxy, pinned(&url).set("pg_snowflake.registry_window = '40s'"))
}

/// Both make whole ticks of IDs at the same time, until some are made twice.
fn until_ids_repeat(servers: [&Cluster; 2]) -> Vec<Vec<i64>> {
    let mut lists = Vec::new();
    wait_for("IDs repeat", || {
        thread::scope(|scope| {
            let made = servers.map(|server| scope.spawn(|| batch(&mut server.client(), 20_000)));
            lists.extend(made.map(|list| list.join().unwrap()));
        });
        repeated(&lists) > 0
    });
    lists
}

/// Has the server use another registry from its next start on.
fn move_to(server: &Cluster, registry: &Server) {
    server.append("postgresql.conf", &format!("pg_snowflake.registry = '{}'\n", registry.url()));
}

/// "If it happened", step 1: servers that run store their leases again, and after that a new one can be started. The mistake: it is
/// started before.
#[test]
fn a_new_server_is_started_after_the_others_have_stored_their_leases_again() {
    let mut registry = registry(Kind::Redis);
    let (proxy, options) = behind_a_proxy(&registry);
    let first = options.set("pg_snowflake.registry_window = '3s'").start();
    next(&mut first.client());
    registry.wipe();
    wait_for("the lease is stored again", || first.log().contains("the registry has lost the lease"));
    wait_for("and is listed", || {
        let list = "SELECT count(*) FROM snowflake_workers() WHERE is_this_server AND state = 'current'";
        value::<i64>(&mut first.client(), list) == 1
    });
    let new = pinned(&registry.url()).start();
    let mut lists = vec![batch(&mut first.client(), 1000)];
    refused(&mut new.client(), "SELECT snowflake_next()", "55000");
    new.stop(Stop::Fast);
    first.reload(&[("pg_snowflake.registry_window", "40s")]);
    wait_for("the lease is long", || {
        let long = "SELECT granted_until > now() + interval '30 s' FROM snowflake_status()";
        value(&mut first.client(), long)
    });
    lists.push(batch(&mut first.client(), 1000));
    check::distinct(&lists);

    // The mistake. It needs no more than that the first one does not reach the registry yet.
    let second_new = pinned(&registry.url()).create();
    proxy.set(Mode::LoseAnswers);
    registry.wipe();
    second_new.start();
    second_new.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    wait_for_ids(&second_new);
    until_ids_repeat([&first, &second_new]);
    // Step 3 finds out whose IDs may be affected.
    proxy.set(Mode::Pass);
    wait_for("the log says so", || first.log().contains("worker ID 3 was taken by another server"));
}

/// "If it happened", step 2. The mistakes: the registry is trusted while a server that does not reach it has a lease, and for ever.
#[test]
fn the_registry_is_trusted_when_all_leases_are_over_or_stored_again() {
    let mut registry = registry(Kind::Redis);
    let (proxy, options) = behind_a_proxy(&registry);
    let first = options.start();
    let second = pinned(&registry.url()).set("pg_snowflake.registry_window = '3s'").start();
    next(&mut first.client());
    wait_for("the second knows the namespace", || second.log().contains("there is no worker ID to lease"));
    proxy.set(Mode::LoseAnswers);
    registry.wipe();
    wait_for("the second waits", || second.log().contains("no worker ID can be leased yet"));
    let waits = refused(&mut second.client(), "SELECT snowflake_next()", "55000");
    assert!(waits.detail().unwrap().contains("has forgotten what it had stored"), "{waits:?}");
    // By step 2, somebody sees that the first is not listed, and waits.
    let listed = "SELECT count(*) FROM snowflake_workers() WHERE state = 'current'";
    assert_eq!(value::<i64>(&mut second.client(), listed), 0);
    assert_eq!(status(&mut first.client(), "lease"), "current");
    // The mistake.
    second.reload(&[("pg_snowflake.registry_trusted", "on")]);
    wait_for_ids(&second);
    until_ids_repeat([&first, &second]);

    // The next mistake: it stays on. One lease has used it up, so a loss is noticed as if it were off.
    assert!(second.log().contains("pg_snowflake.registry_trusted is on"), "{}", second.log());
    first.stop(Stop::Kill);
    let before = second.log().matches("has forgotten what it had stored").count();
    registry.wipe();
    wait_for("the loss is noticed", || second.log().matches("has forgotten what it had stored").count() > before);
    let third = pinned(&registry.url()).set("pg_snowflake.worker_id = -1").start();
    let error = refused(&mut third.client(), "SELECT snowflake_next()", "55000");
    assert!(error.detail().unwrap().contains("has forgotten what it had stored"), "{error:?}");
    next(&mut second.client());
}

/// An administrator restores a backup of last night. Servers that run notice: the record of one is older than it was confirmed, and that
/// of the other is not there.
fn an_old_backup_of_the_registry_is_restored(kind: Kind) {
    let mut registry = registry(kind);
    let options = leasing(&registry.url())
        .set("pg_snowflake.layout = 'timestamp=41 worker=2 sequence=12'")
        // Redis is started again for the backup: who leases after that waits for the lead and the window.
        .set("pg_snowflake.registry_window = '18s'\npg_snowflake.max_wait = '200ms'\npg_snowflake.max_lead = '1s'");
    let first = options.clone().start();
    wait_for_ids(&first);
    let backup = registry.back_up();
    wait_for_ids(&first);
    let until = status(&mut first.client(), "granted_until");
    let second = options.clone().start();
    wait_for_ids(&second);
    wait_for("the first renews its lease", || status(&mut first.client(), "granted_until") > until);
    let workers = [&first, &second].map(|server| worker(&mut server.client()));
    registry.restore(&backup);
    for server in [&first, &second] {
        wait_for("the loss is noticed", || server.log().contains("the registry has lost the lease"));
    }
    let said = |server: &Cluster| server.log().contains("the registry of worker IDs has forgotten what it had stored");
    assert!(said(&first) || said(&second));
    let third = options.start();
    wait_for("the third waits", || third.log().contains("no worker ID can be leased yet"));
    let listed = "SELECT count(*) FROM snowflake_workers() WHERE state = 'current'";
    wait_for("both have stored their leases again", || value::<i64>(&mut third.client(), listed) == 2);
    let mut lists: Vec<_> = [&first, &second].map(|server| batch(&mut server.client(), 1000)).into();
    assert_eq!(workers, [&first, &second].map(|server| worker(&mut server.client())), "both go on");
    // So all that was granted is known again.
    third.reload(&[("pg_snowflake.registry_trusted", "on")]);
    wait_for_ids(&third);
    lists.extend([&first, &second, &third].map(|server| batch(&mut server.client(), 1000)));
    assert!(!workers.contains(&worker(&mut third.client())));
    check::distinct(&lists);
    // It is over.
    third.reload(&[("pg_snowflake.registry_trusted", "off")]);
    for server in [&first, &second, &third] {
        let is_well = "SELECT (lease, registry_error) IS NOT DISTINCT FROM ('current', NULL) FROM snowflake_status()";
        wait_for("it is over", || value(&mut server.client(), is_well));
    }
}

/// "The registry is away, or was lost": to another registry, which is empty.
fn the_registry_is_lost_and_servers_move_to_another(kind: Kind) {
    let mut old = registry(kind);
    let options = leasing(&old.url())
        .set("pg_snowflake.layout = 'timestamp=41 worker=1 sequence=12'")
        .set("pg_snowflake.registry_window = '3s'\npg_snowflake.max_wait = '200ms'");
    let servers = [options.clone().start(), options.start()];
    servers.iter().for_each(wait_for_ids);
    let mut lists: Vec<_> = servers.iter().map(|server| batch(&mut server.client(), 1000)).collect();
    // 1.
    old.kill();
    // 2.
    for server in &servers {
        wait_for("the lease is over", || status(&mut server.client(), "lease") == "expired");
    }
    // 3. They know that the new registry knows less than they do.
    let new = registry(if kind == Kind::Etcd { Kind::Redis } else { Kind::Etcd });
    for server in &servers {
        move_to(server, &new);
        server.restart(Stop::Fast);
    }
    for server in &servers {
        wait_for("it waits", || server.log().contains("no worker ID can be leased yet"));
    }
    refused(&mut servers[0].client(), "SELECT snowflake_next()", "55000");
    // 4. All leases are over.
    for server in &servers {
        server.reload(&[("pg_snowflake.registry_trusted", "on")]);
    }
    servers.iter().for_each(wait_for_ids);
    lists.extend(servers.iter().map(|server| batch(&mut server.client(), 1000)));
    let workers: BTreeSet<_> = servers.iter().map(|server| worker(&mut server.client())).collect();
    assert_eq!(workers.len(), 2);
    check::distinct(&lists);
}

/// The mistake: one server goes on with the old registry.
#[test]
fn a_server_that_stays_with_the_old_registry_has_a_number_of_the_new_one() {
    let [old, new] = [Kind::Postgres, Kind::Redis].map(registry);
    let [first, second] = [(), ()].map(|()| pinned(&old.url()).start());
    next(&mut first.client());
    refused(&mut second.client(), "SELECT snowflake_next()", "55000");
    move_to(&second, &new);
    second.append("postgresql.conf", "pg_snowflake.registry_trusted = on\n");
    second.restart(Stop::Fast);
    wait_for_ids(&second);
    until_ids_repeat([&first, &second]);
}

/// What servers that start, or are promoted or copied, do after a loss, and those whose lease was over before they noticed.
#[test]
fn after_a_loss_whoever_has_no_lease_waits() {
    let mut registry = registry(Kind::Etcd);
    let options = leasing(&registry.url()).set("pg_snowflake.registry_window = '3s'\npg_snowflake.max_wait = '200ms'");
    let first = options.clone().start();
    wait_for_ids(&first);
    let (standby, copy) = (first.standby(), Cluster::empty(Installation::under_test(), false));
    copy.copy_from(&first, &[]);
    let known = |server: &Cluster| std::fs::read_to_string(server.data().join("pg_snowflake.namespaces")).unwrap();
    assert_eq!(known(&first), known(&copy), "a base backup has what the server knows of the namespace");
    // Its lease is over before it notices.
    first.pause();
    thread::sleep(seconds(4));
    registry.wipe();
    // The copy comes first. It is no new server: it knows that there was something.
    copy.start();
    let new = options.start();
    standby.promote();
    first.resume();
    let servers = [&copy, &new, &standby, &first];
    for server in servers {
        wait_for("it waits", || {
            server.log().contains("no worker ID can be leased yet")
                && status(&mut server.client(), "lease") != "current"
        });
    }
    assert!(copy.log().contains("the registry of worker IDs has forgotten what it had stored"), "{}", copy.log());
    // The one lease that there was is over.
    let lists = servers.map(|server| {
        server.reload(&[("pg_snowflake.registry_trusted", "on")]);
        wait_for_ids(server);
        batch(&mut server.client(), 1000)
    });
    check::distinct(&lists);
    let workers: BTreeSet<_> = servers.iter().map(|server| worker(&mut server.client())).collect();
    assert_eq!(workers.len(), 4);
}

/// With the defaults: 10 min of `max_lead`, and 1 min of `registry_window`. And where the namespace's record is made anew for another
/// layout, a server that has a lease makes no IDs beyond it.
#[test]
fn after_a_loss_the_wait_is_eleven_minutes_and_another_layout_ends_with_the_lease() {
    let mut registry = registry(Kind::Redis);
    let first = leasing(&registry.url()).start();
    next(&mut first.client());
    first.stop(Stop::Kill);
    registry.wipe();
    first.start();
    wait_for("it waits", || first.log().contains("no worker ID can be leased yet"));
    let query = "SELECT extract(epoch FROM $1::text::timestamptz - now())::float8";
    let log = first.log();
    let until = log.split("No new lease is given before ").nth(1).unwrap().split(',').next().unwrap();
    let wait: f64 = first.client().query_one(query, &[&until]).unwrap().get(0);
    assert!((600.0..=661.0).contains(&wait), "{wait}");

    let second = short(leasing(&registry.url())).set("pg_snowflake.registry_namespace = 'narrow'").start();
    wait_for_ids(&second);
    let other = short(leasing(&registry.url()))
        .set("pg_snowflake.registry_namespace = 'narrow'\npg_snowflake.layout = 'twitter'")
        .create();
    second.pause();
    registry.wipe();
    other.start();
    wait_for("another layout is on record", || other.log().contains("leased worker ID"));
    second.resume();
    wait_for("its IDs end", || status(&mut second.client(), "lease") == "expired");
    wait_for("the error says why", || {
        let error = refused(&mut second.client(), "SELECT snowflake_next()", "55000");
        error.detail().is_some_and(|detail| detail.contains("is for the layout"))
    });
}

/// "From numbers to leases": the registry on all members, then the numbers away. The mistake: one member is left without the registry.
#[test]
fn from_numbers_to_leases() {
    let registry = registry(Kind::Etcd);
    let member = |number: u32| {
        Cluster::options()
            .own_identifier()
            .set("pg_snowflake.layout = 'timestamp=41 worker=1 sequence=12'\npg_snowflake.sequence_spread = 1")
            .set(&format!("pg_snowflake.worker_id = {number}"))
    };
    let with_registry = format!("pg_snowflake.registry = '{}'\npg_snowflake.max_wait = '20s'\n", registry.url());
    let members = [0, 1].map(|number| member(number).start());
    let mut lists: Vec<_> = members.iter().map(|member| batch(&mut member.client(), 1000)).collect();
    for (number, server) in (0..).zip(&members) {
        server.append("postgresql.conf", &with_registry);
        server.restart(Stop::Fast);
        lists.extend(members.iter().map(|member| batch(&mut member.client(), 1000)));
        assert_eq!(worker(&mut server.client()), number, "its own number is leased");
    }
    for server in &members {
        server.reload(&[("pg_snowflake.worker_id", "-1")]);
        lists.extend(members.iter().map(|member| batch(&mut member.client(), 1000)));
    }
    // Now an old primary and the new one differ, also as copies.
    let copy = Cluster::empty(Installation::under_test(), false);
    copy.copy_from(&members[0], &[]);
    copy.append("postgresql.auto.conf", "pg_snowflake.max_wait = '200ms'\n");
    copy.start();
    refused(&mut copy.client(), "SELECT snowflake_next()", "55000");
    lists.extend(members.iter().map(|member| batch(&mut member.client(), 1000)));
    check::distinct(&lists);
    copy.stop(Stop::Fast);
    members.iter().for_each(|member| member.stop(Stop::Fast));

    // The mistake: the registry does not know of the member that has a number alone. There are two numbers for the other two.
    let alone = member(1).start();
    let others = [(), ()].map(|()| member(0).set("pg_snowflake.worker_id = -1").set(&with_registry).start());
    let same = others.iter().find(|other| worker(&mut other.client()) == 1).unwrap();
    until_ids_repeat([&alone, same]);
}

/// "Before going live": what is looked at, and what it shows where it is wrong.
#[test]
fn before_going_live() {
    let registry = registry(Kind::Postgres);
    let servers = [(), ()].map(|()| leasing(&registry.url()).start());
    let mut lists: Vec<_> = servers.iter().map(|server| batch(&mut server.client(), 1000)).collect();
    let of = |server: &Cluster, query: &str| -> String { value(&mut server.client(), query) };
    // 1. and 2.
    let layout = "SELECT format('%s %s %s', layout, epoch, layout_end) FROM snowflake_status()";
    let number = "SELECT format('%s %s', worker_id, datacenter_id) FROM snowflake_status()";
    assert_eq!(of(&servers[0], layout), of(&servers[1], layout));
    assert_ne!(of(&servers[0], number), of(&servers[1], number));
    let all = "SELECT string_agg(DISTINCT worker_id::text, ' ') FROM snowflake_workers() WHERE state = 'current'";
    assert_eq!(of(&servers[0], all).split(' ').count(), 2);
    // 3.
    let slots = "SELECT (SELECT count(*) FROM pg_replication_origin) < current_setting('max_replication_slots')::int";
    assert!(value::<bool>(&mut servers[0].client(), slots));
    // 5. A restored server has a worker of its own.
    let file = servers[0].new_file("dump.sql");
    std::fs::write(&file, run(&mut servers[0].program("pg_dump"))).unwrap();
    let restored = leasing(&registry.url()).create();
    restored.start();
    run(restored.program("psql").args(["--quiet", "--set=ON_ERROR_STOP=1", "--file"]).arg(&file));
    // 7.
    let standby = servers[0].standby();
    standby.catch_up_with(&servers[0]);
    standby.promote();
    wait_for_ids(&standby);
    lists.extend([&restored, &standby].map(|server| batch(&mut server.client(), 1000)));
    check::distinct(&lists);
    let numbers: BTreeSet<_> =
        [&servers[0], &servers[1], &restored, &standby].into_iter().map(|server| of(server, number)).collect();
    assert_eq!(numbers.len(), 4);

    // Numbers by hand that are the same, and another layout, show.
    let by_hand = [1, 2].map(|layout| {
        let layout = ["default", "twitter"][layout - 1];
        Cluster::options()
            .set(&format!(
                "pg_snowflake.layout = '{layout}'\npg_snowflake.worker_id = 1\npg_snowflake.datacenter_id = -1"
            ))
            .start()
    });
    let worker = "SELECT worker_id::text FROM snowflake_status()";
    assert_eq!(of(&by_hand[0], worker), "1");
    assert_ne!(of(&by_hand[0], layout), of(&by_hand[1], layout));
}

/// The name server is away: neither does a call of the registry wait for it, nor a stop of the server.
#[test]
fn a_fast_stop_does_not_wait_for_the_resolver() {
    let mut registry = registry(Kind::Redis);
    let options = |hosts: &str| {
        leasing(&Kind::Redis.url(false, "", hosts))
            .set("pg_snowflake.max_wait = '200ms'\npg_snowflake.registry_window = '6s'")
            .variable("LD_PRELOAD", dead_resolver().to_str().unwrap())
    };
    let stops_at_once = |cluster: &Cluster| {
        let start = Instant::now();
        cluster.stop(Stop::Fast);
        assert!(start.elapsed() < seconds(2), "{:?}", start.elapsed());
    };
    let cluster = options("redis1.away,redis2.away,redis3.away").start();
    wait_for("the registry cannot be reached", || cluster.log().contains("does not answer"));
    let error = refused(&mut cluster.client(), "SELECT snowflake_next()", "55000");
    assert!(error.detail().unwrap().contains("redis1.away"), "{error:?}");
    // In the middle of a look-up, and of a pause.
    for _ in 0..3 {
        stops_at_once(&cluster);
        cluster.start();
        refused(&mut cluster.client(), "SELECT snowflake_next()", "55000");
    }
    // A host that needs no resolver is reached all the same, and the lease is given back to it; or not, where it is away, too.
    let cluster = options(&format!("redis1.away,{}", registry.address())).start();
    wait_for_ids(&cluster);
    stops_at_once(&cluster);
    assert!(cluster.log().contains("back, used up to"), "{}", cluster.log());
    cluster.start();
    wait_for_ids(&cluster);
    registry.kill();
    wait_for("the registry does not answer", || cluster.log().contains("does not answer"));
    stops_at_once(&cluster);
    assert!(cluster.log().contains("could not be given back in time"), "{}", cluster.log());
}
