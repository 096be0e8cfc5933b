//! What a server holds: counters of ranges.

use super::*;

#[test]
fn a_counter_gives_each_number_once_and_no_more_than_it_has() {
    let counter = Counter::new();
    assert_eq!(counter.claim(1), None);
    assert!(counter.install(range(5, 10)));
    assert!(!counter.install(range(10, 20)), "something is left");
    assert_eq!((counter.claim(1), counter.claim(3)), (Some(range(5, 6)), Some(range(6, 9))));
    assert_eq!((counter.claim(7), counter.claim(1)), (Some(range(9, 10)), None));
    assert!(!counter.install(range(9, 20)), "ranges rise");
    assert!(!counter.install(range(20, 20)), "an empty one is none");
    assert!(counter.install(range(20, 30)));
    counter.raise(25);
    assert_eq!(counter.claim(1), Some(range(25, 26)));
    counter.raise(3);
    counter.raise(1000);
    assert_eq!((counter.claim(1), counter.left()), (None, range(30, 30)));
    assert!(counter.install(range(TagRecord::HIGHEST, TagRecord::HIGHEST + 1)));
    assert_eq!(counter.claim(u64::MAX), Some(range(TagRecord::HIGHEST, TagRecord::HIGHEST + 1)));
}

#[test]
fn a_closed_counter_tells_what_is_left_and_opens_above() {
    let counter = Counter::new();
    assert!(counter.install(range(5, 10)));
    counter.claim(2);
    assert_eq!(counter.close(), range(7, 10));
    assert_eq!((counter.claim(1), counter.left(), counter.close()), (None, range(10, 10), range(10, 10)));
    counter.raise(8);
    assert_eq!(counter.claim(1), None);
    assert!(!counter.install(range(7, 12)));
    assert!(counter.install(range(12, 14)));
    assert_eq!(counter.claim(9), Some(range(12, 14)));
}

#[test]
fn a_floor_cuts_what_is_held() {
    let held = Held { current: range(5, 10), after: Some(range(20, 30)) };
    assert_eq!(held.above(0), held);
    assert_eq!(held.above(7), Held { current: range(7, 10), ..held });
    assert_eq!(held.above(25), Held { current: range(10, 10), after: Some(range(25, 30)) });
    assert_eq!(held.above(99), Held { current: range(10, 10), after: None });
    assert_eq!((held.left(), held.top()), (15, 30));
}
