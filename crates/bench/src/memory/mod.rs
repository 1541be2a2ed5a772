//! `weir-bench memory`: how much a gateway holds when idle, with many routes, with many idle clients in cleartext and over
//! TLS, with many streams on one connection, and while a large body passes. Resident memory of all its processes, as the
//! kernel counts it.

mod concurrency;
mod frames;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::bench::Bench;
use crate::byte_server::{self, SIZE_HEADER};
use crate::client::{self, Header, connect, request};
use crate::experiment::{self, Experiment};
use crate::gateway::Gateway;
use crate::probe;
use crate::procfs::resident_kib;
use crate::results::{Line, Results};
use crate::running::Running;
use crate::schedule::ResponseReader;
use crate::table::Table;
use crate::terminal::{self, progress};
use crate::upstream::ResponseKind;

const IDLE_CLIENTS: usize = 1_000;
/// Memory is read after this long without work.
const SETTLE: Duration = Duration::from_millis(500);
const SAMPLE_EVERY: Duration = Duration::from_millis(10);
const PIECE: usize = 256 << 10;

/// Memory in MB (10⁶ bytes).
#[derive(Debug, Clone, Copy, PartialEq)]
struct MemoryUsage {
    idle: f64,
    many_routes: f64,
    more_for_clients: f64,
    more_for_response: f64,
    more_for_request: f64,
    /// None if it does not speak the protocol.
    more_for_tls_clients: Option<f64>,
    more_for_streams: Option<f64>,
}

/// Measures every gateway with bodies of `body_bytes`; `false` when a row has no figure.
///
/// # Errors
/// The upstream or the report fails; a gateway's failure is a row of the table.
pub fn run(bench: &Bench, body_bytes: u64, results: &mut Results) -> Result<bool> {
    let directory = bench.directory("memory")?;
    let upstream = bench.upstream(&directory.join("upstream"), ResponseKind::Body(1024))?;
    let bytes = byte_server::start()?;
    let silent = frames::start_silent()?;
    let (one, many, https) = (named("A1")?, named("A4")?, named("https")?);
    let streams = Experiment {
        streams: concurrency::STREAMS,
        ..*named("h2-h2")?
    };
    let title = format!("Resident memory in MB · large body of {body_bytes} bytes");
    let columns = [
        "gateway",
        "idle, 1 route",
        "idle, 5,000 routes",
        "1,000 idle clients",
        "large response",
        "large request",
        "5,000 idle TLS clients",
        "10,000 h2 streams",
    ];
    let mut table = Table::new(title, &columns);
    let mut complete = true;
    for found in &bench.gateways {
        let gateway = &found.gateway;
        progress(&format!("memory of {gateway}"));
        let measure = || {
            let name = |what: &str| format!("{}-{what}", gateway.name);
            let start = |experiment, upstream, what: &str| {
                let running = bench.start(found, experiment, upstream, &directory, &name(what))?;
                probe::check(running.place.listen, experiment, gateway.plain)?;
                anyhow::Ok(running)
            };
            let (idle, more_for_clients) = with_clients(&start(one, upstream.address, "clients")?)?;
            let many_routes = memory_when_warm(&start(many, upstream.address, "routes")?);
            let (more_for_response, more_for_request) =
                with_bodies(&start(one, bytes.address, "bodies")?, body_bytes)?;
            let more_for_tls_clients = match gateway.refuses(https) {
                Some(_) => None,
                None => Some(concurrency::with_tls_clients(&start(
                    https,
                    upstream.address,
                    "tls-clients",
                )?)?),
            };
            // Only over HTTP/2 can that many calls wait without as many connections to the API.
            let more_for_streams = match gateway.refuses(&streams) {
                None if gateway.speaks_http2_upstream(streams.setup.speaks) => {
                    let name = name("streams");
                    let running = bench.start(found, &streams, silent.address, &directory, &name)?;
                    Some(concurrency::with_streams(&running)?)
                }
                _ => None,
            };
            anyhow::Ok(MemoryUsage {
                idle,
                many_routes,
                more_for_clients,
                more_for_response,
                more_for_request,
                more_for_tls_clients,
                more_for_streams,
            })
        };
        let cells = match measure() {
            Ok(memory) => {
                results.add(memory.line(gateway, body_bytes))?;
                Ok(memory.cells())
            }
            Err(error) => Err(format!("{error:#}")),
        };
        // A gateway that is not on this machine is no failure.
        complete &= cells.is_ok() || found.program.is_err();
        table.row(&gateway.name, cells);
    }
    table.footnote(
        "All columns but the first two are growth over the idle gateway; bodies at their peak.".to_owned(),
    );
    terminal::table(&table)?;
    Ok(complete)
}

fn named(id: &str) -> Result<&'static Experiment> {
    let found = experiment::select(&[id.to_owned()])?;
    found
        .first()
        .copied()
        .context("invariant: a selected experiment exists")
}

fn megabytes(running: &Running) -> f64 {
    resident_kib(running.process.pid()) as f64 * 1024.0 / 1e6
}

/// Memory after this gateway's first calls.
fn memory_when_warm(running: &Running) -> f64 {
    thread::sleep(SETTLE);
    megabytes(running)
}

/// Memory when idle, and how much more with clients that made one call each and stay connected.
fn with_clients(running: &Running) -> Result<(f64, f64)> {
    let idle = memory_when_warm(running);
    let mut clients = Vec::with_capacity(IDLE_CLIENTS);
    for number in 1..=IDLE_CLIENTS {
        let client = call_and_stay(running.place.listen).with_context(|| format!("client {number}"))?;
        clients.push(client);
    }
    thread::sleep(SETTLE);
    let more = megabytes(running) - idle;
    let open = clients.iter().filter(|client| is_open(client)).count();
    if open < IDLE_CLIENTS {
        bail!("only {open} of {IDLE_CLIENTS} idle clients are still connected");
    }
    Ok((idle, more))
}

/// Whether a connection is open and nothing was sent on it.
fn is_open(client: &TcpStream) -> bool {
    client.set_nonblocking(true).is_ok()
        && client
            .peek(&mut [0])
            .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

fn call_and_stay(address: SocketAddr) -> Result<TcpStream> {
    let mut stream = connect(address)?;
    stream
        .write_all(&request("GET", "/hello", address, &[]))
        .context("sending a request")?;
    read_response(&mut stream)?;
    Ok(stream)
}

/// Reads a response and keeps the connection; answers the number of body bytes.
fn read_response(stream: &mut impl Read) -> Result<u64> {
    let mut reader = ResponseReader::default();
    let mut buffer = vec![0; PIECE];
    loop {
        let length = stream.read(&mut buffer).context("reading a response")?;
        if length == 0 {
            bail!("the connection closed inside a response");
        }
        match reader.take(&buffer[..length])? {
            Some(200) => return Ok(reader.body_length),
            Some(status) => bail!("status {status}"),
            None => {}
        }
    }
}

/// How much more memory at the peak while a body passes to the client, and while one passes to the upstream.
fn with_bodies(running: &Running, body_bytes: u64) -> Result<(f64, f64)> {
    let listen = running.place.listen;
    client::get(listen, "/hello", &[]).context("the first call")?;
    thread::sleep(SETTLE);
    let download = peak_growth(running, || {
        let mut stream = connect(listen)?;
        let wanted: [Header; 1] = [(SIZE_HEADER, body_bytes.to_string())];
        stream
            .write_all(&request("GET", "/hello", listen, &wanted))
            .context("sending a request")?;
        let received = read_response(&mut stream).context("the large response")?;
        if received != body_bytes {
            bail!("the large response has {received} bytes instead of {body_bytes}");
        }
        Ok(())
    })?;
    thread::sleep(SETTLE);
    let upload = peak_growth(running, || {
        let mut stream = connect(listen)?;
        let length: [Header; 1] = [("Content-Length", body_bytes.to_string())];
        stream
            .write_all(&request("POST", "/hello", listen, &length))
            .context("sending a request")?;
        let piece = vec![0; PIECE];
        let mut left = body_bytes;
        while left > 0 {
            let now = left.min(PIECE as u64);
            stream
                .write_all(&piece[..now as usize])
                .context("sending the large request")?;
            left -= now;
        }
        // The upstream answers only when it has every byte.
        read_response(&mut stream)
            .context("the answer to the large request")
            .map(drop)
    })?;
    Ok((download, upload))
}

fn peak_growth(running: &Running, transfer: impl FnOnce() -> Result<()>) -> Result<f64> {
    let before = megabytes(running);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut peak: f64 = 0.0;
            while !done.load(Ordering::Relaxed) {
                peak = peak.max(megabytes(running));
                thread::sleep(SAMPLE_EVERY);
            }
            peak
        });
        let result = transfer();
        done.store(true, Ordering::Relaxed);
        let peak = sampler
            .join()
            .map_err(|_| anyhow::anyhow!("the memory sampler panicked"))?;
        result.map(|()| (peak - before).max(0.0))
    })
}

impl MemoryUsage {
    fn cells(&self) -> Vec<String> {
        let total = |megabytes: f64| format!("{megabytes:.1}");
        let more = |megabytes: f64| format!("+{megabytes:.1}");
        vec![
            total(self.idle),
            total(self.many_routes),
            more(self.more_for_clients),
            more(self.more_for_response),
            more(self.more_for_request),
            self.more_for_tls_clients.map_or("–".to_owned(), more),
            self.more_for_streams.map_or("–".to_owned(), more),
        ]
    }

    fn line(&self, gateway: &Gateway, body_bytes: u64) -> Line {
        Line::Other(json!({
            "what": "memory", "gateway": gateway.name, "body_bytes": body_bytes, "idle_mb": self.idle,
            "routes_5000_mb": self.many_routes, "clients_1000_more_mb": self.more_for_clients,
            "response_more_mb": self.more_for_response, "request_more_mb": self.more_for_request,
            "tls_clients_5000_more_mb": self.more_for_tls_clients,
            "streams_10000_more_mb": self.more_for_streams,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_experiments_exist() {
        assert_eq!(
            (
                named("A1").unwrap().setup.routes,
                named("A4").unwrap().setup.routes
            ),
            (1, 5_000)
        );
        assert!(named("memory").is_err());
    }
}
