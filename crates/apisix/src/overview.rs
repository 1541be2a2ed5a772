//! The rows of lists for the documents of APISIX: resources of a store and of an `apisix.yaml`, in the words of the
//! model. It serves nothing.

use serde_json::{Map, Value};
use weir_model::overview::{
    Attachment, List, Overview, OverviewItem, Reference, Row, authority, labels, names, note_validity, text,
    texts,
};

/// The overview of a store's document. `key` is its name without the dialect's own segment: `COLLECTION/ID`.
pub fn overview(key: &str, value: &Value) -> Overview {
    let mut parts = Vec::new();
    if let Some((collection, id)) = key.split_once('/') {
        resource(collection, id, value, &mut parts);
    }
    Overview {
        workspace: None,
        parts: parts.into_iter().map(|part| (String::new(), part)).collect(),
    }
}

/// The overview of an `apisix.yaml`, each part with its place.
pub fn overview_of_file(document: &Value) -> Overview {
    let mut all = Vec::new();
    let none = Map::new();
    for (collection, items) in document.as_object().unwrap_or(&none) {
        for (index, item) in items.as_array().into_iter().flatten().enumerate() {
            let place = format!("/{collection}/{index}");
            let id = ["id", "username", "name"].iter().find_map(|it| text(item, it));
            let mut parts = Vec::new();
            resource(
                collection,
                &id.unwrap_or_else(|| (index + 1).to_string()),
                item,
                &mut parts,
            );
            all.extend(parts.into_iter().map(|part| (place.clone(), part)));
        }
    }
    Overview {
        workspace: None,
        parts: all,
    }
}

fn resource(collection: &str, id: &str, value: &Value, parts: &mut Vec<OverviewItem>) {
    let row = Row {
        name: text(value, "name").unwrap_or_else(|| id.to_owned()),
        labels: labels(value, "labels"),
        is_disabled: value.get("status").and_then(Value::as_i64) == Some(0),
        plugins: enabled_plugins(value),
        ..Row::default()
    };
    let (list, row) = match collection {
        "routes" | "stream_routes" => (List::Routes, route(collection, value, row)),
        "services" => (List::Services, with_upstream(value, row)),
        "upstreams" => (List::Upstreams, upstream(value, row)),
        "consumers" => {
            let (id, below) = id.split_once('/').unwrap_or((id, ""));
            if below.starts_with("credentials/") {
                for plugin in names(value, "plugins") {
                    let to = Reference {
                        list: List::Consumers,
                        id: id.to_owned(),
                    };
                    let what = Attachment::Credential(plugin);
                    parts.push(OverviewItem::Attached { to, what });
                }
                return;
            }
            (List::Consumers, consumer(id, value, row))
        }
        "ssls" => (List::Certificates, certificate(value, row)),
        "global_rules" | "plugin_configs" | "consumer_groups" => {
            let kind = match collection {
                "global_rules" => None,
                "plugin_configs" => Some(format!("plugin config {id}")),
                _ => Some(format!("consumer group {id}")),
            };
            let row = Row {
                applies_to: kind,
                ..row
            };
            (List::Plugins, row)
        }
        _ => return,
    };
    parts.push(OverviewItem::Row {
        list,
        own_id: id.to_owned(),
        row: row.into(),
    });
}

/// Plugins but those that are switched off.
fn enabled_plugins(value: &Value) -> Vec<String> {
    let is_on = |name: &String| {
        let switch = value.pointer(&format!("/plugins/{name}/_meta/disable"));
        switch != Some(&Value::Bool(true))
    };
    names(value, "plugins").into_iter().filter(is_on).collect()
}

fn route(collection: &str, value: &Value, row: Row) -> Row {
    let both = |one: &str, many: &str| {
        let mut all = texts(value, one);
        all.extend(texts(value, many));
        all
    };
    let is_stream = collection == "stream_routes";
    let mut hosts = both("host", "hosts");
    hosts.extend(is_stream.then(|| texts(value, "sni")).into_iter().flatten());
    let row = with_upstream(value, row);
    Row {
        hosts,
        paths: both("uri", "uris"),
        methods: texts(value, "methods"),
        service: text(value, "service_id"),
        is_stream,
        ..row
    }
}

/// The upstream that a route or service names, or the targets that it has itself.
fn with_upstream(value: &Value, row: Row) -> Row {
    let own = value.get("upstream").filter(|it| it.is_object());
    Row {
        upstream: text(value, "upstream_id"),
        targets: own.map(targets).unwrap_or_default(),
        hosts: texts(value, "hosts"),
        algorithm: own.and_then(|own| text(own, "type")),
        ..row
    }
}

fn upstream(value: &Value, row: Row) -> Row {
    Row {
        targets: targets(value),
        algorithm: Some(text(value, "type").unwrap_or_else(|| "roundrobin".to_owned())),
        ..row
    }
}

/// Nodes in both spellings: a map of `host:port`, or a list.
fn targets(upstream: &Value) -> Vec<String> {
    if let Some(service) = text(upstream, "service_name") {
        let kind = text(upstream, "discovery_type").unwrap_or_default();
        return vec![format!("{kind} {service}")];
    }
    match upstream.get("nodes") {
        Some(Value::Object(nodes)) => nodes.keys().cloned().collect(),
        Some(Value::Array(nodes)) => {
            let one = |node: &Value| {
                let host = text(node, "host")?;
                Some(authority(&host, node.get("port").and_then(Value::as_u64)))
            };
            nodes.iter().filter_map(one).collect()
        }
        _ => Vec::new(),
    }
}

fn consumer(id: &str, value: &Value, row: Row) -> Row {
    let is_credential = |name: &String| name.ends_with("-auth");
    let (credentials, plugins) = row.plugins.clone().into_iter().partition(is_credential);
    Row {
        name: text(value, "username").unwrap_or_else(|| id.to_owned()),
        groups: text(value, "group_id").into_iter().collect(),
        credentials,
        plugins,
        ..row
    }
}

fn certificate(value: &Value, mut row: Row) -> Row {
    note_validity(&mut row, text(value, "cert").as_deref().unwrap_or_default());
    let mut server_names = texts(value, "sni");
    server_names.extend(texts(value, "snis"));
    Row {
        name: server_names.first().cloned().unwrap_or(row.name),
        server_names,
        ..row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows(overview: Overview) -> Vec<Value> {
        let one = |part| match part {
            OverviewItem::Row { list, row, .. } => {
                let mut row = json!(row);
                row["list"] = json!(list);
                row
            }
            OverviewItem::Attached { to, what } => json!(format!("{} {} {what:?}", to.list.as_str(), to.id)),
        };
        overview.parts.into_iter().map(|(_, part)| one(part)).collect()
    }

    #[test]
    fn resources_are_shown_in_the_model_s_words() {
        for (key, value, expected) in [
            (
                "routes/1",
                json!({"uri": "/a/*", "host": "a.test", "methods": ["GET"], "service_id": 5, "plugins": {"key-auth": {}, "cors": {"_meta": {"disable": true}}}, "upstream": {"nodes": {"h:1": 1}, "type": "chash"}, "status": 0}),
                vec![
                    json!({"list": "routes", "id": "", "name": "1", "dialect": "native", "is_disabled": true, "hosts": ["a.test"], "paths": ["/a/*"], "methods": ["GET"], "service": "5", "algorithm": "chash", "targets": ["h:1"], "plugins": ["key-auth"]}),
                ],
            ),
            (
                "upstreams/u",
                json!({"name": "n", "nodes": [{"host": "::1", "port": 80, "weight": 1}]}),
                vec![
                    json!({"list": "upstreams", "id": "", "name": "n", "dialect": "native", "algorithm": "roundrobin", "targets": ["[::1]:80"]}),
                ],
            ),
            (
                "consumers/jack",
                json!({"username": "jack", "group_id": "g", "plugins": {"key-auth": {"key": "secret"}, "limit-count": {}}}),
                vec![
                    json!({"list": "consumers", "id": "", "name": "jack", "dialect": "native", "plugins": ["limit-count"], "groups": ["g"], "credentials": ["key-auth"]}),
                ],
            ),
            (
                "consumers/jack/credentials/1",
                json!({"plugins": {"jwt-auth": {"secret": "x"}}}),
                vec![json!("consumers jack Credential(\"jwt-auth\")")],
            ),
            (
                "ssls/1",
                json!({"snis": ["a.test"], "cert": "x", "key": "secret"}),
                vec![
                    json!({"list": "certificates", "id": "", "name": "a.test", "dialect": "native", "server_names": ["a.test"]}),
                ],
            ),
            (
                "global_rules/1",
                json!({"plugins": {"cors": {}}}),
                vec![
                    json!({"list": "plugins", "id": "", "name": "1", "dialect": "native", "plugins": ["cors"]}),
                ],
            ),
            ("secrets/vault/1", json!({}), vec![]),
        ] {
            assert_eq!(rows(overview(key, &value)), expected, "{key}");
        }
        let file = json!({"routes": [{"uri": "/"}], "upstreams": [{"id": "u", "nodes": {"h:1": 1}}]});
        let places: Vec<String> = overview_of_file(&file)
            .parts
            .into_iter()
            .map(|(place, _)| place)
            .collect();
        assert_eq!(places, ["/routes/0", "/upstreams/0"]);
    }
}
