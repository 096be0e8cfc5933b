//! The password of a registry is shown to nobody.

use crate::{leasing, secret_file, status};
use postgres::Client;
use snowflake_test::certificates::Authority;
use snowflake_test::check::{refused, wait_for};
use snowflake_test::ports::{free_port, outward};
use snowflake_test::proxy::{Mode, Proxy};
use snowflake_test::query::{next, value};
use snowflake_test::registries::{Kind, Setup};
use snowflake_test::{Cluster, Stop, with_each_registry};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

#[test]
fn the_password_shows_nowhere() {
    let registry = Setup::of(Kind::Redis).password("s3cret").start();
    let url = format!("redis://:s3cret@{}", registry.address());
    let cluster = leasing(&url).set("log_min_messages = debug1").start();
    let mut client = cluster.client();
    next(&mut client);
    let shown = status(&mut client, "registry");
    assert!(shown.starts_with(&format!("redis://{}", registry.address())) && !shown.contains("s3cret"), "{shown}");
    let shown: String = value(&mut client, "SHOW pg_snowflake.registry");
    assert!(!shown.contains("s3cret"), "{shown}");
    let settings = "SELECT string_agg(setting, '') FROM pg_settings";
    assert!(!value::<String>(&mut client, settings).contains("s3cret"));
    client.batch_execute("CREATE ROLE clerk LOGIN").unwrap();
    let mut clerk = cluster.client_of("clerk", "postgres");
    refused(&mut clerk, "SHOW pg_snowflake.registry", "42501");
    assert_eq!(value::<i64>(&mut clerk, "SELECT count(*) FROM pg_settings WHERE name = 'pg_snowflake.registry'"), 0);
    refused(&mut clerk, "SELECT * FROM snowflake_workers()", "42501");
    assert!(!cluster.log().contains("s3cret"));
}

#[test]
fn a_password_file_that_others_can_read_is_refused() {
    let registry = Setup::of(Kind::Redis).password("right").start();
    let cluster = Cluster::options().create();
    let file = secret_file(&cluster, "right");
    std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    cluster.append(
        "postgresql.conf",
        &format!(
            "pg_snowflake.worker_id = -1\npg_snowflake.registry = 'redis://{}'\npg_snowflake.max_wait = '1s'\n\
             pg_snowflake.registry_password_file = '{}'\n",
            registry.address(),
            file.display()
        ),
    );
    cluster.start();
    let mut client = cluster.client();
    client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    let error = refused(&mut client, "SELECT snowflake_next()", "55000");
    let detail = error.detail().unwrap();
    assert!(
        detail.contains("can be read by others") && detail.contains("pg_snowflake.registry_password_file"),
        "{detail}"
    );
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    wait_for("the password is read again", || client.query_one("SELECT snowflake_next()", &[]).is_ok());
}

/// Without a reload: who renews a password writes the file, and restarts the registry.
#[test]
fn another_password_in_the_file_is_read_when_the_old_one_is_refused() {
    let registry = Setup::of(Kind::Redis).password("s3cret").start();
    let proxy = Proxy::before(registry.port());
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let cluster = leasing(&url).set("pg_snowflake.registry_window = '6s'").create();
    let file = secret_file(&cluster, "s3cret");
    cluster.append("postgresql.conf", &format!("pg_snowflake.registry_password_file = '{}'\n", file.display()));
    cluster.start();
    let mut client = cluster.client();
    client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap();
    next(&mut client);
    registry.redis_cli(&["config", "set", "requirepass", "0ther"]);
    proxy.set(Mode::LoseAnswers);
    wait_for("the connection breaks", || cluster.log().contains("the registry of worker IDs does not answer"));
    proxy.set(Mode::Pass);
    wait_for("the old one is refused", || status(&mut client, "registry_error").contains("refuses the credentials"));
    std::fs::write(&file, "0ther\n").unwrap();
    wait_for("the new one is read", || cluster.log().contains("the registry of worker IDs answers again"));
    next(&mut client);
    assert!(!cluster.log().contains("s3cret") && !cluster.log().contains("0ther"));
}

#[test]
fn a_wrong_url_ends_the_start_and_is_not_shown() {
    for url in ["ftp://user:s3cret@host", "redis://user:s3cret@", "postgres://u:s3cret@h/?no=1"] {
        let cluster = Cluster::options().set(&format!("pg_snowflake.registry = '{url}'")).create();
        let log = cluster.try_start().unwrap_err();
        assert!(log.contains("invalid value for parameter \"pg_snowflake.registry\""), "{log}");
        assert!(!log.contains("s3cret"), "{log}");
    }
}

with_each_registry!(only_who_sees_the_setting_is_told_where_the_registry_is);

/// Host, port and user of a registry stand in the errors of calls only for those to whom PostgreSQL shows the parameter; also where a
/// function that runs as its owner makes the call, or a default of a table that such a function writes.
fn only_who_sees_the_setting_is_told_where_the_registry_is(kind: Kind) {
    let port = free_port();
    let url = kind.url(false, "registrar:s3cret", &format!("127.0.0.1:{port}"));
    let cluster = leasing(&url).set("pg_snowflake.max_wait = '100ms'").start();
    let mut client = cluster.client();
    client
        .batch_execute(
            "CREATE ROLE clerk LOGIN; CREATE ROLE watcher LOGIN IN ROLE pg_monitor;
             CREATE ROLE reader LOGIN IN ROLE pg_read_all_settings;
             CREATE TABLE orders (id bigint DEFAULT snowflake_next(), note text); GRANT INSERT ON orders TO PUBLIC;
             CREATE FUNCTION next_of_owner() RETURNS bigint SECURITY DEFINER LANGUAGE sql AS 'SELECT snowflake_next()';
             CREATE FUNCTION order_of_owner() RETURNS void SECURITY DEFINER LANGUAGE sql AS 'INSERT INTO orders DEFAULT VALUES';
             CREATE FUNCTION preflight_of_owner() RETURNS text SECURITY DEFINER LANGUAGE sql
                 AS 'SELECT string_agg(finding, chr(10)) FROM snowflake_preflight()';
             GRANT EXECUTE ON FUNCTION snowflake_segment_next(text), snowflake_segment_next(text, integer),
                 snowflake_segment_create(text, bigint, bigint, bigint, bigint), snowflake_segment_raise(text, bigint),
                 snowflake_segment_drop(text) TO PUBLIC",
        )
        .unwrap();
    wait_for("the registry does not answer", || status(&mut client, "registry_error").contains(&port.to_string()));
    let hidden = [port.to_string(), "127.0.0.1".to_owned(), "registrar".to_owned(), "s3cret".to_owned()];
    let calls = [
        "SELECT snowflake_next()",
        "SELECT snowflake_next(3)",
        "INSERT INTO orders (note) VALUES ('a')",
        "SELECT next_of_owner()",
        "SELECT order_of_owner()",
        "SELECT string_agg(finding, E'\n') FROM snowflake_preflight()",
        "SELECT preflight_of_owner()",
        "SELECT snowflake_segment_next('orders')",
        "SELECT snowflake_segment_next('orders', 3)",
        "SELECT snowflake_segment_create('orders')",
        "SELECT snowflake_segment_raise('orders', 5)",
        "SELECT snowflake_segment_drop('orders')",
    ];
    let of_segments = |call: &str| call.contains("_segment_");
    // All that is said, of whatever part of an error.
    let said = |client: &mut Client, call: &str| match client.simple_query(call) {
        Ok(rows) => format!("{rows:?}"),
        Err(error) => format!("{:?}", error.as_db_error().unwrap()),
    };
    for role in ["clerk", "watcher", "reader", "postgres"] {
        let mut session = cluster.client_of(role, "postgres");
        // It takes seconds until a change is given up.
        for call in calls.iter().filter(|call| !of_segments(call) || role == "clerk") {
            let said = said(&mut session, call);
            let shown: Vec<&String> = hidden.iter().filter(|text| said.contains(*text)).collect();
            if role == "clerk" {
                assert_eq!(shown, [""; 0], "{call}: {said}");
                assert!(said.contains("The server's log says why."), "{call}: {said}");
            } else {
                assert!(shown.contains(&&hidden[0]) && !shown.contains(&&hidden[3]), "{role}: {call}: {said}");
            }
        }
    }
    // Who has put the role of a clerk on is one.
    client.batch_execute("SET ROLE clerk").unwrap();
    assert!(!said(&mut client, calls[0]).contains(&hidden[0]));
    assert!(cluster.log().contains(&hidden[0]) && !cluster.log().contains(&hidden[3]));
}

/// What PostgreSQL shows of the parameter, in all its ways.
const SHOWN: &str = "SELECT concat_ws(' ', setting, boot_val, reset_val, current_setting(name)) \
     FROM pg_settings WHERE name = 'pg_snowflake.registry'";

/// The same, where it has this value: the default is empty.
fn shown(url: &str) -> String {
    format!("{url}  {url} {url}")
}

#[test]
fn those_who_may_read_all_settings_do_not_read_the_password() {
    let registry = Setup::of(Kind::Redis).password("s3cret").start();
    let cluster = leasing(&format!("redis://:s3cret@{}", registry.address())).start();
    let mut client = cluster.client();
    next(&mut client);
    client.batch_execute("CREATE ROLE monitor LOGIN; GRANT pg_monitor TO monitor").unwrap();
    let mut monitor = cluster.client_of("monitor", "postgres");
    let url = format!("redis://{}/0", registry.address());
    for client in [&mut client, &mut monitor] {
        assert_eq!(value::<String>(client, SHOWN), shown(&url));
        let all = client.simple_query("SHOW ALL").unwrap();
        assert!(!format!("{all:?}").contains("s3cret"));
    }
    // The files themselves are for superusers.
    refused(&mut monitor, "SELECT * FROM pg_file_settings", "42501");
    // In a parallel worker.
    let parallel = "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; \
        SET min_parallel_table_scan_size = 0; CREATE TABLE t AS SELECT generate_series(1, 1000); ANALYZE t";
    client.batch_execute(parallel).unwrap();
    let values = "SELECT string_agg(DISTINCT current_setting('pg_snowflake.registry'), ' ') FROM t";
    assert_eq!(value::<String>(&mut client, values), url);
    let plan = "EXPLAIN SELECT * FROM t WHERE current_setting('pg_snowflake.registry') <> ''";
    let plan = client.simple_query(plan).unwrap();
    assert!(format!("{plan:?}").contains("Gather"), "{plan:?}");
    let count = "SELECT count(*) FROM t WHERE current_setting('pg_snowflake.registry') LIKE '%s3cret%'";
    assert_eq!(value::<i64>(&mut client, count), 0);
    // Nothing that a session does brings it back.
    let name = "pg_snowflake.registry";
    for statement in [format!("SET {name} = ''"), format!("SET LOCAL {name} TO DEFAULT"), format!("RESET {name}")] {
        refused(&mut client, &statement, "55P02");
    }
    client.batch_execute("RESET ALL").unwrap();
    client.batch_execute("DISCARD ALL").unwrap();
    assert_eq!(value::<String>(&mut client, SHOWN), shown(&url));
    // The process that leases has it, also after it was started again.
    let leased = || cluster.log().matches("leased worker ID").count();
    let before = leased();
    let terminate = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'pg_snowflake lease'";
    client.execute(terminate, &[]).unwrap();
    wait_for("another process leases", || leased() > before);
    assert!(!cluster.log().contains("s3cret"));
}

/// The value that PostgreSQL compares has no password, and it must see that the parameter was changed all the same.
#[test]
fn another_password_needs_a_restart_as_any_other_value_does() {
    let registry = Setup::of(Kind::Redis).password("s3cret").start();
    let url = |password: &str| format!("redis://:{password}@{}", registry.address());
    let cluster = leasing(&url("s3cret")).start();
    let mut client = cluster.client();
    next(&mut client);
    let shown: String = value(&mut client, SHOWN);
    let pending = "SELECT pending_restart FROM pg_settings WHERE name = 'pg_snowflake.registry'";
    for (password, is_pending) in [("0ther", true), ("s3cret", false), ("0ther", true)] {
        let set = format!("ALTER SYSTEM SET pg_snowflake.registry = '{}'", url(password));
        client.batch_execute(&set).unwrap();
        client.batch_execute("SELECT pg_reload_conf()").unwrap();
        wait_for("the file was read", || value::<bool>(&mut cluster.client(), pending) == is_pending);
        assert_eq!(value::<String>(&mut cluster.client(), SHOWN), shown);
    }
    let log = cluster.log();
    assert!(log.contains("\"pg_snowflake.registry\" cannot be changed without restarting the server"), "{log}");
    registry.redis_cli(&["config", "set", "requirepass", "0ther"]);
    cluster.restart(Stop::Fast);
    assert_eq!(value::<String>(&mut cluster.client(), SHOWN), shown);
    next(&mut cluster.client());
    assert!(!cluster.log().contains("0ther") && !cluster.log().contains("s3cret"));
}

/// Values that are refused, each with a password.
const MALFORMED: [&str; 6] = [
    "redis://:s3cret@bad host",
    "s3cret",
    "postgres://u:s3c/s3cret@h",
    "redis://:s3cret@",
    "etcd://u:s3cret@h/?nothing=s3cret",
    "ftp://u:s3cret@h",
];

#[test]
fn a_value_that_is_refused_is_not_shown() {
    let cluster = Cluster::options().set("log_error_verbosity = verbose").start();
    let mut client = cluster.client();
    for value in MALFORMED {
        let error = refused(&mut client, &format!("ALTER SYSTEM SET pg_snowflake.registry = '{value}'"), "22023");
        let expected = "invalid value for parameter \"pg_snowflake.registry\": not shown, as it may have a password";
        assert_eq!(error.message(), expected);
        assert!(error.detail().is_some_and(|detail| !detail.contains("s3cret")) && error.hint().is_some(), "{error:?}");
    }
    // By those who may not, or not so; and together with other statements.
    client.batch_execute("CREATE ROLE clerk LOGIN").unwrap();
    let mut clerk = cluster.client_of("clerk", "postgres");
    let url = "redis://:s3cret@h";
    clerk.batch_execute(&format!("ALTER SYSTEM SET pg_snowflake.registry = '{url}'")).unwrap_err();
    for statement in [
        format!("SET pg_snowflake.registry = '{url}'"),
        format!("SET LOCAL \"pg_snowflake\" . Registry TO '{url}'"),
        format!("SELECT set_config('pg_snowflake.registry', '{url}', false)"),
        format!("SELECT 1; SET pg_snowflake.registry = '{url}'; SELECT 2"),
        format!("SELECT 1 / 0; SET pg_snowflake.registry = '{url}'"),
        format!("DO $$ BEGIN EXECUTE 'SET pg_snowflake.registry = ''{url}'''; END $$"),
        format!("DO $$ BEGIN PERFORM set_config('pg_snow' || 'flake.registry', '{url}', false); END $$"),
        format!("ALTER ROLE postgres SET pg_snowflake.registry = '{url}'"),
        format!("ALTER DATABASE postgres SET pg_snowflake.registry = '{url}'"),
        format!("CREATE FUNCTION f() RETURNS int LANGUAGE sql SET pg_snowflake.registry = '{url}' AS 'SELECT 1'"),
        // Without quotes, no statement at all.
        format!("ALTER SYSTEM SET pg_snowflake.registry = {url}"),
    ] {
        for client in [&mut client, &mut clerk] {
            assert!(client.batch_execute(&statement).is_err(), "{statement}");
        }
    }
    client.query("SELECT set_config($1, $2, false)", &[&"pg_snowflake.registry", &url]).unwrap_err();
    let log = cluster.log();
    let shown: Vec<&str> = log.lines().filter(|line| line.contains("s3cret")).collect();
    assert_eq!(shown, Vec::<&str>::new());
    // The statements of other errors are there.
    refused(&mut client, "SELECT 1 / 0 AS other, 'pg_snowflake.registry_window'", "22012");
    assert!(cluster.log().contains("STATEMENT:  SELECT 1 / 0 AS other"));
}

#[test]
fn a_file_with_a_wrong_value_is_read_without_showing_it() {
    let cluster = Cluster::options().start();
    for value in MALFORMED {
        cluster.append("postgresql.conf", &format!("pg_snowflake.registry = '{value}'\n"));
        let before = cluster.log().matches("contains errors").count();
        cluster.client().batch_execute("SELECT pg_reload_conf()").unwrap();
        wait_for("the file was read", || cluster.log().matches("contains errors").count() > before);
    }
    let log = cluster.log();
    assert!(log.contains("invalid value for parameter \"pg_snowflake.registry\": not shown"), "{log}");
    assert!(!log.contains("s3cret"), "{log}");
}

/// A session that loads the library, in a server that does not.
#[test]
fn without_preloading_the_value_has_no_password_either() {
    let url = "redis://:s3cret@registry.example";
    let cluster = Cluster::options().not_preloaded().set(&format!("pg_snowflake.registry = '{url}'")).start();
    let mut client = cluster.client();
    client.batch_execute("LOAD 'pg_snowflake'").unwrap();
    assert_eq!(value::<String>(&mut client, SHOWN), shown("redis://registry.example:6379/0"));
    cluster.append("postgresql.conf", "pg_snowflake.registry = 'redis://:0ther@second.example'\n");
    client.batch_execute("SELECT pg_reload_conf()").unwrap();
    let second = shown("redis://second.example:6379/0");
    wait_for("the file was read", || value::<String>(&mut client, SHOWN) == second);
    refused(&mut client, "SET pg_snowflake.registry = 'redis://:s3cret@third.example'", "55P02");
    assert!(!cluster.log().contains("s3cret"), "{}", cluster.log());
}

/// Once, and not each time that it connects again.
#[test]
fn the_log_says_what_does_not_protect_a_connection() {
    let Some(outward) = outward() else { return };
    let authority = Authority::new();
    let certificate = authority.certificate("registry", &format!("IP:{outward}"));
    let open = Setup::of(Kind::Redis).password("s3cret").start();
    let unverified = Setup::of(Kind::Postgres).certificate(&certificate).start();
    let without_tls = Setup::of(Kind::Postgres).start();
    for (registry, with_tls, credentials, line) in [
        (&open, false, ":s3cret", "WARNING:  the password for the registry of worker IDs is sent without encryption"),
        (&unverified, true, "", "LOG:  the certificate of the registry of worker IDs is not verified"),
        (&without_tls, false, "", "LOG:  the connection with the registry of worker IDs is not encrypted"),
    ] {
        let proxy = Proxy::at(outward, registry.port());
        let url = registry.kind().url(with_tls, credentials, &format!("{outward}:{}", proxy.port()));
        let cluster = leasing(&url).set("pg_snowflake.registry_window = '6s'").start();
        next(&mut cluster.client());
        let said = |what: &str| cluster.log().matches(what).count();
        assert_eq!(said(line), 1, "{}", cluster.log());
        proxy.set(Mode::LoseAnswers);
        wait_for("the connection breaks", || said("the registry of worker IDs does not answer") > 0);
        proxy.set(Mode::Pass);
        wait_for("it is made again", || said("the registry of worker IDs answers again") > 0);
        assert_eq!(said(line), 1, "{}", cluster.log());
        assert_eq!(said("may lose what it has stored"), said("DETAIL:  The registry has"), "{}", cluster.log());
        assert!(!cluster.log().contains("s3cret"));
    }
}
