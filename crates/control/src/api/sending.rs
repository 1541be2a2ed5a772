//! `POST /api/v1/try`: sends a call to the gateway of this process, and returns what came back. The connection goes to
//! the gateway's own listener and nowhere else: the address in the call only says which host is asked for. So the
//! gateway sees an address of its own machine, which it may trust: what says who calls is refused.

use super::Api;
use super::problem::Problem;
use crate::access::Caller;
use crate::api::json_body::{Json, JsonBody};
use crate::http::ClientRequest;
use crate::identity_sources::IdentitySources;
use crate::try_it::{self, CONSOLE_MARK, CallParts, LONGEST, MAX_BODY, MAX_PARTS, MOST, TryItResponse};
use axum::Extension;
use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;
use weir_model::unix_time;

/// The longest address, in bytes.
const MAX_URL: usize = 8192;

/// The address at which the gateway of this process takes calls over cleartext; `None`: it takes none.
pub type ListenerOf = Arc<dyn Fn() -> Option<SocketAddr> + Send + Sync>;

/// A call that is to be sent.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TryCallRequest {
    /// The method.
    #[serde(default = "get")]
    method: String,
    /// `http://HOST/PATH?QUERY`, or a path alone. The host only becomes the `Host` header: the call always goes to the gateway.
    url: String,
    /// Headers: names and values.
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// The body.
    #[serde(default)]
    body: String,
}

fn get() -> String {
    "GET".to_owned()
}

/// The target of a call: the host, if the call names one, and the path with the query.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    host: Option<String>,
    path: String,
}

impl Target {
    fn of(url: &str) -> Result<Self, Problem> {
        let expected = "url: expected http://HOST/PATH or /PATH";
        if url.len() > MAX_URL {
            return Err(Problem::bad(format!("url: expected at most {MAX_URL} bytes")));
        }
        let parsed: Uri = url.parse().map_err(|_| Problem::bad(expected))?;
        let path = parsed.path_and_query().map_or("/", |it| it.as_str());
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        match (parsed.scheme_str(), parsed.authority()) {
            (Some("http" | "https"), Some(authority)) if !authority.as_str().contains('@') => Ok(Self {
                host: Some(authority.to_string()),
                path,
            }),
            (None, None) if url.starts_with('/') => Ok(Self { host: None, path }),
            _ => Err(Problem::bad(expected)),
        }
    }
}

/// Answers `POST /api/v1/try`.
pub async fn send(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    JsonBody(call): JsonBody<TryCallRequest>,
) -> Result<Json<TryItResponse>, Problem> {
    let sources = api.identity_sources().await?;
    let request = prepared(&call, &sources)?;
    let now = unix_time::seconds(SystemTime::now());
    if let Err(wait) = api.tries.take(&format!("calls {}", caller.name()), MOST, now) {
        let detail = format!("{MOST} calls a minute can be sent; try again in {wait} seconds");
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
    }
    let listener = api.options.listener.as_ref().and_then(|it| it());
    let listener = listener.ok_or_else(|| {
        let detail = "no gateway in this process accepts cleartext calls: send the call to a gateway itself";
        Problem::new(StatusCode::CONFLICT, detail)
    })?;
    let host = request.host.unwrap_or_else(|| listener.to_string());
    let mut sent = ClientRequest {
        method: request.method,
        timeout: LONGEST,
        body: call.body.into_bytes(),
        ..ClientRequest::get(format!("http://{listener}{}", request.path))
    }
    .header("Host", host)
    .header("X-Request-Id", try_it::random()?)
    .header(CONSOLE_MARK, "true");
    for (name, value) in request.headers {
        sent = sent.header(name, value);
    }
    if !sent
        .headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("user-agent"))
    {
        sent = sent.header("User-Agent", "weir-console");
    }
    Ok(Json(try_it::send(sent).await?))
}

/// A call that is good.
struct ValidCall {
    method: Method,
    host: Option<String>,
    path: String,
    headers: Vec<(String, String)>,
}

fn prepared(call: &TryCallRequest, sources: &IdentitySources) -> Result<ValidCall, Problem> {
    let Target { host, path } = Target::of(&call.url)?;
    let method = Method::from_bytes(call.method.as_bytes()).ok();
    let method = method.filter(|it| *it != Method::CONNECT);
    let method = method.ok_or_else(|| Problem::bad(format!("method: '{}' cannot be sent", call.method)))?;
    if call.headers.len() > MAX_PARTS {
        return Err(Problem::bad(format!("headers: expected at most {MAX_PARTS}")));
    }
    if call.body.len() > MAX_BODY {
        let detail = "body: longer than 1 MiB";
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    // A line of curl may name the host in a header; it means the same as in the address.
    let (named, others): (Vec<_>, Vec<_>) = (call.headers.iter())
        .filter(|(name, _)| !name.eq_ignore_ascii_case("content-length"))
        .cloned()
        .partition(|(name, _)| name.eq_ignore_ascii_case("host"));
    let named = named.into_iter().next().map(|(_, value)| value);
    if let Some(name) = &named {
        let is_host = name
            .parse::<axum::http::uri::Authority>()
            .is_ok_and(|it| !it.as_str().contains('@'));
        if !is_host {
            return Err(Problem::bad(format!("headers: '{name}' is not a valid host")));
        }
    }
    let (bare, query) = path.split_once('?').unwrap_or((path.as_str(), ""));
    let parts = CallParts {
        headers: &others,
        host: named.as_deref().or(host.as_deref()),
        path: bare,
        query,
        has_body: !call.body.is_empty(),
    };
    try_it::check(&parts, sources)?;
    Ok(ValidCall {
        method,
        host: named.or(host),
        path,
        headers: others,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_only_names_the_host() {
        for (url, expected) in [
            (
                "http://api.example.com/a?b=c",
                Some((Some("api.example.com"), "/a?b=c")),
            ),
            (
                "https://api.example.com:8443",
                Some((Some("api.example.com:8443"), "/")),
            ),
            ("/a", Some((None, "/a"))),
            ("http://jack:secret@h/", None),
            ("ftp://h/a", None),
            ("a/b", None),
            ("h:80", None),
            ("/a b", None),
            ("/a\r\nX: y", None),
        ] {
            let found = Target::of(url).ok();
            let expected = expected.map(|(host, path)| Target {
                host: host.map(str::to_owned),
                path: path.to_owned(),
            });
            assert_eq!(found, expected, "{url:?}");
        }
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        let call = |method: &str, header: (&str, &str)| TryCallRequest {
            method: method.to_owned(),
            url: "http://a/b".to_owned(),
            headers: vec![(header.0.to_owned(), header.1.to_owned())],
            body: String::new(),
        };
        let sources = IdentitySources {
            headers: ["x-from-the-edge".to_owned()].into(),
            arguments: [b"ip".to_vec()].into(),
            cookies: [b"ip".to_vec()].into(),
            body: true,
            host: true,
            query: true,
            path: true,
        };
        for (method, header, expected) in [
            ("GET", ("X-Trace", "1"), Some("a")),
            ("PURGE", ("Content-Type", "a/b"), Some("a")),
            ("GET", ("Host", "b:1"), Some("b:1")),
            ("GET", ("Host", "b/c"), None),
            ("GET", ("Content-Length", "9"), Some("a")),
            ("CONNECT", ("X-Trace", "1"), None),
            ("G T", ("X-Trace", "1"), None),
            ("GET", ("X-Forwarded-For", "127.0.0.1"), None),
            ("GET", ("x-forwarded-anything", "1"), None),
            ("GET", ("X-Real-IP", "127.0.0.1"), None),
            ("GET", ("CF-Connecting-IP", "127.0.0.1"), None),
            ("GET", ("X-From-The-Edge", "127.0.0.1"), None),
            // Gateways read headers with `_` as well.
            ("GET", ("X_From_The_Edge", "127.0.0.1"), None),
            ("GET", ("X_Forwarded_For", "127.0.0.1"), None),
            ("GET", ("Cookie", "a=1; b=2"), Some("a")),
            ("GET", ("Cookie", "a=1; ip=127.0.0.1"), None),
            ("GET", ("X-Request-Id", "mine"), None),
            ("GET", ("Transfer-Encoding", "chunked"), None),
            ("GET", ("Weir-Console-Try", "no"), None),
            ("GET", ("Weir-Anything", "no"), None),
            ("GET", ("X", "a\r\nHost: b"), None),
            ("GET", ("Host", "127.0.0.1"), None),
            ("GET", ("Host", "[::1]:80"), None),
        ] {
            let found = prepared(&call(method, header), &sources).ok();
            let found = found.and_then(|it| it.host);
            assert_eq!(found.as_deref(), expected, "{method} {header:?}");
        }
        for (url, body, expected) in [
            ("http://a/b?c=ip", "", true),
            ("http://a/b?c=1&ip=127.0.0.1", "", false),
            ("http://a/b", "ip=127.0.0.1", false),
        ] {
            let call = TryCallRequest {
                url: url.to_owned(),
                body: body.to_owned(),
                ..call("POST", ("X-Trace", "1"))
            };
            assert_eq!(prepared(&call, &sources).is_ok(), expected, "{url} {body}");
        }
    }
}
