//! Single steps of the fetcher: what it asks for next, after each kind of answer.

use super::*;

/// A fetcher alone: the tests give the answers, and say what is held.
struct Alone {
    fetcher: Fetcher,
    now: MonotonicMicros,
    held: Vec<Held>,
    namespace: NamespaceRecord,
    events: Vec<TagEvent>,
    /// What sessions were told: how a tag stands, and its floor.
    told: Vec<(TagStanding, u64)>,
}

impl Alone {
    /// With these tags, of which the registry has these records.
    fn with(records: &[(Tag, StoredTag)]) -> Self {
        Self::holding(records, vec![Held::default(); records.len()])
    }

    /// The same, of a process that finds these numbers in shared memory.
    fn holding(records: &[(Tag, StoredTag)], held: Vec<Held>) -> Self {
        let tags: Vec<Tag> = records.iter().map(|(tag, _)| tag.clone()).collect();
        let mut alone = Self {
            held,
            fetcher: Fetcher::new(TERMS, 2, tags, BTreeMap::new()),
            now: MonotonicMicros(0),
            namespace: namespace(LIFE),
            events: Vec::new(),
            told: Vec::new(),
        };
        if !records.is_empty() {
            alone.look(records);
        }
        alone
    }

    fn orders(record: StoredTag) -> Self {
        Self::with(&[(orders(), record)])
    }

    fn moment<T>(&mut self, act: impl FnOnce(&mut Fetcher, &Moment<'_>) -> T) -> T {
        let moment = Moment { monotonic: self.now, chance: 0, namespace: Some(&self.namespace), held: &self.held };
        let done = act(&mut self.fetcher, &moment);
        self.events.extend(self.fetcher.take_events());
        done
    }

    fn next(&mut self) -> Next {
        loop {
            match self.moment(|fetcher, moment| fetcher.next(moment)) {
                Next::Tell { standing, floor, .. } => self.told.push((standing, floor)),
                next => return next,
            }
        }
    }

    /// What it would do next.
    fn would(&mut self) -> Next {
        let fetcher = self.fetcher.clone();
        let next = self.next();
        self.fetcher = fetcher;
        next
    }

    fn answer(&mut self, answer: Answer) {
        self.moment(|fetcher, moment| fetcher.answer(moment, answer));
    }

    /// A look at all records.
    fn look(&mut self, records: &[(Tag, StoredTag)]) {
        self.fetcher.configure(TERMS);
        assert_eq!(self.next(), Next::ReadAll);
        self.answer(Answer::All(records.iter().cloned().collect()));
    }

    fn advance(&mut self, micros: i64) {
        self.now = self.now.saturating_add(Micros(micros));
    }

    /// The write that is asked for: the version that it expects, and the record's next number.
    fn write(&mut self) -> (Option<u64>, u64) {
        match self.next() {
            Next::Write(write, _) => (write.expected.map(|version| version.0), write.record.next),
            other => panic!("{other:?}"),
        }
    }

    /// Is granted what it asks for, under this version.
    fn grant(&mut self, version: u64) {
        self.write();
        self.advance(1000);
        self.answer(Answer::Stored(Version(version)));
        assert!(matches!(self.next(), Next::Install(..)));
        self.answer(Answer::Installed);
    }
}

/// The record, as others have left it.
fn at(version: u64, next: u64) -> StoredTag {
    StoredTag { version: Version(version), ..stored(next, 99_999) }
}

// What is due.

#[test]
fn the_last_number_is_asked_for() {
    let mut alone = Alone::orders(stored(99, 99));
    assert_eq!(alone.write(), (Some(7), 100));
    assert_eq!(alone.told, [(TagStanding::Live, 1)]);
    let mut alone = Alone::orders(stored(100, 99));
    assert!(matches!(alone.next(), Next::Wait(_)));
    assert_eq!(alone.told, [(TagStanding::UsedUp, 1)]);
}

#[test]
fn the_end_of_a_tag_is_reported_once_an_hour() {
    let mut alone = Alone::orders(stored(20, 99));
    let is_end = |event: &TagEvent| matches!(event, TagEvent::NearEnd { .. });
    let mut reports = Vec::new();
    for (version, seconds) in [(8, 0), (9, 3599), (10, 3600)] {
        alone.now = MonotonicMicros(0) + Micros::from_secs(seconds) - Micros(1000);
        alone.look(&[(orders(), StoredTag { version: Version(version - 1), ..stored(10 * version, 179) })]);
        alone.events.clear();
        alone.grant(version);
        reports.push(alone.events.iter().any(is_end));
    }
    assert_eq!(reports, [true, false, true]);
}

#[test]
fn a_tag_without_numbers_comes_first() {
    let other = || tag("others");
    let mut alone = Alone::with(&[(orders(), at(7, 30)), (other(), at(7, 30))]);
    alone.held = vec![Held { current: range(20, 30), after: None }; 2];
    assert!(matches!(alone.next(), Next::Wait(_)));
    alone.advance(10_000_000);
    (alone.held[0].current.first, alone.held[1].current.first) = (29, 30);
    assert!(matches!(alone.next(), Next::Write(write, _) if write.tag == other()));
}

/// Neither of a tag that has its next range already.
#[test]
fn while_nothing_is_due_it_waits_for_the_next_look() {
    let held = Held { current: range(20, 30), after: Some(range(30, 40)) };
    let mut alone = Alone::holding(&[(orders(), at(7, 40))], vec![held]);
    assert_eq!(alone.next(), Next::Wait(Micros::from_secs(60)));
    alone.advance(10_000_000);
    alone.held[0].current = range(29, 30);
    assert_eq!(alone.next(), Next::Wait(Micros::from_secs(50)));
}

#[test]
fn a_new_process_begins_with_what_is_held() {
    let mut alone = Alone::with(&[(orders(), at(7, 30))]);
    let held = Held { current: range(18, 30), after: None };
    alone.held[0] = held;
    alone.next();
    assert_eq!(alone.fetcher.used(0, &held, alone.now), Some((12, Use { count: 0, length: Micros(0) })));
    assert_eq!(alone.fetcher.record(0), Some(&at(7, 30).record));
}

#[test]
fn what_a_write_grants_is_known() {
    let mut alone = Alone::orders(at(7, 20));
    assert_eq!(alone.moment(|fetcher, moment| fetcher.granting(moment)), None);
    alone.write();
    let used = Use { count: 0, length: Micros(0) };
    let granting = alone.moment(|fetcher, moment| fetcher.granting(moment));
    assert_eq!(granting, Some((Held::default(), range(20, 30), used)));
}

// What is told.

#[test]
fn a_tag_that_gets_a_place_is_told_and_asked_for() {
    let mut alone = Alone::with(&[]);
    let attach = |alone: &mut Alone, found| {
        alone.fetcher.request(Request::Attach(orders()));
        assert!(alone.fetcher.is_busy());
        assert_eq!(alone.next(), Next::Read(orders()));
        alone.answer(Answer::One(Some(found)));
        assert!(!alone.fetcher.is_busy());
    };
    attach(&mut alone, dropped(20, 99));
    assert_eq!(alone.events, [TagEvent::Answered(Err(NotDone::Refused(TagRefusal::Dropped)))]);
    attach(&mut alone, at(7, 20));
    assert!(matches!(alone.next(), Next::ReadAll));
    assert_eq!(alone.told, [(TagStanding::Live, 1)]);
    assert_eq!(alone.fetcher.record(0), Some(&at(7, 20).record));
}

#[test]
fn what_has_changed_of_a_tag_is_told_once() {
    let mut alone = Alone::orders(at(7, 30));
    alone.held[0].current = range(20, 30);
    alone.next();
    alone.told.clear();
    for _ in 0..2 {
        alone.look(&[(orders(), dropped(50, 99))]);
        alone.next();
    }
    assert_eq!(alone.told, [(TagStanding::Dropped, 50)]);
}

#[test]
fn a_floor_that_has_risen_is_told_once() {
    let mut alone = Alone::orders(stored(20, 999));
    alone.write();
    assert_eq!(alone.told, [(TagStanding::Live, 1)]);
    alone.answer(Answer::Stored(Version(8)));
    alone.next();
    alone.answer(Answer::Installed);
    alone.held[0].current = range(20, 30);
    let raised = StoredTag { record: TagRecord { floor: 50, ..at(9, 60).record }, ..at(9, 60) };
    for _ in 0..2 {
        alone.look(&[(orders(), raised.clone())]);
        alone.next();
    }
    assert_eq!(alone.told, [(TagStanding::Live, 1), (TagStanding::Live, 50)]);
}

#[test]
fn a_registry_that_knows_all_that_was_granted_was_not_rolled_back() {
    let is_back = |event: &TagEvent| matches!(event, TagEvent::RolledBack { .. });
    let mut alone = Alone::orders(at(7, 20));
    alone.grant(8);
    alone.held[0].current = range(20, 30);
    alone.look(&[(orders(), at(8, 30))]);
    assert!(!alone.events.iter().any(is_back), "{:?}", alone.events);
    alone.look(&[(orders(), at(8, 29))]);
    assert_eq!(alone.write(), (Some(8), 30), "it is told");
    assert!(alone.events.iter().any(is_back));
    // A tag that was forgotten is told, too, until it is known again what was granted.
    let forgotten = |next| StoredTag { record: TagRecord { next, ..TagRecord::forgotten() }, version: Version(1) };
    let mut alone = Alone::orders(at(7, 20));
    alone.held[0].current = range(20, 30);
    alone.look(&[(orders(), forgotten(0))]);
    assert_eq!(alone.write(), (Some(1), 30));
    alone.answer(Answer::Conflict(Some(forgotten(30))));
    assert!(matches!(alone.next(), Next::Wait(_)));
}

// Failures.

#[test]
fn what_was_certainly_not_stored_is_asked_for_again() {
    let mut alone = Alone::orders(at(7, 20));
    assert_eq!(alone.write(), (Some(7), 30));
    alone.answer(Answer::Failed);
    alone.advance(1_000_000);
    assert_eq!(alone.write(), (Some(7), 30));
    // What may be stored is looked up, and that is no sign of other servers.
    alone.answer(Answer::Unknown);
    alone.advance(1_000_000);
    assert_eq!(alone.next(), Next::Read(orders()));
    alone.answer(Answer::One(Some(at(8, 30))));
    assert_eq!(alone.write(), (Some(8), 40));
}

#[test]
fn a_range_that_was_granted_is_installed_whatever_the_answer() {
    let mut alone = Alone::orders(at(7, 20));
    alone.write();
    alone.answer(Answer::Stored(Version(8)));
    let install = alone.next();
    assert!(matches!(install, Next::Install(..)));
    alone.answer(Answer::Failed);
    alone.advance(1_000_000);
    assert_eq!(alone.next(), install);
}

/// Who waits for it is told not to rely on that: a write before may have been stored.
#[test]
fn a_request_that_fails_for_certain_is_not_looked_up() {
    let creating = |answer| {
        let mut alone = Alone::with(&[]);
        alone.fetcher.request(Request::Create(orders(), plan(1, 99)));
        assert_eq!(alone.next(), Next::Read(orders()));
        alone.answer(Answer::One(None));
        alone.write();
        alone.answer(answer);
        (alone.next(), alone.events)
    };
    let (next, events) = creating(Answer::Failed);
    assert!(matches!(next, Next::Wait(_)));
    assert_eq!(events, [TagEvent::Answered(Err(NotDone::Unknown))]);
    assert_eq!(creating(Answer::Unknown), (Next::Read(orders()), vec![]));
}

/// Somebody else has made a tag of that name meanwhile.
#[test]
fn a_request_whose_answer_was_lost_takes_nothing_from_others() {
    let mut alone = Alone::with(&[]);
    alone.fetcher.request(Request::Create(orders(), plan(1, 99)));
    alone.next();
    alone.answer(Answer::One(None));
    alone.write();
    alone.answer(Answer::Unknown);
    assert_eq!(alone.next(), Next::Read(orders()));
    alone.answer(Answer::One(Some(at(8, 1))));
    assert_eq!(alone.events, [TagEvent::Answered(Err(NotDone::Refused(TagRefusal::Exists)))]);
}

#[test]
fn what_cannot_be_given_back_keeps_nothing_else() {
    let other = || tag("others");
    let mut alone = Alone::with(&[(orders(), at(7, 20)), (other(), at(7, 20))]);
    for _ in 0..2 {
        assert!(matches!(alone.next(), Next::Write(..)));
        alone.answer(Answer::Stored(Version(8)));
        let Next::Install(slot, granted) = alone.next() else { panic!() };
        assert_eq!(granted, range(20, 30));
        alone.held[slot].current = range(25, 30);
        alone.answer(Answer::Installed);
    }
    let records = [(orders(), at(8, 30)), (other(), at(8, 30))];
    alone.fetcher.stop(MonotonicMicros(9_000_000));
    assert_eq!(alone.next(), Next::Close);
    alone.answer(Answer::Closed);
    assert_eq!(alone.next(), Next::ReadAll);
    alone.answer(Answer::All(records.into_iter().collect()));
    for tag in [orders(), other()] {
        assert!(matches!(alone.next(), Next::Write(write, _) if write.tag == tag && write.record.next == 25));
        alone.answer(Answer::Failed);
    }
    assert_eq!(alone.next(), Next::Done);
}

#[test]
fn a_pause_ends_at_its_end() {
    let mut alone = Alone::orders(at(7, 20));
    let write = alone.next();
    alone.answer(Answer::Failed);
    let Next::Wait(pause) = alone.next() else { panic!() };
    alone.advance(pause.0 - 1);
    assert_eq!(alone.next(), Next::Wait(Micros(1)));
    alone.advance(1);
    assert_eq!(alone.next(), write);
}

#[test]
fn a_server_whose_time_to_stop_is_over_still_closes_the_counters() {
    let mut alone = Alone::orders(at(7, 20));
    alone.advance(5);
    alone.fetcher.stop(alone.now);
    assert_eq!(alone.next(), Next::Close);
    alone.answer(Answer::Closed);
    assert_eq!(alone.next(), Next::Done);
}

// Other servers.

/// Between two ranges that are granted at once one after the other, there are less than four requests. After sixteen of them, it looks.
#[test]
fn who_is_granted_one_range_after_the_other_looks_for_others() {
    let granted = |pause| {
        let mut alone = Alone::orders(at(7, 20));
        let looks = (8..48).take_while(|&version| {
            alone.grant(version);
            alone.advance(pause);
            matches!(alone.would(), Next::Write(..))
        });
        (looks.count(), alone)
    };
    assert_eq!(granted(3000).0, 40, "not at once");
    let (count, mut alone) = granted(2999);
    assert_eq!(count, 16, "the first one was no other's successor");
    // It has left a gap, and nobody has used that.
    assert!(matches!(alone.next(), Next::Wait(_)));
    alone.advance(1);
    assert_eq!(alone.next(), Next::Read(orders()));
    let version = 8 + count as u64;
    alone.answer(Answer::One(Some(at(version, 5000))));
    alone.grant(version + 1);
    assert!(matches!(alone.next(), Next::Write(..)), "there are no others");
}

/// The gap is as long as three requests take, of which the latest count for most.
#[test]
fn how_long_requests_take_is_measured() {
    let mut alone = Alone::orders(at(7, 20));
    let mut latency = 1000;
    for version in 8..25 {
        alone.write();
        alone.advance(1000);
        alone.grant(version);
        latency = (latency * 3 + 2000) / 4;
    }
    assert_eq!(alone.next(), Next::Wait(Micros(3 * latency)));
    // The turn is over, and nothing is due.
    alone.held[0].current = range(20, 5000);
    alone.advance(3 * latency);
    assert!(matches!(alone.next(), Next::Wait(length) if length >= Micros::from_millis(100)));
}

/// Each waits for its turn, and reads before it asks.
#[test]
fn others_are_believed_to_ask_for_a_second() {
    let mut alone = Alone::orders(at(7, 20));
    alone.write();
    alone.answer(Answer::Conflict(Some(at(8, 30))));
    assert_eq!(alone.write(), (Some(8), 40), "once may be chance");
    alone.answer(Answer::Conflict(Some(at(9, 40))));
    alone.advance(999_999);
    assert_eq!(alone.would(), Next::Read(orders()));
    alone.advance(1);
    assert_eq!(alone.write(), (Some(9), 50));
}

/// Once for each sixteen conflicts, and once a minute.
#[test]
fn a_largest_range_that_is_too_small_is_reported_now_and_then() {
    let bounds = Sizes { smallest: 10, largest: 10 };
    let record = |version| StoredTag { record: TagRecord { bounds, ..at(version, 20).record }, ..at(version, 20) };
    let mut alone = Alone::orders(record(7));
    alone.grant(8);
    let mut version = 8;
    let mut reports = |alone: &mut Alone, conflicts| {
        alone.events.clear();
        for _ in 0..conflicts {
            version += 1;
            loop {
                match alone.next() {
                    Next::Wait(length) => alone.advance(length.0),
                    Next::Read(_) => alone.answer(Answer::One(Some(record(version)))),
                    Next::ReadAll => alone.answer(Answer::All(BTreeMap::from([(orders(), record(version))]))),
                    _ => break alone.answer(Answer::Conflict(Some(record(version)))),
                }
            }
        }
        alone.events.iter().filter(|event| matches!(event, TagEvent::TooSmall { .. })).count()
    };
    // With the conflict after them.
    assert_eq!([16, 1].map(|conflicts| reports(&mut alone, conflicts)), [0, 1]);
    alone.advance(60_000_000);
    assert_eq!([15, 1].map(|conflicts| reports(&mut alone, conflicts)), [0, 1]);
}
