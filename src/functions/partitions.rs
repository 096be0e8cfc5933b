//! `snowflake_create_partitions()`.

use crate::database;
use crate::errors::Error;
use crate::partitions::{self, Failure};
use pgrx::datum::Interval;
use pgrx::prelude::*;

export!(snowflake_create_partitions_wrapper as snowflake_create_partitions);

#[pg_extern(sql = "")]
fn snowflake_create_partitions(
    parent: Option<pg_sys::Oid>,
    every: Option<Interval>,
    since: Option<i64>,
    until: Option<i64>,
) -> Result<SetOfIterator<'static, pg_sys::Oid>, spi::Error> {
    let layout = database::layout();
    match partitions::create(layout, parent, every, since, until) {
        Ok(created) => Ok(SetOfIterator::new(created)),
        Err(Failure::Refused(error)) => Error::from(error).raise_in(layout),
        Err(Failure::Query(error)) => Err(error),
    }
}
