//! `cors` as browsers see it.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

const PREFLIGHT: &[(&str, &str)] = &[
    ("Origin", "http://a.test"),
    ("Access-Control-Request-Method", "PUT"),
];

/// The outcome of the request work, and the response's headers by name, upstream's ones included.
fn call(config: &Value, line: &str, headers: &[(&str, &str)], upstream: &[(&str, &str)]) -> (String, String) {
    let filter = build(&Cors, config).expect("valid");
    let mut exchange = exchange();
    prepare(&mut exchange, line, headers);
    let outcome = match filter.phases().request {
        true => word(&filter.on_request(&mut exchange)),
        false => "continue".into(),
    };
    for (name, value) in upstream {
        exchange
            .response
            .headers
            .append(name.as_bytes(), value.as_bytes());
    }
    filter.on_response(&mut exchange);
    let headers_text = lines(&exchange.response.headers).join("; ");
    (outcome, headers_text.replace("Access-Control-", ""))
}

#[test]
fn the_origin_that_called_counts_whatever_becomes_of_the_header() {
    let filter = build(&Cors, &json!({"origins": ["https://a.example"]})).expect("valid");
    for (called, rewritten, answered) in [
        (
            Some("https://a.example"),
            Some("http://b.example"),
            Some("https://a.example"),
        ),
        (Some("https://a.example"), None, Some("https://a.example")),
        (Some("http://b.example"), Some("https://a.example"), None),
        (None, Some("https://a.example"), None),
    ] {
        let mut exchange = exchange();
        let headers: Vec<(&str, &str)> = called.map(|origin| ("Origin", origin)).into_iter().collect();
        prepare(&mut exchange, "GET /", &headers);
        assert_eq!(word(&filter.on_request(&mut exchange)), "continue");
        exchange.request.headers.remove(b"origin");
        if let Some(origin) = rewritten {
            exchange.request.headers.append(b"Origin", origin.as_bytes());
        }
        filter.on_response(&mut exchange);
        let allowed = exchange.response.headers.get(b"access-control-allow-origin");
        assert_eq!(allowed, answered.map(str::as_bytes), "{called:?} {rewritten:?}");
    }
}

#[test]
fn origins_are_answered() {
    let one = json!({"fixed_origin": "http://a.test"});
    let many = json!({"origins": ["http://a.test", "https://b.test:8443"], "normalize_origin": true});
    let patterns = json!({
        "origin_patterns": ["^https?://.*\\.re\\.test$"], "host_patterns": [".*\\.loose\\.test$"],
        "hosts": ["host.test"], "normalize_origin": true,
    });
    let reflecting = json!({"origins": ["*"], "credentials": true, "credentials_for_any_origin": true});
    let double = json!({"origins": ["**"], "credentials": true, "credentials_for_any_origin": true});
    let named = json!({"origins": ["http://a.test"], "credentials": true});
    let quiet = json!({"origin_patterns": ["\\.test$"], "vary": false});
    for (config, origin, expected) in [
        (&json!({}), Some("http://a.test"), "Allow-Origin: *"),
        (&json!({}), None, "Allow-Origin: *"),
        (
            &one,
            Some("http://evil.test"),
            "Vary: Origin; Allow-Origin: http://a.test",
        ),
        (&one, None, "Vary: Origin; Allow-Origin: http://a.test"),
        (
            &many,
            Some("https://b.test:8443"),
            "Vary: Origin; Allow-Origin: https://b.test:8443",
        ),
        (
            &many,
            Some("http://a.test:80"),
            "Vary: Origin; Allow-Origin: http://a.test",
        ),
        (&many, Some("https://b.test"), "Vary: Origin"),
        (&many, Some("HTTP://a.test"), "Vary: Origin"),
        (&many, None, "Vary: Origin"),
        (
            &patterns,
            Some("http://x.re.test:80"),
            "Vary: Origin; Allow-Origin: http://x.re.test",
        ),
        (&patterns, Some("http://x.re.testing"), "Vary: Origin"),
        (
            &patterns,
            Some("http://x.loose.test:81"),
            "Vary: Origin; Allow-Origin: http://x.loose.test:81",
        ),
        (&patterns, Some("http://x.loose.test.evil"), "Vary: Origin"),
        (
            &patterns,
            Some("https://host.test"),
            "Vary: Origin; Allow-Origin: https://host.test",
        ),
        (
            &reflecting,
            Some("null"),
            "Vary: Origin; Allow-Origin: null; Allow-Credentials: true",
        ),
        (&reflecting, None, "Allow-Origin: *"),
        (
            &double,
            Some("http://a.test"),
            "Vary: Origin; Allow-Origin: http://a.test; Allow-Credentials: true",
        ),
        (
            &double,
            None,
            "Vary: Origin; Allow-Origin: *; Allow-Credentials: true",
        ),
        (
            &named,
            Some("http://a.test"),
            "Vary: Origin; Allow-Origin: http://a.test; Allow-Credentials: true",
        ),
        (&named, Some("http://b.test"), "Vary: Origin"),
        (&quiet, Some("http://b.test"), "Allow-Origin: http://b.test"),
        (&quiet, Some("http://b"), ""),
    ] {
        let headers: Vec<_> = origin.map(|origin| ("Origin", origin)).into_iter().collect();
        let (outcome, lines) = call(config, "GET /", &headers, &[]);
        assert_eq!(
            (outcome.as_str(), lines.as_str()),
            ("continue", expected),
            "{config} {origin:?}"
        );
    }
}

#[test]
fn preflights_are_answered_as_configured() {
    let split = json!({
        "origins": ["http://a.test"], "methods": ["GET", "PUT"], "exposed_headers": ["X-E"], "max_age_seconds": 600,
        "private_network": true, "preflight_status": 200,
    });
    let all = json!({
        "origins": ["http://a.test"], "methods": ["*"], "headers": ["*"], "exposed_headers": ["X-E"],
        "max_age_seconds": -1, "headers_on": "all", "preflight": "answer-options", "refused": "untouched",
    });
    let lenient = json!({"origins": ["http://z.test"], "methods": ["GET"], "refused": "without-origin"});
    let forward = json!({"preflight": "forward"});
    let asking = [PREFLIGHT, &[("Access-Control-Request-Headers", "X-A, X-Z")]].concat();
    let private = [PREFLIGHT, &[("Access-Control-Request-Private-Network", "true")]].concat();
    let granted = "Vary: Origin; Allow-Origin: http://a.test; ";
    for (config, line, headers, outcome, lines) in [
        (
            &split,
            "OPTIONS /",
            PREFLIGHT,
            "reply 200",
            format!("{granted}Allow-Methods: GET,PUT; Max-Age: 600"),
        ),
        (
            &split,
            "OPTIONS /",
            &asking,
            "reply 200",
            format!("{granted}Allow-Methods: GET,PUT; Max-Age: 600; Allow-Headers: X-A, X-Z"),
        ),
        (
            &split,
            "OPTIONS /",
            &private,
            "reply 200",
            format!("{granted}Allow-Methods: GET,PUT; Max-Age: 600; Allow-Private-Network: true"),
        ),
        (
            &split,
            "OPTIONS /",
            &PREFLIGHT[..1],
            "continue",
            format!("{granted}Expose-Headers: X-E"),
        ),
        (&split, "OPTIONS /", &[], "continue", "Vary: Origin".to_owned()),
        (
            &split,
            "PUT /",
            PREFLIGHT,
            "continue",
            format!("{granted}Expose-Headers: X-E"),
        ),
        (&all, "OPTIONS /", &[], "reply 204", "Vary: Origin".to_owned()),
        (
            &all,
            "GET /",
            &PREFLIGHT[..1],
            "continue",
            format!("{granted}Allow-Methods: *; Allow-Headers: *; Max-Age: -1; Expose-Headers: X-E"),
        ),
        (
            &lenient,
            "OPTIONS /",
            PREFLIGHT,
            "reply 204",
            "Vary: Origin; Allow-Methods: GET".to_owned(),
        ),
        (&forward, "OPTIONS /", PREFLIGHT, "continue", String::new()),
        (
            &forward,
            "GET /",
            PREFLIGHT,
            "continue",
            "Allow-Origin: *".to_owned(),
        ),
    ] {
        assert_eq!(
            call(config, line, headers, &[]),
            (outcome.to_owned(), lines),
            "{config} {line} {headers:?}"
        );
    }
}

#[test]
fn upstreams_own_headers_give_way() {
    let upstream = [
        ("Access-Control-Allow-Origin", "http://up.test"),
        ("Vary", "Accept"),
    ];
    let stranger = [("Origin", "http://b.test")];
    let named = |refused: &str| json!({"origins": ["http://a.test"], "refused": refused});
    let kept = "Allow-Origin: http://up.test; Vary: Accept; Vary: Origin".to_owned();
    for (config, headers, lines) in [
        (
            named("silent"),
            &PREFLIGHT[..1],
            "Vary: Accept; Vary: Origin; Allow-Origin: http://a.test".to_owned(),
        ),
        (
            named("silent"),
            &stranger,
            "Vary: Accept; Vary: Origin".to_owned(),
        ),
        (
            named("without-origin"),
            &stranger,
            "Vary: Accept; Vary: Origin".to_owned(),
        ),
        (named("untouched"), &stranger, kept),
    ] {
        assert_eq!(call(&config, "GET /", headers, &upstream).1, lines, "{config}");
    }
}

#[test]
fn timing_has_origins_of_its_own() {
    for (config, origin, lines) in [
        (
            json!({"timing_origins": ["http://a.test"]}),
            "http://a.test",
            Some("http://a.test"),
        ),
        (
            json!({"timing_origins": ["http://a.test"]}),
            "http://b.test",
            None,
        ),
        (json!({"timing_origins": ["*"]}), "http://b.test", Some("*")),
        (
            json!({"timing_origin_patterns": ["http://.*\\.t\\.com"]}),
            "http://q.t.com",
            Some("http://q.t.com"),
        ),
        (json!({}), "http://a.test", None),
    ] {
        let all = call(&config, "GET /", &[("Origin", origin)], &[]).1;
        let found = all
            .split("; ")
            .find_map(|line| line.strip_prefix("Timing-Allow-Origin: "));
        assert_eq!(found, lines, "{config}");
    }
}

#[test]
fn configurations_are_checked() {
    assert!(build(&Cors, &example(include_str!("mod.rs"))).is_ok());
    for (config, places) in [
        (json!({"credentials": true}), vec!["credentials"]),
        (
            json!({"credentials": true, "origins": ["*"]}),
            vec!["credentials"],
        ),
        (
            json!({"credentials": true, "fixed_origin": "*"}),
            vec!["credentials"],
        ),
        (json!({"credentials": true, "hosts": ["a.test"]}), vec![]),
        (json!({"origin_patterns": ["a", "("]}), vec!["origin_patterns[1]"]),
        (
            json!({"preflight_status": 404, "headers": ["a\nb"]}),
            vec!["preflight_status", "headers"],
        ),
        (json!({"origin": "*"}), vec!["origin"]),
    ] {
        assert_eq!(refused_at(&Cors, &config), places, "{config}");
    }
}
