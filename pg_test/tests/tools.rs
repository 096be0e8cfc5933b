//! Tools that change a database to match a model, or make a model of a database, see none of the extension's objects.
//! The tools are installed into the target directory, in the versions that `pg_test/tools` names.

use snowflake_test::packages::{connected, installed, npm_install, pip_install, succeeds};
use snowflake_test::programs::{Output, output};
use snowflake_test::query::ORDERS;
use snowflake_test::{Cluster, value};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub fn python() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let install = || installed("pg_test/tools/python", env!("CARGO_TARGET_TMPDIR"), "requirements.txt", pip_install);
    FOLDER.get_or_init(install)
}

fn drizzle() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let install = || installed("pg_test/tools/drizzle", env!("CARGO_TARGET_TMPDIR"), "package-lock.json", npm_install);
    FOLDER.get_or_init(install)
}

/// A server with the extension and a table whose key it makes.
fn server() -> Cluster {
    let cluster = Cluster::options().start();
    make_table(&cluster);
    cluster
}

fn make_table(cluster: &Cluster) {
    cluster.client().batch_execute(ORDERS).unwrap();
    cluster.client().batch_execute("INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 10)").unwrap();
}

/// How many objects the extension has.
fn objects(cluster: &Cluster) -> i64 {
    let query = "SELECT count(*) FROM pg_depend WHERE deptype = 'e' AND refobjid = \
                 (SELECT oid FROM pg_extension WHERE extname = 'pg_snowflake')";
    value(&mut cluster.client(), query)
}

// Alembic.

fn compare(cluster: &Cluster, model: &str, schemas: &str) -> Vec<String> {
    let folder = python();
    let mut command = connected(&folder.join("venv/bin/python"), folder, cluster);
    let output = succeeds(command.args(["compare.py", model, schemas]));
    let lines = output.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[test]
fn alembic_generates_nothing() {
    let cluster = server();
    for schemas in ["one", "all"] {
        assert_eq!(compare(&cluster, "orders", schemas), ["pass"], "schemas: {schemas}");
        // It does see the schema: a table that the model lacks would be dropped.
        assert_eq!(compare(&cluster, "none", schemas), ["op.drop_table('orders')"], "schemas: {schemas}");
    }
}

// Django.

fn models(cluster: &Cluster, options: &[&str]) -> Vec<String> {
    let folder = python();
    let mut command = connected(&folder.join("venv/bin/python"), folder, cluster);
    let output = succeeds(command.arg("inspect_database.py").args(options));
    output.lines().filter(|line| line.starts_with("class ")).map(str::to_owned).collect()
}

#[test]
fn django_models_nothing_of_the_extension() {
    let cluster = server();
    assert_eq!(models(&cluster, &[]), ["class Orders(models.Model):"]);
    let with_views = models(&cluster, &["--include-views"]);
    assert_eq!(with_views, ["class Orders(models.Model):"]);
}

// Drizzle.

/// What `drizzle-kit push --force` says, with these filters.
fn push(cluster: &Cluster, filters: &[(&str, &str)]) -> Output {
    let folder = drizzle();
    let mut command = connected(&folder.join("node_modules/.bin/drizzle-kit"), folder, cluster);
    output(command.args(["push", "--force", "--verbose"]).envs(filters.iter().copied()))
}

/// The statements that a push says it executes.
fn statements(output: &str) -> Vec<&str> {
    output.lines().filter(|line| line.ends_with(';')).collect()
}

const ADD_NOTE: &str = r#"ALTER TABLE "orders" ADD COLUMN "note" text;"#;

/// A push changes what the model changes and nothing else; the next one finds nothing to do.
fn pushes(cluster: &Cluster, filters: &[(&str, &str)]) {
    let before = objects(cluster);
    cluster.client().batch_execute("ALTER TABLE orders DROP note").unwrap();
    for done in ["[✓] Changes applied", "[i] No changes detected"] {
        let Output { output, errors, success } = push(cluster, filters);
        let expected = if done.contains("applied") { &[ADD_NOTE][..] } else { &[] };
        assert!(success && output.contains(done) && errors.is_empty(), "{output}\n{errors}\n{}", cluster.log());
        assert_eq!(statements(&output), expected, "{output}");
    }
    cluster.client().batch_execute("INSERT INTO orders (note) VALUES ('after')").unwrap();
    assert_eq!(objects(cluster), before);
}

#[test]
fn drizzle_pushes_twice() {
    pushes(&server(), &[]);
}

#[test]
fn drizzle_pushes_twice_beside_an_extension_in_a_schema_of_its_own() {
    let cluster = Cluster::options().create();
    cluster.start();
    let extension = "CREATE SCHEMA ids; CREATE EXTENSION pg_snowflake SCHEMA ids; \
                     ALTER DATABASE postgres SET search_path = public, ids";
    cluster.client().batch_execute(extension).unwrap();
    make_table(&cluster);
    pushes(&cluster, &[]);
}

// migra.

/// What makes a database like another one, by migra.
fn migration(from: &str, to: &str, cluster: &Cluster, options: &[&str]) -> String {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let install = || installed("pg_test/tools/migra", env!("CARGO_TARGET_TMPDIR"), "requirements.txt", pip_install);
    let folder = FOLDER.get_or_init(install);
    let address = |database: &str| format!("postgresql:///{database}");
    let mut migra = connected(&folder.join("venv/bin/python"), folder, cluster);
    migra.args(["-W", "ignore", "-c", "import migra; migra.do_command()", "--unsafe"]).args(options);
    let Output { output, errors, success } = output(migra.args([address(from), address(to)]));
    // It ends with 2 where there is a difference.
    assert!(success || errors.is_empty(), "{output}{errors}");
    output
}

/// It takes the type of the extension for one of the schema's own, unless both have the extension: as
/// examples/README.md says.
#[test]
fn migra_makes_no_type_where_both_databases_have_the_extension() {
    let cluster = server();
    cluster.client().batch_execute("CREATE DATABASE empty").unwrap();
    assert!(migration("empty", "postgres", &cluster, &[]).contains("create type \"public\".\"snowflake_parts\""));
    let extensions = migration("empty", "postgres", &cluster, &["--create-extensions-only"]);
    let statement = extensions.trim();
    assert!(statement.starts_with("create extension if not exists \"pg_snowflake\"") && statement.lines().count() == 1);
    cluster.client_of("postgres", "empty").batch_execute(statement).unwrap();
    let made = migration("empty", "postgres", &cluster, &[]);
    assert!(made.contains("create table \"public\".\"orders\"") && !made.contains("snowflake_parts"), "{made}");
    cluster.client_of("postgres", "empty").batch_execute(&made).unwrap();
    assert_eq!(migration("empty", "postgres", &cluster, &[]).trim(), "");
    assert_eq!(migration("postgres", "empty", &cluster, &[]).trim(), "");
}

// MikroORM.

#[test]
fn mikro_orm_has_the_default_where_it_is_told_of_no_increment() {
    let folder = installed("pg_test/tools/mikro-orm", env!("CARGO_TARGET_TMPDIR"), "package-lock.json", npm_install);
    let cluster = Cluster::options().start();
    let before = objects(&cluster);
    let output = succeeds(connected(Path::new("node"), &folder, &cluster).arg("update.mjs"));
    assert_eq!(output.trim(), "all is as expected");
    assert_eq!(objects(&cluster), before);
}
