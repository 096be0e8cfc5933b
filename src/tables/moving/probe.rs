//! A row that is written and taken back, before a move and after it: what fails afterwards and did not
//! before would break clients. Triggers, defaults and constraints run as the owner of the table, in a
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
use pgrx::spi::SpiClient;
use snowflake_moving::{Facts, Width};

const DEFERRABLE: &str = include_str!("probe/deferrable.sql");
const FORESEEN: &str = include_str!("probe/foreseen.sql");
const ROW: &str = include_str!("probe/row.sql");

/// How a table is tried: what the defaults make, and what the newest row has.
pub struct Probe {
    table: String,
    owner: Owner,
    /// Sets the path for functions that name no schema: that of the table is on it where nobody else can create anything there.
    path: String,
    /// Whether there is a row to copy.
    has_rows: bool,
    /// Whether triggers wait for the end of the transaction. Then deferred constraints are not tried: a row
    /// of a table that has some fails.
    others_wait: bool,
    /// The INSERTs before the move, with a key of their own, as the sequence is not to be asked; and after it.
    before: [String; 2],
    after: [String; 2],
    /// What came of those before it.
    outcomes: [Tried; 2],
}

/// What came of an INSERT.
enum Tried {
    /// It succeeded.
    Written,
    /// There is no row to copy.
    NoRow,
    Failed(AttemptError),
}

impl Tried {
    fn failure(&self) -> Option<&AttemptError> {
        match self {
            Self::Failed(failure) => Some(failure),
            Self::Written | Self::NoRow => None,
        }
    }
}

/// Tries the tables as they are; none where that is turned off.
pub fn before(client: &mut SpiClient, holds: &Holds, owner: Owner, keys: &[Facts]) -> Result<Vec<Probe>, Error> {
    if !settings::probe() {
        return Ok(Vec::new());
    }
    let others_wait = others_wait(client)?;
    let mut probes = Vec::new();
    for facts in keys {
        let (table_oid, number) = (pg_sys::Oid::from(facts.key().relation.0), facts.key().number);
        let found = catalogue::look(|| {
            rows(client, ROW, &[table_oid.into(), number.into()], |row| Ok((text(row, 1)?, text(row, 2)?)))
        });
        let (columns, path) = found.map_err(unread)?.into_iter().next().ok_or_else(super::meanwhile::gone)?;
        let (table, key) = facts.key_names();
        let width = facts.key().width.unwrap_or(Width::Eight);
        let next = facts.values.map_or(Some(1), |values| values.free(width)).unwrap_or(i64::MAX);
        let newest = |key: &str, value: &str| {
            format!(
                "INSERT INTO {table} ({key}{columns}) OVERRIDING SYSTEM VALUE SELECT {value}{columns} FROM {table} ORDER BY {} DESC LIMIT 1",
                facts.key_names().1
            )
        };
        let before = [
            format!("INSERT INTO {table} ({key}) OVERRIDING SYSTEM VALUE VALUES ({next})"),
            newest(key, &next.to_string()),
        ];
        let after = [format!("INSERT INTO {table} DEFAULT VALUES"), newest(key, &facts.next)];
        let mut probe = Probe {
            table: table.to_owned(),
            owner,
            path,
            has_rows: facts.values.is_some(),
            others_wait,
            before,
            after,
            outcomes: [Tried::NoRow, Tried::NoRow],
        };
        probe.outcomes = probe.tried(client, holds, &probe.before)?;
        probes.push(probe);
    }
    Ok(probes)
}

/// Tries them again.
///
/// # Errors
/// Where something fails that did not before; only a warning, where the caller has waived something of which the plan says this.
pub fn after(client: &mut SpiClient, holds: &Holds, probes: &[Probe], has_waived: bool) -> Result<(), Error> {
    for probe in probes {
        let outcomes = probe.tried(client, holds, &probe.after)?;
        let of_both = outcomes.iter().zip(&probe.outcomes);
        let mut new =
            of_both.filter_map(|(now, before)| now.failure().filter(|failure| is_new(failure, before.failure())));
        if let Some(failure) = new.next() {
            let AttemptError { message, detail, .. } = failure.clone();
            let error = Error::from(MovingError::Unwritable(probe.table.clone(), message, detail, has_waived));
            if !has_waived {
                return Err(error);
            }
            error.warn();
        } else if !outcomes.iter().any(|outcome| matches!(outcome, Tried::Written)) {
            probe.untried(&outcomes).warn();
        }
    }
    Ok(())
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
    fn tried(&self, client: &mut SpiClient, holds: &Holds, statements: &[String; 2]) -> Result<[Tried; 2], Error> {
        let mut attempt = |statement: &str| {
            let written = undone(|| {
                self.owner.run(|| {
                    let mut run = |statement: &str| holds.statement(statement).update(client);
                    run(&self.path)?;
                    if !self.others_wait {
                        run("SET CONSTRAINTS ALL IMMEDIATE")?;
                    }
                    run(statement)
                })
            });
            match written {
                Ok(result) => result.map(|()| Tried::Written).map_err(unread),
                Err(failure) => Ok(Tried::Failed(failure)),
            }
        };
        let of_defaults = attempt(&statements[0])?;
        let of_copy = if self.has_rows { attempt(&statements[1])? } else { Tried::NoRow };
        Ok([of_defaults, of_copy])
    }

    /// Neither row could be written, before the move or after it.
    fn untried(&self, outcomes: &[Tried; 2]) -> Error {
        let said = |at: usize| {
            let failure = self.outcomes[at].failure().or(outcomes[at].failure())?;
            let detail = failure.detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}"));
            Some(format!("{}{detail}", failure.message))
        };
        MovingError::Untried {
            table: self.table.clone(),
            by_defaults: said(0).unwrap_or_default(),
            by_copy: said(1),
            others_wait: self.others_wait,
        }
        .into()
    }
}
