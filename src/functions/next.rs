//! `snowflake_next()`: sql/30-next.sql.

use crate::errors::Error;
use crate::{generator, settings};
use pgrx::prelude::*;
use pgrx::{fcinfo, pg_sys};
use snowflake_core::{Claim, Position, WorkerBits};

/// A batch claims at most this many IDs at once: enough to make the claim's cost vanish, few enough that other
/// sessions get theirs, and that little is lost when a query stops reading.
const BLOCK: u64 = 1024;

version_1!(pg_finfo_snowflake_next, pg_finfo_snowflake_next_many);

/// `snowflake_next()`. Without pgrx's guard, which costs a fifth of all the rest: nothing here panics or raises an error, and
/// what may do so is guarded.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn snowflake_next(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    match generator::claim_at_once(1) {
        Some(claim) => settings::layout().compose(claim.first, claim.worker).into(),
        None => snowflake_next_slowly(call),
    }
}

#[cold]
#[inline(never)]
#[pg_guard]
extern "C-unwind" fn snowflake_next_slowly(_call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    match generator::claim(1) {
        Ok(claim) => settings::layout().compose(claim.first, claim.worker).into(),
        Err(error) => error.raise(),
    }
}

/// `snowflake_next(count)`. Speaks PostgreSQL's protocol for sets itself, as funcapi.h describes it for value-per-call
/// functions: a `SetOfIterator` costs as much for each ID as the ID does.
///
/// # Safety
/// For PostgreSQL to call.
#[unsafe(no_mangle)]
#[pg_guard]
pub unsafe extern "C-unwind" fn snowflake_next_many(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: PostgreSQL calls with a call of its own; that results are a set, `init_MultiFuncCall` checks. It keeps the
    // context of the set in `fn_extra` until the set ends, or is no longer read; what is allocated in it lives as long.
    unsafe {
        let info = (*call).flinfo;
        if (*info).fn_extra.is_null() {
            let context = pg_sys::init_MultiFuncCall(call);
            let ids = pg_sys::MemoryContextAlloc((*context).multi_call_memory_ctx, size_of::<Ids>()).cast::<Ids>();
            let count = fcinfo::pg_getarg::<i32>(call, 0).unwrap_or(0);
            ids.write(Ids::new(count));
            (*context).user_fctx = ids.cast();
        }
        let context = (*info).fn_extra.cast::<pg_sys::FuncCallContext>();
        let results = (*call).resultinfo.cast::<pg_sys::ReturnSetInfo>();
        if let Some(id) = (*(*context).user_fctx.cast::<Ids>()).next() {
            (*results).isDone = pg_sys::ExprDoneCond::ExprMultipleResult;
            return id.into();
        }
        pg_sys::end_MultiFuncCall(call, context);
        (*results).isDone = pg_sys::ExprDoneCond::ExprEndResult;
        fcinfo::pg_return_null(call)
    }
}

/// The IDs of a batch, claimed block by block as they are read.
struct Ids {
    /// How many are still to be claimed.
    left: u64,
    /// What is claimed and not yet read.
    claim: Claim,
}

impl Ids {
    fn new(count: i32) -> Self {
        let Ok(left) = u64::try_from(count) else { Error::NegativeCount(count).raise() };
        Self { left, claim: Claim { first: Position(0), count: 0, worker: WorkerBits(0) } }
    }

    fn next(&mut self) -> Option<i64> {
        if self.claim.count == 0 {
            if self.left == 0 {
                return None;
            }
            self.claim = generator::claim(self.left.min(BLOCK)).unwrap_or_else(|error| error.raise());
            self.left -= self.claim.count;
        }
        let position = self.claim.first;
        self.claim.first = Position(position.0 + 1);
        self.claim.count -= 1;
        Some(settings::layout().compose(position, self.claim.worker))
    }
}
