//! What the catalogue says of a table, for the plans of [`snowflake_moving`]. All queries run with a `search_path` of
//! `pg_catalog` alone, so no object of another schema can be taken for one of PostgreSQL's, and all names that they
//! return are qualified; and without row-level security, which would hide values.

use super::rows::{Result, Unread, composed, flag, maybe_text, oid, oids, places, rows, text, texts, width};
use crate::generator;
use crate::postgres::subtransaction::undone;
use crate::postgres::{domain, encoding, integers, own, restricted};
use pgrx::prelude::*;
use pgrx::spi::{SpiClient, SpiHeapTupleData};
use snowflake_moving::target::{Candidate, Table, TableKind};
use snowflake_moving::{
    Column, Facts, ForeignKey, Function, LastValue, Oid, Options, PartitionedByKey, Relation, Role, Sequence, Source,
    Width, Writer,
};

const CALL: &str = include_str!("catalogue/call.sql");
const CASTS: &str = include_str!("catalogue/casts.sql");
const CHECKS: &str = include_str!("catalogue/checks.sql");
const CLOSED_TO: &str = include_str!("catalogue/closed_to.sql");
const COLUMNS: &str = include_str!("catalogue/columns.sql");
const DOMAIN_CHECKS: &str = include_str!("catalogue/domain_checks.sql");
const FOREIGN_KEYS: &str = include_str!("catalogue/foreign_keys.sql");
const FUNCTIONS: &str = include_str!("catalogue/functions.sql");
const KEY_CHECKS: &str = include_str!("catalogue/key_checks.sql");
const LEFT_OUT: &str = include_str!("catalogue/left_out.sql");
const PARTITIONED: &str = include_str!("catalogue/partitioned.sql");
const PUBLICATIONS: &str = include_str!("catalogue/publications.sql");
const REACHED: &str = include_str!("catalogue/reached.sql");
const RELATIONS: &str = include_str!("catalogue/relations.sql");
const SEQUENCES: &str = include_str!("catalogue/sequences.sql");
const SESSIONS: &str = include_str!("catalogue/sessions.sql");
const SMALL_ARGUMENTS: &str = include_str!("catalogue/small_arguments.sql");
const TABLE: &str = include_str!("catalogue/table.sql");
const UNSEEN: &str = include_str!("catalogue/unseen.sql");
const WRITERS: &str = include_str!("catalogue/writers.sql");

/// A part of queries for columns.
const WIDTH: (&str, &str) = (":width", include_str!("catalogue/width.sql"));

/// A part of queries for roles.
const GRANTEES: (&str, &str) = (":grantees", include_str!("catalogue/grantees.sql"));

/// A column that was chosen.
pub struct Chosen {
    /// Its table.
    pub table: pg_sys::Oid,
    /// Its number.
    pub number: i16,
    /// Its name, not quoted.
    pub name: String,
    /// Where its values come from.
    pub source: Source,
    /// Whether it is NOT NULL.
    pub is_not_null: bool,
}

/// What there is to choose a column from.
pub struct Choice {
    /// The name of the table, for errors.
    pub name: String,
    /// For [`snowflake_moving::target::choose`].
    pub table: Table,
    /// The same for each of the table's columns.
    pub columns: Vec<Chosen>,
}

/// Runs queries of this module, and statements that were made of definitions of the catalogue.
pub fn look<T>(queries: impl FnOnce() -> T) -> T {
    restricted::with(&[restricted::SAFE_PATH, (c"row_security", c"off"), (c"default_tablespace", c"")], queries)
}

/// What a relation and its columns are; `None` where it does not exist.
pub fn choice(client: &SpiClient, table: pg_sys::Oid) -> Result<Option<Choice>> {
    let found = rows(client, TABLE, &[table.into()], |row| {
        let table = Table {
            kind: match &*text(row, 1)? {
                "r" | "p" => TableKind::Table,
                "v" => TableKind::Other("a view"),
                "m" => TableKind::Other("a materialized view"),
                "f" => TableKind::Other("a foreign table"),
                "S" => TableKind::Other("a sequence"),
                "i" | "I" => TableKind::Other("an index"),
                "c" => TableKind::Other("a composite type"),
                _ => TableKind::Other("a TOAST table"),
            },
            is_system: flag(row, 2)?,
            is_others_temporary: flag(row, 3)?,
            is_partition: flag(row, 4)?,
            parents: texts(row, 5)?,
            columns: Vec::new(),
        };
        Ok((text(row, 6)?, table))
    })?;
    let Some((name, mut found)) = found.into_iter().next() else { return Ok(None) };
    let (next, _) = next(client)?;
    let mut columns = Vec::new();
    found.columns = rows(client, &composed(COLUMNS, &[WIDTH]), &[table.into(), next.into()], |row| {
        let (is_identity, is_generated) = (flag(row, 8)?, flag(row, 6)?);
        let expression = maybe_text(row, 9)?;
        let makes_ids = flag(row, 10)?;
        // `nextval` of a name that is no regclass depends on no sequence.
        let by_sequence = flag(row, 11)? || expression.as_ref().is_some_and(|text| text.starts_with("nextval("));
        columns.push(Chosen {
            table,
            number: row.get(1)?.unwrap_or_default(),
            name: text(row, 2)?,
            source: match expression {
                _ if is_identity => Source::Identity { is_always: flag(row, 13)? },
                _ if makes_ids => Source::Snowflake,
                Some(expression) => Source::Default(expression),
                None => Source::Given,
            },
            is_not_null: flag(row, 12)?,
        });
        Ok(Candidate {
            name: text(row, 2)?,
            width: width(row, 3)?,
            type_name: text(row, 4)?,
            is_bigint_domain: flag(row, 5)?,
            is_generated,
            is_primary: flag(row, 7)?,
            is_numbered: !is_generated && (is_identity || makes_ids || by_sequence),
        })
    })?;
    Ok(Some(Choice { name, table: found, columns }))
}

/// All facts of a column but its values, and the views that depend on it.
pub fn facts(client: &SpiClient, chosen: &Chosen) -> Result<Facts> {
    let (function, next) = next(client)?;
    let columns = reached(client, chosen, function)?;
    let mut tables: Vec<pg_sys::Oid> = columns.iter().map(|column| column.relation.0.into()).collect();
    let foreign_keys = foreign_keys(client, &tables)?;
    let mut functions = functions(client, &tables)?;
    for function in &mut functions {
        function.small_calls = Facts::calls_with_a_key(&columns, function);
        let (names, places): (Vec<String>, Vec<i32>) = function
            .small_calls
            .iter()
            .map(|call| (call.name.clone(), i32::try_from(call.place).unwrap_or(i32::MAX)))
            .unzip();
        if !names.is_empty() {
            let are_small = rows(client, SMALL_ARGUMENTS, &[names.into(), places.into()], |row| flag(row, 1))?;
            let mut are_small = are_small.into_iter();
            function.small_calls.retain(|_| are_small.next().unwrap_or_default());
        }
    }
    let partitioned = rows(client, PARTITIONED, &places(&columns.iter().collect::<Vec<_>>()), |row| {
        Ok(PartitionedByKey { table: oid(row, 1)?, bounds: texts(row, 2)? })
    })?;
    let casts = rows(client, CASTS, &places(&columns.iter().collect::<Vec<_>>()), |row| text(row, 1))?;
    let publications = rows(client, PUBLICATIONS, &[tables.clone().into()], |row| text(row, 1))?;
    let sessions = client.select(SESSIONS, Some(1), &[])?.first().get::<i64>(1)?.unwrap_or_default().unsigned_abs();
    let checks = checks(client, &tables, &columns)?;
    tables.extend(foreign_keys.iter().flat_map(|key| [key.from, key.to]).map(|oid| pg_sys::Oid::from(oid.0)));
    let relations = relations(client, tables)?;
    let sequences = sequences(client, chosen)?;
    let writers = writers(client, chosen, function)?;
    let widened: Vec<&Column> = columns.iter().filter(|column| column.width != Some(Width::Eight)).collect();
    let (mut left_out, mut statistics_of_others) = (Vec::new(), Vec::new());
    for (statement, of_others) in
        rows(client, LEFT_OUT, &places(&widened), |row| Ok((text(row, 1)?, maybe_text(row, 2)?)))?
    {
        match of_others {
            Some(statistics) => statistics_of_others.push(statistics),
            None => left_out.push(statement),
        }
    }
    let source = chosen.source.clone();
    let (values, views, refused_by, refused_by_checks) = (None, Vec::new(), Vec::new(), Vec::new());
    let facts = Facts {
        relations,
        columns,
        foreign_keys,
        writers,
        source,
        sequences,
        values,
        next,
        functions,
        partitioned,
        publications,
        sessions,
        views,
        checks,
        refused_by,
        casts,
        refused_by_checks,
        left_out,
        statistics_of_others,
    };
    facts.whole().ok_or(Unread::Gone)
}

/// The column and all that hold the same values. `next` is `snowflake_next()`.
fn reached(client: &SpiClient, chosen: &Chosen, next: pg_sys::Oid) -> Result<Vec<Column>> {
    let arguments = [chosen.table.into(), chosen.number.into(), next.into()];
    rows(client, &composed(REACHED, &[WIDTH]), &arguments, |row| {
        Ok(Column {
            relation: oid(row, 1)?,
            number: row.get(7)?.unwrap_or_default(),
            name: text(row, 2)?,
            width: width(row, 3)?,
            type_name: text(row, 4)?,
            parents: oids(row, 5)?,
            dependents: texts(row, 6)?,
            default: maybe_text(row, 8)?,
            makes_ids: flag(row, 9)?,
        })
    })
}

fn foreign_keys(client: &SpiClient, tables: &[pg_sys::Oid]) -> Result<Vec<ForeignKey>> {
    rows(client, FOREIGN_KEYS, &[tables.to_vec().into()], |row| {
        let (from, to) = (texts(row, 4)?, texts(row, 5)?);
        Ok(ForeignKey {
            name: text(row, 1)?,
            from: oid(row, 2)?,
            to: oid(row, 3)?,
            columns: from.into_iter().zip(to).collect(),
            definition: text(row, 6)?,
            comment: maybe_text(row, 7)?,
            is_disabled: flag(row, 8)?,
            included: texts(row, 9)?,
        })
    })
}

/// What runs for a row of the tables, or names one of them.
fn functions(client: &SpiClient, tables: &[pg_sys::Oid]) -> Result<Vec<Function>> {
    rows(client, FUNCTIONS, &[tables.to_vec().into()], |row| {
        Ok(Function {
            oid: oid(row, 1)?,
            name: text(row, 2)?,
            callers: texts(row, 3)?,
            source: text(row, 4)?,
            is_plpgsql: flag(row, 5)?,
            small_calls: Vec::new(),
            renewal: maybe_text(row, 6)?,
            owner: oid(row, 7)?,
            row_tables: oids(row, 8)?,
        })
    })
}

/// The CHECK constraints on these columns of the tables.
fn checks(client: &SpiClient, tables: &[pg_sys::Oid], columns: &[Column]) -> Result<Vec<String>> {
    let all = rows(client, CHECKS, &[tables.to_vec().into()], |row| {
        Ok((oid(row, 1)?, text(row, 2)?, format!("{}: {}", text(row, 3)?, text(row, 4)?)))
    })?;
    let is_reached = |relation: &Oid, name: &str| columns.iter().any(|it| it.relation == *relation && it.name == name);
    let checks = all.into_iter().filter(|(relation, name, _)| is_reached(relation, name)).map(|(.., check)| check);
    let mut checks: Vec<String> = checks.collect();
    checks.dedup();
    Ok(checks)
}

fn relations(client: &SpiClient, tables: Vec<pg_sys::Oid>) -> Result<Vec<Relation>> {
    rows(client, RELATIONS, &[tables.into()], |row| {
        Ok(Relation {
            oid: oid(row, 1)?,
            name: text(row, 2)?,
            owner: Role { oid: oid(row, 6)?, name: text(row, 7)?, is_caller: flag(row, 8)?, may_create: flag(row, 9)? },
            is_owned: flag(row, 3)?,
            heirs_of_others: texts(row, 10)?,
            is_partition: flag(row, 4)?,
            has_unlogged_sequences: cfg!(since_pg15) && flag(row, 11)?,
            is_foreign: flag(row, 12)?,
            partitions: texts(row, 13)?,
            bytes: row.get(5)?.ok_or(Unread::Gone)?,
        })
    })
}

/// The roles that may insert rows. `next` is `snowflake_next()`.
fn writers(client: &SpiClient, chosen: &Chosen, next: pg_sys::Oid) -> Result<Vec<Writer>> {
    rows(client, &composed(WRITERS, &[GRANTEES]), &[chosen.table.into(), next.into()], |row| {
        Ok(Writer { name: text(row, 1)?, may_make_ids: flag(row, 2)? })
    })
}

/// The sequences of the column; where they are to make values again, with the roles that may not have any.
fn sequences(client: &SpiClient, chosen: &Chosen) -> Result<Vec<Sequence>> {
    let mut sequences = rows(client, SEQUENCES, &[chosen.table.into(), chosen.number.into()], sequence)?;
    if chosen.source == Source::Snowflake {
        for sequence in &mut sequences {
            let arguments = [chosen.table.into(), pg_sys::Oid::from(sequence.oid.0).into()];
            sequence.closed_to = rows(client, &composed(CLOSED_TO, &[GRANTEES]), &arguments, |row| text(row, 1))?;
        }
    }
    Ok(sequences)
}

fn sequence(row: &SpiHeapTupleData) -> Result<Sequence> {
    let number = |column| -> Result<i64> { Ok(row.get(column)?.unwrap_or_default()) };
    Ok(Sequence {
        oid: oid(row, 5)?,
        name: text(row, 1)?,
        is_owned_by_key: flag(row, 2)?,
        is_identity: flag(row, 3)?,
        is_default: flag(row, 6)?,
        users: texts(row, 4)?,
        callers: texts(row, 7)?,
        closed_to: Vec::new(),
        options: Options {
            width: width(row, 8)?.unwrap_or(Width::Eight),
            start: number(9)?,
            increment: number(10)?,
            min: number(11)?,
            max: number(12)?,
            cache: number(13)?,
            cycles: flag(row, 14)?,
        },
        position: None,
        is_unlogged: flag(row, 15)?,
        comment: maybe_text(row, 16)?,
        grants: texts(row, 17)?.into_iter().zip(oids(row, 18)?).collect(),
    })
}

/// Where a sequence is. On a standby, nobody can know that of an unlogged one.
pub fn position(sequence: &Sequence) -> Option<LastValue> {
    let is_lost = sequence.is_unlogged && generator::is_in_recovery();
    let position = integers::position(sequence.oid.0.into()).filter(|_| !is_lost)?;
    Some(LastValue { last: position.last, is_called: position.is_called })
}

/// What keeps the caller from being told the values of a column.
pub enum Unseen {
    /// He may not use the schema, or not read the column, or not all rows.
    Privileges,
    /// Some are in this foreign table. It would be read with what its owner may do on the other server.
    Foreign(String),
}

/// Whether the caller may know the values of a column: `None`, or what keeps him from it. A table is given by its OID, which whoever may not
/// use its schema has, too.
pub fn unseen(client: &SpiClient, chosen: &Chosen) -> Result<Option<Unseen>> {
    let arguments = [chosen.table.into(), chosen.number.into()];
    let found = rows(client, UNSEEN, &arguments, |row| {
        let is_readable: Option<bool> = row.get(1)?;
        let foreign = maybe_text(row, 2)?;
        Ok(if is_readable.ok_or(Unread::Gone)? { foreign.map(Unseen::Foreign) } else { Some(Unseen::Privileges) })
    })?;
    found.into_iter().next().ok_or(Unread::Gone)
}

/// The constraints of the columns' domains that a value does not pass. They may call anything.
pub fn refused_by(client: &SpiClient, facts: &Facts, value: i64) -> Result<Vec<String>> {
    // A domain over another type is in the way itself.
    let columns: Vec<&Column> = facts.columns.iter().filter(|column| column.width == Some(Width::Eight)).collect();
    let checks = rows(client, DOMAIN_CHECKS, &places(&columns), |row| Ok((text(row, 1)?, text(row, 2)?)))?;
    let is_passed = |expression: &str| domain::is_passed(&encoding::statement(expression), value);
    Ok(checks.into_iter().filter(|(_, expression)| !is_passed(expression)).map(|(name, _)| name).collect())
}

/// CHECK constraints on one of the columns alone that a value does not pass. They may call anything, and fail.
pub fn refused_by_checks(client: &SpiClient, facts: &Facts, value: i64) -> Result<Vec<String>> {
    let owner = facts.table().map(|table| table.owner.oid);
    let is_of_owner = |column: &&Column| facts.relation(column.relation).map(|relation| relation.owner.oid) == owner;
    let columns: Vec<&Column> = facts.columns.iter().filter(is_of_owner).collect();
    let checks = rows(client, KEY_CHECKS, &places(&columns), |row| Ok((text(row, 1)?, text(row, 2)?, text(row, 3)?)))?;
    let mut refused_by = Vec::new();
    for (name, expression, column) in checks {
        // One that lets some pass, as by a remainder, is left to the row that is tried, as is one that calls functions of others.
        let query = format!(
            "SELECT bool_and(({expression}) IS FALSE) FROM (SELECT $1::pg_catalog.int8 + n AS {column} FROM generate_series(0, 15) n) v"
        );
        let check = format!("{name}: {expression}");
        match undone(|| rows(client, &query, &[value.into()], |row| flag(row, 1))) {
            Ok(is_refused) => refused_by.extend((is_refused? == [true]).then_some(check)),
            Err(failure) => refused_by.push(format!("{check}, which fails for it: {}", failure.message)),
        }
    }
    refused_by.dedup();
    Ok(refused_by)
}

/// `snowflake_next()`: its OID, and its call as a statement writes it.
fn next(client: &SpiClient) -> Result<(pg_sys::Oid, String)> {
    let Some(next) = own::next(client)? else { return Ok((pg_sys::InvalidOid, String::new())) };
    let call = rows(client, CALL, &[next.into()], |row| text(row, 1))?;
    Ok((next, call.into_iter().next().unwrap_or_default()))
}
