//! Requirements, checked before the first ID is made. [`snowflake_core::capacity`] judges; this module asks it about what the
//! caller requires and about this server, this database, and keys that exist. [`words`] says what came of it.

mod words;

pub use words::Finding;

use crate::errors::Error;
use crate::postgres::time::{clock, timestamptz};
use crate::registry_process::lease;
use crate::tables::moving::{self, Key};
use crate::tables::partitions;
use crate::tables::replicated;
use crate::{record, settings, shared};
use pgrx::prelude::*;
use snowflake_core::capacity::{self, Lengths, Need};
use snowflake_core::{FieldError, Layout, UnixMicros};

/// The requirements. One that is not known is `None`, and not compared.
pub struct Requirements {
    /// How IDs are to be made.
    pub layout: Layout,
    /// How many servers make IDs at the same time.
    pub servers: Option<u32>,
    /// In how many datacenters.
    pub datacenters: Option<u32>,
    /// Whether they lease their worker IDs; `None` for what this server is configured for.
    pub leases: Option<bool>,
    /// How many IDs the busiest server makes in a second.
    pub ids_per_second: Option<f64>,
    /// For how many years from now on.
    pub years: Option<u32>,
    /// Whether clients have IDs as numbers of JavaScript.
    pub javascript: Option<bool>,
    /// The time of the oldest row that is to get an ID of its own time, as a `timestamptz`.
    pub oldest_row: Option<i64>,
    /// Tables with keys that exist.
    pub keys: Vec<pg_sys::Oid>,
    /// Their key column; `None` where it is to be found.
    pub key_column: Option<String>,
}

/// Answers all questions.
///
/// # Errors
/// Where a table cannot be read.
pub fn check(wanted: &Requirements) -> Result<Vec<Finding>, Error> {
    let Requirements { layout, years, .. } = *wanted;
    let now = clock::now();
    let leases = wanted.leases.unwrap_or_else(settings::registry::is_set);
    let need = Need { servers: wanted.servers, datacenters: wanted.datacenters, leases };
    let mut rows = vec![
        words::layout(&layout),
        words::lifetime(&layout, now, years),
        words::bigint(&layout),
        words::javascript(capacity::doubles(&layout, now, years), wanted.javascript),
        words::room(&layout, &need),
        words::rate(&layout, wanted.ids_per_second, settings::max_burst()),
        match wanted.oldest_row {
            None => words::oldest_possible(&layout),
            Some(oldest) => words::backfill(&layout, capacity::backfill(&layout, timestamptz::to_unix(oldest)), oldest),
        },
    ];
    for &table in &wanted.keys {
        rows.extend(key(&layout, now, table, wanted.key_column.clone())?);
    }
    rows.extend(replicated::partition_by_partition()?.into_iter().map(words::replicated));
    rows.extend(server(wanted, leases));
    rows.push(of_database(&layout));
    rows.extend(partitions::unmarked().ok().flatten().map(words::unmarked));
    rows.extend(record::replaced().map(words::replaced_record));
    Ok(rows)
}

fn key(layout: &Layout, now: UnixMicros, table: pg_sys::Oid, column: Option<String>) -> Result<Vec<Finding>, Error> {
    match moving::key(table, column) {
        Ok(key) => Ok([judge_key(layout, now, &key)].into_iter().chain(words::shut_out(&key)).collect()),
        // It is not clear what to look at; the rest can be checked all the same.
        Err(error @ Error::Moving(_)) => Ok(vec![words::no_key(error)]),
        Err(error) => Err(error),
    }
}

fn judge_key(layout: &Layout, now: UnixMicros, key: &Key) -> Finding {
    let has_ids = key.makes_ids && record::layout_on_record() == Some(layout);
    match key.values {
        None => words::empty_key(key),
        Some(values) if has_ids => words::key_with_ids(key, values),
        Some(values) => words::key(layout, key, values, capacity::sorting(layout, now, values.highest)),
    }
}

/// Findings about this server's settings.
fn server(wanted: &Requirements, leases: bool) -> Vec<Finding> {
    let layout = &wanted.layout;
    let mut rows = Vec::new();
    if !shared::exists() {
        rows.push(words::not_preloaded());
    }
    if layout != settings::layout() {
        rows.push(words::other_layout_of_server(layout));
    }
    let (datacenter, worker) = settings::worker_ids();
    let placed = layout.place_worker(datacenter, worker);
    let has_registry = settings::registry::is_set();
    if leases && !has_registry {
        rows.push(words::no_registry());
    }
    if leases && shared::exists() {
        let [lease, segments] = lease::all_trouble();
        rows.extend(lease.map(|trouble| words::kept_from_lease(lease::for_caller(trouble))));
        rows.extend(segments.map(|trouble| words::kept_from_numbers(lease::for_caller(trouble))));
    }
    match (placed, has_registry) {
        (Err(FieldError::Missing(_)), true) if worker.is_some() => rows.push(words::unused_worker(layout)),
        (Err(FieldError::Missing(field)), true)
            if datacenter.is_none() && words::is_datacenter(layout, field) && wanted.datacenters != Some(1) =>
        {
            rows.push(words::any_datacenter());
        }
        (Err(FieldError::Missing(_)), true) => {}
        (Err(FieldError::Missing(_)), false) if leases => {}
        (Err(error), _) => rows.push(words::unfit_worker(layout, error)),
        (Ok(_), true) => rows.push(words::worker_and_registry()),
        (Ok(_), false) => {}
    }
    let lengths = Lengths {
        max_burst: settings::max_burst(),
        max_lead: settings::max_lead(),
        reserve_ahead: settings::reserve_ahead(),
        window: has_registry.then(settings::registry::window),
    };
    rows.extend(capacity::misfits(layout, &lengths).into_iter().map(|misfit| words::misfit(layout, &lengths, misfit)));
    if rows.is_empty() {
        rows.push(words::server(has_registry));
    }
    rows
}

/// Findings about the record of this database.
fn of_database(layout: &Layout) -> Finding {
    let recorded = record::read_layout().copied();
    match (recorded, record::has_ids()) {
        (Ok(recorded), Ok(used)) if recorded == *layout => words::recorded(used),
        (Ok(recorded), Ok(false)) => words::unused_record(&recorded),
        (Ok(recorded), Ok(true)) => words::used_record(&recorded),
        (Err(error), _) | (_, Err(error)) => words::no_record(error),
    }
}
