//! Segments: plain numbers, 1, 2, 3, …, by tag, that are unique over all servers of a namespace. A registry grants ranges of
//! them to servers, which hold two in memory: one in use, and the one that comes after. So no number needs a round trip. Here are
//! the decisions; their caller talks to the registry, and reads and changes what they are about.
//!
//! The registry has one record for each tag: the next number that was not granted. Nobody owns a record: each grant raises it.
//!
//! The rules, which this module keeps, and which the model in `model/` breaks one by one to show what each is for:
//!
//! 1. A grant raises the record's next number by a compare-and-swap on the version that was read ([`grant`]). Comparing the number
//!    is not enough: it goes down where a rest is given back.
//! 2. Only what the registry has confirmed is a grant, and only by the answer to that request. Where no answer comes, what was
//!    asked for is abandoned: a gap. What can be read may not be durable yet, so it is no confirmation.
//! 3. A range is put in place when nothing is left of the one before, its start before its end ([`Counter::install`]).
//! 4. Ranges are used in the order of grants: those of one server rise.
//! 5. A range is in memory only. A server that has crashed has none, nor has a copy of its data directory.
//! 6. A stop closes the counter, then gives back what is left, but only where the record's next number is the end of what this
//!    server holds, and it has stored that version itself: then nothing was granted since, nor after a rollback up to the same number.
//!    What lies between two ranges is somebody else's ([`give_back`]).
//! 7. A tag without a record is an error, and never begins anew: the registry may have forgotten it. Each server puts on record what
//!    it was granted, and the tag stays an error until somebody creates it, who goes on above ([`restore`]).
//! 8. A record whose next number is below the end of what a server holds was rolled back. That server raises it ([`restore`]), and
//!    is granted nothing below its own ([`grant`]).
//! 9. A tag that is dropped keeps its record. Created again, it goes on above ([`drop_tag`], [`create`]).
//! 10. Every write also expects the namespace's record as it was read, as those of leases do: so a creation that was under way
//!     when the registry was wiped creates nothing.
//!
//! A range is sized by time ([`RangeTerms`]). [`Fetcher`] puts these together: it says what to do next, and is told what came of it.
//!
//! ```
//! use snowflake_core::segment::{Sizes, Counter, Held, NewSegment, Range, StoredTag, Tag, create, give_back, grant};
//! use snowflake_core::lease::Version;
//!
//! let tag = Tag::new("orders")?;
//! let plan = NewSegment { first: 1, last: 2_147_483_647, bounds: Sizes::of(2_147_483_647) };
//! let created = create(&tag, None, &plan, 0)?;
//! // The registry stores it, and says with which version.
//! let stored = StoredTag { version: Version(1), record: created.record };
//! let (write, range) = grant(&tag, Some(&stored), 10, 0)?;
//! assert_eq!(range, Range { first: 1, end: 11 });
//!
//! // Once that is stored: in shared memory.
//! let counter = Counter::new();
//! assert!(counter.install(range));
//! assert_eq!(counter.claim(1), Some(Range { first: 1, end: 2 }));
//! assert_eq!(counter.claim(3), Some(Range { first: 2, end: 5 }));
//!
//! // The server stops.
//! let held = Held { current: counter.close(), after: None };
//! let stored = StoredTag { version: Version(2), record: write.record };
//! assert_eq!(give_back(&tag, &stored, &held).unwrap().record.next, 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod change;
mod fetcher;
mod held;
mod holding;
mod record;
mod steps;
mod terms;
mod trouble;

pub use change::{NewSegment, TagRefusal, TagWrite, create, drop_tag, give_back, grant, raise, restore};
pub use fetcher::Fetcher;
pub use held::{Counter, Held};
pub use holding::{Holding, run_of};
pub use record::{Range, Sizes, State, StoredTag, Tag, TagError, TagRecord};
pub use steps::{Answer, Moment, Next, NotDone, Request, Slot, TagEvent, TagStanding};
pub use terms::{RangeTerms, Use};
pub use trouble::Trouble;
