//! A server that was restored from a backup or a dump, or upgraded, keeps the promise, too: of all IDs that were ever
//! given or stored, none is given twice.
//!
//! A copy of a database knows what was in it at one moment. So the promise has two halves, and each test divides the
//! life of the old server in two at the moment of its copy:
//!
//! * IDs given *before* that moment are never given again, whatever the new server's clock says: they are below the
//!   reservation, which the copy has. Tests that set the clock back count these IDs, those that the new server has
//!   stored, and those that it gives.
//! * IDs given *after* that moment left no trace in the copy. Only the clock can tell the new server that time has
//!   passed, so it must be right; and the old server must be gone, as it has the same worker ID. Tests with the clock
//!   right count all IDs. Where the clock is back, IDs that the old server gave after the moment are not counted: it
//!   went on just above the reservation, and so does the new server.

use snowflake_test::check::refused;
use snowflake_test::dump::{Dump, Format};
use snowflake_test::load::{self, Record, TABLE};
use snowflake_test::programs::output;
use snowflake_test::query::{self, NEXT, batch};
use snowflake_test::{Cluster, Installation, Options, Stop, check, millis, run, value};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

fn options() -> Options {
    Cluster::options().patient()
}

// The old server and the new one.

/// What a server gave under a load.
struct Given {
    record: Record,
    began: Instant,
    /// The last ID, above all others.
    last: i64,
}

/// The life of an old server, before the moment of the copy and after it.
struct Past {
    before: Given,
    after: Given,
}

/// What the new server's clock says.
#[derive(Clone, Copy)]
enum Clock {
    Right,
    Back,
}

/// Stores an ID, once the server makes them.
fn next(cluster: &Cluster) -> i64 {
    cluster.retry(|client| Ok(client.query_one("INSERT INTO stored (session) VALUES (-1) RETURNING id", &[])?.get(0)))
}

/// A load while this runs.
fn load(cluster: &Cluster, during: impl FnOnce()) -> Given {
    let began = Instant::now();
    let ((), record) = load::run_during(6, || cluster, during);
    Given { record, began, last: next(cluster) }
}

/// Starts the new server, has it give IDs, and counts.
fn go_on(new: &Cluster, clock: Clock, past: Past) {
    match clock {
        Clock::Right => go_on_with_the_clock_right(new, past),
        Clock::Back => {
            new.step_clock("-60s");
            new.start();
            go_on_behind(new, past.before);
        }
    }
}

fn go_on_with_the_clock_right(new: &Cluster, Past { before, after }: Past) {
    let mut record = before.record;
    record.add(after.record);
    // The old server may have been ahead of the clock by its burst, which is 100 ms.
    thread::sleep(millis(150));
    new.start();
    first_is_above(new, after.last);
    record.add(load(new, || thread::sleep(millis(700))).record);
    count(&record, new);
}

/// The new server is up, its clock is 60 s back.
fn go_on_behind(new: &Cluster, before: Given) {
    let mut record = before.record;
    first_is_above(new, before.last);
    record.add(load(new, || thread::sleep(millis(500))).record);
    // Over the time in which the old server gave IDs: without a reservation, the same ones would be given again.
    new.step_clock(&format!("-{}s", before.began.elapsed().as_secs() + 1));
    record.add(load(new, || thread::sleep(millis(1500))).record);
    count(&record, new);
}

fn first_is_above(new: &Cluster, last: i64) {
    let first = next(new);
    let query = "SELECT coalesce(max(id), 0) FROM stored WHERE id <> $1";
    let stored: i64 = new.client().query_one(query, &[&first]).unwrap().get(0);
    check::rising(&[last, first]);
    check::rising(&[stored, first]);
}

fn count(record: &Record, new: &Cluster) {
    let count = record.check(&[new]);
    // Enough for a repetition to show, and as many as a busy machine makes.
    assert!(count > 1_000, "{count}");
    assert!(record.refused.is_empty(), "{:?}", record.refused);
}

// Base backup.

/// Fills an empty place with a copy of a server under load. The copy is of the moment when the backup ends, or of one
/// shortly before. So one load ends while files are still being copied, and the next begins before the end.
fn back_up_under_load(primary: &Cluster, copy: &Cluster) -> Past {
    thread::scope(|scope| {
        // There are 20 MB and more, so this takes five seconds: longer than the first load takes on a slow machine.
        let backup = scope.spawn(|| copy.copy_from(primary, &["--max-rate=4M"]));
        let before = load(primary, || {
            let copying =
                "SELECT EXISTS (SELECT FROM pg_stat_progress_basebackup WHERE phase = 'streaming database files')";
            check::wait_for("files are copied", || {
                assert!(!backup.is_finished(), "the backup was over too soon");
                value(&mut primary.client(), copying)
            });
            thread::sleep(millis(700));
        });
        assert!(!backup.is_finished(), "the backup was over too soon");
        let after = load(primary, || {
            backup.join().unwrap();
            thread::sleep(millis(300));
        });
        Past { before, after }
    })
}

fn base_backup(clock: Clock) {
    let primary = options().start();
    primary.client().batch_execute(TABLE).unwrap();
    let copy = Cluster::empty(Installation::under_test(), true);
    let past = back_up_under_load(&primary, &copy);
    primary.stop(Stop::Kill);
    go_on(&copy, clock, past);
    assert!(copy.log().contains("The server was recovered from a backup."), "{}", copy.log());
}

#[test]
fn a_base_backup_goes_on_with_the_clock_right() {
    base_backup(Clock::Right);
}

#[test]
fn a_base_backup_goes_on_with_the_clock_back() {
    base_backup(Clock::Back);
}

// Recovery to a point in time.

fn recover_to_a_point_in_time(clock: Clock) {
    // The server's commands run in its data directory. The archive is beside it.
    let archive = "archive_command = 'mkdir -p ../archive && cp %p ../archive/%f'";
    let primary = options().set("archive_mode = on").set(archive).start();
    primary.client().batch_execute(TABLE).unwrap();
    let restored = Cluster::empty(Installation::under_test(), true);
    restored.copy_from(&primary, &[]);
    let before = load(&primary, || thread::sleep(millis(700)));
    primary.client().batch_execute("SELECT pg_create_restore_point('here')").unwrap();
    let after = load(&primary, || thread::sleep(millis(700)));
    // This archives what is not archived yet.
    primary.stop(Stop::Fast);

    let restore = format!("restore_command = 'cp {}/archive/%f %p'", primary.socket().display());
    let target = "recovery_target_name = 'here'\nrecovery_target_action = 'promote'";
    restored.append("postgresql.auto.conf", &format!("\n{restore}\n{target}\n"));
    restored.append("recovery.signal", "");
    let last_before = before.last;
    go_on(&restored, clock, Past { before, after });
    let log = restored.log();
    assert!(log.contains("recovery stopping at restore point \"here\""), "{log}");
    assert!(log.contains("The server was recovered from a backup."), "{log}");
    let query = "SELECT count(*) FROM stored WHERE id = $1";
    assert_eq!(
        restored.client().query_one(query, &[&last_before]).unwrap().get::<_, i64>(0),
        1,
        "it stopped too early"
    );
}

#[test]
fn a_recovery_to_a_point_in_time_goes_on_with_the_clock_right() {
    recover_to_a_point_in_time(Clock::Right);
}

#[test]
fn a_recovery_to_a_point_in_time_goes_on_with_the_clock_back() {
    recover_to_a_point_in_time(Clock::Back);
}

// Dump and restore.

/// IDs that were given before the dump are counted. The load during the dump shows that its rows come with a
/// reservation that covers them.
fn dump_and_restore(format: Format) {
    let old = options().start();
    old.client().batch_execute(TABLE).unwrap();
    let before = load(&old, || thread::sleep(millis(700)));
    let mut dump = None;
    load(&old, || dump = Some(Dump::new(&old, "postgres", format)));
    old.stop(Stop::Fast);

    let new = options().create();
    new.step_clock("-8s");
    new.start();
    dump.unwrap().restore(&new, "postgres");
    go_on_behind(&new, before);
}

/// The copy of the reservation is written before the claim that needs it, and not only at the next one: a dump just
/// after the claim has it.
#[test]
fn a_dump_just_after_a_claim_goes_on_above_it() {
    let (old, new) = (options().start(), options().create());
    old.client().batch_execute(TABLE).unwrap();
    let mut dumps = Vec::new();
    for name in ["first", "second"] {
        // Longer than a reservation lasts, so that the claim needs another.
        thread::sleep(millis(1300));
        let last = next(&old);
        dumps.push((name, last, Dump::new(&old, "postgres", Format::Plain)));
    }
    old.stop(Stop::Fast);

    new.step_clock("-8s");
    new.start();
    for (name, last, dump) in dumps {
        new.client().batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        dump.restore(&new, name);
        let first = query::next(&mut new.client_of("postgres", name));
        assert!(first > last, "{name}: {first} comes after {last}");
    }
}

#[test]
fn a_custom_dump_is_restored_with_the_clock_back() {
    dump_and_restore(Format::Custom);
}

#[test]
fn a_plain_dump_is_restored_with_the_clock_back() {
    dump_and_restore(Format::Plain);
}

// Layouts.

const OTHER_LAYOUT: &str = "timestamp=41 worker=9 sequence=13";
const SERVER_LAYOUT: &str = "SELECT snowflake_server_layout()";
const LAYOUT: &str = "SELECT snowflake_database_layout()";

/// The line for postgresql.conf, where the last such line counts.
fn layout_line(layout: &str) -> String {
    format!("pg_snowflake.layout = '{layout}'\n")
}

/// Restarts a server with another layout.
fn restart_with(cluster: &Cluster, layout: &str) {
    cluster.stop(Stop::Fast);
    cluster.append("postgresql.conf", &layout_line(layout));
    cluster.start();
}

fn text(cluster: &Cluster, query: &str) -> String {
    value(&mut cluster.client(), query)
}

fn many(cluster: &Cluster) -> Vec<i64> {
    batch(&mut cluster.client(), 1000)
}

/// All ways to make an ID are refused, with both layouts in the detail.
fn making_is_refused(cluster: &Cluster, server_layout: &str, database_layout: &str) {
    let mut client = cluster.client();
    for query in [NEXT, "SELECT snowflake_next(5)"] {
        let error = refused(&mut client, query, "55000");
        assert_eq!(error.message(), "the layout of this server is not the layout of this database");
        let detail =
            format!("The server makes IDs of \"{server_layout}\", the database has IDs of \"{database_layout}\".");
        assert_eq!(error.detail(), Some(detail.as_str()));
    }
}

fn adopting_is_refused(cluster: &Cluster) {
    let before = text(cluster, LAYOUT);
    let error = refused(&mut cluster.client(), "SELECT snowflake_adopt_layout()", "55000");
    assert_eq!(error.message(), "IDs were made in this database already");
    assert_eq!(text(cluster, LAYOUT), before, "nothing has changed");
}

/// A server of another layout makes no IDs in a restored database, and decodes those that are there by their own
/// layout.
#[test]
fn a_dump_is_read_but_not_continued_by_a_server_of_another_layout() {
    let old = options().start();
    let mut list = many(&old);
    let old_layout = text(&old, SERVER_LAYOUT);
    old.client()
        .batch_execute(
            "CREATE TABLE kept AS SELECT id FROM snowflake_next(10) id; \
             CREATE INDEX by_time ON kept (snowflake_timestamp(id))",
        )
        .unwrap();
    let times = "SELECT string_agg(snowflake_timestamp(id)::text, ' ' ORDER BY id) FROM kept";
    let before = text(&old, times);
    let dump = Dump::new(&old, "postgres", Format::Custom);

    let new = options().set(&layout_line(OTHER_LAYOUT)).create();
    new.start();
    // A session that has read the record before the restore.
    let mut session = new.client();
    session.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let new_layout: String = value(&mut session, LAYOUT);
    dump.restore(&new, "postgres");
    assert!(old_layout.starts_with("timestamp=41 worker=10 sequence=12"), "{old_layout}");
    assert!(new_layout.starts_with(OTHER_LAYOUT), "{new_layout}");
    assert_eq!(text(&new, LAYOUT), old_layout, "the restore has replaced what was on record");
    making_is_refused(&new, &text(&new, SERVER_LAYOUT), &old_layout);
    adopting_is_refused(&new);
    for client in [&mut session, &mut new.client()] {
        assert_eq!(value::<String>(client, times), before);
        client.batch_execute("SET enable_seqscan = off").unwrap();
        let by_index = "SELECT count(*) FROM kept WHERE snowflake_timestamp(id) > now() - interval '1 hour'";
        assert_eq!(value::<i64>(client, by_index), 10);
    }

    // What the hint says.
    restart_with(&new, "default");
    list.extend(many(&new));
    check::rising(&list);
}

#[test]
fn a_layout_is_adopted_before_the_first_id_only() {
    let cluster = options().start();
    let old_layout = text(&cluster, SERVER_LAYOUT);
    let unused = Dump::new(&cluster, "postgres", Format::Custom);
    restart_with(&cluster, OTHER_LAYOUT);
    let new_layout = text(&cluster, SERVER_LAYOUT);
    // The session that was refused goes on after the adoption.
    let mut session = cluster.client();
    refused(&mut session, NEXT, "55000");
    making_is_refused(&cluster, &new_layout, &old_layout);
    assert_eq!(text(&cluster, "SELECT snowflake_adopt_layout()"), new_layout);
    let mut list = vec![query::next(&mut session)];
    list.extend(many(&cluster));
    adopting_is_refused(&cluster);

    // A change back is refused likewise. When it is undone, IDs go on.
    restart_with(&cluster, "default");
    making_is_refused(&cluster, &old_layout, &new_layout);
    adopting_is_refused(&cluster);
    cluster.step_clock("-60s");
    restart_with(&cluster, OTHER_LAYOUT);
    list.extend(many(&cluster));
    check::rising(&list);

    // A dump without IDs does not fix the layout.
    let restored = options().set(&layout_line(OTHER_LAYOUT)).create();
    restored.start();
    unused.restore(&restored, "postgres");
    making_is_refused(&restored, &new_layout, &old_layout);
    assert_eq!(text(&restored, "SELECT snowflake_adopt_layout()"), new_layout);
    assert_eq!(text(&restored, LAYOUT), new_layout);
    check::rising(&many(&restored));
}

#[test]
fn only_a_superuser_adopts_a_layout() {
    let cluster = options().start();
    cluster.client().batch_execute("CREATE ROLE nobody LOGIN").unwrap();
    let mut nobody = cluster.client_of("nobody", "postgres");
    for query in [
        "SELECT snowflake_adopt_layout()",
        "SELECT snowflake_rewind(0)",
        "SELECT setval('_snowflake.reservation', 1)",
        "SELECT setval('_snowflake.layout', 1)",
    ] {
        refused(&mut nobody, query, "42501");
    }
    assert_eq!(text(&cluster, "SELECT snowflake_adopt_layout()"), text(&cluster, SERVER_LAYOUT));
    assert!(nobody.query_one(NEXT, &[]).is_ok());
}

// Upgrade.

/// The newest PostgreSQL, with pg_snowflake in it.
fn newest() -> Installation {
    let pg_config = std::env::var("NEWEST_PG_CONFIG").expect(
        "NEWEST_PG_CONFIG must be the pg_config of the PostgreSQL to upgrade to: bring it by \
         `scripts/fetch-postgres 19 DIR`, and run `make install PG_CONFIG=...` for it",
    );
    Installation::of(&pg_config)
}

fn upgrade(old: &Cluster, new: &Cluster) {
    let mut upgrade = newest().program("pg_upgrade", &[]);
    upgrade.arg("--old-bindir").arg(Installation::under_test().bin()).arg("--new-bindir").arg(newest().bin());
    upgrade.arg("--old-datadir").arg(old.data()).arg("--new-datadir").arg(new.data());
    upgrade.args(["--username=postgres", "--no-sync", "--socketdir"]).arg(new.socket());
    // It writes files where it runs.
    let done = output(upgrade.current_dir(new.socket()));
    assert!(done.success, "{}\n{}", done.output, logged_errors(&new.data().join("pg_upgrade_output.d")));
}

/// The lines of pg_upgrade's many files that say what went wrong.
fn logged_errors(directory: &Path) -> String {
    run(Command::new("sh").args(["-c", r#"grep -r -h -i "error:" "$0" || echo "no error in $0""#]).arg(directory))
}

/// PostgreSQL 15.20 keeps the version of a column among the column's options. 18.6, which is older, takes it for an
/// option that it does not know: no table at all can be upgraded to it. A column without a version is one that was made
/// before 15.20.
fn forget_versions_of_columns(old: &Cluster) {
    let query = "UPDATE pg_attribute SET attoptions = NULL WHERE attoptions::text LIKE '{pg_attver=%'";
    old.client().execute(query, &[]).unwrap();
}

#[test]
#[ignore = "needs NEWEST_PG_CONFIG"]
fn an_upgraded_server_goes_on_with_the_clock_back() {
    // pg_upgrade wants both clusters to be alike. Before PostgreSQL 18, initdb makes them without checksums.
    let new = options().on(newest());
    let new = if Installation::under_test().major() < 18 { new.initdb("--no-data-checksums") } else { new };
    let new = new.create();
    let old = options().start();
    old.client().batch_execute(TABLE).unwrap();
    let before = load(&old, || thread::sleep(millis(700)));
    old.client()
        .batch_execute(
            "CREATE TABLE typed (id snowflake_id PRIMARY KEY DEFAULT snowflake_next(), ids snowflake_id[], CHECK (id > 5));
             INSERT INTO typed (ids) VALUES ('{5}')",
        )
        .unwrap();
    let floor = reservation(&old);
    forget_versions_of_columns(&old);
    old.stop(Stop::Fast);

    upgrade(&old, &new);
    new.step_clock("-8s");
    new.start();
    assert_eq!(reservation(&new), floor);
    assert!(floor.1, "IDs were made");
    let typed = "SELECT json_build_array(id, ids)::text = format('[\"%s\", [\"5\"]]', id) FROM typed WHERE id > 5";
    assert!(value::<bool>(&mut new.client(), typed), "values keep their type");
    go_on_behind(&new, before);
}

fn reservation(cluster: &Cluster) -> (i64, bool) {
    let row = cluster.client().query_one("SELECT last_value, is_called FROM _snowflake.reservation", &[]).unwrap();
    (row.get(0), row.get(1))
}
