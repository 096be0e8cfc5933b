//! What happens to registries: they fail over, their members are replaced, servers move to another one.

use super::super::load::{Making, SEGMENT, Tags, Taking};
use super::super::{Wanted, witness};
use super::stage::{Cast, Stage, play};
use super::world::{self, UNSAFE, WINDOW, World, about, create_tag, makes_ids, world};
use crate::check::wait_for;
use crate::history::{Event, Grant, Trouble, Writer};
use crate::load::End;
use crate::programs::output;
use crate::proxy::Proxy;
use crate::registries::{Kind, Server, Setup};
use crate::{Stop, millis, value};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// A registry, and what follows it.
struct Pair {
    primary: Server,
    replica: Server,
    /// From which byte on the primary's file is its own history; of Redis.
    from: usize,
}

/// What was left behind by a primary that has failed over.
struct Left {
    grants: Vec<Grant>,
    /// The first number that it had not granted.
    next: i64,
}

fn replica_of(primary: &Server) -> Server {
    match primary.kind() {
        Kind::Postgres => primary.of_cluster(primary.cluster().standby()),
        Kind::Redis => {
            let port = primary.port().to_string();
            let replica =
                ["--replicaof", "127.0.0.1", &port].into_iter().fold(witness::setup(Kind::Redis), Setup::argument);
            let replica = replica.start();
            wait_for("the replica is in step, and has its file", || {
                let [primary, own] = [primary, &replica].map(|server| server.redis_cli(&["info"]));
                own.contains("master_link_status:up")
                    && primary.contains("state=online")
                    && own.contains("aof_rewrite_in_progress:0")
                    && own.contains("aof_rewrite_scheduled:0")
                    && witness::is_appended(&replica)
            });
            replica
        }
        Kind::Etcd => unreachable!("it has members"),
    }
}

/// The first number that this registry has not granted.
fn next_of(server: &Server) -> i64 {
    let of_json = |text: &str| {
        let record: serde_json::Value = serde_json::from_str(text.split_once(' ').unwrap().1).unwrap();
        record["next"].as_str().unwrap().parse().unwrap()
    };
    match server.kind() {
        Kind::Postgres => value(
            &mut server.cluster().client(),
            &format!("SELECT next::bigint FROM snowflake_registry.segments WHERE tag = '{SEGMENT}'"),
        ),
        _ => of_json(&server.redis_cli(&["hget", "pg_snowflake_segments:{pg_snowflake:default}", SEGMENT])),
    }
}

impl Pair {
    fn of(kind: Kind) -> Self {
        let primary = witness::setup(kind).start();
        let replica = replica_of(&primary);
        Self { primary, replica, from: 0 }
    }

    /// The replica hears no more of the primary.
    fn part(&self) {
        match self.primary.kind() {
            Kind::Postgres => self.replica.cluster().reload(&[("primary_conninfo", "")]),
            _ => drop(self.replica.redis_cli(&["replicaof", "127.0.0.1", "1"])),
        }
    }

    /// The primary is gone, and the replica takes its place. Nobody asks it yet.
    fn promote(&mut self) {
        match self.primary.kind() {
            Kind::Postgres => {
                self.replica.cluster().promote();
                let keep = "SELECT pg_create_logical_replication_slot('history', 'pgoutput')";
                self.replica.cluster().client().batch_execute(keep).unwrap();
            }
            _ => drop(self.replica.redis_cli(&["replicaof", "no", "one"])),
        }
        std::mem::swap(&mut self.primary, &mut self.replica);
    }

    /// What the old primary had, which is started for that where need be, and nobody asks any more. Then it follows the new one.
    fn follow(&mut self, from: usize) -> Left {
        let old = &mut self.replica;
        match old.kind() {
            Kind::Postgres => {
                old.start();
                let next = next_of(old);
                let grants = witness::of_postgres(&mut old.cluster().client(), "default");
                old.cluster().client().batch_execute("SELECT pg_drop_replication_slot('history')").unwrap();
                old.cluster().stop(Stop::Fast);
                old.cluster().rewind_to(self.primary.cluster());
                old.start();
                old.cluster().catch_up_with(self.primary.cluster());
                Left { grants, next }
            }
            _ => {
                let grants = witness::of_redis(old, "default", from);
                // With its own commands alone.
                old.start();
                old.redis_cli(&["replicaof", "no", "one"]);
                let next = next_of(old);
                old.kill();
                *old = replica_of(&self.primary);
                Left { grants, next }
            }
        }
    }

    fn grants(&self) -> Vec<Grant> {
        match self.primary.kind() {
            Kind::Redis => witness::of_redis(&self.primary, "default", self.from),
            _ => witness::grants(&self.primary, "default"),
        }
    }
}

/// The registry fails over to a replica that lags, or not. Nobody promises anything for that; but the registry shows that it is another one, so no
/// ID comes twice. Of the numbers of segments, those that were lost may, until an operator has raised the tag as the runbook says.
pub(super) fn fails_over(kind: Kind, wanted: &Wanted) {
    let mut pair = Pair::of(kind);
    // Of Redis, one server counts as stored what a replica has. Until there is one, nothing is stored for it.
    let careful = if kind == Kind::Redis { "pg_snowflake.registry = '{url}?wait_replicas=1'" } else { "" };
    let World { proxies, servers } = world(&pair.primary, &["", careful, ""]);
    let history = &[Writer::new(&wanted.record, &about())];
    let tags = &Tags::of(&[SEGMENT]);
    let cast = Cast {
        servers: &servers,
        posts: &[(Some(0), "postgres", 0), (Some(1), "postgres", 0), (Some(2), "postgres", 0)],
        tags,
        taking: Taking::USUAL,
        making: Making::Any,
    };
    let mut grants = Vec::new();
    play(wanted, history, &cast, |stage| {
        stage.sleep(500, 3000);
        let post = stage.any_post();
        stage.disturb(post);
        let (lags, parted) = (stage.random.u32(..4) > 0, stage.record().now());
        if lags {
            pair.part();
            // Leases are renewed, begin and end in that time, and ranges are granted.
            let post = stage.any_post();
            stage.disturb(post);
            stage.sleep(200, 4000);
        }
        stage.fault(if lags { "LaggingReplicaPromoted" } else { "ReplicaPromoted" }, |stage| {
            let (record, begin) = (stage.record(), stage.record().now());
            pair.primary.kill();
            stage.sleep(0, 1500);
            pair.promote();
            let from = std::mem::take(&mut pair.from);
            if kind == Kind::Redis {
                pair.from = witness::length_of_redis(&pair.primary);
            }
            let lost_from = next_of(&pair.primary);
            proxies.iter().for_each(|proxy| proxy.aim(pair.primary.port()));
            record.trouble(Trouble::Away, None, begin);
            record.event(&Event::Trouble(Trouble::Unsafe, None, begin, record.now() + UNSAFE));
            let post = stage.any_post();
            stage.disturb(post);
            let left = pair.follow(from);
            if kind == Kind::Redis {
                record.trouble(Trouble::Away, stage.line(1), parted);
            }
            grants.extend(left.grants);
            // What the runbook says: all have leases, and have looked; then the tag is raised above all numbers in tables.
            (0..servers.len()).for_each(|post| stage.take_id(post));
            stage.reload_all();
            stage.sleep(2000, 2500);
            let above = record.highest_number();
            stage.operator(&format!("SELECT snowflake_segment_raise('{SEGMENT}', {above})"));
            stage.reload_all();
            stage.sleep(2000, 2500);
            if left.next > lost_from {
                let tag = SEGMENT.to_owned();
                record.event(&Event::Lost { tag, from: lost_from, until: left.next, begin, end: record.now() });
            }
        });
    });
    grants.extend(pair.grants());
    history[0].grants(&grants);
}

/// A cluster of etcd that chooses a leader, or has no members enough, answers nobody: the record says when, as a client sees that is none of ours.
fn note_outages(hosts: &[String], history: &Writer, done: &AtomicBool) {
    let urls: Vec<String> = hosts.iter().map(|host| format!("http://{host}")).collect();
    while !done.load(Relaxed) {
        let begin = history.now();
        let mut get = Command::new("etcdctl");
        get.env("ETCDCTL_API", "3").arg(format!("--endpoints={}", urls.join(","))).args([
            "--command-timeout=2s",
            "get",
            "x",
        ]);
        let answers = output(&mut get).success;
        if !answers || history.now() - begin > 1_000_000_000 {
            history.trouble(Trouble::Away, None, begin);
        }
        thread::sleep(millis(300));
    }
}

/// Each member of a cluster of etcd is replaced by a new one, also while it leads or is dead. Servers reach a member by an address that stays.
pub(super) fn members_are_replaced(wanted: &Wanted) {
    let (members, _links) = Server::etcd_members();
    let mut members: Vec<(String, Server)> =
        members.into_iter().enumerate().map(|(number, member)| (format!("m{number}"), member)).collect();
    let proxies: Vec<Proxy> = members.iter().map(|(_, member)| Proxy::before(member.port())).collect();
    let hosts: Vec<String> = proxies.iter().map(|proxy| format!("127.0.0.1:{}", proxy.port())).collect();
    let url = Kind::Etcd.url(false, "", &hosts.join(","));
    let servers = [(); 2].map(|()| world::options(&url).start());
    for server in &servers {
        server.client().batch_execute(crate::load::TABLE).unwrap();
        makes_ids(server);
    }
    create_tag(&servers[0], SEGMENT, "");
    let history = &[Writer::new(&wanted.record, &about())];
    let tags = &Tags::of(&[SEGMENT]);
    let posts = &[(Some(0), "postgres", 0), (Some(1), "postgres", 0)];
    let mut number = members.len();
    let cast = Cast { servers: &servers, posts, tags, taking: Taking::USUAL, making: Making::Any };
    let round = |stage: &mut Stage| {
        let post = stage.any_post();
        stage.disturb(post);
        let place = number % members.len();
        let leads = members[place].1.leads();
        let dies = stage.random.bool();
        let name = match (dies, leads) {
            (true, true) => "DeadLeaderReplaced",
            (true, false) => "DeadMemberReplaced",
            (false, true) => "LeaderReplaced",
            (false, false) => "MemberReplaced",
        };
        stage.fault(name, |stage| {
            let begin = stage.record().now();
            let (old, mut server) = members.remove(place);
            if dies {
                server.kill();
                stage.sleep(0, 2000);
            }
            wait_for("the others lead", || !dies || members.iter().any(|(_, member)| member.leads()));
            members[0].1.remove_etcd_member(&old);
            server.kill();
            drop(server);
            stage.sleep(0, 1000);
            let others: Vec<&Server> = members.iter().map(|(_, member)| member).collect();
            let new = format!("m{number}");
            let member = Server::another_etcd_member(&others, &new);
            proxies[place].aim(member.port());
            members.insert(place, (new, member));
            wait_for("somebody leads", || members.iter().any(|(_, member)| member.leads()));
            // Who asks the one that is gone goes over to the next.
            stage.record().trouble(Trouble::Slow, None, begin);
            if leads {
                stage.record().trouble(Trouble::Away, None, begin);
            }
        });
        number += 1;
        stage.sleep(1000, 4000);
    };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let _end = End(&done);
        scope.spawn(|| note_outages(&hosts, &history[0], &done));
        play(wanted, history, &cast, round);
    });
    history[0].grants(&witness::grants(&members[0].1, "default"));
}

/// The URL is changed in the configuration, which is read again, while sessions go on. It counts from the next start on: until then, and
/// through crashes of sessions, the server stays with its registry. Then it has another address of the same registry, or the old one again.
pub(super) fn the_url_is_changed(kind: Kind, wanted: &Wanted) {
    let registry = witness::setup(kind).start();
    // Whoever takes a worker there makes IDs that the registry has not granted.
    let other = Setup::of(kind).start();
    let World { proxies, servers } = world(&registry, &[""; 2]);
    let (second_way, wrong_way) = (Proxy::before(registry.port()), Proxy::before(other.port()));
    let history = &[Writer::new(&wanted.record, &about())];
    let tags = &Tags::of(&[SEGMENT]);
    let posts = &[(Some(0), "postgres", 0), (Some(1), "postgres", 0)];
    let cast = Cast { servers: &servers, posts, tags, taking: Taking::USUAL, making: Making::Any };
    play(wanted, history, &cast, |stage| {
        let post = stage.any_post();
        let ways = [&proxies[0], &proxies[1], &second_way, &wrong_way];
        let way = stage.random.usize(..ways.len());
        stage.fault(if way == 3 { "UrlOfAnotherRegistry" } else { "UrlChanged" }, |stage| {
            let url = world::url(kind, ways[way]);
            let set = format!("ALTER SYSTEM SET pg_snowflake.registry = '{url}'");
            let reload = |statement: &str| {
                let server = stage.server(post);
                server.retry(|client| client.batch_execute(statement));
                server.retry(|client| client.query("SELECT pg_reload_conf()", &[]));
            };
            reload(&set);
            let pending = format!(
                "SELECT pending_restart OR setting LIKE '{url}%' FROM pg_settings WHERE name = 'pg_snowflake.registry'"
            );
            wait_for("the file is read", || value(&mut stage.server(post).client(), &pending));
        });
        stage.sleep(200, 3000);
        if stage.random.bool() {
            stage.fault("SessionKilled", |stage| {
                let begin = stage.record().now();
                stage.server(post).crash_any_session();
                stage.is_up(post);
                stage.record().trouble(Trouble::Crash, stage.line(post), begin);
            });
            stage.sleep(1000, 4000);
        }
        if way == 3 {
            stage.fault("UrlReset", |stage| {
                let reset = "ALTER SYSTEM RESET pg_snowflake.registry";
                stage.server(post).retry(|client| client.batch_execute(reset));
                stage.server(post).retry(|client| client.query("SELECT pg_reload_conf()", &[]));
            });
        } else if stage.random.bool() {
            let how = stage.any_stop();
            stage.fault("Restarted", |stage| stage.restart_after(post, how, |_| ()));
        }
        stage.take_id(post);
    });
    history[0].grants(&witness::grants(&registry, "default"));
}

/// A namespace moves from one kind of registry to the next, as the runbook says, with the wait or with `registry_trusted`, and its tag is
/// created above all numbers in tables.
pub(super) fn the_registry_is_switched(wanted: &Wanted) {
    const SERVERS: usize = 3;
    let mut kind = 0;
    let mut registry = witness::setup(Kind::ALL[kind]).start();
    let World { servers, .. } = world(&registry, &[""; SERVERS]);
    let history = &[Writer::new(&wanted.record, &about())];
    let tags = &Tags::of(&[SEGMENT]);
    let posts = &[(Some(0), "postgres", 0), (Some(1), "postgres", 0), (Some(2), "postgres", 0)];
    let mut grants = Vec::new();
    // Since when a registry counts that is trusted: it knows of no grant, and itself grants all time there is.
    let mut since = i64::MIN;
    let of = |registry: &Server, since: i64| {
        let all = witness::grants(registry, "default").into_iter();
        all.map(move |grant| Grant { from: grant.from.max(since), until: grant.until.max(since), ..grant })
    };
    let cast = Cast { servers: &servers, posts, tags, taking: Taking::USUAL, making: Making::Any };
    play(wanted, history, &cast, |stage| {
        stage.sleep(2000, 5000);
        let post = stage.any_post();
        stage.disturb(post);
        kind = (kind + 1) % Kind::ALL.len();
        let trusts = stage.random.bool();
        let next = witness::setup(Kind::ALL[kind]).start();
        let name = format!("SwitchedTo{:?}{}", Kind::ALL[kind], if trusts { "Trusted" } else { "" });
        stage.fault(&name, |stage| {
            let (record, begin) = (stage.record(), stage.record().now());
            // 1. The witness reads what was granted; then nobody reaches it, and it does not come back.
            let stops = stage.random.bool();
            let stop_all = |stage: &mut Stage| {
                for server in &servers {
                    let how = stage.any_stop();
                    server.stop(how);
                }
            };
            // 2. The servers are stopped, or all leases are over.
            if stops {
                stop_all(stage);
                grants.extend(of(&registry, since));
                registry.kill();
                // Where they are to trust the new one, no lease of one that was killed may go on.
                thread::sleep(crate::seconds(if trusts { WINDOW } else { 0 }));
            } else {
                registry.kill();
                // One that was restarted meanwhile knows of none, but the one from before may go on as long as its window.
                let is_without = "SELECT lease IN ('none', 'expired') FROM snowflake_status()";
                for server in &servers {
                    wait_for("the lease is over", || value(&mut server.client(), is_without));
                }
                thread::sleep(crate::seconds(if trusts { WINDOW } else { 0 }));
                stop_all(stage);
                registry.start();
                grants.extend(of(&registry, since));
                registry.kill();
            }
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
            since = if trusts { i64::try_from(now).unwrap() } else { i64::MIN };
            // 3. Set on all, and restarted. 4. Or trusted.
            let url = next.url();
            for server in &servers {
                server.append("postgresql.auto.conf", &format!("\npg_snowflake.registry = '{url}'\n"));
                server.start();
            }
            if trusts {
                for server in &servers {
                    server.reload(&[("pg_snowflake.registry_trusted", "on")]);
                }
            }
            (0..SERVERS).for_each(|post| stage.is_up(post));
            servers.iter().for_each(makes_ids);
            witness::begin(&next);
            for server in servers.iter().filter(|_| trusts) {
                server.reload(&[("pg_snowflake.registry_trusted", "off")]);
            }
            (0..SERVERS).for_each(|post| record.trouble(Trouble::Down, stage.line(post), begin));
            record.trouble(Trouble::Unsafe, None, begin);
            let above = record.highest_number() + 1;
            create_tag(&servers[0], SEGMENT, &format!(", {above}"));
            record.trouble(Trouble::NoTag, None, begin);
            registry = next;
        });
        (0..SERVERS).for_each(|post| stage.take_id(post));
    });
    grants.extend(of(&registry, since));
    history[0].grants(&grants);
}
