//! A session with a member of an etcd cluster.

use crate::Password;
use crate::address::Host;
use crate::net::{Fault, Stream, Tls, Transport};
use etcd_client::{
    AlarmAction, AlarmType, Channel, Client, Compare, CompareOp, ConnectOptions, GetOptions, KeyValue, Txn, TxnOp,
    TxnOpResponse,
};
use hyper_util::rt::TokioIo;
use std::error::Error as _;
use std::future::ready;
use tonic::transport::Endpoint;
use tonic::{Code, Status};
use tower::service_fn;

/// How many keys a page has.
const PAGE: i64 = 500;

/// The user who connects, and how.
pub(super) struct EtcdLogin {
    pub user: Option<String>,
    pub password: Option<Password>,
    pub tls: Option<Tls>,
}

/// A connection with one member, authenticated where that is needed.
pub(super) struct Member {
    client: Client,
    authentication_is_off: bool,
    /// The identity of the cluster, once it has answered.
    pub identity: Option<String>,
}

impl EtcdLogin {
    pub async fn connect(&self, stream: Stream, host: &Host) -> Result<Member, Fault> {
        let options = match (&self.user, &self.password) {
            (None, None) => ConnectOptions::new(),
            (Some(user), Some(password)) => {
                // Tokens last for 5 minutes, and not beyond a restart.
                ConnectOptions::new().with_user(user, password.reveal()).with_auto_token_refresh(true)
            }
            (Some(_), None) => {
                return Err(Fault::Credentials("the URL has a user, and no password is configured".to_owned()));
            }
            (None, Some(_)) => {
                return Err(Fault::Credentials("there is a password, and the URL has no user".to_owned()));
            }
        };
        let stream: Box<dyn Transport> = match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.encrypt(stream, host).await?),
        };
        // The channel connects again where a connection broke. Only `Turns` does that.
        let mut only = Some(TokioIo::new(stream));
        let connect = service_fn(move |_| {
            ready(only.take().ok_or_else(|| Fault::Broken("the server closed the connection".to_owned())))
        });
        let endpoint = Endpoint::from_shared(format!("http://{host}")).map_err(|error| Fault::of_connection(&error))?;
        let channel = endpoint.connect_with_connector(connect).await.map_err(|error| Fault::of_connection(&error))?;
        let channel = Channel::Tonic(channel);
        match Client::from_channel(channel.clone(), Some(options)).await {
            Ok(client) => Ok(Member { client, authentication_is_off: false, identity: None }),
            // Where etcd asks for no user, it has no token for one, and that is no error.
            Err(etcd_client::Error::GRpcStatus(status))
                if status.code() == Code::FailedPrecondition && status.message().contains("not enabled") =>
            {
                let client = Client::from_channel(channel, None).await.map_err(at_start)?;
                Ok(Member { client, authentication_is_off: true, identity: None })
            }
            Err(error) => Err(at_start(error)),
        }
    }
}

/// Of a session that is about to start: whatever it is, no change was sent.
fn at_start(error: etcd_client::Error) -> Fault {
    match fault(error) {
        Fault::Unclear(text) | Fault::Refused(text) => Fault::NotHere(text),
        fault => fault,
    }
}

fn fault(error: etcd_client::Error) -> Fault {
    match error {
        etcd_client::Error::GRpcStatus(status) => of_status(&status),
        other => Fault::of_connection(&other),
    }
}

fn of_status(status: &Status) -> Fault {
    // An error that is not etcd's own comes with its cause.
    if let Some(cause) = status.source() {
        return Fault::of_connection(cause);
    }
    let text = status.message().to_owned();
    // The client says these with codes that etcd has for refusals, which have a text of etcd's. The change may have been made.
    if text.is_empty()
        || ["Error, decoded message length too large", "Content is compressed"]
            .iter()
            .any(|start| text.starts_with(start))
    {
        return Fault::Unclear(text);
    }
    let is_of_user = ["user name", "user ID", "authentication failed", "auth token", "auth store is old"];
    match status.code() {
        Code::Unauthenticated => Fault::Credentials(text),
        Code::PermissionDenied => Fault::Denied(text),
        Code::InvalidArgument if is_of_user.iter().any(|part| text.contains(part)) => Fault::Credentials(text),
        Code::InvalidArgument
        | Code::NotFound
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::OutOfRange => Fault::Refused(text),
        Code::Unimplemented => Fault::NotHere(text),
        // A timeout, no leader, a member that stops: the others may do it yet.
        _ => Fault::Unclear(text),
    }
}

fn not_etcd() -> Fault {
    Fault::Unclear("it does not answer as etcd does".to_owned())
}

/// How a key must be for a change.
#[derive(Clone, Copy)]
pub enum Expected<'a> {
    /// It is not there.
    Nothing,
    /// Its last change has this revision.
    Revision(i64),
    /// It has this value.
    Value(&'a str),
}

impl Member {
    /// The key, linearizably.
    pub async fn one(&mut self, key: &str) -> Result<Option<KeyValue>, Fault> {
        let mut found = self.client.get(key, None).await.map_err(fault)?;
        self.identity = found.header().map(|header| format!("cluster={:016x}", header.cluster_id()));
        Ok(found.take_kvs().into_iter().next())
    }

    /// All keys with this prefix, which ends with a slash, as of one revision.
    pub async fn all(&mut self, prefix: &str) -> Result<Vec<KeyValue>, Fault> {
        // The byte after the slash.
        let end = format!("{}0", prefix.trim_end_matches('/'));
        let mut from = prefix.as_bytes().to_vec();
        let mut revision = 0;
        let mut all = Vec::new();
        loop {
            let options = GetOptions::new().with_range(end.as_str()).with_limit(PAGE).with_revision(revision);
            let mut page = self.client.get(from, Some(options)).await.map_err(fault)?;
            if revision == 0 {
                revision = page.header().ok_or_else(not_etcd)?.revision();
            }
            if page.kvs().len() > usize::try_from(PAGE).unwrap_or_default() {
                return Err(not_etcd());
            }
            all.extend(page.take_kvs());
            match all.last() {
                Some(last) if page.more() => from = [last.key(), &[0]].concat(),
                _ => return Ok(all),
            }
        }
    }

    /// Puts a value where the key is as expected, and another one beside it, and returns the new revision. Else what stands there,
    /// and at the other key, where one is expected.
    pub async fn compare_and_put(
        &mut self,
        key: &str,
        expected: Expected<'_>,
        other: Option<(&str, &str)>,
        value: &str,
        beside: Option<(&str, &str)>,
    ) -> Result<Result<i64, [Option<KeyValue>; 2]>, Fault> {
        let get = || TxnOp::get(key, None);
        let mut conditions = vec![match expected {
            Expected::Nothing => Compare::mod_revision(key, CompareOp::Equal, 0),
            Expected::Revision(revision) => Compare::mod_revision(key, CompareOp::Equal, revision),
            Expected::Value(value) => Compare::value(key, CompareOp::Equal, value),
        }];
        conditions.extend(other.map(|(other, value)| Compare::value(other, CompareOp::Equal, value)));
        // Where there is no other, the same again.
        let look = [get(), TxnOp::get(other.map_or(key, |(other, _)| other), None)];
        let mut change = vec![TxnOp::put(key, value, None), get()];
        change.extend(beside.map(|(key, value)| TxnOp::put(key, value, None)));
        let transaction = Txn::new().when(conditions).and_then(change).or_else(look);
        let answer = self.client.txn(transaction).await.map_err(fault)?;
        let revision = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
        // Of a part that is of no known kind, op_responses() panics.
        if answer.0.responses.iter().any(|part| part.response.is_none()) {
            return Err(not_etcd());
        }
        let mut answers = answer.op_responses().into_iter();
        if !answer.succeeded() {
            return match (answers.next(), answers.next(), answers.next()) {
                (Some(TxnOpResponse::Get(mut found)), Some(TxnOpResponse::Get(mut other)), None) => {
                    Ok(Err([found.take_kvs().into_iter().next(), other.take_kvs().into_iter().next()]))
                }
                _ => Err(not_etcd()),
            };
        }
        match (answers.next(), answers.next()) {
            (Some(TxnOpResponse::Put(_)), Some(TxnOpResponse::Get(found))) => match found.kvs() {
                // It repeats what was to be stored.
                [stands] if stands.value() == value.as_bytes() && stands.mod_revision() == revision => Ok(Ok(revision)),
                _ => Err(not_etcd()),
            },
            _ => Err(not_etcd()),
        }
    }

    /// Whether there is a user, and etcd asks for none.
    pub fn authentication_is_off(&self) -> bool {
        self.authentication_is_off
    }

    /// Whether the alarm NOSPACE is on; `None` where the member does not show that.
    pub async fn has_no_space(&mut self) -> Result<Option<bool>, Fault> {
        match self.client.alarm(AlarmAction::Get, AlarmType::None, None).await.map_err(fault) {
            Ok(answer) => Ok(Some(answer.alarms().iter().any(|alarm| alarm.alarm() == AlarmType::Nospace))),
            Err(Fault::Credentials(_) | Fault::Denied(_) | Fault::Refused(_) | Fault::NotHere(_)) => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}
