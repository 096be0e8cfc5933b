//! The registry's records, for `snowflake_workers()`. A session asks the process for them, which reads them from the registry and
//! writes them into a file for statistics; the session reads that.

use super::wake::wake;
use crate::errors::Error;
use crate::shared::{self, counters};
use crate::time::clock;
use crate::waits::{self, Wait};
use snowflake_core::lease::{Holder, Record, Stored, WorkerNumber};
use snowflake_core::{Micros, UnixMicros};
use std::fs;
use std::sync::atomic::Ordering::Relaxed;

/// In the data directory, which is the working directory. Backups leave it out, and the server empties it at its start.
const FILE: &str = "pg_stat_tmp/pg_snowflake_workers";
const NEW_FILE: &str = "pg_stat_tmp/pg_snowflake_workers.new";

/// How long a session waits.
const LONGEST_WAIT: Micros = Micros::from_secs(10);

/// A record, as it is listed.
pub struct Row {
    /// The worker.
    pub worker: WorkerNumber,
    /// Whether somebody has it; otherwise it was given back.
    pub is_owned: bool,
    /// The range of ID time.
    pub from: UnixMicros,
    /// Its end.
    pub until: UnixMicros,
    /// Who has it, or had it last.
    pub holder: Holder,
}

/// Asks the process for the records, and waits for them.
///
/// # Errors
/// Where the process does not run, or the registry does not answer.
pub fn read() -> Result<Vec<Row>, Error> {
    let wanted = counters().listings_wanted.fetch_add(1, Relaxed) + 1;
    let start = clock::monotonic_micros();
    while counters().listings_made.load(Relaxed) < wanted {
        if counters().lessee.load(Relaxed) == 0 && clock::monotonic_micros() - start > Micros::from_secs(2) {
            return Err(Error::NoListing("The process \"pg_snowflake lease\" does not run.".to_owned()));
        }
        if clock::monotonic_micros() - start > LONGEST_WAIT {
            return Err(Error::NoListing("It did not answer in time.".to_owned()));
        }
        wake();
        waits::sleep(Micros::from_millis(20), Wait::Registry);
    }
    let failure = shared::lease_news().listing_error.to_string();
    if !failure.is_empty() {
        return Err(Error::NoListing(failure));
    }
    let text = fs::read_to_string(FILE).map_err(|error| Error::NoListing(error.to_string()))?;
    let records = snowflake_registry::listing::read(&text).map_err(Error::NoListing)?;
    Ok(records.into_iter().map(row).collect())
}

fn row((worker, record): (WorkerNumber, Record)) -> Row {
    let Record { owner, granted_from: from, granted_until: until, holder } = record;
    Row { worker, is_owned: owner.is_some(), from, until, holder }
}

/// The number of the newest listing that is wanted, where it is not made yet. Called by the process.
pub fn wanted() -> Option<i64> {
    let wanted = counters().listings_wanted.load(Relaxed);
    (wanted > counters().listings_made.load(Relaxed)).then_some(wanted)
}

/// Writes the file. Called by the process.
///
/// # Errors
/// Where it cannot be written.
pub fn write(records: &[(WorkerNumber, Stored)]) -> Result<(), String> {
    let written =
        fs::write(NEW_FILE, snowflake_registry::listing::write(records)).and_then(|()| fs::rename(NEW_FILE, FILE));
    written.map_err(|error| format!("{FILE} could not be written: {error}"))
}

/// Tells the sessions that wait. Called by the process.
pub fn answer(wanted: i64, listed: Result<(), String>) {
    shared::lease_news().listing_error.set(listed.err().as_deref().unwrap_or(""));
    counters().listings_made.fetch_max(wanted, Relaxed);
}
