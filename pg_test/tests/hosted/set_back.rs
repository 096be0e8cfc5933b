//! Sequences of the record that a dump or `setval()` sets back: it is noticed before an ID is made again, and `snowflake_configure()` goes on
//! above the rows.

use postgres::Client;
use snowflake_test::check::{self, refused};
use snowflake_test::dump::psql;
use snowflake_test::hosted::{self, DATABASE, server_of};
use snowflake_test::load::TABLE;
use snowflake_test::programs::{output, run};
use snowflake_test::query::{batch, next};
use snowflake_test::{Cluster, Stop, hostile, millis, value};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Instant;

/// Few IDs in a tick, so that those of a second ago are soon made again.
const NARROW: &str = "timestamp=41 worker=16 sequence=3";
const SET_BACK: &str = "the record of the IDs of this database was set back";

fn owner(cluster: &Cluster) -> Client {
    cluster.client_of("owner", DATABASE)
}

fn with_table() -> Cluster {
    let cluster = server_of(hosted::options(), NARROW);
    owner(&cluster).batch_execute(TABLE).unwrap();
    fill(&cluster);
    cluster
}

/// Rows, some of them committed by themselves. One whose ID is there already would be refused.
fn fill(cluster: &Cluster) {
    let mut client = owner(cluster);
    client.batch_execute("INSERT INTO stored (session) SELECT 1 FROM generate_series(1, 500)").unwrap();
    for _ in 0..20 {
        client.batch_execute("INSERT INTO stored (session) VALUES (2)").unwrap();
        thread::sleep(millis(2));
    }
}

fn highest(cluster: &Cluster) -> i64 {
    value(&mut owner(cluster), "SELECT max(id) FROM stored")
}

/// All numbers of the record, as a dump of the data has them.
fn dump(cluster: &Cluster) -> PathBuf {
    let file = cluster.new_file("data.sql");
    let mut command = cluster.program("pg_dump");
    run(command
        .args(["--username=owner", "--data-only", "--schema=_snowflake", "--dbname", DATABASE, "--file"])
        .arg(&file));
    file
}

fn restore(cluster: &Cluster, file: &PathBuf) {
    run(psql(cluster, "owner", DATABASE).args(["--set=ON_ERROR_STOP=1", "--file"]).arg(file));
}

/// No session makes an ID, old or new, until the worker ID is given again.
fn is_noticed(cluster: &Cluster, open: &mut Client) {
    let before = highest(cluster);
    for client in [open, &mut owner(cluster)] {
        for query in ["SELECT snowflake_next()", "SELECT snowflake_next(5)", "INSERT INTO stored (session) VALUES (3)"]
        {
            let error = refused(client, query, "55000");
            assert_eq!(error.message(), SET_BACK, "{error:?}");
            assert!(error.hint().unwrap().contains("SELECT snowflake_configure(1);"), "{error:?}");
        }
    }
    owner(cluster).batch_execute("SELECT snowflake_configure(1)").unwrap();
    assert!(next(&mut owner(cluster)) > before);
    fill(cluster);
}

#[test]
fn a_dump_that_is_restored_into_its_own_database() {
    for offset in ["+0s", "-0.1s", "-20s", "-100s"] {
        let cluster = with_table();
        let mut open = owner(&cluster);
        next(&mut open);
        let file = dump(&cluster);
        fill(&cluster);
        thread::sleep(millis(200));
        fill(&cluster);
        cluster.step_clock(offset);
        restore(&cluster, &file);
        is_noticed(&cluster, &mut open);
    }
}

/// The clock is set back to shortly before the dump, so the IDs that would come again are those of the next ticks.
#[test]
fn at_the_moment_of_the_dump() {
    let cluster = with_table();
    for ahead in [5, 20, 50, 90] {
        let [mut open, mut owner] = [owner(&cluster), owner(&cluster)];
        batch(&mut open, 20);
        let dumped = Instant::now();
        let restore: String = value(
            &mut owner,
            "SELECT string_agg(format('SELECT setval(%L, %s)', format('_snowflake.%I', sequencename), last_value), '; ' ORDER BY sequencename)
                 FROM pg_sequences WHERE schemaname = '_snowflake' AND last_value IS NOT NULL",
        );
        fill(&cluster);
        cluster.step_clock(&format!("-{:.3}s", (dumped.elapsed() + millis(ahead)).as_secs_f64()));
        owner.batch_execute(&restore).unwrap();
        for _ in 0..20 {
            // In that tick itself, it is not noticed.
            match open.query_one("SELECT snowflake_timestamp(snowflake_next()) > clock_timestamp()", &[]) {
                Ok(row) => assert!(!row.get::<_, bool>(0), "an ID of the burst was made again"),
                Err(error) => assert_eq!(error.as_db_error().unwrap().message(), SET_BACK, "{error:?}"),
            }
        }
        cluster.step_clock("-100s");
        is_noticed(&cluster, &mut open);
        cluster.step_clock("+0s");
    }
}

/// After a crash, the mark looks as a dump leaves it. With the clock behind, no tick is opened that would write it anew: a call does.
#[test]
fn a_dump_after_a_crash_with_the_clock_behind() {
    for calls in [1, 40] {
        let cluster = with_table();
        cluster.stop(Stop::Kill);
        cluster.step_clock("-60s");
        cluster.start();
        let mut open = owner(&cluster);
        for _ in 0..calls {
            next(&mut open);
        }
        let file = dump(&cluster);
        fill(&cluster);
        restore(&cluster, &file);
        is_noticed(&cluster, &mut open);
    }
}

#[test]
fn sequences_that_their_owner_sets() {
    let cluster = with_table();
    let mut open = owner(&cluster);
    for (number, set) in [
        "setval('_snowflake.base', 5)",
        "setval('_snowflake.number', 1)",
        "setval('_snowflake.mark', (SELECT last_value FROM _snowflake.mark))",
    ]
    .into_iter()
    .enumerate()
    {
        next(&mut open);
        cluster.step_clock(&format!("-{}s", 10 * number));
        owner(&cluster).batch_execute(&format!("SELECT {set}")).unwrap();
        is_noticed(&cluster, &mut open);
    }
    // These do not say which IDs were made.
    let list = batch(&mut open, 50);
    owner(&cluster).batch_execute("SELECT setval('_snowflake.reservation', 5), setval('_snowflake.end', 5)").unwrap();
    check::rising(&[list, batch(&mut open, 50)].concat());
}

/// What a crash leaves, what a standby has, and what `pg_upgrade` writes back, was not set back.
#[test]
fn crashes_and_upgrades_are_none() {
    let cluster = with_table();
    let mut last = highest(&cluster);
    for _ in 0..4 {
        cluster.restart(Stop::Kill);
        let id = next(&mut owner(&cluster));
        assert!(id > last);
        last = id;
        fill(&cluster);
        cluster.restart(Stop::Kill);
        cluster.restart(Stop::Kill);
    }
    let standby = cluster.standby();
    cluster.stop(Stop::Kill);
    standby.promote();
    next(&mut owner(&standby));
    // As from 14 to 15, 16, ...
    let other_major =
        "SELECT setval('_snowflake.mark', last_value >> 6 << 6 | (last_value + 1) % 32) FROM _snowflake.mark";
    owner(&standby).batch_execute(other_major).unwrap();
    next(&mut owner(&standby));
    thread::sleep(millis(10));
    next(&mut owner(&standby));
    let written: bool = value(
        &mut owner(&standby),
        "SELECT log_cnt > 0 AND last_value % 64 = current_setting('server_version_num')::integer / 10000 FROM _snowflake.mark",
    );
    assert!(written);
}

/// A reservation that comes with a dump covers IDs that may be in use: no session gives one of them out, not one that has drawn its number
/// before another session has skipped them.
#[test]
fn sessions_at_once_skip_what_a_dump_reserves() {
    const SESSIONS: usize = 6;
    const ROUNDS: usize = 40;
    let cluster = server_of(hosted::options(), NARROW);
    let mut client = owner(&cluster);
    let barrier = Barrier::new(SESSIONS + 1);
    let bounds: Vec<AtomicI64> = (0..ROUNDS).map(|_| AtomicI64::new(0)).collect();
    let below = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..SESSIONS {
            scope.spawn(|| {
                let mut client = owner(&cluster);
                for bound in &bounds {
                    // Some have drawn one already.
                    next(&mut client);
                    barrier.wait();
                    let list = batch(&mut client, 10);
                    barrier.wait();
                    let bound = bound.load(Ordering::Relaxed);
                    below.lock().unwrap().extend(list.into_iter().filter(|id| *id < bound));
                }
            });
        }
        for bound in &bounds {
            // IDs may be up to ten minutes ahead.
            let reserved: i64 = value(
                &mut client,
                "SELECT setval('_snowflake.reservation', greatest(pg_sequence_last_value('_snowflake.reservation'), \
                    (extract(epoch FROM clock_timestamp()) * 1000)::bigint + 20000) + 300) + setval('_snowflake.end', 0)",
            );
            let first = format!("SELECT snowflake_min_id(to_timestamp({reserved} / 1000.0))");
            bound.store(value(&mut client, &first), Ordering::Relaxed);
            barrier.wait();
            barrier.wait();
        }
    });
    let below = below.into_inner().unwrap();
    assert!(below.is_empty(), "{} IDs of {}: {below:?}", below.len(), SESSIONS * ROUNDS * 10);
}

/// A transaction that has made an ID, or writes one that its client got before, and is still open when the record is set back: its row is not
/// seen, and must not be repeated.
#[test]
fn transactions_that_are_open_are_waited_for() {
    let cluster = server_of(hosted::options().set("max_prepared_transactions = 2"), NARROW);
    owner(&cluster).batch_execute(TABLE).unwrap();
    for end in ["COMMIT", "ROLLBACK", "PREPARE TRANSACTION 'kept'"] {
        for open in [
            "BEGIN; INSERT INTO stored (session) SELECT 4 FROM generate_series(1, 500)",
            "BEGIN; SAVEPOINT one; INSERT INTO stored (session) SELECT 4 FROM generate_series(1, 500); RELEASE one",
            // An ORM that gets IDs ahead of time.
            "CREATE TABLE got AS SELECT snowflake_next(500) AS id; BEGIN; INSERT INTO stored SELECT id, 5 FROM got",
        ] {
            let case = format!("{open}; {end}");
            cluster.step_clock("+0s");
            fill(&cluster);
            let file = dump(&cluster);
            fill(&cluster);
            owner(&cluster).batch_execute("DROP TABLE IF EXISTS got").unwrap();
            let mut writer = owner(&cluster);
            writer.batch_execute(open).unwrap();
            let pid: i32 = value(&mut writer, "SELECT pg_backend_pid()");
            restore(&cluster, &file);
            cluster.step_clock("-20s");
            if end == "ROLLBACK" {
                let error = refused(&mut owner(&cluster), "SELECT snowflake_configure(1)", "55P03");
                let detail = format!("They are of process {pid}. Their IDs could be made again.");
                assert_eq!(error.detail(), Some(&*detail), "{case}: {error:?}");
            }
            // Sessions that make IDs meanwhile fail at once: neither waits for the other.
            let above = thread::scope(|scope| {
                let waiting = scope.spawn(|| owner(&cluster).batch_execute("SELECT snowflake_configure(1)"));
                thread::sleep(millis(500));
                let error = refused(&mut owner(&cluster), "INSERT INTO stored (session) VALUES (7)", "55000");
                assert_eq!(error.message(), SET_BACK, "{case}: {error:?}");
                writer.batch_execute(end).unwrap();
                if end.starts_with("PREPARE") {
                    thread::sleep(millis(200));
                    assert!(!waiting.is_finished(), "{case}");
                    owner(&cluster).batch_execute("COMMIT PREPARED 'kept'").unwrap();
                }
                waiting.join().unwrap().unwrap();
                highest(&cluster)
            });
            assert!(next(&mut owner(&cluster)) > above, "{case}");
            fill(&cluster);
        }
    }
}

/// A prepared transaction has no process, and may be from before a restart.
#[test]
fn prepared_transactions_are_named() {
    let cluster = server_of(hosted::options().set("max_prepared_transactions = 2"), NARROW);
    owner(&cluster).batch_execute(TABLE).unwrap();
    fill(&cluster);
    let file = dump(&cluster);
    fill(&cluster);
    let prepare =
        "BEGIN; INSERT INTO stored (session) SELECT 4 FROM generate_series(1, 500); PREPARE TRANSACTION 'kept'";
    owner(&cluster).batch_execute(prepare).unwrap();
    restore(&cluster, &file);
    for stop in [None, Some(Stop::Fast), Some(Stop::Kill)] {
        if let Some(stop) = stop {
            cluster.restart(stop);
        }
        cluster.step_clock("-20s");
        let error = refused(&mut owner(&cluster), "SELECT snowflake_configure(1)", "55P03");
        assert!(error.detail().unwrap().contains("prepared transaction 'kept'"), "{error:?}");
    }
    owner(&cluster).batch_execute("COMMIT PREPARED 'kept'").unwrap();
    owner(&cluster).batch_execute("SELECT snowflake_configure(1)").unwrap();
    assert!(next(&mut owner(&cluster)) > highest(&cluster));
}

/// Its transaction sees no row that was committed since it began.
#[test]
fn a_transaction_that_does_not_see_newer_rows_is_refused() {
    let cluster = with_table();
    let file = dump(&cluster);
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        cluster.step_clock("+0s");
        let mut client = owner(&cluster);
        client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}; SELECT 1")).unwrap();
        fill(&cluster);
        // Where nothing was set back, the record is enough.
        client.batch_execute("SELECT snowflake_configure(1)").unwrap();
        client.batch_execute(&format!("COMMIT; BEGIN ISOLATION LEVEL {level}; SELECT 1")).unwrap();
        fill(&cluster);
        restore(&cluster, &file);
        cluster.step_clock("-20s");
        let error = refused(&mut client, "SELECT snowflake_configure(1)", "25001");
        assert!(error.hint().unwrap().contains("READ COMMITTED"), "{error:?}");
        client.batch_execute("ROLLBACK; SELECT snowflake_configure(1)").unwrap();
        assert!(next(&mut owner(&cluster)) > highest(&cluster), "{level}");
    }
}

/// Of a role that has a schema, and in it a function that says when somebody else runs it.
fn mallory_with_a_trap(cluster: &Cluster) -> Client {
    cluster.client().batch_execute("CREATE ROLE mallory LOGIN").unwrap();
    owner(cluster).batch_execute("CREATE SCHEMA evil; GRANT ALL ON SCHEMA evil TO mallory").unwrap();
    let mut mallory = cluster.client_of("mallory", DATABASE);
    let trap = "CREATE FUNCTION evil.trap(bigint) RETURNS bigint IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN \
                IF current_user <> 'mallory' THEN RAISE LOG 'sprung: as %', current_user; END IF; RETURN $1; END $$";
    mallory.batch_execute(trap).unwrap();
    mallory
}

/// Only tables of the caller are read.
#[test]
fn tables_of_somebody_else_are_named() {
    let cluster = with_table();
    let mut mallory = mallory_with_a_trap(&cluster);
    mallory
        .batch_execute(
            "CREATE TABLE evil.events (id bigint PRIMARY KEY DEFAULT snowflake_next(), CHECK (evil.trap(5) > 0)); \
             CREATE INDEX ON evil.events (evil.trap(7)) WHERE evil.trap(1) > 0; GRANT ALL ON evil.events TO owner; \
             CREATE TABLE evil.parts (id bigint DEFAULT snowflake_next()) PARTITION BY RANGE (id); \
             CREATE TABLE evil.part PARTITION OF evil.parts DEFAULT; CREATE INDEX ON evil.part (evil.trap(7)) WHERE evil.trap(1) > 0; \
             INSERT INTO evil.events DEFAULT VALUES; INSERT INTO evil.parts DEFAULT VALUES",
        )
        .unwrap();
    let configure = |before: &str| {
        let statements = format!("{before} SELECT snowflake_configure(1)");
        output(psql(&cluster, "owner", DATABASE).args(["--set=ON_ERROR_STOP=1", "--command", &statements])).errors
    };
    assert_eq!(configure(""), "");
    let said = configure("SELECT setval('_snowflake.base', 5);");
    assert!(said.contains("WARNING:  tables of other roles were not looked at for IDs above the record"), "{said}");
    assert!(said.contains("They are evil.events, evil.part. Reading them would run code of theirs."), "{said}");
    assert!(hostile::sprung(&cluster).is_empty(), "{:?}", hostile::sprung(&cluster));
    // What the hint says.
    let theirs: i64 = value(&mut cluster.client_of("mallory", DATABASE), "SELECT max(id) FROM evil.parts");
    cluster.step_clock("-30s");
    let hint =
        said.lines().find_map(|line| line.split_once("their rows: ")).unwrap().1.replace("...", &theirs.to_string());
    let mut client = owner(&cluster);
    client.batch_execute(&hint).unwrap();
    assert!(next(&mut client) > theirs);
}

/// Rows say how far the IDs have come, whatever type their column has.
#[test]
fn ids_in_domains_and_numerics() {
    let cluster = with_table();
    let mut client = owner(&cluster);
    client
        .batch_execute(
            "CREATE DOMAIN nested AS snowflake_id; CREATE DOMAIN filled AS bigint DEFAULT snowflake_next(); CREATE DOMAIN again AS filled;
             CREATE DOMAIN other AS again DEFAULT 7; CREATE DOMAIN number AS numeric DEFAULT snowflake_next();
             CREATE TABLE of_id (id snowflake_id DEFAULT snowflake_next()); CREATE TABLE of_nested (id nested DEFAULT snowflake_next());
             CREATE TABLE of_filled (id filled); CREATE TABLE of_again (id again); CREATE TABLE of_number (id number);
             CREATE TABLE of_numeric (id numeric DEFAULT snowflake_next()); INSERT INTO of_numeric VALUES ('NaN'), (1e30), (-1);
             CREATE TABLE heir () INHERITS (of_numeric); ALTER TABLE heir ALTER id DROP DEFAULT;
             CREATE TABLE parts (id filled) PARTITION BY RANGE (id); CREATE TABLE part PARTITION OF parts DEFAULT;
             CREATE TABLE of_other (id other); CREATE TABLE own_default (id filled DEFAULT 7); CREATE TABLE plain (id bigint)",
        )
        .unwrap();
    for table in ["of_id", "of_nested", "of_filled", "of_again", "of_number", "of_numeric", "heir", "parts"] {
        cluster.step_clock("+0s");
        let made = format!("INSERT INTO {table} SELECT snowflake_next() FROM generate_series(1, 100)");
        client.batch_execute(&made).unwrap();
        let highest = format!("SELECT max(id)::bigint FROM {table} WHERE id < 9223372036854775807");
        let highest: i64 = value(&mut client, &highest);
        client.batch_execute("SELECT setval('_snowflake.base', 5)").unwrap();
        cluster.step_clock("-20s");
        client.batch_execute("SELECT snowflake_configure(1)").unwrap();
        assert!(next(&mut owner(&cluster)) > highest, "{table}");
    }
    let looked_at: String =
        value(&mut client, "SELECT string_agg(tbl, ' ' ORDER BY tbl) FROM _snowflake.id_columns() WHERE is_read");
    assert_eq!(
        looked_at,
        "public.heir public.of_again public.of_filled public.of_id public.of_nested public.of_number public.of_numeric public.part public.stored"
    );
    // What is not looked at is named.
    client.batch_execute("CREATE TABLE of_text (id text DEFAULT snowflake_next())").unwrap();
    let statements = "SELECT setval('_snowflake.base', 5); SELECT snowflake_configure(1)";
    let said =
        output(psql(&cluster, "owner", DATABASE).args(["--set=ON_ERROR_STOP=1", "--command", statements])).errors;
    assert!(said.contains("WARNING:  columns were not looked at for IDs above the record"), "{said}");
    assert!(said.contains("They are public.of_text.id."), "{said}");
}

/// A number that no clock explains is no reason to make no IDs for years, and none to repeat it.
#[test]
fn rows_far_ahead_of_the_clock() {
    let cluster = with_table();
    let mut client = owner(&cluster);
    // Of worker 1, in partitions and inherited tables, too.
    client
        .batch_execute(
            "CREATE TABLE parts (id bigint DEFAULT snowflake_next()) PARTITION BY RANGE (id); \
             CREATE TABLE part (id bigint); ALTER TABLE parts ATTACH PARTITION part FOR VALUES FROM (0) TO (MAXVALUE); \
             INSERT INTO parts VALUES (snowflake_encode(now() + interval '1 hour', 1, 0)), (snowflake_encode(now() + interval '2 hours', 2, 0))",
        )
        .unwrap();
    let error = refused(&mut client, "SELECT snowflake_configure(1)", "55000");
    assert!(error.message().starts_with("table public.part has an ID of this worker that is 3"), "{error:?}");
    client.batch_execute("SELECT snowflake_configure(3)").unwrap();
    cluster.step_clock("+3590s");
    client.batch_execute("SELECT snowflake_configure(1)").unwrap();
    let above: bool = value(&mut client, "SELECT snowflake_next() > min(id) FROM parts");
    assert!(above);
}

/// `ALTER SEQUENCE ... RESTART` leaves a sequence without a last value. That of the mark is not noticed, and that of the worker is said.
#[test]
fn sequences_that_are_restarted() {
    let cluster = with_table();
    let mut open = owner(&cluster);
    open.batch_execute("SET statement_timeout = '20s'").unwrap();
    for (number, sequences) in
        [["base", "base"], ["number", "number"], ["base", "end"], ["base", "mark"]].iter().enumerate()
    {
        next(&mut open);
        cluster.step_clock(&format!("-{}s", 10 * number));
        for sequence in sequences {
            owner(&cluster).batch_execute(&format!("ALTER SEQUENCE _snowflake.\"{sequence}\" RESTART")).unwrap();
        }
        is_noticed(&cluster, &mut open);
    }
    owner(&cluster).batch_execute("ALTER SEQUENCE _snowflake.worker RESTART").unwrap();
    let error = refused(&mut open, "SELECT snowflake_next()", "55000");
    assert_eq!(error.message(), "this database has no worker ID");
}

/// What is read of the mark while another session writes it may look as a dump leaves it.
#[test]
fn a_mark_that_is_just_written_was_not_set_back() {
    let cluster = with_table();
    let mut client = owner(&cluster);
    let torn = "CREATE FUNCTION public.is_torn() RETURNS boolean LANGUAGE sql VOLATILE RETURN random() < 0.5 AND NOT EXISTS ( \
                SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid())";
    client.batch_execute(torn).unwrap();
    let step = "is_set_back := m.is_called AND";
    let script = hosted::script();
    assert!(script.contains(step));
    client.batch_execute(&script.replace(step, "is_set_back := public.is_torn() OR m.is_called AND")).unwrap();
    let mut list = Vec::new();
    for _ in 0..50 {
        list.push(next(&mut client));
        thread::sleep(millis(2));
    }
    check::rising(&list);
    for _ in 0..10 {
        client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT snowflake_configure(1); COMMIT").unwrap();
    }
    client.batch_execute("SELECT setval('_snowflake.base', 5)").unwrap();
    is_noticed(&cluster, &mut owner(&cluster));
}

/// Row security can hide rows from the owner of a table. That matters where only the rows say how far the IDs have come.
#[test]
fn rows_that_are_hidden_from_their_owner() {
    let cluster = with_table();
    let mut client = owner(&cluster);
    let hide = "ALTER TABLE stored ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY";
    client.batch_execute(hide).unwrap();
    client.batch_execute("SELECT snowflake_configure(1); SELECT setval('_snowflake.base', 5)").unwrap();
    let error = refused(&mut client, "SELECT snowflake_configure(1)", "42501");
    assert_eq!(error.message(), "rows of tables are hidden that may have IDs above the record");
    assert!(error.detail().unwrap().contains("public.stored"), "{error:?}");
    cluster.step_clock("-20s");
    let show = "ALTER TABLE stored NO FORCE ROW LEVEL SECURITY";
    client.batch_execute(&format!("BEGIN; {show}; SELECT snowflake_configure(1); {hide}; COMMIT")).unwrap();
    client.batch_execute(show).unwrap();
    assert!(next(&mut owner(&cluster)) > highest(&cluster));
}

/// A partition has indexes of the table that it is a partition of, with code of that table's owner.
#[test]
fn partitions_of_a_table_of_somebody_else_are_named() {
    let cluster = with_table();
    let mut mallory = mallory_with_a_trap(&cluster);
    mallory
        .batch_execute(
            "CREATE TABLE evil.parts (id bigint DEFAULT snowflake_next()) PARTITION BY RANGE (id); \
             CREATE TABLE evil.part PARTITION OF evil.parts DEFAULT; CREATE INDEX ON evil.parts (evil.trap(7)) WHERE evil.trap(1) > 0; \
             INSERT INTO evil.parts DEFAULT VALUES",
        )
        .unwrap();
    cluster.client_of("postgres", DATABASE).batch_execute("ALTER TABLE evil.part OWNER TO owner").unwrap();
    let statements = "SELECT setval('_snowflake.base', 5); SELECT snowflake_configure(1)";
    let said =
        output(psql(&cluster, "owner", DATABASE).args(["--set=ON_ERROR_STOP=1", "--command", statements])).errors;
    assert!(hostile::sprung(&cluster).is_empty(), "{:?}", hostile::sprung(&cluster));
    assert!(said.contains("They are evil.part."), "{said}");
}
