//! What `pg_stat_activity` says a session waits for.

use crate::Installation;
use postgres::Client;

/// The wait event of the session with this process ID; empty where it does not wait.
pub fn wait_event(observer: &mut Client, pid: i32) -> String {
    let query = "SELECT coalesce(max(wait_event), '') FROM pg_stat_activity WHERE pid = $1";
    observer.query_one(query, &[&pid]).unwrap().get(0)
}

/// What the server calls a wait of this name: before PostgreSQL 17, extensions have no names of their own.
pub fn wait_event_of(name: &str) -> &str {
    if Installation::under_test().major() >= 17 { name } else { "Extension" }
}
