//! `EXPLAIN (ANALYZE)` says how long the statement has waited for IDs, and for what. PostgreSQL 18 and later let an extension add
//! lines.

/// Installs the hook. Called once in a process; the postmaster's children inherit it.
#[cfg(not(since_pg18))]
pub const fn init() {}

#[cfg(since_pg18)]
pub use hook::init;

#[cfg(since_pg18)]
mod hook {
    use crate::postgres::foreign;
    use crate::shared::waits::{self, Wait};
    use once_cell::sync::OnceCell;
    use pgrx::prelude::*;
    use snowflake_core::Micros;
    use std::ffi::{CStr, c_char};

    /// The hook of others, which is called, too.
    static PREVIOUS: OnceCell<pg_sys::explain_per_plan_hook_type> = OnceCell::new();

    /// Installs the hook. Called once in a process; the postmaster's children inherit it.
    pub fn init() {
        // SAFETY: a variable that extensions set when they are loaded.
        unsafe {
            PREVIOUS.get_or_init(|| pg_sys::explain_per_plan_hook);
            pg_sys::explain_per_plan_hook = Some(on_plan);
        }
    }

    const fn label(wait: Wait) -> &'static CStr {
        match wait {
            Wait::Clock => c"Snowflake Clock Wait",
            Wait::Ceiling => c"Snowflake Ceiling Wait",
            Wait::Lease => c"Snowflake Lease Wait",
            Wait::Registry => c"Snowflake Registry Wait",
            Wait::Segment => c"Snowflake Segment Wait",
        }
    }

    /// Called after the plan has run, if it has. The lines come and go with the summary, as the other times do.
    #[pg_guard]
    unsafe extern "C-unwind" fn on_plan(
        plan: *mut pg_sys::PlannedStmt,
        into: *mut pg_sys::IntoClause,
        state: *mut pg_sys::ExplainState,
        query: *const c_char,
        parameters: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
    ) {
        if let Some(&Some(previous)) = PREVIOUS.get() {
            // SAFETY: what was set as this hook is called with the arguments of this hook.
            unsafe { foreign::call(|| previous(plan, into, state, query, parameters, environment)) };
        }
        // SAFETY: PostgreSQL calls this for what it explains; its state has the options, and takes the lines.
        unsafe {
            if !((*state).analyze && (*state).summary) {
                return;
            }
            for (wait, length) in waits::of_statement().filter(|&(_, length)| length > Micros(0)) {
                let millis = length.0 as f64 / 1000.0;
                pg_sys::ExplainPropertyFloat(label(wait).as_ptr(), c"ms".as_ptr(), millis, 3, state);
            }
        }
    }
}
