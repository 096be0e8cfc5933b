//! The lessee with a registry that has forgotten.

use super::*;

const HOUR: i64 = 3600;

/// A registry that was made anew by a server which knew nothing.
fn registry_after_loss() -> Registry {
    Registry { namespace: Some(namespace(&narrow(), 99, None)), ..Registry::default() }
}

/// From when on leases are safe, as the registry has it.
fn mark(registry: &Registry) -> Option<UnixMicros> {
    registry.namespace.as_ref()?.leases_from
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

/// Whoever takes a worker over starts where the grant ends that was found. One that starts before has found an older one.
#[test]
fn a_record_of_who_took_the_worker_from_an_older_grant_shows_that_the_registry_was_rolled_back() {
    // Up to second 60 the server was granted first, and up to 80 then.
    for is_new_process in [false, true] {
        for (from, is_loss) in [(60, true), (79, true), (80, false), (200, false)] {
            let context = format!("{from} {is_new_process}");
            let (mut registry, mut server) = (Registry { time: Some(at(0)), ..Registry::default() }, Server::new(1));
            server.settle(&mut registry, ZERO);
            let worker = WorkerNumber(server.claim().unwrap().0);
            server.clock = at(20);
            server.settle(&mut registry, later(20));
            registry.records.insert(worker, record(Some(2), 2, from, from + 100));
            if is_new_process {
                server.lessee =
                    Lessee::new(narrow(), server.me.clone(), TERMS, Wanted::any(&narrow()), server.known_life);
            }
            server.clock = at(40);
            server.settle(&mut registry, later(40));
            let events = &server.events;
            assert_eq!(events.contains(&Event::Vanished(worker)), is_loss, "{context}: {events:?}");
            // The other one's grant shows the latest time.
            let over = 600 + from + 100;
            assert_eq!(events.contains(&Event::Forgotten(at(over))), is_loss, "{context}: {events:?}");
            let is_lost = events.contains(&Event::Lost { worker, by: holder(2) });
            assert_eq!(is_lost, !is_new_process, "{context}: {events:?}");
            // The other one keeps it; and until new leases are safe, there is no other for this server.
            assert_eq!(registry.records[&worker], record(Some(2), 2, from, from + 100), "{context}");
            assert_eq!(server.lessee.held().is_none(), is_loss, "{context}");
            server.clock = at(over - 1);
            server.settle(&mut registry, later(over - 1));
            assert_eq!(server.lessee.held().is_none(), is_loss, "{context}");
            server.clock = at(over);
            server.settle(&mut registry, later(over + 20));
            assert!(server.lessee.held().is_some(), "{context}");
            assert_eq!(server.events.iter().filter(|event| **event == Event::Vanished(worker)).count(), is_loss.into());
        }
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

/// Others' clocks may be right: theirs are the grants that were lost. A time that is shown far ahead is believed after a minute, as it may be
/// the one that is wrong.
#[test]
fn a_server_whose_clock_is_slow_puts_no_time_on_record_that_is_over() {
    // By the registry's time, and by how far leases are renewed, where it has none or is slow, too.
    for (has_time, ahead) in [(Some(HOUR), 0), (Some(HOUR), HOUR), (Some(0), HOUR), (None, HOUR)] {
        let mut registry = registry_after_loss();
        let mut slow = Server::knowing(narrow(), 1, Some(98));
        for second in [0, 20, 40, 59, 70] {
            assert_eq!(mark(&registry), None, "{has_time:?} {ahead} at {second}");
            slow.clock = at(second);
            registry.time = has_time.map(|ahead| at(ahead + second));
            let renewed = second / 20 * 20;
            registry.records.insert(WorkerNumber(3), record(Some(9), 9, 0, ahead + renewed + 60));
            slow.settle(&mut registry, later(second));
        }
        let shown = has_time.map_or(0, |ahead| ahead + 70).max(ahead + 60);
        assert_eq!(mark(&registry), Some(at(shown + 660)), "{has_time:?} {ahead}");
    }
    // At once by one that is no further ahead than an ID may be: that costs little.
    let mut registry = registry_after_loss();
    registry.time = Some(at(600));
    Server::knowing(narrow(), 1, Some(98)).settle(&mut registry, ZERO);
    assert_eq!(mark(&registry), Some(at(1260)));
    // And by one that was as far ahead when the lease began.
    let mut registry = Registry { time: Some(at(HOUR)), ..Registry::default() };
    let mut slow = Server::new(1);
    slow.settle(&mut registry, ZERO);
    registry = Registry { time: Some(at(HOUR + 70)), ..Registry::default() };
    slow.clock = at(70);
    slow.settle(&mut registry, later(70));
    assert_eq!(mark(&registry), Some(at(HOUR + 730)));
    // By its own grant, which begins where that of another server ended.
    let mut registry = Registry::default();
    for worker in 0..4 {
        registry.records.insert(WorkerNumber(worker), record(None, 1, HOUR - 500, HOUR - 500));
    }
    let mut slow = Server::new(1);
    slow.clock = at(HOUR - 1000);
    slow.settle(&mut registry, ZERO);
    assert_eq!(slow.lessee.held().unwrap().1.record.granted_until, at(HOUR - 440));
    registry = Registry::default();
    slow.settle(&mut registry, later(50));
    assert_eq!(registry.namespace.unwrap().leases_from, Some(at(HOUR + 160)));
}

/// A registry that was booted with a wrong clock, and is set right soon.
#[test]
fn a_time_that_is_shown_far_ahead_for_a_moment_is_not_put_on_record() {
    for is_set_right in [false, true] {
        let mut registry = registry_after_loss();
        let mut server = Server::knowing(narrow(), 1, Some(98));
        for second in [0, 20, 40, 59] {
            assert_eq!(mark(&registry), None, "at {second}");
            let ahead = if is_set_right && second == 59 { 0 } else { 5 * HOUR };
            registry.time = Some(at(ahead + second));
            server.clock = at(second);
            server.settle(&mut registry, later(second));
        }
        assert_eq!(mark(&registry), is_set_right.then_some(at(719)));
        if !is_set_right {
            assert_eq!(server.lessee.trouble(), Some(Trouble::ClockBehind(Micros::from_secs(5 * HOUR))));
            assert!(server.events.contains(&Event::ClockBehind(Micros::from_secs(5 * HOUR))), "{:?}", server.events);
        }
        // Another leap is looked at anew.
        registry.time = Some(at(10 * HOUR));
        server.clock = at(70);
        server.settle(&mut registry, later(70));
        assert_eq!(mark(&registry), is_set_right.then_some(at(719)));
    }
    // Who has a lease waits until it has to be renewed, and takes the later time then.
    for is_set_right in [false, true] {
        let (mut registry, mut server) = (Registry { time: Some(at(0)), ..Registry::default() }, Server::new(1));
        server.settle(&mut registry, ZERO);
        registry = Registry { time: Some(at(5 * HOUR + 20)), version: registry.version, ..Registry::default() };
        for (second, leases_from) in
            [(20, None), (40, is_set_right.then_some(700)), (50, Some(if is_set_right { 700 } else { 5 * HOUR + 710 }))]
        {
            registry.time = Some(at(if is_set_right && second >= 40 { second } else { 5 * HOUR + second }));
            server.clock = at(second);
            server.settle(&mut registry, later(second));
            assert_eq!(mark(&registry), leases_from.map(at), "at {second}");
            assert!(server.claim().is_some());
        }
        server.clock = at(65);
        server.settle(&mut registry, later(65));
        assert!(server.claim().is_some(), "it was renewed");
    }
}

/// Its server had a wrong clock, and is gone, or was set right: the end of its grant stays.
#[test]
fn a_lease_far_ahead_that_nobody_renews_puts_no_time_on_record() {
    for (time, is_renewed) in [(Some(at(70)), false), (None, false), (None, true)] {
        let mut registry = registry_after_loss();
        let mut server = Server::knowing(narrow(), 1, Some(98));
        for second in [0, 20, 40, 59, 70] {
            assert_eq!(mark(&registry), None, "at {second}");
            let seconds = if is_renewed { second.min(20) } else { 0 };
            registry.records.insert(WorkerNumber(3), record(Some(9), 9, 0, YEAR + seconds));
            registry.time = time;
            server.clock = at(second);
            server.settle(&mut registry, later(second));
        }
        assert_eq!(mark(&registry), Some(at(730)), "{time:?} {is_renewed}");
    }
    // Who has to renew a lease cannot wait for a minute.
    for (is_renewed, expected) in [(false, 710), (true, YEAR - 60 + 5 + 660)] {
        let (mut registry, mut server) = (Registry::default(), Server::new(1));
        server.settle(&mut registry, ZERO);
        registry = registry_after_loss();
        for second in [30, 40, 50] {
            assert_eq!(mark(&registry), None, "at {second}");
            let seconds = if is_renewed && second > 30 { 5 } else { 0 };
            registry.records.insert(WorkerNumber(3), record(Some(9), 9, 0, YEAR + seconds));
            server.clock = at(second);
            server.settle(&mut registry, later(second));
        }
        assert_eq!(mark(&registry), Some(at(expected)), "{is_renewed}");
    }
}

/// Nothing would lower it again, and nobody lease before.
#[test]
fn a_server_whose_clock_is_fast_at_the_start_puts_nothing_on_record_before_it_is_believed() {
    for (is_elsewhere, time) in [(false, Some(at(0))), (true, Some(at(0))), (false, None)] {
        let mut registry = Registry { time, ..Registry::default() };
        registry.records.insert(WorkerNumber(3), record(Some(9), 9, 0, 60));
        let before = match is_elsewhere {
            false => namespace(&narrow(), 99, None),
            true => {
                let (registry, here) = (Some("system=1".to_owned()), Some("system=2".to_owned()));
                NamespaceRecord { registry, here, ..namespace(&narrow(), 98, None) }
            }
        };
        registry.namespace = Some(before.clone());
        let mut fast = Server::knowing(narrow(), 1, Some(98));
        fast.clock = at(YEAR);
        for second in [0, 30, 59] {
            fast.settle(&mut registry, later(second));
            assert_eq!(registry.namespace.as_ref(), Some(&before), "{second}");
        }
        assert!(matches!(fast.lessee.trouble(), Some(Trouble::ClockAhead(_))), "{:?}", fast.lessee.trouble());
        // Set right: a time that others can wait for.
        let mut right = fast;
        right.clock = at(60);
        right.settle(&mut registry, later(70));
        assert_eq!(registry.namespace.as_ref().unwrap().leases_from, Some(at(720)));
        // Or it stays so, and is believed: its grants are of that time.
        registry.namespace = Some(before);
        let mut fast = Server::knowing(narrow(), 1, Some(98));
        fast.clock = at(YEAR);
        for second in [0, 70] {
            fast.settle(&mut registry, later(second));
        }
        assert_eq!(registry.namespace.as_ref().unwrap().leases_from, Some(at(YEAR + 660)));
    }
    // Who has a lease does not wait: its clock was believed, and what it knows of must be on record at once.
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    registry = Registry { time: Some(at(0)), ..Registry::default() };
    server.clock = at(40);
    server.settle(&mut registry, later(40));
    assert_eq!(registry.namespace.unwrap().leases_from, Some(at(700)));
    assert!(server.claim().is_some());
}

/// By a snapshot that shows nothing of itself, to a life that had a mark of its own: nothing of what the server knows is there.
#[test]
fn an_old_mark_of_an_older_life_does_not_count_for_a_loss() {
    let mut registry = Registry { namespace: Some(namespace(&narrow(), 98, Some(at(500)))), ..Registry::default() };
    let mut server = Server::knowing(narrow(), 1, Some(99));
    server.clock = at(1000);
    server.settle(&mut registry, ZERO);
    assert_eq!(registry.namespace.as_ref().unwrap().leases_from, Some(at(1660)));
    assert_eq!((server.claim(), server.known_life), (None, Some(98)));
    server.clock = at(1660);
    server.settle(&mut registry, later(660));
    assert!(server.claim().is_some());
    assert_eq!(registry.namespace.as_ref().unwrap().leases_from, Some(at(1660)), "once");
}

/// By a snapshot that shows nothing of itself, to the time before the mark under which the server waits: other servers hold what was leased since.
#[test]
fn a_mark_that_has_gone_back_within_a_life_shows_that_the_registry_was_rolled_back() {
    for older in [None, Some(500)] {
        let mut registry = Registry { namespace: Some(namespace(&narrow(), 99, Some(at(690)))), ..Registry::default() };
        let mut server = Server::new(1);
        server.clock = at(400);
        server.settle(&mut registry, ZERO);
        assert!(server.events.contains(&Event::NotBefore(at(690))), "{:?}", server.events);
        registry.namespace = Some(namespace(&narrow(), 99, older.map(at)));
        // Its first request for a worker finds that.
        for (second, is_leased) in [(689, false), (690, false), (1349, false), (1350, true)] {
            server.clock = at(second);
            server.settle(&mut registry, later(100 * second));
            assert_eq!(server.claim().is_some(), is_leased, "{older:?} at {second}");
            let leases_from = if second < 690 { older } else { Some(1350) };
            assert_eq!(mark(&registry), leases_from.map(at), "{older:?} at {second}");
        }
        assert!(server.events.contains(&Event::Forgotten(at(1350))), "{:?}", server.events);
    }
}

/// A renewal finds that, and the lease goes on. What is put on record then is no lower than what was.
#[test]
fn who_has_a_lease_notices_that_a_mark_has_gone_back() {
    for (before, after, expected) in
        [(500, None, 680), (690, Some(685), 690), (500, Some(300), 680), (5000, None, 5000)]
    {
        let (mut registry, mut server) = (Registry::default(), Server::new(1));
        server.settle(&mut registry, ZERO);
        registry.namespace.as_mut().unwrap().leases_from = Some(at(before));
        server.lessee.look();
        server.settle(&mut registry, later(1));
        registry.namespace.as_mut().unwrap().leases_from = after.map(at);
        server.clock = at(20);
        server.settle(&mut registry, later(20));
        assert_eq!(mark(&registry), Some(at(expected)), "{before} {after:?}");
        assert_eq!(server.lessee.held().unwrap().1.record.granted_until, at(80));
    }
}

/// What an operator has said was said of the loss before.
#[test]
fn a_mark_that_was_overruled_counts_for_the_next_loss() {
    let mut registry = Registry { namespace: Some(namespace(&narrow(), 99, Some(at(YEAR)))), ..Registry::default() };
    let mut server = Server::new(1);
    server.lessee.trust(true);
    server.settle(&mut registry, ZERO);
    assert!(server.claim().is_some());
    registry = Registry { namespace: Some(namespace(&narrow(), 99, None)), ..Registry::default() };
    server.clock = at(70);
    server.settle(&mut registry, later(70));
    assert_eq!(server.claim(), None);
    assert!(server.events.contains(&Event::NotBefore(at(YEAR))), "{:?}", server.events);
}

/// The mark that one server was told to overrule counts for it again once another one notices a loss, though it is late enough for that.
#[test]
fn a_mark_that_was_overruled_counts_for_a_loss_that_another_server_notices() {
    let shown = |system: u64| Some(format!("system={system}"));
    let before = NamespaceRecord { registry: shown(1), here: shown(1), ..namespace(&narrow(), 99, Some(at(5 * HOUR))) };
    let mut registry = Registry { namespace: Some(before), ..Registry::default() };
    let mut told = Server::new(1);
    told.lessee.trust(true);
    told.settle(&mut registry, ZERO);
    assert!(told.claim().is_some());
    // Another server notices the loss, and confirms the new identity.
    registry.namespace.as_mut().unwrap().here = shown(2);
    let mut other = Server::new(2);
    other.settle(&mut registry, later(1));
    let raised = Some(at(5 * HOUR) + Micros(1));
    assert_eq!((mark(&registry), registry.namespace.as_ref().unwrap().is_elsewhere()), (raised, false));
    // The worker of the first one was taken over meanwhile. It takes none that may be in use.
    let worker = told.lessee.held().unwrap().0;
    registry.records.insert(worker, Stored { version: Version(91), ..record(Some(9), 9, 60, 120) });
    told.clock = at(20);
    told.settle(&mut registry, later(20));
    assert_eq!((told.lessee.held().is_some(), mark(&registry)), (false, raised));
}

/// A lease that was over before it could be renewed begins again at the mark, unless that is far ahead: then the server waits.
#[test]
fn a_lease_that_is_over_waits_for_a_mark_that_is_far_ahead() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    registry.namespace.as_mut().unwrap().leases_from = Some(at(720));
    server.clock = at(70);
    server.settle(&mut registry, later(70));
    assert_eq!(server.lessee.held().unwrap().1.record.granted_until, at(780));
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    server.claim().unwrap();
    // Another server has noticed a loss while this one was cut off.
    registry.namespace.as_mut().unwrap().leases_from = Some(at(5 * HOUR));
    for (second, is_leased) in [(70, false), (600, false), (5 * HOUR - 1, false), (5 * HOUR, true)] {
        server.clock = at(second);
        server.settle(&mut registry, later(100 * second));
        assert_eq!(server.claim().is_some(), is_leased, "at {second}");
        assert_eq!(server.published.look(&server.layout, &server.line).line > at(HOUR), is_leased, "at {second}");
    }
    assert!(server.events.contains(&Event::NotBefore(at(5 * HOUR))), "{:?}", server.events);
    assert_eq!(server.lessee.held().unwrap().1.record.granted_until, at(5 * HOUR + 60));
}

/// Later, it may be on record that the registry has forgotten. That is by the time it is then.
#[test]
fn a_time_that_was_found_out_under_another_layout_is_not_kept() {
    let mut registry = registry_after_loss();
    let mut server = Server::knowing(narrow(), 1, Some(98));
    let read = until(&mut server, &mut registry, ZERO, |request| *request == Next::ReadAll);
    let answer = registry.answer(read);
    server.answer(ZERO, answer, 0);
    registry.namespace = Some(namespace(&layout(), 99, None));
    server.settle(&mut registry, ZERO);
    assert!(matches!(server.lessee.trouble(), Some(Trouble::OtherLayout(_))), "{:?}", server.lessee.trouble());
    registry.namespace = Some(namespace(&narrow(), 99, None));
    server.clock = at(5000);
    server.settle(&mut registry, later(5000));
    assert_eq!(registry.namespace.unwrap().leases_from, Some(at(5660)));
}

/// Nor does it wait for that where its lease is over.
#[test]
fn a_server_whose_lease_is_over_does_not_wait_for_records_that_cannot_be_read() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    registry = Registry::default();
    for second in 100..200 {
        server.clock = at(second);
        while let Ok(request) = server.step(later(second), 0) {
            let answer = if request == Next::ReadAll { Answer::Failed } else { registry.answer(request) };
            server.answer(later(second), answer, 0);
        }
    }
    assert!(mark(&registry).is_some_and(|mark| mark < at(200 + 660)), "{:?}", mark(&registry));
}

/// While its lease lasts, a server whose clock is slow goes on asking what time it is.
#[test]
fn a_slow_server_that_cannot_read_the_records_at_first_puts_no_time_on_record_that_is_over() {
    let (mut registry, mut slow) = (Registry { time: Some(at(HOUR)), ..Registry::default() }, Server::new(1));
    slow.settle(&mut registry, ZERO);
    assert!(slow.claim().is_some());
    let (version, mut failures) = (registry.version, 0);
    registry = Registry { version, ..Registry::default() };
    for second in 20..60 {
        slow.clock = at(second);
        registry.time = Some(at(HOUR + second));
        while let Ok(request) = slow.step(later(second), 0) {
            let fails = request == Next::ReadAll && failures < 3;
            failures += u32::from(fails);
            let answer = if fails { Answer::Failed } else { registry.answer(request) };
            slow.answer(later(second), answer, 0);
        }
        assert!(mark(&registry).is_none_or(|mark| mark > at(HOUR)), "{:?} at {second}", mark(&registry));
    }
    assert!(mark(&registry).is_some() && slow.claim().is_some());
}

/// One record may be unreadable, or the registry too slow to read all in time.
#[test]
fn a_lease_is_renewed_after_a_loss_though_the_records_cannot_be_read() {
    let (mut registry, mut server) = (Registry::default(), Server::new(1));
    server.settle(&mut registry, ZERO);
    // Each time, the records are to be read before the lease is renewed.
    registry = Registry::default();
    for second in 0..200 {
        server.clock = at(second);
        if second == 100 {
            registry.namespace = None;
        }
        while let Ok(request) = server.step(later(second), 0) {
            let answer = if request == Next::ReadAll { Answer::Failed } else { registry.answer(request) };
            server.answer(later(second), answer, 0);
        }
        server.events.extend(server.lessee.take_events());
        assert!(server.claim().is_some(), "at {second} s");
    }
    let is_loss = |event: &&Event| matches!(event, Event::Forgotten(_));
    assert_eq!(server.events.iter().filter(is_loss).count(), 2, "{:?}", server.events);
    assert!(registry.namespace.unwrap().leases_from.is_some_and(|from| from >= at(760)));
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
