//! Tools that read a database's catalogue to bring it in line with a model, or to make a model of it, find nothing of
//! ours. They are the real ones, in the versions of `pg_test/tools`, installed into the target directory.

use snowflake_test::Cluster;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

/// A program that is given this many seconds, and no input. What waits for an answer gets none.
fn program(name: &Path, directory: &Path, seconds: u32) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", &seconds.to_string()]).arg(name).current_dir(directory);
    env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PG")).for_each(|(name, _)| {
        command.env_remove(name);
    });
    command.stdin(std::process::Stdio::null());
    command
}

/// What a program has written: output, and errors.
struct Said {
    output: String,
    errors: String,
    success: bool,
}

fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { output: text(&output.stdout), errors: text(&output.stderr), success: output.status.success() }
}

/// What a program writes to its standard output, where it succeeds.
fn output_of(command: &mut Command) -> String {
    let Said { output, errors, success } = said(command);
    assert!(success, "{command:?}:\n{output}{errors}");
    output
}

/// A program of a folder of `pg_test/tools`, that is to talk to a server.
fn connected(name: &Path, directory: &Path, cluster: &Cluster) -> Command {
    let mut command = program(name, directory, 60);
    command.env("PGHOST", cluster.socket()).env("PGUSER", "postgres").env("PGDATABASE", "postgres");
    command
}

/// A copy of a folder of `pg_test/tools` in the target directory, and in it the packages that it needs: those of
/// another lock file, or half of them, do not count as installed.
fn installed(folder: &str, lock: &str, install: impl FnOnce(&Path)) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools").join(folder);
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tools").join(folder);
    fs::create_dir_all(&copy).unwrap();
    for file in fs::read_dir(source).unwrap() {
        let file = file.unwrap();
        if file.file_type().unwrap().is_file() {
            fs::copy(file.path(), copy.join(file.file_name())).unwrap();
        }
    }
    let lock = fs::read_to_string(copy.join(lock)).unwrap();
    let done = copy.join(".installed");
    if !fs::read_to_string(&done).is_ok_and(|text| text == lock) {
        install(&copy);
        fs::write(done, lock).unwrap();
    }
    copy
}

fn python() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        installed("python", "requirements.txt", |folder| {
            output_of(program(Path::new("python3"), folder, 120).args(["-m", "venv", "--clear", "venv"]));
            let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--only-binary=:all:"];
            let mut install = program(&folder.join("venv/bin/python"), folder, 600);
            output_of(install.args(pip).args(["--no-deps", "--requirement", "requirements.txt"]));
        })
    })
}

fn drizzle() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        installed("drizzle", "package-lock.json", |folder| {
            let mut npm = program(Path::new("npm"), folder, 600);
            output_of(npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]));
        })
    })
}

/// A server with the extension and a table whose key it makes.
fn server() -> Cluster {
    let cluster = Cluster::options().start();
    make_table(&cluster);
    cluster
}

fn make_table(cluster: &Cluster) {
    let table = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_next(), note text)";
    cluster.client().batch_execute(table).unwrap();
    cluster.client().batch_execute("INSERT INTO orders (note) SELECT 'n' FROM generate_series(1, 10)").unwrap();
}

/// All that the extension consists of is still there.
fn objects(cluster: &Cluster) -> i64 {
    let query = "SELECT count(*) FROM pg_depend WHERE deptype = 'e' AND refobjid = \
                 (SELECT oid FROM pg_extension WHERE extname = 'pg_snowflake')";
    cluster.client().query_one(query, &[]).unwrap().get(0)
}

// Alembic.

fn compare(cluster: &Cluster, model: &str, schemas: &str) -> Vec<String> {
    let folder = python();
    let mut command = connected(&folder.join("venv/bin/python"), folder, cluster);
    let output = output_of(command.args(["compare.py", model, schemas]));
    let lines = output.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

#[test]
fn alembic_generates_nothing() {
    let cluster = server();
    for schemas in ["one", "all"] {
        assert_eq!(compare(&cluster, "orders", schemas), ["pass"], "schemas: {schemas}");
        // It does look: what the model lacks is dropped.
        assert_eq!(compare(&cluster, "none", schemas), ["op.drop_table('orders')"], "schemas: {schemas}");
    }
}

// Django.

fn models(cluster: &Cluster, options: &[&str]) -> Vec<String> {
    let folder = python();
    let mut command = connected(&folder.join("venv/bin/python"), folder, cluster);
    let output = output_of(command.arg("inspect_database.py").args(options));
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
fn push(cluster: &Cluster, filters: &[(&str, &str)]) -> Said {
    let folder = drizzle();
    let mut command = connected(&folder.join("node_modules/.bin/drizzle-kit"), folder, cluster);
    said(command.args(["push", "--force", "--verbose"]).envs(filters.iter().copied()))
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
        let Said { output, errors, success } = push(cluster, filters);
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
    cluster.start().unwrap();
    let extension = "CREATE SCHEMA ids; CREATE EXTENSION pg_snowflake SCHEMA ids; \
                     ALTER DATABASE postgres SET search_path = public, ids";
    cluster.client().batch_execute(extension).unwrap();
    make_table(&cluster);
    pushes(&cluster, &[]);
}
