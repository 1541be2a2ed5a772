//! Kong's words for each refusal, with status and headers. In which form they go out is decided elsewhere.

use crate::translate::NOT_GRPC;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use weir_plugin::{AuthFailure, ClaimDefect, Exchange, Refusal, RefusalKind, TokenDefect};

/// The message of an answer.
pub struct RenderedMessage {
    /// The text.
    pub text: MessageText,
    /// The status in place of the refusal's own.
    pub status: Option<u16>,
    /// Headers that belong to these words.
    pub headers: Vec<(&'static str, &'static str)>,
}

/// The text of an answer.
pub enum MessageText {
    /// A message in the form that the caller accepts.
    Negotiated {
        /// The message, unless the configuration has one.
        message: Cow<'static, str>,
        /// Its source.
        by: MessageSource,
    },
    /// A JSON body as it is.
    Own(String),
}

/// The source of a message; it decides the form for callers who accept nothing in particular.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageSource {
    /// The original's router, balancer and plugins.
    Router,
    /// The web server below them.
    Server,
}

impl RenderedMessage {
    fn router(message: impl Into<Cow<'static, str>>) -> Self {
        Self::by(MessageSource::Router, message)
    }

    fn server(message: &'static str) -> Self {
        Self::by(MessageSource::Server, message)
    }

    fn by(by: MessageSource, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        Self {
            text: MessageText::Negotiated { message, by },
            status: None,
            headers: Vec::new(),
        }
    }

    fn own(body: &Value) -> Self {
        Self {
            text: MessageText::Own(body.to_string()),
            status: None,
            headers: Vec::new(),
        }
    }

    fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }
}

/// The words for `refusal`.
pub fn of(refusal: &Refusal, exchange: &Exchange) -> RenderedMessage {
    match &refusal.kind {
        RefusalKind::BadRequest(_) | RefusalKind::WorkLimit => RenderedMessage::server("Bad request"),
        RefusalKind::MethodNotAllowed if exchange.request.method == b"CONNECT" => RenderedMessage {
            status: Some(400),
            ..RenderedMessage::server("Bad request")
        },
        RefusalKind::MethodNotAllowed => RenderedMessage::server("Method not allowed"),
        RefusalKind::RequestTimeout => RenderedMessage::server("Request timeout"),
        // The original's server has no limit; a plugin set this one, and would have read the body to the end.
        RefusalKind::BodyTooLarge if exchange.request.max_body_bytes.is_some() => RenderedMessage {
            status: exchange.request.expects_continue.then_some(417),
            ..RenderedMessage::router(unacceptable(413))
        },
        RefusalKind::BodyTooLarge => RenderedMessage::server("Payload too large"),
        RefusalKind::UriTooLong => RenderedMessage::server("URI too long"),
        RefusalKind::ExpectationFailed => RenderedMessage::server("Expectation failed"),
        RefusalKind::HeadTooLarge => RenderedMessage::server("Request header or cookie too large"),
        RefusalKind::NotImplemented => RenderedMessage::server("Not implemented"),
        RefusalKind::VersionNotSupported => RenderedMessage::server("HTTP version not supported"),
        RefusalKind::NoRoute => RenderedMessage::router("no Route matched with those values"),
        RefusalKind::NoService if refusal.status == NOT_GRPC => not_grpc(exchange),
        RefusalKind::NoService => RenderedMessage::router("no Service found with those values"),
        RefusalKind::HttpsRequired if refusal.status == 426 => {
            RenderedMessage::router("Please use HTTPS protocol")
                .with_header("Connection", "Upgrade")
                .with_header("Upgrade", "TLS/1.2, HTTP/1.1")
        }
        RefusalKind::HttpsRequired => RenderedMessage::router("Please use HTTPS protocol"),
        RefusalKind::NoTarget => RenderedMessage::router("failure to get a peer from the ring-balancer"),
        RefusalKind::NameResolution => RenderedMessage::router("name resolution failed"),
        RefusalKind::ConnectFailed | RefusalKind::UpstreamFailed => {
            RenderedMessage::server("An invalid response was received from the upstream server")
        }
        RefusalKind::UpstreamTimeout => RenderedMessage::server("The upstream server is timing out"),
        RefusalKind::Overloaded => RenderedMessage::server(of_status(503)),
        RefusalKind::Unauthenticated { plugin, failure } => unauthenticated(plugin, failure),
        RefusalKind::RateLimited | RefusalKind::QuotaSpent => {
            RenderedMessage::router("API rate limit exceeded")
        }
        RefusalKind::Forbidden { plugin } => forbidden(plugin, exchange),
        RefusalKind::Unacceptable { plugin } if VALIDATORS.contains(plugin) => {
            let message = refusal.message.as_deref().unwrap_or("Bad Request");
            RenderedMessage::own(&json!({ "message": message }))
        }
        RefusalKind::Unacceptable { .. } => RenderedMessage::router(unacceptable(refusal.status)),
        RefusalKind::AnonymousConsumerMissing | RefusalKind::PluginFailed { .. } => {
            RenderedMessage::router("An unexpected error occurred")
        }
        // In the original, the plugin answers, and not the server.
        RefusalKind::Answered {
            plugin: "openid-connect",
        } => RenderedMessage::router(answered(refusal.status)),
        RefusalKind::Answered { .. } | RefusalKind::NotOpen { .. } => {
            RenderedMessage::server(answered(refusal.status))
        }
        _ => RenderedMessage::server("An unexpected error occurred"),
    }
}

/// Plugins that answer with an object of their own.
const VALIDATORS: [&str; 6] = [
    "injection-protection",
    "json-threat-protection",
    "openapi-mock",
    "openapi-validation",
    "request-validator",
    "xml-threat-protection",
];

/// The message of an answer that has no words of its own.
fn answered(status: u16) -> &'static str {
    match status {
        401 => "Unauthorized",
        403 => "Forbidden",
        status => of_status(status),
    }
}

/// The message of the original's server about a status.
fn of_status(status: u16) -> &'static str {
    match status {
        400 => "Bad request",
        404 => "Not found",
        405 => "Method not allowed",
        408 => "Request timeout",
        411 => "Length required",
        412 => "Precondition failed",
        413 => "Payload too large",
        414 => "URI too long",
        417 => "Expectation failed",
        502 => "An invalid response was received from the upstream server",
        503 => "The upstream server is currently unavailable",
        504 => "The upstream server is timing out",
        _ => "An unexpected error occurred",
    }
}

/// gRPC needs HTTP/2, and its content type.
fn not_grpc(exchange: &Exchange) -> RenderedMessage {
    let content_type = exchange.request.headers.get(b"content-type");
    if !content_type.is_some_and(|it| it.starts_with(b"application/grpc")) {
        return RenderedMessage::router("Non-gRPC request matched gRPC route");
    }
    let spoken = RenderedMessage::router("Please use HTTP2 protocol")
        .with_header("Connection", "Upgrade")
        .with_header("Upgrade", "HTTP/2");
    RenderedMessage {
        status: Some(426),
        ..spoken
    }
}

fn unauthenticated(plugin: &str, failure: &AuthFailure) -> RenderedMessage {
    if plugin == "jwt" {
        return RenderedMessage::own(&token_body(failure));
    }
    RenderedMessage::router(match (plugin, failure) {
        ("key-auth", AuthFailure::Missing) => "No API key found in request",
        ("key-auth", AuthFailure::Duplicate) => "Duplicate API key found",
        ("hmac-auth", AuthFailure::Stale) => {
            "HMAC signature cannot be verified, a valid date or x-date header is required for HMAC Authentication"
        }
        ("hmac-auth", AuthFailure::Token(_)) => "HMAC signature does not match",
        ("hmac-auth", AuthFailure::Invalid | AuthFailure::Malformed) => "HMAC signature cannot be verified",
        ("jwe-decrypt", AuthFailure::Malformed | AuthFailure::Token(TokenDefect::NoKeyClaim(_))) => {
            "Bad request"
        }
        ("jwe-decrypt", _) => "Forbidden",
        ("mtls-auth", AuthFailure::Missing) => "No required TLS certificate was sent",
        ("mtls-auth", _) => "TLS certificate failed verification",
        _ => "Unauthorized",
    })
}

fn forbidden(plugin: &str, exchange: &Exchange) -> RenderedMessage {
    match plugin {
        "opa" => RenderedMessage::own(&json!({ "message": "unauthorized" })),
        "acl" => RenderedMessage::router("You cannot consume this service"),
        "ip-restriction" => {
            let client = exchange.request.client.to_canonical();
            RenderedMessage::router(format!("IP address not allowed: {client}"))
        }
        _ => RenderedMessage::router("Forbidden"),
    }
}

/// The status says what is wrong with a request's size.
fn unacceptable(status: u16) -> &'static str {
    match status {
        411 => "A valid Content-Length header is required",
        413 | 417 => "Request size limit exceeded",
        _ => "Bad request",
    }
}

fn token_body(failure: &AuthFailure) -> Value {
    let message = match failure {
        AuthFailure::Duplicate => "Multiple tokens provided".to_owned(),
        AuthFailure::Token(TokenDefect::Claims(faults)) => return claims_body(faults),
        AuthFailure::Token(fault) => token_message(fault),
        AuthFailure::ConsumerMissing => "Could not find consumer".to_owned(),
        _ => "Unauthorized".to_owned(),
    };
    json!({ "message": message })
}

fn token_message(fault: &TokenDefect) -> String {
    match fault {
        TokenDefect::Malformed(what) => format!("Bad token; invalid {what}"),
        TokenDefect::NoKeyClaim(claim) => format!("No mandatory '{claim}' in claims"),
        TokenDefect::BadKeyClaim(claim) => format!("Invalid '{claim}' in claims"),
        TokenDefect::UnknownKey { claim, .. } => format!("No credentials found for given '{claim}'"),
        TokenDefect::AlgorithmMismatch => "Invalid algorithm".to_owned(),
        TokenDefect::BadKey => "Invalid key/secret".to_owned(),
        _ => "Invalid signature".to_owned(),
    }
}

fn claims_body(faults: &[(String, ClaimDefect)]) -> Value {
    let faults = faults.iter().map(|(claim, fault)| {
        let words = match fault {
            ClaimDefect::Missing | ClaimDefect::NotANumber => "must be a number",
            ClaimDefect::Expired => "token expired",
            ClaimDefect::NotYetValid => "token not valid yet",
            ClaimDefect::TooFarAhead => "exceeds maximum allowed expiration",
            _ => "invalid",
        };
        (claim.clone(), Value::from(words))
    });
    Value::Object(Map::from_iter(faults))
}
