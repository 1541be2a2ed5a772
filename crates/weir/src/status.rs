//! The status listener: `/status`, `/status/ready` and `/metrics`. Read-only, off the workers.

mod readiness;

use crate::certificates;
use crate::clock::unix_seconds;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use readiness::ReadinessFacts;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use weir_control::acme::AcmeStatus;
use weir_control::api::Json;
use weir_control::follow::{Contact, StateHandle};
use weir_control::listen::{self, Bounds};
use weir_dialect::{DialectName, Exposition, Revisions};
use weir_plugins::prometheus::MetricRegistry;
use weir_proxy::{Gateway, StreamListen};
use weir_snapshot::{Snapshot, StreamTransport};
use weir_telemetry::metrics::Registry;

/// A gateway, and what is known of its configuration.
pub struct Status {
    /// Empty until there is something to serve; always empty if the process serves no calls.
    gateway: OnceLock<Gateway>,
    /// The state of the store that the process follows, if it follows one.
    followed: OnceLock<StateHandle>,
    /// That store in words.
    source: OnceLock<String>,
    /// Whether that store outlives the process.
    is_store_kept: AtomicBool,
    /// The state of certificates that authorities sign on demand, if this process may order them.
    acme: OnceLock<AcmeStatus>,
    /// The revisions of Admin APIs for the metrics, by dialect.
    revisions: Mutex<Vec<(DialectName, Arc<dyn Revisions>)>>,
    metrics: Arc<Registry>,
    /// The metrics of plugins for Prometheus.
    plugin_metrics: Arc<MetricRegistry>,
    published: Notify,
    is_draining: AtomicBool,
    /// Whether a control plane has taken the gateway out.
    is_drained: AtomicBool,
    /// Whether Admin APIs wait for their first read of the store.
    awaits_admin: AtomicBool,
    /// Whether there will be no gateway.
    is_control_plane: bool,
    last_load: Mutex<LastLoad>,
}

/// The outcome of the last attempt to load.
#[derive(Default)]
struct LastLoad {
    /// When, in seconds since the Unix epoch.
    at: u64,
    /// Why it was refused; `None`: it is served.
    refusal: Option<String>,
    /// The notes about the files that are served.
    notes: Vec<String>,
}

impl Status {
    /// The status of a process that serves nothing yet.
    pub fn new(metrics: Arc<Registry>, plugin_metrics: Arc<MetricRegistry>, is_control_plane: bool) -> Self {
        Self {
            is_control_plane,
            gateway: OnceLock::new(),
            followed: OnceLock::new(),
            source: OnceLock::new(),
            is_store_kept: AtomicBool::new(false),
            acme: OnceLock::new(),
            revisions: Mutex::default(),
            metrics,
            plugin_metrics,
            published: Notify::new(),
            is_draining: AtomicBool::new(false),
            is_drained: AtomicBool::new(false),
            awaits_admin: AtomicBool::new(false),
            last_load: Mutex::default(),
        }
    }

    /// The gateway, once there is something to serve.
    pub fn gateway(&self) -> Option<&Gateway> {
        self.gateway.get()
    }

    /// The metrics.
    pub fn metrics(&self) -> &Registry {
        &self.metrics
    }

    /// The metrics of plugins for Prometheus.
    pub fn plugin_metrics(&self) -> &Arc<MetricRegistry> {
        &self.plugin_metrics
    }

    /// Whether the followed store can be reached; `None` if the store is in memory or only files are served.
    pub fn reaches_store(&self) -> Option<bool> {
        let followed = self.followed.get()?;
        let is_kept = self.is_store_kept.load(Ordering::Relaxed);
        is_kept.then(|| followed.state().contact == Contact::Following)
    }

    /// The revisions of a dialect's Admin API, for the metrics.
    pub fn revisions(&self, dialect: DialectName) -> Vec<(&'static str, u64)> {
        let known = self.revisions.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|(name, _)| *name == dialect).cloned();
        drop(known);
        found.map_or(Vec::new(), |(_, revisions)| revisions.revisions())
    }

    /// The Admin API of a dialect is open.
    pub fn set_revisions(&self, dialect: DialectName, revisions: Arc<dyn Revisions>) {
        let mut known = self.revisions.lock().unwrap_or_else(PoisonError::into_inner);
        known.push((dialect, revisions));
    }

    /// There is something to serve.
    pub fn set_gateway(&self, gateway: Gateway) {
        // It is started once.
        let _is_first = self.gateway.set(gateway);
    }

    /// A store is followed, which is called `source`. `is_kept`: it outlives the process.
    pub fn set_followed(&self, followed: StateHandle, is_kept: bool, source: String) {
        let _is_first = self.source.set(source);
        self.is_store_kept.store(is_kept, Ordering::Relaxed);
        // There is one.
        let _is_first = self.followed.set(followed);
    }

    /// Certificates may be got.
    pub fn set_acme(&self, status: AcmeStatus) {
        // There is one.
        let _is_first = self.acme.set(status);
    }

    /// Serves another snapshot. Returns its generation.
    pub fn publish(&self, snapshot: Snapshot) -> u64 {
        let generation = self.gateway().map_or(0, |gateway| gateway.publish(snapshot));
        self.published.notify_one();
        generation
    }

    /// Waits for another snapshot. One task at a time may wait.
    pub async fn next_publication(&self) {
        self.published.notified().await;
    }

    /// Frees snapshots that no worker holds any more; whether there are others.
    pub fn free_retired(&self) -> bool {
        self.gateway().is_some_and(Gateway::free_retired)
    }

    /// There are Admin APIs, which answer once they have read the store.
    pub fn await_admin(&self) {
        self.awaits_admin.store(true, Ordering::Release);
    }

    /// The Admin APIs have read the store.
    pub fn admin_is_open(&self) {
        self.awaits_admin.store(false, Ordering::Release);
    }

    /// From now on the gateway is not ready.
    pub fn drain(&self) {
        self.is_draining.store(true, Ordering::Release);
    }

    /// A control plane takes the gateway out, or back. As long as it is out it is not ready, and answers what comes.
    pub fn set_drained(&self, is_drained: bool) {
        self.is_drained.store(is_drained, Ordering::Release);
    }

    /// Notes about what files say, until others take their place.
    pub fn set_notes(&self, notes: Vec<String>) {
        self.last_load().notes = notes;
    }

    /// Notes that a configuration is served.
    pub fn served(&self) {
        let now = unix_seconds();
        if let Some(published) = self.gateway().map(Gateway::published) {
            self.metrics
                .reload_succeeded(published.generation, &hash_text(published.snapshot.hash), now);
        }
        let mut last = self.last_load();
        last.at = now;
        last.refusal = None;
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

    /// The line that says that all is ready, with the addresses.
    pub fn ready_line(&self, status_address: SocketAddr, others: &[(String, String)]) -> String {
        let mut line = match self.gateway() {
            Some(gateway) => {
                let bound = gateway.bound();
                let plain = bound.plain.iter().map(|address| format!("http://{address}"));
                let tls = bound.tls.iter().map(|address| format!("https://{address}"));
                let streams = bound.streams.iter().map(stream_address);
                let published = gateway.published();
                let routes = published.snapshot.routes.len() + published.snapshot.streams.routes.len();
                format!(
                    "ready: {routes} route{} on {}",
                    if routes == 1 { "" } else { "s" },
                    plain.chain(tls).chain(streams).collect::<Vec<_>>().join(" and ")
                )
            }
            None => "ready: control plane".to_owned(),
        };
        line.push_str(&format!(", status on http://{status_address}/status"));
        for (name, url) in others {
            line.push_str(&format!(", {name} on {url}"));
        }
        line
    }

    fn state(&self) -> &'static str {
        self.facts().state()
    }

    /// Whether all that this process does goes on.
    fn is_ready(&self) -> bool {
        matches!(self.state(), "serving" | "managing")
    }

    /// Why it is not ready.
    fn unready(&self) -> Value {
        let mut answer = json!({ "ready": false, "reason": self.state() });
        let followed = self.followed.get().map(StateHandle::state);
        let awaited = followed.filter(|it| it.served_at.is_none() && it.refusal.is_none());
        if let (Some(state), Some(source)) = (awaited, self.source.get()) {
            answer["waits_for"] = source.as_str().into();
            if let Contact::Unreachable { reason, .. } = &state.contact {
                answer["unreachable_reason"] = reason.as_str().into();
            }
        }
        answer
    }

    fn facts(&self) -> ReadinessFacts {
        let followed = self.followed.get().map(StateHandle::state);
        ReadinessFacts {
            is_draining: self.is_draining.load(Ordering::Acquire) || self.is_drained.load(Ordering::Acquire),
            is_control_plane: self.is_control_plane,
            has_gateway: self.gateway().is_some(),
            is_served: followed.as_ref().is_some_and(|it| it.served_at.is_some()),
            is_last_known_good: followed.is_some_and(|it| it.is_last_known_good),
            awaits_admin: self.awaits_admin.load(Ordering::Acquire),
        }
    }

    fn to_json(&self) -> Value {
        let published = self.gateway().map(Gateway::published);
        let totals = self.metrics.totals();
        let last = self.last_load();
        let mut status = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "state": self.state(),
            "listeners": self.gateway().map_or(&[][..], |gateway| gateway.bound().plain.as_slice()),
            "tls_listeners": self.gateway().map_or(&[][..], |gateway| gateway.bound().tls.as_slice()),
            "http3_listeners": self.gateway().map_or(&[][..], |gateway| gateway.bound().http3.as_slice()),
            "stream_listeners": self.gateway().map_or(Vec::new(), |gateway| {
                gateway.bound().streams.iter().map(stream_address).collect()
            }),
            "configuration": published.map(|published| json!({
                "generation": published.generation,
                "hash": hash_text(published.snapshot.hash),
                "routes": published.snapshot.routes.len(),
                "stream_routes": published.snapshot.streams.routes.len(),
                "upstreams": published.snapshot.upstreams.len(),
                "notes": last.notes,
            })),
            "last_load": {
                "at": last.at,
                "ok": last.refusal.is_none(),
                "error": last.refusal,
            },
            "connections": { "active": totals.connections_active, "accepted": totals.connections_accepted },
            "requests": totals.requests,
        });
        if let Some(published) = self.gateway().map(Gateway::published) {
            status["certificates"] = certificates::to_json(&published.snapshot.tls);
        }
        if let Some(acme) = self
            .acme
            .get()
            .map(AcmeStatus::entries)
            .filter(|it| !it.is_empty())
        {
            status["acme"] = json!(acme);
        }
        if let Some(followed) = self.followed.get() {
            status["store"] = followed.state().to_json();
        }
        status
    }
}

/// The address of a listener for streams, as a URL.
fn stream_address(listen: &StreamListen) -> String {
    let scheme = match listen.transport {
        StreamTransport::Tcp => "tcp",
        StreamTransport::Tls => "tls",
        StreamTransport::Udp => "udp",
    };
    format!("{scheme}://{}", listen.address)
}

fn hash_text(hash: u64) -> String {
    format!("{hash:016x}")
}

/// The paths of the status listener.
const STATUS: &str = "/status";
const READY: &str = "/status/ready";
const METRICS: &str = "/metrics";

/// Serves the status until the task is ended, and these expositions at their paths, unless something else is there.
pub fn serve(
    listener: TcpListener,
    status: Arc<Status>,
    expositions: &[Exposition],
) -> impl Future<Output = ()> + use<> {
    let mut router = Router::new()
        .route(
            STATUS,
            routing::get(async |State(status): State<Arc<Status>>| Json(status.to_json())),
        )
        .route(READY, routing::get(ready))
        .route(METRICS, routing::get(metrics));
    let mut taken = vec![STATUS, READY, METRICS];
    for Exposition { name, path } in expositions.iter().copied() {
        let Some(path) = path.filter(|path| !taken.contains(path)) else {
            continue;
        };
        taken.push(path);
        let counted = move |State(status): State<Arc<Status>>| async move {
            exposition(status.plugin_metrics.render(name))
        };
        router = router.route(path, routing::get(counted));
    }
    let router = router.with_state(status);
    async {
        // It is the last to end: until then it shows that the process drains.
        let (_never, draining) = tokio::sync::watch::channel(false);
        listen::serve(listener, router, Bounds::default(), draining).await;
    }
}

async fn ready(State(status): State<Arc<Status>>) -> Response {
    if status.is_ready() {
        return Json(json!({ "ready": true })).into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, Json(status.unready())).into_response()
}

async fn metrics(State(status): State<Arc<Status>>) -> Response {
    let mut text = String::new();
    if let Some(state) = status.followed.get().map(StateHandle::state) {
        let is_connected = state.contact == Contact::Following;
        status.metrics.store_followed(state.skipped.len(), is_connected);
    }
    if let Some(published) = status.gateway().map(Gateway::published) {
        let left = certificates::seconds_left(&published.snapshot.tls);
        status.metrics.certificates_end(left);
    }
    match status.metrics.render(&mut text) {
        Ok(()) => {
            text.push_str(&status.plugin_metrics.render_all());
            exposition(text)
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Text as Prometheus reads it.
fn exposition(text: String) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}
