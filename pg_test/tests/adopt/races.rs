//! What others drop, rename and give away while a call waits for it, or reads it: the call says so, or goes on with what there is. It
//! never fails with an error of the catalogue's own, which would be XX000, and never shows an empty name.

use fastrand::Rng;
use postgres::error::{DbError, ErrorPosition};
use snowflake_test::check::wait_for;
use snowflake_test::load::End;
use snowflake_test::{Cluster, value};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A key with all that a plan looks at.
const TABLES: &str = "
    CREATE SCHEMA shop;
    CREATE TABLE shop.orders (id serial PRIMARY KEY, parent_id integer REFERENCES shop.orders CHECK (parent_id < 1000), note text);
    CREATE TABLE shop.lines (id bigserial PRIMARY KEY, order_id integer NOT NULL REFERENCES shop.orders);
    CREATE TABLE shop.events (id bigserial, at date) PARTITION BY RANGE (at);
    CREATE TABLE shop.events_2026 PARTITION OF shop.events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
    CREATE VIEW shop.open AS SELECT id, note FROM shop.orders;
    CREATE MATERIALIZED VIEW shop.counts AS SELECT id, count(*) FROM shop.open GROUP BY id;
    CREATE FUNCTION shop.newest() RETURNS integer LANGUAGE sql AS 'SELECT max(id) FROM shop.orders';
    CREATE STATISTICS shop.together ON id, parent_id FROM shop.orders;
    CREATE TABLE shop.ids (id bigint PRIMARY KEY DEFAULT snowflake_next());
    INSERT INTO shop.orders SELECT FROM generate_series(1, 10)";

const CALLS: [&str; 10] = [
    "SELECT * FROM snowflake_adopt_plan('shop.orders')",
    "SELECT * FROM snowflake_adopt_plan('shop.orders', 'id', 'recreate')",
    "SELECT * FROM snowflake_adopt_all_plan('{shop.lines, shop.orders, shop.events}')",
    "SELECT * FROM snowflake_release_plan('shop.ids')",
    "SELECT * FROM snowflake_preflight(keys => '{shop.orders, shop.ids}')",
    "SELECT * FROM snowflake_adopt('shop.orders')",
    "SELECT * FROM snowflake_adopt('shop.orders', 'id', 'recreate')",
    "SELECT * FROM snowflake_adopt_all('{shop.lines, shop.orders, shop.events}', 'recreate')",
    "SELECT * FROM snowflake_release('shop.ids')",
    "SELECT * FROM snowflake_release('shop.ids', 'id', 7, true)",
];

/// What others commit. Each of the calls waits for one of these tables.
const CHANGES: [&str; 15] = [
    "DROP TABLE shop.orders, shop.ids CASCADE",
    "DROP SCHEMA shop CASCADE",
    "DROP TABLE shop.orders, shop.ids CASCADE; CREATE TABLE shop.orders (id serial PRIMARY KEY); CREATE TABLE shop.ids (id bigint)",
    "ALTER TABLE shop.orders RENAME TO renamed; ALTER TABLE shop.ids RENAME TO renamed_ids",
    "ALTER TABLE shop.orders RENAME id TO other; ALTER TABLE shop.ids RENAME id TO other",
    "ALTER TABLE shop.orders DROP id CASCADE; ALTER TABLE shop.ids DROP id",
    "ALTER TABLE shop.orders DROP id CASCADE, ADD id bigserial; ALTER TABLE shop.ids DROP id, ADD id bigserial",
    "DROP TABLE shop.lines",
    "DROP VIEW shop.open CASCADE",
    "DROP TABLE shop.events_2026; DROP FUNCTION shop.newest; DROP STATISTICS shop.together",
    "ALTER TABLE shop.orders OWNER TO other; ALTER TABLE shop.ids OWNER TO other",
    "ALTER SCHEMA shop RENAME TO store",
    "DROP EXTENSION pg_snowflake CASCADE",
    "ALTER TABLE shop.orders SET SCHEMA public; ALTER TABLE shop.ids SET SCHEMA public",
    "DROP SEQUENCE shop.orders_id_seq CASCADE",
];

/// No error may be one of these, nor have a name that is missing, nor be that a query of ours finds no name.
fn check(call: &str, change: &str, error: &DbError) {
    let texts = [Some(error.message()), error.detail(), error.hint()].map(Option::unwrap_or_default);
    let is_whole = |text: &&str| !["\"\"", "table  ", "column .", " of .", "NULL"].iter().any(|gap| text.contains(gap));
    let is_of_ours = matches!(error.position(), Some(ErrorPosition::Internal { .. }));
    assert!(!(is_of_ours && ["42703", "42P01"].contains(&error.code().code())), "{call}, and {change}: {error:?}");
    assert!(error.code().code() != "XX000" && texts.iter().all(is_whole), "{call}, and {change}: {error:?}");
}

#[test]
fn what_is_dropped_while_a_call_waits_is_said() {
    let cluster = Cluster::options().start();
    let mut admin = cluster.client();
    admin.batch_execute("CREATE ROLE other").unwrap();
    for change in CHANGES {
        for call in CALLS {
            let refresh = "DROP SCHEMA IF EXISTS shop, store CASCADE; DROP TABLE IF EXISTS orders, ids CASCADE;
                           CREATE EXTENSION IF NOT EXISTS pg_snowflake;";
            admin.batch_execute(&format!("SET client_min_messages = warning; {refresh} {TABLES}")).unwrap();
            let mut other = cluster.client();
            let mut changing = other.transaction().unwrap();
            changing
                .batch_execute("LOCK TABLE shop.orders, shop.lines, shop.events, shop.ids IN ACCESS EXCLUSIVE MODE")
                .unwrap();
            changing.batch_execute(&format!("SET client_min_messages = warning; {change}")).unwrap();
            thread::scope(|scope| {
                let caller = scope.spawn(|| cluster.client().query(call, &[]));
                let waits = "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                             AND query LIKE '%FROM snowflake%' AND pid <> pg_backend_pid()";
                wait_for(&format!("{call} waits"), || value(&mut cluster.client(), waits));
                changing.commit().unwrap();
                let Err(error) = caller.join().unwrap() else { return };
                let error = error.as_db_error().unwrap_or_else(|| panic!("{call}, and {change}: {error:?}"));
                check(call, change, error);
                if change.starts_with("DROP TABLE shop.orders") || change.starts_with("DROP SCHEMA") {
                    // It may have been there when the call began to read it, as on PostgreSQL 14. Then the next one says so, unless another
                    // has its name.
                    if error.code().code() == "40001" {
                        let again =
                            cluster.client().query(call, &[]).map_err(|error| error.code().unwrap().code().to_owned());
                        let is_gone = again.as_ref().is_err_and(|code| ["42P01", "3F000"].contains(&&**code));
                        assert!(is_gone || change.contains("CREATE TABLE"), "{call}, and {change}: {again:?}");
                        return;
                    }
                    assert_eq!(error.code().code(), "42P01", "{call}, and {change}: {error:?}");
                    assert!(error.message().contains("shop."), "{call}, and {change}: {error:?}");
                }
            });
        }
    }
}

/// What others do at random. Half of it fails, as what it names is not there at the time.
const DEEDS: [&str; 20] = [
    "DROP TABLE shop.orders CASCADE",
    "DROP TABLE shop.lines",
    "DROP TABLE shop.ids",
    "DROP SCHEMA shop CASCADE",
    "DROP VIEW shop.open CASCADE",
    "DROP MATERIALIZED VIEW shop.counts",
    "DROP FUNCTION shop.newest",
    "ALTER TABLE shop.orders RENAME TO renamed; ALTER TABLE shop.renamed RENAME TO orders",
    "ALTER TABLE shop.orders RENAME id TO other; ALTER TABLE shop.orders RENAME other TO id",
    "ALTER TABLE shop.orders DROP id CASCADE, ADD id serial PRIMARY KEY",
    "ALTER TABLE shop.orders OWNER TO other",
    "ALTER TABLE shop.orders OWNER TO postgres",
    "ALTER SCHEMA shop RENAME TO store; ALTER SCHEMA store RENAME TO shop",
    "DROP STATISTICS shop.together; CREATE STATISTICS shop.together ON id, parent_id FROM shop.orders",
    "DROP TABLE shop.events_2026; CREATE TABLE shop.events_2026 PARTITION OF shop.events FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
    "ALTER SEQUENCE shop.orders_id_seq OWNED BY NONE; DROP SEQUENCE shop.orders_id_seq CASCADE",
    "CREATE PUBLICATION all_of_it FOR TABLE shop.orders; DROP PUBLICATION all_of_it",
    "CREATE ROLE passing; GRANT INSERT ON shop.orders TO passing; REVOKE ALL ON shop.orders FROM passing; DROP ROLE passing",
    "CREATE VIEW shop.more AS SELECT id FROM shop.orders; DROP VIEW shop.more",
    "SELECT snowflake_adopt('shop.orders', 'id', 'recreate')",
];

#[test]
fn nothing_fails_inside_while_others_change_all_of_it() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let seconds = std::env::var("SECONDS_OF_RACES").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let cluster = Cluster::options().set("deadlock_timeout = 20ms").start();
    cluster.client().batch_execute("CREATE ROLE other").unwrap();
    let (done, answers) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let callers: Vec<_> = (0..4_usize)
            .map(|caller| {
                let (cluster, done, answers) = (&cluster, &done, &answers);
                scope.spawn(move || {
                    let mut client = cluster.client();
                    let mut draw = Rng::with_seed(seed + caller as u64);
                    while !done.load(Ordering::SeqCst) {
                        let call = CALLS[draw.usize(..CALLS.len())];
                        match client.query(call, &[]) {
                            Ok(_) => drop(answers.fetch_add(1, Ordering::SeqCst)),
                            Err(error) => check(call, "others", error.as_db_error().unwrap()),
                        }
                    }
                })
            })
            .collect();
        let stops = End(&done);
        let until = Instant::now() + Duration::from_secs(seconds);
        let mut client = cluster.client();
        client.batch_execute("SET client_min_messages = warning").unwrap();
        let mut draw = Rng::with_seed(seed);
        // On a busy machine, for longer.
        let late = until + Duration::from_secs(60);
        let is_over = || Instant::now() >= if answers.load(Ordering::SeqCst) > 5 { until } else { late };
        while !is_over() && callers.iter().all(|caller| !caller.is_finished()) {
            let deed = DEEDS[draw.usize(..DEEDS.len())];
            client.batch_execute(deed).ok();
            if draw.u8(0..4) == 0 {
                // One statement after the other, as all would be undone with one that fails.
                TABLES.split(';').for_each(|statement| drop(client.batch_execute(statement)));
            }
        }
        drop(stops);
        callers.into_iter().for_each(|caller| caller.join().unwrap());
    });
    let answers = answers.into_inner();
    assert!(answers > 5, "{answers}");
}
