//! Ports on the loopback, and the address of this machine beside it.

use std::collections::BTreeSet;
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::ops::Range;
use std::sync::Mutex;

/// Below those that Linux takes for a connection's own end: between two starts of a server, no client has its port.
const PORTS: Range<u16> = 12_000..32_000;

/// A port that nobody listens at, and that this process has not given to anybody yet; other processes are likely to have chosen others.
pub fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    loop {
        let port = fastrand::u16(PORTS);
        // Listening there for a moment would tell, too. But a process that another thread forks at that moment keeps the socket until it
        // executes its program, and the port would be in use meanwhile.
        if GIVEN.lock().unwrap().insert(port) && TcpStream::connect(("127.0.0.1", port)).is_err() {
            return port;
        }
    }
}

/// An address of this machine that others can reach. `None` where it has no network: then nobody is there to listen.
pub fn outward() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Sends nothing; the system chooses the address to send from.
    socket.connect("192.0.2.1:9").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|address| !address.is_loopback())
}
