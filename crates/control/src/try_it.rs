//! Calls that people try from a page: a server of Weir sends them, so that no API needs CORS. Their target is decided
//! by who uses this, never by what the browser says; here are the bounds, the headers that may be set, and the answer.

use crate::access::Token;
use crate::api::Problem;
use crate::http::{ClientRequest, HttpError};
use crate::identity_sources::{IdentitySources, plain};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use http_body_util::BodyExt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The longest body, each way, in bytes.
pub const MAX_BODY: usize = 1 << 20;
/// Until an answer has to be there, whole.
pub const LONGEST: Duration = Duration::from_secs(30);
/// Calls of one person in a minute.
pub const MOST: u32 = 30;
/// Parts of a query, headers, and fields of a form.
pub const MAX_PARTS: usize = 200;
/// The header that marks calls from a portal, so that analytics and backends can distinguish them.
pub const PORTAL_MARK: &str = "Weir-Portal-Try";
/// The header that marks calls from the console, likewise.
pub const CONSOLE_MARK: &str = "Weir-Console-Try";
/// Headers that are the connection's.
const OF_CONNECTION: [&str; 12] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "http2-settings",
];
/// Headers by which proxies say who calls, in addition to `X-Forwarded-…`. Gateways and APIs may believe them of this
/// machine, whatever the configuration says.
const OF_CALLER: [&str; 24] = [
    "forwarded",
    "via",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-forwarded-for",
    "x-originating-ip",
    "x-remote-ip",
    "x-remote-addr",
    "x-envoy-external-address",
    "client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "akamai-client-ip",
    "cf-connecting-ipv6",
    "do-connecting-ip",
    "wl-proxy-client-ip",
    "x-appengine-user-ip",
    "x-azure-clientip",
    "x-nf-client-connection-ip",
    "x-proxyuser-ip",
    "x-vercel-forwarded-for",
];

/// The answer.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct TryItResponse {
    /// The status.
    pub status: u16,
    /// How long it took, in milliseconds.
    pub ms: u64,
    /// How long it took until the status and the headers were there, in milliseconds.
    pub head_ms: u64,
    /// The id by which the request log finds the call, if the gateway sends it: in a header of the route's dialect, or
    /// in a refusal.
    pub request_id: Option<String>,
    /// Its headers.
    pub headers: Vec<(String, String)>,
    /// Its body, if that is a text.
    pub body: String,
    /// Whether it is a text.
    pub is_text: bool,
    /// Whether it was truncated.
    pub is_truncated: bool,
}

/// Why a part that says who calls cannot be sent.
const SAYS_WHO: &str = "it sets the caller's address, and this call comes from the gateway itself. Remove it, or \
    send the call with your own client";

/// The parts of a call that a user tries.
pub struct CallParts<'c> {
    /// Its headers.
    pub headers: &'c [(String, String)],
    /// Its host, if the user has named it.
    pub host: Option<&'c str>,
    /// Its path, without the query.
    pub path: &'c str,
    /// Its query, without the `?`.
    pub query: &'c str,
    /// Whether it has a body.
    pub has_body: bool,
}

/// Why a header cannot be set; `None`: it can. The name is [`plain`].
fn refusal(name: &str, sources: &IdentitySources) -> Option<&'static str> {
    if name.starts_with("weir-") {
        return Some("it marks calls of Weir's own");
    }
    if OF_CONNECTION.contains(&name) {
        return Some("it belongs to the connection");
    }
    if name == "x-request-id" {
        return Some("the gateway gives the call its own id");
    }
    if OF_CALLER.contains(&name) || name.starts_with("x-forwarded-") || sources.has_header(name) {
        return Some(SAYS_WHO);
    }
    None
}

/// Checks that a call may go as it is. `sources`: what says to the gateway who calls, besides the usual headers.
///
/// # Errors
/// If a header is invalid, or a part cannot be sent.
pub fn check(call: &CallParts<'_>, sources: &IdentitySources) -> Result<(), Problem> {
    let refuse = |part: &str, reason: &str| Err(Problem::bad(format!("the {part} cannot be set: {reason}")));
    for (name, value) in call.headers {
        let known = HeaderName::try_from(name.as_str());
        let known = known.map_err(|_| Problem::bad(format!("'{name}' is not a valid name of a header")))?;
        if let Some(reason) = refusal(&plain(known.as_str()), sources) {
            return refuse(&format!("header '{name}'"), reason);
        }
        if HeaderValue::from_str(value).is_err() {
            return Err(Problem::bad(format!(
                "the value of '{name}' is not allowed in a header"
            )));
        }
        if known == "cookie"
            && let Some(cookie) = sources.cookie_of(value)
        {
            return refuse(&format!("cookie '{cookie}'"), SAYS_WHO);
        }
    }
    if call.host.is_some_and(|host| sources.takes_host(host)) {
        return refuse("host", SAYS_WHO);
    }
    if sources.takes_path(call.path) {
        return refuse("path", SAYS_WHO);
    }
    if sources.takes_query(call.query) {
        return refuse("query", SAYS_WHO);
    }
    if let Some(argument) = sources.argument_of(call.query) {
        return refuse(&format!("argument '{argument}'"), SAYS_WHO);
    }
    match call.has_body && sources.body {
        true => refuse("body", SAYS_WHO),
        false => Ok(()),
    }
}

/// A random word of 32 letters and digits.
///
/// # Errors
/// The system yields no random bits.
pub fn random() -> Result<String, Problem> {
    let token = Token::random().ok_or_else(|| Problem::unreadable("the system yields no random bits"))?;
    Ok(token
        .as_str()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(32)
        .collect())
}

/// The id that the request log has of a call, if the gateway says it: a dialect's own `X-…-Request-Id` in the form of the
/// gateway's ids, or else what a native refusal says. Other headers, `X-Request-Id` among them, are those of plugins and
/// upstreams, which the log does not know.
fn request_id(status: u16, headers: &[(String, String)], body: &str) -> Option<String> {
    let value = |name: &str| {
        let found = headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    let of_dialect = headers.iter().find(|(name, value)| {
        let is_named = name.starts_with("x-") && name.ends_with("-request-id") && name != "x-request-id";
        is_named && value.len() == 32 && value.bytes().all(|it| it.is_ascii_hexdigit())
    });
    let in_refusal = || {
        let is_refusal =
            status >= 400 && value("content-type").as_deref() == Some("application/problem+json");
        let problem: serde_json::Value = serde_json::from_str(is_refusal.then_some(body)?).ok()?;
        Some(problem.get("request_id")?.as_str()?.to_owned())
    };
    of_dialect.map(|(_, id)| id.clone()).or_else(in_refusal)
}

/// Sends a call, and reads the answer as far as it is shown.
///
/// # Errors
/// There is no whole answer in time.
pub async fn send(request: ClientRequest) -> Result<TryItResponse, Problem> {
    let late = |_| {
        Problem::new(
            StatusCode::GATEWAY_TIMEOUT,
            "no complete answer within 30 seconds",
        )
    };
    tokio::time::timeout(LONGEST, answer_of(request))
        .await
        .map_err(late)?
}

fn milliseconds(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX)
}

async fn answer_of(request: ClientRequest) -> Result<TryItResponse, Problem> {
    let begin = Instant::now();
    let away = |error: HttpError| {
        Problem::new(
            StatusCode::BAD_GATEWAY,
            format!("the gateway does not answer: {error}"),
        )
    };
    let answer = request.open().await.map_err(away)?;
    let head_ms = milliseconds(begin);
    let status = answer.status().as_u16();
    let headers: Vec<(String, String)> = answer
        .headers()
        .iter()
        .map(|(name, value)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    let (mut bytes, mut is_truncated) = (Vec::new(), false);
    let mut body = answer.into_body();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Problem::new(StatusCode::BAD_GATEWAY, format!("the answer broke off: {error}"))
        })?;
        if let Some(data) = frame.data_ref() {
            let room = MAX_BODY - bytes.len();
            bytes.extend_from_slice(&data[..data.len().min(room)]);
            if data.len() > room {
                is_truncated = true;
                break;
            }
        }
    }
    let ms = milliseconds(begin);
    if is_truncated {
        // The cut may go through a character.
        let whole = std::str::from_utf8(&bytes).map_or_else(|error| error.valid_up_to(), str::len);
        if bytes.len() - whole < 4 {
            bytes.truncate(whole);
        }
    }
    let text = String::from_utf8(bytes);
    Ok(TryItResponse {
        status,
        ms,
        head_ms,
        request_id: request_id(status, &headers, text.as_deref().unwrap_or_default()),
        headers,
        is_text: text.is_ok(),
        body: text.unwrap_or_default(),
        is_truncated,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_id_is_the_gateways_own_or_none() {
        const ID: &str = "0123456789abcdef0123456789abcdef";
        let (problem, own) = (
            ("content-type", "application/problem+json"),
            ("x-own-request-id", ID),
        );
        let report = r#"{"request_id": "b"}"#;
        for (status, headers, body, expected) in [
            (200, vec![], "", None),
            (
                200,
                vec![
                    ("request-id", "u"),
                    ("x-amzn-request-id", "1-67891233-abcdef012345678912345678"),
                    own,
                ],
                "",
                Some(ID),
            ),
            (200, vec![("request-id", "u"), ("x-request-id", "p")], "", None),
            (401, vec![problem], report, Some("b")),
            (401, vec![("request-id", "u"), problem, own], report, Some(ID)),
            (200, vec![problem], report, None),
            (500, vec![("content-type", "application/json")], report, None),
            (401, vec![problem], "{", None),
        ] {
            let named = headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let found = request_id(status, &named.collect::<Vec<_>>(), body);
            assert_eq!(found.as_deref(), expected, "{status} {headers:?} {body}");
        }
    }
}
