//! Copies of an installed PostgreSQL, with another pg_snowflake than its own, or with none.

use crate::directories::server_directory;
use crate::programs::{Installation, run};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Where the copy lies in its directory.
const SERVER: &str = "above/server";

/// A copy, which goes when this is dropped.
pub struct InstallationCopy {
    _root: TempDir,
    pg_config: PathBuf,
}

impl InstallationCopy {
    /// A copy without pg_snowflake.
    ///
    /// # Panics
    /// Where the directories of the original have no common parent.
    pub fn of(original: &Installation) -> Self {
        let [bin, share, library] =
            [original.bin(), original.directory("--sharedir"), original.directory("--pkglibdir")];
        let common: PathBuf =
            bin.components().zip(share.components()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
        let below = |directory: &Path| directory.strip_prefix(&common).unwrap().to_owned();
        let root = server_directory("copy-");
        let place = |directory: &Path| {
            let place = root.path().join(SERVER).join(below(directory));
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            place
        };
        // Programs look for the rest from where they are, so no links.
        run(Command::new("cp").args(["-rL"]).arg(&bin).arg(place(&bin)));
        link_all(&library, &place(&library), "pg_snowflake");
        link_all(&share, &place(&share), "extension");
        link_all(&share.join("extension"), &place(&share).join("extension"), "pg_snowflake");
        let libraries = original.directory("--libdir");
        if !bin.starts_with(&libraries) && !root.path().join(SERVER).join(below(&libraries)).exists() {
            symlink(&libraries, place(&libraries)).unwrap();
        }
        // What programs from a wheel are linked with lies beside their directory, or beside the one above.
        let copy = root.path().join(SERVER);
        for (above, above_copy) in common.ancestors().zip(copy.ancestors()).skip(1).take(2) {
            for entry in fs::read_dir(above).unwrap().map(Result::unwrap) {
                if entry.file_name().to_string_lossy().ends_with(".libs") {
                    symlink(entry.path(), above_copy.join(entry.file_name())).unwrap();
                }
            }
        }
        let pg_config = place(&bin).join("pg_config");
        Self { _root: root, pg_config }
    }

    /// A copy with the pg_snowflake of a directory: its library, control file and scripts.
    pub fn with(original: &Installation, directory: &Path) -> Self {
        let copy = Self::of(original);
        for file in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            let is_library = file.extension().is_some_and(|extension| extension == "so");
            let to = if is_library { copy.installation().directory("--pkglibdir") } else { copy.extensions() };
            fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
        }
        copy
    }

    /// The copy, as programs see it.
    pub fn installation(&self) -> Installation {
        Installation::of(self.pg_config.to_str().unwrap())
    }

    /// The directory of its extensions' scripts.
    pub fn extensions(&self) -> PathBuf {
        self.installation().directory("--sharedir").join("extension")
    }
}

/// Links to what a directory has, but for what begins with a name.
fn link_all(from: &Path, to: &Path, left_out: &str) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if !entry.file_name().to_string_lossy().starts_with(left_out) {
            symlink(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}
