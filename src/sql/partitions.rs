//! `snowflake_create_partitions()` and `snowflake_maintain_partitions()`.

#![expect(clippy::too_many_arguments, reason = "a job has many wishes, all of them named and optional")]

use crate::errors::Error;
use crate::postgres::encoding::Text;
use crate::postgres::given::Given;
use crate::postgres::time::timestamptz;
use crate::record;
use crate::sql::named_layouts;
use crate::tables::partitions::upkeep::{self, Upkeep, UpkeepStep};
use crate::tables::partitions::{self, Failure, KeyLayout, default_rows};
use pgrx::datum::Interval;
use pgrx::pg_sys::panic::ErrorReportable;
use pgrx::prelude::*;
use snowflake_core::Layout;
use snowflake_core::pieces::Edge;
use std::ffi::CStr;

export!(
    snowflake_create_partitions_wrapper as snowflake_create_partitions,
    snowflake_create_partitions_in_wrapper as snowflake_create_partitions_in,
    snowflake_maintain_partitions_wrapper as snowflake_maintain_partitions,
    snowflake_maintain_partitions_in_wrapper as snowflake_maintain_partitions_in,
    snowflake_declare_keys_wrapper as snowflake_declare_keys,
    snowflake_known_from_wrapper as snowflake_known_from,
    snowflake_mark_wrapper as snowflake_mark,
    snowflake_hold_wrapper as snowflake_hold,
    snowflake_lowest_key_wrapper as snowflake_lowest_key,
    snowflake_count_keys_wrapper as snowflake_count_keys,
);

#[pg_extern(sql = "")]
fn snowflake_create_partitions(
    parent: Option<pg_sys::Oid>,
    every: Option<Interval>,
    since: Option<i64>,
    until: Option<i64>,
) -> Result<SetOfIterator<'static, pg_sys::Oid>, spi::Error> {
    let of = own();
    Ok(SetOfIterator::new(done(&of.layout, partitions::create(of, parent, every, since, until))?))
}

#[pg_extern(sql = "")]
fn snowflake_create_partitions_in(
    parent: Option<pg_sys::Oid>,
    every: Option<Interval>,
    since: Option<i64>,
    until: Option<i64>,
    layout: Option<Given>,
) -> Result<SetOfIterator<'static, pg_sys::Oid>, spi::Error> {
    let of = in_layout(layout);
    Ok(SetOfIterator::new(done(&of.layout, partitions::create(of, parent, every, since, until))?))
}

#[pg_extern(sql = "")]
fn snowflake_declare_keys(
    parent: Option<pg_sys::Oid>,
    since: Option<i64>,
    layout: Option<Given>,
) -> Result<SetOfIterator<'static, pg_sys::Oid>, spi::Error> {
    let of = in_layout(layout);
    Ok(SetOfIterator::new(done(&of.layout, partitions::declare(of, parent, since))?))
}

rows! {
    fn snowflake_maintain_partitions(
        parent: Option<pg_sys::Oid>,
        every: Option<Interval>,
        ahead: Option<Interval>,
        retention: Option<Interval>,
        expired: Option<Given>,
        dry_run: Option<bool>,
        default_rows: Option<Given>,
    ) {
        let dry_run = dry_run.unwrap_or(false);
        maintained(own(), &Upkeep { parent, every, ahead, retention, expired, default_rows, dry_run })
    }

    fn snowflake_maintain_partitions_in(
        parent: Option<pg_sys::Oid>,
        every: Option<Interval>,
        ahead: Option<Interval>,
        retention: Option<Interval>,
        expired: Option<Given>,
        dry_run: Option<bool>,
        default_rows: Option<Given>,
        layout: Option<Given>,
    ) {
        let dry_run = dry_run.unwrap_or(false);
        maintained(in_layout(layout), &Upkeep { parent, every, ahead, retention, expired, default_rows, dry_run })
    }

    row (layout, UpkeepStep { partition, action, ids, statement, note }) => {
        partition: Text = partition;
        action: &'static str = action;
        since: Option<i64> = time_of(&layout, ids.start);
        until: Option<i64> = time_of(&layout, ids.end);
        statement: Option<Text> = statement;
        note: Option<Text> = note;
    }
}

/// Part of `snowflake_partition_default_rows()`, as are the next two.
#[pg_extern(sql = "")]
fn snowflake_hold(table: pg_sys::Oid) -> Result<Option<Text>, spi::Error> {
    done(record::layout(), default_rows::hold(table).map_err(Failure::from))
}

#[pg_extern(sql = "")]
fn snowflake_lowest_key(table: pg_sys::Oid, column: &CStr, since: i64, until: i64) -> Result<Option<i64>, spi::Error> {
    done(record::layout(), default_rows::lowest_key(table, column, &(since..until)).map_err(Failure::from))
}

rows! {
    fn snowflake_count_keys(table: pg_sys::Oid, column: &CStr, since: i64, until: i64) {
        let counted = default_rows::count_keys(table, column, &(since..until)).map_err(Failure::from);
        [done(record::layout(), counted).unwrap_or_report()].into_iter()
    }

    row (inside, outside) => {
        inside: i64 = inside;
        outside: i64 = outside;
    }
}

/// From which key on those of the default partition are known to be IDs.
#[pg_extern(sql = "")]
fn snowflake_known_from(table: pg_sys::Oid, layout: Option<Given>) -> Result<Option<i64>, spi::Error> {
    let of = in_layout(layout);
    done(&of.layout, default_rows::known_from(of, table))
}

#[pg_extern(sql = "")]
fn snowflake_mark(partition: pg_sys::Oid, from: i64, layout: Option<Given>) -> Result<(), spi::Error> {
    let of = in_layout(layout);
    done(&of.layout, default_rows::mark(of, partition, from).map_err(Failure::from))
}

/// The layout of the database's own IDs.
fn own() -> KeyLayout {
    KeyLayout { layout: *record::layout(), is_named: false }
}

/// The layout that the caller names; else that of the database.
fn in_layout(named: Option<Given>) -> KeyLayout {
    let own = own();
    let named = named.map(named_layouts::find).filter(|named| *named != own.layout);
    named.map_or(own, |layout| KeyLayout { layout, is_named: true })
}

fn maintained(of: KeyLayout, wish: &Upkeep<'_>) -> impl Iterator<Item = (Layout, UpkeepStep)> + use<> {
    let steps = done(&of.layout, upkeep::maintain(of, wish)).unwrap_or_report();
    steps.into_iter().map(move |step| (of.layout, step))
}

/// What a call has done.
fn done<T>(layout: &Layout, result: Result<T, Failure>) -> Result<T, spi::Error> {
    match result {
        Ok(result) => Ok(result),
        Err(Failure::Refused(error)) => Error::from(error).raise_in(layout),
        Err(Failure::Query(error)) => Err(error),
    }
}

/// The time of a bound, as a `timestamptz`; NULL where there is none.
fn time_of(layout: &Layout, edge: Edge) -> Option<i64> {
    match edge {
        Edge::Id(id) => layout.timestamp(id).ok().map(timestamptz::to_datum),
        Edge::Lowest | Edge::Highest => None,
    }
}
