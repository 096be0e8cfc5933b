//! Random sets of indexes, and their images where the time is a column.

use super::super::instants::{DAY, written};
use super::tables::{Division, HIGHEST_N, Table};
use super::{Way, draw};
use fastrand::Rng;

/// What an index is on.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Key {
    Id,
    Time,
    /// The same, as a field of what an ID decodes to.
    Decoded,
    Tenant,
    N,
}

/// The rows that an index has.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Rows {
    All,
    /// Those with a low `n`.
    LowN,
    /// Those since an instant, by the time.
    SinceTime(i64),
    /// The same, by the ID.
    SinceId(i64),
}

/// An index.
#[derive(Clone, Debug)]
pub struct Index {
    method: &'static str,
    unique: bool,
    keys: Vec<(Key, &'static str)>,
    include: &'static str,
    rows: Rows,
    /// On the children, so many of four, and not on the parent.
    on_children: Option<u8>,
}

/// Some indexes for a table.
pub fn random(rng: &mut Rng, table: &Table, base: i64) -> Vec<Index> {
    let count = draw(rng, &[0, 1, 1, 1, 2, 2, 2, 3, 3, 4]);
    let mut all = Vec::new();
    for _ in 0..count {
        let index = one(rng, table, base);
        if all.iter().all(|other: &Index| other.keys != index.keys || other.method != index.method) {
            all.push(index);
        }
    }
    all
}

fn one(rng: &mut Rng, table: &Table, base: i64) -> Index {
    use Key::{Decoded, Id, N, Tenant, Time};
    let sets: [&[Key]; 20] = [
        &[Id],
        &[Id],
        &[Id],
        &[Id],
        &[Id],
        &[Time],
        &[Time],
        &[Time],
        &[Decoded],
        &[Tenant, Id],
        &[Tenant, Id],
        &[Tenant, Time],
        &[Tenant, Time],
        &[Id, N],
        &[Time, N],
        &[Time, Id],
        &[N, Id],
        &[N, Time],
        &[Tenant],
        &[N],
    ];
    let set = draw(rng, &sets);
    let of_time = matches!(set, [Id | Time | Decoded]);
    let method = if of_time { draw(rng, &["btree", "btree", "btree", "btree", "hash", "brin"]) } else { "btree" };
    let mut way = |key: Key| {
        let down = if key == Tenant { 10 } else { 25 };
        let drawn = rng.u8(..100);
        let suffix = if method != "btree" || drawn >= down {
            ""
        } else {
            draw(rng, &[" DESC", " DESC", " DESC NULLS LAST", " NULLS FIRST"])
        };
        (key, suffix)
    };
    let keys: Vec<_> = set.iter().map(|&key| way(key)).collect();
    let since = base - rng.i64(2..40) * DAY;
    let rows = match rng.u8(..20) {
        0 => Rows::LowN,
        1 => Rows::SinceTime(since),
        2 if set.contains(&Id) && !set.contains(&Time) => Rows::SinceId(since),
        _ => Rows::All,
    };
    // IDs are unique, but a partitioned table says so only where they are its key.
    let can_be_unique = matches!(table.division, Division::None | Division::Heirs) && set == [Id] && method == "btree";
    let divided = table.division != Division::None;
    // An index of a parent by inheritance would be on its own rows alone, and there are none.
    let on_children = match table.division {
        Division::None => None,
        Division::Heirs => Some(draw(rng, &[4, 4, 4, 3])),
        _ if divided && rng.u8(..10) < 4 => Some(draw(rng, &[4, 4, 3, 2])),
        _ => None,
    };
    Index {
        method,
        unique: can_be_unique && keys[0].1.is_empty() && rows == Rows::All && rng.u8(..10) < 6,
        include: if method == "btree" && rng.u8(..10) == 0 { " INCLUDE (n, tenant, id)" } else { "" },
        keys,
        rows,
        on_children,
    }
}

impl Index {
    /// Whether it has the time as an expression.
    pub fn is_on_time(&self) -> bool {
        self.keys.iter().any(|(key, _)| matches!(key, Key::Time | Key::Decoded))
    }

    pub fn is_on_id_alone(&self) -> bool {
        self.method == "btree" && matches!(self.keys[..], [(Key::Id, _)])
    }

    /// Whether it has ranges of the ID.
    pub fn is_on_id(&self) -> bool {
        self.method != "hash" && self.keys.iter().any(|(key, _)| *key == Key::Id)
    }

    /// The statement that creates it with the ID beside the time, where it has the time alone. An index-only scan can use that.
    pub fn with_the_id(&self, table: &Table) -> Option<String> {
        let lacks_it = self.include.is_empty() && self.keys.iter().all(|(key, _)| *key != Key::Id);
        let index = Self { include: " INCLUDE (id)", ..self.clone() };
        let is_one = self.is_on_time() && self.method == "btree" && lacks_it;
        is_one.then(|| index.statement(table, Way::Ids, &table.named(Way::Ids), false))
    }

    /// The statements that create it. With a column for the time, an index on the ID has an image on the column beside it.
    pub fn statements(&self, table: &Table, way: Way, children: &[String]) -> Vec<String> {
        let on: Vec<String> = match self.on_children {
            // The same of each form.
            Some(of_four) => {
                let chosen = children.iter().enumerate().filter(|(number, _)| number % 4 < usize::from(of_four));
                chosen.map(|(_, child)| child.clone()).collect()
            }
            None => vec![table.named(way)],
        };
        let mut lines = Vec::new();
        for table_or_child in on {
            lines.push(self.statement(table, way, &table_or_child, false));
            if way == Way::Column && self.has_image() {
                lines.push(self.statement(table, way, &table_or_child, true));
            }
        }
        lines
    }

    /// A hash of IDs says nothing of their times.
    fn has_image(&self) -> bool {
        let (has_id, has_time) =
            (self.keys.iter().any(|(key, _)| *key == Key::Id), self.keys.iter().any(|(key, _)| *key == Key::Time));
        self.method != "hash" && (has_id && !has_time || matches!(self.rows, Rows::SinceId(_)))
    }

    fn statement(&self, table: &Table, way: Way, on: &str, image: bool) -> String {
        let mut keys = Vec::new();
        for (key, suffix) in &self.keys {
            match key {
                // Within one time, IDs rise.
                Key::Id if image && self.method == "btree" => {
                    keys.push(format!("created_at{suffix}"));
                    keys.push(format!("id{suffix}"));
                }
                Key::Id if image => keys.push("created_at".to_owned()),
                Key::Id => keys.push(format!("id{suffix}")),
                Key::Time => keys.push(format!("({}){suffix}", table.time(way, ""))),
                Key::Decoded => keys.push(format!("({}){suffix}", table.decoded(way, ""))),
                Key::Tenant => keys.push(format!("tenant{suffix}")),
                Key::N => keys.push(format!("n{suffix}")),
            }
        }
        let instant = |instant| format!("'{}+00'", written(instant));
        let rows = match self.rows {
            Rows::All => String::new(),
            Rows::LowN => format!(" WHERE n < {}", HIGHEST_N / 2),
            Rows::SinceTime(since) => format!(" WHERE {} >= {}", table.time(way, ""), instant(since)),
            Rows::SinceId(since) if image => format!(" WHERE created_at >= {}", instant(since)),
            Rows::SinceId(since) => format!(" WHERE id >= {}", table.call("snowflake_min_id", &instant(since))),
        };
        let with = if self.method == "brin" { " WITH (pages_per_range = 4)" } else { "" };
        let unique = if self.unique && !image { "UNIQUE " } else { "" };
        format!("CREATE {unique}INDEX ON {on} USING {} ({}){}{with}{rows}", self.method, keys.join(", "), self.include)
    }
}
