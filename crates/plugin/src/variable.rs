//! Variables: facts about a call by the names that NGINX and its kin made standard.

use crate::call_time;
use crate::exchange::{Exchange, RouteInfo};
use crate::headers::Headers;
use crate::json_path::{JsonPath, Selected};
use crate::matched_pattern::{matched, matched_host};
use crate::request::Request;
use serde_json::Value;
use std::borrow::Cow;
use std::net::IpAddr;

/// A fact about a call, found by name once and read for many calls.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the variants are the variables' standard names; `parse` lists them"
)]
pub enum Variable {
    /// `arg_NAME`: a query argument, decoded.
    Arg(Vec<u8>),
    /// `http_NAME`: a request header; `_` stands for `-`, and for itself if there is no such header. Several values are
    /// joined by `, `.
    Header(Vec<u8>),
    /// `cookie_NAME`.
    Cookie(Vec<u8>),
    /// `uri_param_NAME`: a capture of the route's path pattern.
    Capture(String),
    Uri,
    RequestUri,
    Args,
    IsArgs,
    Host,
    HttpHost,
    ContentLength,
    RemoteAddr,
    RemotePort,
    RequestLength,
    RealRequestUri,
    ServerAddr,
    ServerPort,
    ServerProtocol,
    Scheme,
    Method,
    RequestId,
    Status,
    /// `sent_http_NAME` and `upstream_http_NAME`: a response header; `_` stands for `-`.
    ResponseHeader(Vec<u8>),
    UpstreamAddr,
    UpstreamIp,
    UpstreamPort,
    UpstreamStatus,
    ConsumerName,
    ConsumerGroup,
    RouteId,
    RouteName,
    ServiceId,
    ServiceName,
    /// The pattern by which the route has taken the path, and the one of the host.
    MatchedUri,
    MatchedHost,
    /// `route_label_NAME`.
    RouteLabel(String),
    /// `post_arg_NAME`: a field of an urlencoded form in the body, decoded; of several, the first.
    FormField(Vec<u8>),
    /// `post_arg.PATH`: what a path leads to in the body's JSON or form fields.
    PostArg(JsonPath),
    /// `graphql_operation`: `query`, `mutation` or `subscription`, of the document's first operation.
    GraphqlOperation,
    /// `graphql_name`: that operation's name; empty if it has none.
    GraphqlName,
    /// `graphql_root_fields`: the list of the fields that it selects.
    GraphqlRootFields,
    /// The version of HTTP: `1.0`, `1.1` or `2`.
    ProtocolVersion,
    /// The address of the connection's peer, even if it names another client.
    PeerAddr,
    /// The trace that the call belongs to, in hexadecimal digits.
    TraceId,
    /// The gateway's own span of it.
    SpanId,
    /// Both, as W3C Trace Context writes them.
    TraceParent,
    ConsumerId,
    /// The id of the credential by which the caller is known.
    CredentialId,
    /// `share_NAME`: a number from 0 to 9999 that depends only on another variable's value: of a cookie, a header, an
    /// argument, the client's address or the consumer. It selects a fixed share of the callers.
    Share(Box<Variable>),
    /// The first line of the request, as it came.
    RequestLine,
    /// `on`, or empty without TLS.
    Https,
    /// The server name of the TLS handshake.
    ServerName,
    /// The agreed version of TLS: `TLSv1.2` or `TLSv1.3`.
    TlsVersion,
    /// The agreed cipher suite of TLS, as OpenSSL names it.
    TlsCipher,
    /// What is known of the client's certificate.
    ClientCertificate(CertificateFact),
    /// The client's address in bytes.
    BinaryRemoteAddr,
    /// The time of the call: in seconds with milliseconds, as ISO 8601 has it, and as in access logs.
    Msec,
    TimeIso8601,
    TimeLocal,
    /// The number of the gateway's process.
    ProcessId,
    /// The same for all calls.
    Constant(&'static str),
    /// A name that no call has a value for.
    Unknown,
}

/// A fact about the client's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateFact {
    /// The name of the client (RFC 2253).
    Subject,
    /// The name of the authority.
    Issuer,
    /// The serial number, in hexadecimal digits.
    Serial,
    /// The SHA-1 digest, in hexadecimal digits.
    Fingerprint,
    /// `SUCCESS`, `FAILED`, or `NONE` if the client has shown none.
    Verified,
}

/// How many shares there are.
const SHARES: u64 = 10_000;

/// A number below [`SHARES`] that these bytes always have, in every process: FNV-1a, and a last mixing, as its lower bits
/// alone are uneven for short texts.
fn share(bytes: &[u8]) -> u64 {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (mixed ^ (mixed >> 33)) % SHARES
}

/// A variable's value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum VariableValue<'x> {
    /// A text.
    Text(Cow<'x, [u8]>),
    /// A value with a type.
    Json(&'x Value),
    /// A list; never empty.
    List(Vec<&'x Value>),
}

impl Variable {
    /// Finds the variable of this name, without a leading `$`. A name that is not known here has no value in
    /// any call, as in the originals.
    pub fn parse(name: &str) -> Self {
        if let Some(name) = name.strip_prefix("share_") {
            return match Self::parse(name) {
                of @ (Self::Cookie(_)
                | Self::Header(_)
                | Self::Arg(_)
                | Self::RemoteAddr
                | Self::ConsumerId
                | Self::ConsumerName) => Self::Share(Box::new(of)),
                _ => Self::Unknown,
            };
        }
        if let Some(arg) = name.strip_prefix("arg_") {
            return Self::Arg(arg.as_bytes().to_vec());
        }
        if name == "http_content_length" {
            return Self::ContentLength;
        }
        if name == "http_host" {
            return Self::HttpHost;
        }
        if let Some(header) = name.strip_prefix("http_") {
            return Self::Header(header.replace('_', "-").into_bytes());
        }
        if let Some(cookie) = name.strip_prefix("cookie_") {
            return Self::Cookie(cookie.as_bytes().to_vec());
        }
        if let Some(field) = name.strip_prefix("post_arg_") {
            return Self::FormField(field.as_bytes().to_vec());
        }
        if let Some(path) = name.strip_prefix("post_arg.") {
            return JsonPath::parse(path).map_or(Self::Unknown, Self::PostArg);
        }
        if let Some(capture) = name.strip_prefix("uri_param_") {
            return Self::Capture(capture.to_owned());
        }
        if let Some(header) = name
            .strip_prefix("sent_http_")
            .or_else(|| name.strip_prefix("upstream_http_"))
        {
            return Self::ResponseHeader(header.replace('_', "-").into_bytes());
        }
        if let Some(label) = name.strip_prefix("route_label_") {
            return Self::RouteLabel(label.to_owned());
        }
        match name {
            "upstream_addr" => Self::UpstreamAddr,
            "balancer_ip" => Self::UpstreamIp,
            "balancer_port" => Self::UpstreamPort,
            "upstream_status" => Self::UpstreamStatus,
            "uri" | "document_uri" => Self::Uri,
            "request_uri" => Self::RequestUri,
            "real_request_uri" => Self::RealRequestUri,
            "args" | "query_string" => Self::Args,
            "is_args" => Self::IsArgs,
            "host" => Self::Host,
            "remote_addr" => Self::RemoteAddr,
            "remote_port" => Self::RemotePort,
            "server_addr" => Self::ServerAddr,
            "server_port" => Self::ServerPort,
            "server_protocol" => Self::ServerProtocol,
            "scheme" => Self::Scheme,
            "request_method" | "method" => Self::Method,
            "request_id" => Self::RequestId,
            "status" => Self::Status,
            "consumer_name" => Self::ConsumerName,
            "consumer_group_id" => Self::ConsumerGroup,
            "route_id" => Self::RouteId,
            "route_name" => Self::RouteName,
            "service_id" => Self::ServiceId,
            "service_name" => Self::ServiceName,
            "matched_uri" => Self::MatchedUri,
            "matched_host" => Self::MatchedHost,
            "graphql_operation" => Self::GraphqlOperation,
            "graphql_name" => Self::GraphqlName,
            "graphql_root_fields" => Self::GraphqlRootFields,
            // The longer names are those that tracing modules of other gateways give them.
            "trace_id" | "opentelemetry_trace_id" | "zipkin_trace_id" => Self::TraceId,
            "span_id" | "opentelemetry_span_id" | "zipkin_span_id" => Self::SpanId,
            "traceparent" | "opentelemetry_context_traceparent" | "zipkin_context_traceparent" => {
                Self::TraceParent
            }
            "protocol_version" => Self::ProtocolVersion,
            "realip_remote_addr" => Self::PeerAddr,
            "consumer_id" => Self::ConsumerId,
            "credential_id" => Self::CredentialId,
            "content_type" => Self::Header(b"content-type".to_vec()),
            "content_length" => Self::ContentLength,
            "request_length" => Self::RequestLength,
            _ => Self::of_connection(name),
        }
    }

    /// The variables about the connection, the time and the process.
    fn of_connection(name: &str) -> Self {
        match name {
            "request" | "request_line" => Self::RequestLine,
            "https" => Self::Https,
            "ssl_server_name" => Self::ServerName,
            "ssl_protocol" => Self::TlsVersion,
            "ssl_cipher" => Self::TlsCipher,
            "ssl_client_s_dn" => Self::ClientCertificate(CertificateFact::Subject),
            "ssl_client_i_dn" => Self::ClientCertificate(CertificateFact::Issuer),
            "ssl_client_serial" => Self::ClientCertificate(CertificateFact::Serial),
            "ssl_client_fingerprint" => Self::ClientCertificate(CertificateFact::Fingerprint),
            "ssl_client_verify" => Self::ClientCertificate(CertificateFact::Verified),
            "binary_remote_addr" => Self::BinaryRemoteAddr,
            "msec" => Self::Msec,
            "time_iso8601" => Self::TimeIso8601,
            "time_local" => Self::TimeLocal,
            "pid" => Self::ProcessId,
            "server_name" => Self::Constant("_"),
            "request_type" => Self::Constant("traditional_http"),
            _ => Self::Unknown,
        }
    }

    /// Whether its value is in the request's body, which the engine must have read then.
    pub fn needs_body(&self) -> bool {
        matches!(self, Self::FormField(_) | Self::PostArg(_)) || self.is_graphql()
    }

    fn is_graphql(&self) -> bool {
        matches!(
            self,
            Self::GraphqlOperation | Self::GraphqlName | Self::GraphqlRootFields
        )
    }

    /// Whether its value for this request may be in a body that has not been read.
    pub(crate) fn awaits_body(&self, request: &Request) -> bool {
        let is_read = match self.is_graphql() {
            true => request.graphql_body().is_some(),
            false => request.body.is_some(),
        };
        !is_read && self.is_in_body(request)
    }

    /// Whether its value for this request may be in the body.
    pub(crate) fn is_in_body(&self, request: &Request) -> bool {
        match self {
            Self::FormField(_) | Self::PostArg(_) => request.has_fields(),
            _ => self.is_graphql() && request.has_body && request.method == b"POST",
        }
    }

    /// The variable's value for this call, with its type.
    pub(crate) fn find<'x>(&self, exchange: &'x Exchange) -> Option<VariableValue<'x>> {
        match self {
            Self::PostArg(path) => Some(
                match path.select(exchange.request.body_fields()?, &exchange.request.work)? {
                    Selected::One(value) => VariableValue::Json(value),
                    Selected::Several(values) => VariableValue::List(values),
                },
            ),
            Self::GraphqlRootFields => {
                let operation = exchange.request.graphql_operation()?;
                Some(VariableValue::Json(&operation.root_fields))
            }
            _ => self.read(exchange).map(VariableValue::Text),
        }
    }

    /// The variable's value for this call as a text; `None` if it has none, or is a list or an object.
    pub fn read<'x>(&self, exchange: &'x Exchange) -> Option<Cow<'x, [u8]>> {
        let request = &exchange.request;
        let text = |text: String| Some(Cow::Owned(text.into_bytes()));
        let bytes = |bytes: &'x [u8]| Some(Cow::Borrowed(bytes));
        match self {
            Self::Share(of) => of
                .read(exchange)
                .and_then(|value| text(share(&value).to_string())),
            Self::Arg(name) => request.query_arg(name),
            Self::Header(name) => request
                .headers
                .joined(name)
                .or_else(|| underscored(&request.headers, name)),
            Self::Cookie(name) => request.cookie(name).map(Cow::Borrowed),
            Self::Capture(name) => {
                let (_, value) = exchange
                    .captures
                    .iter()
                    .find(|(capture, _)| capture.as_ref() == name)?;
                bytes(value)
            }
            Self::Uri => bytes(&request.path),
            Self::RequestUri if request.path_is_decoded => Some(target_of(&request.path, exchange)),
            Self::RequestUri | Self::RealRequestUri => Some(target_of(&request.raw_path, exchange)),
            Self::Args => bytes(request.query.as_deref()?),
            Self::IsArgs => bytes(if request.query.as_ref().is_some_and(|it| !it.is_empty()) {
                b"?"
            } else {
                b""
            }),
            Self::Host => bytes(&request.host),
            Self::HttpHost => bytes(request.headers.get(b"host")?),
            Self::ContentLength => text(request.content_length?.to_string()),
            Self::RemoteAddr => text(request.client.to_string()),
            Self::RemotePort => text(request.client_port.unwrap_or(request.peer.port()).to_string()),
            Self::RequestLength => text(request.length().to_string()),
            Self::ServerAddr => text(request.local.ip().to_string()),
            Self::ServerPort => text(request.local.port().to_string()),
            Self::ServerProtocol => text(format!("HTTP/{}.{}", request.version.0, request.version.1)),
            Self::Scheme => bytes(request.scheme().as_bytes()),
            Self::Method => bytes(&request.method),
            Self::RequestId => bytes(exchange.request_id_or_new().as_bytes()),
            // 0 while there is no response, as NGINX has it.
            Self::Status => text(exchange.response.status.to_string()),
            Self::ResponseHeader(name) => exchange.response.headers.joined(name),
            Self::UpstreamAddr => text(exchange.upstream?.to_string()),
            Self::UpstreamIp => text(exchange.upstream?.ip().to_string()),
            Self::UpstreamPort => text(exchange.upstream?.port().to_string()),
            Self::UpstreamStatus => match exchange.response.is_gateway {
                true => None,
                false => text(exchange.response.status.to_string()),
            },
            Self::ConsumerName => {
                let consumer = &exchange.identity.as_ref()?.consumer;
                bytes(consumer.username.as_deref().unwrap_or(&consumer.id).as_bytes())
            }
            Self::ConsumerGroup => bytes(exchange.identity.as_ref()?.consumer.group.as_deref()?.as_bytes()),
            Self::RouteId => bytes(exchange.route.as_deref()?.name.as_bytes()),
            Self::RouteName => route_label(exchange, "route_name", |route| &route.name),
            Self::ServiceId => route_label(exchange, "service_id", |route| &route.service),
            Self::ServiceName => route_label(exchange, "service_name", |route| &route.service),
            Self::MatchedUri => {
                let patterns = exchange.route.as_deref()?.labels.get("matched_uri")?;
                bytes(matched(patterns, &request.path).as_bytes())
            }
            Self::MatchedHost => {
                let patterns = exchange.route.as_deref()?.labels.get("matched_host")?;
                bytes(matched_host(patterns, &request.host).as_bytes())
            }
            Self::RouteLabel(label) => bytes(exchange.route.as_deref()?.labels.get(label)?.as_bytes()),
            Self::FormField(name) => request.form_field(name).map(Cow::Owned),
            Self::PostArg(_) | Self::GraphqlRootFields => match self.find(exchange)? {
                VariableValue::Json(value) => scalar_text(value),
                VariableValue::Text(_) | VariableValue::List(_) => None,
            },
            Self::GraphqlOperation => bytes(request.graphql_operation()?.kind.as_bytes()),
            Self::TraceId => Some(Cow::Owned(exchange.trace?.trace_digits().to_vec())),
            Self::SpanId => Some(Cow::Owned(exchange.trace?.span_digits().to_vec())),
            Self::TraceParent => {
                let trace = exchange.trace?;
                Some(Cow::Owned(trace.traceparent(trace.span_id).to_vec()))
            }
            Self::ProtocolVersion => bytes(match request.version {
                (1, 0) => b"1.0",
                (2, _) => b"2",
                _ => b"1.1",
            }),
            Self::PeerAddr => text(request.peer.ip().to_string()),
            Self::ConsumerId => bytes(exchange.identity.as_ref()?.consumer.id.as_bytes()),
            Self::CredentialId => {
                let credential = exchange.identity.as_ref()?.credential_id.as_ref()?;
                bytes(credential.as_bytes())
            }
            Self::GraphqlName => bytes(request.graphql_operation()?.name.as_bytes()),
            _ => self.read_of_connection(exchange),
        }
    }

    /// Reads the variables of the connection, the time and the process.
    fn read_of_connection<'x>(&self, exchange: &'x Exchange) -> Option<Cow<'x, [u8]>> {
        let request = &exchange.request;
        let text = |text: String| Some(Cow::Owned(text.into_bytes()));
        let bytes = |bytes: &'x [u8]| Some(Cow::Borrowed(bytes));
        match self {
            Self::RequestLine => {
                let mut line = request.method.clone();
                line.push(b' ');
                line.extend_from_slice(&target_of(&request.raw_path, exchange));
                line.extend(format!(" HTTP/{}.{}", request.version.0, request.version.1).bytes());
                Some(Cow::Owned(line))
            }
            Self::Https => bytes(if request.is_tls { b"on" } else { b"" }),
            Self::ServerName => bytes(request.sni.as_deref()?.as_bytes()),
            Self::TlsVersion => bytes(request.tls?.version.as_bytes()),
            Self::TlsCipher => bytes(request.tls?.cipher.as_bytes()),
            Self::ClientCertificate(fact) => certificate_fact(*fact, request),
            Self::BinaryRemoteAddr => Some(Cow::Owned(match request.client {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            })),
            Self::Msec => {
                let now = exchange.now_ms();
                text(format!("{}.{:03}", now / 1000, now % 1000))
            }
            Self::TimeIso8601 => text(call_time::iso8601(exchange.now_ms())),
            Self::TimeLocal => text(call_time::as_in_access_logs(exchange.now_ms())),
            Self::ProcessId => text(std::process::id().to_string()),
            Self::Constant(value) => bytes(value.as_bytes()),
            _ => None,
        }
    }
}

/// A JSON scalar as a text; whole numbers have no fraction.
pub(crate) fn scalar_text(value: &Value) -> Option<Cow<'_, [u8]>> {
    let text = match value {
        Value::String(text) => return Some(Cow::Borrowed(text.as_bytes())),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) if number.is_f64() => number.as_f64()?.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(Cow::Owned(text.into_bytes()))
}

/// A fact about the client's certificate; `None`: there is none.
fn certificate_fact(fact: CertificateFact, request: &Request) -> Option<Cow<'_, [u8]>> {
    if fact == CertificateFact::Verified {
        return request.is_tls.then(|| {
            Cow::Borrowed(match &request.client_certificates {
                None => &b"NONE"[..],
                Some(shown) if shown.is_verified => b"SUCCESS",
                Some(_) => b"FAILED",
            })
        });
    }
    let shown = request.client_certificates.as_deref()?;
    let value = match fact {
        CertificateFact::Subject => shown.details()?.subject,
        CertificateFact::Issuer => shown.details()?.issuer,
        CertificateFact::Serial => shown.details()?.serial.to_ascii_uppercase(),
        CertificateFact::Fingerprint | CertificateFact::Verified => shown.fingerprint()?,
    };
    Some(Cow::Owned(value.into_bytes()))
}

/// What the route is called: the label, or else its own name.
fn route_label<'x>(
    exchange: &'x Exchange,
    label: &str,
    name: impl Fn(&'x RouteInfo) -> &'x String,
) -> Option<Cow<'x, [u8]>> {
    let route = exchange.route.as_deref()?;
    let value = route.labels.get(label).unwrap_or_else(|| name(route));
    Some(Cow::Borrowed(value.as_bytes()))
}

/// The first header of this name that has `_` in the places of the name's `-`.
fn underscored<'h>(headers: &'h Headers, name: &[u8]) -> Option<Cow<'h, [u8]>> {
    let is_same = |known: &[u8]| {
        known.len() == name.len()
            && known.iter().zip(name).all(|(known, wanted)| match wanted {
                b'-' => matches!(known, b'-' | b'_'),
                wanted => known.eq_ignore_ascii_case(wanted),
            })
    };
    if !name.contains(&b'-') {
        return None;
    }
    let found = headers.iter().find(|header| is_same(header.name))?;
    Some(Cow::Borrowed(found.value))
}

/// A path with the call's query.
fn target_of<'x>(path: &'x [u8], exchange: &'x Exchange) -> Cow<'x, [u8]> {
    match &exchange.request.query {
        None => Cow::Borrowed(path),
        Some(query) => {
            let mut uri = path.to_vec();
            uri.push(b'?');
            uri.extend_from_slice(query);
            Cow::Owned(uri)
        }
    }
}
