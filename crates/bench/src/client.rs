//! A small blocking HTTP/1.1 client for probes and for connections that are only held open. Not a load generator.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

const TIME_OUT: Duration = Duration::from_secs(5);
const MAX_RESPONSE_BYTES: usize = 16 << 20;
const MAX_HEADERS: usize = 64;

/// A request header: name and value.
pub type Header = (&'static str, String);

/// The head of a response, as far as the bench needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Status code.
    pub status: u16,
    /// Length of the head in bytes, its empty line included.
    pub length: usize,
    /// `Content-Length`.
    pub body_length: Option<u64>,
    /// `Transfer-Encoding: chunked`.
    pub chunked: bool,
    /// The server closes the connection after this response.
    pub closes: bool,
}

/// Parses a response head; `None` while it is incomplete.
///
/// # Errors
/// It is not an HTTP/1 response head.
pub fn parse_head(bytes: &[u8]) -> Result<Option<Head>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(length) = response.parse(bytes).context("not an HTTP/1 response")? else {
        return Ok(None);
    };
    let mut head = Head {
        status: response.code.unwrap_or(0),
        length,
        body_length: None,
        chunked: false,
        closes: response.version == Some(0),
    };
    for header in response.headers.iter() {
        let value = str::from_utf8(header.value).unwrap_or_default().trim();
        if header.name.eq_ignore_ascii_case("content-length") {
            head.body_length = Some(value.parse().context("Content-Length is not a number")?);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            head.chunked = value.eq_ignore_ascii_case("chunked");
        } else if header.name.eq_ignore_ascii_case("connection") {
            head.closes = value.eq_ignore_ascii_case("close");
        }
    }
    Ok(Some(head))
}

/// The bytes of a request without a body.
pub fn request(method: &str, path: &str, host: SocketAddr, headers: &[Header]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n");
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.into_bytes()
}

/// A response read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// The head as received.
    pub head: String,
    /// The body, chunks joined.
    pub body: Vec<u8>,
}

impl Response {
    /// Status and the beginning of the body, for an error message.
    pub fn summary(&self) -> String {
        let shown = &self.body[..self.body.len().min(200)];
        let text = String::from_utf8_lossy(shown).trim().to_owned();
        format!(
            "status {} with a body of {} bytes: {text:?}",
            self.status,
            self.body.len()
        )
    }
}

/// One GET over a new connection.
///
/// # Errors
/// No connection, no complete answer in time, or not HTTP/1.
pub fn get(address: SocketAddr, path: &str, headers: &[Header]) -> Result<Response> {
    let mut headers = headers.to_vec();
    headers.push(("Connection", "close".to_owned()));
    exchange(address, &request("GET", path, address, &headers), TIME_OUT)
}

/// One call over a new connection. The request asks for `Connection: close`: the answer is read to the end.
///
/// # Errors
/// No connection, nothing read for `time_out`, or not HTTP/1.
pub fn exchange(address: SocketAddr, request: &[u8], time_out: Duration) -> Result<Response> {
    let mut stream = connect(address)?;
    stream
        .set_read_timeout(Some(time_out))
        .context("setting the read time-out")?;
    stream.write_all(request).context("sending the request")?;
    let mut bytes = Vec::new();
    let limit = MAX_RESPONSE_BYTES as u64;
    stream
        .take(limit)
        .read_to_end(&mut bytes)
        .context("reading the response")?;
    parse_response(&bytes)
}

/// Opens a connection with the client's time-outs.
///
/// # Errors
/// Nothing listens, or not in time.
pub fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream =
        TcpStream::connect_timeout(&address, TIME_OUT).with_context(|| format!("connecting to {address}"))?;
    stream
        .set_read_timeout(Some(TIME_OUT))
        .context("setting the read time-out")?;
    stream
        .set_write_timeout(Some(TIME_OUT))
        .context("setting the write time-out")?;
    stream.set_nodelay(true).context("setting TCP_NODELAY")?;
    Ok(stream)
}

fn parse_response(bytes: &[u8]) -> Result<Response> {
    let head = parse_head(bytes)?.context("the response ended before its head did")?;
    let rest = &bytes[head.length..];
    let body = match head.body_length {
        _ if head.chunked => join_chunks(rest)?,
        Some(length) if (rest.len() as u64) < length => bail!("the body ended after {} bytes", rest.len()),
        Some(length) => rest[..usize::try_from(length).context("body length")?].to_vec(),
        None => rest.to_vec(),
    };
    let text = String::from_utf8_lossy(&bytes[..head.length]).into_owned();
    Ok(Response {
        status: head.status,
        head: text,
        body,
    })
}

fn join_chunks(mut rest: &[u8]) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let Ok(httparse::Status::Complete((start, size))) = httparse::parse_chunk_size(rest) else {
            bail!("a chunk size is missing or wrong");
        };
        let size = usize::try_from(size).context("chunk size")?;
        if size == 0 {
            return Ok(body);
        }
        let end = start.checked_add(size).context("chunk size")?;
        body.extend_from_slice(rest.get(start..end).context("the body ended inside a chunk")?);
        rest = rest.get(end + 2..).context("the body ended after a chunk")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads() {
        let head = Head {
            status: 200,
            length: 0,
            body_length: None,
            chunked: false,
            closes: false,
        };
        let cases = [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                Some(Head {
                    body_length: Some(5),
                    ..head
                }),
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                Some(Head {
                    chunked: true,
                    ..head
                }),
            ),
            (
                "HTTP/1.1 401 No\r\nconnection: Close\r\n\r\n",
                Some(Head {
                    status: 401,
                    closes: true,
                    ..head
                }),
            ),
            ("HTTP/1.0 200 OK\r\n\r\n", Some(Head { closes: true, ..head })),
            ("HTTP/1.1 200 OK\r\nContent-Le", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let parsed = parse_head(text.as_bytes()).unwrap();
            assert_eq!(
                parsed.map(|head| Head { length: 0, ..head }),
                expected,
                "{text:?}"
            );
        }
        for text in [
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        ] {
            assert!(parse_head(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn responses() {
        let cases = [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Some("hello")),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", Some("")),
            ("HTTP/1.1 200 OK\r\n\r\nto the end", Some("to the end")),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
                Some("hello"),
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", None),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhe",
                None,
            ),
            ("HTTP/1.1 200 OK\r\n", None),
        ];
        for (text, expected) in cases {
            let parsed = parse_response(text.as_bytes()).ok().map(|response| response.body);
            assert_eq!(parsed.as_deref(), expected.map(str::as_bytes), "{text:?}");
        }
    }
}
