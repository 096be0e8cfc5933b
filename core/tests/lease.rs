//! The decisions about leases, one by one; and all together in property tests, in which a few servers and a registry do
//! anything in any order. `model/` has the exhaustive check and the simulation of many.

use proptest::prelude::*;
use snowflake_core::lease::*;
use snowflake_core::{Layout, Line, Micros, MonotonicMicros, Policy, Position, Reach, Tick, Ticks, UnixMicros};
use std::collections::{BTreeMap, BTreeSet};

mod steps;

const WINDOW: Micros = Micros::from_secs(60);
const TERMS: Terms = Terms { window: WINDOW, max_lead: Micros::from_secs(600), max_jump: Micros::from_secs(10) };

fn layout() -> Layout {
    "default".parse().unwrap()
}

/// Four workers.
fn narrow() -> Layout {
    "timestamp=41 worker=2 sequence=12".parse().unwrap()
}

fn start() -> UnixMicros {
    UnixMicros::parse("2026-01-01T00:00:00Z").unwrap()
}

fn at(seconds: i64) -> UnixMicros {
    start() + Micros::from_secs(seconds)
}

fn holder(number: u64) -> Holder {
    let (host, data_directory) = (format!("db{number}"), "/data".to_owned());
    let process = format!("boot of db{number}");
    Holder { host, data_directory, port: 5432, cluster_name: String::new(), system_identifier: number, process }
}

fn server(number: u64) -> Identity {
    Identity { token: Token(number.into()), holder: holder(number) }
}

fn record(owner: Option<u64>, holder_number: u64, from: i64, until: i64) -> Stored {
    let record = Record {
        owner: owner.map(|owner| Token(owner.into())),
        granted_from: at(from),
        granted_until: at(until),
        holder: holder(holder_number),
    };
    Stored { version: Version(7), record }
}

/// A server that has just started.
fn idle() -> Seen {
    Published::new(true).look(&layout(), &Line::new())
}

fn take(found: Option<&Stored>, now: i64, seen: &Seen) -> Write {
    lease(&layout(), &server(1), (WorkerNumber(3), found), None, &TERMS, at(now), seen)
}

/// Two calls of a request about something else are over when the lease is next looked at.
#[test]
fn other_requests_have_the_time_that_the_lease_leaves() {
    let of = |millis| Terms::spare(Micros::from_millis(millis));
    assert_eq!((of(0), of(199)), (None, None));
    assert_eq!((of(200), of(20_000)), (Some(Micros::from_millis(100)), Some(Micros::from_millis(10_000))));
}

#[test]
fn numbers_of_workers_go_to_their_places_and_back() {
    let twitter: Layout = "twitter".parse().unwrap();
    assert_eq!(twitter.workers(), 1024);
    assert_eq!(twitter.number_worker(Some(11), Some(26)), Ok(11 << 5 | 26));
    assert_eq!(twitter.place_number(11 << 5 | 26), twitter.place_worker(Some(11), Some(26)).ok());
    assert_eq!(twitter.place_number(1024), None);
    // Also where the fields stand in another order.
    let sonyflake: Layout = "sonyflake".parse().unwrap();
    for number in [0, 1, 65535] {
        assert_eq!(sonyflake.number_worker(None, Some(number)), Ok(number.into()));
        assert_eq!(sonyflake.place_number(number.into()), sonyflake.place_worker(None, Some(number)).ok());
    }
    assert!(sonyflake.number_worker(None, Some(65536)).is_err());
    assert!(sonyflake.number_worker(None, None).is_err());
}

// What is written.

#[test]
fn a_worker_without_a_record_is_leased_from_the_epoch_on() {
    let write = take(None, 0, &idle());
    assert_eq!((write.worker, write.expected), (WorkerNumber(3), None));
    assert_eq!(write.record.owner, Some(Token(1)));
    assert_eq!((write.record.granted_from, write.record.granted_until), (layout().epoch(), at(60)));
    assert_eq!(write.record.holder, holder(1));
}

#[test]
fn a_worker_is_taken_over_where_the_old_grant_ends() {
    for (now, until) in [(100, 160), (50, 150)] {
        let write = take(Some(&record(Some(2), 2, 10, 90)), now, &idle());
        assert_eq!(write.expected, Some(Version(7)));
        assert_eq!((write.record.granted_from, write.record.granted_until), (at(90), at(until)), "at {now}");
    }
}

#[test]
fn a_renewal_keeps_the_start_and_never_goes_back() {
    let found = record(Some(1), 1, 10, 90);
    for (now, until) in [(31, 91), (20, 90), (-1000, 90), (500, 560)] {
        let write = take(Some(&found), now, &idle());
        assert_eq!((write.record.granted_from, write.record.granted_until), (at(10), at(until)), "at {now}");
    }
}

#[test]
fn a_grant_reaches_beyond_the_line_and_every_published_end() {
    let ahead = Seen { line: at(300), ..idle() };
    assert_eq!(take(None, 0, &ahead).record.granted_until, at(360));
    let published = Seen { end: Some(at(500)), ..idle() };
    assert_eq!(take(None, 0, &published).record.granted_until, at(500));
    assert_eq!(take(Some(&record(Some(1), 1, 0, 60)), 0, &published).record.granted_until, at(500));
}

#[test]
fn an_absurd_clock_does_not_reach_beyond_the_layout() {
    let write = lease(&layout(), &server(1), (WorkerNumber(3), None), None, &TERMS, UnixMicros(i64::MAX), &idle());
    assert_eq!(write.record.granted_until, layout().end() + WINDOW);
    let write = lease(&layout(), &server(1), (WorkerNumber(3), None), None, &TERMS, UnixMicros(i64::MIN), &idle());
    assert!(write.record.granted_until > layout().epoch());
}

#[test]
fn what_is_given_back_is_what_was_not_used() {
    let give = |found: &Stored, seen: &Seen| give_back(&server(1), WorkerNumber(3), found, seen);
    let closed = Seen { worker: Some(WorkerNumber(3)), is_closed: true, used: Some(at(42)), ..idle() };
    let write = give(&record(Some(1), 1, 10, 90), &closed).unwrap();
    assert_eq!((write.expected, write.record.owner), (Some(Version(7)), None));
    assert_eq!((write.record.granted_from, write.record.granted_until), (at(42), at(42)));
    assert_eq!(write.record.holder, holder(1), "who had it last");

    let unused = Seen { used: Some(at(5)), ..closed };
    assert_eq!(
        give(&record(Some(1), 1, 10, 90), &unused).unwrap().record.granted_until,
        at(10),
        "never below the start"
    );
    let unknown = Seen { used: None, ..closed };
    assert_eq!(give(&record(Some(1), 1, 10, 90), &unknown).unwrap().record.granted_until, at(90), "after a crash");

    let open = Seen { is_closed: false, ..closed };
    assert_eq!(give(&record(Some(1), 1, 10, 90), &open), None, "sessions may claim with it");
    assert_eq!(give(&record(Some(2), 2, 10, 90), &closed), None, "another server's");
    let beside_another = Seen { worker: Some(WorkerNumber(4)), ..open };
    assert!(give(&record(Some(1), 1, 10, 90), &beside_another).is_some(), "not in use");
}

#[test]
fn a_grant_is_over_at_its_end() {
    let current = |now: i64, seen: &Seen| is_current(&layout(), &record(Some(1), 1, 10, 90).record, at(now), seen);
    assert!(current(89, &idle()));
    assert!(!current(90, &idle()), "the end is no time of an ID of the grant");
    assert!(!current(20, &Seen { line: at(90), ..idle() }), "by the line");
}

/// The record of a namespace of this layout.
fn namespace(layout: &Layout, life: u64, leases_from: Option<UnixMicros>) -> NamespaceRecord {
    NamespaceRecord { layout: layout.to_string(), life, leases_from, ..NamespaceRecord::default() }
}

#[test]
fn a_namespace_has_one_layout() {
    let record = namespace(&layout(), 7, None);
    assert_eq!(record.layout, "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z");
    let known = Known { life: None, is_record_lost: false, granted_until: None, over_at: at(660) };
    assert_eq!(check_namespace(&layout(), Some(&record), &known, 3), Ok(None));
    let other = check_namespace(&narrow(), Some(&record), &known, 3).unwrap_err();
    assert_eq!(
        other.to_string(),
        "the layout of the namespace is \"timestamp=41 worker=10 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z\", and \
         that of this server \"timestamp=41 worker=2 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z\""
    );
    // Nor does it change by what the server knows.
    let knowing = Known { life: Some(1), is_record_lost: true, ..known };
    assert!(check_namespace(&narrow(), Some(&record), &knowing, 3).is_err());
}

#[test]
fn who_knows_the_namespace_notices_that_it_was_forgotten() {
    let check = |found: Option<&NamespaceRecord>, known: Known| check_namespace(&layout(), found, &known, 3).unwrap();
    let nothing = Known { life: None, is_record_lost: false, granted_until: None, over_at: at(660) };
    let knows = Known { life: Some(7), ..nothing };
    let new = |leases_from: Option<i64>| Some(namespace(&layout(), 3, leases_from.map(at)));
    assert_eq!(check(None, nothing), new(None), "nobody ever used it");
    assert_eq!(check(None, knows), new(Some(660)));
    assert_eq!(check(None, Known { granted_until: Some(at(900)), ..knows }), new(Some(900)));
    // Somebody has made it anew, with less knowledge, or with as much.
    let found = |leases_from: Option<i64>| namespace(&layout(), 8, leases_from.map(at));
    let marked = |from: i64| Some(found(Some(from)));
    assert_eq!(check(Some(&found(None)), nothing), None);
    assert_eq!(check(Some(&found(None)), knows), marked(660));
    assert_eq!(check(Some(&found(Some(10))), knows), None);
    let holding = Known { granted_until: Some(at(60)), ..knows };
    assert_eq!(check(Some(&found(Some(10))), holding), marked(660));
    assert_eq!(check(Some(&found(Some(60))), holding), None);
    // It is there, and a record is not.
    let same = Known { life: Some(8), is_record_lost: true, granted_until: Some(at(60)), over_at: at(660) };
    assert_eq!(check(Some(&found(None)), same), marked(660));
    assert_eq!(check(Some(&found(Some(60))), same), None);
    assert_eq!(check(Some(&found(None)), Known { is_record_lost: false, ..same }), None);
}

/// A record that was confirmed in one registry, found in another one or in the same.
fn found_in(confirmed: Option<&str>, here: Option<&str>, leases_from: Option<i64>) -> NamespaceRecord {
    let (registry, here) = (confirmed.map(str::to_owned), here.map(str::to_owned));
    NamespaceRecord { registry, here, ..namespace(&layout(), 8, leases_from.map(at)) }
}

#[test]
fn a_registry_that_is_another_one_is_noticed_by_a_server_that_knows_nothing() {
    let check = |found: &NamespaceRecord, known: &Known| check_namespace(&layout(), Some(found), known, 3).unwrap();
    let nothing = Known { life: None, is_record_lost: false, granted_until: None, over_at: at(660) };
    let knows = Known { life: Some(8), ..nothing };
    let (one, other) = (Some("system=7 timeline=1"), Some("system=7 timeline=2"));
    for known in [nothing, knows] {
        assert_eq!(check(&found_in(one, one, None), &known), None);
        assert_eq!(check(&found_in(one, other, None), &known), Some(found_in(other, other, Some(660))));
        // What somebody has noted before is later, or is not.
        assert_eq!(check(&found_in(one, other, Some(900)), &known), Some(found_in(other, other, Some(900))));
        assert_eq!(check(&found_in(one, other, Some(10)), &known), Some(found_in(other, other, Some(660))));
        // The other servers find it confirmed.
        assert_eq!(check(&found_in(other, other, Some(660)), &known), None);
        // Of a version that stores none: from now on it is guarded.
        assert_eq!(check(&found_in(None, one, Some(10)), &known), Some(found_in(one, one, Some(10))));
        // A registry that shows nothing of itself.
        assert_eq!(check(&found_in(None, None, None), &known), None);
        assert_eq!(check(&found_in(one, None, None), &known), None);
    }
    let holds = Known { granted_until: Some(at(900)), ..knows };
    assert_eq!(check(&found_in(one, other, None), &holds), Some(found_in(other, other, Some(900))));
    assert_eq!(check(&found_in(one, other, Some(950)), &holds), Some(found_in(other, other, Some(950))));
    // An operator has made sure that all is over: nothing is noted but what the registry is now.
    let trusts = Known { life: None, is_record_lost: false, granted_until: None, over_at: UnixMicros(0) };
    assert_eq!(check(&found_in(one, other, None), &trusts), Some(found_in(other, other, None)));
    assert_eq!(check(&found_in(one, other, Some(10)), &trusts), Some(found_in(other, other, Some(10))));
}

#[test]
fn servers_that_are_shown_different_parts_of_an_identity_do_not_take_turns() {
    let known = Known { life: None, is_record_lost: false, granted_until: None, over_at: at(660) };
    let (all, few) = (Some("system=1 timeline=1"), Some("timeline=1"));
    let check = |found: &NamespaceRecord| check_namespace(&layout(), Some(found), &known, 3).unwrap();
    assert_eq!(check(&found_in(all, few, None)), None);
    let completed = check(&found_in(few, all, None)).unwrap();
    assert_eq!((completed.registry.as_deref(), completed.leases_from), (all, None));
    let moved = check(&found_in(all, Some("timeline=2"), None)).unwrap();
    // What is not seen of the new registry is not said of it.
    assert_eq!((moved.registry.as_deref(), moved.leases_from), (Some("timeline=2"), Some(at(660))));
}

#[test]
fn a_registry_is_another_one_by_what_it_shows() {
    let found = |here: Option<&str>| found_in(None, here, None);
    assert!(!found(None).is_not(Some("system=7")));
    assert!(!found(Some("system=7")).is_not(Some("system=7")));
    assert!(found(Some("system=7")).is_not(Some("system=8")) && found(Some("system=7")).is_not(None));
}

#[test]
fn a_token_is_not_printed_whole() {
    assert_eq!(format!("{:?}", Token(0x1234_5678 << 96 | 9)), "Token(12345678…)");
}

// What reaches the sessions.

fn grant(worker: u64, from: i64, until: i64) -> Grant {
    Grant { worker: WorkerNumber(worker), from: at(from), until: at(until) }
}

fn reach(published: &Published, now: i64) -> Reach {
    let policy = Policy { max_burst: Ticks(100), max_lead: Ticks(600_000), spread: 1 };
    Reach { policy, limit: published.limit(&layout()).unwrap(), now: layout().tick_at(at(now)) }
}

#[test]
fn a_grant_is_installed_in_its_order_and_a_renewal_only_publishes() {
    let (line, mut published) = (Line::new(), Published::new(true));
    let bits = layout().place_number(3).unwrap();
    let first = grant(3, 10, 90);
    let steps = published.actions(&layout(), &line, &first).unwrap();
    let floor = layout().first_tick_from(at(10));
    assert_eq!(steps, [Some(Action::Raise(floor)), Some(Action::Switch(first, bits)), Some(Action::Publish(first))]);
    published.install(&layout(), &line, &first).unwrap();
    let claim = line.claim(&layout(), &reach(&published, 0), 1).unwrap_or_else(|_| {
        // The line was raised to the grant's start, which is ahead of the clock.
        line.claim(&layout(), &reach(&published, 11), 1).unwrap()
    });
    assert!(layout().start_of(layout().tick_of(claim.first)) >= at(10));
    assert_eq!(claim.worker, bits);

    let renewed = grant(3, 10, 120);
    assert_eq!(published.actions(&layout(), &line, &renewed), Ok([None, None, Some(Action::Publish(renewed))]));
    let before = line.last();
    published.install(&layout(), &line, &renewed).unwrap();
    assert_eq!(line.last(), before, "a renewal gives nothing up");
    assert_eq!(published.end, Some(at(120)));
}

/// What installs a grant may end between two steps, and a superuser may lower the line then.
#[test]
fn wherever_an_installation_ends_the_line_is_not_lowered_below_a_grant() {
    let floor = |grant: &Grant| layout().first_tick_from(grant.from);
    for (old, new) in [(grant(3, 10, 90), grant(4, 50, 120)), (grant(3, 50, 90), grant(4, 10, 120))] {
        let (line, mut published) = (Line::new(), Published::new(true));
        published.install(&layout(), &line, &old).unwrap();
        for step in published.actions(&layout(), &line, &new).unwrap().into_iter().flatten() {
            published.apply(&layout(), &line, step);
            let lowest = published.lowest_tick(&layout()).unwrap();
            let in_use = if published.worker == Some(new.worker) { &new } else { &old };
            assert!(lowest >= floor(in_use), "{step:?}");
        }
        assert_eq!(published.lowest_tick(&layout()), Some(floor(&new)), "in the end as low as may be");
    }
}

#[test]
fn a_grant_that_is_too_short_is_renewed_first() {
    let (line, mut published) = (Line::new(), Published::new(true));
    published.install(&layout(), &line, &grant(3, 0, 90)).unwrap();
    let untouched = published;
    for shorter in [grant(4, 0, 89), grant(3, 0, 89)] {
        assert_eq!(published.install(&layout(), &line, &shorter), Err(NotInstalled::RenewFirst));
    }
    line.raise(&layout(), layout().tick_at(at(200)));
    assert_eq!(published.install(&layout(), &line, &grant(3, 0, 150)), Err(NotInstalled::RenewFirst), "no room");
    assert_eq!(published, untouched);
    let nobody = grant(1024, 0, 500);
    let error = NotInstalled::NoSuchWorker(WorkerNumber(1024));
    assert_eq!(published.install(&layout(), &line, &nobody), Err(error));
    assert_eq!(error.to_string(), "the layout has no worker 1024");
    // What `lease` asks for then is long enough.
    let seen = published.look(&layout(), &line);
    let write = lease(&layout(), &server(1), (WorkerNumber(4), None), None, &TERMS, at(0), &seen);
    assert_eq!(published.install(&layout(), &line, &write.grant()), Ok(()));
}

#[test]
fn a_grant_is_installed_as_long_as_a_tick_of_it_is_left() {
    let (line, mut published) = (Line::new(), Published::new(true));
    published.install(&layout(), &line, &grant(3, 0, 90)).unwrap();
    assert!(published.actions(&layout(), &line, &grant(4, 0, 90)).is_ok(), "another worker's may end there, too");
    line.raise(&layout(), layout().tick_at(at(20)));
    let steps = |from| published.actions(&layout(), &line, &grant(3, from, 90));
    assert_eq!(steps(20).unwrap()[0], None, "the line is there already");
    let end = layout().tick_at(at(90));
    line.raise(&layout(), end - Ticks(1));
    assert!(steps(20).is_ok());
    line.raise(&layout(), end);
    assert_eq!(steps(20), Err(NotInstalled::RenewFirst));
}

/// Nothing was used of it.
#[test]
fn a_line_without_a_grant_is_closed_where_it_is() {
    let (line, mut published) = (Line::new(), Published::new(true));
    let before = published.look(&layout(), &line);
    published.close(&layout(), &line);
    let after = published.look(&layout(), &line);
    assert_eq!((after.line, after.used, after.is_closed), (before.line, before.used, true));
}

#[test]
fn ends_of_grants_are_rounded_up_to_ticks() {
    let coarse: Layout = "timestamp=39 sequence=8 worker=16 tick=10ms".parse().unwrap();
    let (line, mut published) = (Line::new(), Published::new(true));
    // From within a tick to within another.
    let grant = Grant { worker: WorkerNumber(3), from: at(0) + Micros(1), until: at(1) + Micros(1) };
    published.install(&coarse, &line, &grant).unwrap();
    let floor = coarse.tick_at(at(0)) + Ticks(1);
    assert!(coarse.tick_of(Position(line.last().0 + 1)) >= floor);
    assert_eq!(published.lowest_tick(&coarse), Some(floor));
    // The tick that begins before the end is the last one; the next owner starts after it.
    assert_eq!(published.limit(&coarse), Some(coarse.tick_at(at(1))));
    assert_eq!(coarse.first_tick_from(grant.until), coarse.tick_at(at(1)) + Ticks(1));
}

#[test]
fn a_closed_line_is_closed_for_old_open_ranges_and_opens_above_them() {
    let (line, mut published) = (Line::new(), Published::new(true));
    published.install(&layout(), &line, &grant(3, 0, 60)).unwrap();
    let used = line.claim(&layout(), &reach(&published, 1), 5).unwrap();
    // Whatever its clock says: a session that has copied the end.
    let copies: Vec<_> = (0..70).map(|now| reach(&published, now).open_range(&layout())).collect();
    published.close(&layout(), &line);
    assert_eq!(published.closed, Some(Position(used.first.0 + used.count - 1)));
    assert_eq!(published.limit(&layout()), None);
    for open in &copies {
        assert_eq!(line.claim_in(open, 1), None);
    }
    let seen = published.look(&layout(), &line);
    let next_tick = layout().tick_of(used.first) + Ticks(1);
    assert_eq!((seen.used, seen.is_closed), (Some(layout().start_of(next_tick)), true));
    published.close(&layout(), &line);
    assert_eq!(published.look(&layout(), &line), seen, "closing again changes nothing");

    let write = lease(&layout(), &server(1), (WorkerNumber(3), None), None, &TERMS, at(2), &seen);
    published.install(&layout(), &line, &write.grant()).unwrap();
    for open in &copies {
        assert_eq!(line.claim_in(open, 1), None);
    }
    let claim = line.claim(&layout(), &reach(&published, 61), 1).unwrap();
    assert!(layout().start_of(layout().tick_of(claim.first)) >= at(60));
}

#[test]
fn after_a_sessions_crash_use_is_unknown_until_the_line_is_raised() {
    let line = Line::new();
    let mut published = Published::new(false);
    assert_eq!(published.look(&layout(), &line).used, None);
    published.resumed = true;
    assert!(published.look(&layout(), &line).used.is_some());
}

// Which worker.

struct Looking {
    layout: Layout,
    records: BTreeMap<WorkerNumber, Stored>,
    watch: Watch,
    wanted: Wanted,
    gone: BTreeSet<WorkerNumber>,
    beside: Option<WorkerNumber>,
    monotonic: MonotonicMicros,
    line: UnixMicros,
    leases_from: Option<UnixMicros>,
    terms: Terms,
}

impl Looking {
    /// In the layout of four workers, of which the first have these records.
    fn at(records: &[Stored]) -> Self {
        let numbered = records.iter().cloned().enumerate();
        Self {
            layout: narrow(),
            records: numbered.map(|(i, stored)| (WorkerNumber(i as u64), stored)).collect(),
            watch: Watch::default(),
            wanted: Wanted::any(&narrow()),
            gone: BTreeSet::new(),
            beside: None,
            monotonic: MonotonicMicros(0),
            line: start(),
            leases_from: None,
            terms: TERMS,
        }
    }

    /// The look of server 1 at second 100.
    fn search<T>(&self, look: impl FnOnce(&Search<'_>) -> T) -> T {
        let me = server(1);
        look(&Search {
            layout: &self.layout,
            me: &me,
            wanted: self.wanted,
            records: &self.records,
            watch: &self.watch,
            gone: &self.gone,
            beside: self.beside,
            now: at(100),
            monotonic: self.monotonic,
            line: self.line,
            leases_from: self.leases_from,
            terms: self.terms,
        })
    }

    fn choose(&self, chance: u64) -> Choice {
        self.search(|search| search.choose(chance))
    }

    fn left_far_ahead(&self) -> Option<u64> {
        self.search(|search| search.left_far_ahead().map(|(worker, _)| worker.0))
    }

    /// The worker chosen.
    fn worker(&self, chance: u64) -> u64 {
        match self.choose(chance) {
            Choice::Lease(worker) => worker.0,
            other => panic!("{other:?}"),
        }
    }

    fn refusal(&self) -> Vec<(u64, Why)> {
        match self.choose(0) {
            Choice::NoWorker(no) => no.taken.iter().map(|taken| (taken.worker.0, taken.why)).collect(),
            chosen => panic!("{chosen:?}"),
        }
    }
}

fn current(server: u64) -> Stored {
    record(Some(server + 100), server, 0, 150)
}

fn over(server: u64) -> Stored {
    record(Some(server + 100), server, 0, 99)
}

#[test]
fn a_free_worker_is_chosen_by_chance() {
    let looking = Looking::at(&[current(2), over(3), current(4)]);
    assert_eq!((0..4).map(|chance| looking.worker(chance)).collect::<Vec<_>>(), [1, 3, 1, 3]);
    let empty = Looking::at(&[]);
    assert_eq!((0..5).map(|chance| empty.worker(chance)).collect::<Vec<_>>(), [0, 1, 2, 3, 0]);
    // Also where they are too many to be listed.
    let layout = "timestamp=20 datacenter=21 worker=21 sequence=1".parse().unwrap();
    let wide = Looking { layout, wanted: Wanted::any(&layout), ..looking };
    assert_eq!(wide.worker((1 << 42) - 3), (1 << 42) - 1);
}

#[test]
fn a_datacenter_has_its_own_workers() {
    let layout = "timestamp=40 datacenter=2 worker=2 sequence=10".parse().unwrap();
    let third = |records: &[Stored]| {
        let mut looking = Looking { layout, wanted: Wanted::datacenter(&layout, 2), ..Looking::at(&[]) };
        looking.records = (6..).map(WorkerNumber).zip(records.iter().cloned()).collect();
        looking
    };
    // Worker 7 is the last one of the datacenter before.
    let looking = third(&[current(2), current(3), current(4)]);
    assert_eq!((0..4).map(|chance| looking.worker(chance)).collect::<Vec<_>>(), [9, 10, 11, 9]);
    // The own last ones in other datacenters are left alone, and so is a free one.
    let full = third(&[over(1), over(3), current(4), current(5), current(6), current(7), record(Some(101), 1, 0, 98)]);
    assert_eq!(full.refusal(), [(8, Why::Held), (9, Why::Held), (10, Why::Held), (11, Why::Held)]);
    assert_eq!(Looking { wanted: Wanted::any(&layout), ..full }.worker(0), 6);
    // A layout without datacenters has one for all.
    let none = Looking { wanted: Wanted::datacenter(&narrow(), 1), ..Looking::at(&[current(2)]) };
    assert_eq!(none.worker(0), 1);
}

#[test]
fn the_own_worker_comes_first() {
    // With the token of this run, whatever else is free; the one that reaches furthest.
    let own = [over(1), record(Some(1), 1, 0, 60), record(Some(1), 1, 0, 61)];
    assert_eq!(Looking::at(&own).worker(3), 2);
    let beside = Some(WorkerNumber(1));
    assert_eq!(Looking { beside, ..Looking::at(&own) }.worker(3), 1, "the one beside the line, however far it reaches");
    // Its last one, where that is over, or was given back.
    assert_eq!(Looking::at(&[over(2), over(1)]).worker(3), 1);
    let given_back = record(None, 1, 100, 101);
    assert_eq!(Looking::at(&[over(2), given_back.clone()]).worker(3), 1);
    // But not where that is far ahead of the clock, unless the line is there, too.
    let far = record(None, 1, 5000, 5000);
    assert_eq!(Looking::at(&[over(2), far.clone()]).worker(2), 3);
    assert_eq!(Looking { line: at(4500), ..Looking::at(&[over(2), far]) }.worker(2), 1);
    // Who is its copy on another host has no claim to it.
    let mut copy = given_back;
    copy.record.holder.host = "elsewhere".to_owned();
    assert_eq!(Looking::at(&[over(2), copy]).worker(2), 3);
}

/// The registry has forgotten what it had stored, and gives no new lease before second 500.
#[test]
fn until_new_leases_are_given_only_a_current_one_goes_on() {
    let not_before = Choice::NotBefore(at(500));
    let own = |until| record(Some(1), 1, 0, until);
    let looking = |records: &[Stored]| Looking { leases_from: Some(at(500)), ..Looking::at(records) };
    assert_eq!(looking(&[over(2)]).choose(0), not_before);
    assert_eq!(looking(&[current(2), own(101)]).worker(0), 1);
    assert_eq!(looking(&[own(100)]).choose(0), not_before, "it is over by the clock");
    assert_eq!(Looking { line: at(110), ..looking(&[own(110)]) }.choose(0), not_before, "it is used up");
    assert_eq!(Looking { line: at(110), ..looking(&[own(111)]) }.worker(0), 0);
    let two = looking(&[own(101), own(102)]);
    assert_eq!(two.worker(0), 1);
    assert_eq!(Looking { beside: Some(WorkerNumber(0)), ..two }.worker(0), 0);
}

/// With the token of this run: neither the one beside the line nor the one that is kept.
#[test]
fn workers_of_lost_answers_are_strays() {
    let own = record(Some(1), 1, 0, 150);
    let looking = Looking::at(&[own.clone(), own.clone(), own, current(2)]);
    let strays = |looking: &Looking, kept: Option<u64>| {
        looking.search(|it| it.strays(kept.map(WorkerNumber)).map(|(worker, _)| worker.0).collect::<Vec<_>>())
    };
    assert_eq!(strays(&looking, None), [0, 1, 2]);
    let looking = Looking { beside: Some(WorkerNumber(1)), ..looking };
    assert_eq!((strays(&looking, None), strays(&looking, Some(2))), (vec![0, 2], vec![0]));
}

#[test]
fn above_a_grant_only_where_no_worker_is_free() {
    let full = [current(2), current(1), current(3), current(4)];
    assert_eq!(Looking::at(&full[..3]).worker(0), 3, "the last one is free");
    let gone = BTreeSet::from([WorkerNumber(1)]);
    assert_eq!(Looking { gone, ..Looking::at(&full) }.worker(0), 1, "the own old one, whose process is gone");
    // One that nobody has any more is better, although its end is ahead of the clock.
    let mut given_back = full.clone();
    given_back[3] = record(None, 4, 130, 130);
    assert_eq!(Looking::at(&given_back).worker(0), 3);
}

#[test]
fn a_copys_worker_is_taken_only_when_its_record_stands_still() {
    let mut records = [current(2), current(1), current(3), current(4)];
    records[1].record.holder.data_directory = "/copy".to_owned();
    let mut looking = Looking::at(&records);
    let taken = [(0, Why::Held), (1, Why::MayBeCopy), (2, Why::Held), (3, Why::Held)];
    assert_eq!(looking.refusal(), taken);
    let look = |looking: &mut Looking, seconds: i64| {
        looking.monotonic = MonotonicMicros(0) + Micros::from_secs(seconds);
        let (records, monotonic) = (looking.records.clone(), looking.monotonic);
        looking.watch.note(1, &records, monotonic);
    };
    look(&mut looking, 0);
    look(&mut looking, 29);
    assert_eq!(looking.refusal(), taken);
    look(&mut looking, 30);
    assert_eq!(looking.worker(0), 1);
    // It lives: the version has changed.
    looking.records.get_mut(&WorkerNumber(1)).unwrap().version = Version(8);
    assert_eq!(looking.refusal(), taken, "what was noted is of another version");
    look(&mut looking, 31);
    look(&mut looking, 60);
    assert_eq!(looking.refusal(), taken);
}

/// A cloned machine has all that the original has, but for the processes.
#[test]
fn the_same_host_and_directory_prove_nothing() {
    let full = [current(2), current(1), current(3), current(4)];
    let looking = Looking::at(&full);
    assert_eq!(looking.refusal()[1], (1, Why::MayBeCopy));
    let gone = Looking { gone: BTreeSet::from([WorkerNumber(1)]), ..Looking::at(&full) };
    assert_eq!(gone.worker(0), 1);
    // Another one's is never taken, whatever is known of it.
    let others = Looking { gone: BTreeSet::from([WorkerNumber(0)]), ..Looking::at(&full) };
    assert_eq!(others.refusal()[0], (0, Why::Held));
}

#[test]
fn a_grant_far_ahead_of_the_clock_is_left_alone() {
    let mut records = [current(2), record(None, 9, 0, 701), current(3), current(4)];
    let looking = Looking::at(&records);
    assert_eq!(looking.refusal().last(), Some(&(1, Why::TooFarAhead)), "the list goes by the ends of grants");
    records[1] = record(None, 9, 0, 700);
    assert_eq!(Looking::at(&records).worker(0), 1, "600 s are allowed");
    // Its own, given back, may end as far ahead as a grant reaches.
    let terms = Terms { window: Micros::from_secs(700), ..TERMS };
    records[1] = record(None, 9, 0, 701);
    assert_eq!(Looking { terms, ..Looking::at(&records) }.refusal().last(), Some(&(1, Why::TooFarAhead)));
    records[1] = record(None, 1, 0, 800);
    assert_eq!(Looking { terms, ..Looking::at(&records) }.worker(0), 1);
    records[1] = record(None, 1, 0, 801);
    assert_eq!(Looking { terms, ..Looking::at(&records) }.refusal().last(), Some(&(1, Why::TooFarAhead)));
}

#[test]
fn a_configured_worker_is_leased_and_no_other() {
    let configured =
        |number, records: &[Stored]| Looking { wanted: Wanted::One(WorkerNumber(number)), ..Looking::at(records) };
    assert_eq!(configured(2, &[]).worker(0), 2);
    assert_eq!(configured(1, &[over(2), over(3)]).worker(0), 1);
    assert_eq!(configured(1, &[current(2), current(1)]).refusal(), [(1, Why::MayBeCopy)]);
    let gone = BTreeSet::from([WorkerNumber(1)]);
    assert_eq!(Looking { gone, ..configured(1, &[current(2), current(1)]) }.worker(0), 1, "an older run's");
    let refused = configured(1, &[current(2), current(3)]);
    let Choice::NoWorker(no) = refused.choose(0) else { panic!() };
    let holder = holder(3);
    assert_eq!(no.wanted, Wanted::One(WorkerNumber(1)));
    assert_eq!(no.taken, [Taken { worker: WorkerNumber(1), holder, until: at(150), why: Why::Held }]);
}

// When.

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pauses_are_bounded(window in 1_i64..=86_400_000_000, count in 0_u32..=u32::MAX, chance: u64) {
        let terms = Terms { window: Micros(window), max_lead: Micros(0), ..TERMS };
        let third = window / 3;
        let renew = terms.renew_after(chance).0;
        prop_assert!(renew <= third && renew >= third - third / 5);
        let retry = terms.retry_after(count, chance);
        prop_assert!(retry.0 >= 50_000 && retry <= Terms::LONGEST_RETRY);
        prop_assert!(terms.contend_after(count, chance) <= Micros(1_024_000));
        let look = terms.look_after(chance);
        prop_assert!(look.0 >= 50_000 && look <= Terms::LONGEST_LOOK);
    }
}

#[test]
fn retries_grow_apart() {
    let least = |failures| (0..1000).map(|chance| TERMS.retry_after(failures, chance * 7919)).min().unwrap();
    let most = |failures| (0..1000).map(|chance| TERMS.retry_after(failures, chance * 7919)).max().unwrap();
    assert!(most(1) <= Micros(100_000) && least(10) >= Micros(2_500_000) && most(1000) <= Micros(5_000_000));
    assert!(Terms { max_lead: Micros::from_secs(59), ..TERMS }.leads_too_far());
    assert!(!TERMS.leads_too_far() && !Terms { max_lead: WINDOW, ..TERMS }.leads_too_far());
}

#[test]
fn a_grant_is_short_below_half_of_the_window() {
    let half = WINDOW / 2;
    assert_eq!((TERMS.is_short(half - Micros(1)), TERMS.is_short(half)), (true, false));
}

/// From some milliseconds up to a second, of which chance takes away all or nothing.
#[test]
fn who_was_slower_waits_and_longer_each_time() {
    let longest = [1, 2, 3, 8, 9, 10, u32::MAX].map(|conflicts| TERMS.contend_after(conflicts, 0).0);
    assert_eq!(longest, [4_000, 8_000, 16_000, 512_000, 1_024_000, 1_024_000, 1_024_000]);
    assert_eq!((TERMS.contend_after(3, 5_000), TERMS.contend_after(3, 16_000)), (Micros(11_000), Micros(0)));
}

/// The last quarter of the window, and not once the grant is over.
#[test]
fn a_grant_is_urgent_shortly_before_its_end() {
    let quarter = WINDOW / 4;
    for (left, is_urgent) in [
        (Micros(-1), false),
        (Micros(0), false),
        (Micros(1), true),
        (quarter - Micros(1), true),
        (quarter, false),
        (WINDOW, false),
    ] {
        assert_eq!(TERMS.is_urgent(left), is_urgent, "{left:?}");
    }
}

// The lessee, with a registry and sessions.

/// A registry that does what it is told, or fails as the test says.
#[derive(Default)]
struct Registry {
    namespace: Option<NamespaceRecord>,
    records: BTreeMap<WorkerNumber, Stored>,
    version: u64,
    time: Option<UnixMicros>,
}

impl Registry {
    fn answer(&mut self, request: Next) -> Answer {
        match request {
            Next::Namespace => Answer::Namespace(self.namespace.clone()),
            Next::SetNamespace { expected, record } => {
                if self.namespace == expected {
                    self.namespace = Some(record);
                }
                Answer::Namespace(self.namespace.clone())
            }
            Next::ReadAll => Answer::All(Found { records: self.records.clone(), time: self.time, ..Found::default() }),
            Next::Read(worker) => Answer::One(self.records.get(&worker).cloned()),
            Next::Write(_, namespace) if self.namespace.as_ref() != Some(&namespace) => {
                Answer::OtherNamespace(self.namespace.clone())
            }
            Next::Write(write, _) => {
                let found = self.records.get(&write.worker);
                if found.map(|stored| stored.version) != write.expected {
                    return Answer::Conflict(found.cloned());
                }
                self.version += 1;
                let version = Version(self.version);
                self.records.insert(write.worker, Stored { version, record: write.record });
                Answer::Stored(version)
            }
            other => panic!("{other:?} is not for the registry"),
        }
    }
}

struct Server {
    layout: Layout,
    me: Identity,
    line: Line,
    published: Published,
    lessee: Lessee,
    clock: UnixMicros,
    reserved: Tick,
    runs: u64,
    /// In its data directory.
    known_life: Option<u64>,
    events: Vec<Event>,
    /// What chance says in [`Self::settle`].
    chance: u64,
}

impl Server {
    fn new(number: u64) -> Self {
        Self::with(narrow(), number)
    }

    fn with(layout: Layout, number: u64) -> Self {
        Self::knowing(layout, number, None)
    }

    fn knowing(layout: Layout, number: u64, known_life: Option<u64>) -> Self {
        let me = server(number);
        Self {
            lessee: Lessee::new(layout, me.clone(), TERMS, Wanted::any(&layout), known_life),
            layout,
            me,
            line: Line::new(),
            published: Published::new(true),
            clock: start(),
            reserved: Tick(0),
            runs: 0,
            known_life,
            events: Vec::new(),
            chance: 0,
        }
    }

    fn restart(&mut self, is_new_token: bool) {
        self.runs += 1;
        if is_new_token {
            self.me.token = Token(u128::from(self.me.holder.system_identifier << 32 | self.runs));
        }
        (self.line, self.published) = (Line::new(), Published::new(is_new_token));
        self.lessee = Lessee::new(self.layout, self.me.clone(), TERMS, Wanted::any(&self.layout), self.known_life);
    }

    fn moment(&self, monotonic: MonotonicMicros, chance: u64) -> Moment {
        let seen = self.published.look(&self.layout, &self.line);
        Moment { now: self.clock, monotonic, seen, chance }
    }

    /// Asks once, and does what is asked where it is not for the registry. Returns a request, or how long to wait.
    fn step(&mut self, monotonic: MonotonicMicros, chance: u64) -> Result<Next, Option<Micros>> {
        for _ in 0..10 {
            let moment = self.moment(monotonic, chance);
            let next = self.lessee.next(&moment);
            let answer = match next {
                Next::Wait(length) => return Err(Some(length)),
                Next::Done => return Err(None),
                Next::Install(grant) => Answer::Installed(self.published.install(&self.layout, &self.line, &grant)),
                Next::Remember(life) => {
                    self.known_life = Some(life);
                    Answer::Remembered
                }
                Next::Close => {
                    self.published.close(&self.layout, &self.line);
                    Answer::Closed
                }
                request => return Ok(request),
            };
            self.answer(monotonic, answer, chance);
        }
        panic!("it goes round in circles");
    }

    fn answer(&mut self, monotonic: MonotonicMicros, mut answer: Answer, chance: u64) {
        if let Answer::All(Found { records, gone, .. }) = &mut answer {
            // Of its older runs, a server knows that.
            let is_mine = |stored: &Stored| stored.record.holder == self.me.holder && !self.me.owns(&stored.record);
            gone.extend(records.iter().filter(|(_, stored)| is_mine(stored)).map(|(worker, _)| *worker));
        }
        let moment = self.moment(monotonic, chance);
        self.lessee.answer(&moment, answer);
        self.events.extend(self.lessee.take_events());
    }

    /// Goes on until there is nothing to do.
    fn settle(&mut self, registry: &mut Registry, monotonic: MonotonicMicros) -> Option<Micros> {
        for _ in 0..100 {
            match self.step(monotonic, self.chance) {
                Ok(request) => {
                    let answer = registry.answer(request);
                    self.answer(monotonic, answer, self.chance);
                }
                Err(Some(Micros(0))) => {}
                Err(wait) => {
                    self.events.extend(self.lessee.take_events());
                    return wait;
                }
            }
        }
        panic!("there is no end");
    }

    /// Claims up to so many positions. Returns the worker and the positions.
    fn claim_many(&mut self, want: u64) -> Vec<(u64, u64)> {
        self.line.raise(&self.layout, self.reserved);
        self.published.resumed = true;
        let (Some(worker), Some(limit)) = (self.published.worker, self.published.limit(&self.layout)) else {
            return Vec::new();
        };
        let policy = Policy { max_burst: Ticks(10), max_lead: Ticks(i64::MAX), spread: 1 };
        let reach = Reach { policy, limit, now: self.layout.tick_at(self.clock) };
        let Ok(claim) = self.line.claim(&self.layout, &reach, want) else { return Vec::new() };
        let positions = claim.first.0..claim.first.0 + claim.count;
        self.reserved = self.reserved.max(self.layout.tick_of(Position(positions.end - 1)) + Ticks(2));
        positions.map(|position| (worker.0, position)).collect()
    }

    fn claim(&mut self) -> Option<(u64, u64)> {
        self.claim_many(1).first().copied()
    }
}

const ZERO: MonotonicMicros = MonotonicMicros(0);

fn later(seconds: i64) -> MonotonicMicros {
    ZERO + Micros::from_secs(seconds)
}

#[test]
fn a_restart_after_a_clean_stop_gets_the_same_worker_without_a_gap() {
    let (mut registry, mut server, mut other) = (Registry::default(), Server::new(1), Server::new(2));
    let wait = server.settle(&mut registry, ZERO).unwrap();
    assert!(wait <= Micros::from_secs(20) && wait >= Micros::from_secs(16), "{wait:?}");
    let (worker, last) = server.claim().unwrap();
    server.lessee.stop(later(5));
    assert_eq!(server.settle(&mut registry, later(1)), None);
    let until = registry.records[&WorkerNumber(worker)].record.granted_until;
    assert!(server.events.contains(&Event::GivenBack { worker: WorkerNumber(worker), until }));
    assert_eq!(narrow().first_tick_from(until), narrow().tick_of(Position(last)) + Ticks(1));
    // Another server takes a worker meanwhile.
    other.chance = 1;
    other.settle(&mut registry, ZERO);
    assert_ne!(other.lessee.held().unwrap().0.0, worker);
    // Chance alone would choose another.
    server.chance = 2;
    server.reserved = Tick(0);
    server.restart(true);
    server.clock = at(0) + Micros::from_millis(2);
    server.settle(&mut registry, ZERO);
    let (again, next) = server.claim().unwrap();
    assert_eq!(again, worker);
    assert!(narrow().tick_of(Position(next)).0 - narrow().tick_of(Position(last)).0 <= 3);
}

#[test]
fn a_lease_is_found_again_by_its_token() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    let (worker, _) = server.claim().unwrap();
    let before = registry.records[&WorkerNumber(worker)].clone();
    server.restart(false);
    server.clock = at(1);
    server.settle(&mut registry, later(1));
    let after = &registry.records[&WorkerNumber(worker)];
    assert_eq!(registry.records.len(), 1);
    assert_eq!(after.record.granted_from, before.record.granted_from);
    assert_eq!(after.record.granted_until, at(61));
}

#[test]
fn a_lease_is_renewed_in_time_and_an_outage_is_reported_once_a_minute() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    let mut second = 0;
    while second < 200 {
        server.clock = at(second);
        let is_down = (30..150).contains(&second);
        while let Ok(request) = server.step(later(second), 0) {
            let answer = if is_down { Answer::Failed } else { registry.answer(request) };
            server.answer(later(second), answer, 0);
        }
        server.events.extend(server.lessee.take_events());
        let can_claim = server.claim().is_some();
        // The renewal at 20 s holds until 80 s.
        assert_eq!(can_claim, !(80..150).contains(&second) || second > 150, "at {second} s");
        second += 1;
    }
    let count = |wanted: fn(&Event) -> bool| server.events.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|event| matches!(event, Event::NotAnswering(_))), 2);
    assert_eq!(count(|event| matches!(event, Event::Answering(_))), 1);
    assert_eq!(count(|event| matches!(event, Event::Expired(_))), 1);
    assert_eq!(count(|event| matches!(event, Event::Gained(_))), 2);
}

/// Pauses grow up to 5 s. In the last quarter of the window before the lease ends they are a second, and afterwards 5 s again.
#[test]
fn in_an_outage_no_time_is_lost_shortly_before_the_lease_ends() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    let mut pauses = Vec::new();
    let mut now = Micros::from_secs(20);
    while now < Micros::from_secs(75) {
        server.clock = start() + now;
        match server.step(ZERO + now, 0) {
            Ok(_) => server.answer(ZERO + now, Answer::Failed, 0),
            Err(pause) => {
                pauses.push(pause.unwrap());
                now = now + pause.unwrap();
            }
        }
    }
    let growing = [100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000, 5000];
    let urgent = [1000; 14];
    let expected: Vec<_> = growing.into_iter().chain(urgent).chain([5000; 3]).map(Micros::from_millis).collect();
    assert_eq!(pauses, expected);
}

/// The registry answers what is asked about the lease in use, and nothing that is asked for another worker.
#[test]
fn a_lease_is_renewed_while_requests_for_another_worker_fail() {
    for failed in [Answer::Failed, Answer::Unknown] {
        let (mut registry, mut server) = (Registry::default(), Server::new(1));
        server.settle(&mut registry, ZERO);
        let held = server.lessee.held().unwrap().0;
        server.lessee.configure(TERMS, Wanted::One(WorkerNumber(held.0 ^ 1)));
        for second in 0..130 {
            server.clock = at(second);
            while let Ok(request) = server.step(later(second), 0) {
                let is_for_another = matches!(&request, Next::Write(write, _) if write.worker != held);
                let answer = if is_for_another { failed.clone() } else { registry.answer(request) };
                server.answer(later(second), answer, 0);
            }
            assert_eq!(server.claim().map(|(worker, _)| worker), Some(held.0), "at {second} s");
        }
    }
}

/// Others are faster each time. After a lease, the next conflict is the first one again.
#[test]
fn servers_that_want_the_same_worker_come_apart() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    let mut now = ZERO;
    for _ in 0..2 {
        let mut pauses = Vec::new();
        for _ in 0..100 {
            match server.step(now, 0) {
                Err(_) if pauses.len() == 11 => break,
                Ok(Next::Write(..)) => server.answer(now, Answer::Conflict(Some(record(Some(9), 9, 0, 60))), 0),
                Ok(request) => {
                    let answer = registry.answer(request);
                    server.answer(now, answer, 0);
                }
                Err(pause) => {
                    pauses.push(pause.unwrap().0 / 1000);
                    now = now.saturating_add(pause.unwrap());
                }
            }
        }
        assert_eq!(pauses, [4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024, 1024]);
        now = now.saturating_add(Micros::from_secs(2));
        server.settle(&mut registry, now);
        assert!(server.claim().is_some());
        // Another one is wanted.
        let other = server.lessee.held().unwrap().0.0 ^ 1;
        server.lessee.configure(TERMS, Wanted::One(WorkerNumber(other)));
    }
}

/// Goes on until the request is one of these, and returns that. There is something to ask for all the time.
fn until(
    server: &mut Server,
    registry: &mut Registry,
    monotonic: MonotonicMicros,
    is_it: impl Fn(&Next) -> bool,
) -> Next {
    loop {
        let request = server.step(monotonic, 0).unwrap();
        if is_it(&request) {
            return request;
        }
        let answer = registry.answer(request);
        server.answer(monotonic, answer, 0);
    }
}

/// Asks until there is a write.
fn first_write(server: &mut Server, registry: &mut Registry, monotonic: MonotonicMicros) -> Next {
    until(server, registry, monotonic, |request| matches!(request, Next::Write(..)))
}

#[test]
fn after_a_lost_answer_only_a_confirmation_counts() {
    for is_stored in [true, false] {
        let (mut registry, mut server) = (Registry::default(), Server::new(1));
        let write = first_write(&mut server, &mut registry, ZERO);
        if is_stored {
            registry.answer(write);
        }
        server.answer(ZERO, Answer::Unknown, 0);
        assert!(server.published.end.is_none(), "nothing is used that may not be stored");
        assert!(matches!(server.step(ZERO, 0), Err(Some(_))));
        let Ok(read @ Next::Read(_)) = server.step(later(6), 0) else { panic!() };
        let answer = registry.answer(read);
        server.answer(later(6), answer, 0);
        // What was read may not be durable.
        assert!(server.published.end.is_none(), "nothing is used that was only read");
        let again = first_write(&mut server, &mut registry, later(7));
        assert!(matches!(&again, Next::Write(write, _) if write.expected.is_some() == is_stored));
        assert!(server.published.end.is_none());
        server.settle(&mut registry, later(7));
        assert!(server.claim().is_some(), "{is_stored}");
        assert_eq!(registry.records.len(), 1);
    }
}

/// As long as each confirmation is lost, also of what is there already.
#[test]
fn a_conflict_with_the_own_record_is_no_confirmation() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    for second in 0..20 {
        let write = first_write(&mut server, &mut registry, later(10 * second));
        let Answer::Stored(_) = registry.answer(write.clone()) else { panic!() };
        // The same again, which is in conflict with itself.
        let conflict = registry.answer(write);
        assert!(matches!(conflict, Answer::Conflict(Some(_))));
        server.answer(later(10 * second), conflict, 0);
        assert!(server.published.end.is_none());
        assert!(matches!(server.step(later(10 * second), 0), Ok(Next::Write(..))), "at once");
    }
}

#[test]
fn a_worker_that_is_taken_over_is_replaced_and_the_old_grant_used_up() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    let (worker, _) = server.claim().unwrap();
    let number = WorkerNumber(worker);
    let mut taken = registry.records[&number].clone();
    taken =
        Stored { version: Version(999), record: Record { owner: Some(Token(77)), holder: holder(9), ..taken.record } };
    registry.records.insert(number, taken);
    server.clock = at(30);
    assert!(server.claim().is_some(), "the grant is good up to its end");
    server.settle(&mut registry, later(30));
    assert!(server.events.contains(&Event::Lost { worker: number, by: holder(9) }));
    assert_ne!(server.lessee.held().unwrap().0, number);
    assert_ne!(server.claim().unwrap().0, worker);
}

#[test]
fn a_wiped_record_is_stored_again() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    let (worker, _) = server.claim().unwrap();
    registry.records.clear();
    server.clock = at(30);
    server.settle(&mut registry, later(30));
    assert!(server.events.contains(&Event::Vanished(WorkerNumber(worker))));
    assert!(server.events.contains(&Event::Forgotten(at(30 + 660))));
    assert_eq!(registry.records[&WorkerNumber(worker)].record.granted_until, at(90));
    assert_eq!(registry.namespace.as_ref().unwrap().leases_from, Some(at(690)));
    // And renewed from then on.
    server.events.clear();
    server.clock = at(60);
    server.settle(&mut registry, later(60));
    assert_eq!(registry.records[&WorkerNumber(worker)].record.granted_until, at(120));
    assert_eq!(server.events, []);
}

/// A server of another layout finds the namespace's record again, too.
#[test]
fn trouble_is_what_keeps_a_server_from_its_lease_now() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    assert_eq!(server.lessee.trouble(), Some(Trouble::NoAnswer));
    server.step(ZERO, 0).unwrap();
    server.answer(ZERO, Answer::Failed, 0);
    assert_eq!(server.lessee.trouble(), Some(Trouble::Failing));
    server.settle(&mut registry, later(10));
    assert_eq!(server.lessee.trouble(), None);
    // A lease that is in use, and cannot be renewed.
    server.clock = at(30);
    server.step(later(30), 0).unwrap();
    server.answer(later(30), Answer::Unknown, 0);
    assert_eq!(server.lessee.trouble(), Some(Trouble::Failing));
    server.settle(&mut registry, later(40));
    assert_eq!(server.lessee.trouble(), None);
    // Another worker is wanted, and taken.
    let (worker, stored) = server.lessee.held().unwrap();
    let other = WorkerNumber((worker.0 + 1) % 4);
    let taken = Record { owner: Some(Token(9)), holder: holder(9), granted_until: at(90), ..stored.record.clone() };
    registry.records.insert(other, Stored { version: Version(99), record: taken });
    server.lessee.configure(TERMS, Wanted::One(other));
    server.settle(&mut registry, later(41));
    assert!(matches!(server.lessee.trouble(), Some(Trouble::NoWorker(none)) if none.taken[0].worker == other));
    server.lessee.configure(TERMS, Wanted::One(worker));
    assert_eq!(server.lessee.trouble(), None);
    // The namespace is another's now.
    registry.namespace.as_mut().unwrap().layout = "another".to_owned();
    server.lessee.look();
    server.settle(&mut registry, later(42));
    assert!(matches!(server.lessee.trouble(), Some(Trouble::OtherLayout(other)) if other.theirs == "another"));
    server.lessee.stop(later(43));
    assert_eq!(server.lessee.trouble(), None);
}

#[test]
fn who_is_outrun_says_so() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    let mut now = ZERO;
    for _ in 0..3 {
        let request = loop {
            match server.step(now, 0) {
                Ok(request @ Next::Write(..)) => break request,
                Ok(request) => {
                    let answer = registry.answer(request);
                    server.answer(now, answer, 0);
                }
                Err(wait) => now = now.saturating_add(wait.unwrap()),
            }
        };
        assert!(matches!(request, Next::Write(..)));
        server.answer(now, Answer::Conflict(None), 0);
    }
    assert_eq!(server.lessee.trouble(), Some(Trouble::Outrun(3)));
    now = now.saturating_add(Micros::from_secs(60));
    server.settle(&mut registry, now);
    assert_eq!(server.lessee.trouble(), None);
}

#[test]
fn a_worker_that_the_layout_does_not_have_is_said() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    let worker = loop {
        let moment = server.moment(ZERO, 0);
        match server.lessee.next(&moment) {
            Next::Install(grant) => break grant.worker,
            Next::Remember(_) => server.answer(ZERO, Answer::Remembered, 0),
            request => {
                let answer = registry.answer(request);
                server.answer(ZERO, answer, 0);
            }
        }
    };
    server.answer(ZERO, Answer::Installed(Err(NotInstalled::NoSuchWorker(worker))), 0);
    assert_eq!(server.lessee.trouble(), Some(Trouble::NoSuchWorker(worker)));
    assert!(server.events.contains(&Event::NoSuchWorker(worker)), "{:?}", server.events);
    assert!(matches!(server.step(ZERO, 0), Err(Some(wait)) if wait > Micros(0)));
}

/// Whoever learns that the namespace's record has changed finds it again before the next renewal.
#[test]
fn a_record_of_the_namespace_that_has_changed_is_looked_at() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    registry.namespace.as_mut().unwrap().leases_from = Some(at(500));
    server.settle(&mut registry, later(1));
    assert_ne!(server.lessee.namespace(), registry.namespace.as_ref());
    server.lessee.look();
    server.settle(&mut registry, later(1));
    assert_eq!(server.lessee.namespace(), registry.namespace.as_ref());
    assert!(server.claim().is_some());
}

#[test]
fn who_has_a_lease_stores_the_namespace_again() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    let (worker, _) = server.claim().unwrap();
    registry = Registry::default();
    server.clock = at(30);
    server.settle(&mut registry, later(30));
    assert_eq!(registry.records[&WorkerNumber(worker)].record.granted_until, at(90));
    assert_eq!(registry.namespace.as_ref().unwrap().layout, narrow().to_string());
    let mut other = Server::with(layout(), 2);
    other.clock = at(31);
    other.settle(&mut registry, later(31));
    assert!(matches!(&other.events[..], [Event::OtherLayout(_)]), "{:?}", other.events);
}

#[test]
fn after_a_loss_nobody_gets_a_new_lease_before_all_that_was_granted_is_over() {
    for is_restarted in [false, true] {
        let (mut registry, mut server) = (Registry::default(), Server::new(1));
        server.settle(&mut registry, ZERO);
        registry = Registry::default();
        server.clock = at(30);
        if is_restarted {
            server.restart(true);
        }
        server.settle(&mut registry, later(30));
        assert_eq!(server.claim().is_some(), !is_restarted);
        assert_eq!(registry.records.len(), usize::from(!is_restarted));
        let mut fresh = Server::new(2);
        for (second, is_leased) in [(40, false), (100, false), (689, false), (690, true)] {
            fresh.clock = at(second);
            fresh.settle(&mut registry, later(100 * second));
            assert_eq!(fresh.claim().is_some(), is_leased, "at {second}");
        }
        assert!(fresh.events.contains(&Event::NotBefore(at(690))), "{:?}", fresh.events);
        let (_, held) = fresh.lessee.held().unwrap();
        assert_eq!((held.record.granted_from, held.record.granted_until), (at(690), at(750)));
    }
}

/// Its clock says that others may be using the worker.
#[test]
fn a_grant_that_is_over_is_not_stored_again() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    server.claim().unwrap();
    registry = Registry::default();
    server.clock = at(61);
    server.settle(&mut registry, later(61));
    assert_eq!(registry.records.len(), 0);
    assert_eq!(server.claim(), None);
    server.clock = at(721);
    server.settle(&mut registry, later(800));
    assert_eq!(server.lessee.held().unwrap().1.record.granted_from, at(721));
    assert!(server.claim().is_some());
}

#[test]
fn a_record_from_before_a_renewal_shows_that_the_registry_was_rolled_back() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    let (worker, _) = server.claim().unwrap();
    let before = registry.records.clone();
    server.clock = at(20);
    server.settle(&mut registry, later(20));
    registry.records = before;
    server.clock = at(40);
    server.settle(&mut registry, later(40));
    assert!(server.events.contains(&Event::Vanished(WorkerNumber(worker))));
    assert!(server.events.contains(&Event::Forgotten(at(700))));
    assert_eq!(registry.records[&WorkerNumber(worker)].record.granted_until, at(100));
    // Also where that record was over long ago.
    let old = registry.records.clone();
    for second in [60, 80] {
        server.clock = at(second);
        server.settle(&mut registry, later(second));
    }
    registry.records = old;
    server.clock = at(110);
    server.settle(&mut registry, later(110));
    let record = &registry.records[&WorkerNumber(worker)].record;
    assert_eq!((record.granted_from, record.granted_until), (narrow().epoch(), at(170)));
    assert!(
        server.claim().is_some_and(|(_, position)| narrow().tick_of(Position(position)) <= narrow().tick_at(at(111)))
    );
}

/// The server that had it before has given it back, or has its token there: neither has taken it since.
#[test]
fn a_record_of_who_had_the_worker_before_shows_that_the_registry_was_rolled_back() {
    for is_given_back in [false, true] {
        let (mut registry, mut old) = (Registry::default(), Server::new(2));
        old.settle(&mut registry, ZERO);
        let (worker, _) = old.claim().unwrap();
        let worker = WorkerNumber(worker);
        if is_given_back {
            old.lessee.stop(later(3));
            old.settle(&mut registry, ZERO);
        }
        let before = registry.records.clone();
        let mut server = Server::new(1);
        server.clock = at(70);
        server.lessee.configure(TERMS, Wanted::One(worker));
        server.settle(&mut registry, ZERO);
        assert_eq!(server.claim().map(|(worker, _)| WorkerNumber(worker)), Some(worker));
        let granted = registry.records[&worker].record.clone();
        registry.records = before;
        server.clock = at(90);
        server.settle(&mut registry, later(20));
        assert!(server.events.contains(&Event::Vanished(worker)), "{is_given_back}: {:?}", server.events);
        assert!(server.events.contains(&Event::Forgotten(at(750))), "{is_given_back}: {:?}", server.events);
        let stored = &registry.records[&worker].record;
        assert_eq!((stored.owner, stored.granted_from), (Some(server.me.token), granted.granted_from));
        assert!(!server.events.iter().any(|event| matches!(event, Event::Lost { .. })), "{:?}", server.events);
    }
}

/// Also by a process that does not know what the one before it has leased.
#[test]
fn a_new_process_notices_that_the_registry_was_rolled_back() {
    for is_gone in [false, true] {
        let (mut registry, mut server) = (Registry::default(), Server::new(1));
        server.settle(&mut registry, ZERO);
        let (worker, _) = server.claim().unwrap();
        let mut before = registry.records.clone();
        server.clock = at(20);
        server.settle(&mut registry, later(20));
        if is_gone {
            before.clear();
        }
        registry.records = before;
        server.lessee = Lessee::new(narrow(), server.me.clone(), TERMS, Wanted::any(&narrow()), server.known_life);
        server.clock = at(70);
        server.settle(&mut registry, later(70));
        assert!(server.events.contains(&Event::Vanished(WorkerNumber(worker))), "{is_gone}: {:?}", server.events);
        assert!(server.events.contains(&Event::Forgotten(at(730))), "{is_gone}: {:?}", server.events);
        // It has nothing that it could store again, so its IDs end with the grant.
        assert!(server.claim().is_some());
        server.clock = at(90);
        server.settle(&mut registry, later(90));
        assert_eq!(server.claim(), None, "{is_gone}");
    }
}

/// As by a request that was under way when the registry was wiped, and expects that there is no record.
#[test]
fn nothing_is_written_under_another_record_of_the_namespace() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    let write = first_write(&mut server, &mut registry, ZERO);
    registry = Registry { namespace: Some(namespace(&narrow(), 99, Some(at(660)))), ..Registry::default() };
    let answer = registry.answer(write);
    assert!(matches!(answer, Answer::OtherNamespace(Some(_))));
    server.answer(ZERO, answer, 0);
    server.settle(&mut registry, ZERO);
    assert_eq!(server.known_life, Some(99));
    assert_eq!(server.claim(), None);
}

#[test]
fn an_operator_who_knows_better_is_obeyed() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    registry.namespace = Some(namespace(&narrow(), 99, Some(at(660))));
    server.settle(&mut registry, ZERO);
    assert_eq!(server.claim(), None);
    server.lessee.trust(true);
    server.settle(&mut registry, ZERO);
    assert!(server.claim().is_some());
    // What was overruled stays so, also where the lease ends before it is renewed.
    server.clock = at(70);
    server.settle(&mut registry, later(70));
    assert_eq!(server.lessee.held().unwrap().1.record.granted_until, at(130));
    // Once: nobody has set it back when the registry forgets again, nor said it anew.
    server.lessee.trust(true);
    registry = Registry::default();
    server.clock = at(100);
    server.settle(&mut registry, later(100));
    assert_eq!(registry.namespace.clone().unwrap().leases_from, Some(at(760)));
    server.lessee.trust(false);
    server.lessee.trust(true);
    registry = Registry::default();
    server.clock = at(130);
    server.settle(&mut registry, later(130));
    assert_eq!(registry.namespace.unwrap().leases_from, None);
}

/// `trust` ends the pause of a server that was refused a lease. It does not end one after a failure, nor one of a server that has a
/// lease.
#[test]
fn an_operator_who_knows_better_ends_no_other_pause() {
    // Without a lease, as it was refused: at once.
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    registry.namespace = Some(namespace(&narrow(), 99, Some(at(660))));
    assert!(server.settle(&mut registry, ZERO).unwrap() > Micros(0));
    server.lessee.trust(true);
    assert_eq!(server.step(ZERO, 0), Ok(Next::ReadAll));

    // The registry does not answer.
    let mut server = Server::new(1);
    server.step(ZERO, 0).unwrap();
    server.answer(ZERO, Answer::Failed, 0);
    let pause = server.step(ZERO, 0);
    assert!(matches!(pause, Err(Some(length)) if length > Micros(0)));
    server.lessee.trust(true);
    assert_eq!(server.step(ZERO, 0), pause);

    // It has a lease, and waits as another server was faster at the worker that it is to have.
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    let other = server.lessee.held().unwrap().0.0 ^ 1;
    server.lessee.configure(TERMS, Wanted::One(WorkerNumber(other)));
    first_write(&mut server, &mut registry, ZERO);
    server.answer(ZERO, Answer::Conflict(None), 0);
    let pause = server.step(ZERO, 0);
    assert!(matches!(pause, Err(Some(length)) if length > Micros(0)));
    server.lessee.trust(true);
    assert_eq!(server.step(ZERO, 0), pause);
}

const YEAR: i64 = 365 * 86400;

#[test]
fn a_clock_that_is_far_ahead_at_the_start_is_believed_after_a_minute() {
    // By the registry's time, by the leases of others, and without either.
    for (time, others, waits) in
        [(Some(0), None, true), (None, Some(60), true), (Some(YEAR), None, false), (None, None, false)]
    {
        let mut registry = Registry { time: time.map(at), ..Registry::default() };
        registry.records.extend(others.map(|until| (WorkerNumber(3), record(Some(9), 9, 0, until))));
        let mut server = Server::new(1);
        server.clock = at(YEAR);
        for (second, is_leased) in [(0, !waits), (59, !waits), (70, true)] {
            server.settle(&mut registry, later(second));
            assert_eq!(server.claim().is_some(), is_leased, "{time:?} {others:?} at {second}");
        }
        let ahead = |event: &Event| matches!(event, Event::ClockAhead(by) if by.0 >= (YEAR - 60) * 1_000_000);
        assert_eq!(server.events.iter().any(ahead), waits, "{:?}", server.events);
    }
    // Set right meanwhile.
    let (mut registry, mut server) = (Registry { time: Some(at(0)), ..Registry::default() }, Server::new(1));
    server.clock = at(YEAR);
    server.settle(&mut registry, ZERO);
    server.clock = at(9);
    server.settle(&mut registry, later(30));
    assert_eq!(server.lessee.held().unwrap().1.record.granted_until, at(69));
}

/// Who has given its worker back at a time at which the lease of another was over shows that nobody renews that one: what it says is not
/// the time.
#[test]
fn a_lease_that_nobody_renews_any_more_tells_no_time() {
    let (dead, until) = ((WorkerNumber(3), record(Some(9), 9, 0, 60)), 5000);
    for (given_back, waits) in
        [(None, true), (Some(59), true), (Some(61), false), (Some(until), false), (Some(YEAR), true)]
    {
        let mut registry = Registry::default();
        registry.records.extend([dead.clone()]);
        registry.records.extend(given_back.map(|until| (WorkerNumber(2), record(None, 8, 0, until))));
        let mut server = Server::new(1);
        server.clock = at(until);
        server.settle(&mut registry, ZERO);
        assert_eq!(server.claim().is_none(), waits, "{given_back:?}: {:?}", server.events);
    }
}

#[test]
fn a_grant_that_lies_a_year_ahead_is_shortened_by_hand() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    let wanted = Wanted::One(WorkerNumber(2));
    server.lessee.configure(TERMS, wanted);
    server.clock = at(YEAR);
    server.settle(&mut registry, ZERO);
    server.claim().unwrap();
    server.restart(true);
    server.lessee.configure(TERMS, wanted);
    server.clock = at(0);
    server.settle(&mut registry, ZERO);
    assert!(matches!(&server.events[..], [.., Event::NoWorker(_)]), "{:?}", server.events);
    // Somebody has made sure that nothing from second 20 on is kept.
    server.published.rewound_to = Some(at(20));
    server.reserved = Tick(0);
    server.settle(&mut registry, later(100));
    let shortened = Event::Shortened { worker: WorkerNumber(2), until: at(20) };
    assert!(server.events.contains(&shortened), "{:?}", server.events);
    let held = server.lessee.held().unwrap();
    assert_eq!((held.0, held.1.record.granted_from, held.1.record.granted_until), (WorkerNumber(2), at(20), at(80)));
    // Of a server that may live, and of others, nothing is shortened, nor below the start.
    let found = record(Some(7), 1, 50, YEAR);
    assert_eq!(shorten(WorkerNumber(2), &found, at(20)).unwrap().record.granted_until, at(50));
    assert_eq!(shorten(WorkerNumber(2), &record(None, 1, 10, 15), at(20)), None);
    assert_eq!(shorten(WorkerNumber(2), &record(None, 1, 10, 20), at(20)), None, "it ends there already");
    let mut looking = Looking::at(&[over(2), record(Some(7), 1, 50, YEAR), record(Some(9), 2, 50, YEAR)]);
    assert_eq!(looking.left_far_ahead(), None);
    looking.gone.extend([WorkerNumber(1), WorkerNumber(2)]);
    assert_eq!(looking.left_far_ahead(), Some(1));
    let mut until = |second| {
        looking.records = BTreeMap::from([(WorkerNumber(1), record(Some(7), 1, 50, second))]);
        looking.left_far_ahead()
    };
    assert_eq!((until(700), until(701)), (None, Some(1)), "600 s are allowed");
}

#[test]
fn another_worker_in_the_settings_is_leased_and_the_old_one_given_back() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    let (worker, _) = server.claim().unwrap();
    let other = WorkerNumber((worker + 1) % 4);
    // While another server has it, the old one stays in use, and is renewed.
    registry.records.insert(other, record(Some(9), 9, 0, 35));
    server.lessee.configure(TERMS, Wanted::One(other));
    for second in 1..30 {
        server.clock = at(second);
        server.settle(&mut registry, later(second));
        assert_eq!(server.claim().unwrap().0, worker);
    }
    assert!(server.events.iter().any(|event| matches!(event, Event::NoWorker(no) if no.taken.len() == 1)));
    assert!(registry.records[&WorkerNumber(worker)].record.granted_until > at(60));
    for second in 30..60 {
        server.clock = at(second);
        server.settle(&mut registry, later(second));
    }
    assert_eq!(server.claim().unwrap().0, other.0);
    assert_eq!(registry.records[&WorkerNumber(worker)].record.owner, None);
}

#[test]
fn another_datacenter_in_the_settings_is_moved_to() {
    let layout = "timestamp=40 datacenter=2 worker=2 sequence=10".parse().unwrap();
    let mut registry = Registry { namespace: Some(namespace(&layout, 1, None)), ..Registry::default() };
    let mut server = Server::with(layout, 1);
    server.chance = 5;
    server.settle(&mut registry, ZERO);
    let (worker, _) = server.claim().unwrap();
    assert_eq!(worker, 5);
    server.lessee.configure(TERMS, Wanted::datacenter(&layout, 3));
    server.settle(&mut registry, ZERO);
    assert_eq!(server.claim().unwrap().0, 13);
    assert_eq!(registry.records[&WorkerNumber(5)].record.owner, None, "the old one is given back");
}

#[test]
fn a_layout_of_others_is_refused() {
    let mut registry = Registry {
        namespace: Some(NamespaceRecord { layout: "another".to_owned(), life: 1, ..NamespaceRecord::default() }),
        ..Registry::default()
    };
    let mut server = Server::new(1);
    server.settle(&mut registry, ZERO);
    assert!(matches!(&server.events[..], [Event::OtherLayout(other)] if other.theirs == "another"));
    assert_eq!(server.claim(), None);
}

#[test]
fn a_stop_ends_when_its_time_is_over() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    server.lessee.stop(later(5));
    let mut tenths = 0;
    while let Some(wait) = {
        let now = ZERO + Micros::from_millis(100 * tenths);
        match server.step(now, 0) {
            Ok(_) => {
                server.answer(now, Answer::Failed, 0);
                Some(Micros(1))
            }
            Err(wait) => wait,
        }
    } {
        assert!(wait > Micros(0) && tenths <= 50);
        tenths += 1;
    }
    server.events.extend(server.lessee.take_events());
    assert!(matches!(server.events.last(), Some(Event::NotGivenBack(_))));
    assert!(server.published.closed.is_some());
}

#[derive(Clone, Debug)]
enum Op {
    /// A lessee does what there is to do, or sends a request, which arrives.
    Step {
        server: usize,
        chance: u64,
    },
    /// A lessee sends a request that gets no answer; it arrives later, or never.
    Lose {
        server: usize,
        chance: u64,
        arrives: bool,
    },
    /// A request from before arrives.
    Arrive,
    Claim {
        server: usize,
        want: u64,
    },
    Crash {
        server: usize,
    },
    SessionCrash {
        server: usize,
    },
    Stop {
        server: usize,
    },
    Pass {
        micros: i64,
    },
    SetClock {
        server: usize,
        seconds: i64,
    },
    Wipe,
}

fn op() -> impl Strategy<Value = Op> {
    let server = 0..3_usize;
    prop_oneof![
        20 => (server.clone(), any::<u64>()).prop_map(|(server, chance)| Op::Step { server, chance }),
        3 => (server.clone(), any::<u64>(), any::<bool>())
            .prop_map(|(server, chance, arrives)| Op::Lose { server, chance, arrives }),
        3 => Just(Op::Arrive),
        16 => (server.clone(), 1..30_u64).prop_map(|(server, want)| Op::Claim { server, want }),
        1 => server.clone().prop_map(|server| Op::Crash { server }),
        1 => server.clone().prop_map(|server| Op::SessionCrash { server }),
        1 => server.clone().prop_map(|server| Op::Stop { server }),
        8 => (0..40_000_000_i64).prop_map(|micros| Op::Pass { micros }),
        1 => Just(Op::Wipe),
        1 => (server, -300..300_i64).prop_map(|(server, seconds)| Op::SetClock { server, seconds }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Three servers with two workers. Ticks are long and have few IDs, so that those of different servers often meet.
    #[test]
    fn no_id_is_made_twice(ops in prop::collection::vec(op(), 1..400)) {
        run(ops, false)?;
    }

    /// The registry forgets everything, now and then. All servers know it, and their clocks are right.
    #[test]
    fn no_id_is_made_twice_by_servers_that_know_a_registry_which_forgets(ops in prop::collection::vec(op(), 1..400)) {
        run(ops, true)?;
    }
}

fn run(ops: Vec<Op>, forgets: bool) -> Result<(), TestCaseError> {
    let layout: Layout = "timestamp=31 worker=2 sequence=1 tick=1s".parse().unwrap();
    let mut registry = Registry { namespace: Some(namespace(&layout, 1, None)), ..Registry::default() };
    // The others are held for ever.
    for worker in [2, 3] {
        registry.records.insert(WorkerNumber(worker), record(Some(99), 9, 0, 1_000_000));
    }
    let mut servers: Vec<Server> =
        (1..=3).map(|number| Server::knowing(layout, number, forgets.then_some(1))).collect();
    let mut under_way: Vec<Next> = Vec::new();
    let mut monotonic = ZERO;
    let mut made: Vec<(u64, u64)> = Vec::new();
    for op in ops {
        match op {
            Op::Step { server, chance } => {
                if let Ok(request) = servers[server].step(monotonic, chance) {
                    let answer = registry.answer(request);
                    servers[server].answer(monotonic, answer, chance);
                }
            }
            Op::Lose { server, chance, arrives } => {
                if let Ok(request) = servers[server].step(monotonic, chance) {
                    let answer = if matches!(request, Next::Write(..)) { Answer::Unknown } else { Answer::Failed };
                    under_way.extend(arrives.then_some(request));
                    servers[server].answer(monotonic, answer, chance);
                }
            }
            Op::Arrive => {
                under_way.pop().map(|request| registry.answer(request));
            }
            Op::Claim { server, want } => made.extend(servers[server].claim_many(want)),
            Op::Crash { server } => servers[server].restart(true),
            Op::SessionCrash { server } => servers[server].restart(false),
            Op::Stop { server } => {
                servers[server].lessee.stop(monotonic + Micros::from_secs(5));
                while let Ok(request) = servers[server].step(monotonic, 0) {
                    let answer = registry.answer(request);
                    servers[server].answer(monotonic, answer, 0);
                }
                // Sessions that have not noticed.
                prop_assert_eq!(servers[server].claim(), None);
                servers[server].restart(true);
            }
            Op::Pass { micros } => {
                monotonic = monotonic + Micros(micros);
                servers.iter_mut().for_each(|server| server.clock = server.clock + Micros(micros));
            }
            Op::SetClock { .. } if forgets => {}
            Op::Wipe if forgets => registry = Registry { version: registry.version, ..Registry::default() },
            Op::Wipe => {}
            Op::SetClock { server, seconds } => servers[server].clock = at(seconds) + (monotonic - ZERO),
        }
    }
    let count = made.len();
    made.sort_unstable();
    made.dedup();
    prop_assert_eq!(made.len(), count);
    Ok(())
}
