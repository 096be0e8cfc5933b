//! `snowflake_create_partitions()` and `snowflake_maintain_partitions()` where other sessions work on the table, by other roles, by
//! clocks that move, and in another encoding.

use postgres::Client;
use snowflake_test::check::{self, refused};
use snowflake_test::hosted::{self, DATABASE};
use snowflake_test::{Cluster, value, variable};

/// Each waits for the session before it, sees the partitions that it made, and makes the rest.
#[test]
fn sessions_that_make_the_same_ones_at_once() {
    let cluster = Cluster::options().start();
    cluster.client().batch_execute("CREATE TABLE t (id bigint PRIMARY KEY) PARTITION BY RANGE (id)").unwrap();
    let made = cluster.sessions(8, |session, client| {
        // Its snapshot is from before the others are done, and has none of their partitions.
        if session % 2 == 0 {
            client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class").unwrap();
        }
        let days = "SELECT snowflake_create_partitions('t', '1 day', '2026-01-01 00:00+00', '2026-01-31 00:00+00')";
        let made = client.query(days, &[]).unwrap().len();
        if session % 2 == 0 {
            client.batch_execute("COMMIT").unwrap();
        }
        made
    });
    assert_eq!(made.iter().sum::<usize>(), 30, "{made:?}");
}

/// The call waits for a transaction that inserts into the default partition, and then finds its row.
#[test]
fn a_row_that_comes_into_the_default_partition_meanwhile() {
    let cluster = Cluster::options().start();
    let mut writer = cluster.client();
    writer
        .batch_execute(
            "CREATE TABLE t (id bigint PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE t_rest PARTITION OF t DEFAULT",
        )
        .unwrap();
    writer.batch_execute("BEGIN; INSERT INTO t VALUES (snowflake_min_id('2026-01-02 00:00+00'))").unwrap();
    let error = std::thread::scope(|scope| {
        let maker = scope.spawn(|| {
            let days = "SELECT snowflake_create_partitions('t', '1 day', '2026-01-01 00:00+00', '2026-01-31 00:00+00')";
            cluster.client().query(days, &[]).unwrap_err()
        });
        let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 't'::regclass AND NOT granted)";
        check::wait_for("the call waits for the row", || value(&mut cluster.client(), waits));
        writer.batch_execute("COMMIT").unwrap();
        maker.join().unwrap()
    });
    let error = error.as_db_error().unwrap();
    assert_eq!(error.message(), "default partition \"t_rest\" has rows of a partition that is to be made");
}

/// A role that does not own the table is refused at once, though another session has it locked.
#[test]
fn they_are_refused_before_anything_is_waited_for() {
    let cluster = Cluster::options().start();
    let mut owner = cluster.client();
    owner
        .batch_execute("CREATE TABLE t (id bigint PRIMARY KEY) PARTITION BY RANGE (id); CREATE ROLE other LOGIN")
        .unwrap();
    owner.batch_execute("BEGIN; LOCK t IN ACCESS EXCLUSIVE MODE").unwrap();
    let mut other = cluster.client_of("other", "postgres");
    other.batch_execute("SET lock_timeout = '60s'").unwrap();
    let seconds = "SELECT snowflake_create_partitions('t', '1 s', '2024-01-01 00:00+00', '2093-01-01 00:00+00')";
    refused(&mut other, seconds, "42501");
    // So is the owner, with an error that can be seen without the lock.
    let mut owner = cluster.client();
    owner.batch_execute("SET lock_timeout = '60s'").unwrap();
    refused(&mut owner, seconds, "54000");
}

/// In a database that is not UTF-8, names are not either.
#[test]
fn in_a_database_of_another_encoding() {
    let cluster = Cluster::options().start();
    cluster.client().batch_execute("CREATE DATABASE latin1 ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0").unwrap();
    let mut client = cluster.client_of("postgres", "latin1");
    client
        .batch_execute(
            "CREATE EXTENSION pg_snowflake; CREATE TABLE \"été\" (\"clé\" bigint PRIMARY KEY) PARTITION BY RANGE (\"clé\");
             CREATE TABLE \"été autre\" PARTITION OF \"été\" DEFAULT; CREATE TABLE \"cité\" (\"clé\" bigint)",
        )
        .unwrap();
    let days = |table, until| {
        format!(
            "SELECT snowflake_create_partitions('{table}', '1 day', '2026-01-01 00:00+00', '{until} 00:00+00')::text"
        )
    };
    let rows = client.query(&days("été", "2026-01-02"), &[]).unwrap();
    assert_eq!(rows[0].get::<_, String>(0), "\"été_20260101\"");
    client.batch_execute("INSERT INTO \"été\" VALUES (snowflake_min_id('2026-01-03 00:00+00'))").unwrap();
    for (table, code) in [("été", "23514"), ("cité", "42809")] {
        let error = refused(&mut client, &days(table, "2026-01-04"), code);
        assert!(error.message().contains("t?"), "{error}");
    }
}

/// Days from so many before the present one on, until so many after it; with a row in each.
fn days_with_rows(client: &mut Client, table: &str, before: i32, after: i32) {
    client
        .batch_execute(&format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
             SELECT snowflake_create_partitions('{table}', '1 day', date_trunc('day', now(), 'UTC') - interval '{before} days',
                 date_trunc('day', now(), 'UTC') + interval '{after} days');
             INSERT INTO {table} SELECT snowflake_min_id(date_trunc('day', now(), 'UTC') + n * interval '1 day') + 1
             FROM generate_series(-{before}, {after} - 1) n; SELECT snowflake_declare_keys('{table}')"
        ))
        .unwrap();
}

fn rows(client: &mut Client, table: &str) -> i64 {
    value(client, &format!("SELECT count(*) FROM {table}"))
}

/// Jobs that run at the same time, while rows are written: each partition is created and dropped once, and no job fails.
#[test]
fn jobs_that_maintain_the_same_table_at_once() {
    let cluster = Cluster::options().start();
    days_with_rows(&mut cluster.client(), "t", 20, 1);
    let done = cluster.sessions(6, |session, client| {
        let snapshot =
            if session % 2 == 0 { "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM t" } else { "BEGIN" };
        client.batch_execute(snapshot).unwrap();
        client.batch_execute("INSERT INTO t DEFAULT VALUES; COMMIT").unwrap();
        let job = "SELECT action FROM snowflake_maintain_partitions('t', '1 day', '10 days', '5 days', 'drop')";
        client.query(job, &[]).unwrap().iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>()
    });
    let done: Vec<String> = done.into_iter().flatten().collect();
    let count = |action| done.iter().filter(|done| *done == action).count();
    // The tenth day from now on ends in the eleventh partition; the fifth day before now lies in the sixth.
    assert_eq!((count("create"), count("drop"), done.len()), (10, 15, 25), "{done:?}");
    assert_eq!(rows(&mut cluster.client(), "t"), 6 + 6);
}

/// A session that has the table's partition open by its own name, while a job waits to drop it: what it commits is looked at.
#[test]
fn what_happens_to_a_partition_before_it_is_locked() {
    const TABLE: &str = "CREATE TABLE t (id bigint PRIMARY KEY, what text) PARTITION BY RANGE (id);
        CREATE TABLE t_first PARTITION OF t FOR VALUES FROM (MINVALUE) TO (snowflake_min_id(date_trunc('day', now() - interval '90 days', 'UTC')));
        INSERT INTO t VALUES (snowflake_min_id(now() - interval '100 days'), 'old'); SELECT snowflake_declare_keys('t');
        CREATE TABLE other (id bigint); INSERT INTO other VALUES (1)";
    const JOB: &str =
        "SELECT * FROM snowflake_maintain_partitions('t', '1 day', '1 day', retention => '30 days', expired => 'drop')";
    for cluster in [Cluster::options().start(), hosted::server()] {
        let connect = || {
            let is_hosted =
                cluster.client().query_one("SELECT count(*) FROM pg_database WHERE datname = $1", &[&DATABASE]);
            match is_hosted.unwrap().get::<_, i64>(0) {
                0 => cluster.client(),
                _ => cluster.client_of("owner", DATABASE),
            }
        };
        for (meanwhile, rows, others) in [
            // A key from before, of a young row.
            ("INSERT INTO t_first VALUES (5, 'young')", 2, 1),
            ("INSERT INTO t_first VALUES (-9223372036854775808, 'young')", 2, 1),
            // Another table has its name. That is dropped which is a partition, or nothing.
            ("ALTER TABLE t_first RENAME TO kept; ALTER TABLE other RENAME TO t_first", 0, 1),
            ("INSERT INTO t_first VALUES (snowflake_min_id(now() - interval '99 days'), 'old')", 0, 1),
        ] {
            let (mut session, mut job) = (connect(), connect());
            session.batch_execute(TABLE).unwrap();
            // It has written to it before, and so does not lock the table to do so again.
            session.batch_execute("INSERT INTO t_first VALUES (snowflake_min_id(now() - interval '98 days'), 'old'); DELETE FROM t_first").unwrap();
            session
                .batch_execute("INSERT INTO t_first VALUES (snowflake_min_id(now() - interval '98 days'), 'old')")
                .unwrap();
            session.batch_execute(&format!("BEGIN; {meanwhile}")).unwrap();
            let done = std::thread::scope(|scope| {
                let done = scope.spawn(|| job.batch_execute(JOB));
                let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)";
                check::wait_for("the job waits", || value(&mut connect(), waits));
                session.batch_execute("COMMIT").unwrap();
                done.join().unwrap()
            });
            let all = "SELECT count(*) FROM t";
            let is_renamed = meanwhile.contains("RENAME");
            // By names, another table cannot be told from it: then nothing is done.
            let rows = if done.is_err() && is_renamed { 1 } else { rows };
            assert!(done.is_ok() || is_renamed, "{meanwhile}: {done:?}");
            assert_eq!(value::<i64>(&mut session, all), rows, "{meanwhile}");
            let other = if is_renamed { "t_first" } else { "other" };
            assert_eq!(value::<i64>(&mut session, &format!("SELECT count(*) FROM {other}")), others, "{meanwhile}");
            session.batch_execute(&format!("DROP TABLE t; DROP TABLE {other}")).unwrap();
        }
        // What such a transaction does not see stays.
        let (mut session, mut job) = (connect(), connect());
        session.batch_execute(TABLE).unwrap();
        job.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").unwrap();
        session.batch_execute("INSERT INTO t VALUES (5, 'young')").unwrap();
        job.batch_execute(&format!("CREATE TEMP TABLE IF NOT EXISTS written (); {JOB}; COMMIT")).unwrap();
        assert_eq!(value::<i64>(&mut session, "SELECT count(*) FROM t"), 2);
    }
}

/// A job that does not get its lock says whose, and leaves all as it was; so does one that waits for a partition.
#[test]
fn a_lock_that_is_not_granted_in_time() {
    let cluster = Cluster::options().start();
    let (mut holder, mut job) = (cluster.client(), cluster.client());
    days_with_rows(&mut holder, "t", 3, 1);
    job.batch_execute("SET lock_timeout = '200ms'").unwrap();
    let oldest: String = value(&mut holder, "SELECT min(tableoid::regclass::text) FROM t");
    holder.batch_execute("BEGIN; LOCK ONLY t IN ACCESS SHARE MODE").unwrap();
    let call = "SELECT snowflake_maintain_partitions('t', '1 day', '3 days', '1 day', 'drop')";
    let error = refused(&mut job, call, "55P03");
    assert!(error.message().contains("table \"t\""), "{error:?}");
    holder.batch_execute("COMMIT").unwrap();
    assert_eq!(value::<i64>(&mut holder, "SELECT count(*) FROM pg_inherits"), 4 + 4, "with those of the key");
    // Whoever reads an old partition keeps the old ones, and not those of tomorrow.
    let actions =
        "SELECT string_agg(action, ' ') FROM snowflake_maintain_partitions('t', '1 day', '3 days', '1 day', 'drop')";
    holder.batch_execute(&format!("BEGIN; LOCK ONLY {oldest} IN ACCESS SHARE MODE")).unwrap();
    assert_eq!(value::<String>(&mut job, actions), "create create create keep keep");
    holder.batch_execute("COMMIT").unwrap();
    assert_eq!(value::<String>(&mut job, actions), "drop drop");
}

/// A clock that leaps ahead makes nothing old, and takes no partitions to where it is, before it is believed.
#[test]
fn a_clock_that_leaps_ahead_takes_nothing_away() {
    let cluster = Cluster::options().with_clock().start();
    let mut client = cluster.client();
    days_with_rows(&mut client, "t", 9, 2);
    // The server knows the time by its IDs.
    client.batch_execute("INSERT INTO t DEFAULT VALUES").unwrap();
    cluster.step_clock("+31536000s");
    let job = "SELECT count(*) FROM snowflake_maintain_partitions('t', '1 day', '1 day', '30 days', 'drop')";
    assert_eq!(value::<i64>(&mut client, job), 0);
    assert_eq!(rows(&mut client, "t"), 12);
    // The clock is set back, behind the partitions.
    cluster.step_clock("-2592000s");
    assert_eq!(
        value::<i64>(
            &mut cluster.client(),
            "SELECT count(*) FROM snowflake_maintain_partitions('t', '1 day', '1 day', '0 days', 'drop') \
        WHERE action <> 'create'"
        ),
        0
    );
    assert_eq!(rows(&mut cluster.client(), "t"), 12);
}

/// With a retention of nothing, a partition stays for as long as IDs may still fall into it: up to `max_lead` after its end.
#[test]
fn without_a_retention_a_partition_goes_once_no_id_can_fall_into_it() {
    let cluster = Cluster::options()
        .with_clock()
        .set("pg_snowflake.max_jump = '1000d'")
        .set("pg_snowflake.max_lead = '10min'")
        .start();
    let mut client = cluster.client();
    let midnight: i64 = value(&mut client, "SELECT 86400 - extract(epoch FROM now())::bigint % 86400");
    // One is over at midnight. One was over the midnight before that.
    days_with_rows(&mut client, "t", 1, 1);
    let job = "SELECT count(*) FROM snowflake_maintain_partitions('t', '1 day', '1 day', '0 days', 'drop') WHERE action = 'drop'";
    for (after, dropped, kept) in [(30, 1, 1), (500, 0, 1), (700, 1, 0)] {
        cluster.step_clock(&format!("+{}s", midnight + after));
        assert_eq!(value::<i64>(&mut client, job), dropped, "{after} s after midnight");
        assert_eq!(rows(&mut client, "t"), kept, "{after} s after midnight");
    }
}

/// What the standby says; and that it may be asked what a job would do.
#[test]
fn on_a_standby() {
    let cluster = Cluster::options().start();
    days_with_rows(&mut cluster.client(), "t", 3, 1);
    cluster.client().batch_execute("CREATE TABLE t_rest PARTITION OF t DEFAULT").unwrap();
    let standby = cluster.standby();
    let mut client = standby.client();
    let there = "SELECT to_regclass('t') IS NOT NULL";
    check::wait_for("the standby has the table", || value(&mut standby.client(), there));
    check::wait_for("the standby has its rows", || rows(&mut standby.client(), "t") == 4);
    let error = refused(&mut client, "SELECT snowflake_maintain_partitions('t', '1 day', '3 days')", "25006");
    assert!(error.message().contains("snowflake_maintain_partitions() during recovery"), "{error:?}");
    let dry = "SELECT count(*) FROM snowflake_maintain_partitions('t', '1 day', '3 days', dry_run => true)";
    assert_eq!(value::<i64>(&mut client, dry), 3);
}

/// A clock that goes on by hours and weeks, and jobs that change: each row has a partition when it is written, and none is gone that
/// is younger than the retention.
#[test]
fn random_calls_by_a_clock_that_moves() {
    let seed = variable("SEED").unwrap_or(30);
    let mut draw = fastrand::Rng::with_seed(seed);
    let cluster = Cluster::options().with_clock().set("pg_snowflake.max_jump = '1000d'").start();
    let mut client = cluster.client();
    client
        .batch_execute("CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id)")
        .unwrap();
    let mut offset = 0;
    for call in 0..40 {
        offset += draw.i64(1..40 * 86_400) >> draw.u32(0..12);
        cluster.step_clock(&format!("+{offset}s"));
        let step = ["1 day", "7 days", "1 month", "6 hours", "11 days"][draw.usize(0..5)];
        let ahead = draw.u32(0..20);
        let (retention, expired) = (draw.u32(0..60), if draw.bool() { "drop" } else { "detach" });
        let call_text = format!(
            "SELECT count(*) FROM snowflake_maintain_partitions('t', '{step}', '{ahead} days', '{retention} days', '{expired}')"
        );
        let younger = format!(
            "SELECT count(*) FROM t WHERE snowflake_timestamp(id) > clock_timestamp() - interval '{retention} days'"
        );
        let before: i64 = value(&mut client, &younger);
        // A day of six hours each may be more than can be made at once.
        let made: i64 = value(&mut client, &call_text);
        let after: i64 = value(&mut client, &younger);
        assert!(after >= before, "SEED={seed}, call {call}: {call_text}: {before}, then {after} rows");
        assert_eq!(value::<i64>(&mut client, &call_text), 0, "SEED={seed}, call {call}: {call_text} after {made}");
        client
            .batch_execute(&format!(
                "INSERT INTO t DEFAULT VALUES;
                 INSERT INTO t SELECT snowflake_max_id_before(clock_timestamp() + {ahead} * interval '1 day' * n / 7) - n
                 FROM generate_series(1, 7) n ON CONFLICT DO NOTHING"
            ))
            .unwrap_or_else(|error| panic!("SEED={seed}, call {call}: {call_text}: {error:?}"));
    }
}

/// More than one call can lock are made by the next ones, and the result says so.
#[test]
fn more_than_a_call_can_lock_are_made_by_the_next_calls() {
    let cluster = Cluster::options().set("max_locks_per_transaction = 10").start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE TABLE t (id bigint PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE rest PARTITION OF t DEFAULT",
        )
        .unwrap();
    let call = "FROM snowflake_maintain_partitions('t', '1 hour', '26 days'";
    let mut left = Vec::new();
    loop {
        let planned = client.query(&format!("SELECT action, partition, note {call}, dry_run => true)"), &[]).unwrap();
        let rows = client.query(&format!("SELECT action, partition, note {call})"), &[]).unwrap();
        let text = |row: &postgres::Row| [0, 1, 2].map(|column| row.get::<_, Option<String>>(column));
        assert_eq!(planned.iter().map(text).collect::<Vec<_>>(), rows.iter().map(text).collect::<Vec<_>>());
        let Some(later) = rows.iter().find(|row| row.get::<_, &str>(0) == "later") else { break };
        let note: String = later.get(2);
        let words: Vec<&str> = note.split(' ').collect();
        let (count, most): (usize, usize) = (words[0].parse().unwrap(), words[words.len() - 1].parse().unwrap());
        assert!(most + 1 == rows.len() && note.contains("more partitions are made by the next calls"), "{note}");
        left.push((count, most));
    }
    assert!(left.len() > 1 && left.windows(2).all(|pair| pair[0].0 - pair[1].0 == pair[1].1), "{left:?}");
    let there = "SELECT count(*) FROM pg_inherits WHERE inhparent = 't'::regclass";
    // With the default partition.
    assert_eq!(value::<i64>(&mut client, there), (left[0].0 + left[0].1 + 1) as i64);
}

/// A partition from MINVALUE is as old as its upper bound says.
#[test]
fn a_partition_without_a_lower_bound_expires() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    let upper = |table: &str, at: &str| {
        format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
             CREATE TABLE {table}_old PARTITION OF {table} FOR VALUES FROM (MINVALUE) TO (snowflake_min_id(date_trunc('day', now()) {at}));
             INSERT INTO {table} SELECT snowflake_min_id(date_trunc('day', now()) {at}) - n FROM generate_series(1, 2) AS n;
             SELECT snowflake_declare_keys('{table}')"
        )
    };
    for (table, at, expected) in [("young", "- interval '89 days'", 2), ("old", "- interval '91 days'", 0)] {
        client.batch_execute(&upper(table, at)).unwrap();
        let call = format!(
            "SELECT count(*) FROM snowflake_maintain_partitions('{table}', '1 day', '1 day', '90 days', 'drop')"
        );
        value::<i64>(&mut client, &call);
        assert_eq!(value::<i64>(&mut client, &format!("SELECT count(*) FROM {table}")), expected, "{table}");
    }
}
