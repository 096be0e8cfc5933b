//! What happens to servers: they move to another namespace, go back to a point in time, are promoted beside an old primary that comes back; databases
//! are copied, tags end, and there are more tags than places.

use super::super::load::{self, Making, SEGMENT, Tags, Taking};
use super::super::{Wanted, Watch, witness};
use super::stage::{Cast, Stage, play};
use super::world::{World, about, create_tag, makes_ids, options, world};
use crate::check::wait_for;
use crate::directories::server_directory;
use crate::history::{Event, Place, Reader, Run, Trouble, Writer};
use crate::load::{End, TABLE};
use crate::programs::{run, server_user};
use crate::registries::Kind;
use crate::{Cluster, Installation, Stop, millis, seconds, value};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Instant;

/// The posts of so many servers, each with the first record.
fn posts<const N: usize>() -> [(Option<usize>, &'static str, usize); N] {
    std::array::from_fn(|number| (Some(number), "postgres", 0))
}

/// The record of a scenario that has one.
fn record(wanted: &Wanted) -> [Writer; 1] {
    [Writer::new(&wanted.record, &about())]
}

// Two namespaces.

/// Two namespaces on one registry, with the same tag; and a server that moves from one to the other and back. What it makes in one is
/// distinct from all that is made there, and its own IDs are from all that it has made in either. There is a record for each.
pub(super) fn a_server_moves_between_namespaces(kind: Kind, wanted: &Wanted) {
    const NAMES: [&str; 2] = ["first", "second"];
    const MOVES: usize = 2;
    let registry = witness::setup(kind).start();
    let namespace = |name: &str| format!("pg_snowflake.registry_namespace = '{name}'");
    let [first, second] = NAMES.map(namespace);
    let World { servers, .. } = world(&registry, &[&first, &second, &first]);
    create_tag(&servers[1], SEGMENT, "");
    let histories = NAMES.map(|name| Writer::new(&wanted.record.join(name), &about()));
    // The server that moves has a post in each.
    let posts =
        [(Some(0), "postgres", 0), (Some(1), "postgres", 1), (Some(MOVES), "postgres", 0), (None, "postgres", 1)];
    let tags = &Tags::of(&[SEGMENT]);
    let cast = Cast { servers: &servers, posts: &posts, tags, taking: Taking::USUAL, making: Making::Any };
    // At which of its posts it is, and since when it is not at the other.
    let (mut here, mut away) = (MOVES, None);
    play(wanted, &histories, &cast, |stage| {
        stage.sleep(500, 3000);
        for post in [0, 1, here] {
            if stage.random.u32(..3) == 0 {
                stage.disturb(post);
            }
        }
        let (from, to) = (here, if here == MOVES { MOVES + 1 } else { MOVES });
        let name = NAMES[to - MOVES];
        let how = stage.any_stop();
        stage.fault(&format!("MovedTo{name}"), |stage| {
            let server = &servers[MOVES];
            let left = stage.history(from).now();
            // In the middle of calls, which fail. None of them is held until it has ended.
            server.stop(how);
            stage.gate(from).close();
            server.append("postgresql.auto.conf", &format!("\n{}\n", namespace(name)));
            let begin = stage.history(to).now();
            server.start();
            if stage.place(to).line == u32::MAX {
                let place = Place { index: MOVES, node: stage.nodes[MOVES], line: stage.history(to).line() };
                stage.set_place(to, place);
            }
            stage.is_up(to);
            // Its line in the record that it comes back to was interrupted.
            stage.history(to).trouble(Trouble::Down, stage.line(to), away.unwrap_or(begin));
            away = Some(left);
            stage.gate(to).open();
        });
        here = to;
        for post in [0, 1, here] {
            stage.take_id(post);
        }
    });
    if let Some(left) = away {
        let other = if here == MOVES { MOVES + 1 } else { MOVES };
        let history = &histories[other - MOVES];
        // In each record it is the second line that began.
        history.trouble(Trouble::Down, Some(1), left);
    }
    for (name, history) in NAMES.iter().zip(&histories) {
        history.grants(&witness::grants(&registry, name));
    }
    let mut own = Vec::new();
    for name in NAMES {
        let record = wanted.record.join(name);
        for session in 0.. {
            let Some(calls) = Reader::open(&record, session).unwrap() else { break };
            let calls = calls.map(Result::unwrap).filter(|call| call.node as usize == MOVES);
            own.extend(calls.flat_map(|call| call.answer.unwrap_or_default()));
        }
    }
    own.sort_unstable();
    let twice = own.windows(2).find(|pair: &&[Run]| pair[1].first <= pair[0].last);
    assert!(twice.is_none(), "the server that moves has made IDs twice: {twice:?}");
}

// A point in time.

/// Copies files, which the servers' user owns.
fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").arg("-a").arg(from).arg(to));
}

/// A server goes back to a point in time before it took its first number and made its first ID, again and again, beside another one.
pub(super) fn a_server_goes_back_in_time(kind: Kind, wanted: &Wanted) {
    let registry = witness::setup(kind).start();
    let (archive, backup) = (server_directory("archive-"), Cluster::empty(Installation::under_test(), false));
    let archive = archive.path().display().to_string();
    let archiving = format!(
        "archive_mode = on\narchive_command = 'test -f {archive}/%f || cp %p {archive}/%f'\n\
         restore_command = 'cp {archive}/%f %p'"
    );
    let url = registry.url();
    let back = options(&url).set(&archiving).start();
    back.client().batch_execute(TABLE).unwrap();
    backup.copy_from(&back, &[]);
    let point = "SELECT pg_create_restore_point('before'); SELECT pg_switch_wal(); CHECKPOINT";
    back.client().batch_execute(point).unwrap();
    let beside = options(&url).start();
    beside.client().batch_execute(TABLE).unwrap();
    let servers = [back, beside];
    servers.iter().for_each(makes_ids);
    witness::begin(&registry);
    create_tag(&servers[1], SEGMENT, "");
    let histories = record(wanted);
    let tags = &Tags::of(&[SEGMENT]);
    let cast = Cast { servers: &servers, posts: &posts::<2>(), tags, taking: Taking::USUAL, making: Making::Any };
    play(wanted, &histories, &cast, |stage| {
        stage.sleep(1000, 4000);
        for post in 0..2 {
            stage.disturb(post);
        }
        let how = stage.any_stop();
        stage.fault("WentBack", |stage| {
            let (server, old, begin) = (&servers[0], stage.place(0), stage.record().now());
            stage.record().event(&Event::Ends(old.line, begin));
            server.stop(how);
            std::fs::remove_dir_all(server.data()).unwrap();
            copy(&backup.data(), &server.data());
            let target = "\nrecovery_target_name = 'before'\nrecovery_target_timeline = 'current'\n\
                          recovery_target_action = 'promote'\n";
            server.append("postgresql.auto.conf", target);
            let signal = server.data().join("recovery.signal");
            std::fs::write(&signal, "").unwrap();
            if let Some(user) = server_user() {
                run(Command::new("chown").arg(user).arg(&signal));
            }
            // It has no IDs of before.
            let line = stage.record().line();
            stage.set_place(0, Place { line, ..old });
            server.start();
            makes_ids(server);
            stage.record().trouble(Trouble::Down, Some(line), begin);
            stage.record().trouble(Trouble::Down, Some(old.line), begin);
        });
        (0..2).for_each(|post| stage.take_id(post));
    });
    histories[0].grants(&witness::grants(&registry, "default"));
}

// Databases that are copied.

/// Databases are made from a template that is in use, with tables whose defaults are an ID and a number, and from those copies others; all of them are in use at once, also
/// when the server crashes.
pub(super) fn databases_are_copied(kind: Kind, wanted: &Wanted) {
    let registry = witness::setup(kind).start();
    let World { servers, .. } = world(&registry, &["", ""]);
    servers[0].database("template");
    let both = "CREATE TABLE both_kinds (id bigint PRIMARY KEY DEFAULT snowflake_next(),
                                   number bigint NOT NULL UNIQUE DEFAULT snowflake_segment_next('soak'))";
    servers[0].client_of("postgres", "template").batch_execute(&format!("{TABLE}; {both}")).unwrap();
    let histories = record(wanted);
    let tags = &Tags::of(&[SEGMENT]);
    let posts = [(Some(0), "template", 0), (Some(0), "postgres", 0), (Some(1), "postgres", 0)];
    let cast = Cast { servers: &servers, posts: &posts, tags, taking: Taking::USUAL, making: Making::Any };
    let mut copies: Vec<String> = Vec::new();
    let mut number = 0;
    play(wanted, &histories, &cast, |stage| {
        number += 1;
        let new = format!("copy{number}");
        let from = match copies.last() {
            Some(copy) if stage.random.bool() => copy.clone(),
            _ => "template".to_owned(),
        };
        stage.fault(if from == "template" { "TemplateCopied" } else { "CopyCopied" }, |stage| {
            let held = stage.hold(0);
            let mut client = stage.server(0).client_once_up("postgres");
            let others = format!("FROM pg_stat_activity WHERE datname = '{from}'");
            client.batch_execute(&format!("SELECT pg_terminate_backend(pid) {others}")).unwrap();
            wait_for("sessions that were terminated end", || {
                value(&mut client, &format!("SELECT NOT EXISTS (SELECT {others})"))
            });
            client.batch_execute(&format!("CREATE DATABASE {new} TEMPLATE {from}")).unwrap();
            drop(held);
        });
        copies.push(new);
        // All are in use beside each other.
        let (done, progress) = (AtomicBool::new(false), stage.progress);
        thread::scope(|scope| {
            let (done, _end) = (&done, End(&done));
            for (place, copy) in copies.iter().enumerate() {
                let site = stage.site(1);
                let seed = wanted.seed.wrapping_mul(100).wrapping_add((number * 10 + place) as u64);
                scope.spawn(move || {
                    let _watch = Watch(progress);
                    load::session(&site, copy, (0, Making::Any), seed, done);
                });
                scope.spawn(move || {
                    let _watch = Watch(progress);
                    load::number_session(&site, copy, tags, Taking::USUAL, seed, done);
                });
            }
            stage.sleep(1000, 3000);
            let both_posts = |stage: &mut Stage, name: &str, how| {
                stage.fault(name, |stage| {
                    let begin = stage.record().now();
                    stage.restart_after(0, how, |_| ());
                    stage.record().trouble(Trouble::Down, stage.line(1), begin);
                });
            };
            match stage.random.u32(..5) {
                0 => both_posts(stage, "PostmasterKilled", Stop::Kill),
                1 => both_posts(stage, "StoppedFast", Stop::Fast),
                2 => stage.fault("SessionKilled", |stage| {
                    let begin = stage.record().now();
                    stage.server(0).crash_any_session();
                    stage.is_up(0);
                    (0..2).for_each(|post| stage.record().trouble(Trouble::Crash, stage.line(post), begin));
                }),
                _ => {}
            }
            // Rows with both defaults.
            for copy in copies.iter().map(String::as_str).chain(["template"]) {
                let insert = "INSERT INTO both_kinds DEFAULT VALUES RETURNING id, number";
                stage.insert_both(0, copy, insert);
            }
            stage.sleep(500, 1500);
        });
        if copies.len() > 3 {
            let old = copies.remove(0);
            let drop = format!("DROP DATABASE {old} WITH (FORCE)");
            stage.server(0).client_once_up("postgres").batch_execute(&drop).unwrap();
        }
        (0..3).for_each(|post| stage.take_id(post));
    });
    histories[0].grants(&witness::grants(&registry, "default"));
}

// Tags.

/// How many numbers a range has at most, of tags that end.
const LARGEST: u64 = 40;

/// Tags are used up while three servers hold ranges of them, and servers crash or are stopped meanwhile. All their numbers are given, but for what
/// crashes lose, and then there is an error of its own.
pub(super) fn tags_end(kind: Kind, wanted: &Wanted) {
    let registry = witness::setup(kind).start();
    let World { servers, .. } = world(&registry, &[""; 3]);
    let histories = record(wanted);
    let tags = &Tags::default();
    // One number a call: where a call fails at the end, none is lost.
    let taking = Taking { most: 1, rest: millis(2) };
    let cast = Cast { servers: &servers, posts: &posts::<3>(), tags, taking, making: Making::Any };
    let mut number = 0;
    play(wanted, &histories, &cast, |stage| {
        number += 1;
        let tag = format!("ends{number}");
        let last = stage.random.i64(200..6000);
        stage.announce(&tag, last);
        // Where an answer of the registry is lost, so is the range: how many were, nobody knows.
        let lost = || servers.iter().map(|server| server.log().matches("does not answer").count()).sum::<usize>();
        let before = lost();
        let faults = stage.fault("TagUsedUp", |stage| {
            let create = format!(", 1, {last}, smallest_range => 10, largest_range => {LARGEST}");
            create_tag(&servers[0], &tag, &create);
            tags.set(&[&tag]);
            let mut faults = 0;
            if stage.random.bool() {
                stage.sleep(0, 1500);
                let post = stage.any_post();
                let how = stage.any_stop();
                stage.fault("StoppedBeforeTheEnd", |stage| stage.restart_after(post, how, |_| ()));
                faults += 1;
            }
            let start = Instant::now();
            for post in 0..3 {
                while !stage.take_number(post, &tag) {
                    assert!(start.elapsed() < seconds(120), "{tag} does not end");
                    thread::sleep(millis(20));
                }
            }
            faults
        });
        // A crash loses two ranges, and what was claimed by the calls that it broke.
        let missing = faults * (2 * LARGEST + 8);
        if lost() == before {
            stage.record().event(&Event::Ended(tag, missing));
        }
        (0..3).for_each(|post| stage.take_id(post));
    });
    histories[0].grants(&witness::grants(&registry, "default"));
}

/// How many tags a server has places for, and how many there are.
const PLACES: usize = 6;
const TAGS: usize = 15;

/// There are more tags than places. Which have one is another set after each start and crash; the others are refused, and nothing else changes.
pub(super) fn there_are_more_tags_than_places(kind: Kind, wanted: &Wanted) {
    let registry = witness::setup(kind).start();
    let places = format!("pg_snowflake.max_segments = {PLACES}");
    let World { servers, .. } = world(&registry, &[&places, &places]);
    let names: Vec<String> = (0..TAGS).map(|number| format!("tag{number}")).collect();
    names.iter().for_each(|name| create_tag(&servers[0], name, ""));
    let histories = record(wanted);
    let tags = &Tags::of(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let taking = Taking { rest: millis(20), ..Taking::USUAL };
    let cast = Cast { servers: &servers, posts: &posts::<2>(), tags, taking, making: Making::Any };
    let mut is_new = true;
    play(wanted, &histories, &cast, |stage| {
        if std::mem::take(&mut is_new) {
            stage.nodes.iter().for_each(|node| stage.record().event(&Event::Places(*node, PLACES)));
        }
        stage.sleep(1000, 3000);
        for post in 0..2 {
            if stage.random.bool() {
                stage.disturb(post);
            }
        }
        if stage.random.u32(..3) == 0 {
            // Also when a tag that has a place is dropped, and created again.
            let name = names[stage.random.usize(..TAGS)].clone();
            stage.fault("TagDropped", |stage| {
                let begin = stage.record().now();
                stage.drop_tag(&name);
                stage.reload_all();
                stage.sleep(100, 1000);
                let post = stage.any_post();
                create_tag(stage.server(post), &name, "");
                stage.reload_all();
                stage.record().trouble(Trouble::NoTag, None, begin);
            });
        }
        (0..2).for_each(|post| stage.take_id(post));
    });
    histories[0].grants(&witness::grants(&registry, "default"));
}

// An old primary that comes back.

/// The primary is gone, or goes on; its standby is promoted and takes numbers; the old primary comes back, and takes numbers beside it. Then it
/// becomes the standby.
pub(super) fn an_old_primary_comes_back(kind: Kind, wanted: &Wanted) {
    let registry = witness::setup(kind).start();
    let World { mut servers, .. } = world(&registry, &["", ""]);
    let standby = servers[0].standby();
    servers.push(standby);
    let histories = record(wanted);
    let tags = &Tags::of(&[SEGMENT]);
    // The primary, another server, and the old primary where it is back.
    let posts = [(Some(0), "postgres", 0), (Some(1), "postgres", 0), (None, "postgres", 0)];
    let cast = Cast { servers: &servers, posts: &posts, tags, taking: Taking::USUAL, making: Making::Any };
    let (mut primary, mut standby) = (0, 2);
    play(wanted, &histories, &cast, |stage| {
        stage.sleep(500, 3000);
        let post = stage.random.usize(..2);
        stage.disturb(post);
        let old = stage.place(0);
        servers[standby].catch_up_with(&servers[primary]);
        let goes_on = stage.random.u32(..3) == 0;
        let how = stage.any_stop();
        let line = stage.fault(if goes_on { "PromotedBeside" } else { "Promoted" }, |stage| {
            let begin = stage.record().now();
            if !goes_on {
                servers[primary].stop(how);
            }
            let line = stage.record().line();
            servers[standby].promote();
            stage.set_place(0, Place { index: standby, node: stage.nodes[standby], line });
            stage.is_up(0);
            stage.record().trouble(Trouble::Down, Some(line), begin);
            if !goes_on {
                stage.record().trouble(Trouble::Down, Some(old.line), begin);
            }
            begin
        });
        stage.sleep(200, 2000);
        stage.fault("OldPrimaryBack", |stage| {
            if !goes_on {
                servers[primary].start();
                stage.record().trouble(Trouble::Down, Some(old.line), line);
            }
            stage.set_place(2, old);
            stage.is_up(2);
            stage.gate(2).open();
        });
        stage.sleep(1000, 5000);
        (0..3).for_each(|post| stage.take_id(post));
        if stage.random.bool() {
            let post = [0, 2][stage.random.usize(..2)];
            stage.disturb(post);
        }
        stage.fault("OldPrimaryFollows", |stage| {
            stage.record().event(&Event::Ends(old.line, stage.record().now()));
            let begin = stage.record().now();
            let how = stage.any_stop();
            servers[primary].stop(how);
            stage.gate(2).close();
            stage.record().trouble(Trouble::Down, Some(old.line), begin);
            servers[primary].rewind_to(&servers[standby]);
            servers[primary].start();
            servers[primary].catch_up_with(&servers[standby]);
            // Nobody stands there any more.
            stage.set_place(2, Place { line: u32::MAX, ..old });
        });
        std::mem::swap(&mut primary, &mut standby);
        (0..2).for_each(|post| stage.take_id(post));
    });
    histories[0].grants(&witness::grants(&registry, "default"));
}
