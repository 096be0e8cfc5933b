//! What is made of the time of an ID, and compared: `date_trunc('day', created_at) = $1`. Which IDs such a condition may accept, the core says
//! ([`inverse`]); that is never fewer, and may be more, so the condition is evaluated, too.
//!
//! Where all that this depends on is known when the query is planned, the bounds are constants. Where not, they are calls of
//! `_snowflake.earliest()` and `_snowflake.latest()`, which are STABLE: they depend on the session's time zone.

use super::bounds;
use super::functions::{self, IdTime};
use super::nodes::{At, Expr, List};
use super::operators::{self, Accepts};
use super::state::Planner;
use crate::postgres::value::KnownZones;
use pg_sys::Oid;
use pgrx::prelude::*;
use snowflake_core::inverse::{Comparison, Kind, Span, Step, Value, Way};

/// A step, and which argument of the call is its own.
type Part = (Step, Option<usize>);

/// A function or an operator, which of its arguments is the time, and the steps that it is, the last one first.
type Invertible = (u32, usize, &'static [Part]);

/// Functions, by their OIDs in `pg_proc.dat`: which of their arguments is the time, and the steps that they are, the last one first. Those of
/// `extract()` depend on the field.
const FUNCTIONS: [Invertible; 24] = [
    // date_trunc(text, timestamptz), the same with a zone, and date_trunc(text, timestamp)
    (1217, 1, &[(Step::Instant, None), (Step::Trunc, Some(0)), (Step::Local, None)]),
    (1284, 1, &[(Step::InstantIn, Some(2)), (Step::Trunc, Some(0)), (Step::LocalIn, Some(2))]),
    (2020, 1, &[(Step::Trunc, Some(0))]),
    // date_bin(interval, timestamptz, timestamptz), and that of timestamp
    (6178, 1, &[(Step::Bin, Some(0))]),
    (6177, 1, &[(Step::Bin, Some(0))]),
    // date(timestamptz), date(timestamp), timestamp(timestamptz), timestamptz(timestamp), timestamp(date), timestamptz(date)
    (1178, 0, &[(Step::Date, None), (Step::Local, None)]),
    (2029, 0, &[(Step::Date, None)]),
    (2027, 0, &[(Step::Local, None)]),
    (2028, 0, &[(Step::Instant, None)]),
    (2024, 0, &[(Step::Midnight, None)]),
    (1174, 0, &[(Step::Instant, None), (Step::Midnight, None)]),
    // timezone(text, timestamptz), timezone(interval, timestamptz), and those of timestamp
    (1159, 1, &[(Step::LocalIn, Some(0))]),
    (1026, 1, &[(Step::LocalIn, Some(0))]),
    (2069, 1, &[(Step::InstantIn, Some(0))]),
    (2070, 1, &[(Step::InstantIn, Some(0))]),
    // timestamptz(timestamptz, integer), timestamp(timestamp, integer): with so many decimals
    (1967, 0, &[(Step::Round, None)]),
    (1961, 0, &[(Step::Round, None)]),
    // extract(text, timestamptz), extract(text, timestamp), extract(text, date), extract(text, interval), and date_part()
    (6203, 1, &[]),
    (6202, 1, &[]),
    (6199, 1, &[]),
    (6204, 1, &[]),
    (1171, 1, &[]),
    (2021, 1, &[]),
    (1172, 1, &[]),
];

/// Operators, by their OIDs in `pg_operator.dat`, as the functions. An operator may have the time on either side.
const OPERATORS: [Invertible; 14] = [
    // timestamptz + interval, timestamptz - interval, and those of timestamp, and of date
    (1327, 0, &[(Step::Plus, Some(1))]),
    (1329, 0, &[(Step::Minus, Some(1))]),
    (2066, 0, &[(Step::Plus, Some(1))]),
    (2068, 0, &[(Step::Minus, Some(1))]),
    (1076, 0, &[(Step::Plus, Some(1)), (Step::Midnight, None)]),
    (1077, 0, &[(Step::Minus, Some(1)), (Step::Midnight, None)]),
    // timestamptz - timestamptz, timestamp - timestamp, date - date
    (1328, 0, &[(Step::Since, Some(1))]),
    (1328, 1, &[(Step::Until, Some(0))]),
    (2067, 0, &[(Step::Since, Some(1))]),
    (2067, 1, &[(Step::Until, Some(0))]),
    (1099, 0, &[(Step::Since, Some(1))]),
    (1099, 1, &[(Step::Until, Some(0))]),
    // date + integer, date - integer
    (1100, 0, &[(Step::PlusDays, Some(1))]),
    (1101, 0, &[(Step::MinusDays, Some(1))]),
];

/// Functions that make a range of two values, by their OIDs in `pg_proc.dat`: those of `timestamptz`, `timestamp` and `date`.
const RANGES: [u32; 6] = [3937, 3938, 3933, 3934, 3941, 3942];

/// What is made of a time.
#[derive(Clone)]
pub struct Derived<'p> {
    /// The expression.
    pub expression: Expr<'p>,
    /// The time.
    pub time: Expr<'p>,
    steps: Vec<Step>,
    arguments: Vec<Expr<'p>>,
    may_be_null: bool,
}

/// The arguments of a call or an operation that may be a step, its OID, and where that is looked up.
fn call(node: Expr<'_>) -> Option<(u32, List<'_, pg_sys::Node>, &'static [Invertible])> {
    if let Some(call) = node.cast::<pg_sys::FuncExpr>() {
        return Some((call.funcid().to_u32(), call.args(), &FUNCTIONS));
    }
    node.cast::<pg_sys::OpExpr>().map(|operation| (operation.opno().to_u32(), operation.args(), &OPERATORS[..]))
}

/// What an expression may be made of: the first thing that is no step. Calls nothing of PostgreSQL: this runs for what each query compares.
pub fn origin(node: Expr<'_>) -> Expr<'_> {
    let mut node = node.without_labels();
    loop {
        let Some((of, arguments, table)) = call(node) else { return node };
        let mut found = table.iter().filter(|(oid, ..)| *oid == of).filter_map(|&(_, at, _)| arguments.get(at));
        let Some(first) = found.next() else { return node };
        let is_constant =
            |one: Expr<'_>| one.cast::<pg_sys::Const>().is_some() || one.cast::<pg_sys::Param>().is_some();
        let other = found.next().filter(|_| is_constant(first) || !may_be_time(first));
        node = other.unwrap_or(first).without_labels();
    }
}

/// Whether it may be made of the time of an ID, as far as can be told at once.
fn may_be_time(node: Expr<'_>) -> bool {
    let origin = origin(node);
    functions::may_be_ours(origin) || origin.cast::<pg_sys::Var>().is_some()
}

impl<'p> Derived<'p> {
    /// Reads an expression that is made of a time; `None` where it is something else, or the time itself. `is_time` says what is one.
    pub fn read(planner: Planner<'p>, expression: Expr<'p>, is_time: &dyn Fn(Expr<'p>) -> bool) -> Option<Self> {
        Self::read_any(planner, expression, is_time).filter(|derived| !derived.is_itself())
    }

    /// The same, and a time itself.
    pub fn read_any(planner: Planner<'p>, expression: Expr<'p>, is_time: &dyn Fn(Expr<'p>) -> bool) -> Option<Self> {
        let expression = expression.without_labels();
        let (mut steps, mut arguments, mut node, mut may_be_null) = (Vec::new(), Vec::new(), expression, false);
        let is_known = |one: Expr<'p>| one.cast::<pg_sys::Const>().is_some_and(|constant| !constant.constisnull());
        while !is_time(node) {
            let (of, own, table) = call(node)?;
            let ours = |&&(oid, at, _): &&Invertible| oid == of && own.get(at).is_some_and(|one| is_time(origin(one)));
            let &(_, at, parts) = table.iter().find(ours)?;
            let of_field;
            let parts = match parts {
                [] => {
                    of_field = field(of, own.get(0)?)?;
                    &of_field[..]
                }
                parts => parts,
            };
            for &(step, argument) in parts {
                steps.push(step);
                if let Some(argument) = argument.and_then(|at| own.get(at)) {
                    if !planner.tables_of(argument).is_empty() || argument.is_volatile() || argument.has_subplan() {
                        return None;
                    }
                    arguments.push(argument);
                }
            }
            // All are strict, also in arguments that no step has, such as the origin of date_bin().
            may_be_null |= own.iter().enumerate().any(|(place, one)| place != at && !is_known(one));
            node = own.get(at)?.without_labels();
        }
        Some(Self { expression, time: node, steps, arguments, may_be_null })
    }

    /// Whether it is the time itself.
    pub const fn is_itself(&self) -> bool {
        self.steps.is_empty()
    }

    /// The ID whose time it is made of.
    pub fn id(&self) -> Option<Expr<'p>> {
        self.time.cast::<pg_sys::FuncExpr>().and_then(|call| call.args().get(0)).map(Expr::without_labels)
    }

    /// Whether it may be infinite: an interval may be, from 17 on.
    pub fn may_be_infinite(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Plus | Step::Minus))
    }

    /// Whether it falls as the time rises.
    pub fn is_falling(&self) -> bool {
        self.steps.iter().filter(|step| step.is_falling()).count() % 2 == 1
    }

    /// Whether it may be NULL where the time is not.
    pub const fn may_be_null(&self) -> bool {
        self.may_be_null
    }

    /// The values of the arguments; `None` where one is not known.
    fn known_arguments(&self) -> Option<Vec<Value>> {
        let value = |&argument: &Expr<'p>| Some(argument.values()?.pop().unwrap_or(Value::Null));
        self.arguments.iter().map(value).collect()
    }

    /// For estimates: whether one value, or an element of an array, may be made of times of several days. See [`Way::joins_days`].
    pub fn joins_days(&self, planner: Planner<'p>, other: Expr<'p>) -> bool {
        let is_joined = |all: Vec<Value>| {
            let values = || planner.estimated(other).values();
            all.iter().any(Value::has_months)
                && values().is_some_and(|values| self.way(Accepts::Equal).joins_days(&values, &all, &KnownZones))
        };
        let may_add_months = self.steps.iter().any(|step| matches!(step, Step::Plus | Step::Minus));
        may_add_months && self.about_arguments(planner).is_some_and(is_joined)
    }

    fn way(&self, accepts: Accepts) -> Way {
        let comparison = match accepts {
            Accepts::Less => Comparison::Less,
            Accepts::LessOrEqual => Comparison::LessOrEqual,
            Accepts::Equal => Comparison::Equal,
            Accepts::GreaterOrEqual => Comparison::GreaterOrEqual,
            Accepts::Greater => Comparison::Greater,
        };
        Way { steps: self.steps.clone(), comparison }
    }

    /// Whether it depends on the session's time zone which times are accepted.
    fn depends_on_zone(&self, way: &Way, other: Oid) -> bool {
        let of_steps = || {
            let (mut arguments, mut kind) = (self.arguments.iter().rev(), Kind::Instant);
            self.steps.iter().rev().any(|&step| {
                let argument = if step.takes_argument() { arguments.next() } else { None };
                let of = kind;
                kind = step.makes(kind).unwrap_or(kind);
                match step {
                    Step::Local | Step::Instant => true,
                    Step::Plus | Step::Minus if of == Kind::Instant => {
                        let values = argument.and_then(|argument| argument.values());
                        !matches!(values.as_deref(), Some([Value::Interval { months: 0, days: 0, .. }]))
                    }
                    Step::Since | Step::Until => {
                        let of_other = argument.map(|argument| argument.type_of());
                        of_other.is_some_and(|other| is_instant(other) != (of == Kind::Instant))
                    }
                    _ => false,
                }
            })
        };
        let kind = way.kind();
        let is_of_time = matches!(kind, Some(Kind::Instant | Kind::Local | Kind::Date));
        is_of_time && is_instant(other) != (kind == Some(Kind::Instant)) || of_steps()
    }

    /// Conditions on the ID that follow from a comparison with what is made of its time, to be combined by AND; `None` where there are none.
    pub fn bounds(
        &self,
        planner: Planner<'p>,
        accepts: Accepts,
        time: &IdTime<'p>,
        other: Expr<'p>,
    ) -> Option<Vec<Expr<'p>>> {
        let way = self.way(accepts);
        way.kind()?;
        if other.is_volatile() || other.has_subplan() || planner.tables_of(other).overlaps(planner.tables_of(time.id)) {
            return None;
        }
        let (low, high) = way.bounds();
        let mut all = Vec::new();
        for (accepts, is_wanted) in [(Accepts::GreaterOrEqual, low), (Accepts::LessOrEqual, high)] {
            if !is_wanted {
                continue;
            }
            let Some(bound) = self.bound_by(planner, &way, other, accepts == Accepts::GreaterOrEqual) else { continue };
            let time = time.of(time.id.copy());
            all.extend(bounds::of_comparison(planner, accepts, &time, bound, pg_sys::TIMESTAMPTZOID)?);
        }
        (!all.is_empty()).then(|| bounds::without_implied(&all, &all))
    }

    /// The earliest or the latest time that a comparison with something accepts; `None` where there is no bound.
    pub fn bound(
        &self,
        planner: Planner<'p>,
        accepts: Accepts,
        other: Expr<'p>,
        is_earliest: bool,
    ) -> Option<Expr<'p>> {
        self.bound_by(planner, &self.way(accepts), other, is_earliest)
    }

    fn bound_by(&self, planner: Planner<'p>, way: &Way, other: Expr<'p>, is_earliest: bool) -> Option<Expr<'p>> {
        let is_known = !self.depends_on_zone(way, other.type_of());
        match if is_known { self.span(way, other) } else { None } {
            Some(span) => Some(planner.time(if is_earliest { span.from? } else { span.until? })),
            None => {
                let name = planner.text(&way.text());
                let all = [name, other].into_iter().chain(self.arguments.iter().copied()).map(Expr::copy);
                functions::call_of_times(is_earliest, all.collect())
            }
        }
    }

    /// The times that are accepted, where all is known.
    fn span(&self, way: &Way, other: Expr<'p>) -> Option<Span> {
        let values = other.values()?;
        // Nothing is, where all are NULL.
        values.iter().any(|value| *value != Value::Null).then_some(())?;
        Some(way.span(&values, &self.known_arguments()?, &KnownZones))
    }

    /// For estimates: the values of the arguments, as they are now; `None` where one is not known.
    pub fn about_arguments(&self, planner: Planner<'p>) -> Option<Vec<Value>> {
        let value = |&argument: &Expr<'p>| Some(planner.estimated(argument).values()?.pop().unwrap_or(Value::Null));
        self.arguments.iter().map(value).collect()
    }

    /// For estimates: what is made of an instant, about.
    pub fn about(&self, instant: i64, arguments: &[Value]) -> Option<i64> {
        self.way(Accepts::Equal).about(instant, arguments, &KnownZones)
    }

    /// For estimates: how long it stays the same, in microseconds.
    pub fn grain(&self, arguments: &[Value]) -> i64 {
        self.way(Accepts::Equal).grain(arguments)
    }
}

fn is_instant(of_type: Oid) -> bool {
    matches!(of_type, pg_sys::TIMESTAMPTZOID | pg_sys::TIMESTAMPTZARRAYOID | pg_sys::TSTZRANGEOID)
}

/// The steps that a function is which returns a field, by that.
fn field(function: u32, field: Expr<'_>) -> Option<Vec<Part>> {
    let step = match field.text()?.to_ascii_lowercase().as_str() {
        "epoch" => Step::Epoch,
        "year" => Step::Year,
        "isoyear" => Step::IsoYear,
        _ => return None,
    };
    let before = match (function, step) {
        (6203 | 1171, Step::Year | Step::IsoYear) => Some(Step::Local),
        (6199, _) => Some(Step::Midnight),
        _ => None,
    };
    Some([step].into_iter().chain(before).map(|step| (step, None)).collect())
}

/// A comparison that may be one of what is made of a time, with this on its left side: how it compares, and both sides.
pub fn comparisons<'p>(condition: Expr<'p>) -> impl Iterator<Item = (Accepts, Expr<'p>, Expr<'p>)> {
    let found = condition.cast::<pg_sys::OpExpr>().and_then(|operation| {
        let accepts = operators::compares(operation.opno().to_u32())?;
        let mut sides = operation.args().iter();
        let (left, right) = (sides.next()?, sides.next()?);
        Some([(accepts, left, right), (accepts.commuted(), right, left)])
    });
    found.into_iter().flatten()
}

/// Whether a condition may compare what is made of a time. Calls nothing of PostgreSQL.
pub fn is_candidate(condition: At<'_, pg_sys::OpExpr>) -> bool {
    operators::compares(condition.opno().to_u32()).is_some()
        && condition.args().iter().any(|side| functions::may_be_ours(origin(side)))
}

/// The family of operators that a column of an index would have which is of this type, as one on IDs has this family; `None` where there is none.
pub const fn family(of_type: Oid, like: u32) -> Option<u32> {
    // Of btree, and of BRIN's minmax and minmax-multi.
    let (btree, minmax, multi) = match of_type {
        pg_sys::TIMESTAMPTZOID | pg_sys::TIMESTAMPOID | pg_sys::DATEOID => (operators::DATETIME_OPS, 4059, 4605),
        pg_sys::NUMERICOID => (1988, 4055, 4603),
        pg_sys::FLOAT8OID => (1970, 4070, 4608),
        pg_sys::INTERVALOID => (1982, 4078, 4613),
        pg_sys::INT4OID => (operators::INTEGER_OPS, 4054, 4602),
        _ => return None,
    };
    match like {
        operators::INTEGER_OPS => Some(btree),
        4054 => Some(minmax),
        4602 => Some(multi),
        _ => None,
    }
}

/// Passes on the operands of a condition that may be rewritten here. Calls nothing of PostgreSQL.
pub fn operands<'p>(node: Expr<'p>, found: &mut dyn FnMut(Expr<'p>)) {
    if let Some(operation) = node.cast::<pg_sys::OpExpr>() {
        let operator = operation.opno().to_u32();
        if let Some((_, at, _)) = operators::CONTAIN.iter().find(|(own, ..)| *own == operator) {
            operation.args().get(*at).into_iter().for_each(found);
        } else if operators::OVERLAP.iter().any(|(own, _)| *own == operator) {
            operation.args().iter().filter_map(made_of).flat_map(|made| made.iter().take(2)).for_each(found);
        }
    } else if let Some(test) = node.cast::<pg_sys::BooleanTest>()
        && let Some(operation) = test.arg().cast::<pg_sys::OpExpr>()
    {
        operation.args().iter().for_each(found);
    }
}

/// What a range is made of.
pub fn made_of(range: Expr<'_>) -> Option<List<'_, pg_sys::Node>> {
    range.cast::<pg_sys::FuncExpr>().filter(|call| RANGES.contains(&call.funcid().to_u32())).map(|call| call.args())
}
