//! Servers that subscribe to each other's tables, and all write to one: with leases, no two rows have the same key, so no
//! change conflicts with another, and all servers come to have the same rows.

use postgres::Client;
use snowflake_clusters::load::until_written;
use snowflake_clusters::numbers;
use snowflake_test::check::wait_for;
use snowflake_test::load::{self, Gate, Record, TABLE, stored};
use snowflake_test::query::value;
use snowflake_test::registries::{Kind, Server, Setup};
use snowflake_test::{Cluster, Stop, millis};
use std::collections::BTreeSet;
use std::thread;

/// Rows with numbers of a segment.
const NUMBERED: &str =
    "CREATE TABLE numbered (number integer PRIMARY KEY DEFAULT snowflake_segment_next('orders'), by text)";

/// One of the servers.
struct Node {
    name: char,
    cluster: Cluster,
}

impl Node {
    /// A server with the table and a publication. The configuration is the same for all.
    fn start(name: char, registry: &Server) -> Self {
        let cluster = Cluster::options()
            .own_identifier()
            .listening()
            .set("wal_level = logical")
            .set("max_replication_slots = 20\nmax_wal_senders = 20\nmax_worker_processes = 30")
            .set("max_logical_replication_workers = 20")
            .set("pg_snowflake.worker_id = -1\npg_snowflake.max_wait = '20s'")
            .set(&format!("pg_snowflake.registry = '{}'", registry.url()))
            .start();
        cluster.client().batch_execute(TABLE).unwrap();
        cluster.client().batch_execute(NUMBERED).unwrap();
        cluster
            .client()
            .batch_execute("CREATE PUBLICATION everything FOR ALL TABLES WITH (publish_via_partition_root = true)")
            .unwrap();
        Self { name, cluster }
    }

    fn client(&self) -> Client {
        self.cluster.client()
    }

    #[track_caller]
    fn runs(&self, statement: &str) {
        self.client().batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    }

    /// The worker that it has leased.
    fn worker(&self) -> i32 {
        self.cluster.retry(|client| Ok(client.query_one("SELECT worker_id FROM snowflake_status()", &[])?.get(0)))
    }

    /// Takes what another server's own clients write from now on: `origin = none` leaves out what it has from others.
    fn subscribe(&self, to: &Self, options: &str) {
        let connection = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", to.cluster.port());
        // The slot is the publisher's, so its name says whose subscription it is.
        let (subscriber, publisher) = (self.name, to.name);
        self.runs(&format!(
            "CREATE SUBSCRIPTION from_{publisher} CONNECTION '{connection}' PUBLICATION everything \
             WITH (origin = none, slot_name = '{subscriber}_from_{publisher}', {options})"
        ));
    }

    /// Up to where it has what another server has written, as a place in the WAL of that one.
    fn progress(&self, from: &Self) -> String {
        let query = format!(
            "SELECT pg_replication_origin_progress('pg_' || oid, false)::text FROM pg_subscription \
             WHERE subname = 'from_{}'",
            from.name
        );
        value(&mut self.client(), &query)
    }

    /// Joins servers that take writes all the while. It copies the rows of the first one, and gets from each other server
    /// exactly the changes that this copy lacks.
    fn join(&self, members: &[Self]) {
        let (first, others) = members.split_first().unwrap();
        // The first server stands still in what it takes from the others, not in what is written to it. So what it has of
        // the others ends at a known place in the WAL of each.
        for other in others {
            first.runs(&format!("ALTER SUBSCRIPTION from_{} DISABLE", other.name));
        }
        let applies = "SELECT EXISTS (SELECT FROM pg_stat_subscription WHERE pid IS NOT NULL)";
        wait_for("nothing is applied", || !value::<bool>(&mut first.client(), applies));
        let places: Vec<String> = others.iter().map(|other| first.progress(other)).collect();
        // Slots that begin there, or before.
        for other in others {
            other.runs(&format!(
                "SELECT pg_copy_logical_replication_slot('{}_from_{}', '{}_from_{}')",
                first.name, other.name, self.name, other.name
            ));
        }
        self.subscribe(first, "copy_data = true");
        let copied = "SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel";
        wait_for("the rows are copied", || value(&mut self.client(), copied));
        for (other, place) in others.iter().zip(places) {
            first.runs(&format!("ALTER SUBSCRIPTION from_{} ENABLE", other.name));
            self.subscribe(other, "copy_data = false, create_slot = false, enabled = false");
            self.runs(&format!(
                "SELECT pg_replication_origin_advance('pg_' || oid, '{place}') FROM pg_subscription \
                 WHERE subname = 'from_{0}'; ALTER SUBSCRIPTION from_{0} ENABLE",
                other.name
            ));
        }
        for member in members {
            member.subscribe(self, "copy_data = false");
        }
    }
}

/// So many servers, each with a subscription to each other one.
fn mesh(registry: &Server, names: &str) -> Vec<Node> {
    let nodes: Vec<Node> = names.chars().map(|name| Node::start(name, registry)).collect();
    for subscriber in &nodes {
        for publisher in nodes.iter().filter(|publisher| publisher.name != subscriber.name) {
            subscriber.subscribe(publisher, "copy_data = false");
        }
    }
    nodes
}

/// Clients write on all of these while this happens.
fn written_during(nodes: &[Node], during: &mut dyn FnMut()) -> Record {
    let Some((node, others)) = nodes.split_first() else {
        during();
        return Record::default();
    };
    let gate = Gate::default();
    let (mut record, more) =
        load::run_gated(&["postgres"], 2, millis(4), &gate, || &node.cluster, || written_during(others, during));
    record.add(more);
    record
}

/// All servers come to have the same rows, and none has met a conflict.
fn converge(nodes: &[Node], record: &Record) {
    for publisher in nodes {
        // All that was written is before this.
        publisher.runs("SELECT pg_logical_emit_message(true, '', '')");
        let end: String = value(&mut publisher.client(), "SELECT pg_current_wal_flush_lsn()::text");
        for subscriber in nodes.iter().filter(|subscriber| subscriber.name != publisher.name) {
            let slot = format!("{}_from_{}", subscriber.name, publisher.name);
            let confirmed = format!(
                "SELECT coalesce(confirmed_flush_lsn >= '{end}', false) FROM pg_replication_slots \
                 WHERE slot_name = '{slot}'"
            );
            wait_for(&slot, || value(&mut publisher.client(), &confirmed));
        }
    }
    let rows = |node: &Node| -> BTreeSet<i64> { stored(&node.cluster, "postgres").into_iter().collect() };
    let first = rows(&nodes[0]);
    assert!(first.len() > 500, "{}", first.len());
    for node in &nodes[1..] {
        let rows = rows(node);
        let differing: Vec<_> = first.symmetric_difference(&rows).take(5).collect();
        assert!(differing.is_empty(), "{} has {} rows of {}: {differing:?}", node.name, rows.len(), first.len());
    }
    let clusters: Vec<&Cluster> = nodes.iter().map(|node| &node.cluster).collect();
    let count = record.check(&clusters);
    let workers: BTreeSet<i32> = nodes.iter().map(Node::worker).collect();
    assert_eq!(workers.len(), nodes.len(), "each has a worker of its own");
    for node in nodes {
        let log = node.cluster.log();
        // A server that crashes is away for its subscribers.
        let errors: Vec<&str> =
            log.lines().filter(|line| line.contains("ERROR:") && !line.contains("ERROR:  could not ")).collect();
        assert!(errors.is_empty(), "{errors:?}");
    }
    println!("{} servers: {count} IDs, {} rows, the same on all", nodes.len(), first.len());
}

#[test]
fn two_servers_write_one_table() {
    let registry = Setup::of(Kind::Etcd).start();
    let nodes = mesh(&registry, "ab");
    let record = written_during(&nodes, &mut || until_written(&nodes[1].cluster, 600));
    converge(&nodes, &record);
}

/// Both number the rows of one table; one of them crashes meanwhile.
#[test]
fn two_servers_number_the_rows_of_one_table() {
    let registry = Setup::of(Kind::Etcd).start();
    let nodes = mesh(&registry, "ab");
    nodes[0].cluster.retry(|client| client.query(numbers::CREATE, &[]));
    let insert = |node: &Node, rows: usize| {
        for _ in 0..rows {
            node.cluster.retry(|client| {
                client.execute(
                    "INSERT INTO numbered (by) SELECT $1::text FROM generate_series(1, 3)",
                    &[&node.name.to_string()],
                )
            });
        }
    };
    thread::scope(|scope| {
        for node in &nodes {
            scope.spawn(move || insert(node, 100));
        }
        nodes[1].cluster.restart(Stop::Kill);
    });
    let rows = |node: &Node| -> Vec<(i32, String)> {
        let found = node.client().query("SELECT number, by FROM numbered ORDER BY number", &[]).unwrap();
        found.iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    wait_for("both have the same rows", || {
        let [first, second] = [0, 1].map(|at| rows(&nodes[at]));
        // A call whose answer was lost in the crash may have stored its rows, and be made again.
        first.len() >= 600 && first == second
    });
    for node in &nodes {
        assert!(!node.cluster.log().contains("duplicate key"), "{}", node.cluster.log());
    }
}

/// One of them crashes meanwhile, and leases another worker.
#[test]
fn three_servers_write_one_table() {
    let registry = Setup::of(Kind::Etcd).start();
    let nodes = mesh(&registry, "abc");
    let record = written_during(&nodes, &mut || {
        until_written(&nodes[1].cluster, 300);
        let before = nodes[1].worker();
        nodes[1].cluster.restart(Stop::Kill);
        nodes[1].cluster.next_once_up();
        assert_ne!(nodes[1].worker(), before);
        until_written(&nodes[1].cluster, 300);
    });
    converge(&nodes, &record);
}

#[test]
fn a_server_joins_while_the_others_are_written_to() {
    let registry = Setup::of(Kind::Etcd).start();
    let mut nodes = mesh(&registry, "abc");
    let new = Node::start('d', &registry);
    let mut record = written_during(&nodes, &mut || {
        until_written(&nodes[0].cluster, 300);
        new.join(&nodes);
        until_written(&new.cluster, 100);
    });
    nodes.push(new);
    record.add(written_during(&nodes, &mut || until_written(&nodes[3].cluster, 300)));
    converge(&nodes, &record);
}

/// Without the first two steps, a row comes twice, which the key forbids. And what is written to the new server too early stays there.
#[test]
fn a_server_that_joins_in_a_hurry_stops_at_a_row_that_it_has() {
    let registry = Setup::of(Kind::Etcd).start();
    let nodes = mesh(&registry, "ab");
    let [a, b] = &nodes[..] else { unreachable!() };
    let new = Node::start('d', &registry);
    b.runs("SELECT pg_copy_logical_replication_slot('a_from_b', 'd_from_b')");
    let insert =
        |node: &Node| -> i64 { value(&mut node.client(), "INSERT INTO stored (session) VALUES (1) RETURNING id") };
    let has = |node: &Node, id: i64| stored(&node.cluster, "postgres").contains(&id);
    let row = insert(b);
    wait_for("a has the row", || has(a, row));
    new.subscribe(a, "copy_data = true");
    wait_for("the rows are copied", || has(&new, row));
    new.subscribe(b, "copy_data = false, create_slot = false");
    let log = || new.cluster.log();
    wait_for("the subscription stops", || log().contains("duplicate key value violates unique constraint"));

    let early = insert(&new);
    a.subscribe(&new, "copy_data = false");
    let later = insert(&new);
    wait_for("what is written later arrives", || has(a, later));
    assert!(!has(a, early));
}
