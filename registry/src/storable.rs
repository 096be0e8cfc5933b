//! Records that every registry can store, and their versions.

use crate::error::Error;
use snowflake_core::UnixMicros;
use snowflake_core::lease::{NamespaceRecord, Record, Token, Version, WorkerNumber};

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
