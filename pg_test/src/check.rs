//! What must hold for IDs.

use std::thread;
use std::time::{Duration, Instant};

/// Every ID of all lists is there once. Returns how many there are.
///
/// # Panics
/// With the first duplicates.
pub fn distinct(lists: &[Vec<i64>]) -> usize {
    let mut all = lists.concat();
    all.sort_unstable();
    let duplicates: Vec<i64> = all.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    assert!(
        duplicates.is_empty(),
        "{} duplicates, such as {:?}",
        duplicates.len(),
        &duplicates[..duplicates.len().min(5)]
    );
    all.len()
}

/// Each ID is higher than the one before it.
///
/// # Panics
/// With the first two that are not.
pub fn rising(ids: &[i64]) {
    if let Some(at) = ids.windows(2).position(|pair| pair[0] >= pair[1]) {
        panic!("after {} comes {}, at {at} of {}", ids[at], ids[at + 1], ids.len());
    }
}

/// Waits until something holds, for a minute at most.
///
/// # Panics
/// Where it does not by then.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}
