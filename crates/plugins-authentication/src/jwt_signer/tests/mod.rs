//! Tests of `jwt-signer` from a user's view, with servers instead of the engine's network. This file holds the shared
//! parts.

mod introspection;
mod keys;

use super::*;
use crate::jose::{Jws, KeySet};
use crate::jwt::Algorithm;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use std::cell::RefCell;
use weir_plugin::{Exchange, Outcome, SubrequestResponse};
use weir_plugins_testkit::*;

const NOW_S: u64 = NOW_MS / 1_000;
const KEYS: &str = include_str!("../keys.json");

/// A key of the file: it signs for an issuer of tokens, or for the gateway.
fn jwk(id: &str) -> Value {
    let all: Value = serde_json::from_str(KEYS).expect("JSON");
    let keys = all["keys"].as_array().expect("a list");
    keys.iter().find(|key| key["kid"] == id).expect("a key").clone()
}

fn public(id: &str) -> Value {
    let mut key = jwk(id);
    let fields = key.as_object_mut().expect("an object");
    fields.retain(|name, _| !["d", "p", "q", "dp", "dq", "qi"].contains(&name.as_str()));
    key
}

fn signed(algorithm: Algorithm, id: &str, claims: &Value) -> String {
    let set = json!({"keys": [jwk(id)]}).to_string();
    let key = SigningKey::of_set(algorithm, set.as_bytes()).expect("a key");
    key.sign(claims).expect("signed")
}

/// Claims that are good for an hour.
fn claims() -> Value {
    json!({"iss": "https://id.example", "sub": "alice", "exp": NOW_S + 3_600, "scope": "a b"})
}

/// What servers answer, and what they were asked.
struct Servers {
    keys: RefCell<Option<Value>>,
    explained: RefCell<Option<Value>>,
    asked: RefCell<Vec<String>>,
}

impl Servers {
    fn new() -> Self {
        Self {
            keys: RefCell::new(Some(json!({"keys": [public("issuer")]}))),
            explained: RefCell::new(None),
            asked: RefCell::default(),
        }
    }

    fn answer(&self, message: &str) -> Option<SubrequestResponse> {
        self.asked.borrow_mut().push(message.to_owned());
        let body = match message.split(' ').nth(1) {
            Some("/jwks") => self.keys.borrow().clone()?,
            Some("/private") => json!({"keys": [jwk("issuer"), jwk("gateway")]}),
            _ => self.explained.borrow().clone()?,
        };
        Some(SubrequestResponse {
            status: 200,
            body: body.to_string().into_bytes(),
            ..SubrequestResponse::default()
        })
    }

    fn run(&self, filter: &Arc<dyn Filter>, call: &mut Exchange) -> Outcome {
        for _ in 0..10 {
            match filter.on_request(call) {
                Outcome::Subrequest(sent) => {
                    let message = String::from_utf8(sent.message).expect("text");
                    call.subrequest_response = Some(self.answer(&message));
                }
                outcome => return outcome,
            }
        }
        panic!("it asks for ever");
    }
}

fn config() -> Value {
    json!({
        "access_token": {
            "verification_keys": {"address": "https://id.example/jwks"},
            "signing": {
                "issuer": "gateway", "scheme": "Bearer",
                "keys": [{"jwk": jwk("gateway").to_string()}],
            },
        },
    })
}

/// Sets what stands at a path such as `/access_token/optional`.
fn with(mut config: Value, changes: &[(&str, Value)]) -> Value {
    for (path, value) in changes {
        let (parent, name) = path.rsplit_once('/').expect("a path");
        config.pointer_mut(parent).expect("a parent")[name] = value.clone();
    }
    config
}

/// A call with these headers: what becomes of it, and the headers of the upstream.
fn call(servers: &Servers, config: &Value, headers: &[(&str, &str)]) -> (String, Vec<String>) {
    let plugin = JwtSigner::default();
    let filter = build(&plugin, config).expect("valid");
    let mut call = exchange();
    prepare(&mut call, "GET /", headers);
    let outcome = servers.run(&filter, &mut call);
    (word(&outcome), lines(&call.request.headers))
}

/// The claims of a token for upstreams, which the gateway's key has signed.
fn upstream_headers(headers: &[String], name: &str) -> Value {
    let start = format!("{name}: ");
    let mut lines = headers
        .iter()
        .filter_map(|line| line.strip_prefix(start.as_str()));
    let token = lines.next().expect("a token").trim_start_matches("Bearer ");
    assert_eq!(lines.next(), None);
    let keys = json!({"keys": [public("gateway")]}).to_string();
    let keys = KeySet::parse(keys.as_bytes()).expect("keys");
    let jws = Jws::parse(token).expect("a token");
    assert_eq!(jws.verify(&keys), Ok(()));
    Value::Object(jws.claims().expect("claims"))
}

#[test]
fn a_good_token_is_signed_again() {
    let servers = Servers::new();
    let token = signed(Algorithm::RS256, "issuer", &claims());
    let bearer = format!("bearer {token}");
    let config = with(
        config(),
        &[
            ("/access_token/original_header", json!("X-Original")),
            ("/access_token/signing/leeway_seconds", json!(-60)),
            ("/access_token/signing/remove_claims", json!(["scope"])),
            (
                "/access_token/signing/add_claims",
                json!({"sub": "stranger", "tier": {"a": 1}}),
            ),
            ("/access_token/signing/set_claims", json!({"aud": "api"})),
        ],
    );
    let forged = [
        ("Authorization", bearer.as_str()),
        ("authorization", "Bearer forged"),
        ("X_Original", "forged"),
    ];
    let (outcome, headers) = call(&servers, &config, &forged);
    assert_eq!(outcome, "continue");
    assert_eq!(
        upstream_headers(&headers, "Authorization"),
        json!({
            "iss": "gateway", "original_iss": "https://id.example", "sub": "alice", "exp": NOW_S + 3_540,
            "tier": {"a": 1}, "aud": "api",
        })
    );
    assert_eq!(headers.len(), 2);
    assert_eq!(headers[1], format!("X-Original: {token}"));
}

/// A token of the issuer with other claims; `null` takes one out.
fn issued(changes: &Value) -> String {
    let mut all = claims();
    let fields = all.as_object_mut().expect("an object");
    fields.extend(changes.as_object().expect("an object").clone());
    fields.retain(|_, value| !value.is_null());
    signed(Algorithm::RS256, "issuer", &all)
}

/// What happens to calls with these tokens.
fn judge(cases: Vec<(&str, &Value, Option<String>, &str)>) {
    for (what, config, token, expected) in cases {
        let value = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> = value.iter().map(|it| ("Authorization", it.as_str())).collect();
        let (found, headers_sent) = call(&Servers::new(), config, &headers);
        assert_eq!(found, expected, "{what}");
        if headers.is_empty() && found == "continue" {
            assert!(headers_sent.is_empty(), "{what}: {headers_sent:?}");
        }
    }
}

#[test]
fn tokens_must_be_there_and_signed() {
    let plain = config();
    let optional = with(config(), &[("/access_token/optional", json!(true))]);
    let unsigned = "Rejected(\"the token is not signed\")";
    judge(vec![
        ("good", &plain, Some(issued(&json!({}))), "continue"),
        ("none", &plain, None, "Missing"),
        ("none, and none is needed", &optional, None, "continue"),
        (
            "a bad one, and none is needed",
            &optional,
            Some("a.b.c".into()),
            unsigned,
        ),
        ("empty", &plain, Some(String::new()), unsigned),
        ("opaque", &plain, Some("opaque".into()), unsigned),
    ]);
}

#[test]
fn times_are_checked() {
    let plain = config();
    let rules = |rules: Value| with(config(), &[("/access_token/claims", rules)]);
    let off = rules(json!({"verify_expiry": false}));
    let late = rules(json!({"leeway_seconds": 10}));
    let expired = issued(&json!({"exp": NOW_S - 5}));
    let endless = "Rejected(\"the token does not say when it expires\")";
    judge(vec![
        (
            "expired",
            &plain,
            Some(expired.clone()),
            "Rejected(\"the token has expired\")",
        ),
        (
            "expired a short time ago",
            &late,
            Some(expired.clone()),
            "continue",
        ),
        (
            "expired, and that is not checked",
            &off,
            Some(expired),
            "continue",
        ),
        (
            "without an end",
            &plain,
            Some(issued(&json!({"exp": null}))),
            endless,
        ),
        (
            "an end that is not a valid time",
            &plain,
            Some(issued(&json!({"exp": "soon"}))),
            endless,
        ),
        (
            "not good yet",
            &plain,
            Some(issued(&json!({"nbf": NOW_S + 5}))),
            "Rejected(\"the token is not good yet\")",
        ),
    ]);
}

#[test]
fn scopes_are_checked() {
    let scopes = |scopes: Value| with(config(), &[("/access_token/claims", json!({"scopes": scopes}))]);
    let (one, two, both) = (
        scopes(json!(["b"])),
        scopes(json!(["c", "a b"])),
        scopes(json!(["a c"])),
    );
    let empty = scopes(json!([" "]));
    let good = || Some(issued(&json!({})));
    judge(vec![
        ("a scope", &one, good(), "continue"),
        ("one of two", &two, good(), "continue"),
        (
            "a list of scopes",
            &one,
            Some(issued(&json!({"scope": ["a", "b"]}))),
            "continue",
        ),
        ("one that is lacking", &both, good(), "forbidden 403"),
        (
            "no scopes",
            &one,
            Some(issued(&json!({"scope": null}))),
            "forbidden 403",
        ),
        ("an empty alternative", &empty, good(), "forbidden 403"),
    ]);
}

#[test]
fn forged_tokens_are_refused() {
    let body = URL_SAFE_NO_PAD.encode(claims().to_string());
    let head = |fields: Value| URL_SAFE_NO_PAD.encode(fields.to_string());
    let good = signed(Algorithm::RS256, "issuer", &claims());
    let signature = good.rsplit('.').next().expect("a signature").to_owned();
    // The public key as the secret of an HMAC.
    let secret = URL_SAFE_NO_PAD.encode(public("issuer")["n"].as_str().expect("a number"));
    let as_secret = json!({"keys": [{"kty": "oct", "kid": "issuer", "k": secret}]}).to_string();
    let confused = SigningKey::of_set(Algorithm::HS256, as_secret.as_bytes()).expect("a key");
    let confused = confused.sign(&claims()).expect("signed");
    let secrets = with(config(), &[("/access_token/allow_symmetric_keys", json!(true))]);
    let own = signed(Algorithm::RS256, "gateway", &claims());
    for (what, config, token) in [
        (
            "none",
            &config(),
            format!("{}.{body}.", head(json!({"alg": "none"}))),
        ),
        (
            "none, with a signature",
            &config(),
            format!("{}.{body}.{signature}", head(json!({"alg": "none"}))),
        ),
        (
            "a critical extension",
            &config(),
            format!(
                "{}.{body}.{signature}",
                head(json!({"alg": "RS256", "crit": ["b64"]}))
            ),
        ),
        (
            "other claims",
            &config(),
            format!(
                "{}.{}.{signature}",
                good.split('.').next().expect("a head"),
                head(json!({"sub": "root", "exp": NOW_S + 60}))
            ),
        ),
        ("a public key as a secret", &config(), confused.clone()),
        (
            "a public key as a secret, where secrets are good",
            &secrets,
            confused,
        ),
        ("the gateway's own", &config(), own),
        (
            "a key within the token",
            &config(),
            format!(
                "{}.{body}.{signature}",
                head(
                    json!({"alg": "RS256", "kid": "other", "jwk": public("gateway"), "jku": "https://evil.example/jwks"})
                )
            ),
        ),
    ] {
        let servers = Servers::new();
        let (found, headers) = call(&servers, config, &[("Authorization", &format!("Bearer {token}"))]);
        assert!(found.starts_with("Rejected("), "{what}: {found}");
        assert!(
            headers.len() == 1 && !headers[0].contains("gateway"),
            "{what}: {headers:?}"
        );
        let asked = servers.asked.borrow();
        assert!(
            asked.iter().all(|it| it.contains("Host: id.example\r\n")),
            "{what}: {asked:?}"
        );
    }
}

#[test]
fn two_tokens_are_signed_each_for_itself() {
    let mut config = config();
    config["channel_token"] = json!({
        "request_header": "X-Channel",
        "verification_keys": {"address": "https://id.example/jwks", "username": "u", "password": "p"},
        // The header of the first token of callers is that of the second one for upstreams.
        "signing": {
            "issuer": "other", "header": "X-Signed", "algorithm": "RS512",
            "key_server": {"address": "https://id.example/private"},
        },
    });
    let config = with(config, &[("/access_token/signing/header", json!("X-Channel"))]);
    let servers = Servers::new();
    let tokens = [
        signed(Algorithm::RS256, "issuer", &claims()),
        signed(
            Algorithm::PS384,
            "issuer",
            &json!({"sub": "program", "exp": NOW_S + 60}),
        ),
    ];
    let bearer = format!("Bearer {}", tokens[0]);
    let headers = [
        ("Authorization", bearer.as_str()),
        ("X-Channel", tokens[1].as_str()),
        ("X-Signed", "forged"),
    ];
    let (found, headers) = call(&servers, &config, &headers);
    assert_eq!(found, "continue");
    assert_eq!(upstream_headers(&headers, "X-Channel")["sub"], "alice");
    assert_eq!(headers.len(), 2, "{headers:?}");
    // The second key server's first key that fits is the issuer's.
    let text = headers[1].strip_prefix("X-Signed: ").expect("a token");
    let claims = Jws::parse(text).expect("a token").claims().expect("claims");
    assert_eq!(
        (&claims["iss"], &claims["sub"]),
        (&json!("other"), &json!("program"))
    );
    let asked = servers.asked.borrow().clone();
    assert!(asked[1].contains("Authorization: Basic dTpw\r\n"), "{}", asked[1]);
    let missing = call(&servers, &config, &[("Authorization", bearer.as_str())]).0;
    assert_eq!(missing, "Missing");
}

#[test]
fn tokens_name_consumers() {
    let rules = |claim: Value| {
        with(
            config(),
            &[(
                "/access_token/claims",
                json!({"consumer_claim": claim, "consumer_by": ["custom-id"]}),
            )],
        )
    };
    let mut optional = rules(json!(["sub"]));
    optional["access_token"]["optional"] = json!(true);
    for (what, config, subject, expected) in [
        ("known", &rules(json!(["sub"])), Some(json!("cid")), "continue"),
        (
            "by another name",
            &rules(json!(["sub"])),
            Some(json!("ALICE")),
            "forbidden 403",
        ),
        (
            "not there",
            &rules(json!(["user", "id"])),
            Some(json!("cid")),
            "forbidden 403",
        ),
        (
            "no text",
            &rules(json!(["sub"])),
            Some(json!(["cid"])),
            "forbidden 403",
        ),
        ("no token", &optional, None, "continue"),
    ] {
        let token = subject.map(|subject| {
            let claims = json!({"sub": subject, "exp": NOW_S + 60});
            format!("Bearer {}", signed(Algorithm::RS256, "issuer", &claims))
        });
        let mut headers = vec![("X-Consumer-ID", "forged"), ("X_Consumer_Username", "forged")];
        headers.extend(token.iter().map(|it| ("Authorization", it.as_str())));
        let (found, headers) = call(&Servers::new(), config, &headers);
        assert_eq!(found, expected, "{what}");
        if found == "continue" {
            assert!(
                !headers.iter().any(|line| line.contains("forged")),
                "{what}: {headers:?}"
            );
            let has_header = headers.iter().any(|line| line == "X-Consumer-ID: alice");
            assert_eq!(has_header, token.is_some(), "{what}: {headers:?}");
        }
    }
}

/// The defect: without a claim that names a consumer, the client's own headers reached the upstream.
#[test]
fn callers_do_not_say_who_they_are() {
    let token = format!("Bearer {}", signed(Algorithm::RS256, "issuer", &claims()));
    let mut optional = config();
    optional["access_token"]["optional"] = json!(true);
    for (config, token) in [
        (&config(), Some(&token)),
        (&optional, Some(&token)),
        (&optional, None),
    ] {
        let mut headers = vec![
            ("X-Consumer-ID", "forged"),
            ("X_Consumer_Username", "forged"),
            ("X-Consumer-Custom-ID", "forged"),
            ("X-Credential-Identifier", "forged"),
            ("X-Anonymous-Consumer", "forged"),
            ("X-Authenticated-Groups", "forged"),
        ];
        headers.extend(token.map(|it| ("Authorization", it.as_str())));
        let (found, headers) = call(&Servers::new(), config, &headers);
        assert_eq!(found, "continue");
        assert!(!headers.iter().any(|line| line.contains("forged")), "{headers:?}");
    }
    // What another plugin has said stays.
    let mut call = exchange();
    prepare(&mut call, "GET /", &[("X-Consumer-Username", "ALICE")]);
    call.identity = Some(weir_plugins_testkit::identity("alice", None));
    let filter = build(&JwtSigner::default(), &optional).expect("valid");
    assert_eq!(word(&Servers::new().run(&filter, &mut call)), "continue");
    assert_eq!(lines(&call.request.headers), ["X-Consumer-Username: ALICE"]);
}

#[test]
fn challenges_name_the_realm_and_no_more() {
    let mut config = config();
    config["realm"] = json!("shop");
    let filter = build(&JwtSigner::default(), &config).expect("valid");
    for (token, expected) in [
        (None, "Bearer realm=\"shop\""),
        (Some("Bearer x"), "Bearer realm=\"shop\", error=\"invalid_token\""),
    ] {
        let mut call = exchange();
        let headers: Vec<(&str, &str)> = token.iter().map(|it| ("Authorization", *it)).collect();
        prepare(&mut call, "GET /", &headers);
        let Outcome::Refuse(refusal) = Servers::new().run(&filter, &mut call) else {
            panic!("it goes on");
        };
        assert_eq!(refusal.challenge.as_deref(), Some(expected));
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    for (path, value, place) in [
        (
            "/access_token/request_header",
            json!("a b"),
            "access_token.request_header",
        ),
        (
            "/access_token/verification_keys/address",
            json!("a"),
            "access_token.verification_keys.address",
        ),
        (
            "/access_token/verification_keys/username",
            json!("a"),
            "access_token.verification_keys.password",
        ),
        (
            "/access_token/signing/keys",
            json!([]),
            "access_token.signing.keys",
        ),
        (
            "/access_token/signing/algorithm",
            json!("ES256"),
            "access_token.signing.keys",
        ),
        (
            "/access_token/signing/scheme",
            json!("a b"),
            "access_token.signing.scheme",
        ),
        (
            "/access_token/signing/header",
            json!(""),
            "access_token.signing.header",
        ),
        (
            "/access_token/original_header",
            json!("authorization"),
            "access_token.original_header",
        ),
        (
            "/access_token/introspection",
            json!({"endpoint": "a"}),
            "access_token.introspection.endpoint",
        ),
        (
            "/access_token/introspection",
            json!({"endpoint": "http://a", "timeout_ms": 0}),
            "access_token.introspection.timeout_ms",
        ),
        (
            "/access_token/introspection",
            json!({"endpoint": "http://a", "authorization": "a\nb"}),
            "access_token.introspection.authorization",
        ),
        ("/realm", json!("\""), "realm"),
        ("/http", json!({"timeout_ms": 0}), "http.timeout_ms"),
    ] {
        let config = with(config(), &[(path, value)]);
        assert_eq!(refused_at(&JwtSigner::default(), &config), [place], "{config}");
    }
    let example = example(include_str!("../mod.rs"));
    assert!(build(&JwtSigner::default(), &example).is_ok());
    // The kinds of keys that sign.
    for (algorithm, id) in [
        (Algorithm::RS384, "issuer"),
        (Algorithm::PS512, "issuer"),
        (Algorithm::ES256, "p256"),
        (Algorithm::ES384, "p384"),
        (Algorithm::ES512, "p521"),
        (Algorithm::EdDSA, "ed"),
    ] {
        let token = signed(algorithm, id, &claims());
        let keys = json!({"keys": [public(id)]}).to_string();
        let keys = KeySet::parse(keys.as_bytes()).expect("keys");
        assert_eq!(Jws::parse(&token).expect("a token").verify(&keys), Ok(()), "{id}");
    }
}
