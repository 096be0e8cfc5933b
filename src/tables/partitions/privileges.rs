//! A new partition has the privileges of its table, and its replica identity.

use crate::postgres::encoding::Text;
use crate::postgres::held::Held;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;

/// The part of the install script with the query for the statements that give a partition ($2) the privileges that its table ($1) has, its
/// row-level security and its replica identity. It runs with a `search_path` of `pg_catalog`, as the owner of both. Its function is not
/// called, as the database may have the objects of an earlier version.
const PART: &str = include_str!("../../../sql/parts/privileges.sql");

fn query() -> &'static str {
    PART.split("$$").nth(1).unwrap_or_default()
}

/// Whether a partition has privileges of its own, which are those that ALTER DEFAULT PRIVILEGES gives.
const HAS_OWN: &str = "SELECT relacl IS NOT NULL FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=) $1";

/// Gives new partitions of a table what CREATE TABLE does not, and the table has. The replica identity: where it is not the primary key,
/// subscribers would miss changes, or UPDATE fail. And the privileges, with row-level security: whoever may read the table by a policy must
/// not read more of it by its partitions. These have no policies, so only their owner reads them by themselves.
#[derive(Default)]
pub struct Heritage {
    /// Whether a partition without privileges of its own is as the table is: then so are all others.
    is_plain: bool,
}

impl Heritage {
    /// Gives them to one of the partitions.
    pub fn pass_on(
        &mut self,
        client: &mut SpiClient,
        parent: pg_sys::Oid,
        partition: (pg_sys::Oid, &Held),
    ) -> Result<(), spi::Error> {
        let has_own = client.select(HAS_OWN, Some(1), &[partition.0.into()])?.first().get_one::<bool>()? != Some(false);
        if self.is_plain && !has_own {
            return Ok(());
        }
        let statements = client.select(query(), None, &[parent.into(), partition.0.into()])?;
        let statements: Vec<Text> =
            statements.map(|row| row.get(1)).collect::<Result<Option<_>, _>>()?.unwrap_or_default();
        self.is_plain |= statements.is_empty() && !has_own;
        for statement in statements {
            partition.1.statement(&statement).update(client)?;
        }
        Ok(())
    }
}
