//! `jwt-signer` as its users see it, with servers in place of the engine's network.

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
const KEYS: &str = include_str!("keys.json");

/// A key of the file: it signs for those who issue tokens, or for the gateway.
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
fn told(headers: &[String], name: &str) -> Value {
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
        told(&headers, "Authorization"),
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

/// What becomes of calls with these tokens.
fn judge(cases: Vec<(&str, &Value, Option<String>, &str)>) {
    for (what, config, token, expected) in cases {
        let value = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> = value.iter().map(|it| ("Authorization", it.as_str())).collect();
        let (found, told) = call(&Servers::new(), config, &headers);
        assert_eq!(found, expected, "{what}");
        if headers.is_empty() && found == "continue" {
            assert!(told.is_empty(), "{what}: {told:?}");
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
            "an end that is no time",
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
    let secrets = with(config(), &[("/access_token/accept_secrets", json!(true))]);
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
fn secrets_are_keys_only_where_they_are_wanted() {
    let secret = json!({"kty": "oct", "kid": "s", "k": URL_SAFE_NO_PAD.encode([7; 32])});
    let set = json!({"keys": [secret]});
    let key = SigningKey::of_set(Algorithm::HS256, set.to_string().as_bytes()).expect("a key");
    let token = format!("Bearer {}", key.sign(&claims()).expect("signed"));
    for (accepts, expected) in [
        (true, "continue"),
        (false, "Rejected(\"the token's algorithm is not accepted\")"),
    ] {
        let servers = Servers::new();
        *servers.keys.borrow_mut() = Some(set.clone());
        let config = with(config(), &[("/access_token/accept_secrets", json!(accepts))]);
        let (found, _) = call(&servers, &config, &[("Authorization", &token)]);
        assert_eq!(found, expected);
    }
}

#[test]
fn keys_are_fetched_once_and_again_when_they_do_not_fit() {
    let servers = Servers::new();
    *servers.keys.borrow_mut() = Some(json!({"keys": [public("gateway")]}));
    let plugin = JwtSigner::default();
    let filter = build(&plugin, &config()).expect("valid");
    let token = format!("Bearer {}", signed(Algorithm::RS256, "issuer", &claims()));
    let again = || {
        let mut call = exchange();
        prepare(&mut call, "GET /", &[("Authorization", &token)]);
        (
            word(&servers.run(&filter, &mut call)),
            servers.asked.borrow().len(),
        )
    };
    // The set has just been fetched, so it is not fetched again.
    let unknown = "Rejected(\"the token's key is not known\")";
    assert_eq!(again(), (unknown.to_owned(), 1));
    for _ in 0..5 {
        assert_eq!(again(), (unknown.to_owned(), 1));
    }
    let other = JwtSigner::default();
    let filter = build(&other, &config()).expect("valid");
    *servers.keys.borrow_mut() = None;
    let mut down = exchange();
    prepare(&mut down, "GET /", &[("Authorization", &token)]);
    assert_eq!(word(&servers.run(&filter, &mut down)), "plugin_failed 500");
    assert_eq!(servers.asked.borrow().len(), 2);
}

#[test]
fn keys_are_renewed_when_they_do_not_fit_and_stay_if_that_fails() {
    let servers = Servers::new();
    *servers.keys.borrow_mut() = Some(json!({"keys": [public("gateway")]}));
    let plugin = JwtSigner::default();
    let filter = build(&plugin, &config()).expect("valid");
    let tokens = ["issuer", "p256"].map(|id| {
        let algorithm = if id == "issuer" {
            Algorithm::RS256
        } else {
            Algorithm::ES256
        };
        format!("Bearer {}", signed(algorithm, id, &claims()))
    });
    let at = |seconds: u64, token: &str| {
        let mut call = exchange();
        prepare(&mut call, "GET /", &[("Authorization", token)]);
        call.set_unix_ms(NOW_MS + seconds * 1_000);
        let outcome = word(&servers.run(&filter, &mut call));
        (outcome, servers.asked.borrow().len())
    };
    let good = |questions| ("continue".to_owned(), questions);
    let unknown = |questions| {
        let word = "Rejected(\"the token's key is not known\")";
        (word.to_owned(), questions)
    };
    let [token, other] = &tokens;
    assert_eq!(at(0, token), unknown(1));
    *servers.keys.borrow_mut() = Some(json!({"keys": [public("issuer")]}));
    assert_eq!(at(29, token), unknown(1));
    assert_eq!(at(31, token), good(2));
    // The server is away: what it has said stays, and it is asked every 30 seconds only.
    *servers.keys.borrow_mut() = None;
    for (seconds, questions) in [(40, 2), (62, 3), (65, 3), (91, 3), (93, 4)] {
        assert_eq!(at(seconds, other), unknown(questions), "{seconds}");
        assert_eq!(at(seconds, token), good(questions), "{seconds}");
    }
}

#[test]
fn instances_share_answers_only_if_they_trust_them_alike() {
    let plugin = JwtSigner::default();
    let servers = Servers::new();
    *servers.explained.borrow_mut() = Some(json!({"active": true, "exp": NOW_S + 60}));
    let filter = |http: &Value, cache_seconds: u64| {
        let explains = json!({"endpoint": "https://id.example/introspect", "cache_seconds": cache_seconds});
        let changes = [
            ("/http", http.clone()),
            ("/access_token/introspection", explains),
            (
                "/access_token/verification_keys/cache_seconds",
                json!(cache_seconds),
            ),
        ];
        build(&plugin, &with(config(), &changes)).expect("valid")
    };
    let call = |token: &str| {
        let mut call = exchange();
        prepare(&mut call, "GET /", &[("Authorization", token)]);
        call
    };
    let ask = |http: &Value, cache_seconds: u64, token: &str| {
        let before = servers.asked.borrow().len();
        let outcome = word(&servers.run(&filter(http, cache_seconds), &mut call(token)));
        (outcome, servers.asked.borrow().len() - before)
    };
    let token = signed(Algorithm::RS256, "issuer", &claims());
    for (http, cache_seconds, explanations, documents) in [
        (json!({"verify_tls": false}), 60, 1, 1),
        (json!({}), 60, 1, 1),
        (json!({"proxy": "http://one:3128"}), 60, 1, 1),
        (json!({"proxy": "http://two:3128"}), 60, 1, 1),
        (json!({}), 5, 1, 1),
        (json!({}), 0, 1, 1),
        (json!({}), 0, 1, 0),
        (json!({}), 60, 0, 0),
    ] {
        let what = format!("{http} {cache_seconds}");
        let expected = |questions| ("continue".to_owned(), questions);
        assert_eq!(
            ask(&http, cache_seconds, "Bearer opaque"),
            expected(explanations),
            "{what}"
        );
        assert_eq!(ask(&http, cache_seconds, &token), expected(documents), "{what}");
    }
    // A token that was revoked is not good any more if nothing is kept.
    *servers.explained.borrow_mut() = Some(json!({"active": false}));
    let revoked = "Rejected(\"the token is not active\")";
    assert_eq!(ask(&json!({}), 0, "Bearer opaque"), (revoked.to_owned(), 1));
    assert_eq!(ask(&json!({}), 60, "Bearer opaque"), ("continue".to_owned(), 0));
    // Calls at the same time do not share an answer either.
    let alone = filter(&json!({}), 0);
    let mut calls = [call("Bearer opaque"), call("Bearer opaque")];
    let words = calls.each_mut().map(|call| word(&alone.on_request(call)));
    assert_eq!(words, ["ask", "ask"]);
}

#[test]
fn opaque_tokens_are_explained() {
    let inner = signed(
        Algorithm::RS256,
        "issuer",
        &json!({"sub": "inner", "exp": NOW_S - 5}),
    );
    let explains = |more: Value| {
        let mut rules = json!({
            "endpoint": "https://id.example/introspect", "authorization": "Basic QQ==", "hint": "access_token",
            "arguments": "resource=a",
        });
        rules
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        with(config(), &[("/access_token/introspection", rules)])
    };
    let active = json!({"active": true, "sub": "alice", "exp": NOW_S + 60, "scope": "a", "token": inner});
    for (what, config, answer, expected) in [
        ("active", explains(json!({})), Some(active.clone()), "continue"),
        (
            "inactive",
            explains(json!({})),
            Some(json!({"active": false})),
            "Rejected(\"the token is not active\")",
        ),
        (
            "active as a text",
            explains(json!({})),
            Some(json!({"active": "true"})),
            "plugin_failed 500",
        ),
        ("no answer", explains(json!({})), None, "plugin_failed 500"),
        (
            "expired",
            explains(json!({})),
            Some(json!({"active": true, "exp": NOW_S - 1})),
            "Rejected(\"the token has expired\")",
        ),
        (
            "scopes",
            explains(json!({"claims": {"scopes": ["b"]}})),
            Some(active.clone()),
            "forbidden 403",
        ),
        (
            "a token within",
            explains(json!({"token_claim": ["token"]})),
            Some(active.clone()),
            "continue",
        ),
        (
            "a token within that is checked",
            explains(json!({"token_claim": ["token"], "is_trusted": false})),
            Some(active.clone()),
            "Rejected(\"the token has expired\")",
        ),
        (
            "no token within",
            explains(json!({"token_claim": ["other"]})),
            Some(active.clone()),
            "Rejected(\"the answer has no signed token\")",
        ),
    ] {
        let servers = Servers::new();
        *servers.explained.borrow_mut() = answer;
        let (found, headers) = call(&servers, &config, &[("Authorization", "Bearer a&b")]);
        assert_eq!(found, expected, "{what}");
        let asked = servers.asked.borrow();
        assert!(
            asked[0].contains("Authorization: Basic QQ==\r\n")
                && asked[0].ends_with("\r\n\r\ntoken=a%26b&token_type_hint=access_token&resource=a"),
            "{}",
            asked[0]
        );
        if found == "continue" {
            let subject = if what == "active" { "alice" } else { "inner" };
            assert_eq!(told(&headers, "Authorization")["sub"], subject, "{what}");
        }
    }
}

#[test]
fn an_answer_that_is_not_kept_is_asked_for_once_in_a_call() {
    let explains = json!({"endpoint": "https://id.example/introspect", "cache_seconds": 0});
    let mut config = with(config(), &[("/access_token/introspection", explains.clone())]);
    config["channel_token"] = json!({"request_header": "X-Channel", "introspection": explains});
    let servers = Servers::new();
    *servers.explained.borrow_mut() = Some(json!({"active": true, "exp": NOW_S + 60}));
    let headers = [("Authorization", "Bearer a"), ("X-Channel", "b")];
    let (found, _) = call(&servers, &config, &headers);
    assert_eq!((found.as_str(), servers.asked.borrow().len()), ("continue", 2));
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
    assert_eq!(told(&headers, "X-Channel")["sub"], "alice");
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
            let is_told = headers.iter().any(|line| line == "X-Consumer-ID: alice");
            assert_eq!(is_told, token.is_some(), "{what}: {headers:?}");
        }
    }
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
    let example = example(include_str!("mod.rs"));
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
