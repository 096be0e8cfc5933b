//! The process that leases the server's worker, renews the lease and gives it back: the only one that talks to the registry. It runs on
//! a primary, is connected to no database, and holds no lock while it waits. It may be lost at any time: the next one finds the lease
//! again by its token. [`Lessee`] decides what it does next.

use super::fetch::{Fetch, Rest};
use super::identity::identity;
use super::listing::Listing;
use super::{incarnation, listing, memory, report, resolver};
use crate::postgres::background::{self, is_asked_to_end};
use crate::postgres::time::{clock, wait};
use crate::postgres::wording::sentence;
use crate::server::{believed, worker};
use crate::settings;
use crate::shared::{self, counters};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use snowflake_core::lease::{
    Answer, Event, Found, Grant, Holder, Lessee, Moment, Next, NotInstalled, Stored, Terms, Token, WorkerNumber, Write,
};
use snowflake_core::{Micros, MonotonicMicros, segment};
use snowflake_registry::{self as registry, Options, Protection, Registry, Stop, Swap};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

/// How long a stop of the server waits for the registry to take the worker back.
const LONGEST_GIVE_BACK: Micros = Micros::from_secs(3);

/// The same, where the registry has not answered the last request either.
const LONGEST_LAST_TRY: Micros = Micros::from_millis(500);

/// The longest sleep. Not needed for anything; bounds what a wake-up that was missed costs.
const LONGEST_SLEEP: Micros = Micros::from_secs(10);

/// While the server stops: when calls of the registry end, by the monotonic clock.
static GIVE_UP_AT: AtomicI64 = AtomicI64::new(i64::MIN);

/// Registers it. Called while the library is preloaded.
pub fn init() {
    background::register("pg_snowflake lease", "pg_snowflake_lease");
}

/// The process.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_snowflake_lease(_argument: pg_sys::Datum) {
    background::begin(on_exit);
    // SAFETY: the number of this process in the array of all.
    let number = unsafe { pg_sys::MyProc.offset_from((*pg_sys::ProcGlobal).allProcs) };
    counters().lessee.store(number as i64 + 1, Relaxed);
    bound_resolver();
    warn_of_settings();
    let mut process = Process::new();
    while process.step() {}
    background::end();
}

extern "C-unwind" fn on_exit(_code: i32, _argument: pg_sys::Datum) {
    counters().lessee.store(0, Relaxed);
}

/// The system's resolver waits for a nameserver that is away, and nothing ends that: so not for long.
fn bound_resolver() {
    const VARIABLE: &str = "RES_OPTIONS";
    if std::env::var_os(VARIABLE).is_none() {
        // SAFETY: this process has one thread.
        unsafe { std::env::set_var(VARIABLE, "timeout:1 attempts:2") };
    }
}

/// Logs which settings do not go together.
fn warn_of_settings() {
    let warn = |message: String, detail: &'static str, hint: &'static str| {
        ErrorReport::new(PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE, message, "")
            .set_detail(detail)
            .set_hint(hint)
            .report(PgLogLevel::WARNING);
    };
    if settings::registry::window() > settings::max_lead() {
        warn(
            "pg_snowflake.registry_window is longer than pg_snowflake.max_lead".to_owned(),
            "After a crash, a server may have to start where its old lease ends, which is too far ahead of the clock then.",
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

/// Whether the postmaster stops the server: it notes that in its file.
fn is_server_stopping() -> bool {
    fs::read_to_string("postmaster.pid").is_ok_and(|text| text.lines().nth(7).map(str::trim) == Some("stopping"))
}

/// A request that failed; [`Process::error`] says why.
enum Failed {
    /// It has changed nothing.
    NotDone,
    /// Whether it has changed something is not known.
    PerhapsDone,
}

impl From<Failed> for Answer {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::NotDone => Self::Failed,
            Failed::PerhapsDone => Self::Unknown,
        }
    }
}

/// The state of the process.
struct Process {
    lessee: Lessee,
    /// What is done about segments.
    fetch: Fetch,
    /// Whether it has made a listing, and segments are next.
    has_listed: bool,
    /// How long a call may take for now, where that is less than usual.
    limit: Option<Micros>,
    /// The token of this run.
    token: Token,
    /// This server.
    me: Holder,
    /// Open while it works.
    registry: Option<Box<dyn Registry>>,
    /// Why the last request failed.
    error: String,
    /// Whether the registry's own warnings were logged.
    warned: bool,
    /// How the connection was protected when that was last logged.
    protection: Option<Protection>,
}

impl Process {
    fn new() -> Self {
        let identity = identity();
        let (me, token) = (identity.holder.clone(), identity.token);
        let mut lessee = Lessee::new(*settings::layout(), identity, terms(), settings::wanted(), memory::known_life());
        lessee.trust(settings::registry::is_trusted());
        restore();
        Self {
            lessee,
            fetch: Fetch::new(terms()),
            has_listed: false,
            limit: None,
            token,
            me,
            registry: None,
            error: String::new(),
            warned: false,
            protection: None,
        }
    }

    /// Does one thing, and returns whether there is more to do.
    fn step(&mut self) -> bool {
        if background::reload() {
            self.lessee.configure(terms(), settings::wanted());
            self.fetch.configure(terms());
            self.lessee.trust(settings::registry::is_trusted());
            warn_of_settings();
            // The password may have changed.
            self.registry = None;
        }
        if is_asked_to_end() && GIVE_UP_AT.load(Relaxed) == i64::MIN {
            if !is_server_stopping() {
                return false;
            }
            let longest = if self.error.is_empty() { LONGEST_GIVE_BACK } else { LONGEST_LAST_TRY };
            let by = clock::monotonic_micros() + longest;
            GIVE_UP_AT.store(by.0, Relaxed);
            self.lessee.stop(by);
            self.fetch.stop(by);
        }
        let moment = moment();
        let next = self.lessee.next(&moment);
        // The lease comes first.
        let rests = match &next {
            Next::Wait(length) => Some(Rest::For(*length)),
            Next::Done => Some(Rest::ForGood),
            _ => None,
        };
        if let Some(answer) = self.carry_out(next) {
            self.lessee.answer(&self::moment(), answer);
        }
        let events = self.lessee.take_events();
        events.iter().for_each(|event| self.report(event));
        let spare = rests.as_ref().and_then(Self::spare);
        // Listings and segments take turns.
        let is_stopping = GIVE_UP_AT.load(Relaxed) != i64::MIN;
        let listing = listing::wanted().zip(spare).filter(|_| !is_stopping && !self.has_listed);
        self.has_listed = listing.is_some();
        if let Some(((listing, wanted), spare)) = listing {
            // It takes three requests.
            self.limit = Some(spare / 3);
            self.list(listing, wanted);
            self.limit = None;
            self.publish_news();
            return true;
        }
        let segments = rests.is_some().then(|| self.fetch(moment.chance, spare)).flatten();
        let (sleep, goes_on) = match (rests, segments) {
            (Some(Rest::ForGood), Some(Rest::ForGood)) => (Micros(0), false),
            (Some(Rest::For(lease)), Some(Rest::For(segments))) => (lease.min(segments), true),
            (Some(Rest::For(length)), Some(Rest::ForGood)) | (Some(Rest::ForGood), Some(Rest::For(length))) => {
                (length, true)
            }
            _ => (Micros(0), true),
        };
        self.publish_news();
        if sleep > Micros(0) {
            wait::for_signal(sleep.min(LONGEST_SLEEP));
        }
        goes_on
    }

    /// Returns the answer; `None` where none is due.
    fn carry_out(&mut self, next: Next) -> Option<Answer> {
        let layout = settings::layout();
        Some(match next {
            Next::Wait(_) | Next::Done => return None,
            Next::Namespace => self.ask(|registry| registry.namespace()).map_or_else(Answer::from, Answer::Namespace),
            Next::SetNamespace { expected, record } => {
                let stands = self.ask(|registry| registry.swap_namespace(expected.as_ref(), &record));
                stands.map_or_else(Answer::from, Answer::Namespace)
            }
            Next::Remember(life) => match memory::remember(life) {
                Ok(()) => Answer::Remembered,
                Err(error) => {
                    self.error = format!("The file pg_snowflake.namespaces cannot be written: {error}.");
                    Answer::Failed
                }
            },
            Next::ReadAll => {
                let all = self.ask(|registry| Ok((registry.records()?, registry.time()?)));
                all.map_or_else(Answer::from, |(records, time)| {
                    let records: BTreeMap<_, _> = records.into_iter().collect();
                    let gone = self.gone(&records);
                    Answer::All(Found { records, gone, time })
                })
            }
            Next::Read(worker) => self.ask(|registry| registry.record(worker)).map_or_else(Answer::from, Answer::One),
            Next::Write(Write { worker, expected, record }, namespace) => {
                match self.ask(|registry| registry.swap_within(Some(&namespace), worker, expected, &record)) {
                    Ok(Swap::Stored(version)) => Answer::Stored(version),
                    Ok(Swap::Conflict(found)) => Answer::Conflict(found),
                    Ok(Swap::OtherNamespace(found)) => Answer::OtherNamespace(found),
                    Err(failed) => failed.into(),
                }
            }
            Next::Install(grant) => Answer::Installed(install(&grant)),
            Next::Close => {
                let mut transitions = shared::transitions();
                let mut published = transitions.lease;
                published.close(layout, shared::line());
                transitions.lease = published;
                shared::keep_lease(None, &mut transitions);
                Answer::Closed
            }
        })
    }

    /// How long a call of the registry may take that is not about the lease, which needs nothing for so long.
    fn spare(lease: &Rest) -> Option<Micros> {
        match lease {
            Rest::For(length) => Terms::spare(*length),
            Rest::ForGood => Some(Micros(i64::MAX)),
        }
    }

    /// Does one thing about segments, in so much time; where there is nothing to do, or no time, returns for how long.
    fn fetch(&mut self, chance: u64, spare: Option<Micros>) -> Option<Rest> {
        let namespace = self.lessee.namespace().cloned();
        let next = match self.fetch.next(namespace.as_ref(), chance) {
            Ok(next) => next,
            Err(rest) => return Some(rest),
        };
        // The lease comes first, also the next time.
        if spare.is_none() {
            return Some(Rest::For(LONGEST_SLEEP));
        }
        self.limit = spare;
        let failed = |failed| match failed {
            Failed::NotDone => segment::FetchAnswer::Failed,
            Failed::PerhapsDone => segment::FetchAnswer::Unknown,
        };
        let answer = match next {
            segment::NextFetch::ReadAll => {
                let all = self.ask(|registry| registry.segments());
                all.map_or_else(failed, |all| segment::FetchAnswer::All(all.into_iter().collect()))
            }
            segment::NextFetch::Read(tag) => {
                self.ask(|registry| registry.segment(&tag)).map_or_else(failed, segment::FetchAnswer::One)
            }
            segment::NextFetch::Write(write, namespace) => {
                let worker = self.lessee.held().map(|(worker, _)| worker);
                let holding = worker.zip(self.fetch.holding(self.token, chance));
                match self.ask(|registry| registry.swap_segment_held(&namespace, &write, holding.as_ref())) {
                    Ok(Swap::Stored(version)) => segment::FetchAnswer::Stored(version),
                    Ok(Swap::Conflict(found)) => segment::FetchAnswer::Conflict(found),
                    Ok(Swap::OtherNamespace(_)) => segment::FetchAnswer::OtherNamespace,
                    Err(error) => failed(error),
                }
            }
            // The rest is done.
            _ => segment::FetchAnswer::Failed,
        };
        self.limit = None;
        self.fetch.answer(namespace.as_ref(), chance, answer);
        None
    }

    /// The workers that were leased by processes of this machine which are gone, for the same data directory.
    fn gone(&self, records: &BTreeMap<WorkerNumber, Stored>) -> BTreeSet<WorkerNumber> {
        let Holder { host, data_directory, system_identifier, process, .. } = &self.me;
        let is_mine = |holder: &Holder| {
            (&holder.host, &holder.data_directory, holder.system_identifier)
                == (host, data_directory, *system_identifier)
        };
        let is_gone = |stored: &Stored| {
            let holder = &stored.record.holder;
            is_mine(holder) && incarnation::is_gone(&holder.process, process)
        };
        records.iter().filter(|(_, stored)| is_gone(stored)).map(|(worker, _)| *worker).collect()
    }

    /// Asks the registry, which is opened first where it is not.
    fn ask<T>(&mut self, question: impl FnOnce(&mut dyn Registry) -> Result<T, registry::Error>) -> Result<T, Failed> {
        let limit = self.limit.map(|limit| Duration::from_micros(limit.0.unsigned_abs()));
        let question = |registry: &mut dyn Registry| {
            registry.limit(limit);
            question(registry)
        };
        let asked = match &mut self.registry {
            Some(registry) => question(registry.as_mut()),
            None => open().and_then(|mut registry| {
                let answer = question(registry.as_mut());
                self.registry = Some(registry);
                answer
            }),
        };
        match asked {
            Ok(answer) => {
                self.warn_once();
                self.note_protection();
                self.error.clear();
                Ok(answer)
            }
            Err(error) => {
                self.error = sentence(&error.to_string());
                Err(if error.is_unanswered() { Failed::PerhapsDone } else { Failed::NotDone })
            }
        }
    }

    /// Logs what keeps the registry from promising what it must, and who may do too much there, once it is known.
    fn warn_once(&mut self) {
        if self.warned {
            return;
        }
        let found = self.registry.as_mut().map(|registry| Ok((registry.warnings()?, registry.exposures()?)));
        if let Some(Ok::<_, registry::Error>((warnings, exposures))) = found {
            self.warned = true;
            for exposure in exposures {
                let code = PgSqlErrorCode::ERRCODE_WARNING;
                ErrorReport::new(code, "the registry of worker IDs gives a role more rights than it needs", "")
                    .set_detail(exposure)
                    .set_hint(
                        "Whoever has them may come by leases, or have code run as another role: see docs/security.md.",
                    )
                    .report(PgLogLevel::WARNING);
            }
            for warning in warnings {
                let code = PgSqlErrorCode::ERRCODE_WARNING;
                ErrorReport::new(code, "the registry of worker IDs may lose what it has stored", "")
                    .set_detail(warning)
                    .set_hint("With a registry that loses what it has stored, two servers can have the same worker ID: see docs/leases.md.")
                    .report(PgLogLevel::WARNING);
            }
            self.log_unseen();
        }
    }

    /// Logs which of that it cannot see. A user who may see no more than he needs is no fault.
    fn log_unseen(&mut self) {
        let unseen = self.registry.as_mut().and_then(|registry| registry.unseen().ok()).unwrap_or_default();
        if !unseen.is_empty() {
            let message = "the registry of worker IDs does not show all of its settings";
            ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, "")
                .set_detail(unseen.join(" "))
                .report(PgLogLevel::LOG);
        }
    }

    /// Logs how the connection is protected, where that has changed.
    fn note_protection(&mut self) {
        let protection = self.registry.as_ref().and_then(|registry| registry.protection());
        if protection.is_none() || protection == self.protection {
            return;
        }
        if let (Some(protection), Ok(url)) = (protection, settings::registry::url_with_password()) {
            report::protection(protection, &url);
        }
        self.protection = protection;
    }

    fn report(&self, event: &Event) {
        report::log(event, &self.error);
        if let Some(trouble) = report::trouble(event) {
            shared::lease_news().trouble.set(&trouble);
        }
        if matches!(event, Event::Gained(_)) {
            shared::lease_news().trouble.clear();
        }
    }

    /// Tells sessions the news.
    fn publish_news(&self) {
        let mut news = shared::lease_news();
        news.error.set(&self.error);
    }

    /// Reads all records for [`listing`].
    fn list(&mut self, listing: Listing, wanted: i64) {
        let text = self.ask(|registry| match listing {
            Listing::Workers => Ok(registry::listing::write(&registry.records()?)),
            Listing::Segments => {
                let (segments, holdings) = (registry.segments()?, registry.holdings()?);
                Ok(registry::listing::write_segments(&segments, &holdings, &registry.records()?))
            }
        });
        let listed = text.map_err(|_| self.error.clone()).and_then(|text| listing.write(&text));
        listing.answer(wanted, listed);
    }
}

fn open() -> Result<Box<dyn Registry>, registry::Error> {
    let url = settings::registry::url_with_password().map_err(registry::Error::Invalid)?;
    let namespace = registry::Namespace::new(&settings::registry::namespace())
        .map_err(|error| registry::Error::Invalid(error.to_string()))?;
    // A renewal that hangs must leave time for the next one.
    let deadline = (settings::registry::window() / 6).min(Micros::from_secs(3));
    let stop =
        Stop::when(|| is_asked_to_end() && clock::monotonic_micros() >= MonotonicMicros(GIVE_UP_AT.load(Relaxed)));
    let deadline = Some(Duration::from_micros(deadline.0.unsigned_abs()));
    let options = Options { deadline, stop, resolver: resolver::apart() };
    registry::open(&url, &namespace, &options)
}

fn terms() -> Terms {
    Terms { window: settings::registry::window(), max_lead: settings::max_lead(), max_jump: settings::max_jump() }
}

fn moment() -> Moment {
    let now = believed::now();
    let seen = shared::transitions().lease.look(settings::layout(), shared::line());
    let mut chance = 0_u64;
    // SAFETY: fills so many bytes. Without a random number, there is no jitter.
    unsafe { pg_sys::pg_strong_random((&raw mut chance).cast(), size_of::<u64>()) };
    Moment { now, monotonic: clock::monotonic_micros(), seen, chance }
}

/// After the crash of a session, brings the grant of the run before to the sessions again: the token is the same, so it is still this
/// server's, also while the registry is away.
fn restore() {
    let has_lease = shared::transitions().lease.end.is_some();
    if let Some(grant) = shared::kept_lease().filter(|_| !has_lease) {
        // Where it cannot be installed any more, the registry has a later one.
        let _ = install(&grant);
    }
}

/// Brings a grant to the sessions.
fn install(grant: &Grant) -> Result<(), NotInstalled> {
    let layout = settings::layout();
    let mut transitions = shared::transitions();
    let mut published = transitions.lease;
    published.install(layout, shared::line(), grant)?;
    transitions.lease = published;
    shared::keep_lease(Some(*grant), &mut transitions);
    if let Some(bits) = layout.place_number(grant.worker.0) {
        worker::note(layout, bits, &mut transitions);
    }
    Ok(())
}
