//! A session with a PostgreSQL server.

use super::frames::{ClearText, Encrypt, Frames, Look};
use super::identity::Shown;
use super::schema::{CHANGED, Found, LOOK_COUNT, TextRow, look};
use super::statements::{BEGIN_COUNT, PATH};
use crate::Password;
use crate::address::{Host, UseTls};
use crate::net::{Driver, Fault, Stream, Tls, settle};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_postgres::config::{SslMode, SslNegotiation};
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls, SimpleQueryMessage, SimpleQueryRow};
use tokio_postgres_rustls::MakeRustlsConnect;

/// The user who connects, and how.
pub(super) struct PostgresLogin {
    pub user: String,
    pub password: Option<Password>,
    pub database: String,
    pub use_tls: UseTls,
    pub tls: Option<Tls>,
}

/// A session that is authenticated.
pub(super) struct PostgresSession {
    client: Client,
    /// The last warning that the server sent, of those that may be about the commit.
    warning: Arc<Mutex<Option<String>>>,
    /// Why the connection ended, if it has.
    end: Arc<Mutex<Option<Fault>>>,
    driver: Driver,
    pub is_encrypted: bool,
    /// What the schema of our tables was when it was last looked at.
    pub found: Option<Found>,
}

impl PostgresLogin {
    pub async fn connect(&self, mut stream: Stream, host: &Host) -> Result<PostgresSession, Fault> {
        match &self.tls {
            Some(tls) if offers_tls(&mut stream).await? => self.connect_with(tls, stream, host).await,
            Some(_) if self.use_tls == UseTls::Always => Err(Fault::Tls("the server does not support TLS".to_owned())),
            _ => self.connect_without(stream).await,
        }
    }

    async fn connect_with(&self, tls: &Tls, stream: Stream, host: &Host) -> Result<PostgresSession, Fault> {
        let mut config = self.config();
        // The server was asked.
        config.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
        let connector =
            MakeTlsConnect::<Stream>::make_tls_connect(&mut MakeRustlsConnect::new(tls.config()), &host.name)
                .map_err(|error| Fault::Tls(error.to_string()))?;
        let (client, connection) = config.connect_raw(stream, Encrypt(connector)).await.map_err(at_start)?;
        Ok(PostgresSession::new(client, connection, true))
    }

    async fn connect_without(&self, stream: Stream) -> Result<PostgresSession, Fault> {
        let clear_text = match stream.is_local() || self.use_tls == UseTls::Never {
            true => ClearText::Sent,
            false => ClearText::Refused,
        };
        let mut config = self.config();
        config.ssl_mode(SslMode::Disable);
        let inspector = Look::new(stream.allowance(), clear_text);
        let frames = Frames { stream, inspector };
        let (client, connection) = config.connect_raw(frames, NoTls).await.map_err(at_start)?;
        Ok(PostgresSession::new(client, connection, false))
    }

    fn config(&self) -> Config {
        let mut config = Config::new();
        config.user(&self.user).dbname(&self.database).application_name("pg_snowflake");
        if let Some(password) = &self.password {
            config.password(password.reveal());
        }
        config
    }
}

/// Whether the server takes up TLS. No byte after its answer is read: what follows is TLS, or nothing is.
async fn offers_tls(stream: &mut Stream) -> Result<bool, Fault> {
    const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
    stream.write_all(&SSL_REQUEST).await?;
    match stream.read_u8().await? {
        b'S' => Ok(true),
        b'N' => Ok(false),
        _ => Err(Fault::Broken("it does not answer as PostgreSQL does".to_owned())),
    }
}

impl PostgresSession {
    fn new<S, T>(client: Client, mut connection: Connection<S, T>, is_encrypted: bool) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let warning: Arc<Mutex<Option<String>>> = Arc::default();
        let end: Arc<Mutex<Option<Fault>>> = Arc::default();
        let (seen, ended) = (warning.clone(), end.clone());
        let driver = Driver::spawn(async move {
            while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
                match message {
                    Ok(AsyncMessage::Notice(notice)) if casts_doubt(notice.parsed_severity(), notice.routine()) => {
                        *locked(&seen) = Some(notice.message().to_owned());
                    }
                    Ok(_) => {}
                    Err(error) => {
                        *locked(&ended) = Some(of_request(error));
                        break;
                    }
                }
            }
        });
        Self { client, warning, end, driver, is_encrypted, found: None }
    }

    /// Runs statements, separated by `;`, and returns the rows of each. All are sent in one message, so that they take one
    /// round trip, and that none of them is run after one that failed. They are not prepared: PgBouncer may stand between.
    ///
    /// The only way to send some: so each message begins with [`PATH`], and ends there where the tables are not those that were looked at.
    ///
    /// Each of them returns as many rows as it says that it has read or changed.
    async fn send(&self, begin: Option<&str>, statements: &str) -> Result<Vec<Vec<TextRow>>, Fault> {
        self.take_warning();
        let mut results = Vec::new();
        let mut rows = Vec::new();
        let guard = self.found.as_ref().map(Found::guard);
        // What is read needs no lock: it runs no code of a trigger's.
        let lock = self.found.as_ref().filter(|_| begin.is_some()).and_then(|found| found.lock(statements));
        let start_count =
            1 + begin.map_or(0, |_| BEGIN_COUNT) + usize::from(lock.is_some()) + usize::from(guard.is_some());
        // What begins a transaction must come before anything that reads; and the lock before the look.
        let start: Vec<&str> = [Some(PATH), begin, lock.as_deref(), guard.as_deref()].into_iter().flatten().collect();
        let messages = self.client.simple_query(&format!("{}; {statements}", start.join("; "))).await;
        for message in messages.map_err(|error| locked(&self.end).take().unwrap_or_else(|| of_request(error)))? {
            match message {
                SimpleQueryMessage::Row(row) => rows.push(texts(&row)?),
                SimpleQueryMessage::CommandComplete(count) if count == rows.len() as u64 => {
                    results.push(std::mem::take(&mut rows));
                }
                SimpleQueryMessage::CommandComplete(_) => {
                    return Err(Fault::Unclear("more rows, or fewer, than the server says".to_owned()));
                }
                _ => {}
            }
        }
        if results.len() < start_count {
            return Err(Fault::Unclear("no answer where there must be one".to_owned()));
        }
        Ok(results.split_off(start_count))
    }

    /// Runs statements that need no transaction of their own.
    pub async fn run(&self, statements: &str) -> Result<Vec<Vec<TextRow>>, Fault> {
        self.send(None, statements).await
    }

    /// What the server shows of its identity.
    pub fn shown(&self) -> Shown {
        self.found.as_ref().map(|found| found.shown).unwrap_or_default()
    }

    /// Looks at what the database has in the place of our tables.
    pub async fn look(&self) -> Result<Found, Fault> {
        Found::read(&self.run(&look()).await?)
    }

    /// Begins a transaction, runs statements in it, and looks at what there is then. It ends with [`PostgresSession::commit`], or with the
    /// session.
    pub async fn begin_and_look(&self, begin: &str, statements: &[String]) -> Result<Found, Fault> {
        let results = self.send(Some(begin), &format!("{}; {}", statements.join("; "), look())).await?;
        Found::read(&results[results.len().saturating_sub(LOOK_COUNT)..])
    }

    /// Runs statements in the transaction that has begun, and commits it.
    pub async fn commit(&self, statements: &[String]) -> Result<(), Fault> {
        let statements: Vec<&str> = statements.iter().map(String::as_str).chain(["COMMIT"]).collect();
        self.run(&statements.join("; ")).await?;
        self.take_warning().map_or(Ok(()), |warning| Err(Fault::Unclear(warning)))
    }

    /// Runs statements in one transaction, whose commit is durable when this returns; and returns the rows of each.
    pub async fn transaction(&self, begin: &str, statements: &[String]) -> Result<Vec<Vec<TextRow>>, Fault> {
        let results = self.send(Some(begin), &format!("{}; COMMIT", statements.join("; "))).await?;
        match self.take_warning() {
            // Somebody ended the wait for a synchronous standby: the change is there, and may be lost by a failover.
            Some(warning) => Err(Fault::Unclear(warning)),
            None if results.len() != statements.len() + 1 => {
                Err(Fault::Unclear("more answers, or fewer, than there were statements".to_owned()))
            }
            None => Ok(results),
        }
    }

    fn take_warning(&self) -> Option<String> {
        locked(&self.warning).take()
    }

    /// So that the server does not log a lost connection.
    pub async fn close(self) {
        drop(self.client);
        settle().await;
        drop(self.driver);
    }
}

/// Whether a notice may say that a commit is not what was asked for. Any warning may, such as that a wait for a synchronous standby was
/// canceled, but for those that numbers of transactions run out: every transaction has one, long before none is left. Texts are in the
/// server's language; the names of its functions are not.
fn casts_doubt(severity: Option<Severity>, routine: Option<&str>) -> bool {
    severity == Some(Severity::Warning) && !matches!(routine, Some("GetNewTransactionId" | "GetNewMultiXactId"))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The columns of a row.
fn texts(row: &SimpleQueryRow) -> Result<TextRow, Fault> {
    let text = |column| row.try_get(column).map(|text: Option<&str>| text.map(str::to_owned));
    let texts: Result<TextRow, _> = (0..row.len()).map(text).collect();
    texts.map_err(|_| Fault::Unclear("a text that is not UTF-8".to_owned()))
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
        &SqlState::INVALID_TEXT_REPRESENTATION if said.message().contains(CHANGED) => {
            Fault::Stale("its tables are not what they were".to_owned())
        }
        // They were there when they were looked at.
        &SqlState::INVALID_SCHEMA_NAME | &SqlState::UNDEFINED_TABLE => Fault::Stale(text),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_warnings_of_a_wraparound_leave_a_commit_certain() {
        let warning = Some(Severity::Warning);
        assert!(casts_doubt(warning, Some("SyncRepWaitForLSN")));
        assert!(casts_doubt(warning, Some("exec_stmt_raise")));
        assert!(casts_doubt(warning, None));
        assert!(!casts_doubt(warning, Some("GetNewTransactionId")));
        assert!(!casts_doubt(warning, Some("GetNewMultiXactId")));
        assert!(!casts_doubt(Some(Severity::Notice), Some("SyncRepWaitForLSN")));
        assert!(!casts_doubt(None, None));
    }
}
