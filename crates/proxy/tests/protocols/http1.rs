//! Calls over HTTP/1.1, each on a connection of its own.

use super::client::{Broken, Call, Head, list};
use super::support::{Ended, Wire};
use http::HeaderMap;
use std::net::SocketAddr;

pub struct Client {
    address: SocketAddr,
    is_tls: bool,
}

impl Client {
    pub fn new(address: SocketAddr, is_tls: bool) -> Self {
        Self { address, is_tls }
    }

    pub fn begin(
        &self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        has_body: bool,
    ) -> Result<Box<dyn Call + '_>, Broken> {
        let mut wire = Wire::to_listener(self.address, self.is_tls);
        let has = |name: &str| fields.iter().any(|(other, _)| *other == name);
        let mut head = format!("{method} {target} HTTP/1.1\r\n");
        if !has("host") {
            head.push_str("host: localhost\r\n");
        }
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let is_chunked = has_body && !has("content-length");
        if is_chunked {
            head.push_str("transfer-encoding: chunked\r\n");
        }
        head.push_str("\r\n");
        wire.try_send(head).map_err(|_| Broken)?;
        Ok(Box::new(Calling {
            wire,
            is_chunked,
            is_head: method == "HEAD",
            framing: Framing::None,
            trailers: HeaderMap::new(),
        }))
    }
}

enum Framing {
    None,
    Length(usize),
    Chunked,
    UntilClose,
}

struct Calling {
    wire: Wire,
    is_chunked: bool,
    is_head: bool,
    framing: Framing,
    trailers: HeaderMap,
}

impl Call for Calling {
    fn send(&mut self, data: &[u8]) -> Result<(), Broken> {
        let mut bytes = Vec::new();
        if self.is_chunked {
            bytes.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
        }
        bytes.extend_from_slice(data);
        if self.is_chunked {
            bytes.extend_from_slice(b"\r\n");
        }
        self.wire.try_send(bytes).map_err(|_| Broken)
    }

    fn finish(&mut self, trailers: &[(&str, &str)]) {
        if self.is_chunked {
            let mut end = "0\r\n".to_owned();
            for (name, value) in trailers {
                end.push_str(&format!("{name}: {value}\r\n"));
            }
            end.push_str("\r\n");
            let _sent = self.wire.try_send(end);
        }
    }

    fn next_head(&mut self) -> Result<Head, Broken> {
        let head = self.wire.head().map_err(|_| Broken)?;
        let status = head.status();
        self.framing = match (head.get("Transfer-Encoding"), head.get("Content-Length")) {
            _ if self.is_head || status < 200 || status == 204 || status == 304 => Framing::None,
            (Some(_), _) => Framing::Chunked,
            (None, Some(length)) => Framing::Length(length.parse().unwrap()),
            (None, None) => Framing::UntilClose,
        };
        if status == 101 {
            self.framing = Framing::UntilClose;
        }
        let fields: Vec<_> = head
            .fields
            .iter()
            .map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value).into_owned()))
            .collect();
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        Ok(Head {
            status,
            fields: list(&fields),
        })
    }

    fn piece(&mut self) -> Result<Option<Vec<u8>>, Broken> {
        match &mut self.framing {
            Framing::None | Framing::Length(0) => Ok(None),
            Framing::Length(left) => {
                let data = self.wire.read_some(*left).map_err(|_| Broken)?;
                *left -= data.len();
                Ok(Some(data))
            }
            Framing::Chunked => {
                let line = self.wire.read_through(b"\r\n").map_err(|_| Broken)?;
                let size = std::str::from_utf8(&line).unwrap().trim();
                let size = usize::from_str_radix(size, 16).expect("a size");
                if size > 0 {
                    let data = self.wire.read(size).map_err(|_| Broken)?;
                    self.wire.read(2).map_err(|_| Broken)?;
                    return Ok(Some(data));
                }
                self.framing = Framing::None;
                loop {
                    let line = self.wire.read_through(b"\r\n").map_err(|_| Broken)?;
                    let line = String::from_utf8(line).unwrap();
                    let Some((name, value)) = line.trim_end().split_once(':') else {
                        return Ok(None);
                    };
                    self.trailers.extend(list(&[(name, value.trim())]));
                }
            }
            Framing::UntilClose => match self.wire.read_some(usize::MAX) {
                Ok(data) => Ok(Some(data)),
                Err(Ended::Cleanly) => Ok(None),
                Err(Ended::Reset) => Err(Broken),
            },
        }
    }

    fn trailers(&mut self) -> HeaderMap {
        std::mem::take(&mut self.trailers)
    }

    fn cancel(self: Box<Self>) {
        self.wire.reset();
    }
}
