//! One call in the protocol of an experiment: HTTP/1.1 in cleartext by the bench's own client, the others by `curl`,
//! which knows them all.

use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::client::{self, Header, Response};
use crate::experiment::{Experiment, WireProtocol};

/// Asks `target` for `path` as the load of `experiment` does.
///
/// # Errors
/// No connection, no complete answer in time, or `curl` is missing.
pub fn ask(target: SocketAddr, experiment: &Experiment, path: &str, headers: &[Header]) -> Result<Response> {
    let speaks = experiment.setup.speaks;
    if speaks.is_plain_http() || speaks == WireProtocol::Tcp {
        return client::get(target, path, headers);
    }
    let scheme = speaks.scheme();
    // No other program knows the certificate of this run.
    let mut words: Vec<OsString> = ["-s", "-S", "-m", "5", "-k", "-D", "/dev/stderr"]
        .map(OsString::from)
        .into();
    if speaks.is_http2() {
        words.push("--http2-prior-knowledge".into());
    }
    for (name, value) in headers {
        words.extend(["-H".into(), format!("{name}: {value}").into()]);
    }
    let body = experiment.request_body();
    if body.is_some() {
        words.extend(["--data-binary".into(), "@-".into()]);
    }
    words.push(format!("{scheme}://{target}{path}").into());
    let mut curl = Command::new("curl")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("not found: curl (apt-get install curl)")?;
    if let Some(mut input) = curl.stdin.take() {
        input
            .write_all(&body.unwrap_or_default())
            .context("giving curl the body")?;
    }
    let output = curl.wait_with_output().context("curl")?;
    let head = String::from_utf8_lossy(&output.stderr).into_owned();
    let Some(status) = status_of(&head).filter(|_| output.status.success()) else {
        bail!("curl failed ({}): {}", output.status, head.trim());
    };
    Ok(Response {
        status,
        head,
        body: output.stdout,
    })
}

/// The status of the last head that `curl` shows; those before it are interim ones.
fn status_of(heads: &str) -> Option<u16> {
    let mut lines = heads.lines().filter(|line| line.starts_with("HTTP/"));
    lines.next_back()?.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses() {
        let cases = [
            ("HTTP/2 200 \r\nserver: x\r\n\r\n", Some(200)),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\n\r\n",
                Some(404),
            ),
            ("curl: (7) Failed to connect\n", None),
            ("", None),
        ];
        for (heads, expected) in cases {
            assert_eq!(status_of(heads), expected, "{heads:?}");
        }
    }
}
