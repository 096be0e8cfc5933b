//! The extension in SQL and PL/pgSQL, as `scripts/hosted` prints it: servers with it, and none of the library.

use crate::dump::psql;
use crate::installations::InstallationCopy;
use crate::programs::run;
use crate::{Cluster, Installation, Options};
use std::fs;
use std::process::Command;
use std::sync::OnceLock;

/// The database of [`server`].
pub const DATABASE: &str = "shop";

/// The script.
pub fn script() -> &'static str {
    static SCRIPT: OnceLock<String> = OnceLock::new();
    SCRIPT.get_or_init(|| run(&mut Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/hosted"))))
}

/// The script of each release, with its version.
pub fn released() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../sql/released/hosted");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut list: Vec<_> = files
        .map(|file| (file.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&file).unwrap()))
        .collect();
    list.sort_unstable();
    list
}

/// The script of 0.2.0, which took over what it found.
pub fn first_released() -> String {
    released().swap_remove(0).1
}

/// Options of a server that does not load the library, and has a clock.
pub fn options() -> Options {
    Cluster::options().not_preloaded().with_clock()
}

/// Creates a role `owner`, and a database that it owns.
pub fn create_database(cluster: &Cluster, name: &str) {
    let role = "DO $$ BEGIN CREATE ROLE owner LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$";
    cluster.client().batch_execute(role).unwrap();
    cluster.client().batch_execute(&format!("CREATE DATABASE {name} OWNER owner")).unwrap();
}

/// Runs the script as the owner of a database, who has no other rights.
pub fn run_script(cluster: &Cluster, database: &str) {
    let file = cluster.new_file("hosted.sql");
    fs::write(&file, script()).unwrap();
    let mut command = psql(cluster, "owner", database);
    run(command.args(["--set=ON_ERROR_STOP=1", "--single-transaction", "--file"]).arg(&file));
}

/// A running server with the database [`DATABASE`], of which a role `owner` has installed the script. Its worker ID is 1, and its
/// layout this one.
pub fn server_of(options: Options, layout: &str) -> Cluster {
    let cluster = options.create();
    cluster.start();
    create_database(&cluster, DATABASE);
    run_script(&cluster, DATABASE);
    let configure = format!("SELECT snowflake_configure(1, layout => '{layout}')");
    cluster.client_of("owner", DATABASE).batch_execute(&configure).unwrap();
    cluster
}

/// The same with the default layout.
pub fn server() -> Cluster {
    server_of(options(), "default")
}

/// A copy of the PostgreSQL under test in which the extension `pg_snowflake` is the one in SQL, in these versions; without the library.
pub fn installation() -> Installation {
    static COPY: OnceLock<InstallationCopy> = OnceLock::new();
    let copy = COPY.get_or_init(|| {
        let copy = InstallationCopy::of(&Installation::under_test());
        let extensions = copy.extensions();
        let control = "default_version = '2'\nrelocatable = false\nsuperuser = false\n";
        fs::write(extensions.join("pg_snowflake.control"), control).unwrap();
        for version in ["1", "2", "1--2"] {
            fs::write(extensions.join(format!("pg_snowflake--{version}.sql")), script()).unwrap();
        }
        copy
    });
    copy.installation()
}
