//! Schemas that were made elsewhere: pgbench's, Django's, and the sample database pagila. What changes is what should,
//! their programs go on, and a dump of the result can be restored.

use super::schema::{difference, rows, schema, survives_a_restore};
use snowflake_test::packages::{connected, installed, pip_install, succeeds};
use snowflake_test::{Cluster, run, value};
use std::process::Command;

#[test]
fn pgbench_goes_on() {
    let cluster = Cluster::options().start();
    run(cluster.program("pgbench").args(["--initialize", "--quiet", "--foreign-keys"]));
    pgbench_run(&cluster);
    let before = schema(&cluster, "postgres");
    let rows_before = rows(&cluster, "postgres");
    for table in ["pgbench_accounts", "pgbench_branches", "pgbench_tellers"] {
        cluster.client().batch_execute(&format!("SELECT snowflake_adopt('{table}')")).unwrap();
    }
    assert_eq!(rows(&cluster, "postgres"), rows_before);
    let (gone, mut new) = difference(&before, &schema(&cluster, "postgres"));
    // What says that there was no default.
    let is_on_record =
        |line: &String| line.starts_with("--") || line.contains("_before_snowflake") || is_of_a_sequence(line);
    assert_eq!(new.iter().filter(|line| line.contains("[snowflake_adopt: no default;")).count(), 3, "{new:#?}");
    new.retain(|line| !is_on_record(line));
    let narrow = ["aid integer NOT NULL,", "bid integer NOT NULL,", "tid integer NOT NULL,"];
    // In history, the columns are NULL; in accounts and tellers, bid is.
    let also_narrow = ["aid integer,", "bid integer,", "bid integer,", "bid integer,", "tid integer,"];
    let mut expected_gone: Vec<String> = narrow.iter().chain(&also_narrow).map(|&line| line.to_owned()).collect();
    expected_gone.sort();
    assert_eq!(gone, expected_gone);
    let mut expected_new: Vec<String> = narrow
        .iter()
        .map(|line| line.replace("integer", "bigint DEFAULT public.snowflake_next()"))
        .chain(also_narrow.iter().map(|line| line.replace("integer", "bigint")))
        .collect();
    expected_new.sort();
    assert_eq!(new, expected_new);
    pgbench_run(&cluster);
    let insert = "INSERT INTO pgbench_branches (bbalance) VALUES (0) RETURNING bid::bigint > 1000000000000";
    assert!(value::<bool>(&mut cluster.client(), insert));
    survives_a_restore(&cluster, "postgres");
}

fn is_of_a_sequence(line: &str) -> bool {
    ["START WITH 1", "INCREMENT BY 1", "NO MINVALUE", "NO MAXVALUE", "CACHE 1"]
        .iter()
        .any(|text| line.starts_with(text))
}

fn pgbench_run(cluster: &Cluster) {
    run(cluster.program("pgbench").args(["--no-vacuum", "--client=3", "--transactions=20"]));
}

/// By range or hash of the key itself: its type cannot change.
#[test]
fn pgbench_in_partitions_is_refused() {
    let cluster = Cluster::options().start();
    run(cluster.program("pgbench").args(["--initialize", "--quiet", "--partitions=3"]));
    let obstacle: String = value(
        &mut cluster.client(),
        "SELECT note FROM snowflake_adopt_plan('pgbench_accounts') WHERE kind = 'obstacle'",
    );
    assert!(obstacle.ends_with("the partition key of table public.pgbench_accounts"), "{obstacle}");
}

#[test]
fn djangos_own_applications_go_on() {
    let cluster = Cluster::options().start();
    let folder = installed("pg_test/tools/python", env!("CARGO_TARGET_TMPDIR"), "requirements.txt", pip_install);
    let django = |what: &str| {
        let mut command: Command = connected(&folder.join("venv/bin/python"), &folder, &cluster);
        let output = succeeds(command.args(["move_in.py", what]));
        let users: Vec<i64> = output.split_whitespace().map(|id| id.parse().unwrap()).collect();
        users
    };
    assert_eq!(django("migrate"), [1, 2]);
    let before = schema(&cluster, "postgres");
    let rows_before = rows(&cluster, "postgres");
    // All but django_session, whose key is a text.
    let tables = cluster
        .client()
        .query(
            "SELECT attrelid::regclass::text FROM pg_attribute JOIN pg_class c ON c.oid = attrelid \
             WHERE attidentity <> '' AND relkind = 'r' ORDER BY 1",
            &[],
        )
        .unwrap();
    assert_eq!(tables.len(), 9, "{tables:?}");
    for table in &tables {
        let adopt = format!("SELECT snowflake_adopt('{}')", table.get::<_, String>(0));
        cluster.client().batch_execute(&adopt).unwrap();
    }
    assert_eq!(rows(&cluster, "postgres"), rows_before);
    let (gone, new) = difference(&before, &schema(&cluster, "postgres"));
    // The identities with their sequences, which are sequences without them now, and the types; nothing else.
    let expected =
        ["integer", "IDENTITY", "SEQUENCE", "START WITH", "INCREMENT", "NO MINVALUE", "NO MAXVALUE", "CACHE", ");"];
    let is_expected = |line: &String| line.starts_with("--") || expected.iter().any(|text| line.contains(text));
    assert!(gone.iter().all(is_expected), "{gone:#?}");
    assert!(new.iter().all(|line| line.contains("bigint") || is_expected(line)), "{new:#?}");
    assert_eq!(new.iter().filter(|line| line.contains("snowflake_next()")).count(), 9, "{new:#?}");
    let users = django("use");
    assert_eq!((users.len(), &users[..2]), (4, &[1, 2][..]));
    assert!(users[2..].iter().all(|&id| id > 1_000_000_000_000), "{users:?}");
    survives_a_restore(&cluster, "postgres");
    // And back: only the types differ.
    for table in &tables {
        let release = format!("SELECT snowflake_release('{}', start => 1000)", table.get::<_, String>(0));
        cluster.client().batch_execute(&release).unwrap();
    }
    let (gone, new) = difference(&before, &schema(&cluster, "postgres"));
    let is_type = |line: &String, name: &str| line.contains(name) && !line.contains("DEFAULT");
    assert!(
        gone.iter().all(|line| is_type(line, "integer")) && new.iter().all(|line| is_type(line, "bigint")),
        "{gone:#?} {new:#?}"
    );
}

/// The schema of pagila, with rows made here. It is not part of this repository; `PAGILA_SCHEMA` names the file
/// `pagila-schema.sql` of <https://github.com/devrimgunduz/pagila>, commit eddcfc4.
#[test]
#[ignore = "PAGILA_SCHEMA must name pagila-schema.sql"]
fn pagila_moves_in() {
    let file = std::env::var("PAGILA_SCHEMA").expect("PAGILA_SCHEMA names pagila-schema.sql");
    let sum = run(Command::new("sha256sum").arg(&file));
    assert!(sum.starts_with("071ee940a73c8f4fad2997185788065291607e2c55559e3747959e8275391536"), "{sum}");
    let cluster = Cluster::options().start();
    let copy = cluster.new_file("pagila.sql");
    std::fs::copy(&file, &copy).unwrap();
    let mut psql = cluster.program("psql");
    let loaded = snowflake_test::programs::output(psql.args(["--no-psqlrc", "--quiet", "--file"]).arg(&copy));
    // Without pgvector, one table is missing; nothing else is.
    let is_expected = |line: &&str| line.contains("vector") || line.contains("film_embedding");
    let errors: Vec<&str> = loaded.errors.lines().filter(|line| line.contains("ERROR") && !is_expected(line)).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let mut client = cluster.client();
    client
        .batch_execute(
            "INSERT INTO language (name) VALUES ('a'), ('b'); \
             INSERT INTO film (title, language_id, fulltext) SELECT 'f' || n, 1 + n % 2, ''::tsvector \
             FROM generate_series(1, 50) n; \
             INSERT INTO actor (first_name, last_name) SELECT 'a', 'b' FROM generate_series(1, 20); \
             INSERT INTO film_actor SELECT 1 + n % 20, 1 + n % 50 FROM generate_series(1, 100) n \
             ON CONFLICT DO NOTHING",
        )
        .unwrap();
    let before = rows(&cluster, "postgres");
    let obstacles =
        "SELECT count(*) FROM snowflake_adopt_plan('actor') WHERE kind = 'obstacle' AND note LIKE '%because of view%'";
    assert_eq!(value::<i64>(&mut client, obstacles), 6);
    const VIEWS: &str = "
        SELECT string_agg(concat_ws(' ', c.oid::regclass, relkind, relowner::regrole, relispopulated, relacl, reloptions,
            (SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0),
            (SELECT string_agg(pg_get_indexdef(indexrelid), ' ' ORDER BY indexrelid) FROM pg_index WHERE indrelid = c.oid)),
            E'\n' ORDER BY relname)
        FROM pg_class c WHERE relkind IN ('v', 'm') AND relnamespace = 'public'::regnamespace";
    let views: String = value(&mut client, VIEWS);
    assert!(views.lines().count() >= 7, "{views}");
    let tables =
        ["actor", "film", "language", "category", "customer", "address", "city", "country", "inventory", "rental"];
    for table in tables.into_iter().chain(["staff", "store"]) {
        cluster.client().batch_execute(&format!("SELECT snowflake_adopt('{table}', views => 'recreate')")).unwrap();
    }
    // In partitions, by its own name: the primary key has two columns.
    cluster.client().batch_execute("SELECT snowflake_adopt('payment', 'payment_id', views => 'recreate')").unwrap();
    assert_eq!(value::<String>(&mut client, VIEWS), views);
    let left = "SELECT count(*) FROM pg_constraint f JOIN pg_attribute ON attrelid = conrelid \
                AND attnum = ANY (conkey) WHERE contype = 'f' AND atttypid <> 'int8'::regtype";
    assert_eq!(value::<i64>(&mut client, left), 0);
    assert_eq!(rows(&cluster, "postgres"), before);
    survives_a_restore(&cluster, "postgres");
}
