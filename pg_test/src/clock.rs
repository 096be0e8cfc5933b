//! The library that changes the clock of servers under test: `clock.c`, compiled once in a program.

use crate::directories::server_directory;
use crate::programs::run;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

const SOURCE: &str = include_str!("clock.c");

/// The library, which is to be preloaded. The variable `PGSF_CLOCK` names the file that says by how much the clock is changed.
pub fn library() -> &'static Path {
    static LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
        // A static is never dropped: the watchdog of [`crate::directories`] removes the directory.
        let directory = server_directory("clock-").keep();
        let (source, library) = (directory.join("clock.c"), directory.join("clock.so"));
        std::fs::write(&source, SOURCE).unwrap();
        run(Command::new("cc").args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(&source));
        library
    });
    &LIBRARY
}
