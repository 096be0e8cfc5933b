//! A session with a Redis server.

use crate::Password;
use crate::address::Host;
use crate::net::{Allowance, Driver, Fault, Inspect, Inspected, Stream, Tls, Transport};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, FromRedisValue, InfoDict, ProtocolVersion, RedisConnectionInfo, RedisError,
    Value, cmd,
};
use std::sync::Arc;

/// The user who connects, and how.
pub(super) struct RedisLogin {
    pub user: Option<String>,
    pub password: Option<Password>,
    pub database: u16,
    pub tls: Option<Tls>,
    /// Whether changes wait for replicas.
    pub waits: bool,
    /// The rights that the user needs.
    pub needs: String,
}

/// A session that is authenticated, with a primary.
pub(super) struct RedisSession {
    connection: MultiplexedConnection,
    _driver: Driver,
    /// Whether the server said that it is a primary; it may not say.
    role_is_known: bool,
    /// What [`Self::look_at_identity`] has found.
    pub identity: Option<String>,
}

/// What there is to say about the settings of a server: sentences for an operator.
pub(super) struct Findings {
    /// What is wrong.
    pub warnings: Vec<String>,
    /// What cannot be seen.
    pub unseen: Vec<String>,
}

/// An answer that the client cannot read.
const OTHER_FORM: &str = "an answer of another form than was expected";

/// The fault that a client's error means. Where the content of the registry cannot be read, its text may quote that, and is not
/// repeated.
fn fault(error: RedisError) -> Fault {
    let Some(code) = error.code() else {
        return match error.kind() {
            ErrorKind::AuthenticationFailed => Fault::Credentials("the server does not take the password".to_owned()),
            ErrorKind::ParseError | ErrorKind::TypeError => {
                Fault::Unexpected { place: "the key of the namespace".to_owned(), what: OTHER_FORM.to_owned() }
            }
            _ => Fault::of_connection(&error),
        };
    };
    let text = format!("{code} {}", error.detail().unwrap_or_default());
    // Redis 6 puts a script's errors into one of its own.
    if text.contains("WRONGTYPE") {
        return Fault::Unexpected { place: "the key of the namespace".to_owned(), what: text };
    }
    match code {
        "WRONGPASS" | "NOAUTH" => Fault::Credentials(text),
        "NOPERM" => Fault::Denied(text),
        // Of a command within a script.
        _ if text.contains("The user executing the script can't") => Fault::Denied(text),
        "READONLY" | "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" => Fault::NotHere(text),
        "MOVED" | "ASK" => Fault::NotHere(format!("{text} (Redis Cluster is not supported)")),
        "ERR" if text.contains("max number of clients") => Fault::NotHere(text),
        _ => Fault::Refused(text),
    }
}

/// Of a session that is about to start.
fn at_start(error: RedisError) -> Fault {
    match fault(error) {
        Fault::Unexpected { .. } => Fault::Broken("it does not speak Redis's protocol".to_owned()),
        fault => fault,
    }
}

/// Counts the lines of answers. Each may be an element, which takes more memory than its bytes.
struct Lines(Arc<Allowance>);

impl Lines {
    /// The memory that the client needs for an element, beside its bytes, if it has one line; those of records have two.
    const COST: usize = 32;
}

impl Inspect for Lines {
    fn inspect(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        self.0.spend(lines * Self::COST)
    }
}

impl RedisLogin {
    pub async fn connect(&self, stream: Stream, host: &Host) -> Result<RedisSession, Fault> {
        if self.user.is_some() && self.password.is_none() {
            return Err(Fault::Credentials("the URL has a user, and no password is configured".to_owned()));
        }
        let info = RedisConnectionInfo {
            db: i64::from(self.database),
            username: self.user.clone(),
            password: self.password.as_ref().map(|password| password.reveal().to_owned()),
            protocol: ProtocolVersion::RESP2,
        };
        let inspector = Lines(stream.allowance());
        let stream: Box<dyn Transport> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.encrypt(stream, host).await?),
        };
        let stream = Inspected { stream, inspector };
        // Without time-outs: the caller has a deadline.
        let (connection, driver) = MultiplexedConnection::new_with_config(&info, stream, AsyncConnectionConfig::new())
            .await
            .map_err(at_start)?;
        let driver = Driver::spawn(driver);
        let mut session = RedisSession { connection, _driver: driver, role_is_known: false, identity: None };
        session.check_role().await?;
        session.identity = session.look_at_identity().await?;
        if self.waits {
            session.check_waiting().await?;
        }
        Ok(session)
    }
}

impl RedisSession {
    /// Sends a request, and returns the answer.
    pub async fn ask<T: FromRedisValue>(&mut self, request: &Cmd) -> Result<T, Fault> {
        request.query_async(&mut self.connection).await.map_err(fault)
    }

    /// Sends a change, and returns the answer. One that cannot be read does not say whether the change was made.
    pub async fn tell<T: FromRedisValue>(&mut self, request: &Cmd) -> Result<T, Fault> {
        request.query_async(&mut self.connection).await.map_err(|error: RedisError| match fault(error) {
            Fault::Unexpected { what, .. } if what == OTHER_FORM => Fault::Unclear(what),
            fault => fault,
        })
    }

    /// The answer, or `None` where the server does not let us ask that.
    pub async fn ask_if_allowed<T: FromRedisValue>(&mut self, request: &Cmd) -> Result<Option<T>, Fault> {
        match self.ask(request).await {
            Ok(answer) => Ok(Some(answer)),
            Err(Fault::Denied(_) | Fault::Refused(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Learns whether the user may wait for replicas, before there is a change to wait for.
    pub async fn check_waiting(&mut self) -> Result<(), Fault> {
        self.ask::<u32>(cmd("WAIT").arg(0).arg(1)).await.map(|_| ())
    }

    /// Waits until this many replicas have received the changes that were sent before, at most for half a second.
    pub async fn wait_for_replicas(&mut self, wanted: u32) -> Result<(), Fault> {
        match self.ask::<u32>(cmd("WAIT").arg(wanted).arg(500)).await {
            Ok(count) if count >= wanted => Ok(()),
            Ok(count) => Err(Fault::Unclear(format!("only {count} of {wanted} replicas have received the change"))),
            Err(fault) => Err(Fault::Unclear(fault.to_string())),
        }
    }

    /// A replica would answer reads with what was a moment ago.
    async fn check_role(&mut self) -> Result<(), Fault> {
        let answer: Option<Vec<Value>> = match self.ask_if_allowed(&cmd("ROLE")).await {
            Err(Fault::Unexpected { .. }) => return Err(Fault::Broken("it does not answer as Redis does".to_owned())),
            other => other?,
        };
        let role = answer.and_then(|answer| answer.into_iter().next()).map(String::from_owned_redis_value);
        match role {
            None => {}
            Some(Ok(role)) if role == "master" => self.role_is_known = true,
            Some(_) => return Err(Fault::NotHere("it is not the primary".to_owned())),
        }
        Ok(())
    }

    /// A setting, if we may see it.
    async fn setting(&mut self, name: &str) -> Result<Option<String>, Fault> {
        let found: Option<Vec<String>> = self.ask_if_allowed(cmd("CONFIG").arg("GET").arg(name)).await?;
        Ok(found.and_then(|pair| pair.into_iter().nth(1)))
    }

    /// What a user without the right to run `CONFIG GET` sees, too.
    async fn info(&mut self) -> Result<InfoDict, Fault> {
        Ok(self.ask_if_allowed(&cmd("INFO")).await?.unwrap_or_else(|| InfoDict::new("")))
    }

    /// Which run of which server this is, and of which line of replicas: a restart, which may be one with other files, changes the
    /// first, and a promotion both. As far as the user may see it.
    pub async fn look_at_identity(&mut self) -> Result<Option<String>, Fault> {
        let info = self.info().await?;
        let part = |name: &str, of: &str| {
            let value =
                info.get::<String>(of).filter(|value| value.bytes().all(|byte| byte.is_ascii_alphanumeric()))?;
            Some(format!("{name}={value}"))
        };
        let parts: Vec<String> =
            [part("run", "run_id"), part("replication", "master_replid")].into_iter().flatten().collect();
        Ok((!parts.is_empty()).then(|| parts.join(" ")))
    }

    /// Settings with which changes can be lost, and settings that cannot be seen.
    pub async fn findings(&mut self) -> Result<Findings, Fault> {
        let info = self.info().await?;
        let appendonly = match info.get::<u8>("aof_enabled") {
            Some(value) => Some(if value == 1 { "yes" } else { "no" }.to_owned()),
            None => self.setting("appendonly").await?,
        };
        let appendfsync = self.setting("appendfsync").await?;
        let policy = match info.get("maxmemory_policy") {
            Some(value) => Some(value),
            None => self.setting("maxmemory-policy").await?,
        };
        let (mut warnings, mut unseen) = (Vec::new(), Vec::new());
        let mut check = |name: &str, value: Option<&str>, is_good: &dyn Fn(&str) -> bool, otherwise: &str| match value {
            None => {
                unseen.push(format!("The registry does not show its setting {name}: make sure that it is {otherwise}"));
            }
            Some(value) if !is_good(value) => warnings.push(format!(
                "The registry has {name} {value}: it can lose changes, and workers can then be granted twice. Set it \
                 to {otherwise}"
            )),
            Some(_) => {}
        };
        check("appendonly", appendonly.as_deref(), &|value| value == "yes", "yes.");
        if appendonly.as_deref() != Some("no") {
            check("appendfsync", appendfsync.as_deref(), &|value| value == "always", "always.");
        }
        // Our key has no expiry, so volatile-* does not evict it.
        check("maxmemory-policy", policy.as_deref(), &|value| !value.starts_with("allkeys-"), "noeviction.");
        match info.get::<u32>("connected_slaves") {
            None => unseen.push(
                "The registry does not show whether it has replicas: a failover to one of them can lose changes. Allow the command \
                 INFO."
                    .to_owned(),
            ),
            Some(0) => {}
            Some(_) => warnings.push(
                "The registry has replicas: a failover to one of them can lose changes, and workers can then be \
                 granted twice. Fail over by hand only, after the primary is stopped and the replica has caught up."
                    .to_owned(),
            ),
        }
        if !self.role_is_known {
            unseen.push(
                "The registry does not show its role: name no replicas in the URL, or allow the command ROLE."
                    .to_owned(),
            );
        }
        Ok(Findings { warnings, unseen })
    }
}
