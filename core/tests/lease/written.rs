//! What is written: the record of a worker, and that of a namespace.

use super::*;

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

#[test]
fn a_namespace_has_one_layout() {
    let record = namespace(&layout(), 7, None);
    assert_eq!(record.layout, "timestamp=41 worker=10 sequence=12 tick=1ms epoch=2024-01-01T00:00:00Z");
    let known =
        Known { life: None, noted: None, is_record_lost: false, granted_until: None, now: at(0), over_at: at(660) };
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
    let nothing =
        Known { life: None, noted: None, is_record_lost: false, granted_until: None, now: at(0), over_at: at(660) };
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
    // A mark that is still to come covers the loss. One that is over may be older: a backup may be from before the life that this server knows.
    assert_eq!(check(Some(&found(Some(10))), knows), None);
    let later = Known { now: at(10), over_at: at(670), ..knows };
    assert_eq!(check(Some(&found(Some(10))), later), marked(670));
    assert_eq!(check(Some(&found(Some(11))), later), None);
    let holding = Known { granted_until: Some(at(60)), ..knows };
    assert_eq!(check(Some(&found(Some(10))), holding), marked(660));
    assert_eq!(check(Some(&found(Some(60))), holding), None);
    // It is there, and a record is not.
    let same = Known {
        life: Some(8),
        noted: None,
        is_record_lost: true,
        granted_until: Some(at(60)),
        now: at(0),
        over_at: at(660),
    };
    assert_eq!(check(Some(&found(None)), same), marked(660));
    assert_eq!(check(Some(&found(Some(60))), same), None);
    assert_eq!(check(Some(&found(None)), Known { is_record_lost: false, ..same }), None);
    // Of this life, where it is over by now: it is of this loss unless the server has worked under it before.
    let later = Known { now: at(100), over_at: at(760), ..same };
    assert_eq!(check(Some(&found(Some(90))), later), None);
    assert_eq!(check(Some(&found(Some(90))), Known { noted: Some(at(90)), ..later }), marked(760));
    assert_eq!(check(Some(&found(Some(90))), Known { noted: Some(at(80)), ..later }), None);
    assert_eq!(check(Some(&found(Some(101))), Known { noted: Some(at(101)), ..later }), None);
    assert_eq!(check(Some(&found(Some(59))), later), marked(760), "its own grant is no older");
    // A mark that is lower than one that the server knows, or gone, is from before, also where it is still to come. Both stay.
    let back = |noted| Known { noted: Some(at(noted)), is_record_lost: false, ..same };
    assert_eq!(check(Some(&found(None)), back(500)), marked(660));
    assert_eq!(check(Some(&found(Some(499))), back(500)), marked(660));
    assert_eq!(check(Some(&found(Some(499))), back(700)), marked(700));
    assert_eq!(check(Some(&found(Some(699))), back(700)), marked(700));
    assert_eq!(check(Some(&found(Some(500))), back(500)), None);
    assert_eq!(check(Some(&found(Some(501))), back(500)), None);
    let of_another_life = Known { life: Some(7), ..back(700) };
    assert_eq!(check(Some(&found(Some(499))), of_another_life), None);
}

/// A record that was confirmed in one registry, found in another one or in the same.
fn found_in(confirmed: Option<&str>, here: Option<&str>, leases_from: Option<i64>) -> NamespaceRecord {
    let (registry, here) = (confirmed.map(str::to_owned), here.map(str::to_owned));
    NamespaceRecord { registry, here, ..namespace(&layout(), 8, leases_from.map(at)) }
}

#[test]
fn a_registry_that_is_another_one_is_noticed_by_a_server_that_knows_nothing() {
    let check = |found: &NamespaceRecord, known: &Known| check_namespace(&layout(), Some(found), known, 3).unwrap();
    let nothing =
        Known { life: None, noted: None, is_record_lost: false, granted_until: None, now: at(0), over_at: at(660) };
    let knows = Known { life: Some(8), ..nothing };
    let (one, other) = (Some("system=7 timeline=1"), Some("system=7 timeline=2"));
    for known in [nothing, knows] {
        assert_eq!(check(&found_in(one, one, None), &known), None);
        assert_eq!(check(&found_in(one, other, None), &known), Some(found_in(other, other, Some(660))));
        // What somebody has noted before is later, or is not. It becomes another one.
        let raised = |from: i64| {
            let mut record = found_in(other, other, None);
            record.leases_from = Some(at(from) + Micros(1));
            Some(record)
        };
        assert_eq!(check(&found_in(one, other, Some(900)), &known), raised(900));
        assert_eq!(
            check(&found_in(one, other, Some(950)), &Known { granted_until: Some(at(900)), ..known }),
            raised(950)
        );
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
    // An operator has made sure that all is over: nothing is noted but what the registry is now.
    let trusts = Known::NOTHING;
    assert_eq!(check(&found_in(one, other, None), &trusts), Some(found_in(other, other, None)));
    assert_eq!(check(&found_in(one, other, Some(10)), &trusts), Some(found_in(other, other, Some(10))));
}

#[test]
fn servers_that_are_shown_different_parts_of_an_identity_do_not_take_turns() {
    let known =
        Known { life: None, noted: None, is_record_lost: false, granted_until: None, now: at(0), over_at: at(660) };
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
