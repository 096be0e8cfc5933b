//! A registry in etcd, version 3.4 or later, by gRPC.
//!
//! # What it needs
//!
//! With authentication, a user whose role may read and write the prefix `/pg_snowflake/<namespace>/`; or, with
//! `--client-cert-auth` and no user in the URL, a certificate whose common name etcd takes for the user.
//!
//! # What it keeps, and what not
//!
//! * Each change is one transaction that compares the key's `mod_revision`, agreed on by a majority and synced to disk before
//!   it is answered. All reads are linearizable. A cluster of three members or more goes on when one fails.
//! * `--unsafe-no-fsync` breaks the promise. A member restored from a snapshot is an older registry, and **workers can be
//!   granted twice**: so is a cluster made anew from one member.
//! * The keys have no lease of etcd's and never expire.
//!
//! # Keys
//!
//! | key | value |
//! |---|---|
//! | `/pg_snowflake/<namespace>/namespace` | the layout, as JSON |
//! | `/pg_snowflake/<namespace>/workers/<number>` | a record, as JSON |
//!
//! In the namespace, `/` is written as `%2F`, and `%` as `%25`: so no namespace lies inside another one.

mod member;

use crate::error::Error;
use crate::net::{Fault, Protocol, Stream, Tls, Turns};
use crate::text::check;
use crate::url::{Host, Url, UseTls};
use crate::{Namespace, Options, Protection, Registry, Swap, json};
use etcd_client::KeyValue;
use member::{Login, Member};
use snowflake_core::lease::{Record, Stored, Version, WorkerNumber};

/// One namespace of a registry in etcd.
pub struct Etcd {
    turns: Turns<Server>,
    namespace: String,
    workers: String,
}

impl Etcd {
    /// Reads the files that the URL names, and connects with nobody yet.
    ///
    /// # Errors
    /// [`Error::Invalid`], where a file of certificates cannot be used.
    pub fn open(url: &Url, namespace: &Namespace, options: &Options) -> Result<Self, Error> {
        let tls = match url.use_tls {
            UseTls::Never => None,
            UseTls::IfOffered | UseTls::Always => Some(Tls::new(&url.tls).map_err(Error::Invalid)?.with_http2()),
        };
        let prefix = format!("/pg_snowflake/{}/", namespace.as_str().replace('%', "%25").replace('/', "%2F"));
        let namespace = format!("{prefix}namespace");
        let login = Login { user: url.user.clone(), password: url.password.clone(), tls };
        Ok(Self {
            turns: Turns::new(Server { login, namespace: namespace.clone() }, url, options)?,
            namespace,
            workers: format!("{prefix}workers/"),
        })
    }

    fn key(&self, worker: WorkerNumber) -> String {
        format!("{}{}", self.workers, worker.0)
    }
}

struct Server {
    login: Login,
    namespace: String,
}

impl Protocol for Server {
    type Session = Member;

    async fn open(&self, stream: Stream, host: &Host) -> Result<Member, Fault> {
        let mut member = self.login.connect(stream, host).await?;
        // A change is sent to a member only that answers, and that has a majority with it.
        match member.one(&self.namespace).await {
            Err(Fault::Unclear(text)) => Err(Fault::NotHere(text)),
            other => other.map(|_| member),
        }
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

fn stored(pair: &KeyValue) -> Result<Stored, Fault> {
    let record = read(pair, json::read)?;
    Ok(Stored { version: Version(pair.mod_revision().cast_unsigned()), record })
}

impl Registry for Etcd {
    fn layout(&mut self, layout: &str) -> Result<String, Error> {
        let Self { turns, namespace, .. } = self;
        turns.change(async |member| match member.compare_and_put(namespace, 0, &json::write_layout(layout)).await? {
            Ok(_) => Ok(layout.to_owned()),
            Err(Some(stands)) => read(&stands, json::read_layout),
            Err(None) => Err(Fault::Unclear("the namespace is gone again".to_owned())),
        })
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

    fn compare_and_swap(
        &mut self,
        worker: WorkerNumber,
        expected: Option<Version>,
        record: &Record,
    ) -> Result<Swap, Error> {
        check(worker, record)?;
        let key = self.key(worker);
        let value = json::write(record);
        // A key that is not there has the revision 0, and no other has.
        let expected = match expected {
            None => 0,
            Some(Version(version)) => i64::try_from(version).ok().filter(|version| *version > 0).unwrap_or(i64::MAX),
        };
        self.turns.change(async |member| match member.compare_and_put(&key, expected, &value).await? {
            Ok(revision) => Ok(Swap::Stored(Version(revision.cast_unsigned()))),
            Err(stands) => Ok(Swap::Conflict(stands.as_ref().map(stored).transpose()?)),
        })
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
        if has_no_space {
            warnings.push(
                "The registry has no space left, and takes no changes. Compact and defragment etcd, and disarm its \
                 alarm."
                    .to_owned(),
            );
        }
        Ok(warnings)
    }

    fn protection(&self) -> Option<Protection> {
        self.turns.protection()
    }
}
