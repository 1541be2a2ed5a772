//! The references in documents, and the identities of callers.

use super::kind::Kind;
use crate::document::id_text;
use crate::schema::is_secret_reference;
use serde_json::Value;

/// The field of a consumer's plugin that no two consumers may have in common.
const IDENTITIES: [(&str, &str); 6] = [
    ("key-auth", "key"),
    ("basic-auth", "username"),
    ("jwt-auth", "key"),
    ("hmac-auth", "key_id"),
    ("ldap-auth", "user_dn"),
    ("ldap-auth-advanced", "user_dn"),
];

/// The keys of all documents that one refers to.
pub fn references(key: &str, value: &Value) -> Vec<String> {
    let Some(kind) = Kind::of_key(key) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut add = |collection: &str, id: Option<&Value>| {
        if let Some(id) = id.and_then(id_text) {
            found.push(format!("{collection}/{id}"));
        }
    };
    match kind {
        Kind::Route | Kind::StreamRoute => {
            add("services", value.get("service_id"));
            add("upstreams", value.get("upstream_id"));
            add("plugin_configs", value.get("plugin_config_id"));
            add("stream_routes", value.pointer("/protocol/superior_id"));
        }
        Kind::Service => add("upstreams", value.get("upstream_id")),
        Kind::Consumer => add("consumer_groups", value.get("group_id")),
        _ => {}
    }
    add("ssls", value.pointer("/tls/client_cert_id"));
    add("ssls", value.pointer("/upstream/tls/client_cert_id"));
    let plugins = value.get("plugins");
    add(
        "protos",
        plugins.and_then(|plugins| plugins.get("grpc-transcode")?.get("proto_id")),
    );
    let split = plugins.and_then(|plugins| plugins.get("traffic-split"));
    for id in split.into_iter().flat_map(split_upstreams) {
        add("upstreams", Some(id));
    }
    found
}

/// The ids of the upstreams among which `traffic-split` divides calls.
pub fn split_upstreams(config: &Value) -> impl Iterator<Item = &Value> {
    let rules = config.get("rules").and_then(Value::as_array);
    let upstreams = rules
        .into_iter()
        .flatten()
        .filter_map(|rule| rule.get("weighted_upstreams")?.as_array());
    upstreams
        .flatten()
        .filter_map(|upstream| upstream.get("upstream_id"))
}

/// The identities by which the plugins of a consumer or credential recognise callers: plugin and value.
pub fn identities(key: &str, value: &Value) -> Vec<(String, String)> {
    match Kind::of_key(key) {
        Some(Kind::Consumer | Kind::Credential) => value
            .get("plugins")
            .into_iter()
            .flat_map(identities_of)
            .map(|(plugin, _, identity)| (plugin.to_owned(), identity.to_owned()))
            .collect(),
        _ => Vec::new(),
    }
}

/// The identities in a map of plugins: plugin, field and value. References to secrets are not looked into.
pub fn identities_of(plugins: &Value) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
    IDENTITIES.into_iter().filter_map(move |(plugin, field)| {
        let identity = plugins.get(plugin)?.get(field)?.as_str()?;
        (!is_secret_reference(identity)).then_some((plugin, field, identity))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn references_are_found() {
        for (key, value, wanted) in [
            (
                "routes/1",
                json!({"service_id": 1, "upstream_id": "u", "plugin_config_id": "p",
                       "plugins": {"traffic-split": {"rules": [{"weighted_upstreams": [{"upstream_id": 2}, {"weight": 1}]}]},
                                   "grpc-transcode": {"proto_id": "x"}}}),
                vec![
                    "services/1",
                    "upstreams/u",
                    "plugin_configs/p",
                    "protos/x",
                    "upstreams/2",
                ],
            ),
            (
                "consumers/j",
                json!({"group_id": "g", "service_id": 1}),
                vec!["consumer_groups/g"],
            ),
            (
                "upstreams/1",
                json!({"tls": {"client_cert_id": "c"}}),
                vec!["ssls/c"],
            ),
            ("unknown/1", json!({"upstream_id": 1}), vec![]),
        ] {
            assert_eq!(references(key, &value), wanted, "{key}");
        }
    }

    #[test]
    fn identities_are_found() {
        let plugins = json!({"plugins": {"key-auth": {"key": "a"}, "basic-auth": {"username": "$secret://v"}, "cors": {}}});
        assert_eq!(
            identities("consumers/j/credentials/c", &plugins),
            [("key-auth".to_owned(), "a".to_owned())]
        );
        assert!(identities("routes/1", &plugins).is_empty());
    }
}
