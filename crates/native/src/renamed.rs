//! Old names of fields, which stay readable for one release.
//!
//! Two tables define everything: which part of a document had which old name, and where its parts are. **What it is
//! not**: a place for fields whose meaning has changed; those are errors.

use serde_json::{Map, Value, json};
use std::borrow::Cow;
use weir_model::{Diagnostic, DocPath};

/// What has the field, its old name, and its new one. A plugin's configuration goes by the plugin's name.
const RENAMED: [(&str, &str, &str); 62] = [
    ("document", "voice", "dialect"),
    ("document", "route_tables", "dialect_settings"),
    ("service", "voice", "dialect"),
    ("consumer", "voice", "dialect"),
    ("settings", "voice", "dialect"),
    ("stream route", "voice", "dialect"),
    ("route", "voice", "dialect"),
    ("route", "request_stamps", "request_headers"),
    ("route", "response_stamps", "response_headers"),
    ("acl", "tell", "label_header"),
    ("app-login", "tell_user", "set_userinfo_header"),
    ("authz-keycloak", "early_seconds", "refresh_leeway_seconds"),
    ("basic-auth", "hide", "strip"),
    ("client-certificate-headers", "tell", "send_headers"),
    ("concurrency-limit", "otherwise", "when_key_missing"),
    ("forward-auth", "keepalive", "pool_size"),
    ("forward-auth", "keepalive_ms", "pool_idle_timeout_ms"),
    ("hmac-auth", "hide", "strip"),
    ("jwe-decrypt", "unopened_status", "decryption_failed_status"),
    ("jwt", "hide", "strip"),
    ("jwt", "look_in", "locations"),
    ("jwt", "several", "on_multiple"),
    ("key-auth", "duplicates", "on_multiple"),
    ("key-auth", "hide", "strip"),
    ("key-auth", "look_in", "locations"),
    ("metrics-endpoint", "otherwise", "not_found_body"),
    ("metrics-endpoint", "otherwise_type", "not_found_content_type"),
    ("multi-auth", "tell_failures", "report_failures"),
    ("oauth2-server", "tls_ended_by", "tls_terminated_by"),
    ("openid-connect", "bearer_places", "bearer_locations"),
    ("prometheus", "tells_targets", "target_health"),
    ("proxy-cache", "keep_seconds", "storage_ttl_seconds"),
    ("proxy-cache", "words", "status_values"),
    ("rate-limit", "otherwise", "when_key_missing"),
    ("redirect", "believe_forwarded_proto", "trust_forwarded_proto"),
    ("referer-restriction", "pass_missing", "allow_missing"),
    ("request-buffering", "whole", "enabled"),
    ("request-id", "keep_clients", "keep_client_id"),
    ("response-rate-limit", "tell", "limit_headers"),
    ("throttle", "otherwise", "when_key_missing"),
    ("upstream-oauth", "early_seconds", "refresh_leeway_seconds"),
    ("upstream-timeout", "call_ms", "total_ms"),
    ("user-agent-restriction", "pass_missing", "allow_missing"),
    ("user-agent-restriction", "several", "allow_multiple"),
    ("user-agent-restriction", "several_message", "multiple_message"),
    ("webhook-signature", "several", "allow_multiple"),
    ("attempt spans", "numbers_names", "number_in_name"),
    (
        "attempt spans",
        "status_of_failures_only",
        "status_on_failure_only",
    ),
    ("cache status", "not_kept", "not_stored"),
    ("cross origin", "yields", "keep_existing"),
    ("forwarded", "host_if_none", "default_host"),
    ("introspection", "host_of_call", "use_request_host"),
    ("introspection", "path_of_call", "use_request_path"),
    ("kafka", "record_each", "record_per_entry"),
    ("spans", "tries", "attempts"),
    ("store", "away_message", "unavailable_message"),
    ("store", "settle_every", "sync_interval_seconds"),
    ("store", "when_away", "on_unavailable"),
    ("timeouts", "call_ms", "total_ms"),
    ("token rules", "accept_secrets", "allow_symmetric_keys"),
    // Their values change too: `RESPONSES`.
    ("target", "broken", "respond"),
    ("target", "unavailable", "respond"),
];

/// Old targets of routes that named only a status, and whether they respond before any plugin.
const RESPONSES: [(&str, bool); 2] = [("broken", true), ("unavailable", false)];

/// Where the parts are: what has the field, the field, and what its value (or each item of its list) is.
const PARTS: [(&str, &str, &str); 42] = [
    ("document", "services", "service"),
    ("document", "routes", "route"),
    ("document", "stream_routes", "stream route"),
    ("document", "consumers", "consumer"),
    ("document", "dialect_settings", "settings"),
    ("document", "route_tables", "settings"),
    ("document", "plugins", PLUGIN),
    ("document", "unmatched", PLUGIN),
    ("service", "routes", "route"),
    ("service", "timeouts", "timeouts"),
    ("route", "plugins", PLUGIN),
    ("route", "to", "target"),
    ("route", "forwarded", "forwarded"),
    ("route", "timeouts", "timeouts"),
    ("stream route", "plugins", PLUGIN),
    (PLUGIN, "use", PLUGIN),
    ("multi-auth", "any_of", PLUGIN),
    ("workflow", "rules", "workflow rule"),
    ("workflow rule", "then", "workflow action"),
    ("workflow action", "plugin", PLUGIN),
    ("rate-limit", "store", "store"),
    ("throttle", "store", "store"),
    ("concurrency-limit", "store", "store"),
    ("graphql-limit", "store", "store"),
    ("response-rate-limit", "store", "store"),
    ("gateway-log", "target", "log target"),
    ("logger", "target", "log target"),
    ("statsd", "target", "log target"),
    ("log target", "kafka", "kafka"),
    ("kafka-upstream", "kafka", "kafka"),
    ("graphql-limit", "fields", "query cost"),
    ("rate-limit", "graphql", "query cost"),
    ("query cost", "services", "service weights"),
    ("service weights", "introspection", "introspection"),
    ("grpc-web", "cross_origin", "cross origin"),
    ("jwt-signer", "access_token", "token rules"),
    ("jwt-signer", "channel_token", "token rules"),
    ("proxy-cache", "status_values", "cache status"),
    ("proxy-cache", "words", "cache status"),
    ("tracing", "spans", "spans"),
    ("spans", "attempts", "attempt spans"),
    ("spans", "tries", "attempt spans"),
];

/// A map with a plugin's name as a key and its configuration as the value, or with `name` and `config`.
const PLUGIN: &str = "plugin";

/// The document with today's names, and a warning for each old one.
pub fn with_current_names(document: &Value) -> (Cow<'_, Value>, Vec<Diagnostic>) {
    let mut warnings = Vec::new();
    if !has_old_name(document, "document") {
        return (Cow::Borrowed(document), warnings);
    }
    let mut changed = document.clone();
    rename(&mut changed, "document", &DocPath::root(), &mut warnings);
    (Cow::Owned(changed), warnings)
}

/// What the value of this field is; `None`: nothing that has old names.
fn part_of(kind: &str, map: &Map<String, Value>, field: &str) -> Option<&'static str> {
    let part = PARTS
        .iter()
        .find(|(whole, known, _)| *whole == kind && *known == field);
    match part {
        Some((.., part)) => Some(part),
        None if kind != PLUGIN => None,
        None if field == "config" => plugin_kind(map.get("name")?.as_str()?),
        None => plugin_kind(field),
    }
}

/// The kind of a plugin's configuration, if that or a part of it has old names.
fn plugin_kind(name: &str) -> Option<&'static str> {
    let mut kinds = RENAMED.iter().chain(&PARTS).map(|(kind, ..)| *kind);
    kinds.find(|kind| *kind == name)
}

fn has_old_name(value: &Value, kind: &str) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| has_old_name(item, kind)),
        Value::Object(map) => {
            RENAMED
                .iter()
                .any(|(of, old, _)| *of == kind && map.contains_key(*old))
                || map.iter().any(|(field, value)| {
                    part_of(kind, map, field).is_some_and(|part| has_old_name(value, part))
                })
        }
        _ => false,
    }
}

fn rename(value: &mut Value, kind: &str, place: &DocPath, warnings: &mut Vec<Diagnostic>) {
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                rename(item, kind, &place.index(index), warnings);
            }
        }
        Value::Object(map) => {
            let parts: Vec<_> = map
                .keys()
                .filter_map(|field| Some((field.clone(), part_of(kind, map, field)?)))
                .collect();
            for (field, part) in parts {
                if let Some(value) = map.get_mut(&field) {
                    rename(value, part, &place.field(field), warnings);
                }
            }
            rename_fields(map, kind, place, warnings);
        }
        _ => {}
    }
}

/// The names of this map's own fields. The order of the others stays.
fn rename_fields(map: &mut Map<String, Value>, kind: &str, place: &DocPath, warnings: &mut Vec<Diagnostic>) {
    for (_, old, new) in RENAMED.iter().filter(|(of, ..)| *of == kind) {
        if map.contains_key(*new) {
            continue;
        }
        let Some(value) = map.shift_remove(*old) else {
            continue;
        };
        let response = RESPONSES
            .iter()
            .find(|(target, _)| kind == "target" && target == old);
        let (value, wanted) = match response {
            Some((_, false)) => (json!({ "status": value }), "respond: {status: …}"),
            Some((_, true)) => (
                json!({"status": value, "before_plugins": true}),
                "respond: {status: …, before_plugins: true}",
            ),
            None => (value, *new),
        };
        let message = format!("'{old}' is called '{wanted}' now; the next release reads '{new}' only");
        warnings.push(Diagnostic::warning(place.field(*old), message));
        map.insert((*new).to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::translate;
    use std::collections::BTreeSet;

    #[test]
    fn renamed_fields_are_read_with_a_warning() {
        let document = json!({"weir": 1, "voice": "kong", "routes": [{"name": "r", "voice": "kong"}],
            "services": [{"name": "s", "routes": [{"voice": "apisix"}]}]});
        let (read, warnings) = with_current_names(&document);
        let expected = json!({"weir": 1, "dialect": "kong", "routes": [{"name": "r", "dialect": "kong"}],
            "services": [{"name": "s", "routes": [{"dialect": "apisix"}]}]});
        assert_eq!(*read, expected);
        let places: BTreeSet<_> = warnings.iter().map(|warning| warning.path.to_string()).collect();
        let expected = ["routes[0].voice", "services[0].routes[0].voice", "voice"];
        assert_eq!(places, expected.map(str::to_owned).into());
        assert!(
            warnings[0].message.contains("called 'dialect' now"),
            "{}",
            warnings[0].message
        );
    }

    #[test]
    fn renamed_fields_with_both_names_are_left_alone() {
        let document = json!({"weir": 1, "voice": "kong", "dialect": "native"});
        let (read, warnings) = with_current_names(&document);
        assert_eq!((read.get("voice"), warnings.len()), (Some(&json!("kong")), 0));
    }

    /// A document with one map of this kind, which has this field.
    fn document_with(kind: &str, field: &str, value: Value) -> Value {
        let fields: Map<String, Value> = [(field.to_owned(), value)].into_iter().collect();
        let plugin = |name: &str, config: Value| {
            let plugin: Map<String, Value> = [(name.to_owned(), config)].into_iter().collect();
            json!({"weir": 1, "plugins": [plugin]})
        };
        let mut document = match kind {
            "document" => json!({"weir": 1}),
            "settings" => json!({"weir": 1, "dialect_settings": [fields]}),
            "service" | "consumer" | "route" => json!({"weir": 1, format!("{kind}s"): [fields]}),
            "stream route" => json!({"weir": 1, "stream_routes": [fields]}),
            "target" => json!({"weir": 1, "routes": [{"name": "r", "paths": ["/"], "to": fields}]}),
            part => match PARTS.iter().find(|(.., known)| *known == part) {
                Some((whole, field, _)) => document_with(whole, field, Value::Object(fields)),
                None => plugin(part, Value::Object(fields)),
            },
        };
        if kind == "document"
            && let Value::Object(document) = &mut document
        {
            document.extend([(field.to_owned(), json!([]))]);
        }
        document
    }

    #[test]
    fn renamed_fields_all_have_their_new_names() {
        for (kind, old, new) in RENAMED {
            let document = document_with(kind, old, json!(418));
            let (read, warnings) = with_current_names(&document);
            assert_eq!(warnings.len(), 1, "{kind}: {old}");
            assert!(
                warnings[0]
                    .message
                    .starts_with(&format!("'{old}' is called '{new}")),
                "{kind}"
            );
            assert!(
                warnings[0].path.to_string().ends_with(old),
                "{kind}: {}",
                warnings[0].path
            );
            let text = read.to_string();
            assert!(
                text.contains(&format!("\"{new}\"")) && !text.contains(&format!("\"{old}\"")),
                "{text}"
            );
        }
    }

    #[test]
    fn renamed_fields_of_plugins_are_those_of_the_plugins() {
        let registry = weir_plugins::registry();
        for (kind, old, new) in RENAMED {
            let mut name = kind;
            while let Some((whole, ..)) = PARTS.iter().find(|(.., part)| *part == name) {
                name = whole;
            }
            let Some(plugin) = registry.get(name) else {
                assert!(!name.contains('-'), "no plugin is named '{name}'");
                continue;
            };
            let schema = plugin.config_schema().to_value().to_string();
            let [new, old] = [new, old].map(|name| format!("\"{name}\":{{"));
            assert!(
                schema.contains(&new) && !schema.contains(&old),
                "{kind}: {old} {new}"
            );
        }
    }

    #[test]
    fn renamed_fields_are_found_wherever_plugins_are() {
        let plugin = || json!([{"key-auth": {"hide": "found"}}, {"name": "jwt", "config": {"look_in": []}}]);
        let document = json!({"weir": 1, "plugins": plugin(), "unmatched": [{"use": {"key-auth": {"hide": "no"}}}],
        "services": [{"routes": [{"plugins": plugin()}]}],
        "routes": [{"plugins": [
            {"multi-auth": {"any_of": plugin()}},
            {"workflow": {"rules": [{"then": {"plugin": {"rate-limit": {"otherwise": "fail", "limits": [
                {"otherwise": 1}], "store": {"when_away": "pass"}}}}}]}},
            {"mocking": {"example": {"hide": 1, "key-auth": {"hide": 1}}}},
        ]}]});
        let (_, warnings) = with_current_names(&document);
        let places: BTreeSet<_> = warnings.iter().map(|warning| warning.path.to_string()).collect();
        let expected = [
            "plugins[0].key-auth.hide",
            "plugins[1].config.look_in",
            "routes[0].plugins[0].multi-auth.any_of[0].key-auth.hide",
            "routes[0].plugins[0].multi-auth.any_of[1].config.look_in",
            "routes[0].plugins[1].workflow.rules[0].then.plugin.rate-limit.otherwise",
            "routes[0].plugins[1].workflow.rules[0].then.plugin.rate-limit.store.when_away",
            "services[0].routes[0].plugins[0].key-auth.hide",
            "services[0].routes[0].plugins[1].config.look_in",
            "unmatched[0].use.key-auth.hide",
        ];
        assert_eq!(places, expected.map(str::to_owned).into());
    }

    #[test]
    fn renamed_targets_of_routes_keep_their_meaning() {
        for (old, before_plugins) in RESPONSES {
            let document = document_with("target", old, json!(418));
            let (model, warnings) = translate(&document).expect("valid");
            let expected = weir_model::Respond {
                status: 418,
                before_plugins,
                last: false,
            };
            assert_eq!(model.routes[0].target, weir_model::RouteTarget::Respond(expected));
            assert_eq!(warnings.len(), 1);
        }
    }
}
