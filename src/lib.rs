//! pg_snowflake: cluster-unique, time-ordered `bigint` keys for PostgreSQL.
//!
//! Thin glue over `snowflake_core`, which decides what an ID is, when a claim must wait, and what must be durable
//! before it. A module uses only those below it in this list; a test, `house`, sees to that:
//!
//! * [`functions`]: what SQL calls; the SQL objects themselves are in `sql/`
//! * [`preflight`]: what is required, checked before the first ID is made
//! * [`moving`]: existing tables get snowflake IDs, and back
//! * [`partitions`]: partitions by ID time, with the privileges of their table
//! * [`generator`]: claims positions, and waits or gives up as the settings say
//! * [`segments`]: plain numbers by tag, which this session takes
//! * [`keeper`]: the background process, which reads the configuration for all sessions
//! * [`lease`]: leases of worker IDs from a registry, and the process that talks to it
//! * [`worker`]: the worker in use, and its change
//! * [`reservation`]: what is durable before a claim, on this server and its standbys; and the way back after a wrong
//!   clock
//! * [`planner`]: tells PostgreSQL's planner that an ID's time rises with the ID
//! * [`database`]: what a database has on record: its layout, and a copy of the reservation
//! * [`believed`]: the time to make IDs by
//! * [`named_layouts`]: layouts that queries name
//! * [`errors`]: every error a user can see, with SQLSTATE, detail and hint
//! * [`settings`]: the `pg_snowflake.*` parameters
//! * [`admission`]: what this process may claim until something changes
//! * [`confirmed`]: how safe a reservation is on synchronous standbys
//! * [`explain`]: how long a statement has waited, in `EXPLAIN (ANALYZE)`
//! * [`waits`]: what waits are called in `pg_stat_activity`
//! * [`shared`]: the shared memory of the server: the line, and the lock for transitions
//! * [`wording`]: words that several messages need
//! * [`own`]: which functions of the catalog are ours
//! * [`restricted`]: whose code runs as whom
//! * [`given`]: texts that callers give
//! * [`encoding`]: text in the database's encoding
//! * [`background`]: how background processes start, read a changed configuration and end
//! * [`open_relation`]: a relation that is open, and closes by itself
//! * [`abort`]: what is left to PostgreSQL when an error ends a transaction
//! * [`time`]: clocks, waiting, and PostgreSQL's `timestamptz`

use pgrx::prelude::*;

mod abort;
mod admission;
mod background;
mod believed;
mod confirmed;
mod database;
mod encoding;
mod errors;
mod explain;
mod functions;
mod generator;
mod given;
mod keeper;
mod lease;
mod moving;
mod named_layouts;
mod open_relation;
mod own;
mod partitions;
mod planner;
mod preflight;
mod reservation;
mod restricted;
mod segments;
mod settings;
mod shared;
mod time;
mod waits;
mod wording;
mod worker;

#[cfg(not(panic = "unwind"))]
compile_error!("pgrx turns a panic into an ERROR, which needs panic = \"unwind\"");

pgrx::pg_module_magic!(name, version);

// The parts of the install script, in order: each requires the one before it. Read by cargo pgrx and, for `make
// install`, by scripts/install-script.
extension_sql_file!("../sql/parts/decode.sql");
extension_sql_file!("../sql/parts/layouts.sql", requires = ["decode"]);
extension_sql_file!("../sql/parts/range.sql", requires = ["layouts"]);
extension_sql_file!("../sql/parts/next.sql", requires = ["range"]);
extension_sql_file!("../sql/parts/database.sql", requires = ["next"]);
extension_sql_file!("../sql/parts/status.sql", requires = ["database"]);
extension_sql_file!("../sql/parts/text.sql", requires = ["status"]);
extension_sql_file!("../sql/parts/time.sql", requires = ["text"]);
extension_sql_file!("../sql/parts/partitions.sql", requires = ["time"]);
extension_sql_file!("../sql/parts/bounds.sql", requires = ["partitions"]);
extension_sql_file!("../sql/parts/leases.sql", requires = ["bounds"]);
extension_sql_file!("../sql/parts/moving.sql", requires = ["leases"]);
extension_sql_file!("../sql/parts/preflight.sql", requires = ["moving"]);
extension_sql_file!("../sql/parts/segments.sql", requires = ["preflight"]);
extension_sql_file!("../sql/parts/id_type.sql", requires = ["segments"]);

/// Runs once in a process: in the postmaster where the library is preloaded, else in the session that first calls
/// one of the functions. Without preloading there is no shared memory to claim from, but decoding works.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    // SAFETY: a flag that only this process writes.
    let preloading = unsafe { pg_sys::process_shared_preload_libraries_in_progress };
    forbid_backtraces();
    settings::definitions::init(preloading);
    planner::init();
    explain::init();
    if preloading {
        time::tsc::init();
        shared::init();
        keeper::init();
        lease::init();
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
    // SAFETY: as above.
    unsafe {
        match before {
            Some(value) => std::env::set_var(VARIABLE, value),
            None => std::env::remove_var(VARIABLE),
        }
    }
}
