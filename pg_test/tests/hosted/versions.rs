//! Installing and updating: as a script, and as an extension. The script of an update is the script itself.

use postgres::Client;
use snowflake_test::hosted::{self, DATABASE, create_database, run_script, server};
use snowflake_test::load::{self, TABLE};
use snowflake_test::{check, millis, query, value};
use std::thread;

/// The functions, sequences and types, with all that the catalog says of them; and the numbers on record.
fn objects(client: &mut Client) -> Vec<String> {
    let query = "
        SELECT concat_ws(' | ', pg_get_functiondef(p.oid), proacl, proowner::regrole, obj_description(p.oid, 'pg_proc'))
        FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = pronamespace WHERE nspname = '_snowflake' OR proname LIKE 'snowflake\\_%'
        UNION ALL SELECT concat_ws(' | ', c.oid::regclass, relacl, relowner::regrole, obj_description(c.oid, 'pg_class'))
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = relnamespace WHERE nspname = '_snowflake' OR relname LIKE 'snowflake\\_%'
        UNION ALL SELECT concat_ws(' | ', schemaname, sequencename, max_value, min_value, increment_by, cache_size) FROM pg_sequences
        ORDER BY 1";
    client.query(query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

#[test]
fn the_script_runs_again() {
    let cluster = server();
    let mut client = cluster.client_of("owner", DATABASE);
    client.batch_execute(query::ORDERS).unwrap();
    let mut list = query::batch(&mut client, 100);
    let before = objects(&mut client);
    assert!(before.len() > 50, "{before:#?}");
    run_script(&cluster, DATABASE);
    assert_eq!(objects(&mut client), before);
    list.extend(query::batch(&mut client, 100));
    check::rising(&list);
    assert_eq!(value::<i32>(&mut client, "SELECT snowflake_worker(snowflake_next())"), 1);
}

/// What an update of each release leaves is what a new database has, and IDs go on.
#[test]
fn the_script_updates_each_release() {
    let cluster = hosted::options().create();
    cluster.start();
    create_database(&cluster, "model");
    run_script(&cluster, "model");
    let mut model = cluster.client_of("owner", "model");
    model.batch_execute("SELECT snowflake_configure(7)").unwrap();
    let functions = |client: &mut Client| -> Vec<String> {
        let query =
            "SELECT concat_ws(' | ', pg_get_functiondef(p.oid), proowner::regrole, obj_description(p.oid, 'pg_proc'))
            FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = pronamespace
            WHERE nspname = '_snowflake' OR proname LIKE 'snowflake\\_%' ORDER BY 1";
        client.query(query, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    };
    for (number, (version, script)) in hosted::released().into_iter().enumerate() {
        let name = format!("of_{number}");
        create_database(&cluster, &name);
        let mut client = cluster.client_of("owner", &name);
        client.batch_execute(&script).unwrap();
        client.batch_execute("SELECT snowflake_configure(7)").unwrap();
        client.batch_execute(query::ORDERS).unwrap();
        client
            .batch_execute("CREATE INDEX ON orders (snowflake_timestamp(id)); INSERT INTO orders (note) VALUES ('a')")
            .unwrap();
        let mut list = query::batch(&mut client, 100);
        run_script(&cluster, &name);
        assert_eq!(functions(&mut client), functions(&mut model), "{version}");
        list.extend(query::batch(&mut client, 100));
        check::rising(&list);
        assert_eq!(value::<i32>(&mut client, "SELECT snowflake_worker(snowflake_next())"), 7);
        client.batch_execute("INSERT INTO orders (note) VALUES ('b')").unwrap();
    }
}

#[test]
fn an_update_disturbs_no_session() {
    let cluster = server();
    cluster.client_of("owner", DATABASE).batch_execute(TABLE).unwrap();
    let ((), record) = load::run_during_in(
        &[DATABASE],
        4,
        || &cluster,
        || {
            for _ in 0..3 {
                thread::sleep(millis(200));
                run_script(&cluster, DATABASE);
            }
            thread::sleep(millis(200));
        },
    );
    assert!(record.refused.is_empty(), "{:?}", record.messages);
    record.check(&[&cluster]);
}

#[test]
fn an_extension_is_created_updated_and_dropped() {
    let cluster = hosted::options().on(hosted::installation()).create();
    cluster.start();
    create_database(&cluster, DATABASE);
    let mut client = cluster.client_of("owner", DATABASE);
    client.batch_execute("CREATE EXTENSION pg_snowflake VERSION '1'; SELECT snowflake_configure(7)").unwrap();
    let mut list = query::batch(&mut client, 100);
    let before = objects(&mut client);
    client.batch_execute("ALTER EXTENSION pg_snowflake UPDATE").unwrap();
    assert_eq!(value::<String>(&mut client, "SELECT extversion FROM pg_extension WHERE extname = 'pg_snowflake'"), "2");
    assert_eq!(objects(&mut client), before);
    list.extend(query::batch(&mut client, 100));
    check::rising(&list);
    assert_eq!(value::<i32>(&mut client, "SELECT snowflake_worker(snowflake_next())"), 7);
    let dumped = "SELECT string_agg(c::regclass::text, ' ' ORDER BY 1) FROM pg_extension, unnest(extconfig) AS c \
                  WHERE extname = 'pg_snowflake'";
    let dumped: String = value(&mut client, dumped);
    assert_eq!(dumped.split(' ').count(), 4, "{dumped}");
    // The script is not for it.
    assert_eq!(client.batch_execute(hosted::script()).unwrap_err().code().unwrap().code(), "42710");
    client.batch_execute("DROP EXTENSION pg_snowflake").unwrap();
    assert_eq!(objects(&mut client).len(), 0);
    // In a schema of its own.
    client
        .batch_execute("CREATE SCHEMA ids; CREATE EXTENSION pg_snowflake SCHEMA ids; SELECT ids.snowflake_configure(7)")
        .unwrap();
    client.batch_execute("CREATE TABLE t (id bigint DEFAULT ids.snowflake_next())").unwrap();
    client.batch_execute("INSERT INTO t DEFAULT VALUES").unwrap();
}

/// Databases of other encodings have not all characters, and the file is for all of them.
#[test]
fn the_script_has_no_characters_but_those_of_every_encoding() {
    let odd = hosted::script().lines().find(|line| !line.is_ascii());
    assert_eq!(odd, None);
    let cluster = hosted::options().create();
    cluster.start();
    create_database(&cluster, DATABASE);
    for encoding in ["LATIN1", "EUC_JP", "SQL_ASCII"] {
        let name = encoding.to_lowercase();
        let create = format!("CREATE DATABASE {name} OWNER owner ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0");
        cluster.client().batch_execute(&create).unwrap();
        let mut owner = cluster.client_of("owner", &name);
        owner.batch_execute("SET client_encoding = 'UTF8'").unwrap();
        owner.batch_execute(hosted::script()).unwrap();
        owner.batch_execute("SELECT snowflake_configure(1); SELECT snowflake_next()").unwrap();
    }
}

/// Removing the file by docs/uninstalling.md: what uses it is in the way, and nothing of it stays.
#[test]
fn the_file_is_removed() {
    let cluster = server();
    let mut client = cluster.client_of("owner", DATABASE);
    client
        .batch_execute(
            "CREATE TABLE events (id bigint DEFAULT snowflake_next(), at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED)",
        )
        .unwrap();
    let columns = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'events'::regclass AND attname = 'at'";
    let functions = "SELECT count(*) FROM pg_proc WHERE proname LIKE 'snowflake\\_%'";
    client.batch_execute("BEGIN; DROP SCHEMA _snowflake CASCADE").unwrap();
    assert_eq!(value::<i64>(&mut client, columns), 0);
    assert!(value::<i64>(&mut client, functions) > 0);
    client.batch_execute("ROLLBACK").unwrap();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/uninstalling.md")).unwrap();
    let steps = page.split("extension in SQL](hosted.md)").nth(1).and_then(|rest| rest.split("\n\n").nth(1)).unwrap();
    check::refused(&mut client, steps, "2BP01");
    let mine = "CREATE FUNCTION snowflake_of_mine() RETURNS integer LANGUAGE sql RETURN 1";
    client.batch_execute(&format!("ALTER TABLE events DROP at, ALTER id DROP DEFAULT; {mine}")).unwrap();
    client.batch_execute(steps).unwrap();
    let left = "SELECT concat_ws(' ', (SELECT string_agg(proname, ' ') FROM pg_proc WHERE proname ~ 'snowflake'), \
                (SELECT string_agg(typname, ' ') FROM pg_type WHERE typname ~ 'snowflake'), to_regnamespace('_snowflake'))";
    assert_eq!(value::<String>(&mut client, left), "snowflake_of_mine");
    run_script(&cluster, DATABASE);
}
