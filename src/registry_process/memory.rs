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
    match fs::read(FILE) {
        Ok(content) => life_of(&content, &settings::registry::namespace()),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(_) => Some(UNREADABLE),
    }
}

/// Notes it durably.
///
/// # Errors
/// Where the file cannot be written.
pub fn remember(life: u64) -> io::Result<()> {
    let content = match fs::read(FILE) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        content => content.unwrap_or_default(),
    };
    let mut file = File::create(NEW_FILE)?;
    file.write_all(&with(&content, &settings::registry::namespace(), life))?;
    file.sync_all()?;
    fs::rename(NEW_FILE, FILE)?;
    File::open(".")?.sync_all()
}

/// The lines, which may be damaged: of any bytes.
fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}

/// A line is 16 hexadecimal digits, a space, and the name of a namespace, which has no control characters. `None` for any other line.
fn line(line: &[u8]) -> Option<(u64, &str)> {
    let (life, name) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    let is_written_so = life.len() == 16 && life.bytes().all(|digit| digit.is_ascii_hexdigit());
    let life = u64::from_str_radix(life, 16).ok().filter(|_| is_written_so)?;
    (!name.is_empty() && !name.contains(char::is_control)).then_some((life, name))
}

fn life_of(content: &[u8], namespace: &str) -> Option<u64> {
    let known = lines(content).filter_map(line).find(|(_, name)| *name == namespace);
    // Where the file is damaged, whatever cannot be read, or the end that it lacks, may have been the line.
    let is_whole = content.ends_with(b"\n") && lines(content).all(|bytes| line(bytes).is_some());
    known.map(|(life, _)| life).or((!is_whole).then_some(UNREADABLE))
}

/// Lines that cannot be read stay, byte by byte: the other namespaces of this server may need them.
fn with(content: &[u8], namespace: &str, life: u64) -> Vec<u8> {
    let is_another = |bytes: &&[u8]| line(bytes).is_none_or(|(_, name)| name != namespace);
    let others = lines(content).filter(is_another).map(|line| [line, b"\n"].concat());
    others.chain([format!("{life:016x} {namespace}\n").into_bytes()]).collect::<Vec<_>>().concat()
}
