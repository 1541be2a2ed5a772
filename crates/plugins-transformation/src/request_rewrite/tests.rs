//! `request-rewrite` as upstreams see it.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

/// The target that the upstream gets; `-` before it means that the route's own changes of the path apply.
fn target(config: &Value, path: &str, query: Option<&str>) -> String {
    let filter = build(&RequestRewrite, config).expect("valid");
    let mut exchange = exchange();
    prepare(
        &mut exchange,
        "GET /raw%20path",
        &[("X-T", "a b"), ("X-Bad", "x#y?z")],
    );
    exchange.request.path = path.as_bytes().to_vec();
    exchange.request.query = query.map(|query| query.as_bytes().to_vec());
    assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
    let (path, mark) = match exchange.upstream_path {
        Some(path) => (path, ""),
        None => (exchange.request.path, "-"),
    };
    let mut target = String::from_utf8(path).expect("text");
    if let Some(query) = exchange.upstream_query.or(exchange.request.query) {
        target.push('?');
        target.push_str(&String::from_utf8(query).expect("text"));
    }
    format!("{mark}{target}")
}

#[test]
fn targets_are_rewritten() {
    let decoded = |config: Value| {
        let mut config = config;
        config["decoded_paths"] = json!(true);
        config
    };
    let regex = |pattern: &str, replacement: &str| json!({"path_patterns": [{"pattern": pattern, "replacement": replacement}]});
    let raw = |pattern: &str, replacement: &str| {
        let mut config = regex(pattern, replacement);
        config["unsafe_original_target"] = json!(true);
        config
    };
    let two = json!({"path_patterns": [
        {"pattern": "^/a/(.*)", "replacement": "/one/$1"}, {"pattern": "^/(.*)", "replacement": "/two/$1"},
    ]});
    for (config, path, query, expected) in [
        (json!({}), "/old", Some("a=1"), "-/old?a=1"),
        (json!({"path": "/new"}), "/old", None, "/new"),
        (json!({"path": "/new"}), "/old", Some("a=1&b"), "/new?a=1&b"),
        (json!({"path": "/new?fixed=1"}), "/old", None, "/new?fixed=1"),
        (json!({"path": "/new?fixed=1"}), "/old", Some(""), "/new?fixed=1"),
        (
            json!({"path": "/new?fixed=1"}),
            "/old",
            Some("a=2"),
            "/new?fixed=1&a=2",
        ),
        (
            json!({"path": "/u/$arg_id/$http_x_t/$host"}),
            "/x",
            Some("id=7"),
            "/u/7/a%20b/api.example?id=7",
        ),
        (json!({"path": "/u/$arg_id/$host"}), "/x", None, "/u//api.example"),
        (
            json!({"path": "/pre${uri}/post$uri"}),
            "/mid",
            Some("x=1"),
            "/pre/mid/post/mid?x=1",
        ),
        (
            json!({"path": "/$http_x_bad?q=$http_x_bad"}),
            "/x",
            None,
            "/x%23y%3Fz?q=x%23y?z",
        ),
        (json!({"path": "$arg_none"}), "/x", None, "/"),
        (
            regex("^/iresty/(.*)/(.*)", "/$1-$2"),
            "/iresty/a/b/c",
            Some("x=1"),
            "/a/b-c?x=1",
        ),
        (
            regex("^/iresty/(.*)", "/$1"),
            "/other",
            Some("y=1"),
            "-/other?y=1",
        ),
        (regex("(?i)/abc/", "/x/"), "/pre/ABC/post", None, "/pre/x/post"),
        (regex("/b", "/c?q=$0"), "/a/b/d", Some("e=1"), "/a/c?q=/b/d&e=1"),
        (two.clone(), "/a/b", None, "/one/b"),
        (two, "/b", None, "/two/b"),
        (regex("^/p/(.*)", "/q/$1"), "/p/a%20b%3F", None, "/q/a%20b%3F"),
        (
            decoded(regex("^/p/(.*)", "/q/$1")),
            "/p/a b?",
            Some("c=d"),
            "/q/a%20b%3F?c=d",
        ),
        (decoded(regex("^/p/(.*)", "/q/$1")), "/p/a%b", None, "/q/a%25b"),
        (decoded(regex("^/none", "/q")), "/a b", None, "/a%20b"),
        (json!({}), "/p/a%20b", None, "-/p/a%20b"),
        (
            json!({"unsafe_original_target": true}),
            "/raw path",
            Some("x=%2F"),
            "/raw%20path?x=%2F",
        ),
        (
            json!({"unsafe_original_target": true, "path": "/x%20y?q=1"}),
            "/raw path",
            Some("x=%2F"),
            "/x%20y?q=1&x=%2F",
        ),
        (
            decoded(raw("^/raw(.*)", "/r?q=$1")),
            "/raw%20path",
            Some("x=1"),
            "/r?q=%20path&x=1",
        ),
        (raw("^/none", "/r"), "/raw%20path", Some("x=1"), "/raw%20path?x=1"),
    ] {
        assert_eq!(
            target(&config, path, query),
            expected,
            "{config} {path} {query:?}"
        );
    }
}

#[test]
fn decoded_paths_go_on_in_their_normal_form() {
    for (path, query, expected) in [
        ("/p/a b%", Some("c=d"), "/p/a%20b%25?c=d"),
        ("/raw%20path", None, "-/raw%20path"),
        ("/raw%20path", Some(""), "/raw%2520path?"),
    ] {
        let config = json!({"decoded_paths": true});
        assert_eq!(target(&config, path, query), expected, "{path} {query:?}");
    }
    let config = json!({"decoded_paths": true, "path": "/x/%20"});
    assert_eq!(target(&config, "/p", None), "/x/%2520");
}

#[test]
fn the_rest_of_the_request_is_rewritten() {
    let config = json!({
        "method": "POST", "host": "new.host:81",
        "path_patterns": [{"pattern": "^/test/(.*)/(.*)", "replacement": "/$1_$2"}],
        "headers": [{"append": {"X-Cap": "$1/$2"}}, {"set": {"X-U": "$uri", "X-M": "$request_method"}}],
    });
    for (path, captured, new) in [("/test/a/b", "a/b", Some("/a_b")), ("/none", "/", None)] {
        let filter = build(&RequestRewrite, &config).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, &format!("GET {path}"), &[]);
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        assert_eq!(exchange.request.method, b"POST");
        assert_eq!(exchange.upstream_host.as_deref(), Some(&b"new.host:81"[..]));
        assert_eq!(exchange.upstream_path.as_deref(), new.map(str::as_bytes));
        assert_eq!(exchange.request.path, path.as_bytes());
        let expected = [
            format!("X-Cap: {captured}"),
            "X-M: GET".into(),
            format!("X-U: {path}"),
        ];
        assert_eq!(lines(&exchange.request.headers), expected, "{path}");
    }
}

/// What a step was to take out must not pass in a body that is too large to look at: one that still is not at hand is asked
/// for again, which is refused.
#[test]
fn a_body_that_is_too_large_to_change_does_not_pass() {
    let filter = build(&RequestRewrite, &json!({"body": [{"remove": ["admin"]}]})).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, "POST /", &[("Content-Type", "application/json")]);
    exchange.request.has_body = true;
    for _ in 0..2 {
        assert_eq!(word(&filter.on_request(&mut exchange)), "body");
    }
}

#[test]
fn configurations_are_checked() {
    assert!(build(&RequestRewrite, &example(include_str!("mod.rs"))).is_ok());
    for (config, places) in [
        (
            json!({"method": "GET /", "host": "a\r\nb"}),
            vec!["method", "host"],
        ),
        (
            json!({"path_patterns": [{"pattern": "(?<=a)", "replacement": ""}]}),
            vec!["path_patterns[0].pattern"],
        ),
        (
            json!({"headers": [{"set": {"a b": "c"}}]}),
            vec!["headers[0].set.a b"],
        ),
        (json!({"uri": "/x"}), vec!["uri"]),
    ] {
        assert_eq!(refused_at(&RequestRewrite, &config), places, "{config}");
    }
}
