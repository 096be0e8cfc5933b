//! What must hold for IDs, errors and logs.

use crate::Cluster;
use postgres::Client;
use postgres::error::DbError;
use std::collections::BTreeSet;
use std::fmt::Debug;
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

/// How many IDs of all lists are there more than once.
pub fn repeated(lists: &[Vec<i64>]) -> usize {
    let mut all = lists.concat();
    all.sort_unstable();
    all.windows(2).filter(|pair| pair[0] == pair[1]).count()
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

/// Two lists, each with where it comes from, have the same entries.
///
/// # Panics
/// With those that only one has.
#[track_caller]
pub fn same_entries<T: Ord + Debug>(
    one: (&str, impl IntoIterator<Item = T>),
    other: (&str, impl IntoIterator<Item = T>),
) {
    let (of_one, of_other): (BTreeSet<T>, BTreeSet<T>) = (one.1.into_iter().collect(), other.1.into_iter().collect());
    let only = |these: &BTreeSet<T>, those: &BTreeSet<T>, place: &str| -> String {
        these.difference(those).map(|entry| format!("only in {place}: {entry:?}\n")).collect()
    };
    let found = only(&of_one, &of_other, one.0) + &only(&of_other, &of_one, other.0);
    assert!(found.is_empty(), "{found}");
}

/// Waits until a condition holds. On a slow machine that may take long; no test is about how long.
///
/// # Panics
/// Where it does not hold after two minutes.
#[track_caller]
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(120), "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A query ends with an error of this SQLSTATE. Returns the error.
///
/// # Panics
/// Where it succeeds, or ends with another error.
#[track_caller]
pub fn refused(client: &mut Client, query: &str, code: &str) -> DbError {
    let error = match client.query(query, &[]) {
        Ok(rows) => panic!("{query}: succeeded with {} rows", rows.len()),
        Err(error) => error,
    };
    let error = error.as_db_error().unwrap_or_else(|| panic!("{query}: {error:?}"));
    assert_eq!(error.code().code(), code, "{query}: {error:?}");
    error.clone()
}

/// The server has logged no error.
///
/// # Panics
/// With the errors.
#[track_caller]
pub fn no_errors(cluster: &Cluster) {
    let log = cluster.log();
    let is_error = |line: &&str| ["ERROR:", "FATAL:", "PANIC:"].iter().any(|level| line.contains(level));
    let errors: Vec<&str> = log.lines().filter(is_error).collect();
    assert!(errors.is_empty(), "{errors:?}");
}
