//! The client.

use super::session::{RedisLogin, RedisSession};
use super::url::{database, wait_replicas};
use crate::address::{Address, Host, UseTls};
use crate::error::Error;
use crate::holders::{holder, sorted};
use crate::json::ReadNamespace;
use crate::net::{Fault, Protocol, Stream, Tls, Turns, confirmed};
use crate::storable::{check, check_namespace, new_version};
use crate::url::error::UrlError;
use crate::{Namespace, Options, Protection, Registry, Swap, json};
use redis::{Cmd, cmd};
use snowflake_core::UnixMicros;
use snowflake_core::lease::{NamespaceRecord, Record, Stored, Version, WorkerNumber};
use snowflake_core::segment::{self, Holding, Tag};
use std::collections::BTreeMap;
use std::time::Duration;

/// Stores the namespace's record where the one there is as expected, empty for none, with the identity under which it is confirmed, if one
/// is given, and returns what stands.
const SWAP_NAMESPACE: &str = "if ARGV[1] == (redis.call('HGET', KEYS[1], 'namespace') or '') then \
         redis.call('HSET', KEYS[1], 'namespace', ARGV[2]) \
         if ARGV[3] then redis.call('HSET', KEYS[2], 'registry', ARGV[3]) end \
     end \
     return redis.call('HGET', KEYS[1], 'namespace')";

/// The field of the holders' hash that is none of a holder: the identity under which the namespace's record was confirmed.
const CONFIRMED: &str = "registry";

/// Stores a record and its new version where the old version is as expected, empty for no record. `{'stored', version}`, else
/// `{'conflict', false}`, each with the version and the record that stand now. `{'elsewhere', false, false, namespace}`, where the
/// namespace's record is not as expected, empty for any.
const SWAP: &str = "if ARGV[5] ~= '' then \
         local namespace = redis.call('HGET', KEYS[1], 'namespace') \
         if namespace ~= ARGV[5] then return {'elsewhere', false, false, namespace} end \
     end \
     local field = ARGV[1] \
     local stands = redis.call('HMGET', KEYS[1], field .. ':version', field) \
     local is_expected = ARGV[2] == (stands[1] or '') \
     if ARGV[2] == '' and stands[2] then is_expected = false end \
     if not is_expected then return {'conflict', false, stands[1], stands[2]} end \
     redis.call('HSET', KEYS[1], field, ARGV[3], field .. ':version', ARGV[4]) \
     stands = redis.call('HMGET', KEYS[1], field .. ':version', field) \
     return {'stored', ARGV[4], stands[1], stands[2]}";

/// Stores a tag's record, with its new version in front, where the version in front of the old one is as expected, empty for no
/// record; and beside it what a server holds, where that is given. The answers are those of [`SWAP`], without versions of their own.
const SWAP_SEGMENT: &str = "local namespace = redis.call('HGET', KEYS[1], 'namespace') \
     if namespace ~= ARGV[4] then return {'elsewhere', namespace} end \
     local stands = redis.call('HGET', KEYS[2], ARGV[1]) \
     local version = '' \
     if stands then version = string.match(stands, '^(%d+) ') or 'none' end \
     if version ~= ARGV[2] then return {'conflict', stands} end \
     redis.call('HSET', KEYS[2], ARGV[1], ARGV[3]) \
     if ARGV[5] then redis.call('HSET', KEYS[3], ARGV[5], ARGV[6]) end \
     return {'stored', redis.call('HGET', KEYS[2], ARGV[1])}";

/// The answer to [`SWAP`].
type SwapAnswer = (String, Option<String>, Option<String>, Option<String>);

/// One namespace of a registry in Redis.
pub(super) struct Redis {
    turns: Turns<RedisLogin>,
    key: String,
    /// The hash of the tags.
    segments: String,
    /// The hash of what servers hold of them.
    holders: String,
    namespace: ReadNamespace,
    wait_replicas: u32,
}

impl Redis {
    /// Reads the files that the address names, and connects with nobody yet.
    ///
    /// # Errors
    /// [`Error::Invalid`], where a file of certificates cannot be used.
    pub fn open(address: &Address, namespace: &Namespace, options: &Options) -> Result<Self, Error> {
        let invalid = |error: UrlError| Error::Invalid(error.to_string());
        let tls = match address.use_tls {
            UseTls::Never => None,
            UseTls::IfOffered | UseTls::Always => Some(Tls::new(&address.tls).map_err(Error::Invalid)?),
        };
        let wait_replicas = wait_replicas(&address.parameters).map_err(invalid)?;
        let login = RedisLogin {
            user: address.user.clone(),
            password: address.password.clone(),
            database: database(&address.path).map_err(invalid)?,
            tls,
            waits: wait_replicas > 0,
            needs: format!(
                "the user needs EVAL, HGET, HGETALL, HMGET and HSET on the keys pg_snowflake:{namespace}, \
                 pg_snowflake_segments:{{…}} and pg_snowflake_holders:{{…}}"
            ),
        };
        Ok(Self {
            turns: Turns::new(login, address, options)?,
            key: format!("pg_snowflake:{namespace}"),
            // In braces: with Redis Cluster, they are where the first hash is.
            segments: format!("pg_snowflake_segments:{{pg_snowflake:{namespace}}}"),
            holders: format!("pg_snowflake_holders:{{pg_snowflake:{namespace}}}"),
            namespace: ReadNamespace::default(),
            wait_replicas,
        })
    }

    /// Sends a change, waits for the replicas that must have it, and reads the answer. Nothing is sent to another registry than the one
    /// in which the namespace's record was found, where one is given: then, or where `read` says so, the answer is `None`.
    fn change<A: redis::FromRedisValue, T>(
        &mut self,
        within: Option<&NamespaceRecord>,
        request: &Cmd,
        read: impl Fn(A, Option<String>) -> Result<Option<T>, Fault>,
    ) -> Result<Option<T>, Error> {
        let Self { turns, wait_replicas, .. } = self;
        turns.change(async |session| {
            let here = session.identity.clone();
            if within.is_some_and(|within| within.is_not(here.as_deref())) {
                return Ok(None);
            }
            let answer = session.tell(request).await?;
            if *wait_replicas > 0 {
                session.wait_for_replicas(*wait_replicas).await?;
            }
            read(answer, here)
        })
    }
}

fn unexpected(key: &str, field: &str, what: &str) -> Fault {
    Fault::Unexpected { place: format!("{key}, field {field}"), what: what.to_owned() }
}

/// The record of a worker, of its two fields.
fn stored(key: &str, field: &str, version: Option<&str>, record: Option<&str>) -> Result<Option<Stored>, Fault> {
    let wrong = |what: &str| unexpected(key, field, what);
    match (version, record) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(wrong("there is a version and no record")),
        (None, Some(_)) => Err(wrong("there is a record and no version")),
        (Some(version), Some(record)) => {
            let version = version.parse().map_err(|_| wrong("the version is not a number"))?;
            let record = json::read(record).map_err(|what| wrong(&what))?;
            Ok(Some(Stored { version: Version(version), record }))
        }
    }
}

/// All records, of all fields of the hash.
fn all(key: &str, mut fields: BTreeMap<String, String>) -> Result<Vec<(WorkerNumber, Stored)>, Fault> {
    fields.remove("namespace");
    let mut records = Vec::new();
    while let Some((name, _)) = fields.first_key_value() {
        let number = name.strip_prefix("worker:").map(|rest| rest.strip_suffix(":version").unwrap_or(rest));
        let number = number.filter(|digits| !digits.starts_with('+')).and_then(|digits| digits.parse().ok());
        let Some(worker) = number.map(WorkerNumber) else {
            return Err(unexpected(key, name, "it is no worker's record"));
        };
        let (written, name) = (name.clone(), field(worker));
        let record = fields.remove(&name);
        let version = fields.remove(&format!("{name}:version"));
        match stored(key, &name, version.as_deref(), record.as_deref())? {
            Some(stored) => records.push((worker, stored)),
            None => return Err(unexpected(key, &written, "it is no worker's record")),
        }
    }
    records.sort_unstable_by_key(|(worker, _)| *worker);
    Ok(records)
}

/// The record of a tag, of its field: a version, a space, and the record as JSON.
fn segment(key: &str, field: &str, text: Option<&str>) -> Result<Option<segment::StoredTag>, Fault> {
    let read = |text: &str| {
        let (version, record) =
            text.split_once(' ').ok_or_else(|| unexpected(key, field, "there is no version in front"))?;
        let version = version.parse().map_err(|_| unexpected(key, field, "the version is not a number"))?;
        let record = json::read(record).map_err(|what| unexpected(key, field, &what))?;
        Ok(segment::StoredTag { version: Version(version), record })
    };
    text.map(read).transpose()
}

/// What came of [`SWAP`] or [`SWAP_SEGMENT`] under the expected record of the namespace: `stands` is what they return, `sent` the record
/// and its version.
fn swapped<R: PartialEq, S>(
    outcome: &str,
    stands: Result<Option<S>, Fault>,
    sent: (Option<Version>, &R),
    parts: impl Fn(&S) -> (Version, &R),
) -> Result<Swap<S>, Fault> {
    match outcome {
        "conflict" => stands.map(Swap::Conflict),
        _ => confirmed(sent.1, sent.0, stands.ok().flatten().as_ref().map(parts)),
    }
}

impl Protocol for RedisLogin {
    type Session = RedisSession;

    async fn open(&self, stream: Stream, host: &Host) -> Result<RedisSession, Fault> {
        self.connect(stream, host).await
    }

    fn needs(&self) -> &str {
        &self.needs
    }

    fn is_encrypted(&self, _: &RedisSession) -> bool {
        self.tls.is_some()
    }
}

fn field(worker: WorkerNumber) -> String {
    format!("worker:{}", worker.0)
}

impl Registry for Redis {
    fn namespace(&mut self) -> Result<Option<NamespaceRecord>, Error> {
        let Self { turns, key, holders, namespace, .. } = self;
        let (mut request, mut beside) = (cmd("HGET"), cmd("HGET"));
        request.arg(&*key).arg("namespace");
        beside.arg(&*holders).arg(CONFIRMED);
        let (text, confirmed, here) = turns.read(async |session| {
            let text = session.ask::<Option<String>>(&request).await?;
            // After the record: one that is confirmed meanwhile is another one, if anything was lost. A user with the rights that
            // 0.2.0 needs can neither see nor change it: so the registry shows nothing of itself.
            let confirmed = session.ask_if_allowed::<Option<String>>(&beside).await?;
            session.identity = match &confirmed {
                Some(_) => session.look_at_identity().await?,
                None => None,
            };
            Ok((text, confirmed.flatten(), session.identity.clone()))
        })?;
        let noted = namespace.note(text, confirmed, here);
        noted.map_err(|what| Error::unexpected(&format!("{key}, field namespace"), &what))
    }

    fn swap_namespace(
        &mut self,
        expected: Option<&NamespaceRecord>,
        record: &NamespaceRecord,
    ) -> Result<Option<NamespaceRecord>, Error> {
        check_namespace(record)?;
        let expected = expected.map(|expected| self.namespace.text(expected)).unwrap_or_default();
        let (mut request, text) = (cmd("EVAL"), json::write(record));
        request.arg(SWAP_NAMESPACE);
        match &record.registry {
            Some(_) => request.arg(2).arg(&self.key).arg(&self.holders),
            None => request.arg(1).arg(&self.key),
        };
        request.arg(expected).arg(&text).arg(&record.registry);
        let here = self.change(None, &request, |stands: Option<String>, here| {
            Ok((stands.as_ref() == Some(&text)).then_some(here))
        })?;
        match here {
            Some(here) => Ok(Some(NamespaceRecord { here, ..record.clone() })),
            None => self.namespace(),
        }
    }

    fn records(&mut self) -> Result<Vec<(WorkerNumber, Stored)>, Error> {
        let Self { turns, key, .. } = self;
        let mut request = cmd("HGETALL");
        request.arg(&*key);
        turns.read_all(async |session| all(key, session.ask(&request).await?))
    }

    fn record(&mut self, worker: WorkerNumber) -> Result<Option<Stored>, Error> {
        let Self { turns, key, .. } = self;
        let name = field(worker);
        let mut request = cmd("HMGET");
        request.arg(&*key).arg(format!("{name}:version")).arg(&name);
        turns.read(async |session| {
            let (version, record): (Option<String>, Option<String>) = session.ask(&request).await?;
            stored(key, &name, version.as_deref(), record.as_deref())
        })
    }

    fn swap_within(
        &mut self,
        namespace: Option<&NamespaceRecord>,
        worker: WorkerNumber,
        expected: Option<Version>,
        record: &Record,
    ) -> Result<Swap, Error> {
        check(worker, record)?;
        let (key, name) = (self.key.clone(), field(worker));
        let expected = expected.map(|version| version.0.to_string()).unwrap_or_default();
        let mut request = cmd("EVAL");
        request.arg(SWAP).arg(1).arg(&key).arg(&name).arg(expected).arg(json::write(record)).arg(new_version()?.0);
        request.arg(namespace.map(|namespace| self.namespace.text(namespace)).unwrap_or_default());
        let swap = self.change(namespace, &request, |(outcome, given, version, stands): SwapAnswer, _| {
            if outcome == "elsewhere" {
                return Ok(None);
            }
            let stands = stored(&key, &name, version.as_deref(), stands.as_deref());
            let given = given.and_then(|given| given.parse().ok()).map(Version);
            swapped(&outcome, stands, (given, record), |stored| (stored.version, &stored.record)).map(Some)
        })?;
        swap.map_or_else(|| self.namespace().map(Swap::OtherNamespace), Ok)
    }

    fn segments(&mut self) -> Result<Vec<(Tag, segment::StoredTag)>, Error> {
        let Self { turns, segments, .. } = self;
        let mut request = cmd("HGETALL");
        request.arg(&*segments);
        turns.read_all(async |session| {
            let fields: BTreeMap<String, String> = session.ask(&request).await?;
            let record = |(name, text): (String, String)| {
                let tag = Tag::new(&name).map_err(|_| unexpected(segments, &name, "it is no tag"))?;
                let stored = segment(segments, &name, Some(&text))?;
                Ok(stored.map(|stored| (tag, stored)))
            };
            fields.into_iter().filter_map(|field| record(field).transpose()).collect()
        })
    }

    fn segment(&mut self, tag: &Tag) -> Result<Option<segment::StoredTag>, Error> {
        let Self { turns, segments, .. } = self;
        let mut request = cmd("HGET");
        request.arg(&*segments).arg(tag.as_str());
        turns.read(async |session| {
            let text: Option<String> = session.ask(&request).await?;
            segment(segments, tag.as_str(), text.as_deref())
        })
    }

    fn swap_segment_held(
        &mut self,
        namespace: &NamespaceRecord,
        write: &segment::TagWrite,
        holding: Option<&(WorkerNumber, Holding)>,
    ) -> Result<Swap<segment::StoredTag>, Error> {
        let (key, segments, name) = (self.key.clone(), self.segments.clone(), write.tag.as_str());
        let expected = write.expected.map(|version| version.0.to_string()).unwrap_or_default();
        let new = new_version()?;
        let mut request = cmd("EVAL");
        request.arg(SWAP_SEGMENT);
        match holding {
            Some(_) => request.arg(3).arg(&key).arg(&segments).arg(&self.holders),
            None => request.arg(2).arg(&key).arg(&segments),
        };
        request.arg(name).arg(expected);
        request.arg(format!("{} {}", new.0, json::write(&write.record))).arg(self.namespace.text(namespace));
        if let Some((worker, holding)) = holding {
            request.arg(format!("{}/{name}", worker.0)).arg(json::write(holding));
        }
        let swap = self.change(Some(namespace), &request, |(outcome, stands): (String, Option<String>), _| {
            if outcome == "elsewhere" {
                return Ok(None);
            }
            let stands = segment(&segments, name, stands.as_deref());
            swapped(&outcome, stands, (Some(new), &write.record), |stored| (stored.version, &stored.record)).map(Some)
        })?;
        swap.map_or_else(|| self.namespace().map(Swap::OtherNamespace), Ok)
    }

    fn holdings(&mut self) -> Result<Vec<(Tag, WorkerNumber, Holding)>, Error> {
        let Self { turns, holders, .. } = self;
        let mut request = cmd("HGETALL");
        request.arg(&*holders);
        let holdings = turns.read_all(async |session| {
            let fields: BTreeMap<String, String> = session.ask(&request).await?;
            let holding = |(name, text): (String, String)| {
                let named = name.split_once('/').and_then(|(worker, tag)| holder(worker, tag));
                let wrong = |what: &str| unexpected(holders, &name, what);
                let (tag, worker) = named.ok_or_else(|| wrong("it is no worker's number and tag"))?;
                Ok((tag, worker, json::read(&text).map_err(|what| wrong(&what))?))
            };
            fields.into_iter().filter(|(name, _)| name != CONFIRMED).map(holding).collect()
        })?;
        Ok(sorted(holdings))
    }

    fn limit(&mut self, longest: Option<Duration>) {
        self.turns.limit(longest);
    }

    fn warnings(&mut self) -> Result<Vec<String>, Error> {
        self.turns.read(async |session| Ok(session.findings().await?.warnings))
    }

    fn unseen(&mut self) -> Result<Vec<String>, Error> {
        self.turns.read(async |session| Ok(session.findings().await?.unseen))
    }

    fn time(&mut self) -> Result<Option<UnixMicros>, Error> {
        // With access lists, the user may not be allowed to ask.
        let answer = self.turns.read(async |session| session.ask_if_allowed::<Vec<i64>>(&cmd("TIME")).await)?;
        Ok(answer.and_then(|parts| match parts[..] {
            [seconds, micros] => Some(UnixMicros(seconds.checked_mul(1_000_000)?.checked_add(micros)?)),
            _ => None,
        }))
    }

    fn protection(&self) -> Option<Protection> {
        self.turns.protection()
    }
}
