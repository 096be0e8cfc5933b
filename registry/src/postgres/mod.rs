//! A registry in any PostgreSQL database, in tables that it makes if they are missing.
//!
//! # What it needs
//!
//! A role that may create the schema `snowflake_registry` in the database; or, where somebody else has made the tables (with
//! [`TABLES`]), one with USAGE on the schema, and SELECT, INSERT and UPDATE on the tables. PostgreSQL 10 or
//! later. PgBouncer may stand between, also with `pool_mode = transaction`: no statement is prepared, and settings are those
//! of one transaction.
//!
//! # What it keeps, and what not
//!
//! * Durable: each change is committed with `synchronous_commit = on` before it counts as stored, which needs `fsync = on`.
//! * Where the primary fails over to an asynchronous standby, the registry is rolled back, and **workers can be granted
//!   twice**. So a registry with failover needs `synchronous_standby_names`, and a failover to synchronous standbys only.
//!   Then each change waits for one. If that wait is ended by hand, the change counts as unanswered, not as stored.
//! * A restored backup of the registry is an older registry.
//! * Standbys, and other servers that are read-only, are not used: the next host is tried.
//! * `statement_timeout` and `lock_timeout` are those of the call's deadline, so a change that was given up ends in the
//!   server, too; but one that waits for a synchronous standby goes on waiting there.
//!
//! # Who may read what
//!
//! Nobody but the owner may read the tables: a token lets its reader renew the lease of another server. To show them to
//! others, grant the other columns: `GRANT SELECT (namespace, worker, granted_from, granted_until, host, data_directory,
//! port, cluster_name, written_at) ON snowflake_registry.workers TO …`. Members of `pg_read_all_data` read all.
//!
//! # TLS and authentication
//!
//! TLS as `sslmode` says, where `prefer` uses it if the server has it, and does not go on without if it fails. Passwords by
//! SCRAM, bound to the TLS connection where there is one; by MD5; or in clear text. As with libpq, the server chooses, but that
//! without TLS it gets no clear text: whoever stands between could say that it has no TLS, and ask for the password. Two
//! exceptions: a server on the same machine, and `sslmode=disable`. With TLS the server gets it; with `sslmode=verify-full` it is
//! the right one.

mod frames;
mod session;
mod statements;

pub use statements::TABLES;

use crate::error::Error;
use crate::net::{Fault, Protocol, Stream, Tls, Turns, confirmed};
use crate::text::{check, check_namespace, new_version, read_life, read_token};
use crate::url::{Host, Url, UseTls};
use crate::{Namespace, Options, Protection, Registry, Swap};
use session::{Login, Row, Session};
use snowflake_core::UnixMicros;
use snowflake_core::lease::{Holder, NamespaceRecord, Record, Stored, Version, WorkerNumber};

/// One namespace of a registry in PostgreSQL.
pub struct Postgres {
    turns: Turns<Server>,
    namespace: Namespace,
    begin: String,
}

impl Postgres {
    /// Reads the files that the URL names, and connects with nobody yet.
    ///
    /// # Errors
    /// [`Error::Invalid`], where a file of certificates cannot be used.
    pub fn open(url: &Url, namespace: &Namespace, options: &Options) -> Result<Self, Error> {
        let tls = match url.use_tls {
            UseTls::Never => None,
            UseTls::IfOffered | UseTls::Always => Some(Tls::new(&url.tls).map_err(Error::Invalid)?),
        };
        let login = Login {
            user: url.user.clone().unwrap_or_default(),
            password: url.password.clone(),
            database: url.database.clone(),
            use_tls: url.use_tls,
            tls,
        };
        let begin = statements::begin(options.deadline());
        let server = Server { login, begin: begin.clone() };
        Ok(Self { turns: Turns::new(server, url, options)?, namespace: namespace.clone(), begin })
    }
}

struct Server {
    login: Login,
    begin: String,
}

impl Protocol for Server {
    type Session = Session;

    async fn open(&self, stream: Stream, host: &Host) -> Result<Session, Fault> {
        let session = self.login.connect(stream, host).await?;
        // Only a server that takes changes will do: another one's tables may be those of a moment ago.
        let found = session.run(statements::LOOK).await?;
        let looked = only_row(found)?;
        let is_true = |column: usize| looked.get(column).is_some_and(|value| value.as_deref() == Some("t"));
        if is_true(0) {
            return Err(Fault::NotHere("it is a standby, or read-only".to_owned()));
        }
        if !is_true(1) {
            session.transaction(&self.begin, &statements::create(!is_true(2))).await?;
        }
        Ok(session)
    }

    fn is_encrypted(&self, session: &Session) -> bool {
        session.is_encrypted
    }

    async fn close(session: Session) {
        session.close().await;
    }
}

fn only_row(results: impl IntoIterator<Item = Vec<Row>>) -> Result<Row, Fault> {
    let row = results.into_iter().flatten().next();
    row.ok_or_else(|| Fault::Unclear("no row where there must be one".to_owned()))
}

impl Registry for Postgres {
    fn namespace(&mut self) -> Result<Option<NamespaceRecord>, Error> {
        let Self { turns, namespace, .. } = self;
        let statement = statements::namespace_of(namespace);
        turns.read(async |session| of_namespace(&session.run(&statement).await?, namespace))
    }

    fn swap_namespace(
        &mut self,
        expected: Option<&NamespaceRecord>,
        record: &NamespaceRecord,
    ) -> Result<Option<NamespaceRecord>, Error> {
        check_namespace(record)?;
        let Self { turns, namespace, begin } = self;
        let statements = statements::swap_namespace(namespace, expected, record);
        turns.change(async |session| {
            let results = session.transaction(begin, &statements).await?;
            of_namespace(results.get(1..2).unwrap_or_default(), namespace)
        })
    }

    fn records(&mut self) -> Result<Vec<(WorkerNumber, Stored)>, Error> {
        let Self { turns, namespace, .. } = self;
        let statement = statements::records_of(namespace);
        turns.read_all(async |session| {
            let results = session.run(&statement).await?;
            results.iter().flatten().map(|row| stored(row, namespace)).collect()
        })
    }

    fn record(&mut self, worker: WorkerNumber) -> Result<Option<Stored>, Error> {
        let Self { turns, namespace, .. } = self;
        let statement = statements::record_of(namespace, worker);
        turns.read(async |session| {
            let results = session.run(&statement).await?;
            let row = results.iter().flatten().next();
            row.map(|row| stored(row, namespace).map(|(_, stored)| stored)).transpose()
        })
    }

    fn swap_within(
        &mut self,
        within: Option<&NamespaceRecord>,
        worker: WorkerNumber,
        expected: Option<Version>,
        record: &Record,
    ) -> Result<Swap, Error> {
        check(worker, record)?;
        let Self { turns, namespace, begin } = self;
        let statements = statements::compare_and_swap(namespace, within, worker, (expected, new_version()?), record);
        turns.change(async |session| {
            let results = session.transaction(begin, &statements).await?;
            let [found, changed, stands, _] = &results[..] else {
                return Err(Fault::Unclear("fewer answers than questions".to_owned()));
            };
            let stands = stands.first().map(|row| stored(row, namespace)).transpose();
            if changed.is_empty() && within.is_some() {
                let found = of_namespace(std::slice::from_ref(found), namespace)?;
                if found.as_ref() != within {
                    return Ok(Swap::OtherNamespace(found));
                }
            }
            if changed.is_empty() {
                return stands.map(|stands| Swap::Conflict(stands.map(|(_, stored)| stored)));
            }
            let version = changed.iter().flatten().flatten().next().and_then(|version| version.parse().ok());
            let stands = stands.ok().flatten().filter(|(number, _)| *number == worker).map(|(_, stored)| stored);
            confirmed(record, version.map(Version), stands.as_ref())
        })
    }

    fn warnings(&mut self) -> Result<Vec<String>, Error> {
        let row = self.turns.read(async |session| only_row(session.run(statements::DURABILITY).await?))?;
        let setting = |column: usize| row.get(column).and_then(Option::as_deref).unwrap_or_default();
        let mut warnings = Vec::new();
        for (column, name) in [(0, "fsync"), (1, "full_page_writes")] {
            if setting(column) == "off" {
                warnings.push(format!(
                    "The registry has {name} = off: a crash of its machine can roll it back, and workers can then be \
                     granted twice. Set it to on."
                ));
            }
        }
        if setting(2).is_empty() && setting(3) != "0" {
            warnings.push(
                "The registry has standbys, and none is synchronous: a failover can roll it back, and workers can then \
                 be granted twice. Set synchronous_standby_names."
                    .to_owned(),
            );
        }
        Ok(warnings)
    }

    fn time(&mut self) -> Result<Option<UnixMicros>, Error> {
        let row = self.turns.read(async |session| only_row(session.run(statements::TIME).await?))?;
        Ok(row.first().and_then(Option::as_deref).and_then(|micros| micros.parse().ok()).map(UnixMicros))
    }

    fn protection(&self) -> Option<Protection> {
        self.turns.protection()
    }
}

fn check_format(format: &str, place: impl Fn() -> String) -> Result<(), Fault> {
    let known = crate::text::FORMAT;
    match format == known.to_string() {
        true => Ok(()),
        false => Err(Fault::Unexpected {
            place: place(),
            what: format!("its format is {format}, and this version of pg_snowflake knows format {known} only"),
        }),
    }
}

/// What [`statements::namespace_of`] has found.
fn of_namespace(results: &[Vec<Row>], namespace: &Namespace) -> Result<Option<NamespaceRecord>, Fault> {
    let Some(row) = results.iter().flatten().next() else { return Ok(None) };
    let text = |column: usize| row.get(column).and_then(Option::as_deref);
    let place = || format!("snowflake_registry.namespaces, namespace {namespace}");
    check_format(text(0).unwrap_or_default(), place)?;
    let wrong = |what: &str| Fault::Unexpected { place: place(), what: format!("{what} cannot be read") };
    let instant = |text: &str| UnixMicros::parse(&shortest(text)).ok_or_else(|| wrong("leases_from"));
    Ok(Some(NamespaceRecord {
        layout: text(1).ok_or_else(|| wrong("the layout"))?.to_owned(),
        life: text(2).and_then(read_life).ok_or_else(|| wrong("the life"))?,
        leases_from: text(3).map(instant).transpose()?,
    }))
}

/// A row of [`statements::record_of`].
fn stored(row: &Row, namespace: &Namespace) -> Result<(WorkerNumber, Stored), Fault> {
    let text = |column: usize| row.get(column).and_then(Option::as_deref).unwrap_or_default();
    let place = || format!("snowflake_registry.workers, namespace {namespace}, worker {}", text(1));
    check_format(text(0), place)?;
    let wrong = |what: &str| Fault::Unexpected { place: place(), what: format!("{what} cannot be read") };
    let owner = match row.get(3).and_then(Option::as_deref) {
        Some(token) => Some(read_token(token).ok_or_else(|| wrong("the token"))?),
        None => None,
    };
    let instant = |column: usize, name: &str| UnixMicros::parse(&shortest(text(column))).ok_or_else(|| wrong(name));
    let worker = text(1).parse().map_err(|_| wrong("the number of the worker"))?;
    let version = text(2).parse().map_err(|_| wrong("the version"))?;
    let record = Record {
        owner,
        granted_from: instant(4, "granted_from")?,
        granted_until: instant(5, "granted_until")?,
        holder: Holder {
            host: text(6).to_owned(),
            data_directory: text(7).to_owned(),
            port: text(8).parse().map_err(|_| wrong("the port"))?,
            cluster_name: text(9).to_owned(),
            system_identifier: text(10).parse().map_err(|_| wrong("the system identifier"))?,
            process: text(11).to_owned(),
        },
    };
    Ok((WorkerNumber(worker), Stored { version: Version(version), record }))
}

/// An instant with six decimals as [`UnixMicros`] writes it: with six, three or none.
fn shortest(instant: &str) -> String {
    let Some(digits) = instant.strip_suffix('Z') else { return instant.to_owned() };
    let digits = digits.strip_suffix("000").unwrap_or(digits);
    let digits = digits.strip_suffix(".000").unwrap_or(digits);
    format!("{digits}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_of_postgresql_are_read() {
        for (read, written) in [
            ("2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00Z"),
            ("2026-01-01T10:00:00.120000Z", "2026-01-01T10:00:00.120Z"),
            ("2026-01-01T00:00:00.000120Z", "2026-01-01T00:00:00.000120Z"),
            ("2026-01-01T00:00:00.100001Z", "2026-01-01T00:00:00.100001Z"),
        ] {
            assert_eq!(shortest(read), written);
            assert_eq!(UnixMicros::parse(&shortest(read)).unwrap().to_string(), written);
        }
        assert_eq!(UnixMicros::parse(&shortest("")), None);
    }
}
