//! Leases of worker IDs: a lease is a worker and a range of ID time, which a registry grants to one server. So no two
//! servers can make the same ID, whatever their clocks say, and however late their requests arrive. Here are the
//! decisions; their caller talks to the registry, and reads and changes what they are about.
//!
//! The registry has one record for each worker: who owns it, and from when until when that server may make IDs. A grant
//! is never taken back before its end: whoever takes a worker over starts where the grant ends that was found. A server
//! that hears nothing of that goes on up to the end of its own grant, and no further.
//!
//! The rules, which this module keeps, and which the model in `model/` breaks one by one to show what each is for:
//!
//! 1. A grant is half-open. Both ends become ticks by rounding up ([`Layout::first_tick_from`]). What is given back is
//!    the start of the tick after the last one touched.
//! 2. Every write expects the version that was read ([`Write`]).
//! 3. A record says where its grant began. Whoever goes on with a record, also with its own, first raises the line to
//!    that instant ([`lease`], [`Published::actions`]).
//! 4. A grant is stored, then the line is raised, then the worker switched, then the end published.
//! 5. A grant that ends before a end published in this run is renewed before it is installed
//!    ([`NotInstalled::RenewFirst`]).
//! 6. A stop closes the line ([`Published::close`]), then gives back what was not used, but nothing before the grant's
//!    start ([`give_back`]).
//! 7. A worker that is not beside the line can be given back without that.
//! 8. Among free workers, a server takes its own last one, or else any, by chance ([`Search::choose`]).
//! 9. Where none is free, a server takes over its own old worker above its grant: at once where it is known that the
//!    process which leased it is gone, otherwise when the record has not changed for half a window ([`Watch`]). Host and
//!    data directory prove nothing: a copy of a machine has the same.
//! 10. An outage of the registry is harmless for as long as the window, less the time between renewals ([`Terms`]).
//! 11. The line is lowered by hand to the grant's start at most ([`Published::lowest_tick`]), which is on record before
//!     its worker is in use ([`Action::Switch`]).
//! 12. After a session's crash, which the token survives, the server goes on with its grant, which the postmaster
//!     remembers until the line is closed; or it finds it again in the registry. What was used of it is
//!     known again when the line was raised to the reservation ([`Published::resumed`]).
//! 13. Only what the registry has confirmed is a grant. A record that is read back after an answer was lost may be
//!     visible and not durable: it is written again from the version that was found, and the answer to that counts.
//!
//! 14. Every write also expects the namespace's record as it was read ([`NamespaceRecord`]). A server that has known the
//!     namespace, and finds that the registry has forgotten it, a record of its own or such a mark, puts on record from
//!     when on new leases are safe ([`check_namespace`]): none is given before, and none begins before. That is by the
//!     latest time that anything shows, as its own clock may be slow. A clock that is far ahead, its own or another, is
//!     looked at for a minute first, or until a lease has to be renewed. Whose grant is not over by the clock goes on,
//!     and stores its record again. The record says in which registry it was confirmed, too: any server, also one that
//!     knows nothing, does the same where it finds it in another one.
//!
//! 15. A grant of a server that is gone for certain can be shortened by hand, by somebody who has made sure that no ID
//!     above the new end is kept ([`shorten`]).
//!
//! [`Lessee`] puts these together: it says what to do next, and is told what came of it.
//!
//! ```
//! use snowflake_core::lease::{Answer, Found, Holder, Identity, Lessee, Moment, Next, Published, Terms, Token, Version, Wanted};
//! use snowflake_core::{Layout, Line, Micros, MonotonicMicros, UnixMicros};
//!
//! let layout: Layout = "default".parse()?;
//! let me = Identity { token: Token(0x5ec7e7), holder: Holder { host: "db1".into(), ..Holder::default() } };
//! let terms = Terms { window: Micros::from_secs(60), max_lead: Micros::from_secs(600), max_jump: Micros::from_secs(10) };
//! let mut lessee = Lessee::new(layout, me, terms, Wanted::any(&layout), None);
//!
//! // In shared memory, guarded by the lock for transitions.
//! let (line, mut published) = (Line::new(), Published::new(true));
//! assert_eq!(published.limit(&layout), None); // no lease yet
//!
//! let now = UnixMicros::parse("2026-01-01T00:00:00Z").unwrap();
//! let mut wait = None;
//! while wait.is_none() {
//!     let seen = published.look(&layout, &line);
//!     let moment = Moment { now, monotonic: MonotonicMicros(0), seen, chance: 4 };
//!     let answer = match lessee.next(&moment) {
//!         Next::Wait(length) => {
//!             wait = Some(length);
//!             continue;
//!         }
//!         // The registry is empty, and stores what it is told.
//!         Next::Namespace => Answer::Namespace(None),
//!         Next::SetNamespace { record, .. } => Answer::Namespace(Some(record)),
//!         Next::Remember(_) => Answer::Remembered,
//!         Next::ReadAll => Answer::All(Found::default()),
//!         Next::Write(write, _) => {
//!             assert_eq!((write.worker.0, write.expected), (4, None));
//!             Answer::Stored(Version(1))
//!         }
//!         Next::Install(grant) => Answer::Installed(published.install(&layout, &line, &grant)),
//!         other => unreachable!("{other:?}"),
//!     };
//!     lessee.answer(&moment, answer);
//! }
//! let limit = published.limit(&layout).unwrap();
//! assert_eq!(layout.start_of(limit), now + terms.window - Micros::from_millis(1));
//! assert!(wait < Some(terms.window / 3)); // the renewal
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Layout::first_tick_from`]: crate::Layout::first_tick_from
mod change;
mod choice;
mod lessee;
mod namespace;
mod published;
mod record;
mod steps;
mod terms;
mod trouble;

pub use change::{Identity, Write, give_back, is_current, lease, shorten};
pub use choice::{Choice, NoWorker, Search, Taken, Wanted, Watch, Why};
pub use lessee::Lessee;
pub use namespace::{Known, NamespaceRecord, OtherLayout, check_namespace, may_have_forgotten};
pub use published::{Action, Grant, NotInstalled, Published, Seen};
pub use record::{Holder, Record, Stored, Token, Version, WorkerNumber};
pub use steps::{Answer, Event, Found, Moment, Next};
pub use terms::Terms;
pub use trouble::Trouble;
