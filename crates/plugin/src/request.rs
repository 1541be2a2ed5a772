//! The request side of an exchange, whatever protocol version carried it.

use crate::body::{MAX_VARIABLE_BODY, ParsedBody};
use crate::client_certificates::ClientCertificates;
use crate::headers::Headers;
use crate::path_parameters::strip_parameters;
use crate::uri::{self, InvalidPath, NormalForm};
use crate::work::WorkBudget;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Headers about the client that the gateway sets itself, unless a filter has decided about them.
pub const CLIENT_HEADERS: [&str; 4] = [
    "x-forwarded-proto",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-real-ip",
];

/// The header by which a filter knows the calls that it makes to its own gateway. It is never forwarded.
pub const OWN_CALL_HEADER: &str = "Weir-Batch";

/// The bit of a header in [`Request::overridden_headers`]; 0 for all others.
pub fn client_header_bit(name: &str) -> u8 {
    let place = CLIENT_HEADERS
        .iter()
        .position(|known| known.eq_ignore_ascii_case(name));
    place.map_or(0, |place| 1 << place)
}

/// What a TLS handshake has agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TlsAgreement {
    /// The version, such as `TLSv1.3`.
    pub version: &'static str,
    /// The cipher suite, as OpenSSL names it.
    pub cipher: &'static str,
}

/// How a dialect reads the paths of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathRules {
    /// The normal form.
    pub form: NormalForm,
    /// Parameters (`/a;x=1`) are no part of the path.
    pub strips_parameters: bool,
    /// Nor is a `/` at its end.
    pub drops_tail_slash: bool,
}

/// A request as filters see and change it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The method, as written.
    pub method: Vec<u8>,
    /// The path as the client wrote it, without the query. Never changes.
    pub raw_path: Vec<u8>,
    /// The path as it will be matched and forwarded (see the route table's normal form). Filters may change it.
    pub path: Vec<u8>,
    /// The path with its parameters (`/a;x=1`), if `path` lacks them; else empty. It is what is forwarded.
    pub path_with_parameters: Vec<u8>,
    /// Whether `path` lacks the `/` at its end, which is forwarded all the same.
    pub lacks_tail_slash: bool,
    /// Whether `path` has no escapes, as routes of this dialect are matched.
    pub path_is_decoded: bool,
    /// The query without its `?`, as written; `None` if there is no `?`.
    pub query: Option<Vec<u8>>,
    /// The host in lower case without its port; empty if the client named none.
    pub host: Vec<u8>,
    /// The port in the host field, if there is one.
    pub host_port: Option<u16>,
    /// The header fields. `Host` is among them; hop-by-hop fields are not.
    pub headers: Headers,
    /// Of [`CLIENT_HEADERS`], those about which filters have decided, a bit each: the gateway leaves them as they are.
    pub overridden_headers: u8,
    /// What [`OWN_CALL_HEADER`] says, in hexadecimal digits; 0: nothing. Anyone can send the header: it tells only who knows the
    /// number.
    pub own_call: u128,
    /// The work that the call's content may cause.
    pub work: WorkBudget,
    /// The body, if the engine has read it as a whole because a filter needs it.
    pub body: Option<Vec<u8>>,
    /// The first bytes of a body that is longer, for the filter that has
    /// [asked](crate::Outcome::NeedBodyStart) for them.
    pub body_start: Option<Vec<u8>>,
    /// The longest body in which variables look for a GraphQL query.
    pub max_graphql_bytes: usize,
    /// Whether a body comes with the request.
    pub has_body: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// Whether the client wants to switch to another protocol.
    pub wants_upgrade: bool,
    /// The most bytes that the body may have, instead of other limits; filters may set it.
    pub max_body_bytes: Option<u64>,
    /// The length of the body, if the client announced it. It is not among the headers: framing is the engine's.
    pub content_length: Option<u64>,
    /// The bytes of the request line and the header fields, as they came.
    pub head_length: u64,
    /// HTTP version as (major, minor).
    pub version: (u8, u8),
    /// Whether the client's connection is over TLS.
    pub is_tls: bool,
    /// What the TLS handshake has agreed on, if it is known.
    pub tls: Option<TlsAgreement>,
    /// The server name of the TLS handshake.
    pub sni: Option<Arc<str>>,
    /// The certificates that the client has shown in the TLS handshake.
    pub client_certificates: Option<Arc<ClientCertificates>>,
    /// The client: the connection's peer, or the address that a trusted peer names.
    pub client: IpAddr,
    /// The client's port, if a filter learned one that differs from the peer's.
    pub client_port: Option<u16>,
    /// The peer of the connection.
    pub peer: SocketAddr,
    /// The address on which the gateway took the connection.
    pub local: SocketAddr,
    /// The memory of the last query, for the next one.
    spare_query: Vec<u8>,
    /// The memory of the last body that was kept, for the next one.
    spare_body: Vec<u8>,
    pub(crate) parsed: ParsedBody,
}

/// Larger bodies leave no memory behind.
const MAX_SPARE_BODY: usize = 16 * 1024;

impl Default for Request {
    fn default() -> Self {
        let unknown = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        Self {
            method: Vec::new(),
            raw_path: Vec::new(),
            path: Vec::new(),
            path_with_parameters: Vec::new(),
            lacks_tail_slash: false,
            path_is_decoded: false,
            query: None,
            host: Vec::new(),
            host_port: None,
            headers: Headers::default(),
            overridden_headers: 0,
            own_call: 0,
            work: WorkBudget::default(),
            body: None,
            body_start: None,
            max_graphql_bytes: MAX_VARIABLE_BODY,
            has_body: false,
            expects_continue: false,
            wants_upgrade: false,
            max_body_bytes: None,
            content_length: None,
            head_length: 0,
            version: (1, 1),
            is_tls: false,
            tls: None,
            sni: None,
            client_certificates: None,
            client: unknown.ip(),
            client_port: None,
            peer: unknown,
            local: unknown,
            spare_query: Vec::new(),
            spare_body: Vec::new(),
            parsed: ParsedBody::default(),
        }
    }
}

impl Request {
    /// The bytes of its head, and of its body as far as that is known.
    pub fn length(&self) -> u64 {
        let read = self.body.as_ref().map_or(0, |body| body.len() as u64);
        self.head_length + self.content_length.unwrap_or(read)
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.is_tls { "https" } else { "http" }
    }

    /// The first value of query argument `name`, decoded. An argument without `=` has the empty value.
    pub fn query_arg(&self, name: &[u8]) -> Option<Cow<'_, [u8]>> {
        uri::query_pairs(self.query.as_deref()?)
            .find(|(key, _)| uri::decode_form(key).as_ref() == name)
            .map(|(_, value)| uri::decode_form(value.unwrap_or_default()))
    }

    /// The value of cookie `name`, as written.
    pub fn cookie(&self, name: &[u8]) -> Option<&[u8]> {
        self.cookies(name).next()
    }

    /// The values of all cookies of this name, in order.
    pub fn cookies<'r>(&'r self, name: &[u8]) -> impl Iterator<Item = &'r [u8]> {
        let headers = self.headers.get_all(b"cookie");
        let pairs = headers.flat_map(|value| value.split(|byte| *byte == b';'));
        pairs.filter_map(|pair| pair.trim_ascii().strip_prefix(name)?.strip_prefix(b"="))
    }

    /// Sets the query, using memory of an earlier one.
    pub fn set_query(&mut self, query: &[u8]) {
        let mut memory = self
            .query
            .take()
            .unwrap_or_else(|| std::mem::take(&mut self.spare_query));
        memory.clear();
        memory.extend_from_slice(query);
        self.query = Some(memory);
    }

    /// Finds out `path` by a dialect's rules: its normal form, and whether path parameters are part of what is matched.
    ///
    /// # Errors
    /// If the path means nothing by these rules.
    pub fn normalize_path(&mut self, rules: PathRules) -> Result<(), InvalidPath> {
        self.path_is_decoded = rules.form == NormalForm::Decoded;
        self.path_with_parameters.clear();
        rules.form.apply(&self.raw_path, &mut self.path)?;
        if rules.strips_parameters && strip_parameters(&self.path, &mut self.path_with_parameters)? {
            std::mem::swap(&mut self.path, &mut self.path_with_parameters);
        }
        self.lacks_tail_slash = rules.drops_tail_slash && self.path.ends_with(b"/");
        if self.lacks_tail_slash {
            self.path.pop();
        }
        Ok(())
    }

    /// Whether it is for this path. A `/` at its end counts for neither, if the dialect drops it.
    pub fn is_for_path(&self, path: &[u8]) -> bool {
        match self.lacks_tail_slash {
            true => self.path == path.strip_suffix(b"/").unwrap_or(path),
            false => self.path == path,
        }
    }

    /// Puts in the place of the decoded path one in which escaped slashes stay escaped, to find a route by it. Returns
    /// the former, which is to be put back; `None` if both are the same, or if more than decoding was done to it.
    pub fn keep_escaped_slashes(&mut self) -> Option<Vec<u8>> {
        let raw_path = match self.lacks_tail_slash {
            true => self.raw_path.strip_suffix(b"/").unwrap_or(&self.raw_path),
            false => &self.raw_path,
        };
        let kept = uri::decoded_but_slashes(raw_path, &self.path)?;
        Some(std::mem::replace(&mut self.path, kept))
    }

    /// The path that is forwarded where nothing rewrites it.
    pub fn forwarded_path(&self) -> &[u8] {
        match self.path_with_parameters.is_empty() {
            true => &self.path,
            false => &self.path_with_parameters,
        }
    }

    /// Sets the body to a copy of `body`, using memory of an earlier one.
    pub fn keep_body(&mut self, body: &[u8]) {
        let mut memory = std::mem::take(&mut self.spare_body);
        memory.extend_from_slice(body);
        self.body = Some(memory);
    }

    /// Empties the request for the next one on the same connection, keeping its memory.
    pub fn clear(&mut self) {
        self.method.clear();
        self.raw_path.clear();
        self.path.clear();
        self.path_with_parameters.clear();
        self.lacks_tail_slash = false;
        if let Some(mut query) = self.query.take() {
            query.clear();
            self.spare_query = query;
        }
        self.host.clear();
        self.host_port = None;
        self.is_tls = false;
        self.tls = None;
        self.sni = None;
        self.client_certificates = None;
        self.headers.clear();
        self.overridden_headers = 0;
        self.own_call = 0;
        if let Some(mut body) = self.body.take()
            && body.capacity() <= MAX_SPARE_BODY
        {
            body.clear();
            self.spare_body = body;
        }
        self.body_start = None;
        self.work.restart();
        self.max_graphql_bytes = MAX_VARIABLE_BODY;
        self.client_port = None;
        self.path_is_decoded = false;
        self.head_length = 0;
        self.has_body = false;
        self.expects_continue = false;
        self.wants_upgrade = false;
        self.max_body_bytes = None;
        self.content_length = None;
        self.forget_parsed_body();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_slash_counts_for_neither_path() {
        for (lacks_tail_slash, path, asked, expected) in [
            (true, "/cb", "/cb/", true),
            (true, "/cb", "/cb", true),
            (true, "/cb", "/cb//", false),
            (false, "/cb", "/cb/", false),
            (false, "/cb", "/cb", true),
        ] {
            let request = Request {
                path: path.into(),
                lacks_tail_slash,
                ..Request::default()
            };
            assert_eq!(request.is_for_path(asked.as_bytes()), expected, "{path} {asked}");
        }
    }

    /// All fields are named, so that a new one is thought of.
    #[test]
    fn a_request_of_the_pool_has_nothing_of_its_last_call() {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
        let mut request = Request {
            method: b"POST".to_vec(),
            raw_path: b"/a%20b".to_vec(),
            path: b"/a b".to_vec(),
            path_with_parameters: b"/a b;c".to_vec(),
            lacks_tail_slash: true,
            path_is_decoded: true,
            query: Some(b"q=1".to_vec()),
            host: b"h".to_vec(),
            host_port: Some(81),
            headers: Headers::default(),
            overridden_headers: 1,
            own_call: 1,
            work: WorkBudget::default(),
            body: Some(b"{\"a\":1}".to_vec()),
            body_start: Some(b"{".to_vec()),
            max_graphql_bytes: 9,
            has_body: true,
            expects_continue: true,
            wants_upgrade: true,
            max_body_bytes: Some(1),
            content_length: Some(7),
            head_length: 9,
            version: (1, 1),
            is_tls: true,
            tls: Some(TlsAgreement {
                version: "TLSv1.3",
                cipher: "x",
            }),
            sni: Some("h".into()),
            client_certificates: Some(Arc::default()),
            client: address.ip(),
            client_port: Some(2),
            peer: address,
            local: address,
            spare_query: Vec::new(),
            spare_body: Vec::new(),
            parsed: ParsedBody::default(),
        };
        request.headers.append(b"Content-Type", b"application/json");
        assert!(request.body_fields().is_some());
        request.work.allow_pass(1);
        assert!(request.work.spend(1).is_ok());
        request.clear();
        // The connection sets these for each call.
        let fresh = Request::default();
        (request.version, request.client) = (fresh.version, fresh.client);
        (request.peer, request.local) = (fresh.peer, fresh.local);
        assert_eq!(format!("{request:?}"), format!("{fresh:?}"));
    }
}
