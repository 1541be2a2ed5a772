//! Subrequests: requests of a filter to another server, which the engine sends before the call continues.

use crate::connector::Connector;
use crate::headers::Headers;
use std::sync::Arc;
use std::time::Duration;

/// A request to another server. The engine sends it, keeps the answer in [`Exchange::subrequest_response`](crate::Exchange::subrequest_response)
/// and calls the filter again.
#[derive(Clone, PartialEq, Eq)]
pub struct Subrequest {
    /// Name or address of the server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether it is asked over TLS, and then whether its certificate must be good.
    pub tls: Option<Verify>,
    /// A whole HTTP/1.1 message.
    pub message: Vec<u8>,
    /// The longest that it may take, with all that belongs to it.
    pub timeout: Duration,
    /// Idle connections to the server that are kept at most, and for how long; `None`: none.
    pub keep: Option<(u32, Duration)>,
    /// The most bytes of the answer's body; with more of them there is no answer.
    pub max_body_bytes: usize,
    /// Further rules for the connection. If TLS is used, its TLS rules replace `tls`; `None`: the gateway's own.
    pub connector: Option<Arc<Connector>>,
}

/// The message may hold a caller's credentials.
impl std::fmt::Debug for Subrequest {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Subrequest")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("message", &self.message.len())
            .finish_non_exhaustive()
    }
}

/// Whether a server's certificate must be good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// It must be.
    Yes,
    /// Any will do.
    No,
}

/// What a server has answered.
#[derive(Debug, Clone, Default)]
pub struct SubrequestResponse {
    /// The status code.
    pub status: u16,
    /// The header fields, without hop-by-hop ones and without framing.
    pub headers: Headers,
    /// The body.
    pub body: Vec<u8>,
}
