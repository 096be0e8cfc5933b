//! Other machines than this one: which PostgreSQL `scripts/pg-config` takes, what `scripts/deps` says is missing, and what `scripts/cargo-flags` hands
//! to cargo, on systems that are folders with programs that print what the real ones would.

use snowflake_test::programs::{Output, output};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// What scripts call that has nothing to do with the system.
const TOOLS: [&str; 20] = [
    "awk", "bash", "cat", "cut", "dirname", "env", "false", "grep", "head", "paste", "readlink", "sed", "sort", "sh",
    "test", "tr", "true", "uname", "column", "rm",
];

/// A system in a folder. It has a user who is not root, no apt, and Rust 1.96; the rest is added.
struct System(TempDir);

impl System {
    fn new() -> Self {
        let system = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(system.path("bin")).unwrap();
        for tool in TOOLS {
            let found = output(Command::new("sh").args(["-c", "command -v \"$0\"", tool])).output;
            if Path::new(found.trim()).is_absolute() {
                symlink(found.trim(), system.path("bin").join(tool)).unwrap();
            }
        }
        system.program("bin/id", "echo 1000");
        system.rust("1.96.1");
        system
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn file(&self, path: &str, text: &str) -> &Self {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
        self
    }

    fn program(&self, path: &str, script: &str) -> &Self {
        self.file(path, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn rust(&self, version: &str) -> &Self {
        for program in ["cargo", "rustc", "rustfmt"] {
            self.program(&format!("bin/{program}"), &format!("echo '{program} {version} (abc 2026-01-01)'"));
        }
        self
    }

    /// A PostgreSQL at Debian's places: pg_config, and what of it is installed.
    fn postgres(&self, major: u32, server: bool, headers: bool) -> &Self {
        let bin = format!("usr/lib/postgresql/{major}/bin");
        self.pg_config(&format!("{bin}/pg_config"), major);
        if server {
            self.program(&format!("{bin}/postgres"), "");
        }
        if headers {
            self.file(&format!("usr/include/postgresql/{major}/server/postgres.h"), "");
        }
        self
    }

    fn pg_config(&self, path: &str, major: u32) -> &Self {
        let root = self.0.path().display().to_string();
        self.program(
            path,
            &format!(
                "case $1 in\n--version) echo 'PostgreSQL {major}.3 (Debian {major}.3-1)' ;;\n\
                 --bindir) echo {root}/usr/lib/postgresql/{major}/bin ;;\n\
                 --includedir-server) echo {root}/usr/include/postgresql/{major}/server ;;\n\
                 --configure) echo --with-openssl ;;\nesac"
            ),
        )
    }

    /// All that the build needs beside PostgreSQL and Rust.
    fn with_the_rest(&self) -> &Self {
        self.program("bin/cc", "").program("usr/bin/protoc", "");
        symlink(self.path("usr/bin/protoc"), self.path("bin/protoc")).unwrap();
        for file in ["stdio.h", "unicode/ucol.h", "google/protobuf/descriptor.proto"] {
            self.file(&format!("usr/include/{file}"), "");
        }
        self.file("usr/lib/llvm-19/lib/libclang-19.so.1", "")
    }

    /// An apt that knows these candidates, and notes what it is asked to do.
    fn apt(&self, candidates: &[(&str, &str)]) -> &Self {
        let known: String = candidates
            .iter()
            .map(|(package, version)| format!("{package}) echo '  Candidate: {version}' ;;\n"))
            .collect();
        let log = self.path("apt.log");
        self.program("bin/apt-cache", &format!("case $2 in\n{known}esac"));
        self.program("bin/apt-get", &format!("echo \"$*\" >> {}", log.display()))
    }

    fn root_user(&self) -> &Self {
        self.program("bin/id", "echo 0")
    }

    fn run(&self, script: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new("bash");
        command.arg(root().join("scripts").join(script)).args(arguments).current_dir(root());
        command
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("HOME", self.path("home"))
            .env("SYSTEM_ROOT", self.0.path());
        output(command.envs(variables.iter().copied()))
    }

    fn chosen(&self, variables: &[(&str, &str)]) -> String {
        let Output { output, errors, success } = self.run("pg-config", &["--chosen"], variables);
        assert!(success, "{errors}");
        output.trim().replace(&self.0.path().display().to_string(), "").replace('\n', ", ")
    }

    fn asked_of_apt(&self) -> String {
        fs::read_to_string(self.path("apt.log")).unwrap_or_default()
    }
}

// scripts/pg-config

#[test]
fn the_postgresql_that_is_named_is_taken() {
    let system = System::new();
    system.postgres(17, true, true);
    assert_eq!(system.chosen(&[("PG_CONFIG", "/opt/pg/bin/pg_config")]), "/opt/pg/bin/pg_config, PG_CONFIG names it");
    // make exports it empty where it is not named.
    assert!(system.chosen(&[("PG_CONFIG", "")]).contains("/17/"));
}

#[test]
fn else_the_one_on_the_path_and_else_the_newest_with_headers() {
    let system = System::new();
    system.postgres(9, true, true).postgres(16, true, true).postgres(17, true, true).postgres(18, true, false);
    let newest = "/usr/lib/postgresql/17/bin/pg_config, the newest that is installed with its headers";
    assert_eq!(system.chosen(&[]), newest);
    // Debian's script calls another one: that is named.
    system.pg_config("bin/pg_config", 16);
    assert_eq!(system.chosen(&[]), "/usr/lib/postgresql/16/bin/pg_config, that of pg_config on the PATH");
    // One that knows a client's library alone.
    system.pg_config("bin/pg_config", 13);
    assert_eq!(system.chosen(&[]), newest);
    // One of a server without headers.
    system.pg_config("bin/pg_config", 18);
    assert_eq!(system.chosen(&[]), newest);
}

#[test]
fn other_places_than_debians_are_looked_at() {
    for place in ["usr/pgsql-17/bin", "usr/local/pgsql/bin", "usr/libexec/postgresql17"] {
        let system = System::new();
        system.postgres(17, true, true);
        fs::remove_file(system.path("usr/lib/postgresql/17/bin/pg_config")).unwrap();
        system.pg_config(&format!("{place}/pg_config"), 17);
        assert_eq!(system.chosen(&[]), format!("/{place}/pg_config, the newest that is installed with its headers"));
    }
}

#[test]
fn else_a_server_without_headers_and_else_that_of_the_distribution() {
    let system = System::new();
    system.apt(&[("postgresql", "17+278+deb13u1")]);
    assert_eq!(system.chosen(&[]), "/usr/lib/postgresql/17/bin/pg_config, what the distribution has");
    assert_eq!(system.run("pg-config", &["--major"], &[]).output, "17\n");
    system.postgres(15, true, false);
    let chosen = system.chosen(&[]);
    assert_eq!(
        chosen,
        "/usr/lib/postgresql/15/bin/pg_config, the newest server that is installed, without its headers"
    );

    let nothing = System::new().run("pg-config", &[], &[]);
    assert!(!nothing.success && nothing.errors.contains("PG_CONFIG can name"), "{nothing:?}");
}

// scripts/deps

#[test]
fn where_all_is_there_it_says_which_postgresql_is_taken_and_asks_apt_for_nothing() {
    let system = System::new();
    system.postgres(17, true, true).with_the_rest().apt(&[]).root_user();
    let said = system.run("deps", &[], &[]);
    assert!(said.success && said.errors.is_empty(), "{said:?}");
    assert!(said.output.starts_with("PostgreSQL 17.3 (Debian 17.3-1): /"), "{said:?}");
    assert!(said.output.contains("the newest that is installed with its headers"), "{said:?}");
    assert_eq!(system.asked_of_apt(), "");
}

#[test]
fn what_cannot_be_installed_is_named_at_once_for_each_distribution() {
    let system = System::new();
    system.postgres(17, true, false);
    fs::remove_file(system.path("bin/rustfmt")).unwrap();
    let said = system.run("deps", &[], &[]);
    assert!(!said.success && said.output.is_empty(), "{said:?}");
    let expected = "\
deps: these are missing, and cannot be installed from here, which takes apt and root's rights or sudo. Nothing was built.
  Debian, Ubuntu   apt-get install gcc libc6-dev libclang-dev libicu-dev libprotobuf-dev postgresql-server-dev-17 protobuf-compiler rustfmt
  Fedora           dnf install clang-devel gcc glibc-devel libicu-devel postgresql-server-devel protobuf-compiler protobuf-devel rustfmt
  Alpine           apk add clang-libclang gcc icu-dev musl-dev postgresql17-dev protobuf-dev protoc rustfmt
";
    assert_eq!(said.errors, expected);

    // Without any PostgreSQL, and with apt, but without the right to call it.
    let system = System::new();
    system.with_the_rest().apt(&[]);
    let said = system.run("deps", &[], &[]);
    assert!(
        said.errors.contains("Debian, Ubuntu   apt-get install postgresql postgresql-server-dev-all\n"),
        "{said:?}"
    );
    assert!(said.errors.contains("apk add postgresql postgresql-dev\n"), "{said:?}");
    assert_eq!(system.asked_of_apt(), "");
}

#[test]
fn what_can_be_installed_is_by_whatever_version_is_there() {
    let system = System::new();
    system.with_the_rest().apt(&[("postgresql", "18+300")]).root_user();
    // apt installs nothing here, so it ends without a PostgreSQL.
    assert!(!system.run("deps", &[], &[]).success);
    let asked = system.asked_of_apt();
    assert!(asked.contains("install -y --no-install-recommends postgresql-18 postgresql-server-dev-18\n"), "{asked}");
}

#[test]
fn a_postgresql_without_icu_needs_no_headers_of_it() {
    let system = System::new();
    system.postgres(15, true, true).with_the_rest();
    fs::remove_file(system.path("usr/include/unicode/ucol.h")).unwrap();
    let config = "usr/include/postgresql/15/server/pg_config.h";
    system.file(config, "#define USE_ICU 1\n");
    assert!(system.run("deps", &[], &[]).errors.contains("libicu-dev"));
    system.file(config, "/* #undef USE_ICU */\n");
    let said = system.run("deps", &[], &[]);
    assert!(said.success, "{said:?}");
}

#[test]
fn rust_that_is_too_old_or_missing_is_said_first() {
    let system = System::new();
    system.rust("1.85.1").apt(&[("postgresql", "17+278"), ("cargo", "1.85.1+dfsg1-1")]).root_user();
    let said = system.run("deps", &[], &[]);
    let expected = "The build needs Rust 1.95 or later; here, cargo is 1.85, and rustc 1.85. Nothing was downloaded";
    assert!(!said.success && said.errors.contains(expected), "{said:?}");
    assert!(!said.errors.contains("libclang"), "{said:?}");

    // A new cargo beside an old compiler.
    system.rust("1.97.0").program("bin/rustc", "echo 'rustc 1.75.0'");
    assert!(system.run("deps", &[], &[]).errors.contains("cargo is 1.97, and rustc 1.75"));

    for program in ["cargo", "rustc", "rustfmt"] {
        fs::remove_file(system.path("bin").join(program)).unwrap();
    }
    assert!(system.run("deps", &[], &[]).errors.contains("none is on the PATH"));
    assert_eq!(system.asked_of_apt(), "");

    // Where the distribution's is new enough, it is installed.
    system.apt(&[("postgresql", "18+300"), ("cargo", "1.97.1+dfsg1-1")]);
    assert!(!system.run("deps", &[], &[]).success);
    let asked = system.asked_of_apt();
    assert!(asked.contains("--no-install-recommends rustc cargo rustfmt postgresql-18 "), "{asked}");
}

#[test]
fn pgrx_is_built_against_its_word_by_one_version_of_rust_alone() {
    let flags = |version: &str| System::new().rust(version).run("cargo-flags", &[], &[]).output;
    assert_eq!(flags("1.95.0"), "--ignore-rust-version\n");
    for version in ["1.75.0", "1.94.1", "1.96.0", "1.97.1", "1.100.0", "2.0.0"] {
        assert_eq!(flags(version), "\n", "{version}");
    }
}

/// What the scripts say is what the crates declare.
#[test]
fn the_version_of_rust_is_that_of_the_crates() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let number = |text: &str, before: &str| {
        let rest = text.split(before).nth(1).unwrap_or_else(|| panic!("{before} is missing"));
        rest.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect::<String>()
    };
    let script = read("scripts/rust");
    assert_eq!(number(&script, "\nneeds="), number(&read("Cargo.toml"), "rust-version = \""));
    assert_eq!(number(&script, "\ndeclared="), number(&read("Cargo.toml"), "# Declares Rust "));
}
