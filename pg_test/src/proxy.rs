//! A proxy that stands between a client and a server, and does what networks do.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What the proxy does with what passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Passes it on.
    Pass,
    /// Passes answers on, each after this long.
    Slow(Duration),
    /// Passes requests on. When an answer comes, breaks the connection in its place.
    LoseAnswers,
    /// Breaks connections as soon as they are made.
    Refuse,
    /// Keeps what comes, in both directions, until another mode is set: a network that is cut, and delivers late.
    Hold,
}

/// A proxy on this machine. It ends with the process.
pub struct Proxy {
    port: u16,
    target: Arc<AtomicU16>,
    mode: Arc<Mutex<Mode>>,
}

impl Proxy {
    /// A proxy before this port, which passes on everything.
    pub fn before(port: u16) -> Self {
        Self::at(Ipv4Addr::LOCALHOST.into(), port)
    }

    /// The same, at another address of this machine.
    pub fn at(address: IpAddr, port: u16) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let own = listener.local_addr().unwrap().port();
        let (target, mode) = (Arc::new(AtomicU16::new(port)), Arc::new(Mutex::new(Mode::Pass)));
        let proxy = Self { port: own, target: target.clone(), mode: mode.clone() };
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let mode = mode.clone();
                if *mode.lock().unwrap() == Mode::Refuse {
                    continue;
                }
                if let Ok(server) = TcpStream::connect(("127.0.0.1", target.load(SeqCst))) {
                    client.set_nodelay(true).unwrap();
                    server.set_nodelay(true).unwrap();
                    let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                    let held = mode.clone();
                    thread::spawn(move || {
                        pass(from, to, || {
                            hold(&held);
                            true
                        });
                    });
                    thread::spawn(move || {
                        pass(server, client, || {
                            hold(&mode);
                            let now = *mode.lock().unwrap();
                            match now {
                                Mode::Pass | Mode::Refuse | Mode::Hold => true,
                                Mode::LoseAnswers => false,
                                Mode::Slow(delay) => {
                                    thread::sleep(delay);
                                    true
                                }
                            }
                        });
                    });
                }
            }
        });
        proxy
    }

    /// The port that it listens at.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What connects from now on is passed on to another port.
    pub fn aim(&self, port: u16) {
        self.target.store(port, SeqCst);
    }

    /// What it does with what passes from now on.
    pub fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }
}

/// Waits until the network is there.
fn hold(mode: &Mutex<Mode>) {
    while *mode.lock().unwrap() == Mode::Hold {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Until one side ends, or the other does not take what it is given.
fn pass(mut from: TcpStream, mut to: TcpStream, passes: impl Fn() -> bool) {
    let mut buffer = [0; 65536];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if !passes() || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
