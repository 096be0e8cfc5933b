//! What the server's log, and sessions, are told of leases, segments and the registry.

use super::lease;
use crate::errors::report::NO_ANSWER;
use crate::errors::segments::Collisions;
use crate::postgres::time::timestamptz;
use crate::postgres::wording::duration;
use crate::settings;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_core::lease::{Event, Holder, NoWorker, Taken, Trouble, Why, WorkerNumber};
use snowflake_core::{Micros, UnixMicros, segment};
use snowflake_registry::{Protection, TlsBy, Url};

/// A worker, as the settings name it: `7`, or `7 of datacenter 2`.
pub fn worker(number: WorkerNumber) -> String {
    match lease::worker_ids(number) {
        [Some(worker), Some(datacenter)] => format!("{worker} of datacenter {datacenter}"),
        [Some(worker), None] => worker.to_string(),
        _ => number.0.to_string(),
    }
}

/// A server, as people know it.
pub fn server(holder: &Holder) -> String {
    let name = if holder.cluster_name.is_empty() { String::new() } else { format!(" (\"{}\")", holder.cluster_name) };
    format!("{}:{}{name}, data directory {}", holder.host, holder.port, holder.data_directory)
}

fn instant(instant: UnixMicros) -> String {
    timestamptz::display(timestamptz::to_datum(instant))
}

/// A line of the log.
fn note(message: String) {
    ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, "").report(PgLogLevel::LOG);
}

/// A warning in the log; an empty detail is left out.
fn warn(message: String, detail: String, hint: &str) {
    let code = PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
    let report = ErrorReport::new(code, message, "").set_hint(hint);
    if detail.is_empty() { report } else { report.set_detail(detail) }.report(PgLogLevel::WARNING);
}

/// What happened, for the log.
pub fn log(event: &Event, error: &str) {
    match event {
        Event::Gained(grant) => {
            note(format!("leased worker ID {} up to {}", worker(grant.worker), instant(grant.until)));
        }
        Event::Lost { worker: number, by } => warn(
            format!("worker ID {} was taken by another server", worker(*number)),
            format!(
                "It is {}. This server makes IDs up to the end of its lease, and looks for another worker ID.",
                server(by)
            ),
            "If that is a copy of this server, stop one of the two.",
        ),
        Event::Vanished(number) => warn(
            format!("the registry has lost the lease of worker ID {}", worker(*number)),
            "It is stored again, unless it is over, or another server has the worker ID.".to_owned(),
            "Find out who removed it, or whether the registry was restored from a backup: it must never lose what it has stored.",
        ),
        Event::Forgotten(until) => warn(
            "the registry of worker IDs has forgotten what it had stored".to_owned(),
            format!(
                "No new lease is given before {}, when all that it may have granted is over. Servers that have a lease go on with it.",
                instant(*until)
            ),
            "Find out who removed it, or whether the registry was restored from a backup: it must never lose what it has stored.",
        ),
        Event::NotBefore(until) => {
            warn("no worker ID can be leased yet".to_owned(), not_before(*until), NOT_BEFORE_HINT)
        }
        Event::ClockAhead(by) => warn(
            format!("the clock is {} ahead of what the registry knows", duration(*by)),
            clock_ahead(*by),
            "Where the clock is right, nothing needs to be done.",
        ),
        Event::ClockBehind(by) => warn(
            format!("the clock is {} behind what the registry shows", duration(*by)),
            clock_behind(*by),
            "Set the clock that is wrong right: this server's, the registry's, or that of a server that has a lease.",
        ),
        Event::Shortened { worker: number, until } => {
            note(format!("worker ID {} is free again from {} on", worker(*number), instant(*until)));
        }
        Event::Expired(grant) => warn(
            format!("the lease of worker ID {} has ended before it was renewed", worker(grant.worker)),
            format!("No IDs can be made until it is. {error}"),
            "Make the registry reachable.",
        ),
        Event::GivenBack { worker: number, until } => {
            note(format!("gave worker ID {} back, used up to {}", worker(*number), instant(*until)));
        }
        Event::NotGivenBack(number) => note(format!(
            "worker ID {} could not be given back in time; it is free again when its lease ends",
            worker(*number)
        )),
        Event::NotAnswering(length) => {
            let detail = match length.0 {
                0 => error.to_owned(),
                _ => format!("Not for {}. {error}", duration(*length)),
            };
            warn(
                "the registry of worker IDs does not answer".to_owned(),
                detail,
                "IDs are made up to the end of the lease: see snowflake_status().",
            );
        }
        Event::Answering(length) => {
            note(format!("the registry of worker IDs answers again, after {}", duration(*length)))
        }
        Event::NoWorker(none) => warn("there is no worker ID to lease".to_owned(), no_worker(none), NO_WORKER_HINT),
        Event::OtherLayout(other) => warn(
            "the servers of this registry make IDs of another layout".to_owned(),
            other_layout(&other.theirs),
            "Set pg_snowflake.layout and pg_snowflake.epoch to theirs, or pg_snowflake.registry_namespace to another name.",
        ),
        Event::NoSuchWorker(worker) => warn(
            "a worker ID was leased that the layout does not have".to_owned(),
            no_such_worker(*worker),
            "Report this as a defect.",
        ),
    }
}

/// What happened to a segment, for the log.
pub fn segment(event: &segment::TagEvent) {
    match event {
        segment::TagEvent::Answered(_) => {}
        segment::TagEvent::RolledBack { tag, next, known } => warn(
            format!("the registry has forgotten numbers of segment \"{tag}\" that it had granted"),
            format!(
                "By the registry, the next one is {next}. This server was granted numbers below {known}, and tells it so."
            ),
            "Find out whether the registry was restored from a backup. Other servers may have been granted higher numbers: raise the \
             segment above all that are in use, by snowflake_segment_raise().",
        ),
        segment::TagEvent::Missing(tag) => warn(
            format!("the registry has no segment \"{tag}\" any more"),
            "This server uses what it holds. Nobody is granted more.".to_owned(),
            "Find out who removed it, or whether the registry was wiped. Once all servers have noticed, which takes a minute, create the \
             segment again, with a first number above all that are in use.",
        ),
        segment::TagEvent::NearEnd { tag, left } => warn(
            format!("segment \"{tag}\" comes to its end"),
            format!("{left} numbers are left that no server was granted."),
            "Drop it and create it again with a higher last number: its numbers continue above those that were used.",
        ),
        segment::TagEvent::TooSmall { tag, conflicts, largest, enough } => {
            let collisions = Collisions { conflicts: *conflicts, largest: *largest, enough: *enough };
            warn(format!("servers collide on segment \"{tag}\""), collisions.cause(), &collisions.remedy());
        }
        segment::TagEvent::GivenBack { tag, next } => {
            note(format!("gave numbers of segment \"{tag}\" back, from {next} on"));
        }
    }
}

/// Which settings do not go together.
pub fn settings_at_odds() {
    let warn = |message: String, detail: &'static str, hint: &'static str| {
        ErrorReport::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message, "")
            .set_detail(detail)
            .set_hint(hint)
            .report(PgLogLevel::WARNING);
    };
    if settings::registry::window() > settings::max_lead() {
        warn(
            "pg_snowflake.registry_window is longer than pg_snowflake.max_lead".to_owned(),
            "After a crash, a server may have to go on where its old lease ends. If that is more than max_lead ahead of the clock, calls wait or fail.",
            "Make the window shorter, or max_lead longer.",
        );
    }
    if settings::registry::is_trusted() {
        warn(
            "pg_snowflake.registry_trusted is on".to_owned(),
            "The next worker ID is leased at once, also from a registry that has forgotten what it had stored.",
            "Set it to off when this server has a lease.",
        );
    }
    if let Some(worker) = settings::unused_worker() {
        warn(
            format!("pg_snowflake.worker_id = {worker} is not used"),
            "The layout has datacenters, and pg_snowflake.datacenter_id is not set. So any worker ID is leased.",
            "Set both, or neither.",
        );
    }
}

/// Which roles may do more in the registry than they need.
pub fn exposures(exposures: &[String]) {
    for exposure in exposures {
        let code = PgSqlErrorCode::ERRCODE_WARNING;
        ErrorReport::new(code, "the registry of worker IDs gives a role more rights than it needs", "")
            .set_detail(exposure)
            .set_hint("With them, a role can take leases over, or have code run as another role: see docs/security.md.")
            .report(PgLogLevel::WARNING);
    }
}

/// What keeps the registry from promising what it must.
pub fn shortcomings(shortcomings: &[String]) {
    for shortcoming in shortcomings {
        let code = PgSqlErrorCode::ERRCODE_WARNING;
        ErrorReport::new(code, "the registry of worker IDs may lose what it has stored", "")
            .set_detail(shortcoming)
            .set_hint("With a registry that loses what it has stored, two servers can have the same worker ID: see docs/leases.md.")
            .report(PgLogLevel::WARNING);
    }
}

/// Which of that cannot be seen.
pub fn unseen(unseen: &[String]) {
    if !unseen.is_empty() {
        let message = "the registry of worker IDs does not show all of its settings";
        ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, "")
            .set_detail(unseen.join(" "))
            .report(PgLogLevel::LOG);
    }
}

/// What protects the connection with the registry no more than somebody may think.
pub fn protection(protection: Protection, url: &Url) {
    let code = PgSqlErrorCode::ERRCODE_WARNING;
    let report = |message: &'static str, detail: &'static str, hint: &str| {
        ErrorReport::new(code, message, "").set_detail(detail).set_hint(hint)
    };
    let note = |message, detail, hint| report(message, detail, hint).report(PgLogLevel::LOG);
    let warn = |message, detail, hint| report(message, detail, hint).report(PgLogLevel::WARNING);
    let encrypted = match url.kind().tls() {
        TlsBy::Parameter(parameter) => {
            format!("Give the registry TLS, and add {} to pg_snowflake.registry.", parameter.verified())
        }
        TlsBy::Scheme { plain, encrypted } => {
            format!("Give the registry TLS, and use {encrypted}:// in place of {plain}://.")
        }
    };
    match protection {
        Protection::Local | Protection::Verified => {}
        Protection::Nothing if url.has_password() && url.kind().is_password_readable() => warn(
            "the password for the registry of worker IDs is sent without encryption",
            "Anyone on the network in between can read it, and then change leases.",
            &encrypted,
        ),
        Protection::Nothing => note(
            "the connection with the registry of worker IDs is not encrypted",
            "Anyone on the network in between can read and change what is sent.",
            &encrypted,
        ),
        Protection::Unverified => note(
            "the certificate of the registry of worker IDs is not verified",
            "Whoever can redirect the connection can take the place of the registry.",
            "Add sslmode=verify-full to pg_snowflake.registry, and sslrootcert for an authority of your own.",
        ),
    }
}

const NO_WORKER_HINT: &str = "Wait until one of these leases ends, stop a server, or use a layout with more workers.";

const NOT_BEFORE_HINT: &str = "Wait until then. To go on earlier, check the conditions in docs/runbook.md, \"The registry has forgotten\", and \
     then set pg_snowflake.registry_trusted to on where servers wait, and reload. If that is too early, IDs repeat.";

fn clock_ahead(by: Micros) -> String {
    format!(
        "The clock is {} ahead of what the registry knows. A worker ID is leased when it was set right, or after a minute.",
        duration(by)
    )
}

fn clock_behind(by: Micros) -> String {
    format!(
        "The registry may have forgotten what it had stored, and the clock is {} behind what the registry shows. No worker ID is leased until that is set right, or has lasted for a minute.",
        duration(by)
    )
}

fn not_before(until: UnixMicros) -> String {
    format!(
        "The registry has forgotten what it had stored. No new lease is given before {}, when all that it may have granted is over.",
        instant(until)
    )
}

/// What keeps the server from its lease, as sessions are told; with the reason why the last request failed.
pub fn lease_trouble(trouble: &Trouble, error: &str) -> String {
    match trouble {
        Trouble::NoAnswer => NO_ANSWER.to_owned(),
        Trouble::Failing => failing(error),
        Trouble::Outrun(count) => {
            format!(
                "Other servers were faster {count} times in a row: each time, one has stored a lease between the read and the write of this one."
            )
        }
        Trouble::NoWorker(none) => no_worker(none),
        Trouble::OtherLayout(other) => other_layout(&other.theirs),
        Trouble::NotBefore(until) => not_before(*until),
        Trouble::ClockAhead(by) => clock_ahead(*by),
        Trouble::ClockBehind(by) => clock_behind(*by),
        Trouble::NoSuchWorker(worker) => no_such_worker(*worker),
    }
}

/// What keeps the server from numbers of segments; with the reason why the last request failed.
pub fn segments_trouble(trouble: &segment::Trouble, error: &str) -> String {
    match trouble {
        segment::Trouble::Failing => failing(error),
        segment::Trouble::Missing(tag) => format!("The registry has no segment \"{tag}\" any more."),
        segment::Trouble::UsedUp(tag) => format!("All numbers of segment \"{tag}\" were granted."),
        segment::Trouble::Full(tag) => format!(
            "There is no room for segment \"{tag}\": pg_snowflake.max_segments is {}.",
            settings::max_segments()
        ),
        segment::Trouble::TooSmall { tag, conflicts, largest, enough } => {
            let collisions = Collisions { conflicts: *conflicts, largest: *largest, enough: *enough };
            format!("Servers collide on segment \"{tag}\". {} {}", collisions.cause(), collisions.remedy())
        }
    }
}

/// An answer that was not expected has no reason.
fn failing(error: &str) -> String {
    if error.is_empty() { "The registry's answer does not fit what was asked.".to_owned() } else { error.to_owned() }
}

fn no_such_worker(worker: WorkerNumber) -> String {
    format!("The lease is of worker ID {}, which the layout \"{}\" does not have.", worker.0, settings::layout())
}

fn other_layout(theirs: &str) -> String {
    format!(
        "The namespace \"{}\" of the registry is for the layout \"{theirs}\", and this server has \"{}\".",
        settings::registry::namespace(),
        settings::layout()
    )
}

/// How many servers are named in one message.
const NAMED: usize = 3;

fn no_worker(none: &NoWorker) -> String {
    let one = |taken: &Taken| {
        let why = match taken.why {
            Why::Held => "is leased by",
            Why::MayBeCopy => "was leased by this server, or a copy of it,",
            Why::TooFarAhead => "was leased, far ahead of the clock, by",
        };
        format!("Worker ID {} {why} {}, up to {}.", worker(taken.worker), server(&taken.holder), instant(taken.until))
    };
    let mut sentences: Vec<String> = none.taken.iter().take(NAMED).map(one).collect();
    let left = none.taken.len().saturating_sub(NAMED);
    if left > 0 {
        sentences.push(format!("{left} more are leased, too: see snowflake_workers()."));
    }
    sentences.join(" ")
}
