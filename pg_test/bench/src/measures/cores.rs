//! More and more sessions, up to one for each core: whether they stand in each other's way. Loops in the server make all of the load, so
//! that clients take next to no time of the cores.

use super::clients::{DEFAULT_LAYOUT, name};
use crate::contenders::{CACHED_SEQUENCE, Contender, OURS, UUID_V7};
use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Figure, Row, Trial, interleave};
use crate::servers::{Servers, processors, rows};
use postgres::Client;
use snowflake_test::Cluster;
use snowflake_test::load::End;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// IDs that a statement makes, and rows that one inserts.
const IDS: u64 = 10_000;
const ROWS: u64 = 100;

const BIGSERIAL: &str = "bigserial";
const BIGSERIAL_CACHED: &str = "bigserial CACHE 1000";

/// The same statement, again and again, in several sessions.
struct Load {
    /// What each session begins with.
    first: &'static str,
    statement: String,
    /// How many IDs or rows it makes.
    makes: u64,
}

impl Load {
    fn of_ids(expression: &str) -> Self {
        let statement = format!("SELECT count({expression}) FROM {}", rows(IDS));
        Self { first: "", statement, makes: IDS }
    }

    fn of_rows() -> Self {
        Self { first: "SET synchronous_commit = off", statement: "CALL insert_rows()".to_owned(), makes: ROWS }
    }

    /// Runs it for so long, and returns how many IDs or rows all sessions made a second.
    fn run(&self, server: &Cluster, sessions: usize, length: Duration) -> f64 {
        let mut clients: Vec<Client> = (0..sessions).map(|_| server.client()).collect();
        for client in &mut clients {
            // What a session does once is not measured.
            client.batch_execute(self.first).unwrap();
            client.batch_execute(&self.statement).unwrap();
        }
        let (made, start) = (AtomicU64::new(0), Instant::now());
        thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(|| {
                    while start.elapsed() < length {
                        client.batch_execute(&self.statement).unwrap();
                        made.fetch_add(self.makes, Relaxed);
                    }
                });
            }
        });
        made.into_inner() as f64 / start.elapsed().as_secs_f64()
    }

    /// Runs it, and returns how often a session was seen waiting for what, or using a core.
    fn observe(&self, server: &Cluster, sessions: usize, length: Duration) -> BTreeMap<String, i64> {
        const LOOK: &str = "SELECT coalesce(wait_event_type || ': ' || wait_event, 'CPU'), count(*) FROM pg_stat_activity \
                            WHERE backend_type = 'client backend' AND state = 'active' AND pid <> pg_backend_pid() GROUP BY 1";
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let observer = scope.spawn(|| {
                let mut client = server.client();
                let mut seen = BTreeMap::new();
                while !over.load(SeqCst) {
                    for row in client.query(LOOK, &[]).unwrap() {
                        *seen.entry(row.get(0)).or_default() += row.get::<_, i64>(1);
                    }
                    thread::sleep(Duration::from_millis(5));
                }
                seen
            });
            let end = End(&over);
            self.run(server, sessions, length);
            drop(end);
            observer.join().unwrap()
        })
    }
}

/// The numbers of sessions that are measured on this machine.
fn sessions(plan: &Plan) -> Vec<usize> {
    let most = processors().max(2);
    plan.sessions.iter().copied().filter(|&count| count <= most).collect()
}

/// Nothing but IDs.
pub fn generation(servers: &Servers, plan: &Plan) -> Group {
    let contenders = [
        (OURS, &servers.wide, "snowflake_next()"),
        (DEFAULT_LAYOUT, &servers.default, "snowflake_next()"),
        (CACHED_SEQUENCE, &servers.wide, "nextval('cached')"),
    ];
    let counts = sessions(plan);
    let mut trials = Vec::new();
    for (contender, server, expression) in contenders {
        for &count in &counts {
            trials.push(Trial::new(name(contender, count), move || {
                vec![("million IDs/s", Load::of_ids(expression).run(server, count, plan.spell) / 1e6)]
            }));
        }
    }
    let about = format!(
        "Sessions that do nothing but make IDs, up to one for each core: statements of {IDS} calls. The default layout has a ceiling \
         of 4,096,000 a second. `CACHE 1000` makes in each session numbers of its own."
    );
    let mut group = Group::new("IDs by the number of cores", about, interleave(plan.long_rounds, trials));
    for &count in counts.iter().filter(|&&count| count > 2) {
        group.compare(&name(OURS, count), &name(OURS, 2), "million IDs/s", Goal::AtLeast(1.0));
        // Both are at the ceiling, or close to it.
        let unlimited = (name(DEFAULT_LAYOUT, count), name(DEFAULT_LAYOUT, 2));
        group.compare(&unlimited.0, &unlimited.1, "million IDs/s", Goal::AtLeast(0.99));
    }
    group
}

/// An empty table whose primary key is of this kind, and the loop that inserts into it, a row a transaction.
fn create_table(server: &Cluster, key: &str) {
    let statements = [
        "DROP TABLE IF EXISTS rows",
        &format!("CREATE TABLE rows (id {key} PRIMARY KEY, item text)"),
        &format!(
            "CREATE OR REPLACE PROCEDURE insert_rows() LANGUAGE plpgsql AS $$ BEGIN \
             FOR i IN 1..{ROWS} LOOP INSERT INTO rows (item) VALUES ('lamp'); COMMIT; END LOOP; END $$"
        ),
        "CHECKPOINT",
    ];
    let mut client = server.client();
    statements.into_iter().for_each(|statement| client.batch_execute(statement).unwrap());
}

const OUR_KEY: &str = "bigint DEFAULT snowflake_next()";
const CACHED_KEY: &str = "bigint DEFAULT nextval('cached')";

/// Rows with a primary key, a row a transaction.
pub fn inserts(servers: &Servers, plan: &Plan, contenders: &[Contender]) -> Group {
    let mut keys = vec![
        (OURS, OUR_KEY),
        (BIGSERIAL, "bigserial"),
        (BIGSERIAL_CACHED, CACHED_KEY),
        (UUID_V7, "uuid DEFAULT uuidv7()"),
    ];
    keys.retain(|(key, _)| *key != UUID_V7 || contenders.iter().any(|contender| contender.name == UUID_V7));
    let (server, counts) = (&servers.default, sessions(plan));
    let mut trials = Vec::new();
    for (key, column) in keys {
        for &count in &counts {
            trials.push(Trial::new(name(key, count), move || {
                create_table(server, column);
                let per_second = Load::of_rows().run(server, count, plan.spell);
                vec![("rows/s", per_second), ("µs a row", count as f64 * 1e6 / per_second)]
            }));
        }
    }
    let about = format!(
        "Sessions that insert, up to one for each core: a loop of INSERT and COMMIT in PL/pgSQL, {ROWS} rows a call. Default \
         layout, `synchronous_commit = off`. `µs a row` is the time that a session takes for one."
    );
    let mut group = Group::new("Rows by the number of cores", about, interleave(plan.long_rounds, trials));
    if let Some(&most) = counts.last() {
        group.compare(&name(OURS, most), &name(BIGSERIAL_CACHED, most), "µs a row", Goal::AtMost(1.05));
    }
    group
}

/// Where the time goes while as many sessions as there are cores make IDs or insert.
pub fn waits(servers: &Servers, plan: &Plan) -> Group {
    let most = sessions(plan).last().copied().unwrap_or(1);
    let of_ids = |server: &Cluster| Load::of_ids("snowflake_next()").observe(server, most, plan.spell);
    let of_rows = |key: &str| {
        create_table(&servers.default, key);
        Load::of_rows().observe(&servers.default, most, plan.spell)
    };
    let seen = [
        ("IDs %", of_ids(&servers.wide)),
        ("IDs, default layout %", of_ids(&servers.default)),
        ("rows %", of_rows(OUR_KEY)),
        ("rows, bigserial CACHE 1000 %", of_rows(CACHED_KEY)),
    ];
    let about = format!(
        "What {most} sessions were seen doing during the loads of the two tables before, by `pg_stat_activity`: a part of a hundred \
         looks at a session. All are with `snowflake_next()`, but for the last column."
    );
    Group::new("Where the time goes", about, shares(&seen))
}

/// A row for each wait, those seen most often first.
fn shares(seen: &[(&'static str, BTreeMap<String, i64>)]) -> Vec<Row> {
    let mut waits: BTreeMap<&str, i64> = BTreeMap::new();
    for (wait, count) in seen.iter().flat_map(|(_, seen)| seen) {
        *waits.entry(wait).or_default() += count;
    }
    let mut waits: Vec<_> = waits.into_iter().collect();
    waits.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let share = |seen: &BTreeMap<String, i64>, wait: &str| {
        let all: i64 = seen.values().sum();
        100.0 * seen.get(wait).copied().unwrap_or(0) as f64 / all.max(1) as f64
    };
    let figures = |wait| seen.iter().map(|(column, seen)| Figure::new(column, vec![share(seen, wait)])).collect();
    waits.into_iter().map(|(wait, _)| Row { name: wait.to_owned(), figures: figures(wait) }).collect()
}

#[cfg(test)]
mod tests {
    use super::shares;
    use std::collections::BTreeMap;

    #[test]
    fn shares_are_of_what_a_load_was_seen_doing() {
        let seen = |counts: &[(&str, i64)]| counts.iter().map(|&(wait, count)| (wait.to_owned(), count)).collect();
        let none: BTreeMap<String, i64> = BTreeMap::new();
        let rows =
            shares(&[("a", seen(&[("CPU", 3), ("Lock: page", 1)])), ("b", seen(&[("Lock: page", 9)])), ("c", none)]);
        let table: Vec<_> =
            rows.iter().map(|row| (row.name.as_str(), ["a", "b", "c"].map(|unit| row.figure(unit).median))).collect();
        assert_eq!(table, [("Lock: page", [25.0, 100.0, 0.0]), ("CPU", [75.0, 0.0, 0.0])]);
    }
}
