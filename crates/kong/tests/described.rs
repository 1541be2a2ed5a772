//! Plugins that are described, but not served: their instances are accepted, and reported as left out. If one decides
//! who gets in or who answers, calls are refused.

use serde_json::{Value, json};
use weir_kong::incremental::IncrementalModel;
use weir_kong::{Options, translate};
use weir_model::{Model, PluginRef, Severity};

fn model(plugin: &str, config: &Value) -> (Model, Vec<String>) {
    let document = json!({
        "_format_version": "3.0",
        "services": [{
            "name": "s",
            "url": "http://127.0.0.1:1",
            "routes": [{ "name": "r", "paths": ["/x"] }],
        }],
        "plugins": [{ "name": plugin, "config": config }],
    });
    let (model, found) = translate(&document, &Options::default()).expect("is accepted");
    assert!(
        found.iter().all(|it| it.severity == Severity::Warning),
        "{found:?}"
    );
    (model, found.into_iter().map(|it| it.message).collect())
}

/// The statuses with which the plugins of a route's chain answer by themselves.
fn refusals(model: &Model) -> Vec<u64> {
    let uses = model.routes.iter().flat_map(|route| &route.plugins);
    uses.filter_map(|step| match step.plugin.as_ref()? {
        PluginRef::Inline(instance) => instance.config["status"].as_u64(),
        PluginRef::Shared(id) => {
            let instance = model.plugins.iter().find(|it| it.id == *id)?;
            instance.config["status"].as_u64()
        }
    })
    .collect()
}

#[test]
fn who_decides_about_access_refuses_and_others_are_passed_by() {
    let table: [(&str, Value, &[u64]); 5] = [
        (
            "ai-prompt-template",
            json!({ "templates": [{ "name": "a", "template": "{}" }] }),
            &[503],
        ),
        ("ai-prompt-guard", json!({ "deny_patterns": ["x"] }), &[503]),
        ("pre-function", json!({ "access": ["return"] }), &[503]),
        ("post-function", json!({ "log": ["return"] }), &[]),
        (
            "ai-prompt-decorator",
            json!({ "prompts": { "append": [{ "role": "user", "content": "x" }] } }),
            &[503],
        ),
    ];
    for (plugin, config, expected) in table {
        let (model, warnings) = model(plugin, &config);
        assert_eq!(refusals(&model), expected, "{plugin}");
        let consequence = if expected.is_empty() {
            "calls pass as if it was not there"
        } else {
            "calls that come to it are refused"
        };
        let warning = format!("plugin \"{plugin}\" is not served by this version of Weir: {consequence}");
        assert_eq!(warnings, [warning], "{plugin}");
    }
}

#[test]
fn instances_in_a_store_are_reported() {
    let mut stored = IncrementalModel::new(Options::default());
    let keys = [
        ("ai-prompt-guard", "00000000-0000-4000-8000-000000000001", true),
        ("pre-function", "00000000-0000-4000-8000-000000000002", true),
        (
            "ai-prompt-template",
            "00000000-0000-4000-8000-000000000003",
            false,
        ),
        ("cors", "00000000-0000-4000-8000-000000000004", true),
    ];
    for (name, id, enabled) in keys {
        let config = match name {
            "ai-prompt-guard" => json!({ "deny_patterns": ["x"] }),
            "ai-prompt-template" => json!({ "templates": [{ "name": "a", "template": "{}" }] }),
            "pre-function" => json!({ "access": ["return"] }),
            _ => json!({}),
        };
        let document = json!({ "id": id, "name": name, "enabled": enabled, "config": config });
        let bytes = serde_json::to_vec(&document).expect("JSON");
        stored.apply(&format!("default/plugins/{id}"), Some(&bytes));
    }
    let (_, broken) = stored.model();
    assert!(broken.is_empty(), "{broken:?}");
    let mut reasons: Vec<String> = stored.warnings().into_iter().map(|it| it.reason).collect();
    reasons.sort();
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    for (reason, name, end) in [
        (&reasons[0], "ai-prompt-guard", "are refused"),
        (&reasons[1], "pre-function", "are refused"),
    ] {
        assert!(
            reason.starts_with(&format!("plugin \"{name}\" is not served")) && reason.ends_with(end),
            "{reasons:?}"
        );
    }
}
