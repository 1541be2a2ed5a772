//! The proof of the constant-rate load: a server that answers at once, but stands still for 1 ms in each second. Calls
//! that come meanwhile wait, so at R calls per second a share of 1/1000 of them waits between 0 and 1 ms: the 99.9th
//! percentile is its begin, the 99.95th lies near 0.6 ms and the 99.99th near 0.9 ms. A tool that counts from the
//! time at which it sends would see one slow call for each connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::client::request;
use crate::sender::{LoadPlan, Record, microseconds, send};
use crate::table::Table;
use crate::terminal;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const SECOND: Duration = Duration::from_secs(1);
const ROUND: Duration = Duration::from_secs(5);
/// One connection: every call that comes in a stall waits behind the first.
const CONNECTIONS: usize = 1;

/// When a server stands still.
#[derive(Debug, Clone, Copy)]
struct Stalls {
    every: Duration,
    length: Duration,
}

/// A server of one thread, running until dropped.
#[derive(Debug)]
struct Server {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(stalls: Option<Stalls>) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listening")?;
        listener.set_nonblocking(true).context("listening")?;
        let address = listener.local_addr().context("reading the port")?;
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = stopping.clone();
        let serve = move || serve(&listener, stalls, &stop);
        let thread = thread::Builder::new().name("stalls".to_owned()).spawn(serve);
        Ok(Self {
            address,
            stopping,
            thread: Some(thread.context("starting the server")?),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, stalls: Option<Stalls>, stop: &AtomicBool) {
    let mut connections: Vec<TcpStream> = Vec::new();
    let mut buffer = [0; 16 << 10];
    let mut next_stall = stalls.map(|stalls| Instant::now() + stalls.every);
    while !stop.load(Ordering::Relaxed) {
        if let (Some(time), Some(stalls)) = (next_stall, stalls)
            && Instant::now() >= time
        {
            thread::sleep(stalls.length);
            next_stall = Some(time + stalls.every);
        }
        let mut watched: Vec<PollFd<'_>> = vec![PollFd::new(listener, PollFlags::IN)];
        watched.extend(
            connections
                .iter()
                .map(|connection| PollFd::new(connection, PollFlags::IN)),
        );
        // Short enough that a stall begins on time.
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: 200_000,
        };
        if poll(&mut watched, Some(&timeout)).is_err() {
            continue;
        }
        if let Ok((stream, _)) = listener.accept()
            && stream.set_nonblocking(true).is_ok()
            && stream.set_nodelay(true).is_ok()
        {
            connections.push(stream);
        }
        connections.retain_mut(|stream| answer(stream, &mut buffer));
    }
}

/// Answers each request that is there; `false` when the connection has ended.
fn answer(stream: &mut TcpStream, buffer: &mut [u8]) -> bool {
    match stream.read(buffer) {
        Ok(0) => false,
        Ok(length) => {
            let requests = buffer[..length]
                .windows(4)
                .filter(|end| end == b"\r\n\r\n")
                .count();
            (0..requests).all(|_| stream.write_all(ANSWER).is_ok())
        }
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}

fn measure(server: &Server, rate: u32, length: Duration, connections: usize) -> Result<Record> {
    let plan = LoadPlan {
        target: server.address,
        requests: vec![request("GET", "/", server.address, &[])],
        rate,
        connections,
        warm_up: Duration::ZERO,
        length,
    };
    send(&plan, &AtomicBool::new(false))
}

/// Measures the server without and with a stall of `stall_ms` in each second and prints both; `true` when the stall
/// shows at the expected percentiles and nowhere else.
///
/// # Errors
/// The server cannot be started.
pub fn run(rate: u32, stall_ms: u32) -> Result<bool> {
    let stall = f64::from(stall_ms) * 1e3;
    // The stall delays one call in a thousand for each of its milliseconds.
    let beyond = |share: f64| 100.0 - f64::from(stall_ms) * share;
    let percentiles = [50.0, beyond(1.0), beyond(0.05), beyond(0.01), 100.0];
    let columns = [
        "server",
        "calls",
        "p50 µs",
        "before it",
        "half way",
        "its end",
        "max µs",
    ];
    let title = format!(
        "{rate} calls/s against a server that stands still (before it: p{}, half way: p{}, its end: p{})",
        percentiles[1], percentiles[2], percentiles[3]
    );
    let mut table = Table::new(title, &columns);
    let stalls = Stalls {
        every: SECOND,
        length: Duration::from_millis(stall_ms.into()),
    };
    let mut found = [0.0; 5];
    for (name, stalls) in [
        ("never".to_owned(), None),
        (format!("{stall_ms} ms in each second"), Some(stalls)),
    ] {
        terminal::progress(&format!("{name}: {} s", ROUND.as_secs()));
        let record = measure(&Server::start(stalls)?, rate, ROUND, CONNECTIONS)?;
        found = percentiles.map(|percentile| microseconds(record.latency.value_at_percentile(percentile)));
        let cells = found.iter().map(|value| format!("{value:.0}"));
        let count = record.calls.to_string();
        table.row(&name, Ok([count].into_iter().chain(cells).collect()));
    }
    let [_, before, half_way, end, max] = found.map(|value| value / stall);
    let shows = before < 0.3 && (0.3..1.0).contains(&half_way) && (0.7..1.3).contains(&end) && max >= 0.95;
    terminal::table(&table)?;
    terminal::note(if shows {
        "the stall shows in the right percentiles"
    } else {
        "the stall does not show as it must: where the first row is not far below, the machine is too busy to tell \
         (a longer --stall shows in spite of it)"
    })?;
    Ok(shows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Schedule;
    use hdrhistogram::Histogram;

    /// A server in a model of time that answers in 20 µs, standing still for `stall` at the beginning of each second.
    fn modelled(rate: u32, stall: Duration) -> Histogram<u64> {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, rate, Duration::from_secs(100));
        let mut latency = Histogram::new_with_bounds(100, 120_000_000_000, 3).unwrap();
        let mut free = start;
        while let Some(intended) = schedule.next_time() {
            let begins = intended.max(free);
            let into_second = Duration::from_nanos(u64::from((begins - start).subsec_nanos()));
            let begins = begins + stall.saturating_sub(into_second);
            free = begins + Duration::from_micros(20);
            assert_eq!(schedule.take_due(begins), Some(intended));
            latency.record((free - intended).as_nanos() as u64).unwrap();
        }
        latency
    }

    #[test]
    fn a_stall_shows_in_the_percentile_that_it_delays() {
        // (calls per second, stall in µs, percentile, latency in µs)
        let cases = [
            (10_000, 0, 99.99, 20.0),
            (10_000, 1_000, 50.0, 20.0),
            (10_000, 1_000, 99.8, 20.0),
            (10_000, 1_000, 99.95, 620.0),
            (10_000, 1_000, 99.99, 940.0),
            (10_000, 1_000, 100.0, 1_020.0),
            (1_000, 100_000, 89.0, 20.0),
            (1_000, 100_000, 99.0, 90_000.0),
        ];
        for (rate, stall, percentile, expected) in cases {
            let latency = modelled(rate, Duration::from_micros(stall));
            let found = microseconds(latency.value_at_percentile(percentile));
            let tolerance = f64::max(1.0, expected * 0.15);
            assert!(
                (found - expected).abs() < tolerance,
                "{rate}/s, {stall} µs, p{percentile}: {found}"
            );
        }
    }

    #[test]
    fn the_sender_reports_a_real_stall() {
        // A fifth of the time: 20 % of the calls wait between 0 and 40 ms. Lower bounds only: a busy machine adds.
        let stalls = Stalls {
            every: Duration::from_millis(200),
            length: Duration::from_millis(40),
        };
        let server = Server::start(Some(stalls)).unwrap();
        let record = measure(&server, 2_000, Duration::from_millis(1_500), CONNECTIONS).unwrap();
        assert_eq!(record.failed(), 0, "{}", record.failures());
        assert_eq!(record.latency.len(), 3_000);
        for (percentile, at_least) in [(92.0, 10_000.0), (97.0, 25_000.0), (100.0, 35_000.0)] {
            let found = microseconds(record.latency.value_at_percentile(percentile));
            assert!(found >= at_least, "p{percentile}: {found} µs");
        }
    }
}
