//! Dumps of databases, and their restores.

use crate::Cluster;
use crate::programs::run;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The two formats of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Restored by `pg_restore`.
    Custom,
    /// A script, restored by `psql`.
    Plain,
}

/// A dump in a file.
pub struct Dump {
    /// The file, which is removed with the server that the dump was made on.
    pub file: PathBuf,
    format: Format,
}

impl Dump {
    /// Dumps a database as the superuser.
    pub fn new(server: &Cluster, database: &str, format: Format) -> Self {
        let (option, ending) = match format {
            Format::Custom => ("--format=custom", "custom"),
            Format::Plain => ("--format=plain", "sql"),
        };
        let file = server.new_file(&format!("{database}.{ending}"));
        run(server.program("pg_dump").args([option, "--dbname", database, "--file"]).arg(&file));
        Self { file, format }
    }

    /// Restores it into a database as the superuser.
    ///
    /// # Panics
    /// With the first error.
    pub fn restore(&self, server: &Cluster, database: &str) {
        self.restore_with(server, database, &[]);
    }

    /// The same with further options of `pg_restore`, or of `psql`.
    ///
    /// # Panics
    /// With the first error.
    pub fn restore_with(&self, server: &Cluster, database: &str, options: &[&str]) {
        let mut command = match self.format {
            Format::Custom => pg_restore(server, "postgres", database),
            Format::Plain => psql(server, "postgres", database),
        };
        match self.format {
            Format::Custom => command.arg("--exit-on-error").args(options).arg(&self.file),
            Format::Plain => command.arg("--set=ON_ERROR_STOP=1").args(options).arg("--file").arg(&self.file),
        };
        run(command.stdout(Stdio::null()));
    }
}

/// Those lines of the table of contents of a dump that hold one of these texts, in a file for `--use-list`. Returns the
/// file, and how many lines it has.
pub fn list(server: &Cluster, dump: &Path, texts: &[&str]) -> (PathBuf, usize) {
    let list = run(server.program("pg_restore").arg("--list").arg(dump));
    let lines: Vec<&str> = list.lines().filter(|line| texts.iter().any(|text| line.contains(text))).collect();
    let file = server.new_file("list");
    std::fs::write(&file, lines.join("\n")).unwrap();
    (file, lines.len())
}

/// `pg_restore` into a database, as a role.
pub fn pg_restore(server: &Cluster, role: &str, database: &str) -> Command {
    let mut command = server.program("pg_restore");
    command.args(["--username", role, "--dbname", database]);
    command
}

/// `psql` in a database, as a role. It writes results only.
pub fn psql(server: &Cluster, role: &str, database: &str) -> Command {
    let mut command = server.program("psql");
    command.args(["--no-psqlrc", "--quiet", "--username", role, "--dbname", database]);
    command
}
