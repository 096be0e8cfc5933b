//! Ports on the loopback.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::Mutex;

/// A port that nobody listens at, and that this process has not given to anybody yet.
pub fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if GIVEN.lock().unwrap().insert(port) {
            return port;
        }
    }
}
