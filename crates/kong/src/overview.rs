//! The rows of lists for the documents of Kong: entities of a store and of a `kong.yml`, in the words of the model. It
//! serves nothing.

use serde_json::{Map, Value, json};
use weir_model::overview::{
    Attachment, List, Overview, OverviewItem, Reference, Row, authority, labels, note_validity, text, texts,
};

/// Credentials, by their entity types, and the plugins that they are for.
const CREDENTIALS: [(&str, &str); 8] = [
    ("acls", "acl"),
    ("basicauth_credentials", "basic-auth"),
    ("hmacauth_credentials", "hmac-auth"),
    ("jwt_secrets", "jwt"),
    ("keyauth_credentials", "key-auth"),
    ("keyauth_enc_credentials", "key-auth-enc"),
    ("mtls_auth_credentials", "mtls-auth"),
    ("oauth2_credentials", "oauth2"),
];

/// Lists that a `kong.yml` has inside of other entities: the list, the field inside, and what the entity is called there.
const NESTED: [(&str, &str, &str); 4] = [
    ("services", "routes", "service"),
    ("upstreams", "targets", "upstream"),
    ("certificates", "snis", "certificate"),
    ("consumer_groups", "consumers", "group"),
];

/// The names that a gateway may give to an upstream of a workspace.
pub fn upstream_names(row: &Row) -> Vec<String> {
    let own = match row.workspace.as_deref() {
        None | Some("default") => row.name.clone(),
        Some(workspace) => format!("{workspace}/{}", row.name),
    };
    UPSTREAM_FORMS.map(|form| format!("{own}{form}")).into()
}

/// The suffixes of an upstream's name for each scheme of the services that use it.
const UPSTREAM_FORMS: [&str; 6] = [
    "",
    " over TLS",
    " for gRPC",
    " for gRPC over TLS",
    " for streams",
    " for streams over TLS",
];

/// The overview of a store's document. `key` is its name without the dialect's own segment: `WORKSPACE/TYPE/ID`.
pub fn overview(key: &str, value: &Value) -> Overview {
    let mut segments = key.splitn(3, '/');
    let (Some(workspace), Some(entity_type), Some(id)) = (segments.next(), segments.next(), segments.next())
    else {
        return Overview::default();
    };
    let mut parts = Vec::new();
    entity(entity_type, id, value, &mut parts);
    Overview {
        workspace: Some(workspace.to_owned()),
        parts: parts.into_iter().map(|part| (String::new(), part)).collect(),
    }
}

/// The overview of a `kong.yml`, each part with its place.
pub fn overview_of_file(document: &Value) -> Overview {
    let mut parts = Vec::new();
    let none = Map::new();
    for (entity_type, items) in document.as_object().unwrap_or(&none) {
        for (index, item) in items.as_array().into_iter().flatten().enumerate() {
            nested(entity_type, item, &format!("/{entity_type}/{index}"), &mut parts);
        }
    }
    Overview {
        workspace: None,
        parts,
    }
}

/// An entity of a file, with those inside of it.
fn nested(entity_type: &str, value: &Value, place: &str, parts: &mut Vec<(String, OverviewItem)>) {
    let id = identity(value).unwrap_or_else(|| place.to_owned());
    let mut own = Vec::new();
    entity(entity_type, &id, value, &mut own);
    parts.extend(own.into_iter().map(|part| (place.to_owned(), part)));
    let Some(fields) = value.as_object() else { return };
    let singular = entity_type.strip_suffix('s').unwrap_or(entity_type);
    for (field, items) in fields {
        let is_nested = NESTED
            .iter()
            .any(|(list, inside, _)| *list == entity_type && inside == field)
            || matches!((entity_type, field.as_str()), (_, "plugins"))
            || (entity_type == "consumers" && CREDENTIALS.iter().any(|(name, _)| name == field));
        if !is_nested {
            continue;
        }
        let owner = NESTED
            .iter()
            .find(|(list, inside, _)| *list == entity_type && inside == field);
        let owner = owner.map_or(singular, |(.., owner)| owner);
        for (index, item) in items.as_array().into_iter().flatten().enumerate() {
            let mut item = item.clone();
            if let Value::String(name) = &item {
                item = json!({ "name": name });
            }
            if let Some(fields) = item.as_object_mut() {
                fields.insert(owner.to_owned(), json!({ "id": id }));
            }
            nested(field, &item, &format!("{place}/{field}/{index}"), parts);
        }
    }
}

fn identity(value: &Value) -> Option<String> {
    ["id", "name", "username", "target"]
        .iter()
        .find_map(|field| text(value, field))
}

/// The target of a field: `{id: …}`, `{name: …}` or a text.
fn referred(value: &Value, field: &str) -> Option<String> {
    match value.get(field)? {
        Value::String(text) => Some(text.clone()),
        inside => ["id", "name", "username"].iter().find_map(|it| text(inside, it)),
    }
}

fn entity(entity_type: &str, id: &str, value: &Value, parts: &mut Vec<OverviewItem>) {
    let row = || Row {
        name: text(value, "name").unwrap_or_else(|| id.to_owned()),
        labels: labels(value, "tags"),
        is_disabled: value.get("enabled") == Some(&Value::Bool(false)),
        ..Row::default()
    };
    let own_id = text(value, "id").unwrap_or_else(|| id.to_owned());
    let mut push = |list: List, row: Row| {
        parts.push(OverviewItem::Row {
            list,
            own_id: own_id.clone(),
            row: row.into(),
        });
    };
    match entity_type {
        "routes" => push(List::Routes, route(value, row())),
        "services" => push(List::Services, service(value, row())),
        "upstreams" => {
            let algorithm = text(value, "algorithm").unwrap_or_else(|| "round-robin".to_owned());
            let row = Row {
                algorithm: Some(algorithm),
                ..row()
            };
            push(List::Upstreams, row);
        }
        "consumers" => {
            let name = ["username", "custom_id"].iter().find_map(|it| text(value, it));
            let row = row();
            push(
                List::Consumers,
                Row {
                    name: name.unwrap_or(row.name),
                    custom_id: text(value, "custom_id"),
                    ..row
                },
            );
            if let Some(group) = referred(value, "group") {
                attach(parts, (List::Consumers, own_id), Attachment::Group(group));
            }
        }
        "certificates" => {
            let mut row = row();
            note_validity(&mut row, text(value, "cert").as_deref().unwrap_or_default());
            push(List::Certificates, row);
        }
        "plugins" => plugin(value, (own_id, row()), parts),
        "targets" => {
            let target = text(value, "target").unwrap_or_default();
            let target = match target.rsplit_once(':') {
                Some((_, port)) if port.parse::<u16>().is_ok() => target,
                _ => authority(&target, Some(8000)),
            };
            if let Some(upstream) = referred(value, "upstream") {
                attach(parts, (List::Upstreams, upstream), Attachment::Target(target));
            }
        }
        "snis" => {
            let name = text(value, "name").unwrap_or_default();
            if let Some(certificate) = referred(value, "certificate") {
                attach(
                    parts,
                    (List::Certificates, certificate),
                    Attachment::ServerName(name),
                );
            }
        }
        "consumer_group_consumers" => {
            if let (Some(consumer), Some(group)) =
                (referred(value, "consumer"), referred(value, "consumer_group"))
            {
                attach(parts, (List::Consumers, consumer), Attachment::Group(group));
            }
        }
        entity_type => {
            let plugin = CREDENTIALS.iter().find(|(name, _)| *name == entity_type);
            if let (Some((_, plugin)), Some(consumer)) = (plugin, referred(value, "consumer")) {
                let what = match (*plugin, text(value, "group")) {
                    ("acl", Some(group)) => Attachment::Group(group),
                    _ => Attachment::Credential((*plugin).to_owned()),
                };
                attach(parts, (List::Consumers, consumer), what);
            }
        }
    }
}

fn attach(parts: &mut Vec<OverviewItem>, (list, id): (List, String), what: Attachment) {
    let to = Reference { list, id };
    parts.push(OverviewItem::Attached { to, what });
}

fn route(value: &Value, row: Row) -> Row {
    let protocols = texts(value, "protocols");
    let is_http = |it: &String| matches!(it.as_str(), "http" | "https" | "grpc" | "grpcs");
    let mut paths = texts(value, "paths");
    paths.extend(text(value, "expression"));
    let mut hosts = texts(value, "hosts");
    hosts.extend(texts(value, "snis"));
    Row {
        hosts,
        paths,
        methods: texts(value, "methods"),
        service: referred(value, "service"),
        is_stream: !protocols.is_empty() && !protocols.iter().any(is_http),
        ..row
    }
}

fn service(value: &Value, row: Row) -> Row {
    let url = match text(value, "url") {
        Some(url) => Some(weir_model::overview::without_user(&url)),
        None => text(value, "host").map(|host| {
            let scheme = text(value, "protocol").unwrap_or_else(|| "http".to_owned());
            let port = value.get("port").and_then(Value::as_u64).unwrap_or(80);
            let path = text(value, "path").unwrap_or_default();
            format!("{scheme}://{}{path}", authority(&host, Some(port)))
        }),
    };
    Row {
        upstream: text(value, "host"),
        url,
        ..row
    }
}

/// A plugin is a row of its own, and one of what it is configured for.
fn plugin(value: &Value, (own_id, row): (String, Row), parts: &mut Vec<OverviewItem>) {
    let name = row.name.clone();
    let owners = [
        ("route", List::Routes),
        ("service", List::Services),
        ("consumer", List::Consumers),
    ];
    let mut owned = Vec::new();
    for (field, list) in owners {
        if let Some(id) = referred(value, field) {
            owned.push((field, id.clone()));
            attach(parts, (list, id), Attachment::Plugin(name.clone()));
        }
    }
    if let Some(group) = referred(value, "consumer_group") {
        owned.push(("consumer group", group));
    }
    let applies_to = owned.iter().map(|(field, id)| format!("{field} {id}"));
    let applies_to = applies_to.collect::<Vec<_>>().join(", ");
    let instance = text(value, "instance_name");
    let row = Row {
        name: instance.unwrap_or(row.name),
        plugins: vec![name],
        applies_to: (!applies_to.is_empty()).then_some(applies_to),
        ..row
    };
    parts.push(OverviewItem::Row {
        list: List::Plugins,
        own_id,
        row: row.into(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(overview: Overview) -> Vec<OverviewItem> {
        overview.parts.into_iter().map(|(_, part)| part).collect()
    }

    fn texts(parts: &[OverviewItem]) -> Vec<String> {
        let one = |part: &OverviewItem| match part {
            OverviewItem::Row { list, own_id, row } => {
                format!("{} {own_id} {}", list.as_str(), json!(row))
            }
            OverviewItem::Attached { to, what } => format!("{} {} {what:?}", to.list.as_str(), to.id),
        };
        parts.iter().map(one).collect()
    }

    #[test]
    fn entities_of_a_store_are_shown_in_the_model_s_words() {
        for (key, value, expected) in [
            (
                "team/routes/1",
                json!({"id": "1", "name": "r", "hosts": ["a.test"], "paths": ["/a"], "methods": ["GET"], "service": {"id": "s1"}, "tags": ["t"]}),
                vec![
                    r#"routes 1 {"id":"","name":"r","dialect":"native","hosts":["a.test"],"paths":["/a"],"methods":["GET"],"service":"s1","labels":{"t":""}}"#,
                ],
            ),
            (
                "default/services/s1",
                json!({"id": "s1", "host": "::1", "port": 81, "protocol": "https", "path": "/x", "enabled": false}),
                vec![
                    r#"services s1 {"id":"","name":"s1","dialect":"native","is_disabled":true,"upstream":"::1","url":"https://[::1]:81/x"}"#,
                ],
            ),
            (
                "default/plugins/p",
                json!({"id": "p", "name": "key-auth", "route": {"id": "1"}, "config": {"key_names": ["k"]}}),
                vec![
                    r#"routes 1 Plugin("key-auth")"#,
                    r#"plugins p {"id":"","name":"key-auth","dialect":"native","plugins":["key-auth"],"applies_to":"route 1"}"#,
                ],
            ),
            (
                "default/keyauth_credentials/k",
                json!({"id": "k", "key": "secret", "consumer": {"id": "c"}}),
                vec![r#"consumers c Credential("key-auth")"#],
            ),
            (
                "default/targets/t",
                json!({"id": "t", "target": "h.test", "upstream": {"id": "u"}}),
                vec![r#"upstreams u Target("h.test:8000")"#],
            ),
            ("default/vaults/v", json!({"id": "v"}), vec![]),
            ("odd", json!({}), vec![]),
        ] {
            assert_eq!(texts(&parts(overview(key, &value))), expected, "{key}");
        }
    }

    #[test]
    fn a_file_s_entities_are_found_where_they_stand() {
        let document = json!({
            "_format_version": "3.0",
            "services": [{"name": "s", "url": "http://u:p@h:1", "routes": [{"name": "r", "paths": ["/"], "plugins": [{"name": "cors"}]}]}],
            "consumers": [{"username": "c", "keyauth_credentials": [{"key": "secret"}]}],
            "upstreams": [{"name": "u", "targets": [{"target": "h:1"}]}],
            "certificates": [{"cert": "x", "snis": [{"name": "a.test"}]}],
        });
        let found: Vec<String> = overview_of_file(&document)
            .parts
            .into_iter()
            .map(|(place, part)| format!("{place}: {}", texts(&[part])[0]))
            .collect();
        assert!(
            !found.iter().any(|it| it.contains("secret") || it.contains("u:p")),
            "{found:#?}"
        );
        for expected in [
            "/services/0: services s ",
            "/services/0/routes/0: routes r ",
            "/services/0/routes/0/plugins/0: routes r Plugin(\"cors\")",
            "/consumers/0/keyauth_credentials/0: consumers c Credential(\"key-auth\")",
            "/upstreams/0/targets/0: upstreams u Target(\"h:1\")",
            "/certificates/0/snis/0: certificates /certificates/0 ServerName(\"a.test\")",
        ] {
            assert!(
                found.iter().any(|it| it.starts_with(expected)),
                "{expected}: {found:#?}"
            );
        }
    }
}
