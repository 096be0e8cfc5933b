//! The extension in SQL on a primary and its standby. What its promise is about are rows that are committed, so the load commits all it makes.

use super::super::load::{Making, Tags, Taking};
use super::super::{Wanted, true_time, with_stepped_clocks};
use super::stage::{Cast, Stage, play};
use crate::dump::psql;
use crate::history::{About, Event, Place, Trouble, Writer};
use crate::hosted::{self, DATABASE, server_of};
use crate::load::TABLE;
use crate::programs::run;
use crate::{Cluster, Stop, check, millis};
use postgres::error::SqlState;
use std::thread;

/// Few IDs in a tick, so that those of a second ago are soon made again.
const LAYOUT: &str = "timestamp=41 worker=16 sequence=3";
const WORKER: u64 = 1;
/// By how much a clock is behind or ahead at most, in seconds. IDs are at most 600 s ahead of it.
const BEHIND: f64 = 60.0;
const AHEAD: f64 = 4.0;

fn any_offset(stage: &mut Stage) -> f64 {
    match stage.random.u32(..4) {
        0 => 0.0,
        1 => stage.random.f64() * AHEAD,
        _ => -stage.random.f64() * BEHIND,
    }
}

fn step_clock(stage: &Stage, server: &Cluster, offset: f64) {
    let begin = stage.record().now();
    server.step_clock(&format!("{offset:+.3}s"));
    stage.record().trouble(Trouble::Clock, stage.line(0), begin);
}

/// Waits until rows are inserted again.
fn inserts(stage: &Stage) {
    check::wait_for("rows are inserted", || {
        let insert = "INSERT INTO stored (session) SELECT -1 WHERE snowflake_next() = 0";
        stage.server(0).try_client_of(DATABASE).is_ok_and(|mut client| client.execute(insert, &[]).is_ok())
    });
}

/// Sessions are cancelled, or ended, one after the other, at any point of their calls.
fn interrupt(stage: &mut Stage, function: &str, trouble: Trouble) {
    let mut client = stage.server(0).client();
    let begin = stage.record().now();
    for _ in 0..stage.random.u32(5..60) {
        let call = format!(
            "SELECT {function}(pid) FROM pg_stat_activity WHERE datname = '{DATABASE}' AND backend_type = 'client backend' \
             ORDER BY random() LIMIT 1"
        );
        client.batch_execute(&call).unwrap();
        thread::sleep(millis(stage.random.u64(..20)));
    }
    stage.record().trouble(trouble, stage.line(0), begin);
}

/// The primary is killed, and its synchronous standby takes over with another clock; the old primary follows it.
fn fail_over(stage: &mut Stage) {
    let (old, history) = (stage.place(0), stage.record());
    let (primary, standby) = (&stage.servers[old.index], &stage.servers[1 - old.index]);
    let begin = history.now();
    primary.reload(&[("synchronous_standby_names", "*")]);
    // Calls that began before may not know of it, and the standby may not have their rows.
    drop(stage.hold(0));
    standby.catch_up_with(primary);
    history.trouble(Trouble::Standby, Some(old.line), begin);
    stage.sleep(0, 1500);
    let begin = history.now();
    primary.stop(Stop::Kill);
    let offset = any_offset(stage);
    step_clock(stage, standby, offset);
    standby.promote();
    stage.set_place(0, Place { index: 1 - old.index, node: stage.nodes[1 - old.index], ..old });
    stage.is_up(0);
    history.trouble(Trouble::Down, Some(old.line), begin);
    primary.rewind_to(standby);
    primary.append("postgresql.auto.conf", "\nsynchronous_standby_names = ''\n");
    primary.start();
    primary.catch_up_with(standby);
}

/// A dump of the record is restored into its own database later. Calls fail until the worker ID is given again.
fn set_back(stage: &mut Stage) {
    let server = stage.server(0);
    let file = server.new_file("record.sql");
    let mut dump = server.program("pg_dump");
    dump.args(["--username=owner", "--data-only", "--schema=_snowflake", "--dbname", DATABASE, "--file"]).arg(&file);
    run(&mut dump);
    stage.sleep(500, 3000);
    // With the clock behind, IDs would come again.
    let offset = -BEHIND;
    step_clock(stage, server, offset);
    let begin = stage.record().now();
    run(psql(server, "owner", DATABASE).args(["--set=ON_ERROR_STOP=1", "--single-transaction", "--file"]).arg(&file));
    stage.sleep(200, 1000);
    let configure = format!("SELECT snowflake_configure({WORKER})");
    let mut client = server.client_of("owner", DATABASE);
    // As its hint says, where a call waits for the clock for longer than this one waits for it.
    let is_configured = (0..12).any(|_| match client.batch_execute(&configure) {
        Ok(()) => true,
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => false,
        Err(error) => panic!("{error:?}"),
    });
    assert!(is_configured, "a transaction was open for a minute");
    inserts(stage);
    stage.record().trouble(Trouble::Restored, stage.line(0), begin);
    stage.record().trouble(Trouble::NoWorker, stage.line(0), begin);
}

/// All of it at random.
pub(super) fn a_storm(wanted: &Wanted) {
    // Each failover begins a file of the WAL, and the servers write little: of 16 MB, an hour of them would fill the memory that they are in.
    let options = hosted::options().patient().initdb("--wal-segsize=1");
    let primary = server_of(with_stepped_clocks(options), LAYOUT);
    primary.client_of("owner", DATABASE).batch_execute(TABLE).unwrap();
    let standby = primary.standby();
    let servers = [primary, standby];
    let about = About { worker_bits: 16, sequence_bits: 3, tick: 1000, epoch: 1_704_067_200_000_000, window: 0 };
    let history = &[Writer::new(&wanted.record, &about)];
    let (tags, mut is_new) = (&Tags::of(&[]), true);
    let posts = &[(Some(0), DATABASE, 0)];
    let cast = Cast { servers: &servers, posts, tags, taking: Taking::USUAL, making: Making::Committed };
    play(wanted, history, &cast, |stage| {
        if std::mem::take(&mut is_new) {
            stage.nodes.iter().for_each(|node| stage.record().event(&Event::Worker(*node, WORKER)));
        }
        stage.sleep(100, 1500);
        let how = stage.any_stop();
        match stage.random.u32(..9) {
            0 | 1 => stage.fault("Restarted", |stage| {
                let offset = any_offset(stage);
                stage.restart_after(0, how, |server| server.step_clock(&format!("{offset:+.3}s")));
            }),
            2 => stage.fault("ClockStepped", |stage| {
                let offset = any_offset(stage);
                step_clock(stage, stage.server(0), offset);
            }),
            3 => stage.fault("SessionKilled", |stage| {
                let begin = stage.record().now();
                stage.server(0).crash_any_session();
                stage.is_up(0);
                stage.record().trouble(Trouble::Crash, stage.line(0), begin);
            }),
            4 | 5 => stage.fault("Cancelled", |stage| interrupt(stage, "pg_cancel_backend", Trouble::Cancelled)),
            6 => stage.fault("Terminated", |stage| interrupt(stage, "pg_terminate_backend", Trouble::Crash)),
            7 => stage.fault("FailedOver", fail_over),
            _ => stage.fault("SetBack", set_back),
        }
        inserts(stage);
    });
    let highest = about.tick_of(history[0].highest()) as f64 * 1e-3 + about.epoch as f64 * 1e-6;
    assert!(highest - true_time() < 600.0 + AHEAD, "an ID is ahead by {} s", highest - true_time());
}
