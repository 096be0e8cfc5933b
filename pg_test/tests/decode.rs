//! IDs are decoded by the layout that their database has on record, wherever the database is (on a standby, on a server
//! without settings, in a subscriber, as a copy) and wherever the expression is evaluated (in a worker of a parallel
//! query, a generated column, an index, statistics).

use postgres::Client;
use snowflake_test::check::no_errors;
use snowflake_test::dump::{self, Dump, Format};
use snowflake_test::query::ORDERS;
use snowflake_test::{Cluster, Options, Stop, check, ids, seconds, value, variable};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

/// A server whose layout is not the default one.
fn twitter() -> Options {
    Cluster::options().set("pg_snowflake.layout = 'twitter'").set("pg_snowflake.datacenter_id = 3")
}

/// A server that does not preload the library, and has none of its settings.
fn bare() -> Cluster {
    let cluster = Cluster::options().not_preloaded().create();
    cluster.start();
    cluster
}

/// A table of new IDs, with the time of each as decoded by the layout that the call names.
fn fill(client: &mut Client, rows: i32) {
    client.batch_execute("CREATE TABLE kept (id bigint PRIMARY KEY, at timestamptz)").unwrap();
    let insert =
        format!("INSERT INTO kept SELECT id, snowflake_timestamp(id, 'twitter') FROM snowflake_next({rows}) id");
    client.batch_execute(&insert).unwrap();
}

/// All IDs of `kept` are decoded as IDs of Twitter's layout that are less than an hour old.
fn decodes(client: &mut Client, rows: i64) {
    for condition in [
        "at = snowflake_timestamp(id) AND at = (snowflake_decode(id)).timestamp",
        "snowflake_datacenter(id) = 3 AND snowflake_worker(id) = 1",
        "snowflake_between(id, now() - interval '1 hour', now() + interval '1 hour')",
        "id BETWEEN snowflake_min_id(at) AND snowflake_max_id(at)",
        "id = snowflake_encode(at, 1, snowflake_sequence(id), 3)",
    ] {
        assert_eq!(value::<i64>(client, &format!("SELECT count(*) FROM kept WHERE {condition}")), rows, "{condition}");
    }
}

// Where the database is.

#[test]
fn a_standby_decodes() {
    let primary = twitter().start();
    fill(&mut primary.client(), 1000);
    let standby = primary.standby();
    // The standby's own settings do not count.
    standby.stop(Stop::Fast);
    standby.append("postgresql.conf", "pg_snowflake.layout = 'default'\npg_snowflake.datacenter_id = -1\n");
    standby.start();
    standby.catch_up_with(&primary);
    decodes(&mut standby.client(), 1000);
}

#[test]
fn a_server_without_settings_decodes_what_is_restored() {
    let old = twitter().start();
    fill(&mut old.client(), 1000);
    let new = bare();
    Dump::new(&old, "postgres", Format::Custom).restore(&new, "postgres");
    decodes(&mut new.client(), 1000);
}

#[test]
fn a_copy_of_a_database_decodes() {
    let cluster = twitter().start();
    fill(&mut cluster.client(), 100);
    cluster.stop(Stop::Fast);
    cluster.append("postgresql.conf", "pg_snowflake.layout = 'default'\npg_snowflake.datacenter_id = -1\n");
    cluster.start();
    cluster.client_of("postgres", "template1").batch_execute("CREATE DATABASE copy TEMPLATE postgres").unwrap();
    decodes(&mut cluster.client_of("postgres", "copy"), 100);
}

/// A session that has read the record before a restore reads the restored one in its next transaction.
#[test]
fn a_session_notices_a_restored_record() {
    let old = twitter().start();
    fill(&mut old.client(), 100);
    let new = bare();
    new.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let mut session = new.client();
    let layout = "SELECT snowflake_database_layout()";
    let own: String = value(&mut session, layout);
    let mut prepared = new.client();
    let statement = prepared.prepare("SELECT snowflake_timestamp($1)").unwrap();
    prepared.query_one(&statement, &[&1_i64]).unwrap();

    Dump::new(&old, "postgres", Format::Custom).restore(&new, "postgres");
    let restored: String = value(&mut session, layout);
    assert_ne!(own, restored);
    assert_eq!(restored, value::<String>(&mut old.client(), layout));
    decodes(&mut session, 100);
    let same = "SELECT snowflake_timestamp($1) = snowflake_timestamp($1, 'twitter')";
    assert!(prepared.query_one(same, &[&1_i64]).unwrap().get::<_, bool>(0));
}

/// A transaction goes on with the layout that it began with.
#[test]
fn a_transaction_sees_one_layout() {
    let cluster = bare();
    cluster.client().batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let mut session = cluster.client();
    let mut transaction = session.transaction().unwrap();
    let times = |transaction: &mut postgres::Transaction| -> String {
        transaction.query_one("SELECT snowflake_timestamp(1::bigint << 40)::text", &[]).unwrap().get(0)
    };
    let before = times(&mut transaction);
    cluster.client().batch_execute("SELECT setval('_snowflake.epoch', 0)").unwrap();
    assert_eq!(times(&mut transaction), before);
    transaction.commit().unwrap();
    let mut transaction = session.transaction().unwrap();
    assert!(times(&mut transaction) < before);
}

/// A session reads the record in the buffer where it found it before, as long as its page is there. Whatever happens to the record and to the buffers,
/// each session goes on with what a new one sees: `SEED=7 CASES=1000`.
#[test]
fn sessions_that_stay_see_each_record_as_new_ones_do() {
    let (seed, cases) = (variable("SEED").unwrap_or(1), variable("CASES").unwrap_or(100));
    let mut draw = fastrand::Rng::with_seed(seed);
    // As few buffers as there can be, which a scan of this table takes from all else.
    let cluster = Cluster::options().set("shared_buffers = '128kB'").start();
    let mut changer = cluster.client();
    let create = "CREATE TABLE large AS SELECT repeat('x', 1000) AS filler FROM generate_series(1, 500);
        CREATE TABLE kept AS SELECT n::bigint << 36 AS id FROM generate_series(1, 1000) n;
        ALTER TABLE kept ADD PRIMARY KEY (id); ANALYZE kept";
    changer.batch_execute(create).unwrap();
    // What the functions say, and what a plan reads.
    let query = "SELECT concat_ws(' ', snowflake_database_layout(), snowflake_timestamp(1::bigint << 40), (SELECT count(*) FROM kept
        WHERE snowflake_timestamp(id) >= '1990-01-01' AND snowflake_timestamp(id) < '2020-01-01'))";
    let mut sessions = [cluster.client(), cluster.client()];
    let mut seen = HashSet::new();
    for case in 0..cases {
        let epoch = format!("SELECT setval('_snowflake.epoch', {})", draw.i64(1..50) * 31_536_000_000_000);
        let (change, is_transactional) = match draw.u8(0..8) {
            0 => (epoch, true),
            1 => (format!("ALTER SEQUENCE _snowflake.epoch RESTART; {epoch}"), true),
            2 => ("ALTER SEQUENCE _snowflake.layout CACHE 2".to_owned(), true),
            3 => (format!("DROP EXTENSION pg_snowflake; CREATE EXTENSION pg_snowflake; {epoch}"), true),
            4 => ("SELECT snowflake_adopt_layout()".to_owned(), true),
            5 => ("CHECKPOINT".to_owned(), false),
            6 => ("VACUUM FULL large".to_owned(), false),
            _ => ("SELECT count(filler) FROM large".to_owned(), true),
        };
        let change = match draw.u8(0..4) {
            _ if !is_transactional => change,
            0 => format!("BEGIN; {change}; {query}; ROLLBACK"),
            1 => format!("BEGIN; SAVEPOINT s; {change}; {query}; ROLLBACK TO s; {query}; COMMIT"),
            2 => format!("BEGIN; {change}; {query}; COMMIT"),
            _ => change,
        };
        changer.batch_execute(&change).unwrap_or_else(|error| panic!("SEED={seed}, {case}: {change}: {error:?}"));
        let expected: String = value(&mut cluster.client(), query);
        for session in sessions.iter_mut().chain([&mut changer]) {
            assert_eq!(value::<String>(session, query), expected, "SEED={seed}, {case}: {change}");
        }
        seen.insert(expected);
    }
    assert!(seen.len() > 10, "{seen:?}");
}

/// While the record is replaced, sessions that decode see the one before or the one after.
#[test]
fn a_record_that_is_replaced_all_the_time_is_read_whole() {
    let cluster = Cluster::options().set("shared_buffers = '128kB'").start();
    let query = "SELECT extract(year FROM snowflake_timestamp(0))::integer";
    let (is_over, started) = (AtomicBool::new(false), Instant::now());
    let seen = cluster.sessions(4, |number, client| {
        let mut seen = HashSet::new();
        if number == 0 {
            for year in (0..300).map(|n| 1970 + n % 50) {
                let epoch = format!("setval('_snowflake.epoch', (extract(epoch FROM make_timestamptz({year}, 6, 1, 0, 0, 0)) * 1e6)::bigint)");
                let change = match year % 3 {
                    0 => format!("SELECT {epoch}"),
                    1 => format!("BEGIN; ALTER SEQUENCE _snowflake.epoch RESTART; SELECT {epoch}; COMMIT"),
                    _ => format!("BEGIN; DROP EXTENSION pg_snowflake; CREATE EXTENSION pg_snowflake; SELECT {epoch}; COMMIT"),
                };
                client.batch_execute(&change).unwrap_or_else(|error| panic!("{change}: {error:?}"));
                seen.insert(value::<i32>(client, query));
            }
            is_over.store(true, Relaxed);
        }
        while number > 0 && !is_over.load(Relaxed) && started.elapsed() < seconds(120) {
            match client.query_one(query, &[]) {
                Ok(row) => drop(seen.insert(row.get::<_, i32>(0))),
                // The extension was replaced between two looks at the catalog.
                Err(error) => {
                    let code = error.code().unwrap().code();
                    assert!(["42883", "42P01", "55000"].contains(&code), "{error:?}");
                }
            }
        }
        seen
    });
    assert!(seen.iter().all(|seen| seen.len() > 5), "{seen:?}");
    // 2024 is the default layout's, until `setval`.
    assert!(seen.iter().flatten().all(|year| (1970..2020).contains(year) || *year == 2024), "{seen:?}");
}

/// ALTER SEQUENCE gives a sequence another file. A session that reads the record waits for it, as `nextval` does, and reads the new file.
#[test]
fn a_record_whose_file_is_replaced_is_read() {
    let cluster = Cluster::options().set("shared_buffers = '128kB'").start();
    let (is_over, started) = (AtomicBool::new(false), Instant::now());
    let years = cluster.sessions(4, |number, client| {
        let mut years = HashSet::new();
        let setval = "setval('_snowflake.epoch', (extract(epoch FROM timestamptz '2000-06-01') * 1e6)::bigint)";
        let change = format!("BEGIN; ALTER SEQUENCE _snowflake.epoch RESTART; SELECT {setval}; COMMIT");
        if number == 0 {
            (0..5000).for_each(|_| client.batch_execute(&change).unwrap());
            is_over.store(true, Relaxed);
        }
        while number > 0 && !is_over.load(Relaxed) && started.elapsed() < seconds(120) {
            years.insert(value::<i32>(client, "SELECT extract(year FROM snowflake_timestamp(0))::integer"));
        }
        years
    });
    // 2024 is that of the default layout.
    assert!(years.iter().flatten().all(|year| [2000, 2024].contains(year)), "{years:?}");
}

// Where the expression is evaluated.

#[test]
fn parallel_workers_decode() {
    let cluster = twitter().start();
    fill(&mut cluster.client(), 20_000);
    let dump = Dump::new(&cluster, "postgres", Format::Custom);
    let new = bare();
    dump.restore(&new, "postgres");
    for cluster in [&cluster, &new] {
        let mut client = cluster.client();
        let force = if value::<i64>(&mut client, "SELECT current_setting('server_version_num')::bigint") >= 160_000 {
            "SET debug_parallel_query = on"
        } else {
            "SET force_parallel_mode = on"
        };
        client.batch_execute(force).unwrap();
        client
            .batch_execute(
                "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; \
                 SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off; \
                 ALTER TABLE kept SET (parallel_workers = 2)",
            )
            .unwrap();
        let query = "SELECT count(*) FROM kept WHERE at = snowflake_timestamp(id)";
        let plan = client.query(&format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {query}"), &[]).unwrap();
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        assert!(plan.iter().any(|line| line.contains("Workers Launched: 2")), "{plan:#?}");
        assert_eq!(value::<i64>(&mut client, query), 20_000);
        decodes(&mut client, 20_000);
    }
}

/// A generated column and two indexes that hold decoded values.
const DECODED: &str = "
    CREATE TABLE orders (id bigint PRIMARY KEY, at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED);
    CREATE INDEX by_time ON orders (snowflake_timestamp(id));
    CREATE INDEX by_worker ON orders (snowflake_worker(id))";

/// A scan of the index on the time finds the same rows as a scan of the table.
fn indexes_agree(client: &mut Client, rows: i64) {
    let query = "SELECT count(*) FROM orders WHERE snowflake_timestamp(id) BETWEEN now() - interval '1 hour' AND now()";
    for off in ["enable_indexscan, enable_bitmapscan, enable_indexonlyscan", "enable_seqscan"] {
        // Else, the planner would use the index on the ID.
        client.batch_execute("RESET ALL; SET pg_snowflake.plan_by_time = off").unwrap();
        for setting in off.split(", ") {
            client.batch_execute(&format!("SET {setting} = off")).unwrap();
        }
        let plan = client.query(&format!("EXPLAIN {query}"), &[]).unwrap();
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        let by_index = plan.iter().any(|line| line.contains("by_time"));
        assert_eq!(by_index, off == "enable_seqscan", "{plan:#?}");
        assert_eq!(value::<i64>(client, query), rows, "without {off}");
        assert_eq!(
            value::<i64>(client, "SELECT count(*) FROM orders WHERE snowflake_worker(id) = 1"),
            rows,
            "without {off}"
        );
    }
    client.batch_execute("RESET ALL").unwrap();
}

const STORED_RIGHT: &str = "SELECT count(*) FROM orders WHERE at = snowflake_timestamp(id, 'twitter')";

#[test]
fn stored_columns_and_indexes_decode() {
    let cluster = twitter().start();
    let mut client = cluster.client();
    client.batch_execute(DECODED).unwrap();
    client.batch_execute("INSERT INTO orders SELECT snowflake_next(1000)").unwrap();
    assert_eq!(value::<i64>(&mut client, STORED_RIGHT), 1000);
    indexes_agree(&mut client, 1000);
    client.batch_execute("REINDEX TABLE orders").unwrap();
    indexes_agree(&mut client, 1000);
}

/// A restore brings the rows first, then the record, then the indexes. So indexes are right on a server of any layout.
/// A generated column is decoded by the layout that CREATE EXTENSION has put on record, the server's: on a server of
/// another layout, the column must name the layout, or its rows must be written again.
#[test]
fn indexes_are_restored_right_on_any_server_and_stored_columns_if_they_name_the_layout() {
    let old = twitter().start();
    let mut client = old.client();
    client.batch_execute(DECODED).unwrap();
    let named =
        "ALTER TABLE orders ADD named timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'twitter')) STORED";
    client.batch_execute(named).unwrap();
    client.batch_execute("INSERT INTO orders SELECT snowflake_next(1000)").unwrap();
    let dump = Dump::new(&old, "postgres", Format::Custom);

    let alike = twitter().create();
    alike.start();
    let bare = bare();
    for (new, right) in [(&alike, 1000), (&bare, 0)] {
        dump.restore(new, "postgres");
        let mut client = new.client();
        assert_eq!(value::<i64>(&mut client, STORED_RIGHT), right);
        assert_eq!(
            value::<i64>(&mut client, "SELECT count(*) FROM orders WHERE named = snowflake_timestamp(id, 'twitter')"),
            1000
        );
        indexes_agree(&mut client, 1000);
        client.batch_execute("DROP INDEX by_time; CREATE INDEX by_time ON orders (snowflake_timestamp(id))").unwrap();
        indexes_agree(&mut client, 1000);
        // Each row is written again.
        client.batch_execute("UPDATE orders SET id = id").unwrap();
        assert_eq!(value::<i64>(&mut client, STORED_RIGHT), 1000);
        indexes_agree(&mut client, 1000);
    }
}

/// A job of a parallel restore may make an index before another job has restored the record. On a server of another
/// layout, the index can then be wrong, so that it finds nothing where a scan finds all rows. REINDEX mends it.
#[test]
fn indexes_of_a_parallel_restore_are_right_on_a_server_alike_and_elsewhere_after_a_reindex() {
    let old = twitter().start();
    let mut client = old.client();
    client.batch_execute(DECODED).unwrap();
    client.batch_execute("INSERT INTO orders SELECT snowflake_next(1000)").unwrap();
    let dump = Dump::new(&old, "postgres", Format::Custom);
    let restore = |new: &Cluster| dump.restore_with(new, "postgres", &["--jobs=2"]);

    let alike = twitter().create();
    alike.start();
    restore(&alike);
    indexes_agree(&mut alike.client(), 1000);
    let bare = bare();
    restore(&bare);
    bare.client().batch_execute("REINDEX TABLE orders").unwrap();
    indexes_agree(&mut bare.client(), 1000);
}

/// Restored in this order, all is right on a server of any layout: first the extension and its record, then the rest.
#[test]
fn all_is_right_where_the_record_is_restored_first() {
    let old = twitter().start();
    let mut client = old.client();
    client.batch_execute(DECODED).unwrap();
    client.batch_execute("INSERT INTO orders SELECT snowflake_next(1000)").unwrap();
    let dump = Dump::new(&old, "postgres", Format::Custom);

    let new = bare();
    let (list, entries) = dump::list(&new, &dump.file, &["EXTENSION - pg_snowflake", "SEQUENCE SET _snowflake"]);
    assert_eq!(entries, 5);
    dump.restore_with(&new, "postgres", &["--use-list", list.to_str().unwrap()]);
    dump.restore_with(&new, "postgres", &["--jobs=2"]);
    let mut client = new.client();
    assert_eq!(value::<i64>(&mut client, STORED_RIGHT), 1000);
    indexes_agree(&mut client, 1000);
}

#[test]
fn a_subscriber_decodes_in_a_generated_column() {
    let publisher = twitter().set("wal_level = logical").start();
    let mut client = publisher.client();
    client.batch_execute(ORDERS).unwrap();
    client.batch_execute("CREATE PUBLICATION p FOR ALL TABLES").unwrap();
    let insert = "INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 100)";
    client.batch_execute(insert).unwrap();

    // The subscriber has the same layout on record, and none in its settings.
    let subscriber = bare();
    let mut subscribed = subscriber.client();
    subscribed.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    for sequence in ["layout", "epoch"] {
        let value = value::<i64>(&mut client, &format!("SELECT last_value FROM _snowflake.{sequence}"));
        subscribed.batch_execute(&format!("SELECT setval('_snowflake.{sequence}', {value})")).unwrap();
    }
    subscribed
        .batch_execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, note text, \
                                  at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED)",
        )
        .unwrap();
    let host = publisher.socket().display();
    subscribed
        .batch_execute(&format!("CREATE SUBSCRIPTION s CONNECTION 'host={host} user=postgres' PUBLICATION p"))
        .unwrap();
    check::wait_for("the initial copy", || value::<i64>(&mut subscribed, STORED_RIGHT) == 100);
    client.batch_execute(insert).unwrap();
    check::wait_for("the changes", || value::<i64>(&mut subscribed, STORED_RIGHT) == 200);
    assert_eq!(value::<i64>(&mut subscribed, "SELECT count(*) FROM orders"), 200);
    no_errors(&subscriber);
}

#[test]
fn autovacuum_decodes_for_its_statistics() {
    let quick = "autovacuum_naptime = '1s'\nautovacuum_analyze_threshold = 1\nautovacuum_analyze_scale_factor = 0";
    let old = twitter().start();
    let mut client = old.client();
    client.batch_execute(DECODED).unwrap();
    client.batch_execute("CREATE STATISTICS of_time ON (snowflake_timestamp(id)) FROM orders").unwrap();
    let made = "INSERT INTO orders SELECT snowflake_encode(now() - n * interval '1 s', 1, 0, 3) FROM generate_series(1, 1000) n";
    client.batch_execute(made).unwrap();
    let new = Cluster::options().not_preloaded().set(quick).create();
    new.start();
    Dump::new(&old, "postgres", Format::Custom).restore(&new, "postgres");
    let mut client = new.client();
    // The bounds of the histograms of the index and of the statistics lie in the last hour.
    let recent = |view: &str, condition: &str| {
        format!(
            "SELECT count(*) FROM {view}, unnest(histogram_bounds::text::timestamptz[]) bound \
             WHERE {condition} AND bound > now() - interval '1 hour'"
        )
    };
    let of_index = recent("pg_stats", "tablename = 'by_time'");
    let of_statistics = recent("pg_stats_ext_exprs", "statistics_name = 'of_time'");
    // Autovacuum may have analyzed the table before it had an index.
    client.batch_execute("UPDATE orders SET id = id").unwrap();
    for query in [of_index, of_statistics] {
        check::wait_for(&query, || value::<i64>(&mut client, &query) > 0);
    }
    no_errors(&new);
}

#[test]
fn partitions_of_ranges_of_time_are_restored_with_their_bounds() {
    let old = twitter().start();
    let mut client = old.client();
    client
        .batch_execute("CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id)")
        .unwrap();
    client
        .batch_execute(
            "SELECT snowflake_create_partitions('events', '1 day', date_trunc('day', now()) - interval '1 day', \
                                                date_trunc('day', now()) + interval '2 days')",
        )
        .unwrap();
    let made = ids(&client.query("INSERT INTO events SELECT snowflake_next(100) RETURNING id", &[]).unwrap());
    let new = bare();
    Dump::new(&old, "postgres", Format::Custom).restore(&new, "postgres");
    let found = "SELECT id FROM events WHERE snowflake_between(id, now() - interval '1 hour', now() + interval '1 hour') ORDER BY id";
    assert_eq!(ids(&new.client().query(found, &[]).unwrap()), made);
}
