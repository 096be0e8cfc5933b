//! Which functions of the catalog are ours: those of this library. Only a superuser can create such a function, while the
//! owner of the extension can add any function to it, under any name.

use pgrx::pg_catalog::pg_proc::PgProc;
use pgrx::pg_sys;
use pgrx::spi::{Result, SpiClient};

/// The function that makes one ID, found by its library and symbol.
const NEXT: &str = "
    SELECT p.oid FROM pg_catalog.pg_extension e
    JOIN pg_catalog.pg_depend d ON refclassid OPERATOR(pg_catalog.=) 'pg_catalog.pg_extension'::pg_catalog.regclass
        AND refobjid OPERATOR(pg_catalog.=) e.oid AND deptype OPERATOR(pg_catalog.=) 'e'
        AND classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass
    JOIN pg_catalog.pg_proc p ON p.oid OPERATOR(pg_catalog.=) objid
    JOIN pg_catalog.pg_language l ON l.oid OPERATOR(pg_catalog.=) prolang AND lanname OPERATOR(pg_catalog.=) 'c'
    WHERE extname OPERATOR(pg_catalog.=) 'pg_snowflake' AND prosrc OPERATOR(pg_catalog.=) 'snowflake_next'
        AND probin OPERATOR(pg_catalog.~) '(^|/)pg_snowflake$'
    ORDER BY p.oid USING OPERATOR(pg_catalog.<) LIMIT 1";

/// The C symbol of a function, where it is one of this library.
pub fn symbol(function: pg_sys::Oid) -> Option<String> {
    let function = PgProc::new(function)?;
    let is_ours = function.probin().is_some_and(|library| library.rsplit('/').next() == Some("pg_snowflake"));
    is_ours.then(|| function.prosrc())
}

/// `snowflake_next()`, whatever its schema; `None` where the extension is not created.
///
/// # Errors
/// Where the catalogue cannot be read.
pub fn next(client: &SpiClient) -> Result<Option<pg_sys::Oid>> {
    let found = client.select(NEXT, Some(1), &[])?;
    if found.is_empty() { Ok(None) } else { found.first().get_one() }
}
