//! Numbers of segments, for this session. The hot path is one compare-and-swap on the tag's counter in shared memory. Where its range
//! is used up, the session puts the next one in place, or waits for the process that fetches it.

use super::patience::waited_since;
use crate::errors::Error;
use crate::errors::segments::{Collisions, SegmentError};
use crate::postgres::time::clock;
use crate::registry_process::{self, lease};
use crate::shared::segments::{self, Kind, Outcome, SlotState, TagPlace};
use crate::shared::waits::{self, Wait};
use crate::{settings, shared};
use snowflake_core::segment::{Range, Slot, Tag, TagRefusal, TagStanding};
use snowflake_core::{Micros, MonotonicMicros};
use std::sync::atomic::Ordering::Relaxed;

/// How long somebody waits who creates, raises or drops a tag.
const LONGEST_REQUEST: Micros = Micros::from_secs(10);

/// Claims the next numbers of a tag: at least one, at most `want` (at least 1). Waits where the settings say so.
///
/// # Errors
/// Where no number can be taken, or not before `pg_snowflake.max_wait` is over.
pub fn claim(tag: &Tag, want: u64) -> Result<(&'static TagPlace, Range), Error> {
    check("snowflake_segment_next").and_then(|()| claim_or_wait(tag, want)).inspect_err(|_| {
        if shared::exists() {
            shared::counters().errors.fetch_add(1, Relaxed);
        }
    })
}

/// What a session finds of a tag.
enum Taking {
    Numbers(Range),
    /// Another range was put in place.
    Again,
    /// The process has not fetched it yet.
    Wait,
    UsedUp,
    /// The tag is not there any more, as was last known.
    Gone,
    Stopping,
}

fn claim_or_wait(tag: &Tag, want: u64) -> Result<(&'static TagPlace, Range), Error> {
    let mut since = None;
    loop {
        let Some(slot) = segments::find(tag) else {
            attach(tag, &mut since)?;
            continue;
        };
        let place = segments::place(slot);
        match look(slot, place, want) {
            Taking::Numbers(range) => return Ok((place, range)),
            // The range after this one is to be fetched.
            Taking::Again => registry_process::wake(),
            Taking::Wait => wait(tag, &mut since)?,
            Taking::UsedUp => {
                let last = segments::lock().states[slot].record.map_or(0, |record| record.last);
                return Err(SegmentError::UsedUp { tag: tag.clone(), last }.into());
            }
            // Somebody may have created it again.
            Taking::Gone => {
                attach(tag, &mut since)?;
                wait(tag, &mut since)?;
            }
            Taking::Stopping => return Err(SegmentError::Stopping.into()),
        }
    }
}

fn look(slot: Slot, place: &TagPlace, want: u64) -> Taking {
    if let Some(range) = place.counter.claim(want) {
        return Taking::Numbers(range);
    }
    let mut segments = segments::lock();
    let state = &mut segments.states[slot];
    if state.closed.is_some() {
        return Taking::Stopping;
    }
    if place.counter.left().count() > 0 || state.go_on(place) {
        return Taking::Again;
    }
    match state.standing {
        TagStanding::Live => Taking::Wait,
        TagStanding::UsedUp => Taking::UsedUp,
        TagStanding::Dropped | TagStanding::Missing => Taking::Gone,
    }
}

/// Has the process look for a tag.
fn attach(tag: &Tag, since: &mut Option<MonotonicMicros>) -> Result<(), Error> {
    loop {
        match request(tag, Kind::Attach, settings::max_wait() - waited_since(since))? {
            Outcome::Failed | Outcome::Unknown => wait(tag, since)?,
            outcome => return done(tag, outcome).map(drop),
        }
    }
}

/// Waits a moment.
///
/// # Errors
/// Once the call has waited for `pg_snowflake.max_wait`.
fn wait(tag: &Tag, since: &mut Option<MonotonicMicros>) -> Result<(), Error> {
    let is_first = since.is_none();
    let waited = waited_since(since);
    if waited >= settings::max_wait() {
        let collisions = segments::find(tag).and_then(collisions);
        return Err(SegmentError::NoNumbers {
            tag: tag.clone(),
            trouble: lease::trouble_of_segments(),
            collisions,
            waited,
        }
        .into());
    }
    if is_first && let Some(slot) = segments::find(tag) {
        segments::lock().states[slot].waits += 1;
    }
    leave_to_process(waited);
    Ok(())
}

/// Where servers collide on the tag, as its largest range is too small.
fn collisions(slot: Slot) -> Option<Collisions> {
    let SlotState { conflicts, too_small, .. } = segments::lock().states[slot];
    too_small.map(|(largest, enough)| Collisions { conflicts, largest, enough })
}

/// Wakes the process up, and sleeps, and counts that. Mostly, the process is about to have what is waited for.
fn leave_to_process(waited: Micros) {
    registry_process::wake();
    let length = (waited / 4).clamp(Micros::from_millis(1), Micros::from_millis(50));
    let counters = shared::counters();
    counters.waits.fetch_add(1, Relaxed);
    counters.wait_time.fetch_add(waits::sleep(length, Wait::Segment).0, Relaxed);
}

/// Has the process do something, and waits for it.
fn request(tag: &Tag, kind: Kind, longest: Micros) -> Result<Outcome, Error> {
    let start = clock::monotonic_micros();
    let mut number = None;
    loop {
        {
            let requests = &mut segments::lock().requests;
            number = number.or_else(|| requests.place(tag, kind));
            if let Some(outcome) = number.and_then(|number| requests.outcome(number)) {
                return Ok(outcome);
            }
        }
        let waited = clock::monotonic_micros() - start;
        if waited >= longest {
            return Ok(if number.is_some() { Outcome::Unknown } else { Outcome::Failed });
        }
        leave_to_process(waited);
    }
}

/// Has a tag created, raised or dropped. Returns its next number by the registry.
///
/// # Errors
/// Where that was not done, or it is not known whether it was.
pub fn change(function: &'static str, tag: &Tag, kind: Kind) -> Result<u64, Error> {
    check(function)?;
    done(tag, request(tag, kind, LONGEST_REQUEST)?)
}

fn done(tag: &Tag, outcome: Outcome) -> Result<u64, Error> {
    let tag = || tag.clone();
    Err(match outcome {
        Outcome::Done(next) => return Ok(next),
        Outcome::Refused(TagRefusal::Missing) => SegmentError::Unknown { tag: tag() },
        Outcome::Refused(TagRefusal::Dropped) => SegmentError::Dropped { tag: tag() },
        Outcome::Refused(TagRefusal::Exists) => SegmentError::Exists { tag: tag() },
        Outcome::Refused(TagRefusal::UsedUp { last }) => SegmentError::UsedUp { tag: tag(), last },
        Outcome::Refused(TagRefusal::AboveLast { last }) => SegmentError::AboveLast { tag: tag(), last },
        Outcome::Full => SegmentError::Full { tag: tag() },
        Outcome::Failed => {
            SegmentError::NotAnswered { tag: tag(), is_unknown: false, trouble: lease::trouble_of_segments() }
        }
        Outcome::Unknown => {
            SegmentError::NotAnswered { tag: tag(), is_unknown: true, trouble: lease::trouble_of_segments() }
        }
    }
    .into())
}

/// All tags that have a place, with what is held of them.
///
/// # Errors
/// Where the server has no segments.
pub fn list() -> Result<Vec<(Tag, SlotState, snowflake_core::segment::Held)>, Error> {
    check("snowflake_segments")?;
    let tags = segments::tags();
    let segments = segments::lock();
    let of = |(slot, tag): (usize, Tag)| {
        let state = segments.states[slot];
        (tag, state, state.held(segments::place(slot)))
    };
    Ok(tags.into_iter().enumerate().map(of).collect())
}

/// # Errors
/// Where this server has no segments.
fn check(function: &'static str) -> Result<(), Error> {
    super::check_preloaded()?;
    if !lease::is_used() {
        return Err(SegmentError::NoRegistry.into());
    }
    super::check_primary(function)
}
