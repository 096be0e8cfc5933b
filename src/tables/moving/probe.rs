//! A row that is written and taken back, before a move and after it: what fails afterwards and did not before would break clients.
//! Triggers, defaults and constraints run as the owner of the table, in a restricted operation. Sequences that they ask leave a gap.

use super::meanwhile::unread;
use super::{
    catalogue,
    rows::{rows, text},
};
use crate::errors::Error;
use crate::errors::moving::MovingError;
use crate::postgres::held::Holds;
use crate::postgres::restricted::Owner;
use crate::postgres::subtransaction::{AttemptError, undone};
use crate::settings;
use pgrx::prelude::*;
use pgrx::spi::SpiClient;
use snowflake_moving::{Facts, Width};

const ROW: &str = include_str!("probe/row.sql");

/// How a table is tried: what the defaults make, and what the newest row has.
pub struct Probe {
    table: String,
    owner: Owner,
    /// Sets the path for functions that name no schema: that of the table is on it where nobody else can create anything there.
    path: String,
    /// The INSERTs before the move, with a key of their own, as the sequence is not to be asked; and after it.
    before: [String; 2],
    after: [String; 2],
    /// What came of those before it.
    failures: [Option<AttemptError>; 2],
}

/// Tries the tables as they are; none where that is turned off.
pub fn before(client: &mut SpiClient, holds: &Holds, owner: Owner, keys: &[Facts]) -> Result<Vec<Probe>, Error> {
    if !settings::probe() {
        return Ok(Vec::new());
    }
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
        let mut probe = Probe { table: table.to_owned(), owner, path, before, after, failures: [None, None] };
        probe.failures = probe.tried(client, holds, &probe.before)?;
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
        let failures = probe.tried(client, holds, &probe.after)?;
        for (failure, before) in failures.into_iter().zip(&probe.failures) {
            if let Some(failure) = failure.filter(|failure| is_new(failure, before.as_ref())) {
                let error = MovingError::Unwritable(probe.table.clone(), failure.message, failure.detail, has_waived);
                if !has_waived {
                    return Err(error.into());
                }
                Error::from(error).warn();
            }
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

impl Probe {
    fn tried(
        &self,
        client: &mut SpiClient,
        holds: &Holds,
        statements: &[String; 2],
    ) -> Result<[Option<AttemptError>; 2], Error> {
        let mut attempt = |statement: &str| {
            let written = undone(|| {
                self.owner.run(|| {
                    holds.statement(&self.path).update(client)?;
                    holds.statement(statement).update(client)
                })
            });
            match written {
                Ok(result) => result.map(|()| None).map_err(unread),
                Err(failure) => Ok(Some(failure)),
            }
        };
        Ok([attempt(&statements[0])?, attempt(&statements[1])?])
    }
}
