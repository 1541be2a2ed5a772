//! One end of a connection: sends raw bytes, and reads messages strictly enough to distinguish a clean end from a
//! broken one.

use super::{TIMEOUT, text};
use rustls::ClientConnection;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A socket with the bytes that were read from it and not used yet.
pub struct Wire {
    pub stream: TcpStream,
    tls: Option<Arc<Mutex<ClientConnection>>>,
    /// Records, or parts of them, that wait to be decrypted.
    records: Vec<u8>,
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
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream.set_write_timeout(Some(TIMEOUT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream,
            tls: None,
            records: Vec::new(),
            unused: Vec::new(),
        }
    }

    pub fn connect(address: SocketAddr) -> Self {
        Self::new(TcpStream::connect(address).expect("the gateway accepts"))
    }

    /// A connection to a gateway, by the transport that is under test.
    pub fn to_gateway(address: SocketAddr) -> Self {
        Self::to_listener(address, crate::OVER_TLS)
    }

    /// A connection to a listener of a gateway.
    pub fn to_listener(address: SocketAddr, is_tls: bool) -> Self {
        let mut wire = Self::connect(address);
        if is_tls {
            let mut tls = super::tls::client();
            // A client that is refused in the middle will find out when it reads.
            let _shaken = tls.complete_io(&mut wire.stream);
            wire.tls = Some(Arc::new(Mutex::new(tls)));
        }
        wire
    }

    /// Sends all of these bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).expect("the peer takes the bytes");
    }

    /// Sends all of these bytes if the peer takes them.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let records = match &self.tls {
            None => return self.stream.write_all(bytes.as_ref()),
            Some(tls) => {
                let mut tls = tls.lock().unwrap();
                tls.writer().write_all(bytes.as_ref())?;
                records(&mut tls)
            }
        };
        self.stream.write_all(&records)
    }

    /// Another end of the same connection, to send from another thread.
    pub fn sender(&self) -> Self {
        Self {
            stream: self.stream.try_clone().unwrap(),
            tls: self.tls.clone(),
            records: Vec::new(),
            unused: Vec::new(),
        }
    }

    /// Whether the peer has neither sent more than was read nor ended the connection.
    #[allow(dead_code, reason = "few tests ask")]
    pub fn is_quiet(&self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        self.unused.is_empty() && peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits for so long, in which nothing may come.
    #[allow(dead_code, reason = "few tests ask")]
    pub fn expect_silence(&mut self, time: Duration) {
        self.stream.set_read_timeout(Some(time)).unwrap();
        let mut space = [0; 16];
        match self.read_once(&mut space) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            came => panic!("expected silence, found {came:?}"),
        }
        self.stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    }

    /// Sends these bytes one by one, each in a segment of its own.
    pub fn trickle(&mut self, bytes: impl AsRef<[u8]>) {
        for byte in bytes.as_ref() {
            self.send([*byte]);
        }
    }

    /// Sends no more.
    pub fn finish(&mut self) {
        if let Some(tls) = &self.tls {
            let mut tls = tls.lock().unwrap();
            tls.send_close_notify();
            let records = records(&mut tls);
            self.stream
                .write_all(&records)
                .expect("the peer takes a good-bye");
        }
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

    fn read_once(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &self.tls else {
            return self.stream.read(space);
        };
        loop {
            match tls.lock().unwrap().reader().read(space) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            if self.records.is_empty() {
                // Without the lock, so that another end can send meanwhile.
                let mut piece = vec![0; 64 * 1024];
                let count = self.stream.read(&mut piece)?;
                self.records.extend_from_slice(&piece[..count]);
            }
            let mut tls = tls.lock().unwrap();
            let mut left = self.records.as_slice();
            tls.read_tls(&mut left)?;
            let used = self.records.len() - left.len();
            self.records.drain(..used);
            tls.process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }

    /// Reads once.
    fn fill(&mut self) -> Result<(), Ended> {
        let mut piece = vec![0; 64 * 1024];
        let read = self.read_once(&mut piece);
        match read {
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

    /// Reads what there is, up to so many bytes.
    #[allow(dead_code, reason = "few tests ask")]
    pub fn read_some(&mut self, most: usize) -> Result<Vec<u8>, Ended> {
        if self.unused.is_empty() {
            self.fill()?;
        }
        Ok(self.take(most.min(self.unused.len())))
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

    /// Reads a whole response to a request that was no HEAD; `Err` if it does not come to its proper end.
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

/// What is to be written to the network.
fn records(tls: &mut ClientConnection) -> Vec<u8> {
    let mut records = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut records).unwrap();
    }
    records
}
