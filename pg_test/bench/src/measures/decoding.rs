//! Decoding IDs, compared with shifts and masks written by hand.

use crate::plan::Plan;
use crate::results::{Goal, Group};
use crate::rounds::{Trial, interleave};
use crate::servers::{Servers, time};
use std::cell::RefCell;

/// An expression's name, its query, and the query that one would write by hand for the default layout. `$since` and
/// `$until` are the bounds of the middle half. `count()` looks at each row, while the index answers `max()` of a time.
const PAIRS: [(&str, &str, &str); 6] = [
    ("snowflake_timestamp(id)", "count(snowflake_timestamp(id)) FROM ids", "count(id >> 22) FROM ids"),
    ("snowflake_datacenter(id)", "count(snowflake_datacenter(id)) FROM ids", "count((id >> 17) & 31) FROM ids"),
    ("snowflake_worker(id)", "count(snowflake_worker(id)) FROM ids", "count((id >> 12) & 1023) FROM ids"),
    ("snowflake_sequence(id)", "count(snowflake_sequence(id)) FROM ids", "count(id & 4095) FROM ids"),
    (
        "(snowflake_decode(id)).*",
        "count(timestamp), count(datacenter_id), count(worker_id), count(sequence) \
         FROM (SELECT (snowflake_decode(id)).* FROM ids) AS parts",
        "count(timestamp), count(datacenter_id), count(worker_id), count(sequence) \
         FROM (SELECT id >> 22 AS timestamp, (id >> 17) & 31 AS datacenter_id, (id >> 12) & 1023 AS worker_id, \
                      id & 4095 AS sequence FROM ids) AS parts",
    ),
    (
        "snowflake_between(id, ...)",
        "count(*) FROM ids WHERE snowflake_between(id, snowflake_timestamp($since), snowflake_timestamp($until))",
        "count(*) FROM ids WHERE id >= $since AND id < $until",
    ),
];

/// Aggregates over a big table.
pub fn decoding(servers: &Servers, plan: &Plan) -> Group {
    let client = RefCell::new(servers.default.client());
    let rows = plan.decoded;
    client.borrow_mut().batch_execute("CREATE TABLE ids (id bigint)").unwrap();
    let fill = format!("INSERT INTO ids SELECT snowflake_next() FROM generate_series(1, {rows})");
    client.borrow_mut().batch_execute(&fill).unwrap();
    client.borrow_mut().batch_execute("ALTER TABLE ids ADD PRIMARY KEY (id)").unwrap();
    client.borrow_mut().batch_execute("VACUUM (ANALYZE) ids").unwrap();
    let quarter = |n: u32| -> i64 {
        // The first ID of a tick, so that the bounds by time and by ID are the same.
        let query = format!(
            "SELECT snowflake_min_id(min(snowflake_timestamp(id)) + {n} * (max(snowflake_timestamp(id)) - \
             min(snowflake_timestamp(id))) / 4) FROM ids"
        );
        client.borrow_mut().query_one(&query, &[]).unwrap().get(0)
    };
    let (since, until) = (quarter(1).to_string(), quarter(3).to_string());

    let mut trials = Vec::new();
    for (name, ours, by_hand) in PAIRS {
        for (name, query) in [(name.to_owned(), ours), (format!("{name} by hand"), by_hand)] {
            let query = format!("SELECT {}", query.replace("$since", &since).replace("$until", &until));
            let plan: Vec<String> = client
                .borrow_mut()
                .query(&format!("EXPLAIN {query}"), &[])
                .unwrap()
                .iter()
                .map(|row| row.get(0))
                .collect();
            let workers = plan.iter().find_map(|line| line.trim().strip_prefix("Workers Planned: ")?.parse().ok());
            let client = &client;
            trials.push(Trial::new(name, move || {
                let millis = time(&mut client.borrow_mut(), &query).as_secs_f64() * 1000.0;
                vec![("ms", millis), ("workers", workers.unwrap_or(0.0))]
            }));
        }
    }
    let about = format!(
        "Milliseconds for `SELECT count(...)` over {rows} rows (of `snowflake_between`: `count(*)` over the middle half), and how \
         many parallel workers the plan has. By hand: bare shifts and masks of the same bits, which give numbers, not times."
    );
    let mut group = Group::new("Reading IDs", about, interleave(plan.long_rounds.max(2), trials));
    for (name, ..) in PAIRS {
        group.compare(name, &format!("{name} by hand"), "ms", Goal::AtMost(1.5));
    }
    let workers = PAIRS.iter().map(|(name, ..)| group.row(name).unwrap().figure("workers").median);
    let fewest = workers.fold(f64::INFINITY, f64::min);
    group.state("fewest parallel workers of a plan of ours", fewest, Goal::AtLeast(1.0));
    group
}
