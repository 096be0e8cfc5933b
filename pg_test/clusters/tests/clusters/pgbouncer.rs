//! Clients that come by PgBouncer: a session of the server serves one after the other, and a client gets another session for
//! each transaction, or each statement. The server leases its worker ID.

use postgres::{Client, SimpleQueryMessage};
use snowflake_clusters::load::{connect, until_written};
use snowflake_clusters::numbers::{self, Numbers};
use snowflake_test::check;
use snowflake_test::directories::directory;
use snowflake_test::load::{End, TABLE, stored};
use snowflake_test::pgbouncer::{PgBouncer, Pool};
use snowflake_test::programs::{Output, output};
use snowflake_test::query::value;
use snowflake_test::registries::{Kind, Server, Setup};
use snowflake_test::{Cluster, Installation, Stop, millis};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// How many sessions of the server all clients share.
const SESSIONS: usize = 3;

/// How many clients there are.
const CLIENTS: usize = 12;

fn server() -> (Server, Cluster) {
    let registry = Setup::of(Kind::Etcd).start();
    let cluster = Cluster::options()
        .listening()
        .set("pg_snowflake.worker_id = -1")
        .set(&format!("pg_snowflake.registry = '{}'", registry.url()))
        .start();
    cluster.client().batch_execute(TABLE).unwrap();
    (registry, cluster)
}

/// The first column of all rows of some statements, which are sent as one text: no prepared statement.
fn texts(client: &mut Client, statements: &str) -> Result<Vec<String>, postgres::Error> {
    let messages = client.simple_query(statements)?;
    let rows = messages.iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    Ok(rows.collect())
}

/// What a client does in turn. With statements for sessions, there are no transactions of several.
fn calls(pool: Pool) -> Vec<&'static str> {
    let mut calls = vec![
        "INSERT INTO stored (session) VALUES (1) RETURNING id",
        "SELECT snowflake_next()",
        "SELECT snowflake_next(20)",
        "INSERT INTO stored (session) SELECT 1 FROM generate_series(1, 5) RETURNING id",
    ];
    if pool == Pool::Transaction {
        let insert = "INSERT INTO stored (session) VALUES (1) RETURNING id";
        let both: &str = Box::leak(format!("BEGIN; {insert}; {insert}; COMMIT").into_boxed_str());
        let none: &str = Box::leak(format!("BEGIN; {insert}; SELECT snowflake_next(); ROLLBACK").into_boxed_str());
        calls.extend([both, none]);
    }
    calls
}

/// Clients call all the while. The server's sessions are killed meanwhile, and the server itself.
fn pooled(pool: Pool) {
    let (_registry, cluster) = server();
    let bouncer = PgBouncer::before(&cluster, pool, SESSIONS);
    let done = AtomicBool::new(false);
    // By client, which processes served it.
    let served = Mutex::new(BTreeMap::<usize, BTreeSet<String>>::new());
    let lists: Vec<(Vec<i64>, Vec<i64>)> = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (bouncer, done, served) = (&bouncer, &done, &served);
                scope.spawn(move || client(number, pool, bouncer.port(), done, served))
            })
            .collect();
        let end = End(&done);
        until_written(&cluster, 200);
        let sessions =
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND query ~ 'stored|snowflake'
                        AND pid <> pg_backend_pid()";
        let sessions: i64 = value(&mut cluster.client(), sessions);
        cluster.crash_any_session();
        until_written(&cluster, 200);
        cluster.restart(Stop::Kill);
        until_written(&cluster, 200);
        cluster.restart(Stop::Fast);
        until_written(&cluster, 200);
        let many = || served.lock().unwrap().values().filter(|pids| pids.len() > 2).count() > CLIENTS / 2;
        check::wait_for("most clients have had several sessions", many);
        drop(end);
        assert!(sessions as usize <= SESSIONS, "{sessions}");
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let heard: HashSet<i64> = lists.iter().flat_map(|(inserted, _)| inserted).copied().collect();
    let unheard = stored(&cluster, "postgres").into_iter().filter(|id| !heard.contains(id)).collect();
    let mut all: Vec<Vec<i64>> = lists.into_iter().flat_map(|(inserted, given)| [inserted, given]).collect();
    all.push(unheard);
    let count = check::distinct(&all);
    assert!(count > 1_000, "{count}");
    println!("{pool:?}: {count} IDs");
}

/// One client: the IDs of its INSERTs, and of its other calls. Each is above the one before, whichever session made it.
fn client(
    number: usize,
    pool: Pool,
    port: u16,
    done: &AtomicBool,
    served: &Mutex<BTreeMap<usize, BTreeSet<String>>>,
) -> (Vec<i64>, Vec<i64>) {
    let (mut inserted, mut given, mut last) = (Vec::new(), Vec::new(), i64::MIN);
    let (calls, mut connection) = (calls(pool), None);
    for round in number.. {
        if done.load(Relaxed) {
            break;
        }
        let Some(client) = &mut connection else {
            connection = connect(port).ok();
            thread::sleep(millis(20));
            continue;
        };
        let call = calls[round % calls.len()];
        let answer = if round % 50 == 0 {
            texts(client, "SELECT pg_backend_pid()")
                .map(|pids| served.lock().unwrap().entry(number).or_default().extend(pids))
        } else {
            texts(client, call).map(|ids| {
                let ids: Vec<i64> = ids.iter().map(|id| id.parse().unwrap()).collect();
                check::rising(&[&[last], &ids[..]].concat());
                last = ids[ids.len() - 1];
                // What is rolled back is not stored.
                let stores = call.contains("INSERT") && !call.contains("ROLLBACK");
                if stores { &mut inserted } else { &mut given }.extend(ids);
            })
        };
        if let Err(error) = answer {
            assert_ne!(error.code().map(|code| code.code()), Some("23505"), "{error:?}");
            connection = None;
        }
    }
    (inserted, given)
}

/// Numbers of a segment, which a session finds by what it remembers of its last call.
#[test]
fn numbers_of_a_segment() {
    let (_registry, cluster) = server();
    cluster.retry(|client| client.query(numbers::CREATE, &[]));
    let bouncer = PgBouncer::before(&cluster, Pool::Transaction, SESSIONS);
    let numbers = Numbers::start(&[bouncer.port()], CLIENTS);
    let more = |count: usize| {
        let before = numbers.count();
        check::wait_for("numbers are taken", || numbers.count() >= before + count);
    };
    more(300);
    cluster.crash_any_session();
    more(300);
    cluster.restart(Stop::Kill);
    more(300);
    cluster.restart(Stop::Fast);
    more(300);
    let count = numbers.finish();
    println!("{count} numbers of a segment");
}

#[test]
fn a_session_for_each_transaction() {
    pooled(Pool::Transaction);
}

#[test]
fn a_session_for_each_statement() {
    pooled(Pool::Statement);
}

/// pgbench with this protocol.
fn pgbench(port: u16, protocol: &str) -> Output {
    let directory = directory("pgbench-");
    let script = directory.path().join("insert.sql");
    let statements = "INSERT INTO stored (session) VALUES (:client_id);\nSELECT snowflake_next(3);\n";
    std::fs::write(&script, statements).unwrap();
    let mut command = Command::new(Installation::under_test().bin().join("pgbench"));
    command.env_clear().env("PGHOST", "127.0.0.1").env("PGPORT", port.to_string());
    command.env("PGUSER", "postgres").env("PGDATABASE", "postgres");
    command.args(["--no-vacuum", "--client=8", "--transactions=50", "--protocol", protocol, "--file"]);
    output(command.arg(script))
}

/// Statements that are prepared once, and executed by whichever session of the server: from PgBouncer 1.21 on. Before it, a
/// client that prepares by name needs a session of its own; one that does not name what it prepares does not.
#[test]
fn prepared_statements() {
    let (_registry, cluster) = server();
    let follows = PgBouncer::version() >= (1, 21);
    for (pool, protocol, works) in [
        (Pool::Session, "prepared", true),
        (Pool::Transaction, "extended", true),
        (Pool::Statement, "extended", true),
        (Pool::Transaction, "prepared", follows),
        (Pool::Statement, "prepared", follows),
    ] {
        // In session mode, each client keeps one. Where it is not to work, all clients come to the same one.
        let sessions = if pool == Pool::Session {
            8
        } else if works {
            SESSIONS
        } else {
            1
        };
        let bouncer = PgBouncer::before(&cluster, pool, sessions);
        let before = stored(&cluster, "postgres").len();
        let run = pgbench(bouncer.port(), protocol);
        let rows = stored(&cluster, "postgres").len() - before;
        if works {
            assert!(run.success && rows == 400, "{pool:?}, {protocol}: {rows} rows, {run:?}");
        } else {
            // It may go on all the same, with what another client has prepared by this name.
            assert!(run.errors.contains("prepared statement \"P_0\" already exists"), "{pool:?}, {protocol}: {run:?}");
        }
    }
}
