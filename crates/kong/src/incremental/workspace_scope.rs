//! Names of a workspace's resources that no other workspace has.

use super::name_in;
use serde_json::Value;
use std::sync::Arc;
use weir_model::{
    Acme, ChainStep, Consumer, ConsumerTable, PluginInstance, PluginRef, Route, RouteTarget, Service,
    Upstream,
};

/// Gives a service of a workspace a name of its own.
pub fn qualify_service(service: &mut Service, workspace: &str) {
    prefix(&mut service.name, workspace);
    if let Some(upstream) = &mut service.upstream {
        prefix(upstream, workspace);
    }
}

/// Gives an upstream of a workspace a name of its own.
pub fn qualify_upstream(upstream: &mut Upstream, workspace: &str) {
    prefix(&mut upstream.name, workspace);
    let checks = upstream.checks.as_mut();
    if let Some(owner) = checks.and_then(|checks| checks.shared_with.as_mut()) {
        prefix(owner, workspace);
    }
}

/// A route, without its chain, under a name of its own if it is one of a workspace.
pub fn qualify_route(mut route: Route, workspace: Option<&str>) -> Route {
    if let Some(workspace) = workspace {
        prefix(&mut route.name, workspace);
        if let RouteTarget::Service(service) = &mut route.target {
            prefix(service, workspace);
        }
    }
    route
}

/// Has only the workspace's own plugins know these consumers, and gives them ids of their own.
pub fn qualify_consumers(consumers: &mut [Consumer], workspace: &Arc<str>) {
    for consumer in consumers {
        prefix(&mut consumer.id, workspace);
        consumer.workspace = Some(Arc::clone(workspace));
    }
}

/// Makes a plugin know the workspace's consumers only, and gives it an id, to which its state belongs, of its own.
fn qualify_plugin(plugin: &mut PluginInstance, workspace: &Arc<str>) {
    prefix(&mut plugin.id, workspace);
    if let Some(state) = &mut plugin.state {
        prefix(state, workspace);
    }
    qualify_config(plugin, workspace);
    plugin.workspace = Some(Arc::clone(workspace));
}

/// Makes a plugin name the workspace's own upstreams, stores of responses and counts.
fn qualify_config(plugin: &mut PluginInstance, workspace: &str) {
    let names: Vec<&mut Value> = match plugin.name.as_str() {
        "canary" => plugin.config.get_mut("upstream").into_iter().collect(),
        "proxy-cache" => plugin.config.get_mut("zone").into_iter().collect(),
        "rate-limit" => plugin.config.get_mut("scope").into_iter().collect(),
        "route-by-header" => {
            let rules = plugin.config.get_mut("rules").and_then(Value::as_array_mut);
            let rules = rules.into_iter().flatten();
            rules.filter_map(|rule| rule.get_mut("upstream")).collect()
        }
        // The name is known at a call: it is made of this and a value.
        "orchestration" => {
            let nodes = plugin.config.get_mut("nodes").and_then(Value::as_array_mut);
            let properties = nodes
                .into_iter()
                .flatten()
                .filter_map(|node| node.get_mut("property"));
            properties
                .filter_map(|property| property.get_mut("prefix"))
                .collect()
        }
        _ => return,
    };
    for name in names {
        if let Value::String(name) = name {
            prefix(name, workspace);
        }
    }
}

/// Gives names of their own to the parts that chains share, to their content, and to entries for certificates.
pub fn qualify_parts(
    plugins: &mut [PluginInstance],
    tables: &mut [ConsumerTable],
    acme: &mut [Acme],
    workspace: &Arc<str>,
) {
    for plugin in plugins {
        qualify_plugin(plugin, workspace);
    }
    for table in tables {
        prefix(&mut table.id, workspace);
        let instances = std::mem::take(&mut table.instances);
        let apart = instances.into_iter().map(|(consumer, plugin)| {
            let plugin = plugin.map(|plugin| name_in(workspace, &plugin));
            (name_in(workspace, &consumer), plugin)
        });
        table.instances = apart.collect();
    }
    for entry in acme {
        entry.name = format!("{workspace}:{}", entry.name);
    }
}

/// Makes a chain name the workspace's own plugins and tables.
pub fn qualify_steps(steps: &mut [ChainStep], workspace: &Arc<str>) {
    for step in steps {
        match &mut step.plugin {
            Some(PluginRef::Shared(id)) => prefix(id, workspace),
            Some(PluginRef::Inline(plugin)) => qualify_plugin(Arc::make_mut(plugin), workspace),
            None => {}
        }
        step.consumer_overrides
            .iter_mut()
            .for_each(|table| prefix(table, workspace));
    }
}

fn prefix(name: &mut String, workspace: &str) {
    *name = name_in(workspace, name);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plugins_have_upstreams_stores_and_counts_of_their_workspace() {
        let own = |name: &str| name_in("team", name);
        for (plugin, config, wanted) in [
            (
                "route-by-header",
                json!({"rules": [
                    {"headers": {"x": "1"}, "upstream": "north", "host": "north"},
                    {"headers": {"x": "2"}, "upstream": "south"},
                ]}),
                // The host is meant if there is no such upstream: it is no name of the workspace.
                json!({"rules": [
                    {"headers": {"x": "1"}, "upstream": own("north"), "host": "north"},
                    {"headers": {"x": "2"}, "upstream": own("south")},
                ]}),
            ),
            (
                "canary",
                json!({"percent": 1, "upstream": "u", "host": "h"}),
                json!({"percent": 1, "upstream": own("u"), "host": "h"}),
            ),
            (
                "canary",
                json!({"percent": 1, "host": "h"}),
                json!({"percent": 1, "host": "h"}),
            ),
            (
                "orchestration",
                json!({"nodes": [
                    {"name": "a", "property": {"name": "upstream_name", "prefix": ""}, "input": "request.headers"},
                    {"name": "b", "property": {"name": "own.prefix"}},
                    {"name": "c", "jq": ".prefix"},
                ]}),
                json!({"nodes": [
                    {"name": "a", "property": {"name": "upstream_name", "prefix": own("")}, "input": "request.headers"},
                    {"name": "b", "property": {"name": "own.prefix"}},
                    {"name": "c", "jq": ".prefix"},
                ]}),
            ),
            ("proxy-cache", json!({"zone": "z"}), json!({"zone": own("z")})),
            (
                "rate-limit",
                json!({"scope": "n", "by": "ip"}),
                json!({"scope": own("n"), "by": "ip"}),
            ),
            ("rate-limit", json!({"scope": null}), json!({"scope": null})),
            ("mirror", json!({"upstream": "u"}), json!({"upstream": "u"})),
        ] {
            let instance = json!({"id": "p", "name": plugin, "config": config});
            let mut found: PluginInstance = serde_json::from_value(instance).expect("a plugin");
            qualify_plugin(&mut found, &Arc::from("team"));
            assert_eq!(found.config, wanted, "{plugin}");
            assert_eq!(found.id, own("p"));
        }
    }
}
