//! A primary with its synchronous standby, and sessions that wait for it.

use postgres::{Client, Config, NoTls};
use snowflake_test::check::wait_for;
use snowflake_test::programs::exists;
use snowflake_test::query::NEXT;
use snowflake_test::{Cluster, Options, ids, millis, value};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How long an answer may take that comes at once, on a slow machine.
pub const SOON: Duration = Duration::from_secs(60);

/// How long to watch that something does not happen.
const A_WHILE: Duration = Duration::from_millis(1200);

/// A primary, and the standby that it waits for.
pub struct Pair {
    pub first: Cluster,
    pub second: Cluster,
    /// How the standby connects.
    connection: String,
}

impl Pair {
    pub fn start(options: Options) -> Self {
        let first = options.set("wal_retrieve_retry_interval = '100ms'").start();
        first.client().batch_execute("CREATE TABLE plain (n integer)").unwrap();
        let second = first.standby();
        let connection = value(&mut second.client(), "SHOW primary_conninfo");
        first.reload(&[("synchronous_standby_names", "*")]);
        Self { first, second, connection }
    }

    /// Cuts the standby off: it stays up, and gets nothing of what the primary logs from now on.
    pub fn cut(&self) {
        self.second.reload(&[("primary_conninfo", "")]);
        wait_for("the standby is cut off", || count(&self.first, "pg_stat_replication") == 0);
    }

    /// Undoes [`Pair::cut`].
    pub fn join(&self) {
        let setting = format!("ALTER SYSTEM SET primary_conninfo = '{}'", self.connection.replace('\'', "''"));
        let mut client = self.second.client();
        client.batch_execute(&setting).unwrap();
        client.batch_execute("SELECT pg_reload_conf()").unwrap();
    }

    /// As [`Pair::cut`], and waits until what was reserved before has passed, so that the next claim of each session
    /// must wait.
    pub fn cut_for_all(&self) {
        self.cut();
        thread::sleep(millis(1100));
    }

    /// Resets `synchronous_standby_names`, as an administrator does in an outage.
    pub fn reset(&self) {
        let mut client = self.first.client();
        client.batch_execute("ALTER SYSTEM RESET synchronous_standby_names").unwrap();
        client.batch_execute("SELECT pg_reload_conf()").unwrap();
        let names = "SELECT current_setting('synchronous_standby_names') = ''";
        wait_for("the names are reset", || value(&mut self.first.client(), names));
    }

    /// A session of the primary that runs this after some settings, in a thread of its own.
    pub fn runs(&self, settings: &str, query: &str) -> Session {
        Session::start(&self.first, settings, query)
    }

    /// So many sessions that wait for the standby.
    pub fn waiters(&self, number: usize) -> Vec<Session> {
        let sessions: Vec<_> = (0..number).map(|_| self.runs("", NEXT)).collect();
        self.until_waiting(number);
        sessions
    }

    /// Waits until so many processes wait in `snowflake_next`.
    pub fn until_waiting(&self, number: usize) {
        wait_for(&format!("{number} processes wait"), || {
            count(
                &self.first,
                "pg_stat_activity WHERE state = 'active' AND query LIKE '%snowflake_next%' \
                 AND wait_event IN ('SyncRep', 'Extension')",
            ) == number as i64
        });
    }

    pub fn nobody_waits(&self) {
        wait_for("nobody waits any more", || count(&self.first, "pg_stat_activity WHERE wait_event = 'SyncRep'") == 0);
    }
}

/// `SELECT count(*) FROM` this.
pub fn count(cluster: &Cluster, what: &str) -> i64 {
    value(&mut cluster.client(), &format!("SELECT count(*) FROM {what}"))
}

/// How a query of a [`Session`] ended.
#[derive(Debug)]
pub enum Answer {
    Ids(Vec<i64>),
    /// SQLSTATE and message.
    Error(String, String),
    /// The connection was closed. The client may miss an error that comes together with the end of the connection.
    Closed,
}

impl Answer {
    pub fn of(answer: Result<Vec<postgres::Row>, postgres::Error>) -> Self {
        match answer {
            Ok(rows) => Self::Ids(ids(&rows)),
            Err(error) => match error.as_db_error() {
                Some(error) => Self::Error(error.code().code().to_owned(), error.message().to_owned()),
                None => Self::Closed,
            },
        }
    }

    pub fn ids(self) -> Vec<i64> {
        match self {
            Self::Ids(ids) => ids,
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub fn is_error(&self, code: &str, message: &str) {
        assert!(matches!(self, Self::Error(c, m) if c == code && m == message), "{self:?}");
    }
}

impl Pair {
    /// The session was ended by the server, for this reason.
    #[track_caller]
    pub fn has_ended(&self, answer: &Answer, code: &str, message: &str) {
        match answer {
            Answer::Closed => assert!(self.first.log().contains(&format!("FATAL:  {message}")), "{}", self.first.log()),
            _ => answer.is_error(code, message),
        }
    }
}

/// A session that runs one query at a time while the test goes on.
pub struct Session {
    pub pid: i32,
    pub answer: Receiver<(Client, Answer)>,
    pub notices: Arc<Mutex<Vec<String>>>,
}

impl Session {
    pub fn start(cluster: &Cluster, settings: &str, query: &str) -> Self {
        let notices = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&notices);
        let mut client = Config::new()
            .host_path(cluster.socket())
            .user("postgres")
            .dbname("postgres")
            .notice_callback(move |notice| heard.lock().unwrap().push(format!("{notice:?}")))
            .connect(NoTls)
            .unwrap();
        // Before the settings, as a short timeout may end this query on a slow machine.
        let pid = value(&mut client, "SELECT pg_backend_pid()");
        client.batch_execute(settings).unwrap();
        Self::run(client, pid, notices, query)
    }

    /// Runs a query in a thread of its own.
    pub fn run(mut client: Client, pid: i32, notices: Arc<Mutex<Vec<String>>>, query: &str) -> Self {
        let (sender, answer) = channel();
        let query = query.to_owned();
        thread::spawn(move || {
            let answer = Answer::of(client.query(&query, &[]));
            // The test may be over.
            let _ = sender.send((client, answer));
        });
        Self { pid, answer, notices }
    }

    /// The session and its answer, which must come soon.
    pub fn finish(self) -> (Client, Answer) {
        let pid = self.pid;
        let finished = self.answer.recv_timeout(SOON).unwrap_or_else(|_| panic!("session {pid} does not come back"));
        assert!(self.notices.lock().unwrap().is_empty(), "{:?}", self.notices);
        finished
    }

    pub fn answer(self) -> Answer {
        self.finish().1
    }

    /// It gets no answer.
    pub fn stays(&self, what: &str) {
        if let Ok((_, answer)) = self.answer.recv_timeout(A_WHILE) {
            panic!("{what}: did not wait: {answer:?}");
        }
    }

    /// Its process is gone.
    pub fn is_gone(&self) -> bool {
        !exists(self.pid.unsigned_abs())
    }
}

/// The server has not logged PostgreSQL's messages for a commit that was cancelled while it waited: they would be
/// false, as nothing was committed.
pub fn nothing_was_said_of_a_commit(cluster: &Cluster) {
    let log = cluster.log();
    for words in ["already committed", "wait for synchronous replication"] {
        assert!(!log.contains(words), "{log}");
    }
}
