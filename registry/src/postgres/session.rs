//! A session with a PostgreSQL server.

use super::statements;
use crate::Password;
use crate::net::{Fault, Stream, Tls, settle};
use crate::url::{Host, UseTls};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Who connects, and how.
pub(super) struct Login {
    pub user: String,
    pub password: Option<Password>,
    pub database: String,
    pub use_tls: UseTls,
    pub tls: Option<Tls>,
}

/// A session that is authenticated.
pub(super) struct Session {
    client: Client,
    /// The last warning that the server sent.
    warning: Arc<Mutex<Option<String>>>,
    connection: Connected,
}

/// What reads and writes the connection. Ends with the session, also if the server never answers.
struct Connected(JoinHandle<()>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The columns of a row as text.
pub(super) type Row = Vec<Option<String>>;

impl Login {
    pub async fn connect(&self, stream: Stream, host: &Host) -> Result<Session, Fault> {
        let mut config = Config::new();
        config.user(&self.user).dbname(&self.database).application_name("pg_snowflake");
        config.ssl_mode(match self.use_tls {
            UseTls::Never => SslMode::Disable,
            UseTls::IfOffered => SslMode::Prefer,
            UseTls::Always => SslMode::Require,
        });
        if let Some(password) = &self.password {
            config.password(password.reveal());
        }
        match &self.tls {
            None => {
                let (client, connection) = config.connect_raw(stream, tokio_postgres::NoTls).await.map_err(at_start)?;
                Ok(Session::new(client, connection))
            }
            Some(tls) => {
                let connector =
                    MakeTlsConnect::<Stream>::make_tls_connect(&mut MakeRustlsConnect::new(tls.config()), &host.name)
                        .map_err(|error| Fault::Tls(error.to_string()))?;
                let (client, connection) = config.connect_raw(stream, connector).await.map_err(at_start)?;
                Ok(Session::new(client, connection))
            }
        }
    }
}

impl Session {
    fn new<T>(client: Client, mut connection: Connection<Stream, T>) -> Self
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let warning: Arc<Mutex<Option<String>>> = Arc::default();
        let seen = warning.clone();
        let connection = tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notice(notice) = message
                    && notice.parsed_severity() == Some(Severity::Warning)
                {
                    *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(notice.message().to_owned());
                }
            }
        });
        Self { client, warning, connection: Connected(connection) }
    }

    /// Runs statements, separated by `;`, and returns the rows of each. All are sent in one message, so that they take one
    /// round trip, and that none of them is run after one that failed. They are not prepared: PgBouncer may stand between.
    pub async fn run(&self, statements: &str) -> Result<Vec<Vec<Row>>, Fault> {
        self.take_warning();
        let mut results = Vec::new();
        let mut rows = Vec::new();
        for message in self.client.simple_query(statements).await.map_err(of_request)? {
            match message {
                SimpleQueryMessage::Row(row) => {
                    rows.push((0..row.len()).map(|column| row.get(column).map(str::to_owned)).collect());
                }
                SimpleQueryMessage::CommandComplete(_) => results.push(std::mem::take(&mut rows)),
                _ => {}
            }
        }
        Ok(results)
    }

    /// Runs statements in one transaction, whose commit is durable when this returns; and returns the rows of each.
    pub async fn transaction(&self, begin: &str, statements: &str) -> Result<Vec<Vec<Row>>, Fault> {
        let results = self.run(&format!("{begin}; {statements}; COMMIT")).await?;
        match self.take_warning() {
            // Somebody ended the wait for a synchronous standby: the change is there, and may be lost by a failover.
            Some(warning) => Err(Fault::Unclear(warning)),
            None => Ok(results.into_iter().skip(statements::count(begin)).collect()),
        }
    }

    fn take_warning(&self) -> Option<String> {
        self.warning.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// So that the server does not log a lost connection.
    pub async fn close(self) {
        drop(self.client);
        settle().await;
        drop(self.connection);
    }
}

/// Of a session that is about to start.
fn at_start(error: tokio_postgres::Error) -> Fault {
    if let Some(said) = error.as_db_error() {
        let text = said.message().to_owned();
        return match said.code().code() {
            code if code.starts_with("28") => Fault::Credentials(text),
            // PgBouncer's errors of authentication have no code of their own.
            "08P01" if text.contains("authentication failed") => Fault::Credentials(text),
            _ => Fault::NotHere(text),
        };
    }
    // The crate tells these apart by their texts only.
    let fault = Fault::of_connection(&error);
    match (error.to_string(), fault) {
        (kind, Fault::Broken(cause)) if kind.contains("TLS") => Fault::Tls(cause),
        (kind, Fault::Broken(cause)) if kind.contains("authentication") || kind.contains("configuration") => {
            Fault::Credentials(cause)
        }
        (_, fault) => fault,
    }
}

/// Of a request.
fn of_request(error: tokio_postgres::Error) -> Fault {
    match error.as_db_error() {
        Some(said) => of_answer(said),
        None => Fault::of_connection(&error),
    }
}

fn of_answer(said: &DbError) -> Fault {
    let code = said.code();
    let text = format!("{} (SQLSTATE {})", said.message(), code.code());
    let is_end = matches!(said.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
    match code {
        &SqlState::READ_ONLY_SQL_TRANSACTION | &SqlState::CANNOT_CONNECT_NOW => Fault::NotHere(text),
        // The session ends, and may do so after the commit; or PgBouncer has lost its server.
        _ if is_end || code.code().starts_with("08") => Fault::Unclear(text),
        // The columns are not ours.
        &SqlState::UNDEFINED_COLUMN
        | &SqlState::DATATYPE_MISMATCH
        | &SqlState::WRONG_OBJECT_TYPE
        | &SqlState::INVALID_COLUMN_REFERENCE => {
            Fault::Unexpected { place: "schema snowflake_registry".to_owned(), what: text }
        }
        _ => Fault::Refused(text),
    }
}
