//! The connection of the process with the registry: it is opened when something is asked first, and what is known of it goes into the log
//! once. Where the password or a certificate may be refused, it is opened anew, which reads their files.

use super::{report, resolver};
use crate::postgres::background::is_asked_to_end;
use crate::postgres::time::clock;
use crate::postgres::wording::sentence;
use crate::settings;
use snowflake_core::lease::Answer;
use snowflake_core::segment;
use snowflake_core::{Micros, MonotonicMicros};
use snowflake_registry::{self as registry, Options, Protection, Registry, Stop};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

/// While the server stops: when calls of the registry end, by the monotonic clock.
static GIVE_UP_AT: AtomicI64 = AtomicI64::new(i64::MIN);

/// The server stops: from this time on, calls of the registry end.
pub fn give_up_at(by: MonotonicMicros) {
    GIVE_UP_AT.store(by.0, Relaxed);
}

/// Whether it is settled when calls of the registry end, as the server stops.
pub fn is_to_give_up() -> bool {
    GIVE_UP_AT.load(Relaxed) != i64::MIN
}

/// A request that failed; [`Connection::error`] says why.
pub enum Failed {
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

impl From<Failed> for segment::Answer {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::NotDone => Self::Failed,
            Failed::PerhapsDone => Self::Unknown,
        }
    }
}

/// See the module.
#[derive(Default)]
pub struct Connection {
    /// Open while it works.
    registry: Option<Box<dyn Registry>>,
    /// Why the last request failed; empty where it did not.
    pub error: String,
    /// How long a call may take for now, where that is less than usual.
    limit: Option<Micros>,
    /// Whether the registry's own warnings were logged.
    warned: bool,
    /// How the connection was protected when that was last logged.
    protection: Option<Protection>,
}

impl Connection {
    /// The next request opens another one.
    pub fn close(&mut self) {
        self.registry = None;
    }

    /// Does this, with calls of the registry that take no longer than so much.
    pub fn within<T>(&mut self, limit: Option<Micros>, work: impl FnOnce(&mut Self) -> T) -> T {
        self.limit = limit;
        let result = work(self);
        self.limit = None;
        result
    }

    /// Asks the registry, which is opened first where it is not.
    ///
    /// # Errors
    /// Where it does not answer, or refuses.
    pub fn ask<T>(
        &mut self,
        question: impl FnOnce(&mut dyn Registry) -> Result<T, registry::Error>,
    ) -> Result<T, Failed> {
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
                if error.may_be_of_old_files() {
                    self.close();
                }
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
        let Some(registry) = &mut self.registry else { return };
        let found = registry.warnings().and_then(|warnings| Ok((warnings, registry.exposures()?)));
        if let Ok((warnings, exposures)) = found {
            self.warned = true;
            report::exposures(&exposures);
            report::shortcomings(&warnings);
            // A user who may see no more than he needs is no fault.
            report::unseen(&registry.unseen().unwrap_or_default());
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
