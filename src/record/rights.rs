//! Who may change the record, and call what: whatever default privileges said when the extension was created.

use super::SCHEMA;
use crate::errors::Error;
use crate::errors::generator::GeneratorError;
use crate::postgres::encoding::Text;
use crate::postgres::held::Holds;
use crate::postgres::{catalog, process, questions, restricted};
use pgrx::prelude::*;
use std::ffi::CStr;

/// The type on which USAGE allows to make many IDs by one call.
const BATCH: &CStr = c"batch";

/// The schemas of the extension's functions. One of them may belong to anybody.
const SCHEMAS: &str = "
    SELECT DISTINCT pronamespace FROM pg_extension e JOIN pg_depend d ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid
        AND deptype = 'e' AND classid = 'pg_proc'::regclass
    JOIN pg_proc p ON p.oid = objid WHERE extname = 'pg_snowflake'";

/// The statements that take from all but its owner the privileges with which the record can be changed.
const RECORD: &str = "
    SELECT DISTINCT format('REVOKE %s ON %s FROM %s CASCADE', privilege_type, object,
                           CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END)
    FROM (SELECT 'SCHEMA _snowflake' AS object, nspacl AS acl, nspowner AS owner FROM pg_namespace
          WHERE nspname = '_snowflake'
          UNION ALL
          SELECT 'SEQUENCE _snowflake.' || relname, relacl, relowner FROM pg_class
          WHERE relnamespace = to_regnamespace('_snowflake') AND relkind = 'S'
            AND relname IN ('reservation', 'layout', 'epoch', 'since')) record, aclexplode(acl)
    WHERE grantee <> owner
      AND privilege_type = ANY (CASE object WHEN 'SCHEMA _snowflake' THEN '{CREATE}' ELSE '{USAGE,UPDATE}' END::text[])";

/// Those about the extension's functions. Default privileges may have given EXECUTE on one for administrators: the scripts revoke that from PUBLIC, and
/// what the function had then is kept as its initial privileges, without what somebody granted later. And they may have taken EXECUTE on a function
/// that is part of others from everybody.
const FUNCTIONS: &str = "
    WITH ours AS (
        SELECT p.oid, proowner, proacl, pronamespace
        FROM pg_extension e JOIN pg_depend d ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid AND deptype = 'e'
            AND classid = 'pg_proc'::regclass
        JOIN pg_proc p ON p.oid = objid WHERE extname = 'pg_snowflake'
    )
    SELECT DISTINCT format('REVOKE EXECUTE ON ROUTINE %s FROM %s CASCADE', oid::regprocedure,
                           quote_ident(pg_get_userbyid(first.grantee)))
    FROM ours JOIN pg_init_privs ON classoid = 'pg_proc'::regclass AND objoid = oid AND privtype = 'e',
    aclexplode(initprivs) first JOIN aclexplode(proacl) now ON now.grantee = first.grantee
    WHERE first.grantee NOT IN (proowner, 'pg_monitor'::regrole)
      AND NOT EXISTS (SELECT FROM aclexplode(initprivs) everybody WHERE everybody.grantee = 0)
    UNION ALL
    SELECT format('GRANT EXECUTE ON ROUTINE %s TO PUBLIC', oid::regprocedure) FROM ours
    WHERE pronamespace = to_regnamespace('_snowflake')
      AND NOT EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0)";

/// Sets the privileges.
///
/// # Errors
/// Where a statement fails.
pub fn set() -> Result<(), spi::Error> {
    let set = |client: &mut spi::SpiClient<'_>| {
        let mut holds = Holds::default();
        for row in client.select(SCHEMAS, None, &[])? {
            row.get(1)?.into_iter().for_each(|schema| holds.hold_schema(schema));
        }
        let mut statements: Vec<Text> = Vec::new();
        for query in [RECORD, FUNCTIONS] {
            for row in client.select(query, None, &[])? {
                statements.extend(row.get::<Text>(1)?);
            }
        }
        for Text(statement) in statements {
            holds.statement(&statement).update(client)?;
        }
        Ok(())
    };
    restricted::with(&[restricted::SAFE_PATH], || Spi::connect_mut(set))
}

/// Whether the caller may make many IDs by one call. Where the extension has not been updated to 0.4.0,
/// everybody may.
///
/// # Errors
/// Where he may not.
pub fn check_batch() -> Result<(), Error> {
    let batch = catalog::schema_named(SCHEMA).map_or(pg_sys::InvalidOid, |schema| questions::type_named(schema, BATCH));
    if batch == pg_sys::InvalidOid || questions::may_use_type(process::user(), batch) {
        return Ok(());
    }
    Err(GeneratorError::NoBatches.into())
}
