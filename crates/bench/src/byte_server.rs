//! An API that gives and takes bodies of any size: the upstream of the memory measurement. A GET with the header
//! `X-Bench-Bytes: N` is answered with N zeros, without it with 1 KB; a body sent to it is counted and thrown away.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, bail};

use crate::loopback::LoopbackServer;

/// The header that asks for a body of a size.
pub const SIZE_HEADER: &str = "X-Bench-Bytes";
const DEFAULT_BYTES: u64 = 1024;
const PIECE: usize = 64 << 10;
const MAX_HEAD_BYTES: u64 = 64 << 10;

/// Starts the server.
///
/// # Errors
/// No port is free.
pub fn start() -> Result<LoopbackServer> {
    LoopbackServer::start("bytes", serve)
}

/// What a request says about bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BodyRequest {
    takes: u64,
    gives: u64,
}

fn serve(stream: TcpStream) -> Result<()> {
    let mut stream = &stream;
    stream.set_nodelay(true).context("setting TCP_NODELAY")?;
    let mut reader = BufReader::with_capacity(PIECE, stream);
    let zeros = vec![0; PIECE];
    while let Some(head) = read_head(&mut reader)? {
        let asked = parse_request(&head)?;
        let taken = std::io::copy(&mut (&mut reader).take(asked.takes), &mut std::io::sink())?;
        if taken < asked.takes {
            bail!("the body ended after {taken} bytes");
        }
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            asked.gives
        )?;
        let mut left = asked.gives;
        while left > 0 {
            let piece = left.min(PIECE as u64);
            stream.write_all(&zeros[..piece as usize])?;
            left -= piece;
        }
    }
    Ok(())
}

/// The bytes of a request head, or `None` at the end of the connection.
fn read_head(reader: &mut impl BufRead) -> Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    loop {
        let limit = MAX_HEAD_BYTES.saturating_sub(head.len() as u64);
        let read = reader
            .take(limit)
            .read_until(b'\n', &mut head)
            .context("reading a request")?;
        match read {
            0 if head.is_empty() => return Ok(None),
            0 => bail!("the request ended inside its head, or it is too long"),
            _ if head.ends_with(b"\r\n\r\n") => return Ok(Some(head)),
            _ => {}
        }
    }
}

fn parse_request(head: &[u8]) -> Result<BodyRequest> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    request.parse(head).context("not an HTTP/1 request")?;
    let number = |name: &str| -> Result<Option<u64>> {
        let found = request
            .headers
            .iter()
            .find(|header| header.name.eq_ignore_ascii_case(name));
        let parse = |header: &httparse::Header<'_>| {
            str::from_utf8(header.value)?
                .trim()
                .parse()
                .with_context(|| format!("{name} is not a number"))
        };
        found.map(parse).transpose()
    };
    if request
        .headers
        .iter()
        .any(|header| header.name.eq_ignore_ascii_case("transfer-encoding"))
    {
        bail!("the gateway changed a body with a length into one without");
    }
    let takes = number("content-length")?.unwrap_or(0);
    Ok(BodyRequest {
        takes,
        gives: number(SIZE_HEADER)?.unwrap_or(DEFAULT_BYTES),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests() {
        let cases = [
            (
                "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
                Some(BodyRequest {
                    takes: 0,
                    gives: 1024,
                }),
            ),
            (
                "GET / HTTP/1.1\r\nx-bench-bytes: 7\r\n\r\n",
                Some(BodyRequest { takes: 0, gives: 7 }),
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n",
                Some(BodyRequest {
                    takes: 9,
                    gives: 1024,
                }),
            ),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", None),
            ("GET / HTTP/1.1\r\nx-bench-bytes: many\r\n\r\n", None),
            ("nonsense\r\n\r\n", None),
        ];
        for (head, expected) in cases {
            assert_eq!(parse_request(head.as_bytes()).ok(), expected, "{head:?}");
        }
    }

    #[test]
    fn heads_of_requests() {
        let cases = [
            (
                "GET / HTTP/1.1\r\nA: b\r\n\r\nbody",
                Ok(Some("GET / HTTP/1.1\r\nA: b\r\n\r\n")),
            ),
            ("", Ok(None)),
            ("GET / HTTP/1.1\r\n", Err(())),
        ];
        for (bytes, expected) in cases {
            let head = read_head(&mut bytes.as_bytes()).map_err(|_| ());
            let expected = expected.map(|head: Option<&str>| head.map(|head| head.as_bytes().to_vec()));
            assert_eq!(head, expected, "{bytes:?}");
        }
        assert!(read_head(&mut [b'x'; 70_000].as_slice()).is_err());
    }
}
