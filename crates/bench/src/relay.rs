//! A relay on one thread: the bytes of each connection go to one server and back, as they come. It looks at none of them,
//! so what it costs is about the least that anything on a path can cost on Linux with epoll. Reads and writes are tried
//! first; a side that takes no more is waited for.
//!
//! Not a proxy for use: it has no limits and no time-outs.

use anyhow::{Context, Result, bail};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

/// What the listener is called among the events; connections have numbers from 1 on.
const LISTENER: u64 = 0;
/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;
/// Events that are taken at once.
const EVENTS: usize = 256;

/// Two connections, and what one of them could not take yet of what came from the other.
struct Pair {
    ends: [TcpStream; 2],
    /// By end: what waits until it takes more.
    waiting: [Vec<u8>; 2],
    /// By end: the system has reported that no more comes behind what is there.
    is_ending: [bool; 2],
    /// By end: no more comes from it.
    is_over: [bool; 2],
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["--version"] {
        writeln!(std::io::stdout(), "weir-relay {}", env!("CARGO_PKG_VERSION"))?;
        return Ok(());
    }
    let [listen, server] = arguments.as_slice() else {
        bail!("usage: weir-relay LISTEN SERVER, both as ADDRESS:PORT");
    };
    let listener = TcpListener::bind(listen).with_context(|| format!("listening on {listen}"))?;
    relay(&listener, server.parse().context("the server's address")?)
}

/// Relays until the system refuses to go on.
fn relay(listener: &TcpListener, server: SocketAddr) -> Result<()> {
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut pairs: HashMap<u64, Pair> = HashMap::new();
    let mut next = 1;
    let mut piece = vec![0; PIECE];
    let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
    loop {
        events.clear();
        match epoll::wait(&epoll, spare_capacity(&mut events), None) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let number = event.data.u64();
            if number == LISTENER {
                accept(listener, server, &epoll, &mut pairs, &mut next);
                continue;
            }
            // Each end has a number of its own: that of the pair, and 0 or 1.
            let Some(pair) = pairs.get_mut(&(number / 2)) else {
                continue;
            };
            let end = (number % 2) as usize;
            let ends = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
            // The events of the kernel are packed: their flags are copied.
            let flags = event.flags;
            pair.is_ending[end] |= flags.intersects(ends);
            // What the other end said may have waited until this one takes it.
            let has_room = !pair.waiting[end].is_empty();
            let passed = pair.pass(end, &mut piece);
            let passed = passed.and_then(|()| {
                if has_room {
                    pair.pass(1 - end, &mut piece)
                } else {
                    Ok(())
                }
            });
            if passed.is_err() || pair.is_done() {
                pairs.remove(&(number / 2));
            }
        }
    }
}

fn accept(
    listener: &TcpListener,
    server: SocketAddr,
    epoll: &OwnedFd,
    pairs: &mut HashMap<u64, Pair>,
    next: &mut u64,
) {
    while let Ok((client, _)) = listener.accept() {
        let Ok(pair) = TcpStream::connect(server).and_then(|server| Pair::new(client, server)) else {
            continue;
        };
        let number = *next;
        *next += 1;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let ends = pair.ends.iter().zip([number * 2, number * 2 + 1]);
        let added = ends.map(|(end, name)| epoll::add(epoll, end, EventData::new_u64(name), flags));
        if added.collect::<rustix::io::Result<Vec<()>>>().is_ok() {
            pairs.insert(number, pair);
        }
    }
}

impl Pair {
    fn new(client: TcpStream, server: TcpStream) -> std::io::Result<Self> {
        for end in [&client, &server] {
            end.set_nodelay(true)?;
            end.set_nonblocking(true)?;
        }
        Ok(Self {
            ends: [client, server],
            waiting: [Vec::new(), Vec::new()],
            is_ending: [false; 2],
            is_over: [false; 2],
        })
    }

    /// Passes on what comes from an end, until nothing more comes or the other one takes no more.
    fn pass(&mut self, from: usize, piece: &mut [u8]) -> std::io::Result<()> {
        let to = 1 - from;
        loop {
            if !self.waiting[to].is_empty() {
                let count = write(&mut self.ends[to], &self.waiting[to])?;
                self.waiting[to].drain(..count);
                if !self.waiting[to].is_empty() {
                    return Ok(());
                }
                if self.is_over[from] {
                    return self.ends[to].shutdown(Shutdown::Write);
                }
            }
            if self.is_over[from] {
                return Ok(());
            }
            let count = match self.ends[from].read(piece) {
                Ok(0) => {
                    self.is_over[from] = true;
                    return self.ends[to].shutdown(Shutdown::Write);
                }
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let written = write(&mut self.ends[to], &piece[..count])?;
            self.waiting[to].extend_from_slice(&piece[written..count]);
            // A piece that is not full was all, but for the end: the system reports what comes later.
            if count < piece.len() && self.waiting[to].is_empty() && !self.is_ending[from] {
                return Ok(());
            }
        }
    }

    fn is_done(&self) -> bool {
        self.is_over == [true; 2] && self.waiting.iter().all(Vec::is_empty)
    }
}

/// Writes what an end takes now.
fn write(end: &mut TcpStream, bytes: &[u8]) -> std::io::Result<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match end.write(&bytes[written..]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => written += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves one connection: sends back what it reads, until its end.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut reader = stream.try_clone().unwrap();
                    let _copied = std::io::copy(&mut reader, &mut stream);
                    let _ended = stream.shutdown(Shutdown::Write);
                });
            }
        });
        address
    }

    #[test]
    fn bytes_come_back_as_they_were_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = echo();
        std::thread::spawn(move || relay(&listener, server));
        // More than the sockets hold: one side has to wait.
        for size in [0, 1, PIECE, 8 << 20] {
            let mut client = TcpStream::connect(address).unwrap();
            client
                .set_read_timeout(Some(std::time::Duration::from_secs(20)))
                .unwrap();
            let sent: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let mut writer = client.try_clone().unwrap();
            let copy = sent.clone();
            let writing = std::thread::spawn(move || {
                writer.write_all(&copy).unwrap();
                writer.shutdown(Shutdown::Write).unwrap();
            });
            let mut back = Vec::new();
            client.read_to_end(&mut back).unwrap();
            writing.join().unwrap();
            assert!(back == sent, "{size}: {} bytes came back", back.len());
        }
    }
}
