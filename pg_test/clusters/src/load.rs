//! Clients that write to whichever of some hosts is the primary, as applications do: libpq's
//! `target_session_attrs=read-write` over all of them.

use crate::record::{Call, Record, Run};
use postgres::config::TargetSessionAttrs;
use postgres::{Client, Config, NoTls};
use snowflake_test::check::wait_for;
use snowflake_test::directories::directory;
use snowflake_test::{Cluster, Installation, ids};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a client waits for an answer before it takes the server for dead and connects anew. What the old session still
/// gets, when a frozen server goes on, is recorded all the same.
const GIVES_UP_AFTER: Duration = Duration::from_secs(3);

/// How long a client that has lost its session rests. Were it short, sessions that standbys refuse would take all of a small
/// machine.
const RECONNECTS_AFTER: Duration = Duration::from_millis(200);

/// How long a client rests between two calls.
const REST: Duration = Duration::from_millis(8);

/// A session of a server on the loopback.
///
/// # Errors
/// Where it does not accept it.
pub fn connect(port: u16) -> Result<Client, postgres::Error> {
    let mut config = Config::new();
    config.host("127.0.0.1").port(port).user("postgres").dbname("postgres").connect_timeout(Duration::from_secs(2));
    config.connect(NoTls)
}

/// Waits until the table of a load has so many rows more than now, however long that takes on a busy machine.
pub fn until_written(cluster: &Cluster, rows: i64) {
    let count = || cluster.retry(|client| Ok(client.query_one("SELECT count(*) FROM stored", &[])?.get::<_, i64>(0)));
    let before = count();
    wait_for("rows are written", || {
        thread::sleep(Duration::from_millis(50));
        count() >= before + rows
    });
}

/// A session of the first of these that takes writes.
fn connect_to_primary(ports: &[u16]) -> Result<Client, postgres::Error> {
    let mut config = Config::new();
    config.user("postgres").dbname("postgres").connect_timeout(Duration::from_secs(2));
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    for &port in ports {
        config.host("127.0.0.1").port(port);
    }
    config.connect(NoTls)
}

/// Clients that write. They end when this is dropped, or by [`Load::finish`].
pub struct Load {
    record: Arc<Record>,
    done: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
    sessions: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Load {
    /// So many clients of a cluster with these ports, and one pgbench.
    pub fn start(record: &Arc<Record>, ports: &[u16], clients: usize) -> Self {
        let (done, sessions) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let mut threads: Vec<_> = (0..clients)
            .map(|number| {
                let (record, ports) = (Arc::clone(record), ports.to_vec());
                let (done, sessions) = (Arc::clone(&done), Arc::clone(&sessions));
                thread::spawn(move || client(number, &ports, &record, &done, &sessions))
            })
            .collect();
        let (ports, done_too) = (ports.to_vec(), Arc::clone(&done));
        threads.push(thread::spawn(move || pgbench(&ports, &done_too)));
        Self { record: Arc::clone(record), done, clients: threads, sessions }
    }

    /// Ends the clients. All servers must run, so that each call gets its answer.
    ///
    /// # Panics
    /// Where a client has panicked or hangs.
    pub fn finish(mut self) {
        self.done.store(true, Relaxed);
        for client in self.clients.drain(..) {
            client.join().unwrap();
        }
        let start = Instant::now();
        for session in self.sessions.lock().unwrap().drain(..) {
            while !session.is_finished() {
                assert!(start.elapsed() < Duration::from_secs(60), "a call hangs: {:?}", self.record.errors());
                thread::sleep(Duration::from_millis(20));
            }
            session.join().unwrap();
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.done.store(true, Relaxed);
    }
}

/// A client: one session after the other, or beside one that hangs.
fn client(
    number: usize,
    ports: &[u16],
    record: &Arc<Record>,
    done: &Arc<AtomicBool>,
    sessions: &Mutex<Vec<JoinHandle<()>>>,
) {
    for attempt in number.. {
        // Each attempt begins with another host.
        let mut ports = ports.to_vec();
        let first = attempt % ports.len();
        ports.rotate_left(first);
        let (progress, replaced) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let session = {
            let (record, progress) = (Arc::clone(record), Arc::clone(&progress));
            let (done, replaced) = (Arc::clone(done), Arc::clone(&replaced));
            thread::spawn(move || {
                session(number, &ports, &record, &progress, &|| done.load(Relaxed) || replaced.load(Relaxed))
            })
        };
        let (mut seen, mut since) = (0, Instant::now());
        while !done.load(Relaxed) && !session.is_finished() && since.elapsed() < GIVES_UP_AFTER {
            thread::sleep(Duration::from_millis(10));
            let now = progress.load(Relaxed);
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
        }
        replaced.store(true, Relaxed);
        sessions.lock().unwrap().push(session);
        if done.load(Relaxed) {
            return;
        }
        thread::sleep(RECONNECTS_AFTER);
    }
}

/// One session, until it is lost or told to end.
fn session(number: usize, ports: &[u16], record: &Record, progress: &AtomicU64, ends: &dyn Fn() -> bool) {
    let Ok(mut client) = connect_to_primary(ports) else { return };
    let Ok(run) = Run::of(&mut client) else { return };
    let mut round = number;
    while !ends() {
        let count = if round % 4 == 1 { 50 } else { 1 };
        let (begin, tag) = (record.now(), record.tags(count));
        let answer = match round % 4 {
            0 => client.query("SELECT snowflake_next()", &[]),
            1 => client.query("SELECT snowflake_next(50)", &[]),
            2 => rolled_back(&mut client, tag),
            _ => client.query("INSERT INTO stored (tag) VALUES ($1) RETURNING id", &[&tag]),
        };
        match answer {
            Ok(rows) => record.note(Call { run: run.clone(), begin, end: record.now(), tag, ids: ids(&rows) }),
            Err(error) => {
                record.note_error(&error);
                // A standby that was a primary: elsewhere there is another one.
                if error.code().is_none_or(|code| code.code() == "25006") || client.is_closed() {
                    return;
                }
            }
        }
        round += 1;
        progress.fetch_add(1, Relaxed);
        thread::sleep(REST);
    }
}

fn rolled_back(client: &mut Client, tag: i64) -> Result<Vec<postgres::Row>, postgres::Error> {
    let mut transaction = client.transaction()?;
    let rows = transaction.query("INSERT INTO stored (tag) VALUES ($1) RETURNING id", &[&tag])?;
    transaction.rollback()?;
    Ok(rows)
}

/// Runs of pgbench, which brings libpq. Its rows have negative tags, which nobody else has.
fn pgbench(ports: &[u16], done: &AtomicBool) {
    let installation = Installation::under_test();
    let directory = directory("pgbench-");
    let script = directory.path().join("insert.sql");
    std::fs::write(&script, "INSERT INTO stored (tag) VALUES (-(random() * 9e18)::bigint);\n").unwrap();
    while !done.load(Relaxed) {
        let start = Instant::now();
        let mut run = Pgbench(spawn(&installation, &script, ports));
        while !done.load(Relaxed) && run.runs() && start.elapsed() < Duration::from_secs(8) {
            thread::sleep(Duration::from_millis(50));
        }
    }
}

fn spawn(installation: &Installation, script: &Path, ports: &[u16]) -> Child {
    let list = |items: Vec<String>| items.join(",");
    let mut command = Command::new(installation.bin().join("pgbench"));
    command.env_clear();
    command.env("PGHOST", list(ports.iter().map(|_| "127.0.0.1".to_owned()).collect()));
    command.env("PGPORT", list(ports.iter().map(u16::to_string).collect()));
    command.env("PGUSER", "postgres").env("PGDATABASE", "postgres").env("PGCONNECT_TIMEOUT", "2");
    command.env("PGTARGETSESSIONATTRS", "read-write");
    command.args(["--no-vacuum", "--client=2", "--time=5", "--rate=50", "--file"]).arg(script);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Ends with its value.
struct Pgbench(Child);

impl Pgbench {
    fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Pgbench {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
