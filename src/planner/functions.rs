//! Which functions of the catalog are ours, and where the bounds are that belong to an accessor.

use super::nodes::{Expr, List, made};
use super::state::Planner;
use super::versions::CacheNumber;
use crate::postgres::catalog;
use crate::postgres::own::symbol;
use crate::postgres::process::user;
use crate::record;
use pgrx::prelude::*;
use snowflake_core::{Field, Layout};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::CStr;

/// The first OID that is not PostgreSQL's own.
const FIRST_OF_USERS: u32 = 16384;

/// A function that returns a part of an ID.
#[derive(Clone, Copy)]
struct Accessor {
    field: Field,
    /// Whether the layout is an argument.
    takes_layout: bool,
}

/// The time of an ID: a call of `snowflake_timestamp()`.
#[derive(Clone, Copy)]
pub struct IdTime<'p> {
    /// The call.
    pub call: Expr<'p>,
    /// The expression of the ID.
    pub id: Expr<'p>,
    /// The expression of the layout's name, and the layout; `None` for the layout of the database.
    pub named: Option<(Expr<'p>, Layout)>,
    function: pg_sys::Oid,
    collation: pg_sys::Oid,
}

/// A function that bounds IDs by a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bound {
    /// The lowest ID whose time is at or after it; NULL where there is none.
    From,
    /// The highest ID whose time is before it; -1 where there is none.
    Before,
    /// The highest ID whose time is at or before it; -1 where there is none.
    At,
}

impl<'p> IdTime<'p> {
    /// Reads an expression; `None` where it is something else, or where it cannot be evaluated without an error: a layout that
    /// is no constant, or none at all.
    pub fn read(node: Expr<'p>) -> Option<Self> {
        match read(node)? {
            (time, Field::Timestamp) => Some(time),
            _ => None,
        }
    }

    /// The time of another ID, as this one has it.
    pub fn of(self, id: Expr<'p>) -> Self {
        Self { id, ..self }
    }

    /// The layout of the IDs; `None` where the database has none on record.
    pub fn layout(&self) -> Option<Layout> {
        match self.named {
            Some((_, layout)) => Some(layout),
            None => record::layout_on_record().copied(),
        }
    }

    /// Whether the user may call the accessor. Where not, the call must stay as it is, and fail.
    pub fn may_be_called(&self) -> bool {
        may_call(self.function, user())
    }

    /// Whether the user may call the bounds by a `timestamptz`, too.
    pub fn may_be_bounded(&self) -> bool {
        let user = user();
        let may = |function| may_call(function, user);
        let may_bound = |bound| find_bound(self, bound, pg_sys::TIMESTAMPTZOID).is_some_and(may);
        may(self.function) && [Bound::From, Bound::Before, Bound::At].into_iter().all(may_bound)
    }

    /// Has a plan in which the accessor is not called any more made again where its privileges change, or the user does.
    pub fn keep_in_plan(&self, planner: Planner<'p>) {
        planner.depend_on_function(self.function);
    }

    /// The call of a bound by a time, an expression of this type; `None` where it is of another one, where the function is missing, or where the
    /// user may call one of both and not the other.
    pub fn bound(&self, bound: Bound, time: Expr<'p>, time_type: pg_sys::Oid) -> Option<Expr<'p>> {
        let function = find_bound(self, bound, time_type)?;
        if !may_call(function, user()) || !self.may_be_called() || time.type_of() != time_type {
            return None;
        }
        let name = self.named.map(|(name, _)| name.copy());
        let arguments: List<_> = [time].into_iter().chain(name).collect();
        Some(call(function, pg_sys::INT8OID, arguments, self.collation))
    }
}

/// The call of a function that takes these arguments, and returns a value of this type.
fn call<'p>(
    function: pg_sys::Oid,
    returns: pg_sys::Oid,
    arguments: List<'p, pg_sys::Node>,
    collation: pg_sys::Oid,
) -> Expr<'p> {
    let (none, form) = (pg_sys::InvalidOid, pg_sys::CoercionForm::COERCE_EXPLICIT_CALL);
    // SAFETY: this makes a new node.
    unsafe { made(pg_sys::makeFuncExpr(function, returns, arguments.as_ptr(), none, collation, form)) }
}

/// The schema `_snowflake`, if there is one.
fn internal_schema() -> pg_sys::Oid {
    catalog::schema_named(c"_snowflake").unwrap_or(pg_sys::InvalidOid)
}

/// Whether an expression is the call of a function that is not PostgreSQL's own.
pub fn may_be_ours(node: Expr<'_>) -> bool {
    node.cast::<pg_sys::FuncExpr>().is_some_and(|call| call.funcid().to_u32() >= FIRST_OF_USERS)
}

/// Reads the call of an accessor, and which part of an ID it returns: as [`IdTime::read`], which holds the ID and its layout here,
/// too.
pub fn read(node: Expr<'_>) -> Option<(IdTime<'_>, Field)> {
    let call = node.cast::<pg_sys::FuncExpr>().filter(|_| may_be_ours(node))?;
    let mut arguments = call.args().iter();
    let (id, name) = (arguments.next()?, arguments.next());
    let accessor = find_accessor(call.funcid())?;
    let named = match (accessor.takes_layout, name) {
        (false, None) => None,
        (true, Some(name)) => Some((name, named_layout(name)?)),
        _ => return None,
    };
    Some((IdTime { call: node, id, named, function: call.funcid(), collation: call.collation() }, accessor.field))
}

/// The call of `_snowflake.earliest()`, or `latest()`, with these arguments: the way as text, and values; `None` where there is no such function,
/// or the user may not call it.
pub fn call_of_times<'p>(is_earliest: bool, arguments: List<'p, pg_sys::Node>) -> Option<Expr<'p>> {
    let find = || {
        let name = if is_earliest { c"earliest" } else { c"latest" };
        let is_ours = |it: String| it.strip_prefix("snowflake_").is_some_and(|it| it.as_bytes() == name.to_bytes());
        let found = find(internal_schema(), name, &[pg_sys::TEXTOID, pg_sys::ANYOID]);
        found.filter(|&function| symbol(function).is_some_and(is_ours))
    };
    let function =
        remembered(|all| &mut all.of_times, is_earliest, find).filter(|&function| may_call(function, user()))?;
    Some(call(function, pg_sys::TIMESTAMPTZOID, arguments, pg_sys::DEFAULT_COLLATION_OID))
}

/// The arguments of a call of one of both, where an expression is one, or a bound of IDs by one.
pub fn arguments_of_times<'p>(bound: Expr<'p>) -> Option<List<'p, pg_sys::Node>> {
    let call = bound.cast::<pg_sys::FuncExpr>().filter(|_| may_be_ours(bound))?;
    let is_of_times = |function| {
        FOUND.with_borrow(|all| [true, false].iter().any(|which| all.of_times.get(which) == Some(&Some(function))))
    };
    match is_of_times(call.funcid()) {
        true => Some(call.args()),
        false => call.args().get(0).filter(|&argument| may_be_ours(argument)).and_then(arguments_of_times),
    }
}

/// `_snowflake.sorted()`; `None` where there is no such function, or the user may not call it.
pub fn sorted() -> Option<pg_sys::Oid> {
    let find = || {
        let found = find(internal_schema(), c"sorted", &[pg_sys::ANYARRAYOID]);
        found.filter(|&function| symbol(function).is_some_and(|it| it == "snowflake_sorted"))
    };
    remembered(|all| &mut all.sorted, (), find).filter(|&function| may_call(function, user()))
}

/// The call of `_snowflake.sorted()` for an array of times. The plan is made anew where the user may not call it any more.
pub fn call_of_sorted<'p>(planner: Planner<'p>, array: Expr<'p>) -> Option<Expr<'p>> {
    let function = sorted()?;
    planner.depend_on_function(function);
    Some(call_of_one(function.to_u32(), array.copy(), array.type_of()))
}

/// The call of a function, by its OID, of one argument that it takes.
pub fn call_of_one<'p>(function: u32, argument: Expr<'p>, returns: pg_sys::Oid) -> Expr<'p> {
    call(function.into(), returns, [argument].into_iter().collect(), pg_sys::InvalidOid)
}

/// The findings in the catalog: the look-ups take as long as the rest of a query's planning.
#[derive(Default)]
struct Found {
    accessors: BTreeMap<u32, Option<Accessor>>,
    bounds: BTreeMap<(u32, Bound, u32), Option<pg_sys::Oid>>,
    of_times: BTreeMap<bool, Option<pg_sys::Oid>>,
    sorted: BTreeMap<(), Option<pg_sys::Oid>>,
    plain_indexes: BTreeMap<u32, bool>,
}

thread_local! {
    static FOUND: RefCell<Found> = RefCell::default();
    /// Whether this process is told of changes.
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// How many functions are remembered.
const MOST: usize = 1000;

/// The findings, from before or from now.
fn remembered<K: Ord + Copy, V: Copy>(
    of: fn(&mut Found) -> &mut BTreeMap<K, V>,
    key: K,
    find: impl FnOnce() -> V,
) -> V {
    if let Some(found) = FOUND.with_borrow_mut(|all| of(all).get(&key).copied()) {
        return found;
    }
    if !IS_WATCHED.replace(true) {
        use pg_sys::SysCacheIdentifier::{INDEXRELID, NAMESPACEOID, PROCOID};
        for cache in [PROCOID, NAMESPACEOID, INDEXRELID] {
            // SAFETY: a function that forgets, which may be called at any time.
            unsafe { pg_sys::CacheRegisterSyscacheCallback(cache as _, Some(forget), pg_sys::Datum::from(0)) };
        }
    }
    let value = find();
    FOUND.with_borrow_mut(|all| {
        let all = of(all);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(key, value);
    });
    value
}

/// Whether an index of the catalog has columns alone, and no expressions: `look` finds that out.
pub fn is_plain(index: pg_sys::Oid, look: impl FnOnce(pg_sys::Oid) -> bool) -> bool {
    remembered(|all| &mut all.plain_indexes, index.to_u32(), || look(index))
}

/// Called where a function, a schema or an index has changed, or may have.
#[pg_guard]
extern "C-unwind" fn forget(_argument: pg_sys::Datum, _cache: CacheNumber, _hash: u32) {
    // A look-up, which may be what has brought the news, borrows nothing meanwhile.
    FOUND.take();
}

fn find_accessor(function: pg_sys::Oid) -> Option<Accessor> {
    remembered(|all| &mut all.accessors, function.to_u32(), || look_up_accessor(function))
}

fn look_up_accessor(function: pg_sys::Oid) -> Option<Accessor> {
    let symbol = symbol(function)?;
    let name = symbol.strip_prefix("snowflake_")?;
    let takes_layout = name.ends_with("_in");
    let name = name.strip_suffix("_in").unwrap_or(name);
    let field = Field::ALL.into_iter().find(|field| field.name() == name)?;
    Some(Accessor { field, takes_layout })
}

/// The function that is a bound for the times of an accessor.
fn find_bound(time: &IdTime<'_>, bound: Bound, time_type: pg_sys::Oid) -> Option<pg_sys::Oid> {
    let find = || look_up_bound(time, bound, time_type);
    remembered(|all| &mut all.bounds, (time.function.to_u32(), bound, time_type.to_u32()), find)
}

fn look_up_bound(time: &IdTime<'_>, bound: Bound, time_type: pg_sys::Oid) -> Option<pg_sys::Oid> {
    // Those of the schema `_snowflake` are for `timestamp` and `date`, too.
    let (is_internal, name) = match (bound, time_type) {
        (Bound::From, _) => (true, c"min_id"),
        (Bound::Before, pg_sys::TIMESTAMPTZOID) => (false, c"snowflake_max_id_before"),
        (Bound::At, pg_sys::TIMESTAMPTZOID) => (false, c"snowflake_max_id"),
        (Bound::Before, _) => (true, c"max_id_before"),
        (Bound::At, _) => (true, c"max_id"),
    };
    let schema = match is_internal {
        true => internal_schema(),
        false => catalog::schema_of_function(time.function),
    };
    let types = [time_type, pg_sys::TEXTOID];
    let count = if time.named.is_some() { 2 } else { 1 };
    find(schema, name, &types[..count])
        .filter(|&function| symbol(function).is_some_and(|it| it.starts_with("snowflake_m")))
}

/// The layout that a constant names.
fn named_layout(name: Expr<'_>) -> Option<Layout> {
    name.text()?.parse().ok()
}

/// A function by its name in a schema.
fn find(schema: pg_sys::Oid, name: &CStr, types: &[pg_sys::Oid]) -> Option<pg_sys::Oid> {
    // SAFETY: a look-up in the catalog, by a name, a vector of so many types, and a schema.
    let found = unsafe {
        pg_sys::GetSysCacheOid(
            pg_sys::SysCacheIdentifier::PROCNAMEARGSNSP as _,
            pg_sys::Anum_pg_proc_oid as _,
            pg_sys::Datum::from(name.as_ptr()),
            pg_sys::Datum::from(pg_sys::buildoidvector(types.as_ptr(), types.len() as i32)),
            pg_sys::Datum::from(schema),
            pg_sys::Datum::from(0),
        )
    };
    (found != pg_sys::InvalidOid).then_some(found)
}

/// Whether a user may call a function. Where not, the call must stay as it is, and fail.
fn may_call(function: pg_sys::Oid, user: pg_sys::Oid) -> bool {
    let mode = pg_sys::ACL_EXECUTE as pg_sys::AclMode;
    // SAFETY: a look-up in the catalog, by OIDs.
    let result = unsafe {
        #[cfg(not(since_pg16))]
        let result = pg_sys::pg_proc_aclcheck(function, user, mode);
        #[cfg(since_pg16)]
        let result = pg_sys::object_aclcheck(pg_sys::ProcedureRelationId, function, user, mode);
        result
    };
    result == pg_sys::AclResult::ACLCHECK_OK
}
