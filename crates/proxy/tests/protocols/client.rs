//! A client of any protocol: what a test asks of it is the same for all.

use super::support::{joined, list};
use super::{http1, http2, http3};
use http::{HeaderMap, Request};
use std::net::SocketAddr;

/// A protocol that clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http1Tls,
    Http2,
    Http2Tls,
    Http3,
}

/// All of them.
pub const ALL: [Protocol; 5] = [
    Protocol::Http1,
    Protocol::Http1Tls,
    Protocol::Http2,
    Protocol::Http2Tls,
    Protocol::Http3,
];

impl Protocol {
    pub fn is_http1(self) -> bool {
        matches!(self, Self::Http1 | Self::Http1Tls)
    }

    pub fn is_tls(self) -> bool {
        !matches!(self, Self::Http1 | Self::Http2)
    }
}

/// That something did not come to its proper end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientError;

/// A response's head.
#[derive(Debug, Clone)]
pub struct Head {
    pub status: u16,
    pub fields: HeaderMap,
}

impl Head {
    /// The values of a field, joined.
    pub fn get(&self, name: &str) -> Option<String> {
        joined(&self.fields, name)
    }
}

/// A whole response.
#[derive(Debug, Clone)]
pub struct ClientResponse {
    pub head: Head,
    pub body: Vec<u8>,
    pub trailers: HeaderMap,
}

impl ClientResponse {
    pub fn get(&self, name: &str) -> Option<String> {
        self.head.get(name)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The head of a request on a stream; a `host` among its fields is its authority.
pub fn stream_head(method: &str, scheme: &str, target: &str, fields: &[(&str, &str)]) -> Request<()> {
    let host = fields.iter().find(|(name, _)| *name == "host");
    let host = host.map_or("localhost", |(_, value)| value);
    let mut request = Request::builder()
        .method(method)
        .uri(format!("{scheme}://{host}{target}"))
        .body(())
        .unwrap();
    *request.headers_mut() = list(fields);
    request.headers_mut().remove("host");
    request
}

/// A call, if one could be begun.
pub type CallResult<'c> = Result<Box<dyn Call + 'c>, ClientError>;

/// A call under way.
pub trait Call: Send {
    /// Sends data; whether the gateway has taken it.
    fn send(&mut self, data: &[u8]) -> Result<(), ClientError>;
    /// Sends no more.
    fn finish(&mut self, trailers: &[(&str, &str)]);
    /// Waits for the next head, an interim one perhaps.
    fn next_head(&mut self) -> Result<Head, ClientError>;
    /// Waits for data; `None` at the proper end.
    fn piece(&mut self) -> Result<Option<Vec<u8>>, ClientError>;
    /// Trailers, once the end was read.
    fn trailers(&mut self) -> HeaderMap;
    /// Gives the call up.
    fn cancel(self: Box<Self>);

    /// Waits for the final head.
    fn head(&mut self) -> Result<Head, ClientError> {
        loop {
            let head = self.next_head()?;
            if head.status >= 200 || head.status == 101 {
                return Ok(head);
            }
        }
    }

    /// Reads so much, or to the end.
    fn take(&mut self, count: usize) -> Result<Vec<u8>, ClientError> {
        let mut all = Vec::new();
        while all.len() < count {
            match self.piece()? {
                Some(piece) => all.extend_from_slice(&piece),
                None => break,
            }
        }
        Ok(all)
    }

    /// Reads to the end.
    fn rest(&mut self) -> Result<Vec<u8>, ClientError> {
        self.take(usize::MAX)
    }
}

enum Kind {
    Http1(http1::Client),
    Http2(http2::Client),
    Http3(http3::Client),
}

/// A client.
pub struct Client(Kind);

impl Client {
    /// One that speaks this protocol with the gateway at this address.
    pub fn new(protocol: Protocol, address: SocketAddr) -> Self {
        Self(match protocol {
            Protocol::Http1 | Protocol::Http1Tls => {
                Kind::Http1(http1::Client::new(address, protocol.is_tls()))
            }
            Protocol::Http2 | Protocol::Http2Tls => {
                Kind::Http2(http2::Client::new(address, protocol.is_tls()))
            }
            Protocol::Http3 => Kind::Http3(http3::Client::new(address)),
        })
    }

    /// Begins a call; `has_body`: more will be sent.
    pub fn begin(
        &self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        has_body: bool,
    ) -> CallResult<'_> {
        match &self.0 {
            Kind::Http1(client) => client.begin(method, target, fields, has_body),
            Kind::Http2(client) => client.begin(method, target, fields, has_body),
            Kind::Http3(client) => client.begin(method, target, fields, has_body),
        }
    }

    /// Begins a WebSocket. Behind its head data is sent and read as it stands.
    pub fn websocket(&self, target: &str) -> Box<dyn Call + '_> {
        let fields = [
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        match &self.0 {
            Kind::Http1(client) => {
                let upgrade = [("connection", "upgrade"), ("upgrade", "websocket")];
                let fields = [&fields[..], &upgrade[..]].concat();
                client.begin("GET", target, &fields, false).unwrap()
            }
            Kind::Http2(client) => client.websocket(target, &fields[..1]),
            Kind::Http3(_) => panic!("there are none over HTTP/3"),
        }
    }

    /// Makes a whole call.
    pub fn call(
        &self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Result<ClientResponse, ClientError> {
        let mut call = self.begin(method, target, fields, !body.is_empty())?;
        if !body.is_empty() {
            // An early answer may leave the rest unwanted.
            if call.send(body).is_ok() {
                call.finish(&[]);
            }
        }
        read_response(call.as_mut())
    }

    /// Makes a whole call without a body.
    pub fn get(&self, target: &str) -> ClientResponse {
        self.call("GET", target, &[], b"").unwrap()
    }
}

/// Reads a whole response.
pub fn read_response(call: &mut dyn Call) -> Result<ClientResponse, ClientError> {
    let head = call.head()?;
    let body = call.rest()?;
    let trailers = call.trailers();
    Ok(ClientResponse { head, body, trailers })
}
