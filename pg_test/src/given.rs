//! A server with several databases, and the IDs that they give one after the other.
//!
//! Most tests that use this set a trap. One database gets IDs whose times are far ahead of the clock, another is idle.
//! After a fault, the idle one gives IDs first, until it is past all that were given before. Where the server has
//! forgotten what any of its databases gave, it gives the same IDs again.

use crate::load::TABLE;
use crate::{Cluster, Options, check, ids};
use postgres::Client;
use std::time::{Duration, Instant};

/// Gives 200 IDs.
pub const SELECT: &str = "SELECT snowflake_next(200)";

/// Options of a server with a clock, where a single session uses all IDs of each tick.
pub fn narrow() -> Options {
    Cluster::options().patient().narrow().set("pg_snowflake.sequence_spread = 1")
}

/// A running server with these databases.
pub fn server(options: Options, databases: &[&str]) -> Cluster {
    let cluster = options.start();
    databases.iter().for_each(|database| cluster.database(database));
    cluster
}

/// The same, with the table of the load in each database.
pub fn loaded(options: Options, databases: &[&str]) -> Cluster {
    let cluster = server(options, databases);
    for database in databases {
        cluster.client_of("postgres", database).batch_execute(TABLE).unwrap();
    }
    cluster
}

/// How far the next IDs of a session are ahead of the clock, in seconds.
///
/// # Errors
/// Where they are refused.
pub fn lead(client: &mut Client) -> Result<f64, postgres::Error> {
    let query = "SELECT max(extract(epoch FROM snowflake_timestamp(id) - clock_timestamp()))::float8 \
                 FROM snowflake_next(3) id";
    Ok(client.query_one(query, &[])?.get(0))
}

/// All IDs that were given, by whichever database.
#[derive(Default)]
pub struct Given(pub Vec<Vec<i64>>);

impl Given {
    /// A database gives IDs, as fast as it can, whose times span so many milliseconds.
    pub fn claim(&mut self, cluster: &Cluster, database: &str, length: i64) {
        self.claim_by(cluster, database, length, SELECT);
    }

    /// The same by a query of its own.
    pub fn claim_by(&mut self, cluster: &Cluster, database: &str, length: i64, query: &str) {
        self.claim_while(cluster, database, query, |first, last| last - first < length << 22);
    }

    /// A database gives IDs until they are past all others.
    pub fn claim_past(&mut self, cluster: &Cluster, database: &str) {
        self.claim_past_by(cluster, database, SELECT);
    }

    /// The same by a query of its own.
    ///
    /// # Panics
    /// Where they do not get there in three minutes.
    pub fn claim_past_by(&mut self, cluster: &Cluster, database: &str, query: &str) {
        let (start, highest) = (Instant::now(), self.highest());
        self.claim_while(cluster, database, query, |_, last| {
            assert!(start.elapsed() < Duration::from_secs(180), "{last} does not reach {highest}");
            last <= highest
        });
    }

    fn claim_while(&mut self, cluster: &Cluster, database: &str, query: &str, goes_on: impl Fn(i64, i64) -> bool) {
        // The server may still be making its shared memory anew.
        let mut client = cluster.client_once_up(database);
        let mut list = Vec::new();
        loop {
            list.extend(ids(&client.query(query, &[]).unwrap_or_else(|error| panic!("{database}: {error:?}"))));
            if !goes_on(list[0], list[list.len() - 1]) {
                break;
            }
        }
        self.0.push(list);
    }

    fn highest(&self) -> i64 {
        self.0.iter().flatten().copied().max().unwrap_or(0)
    }

    /// No ID was given twice.
    ///
    /// # Panics
    /// With the first IDs that were.
    pub fn check(&self) {
        let count = check::distinct(&self.0);
        assert!(count >= 500, "{count}");
    }
}
