//! `cors`: tells browsers which pages of other origins may call (the Fetch standard, 3.2).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration of `cors`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Origins that may call, as browsers write them (`https://app.example`, `null`). `*`: every origin, answered
    /// with `*` (or, with `credentials`, with the caller's own where it sends one). `**`: every origin, answered with
    /// the caller's own, and with `*` where it sends none.
    pub origins: Vec<String>,
    /// Regular expressions; an origin may call in which one of them finds something.
    pub origin_patterns: Vec<String>,
    /// Hosts of origins that may call, whatever their scheme and port.
    pub hosts: Vec<String>,
    /// Regular expressions for hosts of origins that may call.
    pub host_patterns: Vec<String>,
    /// Whether an origin's port is left out before it is compared and answered where it is the scheme's own
    /// (`http://a.example:80`). Browsers leave it out themselves.
    pub normalize_origin: bool,
    /// An origin that all callers are answered with, whatever their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_origin: Option<String>,
    /// Methods that pages may use.
    pub methods: Vec<String>,
    /// Request headers that pages may send; empty: those that the preflight asks for.
    pub headers: Vec<String>,
    /// Response headers that pages may read.
    pub exposed_headers: Vec<String>,
    /// Whether calls may carry cookies and other credentials.
    pub credentials: bool,
    /// Allows `credentials` together with `*` or `**`. Then every page on the web may act as its visitor: only for
    /// APIs that do not rely on cookies.
    pub credentials_for_any_origin: bool,
    /// How long browsers may remember a preflight's answer, in seconds; -1 forbids it. Absent: the browser decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_seconds: Option<i64>,
    /// Whether preflights from public pages to private networks are allowed.
    pub private_network: bool,
    /// Which calls are answered as preflights.
    pub preflight: Preflight,
    /// Status of the answer to a preflight, 200 to 299.
    #[schemars(range(min = 200, max = 299))]
    pub preflight_status: u16,
    /// `Content-Type` of the answer to a preflight, whose body is empty; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preflight_content_type: Option<String>,
    /// Which responses carry which headers.
    pub headers_on: HeadersOn,
    /// What callers of other origins are told.
    pub refused: Refused,
    /// Whether `Vary: Origin` is added wherever the answer depends on the caller's origin.
    pub vary: bool,
    /// Origins (or `*`, `**`) that may read timing details; they are answered in `Timing-Allow-Origin`.
    pub timing_origins: Vec<String>,
    /// Regular expressions for origins that may read timing details.
    pub timing_origin_patterns: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            origins: Vec::new(),
            origin_patterns: Vec::new(),
            hosts: Vec::new(),
            host_patterns: Vec::new(),
            normalize_origin: false,
            fixed_origin: None,
            methods: ["GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS"]
                .map(str::to_owned)
                .to_vec(),
            headers: Vec::new(),
            exposed_headers: Vec::new(),
            credentials: false,
            credentials_for_any_origin: false,
            max_age_seconds: None,
            private_network: false,
            preflight: Preflight::default(),
            preflight_status: 204,
            preflight_content_type: None,
            headers_on: HeadersOn::default(),
            refused: Refused::default(),
            vary: true,
            timing_origins: Vec::new(),
            timing_origin_patterns: Vec::new(),
        }
    }
}

/// Which calls are answered as preflights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preflight {
    /// `OPTIONS` with `Origin` and `Access-Control-Request-Method`.
    #[default]
    Answer,
    /// Every `OPTIONS`.
    AnswerOptions,
    /// None: preflights are forwarded, and their responses are left alone.
    Forward,
}

/// Which responses carry which headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeadersOn {
    /// Allowed methods and headers and the maximum age on answers to preflights, exposed headers on all others.
    #[default]
    Split,
    /// All on all.
    All,
}

/// What callers of origins that may not call are told. The call itself goes on: it is browsers that keep the response
/// from the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Refused {
    /// Nothing, and an `Access-Control-Allow-Origin` of the upstream is taken out.
    #[default]
    Silent,
    /// Nothing, and the upstream's headers stay.
    Untouched,
    /// All but the origin, and an `Access-Control-Allow-Origin` of the upstream is taken out.
    WithoutOrigin,
}
