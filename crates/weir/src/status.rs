//! The status listener: `/status`, `/status/ready` and `/metrics`. Read-only, off the workers.

use crate::run::unix_seconds;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use axum::{Router, routing};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::TcpListener;
use weir_proxy::Gateway;
use weir_telemetry::metrics::Registry;

/// A gateway, and what is known of its configuration.
pub struct Status {
    gateway: Gateway,
    metrics: Arc<Registry>,
    is_draining: AtomicBool,
    last_load: Mutex<LastLoad>,
}

/// What came of the last attempt to load.
#[derive(Default)]
struct LastLoad {
    /// When, in seconds since the Unix epoch.
    at: u64,
    /// Why it was refused; `None`: it is served.
    refusal: Option<String>,
    /// What was to be said about the configuration that is served.
    notes: Vec<String>,
}

impl Status {
    /// The status of a gateway that has just started.
    pub fn new(gateway: Gateway, metrics: Arc<Registry>) -> Self {
        Self {
            gateway,
            metrics,
            is_draining: AtomicBool::new(false),
            last_load: Mutex::default(),
        }
    }

    /// The gateway.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// From now on the gateway is not ready.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Release);
    }

    /// Notes that a configuration is served.
    pub fn served(&self, notes: Vec<String>) {
        let now = unix_seconds();
        let published = self.gateway.published();
        self.metrics
            .reload_succeeded(published.generation, &hash_text(published.snapshot.hash), now);
        *self.last_load() = LastLoad {
            at: now,
            refusal: None,
            notes,
        };
    }

    /// Notes that a configuration was refused.
    pub fn refused(&self, report: String) {
        let now = unix_seconds();
        self.metrics.reload_failed(now);
        let mut last = self.last_load();
        last.at = now;
        last.refusal = Some(report);
    }

    fn last_load(&self) -> std::sync::MutexGuard<'_, LastLoad> {
        self.last_load.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The line that tells that the gateway serves, and where.
    pub fn ready_line(&self, status_address: SocketAddr) -> String {
        let published = self.gateway.published();
        let listeners: Vec<String> = self.gateway.bound().0.iter().map(SocketAddr::to_string).collect();
        format!(
            "ready: {} routes on http://{}, status on http://{status_address}/status",
            published.snapshot.routes.len(),
            listeners.join(" and http://"),
        )
    }

    fn to_json(&self) -> Value {
        let published = self.gateway.published();
        let totals = self.metrics.totals();
        let last = self.last_load();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "state": if self.is_draining.load(Ordering::Acquire) { "draining" } else { "serving" },
            "listeners": self.gateway.bound().0,
            "configuration": {
                "generation": published.generation,
                "hash": hash_text(published.snapshot.hash),
                "routes": published.snapshot.routes.len(),
                "upstreams": published.snapshot.upstreams.len(),
                "notes": last.notes,
            },
            "last_load": {
                "at": last.at,
                "ok": last.refusal.is_none(),
                "error": last.refusal,
            },
            "connections": { "active": totals.connections_active, "accepted": totals.connections_accepted },
            "requests": totals.requests,
        })
    }
}

fn hash_text(hash: u64) -> String {
    format!("{hash:016x}")
}

/// Serves the status until the task is ended.
pub async fn serve(listener: TcpListener, status: Arc<Status>) {
    let router = Router::new()
        .route(
            "/status",
            routing::get(async |State(status): State<Arc<Status>>| Json(status.to_json())),
        )
        .route("/status/ready", routing::get(ready))
        .route("/metrics", routing::get(metrics))
        .with_state(status);
    if let Err(error) = axum::serve(listener, router).await {
        tracing::error!(%error, "the status listener has failed");
    }
}

async fn ready(State(status): State<Arc<Status>>) -> Response {
    if status.is_draining.load(Ordering::Acquire) {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            Json(json!({ "ready": false, "reason": "draining" })),
        )
            .into_response()
    } else {
        Json(json!({ "ready": true })).into_response()
    }
}

async fn metrics(State(status): State<Arc<Status>>) -> Response {
    let mut text = String::new();
    match status.metrics.render(&mut text) {
        Ok(()) => (
            [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
            text,
        )
            .into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
