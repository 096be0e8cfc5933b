//! How long a cluster takes no writes, and makes no IDs, while its servers fail: asked of each server every few milliseconds.

use crate::load::connect;
use crate::record::{Call, Record, Run};
use postgres::Client;
use snowflake_test::ids;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Between two questions to one server.
const PERIOD: Duration = Duration::from_millis(20);

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// That a row without an ID is committed.
    Writes,
    /// That an ID is made.
    Ids,
}

/// When one kind of question was answered by any server, since the start of the record.
type Answers = Arc<Mutex<Vec<Duration>>>;

/// Asks until it is dropped, or told to finish.
pub struct Probes {
    writes: Answers,
    ids: Answers,
    record: Arc<Record>,
    done: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// How long nothing was answered, at the longest.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    /// No server took a write.
    pub without_writes: Duration,
    /// No server made an ID.
    pub without_ids: Duration,
}

impl Probes {
    /// Asks the servers at these ports. The IDs go into the record, as all others do.
    pub fn start(record: &Arc<Record>, ports: &[u16]) -> Self {
        let (writes, ids, done) = (Answers::default(), Answers::default(), Arc::new(AtomicBool::new(false)));
        let mut threads = Vec::new();
        for &port in ports {
            for kind in [Kind::Writes, Kind::Ids] {
                let answers = Arc::clone(if kind == Kind::Writes { &writes } else { &ids });
                let (record, done) = (Arc::clone(record), Arc::clone(&done));
                threads.push(thread::spawn(move || {
                    while !done.load(Relaxed) {
                        // It is down, or starts.
                        let _ = ask(port, kind, &answers, &record, &done);
                        thread::sleep(PERIOD * 2);
                    }
                }));
            }
        }
        Self { writes, ids, record: Arc::clone(record), done, threads }
    }

    /// The longest time without answers from this instant until now.
    pub fn outage_since(&self, since: Duration) -> Outage {
        let until = self.record.now();
        let longest = |answers: &Answers| {
            let answers = answers.lock().unwrap();
            let mut instants: Vec<Duration> = answers.iter().copied().filter(|answer| *answer >= since).collect();
            instants.extend([since, until]);
            instants.sort_unstable();
            instants.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap()
        };
        Outage { without_writes: longest(&self.writes), without_ids: longest(&self.ids) }
    }

    /// Ends the questions. All servers must run.
    ///
    /// # Panics
    /// Where a thread has panicked.
    pub fn finish(mut self) {
        self.done.store(true, Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.done.store(true, Relaxed);
    }
}

/// Asks in one session until it is lost, or the server becomes a standby.
fn ask(port: u16, kind: Kind, answers: &Answers, record: &Record, done: &AtomicBool) -> Result<(), postgres::Error> {
    let mut client: Client = connect(port)?;
    let run = Run::of(&mut client)?;
    while !done.load(Relaxed) {
        let (begin, tag) = (record.now(), record.tags(1));
        let answer = match kind {
            Kind::Writes => client.query("INSERT INTO plain VALUES ($1) RETURNING n", &[&tag]),
            Kind::Ids => client.query("SELECT snowflake_next()", &[]),
        };
        match answer {
            Ok(rows) => {
                let end = record.now();
                if kind == Kind::Ids {
                    record.note(Call { run: run.clone(), begin, end, tag, ids: ids(&rows) });
                }
                answers.lock().unwrap().push(end);
            }
            // Without a lease.
            Err(error) if error.code().is_some_and(|code| code.code() == "55000") => record.note_error(&error),
            // A standby, which may become the primary any time. A new session for each question would cost more than all else.
            Err(error) if error.code().is_some_and(|code| code.code() == "25006") => {}
            Err(error) => return Err(error),
        }
        thread::sleep(PERIOD);
    }
    Ok(())
}
