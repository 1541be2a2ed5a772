//! One probe: a connection, or a request on one of its own, and what it shows. gRPC is asked in `super::grpc`.

use super::grpc;
use crate::transport;
use rustls::pki_types::ServerName;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use weir_flow::health::Signal;
use weir_model::{ActiveChecks, ProbeKind};
use weir_snapshot::{Checks, ClientTls};

/// Most bytes of an answer that are read to find its status.
const MAX_ANSWER: usize = 16 * 1024;

/// Probes an address. `host` is the target's `Host`. `None`: what the probe has shown does not count.
pub(super) async fn probe(checks: &Checks, address: SocketAddr, host: &[u8]) -> Option<Signal> {
    let active = checks.active.as_ref()?;
    let port = active.port.unwrap_or(address.port());
    let address = SocketAddr::new(address.ip(), port);
    let timeout = Duration::from_millis(active.timeout_ms);
    let asked = tokio::time::timeout(timeout, ask(checks, active, address, host)).await;
    match asked {
        Err(_) => Some(Signal::Timeout),
        Ok(Err(error)) if error.kind() == io::ErrorKind::TimedOut => Some(Signal::Timeout),
        Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => Some(Signal::HttpFailure),
        Ok(Err(_)) => Some(Signal::TcpFailure),
        Ok(Ok(ProbeResult::Signal(signal))) => Some(signal),
        Ok(Ok(ProbeResult::Status(status))) => checks.probe_rules.read(status),
    }
}

/// The result of a probe.
enum ProbeResult {
    /// A status, which counts as the checks say.
    Status(u16),
    /// A result that counts by itself.
    Signal(Signal),
}

async fn ask(
    checks: &Checks,
    active: &ActiveChecks,
    address: SocketAddr,
    host: &[u8],
) -> io::Result<ProbeResult> {
    let stream = TcpStream::connect(address).await?;
    // A handshake that fails is no answer at all.
    let failed = |_| io::Error::from(io::ErrorKind::ConnectionAborted);
    let (mut read, mut write) = match (active.kind, &checks.tls) {
        (ProbeKind::Http | ProbeKind::Grpc, _) => crate::halves::plain(stream),
        (ProbeKind::Https | ProbeKind::Grpcs, Some(tls)) => {
            let name = server_name(tls, active, host).ok_or(io::ErrorKind::ConnectionAborted)?;
            let config = match active.kind {
                ProbeKind::Grpcs => &tls.http2_config,
                _ => &tls.config,
            };
            let stream = transport::connect(stream, Arc::clone(config), name).await;
            crate::halves::secure(stream.map_err(failed)?)
        }
        _ => return Ok(ProbeResult::Signal(Signal::Success)),
    };
    let scheme = match active.kind {
        ProbeKind::Grpc => Some("http"),
        ProbeKind::Grpcs => Some("https"),
        _ => None,
    };
    if let Some(scheme) = scheme {
        return grpc::ask((read, write), active, scheme, host)
            .await
            .map(ProbeResult::Signal);
    }
    write.write_all(&request(active, host)).await?;
    write.flush().await?;
    let mut answer = Vec::with_capacity(1024);
    loop {
        if let Some(status) = status_of(&answer)? {
            return Ok(ProbeResult::Status(status));
        }
        if answer.len() >= MAX_ANSWER {
            return Err(io::ErrorKind::InvalidData.into());
        }
        if read.read_buf(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// The name that a target is asked for over TLS.
fn server_name(tls: &ClientTls, active: &ActiveChecks, host: &[u8]) -> Option<ServerName<'static>> {
    if let Some(name) = &tls.name {
        return Some(name.clone());
    }
    let host = active.host.as_deref().map_or(host, str::as_bytes);
    let host = match host.first()? {
        b'[' => &host[1..memchr::memchr(b']', host)?],
        _ => &host[..memchr::memchr(b':', host).unwrap_or(host.len())],
    };
    let name = std::str::from_utf8(host).ok()?;
    ServerName::try_from(name.to_owned()).ok()
}

/// The request of a probe.
fn request(active: &ActiveChecks, host: &[u8]) -> Vec<u8> {
    let has = |name: &str| {
        active
            .headers
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(name))
    };
    let mut out = Vec::with_capacity(256);
    let mut line = |name: &str, value: &[u8]| {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    };
    if !has("Host") {
        line("Host", active.host.as_deref().map_or(host, str::as_bytes));
    }
    if !has("User-Agent") {
        line("User-Agent", b"weir-health-check");
    }
    for (name, value) in &active.headers {
        line(name, value.as_bytes());
    }
    if !active.body.is_empty() {
        line("Content-Length", active.body.len().to_string().as_bytes());
    }
    line("Connection", b"close");
    let mut request = format!("{} {} HTTP/1.1\r\n", active.method, active.path).into_bytes();
    request.append(&mut out);
    request.extend_from_slice(b"\r\n");
    request.extend_from_slice(active.body.as_bytes());
    request
}

/// The status of the final answer in what was read; `None`: more is needed.
fn status_of(answer: &[u8]) -> io::Result<Option<u16>> {
    let mut rest = answer;
    loop {
        let Some(end) = memchr::memchr(b'\n', rest) else {
            return Ok(None);
        };
        let line = rest[..end].trim_ascii_end();
        let code = line
            .strip_prefix(b"HTTP/1.")
            .and_then(|line| line.get(2..5))
            .and_then(|code| std::str::from_utf8(code).ok())
            .and_then(|code| code.parse::<u16>().ok())
            .filter(|code| (100..1000).contains(code))
            .ok_or(io::ErrorKind::InvalidData)?;
        if code >= 200 || code == 101 {
            return Ok(Some(code));
        }
        // Interim answers come before the final one.
        let Some(head) = memchr::memmem::find(rest, b"\r\n\r\n") else {
            return Ok(None);
        };
        rest = &rest[head + 4..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_found() {
        let wrong = "wrong";
        for (answer, status) in [
            ("", Ok(None)),
            ("HTTP/1.1 200 OK", Ok(None)),
            ("HTTP/1.1 200 OK\r\n", Ok(Some(200))),
            ("HTTP/1.0 503\n", Ok(Some(503))),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No", Ok(None)),
            (
                "HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 404 Not Found\r\n",
                Ok(Some(404)),
            ),
            ("HTTP/2 200\r\n", Err(wrong)),
            ("SSH-2.0-x\r\n", Err(wrong)),
            ("HTTP/1.1 2x0 OK\r\n", Err(wrong)),
            ("HTTP/1.1 099 OK\r\n", Err(wrong)),
        ] {
            assert_eq!(
                status_of(answer.as_bytes()).map_err(|_| wrong),
                status,
                "{answer:?}"
            );
        }
    }

    #[test]
    fn requests_are_as_configured() {
        let plain = ActiveChecks::default();
        let special = ActiveChecks {
            method: "POST".into(),
            path: "/alive?deep=1".into(),
            host: Some("h.test".into()),
            headers: vec![
                ("user-agent".into(), "mine".into()),
                ("X-A".into(), "1".into()),
                ("X-A".into(), "2".into()),
            ],
            body: "ping".into(),
            ..ActiveChecks::default()
        };
        for (active, expected) in [
            (
                &plain,
                "GET / HTTP/1.1\r\nHost: t:8\r\nUser-Agent: weir-health-check\r\nConnection: close\r\n\r\n",
            ),
            (
                &special,
                "POST /alive?deep=1 HTTP/1.1\r\nHost: h.test\r\nuser-agent: mine\r\nX-A: 1\r\nX-A: 2\r\n\
                 Content-Length: 4\r\nConnection: close\r\n\r\nping",
            ),
        ] {
            let request = request(active, b"t:8");
            assert_eq!(String::from_utf8_lossy(&request), expected);
        }
    }
}
