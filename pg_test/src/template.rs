//! Data directories as initdb makes them: one for each way to call it, made once in a program and copied for each cluster. A copy
//! takes a fraction of initdb's processor time. All copies have the same system identifier, unless [`renew_identifier`] changes it.

use crate::directories::server_directory;
use crate::programs::{Installation, run};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use tempfile::TempDir;

type Templates = HashMap<(Installation, Vec<String>), TempDir>;

/// By initdb's arguments. A static is never dropped: the watchdog of [`crate::directories`] removes the directories.
static TEMPLATES: LazyLock<Mutex<Templates>> = LazyLock::new(Mutex::default);

/// Has initdb make a data directory.
fn initdb(installation: &Installation, arguments: &[String], data: &Path) {
    let mut initdb = installation.program("initdb", &[]);
    initdb.args(["--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8", "--locale=C"]);
    run(initdb.args(arguments).arg("--pgdata").arg(data));
}

/// Copies such a data directory.
pub fn copy(installation: &Installation, arguments: &[String], data: &Path) {
    let key = (installation.clone(), arguments.to_vec());
    let mut templates = TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner);
    let template = templates.entry(key).or_insert_with(|| {
        let template = server_directory("template-");
        initdb(installation, arguments, &template.path().join("data"));
        template
    });
    let template = template.path().join("data");
    drop(templates);
    run(Command::new("cp").arg("--archive").arg(template).arg(data));
}

/// Gives such a copy a system identifier of its own. `pg_control` begins with it, and its checksum is wrong then: `pg_resetwal --force` corrects
/// that, and begins new WAL with the same identifier.
pub fn renew_identifier(installation: &Installation, data: &Path) {
    let identifier = fastrand::u64(1..1 << 63).to_ne_bytes();
    let mut control = File::options().write(true).open(data.join("global/pg_control")).unwrap();
    control.write_all(&identifier).unwrap();
    run(installation.program("pg_resetwal", &[]).arg("--force").arg("--pgdata").arg(data));
}
