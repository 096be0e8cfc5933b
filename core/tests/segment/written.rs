//! Names and bounds of tags, and what is written of them.

use super::*;

#[test]
fn tags_have_a_length_and_are_printable() {
    for name in ["orders", "o'clock \"x\" %/ ~#", &"x".repeat(63), "*", "a/b", " "] {
        assert_eq!((tag(name).as_str(), tag(name).to_string().as_str()), (name, name));
    }
    for name in ["", &"x".repeat(64), "é", "a\nb", "a\0", "\u{7f}"] {
        assert_eq!(Tag::new(name), Err(TagError), "{name:?}");
    }
}

#[test]
fn bounds_of_a_tag_follow_from_how_many_numbers_it_has() {
    assert_eq!(Sizes::of(2_147_483_647), Sizes { smallest: 10, largest: 2_147_483 });
    assert_eq!(Sizes::of(100), Sizes { smallest: 10, largest: 10 });
    assert_eq!(Sizes::of(3), Sizes { smallest: 3, largest: 3 });
    assert_eq!(Sizes::of(TagRecord::HIGHEST).nearest(u64::MAX), TagRecord::HIGHEST / 1000);
    assert_eq!([0, 10, 11, 1000, 1001].map(|size| BOUNDS.nearest(size)), [10, 10, 11, 1000, 1000]);
}

#[test]
fn a_record_that_nobody_can_have_written_is_noticed() {
    let record = |change: fn(&mut TagRecord)| {
        let mut record = stored(20, TagRecord::HIGHEST).record;
        change(&mut record);
        record.is_sound()
    };
    assert!(record(|_| {}));
    assert!(record(|it| (it.next, it.floor) = (TagRecord::HIGHEST + 1, TagRecord::HIGHEST + 1)), "used up");
    assert!(record(|it| it.last = 1), "of one number");
    assert!(!record(|it| it.last = 0));
    assert!(!record(|it| it.last = TagRecord::HIGHEST + 1));
    assert!(!record(|it| it.next = TagRecord::HIGHEST + 2) && !record(|it| it.floor = TagRecord::HIGHEST + 2));
    assert!(!record(|it| it.bounds.smallest = 0) && !record(|it| it.bounds.smallest = 1001));
}

#[test]
fn a_holding_that_no_server_can_have_is_noticed() {
    let holding = |current, after| {
        let (granted_at, used) = (UnixMicros(0), Use { count: 0, length: Micros(0) });
        Holding { run: 1, current, after, granted_at, used }.is_sound()
    };
    let none = Range::default();
    assert!(holding(range(5, 10), none) && holding(none, none));
    assert!(holding(range(5, 10), range(10, 30)) && holding(range(10, 10), range(20, 30)));
    assert!(holding(range(5, TagRecord::HIGHEST + 1), none));
    assert!(!holding(range(10, 5), none) && !holding(range(5, TagRecord::HIGHEST + 2), none));
    assert!(!holding(range(5, 10), range(30, 20)) && !holding(range(5, 10), range(20, TagRecord::HIGHEST + 2)));
    assert!(!holding(range(5, 10), range(9, 30)));
}

#[test]
fn a_run_is_told_by_both_halves_of_its_token() {
    assert_eq!([(3, 1), (1, 3), (3, 0)].map(|(high, low)| run_of(lease::Token(high << 64 | low))), [2, 2, 3]);
}

#[test]
fn a_tag_is_created_once() {
    let write = create(&orders(), None, &plan(5, 99), 0).unwrap();
    assert_eq!((write.expected, write.tag), (None, orders()));
    let expected = TagRecord { next: 5, floor: 5, first: 5, last: 99, state: State::Live, bounds: BOUNDS };
    assert_eq!(write.record, expected);
    assert_eq!(create(&orders(), Some(&stored(5, 99)), &plan(5, 99), 0), Err(TagRefusal::Exists));
}

#[test]
fn a_tag_that_was_dropped_goes_on_above() {
    let write = create(&orders(), Some(&dropped(50, 99)), &plan(1, 999), 0).unwrap();
    assert_eq!(write.expected, Some(Version(7)));
    assert_eq!((write.record.next, write.record.floor, write.record.last), (50, 50, 999));
    assert_eq!(create(&orders(), Some(&dropped(50, 99)), &plan(70, 999), 0).unwrap().record.next, 70);
    assert_eq!(create(&orders(), Some(&dropped(50, 99)), &plan(1, 50), 0).unwrap().record.left(), 1);
    let used_up = create(&orders(), Some(&dropped(50, 99)), &plan(1, 49), 0);
    assert_eq!(used_up, Err(TagRefusal::UsedUp { last: 49 }));
}

#[test]
fn who_holds_numbers_creates_above_them() {
    assert_eq!(create(&orders(), None, &plan(1, 99), 40).unwrap().record.next, 40);
}

#[test]
fn a_grant_raises_the_next_number() {
    let (write, granted) = grant(&orders(), Some(&stored(20, 99)), 10, 0).unwrap();
    assert_eq!((write.expected, write.record.next, granted), (Some(Version(7)), 30, range(20, 30)));
    // The rest.
    let (write, granted) = grant(&orders(), Some(&stored(95, 99)), 10, 0).unwrap();
    assert_eq!((write.record.next, granted), (100, range(95, 100)));
    assert_eq!(grant(&orders(), Some(&stored(100, 99)), 10, 0), Err(TagRefusal::UsedUp { last: 99 }));
    let (write, granted) =
        grant(&orders(), Some(&stored(TagRecord::HIGHEST, TagRecord::HIGHEST)), u64::MAX, 0).unwrap();
    assert_eq!((write.record.next, granted.count()), (TagRecord::HIGHEST + 1, 1));
}

#[test]
fn a_tag_that_is_not_there_is_no_new_one() {
    assert_eq!(grant(&orders(), None, 10, 0), Err(TagRefusal::Missing));
    assert_eq!(grant(&orders(), None, 10, 500), Err(TagRefusal::Missing));
    assert_eq!(grant(&orders(), Some(&dropped(20, 99)), 10, 0), Err(TagRefusal::Dropped));
    assert_eq!(raise(&orders(), None, 10, 0), Err(TagRefusal::Missing));
    assert_eq!(drop_tag(&orders(), None, 0), Err(TagRefusal::Missing));
    assert_eq!(drop_tag(&orders(), Some(&dropped(20, 99)), 0), Err(TagRefusal::Dropped));
}

#[test]
fn a_registry_that_was_rolled_back_is_raised() {
    assert_eq!(restore(&orders(), Some(&stored(20, 99)), 40).unwrap().record.next, 40);
    assert_eq!(restore(&orders(), Some(&stored(40, 99)), 40), None);
    assert_eq!(restore(&orders(), Some(&dropped(20, 99)), 40).unwrap().record.state, State::Dropped);
    let (write, granted) = grant(&orders(), Some(&stored(20, 99)), 10, 40).unwrap();
    assert_eq!((write.record.next, granted), (50, range(40, 50)));
    let dropped = drop_tag(&orders(), Some(&stored(20, 99)), 40).unwrap().record;
    assert_eq!((dropped.next, dropped.floor), (40, 40));
    assert_eq!(raise(&orders(), Some(&stored(20, 99)), 5, 40).unwrap().record.next, 40);
}

/// Nobody is granted numbers of a tag that the registry has forgotten, and whoever creates it goes on above what servers have said.
#[test]
fn a_tag_that_was_forgotten_stays_so_until_somebody_creates_it() {
    assert_eq!(restore(&orders(), None, 0), None);
    let first = restore(&orders(), None, 40).unwrap();
    assert_eq!((first.expected, first.record.next, first.record.floor), (None, 40, 0));
    let forgotten = StoredTag { version: Version(8), record: first.record };
    assert_eq!(restore(&orders(), Some(&forgotten), 40), None);
    let second = restore(&orders(), Some(&forgotten), 60).unwrap();
    assert_eq!((second.expected, second.record.state), (Some(Version(8)), State::Forgotten));
    let forgotten = StoredTag { version: Version(9), record: second.record };
    assert_eq!(grant(&orders(), Some(&forgotten), 10, 0), Err(TagRefusal::Missing));
    assert_eq!(raise(&orders(), Some(&forgotten), 70, 0), Err(TagRefusal::Missing));
    assert_eq!(drop_tag(&orders(), Some(&forgotten), 0), Err(TagRefusal::Missing));
    let created = create(&orders(), Some(&forgotten), &plan(1, 999), 0).unwrap();
    assert_eq!((created.expected, created.record.next, created.record.first), (Some(Version(9)), 60, 1));
    assert_eq!(created.record.state, State::Live);
}

#[test]
fn a_raise_moves_the_floor_and_lowers_nothing() {
    let write = raise(&orders(), Some(&stored(20, 99)), 49, 0).unwrap();
    assert_eq!((write.record.next, write.record.floor), (50, 50));
    let write = raise(&orders(), Some(&stored(80, 99)), 49, 0).unwrap();
    assert_eq!((write.record.next, write.record.floor), (80, 50));
    let floored = StoredTag { record: TagRecord { floor: 60, ..stored(80, 99).record }, ..stored(80, 99) };
    assert_eq!(raise(&orders(), Some(&floored), 49, 0).unwrap().record.floor, 60);
    assert_eq!(raise(&orders(), Some(&stored(20, 99)), 99, 0).unwrap().record.left(), 0);
    assert_eq!(raise(&orders(), Some(&stored(20, 99)), 100, 0), Err(TagRefusal::AboveLast { last: 99 }));
}

#[test]
fn a_rest_is_given_back_where_nothing_was_granted_since() {
    let give = |next, current, after| {
        give_back(&orders(), &stored(next, 99), &Held { current, after }).map(|write| write.record.next)
    };
    assert_eq!(give(30, range(24, 30), None), Some(24));
    assert_eq!(give(40, range(24, 30), None), None, "granted since");
    assert_eq!(give(20, range(24, 30), None), None, "rolled back");
    assert_eq!(give(30, range(30, 30), None), None, "nothing left");
    assert_eq!(give(40, range(24, 30), Some(range(30, 40))), Some(24), "both");
    assert_eq!(give(50, range(24, 30), Some(range(40, 50))), Some(40), "another server's lies between");
    assert_eq!(give(50, range(30, 30), Some(range(40, 50))), Some(40));
    assert_eq!(give(40, range(30, 30), Some(range(30, 40))), Some(30));
    let floored = StoredTag { record: TagRecord { floor: 27, ..stored(30, 99).record }, ..stored(30, 99) };
    let held = Held { current: range(24, 30), after: None };
    assert_eq!(give_back(&orders(), &floored, &held).unwrap().record.next, 27, "not below the floor");
}
