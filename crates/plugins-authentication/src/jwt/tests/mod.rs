//! `jwt` as its users see it.

mod locations;
mod short_keys;
mod verify;

use super::vectors::*;
use super::verifier::{BASE64_URL, Verifier};
use super::*;
use aws_lc_rs::hmac;
use base64::Engine as _;
use serde_json::json;
use weir_plugin::{Exchange, Outcome};
use weir_plugins_testkit::*;

const NOW: u64 = NOW_MS / 1_000;

/// A token signed by HMAC with SHA-256.
fn sign(header: &str, claims: &str, secret: &str) -> String {
    let message = format!("{}.{}", BASE64_URL.encode(header), BASE64_URL.encode(claims)).replace('=', "");
    let tag = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()),
        message.as_bytes(),
    );
    format!("{message}.{}", BASE64_URL.encode(tag)).replace('=', "")
}

fn token(claims: &str) -> String {
    sign(r#"{"alg":"HS256","typ":"JWT"}"#, claims, "secret")
}

fn filter(config: &Value) -> Arc<dyn Filter> {
    let credentials = [
        ("alice", Some("hs"), json!({"key": "hs", "secret": "secret"})),
        (
            "alice",
            Some("late"),
            json!({"key": "late", "secret": "secret", "leeway_seconds": 100}),
        ),
        (
            "bob",
            Some("b64"),
            json!({"key": "b64", "secret": "c2VjcmV0", "secret_is_base64": true}),
        ),
        (
            "bob",
            Some("rs"),
            json!({"key": "rs", "algorithm": "RS256", "public_key": RSA_KEY}),
        ),
    ];
    build_with(&Jwt, config, &credentials).expect("valid")
}

fn call(config: &Value, line: &str, headers: &[(&str, &str)]) -> (Outcome, Exchange) {
    let mut exchange = exchange();
    prepare(&mut exchange, line, headers);
    (filter(config).on_request(&mut exchange), exchange)
}

fn bearer(config: &Value, token: &str) -> String {
    word(&call(config, "GET /", &[("Authorization", &format!("Bearer {token}"))]).0)
}

#[test]
fn callers_are_known_and_challenged() {
    let (_, exchange) = call(
        &json!({}),
        "GET /",
        &[
            ("Authorization", &format!("Bearer {}", token(r#"{"iss":"hs"}"#))),
            ("X-Consumer-Username", "evil"),
            ("X_Consumer_Username", "evil"),
            ("X-Anonymous_Consumer", "true"),
        ],
    );
    assert_eq!(
        lines(&exchange.request.headers)[1..],
        [
            "X-Consumer-ID: alice",
            "X-Consumer-Custom-ID: cid",
            "X-Consumer-Username: ALICE",
            "X-Credential-Identifier: hs",
        ]
    );
    for (headers, challenge) in [
        (vec![], "Bearer"),
        (
            vec![("Authorization", "Bearer x")],
            "Bearer error=\"invalid_token\"",
        ),
    ] {
        match call(&json!({}), "GET /", &headers).0 {
            Outcome::Refuse(refusal) => assert_eq!(refusal.challenge.as_deref(), Some(challenge)),
            other => panic!("expected a refusal, found {other:?}"),
        }
        let guests = json!({"identity": {"anonymous": "guest"}});
        let (outcome, exchange) = call(&guests, "GET /", &headers);
        assert_eq!(word(&outcome), "continue");
        assert_eq!(exchange.identity.expect("somebody").consumer.id, "guest");
    }
}

#[test]
fn configurations_and_credentials_are_checked() {
    assert!(build(&Jwt, &example(include_str!("../mod.rs"))).is_ok());
    for (config, places) in [
        (
            json!({"locations": [{"header": ""}], "key_claim": ""}),
            vec!["locations[0]", "key_claim"],
        ),
        (json!({"challenge": "\u{1}"}), vec!["challenge"]),
        (json!({"required_claims": ["iat"]}), vec!["required_claims[0]"]),
        (json!({"secret": "x"}), vec!["secret"]),
    ] {
        assert_eq!(refused_at(&Jwt, &config), places, "{config}");
    }
    let public = |algorithm: &str, key: &str| json!({"key": "k", "algorithm": algorithm, "public_key": key});
    for (credential, place) in [
        (json!({"key": "k", "secret": "s"}), None),
        (json!({"key": "", "secret": "s"}), Some("key")),
        (json!({"key": "k"}), Some("secret")),
        (json!({"key": "k", "secret": ""}), Some("secret")),
        (
            json!({"key": "k", "secret": "!", "secret_is_base64": true}),
            Some("secret"),
        ),
        (json!({"key": "k", "algorithm": "none"}), Some("algorithm")),
        (
            json!({"key": "k", "algorithm": "RS256", "secret": "s"}),
            Some("public_key"),
        ),
        (public("ES256", P256_KEY), None),
        (public("ES256", P256_CERTIFICATE), None),
        (public("ES256", P384_KEY), Some("public_key")),
        (public("RS256", P256_KEY), Some("public_key")),
        (public("EdDSA", RSA_KEY), Some("public_key")),
        (public("RS256", SHORT_RSA_KEY), Some("public_key")),
        (
            public(
                "ES256",
                "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
            ),
            Some("public_key"),
        ),
        (
            public(
                "ES256",
                "-----BEGIN CERTIFICATE-----\nMIMB\n-----END CERTIFICATE-----",
            ),
            Some("public_key"),
        ),
        (public("ES256", "x"), Some("public_key")),
    ] {
        let faults = check_credential(&credential).err().unwrap_or_default();
        let found = faults.first().map(|fault| fault.path.to_string());
        assert_eq!(found.as_deref(), place, "{credential}");
        assert!(faults.iter().all(|fault| !fault.message.contains("AAAA")));
    }
    let credential: Credential =
        serde_json::from_value(json!({"key": "k", "secret": "hidden"})).expect("valid");
    assert!(!format!("{credential:?}").contains("hidden"));
}
