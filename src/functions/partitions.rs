//! Partitions by ID time: sql/70-time.sql.

use crate::database;
use crate::errors::Error;
use crate::functions::range::min_id;
use pgrx::datum::{DatumWithOid, Interval, TimestampWithTimeZone};
use pgrx::prelude::*;
use pgrx::spi::SpiClient;

/// The starts and ends of the partitions, and what their names end with: the start in UTC, to the day where the
/// partitions are days or longer.
const PIECES: &str = "
    SELECT piece, piece OPERATOR(pg_catalog.+) $1,
           pg_catalog.to_char(piece AT TIME ZONE 'UTC',
               CASE WHEN $1 OPERATOR(pg_catalog.>=) '1 day'::pg_catalog.interval THEN 'YYYYMMDD' ELSE 'YYYYMMDD_HH24MISS' END)
    FROM pg_catalog.generate_series($2, $3 OPERATOR(pg_catalog.-) '1 us'::pg_catalog.interval, $1) AS pieces(piece)";

/// A partition of a table, by the end of its name. The name is PostgreSQL's to cut, as that of any table.
const PARTITION: &str = "
    SELECT p.oid FROM pg_catalog.pg_inherits JOIN pg_catalog.pg_class p ON p.oid OPERATOR(pg_catalog.=) inhrelid
    JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) inhparent
    WHERE c.oid OPERATOR(pg_catalog.=) $1
      AND p.relname OPERATOR(pg_catalog.=) pg_catalog.concat(c.relname, '_', $2::pg_catalog.text)::pg_catalog.name";

const STATEMENT: &str = "
    SELECT pg_catalog.format('CREATE TABLE %I.%I PARTITION OF %I.%I FOR VALUES FROM (%s) TO (%s)',
        nspname, pg_catalog.concat(relname, '_', $2::pg_catalog.text)::pg_catalog.name, nspname, relname, $3, $4)
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) relnamespace
    WHERE c.oid OPERATOR(pg_catalog.=) $1";

#[pg_extern(sql = "")]
fn snowflake_create_partitions(
    parent: pg_sys::Oid,
    every: Interval,
    since: TimestampWithTimeZone,
    until: TimestampWithTimeZone,
) -> Result<SetOfIterator<'static, pg_sys::Oid>, spi::Error> {
    let created = Spi::connect_mut(|client| {
        let pieces: Vec<(i64, i64, String)> = client
            .select(PIECES, None, &[every.into(), since.into(), until.into()])?
            .map(|row| {
                let instant = |column| row.get::<TimestampWithTimeZone>(column).map(|at| at.map_or(0, i64::from));
                Ok((instant(1)?, instant(2)?, row.get::<String>(3)?.unwrap_or_default()))
            })
            .collect::<Result<_, spi::Error>>()?;
        let mut created = Vec::new();
        for (start, end, suffix) in pieces {
            if partition(client, parent, &suffix)?.is_none() {
                let (low, high) = (min_id(database::layout(), start), min_id(database::layout(), end));
                let arguments: [DatumWithOid; 4] = [parent.into(), suffix.as_str().into(), low.into(), high.into()];
                let statements = client.select(STATEMENT, Some(1), &arguments)?;
                if statements.is_empty() {
                    Error::NoSuchTable(parent.to_u32()).raise();
                }
                let statement: String = statements.first().get_one()?.unwrap_or_default();
                client.update(&statement, None, &[])?;
                created.extend(partition(client, parent, &suffix)?);
            }
        }
        Ok::<_, spi::Error>(created)
    })?;
    Ok(SetOfIterator::new(created))
}

fn partition(client: &SpiClient, parent: pg_sys::Oid, suffix: &str) -> Result<Option<pg_sys::Oid>, spi::Error> {
    let found = client.select(PARTITION, Some(1), &[parent.into(), suffix.into()])?;
    if found.is_empty() { Ok(None) } else { found.first().get_one() }
}
