//! A gateway within the test's process.

use super::filter::Puppet;
use super::wire::Wire;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;
use weir_model::Model;
use weir_plugin::error_renderer::ErrorRenderer;
use weir_plugin::uri::NormalForm;
use weir_plugin::{Exchange, Refusal, RefusalKind, Registry, Reply};
use weir_proxy::{ErrorRenderers, Gateway, GatewayOptions, NameServers};
use weir_snapshot::{PersistentState, Snapshot, compile};
use weir_telemetry::metrics;

/// A running gateway. When it is dropped, it is drained, and a panic of any worker fails the test.
pub struct TestGateway {
    gateway: Option<Gateway>,
    persistent: PersistentState,
    metrics: Arc<metrics::Registry>,
    pub address: SocketAddr,
}

/// Refusals as one word each, with the reason for bad requests.
struct PlainRenderer;

impl ErrorRenderer for PlainRenderer {
    fn render(&self, refusal: &Refusal, _: &Exchange) -> Reply {
        let body = match refusal.kind {
            RefusalKind::BadRequest(reason) => format!("{}: {reason}", refusal.kind.as_str()),
            _ => refusal.kind.as_str().to_owned(),
        };
        Reply::new(refusal.status, "text/plain", body)
    }

    fn normal_form(&self) -> NormalForm {
        NormalForm::Unambiguous
    }
}

/// What workers panicked about, but on purpose.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn watch_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if std::thread::current()
                .name()
                .is_some_and(|name| name.starts_with("weir-"))
                && !info.to_string().contains(super::ON_PURPOSE)
            {
                PANICS.lock().unwrap().push(info.to_string());
            }
            usual(info);
        }));
    });
}

impl TestGateway {
    /// Starts a gateway with one worker that forwards every call to this upstream.
    pub fn to(upstream: SocketAddr) -> Self {
        Self::start(simple_model(upstream))
    }

    /// Starts a gateway with one worker.
    pub fn start(model: Value) -> Self {
        Self::with(model, |_| ())
    }

    /// Starts a gateway whose options `change` has changed.
    pub fn with(model: Value, change: impl FnOnce(&mut GatewayOptions)) -> Self {
        watch_for_panics();
        let renderer: Arc<dyn ErrorRenderer> = Arc::new(PlainRenderer);
        let mut options = GatewayOptions {
            listen: vec![(Ipv4Addr::LOCALHOST, 0).into()],
            listen_tls: Vec::new(),
            listen_streams: Vec::new(),
            proxy_protocol: None,
            fallback_tls: None,
            http3: None,
            workers: 1,
            limits: weir_proxy::Limits::default(),
            drain_timeout: Duration::from_millis(50),
            error_renderers: ErrorRenderers {
                all: Vec::new(),
                fallback: renderer,
            },
            name_servers: NameServers::System,
            passive_ejection: Duration::from_secs(60),
            calls: None,
        };
        if crate::OVER_TLS {
            options.listen_tls = std::mem::take(&mut options.listen);
            options.fallback_tls = Some(super::tls::server());
        }
        change(&mut options);
        let metrics = Arc::new(metrics::Registry::new(metrics::RegistryOptions::default()));
        let persistent = PersistentState::default();
        persistent.set_zone(super::ZONE.to_owned());
        let snapshot = snapshot(model, &persistent);
        let gateway = Gateway::start(options, Arc::clone(&metrics), None, snapshot).unwrap();
        let bound = gateway.bound();
        let address = if crate::OVER_TLS {
            bound.tls[0]
        } else {
            bound.plain[0]
        };
        Self {
            gateway: Some(gateway),
            persistent,
            metrics,
            address,
        }
    }

    /// A new connection to the gateway.
    pub fn connect(&self) -> Wire {
        Wire::to_gateway(self.address)
    }

    /// The gateway itself.
    pub fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().expect("a running gateway")
    }

    /// What workers have counted.
    #[allow(dead_code, reason = "few tests ask")]
    pub fn totals(&self) -> metrics::Totals {
        self.metrics.totals()
    }

    /// The text of a scrape.
    #[allow(dead_code, reason = "few tests ask")]
    pub fn exposition(&self) -> String {
        let mut text = String::new();
        self.metrics.render(&mut text).unwrap();
        text
    }

    /// Serves another model from now on.
    pub fn publish(&self, model: Value) {
        self.gateway().publish(snapshot(model, &self.persistent));
    }

    /// Begins to drain on a thread of its own, which ends with the gateway.
    pub fn drain(mut self) -> std::thread::JoinHandle<()> {
        let gateway = self.gateway.take().expect("a running gateway");
        std::thread::spawn(move || gateway.drain())
    }
}

impl Drop for TestGateway {
    fn drop(&mut self) {
        if let Some(gateway) = self.gateway.take() {
            gateway.drain();
        }
        if !std::thread::panicking() {
            let panics = PANICS.lock().unwrap();
            assert!(panics.is_empty(), "workers panicked: {panics:?}");
        }
    }
}

fn snapshot(model: Value, persistent: &PersistentState) -> Snapshot {
    let model: Model = serde_json::from_value(model).expect("a model");
    let mut registry = Registry::default();
    registry.add(Puppet);
    let (snapshot, _) =
        compile(&model, &registry, persistent).unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"));
    snapshot
}

/// One route that takes every call to a service at this address.
pub fn simple_model(upstream: SocketAddr) -> Value {
    json!({
        "services": [{"name": "service", "url": format!("http://{upstream}")}],
        "routes": [{"name": "route", "match": [{}], "to": {"service": "service"}}],
    })
}

/// Puts the fields of `changes` into `value`, member by member; lists and plain values are replaced, but an
/// object stands for changes to the first item of a list.
pub fn patch(mut value: Value, changes: &Value) -> Value {
    apply(&mut value, changes);
    value
}

fn apply(value: &mut Value, changes: &Value) {
    match (value, changes) {
        (Value::Object(members), Value::Object(changes)) => {
            for (name, change) in changes {
                match members.get_mut(name) {
                    Some(member) => apply(member, change),
                    None => {
                        members.insert(name.clone(), change.clone());
                    }
                }
            }
        }
        (Value::Array(items), Value::Object(_)) if !items.is_empty() => apply(&mut items[0], changes),
        (value, change) => *value = change.clone(),
    }
}
