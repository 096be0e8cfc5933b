//! Which tables get partitions by ID: those with a partition key that holds IDs.

use super::failure::Failure;
use super::names::shown;
use crate::errors::partitions::PartitionError;
use crate::postgres::catalog;
use pgrx::pg_sys;
use pgrx::spi::SpiClient;
use std::ffi::{CStr, CString};

/// The number of the column of a table's partition key, if it is partitioned by range of one column with the default
/// operator class.
const KEY: &str = "
    SELECT partattrs[0] FROM pg_catalog.pg_partitioned_table
    JOIN pg_catalog.pg_opclass o ON o.oid OPERATOR(pg_catalog.=) partclass[0]
    WHERE partrelid OPERATOR(pg_catalog.=) $1 AND partattrs[0] OPERATOR(pg_catalog.>) 0 AND opcdefault
      AND partstrat OPERATOR(pg_catalog.=) 'r'::pg_catalog.\"char\" AND partnatts OPERATOR(pg_catalog.=) 1";

/// A table that is partitioned by range of one column, which is stored as a `bigint`. That never changes while there is the table.
pub struct RangeKey {
    table: pg_sys::Oid,
    column: CString,
}

impl RangeKey {
    /// The key of a table. The type of its column is `bigint`, a domain over it, or `snowflake_id`.
    ///
    /// # Errors
    /// Where the table has another key, or none.
    pub fn of(client: &SpiClient, table: pg_sys::Oid) -> Result<Self, Failure> {
        let found = client.select(KEY, Some(1), &[table.into()])?;
        let number = if found.is_empty() { None } else { found.first().get_one::<i16>()? };
        let column_type = number.map(|number| catalog::column_type(table, number));
        match number {
            Some(number) if column_type.is_some_and(catalog::is_stored_as_bigint) => {
                let column = catalog::column_name(table, number).unwrap_or_default();
                Ok(Self { table, column })
            }
            _ => {
                let name = catalog::relation_name(table).unwrap_or_default();
                let key = catalog::partition_key(table);
                let detail = match (key, column_type.and_then(catalog::type_name)) {
                    (None, _) => "It is not partitioned.".to_owned(),
                    (Some(key), None) => format!("Its partition key is {}.", shown(&key)),
                    (Some(key), Some(of)) => format!("Its partition key is {}, of type {}.", shown(&key), shown(&of)),
                };
                Err(PartitionError::Key(shown(&name), detail).into())
            }
        }
    }

    /// The table.
    pub fn table(&self) -> pg_sys::Oid {
        self.table
    }

    /// The name of the column, not quoted.
    pub fn column(&self) -> &CStr {
        &self.column
    }
}
