//! Who may make many IDs by one call is for the owner of a database to say; and nobody who makes single ones waits for them.

use postgres::Client;
use snowflake_test::check::{refused, wait_for};
use snowflake_test::dump::{Dump, Format, pg_restore, psql};
use snowflake_test::load::End;
use snowflake_test::programs::output;
use snowflake_test::query::{NEXT, ORDERS, batch, next};
use snowflake_test::{Cluster, run, value};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

const RESTRICT: &str =
    "REVOKE USAGE ON TYPE _snowflake.batch FROM PUBLIC; GRANT USAGE ON TYPE _snowflake.batch TO loader";

const BATCH: &str = "SELECT snowflake_next(5)";

/// A role that owns the database `shop`, and others.
fn server() -> Cluster {
    let cluster = Cluster::options().start();
    let roles =
        "CREATE ROLE landlord LOGIN; CREATE ROLE tenant LOGIN; CREATE ROLE clerk LOGIN; CREATE ROLE loader LOGIN";
    cluster.client().batch_execute(roles).unwrap();
    cluster.client().batch_execute("CREATE DATABASE shop OWNER landlord").unwrap();
    cluster
}

fn create(cluster: &Cluster, creator: &str) {
    cluster.client_of("postgres", "shop").batch_execute("GRANT CREATE ON DATABASE shop TO tenant").unwrap();
    cluster.client_of(creator, "shop").batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let orders = format!("{ORDERS}; GRANT INSERT ON orders TO PUBLIC");
    cluster.client_of("landlord", "shop").batch_execute(&orders).unwrap();
}

/// Whether a role may make a batch. It may insert rows and make single IDs in any case.
#[track_caller]
fn may_batch(cluster: &Cluster, role: &str) -> bool {
    let mut client = cluster.client_of(role, "shop");
    client.batch_execute("INSERT INTO orders DEFAULT VALUES").unwrap();
    next(&mut client);
    // As many as in one INSERT.
    client.batch_execute("INSERT INTO orders SELECT FROM generate_series(1, 3000)").unwrap();
    if client.query(BATCH, &[]).is_ok() {
        return true;
    }
    let error = refused(&mut client, BATCH, "42501");
    assert_eq!(error.message(), "permission denied for snowflake_next(count)");
    assert!(error.hint().unwrap().contains("GRANT USAGE ON TYPE _snowflake.batch"), "{error:?}");
    refused(&mut client, "SELECT count(*) FROM snowflake_next(0)", "42501");
    false
}

#[track_caller]
fn is_restricted(cluster: &Cluster) {
    for (role, may) in [("clerk", false), ("loader", true), ("landlord", true), ("postgres", true)] {
        assert_eq!(may_batch(cluster, role), may, "{role}");
    }
}

/// Whoever created the extension, and whatever default privileges say.
#[test]
fn the_owner_of_a_database_keeps_batches_from_others() {
    for creator in ["landlord", "postgres", "tenant"] {
        let cluster = server();
        cluster
            .client_of("postgres", "shop")
            .batch_execute(
                "ALTER DEFAULT PRIVILEGES FOR ROLE postgres, landlord, tenant REVOKE USAGE ON TYPES FROM PUBLIC",
            )
            .unwrap();
        create(&cluster, creator);
        for role in ["clerk", "loader", "tenant", "landlord"] {
            assert!(may_batch(&cluster, role), "{creator}: {role}");
        }
        let mut landlord = cluster.client_of("landlord", "shop");
        landlord.batch_execute(RESTRICT).unwrap();
        is_restricted(&cluster);
        // Nobody else grants it.
        for role in ["clerk", "tenant"] {
            let mut client = cluster.client_of(role, "shop");
            let _ = client.batch_execute("GRANT USAGE ON TYPE _snowflake.batch TO clerk");
            refused(&mut client, "ALTER DOMAIN _snowflake.batch OWNER TO clerk", "42501");
            assert!(!may_batch(&cluster, "clerk"));
        }
        // As of any function, the rights are those of whom it runs as.
        let of_owner = "CREATE FUNCTION some_ids() RETURNS SETOF bigint SECURITY DEFINER LANGUAGE sql AS 'SELECT snowflake_next(3)'";
        landlord.batch_execute(of_owner).unwrap();
        let some = "SELECT count(*) FROM some_ids()";
        assert_eq!(value::<i64>(&mut cluster.client_of("clerk", "shop"), some), 3);
        // It goes with the database.
        let mut superuser = cluster.client_of("postgres", "shop");
        superuser.batch_execute("ALTER DATABASE shop OWNER TO tenant").unwrap();
        assert!(!may_batch(&cluster, "landlord"), "{creator}");
        let mut tenant = cluster.client_of("tenant", "shop");
        tenant.batch_execute("GRANT USAGE ON TYPE _snowflake.batch TO PUBLIC").unwrap();
        assert!(may_batch(&cluster, "clerk"), "{creator}");
        superuser.batch_execute("DROP EXTENSION pg_snowflake CASCADE").unwrap();
    }
}

/// As an update of an earlier version finds it: everybody may, before and after it.
#[test]
fn an_update_changes_nothing_until_the_owner_does() {
    let cluster = server();
    cluster
        .client_of("landlord", "shop")
        .batch_execute(&format!(
            "CREATE EXTENSION pg_snowflake VERSION '0.3.0'; {ORDERS}; GRANT INSERT ON orders TO PUBLIC"
        ))
        .unwrap();
    assert!(may_batch(&cluster, "clerk"));
    cluster.client_of("landlord", "shop").batch_execute("ALTER EXTENSION pg_snowflake UPDATE").unwrap();
    assert!(may_batch(&cluster, "clerk"));
    cluster.client_of("landlord", "shop").batch_execute(RESTRICT).unwrap();
    is_restricted(&cluster);
}

/// In both forms of a dump, restored by a superuser or by the owner of the database.
#[test]
fn a_dump_keeps_what_was_revoked() {
    let cluster = server();
    create(&cluster, "landlord");
    cluster.client_of("landlord", "shop").batch_execute(RESTRICT).unwrap();
    let dumps = [Format::Custom, Format::Plain].map(|format| Dump::new(&cluster, "shop", format));
    for (number, dump) in dumps.iter().enumerate() {
        for restorer in ["postgres", "landlord"] {
            let second = server();
            let mut command = match number {
                0 => pg_restore(&second, restorer, "shop"),
                _ => psql(&second, restorer, "shop"),
            };
            match number {
                0 => command.args(["--exit-on-error", "--no-owner"]).arg(&dump.file),
                _ => command.args(["--set=ON_ERROR_STOP=1", "--file"]).arg(&dump.file),
            };
            // The plain one has the statements of a superuser, such as OWNER TO.
            if number == 1 && restorer == "landlord" {
                continue;
            }
            run(&mut command);
            second.client_of("postgres", "shop").batch_execute("GRANT INSERT ON orders TO PUBLIC").unwrap();
            is_restricted(&second);
        }
    }
}

/// What a superuser has revoked on the functions themselves, only a superuser restores; pg_restore does not say so, from 15 on.
#[test]
fn a_restore_by_the_owner_loses_what_a_superuser_revoked() {
    let cluster = server();
    create(&cluster, "landlord");
    cluster
        .client_of("postgres", "shop")
        .batch_execute("REVOKE EXECUTE ON FUNCTION snowflake_next() FROM PUBLIC; GRANT EXECUTE ON FUNCTION snowflake_next() TO loader")
        .unwrap();
    let dump = Dump::new(&cluster, "shop", Format::Custom);
    let may =
        |cluster: &Cluster| ["clerk", "loader"].map(|role| cluster.client_of(role, "shop").query(NEXT, &[]).is_ok());
    assert_eq!(may(&cluster), [false, true]);
    for (restorer, clerk_may) in [("landlord", true), ("postgres", false)] {
        let second = server();
        let said =
            output(pg_restore(&second, restorer, "shop").args(["--exit-on-error", "--no-owner"]).arg(&dump.file));
        assert!(said.success, "{said:?}");
        assert_eq!(may(&second), [clerk_may, true], "{restorer}");
    }
}

/// How far IDs are ahead of the clock, in milliseconds.
fn lead(client: &mut Client) -> f64 {
    value(client, "SELECT coalesce(extract(epoch FROM lead), 0)::float8 * 1000 FROM snowflake_status()")
}

/// Statements that make more IDs than there are take turns below the last eighth of the burst, which is left to whoever wants few.
#[test]
fn who_uses_all_ids_up_leaves_room_to_single_calls() {
    const SESSIONS: usize = 4;
    for all in [
        "SELECT count(*) FROM (SELECT snowflake_next(2000000000) OFFSET 0) AS s",
        "SELECT count(snowflake_next()) FROM (SELECT generate_series(1, 2000000000) OFFSET 0) AS s",
    ] {
        // 512 IDs a millisecond.
        let cluster = Cluster::options().set("pg_snowflake.layout = 'timestamp=41 worker=13 sequence=9'").start();
        let mut client = cluster.client();
        let mut busy: Vec<Client> = (0..SESSIONS).map(|_| cluster.client()).collect();
        for session in &mut busy {
            // Where something fails here.
            session.batch_execute("SET statement_timeout = '5min'").unwrap();
        }
        let cancels: Vec<_> = busy.iter().map(Client::cancel_token).collect();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let _end = End(&is_over);
            for session in &mut busy {
                scope.spawn(move || session.batch_execute(all).unwrap_err());
            }
            wait_for("all is used up", || lead(&mut client) > 80.0);
            // Each has waited more than once by then.
            thread::sleep(Duration::from_millis(500));
            let is_over = &is_over;
            for _ in 0..SESSIONS {
                let mut session = cluster.client();
                session.batch_execute("SET application_name = 'single'").unwrap();
                scope.spawn(move || {
                    while !is_over.load(SeqCst) {
                        next(&mut session);
                    }
                });
            }
            let (mut waiting, mut leads) = (0, Vec::new());
            for _ in 0..300 {
                leads.push(lead(&mut client));
                let now = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'single' AND wait_event_type = 'Extension'";
                waiting += value::<i64>(&mut client, now);
                thread::sleep(Duration::from_millis(2));
            }
            is_over.store(true, SeqCst);
            cancels.iter().for_each(|cancel| cancel.cancel_query(postgres::NoTls).unwrap());
            // The burst is 100 ms beside the present one, of which those who use all up have seven eighths; single calls take some more.
            let above = leads.iter().filter(|&&lead| lead > 95.0).count();
            assert!(above <= 5, "{all}: {above} above: {leads:?}");
            assert!(leads.iter().any(|&lead| lead > 70.0), "{all}: nothing was used up: {leads:?}");
            assert!(waiting <= 20, "{all}: single calls were seen waiting {waiting} times of {}", 300 * SESSIONS);
        });
    }
}

/// A batch takes no more than the others leave, and is made all the same; IDs are distinct, and rise.
#[test]
fn large_batches_side_by_side_get_all_that_they_ask_for() {
    let cluster = Cluster::options().narrow().start();
    let lists = cluster.sessions(3, |_, client| batch(client, 20_000));
    lists.iter().for_each(|list| snowflake_test::check::rising(list));
    assert_eq!(snowflake_test::check::distinct(&lists), 60_000);
}
