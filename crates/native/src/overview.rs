//! What lists show of native documents: resources of a store and of a `weir.yaml`, in the words of the model. It serves nothing.

use serde_json::{Value, json};
use weir_model::overview::{
    List, Overview, OverviewItem, Row, authority, labels, note_validity, text, texts, without_user,
};

/// What a document of a store says, each part with its place. `key` is `KIND/NAME`.
pub fn overview(key: &str, value: &Value) -> Overview {
    let mut parts = Vec::new();
    if let Some((kind, name)) = key.split_once('/') {
        resource(kind, name, value, "", &mut parts);
    }
    Overview {
        workspace: None,
        parts,
    }
}

/// What a `weir.yaml` says, each part with its place. `kinds` are its lists, each with the field that names its items.
pub fn overview_of_file(document: &Value, kinds: &[(&str, &str)]) -> Overview {
    let mut parts = Vec::new();
    for (kind, field) in kinds.iter().copied() {
        let items = document.get(kind).and_then(Value::as_array);
        for (index, item) in items.into_iter().flatten().enumerate() {
            let place = format!("/{kind}/{index}");
            let name = text(item, field).or_else(|| text(item, "name"));
            resource(kind, name.as_deref().unwrap_or(&place), item, &place, &mut parts);
        }
    }
    Overview {
        workspace: None,
        parts,
    }
}

fn resource(kind: &str, name: &str, value: &Value, place: &str, parts: &mut Vec<(String, OverviewItem)>) {
    let row = Row {
        name: name.to_owned(),
        plugins: plugins(value),
        labels: labels(value, "labels"),
        ..Row::default()
    };
    let (list, row) = match kind {
        "routes" | "stream_routes" => (List::Routes, route(kind, value, row)),
        "services" => {
            for (index, inside) in value
                .get("routes")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .enumerate()
            {
                let mut inside = inside.clone();
                if inside.get("service").is_none() {
                    inside["service"] = json!(name);
                }
                let place = format!("{place}/routes/{index}");
                let own = text(&inside, "name").unwrap_or_else(|| format!("{name}.{index}"));
                resource("routes", &own, &inside, &place, parts);
            }
            let row = Row {
                url: text(value, "url").map(|it| without_user(&it)),
                upstream: text(value, "upstream"),
                ..row
            };
            (List::Services, row)
        }
        "upstreams" => (List::Upstreams, upstream(value, row)),
        "consumers" => (List::Consumers, consumer(value, row)),
        "certificates" => (List::Certificates, certificate(value, row)),
        "plugins" => {
            let name = text(value, "name").or_else(|| plugin_name(value));
            let row = Row {
                plugins: name.into_iter().collect(),
                ..row
            };
            (List::Plugins, row)
        }
        _ => return,
    };
    let own_id = name.to_owned();
    let row = row.into();
    parts.push((place.to_owned(), OverviewItem::Row { list, own_id, row }));
}

fn route(kind: &str, value: &Value, row: Row) -> Row {
    let given = value.get("match");
    let matches: Vec<&Value> = match given {
        Some(Value::Array(all)) => all.iter().collect(),
        Some(one) => vec![one],
        None => vec![value],
    };
    let all = |field: &str| matches.iter().flat_map(|it| texts(it, field)).collect::<Vec<_>>();
    let mut paths = all("paths");
    paths.extend(given.is_some().then(|| all("path")).into_iter().flatten());
    let service = text(value, "service").or_else(|| text(value.get("to")?, "service"));
    let is_stream = kind == "stream_routes";
    Row {
        hosts: all("hosts"),
        paths,
        methods: all("methods"),
        is_disabled: value.get("disabled") == Some(&Value::Bool(true)),
        service: service.or_else(|| is_stream.then(|| text(value, "to")).flatten()),
        is_stream,
        ..row
    }
}

fn upstream(value: &Value, row: Row) -> Row {
    let target = |target: &Value| match target {
        Value::String(text) => Some(text.clone()),
        target => Some(authority(
            &text(target, "host")?,
            target.get("port").and_then(Value::as_u64),
        )),
    };
    let targets = value.get("targets").and_then(Value::as_array);
    Row {
        targets: targets.into_iter().flatten().filter_map(target).collect(),
        algorithm: Some(text(value, "algorithm").unwrap_or_else(|| "round-robin".to_owned())),
        ..row
    }
}

fn consumer(value: &Value, row: Row) -> Row {
    let credentials = value.get("credentials").and_then(Value::as_array);
    let kind = |it: &Value| text(it, "plugin").or_else(|| plugin_name(it));
    Row {
        name: text(value, "username")
            .or_else(|| text(value, "name"))
            .unwrap_or(row.name),
        groups: texts(value, "group"),
        custom_id: text(value, "custom_id"),
        credentials: credentials.into_iter().flatten().filter_map(kind).collect(),
        ..row
    }
}

fn certificate(value: &Value, mut row: Row) -> Row {
    let pem = value.pointer("/key_pairs/0/certificate").and_then(Value::as_str);
    note_validity(&mut row, pem.unwrap_or_default());
    Row {
        server_names: texts(value, "names"),
        ..row
    }
}

/// Names of the plugins of a chain. A step is `NAME: {…}`, `{name: NAME}`, `{use: …}` or the id of a shared plugin.
fn plugins(value: &Value) -> Vec<String> {
    let steps = value.get("plugins").and_then(Value::as_array);
    let one = |step: &Value| match step {
        Value::String(id) => Some(id.clone()),
        step => match step.get("use") {
            Some(Value::String(id)) => Some(id.clone()),
            Some(inside) => text(inside, "name").or_else(|| plugin_name(inside)),
            None => text(step, "name").or_else(|| plugin_name(step)),
        },
    };
    steps.into_iter().flatten().filter_map(one).collect()
}

/// The field of a short form that names the plugin: the first that is no word of a plugin instance.
fn plugin_name(step: &Value) -> Option<String> {
    const WORDS: [&str; 8] = [
        "id",
        "name",
        "config",
        "when",
        "on_refusal",
        "overrides",
        "response_only",
        "response_order",
    ];
    let mut fields = step.as_object()?.keys();
    fields.find(|it| !WORDS.contains(&it.as_str())).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_shown_in_the_model_s_words() {
        let value = json!({"name": "s", "url": "http://u:p@h:1", "routes": [
            {"name": "r", "paths": ["/a"], "hosts": ["a.test"], "plugins": [{"cors": {}}, "shared"]},
            {"name": "m", "match": [{"path": "=/x", "methods": ["GET"]}, {"path": {"regex": "^/y"}}]},
        ]});
        let found: Vec<(String, Value)> = overview("services/s", &value)
            .parts
            .into_iter()
            .map(|(place, part)| match part {
                OverviewItem::Row { row, .. } => (place, json!(row)),
                OverviewItem::Attached { .. } => panic!("nothing is attached"),
            })
            .collect();
        let expected = [
            (
                "/routes/0",
                json!({"id": "", "name": "r", "dialect": "native", "hosts": ["a.test"], "paths": ["/a"], "service": "s", "plugins": ["cors", "shared"]}),
            ),
            (
                "/routes/1",
                json!({"id": "", "name": "m", "dialect": "native", "paths": ["=/x", "{\"regex\":\"^/y\"}"], "methods": ["GET"], "service": "s"}),
            ),
            (
                "",
                json!({"id": "", "name": "s", "dialect": "native", "url": "http://h:1"}),
            ),
        ];
        assert_eq!(found, expected.map(|(place, row)| (place.to_owned(), row)));
        let file = json!({"weir": 1, "consumers": [{"name": "c", "credentials": [{"key-auth": {"key": "secret"}}]}],
            "upstreams": [{"name": "u", "targets": ["h:1", {"host": "::1", "port": 2}]}]});
        let text = format!("{:?}", overview_of_file(&file, &crate::incremental::KINDS));
        for part in ["/consumers/0", "key-auth", "h:1", "[::1]:2"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("secret"), "{text}");
    }
}
