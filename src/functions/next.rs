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
/// functions: a `SetOfIterator` costs as much for each ID as the ID does. What is claimed is given without pgrx's guard.
///
/// # Safety
/// For PostgreSQL to call.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn snowflake_next_many(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: PostgreSQL calls with a call of its own. The context of the set is as `snowflake_next_block` has left it.
    unsafe {
        let context = (*(*call).flinfo).fn_extra.cast::<pg_sys::FuncCallContext>();
        if !context.is_null()
            && let Some(id) = (*(*context).user_fctx.cast::<Ids>()).claimed()
        {
            (*(*call).resultinfo.cast::<pg_sys::ReturnSetInfo>()).isDone = pg_sys::ExprDoneCond::ExprMultipleResult;
            return id.into();
        }
        snowflake_next_block(call)
    }
}

/// The first ID of a block, or the end of the set.
#[cold]
#[inline(never)]
#[pg_guard]
unsafe extern "C-unwind" fn snowflake_next_block(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: as above. That a set is wanted, `init_MultiFuncCall` checks. It keeps its context in `fn_extra` until the set
    // ends, or is no longer read; what is allocated in it lives as long.
    unsafe {
        if (*(*call).flinfo).fn_extra.is_null() {
            let context = pg_sys::init_MultiFuncCall(call);
            let ids = pg_sys::MemoryContextAlloc((*context).multi_call_memory_ctx, size_of::<Ids>()).cast::<Ids>();
            ids.write(Ids::new(fcinfo::pg_getarg(call, 0).unwrap_or(0)));
            (*context).user_fctx = ids.cast();
        }
        let context = (*(*call).flinfo).fn_extra.cast::<pg_sys::FuncCallContext>();
        let ids = (*context).user_fctx.cast::<Ids>();
        let results = (*call).resultinfo.cast::<pg_sys::ReturnSetInfo>();
        (*ids).claim();
        if let Some(id) = (*ids).claimed() {
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
    /// A batch of so many. Ends the call where that is negative.
    fn new(count: i32) -> Self {
        let left = u64::try_from(count).unwrap_or_else(|_| Error::NegativeCount(count).raise());
        Self { left, claim: Claim { first: Position(0), count: 0, worker: WorkerBits(0) } }
    }

    /// The next one that is claimed. Does not panic.
    #[inline(always)]
    fn claimed(&mut self) -> Option<i64> {
        self.claim.count = self.claim.count.checked_sub(1)?;
        let position = self.claim.first;
        self.claim.first = Position(position.0 + 1);
        Some(settings::layout().compose(position, self.claim.worker))
    }

    /// Claims the next block, where one is left.
    fn claim(&mut self) {
        if self.left > 0 {
            self.claim = generator::claim(self.left.min(BLOCK)).unwrap_or_else(|error| error.raise());
            self.left -= self.claim.count;
        }
    }
}
