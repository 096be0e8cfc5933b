//! Sequences: their options as SQL writes them, and what makes one again as it was.

use crate::{Actor, MoveStep, Oid, Relation, Width, literal};

/// A sequence that the column has or uses.
#[derive(Clone, Debug)]
pub struct Sequence {
    /// Its number.
    pub oid: Oid,
    /// Its name, as a statement writes it.
    pub name: String,
    /// Whether it is dropped with the column.
    pub is_owned_by_key: bool,
    /// Whether it is the sequence of an identity.
    pub is_identity: bool,
    /// Whether the column's default is `nextval()` of it, and nothing else.
    pub is_default: bool,
    /// What else uses it, such as `default value for column b of table public.t`.
    pub users: Vec<String>,
    /// Functions in whose source it is named.
    pub callers: Vec<String>,
    /// Its options.
    pub options: Options,
    /// Roles that may insert rows of the column's table, and may not have a value of it.
    pub closed_to: Vec<String>,
    /// Where it is; `None` where the caller may not know that.
    pub position: Option<LastValue>,
    /// Whether it is unlogged.
    pub is_unlogged: bool,
    /// Its comment.
    pub comment: Option<String>,
    /// The statements that give a new sequence its privileges, each with the role that has granted them.
    pub grants: Vec<(String, Oid)>,
}

/// The options of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its type.
    pub width: Width,
    /// Its first value.
    pub start: i64,
    /// From one value to the next.
    pub increment: i64,
    /// The lowest value.
    pub min: i64,
    /// The highest value.
    pub max: i64,
    /// How many values a session takes at once.
    pub cache: i64,
    /// Whether it begins again at the end.
    pub cycles: bool,
}

/// Where a sequence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastValue {
    /// The value that was given last, or, if none was, the one that is given next.
    pub last: i64,
    /// Whether it was given.
    pub is_called: bool,
}

impl Options {
    /// Those of a new sequence.
    pub const DEFAULT: Self =
        Self { width: Width::Eight, start: 1, increment: 1, min: 1, max: i64::MAX, cache: 1, cycles: false };

    /// The limits that a sequence of a type has by itself.
    const fn limits(width: Width, is_rising: bool) -> (i64, i64) {
        let (min, max) = match width {
            Width::Two => (i16::MIN as i64, i16::MAX as i64),
            Width::Four => (i32::MIN as i64, i32::MAX as i64),
            Width::Eight => (i64::MIN, i64::MAX),
        };
        if is_rising { (1, max) } else { (min, -1) }
    }

    /// The same for another type, as ALTER SEQUENCE AS has it: limits that were those of the type are those of the new one.
    pub const fn of_width(self, width: Width) -> Self {
        let (old, new) = (Self::limits(self.width, self.increment > 0), Self::limits(width, self.increment > 0));
        Self {
            width,
            min: if self.min == old.0 { new.0 } else { self.min },
            max: if self.max == old.1 { new.1 } else { self.max },
            ..self
        }
    }

    /// The same for a narrower type, where that has room for a value and for the limits.
    pub fn narrowed(self, width: Width, value: i64) -> Option<Self> {
        let narrow = self.of_width(width);
        let (least, most) = (Self::limits(width, false).0, Self::limits(width, true).1);
        let fits = [narrow.start, narrow.min, narrow.max, value].iter().all(|it| (least..=most).contains(it));
        (fits && width < self.width && narrow.has_room_for(value)).then_some(narrow)
    }

    /// The same, with limits that have room for a value.
    pub fn with_room_for(self, value: i64) -> Self {
        let (_, max) = Self::limits(Width::Eight, true);
        Self { min: self.min.min(value), max: if value > self.max { max } else { self.max }, ..self }
    }

    /// Whether it can have this value.
    pub const fn has_room_for(&self, value: i64) -> bool {
        self.min <= value && value <= self.max
    }

    /// All but the type, as CREATE SEQUENCE and an identity have them.
    pub fn clauses(&self) -> String {
        let limits = Self::limits(self.width, self.increment > 0);
        let limit = |word: &str, value: i64, own: i64| {
            if value == own { format!("NO {word}") } else { format!("{word} {value}") }
        };
        format!(
            "START WITH {} INCREMENT BY {} {} {} CACHE {}{}",
            self.start,
            self.increment,
            limit("MINVALUE", self.min, limits.0),
            limit("MAXVALUE", self.max, limits.1),
            self.cache,
            if self.cycles { " CYCLE" } else { "" }
        )
    }
}

impl Width {
    /// As SQL writes it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Two => "smallint",
            Self::Four => "integer",
            Self::Eight => "bigint",
        }
    }
}

impl Sequence {
    /// What uses it beside the column: objects that depend on it, and functions that name it.
    pub(crate) fn others(&self) -> Vec<String> {
        let callers = self.callers.iter().map(|function| format!("function {function}"));
        self.users.iter().cloned().chain(callers).collect()
    }

    /// The value that comes next; `None` where that is not known.
    pub(crate) fn next(&self) -> Option<i64> {
        let LastValue { last, is_called } = self.position?;
        if is_called { last.checked_add(self.options.increment) } else { Some(last) }
    }

    /// A statement on it.
    pub(crate) fn step(&self, statement: String, note: &str) -> MoveStep {
        MoveStep::on(&self.name, statement, note)
    }

    /// A statement on it that locks nobody out.
    fn free(&self, statement: String, note: &str) -> MoveStep {
        MoveStep { locks: Vec::new(), ..self.step(statement, note) }
    }

    /// It gets another type, and with it the limits of that.
    pub(crate) fn of_type(&self, width: Width, note: &str) -> MoveStep {
        self.free(format!("ALTER SEQUENCE {} AS {}", self.name, width.name()), note)
    }

    /// It goes on where it was.
    pub(crate) fn continuation(&self) -> Option<MoveStep> {
        let LastValue { last, is_called } = self.position?;
        let statement =
            format!("SELECT pg_catalog.setval({}::pg_catalog.regclass, {last}, {is_called})", literal(&self.name));
        Some(self.free(statement, "goes on where it was"))
    }

    /// A statement for its comment.
    pub(crate) fn comment_step(&self, comment: Option<&str>, note: &str) -> MoveStep {
        let comment = comment.map_or_else(|| "NULL".to_owned(), literal);
        self.free(format!("COMMENT ON SEQUENCE {} IS {comment}", self.name), note)
    }

    /// Its privileges.
    pub(crate) fn grant_steps(&self, table: &Relation) -> Vec<MoveStep> {
        let step = |(statement, grantor): &(String, Oid)| {
            let actor = if *grantor == table.owner.oid { Actor::Owner } else { Actor::Role(*grantor) };
            self.free(statement.clone(), "").by(actor)
        };
        self.grants.iter().map(step).collect()
    }

    /// What makes it again as a sequence of its own, that belongs to a column, and has room for IDs. The comment is left
    /// to the caller.
    pub(crate) fn creation(&self, table: &Relation, column: &str) -> Vec<MoveStep> {
        let kind = if self.is_unlogged { "UNLOGGED SEQUENCE" } else { "SEQUENCE" };
        let options = self.options.of_width(Width::Eight);
        let statement = format!("CREATE {kind} {} AS bigint {}", self.name, options.clauses());
        let mut steps = new(&self.name, &statement, "as it was", table);
        steps.extend(self.continuation());
        steps.push(self.step(format!("ALTER SEQUENCE {} OWNED BY {}.{column}", self.name, table.name), ""));
        steps.extend(self.grant_steps(table));
        steps
    }
}

/// The statements that create a sequence which belongs to the owner of a table.
pub fn new(name: &str, statement: &str, note: &str, table: &Relation) -> Vec<MoveStep> {
    // Where the owner of the table may not create objects in its schema, the caller does: these run no code of his.
    let creator = if table.owner.may_create { Actor::Owner } else { Actor::Caller };
    let mut steps = vec![MoveStep { locks: Vec::new(), ..MoveStep::on("", statement.to_owned(), note).by(creator) }];
    if !table.owner.is_caller {
        let statement = format!("ALTER SEQUENCE {name} OWNER TO {}", table.owner.name);
        steps.push(MoveStep::on(name, statement, "the owner of the table").by(creator));
    }
    steps
}
