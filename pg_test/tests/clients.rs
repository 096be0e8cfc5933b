//! The programs in `examples/`, each with the real packages of its language against a real server. Each has a test of its
//! own in its language; here its packages are installed into the target directory, and it is run. The example of Rust runs
//! by itself.

use snowflake_test::clients::{hostile_server, server as ordinary_server};
use snowflake_test::packages::{connected, copied, installed, npm_install, pip_install, program, succeeds};
use snowflake_test::programs::{Output, output};
use snowflake_test::{Cluster, hostile};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Once};

/// Copies what several examples use.
fn share() {
    static SHARED: Once = Once::new();
    SHARED.call_once(|| {
        for folder in ["clients", "examples/analytics"] {
            copied(folder, env!("CARGO_TARGET_TMPDIR"));
        }
    });
}

/// Where an example is copied to, with its packages.
fn example(name: &str, lock: &str, install: impl FnOnce(&Path)) -> PathBuf {
    share();
    installed(&format!("examples/{name}"), env!("CARGO_TARGET_TMPDIR"), lock, install)
}

/// The same for what checks the packages.
fn tool(name: &str, lock: &str, install: impl FnOnce(&Path)) -> PathBuf {
    share();
    installed(&format!("pg_test/tools/{name}"), env!("CARGO_TARGET_TMPDIR"), lock, install)
}

/// Runs a test program. Its output must contain the line with which it says that it has run its tests: a program that finds
/// none succeeds, too.
fn passes(command: &mut Command, line: &str, server: &Cluster) {
    let Output { output, errors, success } = output(command);
    let says_so = (output.lines().chain(errors.lines())).any(|printed| printed.starts_with(line));
    assert!(success && says_so, "{command:?}:\n{output}{errors}\nThe server:\n{}", server.log());
    let mut careless = hostile::sprung(server);
    careless.retain(|found| found.split_once(": ").is_some_and(|(_, statement)| is_ours(statement)));
    assert_eq!(careless, BTreeSet::new());
}

/// Whose statements fail in a hostile world, as those of the libraries: these look names up without care, for example for what columns a
/// table has.
const FAIL: [&str; 5] = ["dbt", "django", "sqlalchemy", "with_asyncpg.py", "snowflake_id"];

/// A server for an example, or a program, or a type of keys. The world is hostile where it can be.
fn server(name: &str) -> Cluster {
    if FAIL.contains(&name) { ordinary_server() } else { hostile_server() }
}

/// Whether a statement stands in an example, and was not made by a library. Those of libraries are theirs.
fn is_ours(statement: &str) -> bool {
    static SOURCES: LazyLock<String> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        let mut places = vec![folder];
        let mut sources = String::new();
        while let Some(place) = places.pop() {
            match place.is_dir() {
                true => places.extend(std::fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path())),
                false => sources.push_str(&words(&std::fs::read_to_string(place).unwrap_or_default())),
            }
        }
        sources
    });
    // What a driver puts in place of a parameter, and the rest of the line, are not compared.
    let statement = words(statement);
    let beginning: String = statement.chars().take_while(|&c| c != '$').take(40).collect();
    SOURCES.contains(beginning.trim())
}

/// The words of a text, with one blank between two.
fn words(text: &str) -> String {
    text.split_whitespace().flat_map(|word| [word, " "]).collect()
}

fn python(name: &str, arguments: &[&str], line: &str) {
    let folder = example(name, "requirements.txt", pip_install);
    let server = server(name);
    let mut command = connected(&folder.join("venv/bin/python"), &folder, &server);
    passes(command.args(arguments).env("DJANGO_SETTINGS_MODULE", "settings"), line, &server);
}

fn node(name: &str, line: &str) {
    let folder = example(name, "package-lock.json", npm_install);
    let server = server(name);
    passes(connected(Path::new("node"), &folder, &server).args(["--test", "--test-reporter=tap"]), line, &server);
}

#[test]
fn psycopg() {
    python("psycopg", &["-m", "unittest"], "Ran 5 tests");
}

#[test]
fn asyncpg() {
    python("asyncpg", &["-m", "unittest"], "Ran 5 tests");
}

#[test]
fn sqlalchemy() {
    python("sqlalchemy", &["-m", "unittest"], "Ran 7 tests");
}

#[test]
fn django() {
    python("django", &["-m", "django", "test", "--noinput"], "Ran 13 tests");
}

#[test]
fn postgrest() {
    python("postgrest", &["-m", "unittest"], "Ran 6 tests");
}

/// DuckDB, ClickHouse, polars and pandas.
#[test]
fn analytics() {
    python("analytics", &["-m", "unittest"], "Ran 12 tests");
}

#[test]
fn dbt() {
    python("dbt", &["-m", "unittest"], "Ran 2 tests");
}

/// With the real exporter and promtool; see `examples/monitoring`.
#[test]
fn monitoring() {
    python("monitoring", &["-m", "unittest"], "Ran 5 tests");
}

#[test]
fn pg() {
    node("node", "# pass 9");
}

#[test]
fn drizzle() {
    node("drizzle", "# pass 4");
}

/// The types of the packages, by programs that use them, right and wrong.
#[test]
fn types() {
    let folder = tool("typescript", "package-lock.json", npm_install);
    let mut tsc = program(Path::new("node_modules/.bin/tsc"), &folder);
    succeeds(tsc.args(["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "use.ts"]));

    let folder = tool("mypy", "requirements.txt", pip_install);
    let mut mypy = program(&folder.join("venv/bin/python"), &folder);
    let sources = Path::new("../../../clients/python/src").join("snowflake_ids");
    mypy.args(["-m", "mypy", "--strict", "--python-version", "3.10", "use.py"]).arg(sources);
    let output = succeeds(mypy.env("MYPYPATH", "../../../clients/python/src"));
    assert!(output.starts_with("Success: no issues found in "), "{output}");
}

#[test]
fn graphql() {
    node("graphql", "# pass 4");
}

#[test]
fn knex() {
    node("knex", "# pass 4");
}

#[test]
fn kysely() {
    node("kysely", "# pass 4");
}

/// Its client is made of the schema. That takes no engine, which it would download.
#[test]
fn prisma() {
    generate_prisma();
    node("prisma", "# pass 4");
}

fn generate_prisma() {
    let folder = example("prisma", "package-lock.json", npm_install);
    let mut generate = program(Path::new("node_modules/.bin/prisma"), &folder);
    succeeds(generate.arg("generate").env("PRISMA_SCHEMA_ENGINE_BINARY", "/bin/true").env("CHECKPOINT_DISABLE", "1"));
}

#[test]
fn sequelize() {
    node("sequelize", "# pass 4");
}

#[test]
fn typeorm() {
    node("typeorm", "# pass 4");
}

/// Where it stands, as it uses the core; built into a directory of its own.
#[test]
fn sqlx() {
    cargo_test("examples/sqlx", &["--test", "orders"], "test result: ok. 2 passed");
}

fn cargo_test(folder: &str, arguments: &[&str], line: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(folder);
    let server = server("sqlx");
    let mut command = connected(Path::new("cargo"), &folder, &server);
    command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("sqlx"));
    passes(command.args(["test", "--locked"]).args(arguments), line, &server);
}

/// With packages of Debian 12, which `scripts/deps test` installs.
#[test]
fn go() {
    let folder = copied("examples/go", env!("CARGO_TARGET_TMPDIR"));
    let server = server("go");
    let mut command = connected(Path::new("./test.sh"), &folder, &server);
    passes(command.env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go")), "ok  ", &server);
}

/// With packages of Debian 12, which `scripts/deps test` installs.
#[test]
fn java() {
    java_orders(env!("CARGO_TARGET_TMPDIR"), "bigint");
}

fn java_orders(directory: &str, key: &str) {
    let folder = copied("examples/java", directory);
    let server = server(key);
    let mut command = connected(Path::new("./test.sh"), &folder, &server);
    // JDBC knows no sockets in the file system.
    passes(command.env("PGHOST", "127.0.0.1").env("KEY_TYPE", key), "4 tests passed", &server);
}

#[test]
fn active_record() {
    let folder = copied("examples/activerecord", env!("CARGO_TARGET_TMPDIR"));
    let server = server("active_record");
    passes(connected(Path::new("ruby"), &folder, &server).arg("test_orders.rb"), "5 runs, ", &server);
}

/// What each driver makes of `snowflake_id`: the programs of `examples/id-type`, with the packages of the examples.
mod id_type {
    use super::*;

    /// The folder of an example with its packages, and a program of `examples/id-type` in it.
    fn beside(name: &str, program: &str, lock: &str, install: impl FnOnce(&Path)) -> PathBuf {
        let folder = example(name, lock, install);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/id-type").join(program);
        std::fs::copy(source, folder.join(program)).unwrap();
        folder
    }

    fn python(name: &str) {
        let program = format!("with_{name}.py");
        let folder = beside(name, &program, "requirements.txt", pip_install);
        let server = server(&program);
        passes(
            connected(&folder.join("venv/bin/python"), &folder, &server).arg(program),
            &format!("seen: {name}"),
            &server,
        );
    }

    fn node(name: &str, driver: &str) {
        let program = format!("with_{driver}.mjs");
        let folder = beside(name, &program, "package-lock.json", npm_install);
        let server = server(&program);
        passes(connected(Path::new("node"), &folder, &server).arg(program), &format!("seen: {driver}"), &server);
    }

    #[test]
    fn psycopg() {
        python("psycopg");
    }

    #[test]
    fn asyncpg() {
        python("asyncpg");
    }

    #[test]
    fn sqlalchemy() {
        python("sqlalchemy");
    }

    #[test]
    fn django() {
        python("django");
    }

    #[test]
    fn pg() {
        node("node", "pg");
    }

    #[test]
    fn drizzle() {
        node("drizzle", "drizzle");
    }

    #[test]
    fn knex() {
        node("knex", "knex");
    }

    #[test]
    fn kysely() {
        node("kysely", "kysely");
    }

    #[test]
    fn prisma() {
        generate_prisma();
        node("prisma", "prisma");
    }

    #[test]
    fn sequelize() {
        node("sequelize", "sequelize");
    }

    #[test]
    fn typeorm() {
        node("typeorm", "typeorm");
    }

    #[test]
    fn pgx() {
        let folder = copied("examples/go", env!("CARGO_TARGET_TMPDIR"));
        let program = "with_pgx_test.go";
        std::fs::copy(copied("examples/id-type", env!("CARGO_TARGET_TMPDIR")).join(program), folder.join(program))
            .unwrap();
        let server = server("pgx");
        let mut command = connected(Path::new("./test.sh"), &folder, &server);
        command.env("GOCACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("go"));
        passes(&mut command, "--- PASS: TestSnowflakeID", &server);
    }

    #[test]
    fn jdbc() {
        let folder = copied("examples/id-type", env!("CARGO_TARGET_TMPDIR"));
        let server = server("jdbc");
        let mut command = connected(Path::new("java"), &folder, &server);
        command.env("PGHOST", "127.0.0.1").args(["-cp", "/usr/share/java/postgresql.jar", "WithJdbc.java"]);
        passes(&mut command, "seen: jdbc", &server);
    }

    /// The same as of `bigint`: it reads and writes by the type that the entity has.
    #[test]
    fn hibernate() {
        java_orders(concat!(env!("CARGO_TARGET_TMPDIR"), "/id-type"), "snowflake_id");
    }

    #[test]
    fn active_record() {
        let folder = copied("examples/id-type", env!("CARGO_TARGET_TMPDIR"));
        let server = server("active_record");
        passes(
            connected(Path::new("ruby"), &folder, &server).arg("with_activerecord.rb"),
            "seen: activerecord",
            &server,
        );
    }

    #[test]
    fn sqlx() {
        cargo_test("examples/sqlx", &["--test", "id_type"], "test result: ok. 1 passed");
    }

    /// tokio-postgres, and postgres, which is built on it: an error, as types must fit. So the statement converts.
    #[test]
    fn tokio_postgres() {
        let server = server("tokio_postgres");
        let mut client = server.client();
        client.batch_execute("CREATE TEMPORARY TABLE t (id snowflake_id PRIMARY KEY, parent bigint)").unwrap();
        let key = 382_304_429_472_247_813_i64;
        assert!(client.execute("INSERT INTO t VALUES ($1, $2)", &[&key, &key]).is_err());
        client.execute("INSERT INTO t VALUES ($1::bigint, $2)", &[&key, &key]).unwrap();
        // A condition has operators of bigint, and so a parameter of that type.
        let read = client.query_one("SELECT id FROM t WHERE id = $1", &[&key]).unwrap();
        assert!(read.try_get::<_, i64>(0).is_err());
        let read = client.query_one("SELECT id::bigint FROM t WHERE id = $1", &[&key]).unwrap();
        assert_eq!(read.get::<_, i64>(0), key);
    }
}
