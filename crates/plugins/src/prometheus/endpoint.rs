//! `metrics-endpoint`: answers calls with an exposition of `prometheus`.
//!
//! ```yaml
//! exposition: weir
//! ```
//!
//! The text is made off the workers, however long it is. Whoever may call the route reads names of services and of
//! consumers: put authentication or a restriction by address in front of it.

use super::Board;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, Reply, Wait, parse_config};

/// The type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// How long it may take to make the text.
const PATIENCE: Duration = Duration::from_secs(30);

/// Configuration of `metrics-endpoint`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EndpointConfig {
    /// The exposition.
    pub exposition: String,
    /// Only calls of this path are answered so; with any method but `GET` and `HEAD`, none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The body for other calls, whose status is 404.
    pub otherwise: String,
    /// Its type.
    pub otherwise_type: String,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            exposition: "weir".into(),
            path: None,
            otherwise: "not found\n".into(),
            otherwise_type: "text/plain; charset=utf-8".into(),
        }
    }
}

/// The plugin.
pub struct MetricsEndpoint(Arc<Board>);

impl MetricsEndpoint {
    /// Tells what is counted on this board.
    pub fn new(board: Arc<Board>) -> Self {
        Self(board)
    }
}

impl Plugin for MetricsEndpoint {
    fn name(&self) -> &'static str {
        "metrics-endpoint"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(EndpointConfig)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: EndpointConfig = parse_config(config)?;
        Ok(Arc::new(EndpointFilter {
            board: Arc::clone(&self.0),
            config,
        }))
    }
}

struct EndpointFilter {
    board: Arc<Board>,
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

impl Filter for EndpointFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let config = &self.config;
        let is_it = |path: &String| path.as_bytes() == exchange.request.path;
        let reads = matches!(exchange.request.method.as_slice(), b"GET" | b"HEAD");
        if !(reads && config.path.as_ref().is_none_or(is_it)) {
            let kind = config.otherwise_type.clone();
            return Outcome::Reply(Box::new(Reply::new(404, kind, config.otherwise.clone())));
        }
        if let Some(making) = exchange.kept.take::<_, Making>(self) {
            let text = making.state().0.take();
            return Outcome::Reply(Box::new(match text {
                Some(text) => Reply::new(200, CONTENT_TYPE, text),
                None => Reply::new(503, "text/plain", "the metrics took too long\n"),
            }));
        }
        let making = Making::default();
        let (board, made) = (Arc::clone(&self.board), Arc::downgrade(&making.0));
        let exposition = config.exposition.clone();
        self.board.run(Box::new(move || {
            // A caller that has gone meanwhile needs no text.
            if let Some(made) = made.upgrade() {
                Making(made).finish(board.render(&exposition));
            }
        }));
        exchange.kept.put(self, making.clone());
        Outcome::Wait(Wait::event(making, PATIENCE))
    }
}
