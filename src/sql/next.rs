//! `snowflake_next()`: one ID, or a batch.

use crate::errors::Error;
use crate::errors::values::ValueError;
use crate::{generator, settings};
use pgrx::prelude::*;
use pgrx::{fcinfo, pg_sys};
use snowflake_core::{Claim, Position, WorkerBits};

/// A batch claims at most this many IDs at once: enough that the cost of a claim does not matter, few enough that other
/// sessions can claim in between, and that few IDs are lost if the query stops reading.
const BLOCK: u64 = 1024;

export!(next as snowflake_next, next_many as snowflake_next_many);

/// `snowflake_next()`. Has no guard of pgrx's, which would take a fifth of the time that the rest takes: nothing here
/// panics or raises an error, and [`next_slowly`], which may, has one.
///
/// # Safety
/// To be called by PostgreSQL only.
unsafe extern "C-unwind" fn next(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    match generator::claim_at_once(1) {
        Some(claim) => settings::layout().compose(claim.first, claim.worker).into(),
        None => next_slowly(call),
    }
}

#[cold]
#[inline(never)]
#[pg_guard]
extern "C-unwind" fn next_slowly(_call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    match generator::claim(1) {
        Ok(claim) => settings::layout().compose(claim.first, claim.worker).into(),
        Err(error) => error.raise(),
    }
}

/// `snowflake_next(count)`. Implements the protocol of value-per-call functions itself, as funcapi.h describes it:
/// pgrx's `SetOfIterator` takes as much time for each ID as making the ID does. IDs that are already claimed are
/// returned without pgrx's guard.
///
/// # Safety
/// To be called by PostgreSQL only.
unsafe extern "C-unwind" fn next_many(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: `call` is valid, as it comes from PostgreSQL. The context, if there is one, was made by `next_block`.
    unsafe {
        let context = (*(*call).flinfo).fn_extra.cast::<pg_sys::FuncCallContext>();
        if !context.is_null()
            && let Some(id) = (*(*context).user_fctx.cast::<Ids>()).claimed()
        {
            (*(*call).resultinfo.cast::<pg_sys::ReturnSetInfo>()).isDone = pg_sys::ExprDoneCond::ExprMultipleResult;
            return id.into();
        }
        next_block(call)
    }
}

/// Claims a block and returns its first ID, or ends the set.
#[cold]
#[inline(never)]
#[pg_guard]
unsafe extern "C-unwind" fn next_block(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: as above. `init_MultiFuncCall` raises an error unless the caller accepts a set. It keeps its context in
    // `fn_extra` until the set ends or the query stops reading it; what is allocated in that context lives as long.
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

/// A batch, of which blocks are claimed as the query reads them.
struct Ids {
    /// How many IDs are not yet claimed.
    left: u64,
    /// The IDs that are claimed and not yet returned.
    claim: Claim,
}

impl Ids {
    /// A batch of this many IDs; raises an error if the count is negative.
    fn new(count: i32) -> Self {
        let left = u64::try_from(count).unwrap_or_else(|_| Error::from(ValueError::NegativeCount(count)).raise());
        Self { left, claim: Claim { first: Position(0), count: 0, worker: WorkerBits(0) } }
    }

    /// The next ID that is claimed already. Does not panic.
    #[inline(always)]
    fn claimed(&mut self) -> Option<i64> {
        self.claim.count = self.claim.count.checked_sub(1)?;
        let position = self.claim.first;
        self.claim.first = Position(position.0 + 1);
        Some(settings::layout().compose(position, self.claim.worker))
    }

    /// Claims the next block, if IDs are left.
    fn claim(&mut self) {
        if self.left > 0 {
            self.claim = generator::claim(self.left.min(BLOCK)).unwrap_or_else(|error| error.raise());
            self.left -= self.claim.count;
        }
    }
}
