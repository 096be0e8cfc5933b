//! Statements that set a sequence to a number, as a dump has them for the record of a database: before such a statement is
//! planned, [`record::restore`] is asked whether it may.

use super::nodes::{At, Expr, HookCall};
use crate::postgres::foreign;
use crate::record::restore;
use once_cell::sync::OnceCell;
use pg_sys::Oid;
use pgrx::prelude::*;

/// The hook of others, which is called, too.
pub static PREVIOUS_HOOK: OnceCell<pg_sys::post_parse_analyze_hook_type> = OnceCell::new();

#[cfg(not(since_pg19))]
type JumbleState = *mut pg_sys::JumbleState;
#[cfg(since_pg19)]
type JumbleState = *const pg_sys::JumbleState;

/// Called for each statement when it is analysed. As few call `setval`, nothing is guarded before one is seen.
pub unsafe extern "C-unwind" fn on_statement(
    state: *mut pg_sys::ParseState,
    query: *mut pg_sys::Query,
    jumble: JumbleState,
) {
    let call = HookCall::begin();
    // SAFETY: what was set as this hook is called with the arguments of this hook, whose frame has nothing to drop.
    // PostgreSQL calls it with a state and a query that are whole, and are there until it returns.
    let query = unsafe {
        if let Some(&Some(previous)) = PREVIOUS_HOOK.get() {
            foreign::call_guarded(|| previous(state, query, jumble));
        }
        // Where there may be parameters, it may be the body of a function, which is only checked, or a plan that is kept.
        call.lend(query).filter(|_| (*state).p_paramref_hook.is_none())
    };
    if let Some(query) = query.filter(|query| is_of_interest(*query)) {
        look_at(query);
    }
}

/// Whether this is a SELECT without FROM, that calls `setval` first of all.
fn is_of_interest(query: At<'_, pg_sys::Query>) -> bool {
    query.command() == pg_sys::CmdType::CMD_SELECT
        && query.join_tree().is_some_and(|tree| tree.fromlist().iter().next().is_none())
        && query.targets().iter().next().and_then(call_of).is_some()
}

/// A call of `setval` with constants.
struct Call<'p> {
    sequence: Oid,
    number: i64,
    /// The number, as the call has it.
    argument: Expr<'p>,
}

/// The call that stands in a column of a SELECT; `None` where none does.
fn call_of(column: At<'_, pg_sys::TargetEntry>) -> Option<Call<'_>> {
    let constant = |node: Expr<'_>, of_type: Oid| {
        let constant = node.cast::<pg_sys::Const>()?;
        (constant.consttype() == of_type && !constant.constisnull()).then(|| constant.constvalue().value())
    };
    let call = column.expr().cast::<pg_sys::FuncExpr>()?;
    if ![pg_sys::F_SETVAL_REGCLASS_INT8, pg_sys::F_SETVAL_REGCLASS_INT8_BOOL].contains(&call.funcid().to_u32()) {
        return None;
    }
    let mut arguments = call.args().iter();
    let (sequence, argument) = (arguments.next()?, arguments.next()?);
    // A small number is converted.
    let small = || {
        let conversion =
            argument.cast::<pg_sys::FuncExpr>().filter(|call| call.funcid() == pg_sys::F_INT8_INT4.into())?;
        constant(conversion.args().iter().next()?, pg_sys::INT4OID).map(|number| i64::from(number as i32))
    };
    let number = constant(argument, pg_sys::INT8OID).map(|number| number as i64).or_else(small)?;
    let sequence = Oid::from(constant(sequence, pg_sys::REGCLASSOID)? as u32);
    Some(Call { sequence, number, argument })
}

/// Ends a statement that would change a record in use. In place of a call that says nothing new is what it would return.
#[pg_guard]
extern "C-unwind" fn look_at(query: At<'_, pg_sys::Query>) {
    for column in query.targets().iter() {
        if let Some(call) = call_of(column)
            && restore::says_nothing_new(call.sequence, call.number)
        {
            column.set_expr(call.argument);
        }
    }
}
