//! pg_snowflake: cluster-unique, time-ordered `bigint` keys for PostgreSQL.
//!
//! Thin glue over `snowflake_core`, which decides what an ID is, when a claim must wait, and what must be durable
//! before it. A module uses only those below it in this list; a test, `house`, sees to that:
//!
//! * [`sql`]: what SQL calls; the SQL objects themselves are in `sql/`
//! * [`tables`]: existing tables get snowflake IDs, and back; partitions by ID time
//! * [`generator`]: claims IDs and numbers of segments, and waits or gives up as the settings say; with the keeper, which
//!   reads the configuration for all sessions
//! * [`registry_process`]: the process that talks to the registry, and what sessions see of it
//! * [`reservation`]: what is durable before a claim, on this server and its standbys; and the way back after a wrong
//!   clock
//! * [`planner`]: tells PostgreSQL's planner that an ID's time rises with the ID
//! * [`record`]: what a database has on record: its layout, and a copy of the reservation
//! * [`server`]: the time and the worker that all sessions make IDs by
//! * [`errors`]: every error a user can see, with SQLSTATE, detail and hint
//! * [`settings`]: the `pg_snowflake.*` parameters
//! * [`shared`]: the shared memory of the server; and what a process keeps of it until something changes
//! * [`postgres`]: what PostgreSQL and the system are asked, and how

use pgrx::prelude::*;

mod errors;
mod generator;
mod planner;
mod postgres;
mod record;
mod registry_process;
mod reservation;
mod server;
mod settings;
mod shared;
mod sql;
mod tables;

#[cfg(not(panic = "unwind"))]
compile_error!("pgrx turns a panic into an ERROR, which needs panic = \"unwind\"");

pgrx::pg_module_magic!(name, version);

// The parts of the install script, in order: each requires the one before it. Read by cargo pgrx and, for `make
// install`, by scripts/install-script.
extension_sql_file!("../sql/parts/schema.sql");
extension_sql_file!("../sql/parts/decode.sql", requires = ["schema"]);
extension_sql_file!("../sql/parts/layouts.sql", requires = ["decode"]);
extension_sql_file!("../sql/parts/range.sql", requires = ["layouts"]);
extension_sql_file!("../sql/parts/next.sql", requires = ["range"]);
extension_sql_file!("../sql/parts/database.sql", requires = ["next"]);
extension_sql_file!("../sql/parts/batches.sql", requires = ["database"]);
extension_sql_file!("../sql/parts/status.sql", requires = ["batches"]);
extension_sql_file!("../sql/parts/text.sql", requires = ["status"]);
extension_sql_file!("../sql/parts/time.sql", requires = ["text"]);
extension_sql_file!("../sql/parts/partitions.sql", requires = ["time"]);
extension_sql_file!("../sql/parts/privileges.sql", requires = ["partitions"]);
extension_sql_file!("../sql/parts/held.sql", requires = ["privileges"]);
extension_sql_file!("../sql/parts/default_rows.sql", requires = ["held"]);
extension_sql_file!("../sql/parts/bounds.sql", requires = ["default_rows"]);
extension_sql_file!("../sql/parts/leases.sql", requires = ["bounds"]);
extension_sql_file!("../sql/parts/moving.sql", requires = ["leases"]);
extension_sql_file!("../sql/parts/preflight.sql", requires = ["moving"]);
extension_sql_file!("../sql/parts/segments.sql", requires = ["preflight"]);
extension_sql_file!("../sql/parts/id_type.sql", requires = ["segments"]);
extension_sql_file!("../sql/parts/rights.sql", requires = ["id_type"]);

/// Runs once in a process: in the postmaster where the library is preloaded, else in the session that first calls
/// one of the functions. Without preloading there is no shared memory to claim from, but decoding works.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    // SAFETY: a flag that only this process writes.
    let preloading = unsafe { pg_sys::process_shared_preload_libraries_in_progress };
    forbid_backtraces();
    settings::definitions::init(preloading);
    planner::init();
    generator::explain::init();
    if preloading {
        postgres::time::counter::init();
        shared::init();
        generator::keeper::init();
        registry_process::init();
    }
}

/// Where RUST_BACKTRACE is set in the server's environment, pgrx puts a backtrace into the DETAIL of every error, which
/// says nothing to users. Rust's standard library reads the environment once and remembers what it found, and each
/// shared library has a standard library of its own. So the variable is changed for that one reading, and then restored
/// for other libraries.
fn forbid_backtraces() {
    const VARIABLE: &str = "RUST_LIB_BACKTRACE";
    let before = std::env::var_os(VARIABLE);
    // SAFETY: a process of PostgreSQL has one thread.
    unsafe { std::env::set_var(VARIABLE, "0") };
    let _ = std::backtrace::Backtrace::capture();
    // SAFETY: there is still one thread.
    unsafe {
        match before {
            Some(value) => std::env::set_var(VARIABLE, value),
            None => std::env::remove_var(VARIABLE),
        }
    }
}
