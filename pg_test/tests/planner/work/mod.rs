//! The same work, at most: random queries over random tables with random indexes. With `pg_snowflake.plan_by_time` on, a query looks
//! at no more pages and rows than with it off, and than with the time as a column of its own whose indexes are those on the ID and
//! on the time. It knows nothing of how the planner's hooks work.
//!
//! * `QUERIES=20000`: how many; 300 by default
//! * `SEED=7`: which; 1 by default
//! * `ONLY=123`: only the query of this number, with its plans and work
//! * `FAILURES=20`: ends after so many failures; 1 by default
//!
//! A query is made from the seed and its number alone, and so are the tables, of which there are new ones every 150 queries. Times
//! are relative to the hour in which the test began.

mod cases;
mod conditions;
mod draft;
mod exceptions;
mod growth;
mod indexes;
mod judge;
mod measure;
mod queries;
mod tables;
mod truth;

use draft::Draft;
use fastrand::Rng;
use judge::Verdict;
use postgres::Client;
use snowflake_test::check::wait_for;
use snowflake_test::{Cluster, variable};
use std::collections::BTreeMap;
use std::env;
use tables::Schema;

/// The two forms of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// With the time in the ID alone.
    Ids,
    /// With a column for it.
    Column,
}

impl Way {
    const BOTH: [Self; 2] = [Self::Ids, Self::Column];

    /// What names of the form end with.
    fn suffix(self) -> &'static str {
        ["", "_column"][self as usize]
    }
}

/// How many queries have the same tables.
const QUERIES_OF_A_SCHEMA: u64 = 150;

fn draw<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())]
}

/// Of a seed and a number; numbers are alike, and what is drawn first should not be.
fn generator(seed: u64, number: u64) -> Rng {
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
    Rng::with_seed(rng.u64(..))
}

/// A server on which the same statements do the same work again.
fn cluster() -> Cluster {
    cluster_with(&[])
}

/// The same, with further settings.
fn cluster_with(settings: &[&str]) -> Cluster {
    let all = ["autovacuum = off", "shared_buffers = 256MB", "max_worker_processes = 32"];
    all.iter().chain(settings).fold(Cluster::options(), |options, line| options.set(line)).start()
}

/// A new session, after a query that failed and may have crashed the server.
fn session_after(cluster: &Cluster, failed: &Client) -> Client {
    let ends = |what: &str| cluster.log().matches(what).count();
    if failed.is_closed() {
        wait_for("the server is up again", || ends("terminated by signal") <= ends("server processes terminated"));
    }
    cluster.client_once_up("postgres")
}

/// The tables of a query.
struct Tables {
    schema: Option<(u64, Schema)>,
    seed: u64,
}

impl Tables {
    fn of(&mut self, client: &mut Client, query: u64) -> &Schema {
        let number = (query - 1) / QUERIES_OF_A_SCHEMA;
        if self.schema.as_ref().is_none_or(|(current, _)| *current != number) {
            if self.schema.is_some() {
                Schema::drop(client);
            }
            let schema = Schema::create(client, &mut generator(self.seed, u64::MAX - number));
            self.schema = Some((number, schema));
        }
        &self.schema.as_ref().unwrap().1
    }
}

#[test]
fn the_same_work() {
    let (queries, seed, only) = (variable("QUERIES").unwrap_or(300), variable("SEED").unwrap_or(1), variable("ONLY"));
    let failures = variable("FAILURES").unwrap_or(1);
    // To test the test: it finds nothing then.
    let off_only = env::var_os("OFF_ONLY").is_some();
    let cluster = cluster();
    let mut client = cluster.client();
    let mut tables = Tables { schema: None, seed };
    let (mut failed, mut different, mut saving) = (0, 0, 0);
    let mut excepted = BTreeMap::<&str, u32>::new();
    let mut shapes = BTreeMap::<&str, [u32; 2]>::new();
    for number in only.map_or(1..=queries, |number| number..=number) {
        let schema = tables.of(&mut client, number);
        let query = Draft::new(schema, generator(seed, number)).query();
        shapes.entry(query.shape).or_default()[0] += 1;
        match judge::judge(&mut client, &query, off_only, only.is_some()) {
            Ok(Verdict::Agrees { differs, saves }) => {
                different += u32::from(differs);
                saving += u32::from(saves);
            }
            Ok(Verdict::Excepted(reason)) => *excepted.entry(reason).or_default() += 1,
            Err(report) => {
                println!("SEED={seed}, query {number} ({}): {report}", query.shape);
                shapes.entry(query.shape).or_default()[1] += 1;
                client = session_after(&cluster, &client);
                failed += 1;
                if failed >= failures {
                    break;
                }
            }
        }
    }
    for (shape, [count, failed]) in &shapes {
        println!("{shape:>12}: {count}, of which {failed} fail");
    }
    for (reason, count) in excepted {
        println!("{count} may do more, because {reason}");
    }
    println!("{different} have another cost with the parameter than without; {saving} do much less work");
    assert_eq!(failed, 0, "queries failed");
    if only.is_none() && !off_only {
        let all: u32 = shapes.values().map(|[count, _]| count).sum();
        assert!(saving * 15 > all, "the parameter saves work in too few queries");
    }
}
