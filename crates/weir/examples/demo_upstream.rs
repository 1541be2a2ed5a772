//! A server to try the gateway with: it answers every call with a small JSON account of what it received.
//!
//! ```text
//! cargo run --example demo_upstream -- 127.0.0.1:1980
//! ```
//!
//! **What it is not**: fast, or fit for anything but a demonstration. One thread a connection, bodies are read
//! and forgotten.

use serde_json::{Map, Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const DEFAULT_ADDRESS: &str = "127.0.0.1:1980";
const MAX_HEAD_BYTES: u64 = 64 * 1024;
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);

fn main() -> io::Result<()> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| DEFAULT_ADDRESS.to_owned());
    let listener = TcpListener::bind(&address)?;
    writeln!(io::stdout(), "demo upstream on http://{}", listener.local_addr()?)?;
    for stream in listener.incoming().flatten() {
        // A connection that breaks is the client's affair.
        std::thread::spawn(move || serve(&stream).ok());
    }
    Ok(())
}

/// Answers calls on one connection until the client closes it.
fn serve(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE_TIMEOUT))?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(call) = read_head(&mut reader)? {
        if call
            .header("expect")
            .is_some_and(|it| it.eq_ignore_ascii_case("100-continue"))
        {
            (&*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let body_bytes = read_body(&mut reader, &call)?;
        let keeps_alive = call.keeps_alive();
        (&*stream).write_all(&answer(&call, body_bytes, keeps_alive))?;
        if !keeps_alive {
            break;
        }
    }
    Ok(())
}

struct Call {
    method: String,
    target: String,
    version: String,
    headers: Vec<(String, String)>,
}

impl Call {
    fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    fn keeps_alive(&self) -> bool {
        let says = |word: &str| {
            self.header("connection")
                .is_some_and(|it| it.eq_ignore_ascii_case(word))
        };
        if self.version == "HTTP/1.0" {
            says("keep-alive")
        } else {
            !says("close")
        }
    }
}

/// Reads a request's head; `None` once the client has closed the connection.
fn read_head(reader: &mut impl BufRead) -> io::Result<Option<Call>> {
    let mut reader = reader.take(MAX_HEAD_BYTES);
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next()) else {
        return Err(broken("the request line"));
    };
    let mut headers = Vec::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(broken("the head"));
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
            None if line.trim_end().is_empty() => break,
            None => return Err(broken("a header")),
        }
    }
    Ok(Some(Call {
        method,
        target,
        version,
        headers,
    }))
}

/// Reads a request's body and says how long it is.
fn read_body(reader: &mut impl BufRead, call: &Call) -> io::Result<u64> {
    if call.header("transfer-encoding").is_some() {
        return read_chunks(reader);
    }
    match call.header("content-length") {
        Some(length) => skip(reader, length.parse().map_err(|_| broken("Content-Length"))?),
        None => Ok(0),
    }
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<u64> {
    let mut total = 0;
    loop {
        let mut line = String::new();
        reader.take(1024).read_line(&mut line)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        match u64::from_str_radix(size, 16).map_err(|_| broken("a chunk"))? {
            0 => break,
            size => total += skip(reader, size)?,
        }
        skip(reader, 2)?;
    }
    // Trailers, up to the empty line.
    let mut trailers = reader.take(MAX_HEAD_BYTES);
    let mut line = String::from("-");
    while !line.trim_end().is_empty() {
        line.clear();
        trailers.read_line(&mut line)?;
    }
    Ok(total)
}

fn skip(reader: &mut impl BufRead, length: u64) -> io::Result<u64> {
    let skipped = io::copy(&mut reader.take(length), &mut io::sink())?;
    if skipped == length {
        Ok(length)
    } else {
        Err(broken("the body"))
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is broken"))
}

fn answer(call: &Call, body_bytes: u64, keeps_alive: bool) -> Vec<u8> {
    let mut headers = Map::new();
    for (name, value) in &call.headers {
        headers.insert(name.clone(), Value::from(value.as_str()));
    }
    let account = json!({
        "method": call.method,
        "target": call.target,
        "headers": headers,
        "body_bytes": body_bytes,
    });
    let body = format!("{account:#}\n");
    let connection = if keeps_alive { "keep-alive" } else { "close" };
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: demo-upstream\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n",
        body.len()
    );
    let mut message = head.into_bytes();
    if call.method != "HEAD" {
        message.extend_from_slice(body.as_bytes());
    }
    message
}
