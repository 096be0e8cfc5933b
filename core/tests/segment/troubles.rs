//! The fetcher in trouble: others that want the same, outages, stops, registries that have forgotten.

use super::*;

/// Servers collide all the time, as ranges are too small: that is counted, reported once a minute, and says what is large enough.
#[test]
fn a_largest_range_that_is_too_small_is_said() {
    let (mut registry, mut server) = (Registry::new(), Server::new());
    let small = NewSegment { bounds: Sizes { smallest: 10, largest: 10 }, ..plan(1, 1_000_000) };
    server.request(&mut registry, Request::Create(orders(), small)).unwrap();
    server.request(&mut registry, Request::Attach(orders())).unwrap();
    server.settle(&mut registry);
    let said =
        |server: &Server| server.events.iter().filter(|event| matches!(event, TagEvent::TooSmall { .. })).count();
    let trouble = |server: &Server| {
        let held = server.held();
        server.fetcher.trouble(&Moment { monotonic: server.now, chance: 0, namespace: None, held: &held })
    };
    assert_eq!((said(&server), trouble(&server), server.fetcher.conflicts(0)), (0, None, 0));
    while server.claim(&orders(), 1000).is_some() {}
    let contend = |server: &mut Server, registry: &mut Registry, conflicts: u64| {
        while server.fetcher.conflicts(0) < conflicts {
            collide(registry);
            server.chance = server.chance.wrapping_add(0x9e37_79b9);
            if let Some(pause) = server.step(registry, Fate::Done) {
                server.now = server.now.saturating_add(pause);
            }
        }
    };
    contend(&mut server, &mut registry, 40);
    assert_eq!(said(&server), 1, "{:?}", server.events);
    let Some(Trouble::TooSmall { tag, conflicts: 40, largest: 10, enough }) = trouble(&server) else {
        panic!("{:?}", trouble(&server))
    };
    assert!(tag == orders() && enough >= 100, "{enough}");
    server.advance(61);
    contend(&mut server, &mut registry, 80);
    assert_eq!(said(&server), 2);
    // Nobody else asks any more.
    server.advance(61);
    server.settle(&mut registry);
    assert_eq!(trouble(&server), None);
}

/// Each is found by its standing; a tag that was dropped is what somebody wanted.
#[test]
fn trouble_is_what_keeps_a_server_from_numbers_now() {
    let (mut registry, mut server) = with_orders(1000);
    let trouble = |server: &Server| {
        let held = server.held();
        server.fetcher.trouble(&Moment { monotonic: server.now, chance: 0, namespace: None, held: &held })
    };
    while server.claim(&orders(), 1000).is_some() {}
    while server.step(&mut registry, Fate::Lost).is_none() && trouble(&server).is_none() {}
    assert_eq!(trouble(&server), Some(Trouble::Failing));
    server.advance(60);
    server.settle(&mut registry);
    assert_eq!(trouble(&server), None);
    server.request(&mut registry, Request::Raise(orders(), 1000)).unwrap();
    server.advance(60);
    server.settle(&mut registry);
    assert_eq!(trouble(&server), Some(Trouble::UsedUp(orders())));
    server.request(&mut registry, Request::Drop(orders())).unwrap();
    assert_eq!(trouble(&server), None);
    for name in ["b", "c"] {
        server.request(&mut registry, Request::Create(tag(name), plan(1, 9))).unwrap();
    }
    server.request(&mut registry, Request::Attach(tag("b"))).unwrap();
    assert_eq!(server.request(&mut registry, Request::Attach(tag("c"))), Err(NotDone::Full));
    assert_eq!(trouble(&server), Some(Trouble::Full(tag("c"))));
    registry.records.clear();
    server.advance(61);
    server.settle(&mut registry);
    assert!(matches!(trouble(&server), Some(Trouble::Missing(_))));
}

/// A tag on which servers collide keeps nothing else waiting: another tag gets its range, and somebody who waits is answered.
#[test]
fn a_contended_tag_delays_itself_alone() {
    let (mut registry, mut server) = with_orders(1_000_000);
    while server.claim(&orders(), 1000).is_some() {}
    for _ in 0..6 {
        collide(&mut registry);
        server.step(&mut registry, Fate::Done);
    }
    let requests = registry.requests;
    server.fetcher.request(Request::Raise(orders(), 5));
    while !server.events.iter().any(|event| matches!(event, TagEvent::Answered(Ok(_)))) {
        server.step(&mut registry, Fate::Done);
    }
    // The tag's own turn may have come before it: each a read and a write.
    assert!(registry.requests - requests <= 4, "{}", registry.requests - requests);
}

/// The registry was away for as long as a range lasts, so that all servers have a range to ask for. They do not ask all at once; one
/// that has nothing left asks at once.
#[test]
fn after_an_outage_requests_are_spread() {
    let mut asked = Vec::new();
    for chance in 0..50 {
        let (mut registry, mut server) = with_orders(1_000_000);
        server.chance = chance * 0x0123_4567_89ab_cdef;
        // A number a second.
        for _ in 0..3000 {
            server.advance(1);
            server.settle(&mut registry);
            assert!(server.claim(&orders(), 1).is_some());
        }
        while server.held()[0].left() > 400 {
            server.advance(1);
            while server.step(&mut registry, Fate::Lost).is_none() {}
            assert!(server.claim(&orders(), 1).is_some());
        }
        let granted = registry.next_of("orders");
        let back = server.now;
        let mut wait = server.settle(&mut registry);
        while registry.next_of("orders") == granted {
            assert!(wait <= Micros::from_secs(60), "{wait:?}");
            server.now = server.now.saturating_add(wait.max(Micros::from_millis(1)));
            wait = server.settle(&mut registry);
        }
        asked.push((server.now.0 - back.0) / 1_000_000);
    }
    assert!(asked.iter().all(|second| *second <= 70), "{asked:?}");
    for second in 0..60 {
        let together = asked.iter().filter(|asked| (second..second + 10).contains(*asked)).count();
        assert!(together <= 25, "{together} of {} within 10 s: {asked:?}", asked.len());
    }

    let (mut registry, mut server) = with_orders(1_000_000);
    for _ in 0..20 {
        server.advance(1);
        server.step(&mut registry, Fate::Lost);
        server.claim(&orders(), 1);
    }
    server.advance(5);
    server.settle(&mut registry);
    assert!(server.claim(&orders(), 1).is_some());
}

#[test]
fn a_clean_stop_leaves_no_gap() {
    let (mut registry, mut server) = with_orders(1_000_000);
    assert_eq!(server.claim(&orders(), 9), Some(range(1, 10)));
    server.settle(&mut registry);
    assert_eq!(registry.next_of("orders"), 31);
    server.fetcher.stop(MonotonicMicros(1_000_000));
    server.settle(&mut registry);
    assert!(server.is_done);
    assert_eq!((registry.next_of("orders"), server.claim(&orders(), 1)), (10, None));
    assert!(server.events.contains(&TagEvent::GivenBack { tag: orders(), next: 10 }));
    // Where another server was granted a range since, that stays.
    let (mut registry, mut server) = with_orders(1_000_000);
    let mut other = Server::new();
    other.request(&mut registry, Request::Attach(orders())).unwrap();
    server.fetcher.stop(MonotonicMicros(1_000_000));
    server.settle(&mut registry);
    assert!(server.is_done);
    assert_eq!(registry.next_of("orders"), 21);
}

/// Others were granted the same numbers, up to the same end: what is left of them here is theirs.
#[test]
fn a_stop_gives_nothing_back_where_others_have_caught_up_after_a_rollback() {
    for grants_once_more in [false, true] {
        let (mut registry, mut server) = with_orders(1_000_000);
        assert_eq!(server.claim(&orders(), 9), Some(range(1, 10)));
        server.settle(&mut registry);
        assert_eq!(registry.next_of("orders"), 31);
        // It went back to 11, and others were granted from there up to 31.
        collide(&mut registry);
        let mut back = 31;
        if grants_once_more {
            // The range that it is granted now is its own. Those from before may not be.
            while registry.next_of("orders") == 31 {
                server.claim(&orders(), 1).unwrap();
                server.settle(&mut registry);
            }
            back = server.held()[0].after.unwrap().first;
            assert_eq!(server.held()[0].current.end, back);
        }
        server.fetcher.stop(MonotonicMicros(1_000_000));
        server.settle(&mut registry);
        assert!(server.is_done);
        assert_eq!(registry.next_of("orders"), back, "{grants_once_more}: {:?}", server.events);
    }
}

#[test]
fn a_stop_ends_while_the_registry_is_away() {
    let (mut registry, mut server) = with_orders(1_000_000);
    server.fetcher.stop(MonotonicMicros(1_000_000));
    for _ in 0..5 {
        server.step(&mut registry, Fate::Lost);
    }
    assert!(server.is_done);
    assert_eq!(registry.next_of("orders"), 11);
}

#[test]
fn a_drop_and_a_raise_reach_other_servers_by_their_next_look() {
    let (mut registry, mut server) = with_orders(1_000_000);
    let mut other = Server::new();
    other.request(&mut registry, Request::Attach(orders())).unwrap();
    assert_eq!(other.claim(&orders(), 1), Some(range(11, 12)));
    server.request(&mut registry, Request::Raise(orders(), 500)).unwrap();
    other.advance(61);
    other.settle(&mut registry);
    server.settle(&mut registry);
    assert!(other.claim(&orders(), 1).unwrap().first > 500);
    assert!(server.claim(&orders(), 1).unwrap().first > 500);

    server.request(&mut registry, Request::Drop(orders())).unwrap();
    other.advance(61);
    other.settle(&mut registry);
    server.settle(&mut registry);
    assert_eq!((other.claim(&orders(), 1), server.claim(&orders(), 1)), (None, None));
    assert_eq!(other.places[0].standing, TagStanding::Dropped);
    let before = registry.next_of("orders");

    server.request(&mut registry, Request::Create(orders(), plan(1, 1_000_000))).unwrap();
    server.settle(&mut registry);
    assert_eq!(server.claim(&orders(), 1).unwrap().first, before);
    other.request(&mut registry, Request::Attach(orders())).unwrap();
    other.settle(&mut registry);
    assert!(other.claim(&orders(), 1).unwrap().first > before);
}

#[test]
fn a_registry_that_has_forgotten_is_told() {
    let (mut registry, mut server) = with_orders(1_000_000);
    let old = registry.clone();
    assert_eq!(server.claim(&orders(), 9), Some(range(1, 10)));
    server.settle(&mut registry);
    registry.records = old.records;
    server.advance(61);
    server.settle(&mut registry);
    let news = TagEvent::RolledBack { tag: orders(), next: 11, known: 31 };
    assert_eq!(server.events.iter().filter(|event| **event == news).count(), 1);
    assert_eq!(registry.next_of("orders"), 31);

    registry.records.clear();
    server.advance(61);
    server.settle(&mut registry);
    assert!(server.events.contains(&TagEvent::Missing(orders())));
    assert_eq!(server.places[0].standing, TagStanding::Missing);
    assert!(server.claim(&orders(), 1).is_some(), "what is held is nobody else's");
    let forgotten = &registry.records[&orders()].record;
    assert_eq!((forgotten.state, forgotten.next), (State::Forgotten, 31), "and nothing begins anew");
    assert_eq!(server.request(&mut registry, Request::Attach(orders())), Err(NotDone::Refused(TagRefusal::Missing)));
    server.request(&mut registry, Request::Create(orders(), plan(1, 1_000_000))).unwrap();
    assert!(registry.next_of("orders") >= 31, "this server knows what it was granted");
}

/// Also those that another server holds and has not used, which no table shows.
#[test]
fn a_tag_that_was_forgotten_goes_on_above_what_all_servers_were_granted() {
    let (mut registry, mut first) = with_orders(1_000_000);
    let mut second = Server { chance: 1, ..Server::new() };
    second.request(&mut registry, Request::Attach(orders())).unwrap();
    assert_eq!(first.claim(&orders(), 1), Some(range(1, 2)));
    let granted = registry.next_of("orders");
    registry.records.clear();
    registry.namespace = namespace(LIFE + 1);
    second.settle(&mut registry);
    first.settle(&mut registry);
    assert_eq!(registry.next_of("orders"), granted);
    for server in [&mut first, &mut second] {
        assert_eq!(server.places[0].standing, TagStanding::Missing);
        assert_eq!(server.events.iter().filter(|event| **event == TagEvent::Missing(orders())).count(), 1);
    }
    assert!(!first.events.iter().any(|event| matches!(event, TagEvent::RolledBack { .. })));
    let mut third = Server { chance: 2, ..Server::new() };
    let record = third.request(&mut registry, Request::Create(orders(), plan(1, 1_000_000))).unwrap();
    assert_eq!(record.next, granted);
}

#[test]
fn another_record_of_the_namespace_has_all_servers_look() {
    let (mut registry, mut server) = with_orders(1_000_000);
    server.settle(&mut registry);
    registry.records.clear();
    registry.namespace = NamespaceRecord { leases_from: Some(snowflake_core::UnixMicros(1)), ..namespace(LIFE) };
    server.settle(&mut registry);
    assert!(server.events.contains(&TagEvent::Missing(orders())));
}

#[test]
fn an_order_whose_answer_is_lost_is_looked_after() {
    let (mut registry, mut server) = (Registry::new(), Server::new());
    server.fetcher.request(Request::Create(orders(), plan(1, 99)));
    for fate in [Fate::Done, Fate::AnswerLost] {
        assert_eq!(server.step(&mut registry, fate), None);
    }
    server.settle(&mut registry);
    assert!(matches!(&server.events[..], [TagEvent::Answered(Ok(_))]), "{:?}", server.events);
    assert_eq!(registry.version, 2, "confirmed by a second write");
    server.events.clear();
    server.fetcher.request(Request::Drop(orders()));
    for fate in [Fate::Done, Fate::Lost, Fate::Lost] {
        assert_eq!(server.step(&mut registry, fate), None);
    }
    assert_eq!(server.events, [TagEvent::Answered(Err(NotDone::Unknown))]);
}

#[test]
fn a_new_process_goes_on_with_what_is_held() {
    let (mut registry, mut server) = with_orders(1_000_000);
    server.claim(&orders(), 3);
    server.fetcher = fetcher(vec![orders()]);
    server.settle(&mut registry);
    assert_eq!(server.claim(&orders(), 1), Some(range(4, 5)));
    for number in 5..40 {
        server.settle(&mut registry);
        assert_eq!(server.claim(&orders(), 1), Some(range(number, number + 1)));
    }
}

#[test]
fn a_new_run_begins_with_the_size_of_the_last() {
    let (mut registry, mut server) = with_orders(1_000_000);
    server.fetcher = Fetcher::new(TERMS, 2, Vec::new(), BTreeMap::from([(orders(), 300)]));
    server.places.clear();
    server.request(&mut registry, Request::Attach(orders())).unwrap();
    assert_eq!(server.claim(&orders(), 1000), Some(range(11, 311)));
    assert_eq!(server.fetcher.sizes().collect::<Vec<_>>(), [(&orders(), 300)]);
}
