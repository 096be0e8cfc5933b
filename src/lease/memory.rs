//! What this server remembers of the namespaces of registries: which life of each it has seen. So it notices when a registry has
//! forgotten a namespace. In a file of the data directory, which base backups and pg_rewind copy.

use crate::settings;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};

/// In the data directory, which is the working directory.
const FILE: &str = "pg_snowflake.namespaces";
const NEW_FILE: &str = "pg_snowflake.namespaces.new";

/// The life that counts as seen where the file cannot be read: no namespace has this life, so each is another one.
const UNREADABLE: u64 = 0;

/// The life of the namespace that this server has seen; `None` where it never saw it.
pub fn known_life() -> Option<u64> {
    match fs::read_to_string(FILE) {
        Ok(text) => life_of(&text, &settings::registry::namespace()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(_) => Some(UNREADABLE),
    }
}

/// Notes it durably.
///
/// # Errors
/// Where the file cannot be written.
pub fn remember(life: u64) -> io::Result<()> {
    let text = match fs::read_to_string(FILE) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        text => text.unwrap_or_default(),
    };
    let mut file = File::create(NEW_FILE)?;
    file.write_all(with(&text, &settings::registry::namespace(), life).as_bytes())?;
    file.sync_all()?;
    fs::rename(NEW_FILE, FILE)?;
    File::open(".")?.sync_all()
}

/// A line is 16 hexadecimal digits, a space, and the name of a namespace, which has no control characters.
fn lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.split_once(' '))
}

fn life_of(text: &str, namespace: &str) -> Option<u64> {
    let (life, _) = lines(text).find(|(_, name)| *name == namespace)?;
    Some(u64::from_str_radix(life, 16).unwrap_or(UNREADABLE))
}

fn with(text: &str, namespace: &str, life: u64) -> String {
    let others = lines(text).filter(|(_, name)| *name != namespace).map(|(life, name)| format!("{life} {name}\n"));
    others.chain([format!("{life:016x} {namespace}\n")]).collect()
}
