//! `snowflake_create_partitions()` and `snowflake_maintain_partitions()`.

use crate::errors::Error;
use crate::postgres::encoding::Text;
use crate::postgres::given::Given;
use crate::postgres::time::timestamptz;
use crate::record;
use crate::tables::partitions::upkeep::{self, Step, Upkeep};
use crate::tables::partitions::{self, Failure};
use pgrx::datum::Interval;
use pgrx::iter::TableIterator;
use pgrx::name;
use pgrx::prelude::*;
use snowflake_core::Layout;
use snowflake_core::pieces::Edge;

export!(
    snowflake_create_partitions_wrapper as snowflake_create_partitions,
    snowflake_maintain_partitions_wrapper as snowflake_maintain_partitions,
);

#[pg_extern(sql = "")]
fn snowflake_create_partitions(
    parent: Option<pg_sys::Oid>,
    every: Option<Interval>,
    since: Option<i64>,
    until: Option<i64>,
) -> Result<SetOfIterator<'static, pg_sys::Oid>, spi::Error> {
    let layout = record::layout();
    Ok(SetOfIterator::new(done(layout, partitions::create(layout, parent, every, since, until))?))
}

#[expect(clippy::type_complexity, reason = "pg_extern reads the columns from the signature")]
#[pg_extern(sql = "")]
fn snowflake_maintain_partitions(
    parent: Option<pg_sys::Oid>,
    every: Option<Interval>,
    ahead: Option<Interval>,
    retention: Option<Interval>,
    expired: Option<Given>,
    dry_run: Option<bool>,
) -> Result<
    TableIterator<
        'static,
        (
            name!(partition, Text),
            name!(action, &'static str),
            name!(since, Option<i64>),
            name!(until, Option<i64>),
            name!(statement, Option<Text>),
            name!(note, Option<Text>),
        ),
    >,
    spi::Error,
> {
    let layout = record::layout();
    let wish = Upkeep { parent, every, ahead, retention, expired, dry_run: dry_run.unwrap_or(false) };
    let steps = done(layout, upkeep::maintain(layout, &wish))?;
    Ok(TableIterator::new(steps.into_iter().map(move |Step { partition, action, ids, statement, note }| {
        let [since, until] = [ids.start, ids.end].map(|edge| time_of(layout, edge));
        (partition, action, since, until, statement, note)
    })))
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
