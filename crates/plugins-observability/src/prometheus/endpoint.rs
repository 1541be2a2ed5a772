//! `metrics-endpoint`: answers calls with an exposition of `prometheus`, and with further interfaces of the gateway if
//! they are configured: purges of `proxy-cache`, batches, logins at wolf servers, other texts.
//!
//! ```yaml
//! exposition: weir
//! ```
//!
//! The text is rendered outside the workers, however long it is. Every client of the route can read the names of
//! services and consumers: put authentication or a restriction by address in front of it.

use super::MetricRegistry;
use crate::batch_requests::{self, BatchFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use weir_model::{Diagnostic, DialectName};
use weir_plugin::{
    BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Refusal, RefusalKind, Reply, Suspend,
    parse_config,
};
use weir_plugins_authentication::wolf_rbac;
use weir_plugins_caching::proxy_cache::{Caches, Purged};

/// The type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// How long it may take to make the text.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Configuration of `metrics-endpoint`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EndpointConfig {
    /// The exposition.
    pub exposition: String,
    /// Only calls of this path are answered so; with any method but `GET` and `HEAD`, none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// With the method `PURGE`, calls to `STORE/ROUTE/KEY` below this path purge a response from a `proxy-cache` (see
    /// its `purged_as`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purge_below: Option<String>,
    /// Batches of calls, as in `batch-requests`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batches: Option<batch_requests::Config>,
    /// Endpoints at which users of wolf servers log in, for the credentials of `wolf-rbac`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wolf: Vec<wolf_rbac::Endpoint>,
    /// Further texts, each at a path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<EndpointText>,
    /// The body for other calls, whose status is 404.
    pub not_found_body: String,
    /// Its type.
    pub not_found_content_type: String,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            exposition: "weir".into(),
            path: None,
            purge_below: None,
            batches: None,
            wolf: Vec::new(),
            texts: Vec::new(),
            not_found_body: "not found\n".into(),
            not_found_content_type: "text/plain; charset=utf-8".into(),
        }
    }
}

/// A text at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EndpointText {
    /// The path; absent: all paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The exposition.
    pub exposition: String,
    /// The type of the text.
    pub content_type: String,
}

/// The plugin `metrics-endpoint`.
pub struct MetricsEndpoint {
    registry: Arc<MetricRegistry>,
    caches: Caches,
}

impl MetricsEndpoint {
    /// Tells what is counted on this registry, and forgets what is kept in these caches.
    pub fn new(registry: Arc<MetricRegistry>, caches: Caches) -> Self {
        Self { registry, caches }
    }
}

impl Plugin for MetricsEndpoint {
    fn name(&self) -> &'static str {
        "metrics-endpoint"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(EndpointConfig)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: EndpointConfig = parse_config(config)?;
        Ok(Arc::new(EndpointFilter {
            registry: Arc::clone(&self.registry),
            caches: self.caches.clone(),
            dialect: context.dialect,
            batches: config.batches.clone().map(BatchFilter),
            wolf: wolf_rbac::Endpoints::build(config.wolf.clone(), context),
            config,
        }))
    }
}

struct EndpointFilter {
    registry: Arc<MetricRegistry>,
    caches: Caches,
    dialect: DialectName,
    batches: Option<BatchFilter>,
    wolf: wolf_rbac::Endpoints,
    config: EndpointConfig,
}

/// A text that is being made.
#[derive(Clone, Default)]
struct Making(Arc<Mutex<(Option<String>, Option<Waker>)>>);

impl Making {
    fn state(&self) -> MutexGuard<'_, (Option<String>, Option<Waker>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn finish(&self, text: String) {
        let mut state = self.state();
        state.0 = Some(text);
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    }
}

impl Future for Making {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.0.is_some() {
            return Poll::Ready(());
        }
        state.1 = Some(context.waker().clone());
        Poll::Pending
    }
}

impl EndpointFilter {
    /// The answer to a purge: `STORE/ROUTE/KEY` stands behind the path for purges.
    fn purge(&self, place: &[u8]) -> Outcome {
        let place = String::from_utf8_lossy(place);
        let mut parts = place.splitn(3, '/');
        let mut part = || parts.next().unwrap_or_default();
        let (store, route, key) = (part(), part(), part());
        let is_complete = matches!(store, "disk" | "memory") && !route.is_empty() && !key.is_empty();
        let status = match is_complete {
            false => 400,
            true => match self
                .caches
                .purge(self.dialect, &format!("routes/{route}"), store, key)
            {
                Purged::Forgotten => 200,
                // What is kept in memory is forgotten whether it is there or not.
                Purged::Nothing if store == "memory" => 200,
                Purged::Nothing | Purged::Unknown => 404,
                Purged::OtherStore => 400,
            },
        };
        match status {
            200 => Outcome::Reply(Box::new(Reply::new(200, "text/plain", ""))),
            status => {
                let kind = RefusalKind::Answered {
                    plugin: "metrics-endpoint",
                };
                Outcome::Refuse(Box::new(Refusal::with_status(kind, status)))
            }
        }
    }
}

impl Filter for EndpointFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let config = &self.config;
        if exchange.request.method == b"PURGE"
            && let Some(below) = &config.purge_below
            && let Some(place) = exchange.request.path.strip_prefix(below.as_bytes())
        {
            return self.purge(place);
        }
        if let Some(batches) = self.batches.as_ref().filter(|batches| batches.takes(exchange)) {
            return batches.on_request(exchange);
        }
        if let Some(outcome) = self.wolf.answer(exchange) {
            return outcome;
        }
        let is_it = |path: &String| path.as_bytes() == exchange.request.path;
        let reads = matches!(exchange.request.method.as_slice(), b"GET" | b"HEAD");
        let other = config
            .texts
            .iter()
            .find(|text| text.path.as_ref().is_none_or(is_it));
        if !(reads && (other.is_some() || config.path.as_ref().is_none_or(is_it))) {
            let kind = config.not_found_content_type.clone();
            return Outcome::Reply(Box::new(Reply::new(404, kind, config.not_found_body.clone())));
        }
        let (exposition, content_type) = match other {
            Some(text) => (text.exposition.clone(), text.content_type.clone()),
            None => (config.exposition.clone(), CONTENT_TYPE.to_owned()),
        };
        if let Some(making) = exchange.filter_state.take::<_, Making>(self) {
            let text = making.state().0.take();
            return Outcome::Reply(Box::new(match text {
                Some(text) => Reply::new(200, content_type, text),
                None => Reply::new(503, "text/plain", "the metrics took too long\n"),
            }));
        }
        let making = Making::default();
        let (registry, made) = (Arc::clone(&self.registry), Arc::downgrade(&making.0));
        self.registry.run(Box::new(move || {
            // A caller that has gone meanwhile needs no text.
            if let Some(made) = made.upgrade() {
                Making(made).finish(registry.render(&exposition));
            }
        }));
        exchange.filter_state.put(self, making.clone());
        Outcome::Suspend(Suspend::event(making, TIMEOUT))
    }
}
