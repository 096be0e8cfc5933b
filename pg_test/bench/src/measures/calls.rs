//! The price of one call, and of an ID of a batch.

use crate::contenders::{CACHED_SEQUENCE, CLOCK, Contender, OURS, SEQUENCE};
use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::{Servers, WIDE, rows, time};
use postgres::Client;
use std::cell::RefCell;

/// How often a row of the loop calls the expression: so often that the price of the row itself hardly counts.
const CALLS: u32 = 100;

/// pg_snowflake, where the clock is read for each ID.
const BY_CLOCK: &str = "snowflake_next(), clock_source = system";

/// The price of each expression in a loop, less the price of the loop.
pub fn one_call(servers: &Servers, plan: &Plan, contenders: &[Contender]) -> Group {
    let (wide, clock) = (RefCell::new(servers.wide.client()), RefCell::new(servers.clock.client()));
    const LOOP: &str = "loop";
    let trial = |name: &str, expression: &str, client| {
        let calls = Calls::calibrated(client, expression, plan);
        Trial::new(name, move || vec![("ns", calls.nanos(client))])
    };
    let mut trials = vec![trial(LOOP, "1", &wide)];
    trials.extend(contenders.iter().map(|contender| trial(&contender.name, &contender.expression, &wide)));
    trials.insert(2, trial(BY_CLOCK, "snowflake_next()", &clock));

    let mut rows = interleave(plan.short_rounds, trials);
    let of_loop = rows.remove(0).figures.remove(0);
    for row in &mut rows {
        row.figures[0] = row.figures[0].less(&of_loop);
    }
    let about = format!(
        "Nanoseconds a call: `SELECT count(*) FROM (SELECT f(), f(), ... FROM generate_series(1, n) OFFSET 0) s` with {CALLS} \
         calls a row, less the same with constants ({:.2} ns each). One session; layout `{WIDE}`, whose sequence is never the \
         limit.",
        of_loop.median
    );
    let mut group = Group::new("One call", about, rows);
    group.compare(OURS, CLOCK, "ns", Goal::AtMost(1.5));
    group.compare(OURS, SEQUENCE, "ns", Goal::AtMost(0.12));
    group.compare(OURS, CACHED_SEQUENCE, "ns", Goal::AtMost(1.0));
    group.compare(BY_CLOCK, CLOCK, "ns", Goal::AtMost(1.5));
    group
}

/// The loop for one expression.
pub struct Calls {
    statement: String,
    rows: f64,
}

impl Calls {
    /// With as many rows as take the planned time.
    pub fn calibrated(client: &RefCell<Client>, expression: &str, plan: &Plan) -> Self {
        let list = vec![expression; CALLS as usize].join(", ");
        let with = |rows: f64| Self {
            statement: format!("SELECT count(*) FROM (SELECT {list} FROM generate_series(1, {rows}) OFFSET 0) AS s"),
            rows,
        };
        let probe = with(200.0);
        probe.nanos(client);
        let of_row = probe.nanos(client) * f64::from(CALLS);
        with((plan.calls.as_nanos() as f64 / of_row).clamp(500.0, 50_000.0).round())
    }

    /// Nanoseconds a call.
    pub fn nanos(&self, client: &RefCell<Client>) -> f64 {
        time(&mut client.borrow_mut(), &self.statement).as_nanos() as f64 / (self.rows * f64::from(CALLS))
    }
}

/// Whole statements that give many IDs.
pub fn batch(servers: &Servers, plan: &Plan) -> Group {
    const LOOP: &str = "generate_series(1, n)";
    const SINGLE: &str = "snowflake_next() for each row of it";
    const BATCH: &str = "snowflake_next(n)";
    let count = plan.batch;
    let client = RefCell::new(servers.wide.client());
    let statements = [
        (LOOP, format!("SELECT count(*) FROM {}", rows(count))),
        (SINGLE, format!("SELECT count(snowflake_next()) FROM {}", rows(count))),
        (BATCH, format!("SELECT count(*) FROM (SELECT snowflake_next({count}) OFFSET 0) AS rows")),
        ("nextval for each row of it", format!("SELECT count(nextval('plain')) FROM {}", rows(count))),
        ("in FROM: generate_series(1, n)", format!("SELECT count(*) FROM generate_series(1, {count})")),
        ("in FROM: snowflake_next(n)", format!("SELECT count(*) FROM snowflake_next({count})")),
    ];
    let trial = |(name, statement): &(&str, String)| {
        let (client, statement) = (&client, statement.clone());
        let nanos = move || time(&mut client.borrow_mut(), &statement).as_nanos() as f64 / f64::from(count);
        Trial::new(*name, move || vec![("ns", nanos())])
    };
    let rows = interleave(plan.short_rounds, statements.iter().map(trial).collect());
    let about = format!(
        "Nanoseconds an ID of whole statements `SELECT count(*) FROM (SELECT ... OFFSET 0) AS rows`, for {count} IDs; one \
         session, the same layout. The set-returning functions stand in the SELECT list, where PostgreSQL reads them as they \
         come; in FROM, it stores all that they return first."
    );
    let mut group = Group::new("Many IDs in a statement", about, rows);
    let nanos = |name: &str| group.row(name).unwrap().figure("ns");
    let net = |name: &str| nanos(name).less(nanos(LOOP)).median;
    let ratio = net(BATCH) / net(SINGLE);
    group.state(format!("{BATCH} / {SINGLE}, each less the loop"), ratio, Goal::AtMost(0.333));
    group
}
