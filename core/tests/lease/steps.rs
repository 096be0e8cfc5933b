//! Single steps of the lessee: what it asks for next, after each kind of answer.

use super::*;

/// A server that has leased worker 0 of the four.
fn leased() -> (Registry, Server) {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    assert_eq!(server.lessee.held().unwrap().0, WorkerNumber(0));
    (registry, server)
}

/// A request to give a worker back, with the version that it expects.
fn given_back(request: &Next) -> Option<(u64, Option<Version>)> {
    match request {
        Next::Write(write, _) if write.record.owner.is_none() => Some((write.worker.0, write.expected)),
        _ => None,
    }
}

/// A request to lease or renew a worker, with the version that it expects.
fn asked(request: &Next) -> Option<(u64, Option<Version>)> {
    match request {
        Next::Write(write, _) if write.record.owner.is_some() => Some((write.worker.0, write.expected)),
        _ => None,
    }
}

fn is_forgotten(event: &Event) -> bool {
    matches!(event, Event::Forgotten(_))
}

// The namespace.

#[test]
fn a_life_that_is_noted_is_not_noted_again() {
    let (mut registry, mut server) = leased();
    server.known_life = None;
    server.lessee.look();
    server.settle(&mut registry, later(1));
    assert_eq!(server.known_life, None);
}

#[test]
fn what_another_server_has_put_on_record_is_not_reported() {
    let (_, mut server) = leased();
    let mut registry = Registry::default();
    server.clock = at(30);
    until(&mut server, &mut registry, later(30), |request| matches!(request, Next::SetNamespace { .. }));
    let faster = namespace(&narrow(), 99, Some(at(5000)));
    server.answer(later(30), Answer::Namespace(Some(faster)), 0);
    assert!(!server.events.iter().any(is_forgotten), "{:?}", server.events);
}

#[test]
fn a_server_that_gives_back_notices_another_namespace() {
    let other = || Some(namespace(&narrow(), 99, None));
    // It stops: its own are there under another record, or there is nothing of it any more.
    let stopping = |found: Option<NamespaceRecord>| {
        let (mut registry, mut server) = leased();
        server.lessee.stop(later(9));
        until(&mut server, &mut registry, later(1), |request| given_back(request).is_some());
        server.answer(later(1), Answer::OtherNamespace(found), 0);
        server.step(later(1), 0)
    };
    assert_eq!(stopping(None), Err(None));
    assert!(matches!(stopping(other()), Ok(Next::Write(_, namespace)) if Some(&namespace) == other().as_ref()));
    // It has moved to another worker, and goes on.
    let (mut registry, mut server) = leased();
    server.lessee.configure(TERMS, Wanted::One(WorkerNumber(1)));
    until(&mut server, &mut registry, later(1), |request| given_back(request).is_some());
    server.answer(later(1), Answer::OtherNamespace(other()), 0);
    assert_eq!(server.step(later(1), 0), Ok(Next::ReadAll), "what time it is");
    until(&mut server, &mut registry, later(1), |request| matches!(request, Next::SetNamespace { .. }));
}

/// The lease in use is not renewed without the namespace's record, which is read again where the look at the time fails.
#[test]
fn a_loss_that_cannot_be_looked_into_is_looked_into_again() {
    let (_, mut server) = leased();
    let mut registry = Registry::default();
    server.clock = at(30);
    assert_eq!(until(&mut server, &mut registry, later(30), |request| *request == Next::ReadAll), Next::ReadAll);
    server.answer(later(30), Answer::Failed, 0);
    assert!(matches!(server.step(later(30), 0), Err(Some(wait)) if wait > Micros(0)));
    assert_eq!(server.step(later(31), 0), Ok(Next::Namespace));
    server.settle(&mut registry, later(31));
    assert!(server.events.contains(&Event::Forgotten(at(690))), "{:?}", server.events);
    assert_eq!(server.lessee.held().unwrap().1.record.granted_until, at(90));
}

#[test]
fn who_waits_for_a_lease_grants_no_segments_before() {
    let mut registry = Registry { namespace: Some(namespace(&narrow(), 99, Some(at(660)))), ..Registry::default() };
    let mut server = Server::new(1);
    assert_eq!(server.lessee.namespace_of_segments(at(0)), None);
    server.settle(&mut registry, ZERO);
    assert_eq!(server.lessee.namespace(), registry.namespace.as_ref());
    assert_eq!(server.lessee.namespace_of_segments(at(659)), None);
    assert_eq!(server.lessee.namespace_of_segments(at(660)), registry.namespace.as_ref());
    // Not who has a lease already.
    let (mut registry, mut server) = leased();
    registry.namespace.as_mut().unwrap().leases_from = Some(at(660));
    server.lessee.look();
    server.settle(&mut registry, later(1));
    assert_eq!(server.lessee.namespace_of_segments(at(1)), registry.namespace.as_ref());
}

// The settings.

#[test]
fn another_worker_in_the_settings_ends_the_wait_for_one() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.lessee.configure(TERMS, Wanted::One(WorkerNumber(1)));
    assert_eq!(server.step(ZERO, 0), Ok(Next::Namespace), "first the namespace");
    registry.records.insert(WorkerNumber(1), record(Some(9), 9, 0, 60));
    let wait = server.settle(&mut registry, ZERO).unwrap();
    server.lessee.configure(TERMS, Wanted::One(WorkerNumber(1)));
    assert_eq!(server.step(ZERO, 0), Err(Some(wait)), "the same");
    server.lessee.configure(TERMS, Wanted::One(WorkerNumber(2)));
    assert_eq!(server.step(ZERO, 0), Ok(Next::ReadAll));
}

#[test]
fn a_worker_that_is_not_wanted_any_more_is_not_installed() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    let write = first_write(&mut server, &mut registry, ZERO);
    server.lessee.configure(TERMS, Wanted::One(WorkerNumber(2)));
    let answer = registry.answer(write);
    server.answer(ZERO, answer, 0);
    assert_eq!(server.step(ZERO, 0), Ok(Next::ReadAll));
    assert_eq!(server.published.worker, None);
    server.settle(&mut registry, ZERO);
    assert_eq!(registry.records[&WorkerNumber(0)].record.owner, None, "it is given back");
}

// The clock.

#[test]
fn a_process_after_another_believes_a_clock_that_the_server_believes() {
    let (mut registry, mut server) = leased();
    server.lessee = Lessee::new(narrow(), server.me.clone(), TERMS, Wanted::any(&narrow()), server.known_life);
    registry.time = Some(at(30));
    server.clock = at(YEAR);
    server.settle(&mut registry, later(30));
    assert_eq!(server.lessee.held().unwrap().1.record.granted_until, at(YEAR + 60));
}

// Failures.

#[test]
fn a_look_at_the_namespace_that_fails_does_not_keep_from_renewing() {
    let (_, mut server) = leased();
    server.lessee.look();
    assert_eq!(server.step(later(1), 0), Ok(Next::Namespace));
    server.answer(later(1), Answer::Failed, 0);
    assert_eq!(server.step(later(1), 0), Err(Some(Micros::from_secs(19))), "until the renewal");
}

#[test]
fn a_search_that_fails_does_not_keep_from_renewing() {
    let (mut registry, mut server) = leased();
    server.lessee.configure(TERMS, Wanted::One(WorkerNumber(1)));
    let (mut failed, mut second) = (0, 0);
    while second < 20 {
        match server.step(later(second), 0) {
            Ok(Next::ReadAll) => {
                server.answer(later(second), Answer::Failed, 0);
                failed += 1;
            }
            Ok(request) => {
                let answer = registry.answer(request);
                server.answer(later(second), answer, 0);
            }
            Err(_) => second += 1,
        }
    }
    assert!(failed > 5, "the pauses are long: {failed}");
    assert_eq!(asked(&server.step(later(20), 0).unwrap()).map(|(worker, _)| worker), Some(0));
}

#[test]
fn what_failed_for_certain_is_asked_again_and_not_looked_up() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    first_write(&mut server, &mut registry, ZERO);
    server.answer(ZERO, Answer::Failed, 0);
    assert!(matches!(server.step(later(1), 0), Ok(Next::Write(..))));
    // Nor for a worker that is not wanted any more.
    server.answer(later(1), Answer::Failed, 0);
    server.lessee.configure(TERMS, Wanted::One(WorkerNumber(2)));
    assert_eq!(server.step(later(9), 0), Ok(Next::ReadAll));
}

/// A refusal is reported once a minute; another one at once, and the same again after a lease.
#[test]
fn each_cause_of_a_refusal_is_news() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.lessee.configure(TERMS, Wanted::One(WorkerNumber(0)));
    let taken = record(Some(9), 9, 0, 60);
    registry.records.extend([(WorkerNumber(0), taken.clone()), (WorkerNumber(1), taken)]);
    for second in [0, 11] {
        server.settle(&mut registry, later(second));
    }
    assert!(matches!(&server.events[..], [Event::NoWorker(_)]), "{:?}", server.events);
    registry.records.remove(&WorkerNumber(0));
    server.settle(&mut registry, later(22));
    server.lessee.configure(TERMS, Wanted::One(WorkerNumber(1)));
    server.settle(&mut registry, later(23));
    assert!(matches!(&server.events[1..], [Event::Gained(_), Event::NoWorker(_)]), "{:?}", server.events);
    registry.namespace.as_mut().unwrap().layout = "another".to_owned();
    server.lessee.look();
    server.settle(&mut registry, later(24));
    assert!(matches!(&server.events[3..], [Event::OtherLayout(_)]), "{:?}", server.events);
}

// What was found.

#[test]
fn a_renewal_whose_answer_was_lost_is_confirmed_anew() {
    let (mut registry, mut server) = leased();
    server.clock = at(20);
    let renewal = until(&mut server, &mut registry, later(20), |request| asked(request).is_some());
    assert!(matches!(registry.answer(renewal), Answer::Stored(_)));
    server.answer(later(20), Answer::Unknown, 0);
    until(&mut server, &mut registry, later(26), |request| asked(request) == Some((0, Some(Version(2)))));
    assert!(!server.events.iter().any(|event| matches!(event, Event::Lost { .. })), "{:?}", server.events);
}

#[test]
fn who_loses_its_worker_has_none() {
    let (mut registry, mut server) = leased();
    server.clock = at(20);
    until(&mut server, &mut registry, later(20), |request| asked(request).is_some());
    server.answer(later(20), Answer::Conflict(Some(record(Some(9), 9, 60, 120))), 0);
    assert_eq!(server.lessee.held(), None);
}

/// The registry loses the record once more, before and after it is stored again.
#[test]
fn a_record_that_is_lost_is_stored_where_none_is() {
    let (mut registry, mut server) = leased();
    registry.records.clear();
    server.clock = at(30);
    until(&mut server, &mut registry, later(30), |request| asked(request) == Some((0, Some(Version(1)))));
    server.answer(later(30), Answer::Conflict(None), 0);
    let again = until(&mut server, &mut registry, later(30), |request| asked(request).is_some());
    assert_eq!(asked(&again), Some((0, None)));
    server.answer(later(30), Answer::Unknown, 0);
    let read = until(&mut server, &mut registry, later(36), |request| *request == Next::Read(WorkerNumber(0)));
    let answer = registry.answer(read);
    server.answer(later(36), answer, 0);
    let again = server.step(later(36), 0).unwrap();
    assert_eq!(asked(&again), Some((0, None)));
    // It is stored, but the line is beyond it by now.
    let answer = registry.answer(again);
    server.answer(later(36), answer, 0);
    assert!(matches!(server.lessee.next(&server.moment(later(36), 0)), Next::Install(_)));
    server.answer(later(36), Answer::Installed(Err(NotInstalled::RenewFirst)), 0);
    assert_eq!(asked(&server.step(later(36), 0).unwrap()), Some((0, Some(Version(2)))));
    server.answer(later(36), Answer::Conflict(None), 0);
    assert_eq!(asked(&server.step(later(36), 0).unwrap()), Some((0, None)));
    let vanished = server.events.iter().filter(|event| matches!(event, Event::Vanished(_)));
    assert_eq!(vanished.count(), 1, "{:?}", server.events);
}

// What is given back.

#[test]
fn all_that_lost_answers_have_left_is_given_back() {
    let (mut registry, mut server) = leased();
    let own = record(Some(1), 1, 0, 60);
    registry.records.extend((1..4).map(|worker| (WorkerNumber(worker), own.clone())));
    server.lessee = Lessee::new(narrow(), server.me.clone(), TERMS, Wanted::any(&narrow()), server.known_life);
    server.clock = at(20);
    server.settle(&mut registry, later(20));
    let owners: Vec<_> = registry.records.values().map(|stored| stored.record.owner).collect();
    assert_eq!(owners, [Some(Token(1)), None, None, None]);
}

/// With the record that it has by then.
#[test]
fn a_worker_that_was_to_be_given_back_is_used_after_all() {
    let mut registry = Registry { namespace: Some(namespace(&narrow(), 1, None)), ..Registry::default() };
    registry.records = BTreeMap::from([(WorkerNumber(0), record(Some(1), 1, 0, 60))]);
    registry.records.insert(WorkerNumber(1), record(Some(1), 1, 0, 61));
    let mut server = Server::knowing(narrow(), 1, Some(1));
    let write = until(&mut server, &mut registry, later(0), |request| asked(request).is_some());
    assert_eq!(asked(&write), Some((1, Some(Version(7)))));
    let taken = record(Some(9), 9, 61, 120);
    registry.records.insert(WorkerNumber(1), taken.clone());
    server.answer(later(0), Answer::Conflict(Some(taken)), 0);
    let write = until(&mut server, &mut registry, later(1), |request| asked(request).is_some());
    assert_eq!(asked(&write), Some((0, Some(Version(7)))));
    let answer = registry.answer(write);
    server.answer(later(1), answer, 0);
    server.lessee.stop(later(9));
    let back = until(&mut server, &mut registry, later(1), |request| given_back(request).is_some());
    assert_eq!(given_back(&back), Some((0, Some(Version(1)))));
}

#[test]
fn what_is_given_back_is_what_is_there() {
    let stopping = || {
        let (mut registry, mut server) = leased();
        server.lessee.stop(later(9));
        until(&mut server, &mut registry, later(1), |request| given_back(request).is_some());
        (registry, server)
    };
    // Another version of its own record is there.
    let (registry, mut server) = stopping();
    let own = Stored { version: Version(50), ..registry.records[&WorkerNumber(0)].clone() };
    server.answer(later(1), Answer::Conflict(Some(own)), 0);
    assert_eq!(given_back(&server.step(later(1), 0).unwrap()), Some((0, Some(Version(50)))));
    // It is not known what is there.
    let (_, mut server) = stopping();
    server.answer(later(1), Answer::Unknown, 0);
    assert_eq!(server.step(later(2), 0), Ok(Next::Read(WorkerNumber(0))));
}

/// The answer was lost, or did not come yet.
#[test]
fn what_may_be_stored_is_given_back() {
    for is_lost in [false, true] {
        let (mut registry, mut server) = (Registry::default(), Server::new(1));
        first_write(&mut server, &mut registry, ZERO);
        if is_lost {
            server.answer(ZERO, Answer::Unknown, 0);
        }
        server.lessee.stop(later(9));
        assert_eq!(server.step(later(6), 0), Ok(Next::Read(WorkerNumber(0))), "{is_lost}");
    }
}

#[test]
fn a_server_whose_time_to_stop_is_over_still_closes_the_line() {
    let (_, mut server) = leased();
    server.lessee.stop(later(1));
    assert_eq!(server.step(later(2), 0), Err(None));
    assert!(server.published.closed.is_some());
    server.events.extend(server.lessee.take_events());
    assert!(server.events.contains(&Event::NotGivenBack(WorkerNumber(0))), "{:?}", server.events);
}
