//! The lessee with a wrong clock, other settings, and at its end.

use super::choice::{Looking, over};
use super::*;

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
