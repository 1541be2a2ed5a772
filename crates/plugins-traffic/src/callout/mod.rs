//! `callout`: asks other servers before a call goes on, and puts what they say into the request.
//!
//! ```yaml
//! callouts:
//!   - name: user
//!     url: "http://127.0.0.1:1980/users/$(headers.x_user)"
//! upstream:
//!   headers: {X-Plan: "$(callouts.user.response.body.plan)"}
//! ```
//!
//! Callouts are asked one after the other, each after those that it names in `after`. In texts, `$(…)` is an expression:
//! `headers`, `query_params` and `uri_captures` are those of the call, and `callouts.NAME.response` has `status`, `headers`
//! and `body` of an answer. Code is not run.
//!
//! Security: what callers send cannot change the server that is asked: values in `url` are escaped, and stand only behind
//! the host. A callout that fails refuses the call unless `on_error` is `continue`.

mod message;
mod redis;
mod run;
mod upstream;

use crate::callout::message::{CompiledCallout, Custom};
use redis::RedisStore;
use run::{CalloutFilter, ResponseCache};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_flow::expiring::ExpiringMap;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::{BuildContext, Filter, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::redis::Redis;

/// Configuration of `callout`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The servers to call, 1 to 16.
    #[schemars(length(min = 1, max = 16))]
    pub callouts: Vec<Callout>,
    /// For how many seconds cacheable responses are kept; 0: not at all. Only calls for which the whole request is the
    /// same share a response.
    #[serde(default)]
    pub cache_seconds: u64,
    /// A Redis that keeps responses instead of memory, so that several gateways share them. Responses of more than
    /// about a megabyte are not kept. While it is unavailable, servers are called, and nothing is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis: Option<Redis>,
    /// The changes of the request to the upstream.
    #[serde(default)]
    pub upstream: UpstreamParts,
    /// The most bytes of a call's body that is sent on or changed; calls with a larger one are refused with status 413.
    #[serde(default = "one_mebibyte")]
    #[schemars(range(max = 8_388_608))]
    pub max_body_bytes: usize,
}

fn one_mebibyte() -> usize {
    1 << 20
}

/// A server to call.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Callout {
    /// What its answer is called in expressions.
    pub name: String,
    /// Names of callouts that come before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The address, `http://` or `https://`. Values of expressions are escaped, and are allowed in the path and in the
    /// query. In the path, none may be empty.
    pub url: String,
    /// The method.
    #[serde(default = "get")]
    pub method: String,
    /// The parts of the call that it gets, and further ones.
    #[serde(default)]
    pub send: Parts,
    /// What happens to the call if there is no answer, or one of `error_statuses`.
    #[serde(default)]
    pub on_error: OnError,
    /// How often it is called again with `on_error: retry`, at most 10.
    #[serde(default = "two")]
    #[schemars(range(max = 10))]
    pub retries: u32,
    /// Statuses of responses that are errors. Left out: 304, and 400 to 599.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_statuses: Option<Vec<u16>>,
    /// Status of the response to a call whose callout has failed, 200 to 599.
    #[serde(default = "bad_request")]
    #[schemars(range(min = 200, max = 599))]
    pub status: u16,
    /// The message of the response to such a call.
    #[serde(default = "failed")]
    pub message: String,
    /// Whether its responses may be cached.
    #[serde(default = "weir_plugins_shared::yes")]
    pub cache: bool,
    /// Whether the body of its answer is JSON, whose members expressions can look into; otherwise it is a text. An answer that
    /// is not valid JSON is an error then.
    #[serde(default)]
    pub decode: bool,
    /// The longest that an answer may take, in milliseconds, at most 60000.
    #[serde(default = "ten_seconds")]
    #[schemars(range(min = 1, max = 60_000))]
    pub timeout_ms: u64,
    /// Whether the server's certificate is verified.
    #[serde(default = "weir_plugins_shared::yes")]
    pub verify_tls: bool,
    /// An HTTP proxy for these calls: `http://host:port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// `Proxy-Authorization`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_authorization: Option<String>,
}

/// Headers and bodies may hold secrets.
impl std::fmt::Debug for Callout {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Callout")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Callout {
    /// The defaults of all options, with this name and address.
    pub fn new(name: String, url: String) -> Self {
        Self {
            name,
            after: Vec::new(),
            url,
            method: get(),
            send: Parts::default(),
            on_error: OnError::default(),
            retries: two(),
            error_statuses: None,
            status: bad_request(),
            message: failed(),
            cache: true,
            decode: false,
            timeout_ms: ten_seconds(),
            verify_tls: true,
            proxy: None,
            proxy_authorization: None,
        }
    }
}

fn get() -> String {
    "GET".to_owned()
}

fn two() -> u32 {
    2
}

fn bad_request() -> u16 {
    400
}

fn failed() -> String {
    "service callout error".to_owned()
}

fn ten_seconds() -> u64 {
    10_000
}

/// What happens to a call whose callout has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnError {
    /// It is refused.
    #[default]
    Fail,
    /// The call goes on; the values of the response are empty.
    Continue,
    /// The server is called again, and then the call is refused.
    Retry,
}

/// The parts of the call that a callout's request gets, and the parts that are added. Texts may have expressions.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Parts {
    /// Whether the headers of the call are in it, except those about the connection, `If-…` and `Range`.
    pub forward_headers: bool,
    /// Further headers, which replace those of the call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Whether the arguments of the call's query are in it.
    pub forward_query: bool,
    /// Further arguments, which replace those of the call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// Whether the body of the call is in it.
    pub forward_body: bool,
    /// Members of a JSON object that is its body. With `forward_body` they are put into the object that the call's body is.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub body: BTreeMap<String, String>,
}

/// Values may be secrets.
impl std::fmt::Debug for Parts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Parts").finish_non_exhaustive()
    }
}

/// The parts of the call that the upstream's request keeps, and the parts that are added. Texts may have expressions.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UpstreamParts {
    /// Whether the headers of the call stay. Those that say what the body is stay in any case.
    pub forward_headers: bool,
    /// Further headers, which replace those of the call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Whether the arguments of the call's query stay.
    pub forward_query: bool,
    /// Further arguments, which replace those of the call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// Whether the body of the call stays.
    pub forward_body: bool,
    /// Members of a JSON object that is the body. With `forward_body` they are put into the object that the call's body is.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub body: BTreeMap<String, String>,
}

/// Values may be secrets.
impl std::fmt::Debug for UpstreamParts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("UpstreamParts").finish_non_exhaustive()
    }
}

impl Default for UpstreamParts {
    fn default() -> Self {
        Self::from(Parts {
            forward_headers: true,
            forward_query: true,
            forward_body: true,
            ..Parts::default()
        })
    }
}

impl From<Parts> for UpstreamParts {
    fn from(parts: Parts) -> Self {
        Self {
            forward_headers: parts.forward_headers,
            headers: parts.headers,
            forward_query: parts.forward_query,
            query: parts.query,
            forward_body: parts.forward_body,
            body: parts.body,
        }
    }
}

impl From<UpstreamParts> for Parts {
    fn from(parts: UpstreamParts) -> Self {
        Self {
            forward_headers: parts.forward_headers,
            headers: parts.headers,
            forward_query: parts.forward_query,
            query: parts.query,
            forward_body: parts.forward_body,
            body: parts.body,
        }
    }
}

const NAME: &str = "callout";
/// Callouts of an instance at most.
const MOST: usize = 16;
/// Bytes of all answers that are kept.
const CACHE_BYTES: usize = 64 << 20;

/// The plugin; it owns the cached responses.
pub struct CalloutPlugin(Arc<ResponseCache>);

impl Default for CalloutPlugin {
    fn default() -> Self {
        Self(ExpiringMap::new(CACHE_BYTES))
    }
}

impl Plugin for CalloutPlugin {
    fn name(&self) -> &'static str {
        "callout"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let root = DocPath::root();
        let list = root.field("callouts");
        let mut faults = Vec::new();
        if config.callouts.is_empty() || config.callouts.len() > MOST {
            let message = format!("expected 1 to {MOST} callouts, found {}", config.callouts.len());
            return Err(vec![Diagnostic::error(list, message)]);
        }
        if config.max_body_bytes > 8 << 20 {
            let message = "expected at most 8388608 bytes";
            faults.push(Diagnostic::error(root.field("max_body_bytes"), message));
        }
        let order = match order(&config.callouts) {
            Ok(order) => order,
            Err((index, message)) => {
                return Err(vec![Diagnostic::error(list.index(index).field("after"), message)]);
            }
        };
        let mut prepared = Vec::with_capacity(order.len());
        for index in order {
            let place = list.index(index);
            match CompiledCallout::new(&config.callouts[index], context.instance_id) {
                Ok(callout) => prepared.push(callout),
                Err((field, message)) => faults.push(Diagnostic::error(place.field(field), message)),
            }
        }
        let redis = config.redis.and_then(|redis| {
            let mut errors = ConfigErrors::default();
            let prefix = redis.prefix.clone();
            let server = redis.compile(&["redis"], &mut errors);
            faults.extend(errors.done().err().into_iter().flatten());
            Some(RedisStore::new(server?, &prefix))
        });
        let upstream = Custom::new(&config.upstream.into());
        let upstream =
            upstream.map_err(|message| vec![Diagnostic::error(root.field("upstream"), message)])?;
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Arc::new(CalloutFilter {
            callouts: prepared,
            upstream,
            cache_ms: config.cache_seconds.saturating_mul(1_000),
            max_body_bytes: config.max_body_bytes,
            answers: Arc::clone(&self.0),
            redis,
        }))
    }
}

/// The places of callouts in an order in which each comes after those that it names.
///
/// # Errors
/// The place of a callout that cannot come, and why.
fn order(callouts: &[Callout]) -> Result<Vec<usize>, (usize, String)> {
    for (index, callout) in callouts.iter().enumerate() {
        if callouts[..index].iter().any(|it| it.name == callout.name) {
            return Err((
                index,
                format!("expected a name of its own, found a second {:?}", callout.name),
            ));
        }
        let is_known = |name: &&String| !callouts.iter().any(|it| it.name == **name);
        if let Some(name) = callout.after.iter().find(is_known) {
            return Err((index, format!("expected names of callouts, found {name:?}")));
        }
    }
    let mut order: Vec<usize> = Vec::with_capacity(callouts.len());
    while order.len() < callouts.len() {
        let is_done = |name: &String| order.iter().any(|at| callouts[*at].name == *name);
        let next =
            (0..callouts.len()).find(|at| !order.contains(at) && callouts[*at].after.iter().all(is_done));
        let Some(next) = next else {
            let first = (0..callouts.len()).find(|at| !order.contains(at)).unwrap_or(0);
            return Err((first, "expected no circles: it comes after itself".to_owned()));
        };
        order.push(next);
    }
    Ok(order)
}

/// Headers that the gateway decides about.
const FRAMING: [&str; 8] = [
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "expect",
];

/// What is wrong with names and values of headers.
fn header_fault(headers: &BTreeMap<String, String>) -> Option<String> {
    headers.iter().find_map(|(name, value)| {
        if !is_name(name.as_bytes()) {
            return Some(format!("expected header names, found {name:?}"));
        }
        if FRAMING.iter().any(|it| name.eq_ignore_ascii_case(it)) {
            return Some(format!(
                "expected headers that say nothing of the connection, found {name:?}"
            ));
        }
        let is_plain = !value.contains("$(");
        (is_plain && !is_value(value.as_bytes())).then(|| format!("expected a value of the header {name:?}"))
    })
}

#[cfg(test)]
mod tests;
