//! `key-auth` as its users see it.

use super::*;
use serde_json::json;
use weir_model::DialectName;
use weir_plugins_testkit::*;

fn filter(config: &Value) -> Arc<dyn Filter> {
    let credentials = [
        ("alice", Some("c1"), json!({"key": "k-alice"})),
        ("bob", None, json!({"key": "k bob/2+"})),
    ];
    build_with(&KeyAuth, config, &credentials).expect("valid")
}

#[test]
fn keys_are_found_where_they_may_stand() {
    let standard = json!({});
    let lenient = json!({"on_multiple": "first", "empty_is_missing": false});
    let query_only = json!({"locations": [{"query": "token"}]});
    let key = |key: &'static str| ("apikey", key);
    type Call<'c> = (&'c Value, &'c str, &'c [(&'c str, &'c str)], &'c str);
    let cases: [Call<'_>; 20] = [
        (&standard, "GET /", &[key("k-alice")], "continue"),
        (&standard, "GET /", &[("ApiKey", "k-alice")], "continue"),
        (&standard, "GET /", &[("ApiKey", "K-ALICE")], "Invalid"),
        (&standard, "GET /", &[], "Missing"),
        (&standard, "GET /", &[key("")], "Missing"),
        (&standard, "GET /?apikey=", &[], "Missing"),
        (&standard, "GET /", &[key("k-alice"), key("k-alice")], "Duplicate"),
        (&standard, "GET /?apikey=k-alice", &[], "continue"),
        (&standard, "GET /?apikey=k+bob%2F2%2B", &[], "continue"),
        (&standard, "GET /?apikey=k-alice&apikey=x", &[], "Duplicate"),
        (&standard, "GET /?apikey=k-alice", &[key("bad")], "Invalid"),
        (&standard, "OPTIONS /", &[], "Missing"),
        (&lenient, "GET /", &[key("")], "Invalid"),
        (&lenient, "GET /", &[key("k-alice"), key("bad")], "continue"),
        (&lenient, "GET /", &[key("bad"), key("k-alice")], "Invalid"),
        (&lenient, "GET /?apikey=k-alice&apikey=k-alice", &[], "Invalid"),
        (&query_only, "GET /?token=k-alice", &[], "continue"),
        (&query_only, "GET /?apikey=k-alice", &[key("k-alice")], "Missing"),
        (
            &json!({"identity": {"on_preflight": false}}),
            "OPTIONS /",
            &[],
            "continue",
        ),
        (
            &json!({"identity": {"on_preflight": false}}),
            "GET /",
            &[],
            "Missing",
        ),
    ];
    for (config, line, headers, expected) in cases {
        let mut exchange = exchange();
        prepare(&mut exchange, line, headers);
        let outcome = filter(config).on_request(&mut exchange);
        assert_eq!(word(&outcome), expected, "{config} {line} {headers:?}");
        if let Outcome::Refuse(refusal) = outcome {
            assert_eq!((refusal.status, refusal.challenge.as_deref()), (401, Some("Key")));
        }
    }
}

#[test]
fn keys_are_hidden_as_configured() {
    let place = |strip: &str| json!({"strip": strip});
    for (config, line, headers, target, left) in [
        (
            place("no"),
            "GET /?a&apikey=k-alice",
            vec![],
            Some("a&apikey=k-alice"),
            false,
        ),
        (
            place("found"),
            "GET /?a&apikey=k-alice&b=%20",
            vec![],
            Some("a&b=%20"),
            false,
        ),
        (place("found"), "GET /?apikey=k-alice", vec![], None, false),
        (
            place("found"),
            "GET /?apikey=x",
            vec![("apikey", "k-alice")],
            Some("apikey=x"),
            false,
        ),
        (
            place("everywhere"),
            "GET /?apikey=x",
            vec![("apikey", "k-alice")],
            Some(""),
            false,
        ),
        (
            place("everywhere"),
            "GET /?a&apikey=k-alice&b=%20",
            vec![],
            Some("a=&b=+"),
            false,
        ),
        (
            place("everywhere"),
            "GET /",
            vec![("apikey", "k-alice")],
            None,
            false,
        ),
        (place("no"), "GET /", vec![("apikey", "k-alice")], None, true),
    ] {
        let mut exchange = exchange();
        prepare(&mut exchange, line, &headers);
        assert_eq!(word(&filter(&config).on_request(&mut exchange)), "continue");
        let query = exchange.request.query.as_deref().map(String::from_utf8_lossy);
        assert_eq!(query.as_deref(), target, "{config} {line}");
        assert_eq!(
            exchange.request.headers.contains(b"apikey"),
            left,
            "{config} {line}"
        );
    }
}

#[test]
fn keys_in_bodies_wait_for_the_body() {
    let body_too = json!({
        "locations": [{"header": "apikey"}, {"query": "apikey"}, {"body": "apikey"}], "strip": "everywhere",
    });
    let form = ("content-type", "application/x-www-form-urlencoded");
    type Call<'c> = (
        &'c [(&'c str, &'c str)],
        Option<&'c str>,
        &'c str,
        &'c str,
        &'c str,
    );
    let cases: [Call<'_>; 6] = [
        (
            &[form],
            Some("a=1&apikey=k-alice&b=2"),
            "body",
            "continue",
            "a=1&b=2",
        ),
        (&[form], Some("a=1"), "body", "Missing", "a=1"),
        (
            &[form, ("apikey", "k-alice")],
            Some("apikey=x&b=2"),
            "body",
            "continue",
            "b=2",
        ),
        (
            &[("content-type", "text/plain")],
            Some("apikey=k-alice"),
            "Missing",
            "Missing",
            "apikey=k-alice",
        ),
        (
            &[("content-type", "application/json")],
            Some("{broken"),
            "body",
            "Missing",
            "{broken",
        ),
        (&[form, ("apikey", "k-alice")], None, "continue", "", ""),
    ];
    for (headers, body, before, after, left) in cases {
        let mut exchange = exchange();
        prepare(&mut exchange, "POST /", headers);
        exchange.request.has_body = body.is_some();
        let filter = filter(&body_too);
        assert_eq!(word(&filter.on_request(&mut exchange)), before, "{body:?}");
        if let Some(body) = body {
            exchange.request.body = Some(body.as_bytes().to_vec());
            assert_eq!(word(&filter.on_request(&mut exchange)), after, "{body}");
            assert_eq!(exchange.request.body.as_deref(), Some(left.as_bytes()), "{body}");
        }
    }
}

#[test]
fn wrong_keys_of_anonymous_callers_are_hidden_everywhere() {
    let config = json!({"strip": "found", "identity": {"anonymous": "guest", "anonymous_header": null}});
    let mut exchange = exchange();
    prepare(&mut exchange, "GET /?apikey=wrong&a=b", &[("apikey", "wrong")]);
    assert_eq!(word(&filter(&config).on_request(&mut exchange)), "continue");
    assert_eq!(exchange.request.query.as_deref(), Some(&b"a=b"[..]));
    assert!(!exchange.request.headers.contains(b"apikey"));
}

#[test]
fn upstreams_get_the_caller() {
    let guests = json!({"identity": {"anonymous": "guest", "skip_authenticated": true}});
    let custom = json!({"identity": {
        "headers": [
            {"name": "X-User", "value": "consumer-username"},
            {"name": "X-Group", "value": "consumer-group"},
            {"name": "X-Team", "value": {"consumer-label": "team"}},
            {"name": "X-Via", "value": {"text": "gateway"}},
        ],
        "anonymous_header": null,
    }});
    let spoofed = [
        ("x-consumer-id", "root"),
        ("X-Anonymous-Consumer", "false"),
        ("X-Credential-Identifier", "1"),
    ];
    let with = |key: &'static str| [&[("apikey", key)], &spoofed[..]].concat();
    for (config, headers, expected) in [
        (
            json!({}),
            with("k-alice"),
            vec![
                "apikey: k-alice",
                "X-Consumer-ID: alice",
                "X-Consumer-Custom-ID: cid",
                "X-Consumer-Username: ALICE",
                "X-Credential-Identifier: c1",
            ],
        ),
        (
            json!({}),
            with("k bob/2+"),
            vec![
                "apikey: k bob/2+",
                "X-Consumer-ID: bob",
                "X-Consumer-Username: BOB",
            ],
        ),
        (
            guests,
            with("bad"),
            vec![
                "apikey: bad",
                "X-Consumer-ID: guest",
                "X-Consumer-Username: GUEST",
                "X-Anonymous-Consumer: true",
            ],
        ),
        (
            custom,
            vec![("X-Group", "root"), ("apikey", "k-alice")],
            vec![
                "apikey: k-alice",
                "X-User: ALICE",
                "X-Group: staff",
                "X-Team: blue",
                "X-Via: gateway",
            ],
        ),
        (
            json!({"identity": {"on_preflight": false}}),
            spoofed.to_vec(),
            vec![],
        ),
    ] {
        let mut exchange = exchange();
        let method = if headers == spoofed { "OPTIONS /" } else { "GET /" };
        prepare(&mut exchange, method, &headers);
        assert_eq!(word(&filter(&config).on_request(&mut exchange)), "continue");
        assert_eq!(lines(&exchange.request.headers), expected, "{config}");
    }
}

#[test]
fn other_authentication_counts_if_configured() {
    let either = json!({"identity": {"anonymous": "guest", "skip_authenticated": true}});
    for (config, before, headers, expected) in [
        (&either, Some(identity("bob", Some(""))), vec![], Some("bob")),
        (&either, Some(identity("bob", None)), vec![], Some("guest")),
        (
            &either,
            Some(identity("guest", None)),
            vec![("apikey", "k-alice")],
            Some("alice"),
        ),
        (
            &json!({}),
            Some(identity("bob", Some("x"))),
            vec![("apikey", "k-alice")],
            Some("alice"),
        ),
        (&json!({}), Some(identity("bob", Some("x"))), vec![], None),
    ] {
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", &headers);
        exchange.identity = before;
        let outcome = filter(config).on_request(&mut exchange);
        match expected {
            Some(id) => assert_eq!(exchange.identity.expect("somebody").consumer.id, id, "{config}"),
            None => assert_ne!(word(&outcome), "continue", "{config}"),
        }
    }
}

#[test]
fn a_missing_anonymous_consumer_is_an_error_of_the_call_in_the_dialects_of_the_originals() {
    let config = json!({"identity": {"anonymous": "nobody"}});
    for dialect in [DialectName::new("kong"), DialectName::new("apisix")] {
        let credentials = [("alice", None, json!({"key": "k-alice"}))];
        let filter = build_in(dialect, &KeyAuth, &config, &credentials).expect("taken as it is");
        for (headers, expected) in [
            (vec![], "anonymous_consumer_missing 500"),
            (vec![("apikey", "k-alice")], "continue"),
        ] {
            let mut exchange = exchange();
            prepare(&mut exchange, "GET /", &headers);
            assert_eq!(word(&filter.on_request(&mut exchange)), expected, "{dialect:?}");
        }
    }
}

#[test]
fn configurations_and_credentials_are_checked() {
    assert!(build(&KeyAuth, &example(include_str!("mod.rs"))).is_ok());
    for (config, places) in [
        (json!({"locations": [{"header": "a b"}]}), vec!["locations[0]"]),
        (json!({"locations": [{"cookie": "a"}]}), vec!["locations[0]"]),
        (json!({"challenge": "a\nb"}), vec!["challenge"]),
        (
            json!({"identity": {"headers": [{"name": "", "value": "consumer-id"}]}}),
            vec!["identity.headers[0].name"],
        ),
        (
            json!({"identity": {"anonymous": "nobody"}}),
            vec!["identity.anonymous"],
        ),
        (json!({"keynames": []}), vec!["keynames"]),
    ] {
        assert_eq!(refused_at(&KeyAuth, &config), places, "{config}");
    }
    let kind = KeyAuth.credentials().expect("has credentials");
    for (credential, good) in [
        (json!({"key": "x"}), true),
        (json!({"key": ""}), false),
        (json!({}), false),
        (json!({"key": "x", "y": 1}), false),
        (json!({"key_sha256": HASH}), true),
        (json!({"key_sha256": HASH.to_uppercase()}), true),
        (json!({"key_sha256": &HASH[1..]}), false),
        (json!({"key_sha256": HASH.replace('c', "g")}), false),
        (json!({"key": "x", "key_sha256": HASH}), false),
    ] {
        assert_eq!((kind.check)(&credential).is_ok(), good, "{credential}");
    }
    let shown = format!("{:?}", Credential::plain("secret"));
    assert!(!shown.contains("secret"));
}

/// SHA-256 of `k-carol`.
const HASH: &str = "8954946610cbe00d496ae9dc7ac04936ecfb52d88c77748bc1419df9de5a5ab8";

#[test]
fn key_hashes_are_found_by_their_keys() {
    let hashed = [("alice", Some("c3"), json!({ "key_sha256": HASH }))];
    let mixed = [
        ("alice", Some("c3"), json!({"key_sha256": HASH.to_uppercase()})),
        ("bob", None, json!({"key": "k-bob"})),
    ];
    for (credentials, key, expected) in [
        (&hashed[..], "k-carol", Some("alice")),
        (&hashed[..], "k-Carol", None),
        // The hash is no key.
        (&hashed[..], HASH, None),
        (&mixed[..], "k-carol", Some("alice")),
        (&mixed[..], "k-bob", Some("bob")),
        (&mixed[..], "k-none", None),
    ] {
        let filter = build_with(&KeyAuth, &json!({}), credentials).expect("valid");
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", &[("apikey", key)]);
        let outcome = filter.on_request(&mut exchange);
        assert_eq!(word(&outcome) == "continue", expected.is_some(), "{key}");
        let found = exchange.identity.map(|identity| identity.consumer.id.clone());
        assert_eq!(found.as_deref(), expected, "{key}");
    }
}

#[test]
fn key_hashes_in_raw_bytes_are_no_keys() {
    let filter = build_with(
        &KeyAuth,
        &json!({}),
        &[("alice", None, json!({ "key_sha256": HASH }))],
    )
    .expect("valid");
    let bytes = HEXLOWER_PERMISSIVE.decode(HASH.as_bytes()).expect("hex");
    let query: String = bytes.iter().map(|byte| format!("%{byte:02X}")).collect();
    let mut exchange = exchange();
    prepare(&mut exchange, &format!("GET /?apikey={query}"), &[]);
    assert_eq!(word(&filter.on_request(&mut exchange)), "Invalid");
}
