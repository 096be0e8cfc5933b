//! The lessee, with a registry and sessions: it leases, renews, loses a worker, and gives it back.

use super::*;

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
    let taken = record(Some(77), 9, 60, 120);
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
