//! A walk over all names: what is served builds, what is checked is kept with a warning, what is refused says why.

use super::*;
use serde_json::{Value, json};
use weir_dialect::Support;
use weir_model::{DialectName, Model, PluginRef, Severity};
use weir_plugin::EmptyContext;

/// Configurations of plugins that have required fields.
fn of_kong(name: &str) -> Value {
    let configs: Value = serde_json::from_str(include_str!("kong.json")).expect("JSON");
    configs.get(name).cloned().unwrap_or_else(|| json!({}))
}

/// The same for APISIX.
fn of_apisix(name: &str) -> Value {
    let configs: Value = serde_json::from_str(include_str!("apisix.json")).expect("JSON");
    configs.get(name).cloned().unwrap_or_else(|| json!({}))
}

/// Builds every instance of a model; returns what cannot be built.
fn build(model: &Model) -> Vec<String> {
    let registry = weir_plugins::registry();
    let inline = model.routes.iter().flat_map(|route| &route.plugins);
    let inline = inline.filter_map(|step| match step.plugin.as_ref()? {
        PluginRef::Inline(instance) => Some((&instance.name, &instance.config)),
        PluginRef::Shared(_) => None,
    });
    let shared = model.plugins.iter().map(|it| (&it.name, &it.config));
    let mut faults = Vec::new();
    for (name, config) in shared.chain(inline) {
        let empty = EmptyContext::default();
        let context = empty.of(name, DialectName::NATIVE);
        match registry.get(name).map(|plugin| plugin.build(config, &context)) {
            Some(Ok(_)) => {}
            Some(Err(found)) => faults.push(format!("{name}: {found:?}")),
            None => faults.push(format!("{name}: not in the catalogue")),
        }
    }
    faults
}

#[test]
fn every_name_of_kong_does_what_its_row_says() {
    for row in weir_kong::plugins::NAMES {
        let document = json!({
            "_format_version": "3.0",
            "vault_auth_vaults": [{"name": "vault", "host": "vault.example", "mount": "callers", "vault_token": "t"}],
            "services": [{
                "name": "s",
                "url": "http://127.0.0.1:1",
                "routes": [{"name": "r", "paths": ["/x"]}],
            }],
            "plugins": [{"name": row.name, "config": of_kong(row.name)}],
        });
        let made = weir_kong::translate(&document, &weir_kong::Options::default());
        let name = row.name;
        match (row.support, made) {
            (Support::Served(_) | Support::Idle(_), Ok((model, found))) => {
                assert!(
                    found.iter().all(|it| it.severity == Severity::Warning),
                    "{name}: {found:?}"
                );
                assert_eq!(build(&model), Vec::<String>::new(), "{name}");
            }
            (Support::Checked(_), Ok((_, found))) => {
                let refusal = format!("plugin \"{name}\" is not served by this version of Weir");
                assert!(
                    found.iter().any(|it| it.message.starts_with(&refusal)),
                    "{name}: {found:?}"
                );
            }
            (Support::Refused(reason), Err(found)) => {
                let refusal = format!("plugin \"{name}\" is not available in this version of Weir: {reason}");
                assert!(found.iter().any(|it| it.message == refusal), "{name}: {found:?}");
            }
            (support, made) => panic!("{name}: {support:?}, {:?}", made.map(|(_, found)| found)),
        }
    }
}

#[test]
fn every_name_of_apisix_does_what_its_row_says() {
    for row in weir_apisix::PLUGIN_NAMES {
        let name = row.name;
        let mut route = json!({
            "id": "r",
            "upstream": {"type": "roundrobin", "nodes": {"127.0.0.1:1": 1}},
            "plugins": {name: of_apisix(name)},
        });
        let section = match name == weir_apisix::MQTT_PROXY {
            true => "stream_routes",
            false => {
                route["uri"] = "/x".into();
                "routes"
            }
        };
        let document = json!({
            "protos": [{"id": "1", "content": "syntax = \"proto3\"; message A {} service S { rpc M(A) returns (A); }"}],
            section: [route],
        });
        let made = weir_apisix::translate(&document, &weir_apisix::Options::default());
        let (model, found) = made.unwrap_or_else(|found| panic!("{name}: {found:?}"));
        let of_plugin = |text: &str| found.iter().any(|it| it.message.contains(text));
        match row.support {
            Support::Served(_) | Support::Idle(_) => {
                assert!(
                    found.iter().all(|it| it.severity == Severity::Warning),
                    "{name}: {found:?}"
                );
                assert_eq!(build(&model), Vec::<String>::new(), "{name}");
            }
            Support::Checked(_) => {
                let refusal =
                    format!("plugin \"{name}\" is not available in this version of Weir; calls are ");
                assert!(of_plugin(&refusal), "{name}: {found:?}");
            }
            Support::Refused(reason) => assert!(of_plugin(reason), "{name}: {found:?}"),
        }
    }
}

#[test]
fn names_that_are_not_served_are_explained() {
    let asked = |names: &[&str]| {
        super::super::plugins(&PluginsArgs {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            json: false,
            page: false,
            originals: false,
        })
    };
    let output = asked(&["app-dynamics"]);
    assert_eq!(
        output.stdout,
        "app-dynamics (Kong, paid): refused\n  it needs the closed agent of AppDynamics\n"
    );
    assert!(asked(&["gm", "cors"]).stdout.contains("gm (APISIX): refused\n"));
    assert!(asked(&["gm", "cors"]).stdout.starts_with("cors: "));
    assert_eq!(asked(&["no-such"]).code, 1);
}
