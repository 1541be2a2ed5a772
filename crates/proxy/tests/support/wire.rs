//! One end of a connection: sends raw bytes, and reads messages strictly enough to tell a clean end from a
//! broken one.

use super::{PATIENCE, text};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

/// A socket with the bytes that were read from it and not used yet.
pub struct Wire {
    pub stream: TcpStream,
    unused: Vec<u8>,
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With a FIN.
    Cleanly,
    /// With a reset.
    Reset,
}

/// The head of a message, as it was on the wire.
#[derive(Debug, Clone)]
pub struct Head {
    pub raw: Vec<u8>,
    pub line: String,
    pub fields: Vec<(String, Vec<u8>)>,
}

/// A whole message.
#[derive(Debug, Clone)]
pub struct Message {
    pub head: Head,
    pub body: Vec<u8>,
}

impl Head {
    fn parse(raw: Vec<u8>) -> Self {
        let mut lines = raw[..raw.len() - 4]
            .split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let line = text(lines.next().unwrap());
        let fields = lines.map(|line| {
            let colon = line
                .iter()
                .position(|byte| *byte == b':')
                .unwrap_or_else(|| panic!("no field line: {}", text(line)));
            (text(&line[..colon]), line[colon + 1..].trim_ascii().to_vec())
        });
        let fields = fields.collect();
        Self { line, fields, raw }
    }

    /// The values of every field of this name, in order.
    pub fn all(&self, name: &str) -> Vec<String> {
        let fields = self
            .fields
            .iter()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name));
        fields.map(|(_, value)| text(value)).collect()
    }

    /// The value of the only field of this name.
    pub fn get(&self, name: &str) -> Option<String> {
        let mut values = self.all(name);
        assert!(values.len() < 2, "several {name} in {}", text(&self.raw));
        values.pop()
    }

    pub fn status(&self) -> u16 {
        self.line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .unwrap_or_else(|| panic!("no status: {}", self.line))
    }

    /// The names of all fields, as they were spelled.
    pub fn names(&self) -> Vec<&str> {
        self.fields.iter().map(|(name, _)| name.as_str()).collect()
    }
}

impl Message {
    pub fn status(&self) -> u16 {
        self.head.status()
    }
}

impl Wire {
    pub fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            unused: Vec::new(),
        }
    }

    pub fn connect(address: SocketAddr) -> Self {
        Self::new(TcpStream::connect(address).expect("the gateway accepts"))
    }

    /// Sends all of these bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).expect("the peer takes the bytes");
    }

    /// Sends all of these bytes if the peer takes them.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// Sends these bytes one by one, each in a segment of its own.
    pub fn trickle(&mut self, bytes: impl AsRef<[u8]>) {
        for byte in bytes.as_ref() {
            self.send([*byte]);
        }
    }

    /// Sends no more.
    pub fn finish(&self) {
        self.stream
            .shutdown(Shutdown::Write)
            .expect("the connection is open");
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        socket2::SockRef::from(&self.stream)
            .set_linger(Some(std::time::Duration::ZERO))
            .unwrap();
    }

    /// Reads once.
    fn fill(&mut self) -> Result<(), Ended> {
        let mut piece = vec![0; 64 * 1024];
        match self.stream.read(&mut piece) {
            Ok(0) => Err(Ended::Cleanly),
            Ok(count) => {
                self.unused.extend_from_slice(&piece[..count]);
                Ok(())
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                panic!("nothing came; unused so far: {}", text(&self.unused))
            }
            Err(_) => Err(Ended::Reset),
        }
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        self.unused.drain(..count).collect()
    }

    /// Reads so many bytes.
    pub fn read(&mut self, count: usize) -> Result<Vec<u8>, Ended> {
        while self.unused.len() < count {
            self.fill()?;
        }
        Ok(self.take(count))
    }

    /// Reads through the next occurrence of `end`.
    pub fn read_through(&mut self, end: &[u8]) -> Result<Vec<u8>, Ended> {
        let mut from = 0;
        loop {
            if let Some(at) = self.unused[from..]
                .windows(end.len())
                .position(|window| window == end)
            {
                return Ok(self.take(from + at + end.len()));
            }
            from = self.unused.len().saturating_sub(end.len() - 1);
            self.fill()?;
        }
    }

    /// Reads a head.
    pub fn head(&mut self) -> Result<Head, Ended> {
        self.read_through(b"\r\n\r\n").map(Head::parse)
    }

    /// Reads the body of a request with this head.
    fn request_body(&mut self, head: &Head) -> Result<Vec<u8>, Ended> {
        match (head.get("Transfer-Encoding"), head.get("Content-Length")) {
            (Some(_), Some(_)) => panic!("both framings: {}", text(&head.raw)),
            (Some(_), None) => self.chunked(),
            (None, Some(length)) => self.read(length.parse().expect("a length")),
            (None, None) => Ok(Vec::new()),
        }
    }

    /// Reads a chunked body, without extensions or trailers: the gateway sends none.
    pub fn chunked(&mut self) -> Result<Vec<u8>, Ended> {
        let mut body = Vec::new();
        loop {
            let chunk = self.chunk()?;
            if chunk.is_empty() {
                return Ok(body);
            }
            body.extend_from_slice(&chunk);
        }
    }

    /// Reads one chunk; an empty one is the last, with its end.
    pub fn chunk(&mut self) -> Result<Vec<u8>, Ended> {
        let line = self.read_through(b"\r\n")?;
        let size =
            usize::from_str_radix(std::str::from_utf8(&line[..line.len() - 2]).unwrap(), 16).expect("a size");
        let data = self.read(size)?;
        assert_eq!(text(&self.read(2)?), "\\r\\n");
        Ok(data)
    }

    /// Reads a whole request.
    pub fn request(&mut self) -> Result<Message, Ended> {
        let head = self.head()?;
        let body = self.request_body(&head)?;
        Ok(Message { head, body })
    }

    /// Reads a whole response to a request that was no HEAD; `Err` where it does not come to its proper end.
    pub fn response(&mut self) -> Result<Message, Ended> {
        self.response_to("GET")
    }

    /// Reads a whole response to a request of this method. Interim responses are responses of their own.
    pub fn response_to(&mut self, method: &str) -> Result<Message, Ended> {
        let head = self.head()?;
        let status = head.status();
        if method == "HEAD" || status < 200 || status == 204 || status == 304 {
            return Ok(Message {
                head,
                body: Vec::new(),
            });
        }
        if head.get("Transfer-Encoding").is_some() || head.get("Content-Length").is_some() {
            let body = self.request_body(&head)?;
            return Ok(Message { head, body });
        }
        match self.rest() {
            (body, Ended::Cleanly) => Ok(Message { head, body }),
            (_, Ended::Reset) => Err(Ended::Reset),
        }
    }

    /// Reads to the end of the stream.
    pub fn rest(&mut self) -> (Vec<u8>, Ended) {
        loop {
            if let Err(ended) = self.fill() {
                return (std::mem::take(&mut self.unused), ended);
            }
        }
    }

    /// Waits for the end of the stream, before which no further byte may come.
    pub fn expect_end(&mut self) -> Ended {
        let (rest, ended) = self.rest();
        assert!(rest.is_empty(), "unexpected before the end: {}", text(&rest));
        ended
    }
}
