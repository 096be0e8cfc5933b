//! Which library `make install` and `scripts/install-for-tests` install: with a cargo that writes
//! the name of its profile in place of a library, for a PostgreSQL that is a folder.

use snowflake_test::programs::run;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};
use tempfile::TempDir;

/// It stands in for rustc, too, which is asked for its version alone.
const CARGO: &str = r#"
[ "$1" != --version ] || echo "cargo 1.96.0 (abc 2026-01-01)"
[ "$1" = build ] || exit 0
profile=dev
while [ $# -gt 0 ]; do
  case $1 in
    --profile) profile=$2 ;;
    --target-dir) target=$2 ;;
  esac
  shift
done
folder=$target/$profile
[ "$profile" != dev ] || folder=$target/debug
mkdir -p "$folder"
echo "$profile" >"$folder/libpg_snowflake.so"
"#;

const PG_CONFIG: &str = r#"
here=${0%/*}
case $1 in
  --version) echo "PostgreSQL 18.1" ;;
  --pkglibdir) echo "$here/lib" ;;
  --sharedir) echo "$here/share" ;;
  --includedir-server) echo "$here/include" ;;
esac
"#;

/// A folder with these programs, and with what is built and installed.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, script) in [("cargo", CARGO), ("pg_config", PG_CONFIG)] {
            fs::write(place.path(name), format!("#!/bin/sh{script}")).unwrap();
            fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::create_dir(place.path("include")).unwrap();
        fs::write(place.path("include/postgres.h"), "").unwrap();
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Runs a command of the sources. Nothing of the make or the cargo that runs this test has a say.
    fn run(&self, program: &str, arguments: &[&str], variables: &[(&str, &str)]) {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        command.env_clear().env("PATH", env::var_os("PATH").unwrap()).envs(variables.iter().copied());
        for (variable, path) in
            [("CARGO", "cargo"), ("RUSTC", "cargo"), ("PG_CONFIG", "pg_config"), ("TARGET", "target")]
        {
            command.env(variable, self.path(path));
        }
        run(&mut command);
    }

    /// The profile of the library that is installed.
    fn installed(&self) -> String {
        fs::read_to_string(self.path("lib/pg_snowflake.so")).unwrap().trim().to_owned()
    }
}

#[test]
fn make_installs_what_make_built_whatever_was_installed_for_tests() {
    let place = Place::new();
    place.run("make", &["all"], &[]);
    place.run("scripts/install-for-tests", &[], &[]);
    assert_eq!(place.installed(), "dev");
    place.run("make", &["install"], &[]);
    assert_eq!(place.installed(), "release");

    place.run("scripts/install-for-tests", &[], &[("ALONE", "1"), ("PROFILE", "demo")]);
    assert_eq!(place.installed(), "demo");
    place.run("make", &["install"], &[]);
    assert_eq!(place.installed(), "release");

    let scripts = fs::read_dir(place.path("share/extension")).unwrap().count();
    assert!(scripts > 2 && place.path("share/extension/pg_snowflake.control").is_file(), "{scripts} scripts");
    // What moves tables goes along, of the version of the extension.
    let control = fs::read_to_string(place.path("share/extension/pg_snowflake.control")).unwrap();
    let version = control.lines().find_map(|line| line.strip_prefix("default_version = '")).unwrap();
    let version = version.trim_end_matches('\'');
    for script in ["staged", "from_uuid"] {
        let script = fs::read_to_string(place.path(&format!("share/extension/pg_snowflake_{script}.sql"))).unwrap();
        assert!(script.contains(&format!(".sql of pg_snowflake {version}';")), "not of {version}");
    }
    place.run("make", &["uninstall"], &[]);
    assert!(!place.path("lib/pg_snowflake.so").exists());
    assert_eq!(fs::read_dir(place.path("share/extension")).unwrap().count(), 0);
}
