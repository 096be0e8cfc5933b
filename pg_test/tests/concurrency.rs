//! Many sessions at once: every ID once, each session's in order.

use snowflake_test::check::{self, refused};
use snowflake_test::query::{NEXT, batch, next};
use snowflake_test::{Cluster, ids, run, value};
use std::io::Write;

#[test]
fn sixteen_sessions_mix_single_calls_and_batches() {
    let cluster = Cluster::options().start();
    let lists = cluster.sessions(16, |session, client| {
        let mut list: Vec<i64> = Vec::new();
        for round in 0.. {
            let left = 100_000 - list.len();
            if left == 0 {
                break;
            }
            let rows = match (session + round) % 4 {
                0 => client.query(NEXT, &[]),
                1 => client.query("SELECT snowflake_next() FROM generate_series(1, $1)", &[&(left.min(3000) as i32)]),
                2 => client.query("SELECT snowflake_next($1)", &[&(left.min(5000) as i32)]),
                _ => client.query("SELECT * FROM snowflake_next($1)", &[&(left.min(7) as i32)]),
            };
            list.extend(ids(&rows.unwrap()));
        }
        list
    });
    lists.iter().for_each(|list| check::rising(list));
    assert_eq!(check::distinct(&lists), 1_600_000);
}

#[test]
fn pgbench_fills_a_primary_key_from_eight_clients() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    client.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_next(), client integer)").unwrap();
    let script = cluster.socket().join("script.sql");
    std::fs::write(&script, "INSERT INTO t (client) VALUES (:client_id);\n").unwrap();
    run(cluster
        .program("pgbench")
        .args(["--no-vacuum", "--client=8", "--jobs=2", "--transactions=2000", "--file"])
        .arg(script)
        .arg("postgres"));
    let row = client.query_one("SELECT count(*), count(DISTINCT id), count(DISTINCT client) FROM t", &[]).unwrap();
    assert_eq!((row.get(0), row.get(1), row.get(2)), (16_000_i64, 16_000_i64, 8_i64));
}

#[test]
fn copy_from_several_sessions() {
    let cluster = Cluster::options().start();
    cluster
        .client()
        .batch_execute("CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_next(), session int, n int)")
        .unwrap();
    cluster.sessions(4, |session, client| {
        let mut copy = client.copy_in("COPY t (session, n) FROM STDIN").unwrap();
        for n in 0..20_000 {
            writeln!(copy, "{session}\t{n}").unwrap();
        }
        assert_eq!(copy.finish().unwrap(), 20_000);
    });
    let out_of_order = "SELECT count(*) FILTER (WHERE n <> place), count(*) FROM \
         (SELECT n, row_number() OVER (PARTITION BY session ORDER BY id) - 1 AS place FROM t) rows";
    let row = cluster.client().query_one(out_of_order, &[]).unwrap();
    assert_eq!((row.get(0), row.get(1)), (0_i64, 80_000_i64));
}

#[test]
fn create_table_as_with_parallel_workers_beside_other_writers() {
    // Enough processes for both statements.
    let cluster = Cluster::options()
        .set("max_worker_processes = 20")
        .set("max_parallel_workers = 16")
        .set("max_parallel_workers_per_gather = 4")
        .set("parallel_setup_cost = 0")
        .set("parallel_tuple_cost = 0")
        .set("min_parallel_table_scan_size = 0")
        .start();
    cluster.client().batch_execute("CREATE TABLE source AS SELECT i FROM generate_series(1, 300000) i").unwrap();
    let lists = cluster.sessions(3, |session, client| {
        if session == 0 {
            return batch(client, 300_000);
        }
        let table = format!(
            "EXPLAIN (ANALYZE, COSTS OFF) CREATE TABLE t{session} AS SELECT snowflake_next() AS id FROM source"
        );
        let plan: Vec<String> = client.query(&table, &[]).unwrap().iter().map(|line| line.get(0)).collect();
        assert!(plan.iter().any(|line| line.contains("Workers Launched: ")), "{plan:#?}");
        assert!(!plan.iter().any(|line| line.contains("Workers Launched: 0")), "{plan:#?}");
        ids(&client.query(&format!("SELECT id FROM t{session}"), &[]).unwrap())
    });
    assert_eq!(check::distinct(&lists), 900_000);
}

/// A pooler runs the statements of many clients in few sessions, in any order.
#[test]
fn sessions_shared_by_a_pooler() {
    let cluster = Cluster::options().start();
    let pool: Vec<_> = (0..4).map(|_| std::sync::Mutex::new(cluster.client())).collect();
    let lists: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|client| {
                let pool = &pool;
                scope.spawn(move || {
                    (0..500)
                        .map(|n| {
                            let mut session = pool[(client * 7 + n) % pool.len()].lock().unwrap();
                            session.batch_execute("DISCARD ALL").unwrap();
                            next(&mut session)
                        })
                        .collect()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    lists.iter().for_each(|list| check::rising(list));
    assert_eq!(check::distinct(&lists), 8_000);
}

#[test]
fn ten_million_in_one_batch_need_no_memory_and_can_be_cancelled() {
    let cluster = Cluster::options().set("work_mem = '64kB'").start();
    let mut client = cluster.client();
    let peak = |pid: i32| -> i64 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    let pid: i32 = value(&mut client, "SELECT pg_backend_pid()");
    client.query_one("SELECT count(snowflake_next) FROM (SELECT snowflake_next(1000)) ids", &[]).unwrap();
    let before = peak(pid);
    let query = "SELECT count(snowflake_next), max(snowflake_next) > min(snowflake_next) + 10000000 \
                 FROM (SELECT snowflake_next(10000000)) ids";
    let row = client.query_one(query, &[]).unwrap();
    assert_eq!(row.get::<_, i64>(0), 10_000_000);
    let grown = peak(pid) - before;
    assert!(grown < 4096, "the session grew by {grown} kB");

    client.batch_execute("SET statement_timeout = '300ms'").unwrap();
    for query in [
        "SELECT count(*) FROM snowflake_next(2000000000)",
        "SELECT count(snowflake_next) FROM (SELECT snowflake_next(2000000000)) ids",
    ] {
        refused(&mut client, query, "57014");
    }
    client.batch_execute("RESET statement_timeout").unwrap();
    assert!(client.query_one(NEXT, &[]).is_ok());
}
