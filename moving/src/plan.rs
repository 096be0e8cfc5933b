//! What comes out: statements, what they lock and rewrite, and what stands in their way.

use crate::Oid;

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The statement, without a semicolon.
    pub statement: String,
    /// The tables that it locks, in ACCESS EXCLUSIVE mode.
    pub locks: Vec<String>,
    /// The tables that it rewrites, with all their indexes.
    pub rewrites: Vec<String>,
    /// The size of these, in bytes.
    pub bytes: i64,
    /// What it is for.
    pub note: String,
    /// Whether it has a definition of the catalogue's, to be read with a `search_path` of `pg_catalog` alone.
    pub by_definition: bool,
}

impl Step {
    /// A statement that locks one table, and rewrites none.
    pub(crate) fn on(table: &str, statement: String, note: &str) -> Self {
        Self {
            statement,
            locks: vec![table.to_owned()],
            rewrites: Vec::new(),
            bytes: 0,
            note: note.to_owned(),
            by_definition: false,
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// What stands in the way. Where this is not empty, nothing must be done.
    pub obstacles: Vec<String>,
    /// What to do about these.
    pub hints: Vec<&'static str>,
    /// Tables that the caller would have to own, and does not. An obstacle, too.
    pub not_owned: Vec<String>,
    /// The tables to lock before the facts are read on which the statements depend, in this order.
    pub locks: Vec<Oid>,
    /// The statements, in order.
    pub steps: Vec<Step>,
    /// What one should know beside.
    pub notes: Vec<String>,
}

impl Plan {
    /// Something in the way, and what to do about it.
    pub(crate) fn hinder(&mut self, obstacle: String, hint: &'static str) {
        self.obstacles.push(obstacle);
        if !self.hints.contains(&hint) {
            self.hints.push(hint);
        }
    }

    /// The statement that takes all locks at once.
    pub(crate) fn lock(&mut self, mut tables: Vec<(Oid, String)>) {
        tables.sort();
        tables.dedup();
        let names: Vec<String> = tables.iter().map(|(_, name)| name.clone()).collect();
        self.locks = tables.into_iter().map(|(oid, _)| oid).collect();
        self.steps.push(Step {
            statement: format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", names.join(", ")),
            locks: names,
            rewrites: Vec::new(),
            bytes: 0,
            note: "takes all locks first, in the order of the tables' OIDs".to_owned(),
            by_definition: false,
        });
    }
}

/// A text as a literal, whatever `standard_conforming_strings` is.
pub fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}
