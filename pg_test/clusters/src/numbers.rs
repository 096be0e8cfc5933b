//! Clients that take numbers of a segment, from whichever of some servers is a primary.

use crate::load::connect;
use snowflake_test::check::{distinct, rising};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The segment.
pub const CREATE: &str = "SELECT snowflake_segment_create('orders')";

/// Calls that take numbers of it, in turn.
const CALLS: [&str; 3] = [
    "SELECT snowflake_segment_next('orders')",
    "SELECT snowflake_segment_next('orders', 7)",
    "SELECT snowflake_segment_next('orders') FROM generate_series(1, 3)",
];

/// How long a client rests between two calls.
const REST: Duration = Duration::from_millis(10);

/// Clients that take numbers until [`Numbers::finish`].
pub struct Numbers {
    done: Arc<AtomicBool>,
    count: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Vec<i64>>>,
}

impl Numbers {
    /// So many clients of servers at these ports; with one port, of that server, or what stands before it.
    pub fn start(ports: &[u16], clients: usize) -> Self {
        let (done, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let client = |number: usize| {
            let (ports, done, count) = (ports.to_vec(), Arc::clone(&done), Arc::clone(&count));
            thread::spawn(move || client(number, &ports, &done, &count))
        };
        let clients = (0..clients).map(client).collect();
        Self { done, count, clients }
    }

    /// How many numbers were taken.
    pub fn count(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Ends the clients; all servers must run. Returns how many numbers they took, of which none came twice.
    ///
    /// # Panics
    /// Where one did.
    pub fn finish(self) -> usize {
        self.done.store(true, Relaxed);
        let lists: Vec<Vec<i64>> = self.clients.into_iter().map(|client| client.join().unwrap()).collect();
        distinct(&lists)
    }
}

fn client(number: usize, ports: &[u16], done: &AtomicBool, count: &AtomicUsize) -> Vec<i64> {
    let mut all = Vec::new();
    for attempt in number.. {
        if done.load(Relaxed) {
            break;
        }
        thread::sleep(REST);
        let Ok(mut session) = connect(ports[attempt % ports.len()]) else { continue };
        let mut of_server = vec![0];
        for call in CALLS.iter().cycle() {
            if done.load(Relaxed) {
                break;
            }
            // Statements that are not prepared, as others may come by PgBouncer.
            match session.simple_query(call) {
                Ok(messages) => {
                    let taken = ids_of(&messages);
                    count.fetch_add(taken.len(), Relaxed);
                    of_server.extend(taken);
                }
                // A standby, a server that is gone, or one that has no numbers now.
                Err(_) => break,
            }
            thread::sleep(REST);
        }
        rising(&of_server);
        all.extend(of_server.drain(1..));
    }
    all
}

fn ids_of(messages: &[postgres::SimpleQueryMessage]) -> Vec<i64> {
    let number = |message: &postgres::SimpleQueryMessage| match message {
        postgres::SimpleQueryMessage::Row(row) => row.get(0).map(|text| text.parse().unwrap()),
        _ => None,
    };
    messages.iter().filter_map(number).collect()
}
