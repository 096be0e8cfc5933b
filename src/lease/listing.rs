//! The registry's records, for `snowflake_workers()`. A session asks the process for them, which reads them from the registry and
//! writes them into a file for statistics; the session reads that.

use super::wake::wake;
use crate::errors::Error;
use crate::shared::{self, counters};
use crate::time::clock;
use crate::waits::{self, Wait};
use snowflake_core::lease::{Holder, Stored, WorkerNumber};
use snowflake_core::{Micros, UnixMicros};
use std::fs;
use std::sync::atomic::Ordering::Relaxed;

/// In the data directory, which is the working directory. Backups leave it out, and the server empties it at its start.
const FILE: &str = "pg_stat_tmp/pg_snowflake_workers";
const NEW_FILE: &str = "pg_stat_tmp/pg_snowflake_workers.new";

/// How long a session waits.
const LONGEST_WAIT: Micros = Micros::from_secs(10);

/// Between the fields of a row, and between rows: control characters, which no field has.
const FIELD: char = '\u{1f}';
const ROW: char = '\u{1e}';

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
    Ok(text.split(ROW).filter_map(row).collect())
}

fn row(text: &str) -> Option<Row> {
    let mut fields = text.split(FIELD);
    let mut next = || fields.next();
    let number = |text: &str| text.parse::<i64>().ok();
    Some(Row {
        worker: WorkerNumber(next()?.parse().ok()?),
        is_owned: next()? == "1",
        from: UnixMicros(number(next()?)?),
        until: UnixMicros(number(next()?)?),
        holder: Holder {
            host: next()?.to_owned(),
            data_directory: next()?.to_owned(),
            port: next()?.parse().ok()?,
            cluster_name: next()?.to_owned(),
            system_identifier: next()?.parse().ok()?,
            // Not listed.
            process: String::new(),
        },
    })
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
    let clean = |text: &str| text.replace(char::is_control, " ");
    let mut text = String::new();
    for (worker, Stored { record, .. }) in records {
        let holder = &record.holder;
        let fields = [
            worker.0.to_string(),
            i32::from(record.owner.is_some()).to_string(),
            record.granted_from.0.to_string(),
            record.granted_until.0.to_string(),
            clean(&holder.host),
            clean(&holder.data_directory),
            holder.port.to_string(),
            clean(&holder.cluster_name),
            holder.system_identifier.to_string(),
        ];
        text.push_str(&fields.join(&FIELD.to_string()));
        text.push(ROW);
    }
    let written = fs::write(NEW_FILE, text).and_then(|()| fs::rename(NEW_FILE, FILE));
    written.map_err(|error| format!("{FILE} could not be written: {error}"))
}

/// Tells the sessions that wait. Called by the process.
pub fn answer(wanted: i64, listed: Result<(), String>) {
    shared::lease_news().listing_error.set(listed.err().as_deref().unwrap_or(""));
    counters().listings_made.fetch_max(wanted, Relaxed);
}
