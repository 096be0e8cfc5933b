//! Conditions on the time of an ID, and what it is compared with.

use super::derived;
use super::generator::Generator;
use super::instants::{DAY, HOUR, SECOND, day, written};
use super::tables::{SINCE, Table, UNTIL};

/// A type that a time can be compared with.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Timestamptz,
    Timestamp,
    Date,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Timestamptz => "timestamptz",
            Self::Timestamp => "timestamp",
            Self::Date => "date",
        }
    }
}

/// A time that can be compared with a column of another item, and these columns.
#[derive(Clone)]
pub struct Subject<'a> {
    /// The time.
    pub time: String,
    /// The alias of the item that it belongs to.
    pub alias: &'static str,
    pub table: &'a Table,
    /// Columns of this or other items.
    pub others: Vec<(String, Kind)>,
}

/// The columns of `moments`, under an alias.
pub fn columns_of_moments(alias: &str) -> Vec<(String, Kind)> {
    use Kind::{Date, Timestamp, Timestamptz};
    let columns = [
        ("at", Timestamptz),
        ("until", Timestamptz),
        ("far_at", Timestamptz),
        ("ts", Timestamp),
        ("far_ts", Timestamp),
        ("d", Date),
        ("far_d", Date),
    ];
    let mut all: Vec<_> = columns.map(|(name, kind)| (format!("{alias}.{name}"), kind)).into();
    all.push((format!("({alias}.at + interval '90 minutes')"), Timestamptz));
    all.push((format!("({alias}.ts - interval '1 day')"), Timestamp));
    all.push((format!("({alias}.d + 1)"), Date));
    all
}

/// What literals of each type may be besides instants near those of the rows.
const FAR: [&str; 7] = [
    "infinity",
    "-infinity",
    "1970-01-01 00:00:00",
    "3000-01-01 00:00:00",
    "1969-12-31 23:59:59.999999",
    "4714-11-26 00:00:00 BC",
    "294276-12-30 23:59:59.999999",
];

/// Local times that are missing or doubled in one of the zones.
const LOCAL: [&str; 4] = ["2024-03-10 02:30:00", "2024-03-31 02:00:00", "2024-04-07 01:45:00", "2024-03-10 03:00:00"];

impl<'a> Generator<'a> {
    /// An instant near those of the table's rows.
    fn instant(&mut self, table: &Table) -> i64 {
        let tick = table.layout.tick;
        match self.rng.u8(..20) {
            0 => table.layout.epoch + self.rng.i64(-2 * tick..=2 * tick),
            1 => table.layout.end() + self.rng.i64(-2 * tick..=2 * tick),
            2..5 => day(2024, 2, self.rng.i64(1..=90)),
            5..8 => self.rng.i64(SINCE..UNTIL),
            8 => day(2024, 3, 10) + self.rng.i64(0..5 * SECOND),
            _ => {
                let offsets = [0, 0, 0, 1, -1, tick, -tick, tick - 1, tick / 2, HOUR, -HOUR, DAY];
                table.times[self.rng.usize(..table.times.len())] + self.one_of(&offsets)
            }
        }
    }

    /// A constant.
    fn literal(&mut self, table: &Table, kind: Kind) -> String {
        if self.chance(5) {
            return format!("NULL::{}", kind.name());
        }
        match kind {
            Kind::Timestamptz if self.chance(15) => format!("('{}'::timestamptz)", self.one_of(&FAR)),
            Kind::Timestamp if self.chance(15) => format!("'{}'::timestamp", self.one_of(&FAR)),
            Kind::Date if self.chance(10) => "'5874897-12-31'::date".to_owned(),
            Kind::Date if self.chance(15) => format!("'{}'::date", self.one_of(&FAR[..6])),
            Kind::Timestamp if self.chance(15) => format!("'{}'::timestamp", self.one_of(&LOCAL)),
            Kind::Timestamptz if self.chance(5) => format!("'{} {}'::timestamptz", self.one_of(&LOCAL), self.zone),
            Kind::Timestamptz => format!("'{}+00'::timestamptz", written(self.instant(table))),
            // The instant in the session's time zone, so that it lies near a row there.
            Kind::Timestamp => {
                let instant = written(self.instant(table));
                format!("timezone('{}', '{instant}+00'::timestamptz)", self.zone)
            }
            Kind::Date => format!("'{}'::date", &written(self.instant(table))[..10]),
        }
    }

    /// A stable expression, which is not far from now, or far from all rows.
    fn stable(&mut self, table: &Table, kind: Kind) -> String {
        match kind {
            Kind::Timestamptz => match self.rng.u8(..9) {
                0 => "now()".to_owned(),
                1 => format!("('{}+00'::text)::timestamptz", written(self.instant(table))),
                2 => format!("to_timestamp({})", self.instant(table).div_euclid(SECOND)),
                3 => format!("date_trunc('day', now() - interval '{} hours')", self.rng.u8(..50)),
                4 => format!("('{}+00'::timestamptz - interval '1 day')", written(self.instant(table))),
                7 => "current_setting('test.bound')::timestamptz".to_owned(),
                5 => "(clock_timestamp() + interval '2 years')".to_owned(),
                6 => format!("({} + random() * interval '0')", self.literal(table, kind)),
                _ => format!("(now() - interval '{} minutes')", self.rng.u16(..3000)),
            },
            Kind::Timestamp => match self.rng.u8(..5) {
                0 => "localtimestamp".to_owned(),
                1 => "current_setting('test.bound')::timestamp".to_owned(),
                3 => format!("(now()::timestamp - interval '{} minutes')", self.rng.u16(..3000)),
                2 => format!("('{}'::text)::timestamp", written(self.instant(table))),
                _ => format!("(localtimestamp - interval '{} hours')", self.rng.u8(..50)),
            },
            Kind::Date => match self.rng.u8(..4) {
                0 => "current_date".to_owned(),
                1 => format!("('{}'::text)::date", &written(self.instant(table))[..10]),
                _ => format!("(current_date - {})", self.rng.u8(..4)),
            },
        }
    }

    /// What a time is compared with.
    pub fn operand(&mut self, subject: &Subject) -> (String, Kind) {
        if !subject.others.is_empty() && self.chance(50) {
            return subject.others[self.rng.usize(..subject.others.len())].clone();
        }
        let kind = self.one_of(&[Kind::Timestamptz, Kind::Timestamptz, Kind::Timestamptz, Kind::Timestamp, Kind::Date]);
        (self.operand_of(subject.table, kind), kind)
    }

    /// A time of which anything can be made without an error.
    fn finite(&mut self, table: &Table) -> String {
        let value = match self.rng.u8(..10) {
            0 => "now()".to_owned(),
            1 => "date_trunc('day', now())".to_owned(),
            // Where a day begins somewhere.
            2 | 3 => format!(
                "'{}+00'::timestamptz",
                written(day(2024, 2, self.rng.i64(1..=90)) + HOUR / 2 * self.rng.i64(0..48))
            ),
            _ => format!("'{}+00'::timestamptz", written(self.instant(table))),
        };
        if !self.prepared || self.chance(50) {
            return value;
        }
        self.parameters.push(("timestamptz", value));
        format!("${}", self.parameters.len())
    }

    /// The same of a type, without columns.
    pub fn operand_of(&mut self, table: &Table, kind: Kind) -> String {
        let moment = self.rng.i64(1..=self.schema.moments);
        match self.rng.u8(..100) {
            0..40 => self.parameter(table, kind),
            40..60 => self.stable(table, kind),
            60..65 => {
                let column = ["at", "ts", "d"][kind as usize];
                let far = self.one_of(&["", "far_"]);
                format!("(SELECT {far}{column} FROM moments WHERE k = {moment})")
            }
            _ => self.literal(table, kind),
        }
    }

    /// A parameter, where the query may have some.
    fn parameter(&mut self, table: &Table, kind: Kind) -> String {
        let value = if self.chance(80) { self.literal(table, kind) } else { self.stable(table, kind) };
        if !self.prepared {
            return value;
        }
        self.parameters.push((kind.name(), value));
        format!("${}", self.parameters.len())
    }

    /// A condition, of several parts joined by AND, OR and NOT.
    pub fn condition(&mut self, subject: &Subject) -> String {
        let depth = self.one_of(&[0, 0, 0, 1, 1, 1, 2, 3]);
        self.tree(subject, depth)
    }

    fn tree(&mut self, subject: &Subject, depth: u8) -> String {
        if depth == 0 {
            return self.leaf(subject);
        }
        match self.rng.u8(..20) {
            0..3 => format!("NOT ({})", self.tree(subject, depth - 1)),
            3 => {
                let test = self.one_of(&["TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN"]);
                format!("({}) IS {test}", self.tree(subject, depth - 1))
            }
            4 => {
                let [when, then, other] = [(); 3].map(|()| self.tree(subject, depth - 1));
                format!("CASE WHEN {when} THEN {then} ELSE {other} END")
            }
            draw => {
                let joined = if draw < 13 { " AND " } else { " OR " };
                let parts: Vec<_> = (0..self.rng.u8(2..4)).map(|_| self.tree(subject, depth - 1)).collect();
                format!("({})", parts.join(joined))
            }
        }
    }

    pub fn operator(&mut self) -> &'static str {
        self.one_of(&["<", "<=", "=", ">=", ">", "<", "<=", "=", ">=", ">", "<>"])
    }

    fn leaf(&mut self, subject: &Subject) -> String {
        let (time, table, alias) = (subject.time.clone(), subject.table, subject.alias);
        match self.rng.u8(..100) {
            0..28 => {
                let (operator, (operand, _)) = (self.operator(), self.operand(subject));
                if self.chance(30) {
                    format!("{operand} {operator} {time}")
                } else {
                    format!("{time} {operator} {operand}")
                }
            }
            28..34 => {
                let operands = [(); 3].map(|()| self.finite(table));
                derived::condition(&mut self.rng, &time, operands.each_ref().map(String::as_str))
            }
            34..57 => {
                let between = self.one_of(&["BETWEEN", "BETWEEN", "BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC"]);
                let [(low, _), (high, _)] = [(); 2].map(|()| self.operand(subject));
                format!("{time} {between} {low} AND {high}")
            }
            57..61 => {
                let (operator, (operand, _)) = (self.operator(), self.operand(subject));
                format!("NOT {time} {operator} {operand}")
            }
            61..65 => {
                let list: Vec<_> = (0..self.rng.u8(1..5)).map(|_| self.operand_of(table, Kind::Timestamptz)).collect();
                let list = list.join(", ");
                match self.rng.u8(..4) {
                    0 => format!("{time} IN ({list})"),
                    1 => format!("{time} NOT IN ({list})"),
                    2 => format!("{time} = ANY (ARRAY[{list}])"),
                    _ => format!("{time} {} ALL (ARRAY[{list}])", self.operator()),
                }
            }
            65..67 => {
                let not = self.one_of(&["", "NOT "]);
                format!("{time} IS {not}DISTINCT FROM {}", self.operand(subject).0)
            }
            67..69 => format!("{time} IS {}NULL", self.one_of(&["", "NOT "])),
            69..73 => {
                let operator = self.one_of(&["<", "<=", ">=", ">", "="]);
                let bound = self.operand_of(table, Kind::Timestamptz);
                let second = self.one_of(&["id", "n", "tenant"]);
                format!("({time}, {alias}.{second}) {operator} ({bound}, {})", self.rng.u8(..10))
            }
            73..78 => {
                let kind = Kind::Timestamptz;
                let [low, high] = [(); 2].map(|()| self.operand_of(table, kind));
                let length = self.rng.u8(1..50);
                match self.rng.u8(..5) {
                    0 => format!("{time}::date {} {}", self.operator(), self.operand_of(table, Kind::Date)),
                    1 => format!("date_trunc('day', {time}) {} {low}", self.operator()),
                    2 => format!("{time} + interval '{length} hours' {} {low}", self.operator()),
                    3 => format!("tstzrange(least({low}, {high}), greatest({low}, {high})) @> {time}"),
                    _ => format!(
                        "({time} AT TIME ZONE 'Asia/Tokyo') {} {}",
                        self.operator(),
                        self.operand_of(table, Kind::Timestamp)
                    ),
                }
            }
            // What is left is about other columns.
            78..82 => format!("{alias}.tenant = {}", self.rng.u8(..5)),
            82..87 => format!("{alias}.n {} {}", self.operator(), self.rng.u8(..10)),
            87..90 => format!("{alias}.due {} {}", self.operator(), self.operand(subject).0),
            90..94 => format!("{alias}.due {} {time}", self.operator()),
            94..96 => format!("{alias}.n IS {}NULL", self.one_of(&["", "NOT "])),
            // What the planner knows to be false before it looks at the table.
            96 => self.one_of(&["false", "true", "NULL::boolean", "now() < '-infinity'"]).to_owned(),
            _ => format!("{alias}.id % {} = 0", self.rng.u8(2..5)),
        }
    }
}
