//! Memory for many at once: clients over TLS that idle, and streams of one HTTP/2 connection that wait for answers.

use std::net::TcpStream;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result, bail};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Stream};

use super::frames::{open_streams, ping};
use super::{SETTLE, is_open, megabytes, memory_when_warm, read_response};
use crate::certificate;
use crate::client::{connect, request};
use crate::running::Running;
use std::io::Write;

/// Idle clients over TLS.
pub const TLS_CLIENTS: usize = 5_000;
/// Streams on one connection.
pub const STREAMS: u32 = 10_000;

/// How much more a gateway holds for clients that made one call each over TLS and stay connected.
///
/// # Errors
/// A client gets no answer, or does not stay connected.
pub fn with_tls_clients(running: &Running) -> Result<f64> {
    let address = running.place.listen;
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .context("TLS 1.3")?
        .with_root_certificates(certificate::trusted()?)
        .with_no_client_auth();
    let config = Arc::new(config);
    let call = || -> Result<TcpStream> {
        let name = ServerName::try_from(certificate::NAME).context("the server's name")?;
        let mut tls = ClientConnection::new(Arc::clone(&config), name).context("a TLS client")?;
        let mut tcp = connect(address)?;
        let mut stream = Stream::new(&mut tls, &mut tcp);
        stream
            .write_all(&request("GET", "/hello", address, &[]))
            .context("sending a request")?;
        read_response(&mut stream)?;
        // Nothing more is said on it; the gateway does not know that its keys are gone.
        Ok(tcp)
    };
    // The first ones make what all share.
    call()?;
    let idle = memory_when_warm(running);
    let mut clients = Vec::with_capacity(TLS_CLIENTS);
    for number in 1..=TLS_CLIENTS {
        clients.push(call().with_context(|| format!("TLS client {number}"))?);
    }
    thread::sleep(SETTLE);
    let more = megabytes(running) - idle;
    let open = clients.iter().filter(|client| is_open(client)).count();
    if open < TLS_CLIENTS {
        bail!("only {open} of {TLS_CLIENTS} idle clients are still connected");
    }
    Ok(more)
}

/// How much more it holds while so many calls on one connection wait for their answers.
///
/// # Errors
/// It does not take them, or ends some.
pub fn with_streams(running: &Running) -> Result<f64> {
    let address = running.place.listen;
    // The first one makes the connection to the upstream, and what all share.
    let first = open_streams(address, 1)?;
    let idle = memory_when_warm(running);
    let mut stream = open_streams(address, STREAMS)?;
    thread::sleep(SETTLE);
    let more = megabytes(running) - idle;
    ping(&mut stream, b"still on").context("after all streams were opened")?;
    drop(first);
    Ok(more)
}
