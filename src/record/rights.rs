//! Who may change the record.

use crate::postgres::encoding::{self, Text};
use crate::postgres::restricted;
use pgrx::prelude::*;

/// The statements that take from all but its owner the privileges with which the record can be changed.
const CLOSING: &str = "
    SELECT DISTINCT format('REVOKE %s ON %s FROM %s CASCADE', privilege_type, object,
                           CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
    FROM (SELECT 'SCHEMA _snowflake' AS object, nspacl AS acl, nspowner AS owner FROM pg_namespace
          WHERE nspname = '_snowflake'
          UNION ALL
          SELECT 'SEQUENCE _snowflake.' || relname, relacl, relowner FROM pg_class
          WHERE relnamespace = to_regnamespace('_snowflake') AND relkind = 'S'
            AND relname IN ('reservation', 'layout', 'epoch')) record, aclexplode(acl)
    WHERE grantee <> owner
      AND privilege_type = ANY (CASE object WHEN 'SCHEMA _snowflake' THEN '{CREATE}' ELSE '{USAGE,UPDATE}' END::text[])";

/// Closes the record to all but its owner: the default privileges of the role that has made it may have opened it.
///
/// # Errors
/// Where a statement fails.
pub fn close() -> Result<(), spi::Error> {
    let close = |client: &mut spi::SpiClient<'_>| {
        let mut statements = Vec::new();
        for row in client.select(CLOSING, None, &[])? {
            statements.extend(row.get::<Text>(1)?);
        }
        for Text(statement) in statements {
            client.update(&*encoding::statement(&statement), None, &[])?;
        }
        Ok(())
    };
    restricted::with(&[restricted::SAFE_PATH], || Spi::connect_mut(close))
}
