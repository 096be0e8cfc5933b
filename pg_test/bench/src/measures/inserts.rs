//! What the key costs in use: rows with a primary key.

use crate::contenders::{CLOCK, Contender, OURS, UUID_V4};
use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Figure, Row, Trial, interleave};
use crate::servers::{Servers, pgbench, pgbench_mixed, time};
use snowflake_test::Cluster;

const BIGSERIAL: &str = "bigserial";
const IDENTITY: &str = "identity";

/// The keys: name, and the column.
fn keys(contenders: &[Contender]) -> Vec<(String, String)> {
    let mut keys = vec![
        (OURS.to_owned(), "bigint DEFAULT snowflake_next()".to_owned()),
        (BIGSERIAL.to_owned(), "bigserial".to_owned()),
        (IDENTITY.to_owned(), "bigint GENERATED ALWAYS AS IDENTITY".to_owned()),
    ];
    let others = contenders.iter().filter(|contender| {
        contender.name != OURS && contender.name != CLOCK && !contender.name.starts_with("nextval")
    });
    keys.extend(others.map(|other| (other.name.clone(), format!("{} DEFAULT {}", other.column, other.expression))));
    keys
}

/// An empty table whose primary key is of this kind, and a session.
fn create_table(server: &Cluster, table: &str, key: &str) -> postgres::Client {
    let mut client = server.client();
    let create =
        format!("DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (id {key} PRIMARY KEY, item text); CHECKPOINT");
    client.batch_execute(&create).unwrap();
    client
}

/// One statement that inserts many rows, and the size of the index.
pub fn many_rows(servers: &Servers, plan: &Plan, contenders: &[Contender]) -> Group {
    let (server, count) = (&servers.default, plan.inserted);
    let trial = |(name, key): (String, String)| {
        Trial::new(name, move || {
            let mut client = create_table(server, "rows", &key);
            let insert = format!("INSERT INTO rows (item) SELECT 'lamp' FROM generate_series(1, {count})");
            let seconds = time(&mut client, &insert).as_secs_f64();
            let size = "SELECT pg_relation_size('rows_pkey')::float8 / 1048576";
            let size: f64 = client.query_one(size, &[]).unwrap().get(0);
            vec![("s", seconds), ("MiB", size)]
        })
    };
    let trials = keys(contenders).into_iter().map(trial).collect();
    let about = format!(
        "`INSERT INTO rows (item) SELECT 'lamp' FROM generate_series(1, {count})` into an empty table whose primary key has the \
         default, and the size of the key's index afterwards. Default layout."
    );
    let mut group = Group::new("Rows of one INSERT", about, interleave(plan.long_rounds, trials));
    group.compare(OURS, BIGSERIAL, "s", Goal::AtMost(1.0));
    group.compare(OURS, UUID_V4, "s", Goal::AtMost(0.45));
    group.compare(OURS, BIGSERIAL, "MiB", Goal::AtMost(1.0));
    group.compare(OURS, UUID_V4, "MiB", Goal::AtMost(0.6));
    group
}

const CLIENTS: usize = 64;

/// `synchronous_commit`.
const MODES: [&str; 2] = ["off", "on"];

/// The keys that many clients insert.
fn few_keys(contenders: &[Contender]) -> impl Iterator<Item = (String, String)> {
    keys(contenders).into_iter().filter(|(name, _)| [OURS, BIGSERIAL, UUID_V4].contains(&name.as_str()))
}

fn with_commit(name: &str, mode: &str) -> String {
    format!("{name}, synchronous_commit {mode}")
}

/// 64 clients, a row a transaction.
pub fn single_rows(servers: &Servers, plan: &Plan, contenders: &[Contender]) -> Group {
    let server = &servers.default;
    let mut trials = Vec::new();
    for mode in MODES {
        for (name, key) in few_keys(contenders) {
            trials.push(Trial::new(with_commit(&name, mode), move || {
                drop(create_table(server, "rows", &key));
                let insert = "INSERT INTO rows (item) VALUES ('lamp')";
                let load = pgbench(server, insert, CLIENTS, plan.load, &format!("-c synchronous_commit={mode}"));
                vec![("rows/s", load.per_second), ("p99 ms", load.p99)]
            }));
        }
    }
    let about = "pgbench, 64 clients, one row a transaction, prepared statements. Default layout. The disk makes runs differ by \
                 more than the keys do: the next table compares them within each run.";
    Group::new("Rows of 64 clients", about, interleave(plan.long_rounds, trials))
}

/// 64 clients, a row a transaction, into one of several tables at random. So only the key differs.
pub fn mixed_rows(servers: &Servers, plan: &Plan, contenders: &[Contender]) -> Group {
    let server = &servers.default;
    let mut rows = Vec::new();
    for mode in MODES {
        let names: Vec<_> = few_keys(contenders).map(|(name, _)| name).collect();
        let mut rounds = vec![[Vec::new(), Vec::new()]; names.len()];
        for _ in 0..plan.mixed_rounds {
            let mut statements = Vec::new();
            for (number, (_, key)) in few_keys(contenders).enumerate() {
                let table = format!("rows{number}");
                create_table(server, &table, &key);
                statements.push(format!("INSERT INTO {table} (item) VALUES ('lamp')"));
            }
            let options = format!("-c synchronous_commit={mode}");
            let loads = pgbench_mixed(server, &statements, CLIENTS, plan.load, &options);
            for ([means, p99s], load) in rounds.iter_mut().zip(loads) {
                means.push(load.mean);
                p99s.push(load.p99);
            }
        }
        rows.extend(names.iter().zip(rounds).map(|(name, [means, p99s])| Row {
            name: with_commit(name, mode),
            figures: vec![Figure::new("mean ms", means), Figure::new("p99 ms", p99s)],
        }));
    }
    let about = "The same, but each transaction draws one of three tables, which have the three keys: latencies under the same \
                 conditions at the same time.";
    let mut group = Group::new("Rows of 64 clients, keys mixed", about, rows);
    for mode in MODES {
        group.compare(&with_commit(OURS, mode), &with_commit(BIGSERIAL, mode), "mean ms", Goal::AtMost(1.0));
    }
    group
}
