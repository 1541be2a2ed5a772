//! `cors`: announces to browsers which pages of other origins may call (the Fetch standard, 3.2).
//!
//! ```yaml
//! origins: ["https://app.example"]
//! methods: [GET, POST]
//! credentials: true
//! max_age_seconds: 600
//! ```
//!
//! Security: this protects users of browsers only; any other program may call all the same, so it is no access control.
//! Anchor expressions: `example` also matches `https://example.evil`.

mod broad_origins;
mod origin;

use origin::{Grant, Origins};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::is_value;
use weir_plugin::{
    BuildContext, Exchange, Filter, Headers, Outcome, Phases, Plugin, Reply, Request, parse_config,
};

/// Configuration of `cors`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Origins that may call, as browsers write them (`https://app.example`, `null`). `*`: every origin, answered with
    /// `*` (or, with `credentials`, with the caller's own origin if it sends one). `**`: every origin, answered with
    /// the caller's own, or with `*` if it sends none. If this list and the next three are empty, `*` applies.
    pub origins: Vec<String>,
    /// Regular expressions; an origin may call if one of them matches.
    pub origin_patterns: Vec<String>,
    /// Hosts of origins that may call, whatever their scheme and port.
    pub hosts: Vec<String>,
    /// Regular expressions for hosts of origins that may call.
    pub host_patterns: Vec<String>,
    /// Whether the port of an origin is removed before comparing and answering, if it is the default port of the scheme
    /// (`http://a.example:80`). Browsers remove it themselves.
    pub normalize_origin: bool,
    /// An origin that all callers get in the response, whatever their own. It takes precedence over the lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_origin: Option<String>,
    /// Methods that pages may use.
    pub methods: Vec<String>,
    /// Request headers that pages may send; empty: those that the preflight requests.
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
    /// Status of the response to a preflight, 200 to 299.
    #[schemars(range(min = 200, max = 299))]
    pub preflight_status: u16,
    /// `Content-Type` of the response to a preflight, whose body is empty; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preflight_content_type: Option<String>,
    /// Which responses carry which headers.
    pub headers_on: HeadersOn,
    /// The headers of responses to other origins.
    pub refused: DisallowedOrigin,
    /// Whether `Vary: Origin` is added, unless the origin in the response is `*`.
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
            refused: DisallowedOrigin::default(),
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
    /// Allowed methods and headers and the maximum age on responses to preflights, exposed headers on all others.
    #[default]
    Split,
    /// All on all.
    All,
}

/// The headers of responses to origins that may not call. The call itself goes on: the browser withholds the response
/// from the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DisallowedOrigin {
    /// None, and an `Access-Control-Allow-Origin` of the upstream is removed.
    #[default]
    Silent,
    /// None, and the upstream's headers stay.
    Untouched,
    /// All but the origin, and an `Access-Control-Allow-Origin` of the upstream is removed.
    WithoutOrigin,
}

/// The plugin `cors`.
pub struct Cors;

impl Plugin for Cors {
    fn name(&self) -> &'static str {
        "cors"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let faults = faults(&config);
        if !faults.is_empty() {
            return Err(faults);
        }
        let max_age = config.max_age_seconds.map(|seconds| seconds.to_string());
        let mut answers = Vec::new();
        for (name, value) in [
            ("Access-Control-Allow-Methods", Some(config.methods.join(","))),
            ("Access-Control-Allow-Headers", Some(config.headers.join(","))),
            ("Access-Control-Max-Age", max_age),
        ] {
            answers.extend(value.filter(|value| !value.is_empty()).map(|value| (name, value)));
        }
        Ok(Arc::new(CorsFilter {
            origins: Origins::of_callers(&config)?,
            timing: Origins::of_timing(&config)?,
            answers,
            exposed: config.exposed_headers.join(","),
            always_in_full: config.origins.iter().any(|origin| origin == "**"),
            config,
        }))
    }

    fn warnings(&self, config: &Value, _: &BuildContext<'_>) -> Vec<Diagnostic> {
        let config: Result<Config, _> = parse_config(config);
        config.map_or_else(|_| Vec::new(), |config| broad_origins::warnings(&config))
    }
}

fn faults(config: &Config) -> Vec<Diagnostic> {
    let root = DocPath::root();
    let mut faults = Vec::new();
    let mut fault = |field: &str, message: &str| faults.push(Diagnostic::error(root.field(field), message));
    let is_any = |origins: &[String]| origins.iter().any(|origin| matches!(origin.as_str(), "*" | "**"));
    let lists = [
        &config.origins,
        &config.origin_patterns,
        &config.hosts,
        &config.host_patterns,
    ];
    let allows_all = match &config.fixed_origin {
        Some(origin) => origin == "*",
        None => is_any(&config.origins) || lists.iter().all(|list| list.is_empty()),
    };
    if config.credentials && allows_all && !config.credentials_for_any_origin {
        fault(
            "credentials",
            "expected a list of origins, as browsers send credentials to named ones only (or 'credentials_for_any_origin')",
        );
    }
    if !(200..=299).contains(&config.preflight_status) {
        fault("preflight_status", "expected a status from 200 to 299");
    }
    for (field, texts) in [
        ("origins", &config.origins),
        ("methods", &config.methods),
        ("headers", &config.headers),
        ("exposed_headers", &config.exposed_headers),
        ("timing_origins", &config.timing_origins),
    ] {
        if texts.iter().any(|text| !is_value(text.as_bytes())) {
            fault(field, "expected texts that a header can hold");
        }
    }
    for (field, text) in [
        ("fixed_origin", &config.fixed_origin),
        ("preflight_content_type", &config.preflight_content_type),
    ] {
        if text.as_ref().is_some_and(|text| !is_value(text.as_bytes())) {
            fault(field, "expected a text that a header can hold");
        }
    }
    faults
}

/// An instance of `cors`.
struct CorsFilter {
    config: Config,
    origins: Origins,
    timing: Origins,
    /// The headers about allowed methods and headers, with their values.
    answers: Vec<(&'static str, String)>,
    exposed: String,
    /// Whether an answer with `*` carries all that goes with an origin, too.
    always_in_full: bool,
}

/// The origin that the call came with.
struct OriginCalled(Vec<u8>);

/// That it came without one.
struct NoOrigin;

const ALLOW_ORIGIN: &[u8] = b"Access-Control-Allow-Origin";

impl CorsFilter {
    fn is_preflight(&self, request: &Request) -> bool {
        let headers = &request.headers;
        request.method == b"OPTIONS"
            && (self.config.preflight == Preflight::AnswerOptions
                || (headers.contains(b"origin") && headers.contains(b"access-control-request-method")))
    }

    fn set_headers(&self, request: &Request, origin: Option<&[u8]>, headers: &mut Headers) {
        let grant = self.origins.grant(origin);
        let is_bare = matches!(grant, Grant::Star) && !self.always_in_full;
        if self.config.vary && !is_bare {
            headers.append(b"Vary", b"Origin");
        }
        match &grant {
            Grant::Star => headers.set(ALLOW_ORIGIN, b"*"),
            Grant::Origin(origin) => headers.set(ALLOW_ORIGIN, origin),
            Grant::Refused => {
                if self.config.refused != DisallowedOrigin::Untouched {
                    headers.remove(ALLOW_ORIGIN);
                }
                if self.config.refused != DisallowedOrigin::WithoutOrigin {
                    return;
                }
            }
        }
        if self.config.credentials && !is_bare {
            headers.set(b"Access-Control-Allow-Credentials", b"true");
        }
        let is_preflight = self.is_preflight(request);
        if is_preflight || self.config.headers_on == HeadersOn::All {
            self.set_preflight_headers(request, headers);
        }
        if is_preflight
            && self.config.private_network
            && request.headers.get(b"access-control-request-private-network") == Some(b"true")
        {
            headers.set(b"Access-Control-Allow-Private-Network", b"true");
        }
        let exposes_headers = !is_preflight || self.config.headers_on == HeadersOn::All;
        if exposes_headers && !self.exposed.is_empty() {
            headers.set(b"Access-Control-Expose-Headers", self.exposed.as_bytes());
        }
    }

    fn set_preflight_headers(&self, request: &Request, headers: &mut Headers) {
        for (name, value) in &self.answers {
            headers.set(name.as_bytes(), value.as_bytes());
        }
        let asked = request.headers.get(b"access-control-request-headers");
        if let Some(asked) = asked.filter(|_| self.config.headers.is_empty()) {
            headers.set(b"Access-Control-Allow-Headers", asked);
        }
    }
}

impl Filter for CorsFilter {
    fn phases(&self) -> Phases {
        match self.config.preflight {
            Preflight::Forward => Phases::RESPONSE,
            Preflight::Answer | Preflight::AnswerOptions => Phases::BOTH,
        }
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        // Filters behind may change it for the upstream; the answer is for the page that called.
        match exchange.request.headers.get(b"origin").map(<[u8]>::to_vec) {
            Some(origin) => exchange.filter_state.put(self, OriginCalled(origin)),
            None => exchange.filter_state.put(self, NoOrigin),
        }
        if self.config.preflight == Preflight::Forward || !self.is_preflight(&exchange.request) {
            return Outcome::Continue;
        }
        let content_type = self.config.preflight_content_type.clone().unwrap_or_default();
        Outcome::Reply(Box::new(Reply::new(
            self.config.preflight_status,
            content_type,
            [],
        )))
    }

    fn on_response(&self, exchange: &mut Exchange) {
        let called = exchange.filter_state.take(self);
        let had_none = exchange.filter_state.take::<_, NoOrigin>(self).is_some();
        let (request, headers) = (&exchange.request, &mut exchange.response.headers);
        let origin = match &called {
            Some(OriginCalled(origin)) => Some(origin.as_slice()),
            None if had_none => None,
            None => request.headers.get(b"origin"),
        };
        if self.config.preflight == Preflight::Forward && self.is_preflight(request) {
            return;
        }
        self.set_headers(request, origin, headers);
        match self.timing.grant(origin) {
            Grant::Star => headers.set(b"Timing-Allow-Origin", b"*"),
            Grant::Origin(origin) => headers.set(b"Timing-Allow-Origin", &origin),
            Grant::Refused => {}
        }
    }
}

#[cfg(test)]
mod tests;
