//! What is remembered of a table or a condition while its query is planned, apart from the nodes that PostgreSQL has. Other extensions copy such
//! nodes, whole or with what they point to. So nothing is found by where a node is in memory alone, and nothing is read beside it: what belongs to
//! an index is found by the index's OID, and by what the description says.
//!
//! It is forgotten when PostgreSQL gives back the memory that the query was planned in, which it does after an ERROR, too. Queries that are planned
//! within another one, as for a function that is evaluated, have states of their own.

use super::nodes::{At, Expr};
use super::state::{Index, Planner};
use pgrx::prelude::*;
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::rc::Rc;

/// What something is remembered by: numbers, and addresses that nothing is read at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RememberedBy {
    /// An index, by the state of the query, the number that its table has there, and its OID.
    Index(usize, u32, u32),
    /// A condition, by the state, and its expression.
    Condition(usize, usize),
    /// A query, by its state.
    Query(usize),
}

impl RememberedBy {
    /// An index of a table of the query. It may have several descriptions.
    pub fn index(planner: Planner<'_>, index: Index<'_>) -> Self {
        Self::Index(planner.as_ptr().addr(), index.table().number(), index.oid().to_u32())
    }

    /// A condition of the query.
    pub fn condition(planner: Planner<'_>, expression: Expr<'_>) -> Self {
        Self::Condition(planner.as_ptr().addr(), expression.as_ptr().addr())
    }

    /// The query itself.
    pub fn query(planner: Planner<'_>) -> Self {
        Self::Query(planner.as_ptr().addr())
    }
}

/// A kind of what is remembered.
///
/// # Safety
/// `Of` is the same type for each lifetime, but for the lifetime itself; and that is one of what the planner has.
pub unsafe trait Remembered: 'static {
    /// The type.
    type Of<'p>: 'p;
}

type All = BTreeMap<RememberedBy, Vec<Rc<dyn Any>>>;

thread_local! {
    /// By the memory that queries are planned in: its address.
    static REMEMBERED: RefCell<BTreeMap<usize, All>> = const { RefCell::new(BTreeMap::new()) };
}

/// Remembers something until the memory of the query goes.
pub fn remember<'p, R: Remembered>(planner: Planner<'p>, by: RememberedBy, what: R::Of<'p>) {
    // SAFETY: the types differ in nothing but the lifetime. What the planner has lives until its memory goes; by then this is forgotten, and
    // until then it is lent for the call of a hook alone, for which the memory is there.
    let what: Rc<R::Of<'static>> = unsafe { Rc::from_raw(Rc::into_raw(Rc::new(what)).cast()) };
    let Some(memory) = planner.memory().map(At::as_ptr) else { return };
    if !REMEMBERED.with_borrow(|all| all.contains_key(&memory.addr())) {
        // SAFETY: the memory has room for what notes the function, and gives that back after it has called it.
        unsafe {
            let note = pg_sys::MemoryContextAllocZero(memory, size_of::<pg_sys::MemoryContextCallback>())
                .cast::<pg_sys::MemoryContextCallback>();
            (*note).func = Some(forget);
            (*note).arg = memory.cast();
            pg_sys::MemoryContextRegisterResetCallback(memory, note);
        }
    }
    REMEMBERED.with_borrow_mut(|all| all.entry(memory.addr()).or_default().entry(by).or_default().push(what));
}

/// Something that is remembered by this, and that `is_it`: the first one.
pub fn remembered<'p, R: Remembered>(
    planner: Planner<'p>,
    by: RememberedBy,
    is_it: impl Fn(&R::Of<'p>) -> bool,
) -> Option<Rc<R::Of<'p>>> {
    let memory = planner.memory()?.as_ptr().addr();
    // The comparison calls PostgreSQL, so nothing is borrowed meanwhile.
    let known = |at: usize| REMEMBERED.with_borrow(|all| all.get(&memory)?.get(&by)?.get(at).cloned());
    for at in 0.. {
        let Ok(what) = known(at)?.downcast::<R::Of<'static>>() else { continue };
        // SAFETY: the types differ in nothing but the lifetime. This belongs to the memory that the query is planned in, which is there for `'p`,
        // and with it all that is in it.
        let what: Rc<R::Of<'p>> = unsafe { Rc::from_raw(Rc::into_raw(what).cast()) };
        if is_it(&what) {
            return Some(what);
        }
    }
    None
}

/// Called before the memory goes.
#[pg_guard]
extern "C-unwind" fn forget(memory: *mut c_void) {
    // What is dropped has pointers into the memory, and reads nothing there. Where the process ends, all is gone already.
    let forgotten = REMEMBERED.try_with(|all| all.borrow_mut().remove(&memory.addr()));
    drop(forgotten);
}
