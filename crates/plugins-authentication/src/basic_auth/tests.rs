//! `basic-auth` as its users see it.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

/// `alice:secret`, `bob:secret` and `carol:secret` (by hashes), with another password, and of an unknown user.
const ALICE: &str = "Basic YWxpY2U6c2VjcmV0";
const BOB: &str = "basic Ym9iOnNlY3JldA==";
const CAROL: &str = "Basic Y2Fyb2w6c2VjcmV0";
const CAROL_WRONG: &str = "Basic Y2Fyb2w6d3Jvbmc=";
const WRONG: &str = "Basic YWxpY2U6d3Jvbmc=";
const NOBODY: &str = "Basic bm9ib2R5OnNlY3JldA==";

fn filter(config: &Value) -> Arc<dyn Filter> {
    let mut context = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    context.update(b"secretsalt");
    let sha1 = context.finish();
    let real: String = sha1.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let credentials = [
        (
            "alice",
            Some("c1"),
            json!({"username": "alice", "password": "secret"}),
        ),
        (
            "bob",
            None,
            json!({"username": "bob", "password_sha1": {"hash": real, "salt": "salt"}}),
        ),
    ];
    let sha256 = HEXLOWER_PERMISSIVE.encode(digest(&SHA256, b"secret").as_ref());
    let carol = json!({"username": "carol", "password_sha256": sha256});
    let credentials = [&credentials[..], &[("bob", Some("c3"), carol)]].concat();
    build_with(&BasicAuth, config, &credentials).expect("valid")
}

#[test]
fn callers_are_recognised() {
    let standard = json!({});
    let two = json!({"headers": ["Proxy-Authorization", "Authorization"]});
    let anonymous = json!({"identity": {"anonymous": "guest"}});
    let own = "Authorization";
    let proxy = "Proxy-Authorization";
    type Call<'c> = (&'c Value, &'c [(&'c str, &'c str)], &'c str);
    let cases: [Call<'_>; 14] = [
        (&standard, &[(own, ALICE)], "continue"),
        (&standard, &[(own, BOB)], "continue"),
        (&standard, &[(own, CAROL)], "continue"),
        (&standard, &[(own, CAROL_WRONG)], "Invalid"),
        (&standard, &[(own, WRONG)], "Invalid"),
        (&standard, &[(own, NOBODY)], "Invalid"),
        (&standard, &[(own, "Basic !!!")], "Malformed"),
        (&standard, &[(own, "Bearer x")], "Malformed"),
        (&standard, &[], "Missing"),
        (&two, &[(proxy, ALICE)], "continue"),
        (&two, &[(proxy, WRONG), (own, ALICE)], "Invalid"),
        (&two, &[(proxy, NOBODY), (own, ALICE)], "continue"),
        (&anonymous, &[(own, WRONG)], "continue"),
        (&example(include_str!("mod.rs")), &[(own, ALICE)], "continue"),
    ];
    for (config, headers, expected) in cases {
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", headers);
        let outcome = filter(config).on_request(&mut exchange);
        assert_eq!(word(&outcome), expected, "{config} {headers:?}");
    }
}

#[test]
fn headers_are_hidden_as_configured() {
    for (config, headers, left) in [
        (json!({}), [("Authorization", ALICE), ("X-A", "1")], 2),
        (
            json!({"strip": true}),
            [("Authorization", ALICE), ("X-A", "1")],
            1,
        ),
        (
            json!({"strip": true, "identity": {"anonymous": "guest"}}),
            [("Authorization", WRONG), ("X-A", "1")],
            1,
        ),
        (
            json!({"strip": true, "headers": ["Proxy-Authorization", "Authorization"]}),
            [("Proxy-Authorization", ALICE), ("Authorization", BOB)],
            1,
        ),
    ] {
        let mut exchange = exchange();
        prepare(&mut exchange, "GET /", &headers);
        assert_eq!(word(&filter(&config).on_request(&mut exchange)), "continue");
        let headers = exchange.request.headers.iter();
        let own =
            headers.filter(|header| !header.name.starts_with(b"X-C") && !header.name.starts_with(b"X-Anon"));
        assert_eq!(own.count(), left, "{config}");
    }
}

#[test]
fn bad_configurations_and_credentials_are_refused_at_their_place() {
    for (config, places) in [
        (
            json!({"headers": ["a b"], "challenge": "\n"}),
            &["headers[0]", "challenge"][..],
        ),
        (json!({"strip": 1}), &["strip"]),
    ] {
        assert_eq!(refused_at(&BasicAuth, &config), places, "{config}");
    }
    let check = BasicAuth.credentials().expect("has some").check;
    for (credential, is_good) in [
        (json!({"username": "a", "password": ""}), true),
        (json!({"username": "", "password": "p"}), false),
        (json!({"username": "a"}), false),
        (
            json!({"username": "a", "password_sha1": {"hash": "00", "salt": ""}}),
            false,
        ),
        (json!({"username": "a", "password_sha256": "00"}), false),
        (json!({"username": "a", "password_sha256": "0a".repeat(32)}), true),
        (
            json!({"username": "a", "password": "p", "password_sha256": "0a".repeat(32)}),
            false,
        ),
    ] {
        assert_eq!(check(&credential).is_ok(), is_good, "{credential}");
    }
}
