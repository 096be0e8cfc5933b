//! Conditions on the time of an item, on its ID, and on its other columns.

use super::super::derived;
use super::super::instants::{DAY, HOUR, SECOND, written};
use super::draft::Draft;
use super::tables::{HIGHEST_N, SPAN, TENANTS};

impl Draft<'_> {
    /// An instant, mostly of a row, of the table that this alias stands for.
    pub fn instant(&mut self, alias: &str) -> i64 {
        let base = self.schema.base;
        match self.rng.u8(..10) {
            0..6 => {
                let known = &self.table_of(alias).known;
                known[self.rng.usize(..known.len())].0
            }
            6..8 => base - self.rng.i64(0..DAY),
            _ => base - self.rng.i64(0..SPAN),
        }
    }

    /// How long a range of time is.
    fn length(&mut self) -> i64 {
        self.one_of(&[SECOND, 60 * SECOND, HOUR, HOUR, 6 * HOUR, DAY, DAY, 5 * DAY, 20 * DAY])
    }

    /// An instant as SQL: a constant of one of three types, a parameter, or an expression.
    pub fn bound(&mut self, instant: i64) -> String {
        let text = written(instant);
        let ago = (self.schema.base - instant).div_euclid(SECOND);
        match self.rng.u8(..20) {
            0..3 if self.may_use_now => format!("now() - interval '{ago} seconds'"),
            3 => format!("'{text}'::timestamp"),
            4 => format!("'{}'::date", &text[..10]),
            5 => self.parameter("timestamp", format!("'{text}'")),
            6 => self.parameter("date", format!("'{}'", &text[..10])),
            7 => format!("(SELECT at FROM few WHERE k = {})", self.rng.u8(..25)),
            8..14 => self.parameter("timestamptz", format!("'{text}+00'")),
            _ => format!("'{text}+00'::timestamptz"),
        }
    }

    /// A constant or parameter of type `timestamptz`.
    pub fn exact(&mut self, instant: i64) -> String {
        let text = format!("'{}+00'::timestamptz", written(instant));
        if self.chance(50) { self.parameter("timestamptz", text) } else { text }
    }

    /// A range of the time of an item.
    pub fn range(&mut self, alias: &str) -> String {
        let (instant, length) = (self.instant(alias), self.length());
        let (t, base) = (format!("‹{alias}.t›"), self.schema.base);
        match self.rng.u8(..10) {
            // The newest, and the oldest.
            0..2 => format!("{t} >= {}", self.bound(base - length)),
            2 => format!("{} < {t}", self.bound(base - length)),
            3 => format!("{t} < {}", self.bound(base - SPAN + length)),
            4..6 => format!("{t} BETWEEN {} AND {}", self.bound(instant), self.bound(instant + length)),
            _ => format!("{t} >= {} AND {t} < {}", self.bound(instant), self.bound(instant + length)),
        }
    }

    /// One condition.
    fn leaf(&mut self, alias: &str) -> String {
        let t = format!("‹{alias}.t›");
        match self.rng.u8(..100) {
            0..30 => self.range(alias),
            30..40 => {
                let operands = [(); 3].map(|()| {
                    let instant = self.instant(alias);
                    self.exact(instant)
                });
                derived::condition(&mut self.rng, &t, operands.each_ref().map(String::as_str))
            }
            40..50 => {
                let instant = self.instant(alias);
                format!("{t} = {}", self.exact(instant))
            }
            50..57 => {
                let list: Vec<_> = (0..self.one_of(&[1, 3, 8, 20]))
                    .map(|_| {
                        let instant = self.instant(alias);
                        self.exact(instant)
                    })
                    .collect();
                format!("{t} IN ({})", list.join(", "))
            }
            57..62 => {
                let parts: Vec<_> = (0..self.rng.u8(2..4)).map(|_| format!("({})", self.range(alias))).collect();
                format!("({})", parts.join(" OR "))
            }
            62..67 => self.after(alias, true),
            67..70 => format!("{t} IS NULL"),
            70..72 => format!("{t} IS NOT NULL"),
            72..74 => {
                let instant = self.instant(alias);
                format!("{t} <> {}", self.exact(instant))
            }
            74..76 => {
                let instant = self.instant(alias);
                format!("{t}::date = '{}'", &written(instant)[..10])
            }
            76..86 => format!("{alias}.tenant = {}", self.rng.u8(..TENANTS)),
            86..93 => format!("{alias}.n < {}", self.one_of(&[5, 50, HIGHEST_N / 2])),
            93..95 => format!("{alias}.n IS NULL"),
            _ => {
                let known = &self.table_of(alias).known;
                let id = known[self.rng.usize(..known.len())].1;
                let operator = self.one_of(&["=", "<", ">="]);
                format!("{alias}.id {operator} {id}")
            }
        }
    }

    /// What comes after or before a row in the order of time and ID.
    pub fn after(&mut self, alias: &str, forward: bool) -> String {
        let known = &self.table_of(alias).known;
        let (instant, id, _) = known[self.rng.usize(..known.len())];
        let operator = if forward { ">" } else { "<" };
        let at = self.exact(instant);
        let id = if self.chance(50) { self.parameter("bigint", id.to_string()) } else { id.to_string() };
        format!("(‹{alias}.t›, {alias}.id) {operator} ({at}, {id})")
    }

    /// Conditions on an item, joined by AND, rarely by OR or below NOT.
    pub fn condition(&mut self, alias: &str) -> String {
        if self.chance(1) && self.chance(30) {
            return self.very_many(alias);
        }
        let count = self.one_of(&[1, 1, 1, 2, 2, 3]);
        let mut parts: Vec<_> = (0..count).map(|_| self.leaf(alias)).collect();
        if self.chance(12) {
            parts = vec![format!("({} OR {})", parts.join(" AND "), self.leaf(alias))];
        }
        if self.chance(5) {
            parts = vec![format!("NOT ({})", parts.join(" AND "))];
        }
        parts.join(" AND ")
    }

    /// As some tools write them.
    fn very_many(&mut self, alias: &str) -> String {
        let lowest = self.schema.base - SPAN;
        let parts: Vec<_> =
            (0..600).map(|number| format!("‹{alias}.t› >= '{}+00'", written(lowest + number * HOUR))).collect();
        parts.join(" AND ")
    }

    /// ` WHERE ...`, or nothing.
    pub fn filter(&mut self, alias: &str) -> String {
        if self.chance(75) { format!(" WHERE {}", self.condition(alias)) } else { String::new() }
    }
}
