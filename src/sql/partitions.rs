//! `snowflake_create_partitions()` and `snowflake_maintain_partitions()`.

use crate::errors::Error;
use crate::postgres::encoding::Text;
use crate::postgres::given::Given;
use crate::postgres::time::timestamptz;
use crate::record;
use crate::tables::partitions::upkeep::{self, Upkeep, UpkeepStep};
use crate::tables::partitions::{self, Failure};
use pgrx::datum::Interval;
use pgrx::pg_sys::panic::ErrorReportable;
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
        let layout = record::layout();
        let dry_run = dry_run.unwrap_or(false);
        let wish = Upkeep { parent, every, ahead, retention, expired, default_rows, dry_run };
        let steps = done(layout, upkeep::maintain(layout, &wish)).unwrap_or_report();
        steps.into_iter().map(move |step| (layout, step))
    }

    row (layout, UpkeepStep { partition, action, ids, statement, note }) => {
        partition: Text = partition;
        action: &'static str = action;
        since: Option<i64> = time_of(layout, ids.start);
        until: Option<i64> = time_of(layout, ids.end);
        statement: Option<Text> = statement;
        note: Option<Text> = note;
    }
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
