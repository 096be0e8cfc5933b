//! The links between the members of a cluster of etcd: proxies before the ports for peers, which can hold what goes from one member to
//! another, as a network does that loses it.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// By which a member says in a request who it is.
const SENDER: &[u8] = b"X-Server-From: ";

/// The links between members.
#[derive(Clone, Default)]
pub struct Links(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The members' own numbers, by place.
    members: Vec<String>,
    /// From which member to which nothing passes.
    cut: BTreeSet<(usize, usize)>,
}

impl Links {
    /// The port of a proxy before the port for peers of the member at this place.
    pub(crate) fn before(&self, place: usize, port: u16) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let own = listener.local_addr().unwrap().port();
        let links = self.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let sender = Arc::new(Mutex::new(None));
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (links, back, known) = (links.clone(), links.clone(), sender.clone());
                thread::spawn(move || {
                    pass(from, to, |bytes| {
                        let mut sender = sender.lock().unwrap();
                        *sender = sender.take().or_else(|| said(bytes));
                        let sender = sender.clone();
                        links.wait(|state| Some((state.place(sender.as_deref()?)?, place)));
                    });
                });
                thread::spawn(move || {
                    pass(server, client, |_| {
                        let sender = known.lock().unwrap().clone();
                        back.wait(|state| Some((place, state.place(sender.as_deref()?)?)));
                    });
                });
            }
        });
        own
    }

    /// Who is who, once the members have numbers.
    pub(crate) fn know(&self, members: Vec<String>) {
        self.0.lock().unwrap().members = members;
    }

    /// The number of the member at this place, as etcdctl(1) takes it.
    pub fn member(&self, place: usize) -> String {
        self.0.lock().unwrap().members[place].clone()
    }

    /// Nothing passes from one member to another any more.
    pub fn cut(&self, from: usize, to: usize) {
        self.0.lock().unwrap().cut.insert((from, to));
    }

    /// All links are there again, with what was held.
    pub fn heal(&self) {
        self.0.lock().unwrap().cut.clear();
    }

    /// Holds what goes over a link while that is cut. What comes from nobody known passes.
    fn wait(&self, link: impl Fn(&State) -> Option<(usize, usize)>) {
        let is_cut = || {
            let state = self.0.lock().unwrap();
            link(&state).is_some_and(|link| state.cut.contains(&link))
        };
        while is_cut() {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl State {
    fn place(&self, member: &str) -> Option<usize> {
        self.members.iter().position(|other| other == member)
    }
}

/// Who sends a request, where these bytes say so.
fn said(bytes: &[u8]) -> Option<String> {
    let at = bytes.windows(SENDER.len()).position(|part| part == SENDER)? + SENDER.len();
    let name = bytes[at..].iter().take_while(|byte| byte.is_ascii_hexdigit());
    Some(name.map(|&byte| char::from(byte)).collect())
}

/// Until one side ends.
fn pass(mut from: TcpStream, mut to: TcpStream, wait: impl Fn(&[u8])) {
    let mut buffer = [0; 65536];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        wait(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
