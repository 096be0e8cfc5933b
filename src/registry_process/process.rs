//! The process that leases the server's worker, renews the lease and gives it back: the only one that talks to the registry. It runs on
//! a primary, is connected to no database, and holds no lock while it waits. It may be lost at any time: the next one finds the lease
//! again by its token. [`Lessee`] decides what it does next.

use super::connection::{Connection, give_up_at, is_to_give_up};
use super::fetch::{Fetch, Rest};
use super::identity::{identity, random};
use super::listing::Listing;
use super::{incarnation, listing, memory, report, wake};
use crate::postgres::background::{self, is_asked_to_end};
use crate::postgres::time::{clock, wait};
use crate::server::{believed, worker};
use crate::{settings, shared};
use pgrx::prelude::*;
use snowflake_core::Micros;
use snowflake_core::lease::{
    Answer, Event, Found, Grant, Holder, Lessee, Moment, Next, NotInstalled, Stored, Terms, Token, WorkerNumber, Write,
};
use snowflake_core::segment::{self, Holding};
use snowflake_registry::{self as registry, Swap};
use std::collections::{BTreeMap, BTreeSet};

/// How long a stop of the server waits for the registry to take the worker back.
const LONGEST_GIVE_BACK: Micros = Micros::from_secs(3);

/// The same, where the registry has not answered the last request either.
const LONGEST_LAST_TRY: Micros = Micros::from_millis(500);

/// The longest sleep. Not needed for anything; bounds what a wake-up that was missed costs.
const LONGEST_SLEEP: Micros = Micros::from_secs(10);

/// Registers it. Called while the library is preloaded.
pub fn init() {
    background::register("pg_snowflake lease", "pg_snowflake_lease");
}

/// The process.
#[pg_guard]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn pg_snowflake_lease(_argument: pg_sys::Datum) {
    background::begin(on_exit);
    // This process was started with the postmaster's configuration. If that has changed since, the signal was ignored.
    background::read_configuration();
    wake::enter();
    bound_resolver();
    report::settings_at_odds();
    let mut process = Process::new();
    process.show_trouble();
    while process.step() {}
    background::end();
}

extern "C-unwind" fn on_exit(_code: i32, _argument: pg_sys::Datum) {
    wake::leave();
}

/// The system's resolver waits for a nameserver that is away, and nothing ends that: so not for long.
fn bound_resolver() {
    const VARIABLE: &str = "RES_OPTIONS";
    if std::env::var_os(VARIABLE).is_none() {
        // SAFETY: nothing reads the environment meanwhile: this process has one thread, until it asks the resolver.
        unsafe { std::env::set_var(VARIABLE, "timeout:1 attempts:2") };
    }
}

/// The state of the process.
struct Process {
    lessee: Lessee,
    /// What is done about segments.
    fetch: Fetch,
    /// Whether it has made a listing, and segments are next.
    has_listed: bool,
    /// The token of this run.
    token: Token,
    /// This server.
    me: Holder,
    registry: Connection,
    /// Why the last request about the lease failed, and the last one about segments; empty where it did not.
    errors: [String; 2],
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
            token,
            me,
            registry: Connection::default(),
            errors: [const { String::new() }; 2],
        }
    }

    /// Does one thing, and returns whether there is more to do.
    fn step(&mut self) -> bool {
        if background::reload() {
            self.configure();
        }
        if is_asked_to_end() && !is_to_give_up() {
            if !background::is_server_stopping() {
                return false;
            }
            self.begin_to_stop();
        }
        let moment = moment();
        // The lease comes first. What is left of the time is for the rest.
        let lease = self.lease(&moment);
        let spare = lease.as_ref().and_then(Rest::spare);
        // Listings and segments take turns.
        self.has_listed = !self.has_listed && self.list_if_wanted(spare);
        let rest = match lease {
            Some(lease) if !self.has_listed => self.fetch(moment.chance, spare).map(|segments| lease.and(segments)),
            _ => None,
        };
        self.show_trouble();
        if let Some(Rest::For(length)) = rest
            && length > Micros(0)
        {
            wait::for_signal(length.min(LONGEST_SLEEP));
        }
        !matches!(rest, Some(Rest::ForGood))
    }

    /// Shows sessions what keeps the server from its lease, and from numbers of segments.
    fn show_trouble(&self) {
        let [lease_error, segments_error] = &self.errors;
        let lease = self.lessee.trouble().map(|trouble| report::lease_trouble(&trouble, lease_error));
        let segments = self.fetch.trouble().map(|trouble| report::segments_trouble(&trouble, segments_error));
        let mut news = shared::lease_news();
        news.lease.set(lease.as_deref().unwrap_or_default());
        news.segments.set(segments.as_deref().unwrap_or_default());
        news.segments_error.set(segments_error);
    }

    /// The settings have changed.
    fn configure(&mut self) {
        self.lessee.configure(terms(), settings::wanted());
        self.fetch.configure(terms());
        self.lessee.trust(settings::registry::is_trusted());
        report::settings_at_odds();
        // The password may have changed.
        self.registry.close();
    }

    /// The server stops: what it holds is given back, in so much time.
    fn begin_to_stop(&mut self) {
        let longest = if self.registry.error.is_empty() { LONGEST_GIVE_BACK } else { LONGEST_LAST_TRY };
        let by = clock::monotonic_micros() + longest;
        give_up_at(by);
        self.lessee.stop(by);
        self.fetch.stop(by);
    }

    /// Does one thing about the lease; where there is nothing to do, returns for how long.
    fn lease(&mut self, moment: &Moment) -> Option<Rest> {
        let next = self.lessee.next(moment);
        let rest = match &next {
            Next::Wait(length) => Some(Rest::For(*length)),
            Next::Done => Some(Rest::ForGood),
            _ => None,
        };
        let asks = !matches!(next, Next::Install(_) | Next::Close);
        if let Some(answer) = self.carry_out(next) {
            if asks {
                self.errors[0].clone_from(&self.registry.error);
            }
            self.lessee.answer(&self::moment(), answer);
        }
        let events = self.lessee.take_events();
        events.iter().for_each(|event| self.report(event));
        rest
    }

    /// Makes a listing in so much time, where sessions wait for one. Returns whether it did.
    fn list_if_wanted(&mut self, spare: Option<Micros>) -> bool {
        let wanted = listing::wanted().zip(spare).filter(|_| !is_to_give_up());
        if let Some(((listing, number), spare)) = wanted {
            // It takes three requests.
            let listed = self.registry.within(Some(spare / 3), |registry| list(registry, listing));
            listing.answer(number, listed);
        }
        wanted.is_some()
    }

    /// Returns the answer; `None` where none is due.
    fn carry_out(&mut self, next: Next) -> Option<Answer> {
        let layout = settings::layout();
        Some(match next {
            Next::Wait(_) | Next::Done => return None,
            Next::Namespace => {
                self.registry.ask(|registry| registry.namespace()).map_or_else(Answer::from, Answer::Namespace)
            }
            Next::SetNamespace { expected, record } => {
                let stands = self.registry.ask(|registry| registry.swap_namespace(expected.as_ref(), &record));
                stands.map_or_else(Answer::from, Answer::Namespace)
            }
            Next::Remember(life) => match memory::remember(life) {
                Ok(()) => {
                    self.registry.error.clear();
                    Answer::Remembered
                }
                Err(error) => {
                    self.registry.error = format!("The file pg_snowflake.namespaces cannot be written: {error}.");
                    Answer::Failed
                }
            },
            Next::ReadAll => {
                let all = self.registry.ask(|registry| Ok((registry.records()?, registry.time()?)));
                all.map_or_else(Answer::from, |(records, time)| {
                    let records: BTreeMap<_, _> = records.into_iter().collect();
                    let gone = self.gone(&records);
                    Answer::All(Found { records, gone, time })
                })
            }
            Next::Read(worker) => {
                self.registry.ask(|registry| registry.record(worker)).map_or_else(Answer::from, Answer::One)
            }
            Next::Write(Write { worker, expected, record }, namespace) => {
                match self.registry.ask(|registry| registry.swap_within(Some(&namespace), worker, expected, &record)) {
                    Ok(Swap::Stored(version)) => Answer::Stored(version),
                    Ok(Swap::Conflict(found)) => Answer::Conflict(found),
                    Ok(Swap::OtherNamespace(found)) => Answer::OtherNamespace(found),
                    Err(failed) => failed.into(),
                }
            }
            Next::Install(grant) => {
                // Before a session can have an ID.
                shared::lease_news().lease.clear();
                Answer::Installed(install(&grant))
            }
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

    /// Does one thing about segments, in so much time; where there is nothing to do, or no time, returns for how long.
    fn fetch(&mut self, chance: u64, spare: Option<Micros>) -> Option<Rest> {
        let namespace = self.lessee.namespace_of_segments(believed::now()).cloned();
        let next = match self.fetch.next(namespace.as_ref(), chance) {
            Ok(next) => next,
            Err(rest) => return Some(rest),
        };
        // The lease comes first, also the next time.
        if spare.is_none() {
            return Some(Rest::For(LONGEST_SLEEP));
        }
        let worker = self.lessee.held().map(|(worker, _)| worker);
        let holding = || worker.zip(self.fetch.holding(self.token, chance));
        let answer = self.registry.within(spare, |registry| fetched(registry, next, holding));
        self.errors[1].clone_from(&self.registry.error);
        if answer == segment::Answer::OtherNamespace {
            self.lessee.look();
        }
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

    fn report(&self, event: &Event) {
        report::log(event, &self.errors[0]);
    }
}

/// Asks the registry for what is to be done next about segments.
fn fetched(
    registry: &mut Connection,
    next: segment::Next,
    holding: impl FnOnce() -> Option<(WorkerNumber, Holding)>,
) -> segment::Answer {
    match next {
        segment::Next::ReadAll => {
            let all = registry.ask(|registry| registry.segments());
            all.map_or_else(segment::Answer::from, |all| segment::Answer::All(all.into_iter().collect()))
        }
        segment::Next::Read(tag) => {
            registry.ask(|registry| registry.segment(&tag)).map_or_else(segment::Answer::from, segment::Answer::One)
        }
        segment::Next::Write(write, namespace) => {
            let holding = holding();
            match registry.ask(|registry| registry.swap_segment_held(&namespace, &write, holding.as_ref())) {
                Ok(Swap::Stored(version)) => segment::Answer::Stored(version),
                Ok(Swap::Conflict(found)) => segment::Answer::Conflict(found),
                Ok(Swap::OtherNamespace(_)) => segment::Answer::OtherNamespace,
                Err(failed) => failed.into(),
            }
        }
        // `Fetch` has done the rest itself.
        _ => segment::Answer::Failed,
    }
}

/// Reads all records for [`listing`], and writes them down.
fn list(registry: &mut Connection, listing: Listing) -> Result<(), String> {
    let text = registry.ask(|registry| match listing {
        Listing::Workers => Ok(registry::listing::write(&registry.records()?)),
        Listing::Segments => {
            let (segments, holdings) = (registry.segments()?, registry.holdings()?);
            Ok(registry::listing::write_segments(&segments, &holdings, &registry.records()?))
        }
    });
    listing.write(&text.map_err(|_| registry.error.clone())?)
}

fn terms() -> Terms {
    Terms { window: settings::registry::window(), max_lead: settings::max_lead(), max_jump: settings::max_jump() }
}

fn moment() -> Moment {
    let now = believed::now();
    let seen = shared::transitions().lease.look(settings::layout(), shared::line());
    // Without a random number, there is no jitter.
    let chance = random().map_or(0, u64::from_ne_bytes);
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
