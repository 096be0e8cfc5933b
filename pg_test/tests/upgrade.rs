//! ALTER EXTENSION updates a database of a released version to the current one. Until somebody runs that, which may be
//! never, the current library serves the objects of the release; the regress files `released_*` call each of them.

use postgres::Client;
use postgres::error::SqlState;
use snowflake_test::load::{self, TABLE};
use snowflake_test::{Cluster, check, ids, run, value};
use std::path::Path;
use std::thread;
use std::time::Duration;

const UPDATE: &str = "ALTER EXTENSION pg_snowflake UPDATE";

/// All that the catalog has of the extension and its objects, but for OIDs, and the numbers in the sequences.
const CATALOGUE: &str = "
    WITH members AS (
        SELECT classid, objid, pg_describe_object(classid, objid, 0) AS object
        FROM pg_depend JOIN pg_extension e ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid AND deptype = 'e'
        WHERE extname = 'pg_snowflake'
    )
    SELECT concat_ws(' | ', object, obj_description(objid, classid::regclass::name)) AS line FROM members
    UNION ALL SELECT concat_ws(' | ', object, pg_get_functiondef(p.oid), proowner::regrole, proacl, prosupport)
        FROM members JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
    UNION ALL SELECT concat_ws(' | ', object, relkind, relowner::regrole, relacl, relpersistence, reloptions)
        FROM members JOIN pg_class c ON classid = 'pg_class'::regclass AND objid = c.oid
    UNION ALL SELECT concat_ws(' | ', object, seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle)
        FROM members JOIN pg_sequence ON classid = 'pg_class'::regclass AND objid = seqrelid
    UNION ALL SELECT concat_ws(' | ', object, nspowner::regrole, nspacl)
        FROM members JOIN pg_namespace n ON classid = 'pg_namespace'::regclass AND objid = n.oid
    UNION ALL SELECT concat_ws(' | ', object, typtype, typowner::regrole, typacl, attnum, attname, atttypid::regtype)
        FROM members JOIN pg_type t ON classid = 'pg_type'::regclass AND objid = t.oid
        LEFT JOIN pg_attribute ON attrelid = typrelid
    UNION ALL SELECT concat_ws(' | ', object, 'initially', privtype, initprivs)
        FROM members JOIN pg_init_privs ON classoid = classid AND objoid = objid
    UNION ALL SELECT concat_ws(' | ', object, 'depends on', pg_describe_object(refclassid, refobjid, refobjsubid), deptype)
        FROM members JOIN pg_depend USING (classid, objid)
    UNION ALL SELECT concat_ws(' | ', 'extension', extversion, extowner::regrole, extnamespace::regnamespace, extrelocatable)
        FROM pg_extension WHERE extname = 'pg_snowflake'
    UNION ALL SELECT concat_ws(' | ', 'extension', 'dumps', config.relation::regclass, condition)
        FROM pg_extension, LATERAL unnest(extconfig, extcondition) config (relation, condition) WHERE extname = 'pg_snowflake'";

fn catalogue(client: &mut Client) -> Vec<String> {
    let mut lines: Vec<String> = client.query(CATALOGUE, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    lines.sort_unstable();
    lines
}

/// Fails with the lines that only one of them has.
fn same(found: &[String], fresh: &[String]) {
    let only = |left: &[String], right: &[String]| -> Vec<String> {
        left.iter().filter(|line| !right.contains(line)).cloned().collect()
    };
    let (surplus, missing) = (only(found, fresh), only(fresh, found));
    assert!(surplus.is_empty() && missing.is_empty(), "beyond a fresh install: {surplus:#?}\nmissing: {missing:#?}");
    assert_eq!(found.len(), fresh.len());
}

/// The versions whose scripts are kept.
fn released() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sql/released");
    let mut versions: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            Some(name.strip_prefix("pg_snowflake--")?.strip_suffix(".sql")?.to_owned())
        })
        .collect();
    versions.sort_unstable();
    assert!(!versions.is_empty(), "no released versions");
    versions
}

fn database_of(cluster: &Cluster, name: &str, version: &str) -> Client {
    cluster.client().batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
    let mut client = cluster.client_of("postgres", name);
    client.batch_execute(&format!("CREATE EXTENSION pg_snowflake VERSION '{version}'")).unwrap();
    client
}

/// The version of the extension in a database, and the current one.
fn versions(client: &mut Client) -> (String, String) {
    let query = "SELECT installed_version, default_version FROM pg_available_extensions WHERE name = 'pg_snowflake'";
    let row = client.query_one(query, &[]).unwrap();
    (row.get(0), row.get(1))
}

fn insert(client: &mut Client) -> Vec<i64> {
    ids(&client
        .query("INSERT INTO stored (session) SELECT i FROM generate_series(1, 1000) i RETURNING id", &[])
        .unwrap())
}

/// How many rows the view reads as IDs of this server.
fn read(client: &mut Client) -> i64 {
    let query = "SELECT count(*) FROM decoded WHERE worker_id = 1 AND at > now() - interval '1 hour'";
    client.query_one(query, &[]).unwrap().get(0)
}

/// A C symbol of the library, and what is declared to be called by it.
fn symbols(client: &mut Client) -> Vec<(String, String)> {
    let query = "SELECT prosrc, concat_ws(' ', proargtypes::regtype[], proretset, prorettype::regtype, proallargtypes::regtype[])
        FROM pg_proc p JOIN pg_depend ON classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e'
        JOIN pg_extension e ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid AND extname = 'pg_snowflake'
        JOIN pg_language l ON l.oid = prolang AND lanname = 'c'";
    client.query(query, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

const OBJECTS: &str = "
    CREATE VIEW decoded AS
        SELECT snowflake_timestamp(id) AS at, (snowflake_decode(id)).*
        FROM stored WHERE snowflake_between(id, '-infinity', 'infinity');
    CREATE INDEX ON stored (snowflake_timestamp(id))";

/// The objects of one release meet the library of another on a standby that has not been restarted, and after a way back. A symbol with
/// other arguments or columns would be called by a declaration that it was not made for: from 0.1.0's `snowflake_status()`, the server crashed.
#[test]
fn a_symbol_of_a_release_keeps_its_arguments_and_columns() {
    let cluster = Cluster::options().start();
    let current = symbols(&mut cluster.client());
    assert!(current.len() > 30, "{current:#?}");
    for version in released() {
        let name = format!("of_{}", version.replace('.', "_"));
        let of_release = symbols(&mut database_of(&cluster, &name, &version));
        assert!(of_release.len() > 20, "{of_release:#?}");
        for (symbol, declaration) in of_release {
            let changed: Vec<_> =
                current.iter().filter(|(other, now)| *other == symbol && *now != declaration).collect();
            assert!(changed.is_empty(), "{version} has {symbol} as {declaration}, and now: {changed:#?}");
        }
    }
}

#[test]
fn an_updated_database_equals_one_of_a_fresh_install() {
    let cluster = Cluster::options().start();
    let fresh = catalogue(&mut cluster.client());
    assert!(fresh.len() > 100, "{fresh:#?}");
    for version in released() {
        let name = format!("of_{}", version.replace('.', "_"));
        let mut client = database_of(&cluster, &name, &version);
        assert_eq!(versions(&mut client).0, version);
        client.batch_execute(TABLE).unwrap();
        client.batch_execute(OBJECTS).unwrap();
        let mut list = insert(&mut client);
        assert_eq!(read(&mut client), 1000);

        // A session from before the update, and one from after it.
        let mut other = cluster.client_of("postgres", &name);
        list.extend(insert(&mut other));
        client.batch_execute(UPDATE).unwrap();
        let (installed, current) = versions(&mut client);
        assert_eq!(installed, current);
        same(&catalogue(&mut client), &fresh);
        for client in [&mut client, &mut other, &mut cluster.client_of("postgres", &name)] {
            list.extend(insert(client));
        }
        assert_eq!(read(&mut client), 5000);

        // In a dump, too.
        let file = cluster.socket().join("dump");
        run(cluster.program("pg_dump").arg("--file").arg(&file).arg(&name));
        let restored = format!("restored_{name}");
        cluster.client().batch_execute(&format!("CREATE DATABASE {restored}")).unwrap();
        let mut psql = cluster.program("psql");
        run(psql.args(["--no-psqlrc", "--set=ON_ERROR_STOP=1", "--dbname", &restored, "--file"]).arg(&file));
        let mut client = cluster.client_of("postgres", &restored);
        same(&catalogue(&mut client), &fresh);
        assert_eq!(read(&mut client), 5000);
        list.extend(insert(&mut client));
        check::rising(&list);
    }
}

/// Default privileges of whoever creates the extension, or updates it, change nothing that others rely on.
#[test]
fn default_privileges_neither_open_nor_close_functions() {
    const FOR_ADMINISTRATORS: [&str; 9] = [
        "SELECT * FROM snowflake_status()",
        "SELECT * FROM snowflake_workers()",
        "SELECT * FROM snowflake_segments()",
        "SELECT snowflake_adopt_layout()",
        "SELECT snowflake_rewind(1)",
        "SELECT snowflake_segment_create('orders')",
        "SELECT snowflake_segment_next('orders')",
        "SELECT snowflake_segment_raise('orders', 10)",
        "SELECT snowflake_segment_drop('orders')",
    ];
    let cluster = Cluster::options().start();
    cluster.client().batch_execute("CREATE ROLE app LOGIN; CREATE ROLE trusted LOGIN").unwrap();
    let versions = released().into_iter().map(|version| format!("VERSION '{version}'")).chain([String::new()]);
    for (number, version) in versions.enumerate() {
        for (way, change) in [
            ("opened", "IN SCHEMA public GRANT EXECUTE ON FUNCTIONS TO app"),
            ("opened_to_all", "GRANT EXECUTE ON FUNCTIONS TO app WITH GRANT OPTION"),
            ("closed", "REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC"),
        ] {
            let name = format!("{way}_{number}");
            cluster.client().batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
            let mut client = cluster.client_of("postgres", &name);
            client
                .batch_execute(&format!(
                    "ALTER DEFAULT PRIVILEGES {change}; CREATE EXTENSION pg_snowflake {version};
                     GRANT EXECUTE ON FUNCTION snowflake_adopt_layout() TO trusted; {UPDATE}; GRANT CREATE ON SCHEMA public TO app"
                ))
                .unwrap();
            let mut app = cluster.client_of("app", &name);
            for call in FOR_ADMINISTRATORS {
                assert_eq!(
                    app.batch_execute(call).unwrap_err().code(),
                    Some(&SqlState::INSUFFICIENT_PRIVILEGE),
                    "{name}: {call}"
                );
            }
            // What somebody has granted stays.
            assert!(value::<bool>(
                &mut client,
                "SELECT has_function_privilege('trusted', 'snowflake_adopt_layout()', 'EXECUTE')"
            ));
            if way == "closed" {
                client
                    .batch_execute(
                        "GRANT EXECUTE ON FUNCTION snowflake_next(), snowflake_min_id(timestamptz), snowflake_timestamp(bigint),
                             snowflake_create_partitions(regclass, interval, timestamptz, timestamptz, text) TO app;
                         GRANT EXECUTE ON PROCEDURE snowflake_partition_default_rows(regclass, interval, boolean, text) TO app",
                    )
                    .unwrap();
            }
            for statement in [
                "CREATE TABLE tickets (id snowflake_id PRIMARY KEY)",
                "INSERT INTO tickets VALUES (5)",
                "CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_next()) PARTITION BY RANGE (id)",
                "CREATE TABLE events_rest PARTITION OF events DEFAULT",
                "INSERT INTO events DEFAULT VALUES",
                "CALL snowflake_partition_default_rows('events', '1 day')",
                "SELECT * FROM events WHERE snowflake_timestamp(id)::date = current_date",
            ] {
                app.batch_execute(statement).unwrap_or_else(|error| panic!("{name}: {statement}: {error:?}"));
            }
        }
    }
}

/// PL/pgSQL can be dropped; what needs it says so.
#[test]
fn without_plpgsql_it_is_named() {
    let cluster = Cluster::options().start();
    let mut client = cluster.client();
    client.batch_execute("DROP EXTENSION pg_snowflake; DROP EXTENSION plpgsql").unwrap();
    let error = client.batch_execute("CREATE EXTENSION pg_snowflake").unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.message(), "required extension \"plpgsql\" is not installed");
    assert!(error.hint().unwrap().contains("CASCADE"), "{error:?}");
    client.batch_execute("CREATE EXTENSION pg_snowflake CASCADE").unwrap();
}

/// Release by release, each of which equals its fresh install, as the library of today serves both; and then the current version.
#[test]
fn an_update_by_way_of_each_release_passes_through_that_release() {
    let cluster = Cluster::options().start();
    let fresh = catalogue(&mut cluster.client());
    let releases = released();
    for (index, from) in releases.iter().enumerate() {
        let name = format!("steps_of_{}", from.replace('.', "_"));
        let mut client = database_of(&cluster, &name, from);
        client.batch_execute(TABLE).unwrap();
        client.batch_execute(OBJECTS).unwrap();
        let mut list = insert(&mut client);
        for (number, to) in releases.iter().enumerate().skip(index + 1) {
            client.batch_execute(&format!("{UPDATE} TO '{to}'")).unwrap();
            assert_eq!(versions(&mut client).0, *to);
            let mut of_release = database_of(&cluster, &format!("{name}_{number}"), to);
            same(&catalogue(&mut client), &catalogue(&mut of_release));
            list.extend(insert(&mut client));
        }
        client.batch_execute(UPDATE).unwrap();
        same(&catalogue(&mut client), &fresh);
        list.extend(insert(&mut client));
        check::rising(&list);
        assert_eq!(read(&mut client), i64::try_from(list.len()).unwrap());
    }
}

#[test]
fn an_update_disturbs_no_session_that_makes_ids() {
    let cluster = Cluster::options().start();
    let mut databases = Vec::new();
    for version in released() {
        // Each is updated once, so some.
        for number in 0..4 {
            let name = format!("of_{}_{number}", version.replace('.', "_"));
            database_of(&cluster, &name, &version).batch_execute(TABLE).unwrap();
            databases.push(name);
        }
    }
    let names: Vec<&str> = databases.iter().map(String::as_str).collect();
    let ((), record) = load::run_during_in(
        &names,
        2,
        || &cluster,
        || {
            for database in &databases {
                thread::sleep(Duration::from_millis(300));
                let mut client = cluster.client_of("postgres", database);
                client.batch_execute(UPDATE).unwrap();
                let (installed, current) = versions(&mut client);
                assert_eq!(installed, current);
            }
            thread::sleep(Duration::from_millis(300));
        },
    );
    assert!(record.refused.is_empty(), "{:?}", record.messages);
    let count = record.check(&[&cluster]);
    assert!(count > 5_000, "{count}");
}
