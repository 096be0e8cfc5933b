//! What a condition says of a time, where it compares something that is made of the time: `date_trunc('day', time) = $1`.
//!
//! Each [`Step`] from the time to what is compared is undone, the last one first: from the values that are accepted after it follows which values
//! before it may be. These are all that are accepted, and perhaps a few more: a day that a zone has twice, the last days of a longer month. So
//! the condition itself must be evaluated, too. What there is no bound for has none: an infinite value, a unit that is unknown.
//!
//! Times are microseconds since 2000-01-01, as PostgreSQL has them; dates are days since then; numbers are in millionths.

use crate::calendar::{self, DAY, HOUR, SECOND, Unit, first_day, month_of};
use std::str::FromStr;

/// How far from UTC a zone can be, at most, whose offsets [`Zones`] does not know: an abbreviation.
const FARTHEST: i64 = 16 * HOUR;
/// How far around a local time its offset may be one that counts: farther than two offsets can be apart.
const AROUND: i64 = 3 * DAY;
/// 2000-01-01 in microseconds since 1970.
const SINCE_1970: i64 = 946_684_800 * SECOND;
/// The first and the last time that PostgreSQL has.
const FIRST: i64 = -211_813_488_000_000_000;
const LAST: i64 = 9_223_371_331_199_999_999;
/// An interval of more is left alone: what it is added to could overflow.
const LONGEST: i64 = 100_000 * 366 * DAY;

/// How a value is compared with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `=`
    Equal,
    /// `>=`
    GreaterOrEqual,
    /// `>`
    Greater,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `timestamptz`
    Instant,
    /// `timestamp`
    Local,
    /// `date`
    Date,
    /// A number of days.
    Days,
    /// A number, in millionths.
    Number,
    /// `interval`, where a day has 24 hours.
    Length,
}

/// One function on the way from a time to what is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An instant as a time in the session's zone.
    Local,
    /// The same in a zone that is an argument: its name, or an interval.
    LocalIn,
    /// A local time as an instant.
    Instant,
    /// The same in a zone that is an argument.
    InstantIn,
    /// The date of a local time.
    Date,
    /// The local time at which a date begins.
    Midnight,
    /// The beginning of the unit that is an argument.
    Trunc,
    /// The beginning of a length that is an argument.
    Bin,
    /// Rounded to decimals of a second.
    Round,
    /// With an interval added; of an instant, in the session's zone.
    Plus,
    /// With an interval taken.
    Minus,
    /// With a number of days added.
    PlusDays,
    /// With a number of days taken.
    MinusDays,
    /// How long it is until another time, or date.
    Until,
    /// How long it is since another one.
    Since,
    /// Seconds since 1970, or of a length.
    Epoch,
    /// The year.
    Year,
    /// The year of ISO 8601, which has whole weeks.
    IsoYear,
}

impl Step {
    const NAMES: [(&'static str, Self); 18] = [
        ("local", Self::Local),
        ("local_in", Self::LocalIn),
        ("instant", Self::Instant),
        ("instant_in", Self::InstantIn),
        ("date", Self::Date),
        ("midnight", Self::Midnight),
        ("trunc", Self::Trunc),
        ("bin", Self::Bin),
        ("round", Self::Round),
        ("plus", Self::Plus),
        ("minus", Self::Minus),
        ("plus_days", Self::PlusDays),
        ("minus_days", Self::MinusDays),
        ("until", Self::Until),
        ("since", Self::Since),
        ("epoch", Self::Epoch),
        ("year", Self::Year),
        ("isoyear", Self::IsoYear),
    ];

    /// Its name in a [`Way`].
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, step)| *step == self).map_or("", |(name, _)| name)
    }

    /// Whether it takes an argument.
    pub const fn takes_argument(self) -> bool {
        matches!(
            self,
            Self::LocalIn
                | Self::InstantIn
                | Self::Trunc
                | Self::Bin
                | Self::Plus
                | Self::Minus
                | Self::PlusDays
                | Self::MinusDays
                | Self::Until
                | Self::Since
        )
    }

    /// Whether a higher time makes a lower value.
    pub const fn is_falling(self) -> bool {
        matches!(self, Self::Until)
    }

    /// What it makes of a value; `None` where it takes no such value.
    pub const fn makes(self, of: Kind) -> Option<Kind> {
        Some(match (self, of) {
            (Self::Local | Self::LocalIn, Kind::Instant) | (Self::Midnight, Kind::Date) => Kind::Local,
            (Self::Instant | Self::InstantIn, Kind::Local) => Kind::Instant,
            (Self::Date, Kind::Local) | (Self::PlusDays | Self::MinusDays, Kind::Date) => Kind::Date,
            (Self::Bin | Self::Round | Self::Plus | Self::Minus, Kind::Instant | Kind::Local)
            | (Self::Trunc, Kind::Local) => of,
            (Self::Until | Self::Since, Kind::Instant | Kind::Local) => Kind::Length,
            (Self::Until | Self::Since, Kind::Date) => Kind::Days,
            (Self::Epoch, Kind::Instant | Kind::Local | Kind::Length) | (Self::Year | Self::IsoYear, Kind::Local) => {
                Kind::Number
            }
            _ => return None,
        })
    }
}

impl FromStr for Step {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::NAMES.iter().find(|(own, _)| *own == name).map(|&(_, step)| step).ok_or(())
    }
}

/// A value of an argument, or of what is compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `timestamptz`, `timestamp`, `date` or a number of days. Infinite ones are the lowest and the highest.
    Of(Kind, i64),
    /// A number, in millionths: the one at or below it, and the one at or above.
    Number(i64, i64),
    /// From a lowest to a highest one of a kind, as a range has them.
    Between(Kind, Option<i64>, Option<i64>),
    /// `interval`
    Interval {
        /// Its months.
        months: i32,
        /// Its days.
        days: i32,
        /// Its microseconds.
        micros: i64,
    },
    /// `text`
    Text(String),
    /// NULL: nothing compares with it.
    Null,
    /// What there is no bound for, such as an infinite number.
    Unknown,
}

/// A bound of a range: its value, where it is not infinite, and whether that is within.
pub type Bound = (Option<(Kind, i64)>, bool);

impl Value {
    /// Whether it is an interval with months, whose length depends on what they are added to.
    pub const fn has_months(&self) -> bool {
        matches!(self, Self::Interval { months, .. } if *months != 0)
    }

    /// A range of values that are counted.
    pub fn between(low: Bound, high: Bound) -> Self {
        // A range from infinity on has nothing, and one from minus infinity on all that is finite.
        let of = |(bound, is_within): Bound, by: i64| {
            let (kind, value) = bound?;
            let value = if is_within { value } else { value.saturating_add(by) };
            let is_all = if by > 0 { value < FIRST } else { value > LAST };
            (!is_all).then_some((kind, value.clamp(FIRST, LAST)))
        };
        let Some((kind, _)) = low.0.or(high.0) else { return Self::Unknown };
        Self::Between(kind, of(low, 1).map(|(_, value)| value), of(high, -1).map(|(_, value)| value))
    }

    /// Whether it is a range whose bounds are values of their kind, where it has them: none stands for an infinite one.
    pub fn is_finite(&self) -> bool {
        let Self::Between(kind, low, high) = self else { return false };
        let unit = if *kind == Kind::Date { DAY } else { 1 };
        [low, high].into_iter().flatten().all(|value| (FIRST / unit + 1..LAST / unit).contains(value))
    }

    /// A number, by its decimal digits.
    pub fn decimal(text: &str) -> Self {
        Self::millionths(text).map_or(Self::Unknown, |(low, high)| Self::Number(low, high))
    }

    fn millionths(text: &str) -> Option<(i64, i64)> {
        let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if !whole.bytes().chain(fraction.bytes()).all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let known = fraction.len().min(6);
        let (known, rest) = fraction.split_at(known);
        let whole = whole.parse::<i64>().ok().filter(|whole| *whole <= 9_000_000_000_000)?;
        let down = whole * SECOND + format!("{known:0<6}").parse::<i64>().ok()?;
        let up = down + i64::from(rest.bytes().any(|digit| digit != b'0'));
        Some(if is_negative { (-up, -down) } else { (down, up) })
    }
}

/// A zone of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone<'a> {
    /// That of the session.
    Session,
    /// The one of this name.
    Named(&'a str),
}

/// Knows zones.
pub trait Zones {
    /// The lowest and the highest offset from UTC that a zone has between two instants, in microseconds; `None` where that is not known.
    fn offsets(&self, zone: Zone<'_>, since: i64, until: i64) -> Option<(i64, i64)>;
}

/// Values from a lowest to a highest one; `None` where there is no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The lowest.
    pub from: Option<i64>,
    /// The highest.
    pub until: Option<i64>,
}

impl Span {
    /// All of both.
    fn with(self, other: Self) -> Self {
        let both =
            |one: Option<i64>, other: Option<i64>, of: fn(i64, i64) -> i64| one.zip(other).map(|(a, b)| of(a, b));
        Self { from: both(self.from, other.from, i64::min), until: both(self.until, other.until, i64::max) }
    }

    fn moved(self, from: i64, until: i64) -> Self {
        let moved = |bound: Option<i64>, by| bound.and_then(|bound| bound.checked_add(by));
        Self { from: moved(self.from, from), until: moved(self.until, until) }
    }

    /// What may be before a step that adds so much.
    fn before(self, least: i64, most: i64) -> Self {
        self.moved(-most, -least)
    }
}

/// The way from a time to what is compared: steps, the last one first, with the comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The steps. That which is compared is made by the first of them.
    pub steps: Vec<Step>,
    /// The comparison, with what is made of the time on its left side.
    pub comparison: Comparison,
}

impl Way {
    /// As [`FromStr`] reads it: the names of the steps, and the operator.
    pub fn text(&self) -> String {
        let operator = match self.comparison {
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Equal => "=",
            Comparison::GreaterOrEqual => ">=",
            Comparison::Greater => ">",
        };
        self.steps.iter().map(|step| step.name()).chain([operator]).collect::<Vec<_>>().join(" ")
    }

    /// What is compared.
    pub fn kind(&self) -> Option<Kind> {
        self.steps.iter().rev().try_fold(Kind::Instant, |kind, step| step.makes(kind))
    }

    /// Whether what is compared falls as the time rises.
    fn is_falling(&self) -> bool {
        self.steps.iter().filter(|step| step.is_falling()).count() % 2 == 1
    }

    /// Whether it says how low, and how high the time may be.
    pub fn bounds(&self) -> (bool, bool) {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
        let low = matches!(self.comparison, Equal | Greater | GreaterOrEqual);
        let high = matches!(self.comparison, Equal | Less | LessOrEqual);
        if self.is_falling() { (high, low) } else { (low, high) }
    }

    /// Which instants may be accepted, by one of these values, where each step has its argument, in their order.
    pub fn span(&self, values: &[Value], arguments: &[Value], zones: &dyn Zones) -> Span {
        let accepted = values.iter().filter(|value| **value != Value::Null).map(|value| self.accepted(value, zones));
        let Some(accepted) = accepted.reduce(Span::with) else { return Span::default() };
        let mut arguments = arguments.iter();
        let mut kinds = vec![Kind::Instant];
        for step in self.steps.iter().rev() {
            let Some(kind) = step.makes(kinds[kinds.len() - 1]) else { return Span::default() };
            kinds.push(kind);
        }
        kinds.pop();
        let mut span = accepted;
        for step in &self.steps {
            let argument = if step.takes_argument() { arguments.next() } else { None };
            let of = kinds.pop().unwrap_or(Kind::Instant);
            span = undone(*step, of, span, argument.unwrap_or(&Value::Unknown), zones);
        }
        Span {
            from: span.from.filter(|from| *from > FIRST).map(|from| from.min(LAST)),
            until: span.until.filter(|until| *until < LAST).map(|until| until.max(FIRST)),
        }
    }

    /// What is made of an instant, about: for estimates.
    pub fn about(&self, instant: i64, arguments: &[Value], zones: &dyn Zones) -> Option<i64> {
        let mut before = arguments.len();
        let (mut kind, mut value) = (Kind::Instant, instant);
        for step in self.steps.iter().rev() {
            let argument = if step.takes_argument() {
                before = before.checked_sub(1)?;
                &arguments[before]
            } else {
                &Value::Null
            };
            let reversed = |step| {
                let span = undone(step, kind, Span { from: Some(value), until: Some(value) }, argument, zones);
                span.from.zip(span.until)
            };
            value = match (step, argument) {
                (Step::Trunc, Value::Text(unit)) => Unit::named(unit)?.floor(value),
                (Step::Date, _) => value.div_euclid(DAY),
                (Step::Midnight, _) => value.checked_mul(DAY)?,
                (Step::Year | Step::IsoYear, _) => {
                    month_of(value.div_euclid(DAY)).div_euclid(12).checked_mul(SECOND)?
                }
                (Step::Bin | Step::Round, _) => value,
                // What is undone falls as what is made does.
                (Step::Until, _) => reversed(Step::Until)?.0,
                (Step::Plus, _) => reversed(Step::Minus)?.0,
                (Step::Minus, _) => reversed(Step::Plus)?.0,
                // It adds what undoing it takes away.
                _ => {
                    let (low, high) = reversed(*step)?;
                    value.checked_mul(2)?.checked_sub(low / 2 + high / 2)?
                }
            };
            kind = step.makes(kind)?;
        }
        Some(value)
    }

    /// How long values stay the same, at least, in microseconds: for estimates.
    pub fn grain(&self, arguments: &[Value]) -> i64 {
        let mut arguments = arguments.iter();
        let of_step = |step: &Step| match (step, if step.takes_argument() { arguments.next() } else { None }) {
            (Step::Trunc, Some(Value::Text(unit))) => Unit::named(unit).map_or(1, Unit::longest),
            (Step::Bin, Some(Value::Interval { days, micros, .. })) => i64::from(*days) * DAY + *micros,
            (Step::Date, _) => DAY,
            (Step::Year | Step::IsoYear, _) => 365 * DAY,
            _ => 1,
        };
        self.steps.iter().map(of_step).max().unwrap_or(1)
    }

    /// For estimates: whether one of these values may be made of times of several days, as the last of a month is by months of different length.
    pub fn joins_days(&self, values: &[Value], arguments: &[Value], zones: &dyn Zones) -> bool {
        /// So many tell what the others will be like.
        const SAMPLE: usize = 100;
        let least = self.grain(arguments).max(DAY);
        let is_joined = |value: &Value| {
            let span = self.span(std::slice::from_ref(value), arguments, zones);
            span.from.zip(span.until).is_some_and(|(from, until)| until.saturating_sub(from) >= least)
        };
        values.iter().take(SAMPLE).any(is_joined)
    }

    /// Which values are accepted by what they are compared with.
    fn accepted(&self, value: &Value, zones: &dyn Zones) -> Span {
        let Some(kind) = self.kind() else { return Span::default() };
        // PostgreSQL compares a date or a local time with an instant by the session's zone.
        match (kind, value) {
            (Kind::Date, Value::Of(Kind::Local, _)) => {
                return undone(Step::Midnight, Kind::Date, self.accepted_as(value, zones, Kind::Local), value, zones);
            }
            (Kind::Local, Value::Of(Kind::Instant, _)) => {
                let span = self.accepted_as(value, zones, Kind::Instant);
                return undone(Step::Instant, Kind::Local, span, value, zones);
            }
            (Kind::Date, Value::Of(Kind::Instant, _)) => {
                let span = self.accepted_as(value, zones, Kind::Instant);
                let span = undone(Step::Instant, Kind::Local, span, value, zones);
                return undone(Step::Midnight, Kind::Date, span, value, zones);
            }
            _ => {}
        }
        self.accepted_as(value, zones, kind)
    }

    fn accepted_as(&self, value: &Value, zones: &dyn Zones, kind: Kind) -> Span {
        if let Value::Between(own, from, until) = *value {
            return if own == kind { Span { from, until } } else { Span::default() };
        }
        let Some((low, high)) = units(value, kind, zones) else { return Span::default() };
        match self.comparison {
            Comparison::Less => Span { from: None, until: high.checked_sub(1) },
            Comparison::LessOrEqual => Span { from: None, until: Some(high) },
            Comparison::Equal => Span { from: Some(low), until: Some(high) },
            Comparison::GreaterOrEqual => Span { from: Some(low), until: None },
            Comparison::Greater => Span { from: low.checked_add(1), until: None },
        }
    }
}

impl FromStr for Way {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut words: Vec<&str> = text.split(' ').collect();
        let comparison = match words.pop() {
            Some("<") => Comparison::Less,
            Some("<=") => Comparison::LessOrEqual,
            Some("=") => Comparison::Equal,
            Some(">=") => Comparison::GreaterOrEqual,
            Some(">") => Comparison::Greater,
            _ => return Err(()),
        };
        let steps: Result<Vec<Step>, ()> = words.into_iter().map(str::parse).collect();
        Ok(Self { steps: steps?, comparison })
    }
}

/// A value in the units of a kind: the number below it and the one above, which are the same where it is one.
fn units(value: &Value, kind: Kind, zones: &dyn Zones) -> Option<(i64, i64)> {
    match (kind, value) {
        (Kind::Number, Value::Number(low, high)) => Some((*low, *high)),
        (Kind::Days | Kind::Number, Value::Of(Kind::Days, number)) => {
            let number = if kind == Kind::Days { *number } else { number.checked_mul(SECOND)? };
            Some((number, number))
        }
        (Kind::Length, Value::Interval { months, days, micros }) => {
            let months = i128::from(*months) * 30 + i128::from(*days);
            let length = i64::try_from(months * i128::from(DAY) + i128::from(*micros)).ok()?;
            Some((length, length))
        }
        (_, Value::Of(_, i64::MIN | i64::MAX)) => None,
        (_, Value::Of(own, value)) if kind == *own => Some((*value, *value)),
        (Kind::Local | Kind::Instant, Value::Of(own @ (Kind::Date | Kind::Local), value)) => {
            let local = if *own == Kind::Date { value.checked_mul(DAY)? } else { *value };
            if kind == Kind::Local {
                return Some((local, local));
            }
            let (least, most) = offsets(Zone::Session, local, zones);
            Some((local.checked_sub(most)?, local.checked_sub(least)?))
        }
        _ => None,
    }
}

/// The lowest and the highest offset of a zone around a time.
fn offsets(zone: Zone<'_>, around: i64, zones: &dyn Zones) -> (i64, i64) {
    let known = around.checked_sub(AROUND).zip(around.checked_add(AROUND));
    let known = known.and_then(|(since, until)| zones.offsets(zone, since, until));
    known.unwrap_or((-FARTHEST, FARTHEST))
}

fn div_up(value: i64, by: i64) -> i64 {
    value.div_euclid(by) + i64::from(value.rem_euclid(by) != 0)
}

/// Which values may be before a step, where those after it are accepted.
fn undone(step: Step, of: Kind, after: Span, argument: &Value, zones: &dyn Zones) -> Span {
    let none = Span::default();
    match step {
        Step::Local => in_zone(Place::Session, after, zones, Direction::Local),
        Step::Instant => in_zone(Place::Session, after, zones, Direction::Instant),
        Step::LocalIn => Place::of(argument).map_or(none, |place| in_zone(place, after, zones, Direction::Local)),
        Step::InstantIn => Place::of(argument).map_or(none, |place| in_zone(place, after, zones, Direction::Instant)),
        Step::Date => Span {
            from: after.from.and_then(|from| from.checked_mul(DAY)),
            until: after.until.and_then(|until| until.checked_add(1)?.checked_mul(DAY)?.checked_sub(1)),
        },
        Step::Midnight => Span {
            from: after.from.map(|from| div_up(from, DAY)),
            until: after.until.map(|until| until.div_euclid(DAY)),
        },
        Step::Trunc => match argument {
            Value::Text(unit) => Unit::named(unit)
                .map_or(none, |unit| Span { from: after.from, until: after.until.and_then(|until| unit.last(until)) }),
            _ => none,
        },
        Step::Bin => match *argument {
            Value::Interval { months: 0, days, micros } => {
                let length = i64::from(days).checked_mul(DAY).and_then(|days| days.checked_add(micros));
                length.filter(|&length| length > 0).map_or(none, |length| after.before(-length, 0))
            }
            _ => none,
        },
        Step::Round => after.before(-SECOND, SECOND),
        Step::Plus => shifted(argument, 1, of, after, zones),
        Step::Minus => shifted(argument, -1, of, after, zones),
        Step::PlusDays | Step::MinusDays => match *argument {
            Value::Of(Kind::Days, days) => {
                let days = if step == Step::PlusDays { days } else { -days };
                after.before(days, days)
            }
            _ => none,
        },
        Step::Until | Step::Since => {
            let Some((low, high)) = units(argument, of, zones) else { return none };
            let plus = |bound: Option<i64>, other| bound.and_then(|bound| i64::checked_add(other, bound));
            let minus = |bound: Option<i64>, other| bound.and_then(|bound| i64::checked_sub(other, bound));
            match step {
                Step::Since => Span { from: plus(after.from, low), until: plus(after.until, high) },
                _ => Span { from: minus(after.until, low), until: minus(after.from, high) },
            }
        }
        Step::Epoch => {
            // A number in binary may be off by the last place, which is more than a microsecond centuries away.
            let of_bound = |bound: i64| 2 + (bound.unsigned_abs() >> 51) as i64;
            let slack = after.from.into_iter().chain(after.until).map(of_bound).max().unwrap_or(2);
            let since = if of == Kind::Length { 0 } else { SINCE_1970 };
            after.before(since - slack, since + slack)
        }
        Step::Year => years(after),
        // Its first day is one of the week around January 1.
        Step::IsoYear => years(after).before(-4 * DAY, 4 * DAY),
    }
}

/// Where a time is converted.
#[derive(Clone, Copy)]
enum Place<'a> {
    Session,
    Named(&'a str),
    /// At this offset.
    At(i64),
}

impl<'a> Place<'a> {
    fn of(value: &'a Value) -> Option<Self> {
        match value {
            Value::Text(name) => Some(Self::Named(name)),
            Value::Interval { months: 0, days: 0, micros } if micros.unsigned_abs() <= LONGEST.unsigned_abs() => {
                // PostgreSQL leaves out what is less than a second.
                Some(Self::At(*micros / SECOND * SECOND))
            }
            _ => None,
        }
    }

    fn offsets(self, around: i64, zones: &dyn Zones) -> (i64, i64) {
        match self {
            Self::Session => offsets(Zone::Session, around, zones),
            Self::Named(name) => offsets(Zone::Named(name), around, zones),
            Self::At(offset) => (offset, offset),
        }
    }
}

/// Which way a time is converted.
#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Local,
    Instant,
}

fn in_zone(place: Place<'_>, after: Span, zones: &dyn Zones, direction: Direction) -> Span {
    let by = |bound: i64, is_from: bool| {
        let (least, most) = place.offsets(bound, zones);
        match (direction, is_from) {
            (Direction::Local, true) => bound.checked_sub(most),
            (Direction::Local, false) => bound.checked_sub(least),
            (Direction::Instant, true) => bound.checked_add(least),
            (Direction::Instant, false) => bound.checked_add(most),
        }
    };
    Span { from: after.from.and_then(|bound| by(bound, true)), until: after.until.and_then(|bound| by(bound, false)) }
}

/// Before an interval was added, or taken.
fn shifted(interval: &Value, sign: i64, of: Kind, after: Span, zones: &dyn Zones) -> Span {
    let Value::Interval { months, days, micros } = *interval else { return Span::default() };
    let (months, days) = (i64::from(months) * sign, i64::from(days) * sign);
    let Some(micros) = micros.checked_mul(sign) else { return Span::default() };
    let is_long = |number: i64, most: i64| number.unsigned_abs() > most.unsigned_abs();
    if is_long(months, 1_200_000) || is_long(days, LONGEST / DAY) || is_long(micros, LONGEST) {
        return Span::default();
    }
    let local = |span: Span, undo: &dyn Fn(Span) -> Span| {
        if of == Kind::Local {
            return undo(span);
        }
        let span = in_zone(Place::Session, span, zones, Direction::Instant);
        in_zone(Place::Session, undo(span), zones, Direction::Local)
    };
    // The months are added first, and the time last.
    let mut span = after.before(micros, micros);
    if days != 0 {
        span = local(span, &|span| span.before(days * DAY, days * DAY));
    }
    if months != 0 {
        span = local(span, &|span| Span {
            from: span.from.and_then(|from| calendar::first_before(from, months)),
            until: span.until.and_then(|until| calendar::last_before(until, months)),
        });
    }
    span
}

/// The local times of years, which are numbers.
fn years(after: Span) -> Span {
    // There is no year 0; years before Christ are left alone.
    let first = |year: i64| (1..200_000).contains(&year).then(|| first_day(year * 12) * DAY);
    Span {
        from: after.from.and_then(|from| first(div_up(from, SECOND))),
        until: after.until.and_then(|until| first(until.div_euclid(SECOND) + 1)).map(|until| until - 1),
    }
}
