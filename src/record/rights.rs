//! Who may change the record, and call what: whatever default privileges said when the extension was created.

use crate::postgres::encoding::{self, Text};
use crate::postgres::restricted;
use pgrx::prelude::*;

/// The statements that take from all but its owner the privileges with which the record can be changed.
const RECORD: &str = "
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

/// Those that take EXECUTE on functions for administrators from whom default privileges gave it. The scripts revoke it from PUBLIC, and what a function
/// had then is kept as its initial privileges; what somebody granted later is not among these.
const FUNCTIONS: &str = "
    SELECT DISTINCT format('REVOKE EXECUTE ON ROUTINE %s FROM %s CASCADE', p.oid::regprocedure,
                           quote_ident(pg_get_userbyid(first.grantee)))
    FROM pg_extension e JOIN pg_depend d ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid AND deptype = 'e'
        AND d.classid = 'pg_proc'::regclass
    JOIN pg_proc p ON p.oid = d.objid
    JOIN pg_init_privs i ON i.classoid = 'pg_proc'::regclass AND i.objoid = p.oid AND i.privtype = 'e',
    aclexplode(initprivs) first JOIN aclexplode(proacl) now ON now.grantee = first.grantee
    WHERE extname = 'pg_snowflake' AND first.grantee NOT IN (proowner, 'pg_monitor'::regrole)
      AND NOT EXISTS (SELECT FROM aclexplode(initprivs) everybody WHERE everybody.grantee = 0)";

/// Those that give everybody EXECUTE on the functions that are part of others, where default privileges did not.
const PARTS: &str = "
    SELECT format('GRANT EXECUTE ON ROUTINE %s TO PUBLIC', p.oid::regprocedure)
    FROM pg_extension e JOIN pg_depend d ON refclassid = 'pg_extension'::regclass AND refobjid = e.oid AND deptype = 'e'
        AND d.classid = 'pg_proc'::regclass
    JOIN pg_proc p ON p.oid = d.objid
    WHERE extname = 'pg_snowflake' AND pronamespace = to_regnamespace('_snowflake')
      AND NOT EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner))) WHERE grantee = 0)";

/// Sets the privileges.
///
/// # Errors
/// Where a statement fails.
pub fn set() -> Result<(), spi::Error> {
    let set = |client: &mut spi::SpiClient<'_>| {
        let mut statements = Vec::new();
        for query in [RECORD, FUNCTIONS, PARTS] {
            for row in client.select(query, None, &[])? {
                statements.extend(row.get::<Text>(1)?);
            }
        }
        for Text(statement) in statements {
            client.update(&*encoding::statement(&statement), None, &[])?;
        }
        Ok(())
    };
    restricted::with(&[restricted::SAFE_PATH], || Spi::connect_mut(set))
}
