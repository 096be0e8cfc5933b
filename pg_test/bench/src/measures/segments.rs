//! Numbers of segments: the price of one call, and many clients at once. On a server of its own, which has a registry.

use super::calls::Calls;
use super::clients::name;
use crate::contenders::{CACHED_SEQUENCE, OURS, SEQUENCE};
use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::{pgbench, rows, server};
use snowflake_test::Cluster;
use snowflake_test::check::wait_for;
use snowflake_test::registries::{Kind, Server, Setup};
use std::cell::RefCell;

const SEGMENT: &str = "snowflake_segment_next('orders')";
const SETUP: &str = "CREATE SEQUENCE plain; CREATE SEQUENCE cached CACHE 1000";

fn start() -> (Server, Cluster) {
    let registry = Setup::of(Kind::ALL[0]).start();
    let cluster = server(&[&format!("pg_snowflake.registry = '{}'", registry.url()), "pg_snowflake.max_wait = '60s'"]);
    let mut client = cluster.client();
    client.batch_execute(SETUP).unwrap();
    let create = "SELECT snowflake_segment_create('orders', smallest_range => 100000000)";
    wait_for("the tag is created", || client.batch_execute(create).is_ok());
    (registry, cluster)
}

/// The price of a call in a loop, less the price of the loop.
pub fn one_call(plan: &Plan) -> Group {
    let (_registry, cluster) = start();
    let client = RefCell::new(cluster.client());
    const LOOP: &str = "loop";
    let trial = |name: &str, expression: &str| {
        let (calls, client) = (Calls::calibrated(&client, expression, plan), &client);
        Trial::new(name, move || vec![("ns", calls.nanos(client))])
    };
    let trials = vec![
        trial(LOOP, "1"),
        trial(SEGMENT, SEGMENT),
        trial(OURS, "snowflake_next()"),
        trial(SEQUENCE, "nextval('plain')"),
        trial(CACHED_SEQUENCE, "nextval('cached')"),
    ];
    let mut rows = interleave(plan.short_rounds, trials);
    let of_loop = rows.remove(0).figures.remove(0);
    for row in &mut rows {
        row.figures[0] = row.figures[0].less(&of_loop);
    }
    let about = "Nanoseconds a call, measured as above, on a server with a registry.".to_owned();
    let mut group = Group::new("Numbers of a segment", about, rows);
    group.compare(SEGMENT, SEQUENCE, "ns", Goal::AtMost(0.2));
    let nanos = group.row(SEGMENT).unwrap().figure("ns").median;
    group.state(format!("{SEGMENT}, in ns"), nanos, Goal::AtMost(20.0));
    group
}

/// Many clients at once.
pub fn clients(plan: &Plan) -> Group {
    let (_registry, cluster) = start();
    let contenders = [(SEGMENT, SEGMENT), (CACHED_SEQUENCE, "nextval('cached')")];
    let mut trials = Vec::new();
    for (contender, expression) in contenders {
        for &clients in plan.clients {
            let (statement, cluster) = (format!("SELECT count({expression}) FROM {}", rows(1000)), &cluster);
            trials.push(Trial::new(name(contender, clients), move || {
                let load = pgbench(cluster, &statement, clients, plan.load, "");
                vec![("million numbers/s", load.per_second / 1000.0), ("p99 ms", load.p99)]
            }));
        }
    }
    let about = "As clients at once, above.";
    let mut group = Group::new("Clients that take numbers of a segment", about, interleave(plan.long_rounds, trials));
    let most = plan.clients.iter().copied().max().unwrap_or(1);
    group.compare(&name(SEGMENT, most), &name(CACHED_SEQUENCE, most), "million numbers/s", Goal::AtLeast(1.0));
    group
}
