//! `snowflake_preflight()` on servers with other settings than those of the regress files: without preloading, with a
//! registry, with settings that do not go together, on a standby.

use postgres::Client;
use snowflake_test::Cluster;

/// What is said about the server and the database, but for a registry that cannot be reached: these tests have none that can.
fn said(client: &mut Client, arguments: &str) -> Vec<(String, String)> {
    let query = format!(
        "SELECT verdict, finding FROM snowflake_preflight({arguments}) WHERE subject IN ('server', 'database')"
    );
    let rows = client.query(&query, &[]).unwrap();
    let said = rows.iter().map(|row| (row.get(0), row.get::<_, String>(1)));
    said.filter(|(_, finding)| !finding.starts_with(NO_LEASE)).collect()
}

/// What a server says of itself that has no number of its own, and whose registry cannot be reached.
const NO_LEASE: &str = "this server gets no lease of a worker ID now";

/// Fails unless it comes to be said that there is no lease, and nothing else about the server and the database but that all is well.
fn says_no_lease(cluster: &Cluster, arguments: &str) {
    let query = format!("SELECT verdict, finding FROM snowflake_preflight({arguments}) WHERE subject = 'server'");
    let mut client = cluster.client();
    snowflake_test::check::wait_for("there is no lease", || {
        let rows = client.query(&query, &[]).unwrap();
        let [row] = &rows[..] else { panic!("{} rows", rows.len()) };
        row.get::<_, &str>(0) == "problem" && row.get::<_, &str>(1).starts_with(NO_LEASE)
    });
    says(&mut client, arguments, &[("ok", "")]);
}

/// Fails unless these are the verdicts and parts of the findings, in order.
fn says(client: &mut Client, arguments: &str, expected: &[(&str, &str)]) {
    let said = said(client, arguments);
    let is_so = |((verdict, finding), (expected, part)): (&(String, String), &(&str, &str))| {
        verdict == expected && finding.contains(part)
    };
    assert!(said.len() == expected.len() && said.iter().zip(expected).all(is_so), "{arguments}: {said:#?}");
}

#[test]
fn without_preloading_a_plan_can_be_checked() {
    let cluster = Cluster::options().not_preloaded().set("pg_snowflake.layout = 'twitter'").start();
    let mut client = cluster.client();
    let database = ("ok", "has this layout on record, and no ID was made");
    says(&mut client, "", &[("warning", "is not preloaded"), ("warning", "datacenter_id is not set"), database]);
    says(
        &mut client,
        "'default'",
        &[
            ("warning", "is not preloaded"),
            ("warning", "is configured for the layout \"timestamp=41 datacenter=5"),
            ("warning", "worker_id is not set"),
            ("warning", "has the layout \"timestamp=41 datacenter=5"),
        ],
    );
    // What is missing is not what a server with leases needs.
    says(
        &mut client,
        "leases => true",
        &[("warning", "is not preloaded"), ("warning", "registry is not set"), database],
    );
}

#[test]
fn settings_that_do_not_go_together_are_said() {
    let cluster = Cluster::options()
        .set("pg_snowflake.worker_id = 700")
        .set("pg_snowflake.max_lead = '500ms'")
        .set("pg_snowflake.reserve_ahead = '1s'")
        .start();
    let mut client = cluster.client();
    says(&mut client, "", &[("warning", "reserve_ahead, 1 s, is longer than max_lead, 500 ms"), ("ok", "")]);
    says(
        &mut client,
        "'timestamp=32 worker=9 sequence=16 tick=1s'",
        &[
            ("warning", "is configured for the layout"),
            ("problem", "worker_id is 700, and the highest worker of the layout is 511"),
            ("warning", "max_burst, 100 ms, is shorter than a tick, 1 s"),
            ("warning", "reserve_ahead"),
            ("warning", "has the layout"),
        ],
    );
}

/// Nobody answers at that address.
const REGISTRY: &str = "pg_snowflake.registry = 'etcd://127.0.0.1:1'";

#[test]
fn a_registry_beside_a_worker_is_said() {
    let cluster = Cluster::options().set(REGISTRY).set("pg_snowflake.registry_window = '20min'").start();
    let mut client = cluster.client();
    let beside = ("warning", "worker_id is set beside pg_snowflake.registry");
    let window = ("warning", "registry_window, 1200 s, is longer than max_lead, 600 s");
    says(&mut client, "", &[beside, window, ("ok", "")]);
    // Without a number of its own, it needs spare workers.
    cluster.reload(&[("pg_snowflake.worker_id", "-1"), ("pg_snowflake.max_lead", "20min")]);
    says_no_lease(&cluster, "");
    let spare = "SELECT verdict FROM snowflake_preflight(servers => 1000) WHERE subject = 'servers'";
    assert_eq!(cluster.client().query_one(spare, &[]).unwrap().get::<_, String>(0), "warning");
}

#[test]
fn a_registry_with_datacenters_needs_one() {
    let cluster = Cluster::options().set(REGISTRY).set("pg_snowflake.layout = 'twitter'").start();
    says(
        &mut cluster.client(),
        "",
        &[("warning", "without pg_snowflake.datacenter_id, and has no effect"), ("ok", "")],
    );
    cluster.reload(&[("pg_snowflake.worker_id", "-1")]);
    let any = ("warning", "leases a worker of any datacenter");
    says(&mut cluster.client(), "", &[any, ("ok", "")]);
    says_no_lease(&cluster, "datacenters => 1");
    cluster.reload(&[("pg_snowflake.datacenter_id", "3")]);
    says_no_lease(&cluster, "");
}

#[test]
fn a_standby_can_check_a_plan() {
    let cluster = Cluster::options().start();
    cluster.client().batch_execute("CREATE TABLE t (id serial PRIMARY KEY); INSERT INTO t DEFAULT VALUES").unwrap();
    let standby = cluster.standby();
    let mut client = standby.client();
    says(&mut client, "", &[("ok", "this server has this layout"), ("ok", "no ID was made in it yet")]);
    let key = "SELECT verdict FROM snowflake_preflight(keys => '{t}') WHERE subject = 'key'";
    snowflake_test::check::wait_for("the table arrives", || client.query_one(key, &[]).is_ok());
}
