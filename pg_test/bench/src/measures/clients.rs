//! Many clients at once that do nothing but make IDs.

use crate::contenders::{CACHED_SEQUENCE, OURS, SEQUENCE};
use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::{Servers, pgbench, rows};

/// pg_snowflake in the default layout, where 4,096,000 a second is the ceiling.
pub const DEFAULT_LAYOUT: &str = "snowflake_next(), default layout";

/// pgbench with statements of 1,000 calls. There is a row for each contender and number of clients, named by [`name`].
pub fn clients(servers: &Servers, plan: &Plan) -> Group {
    let contenders = [
        (OURS, &servers.wide, "snowflake_next()"),
        (DEFAULT_LAYOUT, &servers.default, "snowflake_next()"),
        (SEQUENCE, &servers.wide, "nextval('plain')"),
        (CACHED_SEQUENCE, &servers.wide, "nextval('cached')"),
    ];
    let mut trials = Vec::new();
    for (contender, server, expression) in contenders {
        for &clients in plan.clients {
            let statement = format!("SELECT count({expression}) FROM {}", rows(1000));
            trials.push(Trial::new(name(contender, clients), move || {
                let load = pgbench(server, &statement, clients, plan.load, "");
                vec![("million IDs/s", load.per_second / 1000.0), ("p99 ms", load.p99)]
            }));
        }
    }
    let about = "pgbench, prepared statements of 1,000 calls each. `p99` is the latency of a statement that 99 % keep below. \
                 With 2 cores, which the clients share with the server, more than 2 clients show what waiting for a turn costs.";
    let mut group = Group::new("Clients at once", about, interleave(plan.long_rounds, trials));
    group.compare(&name(OURS, 64), &name(OURS, 2), "million IDs/s", Goal::AtLeast(0.9));
    for &clients in plan.clients {
        group.compare(&name(OURS, clients), &name(SEQUENCE, clients), "million IDs/s", Goal::AtLeast(3.0));
    }
    for &clients in plan.clients {
        group.compare(&name(OURS, clients), &name(SEQUENCE, clients), "p99 ms", Goal::AtMost(1.0));
    }
    group
}

/// The name of a contender's row.
pub fn name(contender: &str, clients: usize) -> String {
    format!("{contender} x {clients}")
}
