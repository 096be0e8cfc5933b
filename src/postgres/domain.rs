//! Constraints of domains, evaluated without their text, whose names could stand for something else by now.

use pgrx::pg_sys;
use std::ffi::CStr;

/// Whether the expression of a domain's constraint, as `pg_constraint.conbin` has it, is true for a `bigint`, or NULL. May call anything that
/// the expression calls, as the current user.
pub fn is_passed(expression: &CStr, value: i64) -> bool {
    // SAFETY: the text is one of PostgreSQL's own, of one expression; the state is freed at the end, or by the end of the transaction.
    unsafe {
        let state = pg_sys::CreateExecutorState();
        let context = pg_sys::MakePerTupleExprContext(state);
        (*context).domainValue_datum = value.into();
        (*context).domainValue_isNull = false;
        let expression = pg_sys::lappend(std::ptr::null_mut(), pg_sys::stringToNode(expression.as_ptr()));
        let is_passed = pg_sys::ExecCheck(pg_sys::ExecPrepareCheck(expression, state), context);
        pg_sys::FreeExecutorState(state);
        is_passed
    }
}
