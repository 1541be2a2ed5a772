//! Fetched documents: one caller fetches a document while the others wait, and all instances with the same address
//! share the result.

use crate::openapi::{Api, Base, MAX_DOCUMENT};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use weir_flow::expiring::{ExpiringMap, Fetch, Lifetime, Lookup};
use weir_plugin::{Exchange, Outcome, SubrequestResponse, Suspend};
use weir_plugins_shared::http_request::{HttpRequest, HttpServer, ServerCallRules};

/// The result of a fetch: a document, or its fault.
pub type FetchedSpec = Result<Arc<Api>, Arc<str>>;

/// After a fetch that has failed, the next one waits so long, in milliseconds.
const RETRY_MS: u64 = 5_000;
/// An old document is used so much longer while there is no new one, in milliseconds.
const STALE_MS: u64 = 24 * 3_600_000;

/// The source of a document.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SpecUrl {
    /// The address, `http://` or `https://`.
    pub url: String,
    /// Headers of the request.
    pub headers: BTreeMap<String, String>,
    /// Whether the server's certificate is verified.
    pub verify_tls: bool,
    /// The longest that it may take, in milliseconds.
    pub timeout_ms: u64,
    /// How long the document is used before it is fetched again, in seconds.
    pub ttl_seconds: u64,
}

/// Headers may be secrets.
impl std::fmt::Debug for SpecUrl {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SpecUrl").finish_non_exhaustive()
    }
}

impl Default for SpecUrl {
    fn default() -> Self {
        Self {
            url: String::new(),
            headers: BTreeMap::new(),
            verify_tls: true,
            timeout_ms: 10_000,
            ttl_seconds: 3_600,
        }
    }
}

impl SpecUrl {
    /// The address made ready.
    ///
    /// # Errors
    /// The field that is wrong, and what was expected.
    pub(super) fn compile(
        &self,
        base: &Base,
        fetched: &Arc<ExpiringMap<FetchedSpec>>,
    ) -> Result<Source, (&'static str, String)> {
        let expected = "expected an address that begins with http:// or https://";
        let server = HttpServer::parse(&self.url).ok_or(("url", expected.to_owned()))?;
        if self.timeout_ms == 0 {
            return Err(("timeout_ms", "expected at least 1 millisecond".to_owned()));
        }
        let key = serde_json::json!([self, format!("{base:?}")])
            .to_string()
            .into_bytes();
        Ok(Source {
            server,
            headers: self.headers.clone().into_iter().collect(),
            rules: ServerCallRules {
                verify_tls: self.verify_tls,
                timeout: Duration::from_millis(self.timeout_ms),
                pool_size: 0,
                pool_idle_timeout: Duration::ZERO,
                max_answer_bytes: MAX_DOCUMENT,
                connector: None,
            },
            ttl_ms: self.ttl_seconds.saturating_mul(1_000),
            base: base.clone(),
            key,
            fetched: Arc::clone(fetched),
        })
    }
}

/// An address, ready for use.
pub(super) struct Source {
    server: HttpServer,
    headers: Vec<(String, String)>,
    rules: ServerCallRules,
    ttl_ms: u64,
    base: Base,
    key: Vec<u8>,
    fetched: Arc<ExpiringMap<FetchedSpec>>,
}

/// What a call finds.
pub(super) enum ApiLookup {
    /// The document.
    Api(Arc<Api>),
    /// There is no document; the reason.
    Nothing(String),
    /// The engine has something to do first.
    Wait(Outcome),
}

/// The ticket of the call that fetches.
struct Ticket(Fetch<FetchedSpec>);

impl Source {
    /// Finds the document, or has it fetched.
    pub(super) fn find(&self, exchange: &mut Exchange) -> ApiLookup {
        if let Some(Ticket(fetch)) = exchange.filter_state.take(self) {
            let answer = exchange.subrequest_response.take().flatten();
            return self.keep(fetch, answer, exchange.unix_ms());
        }
        let now = exchange.unix_ms();
        let fetch = match self.fetched.lookup(&self.key, now) {
            Lookup::Hit(found) => return found.into(),
            Lookup::Failed => return ApiLookup::Nothing("the last fetch has failed".to_owned()),
            Lookup::Pending(pending) => {
                return ApiLookup::Wait(Outcome::Suspend(Suspend::event(pending, self.rules.timeout)));
            }
            Lookup::Stale(_, fetch) | Lookup::Miss(fetch) => fetch,
        };
        exchange.filter_state.put(self, Ticket(fetch));
        let headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        let request = HttpRequest {
            headers: &headers,
            ..HttpRequest::GET
        };
        let subrequest = self.server.request(request, &self.rules);
        ApiLookup::Wait(Outcome::Subrequest(Box::new(subrequest)))
    }

    fn keep(&self, fetch: Fetch<FetchedSpec>, answer: Option<SubrequestResponse>, now: u64) -> ApiLookup {
        let text = match answer {
            Some(answer) if answer.status == 200 => answer.body,
            other => {
                let before = self.fetched.get(&self.key, now);
                fetch.fail(RETRY_MS, now);
                return match (before, other) {
                    (Some(before), _) => before.into(),
                    (None, Some(answer)) => {
                        ApiLookup::Nothing(format!("the server answered {}", answer.status))
                    }
                    (None, None) => ApiLookup::Nothing("the server gave no answer".to_owned()),
                };
            }
        };
        let text = String::from_utf8_lossy(&text);
        let made: FetchedSpec = match Api::compile(&text, &self.base, false) {
            Ok(api) => Ok(Arc::new(api)),
            Err(message) => Err(message.into()),
        };
        let lifetime = match &made {
            Ok(_) => Lifetime {
                fresh_ms: self.ttl_ms,
                stale_ms: STALE_MS,
            },
            Err(_) => Lifetime::fresh(RETRY_MS),
        };
        fetch.store(made.clone(), text.len() + 1024, lifetime, now);
        made.into()
    }
}

impl From<FetchedSpec> for ApiLookup {
    fn from(found: FetchedSpec) -> Self {
        match found {
            Ok(api) => Self::Api(api),
            Err(message) => Self::Nothing(message.to_string()),
        }
    }
}
