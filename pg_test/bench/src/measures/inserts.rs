//! What the key costs where it is used: rows with a primary key.

use crate::contenders::{CLOCK, Contender, OURS, UUID_V4};
use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::{Servers, pgbench, time};
use pg_test::Cluster;

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

fn create(server: &Cluster, key: &str) -> postgres::Client {
    let mut client = server.client();
    let table = format!("DROP TABLE IF EXISTS rows; CREATE TABLE rows (id {key} PRIMARY KEY, item text); CHECKPOINT");
    client.batch_execute(&table).unwrap();
    client
}

/// One statement that inserts many rows, and the size of the index.
pub fn many_rows(servers: &Servers, plan: &Plan, contenders: &[Contender]) -> Group {
    let (server, count) = (&servers.default, plan.inserted);
    let trial = |(name, key): (String, String)| {
        Trial::new(name, move || {
            let mut client = create(server, &key);
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

/// 64 clients, a row a transaction; with `synchronous_commit` off and on.
pub fn single_rows(servers: &Servers, plan: &Plan, contenders: &[Contender]) -> Group {
    const MODES: [&str; 2] = ["off", "on"];
    let server = &servers.default;
    let mut trials = Vec::new();
    for mode in MODES {
        let few = keys(contenders).into_iter().filter(|(name, _)| [OURS, BIGSERIAL, UUID_V4].contains(&name.as_str()));
        for (name, key) in few {
            trials.push(Trial::new(with_commit(&name, mode), move || {
                drop(create(server, &key));
                let insert = "INSERT INTO rows (item) VALUES ('lamp')";
                let load = pgbench(server, insert, 64, plan.load, &format!("-c synchronous_commit={mode}"));
                vec![("rows/s", load.per_second), ("p99 ms", load.p99)]
            }));
        }
    }
    let about = "pgbench, 64 clients, one row a transaction, prepared statements. Default layout.";
    let mut group = Group::new("Rows of 64 clients", about, interleave(plan.many_long_rounds, trials));
    for mode in MODES {
        group.compare(&with_commit(OURS, mode), &with_commit(BIGSERIAL, mode), "rows/s", Goal::AtLeast(1.0));
    }
    group
}

fn with_commit(name: &str, mode: &str) -> String {
    format!("{name}, synchronous_commit {mode}")
}
