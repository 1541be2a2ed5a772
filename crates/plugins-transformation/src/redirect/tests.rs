//! `redirect` as callers see it.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

#[test]
fn callers_are_sent_elsewhere() {
    let pattern = |pattern: &str, replacement: &str| json!({"pattern": {"pattern": pattern, "replacement": replacement}});
    for (config, call, expected) in [
        (json!({"location": "/new"}), "GET /old?a=1", "302 /new"),
        (
            json!({"location": "$uri/t/$arg_a", "status": 301}),
            "GET /x?a=1",
            "301 /x/t/1",
        ),
        (
            json!({"location": "/$uri", "variables": false}),
            "GET /x",
            "302 /$uri",
        ),
        (
            json!({"location": "/n?x=1", "append_query": true}),
            "GET /o?a=1",
            "302 /n?x=1&a=1",
        ),
        (
            json!({"location": "/n", "append_query": true}),
            "GET /o?a=%20",
            "302 /n?a=%20",
        ),
        (
            json!({"location": "/n", "append_query": true}),
            "GET /o",
            "302 /n",
        ),
        (
            json!({"location": "https://n.test/b?y=1", "keep_path": true, "body": "b"}),
            "GET /o/p?a",
            "302 https://n.test/o/p?a",
        ),
        (
            json!({"location": "https://n.test", "keep_path": true}),
            "GET /o",
            "302 https://n.test/o",
        ),
        (pattern("^/t/(.*)/(.*)", "/$2/$1"), "GET /t/a/b", "302 /b/a"),
        (pattern("^/t/(.*)", "/$1"), "GET /o", "on"),
        (
            json!({"to_https": true}),
            "GET /x?a=1",
            "301 https://api.example/x?a=1",
        ),
        (
            json!({"to_https": true, "trust_forwarded_proto": true}),
            "GET /x",
            "on",
        ),
        (
            json!({"to_https": true, "https_port": 8443}),
            "POST /x",
            "308 https://api.example:8443/x",
        ),
        (
            json!({"location": "/z$arg_a", "escape": true}),
            "GET /?a=%20b%25",
            "302 /z%20b%",
        ),
        (json!({"location": "/z$arg_a"}), "GET /?a=%0d%0ab", "302 /zb"),
    ] {
        let filter = build(&Redirect, &config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, call, &[("X-Forwarded-Proto", "https")]);
        let found = match filter.on_request(&mut exchange) {
            Outcome::Reply(reply) => {
                assert_eq!(reply.body, b"b");
                let (_, location) = &reply.headers[0];
                format!("{} {}", reply.status, String::from_utf8_lossy(location))
            }
            Outcome::Refuse(refusal) => format!("{} {}", refusal.status, refusal.headers[0].1),
            _ => "on".to_owned(),
        };
        assert_eq!(found, expected, "{config} {call}");
    }
}

/// Browsers take `//` and what is like it to them for the name of a host.
#[test]
fn callers_choose_no_other_host() {
    let location = |text: &str| json!({"location": text});
    let pattern = |pattern: &str, replacement: &str| json!({"pattern": {"pattern": pattern, "replacement": replacement}});
    for (config, path, expected) in [
        (location("$uri"), "/\\evil.test", "/./\\evil.test"),
        (location("$uri"), "//evil.test", "/.//evil.test"),
        (location("$uri"), "/\t/evil.test", "/./\t/evil.test"),
        (location("$uri"), "/\n\\evil.test", "/./\\evil.test"),
        (location("$uri"), "/a\\evil.test", "/a\\evil.test"),
        (location("/$uri"), "/evil.test", "/.//evil.test"),
        (
            location("https://n.test$uri"),
            "/\\evil.test",
            "https://n.test/\\evil.test",
        ),
        (location("//n.test$uri"), "/a", "//n.test/a"),
        (pattern("^/old(.*)", "/$1"), "/old\\evil.test", "/./\\evil.test"),
        (pattern("^/old(.*)", "/$1"), "/old/evil.test", "/.//evil.test"),
        (pattern("^/(.*)", "$1"), "/\\/evil.test", "/.\\/evil.test"),
        (pattern("old", ""), "/old/evil.test", "/.//evil.test"),
        (pattern("^/old(.*)", "//n.test$1"), "/old/a", "//n.test/a"),
        (pattern("old", "//n.test"), "/old/a", "/.///n.test/a"),
        (
            json!({"location": "/x", "keep_path": true}),
            "/\\evil.test",
            "/./\\evil.test",
        ),
        (
            json!({"location": "$uri", "escape": true}),
            "/\\evil.test",
            "/./\\evil.test",
        ),
    ] {
        let filter = build(&Redirect, &config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", &[("Host", "api.example")]);
        exchange.request.path = path.as_bytes().to_vec();
        let Outcome::Refuse(refusal) = filter.on_request(&mut exchange) else {
            panic!("{config} {path:?}: no redirect");
        };
        let found = refusal.headers.iter().find(|(name, _)| name == "Location");
        let found = found.map(|(_, value)| value.as_str());
        assert_eq!(found, Some(expected), "{config} {path:?}");
    }
}

#[test]
fn configurations_are_checked() {
    assert!(build(&Redirect, &example(include_str!("mod.rs"))).is_ok());
    for (config, places) in [
        (json!({}), vec!["location"]),
        (json!({"location": "/a", "to_https": true}), vec!["location"]),
        (json!({"location": "/a", "status": 100}), vec!["status"]),
        (
            json!({"pattern": {"pattern": "(", "replacement": ""}}),
            vec!["pattern.pattern"],
        ),
    ] {
        assert_eq!(refused_at(&Redirect, &config), places, "{config}");
    }
}
