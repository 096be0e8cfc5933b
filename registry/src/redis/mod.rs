//! A registry in Redis, version 5 or later, or in what speaks its protocol and runs its Lua scripts.
//!
//! # What it needs
//!
//! One primary. With access lists, a user that may run `EVAL`, `HGET`, `HGETALL`, `HMGET`, `HSET`, `HINCRBY` on the key
//! `pg_snowflake:<namespace>`, and better also `ROLE`, `INFO` and `CONFIG GET`: without them the [warnings] say less.
//!
//! [warnings]: crate::Registry::warnings
//!
//! | setting | value | otherwise |
//! |---|---|---|
//! | `appendonly` | `yes` | a crash loses all changes since the last snapshot |
//! | `appendfsync` | `always` | a crash of the machine loses the changes of the last second, and with `no` more |
//! | `maxmemory-policy` | `noeviction`, or one of `volatile-…` | with `allkeys-…` the registry can be evicted as a whole |
//!
//! A registry that loses changes can **grant a worker twice**; so does one that is wiped (`FLUSHALL`, `DEL`, an eviction, a
//! data directory that is lost). Then every worker looks as if it was never used, and servers that go on with their grants
//! run into new owners. After that, start servers only when the grants from before are over.
//!
//! # Replicas, Sentinel, Cluster
//!
//! Replication is asynchronous: **a failover loses changes**, whoever does it. Several hosts can be named, and replicas among
//! them are passed over; that is for a failover by hand, after the old primary is stopped and the replica has caught up. With
//! `wait_replicas=N` a change counts as stored when N replicas have received it (`WAIT`), and as unanswered before; that
//! makes a loss less likely, and does not exclude it: a replica has it in memory only, and Sentinel may choose another one.
//! Sentinel is not asked where the primary is. Redis Cluster works where the URL names the primary that has the key; a
//! `MOVED` is not followed.
//!
//! # What it holds
//!
//! One hash, `pg_snowflake:<namespace>`, without an expiry:
//!
//! | field | value |
//! |---|---|
//! | `namespace` | the layout, as JSON |
//! | `version` | the last version given to a record |
//! | `worker:<number>` | a record, as JSON |
//! | `worker:<number>:version` | its version |

mod session;

use crate::error::Error;
use crate::net::{Fault, Protocol, Stream, Tls, Turns};
use crate::text::check;
use crate::url::{Host, Url, UseTls};
use crate::{Namespace, Options, Registry, Swap, json};
use redis::{Cmd, cmd};
use session::{Login, Session};
use snowflake_core::lease::{Record, Stored, Version, WorkerNumber};
use std::collections::BTreeMap;

/// Sets a field that is not there, and returns what stands.
const CREATE_NAMESPACE: &str = "redis.call('HSETNX', KEYS[1], 'namespace', ARGV[1]) \
     return redis.call('HGET', KEYS[1], 'namespace')";

/// Stores a record and its new version where the old version is as expected, empty for no record. `{'stored', version}`, else
/// `{'conflict', version, record}` with what stands.
const SWAP: &str = "local field = ARGV[1] \
     local stands = redis.call('HMGET', KEYS[1], field .. ':version', field) \
     local is_expected = ARGV[2] == (stands[1] or '') \
     if ARGV[2] == '' and stands[2] then is_expected = false end \
     if not is_expected then return {'conflict', stands[1], stands[2]} end \
     redis.call('HINCRBY', KEYS[1], 'version', 1) \
     local version = redis.call('HGET', KEYS[1], 'version') \
     redis.call('HSET', KEYS[1], field, ARGV[3], field .. ':version', version) \
     return {'stored', version, false}";

/// One namespace of a registry in Redis.
pub struct Redis {
    turns: Turns<Login>,
    key: String,
    wait_replicas: u32,
    warnings: Vec<String>,
}

impl Redis {
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
            user: url.user.clone(),
            password: url.password.clone(),
            // The URL was parsed: it is a number.
            database: url.database.parse().unwrap_or_default(),
            tls,
        };
        Ok(Self {
            turns: Turns::new(login, url, options)?,
            key: format!("pg_snowflake:{namespace}"),
            wait_replicas: url.wait_replicas,
            warnings: url.password_in_the_clear().into_iter().collect(),
        })
    }

    /// Sends a change, and waits for the replicas that must have it.
    fn change<T: redis::FromRedisValue>(&mut self, request: &Cmd) -> Result<T, Error> {
        let wait_replicas = self.wait_replicas;
        self.turns.change(async |session| {
            let answer = session.ask(request).await?;
            if wait_replicas > 0 {
                session.wait_for_replicas(wait_replicas).await?;
            }
            Ok(answer)
        })
    }

    fn unexpected(&self, field: &str, what: &str) -> Error {
        Error::unexpected(&format!("{}, field {field}", self.key), what)
    }

    fn stored(&self, field: &str, version: Option<&str>, record: Option<&str>) -> Result<Option<Stored>, Error> {
        let wrong = |what: &str| self.unexpected(field, what);
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
}

impl Protocol for Login {
    type Session = Session;

    async fn open(&self, stream: Stream, host: &Host) -> Result<Session, Fault> {
        self.connect(stream, host).await
    }
}

fn field(worker: WorkerNumber) -> String {
    format!("worker:{}", worker.0)
}

impl Registry for Redis {
    fn layout(&mut self, layout: &str) -> Result<String, Error> {
        let mut request = cmd("EVAL");
        request.arg(CREATE_NAMESPACE).arg(1).arg(&self.key).arg(json::write_layout(layout));
        let stands: String = self.change(&request)?;
        json::read_layout(&stands).map_err(|what| self.unexpected("namespace", &what))
    }

    fn records(&mut self) -> Result<Vec<(WorkerNumber, Stored)>, Error> {
        let mut request = cmd("HGETALL");
        request.arg(&self.key);
        let mut fields: BTreeMap<String, String> = self.turns.read(async |session| session.ask(&request).await)?;
        fields.remove("namespace");
        fields.remove("version");
        let mut records = Vec::new();
        while let Some((name, _)) = fields.first_key_value() {
            let number = name.strip_prefix("worker:").map(|rest| rest.strip_suffix(":version").unwrap_or(rest));
            let number = number.filter(|digits| !digits.starts_with('+')).and_then(|digits| digits.parse().ok());
            let Some(worker) = number.map(WorkerNumber) else {
                return Err(self.unexpected(name, "it is no worker's record"));
            };
            let (written, name) = (name.clone(), field(worker));
            let record = fields.remove(&name);
            let version = fields.remove(&format!("{name}:version"));
            match self.stored(&name, version.as_deref(), record.as_deref())? {
                Some(stored) => records.push((worker, stored)),
                None => return Err(self.unexpected(&written, "it is no worker's record")),
            }
        }
        records.sort_unstable_by_key(|(worker, _)| *worker);
        Ok(records)
    }

    fn record(&mut self, worker: WorkerNumber) -> Result<Option<Stored>, Error> {
        let name = field(worker);
        let mut request = cmd("HMGET");
        request.arg(&self.key).arg(format!("{name}:version")).arg(&name);
        let (version, record): (Option<String>, Option<String>) =
            self.turns.read(async |session| session.ask(&request).await)?;
        self.stored(&name, version.as_deref(), record.as_deref())
    }

    fn compare_and_swap(
        &mut self,
        worker: WorkerNumber,
        expected: Option<Version>,
        record: &Record,
    ) -> Result<Swap, Error> {
        check(worker, record)?;
        let name = field(worker);
        let expected = expected.map(|version| version.0.to_string()).unwrap_or_default();
        let mut request = cmd("EVAL");
        request.arg(SWAP).arg(1).arg(&self.key).arg(&name).arg(expected).arg(json::write(record));
        let (outcome, version, stands): (String, Option<String>, Option<String>) = self.change(&request)?;
        if outcome == "stored" {
            let version = version.and_then(|version| version.parse().ok());
            let version = version.ok_or_else(|| self.unexpected("version", "the version is not a number"))?;
            return Ok(Swap::Stored(Version(version)));
        }
        self.stored(&name, version.as_deref(), stands.as_deref()).map(Swap::Conflict)
    }

    fn warnings(&mut self) -> Result<Vec<String>, Error> {
        let mut warnings = self.warnings.clone();
        warnings.extend(self.turns.read(async |session| session.warnings().await)?);
        Ok(warnings)
    }
}
