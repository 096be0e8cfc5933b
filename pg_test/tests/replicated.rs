//! Two servers that subscribe to each other's tables, as docs/active-active.md says, with a table
//! whose partitions the job makes and drops on both.

use crate::pages::block;
use postgres::Client;
use snowflake_test::check::wait_for;
use snowflake_test::hosted::{self, DATABASE};
use snowflake_test::{Cluster, Installation, value};

const TABLES: &str =
    "CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_next(), what text) PARTITION BY RANGE (id);
     CREATE TABLE notes (id bigint PRIMARY KEY DEFAULT snowflake_next(), what text)";

/// Servers `a` and `b`, with worker IDs 1 and 2.
struct Pair([Cluster; 2]);

impl Pair {
    /// With publications by this statement, and subscriptions by that of the page; `None` where
    /// PostgreSQL cannot.
    fn start(publish: &str) -> Option<Self> {
        if Installation::under_test().major() < 16 {
            return None;
        }
        let pair = Self([1, 2].map(|worker| {
            let lines = format!(
                "wal_level = logical\nwal_retrieve_retry_interval = '200ms'\npg_snowflake.worker_id = {worker}"
            );
            let cluster = Cluster::options().own_identifier().set(&lines).start();
            cluster.client().batch_execute(TABLES).unwrap();
            cluster
        }));
        pair.job("1 day");
        pair.on_both(|server, _| server.batch_execute(publish).unwrap());
        let subscribe = block("active-active.md", "CREATE SUBSCRIPTION from_b");
        pair.on_both(|server, place| {
            let host = format!("host={} user=postgres", pair.0[1 - place].socket().display());
            let statement = pair.of(place, &subscribe).replace("host=b …", &host);
            assert!(statement.contains(&host) && statement.contains("origin = none"), "{statement}");
            server.batch_execute(&statement).unwrap();
        });
        Some(pair)
    }

    fn client(&self, place: usize) -> Client {
        self.0[place].client()
    }

    fn on_both(&self, mut work: impl FnMut(&mut Client, usize)) {
        for place in 0..2 {
            work(&mut self.client(place), place);
        }
    }

    /// A statement that the page has for server a, for one of the two.
    fn of(&self, place: usize, statement: &str) -> String {
        if place == 0 {
            return statement.to_owned();
        }
        statement.replace("from_b", "from_a").replace("a_from_", "b_from_")
    }

    /// What the job does on both, up to this time from now.
    fn job(&self, ahead: &str) {
        self.on_both(|server, _| {
            let job = format!(
                "SELECT count(*) FROM snowflake_maintain_partitions('events', every => '1 day', \
                 ahead => '{ahead}')"
            );
            server.query_one(&job, &[]).unwrap();
        });
    }

    /// Each server inserts a row of this time.
    fn insert(&self, from_now: &str) {
        self.on_both(|server, place| {
            let insert = format!(
                "INSERT INTO events SELECT snowflake_encode(now() + interval '{from_now}', worker_id, 0), \
                 '{from_now}' FROM snowflake_status()"
            );
            server.batch_execute(&insert).unwrap_or_else(|error| panic!("{place}: {error:?}"));
        });
    }

    /// Waits until all that was written before is applied.
    fn settle(&self) {
        for from in 0..2 {
            let note: i64 = value(&mut self.client(from), "INSERT INTO notes DEFAULT VALUES RETURNING id");
            let arrived = format!("SELECT EXISTS (SELECT FROM notes WHERE id = {note})");
            wait_for("a row arrives", || value(&mut self.client(1 - from), &arrived));
        }
    }

    /// How many rows each has of this time.
    fn rows(&self, from_now: &str) -> [i64; 2] {
        [0, 1].map(|place| {
            let query = format!("SELECT count(*) FROM events WHERE what = '{from_now}'");
            value(&mut self.client(place), &query)
        })
    }

    /// What preflight says of each.
    fn said(&self) -> [Vec<(String, String)>; 2] {
        [0, 1].map(|place| said(&mut self.client(place)))
    }

    /// Waits until a subscription has failed by this error since then.
    fn fails(&self, place: usize, since: u64, error: &str) {
        wait_for("the subscription stops", || self.0[place].log_since(since).contains(error));
    }
}

/// The page's publication.
fn as_a_whole() -> String {
    let block = block("active-active.md", "CREATE PUBLICATION everything");
    block.lines().next().unwrap().to_owned()
}

/// What preflight says about replication: verdicts and findings.
fn said(client: &mut Client) -> Vec<(String, String)> {
    let query = "SELECT verdict, finding FROM snowflake_preflight() WHERE subject = 'replication'";
    client.query(query, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

const NO_PARTITION: &str = "no partition of relation \"events\" found for row";

/// As the pages say it.
#[test]
fn rows_of_partitions_that_the_job_makes_and_drops() {
    let Some(pair) = Pair::start(&as_a_whole()) else { return };
    assert_eq!(pair.said(), [vec![], vec![]]);
    pair.insert("1 hour");
    pair.job("4 days");
    pair.insert("3 days");
    pair.settle();
    assert_eq!((pair.rows("1 hour"), pair.rows("3 days")), ([2, 2], [2, 2]));
    let old = "SELECT snowflake_create_partitions('events', '1 day', \
               date_trunc('day', now() - interval '60 days', 'UTC'), date_trunc('day', now() - interval '57 days', 'UTC'))";
    pair.on_both(|server, _| drop(server.query(old, &[]).unwrap()));
    pair.insert("-59 days");
    pair.settle();
    assert_eq!(pair.rows("-59 days"), [2, 2]);
    // Both drop it, as a job with a retention does, one after the other.
    pair.on_both(|server, _| {
        let dropped: String = value(server, "SELECT min(tableoid::regclass::text) FROM events WHERE what = '-59 days'");
        server.batch_execute(&format!("DROP TABLE {dropped}")).unwrap();
        pair.insert("2 days");
        pair.settle();
    });
    assert_eq!((pair.rows("-59 days"), pair.rows("2 days")), ([0, 0], [4, 4]));
    assert_eq!(pair.said(), [vec![], vec![]]);
}

/// A server that has no partition yet waits for its job; one that has it no more, for the partition.
#[test]
fn a_subscription_stops_for_want_of_a_partition_and_goes_on_with_it() {
    let Some(pair) = Pair::start(&as_a_whole()) else { return };
    let [mut a, mut b] = [0, 1].map(|place| pair.client(place));
    let job = "SELECT count(*) FROM snowflake_maintain_partitions('events', every => '1 day', ahead => '4 days')";
    let insert = "INSERT INTO events SELECT snowflake_min_id(now() + interval '4 days'), 'ahead'";
    let since = pair.0[1].log_length();
    a.batch_execute(&format!("{job}; {insert}")).unwrap();
    pair.fails(1, since, NO_PARTITION);
    b.batch_execute(job).unwrap();
    pair.settle();
    assert_eq!(pair.rows("ahead"), [1, 1]);

    let dropped: String = value(&mut a, "SELECT tableoid::regclass::text FROM events WHERE what = 'ahead'");
    a.batch_execute(&format!("DROP TABLE {dropped}")).unwrap();
    let since = pair.0[0].log_length();
    b.batch_execute("UPDATE events SET what = 'changed' WHERE what = 'ahead'").unwrap();
    pair.fails(0, since, NO_PARTITION);
    let again = "SELECT snowflake_create_partitions('events', '1 day', \
                 date_trunc('day', now() + interval '4 days', 'UTC'), date_trunc('day', now() + interval '5 days', 'UTC'))";
    a.batch_execute(again).unwrap();
    pair.settle();
    assert_eq!((pair.rows("ahead"), pair.rows("changed")), ([0, 0], [0, 1]));
}

/// Of a partition that one server has detached, as a job does, subscribers want nothing; but they must
/// have a table of its name, where somebody writes to it.
#[test]
fn a_detached_partition_is_a_table_of_its_own() {
    let Some(pair) = Pair::start(&as_a_whole()) else { return };
    let [mut a, mut b] = [0, 1].map(|place| pair.client(place));
    pair.insert("0 s");
    pair.settle();
    let part: String = value(&mut a, "SELECT max(tableoid::regclass::text) FROM events");
    let write = format!("INSERT INTO {part} VALUES (1, 'detached')");
    a.batch_execute(&format!("ALTER TABLE events DETACH PARTITION {part}; {write}")).unwrap();
    pair.settle();
    assert_eq!((pair.rows("detached"), pair.rows("0 s")), ([0, 0], [0, 2]));
    assert_eq!(value::<i64>(&mut b, &format!("SELECT count(*) FROM {part}")), 2);
    b.batch_execute(&format!("DROP TABLE {part}")).unwrap();
    let since = pair.0[1].log_length();
    a.batch_execute(&write.replace("(1,", "(2,")).unwrap();
    pair.fails(1, since, &format!("logical replication target relation \"public.{part}\" does not exist"));
    b.batch_execute(&format!("CREATE TABLE {part} (LIKE events)")).unwrap();
    pair.settle();
    assert_eq!(value::<i64>(&mut b, &format!("SELECT count(*) FROM {part}")), 0);
}

/// Partition by partition, rows are lost in silence; preflight says so, and after the change that the
/// page describes they are not, and those that were are fetched.
#[test]
fn partition_by_partition_rows_are_lost_until_the_publication_is_changed_over() {
    let Some(pair) = Pair::start("CREATE PUBLICATION everything FOR ALL TABLES") else { return };
    let is_warned = |said: &[(String, String)], subscription: &str| {
        let [(first, by), (second, of)] = said else { return false };
        first == "warning"
            && by.starts_with("publication everything publishes public.events partition by partition")
            && second == "warning"
            && of.starts_with(&format!("subscription {subscription} knows public.events partition by partition"))
    };
    let said = pair.said();
    assert!(is_warned(&said[0], "from_b") && is_warned(&said[1], "from_a"), "{said:?}");
    pair.job("2 days");
    pair.insert("2 days");
    pair.settle();
    assert_eq!(pair.rows("2 days"), [1, 1]);
    let names =
        "SELECT string_agg(inhrelid::regclass::text, ' ') FROM pg_inherits WHERE inhparent = 'events'::regclass";
    let names: String = value(&mut pair.client(0), names);
    let newest = names.split(' ').max().unwrap();
    for (said, subscription) in pair.said().iter().zip(["from_b", "from_a"]) {
        let expected = format!(
            "subscription {subscription} does not know public.{newest} of public.events: \
                                it drops their rows, and says nothing"
        );
        assert_eq!(said[1], ("problem".to_owned(), expected));
    }

    let page = "reference/subscribers.md";
    let publish = block(page, "CREATE PUBLICATION by_root");
    pair.on_both(|server, _| server.batch_execute(&publish).unwrap());
    let written = [0, 1].map(|place| value::<String>(&mut pair.client(place), "SELECT pg_current_wal_lsn()::text"));
    pair.settle();
    for (place, written) in written.iter().enumerate() {
        let confirmed = format!("SELECT bool_and(confirmed_flush_lsn >= '{written}') FROM pg_replication_slots");
        wait_for("the subscriber has come that far", || value(&mut pair.client(place), &confirmed));
    }
    let change = block(page, "ALTER SUBSCRIPTION from_b SET PUBLICATION");
    // Rows come all the while.
    let mut count = 0;
    pair.on_both(|server, place| {
        for is_changed in [false, true] {
            if is_changed {
                server.batch_execute(&pair.of(place, &change)).unwrap();
            }
            pair.insert("1 hour");
            count += 2;
        }
    });
    pair.on_both(|server, _| server.batch_execute("DROP PUBLICATION everything").unwrap());
    assert_eq!(pair.said(), [vec![], vec![]]);
    pair.job("5 days");
    pair.insert("5 days");
    pair.settle();
    assert_eq!((pair.rows("1 hour"), pair.rows("5 days")), ([count, count], [2, 2]));

    // What was lost before.
    let write = block(page, "\\copy (SELECT");
    let read = block(page, "SELECT pg_replication_origin_create");
    for (from, to) in [(1, 0), (0, 1)] {
        let file = pair.0[to].new_file("missed");
        let [write, read] = [&write, &read].map(|text| {
            // The name of the origin is not that of the file.
            text.replace("snowflake_worker(id) = 2", &format!("snowflake_worker(id) = {}", from + 1))
                .replace("TO 'missed'", &format!("TO '{}'", file.display()))
                .replace("FROM 'missed'", &format!("FROM '{}'", file.display()))
        });
        for (place, script) in [(from, write), (to, read)] {
            let path = pair.0[place].new_file("script.sql");
            std::fs::write(&path, script + "\n").unwrap();
            let mut psql = snowflake_test::dump::psql(&pair.0[place], "postgres", "postgres");
            snowflake_test::programs::run(psql.args(["--set=ON_ERROR_STOP=1", "--file"]).arg(&path));
        }
    }
    pair.settle();
    assert_eq!((pair.rows("2 days"), pair.rows("1 hour")), ([2, 2], [count, count]));
    for server in &pair.0 {
        assert!(!server.log().contains("ERROR:"), "{}", server.log());
    }
}

/// The other way, without another publication.
#[test]
fn partition_by_partition_a_refresh_before_rows_come_loses_none() {
    let Some(pair) = Pair::start("CREATE PUBLICATION everything FOR TABLE events, notes") else { return };
    let refresh = block("reference/subscribers.md", "ALTER SUBSCRIPTION from_b REFRESH");
    pair.job("2 days");
    assert!(pair.said().iter().all(|said| said[1].0 == "problem"), "{:?}", pair.said());
    pair.on_both(|server, place| server.batch_execute(&pair.of(place, &refresh)).unwrap());
    assert!(pair.said().iter().all(|said| said[1].0 == "warning"), "{:?}", pair.said());
    pair.insert("2 days");
    pair.settle();
    assert_eq!(pair.rows("2 days"), [2, 2]);
}

/// Which publications publish partition by partition: in both editions.
#[test]
fn publications_that_preflight_names() {
    const DAYS: &str = "CREATE SCHEMA shop; CREATE SCHEMA parts;
        CREATE TABLE shop.days (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id);
        CREATE TABLE shop.day PARTITION OF shop.days FOR VALUES FROM (1) TO (9) PARTITION BY RANGE (id);
        CREATE TABLE parts.hour PARTITION OF shop.day FOR VALUES FROM (1) TO (2);
        CREATE TABLE shop.kinds (id bigint DEFAULT snowflake_next(), kind text) PARTITION BY LIST (kind);
        CREATE TABLE shop.lamps PARTITION OF shop.kinds DEFAULT;
        CREATE TABLE shop.others (id bigint) PARTITION BY RANGE (id);
        CREATE TABLE shop.other PARTITION OF shop.others DEFAULT";
    const AS_A_WHOLE: &str = "WITH (publish_via_partition_root = true)";
    let in_sql = hosted::options().set("wal_level = logical").create();
    in_sql.start();
    hosted::create_database(&in_sql, DATABASE);
    hosted::run_script(&in_sql, DATABASE);
    let library = Cluster::options().set("wal_level = logical").start();
    for mut client in [in_sql.client_of("postgres", DATABASE), library.client()] {
        client.batch_execute(DAYS).unwrap();
        assert_eq!(said(&mut client), []);
        let mut is_named = |publication: &str| {
            client.batch_execute(&format!("BEGIN; CREATE PUBLICATION \"a P\" FOR {publication}")).unwrap();
            let said = said(&mut client);
            client.batch_execute("ROLLBACK").unwrap();
            let named = "publication \"a P\" publishes shop.days partition by partition: subscribers drop the rows of \
                         partitions that are made later, and say nothing";
            assert!(said.is_empty() || said == [("warning".to_owned(), named.to_owned())], "{publication}: {said:?}");
            !said.is_empty()
        };
        assert!(is_named("ALL TABLES") && !is_named(&format!("ALL TABLES {AS_A_WHOLE}")));
        assert!(is_named("TABLE shop.days") && !is_named(&format!("TABLE shop.days {AS_A_WHOLE}")));
        assert!(is_named("TABLE parts.hour") && is_named(&format!("TABLE parts.hour {AS_A_WHOLE}")));
        assert!(!is_named("TABLE shop.kinds, shop.others"));
        if Installation::under_test().major() >= 15 {
            assert!(is_named("TABLES IN SCHEMA shop") && !is_named(&format!("TABLES IN SCHEMA shop {AS_A_WHOLE}")));
            // The table itself is in another one.
            assert!(is_named(&format!("TABLES IN SCHEMA parts {AS_A_WHOLE}")));
            assert!(!is_named(&format!("TABLE shop.days WHERE (id > 5) {AS_A_WHOLE}")));
        }
    }
}
