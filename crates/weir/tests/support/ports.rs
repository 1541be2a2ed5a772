//! Ports for programs that cannot say which they took. Not for Weir: it takes port 0 and says what it got.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// The ports given here. They lie below those that the kernel gives to connections and to listeners on port 0 (32768 and
/// up, `ip_local_port_range`), so that no connection of another test takes one while its program is down. Those 10,000
/// above them are free of the kernel's, too: nodes of a Redis Cluster talk to each other there.
const FIRST: u16 = 12_000;
const COUNT: u16 = 10_000;

/// How many were given.
static GIVEN: AtomicU16 = AtomicU16::new(0);

/// A port of 127.0.0.1 that has no listener. No other call of this process gets it.
pub fn free_port() -> u16 {
    // Programs of tests that run at the same time begin at different ports.
    let first = std::process::id() % u32::from(COUNT);
    for _ in 0..COUNT {
        let offset = (first + u32::from(GIVEN.fetch_add(1, Ordering::Relaxed)) * 7) % u32::from(COUNT);
        let port = FIRST + u16::try_from(offset).expect("less than COUNT");
        let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
        if is_free(port) && is_free(port + COUNT) {
            return port;
        }
    }
    panic!("no port is free from {FIRST} to {}", FIRST + COUNT);
}
