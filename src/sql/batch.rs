//! Functions that return a batch of numbers, one in each row: `snowflake_next(count)` and `snowflake_segment_next(tag, count)`. A block of
//! them is claimed at once, and its numbers are returned as the query reads them.
//!
//! They implement the protocol of value-per-call functions themselves, as funcapi.h describes it: pgrx's `SetOfIterator` takes as much time
//! for each ID as making the ID does. Numbers that are already claimed are returned without pgrx's guard.

use crate::errors::Error;
use crate::errors::values::ValueError;
use pgrx::prelude::*;
use pgrx::{fcinfo, pg_sys};
use std::mem::needs_drop;

/// A batch claims at most this many numbers at once: enough that the cost of a claim does not matter, few enough that other
/// sessions can claim in between, and that few numbers are lost if the query stops reading.
pub const BLOCK: u64 = 1024;

/// A batch, of which blocks are claimed as the query reads them. It is never dropped.
pub trait Batch {
    /// The batch that a call asks for. Raises an error where its arguments mean nothing.
    fn asked_for(arguments: &Arguments) -> Self;

    /// The next number that is claimed already. Must neither panic nor raise an error.
    fn claimed(&mut self) -> Option<i64>;

    /// Claims the next block, if numbers are left.
    fn claim(&mut self);
}

/// The arguments of a call. Each is read as the type that the SQL in `sql/parts` declares.
pub struct Arguments(pg_sys::FunctionCallInfo);

impl Arguments {
    /// # Safety
    /// The call is PostgreSQL's, is not over, and has the arguments that are asked for.
    pub const unsafe fn of(call: pg_sys::FunctionCallInfo) -> Self {
        Self(call)
    }

    /// `None` where it is NULL.
    pub fn get<T: FromDatum>(&self, place: usize) -> Option<T> {
        // SAFETY: whoever made this has promised that the call has an argument of this type at this place.
        unsafe { fcinfo::pg_getarg(self.0, place) }
    }

    /// How many numbers are wanted. Raises an error where that is negative.
    pub fn count(&self, place: usize) -> u64 {
        let count: i32 = self.get(place).unwrap_or(0);
        u64::try_from(count).unwrap_or_else(|_| Error::from(ValueError::NegativeCount(count)).raise())
    }
}

/// The body of a function that returns a batch.
///
/// # Safety
/// To be called by PostgreSQL only.
#[inline(always)]
pub unsafe extern "C-unwind" fn next<B: Batch>(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    // SAFETY: `call` is valid, as it comes from PostgreSQL. The context, if there is one, was made by `next_block` in an earlier call of
    // the same function, and holds its batch.
    unsafe {
        let context = (*(*call).flinfo).fn_extra.cast::<pg_sys::FuncCallContext>();
        if !context.is_null()
            && let Some(number) = (*(*context).user_fctx.cast::<B>()).claimed()
        {
            (*(*call).resultinfo.cast::<pg_sys::ReturnSetInfo>()).isDone = pg_sys::ExprDoneCond::ExprMultipleResult;
            return number.into();
        }
        next_block::<B>(call)
    }
}

/// Claims a block and returns its first number, or ends the set.
#[cold]
#[inline(never)]
#[pg_guard]
unsafe extern "C-unwind" fn next_block<B: Batch>(call: pg_sys::FunctionCallInfo) -> pg_sys::Datum {
    const { assert!(!needs_drop::<B>()) };
    // SAFETY: `call` is valid, as `next` has it from PostgreSQL. `init_MultiFuncCall` raises an error unless the caller accepts a set. It
    // keeps its context in `fn_extra` until the set ends or the query stops reading it; what is allocated in that context lives as long.
    unsafe {
        if (*(*call).flinfo).fn_extra.is_null() {
            let batch = B::asked_for(&Arguments::of(call));
            let context = pg_sys::init_MultiFuncCall(call);
            let place = pg_sys::MemoryContextAlloc((*context).multi_call_memory_ctx, size_of::<B>()).cast::<B>();
            place.write(batch);
            (*context).user_fctx = place.cast();
        }
        let context = (*(*call).flinfo).fn_extra.cast::<pg_sys::FuncCallContext>();
        let batch = &mut *(*context).user_fctx.cast::<B>();
        let results = (*call).resultinfo.cast::<pg_sys::ReturnSetInfo>();
        batch.claim();
        if let Some(number) = batch.claimed() {
            (*results).isDone = pg_sys::ExprDoneCond::ExprMultipleResult;
            return number.into();
        }
        pg_sys::end_MultiFuncCall(call, context);
        (*results).isDone = pg_sys::ExprDoneCond::ExprEndResult;
        fcinfo::pg_return_null(call)
    }
}
