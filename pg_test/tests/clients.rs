//! The programs in `examples/`, each language's with its real packages against a real server. They have tests of their own in that
//! language; here the packages are installed into the target directory, and the tests are run. The example of Rust runs by itself.

use snowflake_test::Cluster;
use snowflake_test::clients::{check_statements, hostile_server, server as ordinary_server};
use snowflake_test::packages::{connected, copied, installed, npm_install, pip_install, program, succeeds};
use snowflake_test::programs::{Output, output};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Once};

/// Copies what the programs of several languages use.
fn share() {
    static SHARED: Once = Once::new();
    SHARED.call_once(|| {
        for folder in ["clients", "examples/analytics", "examples/monitoring", "examples/postgrest"] {
            copied(folder, env!("CARGO_TARGET_TMPDIR"));
        }
    });
}

/// Where a folder with programs is copied to, with its packages.
fn folder(name: &str, lock: &str, install: impl FnOnce(&Path)) -> PathBuf {
    share();
    installed(name, env!("CARGO_TARGET_TMPDIR"), lock, install)
}

/// Runs a test program. Its output must contain the line with which it says that it has run its tests: a program that finds
/// none succeeds, too.
fn passes(command: &mut Command, line: &str, server: &Cluster) {
    let Output { output, errors, success } = output(command);
    let says_so = (output.lines().chain(errors.lines())).any(|printed| printed.starts_with(line));
    assert!(success && says_so, "{command:?}:\n{output}{errors}\nThe server:\n{}", server.log());
    check_statements(server);
}

/// Which tests of Python have statements of their libraries that fail in a hostile world: these look names up without care, for example
/// for what columns a table has.
const FAIL: [&str; 5] =
    ["test_dbt", "test_django", "test_sqlalchemy", "test_id_type.Asyncpg", "test_id_type.SQLAlchemy"];

/// Some of the tests that `python -m unittest` runs, with the packages of all. The world is hostile where it can be.
fn python(tests: &str, line: &str) {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| folder("examples/python", "requirements.txt", pip_install));
    let server = if FAIL.contains(&tests) { ordinary_server() } else { hostile_server() };
    let mut command = connected(&FOLDER.join("venv/bin/python"), &FOLDER, &server);
    passes(command.args(["-m", "unittest", tests]), line, &server);
}

#[test]
fn psycopg() {
    python("test_psycopg", "Ran 5 tests");
}

#[test]
fn asyncpg() {
    python("test_asyncpg", "Ran 5 tests");
}

#[test]
fn sqlalchemy() {
    python("test_sqlalchemy", "Ran 7 tests");
}

/// The number is that of Django's own run.
#[test]
fn django() {
    python("test_django", "Ran 14 tests");
}

/// What drivers of Python make of `snowflake_id`.
#[test]
fn id_type() {
    for driver in ["Psycopg", "Asyncpg", "SQLAlchemy"] {
        python(&format!("test_id_type.{driver}"), "Ran 1 test");
    }
}

#[test]
fn postgrest() {
    python("test_postgrest", "Ran 6 tests");
}

/// DuckDB, ClickHouse, polars and pandas.
#[test]
fn analytics() {
    python("test_analytics", "Ran 12 tests");
}

#[test]
fn dbt() {
    python("test_dbt", "Ran 2 tests");
}

/// With the real exporter and promtool; see `examples/monitoring`.
#[test]
fn monitoring() {
    python("test_monitoring", "Ran 5 tests");
}

/// Each file of tests of Python is one of those above.
#[test]
fn no_test_of_python_is_left_out() {
    let here = include_str!("clients.rs");
    for file in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/python")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let is_run = |name: &str| here.contains(&format!("python(\"{name}\"")) || name == "test_id_type";
        assert!(!name.starts_with("test_") || is_run(name.trim_end_matches(".py")), "nobody runs {name}");
    }
}

/// All libraries. Prisma's client is made of the schema, which takes no engine; it would download one.
#[test]
fn javascript() {
    let folder = folder("examples/javascript", "package-lock.json", npm_install);
    let server = hostile_server();
    let mut npm = connected(Path::new("npm"), &folder, &server);
    npm.env("PRISMA_SCHEMA_ENGINE_BINARY", "/bin/true").env("CHECKPOINT_DISABLE", "1");
    passes(npm.args(["test", "--", "--test-reporter=tap"]), "# pass 52", &server);
}

/// The types of the packages, by programs that use them, right and wrong.
#[test]
fn types() {
    let typescript = folder("pg_test/tools/typescript", "package-lock.json", npm_install);
    let mut tsc = program(Path::new("node_modules/.bin/tsc"), &typescript);
    succeeds(tsc.args(["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "use.ts"]));

    let folder = folder("pg_test/tools/mypy", "requirements.txt", pip_install);
    let mut mypy = program(&folder.join("venv/bin/python"), &folder);
    let sources = Path::new("../../../clients/python/src").join("snowflake_ids");
    mypy.args(["-m", "mypy", "--strict", "--python-version", "3.10", "use.py"]).arg(sources);
    let output = succeeds(mypy.env("MYPYPATH", "../../../clients/python/src"));
    assert!(output.starts_with("Success: no issues found in "), "{output}");
}

/// With packages of Debian 12, which `scripts/deps clients` installs.
#[test]
fn go() {
    let folder = copied("examples/go", env!("CARGO_TARGET_TMPDIR"));
    let server = hostile_server();
    let mut command = connected(Path::new("./test.sh"), &folder, &server);
    command.env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"));
    passes(&mut command, "ok  ", &server);
}

/// With packages of Debian 12, which `scripts/deps clients` installs. Hibernate's statements fail in a hostile world where keys are
/// `snowflake_id`.
#[test]
fn java() {
    let folder = copied("examples/java", env!("CARGO_TARGET_TMPDIR"));
    for (keys, server) in [("bigint", hostile_server()), ("snowflake_id", ordinary_server())] {
        let mut command = connected(Path::new("./test.sh"), &folder, &server);
        // JDBC knows no sockets in the file system.
        passes(command.env("PGHOST", "127.0.0.1").arg(keys), &format!("5 tests passed with keys of {keys}"), &server);
    }
}

/// With packages of Debian 12, which `scripts/deps clients` installs. Active Record's own statements fail in a hostile world.
#[test]
fn active_record() {
    let folder = copied("examples/ruby", env!("CARGO_TARGET_TMPDIR"));
    let server = ordinary_server();
    passes(connected(Path::new("ruby"), &folder, &server).arg("test_orders.rb"), "6 runs, ", &server);
}

/// With packages of Debian, which `scripts/deps clients` installs.
#[test]
fn doctrine() {
    let folder = copied("examples/php", env!("CARGO_TARGET_TMPDIR"));
    let server = ordinary_server();
    passes(connected(Path::new("php"), &folder, &server).arg("test.php"), "1 test passed", &server);
}

/// An application of Rails 7.2, whose `schema.rb` makes schemas before extensions, as those of 7.1 and
/// 8.0 do. With the file of the example, it makes no schema for the extension.
#[test]
fn rails() {
    copied("examples/ruby", env!("CARGO_TARGET_TMPDIR"));
    let folder = copied("pg_test/tools/rails", env!("CARGO_TARGET_TMPDIR"));
    let packages = Path::new(env!("CARGO_TARGET_TMPDIR")).join("debian-13");
    // Where the other scripts are.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/rails");
    let libraries = succeeds(program(&source.join("packages"), &source).arg(packages));
    let server = ordinary_server();
    let databases = ["first", "second", "third"];
    server.client().batch_execute("CREATE ROLE app LOGIN").unwrap();
    for name in databases {
        server.client().batch_execute(&format!("CREATE DATABASE {name} OWNER app TEMPLATE template0")).unwrap();
    }
    let rake = |database: &str, task: &str| {
        let mut command = connected(Path::new("ruby"), &folder, &server);
        command.env("RUBYLIB", libraries.trim()).env("PGUSER", "app").env("PGDATABASE", database);
        succeeds(command.args(["-S", "rake", task]));
        std::fs::read_to_string(folder.join("db/schema.rb")).unwrap()
    };
    let leave_out = folder.join("config/initializers/snowflake_schema.rb");
    let _ = std::fs::remove_file(&leave_out);
    let schema = rake("first", "db:migrate");
    let at = |what: &str| schema.find(what).unwrap_or_else(|| panic!("no {what}: {schema}"));
    assert!(at("create_schema \"_snowflake\"") < at("enable_extension \"pg_snowflake\""), "{schema}");
    assert!(schema.contains("create_table \"orders\", id: :bigint, default: -> { \"snowflake_next()\" }"), "{schema}");
    for database in &databases[1..] {
        rake(database, "db:schema:load");
        let mut app = server.client_of("app", database);
        assert!(
            snowflake_test::value::<i64>(
                &mut app,
                "INSERT INTO orders (item, quantity) VALUES ('lamp', 1) RETURNING id"
            ) > 1 << 40
        );
        let owner = "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = '_snowflake'";
        assert_eq!(snowflake_test::value::<String>(&mut app, owner), "postgres");
    }
    // So it loads into a database that has the extension, too, as often as one likes.
    std::fs::create_dir_all(leave_out.parent().unwrap()).unwrap();
    std::fs::copy(folder.join("../../../examples/ruby/snowflake_schema.rb"), &leave_out).unwrap();
    let schema = rake("first", "db:schema:dump");
    assert!(!schema.contains("create_schema") && schema.contains("enable_extension \"pg_snowflake\""), "{schema}");
    for database in ["first", "second", "second"] {
        rake(database, "db:schema:load");
    }
    assert_eq!(rake("second", "db:schema:dump"), schema);
}
