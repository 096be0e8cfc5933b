//! The way back from an OR to a list: an OR of comparisons of one time with constants, as is made of [`created_at IN (…)`](super::lists), also within
//! other conditions. A list of many is looked up by its hash.
//!
//! The OR is there for the indexes. For each row, the list is evaluated, so the condition has the cost of the list. If each alternative were counted,
//! a small table would seem cheaper to read once for each of them than as a whole.

use super::nodes::{Expr, list, made};
use super::operators;
use super::remembered::{Remembered, RememberedBy, remember, remembered};
use super::state::{Planner, Rel};
use crate::postgres::value;
use pg_sys::{BoolExpr, BoolExprType, Oid, ScalarArrayOpExpr};
use pgrx::pg_sys::{self, NodeTag};
use std::cell::{Cell, RefCell};

/// PostgreSQL's `MIN_ARRAY_SIZE_FOR_HASHED_SAOP`.
const LEAST_HASHED: usize = 9;

/// Comparisons of one time with constants.
struct Gathered<'p> {
    operator: Oid,
    time: Expr<'p>,
    /// The type of the constants.
    of_type: Oid,
    constants: Vec<pg_sys::Datum>,
}

impl<'p> Gathered<'p> {
    /// Reads one comparison; `None` where a condition is something else.
    fn read(condition: Expr<'p>) -> Option<Self> {
        let comparison = condition.cast::<pg_sys::OpExpr>()?;
        let (operator, mut sides) = (comparison.opno(), comparison.args().iter());
        let (time, constant) = (sides.next()?, sides.next()?.cast::<pg_sys::Const>()?);
        let is_one = operators::is_equality(operator) && !constant.constisnull();
        is_one.then(|| Self { operator, time, of_type: constant.consttype(), constants: vec![constant.constvalue()] })
    }

    /// Takes another one, where it compares the same time in the same way, and may as well be evaluated with it.
    fn takes(&mut self, other: &Self) -> bool {
        let is_same = self.operator == other.operator && self.of_type == other.of_type && self.time.says(other.time);
        let takes = is_same && (self.constants.len() > 1 || !self.time.is_volatile());
        if takes {
            self.constants.extend(&other.constants);
        }
        takes
    }

    fn list(self) -> Expr<'p> {
        let (none, array) = (pg_sys::InvalidOid, value::array_of(self.of_type, self.constants));
        // SAFETY: these make new nodes, and set fields of them. The array is of the type, and the operator, by which the time is compared already, takes
        // its elements.
        unsafe {
            let array_type = pg_sys::get_array_type(self.of_type);
            let array = pg_sys::makeConst(array_type, -1, none, -1, array, false, false);
            let new = pgrx::PgBox::<ScalarArrayOpExpr>::alloc_node(NodeTag::T_ScalarArrayOpExpr).into_pg();
            (*new).opno = self.operator;
            (*new).opfuncid = pg_sys::get_opcode(self.operator);
            (*new).useOr = true;
            (*new).args = list(&[self.time.copy(), made(array)]).as_ptr();
            (*new).location = -1;
            pg_sys::convert_saop_to_hashed_saop(new.cast());
            made(new)
        }
    }
}

/// The list that a whole condition is. `None` where it is none, or one with something beside it.
pub fn whole(condition: Expr<'_>) -> Option<Expr<'_>> {
    read_whole(condition).map(Gathered::list)
}

/// Whether a whole condition is a list.
pub fn is_whole(condition: Expr<'_>) -> bool {
    read_whole(condition).is_some()
}

fn read_whole(condition: Expr<'_>) -> Option<Gathered<'_>> {
    let alternatives = condition.cast::<BoolExpr>().filter(|it| it.boolop() == BoolExprType::OR_EXPR)?.args();
    let mut alternatives = alternatives.iter();
    let mut all = Gathered::read(alternatives.next()?)?;
    for alternative in alternatives {
        if !all.takes(&Gathered::read(alternative)?) {
            return None;
        }
    }
    Some(all)
}

/// A condition with the lists that are in it.
#[derive(Clone, Copy)]
pub struct WithLists<'p> {
    pub condition: Expr<'p>,
    /// Whether a list of it is looked up by its hash.
    pub is_hashed: bool,
}

impl<'p> WithLists<'p> {
    /// Of a condition; `None` where there is no list in it. Everything else stays where it is.
    pub fn of(condition: Expr<'p>) -> Option<Self> {
        let combination = condition.cast::<BoolExpr>()?;
        let is_or = combination.boolop() == BoolExprType::OR_EXPR;
        let (mut parts, mut is_changed, mut is_hashed) = (Vec::<(Expr, Option<Gathered>)>::new(), false, false);
        for part in combination.args().iter() {
            let one = is_or.then(|| Gathered::read(part)).flatten();
            if let Some(one) = &one
                && let Some((_, Some(before))) = parts.last_mut()
                && before.takes(one)
            {
                is_changed = true;
                is_hashed |= before.constants.len() >= LEAST_HASHED;
                continue;
            }
            let within = Self::of(part);
            is_changed |= within.is_some();
            is_hashed |= within.is_some_and(|within| within.is_hashed);
            parts.push((within.map_or(part, |within| within.condition), one));
        }
        if !is_changed {
            return None;
        }
        let is_list = |some: &Gathered| some.constants.len() > 1;
        let list_of = |(part, some): (_, Option<Gathered<'p>>)| some.filter(is_list).map_or(part, Gathered::list);
        let parts: Vec<Expr> = parts.into_iter().map(list_of).collect();
        let condition = match parts.as_slice() {
            [only] if is_or => *only,
            _ => {
                let new = combination.duplicate();
                new.set_args(list(&parts));
                new.node()
            }
        };
        Some(Self { condition, is_hashed })
    }
}

thread_local! {
    /// How many tables are noted, of all queries that are being planned. Mostly there is none, and PostgreSQL asks for statistics often.
    static NOTED: Cell<usize> = const { Cell::new(0) };
}

/// Tables of a query whose conditions may have ORs, and are to be priced when the planner has all of them.
#[derive(Default)]
struct Unpriced<'p>(RefCell<Vec<Rel<'p>>>);

impl<'p> Unpriced<'p> {
    fn note(&self, table: Rel<'p>) {
        self.0.borrow_mut().push(table);
        NOTED.set(NOTED.get() + 1);
    }

    fn take(&self) -> Vec<Rel<'p>> {
        let all = self.0.take();
        // Where the process ends, all is gone already.
        let _ = NOTED.try_with(|noted| noted.set(noted.get() - all.len()));
        all
    }
}

impl Drop for Unpriced<'_> {
    fn drop(&mut self) {
        self.take();
    }
}

/// Those, as they are remembered.
enum AllUnpriced {}

// SAFETY: the same type for each lifetime, which is that of what it has of the planner's.
unsafe impl Remembered for AllUnpriced {
    type Of<'p> = Unpriced<'p>;
}

/// Sees to it that a table's conditions are [priced](price). The planner makes them later.
pub fn expect<'p>(planner: Planner<'p>, table: Rel<'p>) {
    let by = RememberedBy::query(planner);
    if let Some(all) = remembered::<AllUnpriced>(planner, by, |_| true) {
        all.note(table);
    } else {
        let all = Unpriced::default();
        all.note(table);
        remember::<AllUnpriced>(planner, by, all);
    }
}

/// Has the conditions of these tables cost what they do as lists. Called when the planner first asks for the statistics of something that is
/// compared: it does so before it adds up what the conditions cost.
pub fn price(planner: Planner<'_>) {
    if NOTED.get() == 0 {
        return;
    }
    let Some(all) = remembered::<AllUnpriced>(planner, RememberedBy::query(planner), |_| true) else { return };
    for table in all.take() {
        for condition in table.conditions().iter() {
            if let Some(evaluated) = WithLists::of(condition.clause()) {
                planner.price(condition, evaluated.condition);
            }
        }
    }
}
