//! Files that people name.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a plain file for reading. A pipe, a device or a directory is refused, and nobody is waited for at the other end of a pipe.
///
/// # Errors
/// Those of the system; and where it is something else.
pub fn open_plain(path: &Path) -> Result<File> {
    // What was opened is looked at, not what had that name before. A terminal does not become that of this process.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Reads a whole file that has no more than so many bytes.
///
/// # Errors
/// Those of the system; and where it has more.
pub fn read_to_end(file: &File, longest: u64) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(longest + 1).read_to_end(&mut content)?;
    match content.len() as u64 > longest {
        true => Err(too_long()),
        false => Ok(content),
    }
}

/// The error of a file that is longer than such a file may be.
pub fn too_long() -> Error {
    Error::new(ErrorKind::InvalidData, "it is too long")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_file_is_read_up_to_a_length() {
        let file = open_plain(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
        let length = file.metadata().unwrap().len();
        assert!(read_to_end(&file, length - 1).is_err());
        let again = open_plain(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
        assert_eq!(read_to_end(&again, length).unwrap().len() as u64, length);
    }

    #[test]
    fn what_is_no_plain_file_is_refused() {
        for path in ["/dev/zero", "/dev/tty", "/", "/nowhere/at all"] {
            assert!(open_plain(Path::new(path)).is_err(), "{path}");
        }
    }
}
