//! The registry's records, for `snowflake_workers()` and `snowflake_segments()`. A session asks the process for them, which reads them
//! from the registry and writes them into a file for statistics; the session reads that.

use super::lease::for_caller;
use super::wake::wake;
use crate::errors::Error;
use crate::postgres::time::clock;
use crate::shared::waits::{self, Wait};
use crate::shared::{self, counters};
use snowflake_core::lease::{Holder, Record, WorkerNumber};
use snowflake_core::{Micros, UnixMicros};
use snowflake_registry::listing::Segment;
use std::fs;
use std::sync::atomic::Ordering::Relaxed;

/// What is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// The records of workers.
    Workers,
    /// Those of tags, and which servers hold numbers of them.
    Segments,
}

/// How long a session waits.
const LONGEST_WAIT: Micros = Micros::from_secs(10);

impl Listing {
    const ALL: [Self; 2] = [Self::Workers, Self::Segments];

    /// In the data directory, which is the working directory. Backups leave it out, and the server empties it at its start.
    const fn file(self) -> &'static str {
        match self {
            Self::Workers => "pg_stat_tmp/pg_snowflake_workers",
            Self::Segments => "pg_stat_tmp/pg_snowflake_segments",
        }
    }

    /// Asks the process for the records, and waits for them.
    fn read(self) -> Result<String, Error> {
        let (asked, made) = (&counters().listings_wanted[self as usize], &counters().listings_made[self as usize]);
        let wanted = asked.fetch_add(1, Relaxed) + 1;
        let start = clock::monotonic_micros();
        while made.load(Relaxed) < wanted {
            if counters().lessee.load(Relaxed) == 0 && clock::monotonic_micros() - start > Micros::from_secs(2) {
                return Err(Error::NoListing("The process \"pg_snowflake lease\" does not run.".to_owned()));
            }
            if clock::monotonic_micros() - start > LONGEST_WAIT {
                return Err(Error::NoListing("It did not answer in time.".to_owned()));
            }
            wake();
            waits::sleep(Micros::from_millis(20), Wait::Registry);
        }
        let failure = shared::lease_news().listing_errors[self as usize].to_string();
        if !failure.is_empty() {
            return Err(Error::NoListing(for_caller(failure)));
        }
        fs::read_to_string(self.file()).map_err(|error| Error::NoListing(error.to_string()))
    }

    /// Writes the file. Called by the process.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write(self, text: &str) -> Result<(), String> {
        let (file, new) = (self.file(), format!("{}.new", self.file()));
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, file));
        written.map_err(|error| format!("{file} could not be written: {error}"))
    }

    /// Tells the sessions that wait. Called by the process.
    pub fn answer(self, wanted: i64, listed: Result<(), String>) {
        shared::lease_news().listing_errors[self as usize].set(listed.err().as_deref().unwrap_or(""));
        counters().listings_made[self as usize].fetch_max(wanted, Relaxed);
    }
}

/// A worker's record, as it is listed.
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

/// The records of all workers.
///
/// # Errors
/// Where the process does not run, or the registry does not answer.
pub fn workers() -> Result<Vec<Row>, Error> {
    let records = snowflake_registry::listing::read(&Listing::Workers.read()?).map_err(Error::NoListing)?;
    Ok(records.into_iter().map(row).collect())
}

/// The records of all tags, and who holds numbers of them.
///
/// # Errors
/// As above.
pub fn segments() -> Result<Vec<Segment>, Error> {
    snowflake_registry::listing::read_segments(&Listing::Segments.read()?).map_err(Error::NoListing)
}

fn row((worker, record): (WorkerNumber, Record)) -> Row {
    let Record { owner, granted_from: from, granted_until: until, holder } = record;
    Row { worker, is_owned: owner.is_some(), from, until, holder }
}

/// A listing that is wanted and not made yet, and its number. Called by the process.
pub fn wanted() -> Option<(Listing, i64)> {
    Listing::ALL.into_iter().find_map(|listing| {
        let wanted = counters().listings_wanted[listing as usize].load(Relaxed);
        (wanted > counters().listings_made[listing as usize].load(Relaxed)).then_some((listing, wanted))
    })
}
