//! Data directories as initdb makes them: one for each way to call it, made once in a program and copied for each cluster. A copy
//! takes a fraction of initdb's processor time. All copies have the same system identifier.

use crate::directories::directory;
use crate::programs::{Installation, run, server_user};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use tempfile::TempDir;

/// By `pg_config` and initdb's arguments. Nothing is dropped with a static: the watchdog of [`crate::directories`] removes them.
static TEMPLATES: LazyLock<Mutex<HashMap<Vec<String>, TempDir>>> = LazyLock::new(Mutex::default);

/// Has initdb make a data directory.
pub fn initdb(installation: &Installation, arguments: &[String], data: &Path) {
    let mut initdb = installation.program("initdb", &[]);
    initdb.args(["--auth=trust", "--username=postgres", "--no-sync", "--encoding=UTF8", "--locale=C"]);
    run(initdb.args(arguments).arg("--pgdata").arg(data));
}

/// Copies such a data directory.
pub fn copy(installation: &Installation, arguments: &[String], data: &Path) {
    let key = [&[installation.pg_config().to_owned()], arguments].concat();
    let mut templates = TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner);
    let template = templates.entry(key).or_insert_with(|| {
        let template = directory("template-");
        if let Some(user) = server_user() {
            run(Command::new("chown").arg(user).arg(template.path()));
        }
        initdb(installation, arguments, &template.path().join("data"));
        template
    });
    let template = template.path().join("data");
    drop(templates);
    run(Command::new("cp").arg("--archive").arg(template).arg(data));
}
