//! What comes out: statements, what they lock and rewrite, and what stands in their way.

use crate::{Column, Facts, Oid, Sequence};

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MoveStep {
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
    /// Whether it fills a view that was created again. Only then does the view's code run: what the view calls is compared
    /// before.
    pub fills_view: bool,
    /// Whose rights it is run with.
    pub actor: Actor,
}

/// The role that a statement is run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The caller: the statement runs no code of others.
    Caller,
    /// The owner of the table: PostgreSQL may run functions of his.
    Owner,
    /// The owner of a view, or of a function.
    Role(Oid),
}

impl MoveStep {
    /// A statement that locks one table, rewrites none, and is run as the owner of the key's table.
    pub(crate) fn on(table: &str, statement: String, note: &str) -> Self {
        Self {
            statement,
            locks: vec![table.to_owned()],
            rewrites: Vec::new(),
            bytes: 0,
            note: note.to_owned(),
            by_definition: false,
            fills_view: false,
            actor: Actor::Owner,
        }
    }

    /// The same, run by another role than the owner of the table.
    pub(crate) fn by(self, actor: Actor) -> Self {
        Self { actor, ..self }
    }
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MovePlan {
    /// What stands in the way. Where this is not empty, nothing must be done.
    pub obstacles: Vec<String>,
    /// What to do about these.
    pub hints: Vec<&'static str>,
    /// Tables that the caller would have to own, and does not. An obstacle, too.
    pub not_owned: Vec<String>,
    /// The tables to lock before the facts are read on which the statements depend, in this order.
    pub locks: Vec<Oid>,
    /// The functions to lock with these, as statements change them.
    pub functions: Vec<Oid>,
    /// The statements, in order.
    pub steps: Vec<MoveStep>,
    /// What one should know beside.
    pub notes: Vec<String>,
    /// Whether something stands in the way and is waived.
    pub has_waived: bool,
}

impl MovePlan {
    /// Something in the way, and what to do about it.
    pub(crate) fn hinder(&mut self, obstacle: String, hint: &'static str) {
        self.obstacles.push(obstacle);
        if !self.hints.contains(&hint) {
            self.hints.push(hint);
        }
    }

    /// The statement that takes all locks at once, but for those of foreign tables: these are locked as they are changed.
    pub(crate) fn lock(&mut self, facts: &Facts, mut tables: Vec<Oid>) {
        tables.sort_unstable();
        tables.dedup();
        let relations = tables.iter().filter_map(|&oid| facts.relation(oid));
        let names: Vec<String> =
            relations.filter(|relation| !relation.is_foreign).map(|relation| relation.name.clone()).collect();
        self.locks = tables;
        if names.is_empty() {
            return;
        }
        let statement = format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", names.join(", "));
        let step = MoveStep::on("", statement, "takes all locks first, in the order of the tables' OIDs");
        self.steps.push(MoveStep { locks: names, ..step.by(Actor::Caller) });
    }

    /// One statement for the default of these columns of a table and of those that inherit from it, where these are all of them; else
    /// one for each, which leaves the others alone.
    pub(crate) fn alter_defaults(&mut self, facts: &Facts, columns: &[&Column], action: &str, note: &str) {
        let is_all = columns.len() == facts.key_columns().len();
        let tables: Vec<&str> = columns.iter().map(|column| facts.name(column.relation)).collect();
        let step = |only: &str, tables: &[&str]| {
            let statement = format!("ALTER TABLE {only}{} ALTER COLUMN {} {action}", tables[0], facts.key().name);
            let locks = tables.iter().map(|&table| table.to_owned()).collect();
            MoveStep { locks, ..MoveStep::on("", statement, note) }
        };
        if is_all {
            self.steps.push(step("", &tables));
        } else {
            self.steps.extend(tables.chunks(1).map(|table| step("ONLY ", table)));
        }
    }

    /// A sequence that is to go on where it is.
    pub(crate) fn check_position(&mut self, sequence: &Sequence) {
        if sequence.position.is_none() {
            self.hinder(
                format!("the last value of sequence {} cannot be read", sequence.name),
                "Grant the owner of such sequences SELECT on them.",
            );
        }
    }

    /// Notes whose rights the statements are run with, where those are not the caller's.
    pub(crate) fn note_actor(&mut self, facts: &Facts) {
        if let Some(table) = facts.table().filter(|table| !table.owner.is_caller) {
            let name = &table.owner.name;
            self.notes.push(format!(
                "statements on the tables are run as their owner, {name}, since they may call functions of this role: to run them by \
                 hand, SET ROLE {name} after the LOCK TABLE"
            ));
        }
    }

    /// Tables that belong to different roles stand in the way: whoever runs a statement on both runs the code of both. Of a caller
    /// who owns only some of them, [`Self::not_owned`] says enough.
    pub(crate) fn check_owners(&mut self, facts: &Facts, tables: &[Oid]) {
        let Some(table) = facts.table().filter(|_| self.not_owned.is_empty()) else { return };
        let others = facts.owned_by_others(tables).into_iter().map(|it| format!("{} to {}", it.name, it.owner.name));
        let heirs = tables.iter().filter_map(|&oid| facts.relation(oid)).flat_map(|it| it.heirs_of_others.clone());
        let mut others: Vec<String> = others.chain(heirs).collect();
        others.sort_unstable();
        others.dedup();
        for other in others {
            self.hinder(
                format!(
                    "{} belongs to {}, and {other}: a statement on both would run functions of one as the other",
                    table.name, table.owner.name
                ),
                "Give all these tables the same owner, at least for the time of this call.",
            );
        }
    }
}

/// A text as a literal, whatever `standard_conforming_strings` is.
pub fn literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}
