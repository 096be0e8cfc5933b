//! The fetcher, with a registry: ranges that come in time.

use super::*;

#[test]
fn the_first_range_is_small_and_the_next_one_comes_in_time() {
    let (mut registry, mut server) = with_orders(1_000_000);
    assert_eq!(registry.next_of("orders"), 11);
    assert_eq!(server.claim(&orders(), 1), Some(range(1, 2)));
    server.advance(1);
    server.settle(&mut registry);
    assert_eq!(server.places[0].after, Some(range(11, 31)), "a number a second, so twice as many");
    for expected in 2..=30 {
        server.settle(&mut registry);
        assert_eq!(server.claim(&orders(), 1), Some(range(expected, expected + 1)));
    }
}

#[test]
fn a_tag_that_is_used_ten_times_a_day_keeps_small_ranges() {
    let (mut registry, mut server) = with_orders(1_000_000);
    for number in 1..=100 {
        assert_eq!(server.claim(&orders(), 1), Some(range(number, number + 1)));
        server.advance(8640);
        server.settle(&mut registry);
    }
    assert!(server.held()[0].left() <= 20, "{:?}", server.held());
    assert!(registry.next_of("orders") <= 120);
}

/// A night without use says nothing about the morning: the next range is asked for before most of the last one is used.
#[test]
fn a_rate_that_rises_is_noticed_in_time() {
    let (mut registry, mut server) = with_orders(1_000_000);
    let second = |server: &mut Server, registry: &mut Registry| {
        server.claim(&orders(), 1).unwrap();
        server.advance(1);
        server.settle(registry);
    };
    for _ in 0..4000 {
        second(&mut server, &mut registry);
    }
    server.advance(36_000);
    server.settle(&mut registry);
    let granted = registry.next_of("orders");
    let asked_with = (0..2000).find_map(|_| {
        let left = server.held()[0].left();
        second(&mut server, &mut registry);
        let size = registry.next_of("orders") - granted;
        (size > 0).then_some((left, size))
    });
    let (left, size) = asked_with.unwrap();
    assert!(left >= 600 && size >= 600, "{left} {size}");
}

/// A thousand numbers a second: sizes rise until a range lasts ten minutes.
#[test]
fn sizes_follow_the_use() {
    let (mut registry, mut server) = (Registry::new(), Server::new());
    let bounds = Sizes { smallest: 10, largest: u64::MAX };
    let plan = NewSegment { bounds, ..plan(1, TagRecord::HIGHEST) };
    server.request(&mut registry, Request::Create(orders(), plan)).unwrap();
    server.request(&mut registry, Request::Attach(orders())).unwrap();
    let mut use_for = |server: &mut Server, seconds: u64, a_second: u64| {
        registry.requests = 0;
        for _ in 0..seconds {
            let mut left = a_second;
            while left > 0 {
                match server.claim(&orders(), left) {
                    Some(claimed) => left -= claimed.count(),
                    None => drop(server.settle(&mut registry)),
                }
            }
            server.advance(1);
            server.settle(&mut registry);
        }
        registry.requests
    };
    use_for(&mut server, 7200, 1000);
    let requests = use_for(&mut server, 7200, 1000);
    let (size, _) = server.fetcher.used(0, &server.held()[0], server.now).unwrap();
    assert!((700_000..=800_000).contains(&size), "{size}");
    assert!(requests < 12 + 7200 / 48 + 10, "{requests}: a range in ten minutes, a look a minute");
    use_for(&mut server, 36_000, 1);
    let (size, _) = server.fetcher.used(0, &server.held()[0], server.now).unwrap();
    assert!(size < 800_000, "{size}");
}

#[test]
fn a_tag_that_was_not_created_is_refused_and_takes_no_place() {
    let (mut registry, mut server) = (Registry::new(), Server::new());
    for _ in 0..5 {
        let unknown = server.request(&mut registry, Request::Attach(orders()));
        assert_eq!(unknown, Err(NotDone::Refused(TagRefusal::Missing)));
    }
    assert_eq!((server.places.len(), registry.records.len()), (0, 0));
}

#[test]
fn sessions_that_ask_for_what_is_not_there_keep_nobody_from_numbers() {
    let (mut registry, mut server) = with_orders(1_000_000);
    let mut taken = 0;
    for _ in 0..200 {
        taken += server.claim(&orders(), 1000).map_or(0, |claimed| claimed.count());
        if !server.fetcher.is_busy() {
            server.fetcher.request(Request::Attach(tag("other")));
        }
        server.step(&mut registry, Fate::Done);
    }
    let refused = server.events.iter().filter(|event| matches!(event, TagEvent::Answered(Err(_)))).count();
    assert!(taken > 1000 && refused > 20, "{taken} {refused}");
}

/// Whose ranges are so small that sessions have used one before the next thing is done.
#[test]
fn a_tag_that_is_always_empty_keeps_no_other_one_waiting() {
    let (mut registry, mut server) = (Registry::new(), Server::new());
    let small = NewSegment { bounds: Sizes { smallest: 1, largest: 1 }, ..plan(1, 1_000_000) };
    for name in ["a", "b"] {
        server.request(&mut registry, Request::Create(tag(name), small)).unwrap();
        server.request(&mut registry, Request::Attach(tag(name))).unwrap();
    }
    let mut taken = [0; 2];
    for _ in 0..100 {
        for (name, taken) in ["a", "b"].into_iter().zip(&mut taken) {
            *taken += u32::from(server.claim(&tag(name), 1).is_some());
        }
        server.step(&mut registry, Fate::Done);
        server.now = server.now.saturating_add(Micros(100));
    }
    assert!(taken.iter().all(|taken| *taken > 10), "{taken:?}");
}

#[test]
fn there_is_a_place_for_so_many_tags() {
    let (mut registry, mut server) = with_orders(99);
    for name in ["b", "c"] {
        server.request(&mut registry, Request::Create(tag(name), plan(1, 99))).unwrap();
    }
    server.request(&mut registry, Request::Attach(tag("b"))).unwrap();
    assert_eq!(server.request(&mut registry, Request::Attach(tag("c"))), Err(NotDone::Full));
    assert!(server.request(&mut registry, Request::Attach(orders())).is_ok());
}

#[test]
fn at_its_end_a_tag_is_used_up() {
    let (mut registry, mut server) = with_orders(25);
    let near = |server: &Server| server.events.iter().filter(|event| matches!(event, TagEvent::NearEnd { .. })).count();
    assert_eq!(near(&server), 1);
    for number in 1..=25 {
        server.settle(&mut registry);
        assert_eq!(server.claim(&orders(), 1), Some(range(number, number + 1)));
    }
    server.settle(&mut registry);
    assert_eq!((server.claim(&orders(), 1), server.places[0].standing), (None, TagStanding::UsedUp));
    assert_eq!(near(&server), 1, "once an hour");
    let requests = registry.requests;
    server.advance(30);
    server.settle(&mut registry);
    assert!(registry.requests <= requests + 1, "it is not asked for again and again");
}

/// Also while numbers are left that were granted before.
#[test]
fn a_look_shows_that_a_tag_is_used_up() {
    let (mut registry, mut server) = with_orders(15);
    assert_eq!(server.claim(&orders(), 9), Some(range(1, 10)));
    server.settle(&mut registry);
    assert_eq!(registry.next_of("orders"), 16);
    server.advance(61);
    server.settle(&mut registry);
    assert_eq!(server.places[0].standing, TagStanding::UsedUp);
    assert_eq!((server.claim(&orders(), 9), server.claim(&orders(), 9)), (Some(range(10, 11)), Some(range(11, 16))));
}

#[test]
fn what_is_not_answered_is_abandoned() {
    for fate in [Fate::AnswerLost, Fate::Late, Fate::Lost] {
        let (mut registry, mut server) = with_orders(1_000_000);
        assert_eq!(server.claim(&orders(), 9), Some(range(1, 10)));
        assert_eq!(server.step(&mut registry, fate), None);
        server.advance(1);
        server.settle(&mut registry);
        for late in std::mem::take(&mut registry.late) {
            registry.answer(&late);
        }
        let granted = server.places[0].after.unwrap();
        assert_eq!(granted.first, if fate == Fate::AnswerLost { 31 } else { 11 }, "{fate:?}");
        assert_eq!(registry.next_of("orders"), granted.end, "{fate:?}: a late one finds another version");
    }
}

/// Other servers are granted ranges meanwhile. The first conflict may be chance; after others, it waits for a turn, as long on average after a range as
/// after a conflict, and reads the record before it writes.
#[test]
fn servers_that_want_ranges_of_the_same_tag_take_turns() {
    let (mut registry, mut server) = with_orders(1_000_000);
    while server.claim(&orders(), 1000).is_some() {}
    let (mut pauses, requests) = (Vec::new(), registry.requests);
    while pauses.len() < 10 {
        collide(&mut registry);
        server.chance = server.chance.wrapping_add(0x9e37_79b9);
        if let Some(pause) = server.step(&mut registry, Fate::Done) {
            pauses.push(pause.0);
            server.now = server.now.saturating_add(pause);
        }
    }
    assert!(pauses.iter().all(|pause| (0..=16_000).contains(pause)), "{pauses:?}");
    assert!(pauses.iter().max() > pauses.iter().min(), "{pauses:?}");
    // The first one is tried again at once, from what was found; each of the others is a read and a write.
    assert_eq!(registry.requests - requests, 2 + 2 * (pauses.len() - 1));
    // Granted at last, and the next one after a turn, too.
    server.settle(&mut registry);
    while server.claim(&orders(), 1000).is_some() {}
    let before = registry.next_of("orders");
    server.step(&mut registry, Fate::Done);
    assert_eq!(registry.next_of("orders"), before);
    server.now = server.now.saturating_add(Micros(16_000));
    server.settle(&mut registry);
    assert!(registry.next_of("orders") > before && server.claim(&orders(), 1).is_some());
}

/// Sessions wait for numbers while others collide with this server: it asks for more each time, however little it could use in that time.
#[test]
fn a_server_whose_sessions_wait_asks_for_more() {
    let (mut registry, mut server) = with_orders(1_000_000_000);
    let mut sizes = Vec::new();
    while sizes.len() < 8 {
        while server.claim(&orders(), 1000).is_some() {}
        server.advance(600);
        for _ in 0..10 {
            collide(&mut registry);
            server.chance = server.chance.wrapping_add(0x9e37_79b9);
            if let Some(pause) = server.step(&mut registry, Fate::Done) {
                server.now = server.now.saturating_add(pause);
            }
        }
        let before = registry.next_of("orders");
        while registry.next_of("orders") == before {
            if let Some(pause) = server.step(&mut registry, Fate::Done) {
                server.now = server.now.saturating_add(pause);
            }
        }
        server.settle(&mut registry);
        sizes.push(registry.next_of("orders") - before);
    }
    assert!(sizes.windows(2).all(|pair| pair[1] >= (2 * pair[0]).min(1000)), "up to its largest range: {sizes:?}");
}
