//! A small catalogue, and calls from texts.
#![allow(dead_code, reason = "each test file uses a part of it")]

use serde_json::{Value, json};
use std::sync::Arc;
use weir_model::{Diagnostic, DocPath, Model, UpstreamHost};
use weir_plugin::{BuildContext, CredentialKind, Exchange, Filter, Phases, Plugin, Registry, system_clock};
use weir_snapshot::{PersistentState, Snapshot, compile};

/// A plugin whose configuration says in which phases it works: `request`, `response`.
struct Phased;

struct PhasedFilter(Phases);

impl Filter for PhasedFilter {
    fn phases(&self) -> Phases {
        self.0
    }
}

impl Plugin for Phased {
    fn name(&self) -> &'static str {
        "phased"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::Schema::default()
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let mut phases = Phases::default();
        for (name, value) in config.as_object().into_iter().flatten() {
            match name.as_str() {
                "request" => phases.request = value == true,
                "response" => phases.response = value == true,
                "wants_consumer" if context.consumer(value.as_str().unwrap_or_default()).is_some() => {}
                "indexes" => {
                    context.credential_index("phased", |credential| {
                        let key = credential.get("key")?.as_str()?;
                        Some((key.as_bytes().to_vec(), ()))
                    });
                }
                "sends_to" => {
                    let host: UpstreamHost =
                        serde_json::from_value(value["host"].clone()).unwrap_or_default();
                    context.destination(value["service"].as_str().unwrap_or_default(), &host);
                }
                other => {
                    let place = DocPath::root().field(other);
                    return Err(vec![Diagnostic::error(place, "not expected here")]);
                }
            }
        }
        Ok(Arc::new(PhasedFilter(phases)))
    }

    fn credentials(&self) -> Option<CredentialKind> {
        Some(CredentialKind {
            identities: &["key"],
            schema: schemars::Schema::default(),
            check: |config| match config.get("key") {
                Some(Value::String(_)) => Ok(()),
                _ => Err(vec![Diagnostic::error(
                    DocPath::root().field("key"),
                    "expected a text",
                )]),
            },
        })
    }
}

/// A plugin without credentials that works in no phase.
struct Idle;

impl Plugin for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::Schema::default()
    }

    fn build(&self, _: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        Ok(Arc::new(PhasedFilter(Phases::default())))
    }
}

pub fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add(Phased);
    registry.add(Idle);
    registry
}

pub fn model(text: Value) -> Model {
    serde_json::from_value(text).expect("a model")
}

/// Compiles a model that is good.
pub fn snapshot(text: Value) -> Snapshot {
    match compile(&model(text), &registry(), &PersistentState::default()) {
        Ok((snapshot, _)) => snapshot,
        Err(found) => panic!("{found:?}"),
    }
}

/// What is wrong with a model, as `path: message`.
pub fn errors(text: Value) -> Vec<String> {
    match compile(&model(text), &registry(), &PersistentState::default()) {
        Ok(_) => Vec::new(),
        Err(found) => found
            .iter()
            .map(|it| format!("{}: {}", it.path, it.message))
            .collect(),
    }
}

/// Routes that lead nowhere, one for each match, named by their positions.
pub fn routes_of(matches: &[Value]) -> Value {
    let routes = matches.iter().enumerate();
    let routes: Vec<Value> = routes
        .map(|(index, it)| json!({"name": index.to_string(), "match": [it], "to": {"respond": {"status": 503}}}))
        .collect();
    json!({ "routes": routes })
}

/// A call: `METHOD host[:port]/path [name: value]…`, in words parted by `|`.
pub fn call(text: &str) -> Exchange {
    let mut exchange = Exchange::new(system_clock, 1);
    let mut words = text.split('|').map(str::trim);
    let (method, target) = words
        .next()
        .and_then(|it| it.split_once(' '))
        .expect("a method and a target");
    let (authority, path) = match target.find('/') {
        Some(slash) => target.split_at(slash),
        None => (target, ""),
    };
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port.parse().expect("a port"))),
        None => (authority, None),
    };
    let (path, query) = path
        .split_once('?')
        .map_or((path, None), |(path, query)| (path, Some(query)));
    let request = &mut exchange.request;
    request.method = method.into();
    request.host = host.into();
    request.host_port = port;
    request.path = path.into();
    request.raw_path = path.into();
    request.query = query.map(Into::into);
    for word in words {
        match word
            .split_once(':')
            .map(|(name, value)| (name, value.trim()))
            .expect("a header")
        {
            ("client", address) => request.client = address.parse().expect("an address"),
            ("sni", name) => {
                request.is_tls = true;
                request.sni = (!name.is_empty()).then(|| name.into());
            }
            (name, value) => request.headers.append(name.as_bytes(), value.as_bytes()),
        }
    }
    exchange
}
