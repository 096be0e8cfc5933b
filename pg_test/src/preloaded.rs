//! Libraries that are preloaded into servers under test, and change what the system tells them: each compiled once in a program.

use crate::directories::server_directory;
use crate::programs::run;
use crate::{Cluster, Installation};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The clock. The variable `PGSF_CLOCK` names the file that says by how much it is changed.
pub(crate) fn clock() -> &'static Path {
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| compiled("clock", include_str!("clock.c")));
    &LIBRARY
}

/// A resolver of names that waits for ever where they end in `.away`.
pub fn dead_resolver() -> &'static Path {
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| compiled("resolver", include_str!("resolver.c")));
    &LIBRARY
}

/// An extension of `pg_test/hooks`, compiled for the PostgreSQL under test, as the path by which the server can preload it.
pub fn hook(name: &str, cluster: &Cluster) -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks").join(name).with_extension("c");
    let library = cluster.new_file(&format!("{name}.so"));
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-I"]).arg(Installation::under_test().headers()).arg("-o").arg(&library);
    run(cc.arg(source));
    library.to_str().unwrap().to_owned()
}

fn compiled(name: &str, source: &str) -> PathBuf {
    // A static is never dropped: the watchdog of [`crate::directories`] removes the directory.
    let directory = server_directory(&format!("{name}-")).keep();
    let (file, library) = (directory.join(name).with_extension("c"), directory.join(name).with_extension("so"));
    std::fs::write(&file, source).unwrap();
    run(Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(&file).arg("-ldl"));
    library
}
