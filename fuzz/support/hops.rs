//! Two gateways behind one another, for clients that say whatever bytes there are.

use serde_json::{Value, json};
use std::sync::Arc;
use weir_model::Model;
use weir_plugin::error_renderer::ErrorRenderer;
use weir_plugin::uri::NormalForm;
use weir_plugin::{Exchange, Refusal, Reply};
use weir_proxy::connection_fuzzing::{Hops, Upstreams};
use weir_snapshot::{PersistentState, Snapshot, compile};

/// Refusals as one word each.
struct Words;

impl ErrorRenderer for Words {
    fn render(&self, refusal: &Refusal, _: &Exchange) -> Reply {
        Reply::new(refusal.status, "text/plain", refusal.kind.as_str().to_owned())
    }

    fn normal_form(&self) -> NormalForm {
        NormalForm::Encoded
    }
}

thread_local! {
    static HOPS: Hops = hops();
}

/// What comes of a conversation with them.
pub fn hear(conversation: impl FnOnce(&Hops) -> Vec<u8>) -> Vec<u8> {
    HOPS.with(conversation)
}

/// Below `/1` and `/2` calls go on to the second over HTTP/1.1 and HTTP/2, below `/3` with their bodies held, below `/v`
/// they are answered after a look at the body; `/s` and `/t` go to an upstream that says what it is told to, over HTTP/1.1 and
/// HTTP/2; everything else has no route.
fn hops() -> Hops {
    let renderer: Arc<dyn ErrorRenderer> = Arc::new(Words);
    let plugin = |name: &str, config: Value| json!([{"use": {"name": name, "config": config}}]);
    let first = |Upstreams { second, scripted }: Upstreams| {
        let to = |path: &str, service: &str, plugins: Value| {
            json!({
                "name": path, "match": [{"path": format!("{path}*")}], "to": {"service": service}, "plugins": plugins,
            })
        };
        snapshot(json!({
            "services": [
                {"name": "one", "url": format!("http://{second}")},
                {"name": "two", "url": format!("h2c://{second}")},
                {"name": "scripted", "url": format!("http://{scripted}"), "retries": 0},
                {"name": "scripted-two", "url": format!("h2c://{scripted}"), "retries": 0},
            ],
            "routes": [
                to("/1", "one", json!([])),
                to("/2", "two", json!([])),
                to("/s", "scripted", json!([])),
                to("/t", "scripted-two", json!([])),
                to("/3", "one", plugin("request-buffering", json!({"enabled": true}))),
                {"name": "v", "match": [{"path": "/v*"}], "to": {"respond": {"status": 503}},
                    "plugins": plugin("request-validation", json!({"body_schema": {"type": "object"}, "max_body_bytes": 1000}))},
            ],
        }))
    };
    let second = snapshot(json!({
        "routes": [
            {"name": "all", "match": [{}], "to": {"respond": {"status": 503}}, "plugins": plugin("request-termination", json!({"status": 200, "echo": true}))},
        ],
    }));
    Hops::new(&renderer, first, second)
}

fn snapshot(model: Value) -> Snapshot {
    let model: Model = serde_json::from_value(model).expect("a model");
    let (snapshot, _) =
        compile(&model, &weir_plugins::registry(), &PersistentState::default()).expect("it can be served");
    snapshot
}
