//! What Patroni's dynamic configuration does with the parameters, and how an operator finds a wrong value before it ends a
//! start.

use snowflake_clusters::load::connect;
use snowflake_clusters::patroni::{Cluster, Member, Numbering, Options};
use snowflake_test::check::refused;
use snowflake_test::programs::{Installation, as_server_user, output};
use snowflake_test::query::{next, value};
use std::process::Command;

/// A layout with a slip of the pen.
const SLIP: &str = "timestmp=41 worker=10 sequence=12";

/// What PostgreSQL, and so each of the checks, says about it.
const DETAIL: &str = "\"timestmp\" is not a field, nor tick or epoch, at character 1.";

fn member<'a>(cluster: &'a Cluster, name: &str) -> &'a Member {
    cluster.members.iter().find(|member| member.name == name).unwrap()
}

#[test]
fn values_reach_all_members_and_a_wrong_one_is_found_before() {
    let cluster = Options::new(Numbering::PerMember).start();
    let show = |member: &Member, name: &str| -> Option<String> {
        Some(connect(member.port).ok()?.query_one(&format!("SHOW {name}"), &[]).ok()?.get(0))
    };
    // A member that does not answer is asked again: on a busy machine, the cluster may fail over.
    let all_show = |name: &str, expected: &str| {
        cluster.members.iter().all(|member| show(member, name).is_some_and(|shown| shown == expected))
    };

    // One that a reload changes: on all members, and none is to be restarted.
    cluster.edit_config("pg_snowflake.max_burst", "250ms");
    cluster.wait("the burst is changed", || all_show("pg_snowflake.max_burst", "250ms"));
    assert!(cluster.pending_restart().is_empty());
    // The local worker ID stands above one in the dynamic configuration.
    cluster.edit_config("pg_snowflake.worker_id", "9");
    cluster.edit_config("pg_snowflake.max_burst", "300ms");
    cluster.wait("the burst is changed", || all_show("pg_snowflake.max_burst", "300ms"));
    cluster.wait("each has its own worker ID", || {
        let shown = cluster.members.iter().filter_map(|member| show(member, "pg_snowflake.worker_id"));
        shown.eq(["1", "2", "3"])
    });

    // One that a restart changes: all members are flagged, until it is taken back.
    cluster.edit_config("pg_snowflake.layout", "twitter");
    cluster.wait_for_pending_restarts(3);
    assert!(all_show("pg_snowflake.layout", "default"));
    // By its old value: where a line is merely removed, PostgreSQL keeps the flag.
    cluster.edit_config("pg_snowflake.layout", "default");
    cluster.wait_for_pending_restarts(0);

    a_slip_is_found_before(&cluster);
    a_slip_ends_the_restart_of_one_member(&cluster);
}

/// The two checks that need no restart of anything.
fn a_slip_is_found_before(cluster: &Cluster) {
    let mut client = cluster.client();
    // In SQL, on any member: PostgreSQL refuses to write a value that the library refuses.
    for (name, slip, detail) in [
        ("pg_snowflake.layout", SLIP, DETAIL),
        (
            "pg_snowflake.epoch",
            "1700000000000",
            "The epoch must be an instant in UTC, such as \"2024-01-01T00:00:00Z\".",
        ),
        ("pg_snowflake.registry", "etcd//host:2379", ""),
    ] {
        let error = refused(&mut client, &format!("ALTER SYSTEM SET {name} = '{slip}'"), "22023");
        assert!(error.detail().is_some_and(|found| found == detail || detail.is_empty()), "{error:?}");
    }
    refused(&mut client, "ALTER SYSTEM SET pg_snowflake.wroker_id = 1", "42602");
    // A right value is written; it goes away again before anything reads it.
    client.batch_execute("ALTER SYSTEM SET pg_snowflake.layout = 'twitter'").unwrap();
    client.batch_execute("ALTER SYSTEM RESET pg_snowflake.layout").unwrap();

    // All parameters together, by a program that loads the library, and starts no server: in an empty data directory of its
    // own, as that of a running server is locked.
    let member = &cluster.members[2];
    let scratch = member.data().with_file_name("scratch");
    let program = |name: &str| Command::new(Installation::under_test().bin().join(name));
    assert!(output(as_server_user(program("initdb").args(["--no-sync", "--pgdata"]).arg(&scratch))).success);
    let check = |layout: &str| {
        let mut command = program("postgres");
        command.arg("-D").arg(&scratch).args(["-C", "shared_memory_size", "-c"]);
        command.arg(format!("config_file={}", member.data().join("postgresql.conf").display()));
        command.args(["-c", &format!("pg_snowflake.layout={layout}")]);
        output(as_server_user(&mut command))
    };
    assert!(check("default").success);
    let refusal = check(SLIP);
    assert!(!refusal.success && refusal.errors.contains(DETAIL), "{refusal:?}");
    // Each is right by itself, but the layout has no room for the worker of this member, the third.
    let refusal = check("timestamp=41 worker=1 sequence=21");
    assert!(!refusal.success && refusal.errors.contains("pg_snowflake.worker_id"), "{refusal:?}");
}

/// Patroni takes any value, and flags no member: PostgreSQL, which knows the value to be wrong, says so in its log and in
/// pg_file_settings. The next restart fails. When the value is right again, Patroni starts the server by itself.
fn a_slip_ends_the_restart_of_one_member(cluster: &Cluster) {
    cluster.edit_config("pg_snowflake.layout", SLIP);
    let told = |member: &Member| member.log().contains(DETAIL);
    cluster.wait("all servers say what is wrong", || cluster.members.iter().all(told));
    assert!(cluster.pending_restart().is_empty());
    let primary = cluster.wait_for_primary(|_| true);
    let mut client = connect(cluster.members[primary].port).unwrap();
    let wrong = "SELECT setting FROM pg_file_settings WHERE NOT applied AND name LIKE 'pg\\_snowflake.%'";
    // The primary's log had it before, of ALTER SYSTEM.
    cluster.wait("the primary's file has it", || client.query(wrong, &[]).is_ok_and(|rows| !rows.is_empty()));
    assert_eq!(value::<String>(&mut client, wrong), SLIP);
    next(&mut client);

    let victim = cluster.members[(primary + 1) % 3].name.clone();
    let restart = cluster.try_patronictl(&["restart", "--force", "shop", &victim]);
    assert!(restart.output.contains("restart failed"), "{restart:?}");
    assert!(connect(member(cluster, &victim).port).is_err(), "{}", member(cluster, &victim).log());
    assert!(member(cluster, &victim).log().contains("FATAL:  invalid value for parameter \"pg_snowflake.layout\""));
    // The others are as before.
    next(&mut client);
    cluster.edit_config("pg_snowflake.layout", "default");
    cluster.wait_until_healthy();
    next(&mut cluster.client());
}
