//! Rows of the default partition, which a call of `snowflake_maintain_partitions()` is to move: by the function of
//! `snowflake_partition_default_rows()`, as the caller, whom it refuses where he is not the owner of the tables.

use super::failure::Failure;
use super::names::quoted;
use crate::postgres::encoding::{self, Text};
use pgrx::datum::Interval;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_core::pieces::Edge;
use std::ffi::{CStr, CString};
use std::ops::Range;

const MOVE: &str = "
    SELECT made, moved, lower, until, pg_catalog.array_to_string(statements, E';\\n')
    FROM _snowflake.partition_default_rows($1, $2, $3, $4)";

/// A partition that rows of the default partition went to.
pub struct Moved {
    /// Its name, with the schema and quoted.
    pub partition: Text,
    /// What it holds.
    pub ids: Range<Edge>,
    /// The statements.
    pub statements: Option<Text>,
    /// How many rows they were.
    pub note: Text,
}

/// Moves all rows of the default partition, and makes their partitions; or says how.
pub fn moved(
    client: &mut SpiClient,
    schema: &CStr,
    parent: pg_sys::Oid,
    every: Interval,
    dry_run: bool,
) -> Result<Vec<Moved>, Failure> {
    let mut all = Vec::new();
    let mut since = 0;
    loop {
        let arguments = [parent.into(), every.into(), dry_run.into(), since.into()];
        let found = client.update(MOVE, Some(1), &arguments)?.first();
        let Some(Text(made)) = found.get::<Text>(1)? else { return Ok(all) };
        let (lower, until) = (found.get::<i64>(3)?.unwrap_or_default(), found.get::<i64>(4)?.unwrap_or_default());
        let note = match found.get::<i64>(2)? {
            Some(rows) => format!("for {rows} rows of the default partition"),
            None => "the default partition becomes this one, and a new one takes its place".to_owned(),
        };
        let name: CString = encoding::statement(&made);
        all.push(Moved {
            partition: Text(encoding::read_name(&quoted(schema, &name))),
            ids: Edge::Id(lower)..Edge::Id(until),
            statements: found.get::<Text>(5)?,
            note: Text(note),
        });
        // What was moved is not found again.
        since = if dry_run { until } else { since };
    }
}
