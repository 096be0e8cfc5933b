//! The client.

use super::member::{EtcdLogin, Expected, Member};
use crate::address::{Address, Host, UseTls};
use crate::error::Error;
use crate::holders::{holder, sorted};
use crate::json::ReadNamespace;
use crate::net::{Fault, Protocol, Stream, Tls, Turns};
use crate::storable::{check, check_namespace};
use crate::{Namespace, Options, Protection, Registry, Swap, json};
use etcd_client::KeyValue;
use snowflake_core::lease::{NamespaceRecord, Record, Stored, Version, WorkerNumber};
use snowflake_core::segment::{self, Holding, Tag};
use std::time::Duration;

/// One namespace of a registry in etcd.
pub(super) struct Etcd {
    turns: Turns<EtcdProtocol>,
    namespace: String,
    /// The key of the identity under which the namespace's record was confirmed.
    registry: String,
    workers: String,
    segments: String,
    holders: String,
    read: ReadNamespace,
}

impl Etcd {
    /// Reads the files that the address names, and connects with nobody yet.
    ///
    /// # Errors
    /// [`Error::Invalid`], where a file of certificates cannot be used.
    pub fn open(address: &Address, namespace: &Namespace, options: &Options) -> Result<Self, Error> {
        let tls = match address.use_tls {
            UseTls::Never => None,
            UseTls::IfOffered | UseTls::Always => Some(Tls::new(&address.tls).map_err(Error::Invalid)?.with_http2()),
        };
        let prefix = format!("/pg_snowflake/{}/", escaped(namespace.as_str()));
        let namespace = format!("{prefix}namespace");
        let needs = format!("the user needs a role that may read and write the prefix {prefix}");
        let login = EtcdLogin { user: address.user.clone(), password: address.password.clone(), tls };
        Ok(Self {
            turns: Turns::new(EtcdProtocol { login, namespace: namespace.clone(), needs }, address, options)?,
            namespace,
            registry: format!("{prefix}registry"),
            workers: format!("{prefix}workers/"),
            segments: format!("{prefix}segments/"),
            holders: format!("{prefix}holders/"),
            read: ReadNamespace::default(),
        })
    }

    fn key(&self, worker: WorkerNumber) -> String {
        format!("{}{}", self.workers, worker.0)
    }

    fn key_of_tag(&self, tag: &Tag) -> String {
        format!("{}{}", self.segments, escaped(tag.as_str()))
    }

    /// Stores a value where this version of its key stands, and this record of the namespace, if one is given; beside it another key
    /// with its value. `stored` reads what stands in its place.
    fn swap<S>(
        &mut self,
        namespace: Option<&NamespaceRecord>,
        (key, expected, value): (&str, Option<Version>, &str),
        beside: Option<(&str, &str)>,
        stored: impl Fn(&KeyValue) -> Result<S, Fault>,
    ) -> Result<Swap<S>, Error> {
        let Self { turns, namespace: key_of_namespace, read, .. } = self;
        let expected = expected_of(expected);
        let text = namespace.map(|namespace| read.text(namespace));
        let other = text.as_deref().map(|text| (key_of_namespace.as_str(), text));
        let swap = turns.change(async |member| {
            // Nothing is sent to another cluster than the one in which the namespace's record was found.
            if namespace.is_some_and(|namespace| namespace.is_not(member.identity.as_deref())) {
                return Ok(None);
            }
            match member.compare_and_put(key, expected, other, value, beside).await? {
                Ok(revision) => Ok(Some(Swap::Stored(Version(revision.cast_unsigned())))),
                Err([_, stands]) if other.is_some_and(|(_, text)| !is_text(stands.as_ref(), text)) => Ok(None),
                Err([stands, _]) => Ok(Some(Swap::Conflict(stands.as_ref().map(&stored).transpose()?))),
            }
        })?;
        swap.map_or_else(|| Ok(Swap::OtherNamespace(self.namespace()?)), Ok)
    }
}

/// A name as a part of a key: none lies inside another one.
fn escaped(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F")
}

/// The name of [`escaped`]; `None` where it is not so written.
fn unescaped(part: &str) -> Option<String> {
    let name = part.replace("%2F", "/").replace("%25", "%");
    (escaped(&name) == part).then_some(name)
}

/// The version that a key must have.
fn expected_of(version: Option<Version>) -> Expected<'static> {
    match version {
        None => Expected::Nothing,
        // No key has that revision.
        Some(Version(version)) => {
            Expected::Revision(i64::try_from(version).ok().filter(|version| *version > 0).unwrap_or(i64::MAX))
        }
    }
}

struct EtcdProtocol {
    login: EtcdLogin,
    namespace: String,
    needs: String,
}

impl Protocol for EtcdProtocol {
    type Session = Member;

    async fn open(&self, stream: Stream, host: &Host) -> Result<Member, Fault> {
        let mut member = self.login.connect(stream, host).await?;
        // A change is sent to a member only that answers, and that has a majority with it.
        match member.one(&self.namespace).await {
            Err(Fault::Unclear(text)) => Err(Fault::NotHere(text)),
            other => other.map(|_| member),
        }
    }

    fn needs(&self) -> &str {
        &self.needs
    }

    fn is_encrypted(&self, _: &Member) -> bool {
        self.login.tls.is_some()
    }
}

fn key_of(pair: &KeyValue) -> String {
    String::from_utf8_lossy(pair.key()).into_owned()
}

/// The value, read; a text that is not UTF-8 is not ours.
fn read<T>(pair: &KeyValue, read: impl Fn(&str) -> Result<T, String>) -> Result<T, Fault> {
    read(&String::from_utf8_lossy(pair.value())).map_err(|what| Fault::Unexpected { place: key_of(pair), what })
}

fn is_text(pair: Option<&KeyValue>, text: &str) -> bool {
    pair.is_some_and(|pair| pair.value() == text.as_bytes())
}

fn text(pair: &KeyValue) -> String {
    String::from_utf8_lossy(pair.value()).into_owned()
}

fn version(pair: &KeyValue) -> Version {
    Version(pair.mod_revision().cast_unsigned())
}

fn stored(pair: &KeyValue) -> Result<Stored, Fault> {
    Ok(Stored { version: version(pair), record: read(pair, json::read)? })
}

fn segment(pair: &KeyValue) -> Result<segment::StoredTag, Fault> {
    Ok(segment::StoredTag { version: version(pair), record: read(pair, json::read)? })
}

impl Registry for Etcd {
    fn namespace(&mut self) -> Result<Option<NamespaceRecord>, Error> {
        let Self { turns, namespace, registry, read, .. } = self;
        let (found, confirmed, here) = turns.read(async |member| {
            let found = member.one(namespace).await?;
            let here = member.identity.clone();
            // After the record: one that is confirmed meanwhile is another one, if anything was lost.
            Ok((found, member.one(registry).await?, here))
        })?;
        let noted = read.note(found.as_ref().map(text), confirmed.as_ref().map(text), here);
        noted.map_err(|what| Error::unexpected(namespace, &what))
    }

    fn swap_namespace(
        &mut self,
        expected: Option<&NamespaceRecord>,
        record: &NamespaceRecord,
    ) -> Result<Option<NamespaceRecord>, Error> {
        check_namespace(record)?;
        let Self { turns, namespace, registry, read, .. } = self;
        let text = expected.map(|expected| read.text(expected));
        let expected = text.as_deref().map_or(Expected::Nothing, Expected::Value);
        let value = json::write(record);
        let confirmed = record.registry.as_deref().map(|identity| (registry.as_str(), identity));
        let swap = turns.change(async |member| {
            let swap = member.compare_and_put(namespace, expected, None, &value, confirmed).await?;
            Ok(swap.is_ok().then(|| member.identity.clone()))
        })?;
        match swap {
            Some(here) => Ok(Some(NamespaceRecord { here, ..record.clone() })),
            None => self.namespace(),
        }
    }

    fn records(&mut self) -> Result<Vec<(WorkerNumber, Stored)>, Error> {
        let Self { turns, workers, .. } = self;
        let record = |pair: &KeyValue| {
            let key = key_of(pair);
            let number = key.strip_prefix(workers.as_str()).filter(|digits| !digits.starts_with('+'));
            let Some(number) = number.and_then(|digits| digits.parse().ok()) else {
                return Err(Fault::Unexpected { place: key, what: "it is no worker's number".to_owned() });
            };
            Ok((WorkerNumber(number), stored(pair)?))
        };
        let mut records: Vec<_> =
            turns.read_all(async |member| member.all(workers).await?.iter().map(record).collect())?;
        records.sort_unstable_by_key(|(number, _)| *number);
        Ok(records)
    }

    fn record(&mut self, worker: WorkerNumber) -> Result<Option<Stored>, Error> {
        let key = self.key(worker);
        self.turns.read(async |member| member.one(&key).await?.as_ref().map(stored).transpose())
    }

    fn swap_within(
        &mut self,
        namespace: Option<&NamespaceRecord>,
        worker: WorkerNumber,
        expected: Option<Version>,
        record: &Record,
    ) -> Result<Swap, Error> {
        check(worker, record)?;
        let (key, value) = (self.key(worker), json::write(record));
        self.swap(namespace, (&key, expected, &value), None, stored)
    }

    fn segments(&mut self) -> Result<Vec<(Tag, segment::StoredTag)>, Error> {
        let Self { turns, segments, .. } = self;
        let record = |pair: &KeyValue| {
            let key = key_of(pair);
            let name = key.strip_prefix(segments.as_str()).and_then(unescaped);
            match name.and_then(|name| Tag::new(&name).ok()) {
                Some(tag) => Ok((tag, segment(pair)?)),
                None => Err(Fault::Unexpected { place: key, what: "it is no tag".to_owned() }),
            }
        };
        let mut records: Vec<_> =
            turns.read_all(async |member| member.all(segments).await?.iter().map(record).collect())?;
        records.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(records)
    }

    fn segment(&mut self, tag: &Tag) -> Result<Option<segment::StoredTag>, Error> {
        let key = self.key_of_tag(tag);
        self.turns.read(async |member| member.one(&key).await?.as_ref().map(segment).transpose())
    }

    fn swap_segment_held(
        &mut self,
        namespace: &NamespaceRecord,
        write: &segment::TagWrite,
        holding: Option<&(WorkerNumber, Holding)>,
    ) -> Result<Swap<segment::StoredTag>, Error> {
        let key = self.key_of_tag(&write.tag);
        let beside = holding.map(|(worker, holding)| {
            (format!("{}{}/{}", self.holders, worker.0, escaped(write.tag.as_str())), json::write(holding))
        });
        let beside = beside.as_ref().map(|(key, value)| (key.as_str(), value.as_str()));
        let value = json::write(&write.record);
        self.swap(Some(namespace), (&key, write.expected, &value), beside, segment)
    }

    fn holdings(&mut self) -> Result<Vec<(Tag, WorkerNumber, Holding)>, Error> {
        let Self { turns, holders, .. } = self;
        let holding = |pair: &KeyValue| {
            let key = key_of(pair);
            let parts = key.strip_prefix(holders.as_str()).and_then(|rest| rest.split_once('/'));
            match parts.and_then(|(worker, tag)| holder(worker, &unescaped(tag)?)) {
                Some((tag, worker)) => Ok((tag, worker, read(pair, json::read)?)),
                None => Err(Fault::Unexpected { place: key, what: "it is no worker's number and tag".to_owned() }),
            }
        };
        Ok(sorted(turns.read_all(async |member| member.all(holders).await?.iter().map(holding).collect())?))
    }

    fn limit(&mut self, longest: Option<Duration>) {
        self.turns.limit(longest);
    }

    fn warnings(&mut self) -> Result<Vec<String>, Error> {
        let mut warnings = Vec::new();
        let (authentication_is_off, has_no_space) =
            self.turns.read(async |member| Ok((member.authentication_is_off(), member.has_no_space().await?)))?;
        if authentication_is_off {
            warnings.push(
                "The registry's URL has a user, and etcd asks nobody for one: everybody who reaches it can change \
                 leases. Run etcdctl auth enable."
                    .to_owned(),
            );
        }
        if has_no_space == Some(true) {
            warnings.push(
                "The registry has no space left, and takes no changes. Compact and defragment etcd, and disarm its \
                 alarm."
                    .to_owned(),
            );
        }
        Ok(warnings)
    }

    fn unseen(&mut self) -> Result<Vec<String>, Error> {
        let has_no_space = self.turns.read(async |member| member.has_no_space().await)?;
        Ok(match has_no_space {
            Some(_) => Vec::new(),
            None => vec!["The registry does not show its alarms: watch yourself whether it has space left.".to_owned()],
        })
    }

    fn protection(&self) -> Option<Protection> {
        self.turns.protection()
    }
}
