//! A row that is written, changed, deleted and taken back, before a move and after it: what fails afterwards and did not
//! before would break clients. So for tables that refer to the key by columns that become wider. Triggers, defaults and constraints run as the owner of the table, in a
//! restricted operation; deferred ones, too. Sequences that they ask leave a gap.
//!
//! A row that fails before the move shows nothing of it: it is said of a table of which no row could be
//! written. A plan tries none, as triggers may do what no rollback undoes, sequences would go on, and
//! others may wait for the locks: it says what the catalogue shows of the try.

use super::meanwhile::unread;
use super::{
    catalogue,
    rows::{flag, oid, rows, text, texts},
};
use crate::errors::Error;
use crate::errors::moving::MovingError;
use crate::postgres::held::Holds;
use crate::postgres::questions;
use crate::postgres::restricted::Owner;
use crate::postgres::subtransaction::{AttemptError, undone};
use crate::settings;
use pgrx::prelude::*;
use pgrx::spi::{self, SpiClient};
use snowflake_moving::{Column, Facts, Oid, Width};
use std::cell::Cell;

const DEFERRABLE: &str = include_str!("probe/deferrable.sql");
const FORESEEN: &str = include_str!("probe/foreseen.sql");
const ROW: &str = include_str!("probe/row.sql");

/// How a table is tried.
pub struct Probe {
    table: String,
    owner: Owner,
    /// Sets the path for functions that name no schema: that of the table is on it where nobody else can create anything there.
    path: String,
    /// Whether triggers wait for the end of the transaction. Then deferred constraints are not tried: a row
    /// of a table that has some fails.
    others_wait: bool,
    /// Whether there is a row to copy, as far as that is known.
    has_rows: bool,
    attempts: Vec<Attempt>,
}

/// What is tried in a subtransaction of its own.
struct Attempt {
    kind: AttemptKind,
    before: Trial,
    after: Trial,
    /// What came of it before the move.
    outcome: Tried,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AttemptKind {
    /// A row of what the defaults make.
    Defaults,
    /// A copy of the newest row.
    Copy,
    /// The newest row is changed.
    Change,
}

/// Statements that are run in this order.
#[derive(Clone, Default)]
struct Trial {
    /// Writes a row that the other refers to.
    first: Option<String>,
    /// Writes the row, or changes it.
    write: String,
    /// What is then done to the row; where it is follows.
    then: Vec<String>,
}

/// What came of it.
enum Tried {
    /// It succeeded.
    Written,
    /// There is no row to copy or to change.
    NoRow,
    /// It failed, after so many statements.
    Failed(usize, AttemptError),
}

impl Tried {
    fn failure(&self) -> Option<&AttemptError> {
        match self {
            Self::Failed(_, failure) => Some(failure),
            Self::Written | Self::NoRow => None,
        }
    }
}

/// What rows of a table are written with.
struct Shape {
    /// Columns that are not given, each behind a comma.
    columns: String,
    /// The same but for unique ones that have a default.
    copied: String,
    /// What makes another row of each of the two, where unique indexes would refuse a copy.
    varied: [String; 2],
    /// How they are set to what they are.
    set: String,
    /// The newest row comes first by this.
    order: String,
    /// [`Probe::path`].
    path: String,
    /// Behind an INSERT: where the row is.
    returning: &'static str,
}

/// INSERTs: by the defaults, of a copy, and of a copy that differs where it has to be unique.
type Inserts = [String; 3];

/// Tries the tables as they are: those of the keys, and those that refer to them by columns that become wider; none where
/// that is turned off. `new_id` is an ID that no row has.
pub fn before(
    client: &mut SpiClient,
    holds: &Holds,
    owner: Owner,
    keys: &[Facts],
    new_id: i64,
) -> Result<Vec<Probe>, Error> {
    if !settings::probe() {
        return Ok(Vec::new());
    }
    let others_wait = others_wait(client)?;
    let mut probes = Vec::new();
    for facts in keys {
        let (old, new) = (free_value(facts).to_string(), new_id.to_string());
        let key = facts.key();
        let table = facts.key_names().0;
        let shape = shape(client, key.relation, &[key.number])?;
        let probe = |table: &str, path: String, has_rows, attempts| {
            let table = table.to_owned();
            Probe { table, owner, path, others_wait, has_rows, attempts }
        };
        let has_rows = facts.values.is_some();
        let mut of_key = probe(table, shape.path.clone(), has_rows, of_key(facts, &shape, &old));
        of_key.begin(client, holds)?;
        // Of such rows, one that others can refer to.
        let is_written = |attempt: &Attempt| matches!(attempt.outcome, Tried::Written);
        let mut written = of_key.attempts.iter().position(is_written);
        let [olds, news] = [&old, &new].map(|id| inserts(facts, &shape, id));
        if written.is_none() && !referring(facts).is_empty() {
            let varied = Trial { write: olds[2].clone(), ..Trial::default() };
            let outcome = of_key.tried(client, holds, AttemptKind::Copy, &varied)?;
            written = matches!(outcome, Tried::Written).then_some(2);
        }
        let referred = written.map(|place| [olds[place].clone(), news[place].clone()]);
        probes.push(of_key);
        for (relation, columns) in referring(facts) {
            let Some(table) = facts.relation(relation).filter(|it| !it.is_foreign) else { continue };
            let numbers: Vec<i16> = columns.iter().map(|column| column.number).collect();
            let shape = self::shape(client, relation, &numbers)?;
            let attempts = of_referring(facts, &table.name, &shape, &columns, referred.as_ref(), [&old, &new]);
            let mut of_table = probe(&table.name, shape.path, false, attempts);
            of_table.begin(client, holds)?;
            probes.push(of_table);
        }
    }
    Ok(probes)
}

/// A key that no row has, before the move.
fn free_value(facts: &Facts) -> i64 {
    let width = facts.key().width.unwrap_or(Width::Eight);
    facts.values.map_or(Some(1), |values| values.free(width)).unwrap_or(i64::MAX)
}

/// The tables at the top that refer to the key by columns that become wider, with these; the key's own, too.
fn referring(facts: &Facts) -> Vec<(Oid, Vec<&Column>)> {
    let mut found: Vec<(Oid, Vec<&Column>)> = Vec::new();
    let is_widened = |column: &&Column| column.width != Some(Width::Eight) && column.parents.is_empty();
    for column in facts.columns.iter().skip(1).filter(is_widened) {
        match found.iter_mut().find(|(relation, _)| *relation == column.relation) {
            Some((_, columns)) => columns.push(column),
            None => found.push((column.relation, vec![column])),
        }
    }
    found
}

fn shape(client: &SpiClient, table: Oid, given: &[i16]) -> Result<Shape, Error> {
    let arguments = [pg_sys::Oid::from(table.0).into(), given.to_vec().into()];
    let found = catalogue::look(|| {
        rows(client, ROW, &arguments, |row| {
            let returning = if flag(row, 8)? { " RETURNING tableoid, ctid::pg_catalog.text" } else { "" };
            let (columns, copied, varied) = (text(row, 1)?, text(row, 2)?, [text(row, 3)?, text(row, 4)?]);
            let (set, order, path) = (text(row, 5)?, text(row, 6)?, text(row, 7)?);
            Ok(Shape { columns, copied, varied, set, order, path, returning })
        })
    });
    found.map_err(unread)?.into_iter().next().ok_or_else(super::meanwhile::gone)
}

/// INSERTs of a row with this key.
fn inserts(facts: &Facts, Shape { columns, varied, returning, .. }: &Shape, id: &str) -> Inserts {
    let (table, key) = facts.key_names();
    let copy = |values: &str| {
        format!(
            "INSERT INTO {table} ({key}{columns}) OVERRIDING SYSTEM VALUE SELECT {id}{values} FROM {table} \
             ORDER BY {key} DESC LIMIT 1{returning}"
        )
    };
    let defaults = format!("INSERT INTO {table} ({key}) OVERRIDING SYSTEM VALUE VALUES ({id}){returning}");
    [defaults, copy(columns), copy(&varied[0])]
}

/// Before the move, with a key of their own, as the sequence is not to be asked.
fn of_key(facts: &Facts, shape: &Shape, old: &str) -> Vec<Attempt> {
    let table = facts.key_names().0;
    let then = then(facts, facts.key().relation, table, shape, &[]);
    let [_, copy, _] = inserts(facts, shape, &facts.next);
    let after = [format!("INSERT INTO {table} DEFAULT VALUES{}", shape.returning), copy];
    let written = inserts(facts, shape, old).into_iter().zip(after).zip([AttemptKind::Defaults, AttemptKind::Copy]);
    written
        .filter(|(_, kind)| *kind == AttemptKind::Defaults || facts.values.is_some())
        .map(|((before, after), kind)| {
            let trial = |write| Trial { first: None, write, then: then.clone() };
            Attempt { kind, before: trial(before), after: trial(after), outcome: Tried::NoRow }
        })
        .collect()
}

/// With a row of the key's table that is new, which tells what an ID does; and by themselves, where there can be none.
fn of_referring(
    facts: &Facts,
    table: &str,
    shape: &Shape,
    columns: &[&Column],
    referred: Option<&[String; 2]>,
    ids: [&str; 2],
) -> Vec<Attempt> {
    let Shape { copied, varied, set, order, returning, .. } = shape;
    let relation = columns[0].relation;
    let is_own = relation == facts.key().relation;
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    let list = names.join(", ");
    let assigned = |value: &dyn Fn(&str) -> String| {
        let given = names.iter().map(|name| format!("{name} = {}", value(name)));
        given.chain((!set.is_empty()).then(|| set.clone())).collect::<Vec<_>>().join(", ")
    };
    let then = then(facts, relation, table, shape, &names);
    // The rows of a table are in one place only together with the partition that they are in.
    let newest = format!("(tableoid, ctid) OPERATOR(pg_catalog.=) (SELECT tableoid, ctid FROM {table}{order} LIMIT 1)");
    let change = |value: &dyn Fn(&str) -> String| {
        format!("UPDATE {table} SET {} WHERE {newest} RETURNING tableoid, ctid::pg_catalog.text", assigned(value))
    };
    let mut attempts = Vec::new();
    let mut add = |kind, first: Option<&[String; 2]>, [before, after]: [String; 2]| {
        let trial = |place: usize, write| {
            let then = if kind == AttemptKind::Change { Vec::new() } else { then.clone() };
            Trial { first: first.map(|first| first[place].clone()), write, then }
        };
        attempts.push(Attempt { kind, before: trial(0, before), after: trial(1, after), outcome: Tried::NoRow });
    };
    if let Some(referred) = referred {
        let values = ids.map(|id| vec![id; names.len()].join(", "));
        if !is_own {
            add(
                AttemptKind::Defaults,
                Some(referred),
                values.each_ref().map(|values| format!("INSERT INTO {table} ({list}) VALUES ({values}){returning}")),
            );
            let copy = |values: &String, rest: &str| {
                format!(
                    "INSERT INTO {table} ({list}{copied}) SELECT {values}{rest} FROM {table}{order} LIMIT 1{returning}"
                )
            };
            add(AttemptKind::Copy, Some(referred), values.each_ref().map(|values| copy(values, copied)));
            if varied[1] != *copied {
                add(AttemptKind::Copy, Some(referred), values.each_ref().map(|values| copy(values, &varied[1])));
            }
        }
        add(AttemptKind::Change, Some(referred), ids.map(|id| change(&|_| id.to_owned())));
    }
    if !is_own {
        let same = |statement: String| [statement.clone(), statement];
        add(AttemptKind::Defaults, None, same(format!("INSERT INTO {table} DEFAULT VALUES{returning}")));
        add(
            AttemptKind::Copy,
            None,
            same(format!(
                "INSERT INTO {table} ({list}{copied}) SELECT {list}{copied} FROM {table}{order} LIMIT 1{returning}"
            )),
        );
        add(AttemptKind::Change, None, same(change(&str::to_owned)));
    }
    attempts
}

/// What is done to a row once it is written: all columns are set to what they are, and it is deleted. Not where PostgreSQL
/// would then read other tables, or plan for many partitions.
fn then(facts: &Facts, relation: Oid, table: &str, shape: &Shape, given: &[&str]) -> Vec<String> {
    let is_wide = facts.columns.iter().all(|column| column.relation != relation || column.width == Some(Width::Eight));
    let has_partitions = facts.relation(relation).is_none_or(|relation| !relation.partitions.is_empty());
    if shape.returning.is_empty() || is_wide && has_partitions {
        return Vec::new();
    }
    let given = given.iter().map(|name| format!("{name} = {name}"));
    let set: Vec<String> = given.chain((!shape.set.is_empty()).then(|| shape.set.clone())).collect();
    let is_referred_to = facts.foreign_keys.iter().any(|key| key.to == relation);
    let change = (!set.is_empty()).then(|| format!("UPDATE {table} SET {} WHERE ", set.join(", ")));
    change.into_iter().chain((!is_referred_to).then(|| format!("DELETE FROM {table} WHERE "))).collect()
}

/// Tries them again.
///
/// # Errors
/// Where something fails that did not before; only a warning, where the caller has waived something of which the plan says this.
pub fn after(client: &mut SpiClient, holds: &Holds, probes: &[Probe], has_waived: bool) -> Result<(), Error> {
    for probe in probes {
        let mut outcomes = Vec::new();
        for attempt in &probe.attempts {
            outcomes.push(probe.tried(client, holds, attempt.kind, &attempt.after)?);
        }
        let new = probe.attempts.iter().zip(&outcomes).find_map(|(attempt, now)| new_failure(&attempt.outcome, now));
        if let Some(AttemptError { message, detail, .. }) = new.cloned() {
            let error = Error::from(MovingError::Unwritable(probe.table.clone(), message, detail, has_waived));
            if !has_waived {
                return Err(error);
            }
            error.warn();
        } else if !probe.is_written(&outcomes) {
            probe.untried(&outcomes).warn();
        }
    }
    Ok(())
}

/// What fails now and did not before. Where writing a row failed before, nothing is known of what would have been done to it.
fn new_failure<'a>(before: &Tried, now: &'a Tried) -> Option<&'a AttemptError> {
    let Tried::Failed(at, failure) = now else { return None };
    let before = match before {
        Tried::Failed(before, _) if before < at => return None,
        Tried::Failed(before, failure) if before == at => Some(failure),
        _ => None,
    };
    is_new(failure, before).then_some(failure)
}

/// Whether something fails by the move. Sequences of other columns give each row other values, with which other rows agree or do not. And
/// what a row lacked before, it may lack now by another column's name.
fn is_new(failure: &AttemptError, before: Option<&AttemptError>) -> bool {
    let is_of_other_rows = [
        PgSqlErrorCode::ERRCODE_UNIQUE_VIOLATION,
        PgSqlErrorCode::ERRCODE_FOREIGN_KEY_VIOLATION,
        PgSqlErrorCode::ERRCODE_EXCLUSION_VIOLATION,
    ];
    let is_of_before = before.is_some_and(|before| {
        before.code == failure.code || failure.code == PgSqlErrorCode::ERRCODE_NOT_NULL_VIOLATION
    });
    !is_of_before && !is_of_other_rows.contains(&failure.code)
}

/// Whether triggers wait for the end of this transaction, whoever's code they run: the try would have
/// them run, as another role, and before their time.
fn others_wait(client: &SpiClient) -> Result<bool, Error> {
    let tables = catalogue::look(|| rows(client, DEFERRABLE, &[], |row| oid(row, 1)));
    Ok(tables.map_err(unread)?.iter().any(|table| questions::waits_for_end(table.0.into())))
}

/// What a plan says of the try: where the catalogue shows that no row can be written, by the defaults
/// or as a copy. What triggers fill in or refuse, it does not show.
///
/// # Errors
/// Where the catalogue cannot be read.
pub fn foreseen(client: &SpiClient, keys: &[Facts]) -> Result<Vec<String>, Error> {
    const MEANS: &str = "whether rows can be written after the move is then not seen, and snowflake_adopt() warns";
    if !settings::probe() {
        return Ok(vec!["no trial row is written, as pg_snowflake.probe is off".to_owned()]);
    }
    let mut notes = Vec::new();
    for facts in keys {
        let arguments = [pg_sys::Oid::from(facts.key().relation.0).into(), facts.key().number.into()];
        let found = catalogue::look(|| {
            rows(client, FORESEEN, &arguments, |row| Ok((texts(row, 1)?, texts(row, 2)?, flag(row, 3)?)))
        });
        let Some((lacking, repeated, is_empty)) = found.map_err(unread)?.into_iter().next() else { continue };
        let of_copy = match &*repeated {
            _ if is_empty => "there is no row to copy".to_owned(),
            [] => continue,
            [index, ..] => format!("a copy of the newest row is no other one for the unique index {index}"),
        };
        if !lacking.is_empty() {
            notes.push(format!(
                "the trial row of {} will probably fail before the move already: a row of defaults lacks a value of {}; {of_copy}: {MEANS}",
                facts.key_names().0,
                lacking.join(" and ")
            ));
        }
    }
    Ok(notes)
}

impl Probe {
    /// Tries all before the move.
    fn begin(&mut self, client: &mut SpiClient, holds: &Holds) -> Result<(), Error> {
        for place in 0..self.attempts.len() {
            let attempt = &self.attempts[place];
            self.attempts[place].outcome = self.tried(client, holds, attempt.kind, &attempt.before)?;
        }
        Ok(())
    }

    fn tried(&self, client: &mut SpiClient, holds: &Holds, kind: AttemptKind, trial: &Trial) -> Result<Tried, Error> {
        let done = Cell::new(0);
        let written = undone(|| {
            self.owner.run(|| {
                let mut run = |statement: &str| holds.statement(statement).update(client);
                run(&self.path)?;
                if !self.others_wait {
                    run("SET CONSTRAINTS ALL IMMEDIATE")?;
                }
                trial.first.iter().try_for_each(|statement| run(statement))?;
                done.set(1);
                let Some(mut at) = place(client, holds, &trial.write)? else { return Ok(None) };
                for statement in &trial.then {
                    done.set(done.get() + 1);
                    let statement = format!("{statement}{at} RETURNING tableoid, ctid::pg_catalog.text");
                    let Some(now) = place(client, holds, &statement)? else { break };
                    at = now;
                }
                Ok::<_, spi::Error>(Some(()))
            })
        });
        match written {
            Ok(result) => Ok(match result.map_err(unread)? {
                None if kind != AttemptKind::Defaults && !self.has_rows => Tried::NoRow,
                _ => Tried::Written,
            }),
            Err(failure) => Ok(Tried::Failed(done.get(), failure)),
        }
    }

    /// Whether a row was written now.
    fn is_written(&self, outcomes: &[Tried]) -> bool {
        let mut of_both = self.attempts.iter().zip(outcomes);
        of_both.any(|(attempt, outcome)| attempt.kind != AttemptKind::Change && matches!(outcome, Tried::Written))
            || self.attempts.iter().all(|attempt| attempt.kind == AttemptKind::Change)
    }

    /// No row could be written, before the move or after it.
    fn untried(&self, outcomes: &[Tried]) -> Error {
        let said = |kind: AttemptKind| {
            // What stands alone comes last.
            let mut attempts = self.attempts.iter().zip(outcomes).rev().filter(|(attempt, _)| attempt.kind == kind);
            let failure = attempts.find_map(|(attempt, now)| attempt.outcome.failure().or(now.failure()))?;
            let detail = failure.detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}"));
            Some(format!("{}{detail}", failure.message))
        };
        MovingError::Untried {
            table: self.table.clone(),
            by_defaults: said(AttemptKind::Defaults).unwrap_or_default(),
            by_copy: said(AttemptKind::Copy),
            others_wait: self.others_wait,
        }
        .into()
    }
}

/// Writes a row, and says where it is, if it is asked for that; `None` where there is none.
fn place(client: &SpiClient, holds: &Holds, statement: &str) -> Result<Option<String>, spi::Error> {
    let table = holds.statement(statement).select(client, &[])?;
    if table.is_empty() {
        return Ok(None);
    }
    if table.columns().is_err() {
        return Ok(Some(String::new()));
    }
    let row = table.first();
    let (partition, at) = (row.get::<pg_sys::Oid>(1)?, row.get::<String>(2)?);
    Ok(partition.zip(at).map(|(partition, at)| format!(
            "tableoid OPERATOR(pg_catalog.=) '{}'::pg_catalog.oid AND ctid OPERATOR(pg_catalog.=) '{at}'::pg_catalog.tid",
            partition.to_u32()
        )))
}
