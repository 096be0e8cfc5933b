//! How the parts of a record are written in every registry.

use crate::error::Error;
use snowflake_core::UnixMicros;
use snowflake_core::lease::{NamespaceRecord, Record, Token, Version, WorkerNumber};

/// The format that this version reads and writes.
pub(crate) const FORMAT: u32 = 1;

/// A record that every registry can store.
///
/// # Errors
/// [`Error::Invalid`], where it is none.
pub(crate) fn check(worker: WorkerNumber, record: &Record) -> Result<(), Error> {
    let invalid = |what: &str| Err(Error::Invalid(format!("the record of worker {} {what}", worker.0)));
    let holder = &record.holder;
    if i64::try_from(worker.0).is_err() {
        return invalid("cannot be stored: the number is too high");
    }
    if !is_writable(record.granted_from) || !is_writable(record.granted_until) {
        return invalid("cannot be stored: an instant is outside the years 1970 to 9999");
    }
    if record.owner == Some(Token(0)) {
        return invalid("cannot be stored: its token is 0");
    }
    if [&holder.host, &holder.data_directory, &holder.cluster_name, &holder.process]
        .iter()
        .any(|text| text.contains('\0'))
    {
        return invalid("cannot be stored: a text has a zero byte");
    }
    Ok(())
}

/// A namespace's record that every registry can store.
///
/// # Errors
/// [`Error::Invalid`], where it is none.
pub(crate) fn check_namespace(record: &NamespaceRecord) -> Result<(), Error> {
    let invalid = |what: &str| Err(Error::Invalid(format!("the record of the namespace {what}")));
    if record.layout.contains('\0') {
        return invalid("has a zero byte");
    }
    match record.leases_from.is_none_or(is_writable) {
        true => Ok(()),
        false => invalid("cannot be stored: an instant is outside the years 1970 to 9999"),
    }
}

fn is_writable(instant: UnixMicros) -> bool {
    (UnixMicros(0)..=UnixMicros::MAX_WRITTEN).contains(&instant)
}

/// The life of a namespace as 16 hexadecimal digits.
pub(crate) fn write_life(life: u64) -> String {
    format!("{life:016x}")
}

/// Reads what [`write_life`] wrote.
pub(crate) fn read_life(text: &str) -> Option<u64> {
    let is_life = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_life.then(|| u64::from_str_radix(text, 16).ok())?
}

/// A version for a record, by chance: a registry that counted would count the same again after a failover, and what was
/// meant for a version that is lost would meet another one. Below 2^53, which every registry can store and show.
///
/// # Errors
/// [`Error::Invalid`], where the system has no random numbers.
pub(crate) fn new_version() -> Result<Version, Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Error::Invalid(format!("no random number: {error}")))?;
    Ok(Version((u64::from_ne_bytes(bytes) >> 11).max(1)))
}

/// A token as 32 hexadecimal digits.
pub(crate) fn write_token(token: Token) -> String {
    format!("{:032x}", token.0)
}

/// Reads what [`write_token`] wrote; also with hyphens, as PostgreSQL writes a uuid.
pub(crate) fn read_token(text: &str) -> Option<Token> {
    let digits = text.replace('-', "");
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(&digits, 16).ok().filter(|token| *token != 0).map(Token)
}
