//! The messages about an invalid model, and their places.

mod common;

use common::{errors, model, registry, routes_of};
use serde_json::{Value, json};
use weir_snapshot::{PersistentState, compile};

/// A route to nowhere with this chain.
fn route_with(plugins: Value) -> Value {
    json!({"name": "r", "match": [{}], "to": {"respond": {"status": 503}}, "plugins": plugins})
}

fn phased(request: bool, response: bool) -> Value {
    json!({"use": {"name": "phased", "config": {"request": request, "response": response}}})
}

/// A plugin that sends calls to a service, with this Host.
fn sending(service: &str, host: &str) -> Value {
    json!({"name": "phased", "config": {"sends_to": {"service": service, "host": {"fixed": host}}}})
}

/// That each text is refused with one error, which begins so.
fn refused<const N: usize>(cases: [(Value, &str); N]) {
    for (text, wanted) in cases {
        let found = errors(text.clone());
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert!(found[0].starts_with(wanted), "{wanted}: {found:?}");
    }
}

#[test]
fn errors_lead_to_their_place() {
    refused([
        (
            routes_of(&[json!({"path": "~("})]),
            "routes[0].match[0].path: not a regular expression",
        ),
        (
            routes_of(&[json!({}), json!({"path": "/\u{0}"})]),
            "routes[1].match[0].path: expected a path without a NUL",
        ),
        (
            routes_of(&[json!({"path": format!("/{}", "x".repeat(5000))})]),
            "routes[0].match[0].path: expected at most 4096 bytes",
        ),
        (
            routes_of(&[json!({"path": "/{x}".repeat(40)})]),
            "routes[0].match[0].path: expected at most 32 parameters",
        ),
        (
            routes_of(&[json!({"headers": [{"name": "a"}, {"name": "b", "regex": "["}]})]),
            "routes[0].match[0].headers[1].regex: not a regular expression",
        ),
        (
            routes_of(&[json!({"snis": ["a b"]})]),
            "routes[0].match[0].snis[0]: expected a host name",
        ),
        (
            routes_of(&[json!({"when": ["uri", "~~", "("]})]),
            "routes[0].match[0].when: not a regular expression",
        ),
        (
            json!({"routes": [route_with(json!([phased(true, true), {"use": {"name": "x"}}]))]}),
            "routes[0].plugins[1].use.name: no plugin is named 'x'",
        ),
        (
            json!({"routes": [route_with(json!([{"use": {"name": "phased", "config": {"limits": 1}}}]))]}),
            "routes[0].plugins[0].use.config.limits: not expected here",
        ),
        (
            json!({"routes": [route_with(json!([{"use": {"name": "phased", "when": ["uri", "~~", "("]}}]))]}),
            "routes[0].plugins[0].use.when: not a regular expression",
        ),
        (
            json!({"unmatched": [{"use": {"name": "phased", "config": {"limits": 1}}}]}),
            "unmatched[0].use.config.limits: not expected here",
        ),
        (
            json!({"unmatched": [{"use": sending("gone", "a")}]}),
            "unmatched[0].use.config: no service is named 'gone', to which a plugin sends calls",
        ),
        (
            json!({"services": [{"name": "s", "url": "http://h"}],
                "routes": [route_with(json!([{"use": sending("s", "a:b")}]))]}),
            "routes[0].plugins[0].use.config: expected a host name or an address",
        ),
        (
            json!({"plugins": [{"id": "unused", "name": "phased", "config": {"limits": 1}}]}),
            "plugins[0].config.limits: not expected here",
        ),
        (
            json!({"routes": [route_with(json!([{"use": "absent"}]))]}),
            "routes[0].plugins[0].use: no plugin instance has the id 'absent'",
        ),
        (
            json!({"consumers": [{"id": "c", "credentials": [{"plugin": "phased", "config": {"key": 7}}]}]}),
            "consumers[0].credentials[0].config.key: expected a text",
        ),
        (
            json!({"consumers": [{"id": "c", "credentials": [{"plugin": "idle", "config": {}}]}]}),
            "consumers[0].credentials[0].plugin: the plugin 'idle' has no credentials",
        ),
    ]);
}

#[test]
fn errors_in_texts_of_a_head_lead_to_their_place() {
    let upstream =
        |hash_on: Value| json!({"upstreams": [{"name": "u", "targets": [], "hash_on": [hash_on]}]});
    let route = |fields: Value| {
        let mut text = json!({
            "services": [{"name": "s", "url": "http://x"}],
            "routes": [{"name": "r", "match": [{}], "to": {"service": "s"}}],
        });
        for (name, value) in fields.as_object().expect("an object") {
            text["routes"][0][name] = value.clone();
        }
        text
    };
    refused([
        (
            json!({"services": [{"name": "s", "url": "http://x/a b"}]}),
            "services[0].url: expected a path as in a request, found the character ' '",
        ),
        (
            json!({"upstreams": [{"name": "u", "targets": []}],
                "services": [{"name": "s", "upstream": "u", "path": "/a\r\nb: c"}]}),
            r"services[0].path: expected a path as in a request, found the character '\r'",
        ),
        (
            json!({"upstreams": [{"name": "u", "targets": [{"host": "a\r\nb", "port": 80}]}]}),
            r"upstreams[0].targets[0].host: expected a host name or an address, found 'a\r\nb'",
        ),
        (
            route(json!({"path": {"base": "/a?b"}})),
            "routes[0].path.base: expected a path as in a request, found the character '?'",
        ),
        (
            route(json!({"upstream_host": {"fixed": "a\r\nb: c"}})),
            r"routes[0].upstream_host: expected a host name or an address, with a port or without, found 'a\r\nb: c'",
        ),
        (
            upstream(json!({"cookie": {"name": "a;b"}})),
            "upstreams[0].hash_on[0].cookie.name: expected the name of a cookie, found 'a;b'",
        ),
        (
            upstream(json!({"cookie": {"name": "a", "set_for_path": "/; Domain=x"}})),
            "upstreams[0].hash_on[0].cookie.set_for_path: expected a path without ';'",
        ),
    ]);
}

#[test]
fn other_errors_lead_to_their_place() {
    refused([
        (
            json!({"services": [{"name": "s", "url": "ftp://x"}]}),
            "services[0].url: expected the scheme http, https, h2c, h2, grpc, grpcs, tcp, tls or udp, found 'ftp'",
        ),
        (
            json!({"services": [{"name": "s", "url": "http://x", "path": "/y"}]}),
            "services[0].path: expected no path together with a url",
        ),
        (
            json!({"upstreams": [{"name": "u", "targets": [{"host": "a/b", "port": 80}]}]}),
            "upstreams[0].targets[0].host: expected a host name or an address, found 'a/b'",
        ),
        (
            json!({"upstreams": [{"name": "u", "targets": [{"host": "a", "port": 0}]}]}),
            "upstreams[0].targets[0].port: expected a port from 1 to 65535, found 0",
        ),
        (
            json!({"routes": [{"name": "r", "match": [{}], "to": {"respond": {"status": 99, "before_plugins": true}}}]}),
            "routes[0].to: expected a status from 200 to 599, found 99",
        ),
        (
            json!({"routes": [{"name": "r", "match": [{}], "to": {"respond": {"status": 503, "before_plugins": true}}, "https_only_status": 200}]}),
            "routes[0].https_only_status: expected a status from 300 to 599, found 200",
        ),
        (
            json!({"routes": [{"name": "r", "match": [{}], "to": {"respond": {"status": 503, "before_plugins": true}},
                "response_headers": [{"name": "a b", "value": "request-id"}]}]}),
            "routes[0].response_headers[0].name: expected a header name, found 'a b'",
        ),
        (
            json!({"routes": [{"name": "r", "match": [{}], "to": {"respond": {"status": 503, "before_plugins": true}},
                "request_headers": [{"name": "a", "value": {"text": "x\r\ny: z"}}]}]}),
            "routes[0].request_headers[0].value: expected a header value without control characters",
        ),
        (
            json!({"dialect_settings": [{"dialect": "kong"}, {"dialect": "kong"}]}),
            "dialect_settings[1].dialect: expected one entry for the dialect 'kong'",
        ),
    ]);
}

#[test]
fn all_errors_are_reported_at_once_and_once() {
    let mut text = routes_of(&[json!({"path": "~("}), json!({"path": "~["})]);
    text["plugins"] = json!([{"id": "p", "name": "phased", "config": {"limits": 1}}]);
    text["routes"][0]["plugins"] = json!([{"use": "p"}]);
    text["routes"][1]["plugins"] = json!([{"use": "p"}]);
    text["routes"][1]["dialect"] = json!("kong");
    assert_eq!(errors(text).len(), 3);
}

#[test]
fn credentials_with_the_same_key_are_distinguished() {
    let text = |dialect: &str| {
        let consumer = |id: &str, key: &str| json!({"id": id, "dialect": dialect, "credentials": [{"plugin": "phased", "config": {"key": key}}]});
        json!({
            "consumers": [consumer("a", "SECRET"), consumer("b", "other"), consumer("c", "SECRET")],
            "routes": [{"name": "r", "dialect": dialect, "match": [{}], "to": {"respond": {"status": 503, "before_plugins": true}},
                "plugins": [{"use": {"name": "phased", "config": {"indexes": true}}}]}],
        })
    };
    let wanted = "consumers[2].credentials[0]: expected a unique key: 'c' and 'a' have phased credentials with \
                  the same key";
    for dialect in ["native", "kong"] {
        assert_eq!(errors(text(dialect)), [wanted], "{dialect}");
    }
    let mut lenient = text("apisix");
    lenient["dialect_settings"] = json!([{"dialect": "apisix", "keys_may_repeat": true}]);
    let (_, warnings) = compile(&model(lenient), &registry(), &PersistentState::default())
        .map_err(|found| panic!("{found:?}"))
        .expect("good");
    let warnings: Vec<_> = warnings
        .iter()
        .map(|it| format!("{}: {}", it.path, it.message))
        .collect();
    assert_eq!(warnings, [wanted]);
}
