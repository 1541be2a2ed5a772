//! Calls over HTTP/1.1, each on a connection of its own; those that can be used again are.

use super::client::{Call, CallResult, ClientError, Head};
use super::support::{Ended, Wire, list};
use http::HeaderMap;
use std::net::SocketAddr;
use std::sync::Mutex;

pub struct Client {
    address: SocketAddr,
    is_tls: bool,
    idle: Mutex<Vec<Wire>>,
}

impl Client {
    pub fn new(address: SocketAddr, is_tls: bool) -> Self {
        Self {
            address,
            is_tls,
            idle: Mutex::default(),
        }
    }

    /// A connection that the gateway has not ended.
    fn connection(&self) -> Wire {
        while let Some(wire) = self.pop() {
            if wire.is_quiet() {
                return wire;
            }
        }
        Wire::to_listener(self.address, self.is_tls)
    }

    fn pop(&self) -> Option<Wire> {
        self.idle.lock().unwrap().pop()
    }

    pub fn begin(
        &self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        has_body: bool,
    ) -> CallResult<'_> {
        let mut wire = self.connection();
        let value = |name: &str| fields.iter().find(|it| it.0 == name).map(|it| it.1);
        let mut head = format!("{method} {target} HTTP/1.1\r\n");
        if value("host").is_none() {
            head.push_str("host: localhost\r\n");
        }
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let length = value("content-length").and_then(|length| length.parse().ok());
        let sending = match length {
            Some(left) => Sending::Length(left),
            None if has_body => Sending::Chunked,
            None => Sending::Length(0),
        };
        if matches!(sending, Sending::Chunked) {
            head.push_str("transfer-encoding: chunked\r\n");
        }
        head.push_str("\r\n");
        wire.try_send(head).map_err(|_| ClientError)?;
        Ok(Box::new(Calling {
            client: self,
            wire: Some(wire),
            sending,
            is_head: method == "HEAD",
            goes_on: true,
            framing: Framing::None,
            trailers: HeaderMap::new(),
        }))
    }
}

/// What is still to be sent.
enum Sending {
    Length(usize),
    Chunked,
}

#[derive(Clone, Copy)]
enum Framing {
    None,
    Length(usize),
    Chunked,
    UntilClose,
}

struct Calling<'c> {
    client: &'c Client,
    /// Gone, once it is with the client again.
    wire: Option<Wire>,
    sending: Sending,
    is_head: bool,
    /// What the gateway says of the connection.
    goes_on: bool,
    framing: Framing,
    trailers: HeaderMap,
}

impl Calling<'_> {
    fn wire(&mut self) -> &mut Wire {
        self.wire.as_mut().expect("the answer has not ended")
    }

    fn line(&mut self) -> Result<String, ClientError> {
        let line = self.wire().read_through(b"\r\n").map_err(|_| ClientError)?;
        Ok(String::from_utf8(line).unwrap().trim_end().to_owned())
    }

    /// The answer has come to its end.
    fn end(&mut self) {
        self.framing = Framing::None;
        if self.goes_on && matches!(self.sending, Sending::Length(0)) {
            self.client.idle.lock().unwrap().extend(self.wire.take());
        }
    }
}

impl Call for Calling<'_> {
    fn send(&mut self, data: &[u8]) -> Result<(), ClientError> {
        let bytes = match &mut self.sending {
            Sending::Chunked => [format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat(),
            Sending::Length(left) => {
                *left = left.saturating_sub(data.len());
                data.to_vec()
            }
        };
        self.wire().try_send(bytes).map_err(|_| ClientError)
    }

    fn finish(&mut self, trailers: &[(&str, &str)]) {
        if matches!(self.sending, Sending::Chunked) {
            let mut end = "0\r\n".to_owned();
            for (name, value) in trailers {
                end.push_str(&format!("{name}: {value}\r\n"));
            }
            end.push_str("\r\n");
            if self.wire().try_send(end).is_ok() {
                self.sending = Sending::Length(0);
            }
        }
    }

    fn next_head(&mut self) -> Result<Head, ClientError> {
        let head = self.wire().head().map_err(|_| ClientError)?;
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
        self.goes_on = head.get("Connection").is_none();
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

    fn piece(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        match self.framing {
            Framing::None | Framing::Length(0) => {
                self.end();
                Ok(None)
            }
            Framing::Length(left) => {
                let data = self.wire().read_some(left).map_err(|_| ClientError)?;
                self.framing = Framing::Length(left - data.len());
                Ok(Some(data))
            }
            Framing::Chunked => {
                let size = self.line()?;
                let size = usize::from_str_radix(&size, 16).expect("a size");
                if size > 0 {
                    let data = self.wire().read(size).map_err(|_| ClientError)?;
                    self.line()?;
                    return Ok(Some(data));
                }
                while let Some((name, value)) = self.line()?.split_once(':') {
                    self.trailers.extend(list(&[(name, value.trim())]));
                }
                self.end();
                Ok(None)
            }
            Framing::UntilClose => match self.wire().read_some(usize::MAX) {
                Ok(data) => Ok(Some(data)),
                Err(Ended::Cleanly) => Ok(None),
                Err(Ended::Reset) => Err(ClientError),
            },
        }
    }

    fn trailers(&mut self) -> HeaderMap {
        std::mem::take(&mut self.trailers)
    }

    fn cancel(mut self: Box<Self>) {
        if let Some(wire) = self.wire.take() {
            wire.reset();
        }
    }
}
