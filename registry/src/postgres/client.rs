//! The client.

use super::schema::{Found, TextRow};
use super::session::{PostgresLogin, PostgresSession};
use super::statements::{self, Part};
use crate::address::{Address, Host, UseTls};
use crate::codec::{Fields, Form, NOT_OURS, check_format};
use crate::error::Error;
use crate::net::{Fault, Protocol, Stream, Tls, Turns, confirmed};
use crate::storable::{check, check_namespace, new_version};
use crate::{Namespace, Options, Protection, Registry, Swap};
use snowflake_core::UnixMicros;
use snowflake_core::lease::{NamespaceRecord, Record, Stored, Version, WorkerNumber};
use snowflake_core::segment::{self, Holding, Tag};
use std::time::Duration;

/// One namespace of a registry in PostgreSQL.
pub(super) struct Postgres {
    turns: Turns<PostgresProtocol>,
    namespace: Namespace,
    begin: String,
    /// Whether the tables of segments were seen, and no call has failed since.
    has_segments: bool,
}

impl Postgres {
    /// Reads the files that the address names, and connects with nobody yet.
    ///
    /// # Errors
    /// [`Error::Invalid`], where a file of certificates cannot be used.
    pub fn open(address: &Address, namespace: &Namespace, options: &Options) -> Result<Self, Error> {
        let tls = match address.use_tls {
            UseTls::Never => None,
            UseTls::IfOffered | UseTls::Always => Some(Tls::new(&address.tls).map_err(Error::Invalid)?),
        };
        let login = PostgresLogin {
            user: address.user.clone().unwrap_or_default(),
            password: address.password.clone(),
            database: address.path.clone(),
            use_tls: address.use_tls,
            tls,
        };
        let begin = statements::begin(options.deadline());
        let server = PostgresProtocol { login, begin: begin.clone() };
        Ok(Self {
            turns: Turns::new(server, address, options)?,
            namespace: namespace.clone(),
            begin,
            has_segments: false,
        })
    }

    /// Makes the tables of segments where one is missing, then does something with it.
    fn with_segments<T>(&mut self, call: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if !self.has_segments {
            let begin = &self.begin;
            // What creates it does nothing where it is there: it can be sent again.
            self.turns.read(async |session| provide(session, begin, Part::Segments).await)?;
        }
        let outcome = call(self);
        self.has_segments = outcome.is_ok();
        outcome
    }
}

struct PostgresProtocol {
    login: PostgresLogin,
    begin: String,
}

impl Protocol for PostgresProtocol {
    type Session = PostgresSession;

    async fn open(&self, stream: Stream, host: &Host) -> Result<PostgresSession, Fault> {
        let mut session = self.login.connect(stream, host).await?;
        provide(&mut session, &self.begin, Part::Leases).await?;
        Ok(session)
    }

    fn is_encrypted(&self, session: &PostgresSession) -> bool {
        session.is_encrypted
    }

    async fn close(session: PostgresSession) {
        session.close().await;
    }
}

/// Looks at what the server has in the place of our tables, and makes what it lacks of this part.
async fn provide(session: &mut PostgresSession, begin: &str, part: Part) -> Result<(), Fault> {
    let found = session.look().await?;
    // Only a server that takes changes will do: another one's tables may be those of a moment ago.
    if found.takes_no_changes {
        return Err(Fault::NotHere("it is a standby, or read-only".to_owned()));
    }
    found.check()?;
    if found.has(part) {
        session.found = Some(found);
        return Ok(());
    }
    let with_schema = !found.has_schema();
    // Somebody else may make them at the same time: what is there then is looked at before it counts.
    let made = session.begin_and_look(begin, &part.create(with_schema)).await?;
    made.check()?;
    let last: Vec<String> = made.revocations(&found).into_iter().chain(part.comments(with_schema)).collect();
    session.commit(&last).await?;
    // Without what was taken away.
    session.found = Some(session.look().await?);
    Ok(())
}

fn only_row(results: impl IntoIterator<Item = Vec<TextRow>>) -> Result<TextRow, Fault> {
    let row = results.into_iter().flatten().next();
    row.ok_or_else(|| Fault::Unclear("no row where there must be one".to_owned()))
}

impl Registry for Postgres {
    fn namespace(&mut self) -> Result<Option<NamespaceRecord>, Error> {
        let Self { turns, namespace, .. } = self;
        turns.read(async |session| {
            let statement = statements::namespace_of(namespace, session.shown());
            of_namespace(&session.run(&statement).await?, namespace)
        })
    }

    fn swap_namespace(
        &mut self,
        expected: Option<&NamespaceRecord>,
        record: &NamespaceRecord,
    ) -> Result<Option<NamespaceRecord>, Error> {
        check_namespace(record)?;
        let Self { turns, namespace, begin, .. } = self;
        turns.change(async |session| {
            let statements = statements::swap_namespace(namespace, expected, record, session.shown());
            let results = session.transaction(begin, &statements).await?;
            of_namespace(results.get(2..3).unwrap_or_default(), namespace)
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
        let Self { turns, namespace, begin, .. } = self;
        let versions = (expected, new_version()?);
        turns.change(async |session| {
            let statements = statements::compare_and_swap(namespace, within, worker, versions, record, session.shown());
            let results = session.transaction(begin, &statements).await?;
            let [found, changed, stands, _] = &results[..] else {
                return Err(Fault::Unclear("fewer answers than questions".to_owned()));
            };
            let stands = stands.first().map(|row| stored(row, namespace)).transpose();
            if changed.is_empty() && within.is_some() {
                let found = of_namespace(std::slice::from_ref(found), namespace)?;
                if is_other(found.as_ref(), within) {
                    return Ok(Swap::OtherNamespace(found));
                }
            }
            if changed.is_empty() {
                return stands.map(|stands| Swap::Conflict(stands.map(|(_, stored)| stored)));
            }
            let version = changed.iter().flatten().flatten().next().and_then(|version| version.parse().ok());
            let stands = stands.ok().flatten().filter(|(number, _)| *number == worker).map(|(_, stored)| stored);
            let stands = stands.as_ref().map(|stored| (stored.version, &stored.record));
            confirmed(record, version.map(Version), stands)
        })
    }

    fn segments(&mut self) -> Result<Vec<(Tag, segment::StoredTag)>, Error> {
        self.with_segments(|Self { turns, namespace, .. }| {
            let statement = statements::segments_of(namespace);
            turns.read_all(async |session| {
                let results = session.run(&statement).await?;
                results.iter().flatten().map(|row| stored_segment(row, namespace)).collect()
            })
        })
    }

    fn segment(&mut self, tag: &Tag) -> Result<Option<segment::StoredTag>, Error> {
        self.with_segments(|Self { turns, namespace, .. }| {
            let statement = statements::segment_of(namespace, tag);
            turns.read(async |session| {
                let results = session.run(&statement).await?;
                let row = results.iter().flatten().next();
                row.map(|row| stored_segment(row, namespace).map(|(_, stored)| stored)).transpose()
            })
        })
    }

    fn swap_segment_held(
        &mut self,
        within: &NamespaceRecord,
        write: &segment::TagWrite,
        holding: Option<&(WorkerNumber, Holding)>,
    ) -> Result<Swap<segment::StoredTag>, Error> {
        let new = new_version()?;
        self.with_segments(|Self { turns, namespace, begin, .. }| {
            turns.change(async |session| {
                let statements = statements::swap_segment(namespace, within, write, new, holding, session.shown());
                let results = session.transaction(begin, &statements).await?;
                let [found, changed, stands, _] = &results[..] else {
                    return Err(Fault::Unclear("fewer answers than questions".to_owned()));
                };
                let stands = stands.first().map(|row| stored_segment(row, namespace)).transpose();
                if changed.is_empty() {
                    let found = of_namespace(std::slice::from_ref(found), namespace)?;
                    if is_other(found.as_ref(), Some(within)) {
                        return Ok(Swap::OtherNamespace(found));
                    }
                    return stands.map(|stands| Swap::Conflict(stands.map(|(_, stored)| stored)));
                }
                let version = changed.iter().flatten().flatten().next().and_then(|version| version.parse().ok());
                let stands = stands.ok().flatten().filter(|(tag, _)| *tag == write.tag).map(|(_, stored)| stored);
                let stands = stands.as_ref().map(|stored| (stored.version, &stored.record));
                confirmed(&write.record, version.map(Version), stands)
            })
        })
    }

    fn holdings(&mut self) -> Result<Vec<(Tag, WorkerNumber, Holding)>, Error> {
        self.with_segments(|Self { turns, namespace, .. }| {
            let statement = statements::holdings_of(namespace);
            turns.read_all(async |session| {
                let results = session.run(&statement).await?;
                results.iter().flatten().map(|row| holding(row, namespace)).collect()
            })
        })
    }

    fn limit(&mut self, longest: Option<Duration>) {
        self.begin = statements::begin(self.turns.limit(longest));
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

    fn exposures(&mut self) -> Result<Vec<String>, Error> {
        self.turns.read(async |session| Ok(session.found.as_ref().map(Found::exposures).unwrap_or_default()))
    }

    fn time(&mut self) -> Result<Option<UnixMicros>, Error> {
        let row = self.turns.read(async |session| only_row(session.run(&statements::time()).await?))?;
        Ok(row.first().and_then(Option::as_deref).and_then(|time| UnixMicros::parse(&shortest(time))))
    }

    fn protection(&self) -> Option<Protection> {
        self.turns.protection()
    }
}

/// Reads the columns of a record.
fn of_columns<R: Fields>(columns: &[Option<String>], place: impl Fn() -> String) -> Result<R, Fault> {
    let wrong = |what: String| Fault::Unexpected { place: place(), what };
    let mut columns = columns.iter().map(Option::as_deref);
    check_format(columns.next().flatten().unwrap_or_default()).map_err(wrong)?;
    let mut record = R::blank();
    for field in R::FIELDS {
        let value = columns.next().flatten().map(|text| match field.form {
            Form::Instant => shortest(text),
            Form::Text | Form::Number | Form::LongNumber => text.to_owned(),
        });
        let read = field.read(&mut record, value.as_deref());
        read.map_err(|_| wrong(format!("{} cannot be read", statements::column(field.name))))?;
    }
    if !record.is_consistent() {
        return Err(wrong(NOT_OURS.to_owned()));
    }
    Ok(record)
}

/// The record that [`statements::namespace_of`] has found.
fn of_namespace(results: &[Vec<TextRow>], namespace: &Namespace) -> Result<Option<NamespaceRecord>, Fault> {
    let row = results.iter().flatten().next();
    let place = || format!("snowflake_registry.namespaces, namespace {namespace}");
    let read = |row: &TextRow| {
        let beside = |number: usize| row.get(1 + NamespaceRecord::FIELDS.len() + number).cloned().flatten();
        Ok(NamespaceRecord { registry: beside(0), here: beside(1), ..of_columns(row, place)? })
    };
    row.map(read).transpose()
}

/// Whether another record of the namespace was found, or the same one in another registry.
fn is_other(found: Option<&NamespaceRecord>, within: Option<&NamespaceRecord>) -> bool {
    let is_elsewhere = |(found, within): (&NamespaceRecord, &NamespaceRecord)| within.is_not(found.here.as_deref());
    found != within || found.zip(within).is_some_and(is_elsewhere)
}

/// The record of a row of [`statements::record_of`].
fn stored(row: &TextRow, namespace: &Namespace) -> Result<(WorkerNumber, Stored), Fault> {
    let text = |column: usize| row.get(column).and_then(Option::as_deref).unwrap_or_default();
    let place = || format!("snowflake_registry.workers, namespace {namespace}, worker {}", text(0));
    let wrong = |what: &str| Fault::Unexpected { place: place(), what: format!("{what} cannot be read") };
    let record = of_columns(row.get(2..).unwrap_or_default(), place)?;
    let worker = text(0).parse().map_err(|_| wrong("the number of the worker"))?;
    let version = text(1).parse().map_err(|_| wrong("the version"))?;
    Ok((WorkerNumber(worker), Stored { version: Version(version), record }))
}

/// The record of a row of [`statements::segment_of`].
fn stored_segment(row: &TextRow, namespace: &Namespace) -> Result<(Tag, segment::StoredTag), Fault> {
    let text = |column: usize| row.get(column).and_then(Option::as_deref).unwrap_or_default();
    let place = || format!("snowflake_registry.segments, namespace {namespace}, tag {}", text(0));
    let wrong = |what: &str| Fault::Unexpected { place: place(), what: format!("{what} cannot be read") };
    let record = of_columns(row.get(2..).unwrap_or_default(), place)?;
    let tag = Tag::new(text(0)).map_err(|_| wrong("the tag"))?;
    let version = text(1).parse().map_err(|_| wrong("the version"))?;
    Ok((tag, segment::StoredTag { version: Version(version), record }))
}

/// The holding of a row of [`statements::holdings_of`].
fn holding(row: &TextRow, namespace: &Namespace) -> Result<(Tag, WorkerNumber, Holding), Fault> {
    let text = |column: usize| row.get(column).and_then(Option::as_deref).unwrap_or_default();
    let place =
        || format!("snowflake_registry.segment_holders, namespace {namespace}, tag {}, worker {}", text(0), text(1));
    let wrong = |what: &str| Fault::Unexpected { place: place(), what: format!("{what} cannot be read") };
    let holding = of_columns(row.get(2..).unwrap_or_default(), place)?;
    let tag = Tag::new(text(0)).map_err(|_| wrong("the tag"))?;
    let worker = text(1).parse().map_err(|_| wrong("the number of the worker"))?;
    Ok((tag, WorkerNumber(worker), holding))
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
