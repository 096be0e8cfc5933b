//! The reservation: what makes the promise outlive crash, failover and restore.
//!
//! Each database holds, on one page that is WAL-logged, an instant and a run. Nothing at or after the instant was
//! claimed there, and all before it may have been. Whoever has a row with an ID has the reservation that allowed the
//! ID, too, since it was logged before: after a crash, on a promoted standby, from a backup. A *run* is the life of
//! one shared memory. A page of another run is from before it, and the line starts above its instant.
//!
//! A session keeps a copy of the instant as its limit, so a claim below it touches nothing but the line.

use crate::admission::Confirmed;
use crate::errors::Error;
use crate::page::{Page, Stored};
use crate::shared::{self, Start};
use crate::timestamptz::{self, duration};
use crate::{catalog, clock, replication, settings};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_core::{Layout, Tick, UnixMicros};
use std::ffi::CStr;
use std::sync::atomic::Ordering::Relaxed;

/// Makes sure that this database's reservation covers a tick, and that the line is above what earlier runs may have
/// claimed here. Returns the highest tick that this session may claim, which is that tick or a later one, and how safe the
/// reservation is on synchronous standbys.
///
/// The reservation is written anew when less than a quarter of `pg_snowflake.reserve_ahead` is left of it, so that what is
/// new has that long to reach a standby before the first ID is made from it.
///
/// # Errors
/// Where the extension is not created in this database, or was created for another layout.
pub fn reserve(layout: &Layout, needs: Tick) -> Result<(Tick, Confirmed), Error> {
    loop {
        let relation = catalog::reservation(layout)?;
        let Some(page) = Page::open_to_write(relation) else {
            catalog::forget();
            return Err(Error::NotCreated);
        };
        let reserved = reserve_on(page, layout, needs);
        // It may have been dropped, and another one created, while the log was flushed.
        if catalog::reservation(layout)? == relation {
            return Ok(reserved);
        }
    }
}

fn reserve_on(mut page: Page, layout: &Layout, needs: Tick) -> (Tick, Confirmed) {
    let ahead = settings::reserve_ahead();
    let (mut reserved, mut resumed) = (UnixMicros(0), None);
    let change = page.prepare();
    let position = {
        let mut transitions = shared::transitions();
        transitions.watch_clock();
        change.apply(|found| {
            let run = transitions.run;
            if found.run != run {
                shared::line().raise(layout, layout.first_tick_from(found.until));
                resumed = Some((found, transitions.start));
            }
            // After a raise, the next claim needs a tick above it.
            let next = Tick(layout.tick_of(shared::line().last()).0 + 1);
            let wanted = layout.start_of(needs.max(next).min(layout.last_tick()));
            let enough = found.used && found.run == run && found.until.0 > wanted.0 + ahead / 4;
            let new = Stored { until: found.until.max(whole_millis(wanted.0 + ahead)), run, used: true };
            reserved = if enough { found.until } else { new.until };
            transitions.highest_reserved = transitions.highest_reserved.max(reserved);
            if !enough {
                shared::counters().reservations.fetch_add(1, Relaxed);
            }
            (!enough).then_some(new)
        })
    };
    page.close();
    // SAFETY: waits for the disk; all locks are released.
    unsafe { pg_sys::XLogFlush(position) };
    let confirmed = replication::confirm(position);
    if let Some((found, start)) = resumed {
        log_start(found, start);
    }
    let limit = layout.first_tick_from(UnixMicros(reserved.0 - ahead / 4)).0 - 1;
    (Tick(limit).max(needs).min(layout.last_tick()), confirmed)
}

/// Begins the reservation of a database that gets the extension: above all that any database of this server has reserved
/// in this run, as it may have been this one, before the extension was dropped; and at the clock, the best that is known
/// of earlier runs then. It is of this run, so the line stays where it is.
pub fn begin(relation: pg_sys::Oid) {
    let Some(mut page) = Page::open_to_write(relation) else { Error::NotCreated.raise() };
    let change = page.prepare();
    let (run, highest) = if shared::exists() {
        let transitions = shared::transitions();
        (transitions.run, transitions.highest_reserved)
    } else {
        (0, UnixMicros(0))
    };
    let until = whole_millis(clock::now().0).max(highest);
    let position = change.apply(|_| Some(Stored { until, run, used: false }));
    page.close();
    // SAFETY: waits for the disk; all locks are released.
    unsafe { pg_sys::XLogFlush(position) };
}

/// This database's reservation as it stands, whatever the layout. Changes nothing.
///
/// # Errors
/// Where the extension is not created in this database.
pub fn stored() -> Result<Stored, Error> {
    let page = Page::open_to_read(catalog::reservation_of_any_layout()?).ok_or(Error::NotCreated)?;
    let stored = page.read();
    page.close();
    Ok(stored)
}

/// The page holds milliseconds.
fn whole_millis(micros: i64) -> UnixMicros {
    UnixMicros::from_millis(micros.div_euclid(1000) + i64::from(micros.rem_euclid(1000) != 0))
}

/// Says from where this database's IDs go on in this run, and why.
fn log_start(found: Stored, start: Start) {
    // SAFETY: NULL or a NUL-terminated name.
    let database = unsafe {
        let name = pg_sys::get_database_name(pg_sys::MyDatabaseId);
        if name.is_null() { "".into() } else { CStr::from_ptr(name).to_string_lossy() }
    };
    let instant = timestamptz::display(timestamptz::to_datum(found.until));
    let ahead = found.until.0 - clock::now().0;
    let place = match ahead {
        _ if !found.used => "from the clock, as none were made in it before".to_owned(),
        1.. => format!("from {instant}, {} ahead of the clock", duration(ahead)),
        _ => format!("from the clock, {} above all that may have been made before", duration(-ahead)),
    };
    let why = match start {
        _ if found.run == 0 => {
            "The reservation was set by the creation of the extension, the restore of a dump, or pg_upgrade."
        }
        Start::CleanShutdown => "The server was started after a clean shutdown.",
        Start::Crash => "The server was started after a crash.",
        Start::Standby => "The server was a standby before.",
        Start::Recovery => "The server was recovered from a backup.",
    };
    let message = format!("snowflake IDs of database \"{database}\" go on {place}");
    ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, "")
        .set_detail(why)
        .report(PgLogLevel::LOG);
}
