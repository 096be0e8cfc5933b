//! The reservation: what makes the promise outlive crash, failover and restore.
//!
//! The server has one register, which holds an instant: no ID was made at or after it, in any database. Changes of the
//! register are written to the WAL. A session has a limit below that instant; up to the limit it claims from the line
//! alone, and beyond it, it calls [`reserve`]. The WAL has the register's change before any row with an ID that the
//! change allowed. So wherever such a row is, the register's value is, too: after a crash, on a promoted standby, in a
//! backup. A *run* is the life of one shared memory; its first claim raises the line to the register's instant.
//!
//! Each database has a copy of the register, as dumps and pg_upgrade carry sequences, but no replication origins. What
//! must be written when is decided in [`snowflake_core::reservation`].

pub mod creation;
mod interrupts;
pub mod register;
pub mod rewind;
mod standby;

use self::register::Register;
use crate::errors::Error;
use crate::errors::record::RecordError;
use crate::errors::reservation::ReservationError;
use crate::postgres::time::{clock, timestamptz, wait};
use crate::postgres::wal;
use crate::postgres::wording::duration;
use crate::record::page::Page;
use crate::server::believed;
use crate::shared::confirmed::Confirmed;
use crate::shared::{self, RegisterState, Transitions};
use crate::{record, settings};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_core::reservation::{self as decide, CopyTooFar, Reserved, Situation};
use snowflake_core::{Layout, Micros, Tick, UnixMicros};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

impl From<CopyTooFar> for Error {
    fn from(error: CopyTooFar) -> Self {
        Self::Reservation(ReservationError::CopyTooFar { ahead: error.ahead, wait: error.wait })
    }
}

/// Before a session's first claim: raises the line, where needed, above all that earlier runs of this server may have
/// claimed, and above the IDs of a dump that was restored into this database. Writes nothing to disk.
///
/// # Errors
/// Where the extension is not created in this database, or was created for another layout; where the register cannot be
/// read; where the IDs of a restored dump are too far ahead of the clock.
pub fn resume(layout: &Layout) -> Result<(), Error> {
    let relation = record::reservation(layout)?;
    resume_server(layout, relation)?;
    let copy = record::read_copy(relation)?;
    let is_in_use = record::is_kept()?;
    let now = believed::now();
    let transitions = shared::transitions();
    let reserved = transitions.reserved.ok_or(ReservationError::NoProgress)?.reserved;
    let mut situation = situation(layout, reserved, copy, Tick(0), now);
    if is_in_use {
        situation.leave_what_is_too_far(layout);
    }
    if let Some(tick) = decide::judge(layout, &situation)? {
        shared::line().raise(layout, tick);
    }
    Ok(())
}

/// The first session of a run raises the line to the register's instant.
fn resume_server(layout: &Layout, relation: pg_sys::Oid) -> Result<(), Error> {
    if shared::transitions().reserved.is_some() {
        return Ok(());
    }
    let resumed = {
        let register = creation::with_value(|| open_register(relation))?;
        let mut transitions = shared::transitions();
        match transitions.reserved {
            Some(_) => None,
            None => Some(read_first(&register, &mut transitions, layout)?),
        }
    };
    if let Some(reserved) = resumed {
        log_start(reserved.until);
    }
    Ok(())
}

fn read_first(register: &Register, transitions: &mut Transitions, layout: &Layout) -> Result<Reserved, Error> {
    let mut reserved = register.read().ok_or(ReservationError::NoProgress)?;
    if reserved.generation == 0 {
        // Set by hand.
        reserved.generation = register::draw_generation(0);
    }
    shared::line().raise(layout, layout.first_tick_from(reserved.until));
    transitions.lease.resumed = true;
    transitions.reserved = Some(RegisterState { reserved, logged_at: 0, origin: register.origin() });
    Ok(reserved)
}

/// Opens the register. Creates it where it is missing: pg_upgrade does not carry replication origins. What was reserved
/// is known from the databases' copies then, or from shared memory.
fn open_register(relation: pg_sys::Oid) -> Result<Register, Error> {
    if let Some(register) = Register::open()? {
        return Ok(register);
    }
    let copy = record::read_copy(relation)?;
    creation::create(copy.generation)?;
    if copy.used {
        let name = register::NAME.to_string_lossy();
        let message = format!("replication origin \"{name}\" was missing, and was created again");
        ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message, "")
            .set_detail(
                "It holds the reservation of this server's snowflake IDs. pg_upgrade does not carry it. IDs go on above what \
                 each database has on record.",
            )
            .set_hint("If the server was not upgraded, find out who dropped it.")
            .report(PgLogLevel::WARNING);
    }
    Register::open()?.ok_or(ReservationError::NoOrigin.into())
}

fn situation(
    layout: &Layout,
    reserved: Reserved,
    copy: decide::DatabaseCopy,
    needs: Tick,
    now: UnixMicros,
) -> Situation {
    let last = layout.tick_of(shared::line().last());
    let (ahead, explained) = (settings::reserve_ahead(), record::explained_lead(layout));
    Situation { reserved, copy, last, needs, now, ahead, explained }
}

/// Makes sure that the server's reservation, and this database's copy of it, cover a tick. Returns the highest tick
/// that this session may claim, which is that tick or a later one, and how safe the reservation is on synchronous
/// standbys. The caller has called [`resume`] before.
///
/// # Errors
/// As [`resume`].
pub fn reserve(layout: &Layout, needs: Tick) -> Result<(Tick, Confirmed), Error> {
    let start = clock::monotonic_micros();
    loop {
        let relation = record::reservation(layout)?;
        let is_in_use = record::is_kept()?;
        let mut left = None;
        let prepared = {
            // First the page, which may have to wait for a transaction in this database: sessions of all databases wait for
            // what the register holds.
            let Some(mut page) = Page::open(relation) else {
                record::forget();
                continue;
            };
            let Some(register) = Register::open()? else {
                drop(page);
                drop(open_register(relation)?);
                continue;
            };
            let now = believed::now();
            let change = page.prepare();
            let mut transitions = shared::transitions();
            let mut held = transitions.reserved.ok_or(ReservationError::NoProgress)?;
            let found = change.read()?;
            let mut situation = situation(layout, held.reserved, record::copy_from(found), needs, now);
            if is_in_use {
                left = situation.leave_what_is_too_far(layout);
            }
            match decide::prepare(layout, &situation) {
                Err(error) => Err(error.into()),
                Ok(todo) if todo.register.is_some() && !register.is_safe(held.reserved) => {
                    Err(ReservationError::OriginDropped.into())
                }
                Ok(todo) => {
                    if let Some(tick) = todo.raise {
                        shared::line().raise(layout, tick);
                    }
                    if let Some(new) = todo.register {
                        // Where this fails, the locks are released at the end of the transaction.
                        held =
                            RegisterState { reserved: new, logged_at: register.write(new), origin: register.origin() };
                        transitions.reserved = Some(held);
                        shared::counters().reservations.fetch_add(1, Relaxed);
                    }
                    let mut copied = true;
                    change.apply(|found_now| {
                        // A `setval` of another session may have come in between: then start again.
                        copied = found_now == found;
                        todo.copy.filter(|_| copied).map(record::copy_to)
                    })?;
                    Ok((held, copied))
                }
            }
        };
        let (held, copied) = match prepared {
            // Mostly, the transaction that drops it ends soon.
            Err(Error::Reservation(ReservationError::OriginDropped))
                if clock::monotonic_micros() - start < creation::LONGEST_DROP =>
            {
                wait::sleep(Micros::from_millis(10));
                continue;
            }
            prepared => prepared?,
        };
        // All locks are released.
        wal::flush(held.logged_at);
        let confirmed = standby::confirm(held.logged_at);
        // The extension may have been dropped, and created again, while the log was flushed.
        if copied && record::reservation(layout)? == relation {
            // From now on IDs are made here.
            if let Some((form, epoch)) = record::keep(layout)? {
                Error::from(RecordError::Replaced { form, epoch }).warn();
            }
            if let Some(CopyTooFar { ahead, .. }) = left {
                Error::from(RecordError::TimeLeft { ahead }).warn();
            }
            let limit = decide::limit(layout, held.reserved, settings::reserve_ahead(), needs);
            return Ok((limit, confirmed));
        }
    }
}

/// Gives back what was reserved and not used: at the clean stop of the server, when no session can claim any more.
/// Returns how much that was.
pub fn give_back() -> Option<Micros> {
    let layout = settings::layout();
    let mut transitions = shared::transitions();
    // One that has come meanwhile may claim up to what is reserved.
    if shared::counters().sessions.load(SeqCst) > 0 {
        return None;
    }
    let held = transitions.reserved?;
    // A line that was closed is far above the last ID.
    let last = transitions.lease.closed.unwrap_or(shared::line().last());
    let new = decide::give_back(layout, held.reserved, layout.tick_of(last))?;
    // Without a transaction the origin cannot be looked up by name. Where its number belongs to another origin now, the
    // value differs.
    if register::read(held.origin) != Some(held.reserved) {
        return None;
    }
    let logged_at = register::write(held.origin, new);
    transitions.reserved = Some(RegisterState { reserved: new, logged_at, ..held });
    Some(held.reserved.until - new.until)
}

/// Logs where the server's IDs go on in this run, and why.
fn log_start(until: UnixMicros) {
    let ahead = until - believed::now();
    let place = match ahead.0 {
        1.. => {
            let instant = timestamptz::display_instant(until);
            format!("from {instant}, {} ahead of the clock", duration(ahead))
        }
        _ => format!("from the clock, {} above all that may have been made before", duration(-ahead)),
    };
    let message = format!("snowflake IDs of this server go on {place}");
    // In a statement of its own: what a report does must not happen under the lock.
    let start = shared::transitions().start.sentence();
    ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, "")
        .set_detail(start)
        .report(PgLogLevel::LOG);
}
