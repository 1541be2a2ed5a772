//! A server to try the gateway with: it answers every call with a small JSON account of what it received.
//!
//! ```text
//! cargo run --example demo_upstream -- 127.0.0.1:1980
//! ```
//!
//! The status is 200, or what the argument `status` of the query or the header `X-Status` says. Arguments that begin
//! with a capital letter become headers of the answer: `/?status=404&X-Used=3`. The examples of `docs/plugins` are
//! tried with it, by a test too.
//!
//! **What it is not**: fast, or fit for anything but a demonstration. One thread a connection; of a body the beginning
//! is kept.

use serde_json::{Map, Value, json};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const DEFAULT_ADDRESS: &str = "127.0.0.1:1980";
const MAX_HEAD_BYTES: u64 = 64 * 1024;
/// The most bytes of a body that the reply repeats.
const MAX_BODY_BYTES: usize = 64 * 1024;
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);

fn main() -> io::Result<()> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| DEFAULT_ADDRESS.to_owned());
    let listener = TcpListener::bind(&address)?;
    writeln!(io::stdout(), "demo upstream on http://{}", listener.local_addr()?)?;
    serve_all(&listener);
    Ok(())
}

/// Answers all calls.
pub fn serve_all(listener: &TcpListener) {
    for stream in listener.incoming().flatten() {
        // A connection that breaks is the client's affair.
        std::thread::spawn(move || serve(&stream).ok());
    }
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
        let body = read_body(&mut reader, &call)?;
        let keeps_alive = call.keeps_alive();
        (&*stream).write_all(&answer(&call, &body, keeps_alive))?;
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

/// A request's body: its length, and its beginning.
#[derive(Default)]
struct Body {
    bytes: u64,
    beginning: Vec<u8>,
}

impl Body {
    fn read(&mut self, reader: &mut impl BufRead, length: u64) -> io::Result<()> {
        let room = MAX_BODY_BYTES.saturating_sub(self.beginning.len()) as u64;
        let mut rest = reader.take(length);
        let kept = io::copy(&mut (&mut rest).take(room), &mut self.beginning)?;
        let skipped = io::copy(&mut rest, &mut io::sink())?;
        self.bytes += length;
        match kept + skipped == length {
            true => Ok(()),
            false => Err(broken("the body")),
        }
    }
}

fn read_body(reader: &mut impl BufRead, call: &Call) -> io::Result<Body> {
    let mut body = Body::default();
    if call.header("transfer-encoding").is_some() {
        read_chunks(reader, &mut body)?;
    } else if let Some(length) = call.header("content-length") {
        body.read(reader, length.parse().map_err(|_| broken("Content-Length"))?)?;
    }
    Ok(body)
}

fn read_chunks(reader: &mut impl BufRead, body: &mut Body) -> io::Result<()> {
    loop {
        let mut line = String::new();
        reader.take(1024).read_line(&mut line)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        match u64::from_str_radix(size, 16).map_err(|_| broken("a chunk"))? {
            0 => break,
            size => body.read(reader, size)?,
        }
        Body::default().read(reader, 2)?;
    }
    // Trailers, up to the empty line.
    let mut trailers = reader.take(MAX_HEAD_BYTES);
    let mut line = String::from("-");
    while !line.trim_end().is_empty() {
        line.clear();
        trailers.read_line(&mut line)?;
    }
    Ok(())
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is broken"))
}

fn answer(call: &Call, body: &Body, keeps_alive: bool) -> Vec<u8> {
    let mut headers = Map::new();
    for (name, value) in &call.headers {
        headers.insert(name.clone(), Value::from(value.as_str()));
    }
    let account = json!({
        "method": call.method,
        "target": call.target,
        "headers": headers,
        "body_bytes": body.bytes,
        "body": String::from_utf8_lossy(&body.beginning),
    });
    let text = format!("{account:#}\n");
    let (mut status, mut more) = (call.header("x-status"), String::new());
    let query = call.target.split_once('?').map_or("", |(_, query)| query);
    for (name, value) in query.split('&').filter_map(|argument| argument.split_once('=')) {
        if name == "status" {
            status = Some(value);
        } else if name.starts_with(|first: char| first.is_ascii_uppercase()) {
            more.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    let status = status.and_then(|it| it.parse().ok()).unwrap_or(200_u16);
    let connection = if keeps_alive { "keep-alive" } else { "close" };
    if !more.contains("Content-Type: ") {
        more.push_str("Content-Type: application/json\r\n");
    }
    let head = format!(
        "HTTP/1.1 {status} Demo\r\nServer: demo-upstream\r\n{more}Content-Length: {}\r\nConnection: {connection}\r\n\r\n",
        text.len()
    );
    let mut message = head.into_bytes();
    if call.method != "HEAD" {
        message.extend_from_slice(text.as_bytes());
    }
    message
}
