//! Full TLS 1.3 handshakes, one connection after the other on each of several threads. No session is resumed, and the
//! key exchange is X25519 for every gateway: newer ones would else choose one that older ones do not know.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ProtocolVersion};

use super::LoadResult;
use crate::certificate;
use crate::client;
use crate::cpu;

/// Shakes hands with `target` on `threads` connections at once for `duration`; with the CPU time of the load.
///
/// # Errors
/// A handshake fails.
pub fn run(target: SocketAddr, threads: u32, duration: Duration) -> Result<(LoadResult, Duration)> {
    let config = config()?;
    let started = Instant::now();
    let end = started + duration;
    let work = || -> Result<(u64, Duration)> {
        let before = cpu::of_this_thread();
        let mut count = 0;
        while Instant::now() < end {
            shake(target, &config).with_context(|| format!("handshake {}", count + 1))?;
            count += 1;
        }
        Ok((count, cpu::of_this_thread().saturating_sub(before)))
    };
    let counts = thread::scope(|scope| -> Result<Vec<(u64, Duration)>> {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = workers.into_iter().map(|worker| {
            let counted = worker.join();
            counted.map_err(|_| anyhow::anyhow!("a thread of the load panicked"))?
        });
        joined.collect()
    })?;
    let calls = counts.iter().map(|(count, _)| count).sum();
    let counted = LoadResult {
        calls,
        calls_per_second: calls as f64 / started.elapsed().as_secs_f64(),
        ..LoadResult::default()
    };
    Ok((counted, counts.iter().map(|(_, used)| *used).sum()))
}

/// What all handshakes of a run share; no session is kept.
fn config() -> Result<Arc<ClientConfig>> {
    let mut provider = default_provider();
    provider.kx_groups = vec![kx_group::X25519];
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .context("TLS 1.3")?
        .with_root_certificates(certificate::trusted()?)
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// One handshake, and the good-bye of both sides: what the server had to do for it is done then.
fn shake(target: SocketAddr, config: &Arc<ClientConfig>) -> Result<()> {
    let name = ServerName::try_from(certificate::NAME).context("the server's name")?;
    let mut tls = ClientConnection::new(Arc::clone(config), name).context("a TLS client")?;
    let mut tcp = client::connect(target)?;
    while tls.is_handshaking() {
        tls.complete_io(&mut tcp).context("shaking hands")?;
    }
    anyhow::ensure!(tls.protocol_version() == Some(ProtocolVersion::TLSv1_3));
    tls.send_close_notify();
    while tls.wants_write() {
        tls.write_tls(&mut tcp).context("saying good-bye")?;
    }
    read_to_end(&mut tcp)
}

fn read_to_end(tcp: &mut TcpStream) -> Result<()> {
    let mut buffer = [0; 4096];
    loop {
        match tcp.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error).context("waiting for the server's good-bye"),
        }
    }
}
