//! `openid-connect` as its users see it, with a provider in place of the engine's network.

use super::*;
use crate::jose::SigningKey;
use crate::jwt::Algorithm;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, json};
use std::cell::{Cell, RefCell};
use weir_plugin::{Exchange, Outcome, SubrequestResponse};
use weir_plugins_testkit::*;

const NOW_S: u64 = NOW_MS / 1_000;
const ISSUER: &str = "https://id.example";

/// A provider: what it answers, and what it was asked.
struct FakeProvider {
    key: SigningKey,
    jwk: Value,
    pem: String,
    is_up: Cell<bool>,
    asked: RefCell<Vec<String>>,
    /// Changes the claims of identity tokens.
    claims: RefCell<Map<String, Value>>,
    nonce: RefCell<String>,
    /// What is said of an opaque token.
    introspection: RefCell<Value>,
    expires_in: Cell<u64>,
    userinfo_sub: RefCell<String>,
}

fn key(id: &str) -> (SigningKey, Value, String) {
    let random = SystemRandom::new();
    let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref()).expect("a key");
    let body = STANDARD.encode(der.as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
    let point = pair.public_key().as_ref();
    let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let jwk = json!({
        "kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "alg": "ES256",
        "x": part(&point[1..33]), "y": part(&point[33..]),
    });
    let key = SigningKey::new(Algorithm::ES256, &pem, Some(id)).expect("a key");
    (key, jwk, pem)
}

impl FakeProvider {
    fn new() -> Self {
        let (key, jwk, pem) = key("k1");
        Self {
            key,
            jwk,
            pem,
            is_up: Cell::new(true),
            asked: RefCell::default(),
            claims: RefCell::default(),
            nonce: RefCell::default(),
            introspection: RefCell::new(json!({"active": true, "sub": "alice", "scope": "read"})),
            expires_in: Cell::new(300),
            userinfo_sub: RefCell::new("alice".into()),
        }
    }

    fn token(&self, more: Value) -> String {
        let mut claims = json!({"iss": ISSUER, "sub": "alice", "exp": NOW_S + 60});
        for (name, value) in more.as_object().expect("claims") {
            claims[name] = value.clone();
        }
        self.key.sign(&claims).expect("signed")
    }

    fn id_token(&self) -> String {
        let mut claims = json!({
            "iss": ISSUER, "sub": "alice", "aud": "shop", "exp": NOW_S + 60, "iat": NOW_S,
            "nonce": *self.nonce.borrow(),
        });
        for (name, value) in self.claims.borrow().iter() {
            claims[name] = value.clone();
        }
        self.key.sign(&claims).expect("signed")
    }

    fn answer(&self, message: &[u8]) -> Option<SubrequestResponse> {
        let text = String::from_utf8_lossy(message).into_owned();
        let line = text.lines().next().unwrap_or_default();
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        self.asked.borrow_mut().push(path.clone());
        if !self.is_up.get() {
            return None;
        }
        let body = match path.as_str() {
            "/.well-known/openid-configuration" => json!({
                "issuer": ISSUER,
                "authorization_endpoint": "https://id.example/auth",
                "token_endpoint": "https://id.example/token",
                "jwks_uri": "https://id.example/keys",
                "userinfo_endpoint": "https://id.example/me",
                "introspection_endpoint": "https://id.example/introspect",
                "end_session_endpoint": "https://id.example/end",
                "code_challenge_methods_supported": ["S256"],
            }),
            "/keys" => json!({"keys": [self.jwk, {"kty": "oct", "k": "c2VjcmV0"}]}),
            "/token" => json!({
                "access_token": self.token(json!({"scope": "openid read"})),
                "id_token": self.id_token(),
                "refresh_token": format!("refresh-{}", self.asked.borrow().len()),
                "expires_in": self.expires_in.get(),
                "token_type": "Bearer",
            }),
            "/me" => json!({"sub": *self.userinfo_sub.borrow(), "email": "a@b"}),
            "/introspect" => self.introspection.borrow().clone(),
            _ => return None,
        };
        Some(SubrequestResponse {
            status: 200,
            body: body.to_string().into_bytes(),
            ..SubrequestResponse::default()
        })
    }

    fn count(&self, path: &str) -> usize {
        self.asked.borrow().iter().filter(|it| *it == path).count()
    }

    /// Runs a call until the filter has decided.
    fn run(&self, filter: &Arc<dyn Filter>, call: &mut Exchange) -> Outcome {
        for _ in 0..50 {
            match filter.on_request(call) {
                Outcome::Subrequest(asked) => call.subrequest_response = Some(self.answer(&asked.message)),
                Outcome::Suspend(_) => {}
                outcome => return outcome,
            }
        }
        panic!("the filter does not decide");
    }
}

fn config(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::new(ISSUER.into(), "shop".into());
    config.client_secret = Some("secret".into());
    config.session = Some(crate::session_cookie::SessionConfig::new(
        "0123456789abcdef".into(),
    ));
    change(&mut config);
    config
}

fn filter(change: impl FnOnce(&mut Config)) -> Arc<dyn Filter> {
    let config = serde_json::to_value(config(change)).expect("JSON");
    build(&OpenIdConnect::default(), &config).expect("valid")
}

fn call(line: &str, headers: &[(&str, &str)]) -> Exchange {
    let mut call = exchange();
    prepare(&mut call, line, headers);
    call
}

/// The cookies of a response, merged into those that a browser has.
fn take_cookies(jar: &mut Vec<(String, String)>, call: &Exchange) {
    for line in lines(&call.response_headers) {
        let Some(cookie) = line.strip_prefix("Set-Cookie: ") else {
            continue;
        };
        let (name, rest) = cookie.split_once('=').expect("a cookie");
        let value = rest.split(';').next().unwrap_or_default();
        jar.retain(|(known, _)| known != name);
        if !cookie.contains("Max-Age=0") {
            jar.push((name.to_owned(), value.to_owned()));
        }
    }
}

fn cookies(jar: &[(String, String)]) -> String {
    let pairs: Vec<String> = jar
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("; ")
}

fn location(outcome: &Outcome) -> String {
    let Outcome::Reply(reply) = outcome else {
        panic!("a redirect, not {}", word(outcome));
    };
    assert_eq!(reply.status, 302);
    let found = reply.headers.iter().find(|(name, _)| name == "Location");
    String::from_utf8(found.expect("a location").1.clone()).expect("text")
}

fn argument(url: &str, name: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let pair = query
        .split('&')
        .find_map(|pair| pair.strip_prefix(&format!("{name}=")))?;
    Some(pair.to_owned())
}

/// A browser that begins to log in: the address at the provider.
fn begin(
    provider: &FakeProvider,
    filter: &Arc<dyn Filter>,
    jar: &mut Vec<(String, String)>,
    line: &str,
) -> String {
    let mut first = call(line, &[("Cookie", &cookies(jar))]);
    let outcome = provider.run(filter, &mut first);
    take_cookies(jar, &first);
    location(&outcome)
}

/// The browser comes back: what it gets.
fn come_back(
    provider: &FakeProvider,
    filter: &Arc<dyn Filter>,
    jar: &mut Vec<(String, String)>,
    query: &str,
) -> Outcome {
    let mut back = call(
        &format!("GET /a/.weir/redirect?{query}"),
        &[("Cookie", &cookies(jar))],
    );
    let outcome = provider.run(filter, &mut back);
    take_cookies(jar, &back);
    outcome
}

fn log_in(provider: &FakeProvider, filter: &Arc<dyn Filter>, jar: &mut Vec<(String, String)>) -> Outcome {
    let url = begin(provider, filter, jar, "GET /a?x=1");
    *provider.nonce.borrow_mut() = argument(&url, "nonce").unwrap_or_default();
    let state = argument(&url, "state").expect("a state");
    come_back(provider, filter, jar, &format!("code=c&state={state}"))
}

#[test]
fn browsers_log_in_and_come_back_to_where_they_wanted_to_go() {
    let provider = FakeProvider::new();
    let filter = filter(|_| {});
    let mut jar = Vec::new();
    let url = begin(&provider, &filter, &mut jar, "GET /a?x=1");
    assert!(
        url.starts_with("https://id.example/auth?response_type=code&client_id=shop&"),
        "{url}"
    );
    for (name, value) in [
        ("redirect_uri", "http%3A%2F%2Fapi.example%2Fa%2F.weir%2Fredirect"),
        ("scope", "openid"),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(argument(&url, name).as_deref(), Some(value));
    }
    *provider.nonce.borrow_mut() = argument(&url, "nonce").expect("a nonce");
    let state = argument(&url, "state").expect("a state");
    let outcome = come_back(&provider, &filter, &mut jar, &format!("code=c&state={state}"));
    assert_eq!(location(&outcome), "/a?x=1");
    assert_eq!(jar.len(), 1, "one session, and no login under way");

    let forged = [
        ("Cookie", cookies(&jar)),
        ("X-Userinfo", "forged".into()),
        ("x_id_token", "forged".into()),
    ];
    let forged: Vec<(&str, &str)> = forged
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let mut next = call("GET /a", &forged);
    assert_eq!(word(&provider.run(&filter, &mut next)), "continue");
    let header = |name: &[u8]| {
        let value = next.request.headers.get(name).expect("a header");
        serde_json::from_slice::<Value>(&STANDARD.decode(value).expect("Base64")).expect("JSON")
    };
    assert_eq!(header(b"X-Userinfo"), json!({"sub": "alice", "email": "a@b"}));
    assert_eq!(header(b"X-ID-Token")["sub"], json!("alice"));
    assert!(next.request.headers.get(b"x-access-token").is_some());
    assert!(
        next.request.headers.get(b"cookie").is_none(),
        "upstreams do not see sessions"
    );
    assert_eq!(next.request.headers.get_all(b"x-userinfo").count(), 1);
    // Another gateway with the same secret knows the session, and one with another secret does not.
    let same = self::filter(|_| {});
    let other = self::filter(|config| {
        config.session = Some(crate::session_cookie::SessionConfig::new(
            "another secret!!".into(),
        ));
    });
    for (gateway, expected) in [(&same, "continue"), (&other, "reply 302")] {
        let mut next = call("GET /a", &[("Cookie", &cookies(&jar))]);
        assert_eq!(word(&provider.run(gateway, &mut next)), expected);
    }
}

#[test]
fn two_tabs_log_in_at_once() {
    let provider = FakeProvider::new();
    let filter = filter(|config| config.nonce = false);
    let mut jar = Vec::new();
    let first = begin(&provider, &filter, &mut jar, "GET /a/one");
    let second = begin(&provider, &filter, &mut jar, "GET /a/two");
    for (url, expected) in [(second, "/a/two"), (first, "/a/one")] {
        let state = argument(&url, "state").expect("a state");
        let outcome = come_back(&provider, &filter, &mut jar, &format!("code=c&state={state}"));
        assert_eq!(location(&outcome), expected);
    }
    // Logins that are never finished do not pile up.
    for number in 0..20 {
        jar.retain(|(name, _)| name != "session");
        begin(&provider, &filter, &mut jar, &format!("GET /{number}"));
    }
    assert!(jar.len() <= 6, "{}", jar.len());
}

#[test]
fn answers_that_were_not_asked_for_begin_no_session() {
    let provider = FakeProvider::new();
    let filter = filter(|_| {});
    let log_in_with = |change: &dyn Fn(String) -> String| {
        let mut jar = Vec::new();
        let url = begin(&provider, &filter, &mut jar, "GET /a");
        *provider.nonce.borrow_mut() = argument(&url, "nonce").expect("a nonce");
        let query = change(argument(&url, "state").expect("a state"));
        let outcome = come_back(&provider, &filter, &mut jar, &query);
        let has_session = jar.iter().any(|(name, _)| name == "session");
        (word(&outcome), has_session)
    };
    for (what, change, expected) in [
        (
            "good",
            &(|state| format!("code=c&state={state}")) as &dyn Fn(String) -> String,
            ("reply 302", true),
        ),
        // An old state: the browser begins again.
        (
            "another state",
            &|state: String| format!("code=c&state={}", state.replace(['0', '1', '2', '3'], "f")),
            ("reply 302", false),
        ),
        ("no state", &|_| "code=c".into(), ("reply 302", false)),
        (
            "an error",
            &|state| format!("error=access_denied&state={state}"),
            ("answered 401", false),
        ),
        (
            "no code",
            &|state| format!("state={state}"),
            ("answered 401", false),
        ),
        (
            "unavailable",
            &|state| format!("error=temporarily_unavailable&state={state}"),
            ("reply 302", false),
        ),
        (
            "mix-up",
            &|state| format!("code=c&state={state}&iss=https%3A%2F%2Fevil.example"),
            ("answered 401", false),
        ),
        (
            "its issuer",
            &|state| format!("code=c&state={state}&iss=https%3A%2F%2Fid.example"),
            ("reply 302", true),
        ),
        (
            "another client",
            &|state| format!("code=c&state={state}&client_id=x"),
            ("answered 401", false),
        ),
    ] {
        let (found, has_session) = log_in_with(change);
        assert_eq!((found.as_str(), has_session), expected, "{what}");
    }
    // Without the cookie of the login, another browser cannot use the answer.
    let mut jar = Vec::new();
    let url = begin(&provider, &filter, &mut jar, "GET /a");
    let state = argument(&url, "state").expect("a state");
    let outcome = come_back(
        &provider,
        &filter,
        &mut Vec::new(),
        &format!("code=c&state={state}"),
    );
    assert_eq!(word(&outcome), "answered 401");
    // A second use of the same answer finds no login.
    *provider.nonce.borrow_mut() = argument(&url, "nonce").expect("a nonce");
    let query = format!("code=c&state={state}");
    assert_eq!(location(&come_back(&provider, &filter, &mut jar, &query)), "/a");
    assert_eq!(
        word(&come_back(&provider, &filter, &mut jar, &query)),
        "answered 401"
    );
}

#[test]
fn restarts_end() {
    let provider = FakeProvider::new();
    let filter = filter(|_| {});
    let mut jar = Vec::new();
    let mut words = Vec::new();
    for _ in 0..5 {
        let url = begin(&provider, &filter, &mut jar, "GET /a");
        let state = argument(&url, "state").expect("a state");
        let query = format!("error=temporarily_unavailable&state={state}");
        words.push(word(&come_back(&provider, &filter, &mut jar, &query)));
    }
    assert_eq!(words[..3], ["reply 302", "reply 302", "reply 302"]);
    assert_eq!(words[3], "answered 401");
}

#[test]
fn browsers_are_sent_back_to_the_same_host_only() {
    let provider = FakeProvider::new();
    let filter = filter(|config| config.nonce = false);
    for (line, expected) in [
        ("GET //evil.example/a", "/.//evil.example/a"),
        ("GET /\\evil.example", "/./\\evil.example"),
        ("GET /a?next=//evil.example", "/a?next=//evil.example"),
    ] {
        let mut jar = Vec::new();
        let url = begin(&provider, &filter, &mut jar, line);
        let state = argument(&url, "state").expect("a state");
        let outcome = come_back(&provider, &filter, &mut jar, &format!("code=c&state={state}"));
        assert_eq!(location(&outcome), expected, "{line}");
    }
}

#[test]
fn identity_tokens_must_be_good() {
    let provider = FakeProvider::new();
    for (what, claims, expected) in [
        ("good", json!({}), true),
        ("another audience", json!({"aud": "bank"}), false),
        (
            "two audiences",
            json!({"aud": ["bank", "shop"], "azp": "shop"}),
            true,
        ),
        (
            "another party",
            json!({"aud": ["bank", "shop"], "azp": "bank"}),
            false,
        ),
        ("another issuer", json!({"iss": "https://evil.example"}), false),
        ("another nonce", json!({"nonce": "x"}), false),
        ("expired", json!({"exp": NOW_S - 1}), false),
        ("from the future", json!({"iat": NOW_S + 600}), false),
        ("no subject", json!({"sub": null}), false),
    ] {
        *provider.claims.borrow_mut() = claims.as_object().expect("claims").clone();
        let outcome = log_in(&provider, &filter(|_| {}), &mut Vec::new());
        let expected = if expected { "reply 302" } else { "answered 401" };
        assert_eq!(word(&outcome), expected, "{what}");
    }
    provider.claims.borrow_mut().clear();
    // Claims of another user.
    *provider.userinfo_sub.borrow_mut() = "bob".into();
    assert_eq!(
        word(&log_in(&provider, &filter(|_| {}), &mut Vec::new())),
        "answered 401"
    );
}

#[test]
fn logging_out_ends_the_session_here_and_at_the_provider() {
    let provider = FakeProvider::new();
    let filter = filter(|config| config.logout.redirect_uri = Some("https://shop.example/bye".into()));
    let mut jar = Vec::new();
    log_in(&provider, &filter, &mut jar);
    assert!(cookies(&jar).contains("session="));
    let mut out = call("GET /logout", &[("Cookie", &cookies(&jar))]);
    let url = location(&provider.run(&filter, &mut out));
    take_cookies(&mut jar, &out);
    assert!(
        url.starts_with("https://id.example/end?client_id=shop&id_token_hint="),
        "{url}"
    );
    assert_eq!(
        argument(&url, "post_logout_redirect_uri").as_deref(),
        Some("https%3A%2F%2Fshop.example%2Fbye")
    );
    assert_eq!(cookies(&jar), "");
}

#[test]
fn expired_tokens_are_renewed_once_for_all_calls() {
    let provider = FakeProvider::new();
    let filter = filter(|_| {});
    let mut jar = Vec::new();
    provider.expires_in.set(0);
    log_in(&provider, &filter, &mut jar);
    provider.expires_in.set(300);
    let before = provider.count("/token");
    // Twenty calls that begin before the first answer is there.
    let mut calls: Vec<Exchange> = (0..20)
        .map(|_| call("GET /a", &[("Cookie", &cookies(&jar))]))
        .collect();
    let begun: Vec<Outcome> = calls.iter_mut().map(|call| filter.on_request(call)).collect();
    let asked = begun
        .iter()
        .filter(|outcome| matches!(outcome, Outcome::Subrequest(_)))
        .count();
    assert_eq!(asked, 1);
    for (call, outcome) in calls.iter_mut().zip(begun) {
        if let Outcome::Subrequest(asked) = outcome {
            call.subrequest_response = Some(provider.answer(&asked.message));
        }
        assert_eq!(word(&provider.run(&filter, call)), "continue");
        assert!(!call.response_headers.is_empty(), "each gets the renewed session");
    }
    assert_eq!(provider.count("/token"), before + 1);
    // A refresh that fails leads to a new login.
    provider.is_up.set(false);
    take_cookies(&mut jar, &calls[0]);
    provider.expires_in.set(0);
    let mut late = call("GET /a", &[("Cookie", &cookies(&jar))]);
    assert_eq!(
        word(&provider.run(&filter, &mut late)),
        "continue",
        "what was renewed is still good"
    );
}

#[test]
fn bearer_tokens_are_checked_by_the_providers_keys() {
    let provider = FakeProvider::new();
    let filter = filter(|config| {
        config.methods = vec![Method::Bearer];
        config.realm = Some("shop".into());
        config.required.scopes = vec!["read write".into(), "admin".into()];
        config.explain = true;
    });
    let (other, _, _) = key("k1");
    let (unknown, _, _) = key("k2");
    let claims = json!({"iss": ISSUER, "sub": "alice", "exp": NOW_S + 60, "scope": "read write"});
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let unsigned = format!("{}.{}.", part(&json!({"alg": "none"})), part(&claims));
    let point = provider.jwk["x"].as_str().expect("a key").to_owned();
    let confused = SigningKey::new(Algorithm::HS256, &point, Some("k1")).expect("a key");
    let confused_pem = SigningKey::new(Algorithm::HS256, &provider.pem, Some("k1")).expect("a key");
    let secret = SigningKey::new(Algorithm::HS256, "secret", None).expect("a key");
    for (what, token, expected) in [
        ("good", provider.token(json!({"scope": "read write"})), "continue"),
        (
            "one alternative",
            provider.token(json!({"scope": ["admin"]})),
            "continue",
        ),
        (
            "a scope is missing",
            provider.token(json!({"scope": "read"})),
            "reply 403",
        ),
        ("no scope", provider.token(json!({})), "reply 403"),
        (
            "expired",
            provider.token(json!({"scope": "admin", "exp": NOW_S - 1})),
            "answered 401",
        ),
        (
            "not good yet",
            provider.token(json!({"scope": "admin", "nbf": NOW_S + 9})),
            "answered 401",
        ),
        (
            "times are texts",
            provider.token(json!({"scope": "admin", "exp": "never"})),
            "answered 401",
        ),
        (
            "another issuer",
            provider.token(json!({"scope": "admin", "iss": "x"})),
            "answered 401",
        ),
        ("none", unsigned, "answered 401"),
        (
            "another key",
            other.sign(&claims).expect("signed"),
            "answered 401",
        ),
        (
            "an unknown key",
            unknown.sign(&claims).expect("signed"),
            "answered 401",
        ),
        (
            "the public key as a secret",
            confused.sign(&claims).expect("signed"),
            "answered 401",
        ),
        (
            "its PEM as a secret",
            confused_pem.sign(&claims).expect("signed"),
            "answered 401",
        ),
        (
            "the client's secret",
            secret.sign(&claims).expect("signed"),
            "answered 401",
        ),
        ("no token at all", "x".into(), "answered 401"),
    ] {
        let mut bearer = call("GET /", &[("Authorization", &format!("Bearer {token}"))]);
        assert_eq!(word(&provider.run(&filter, &mut bearer)), expected, "{what}");
    }
    let Outcome::Refuse(refusal) = provider.run(&filter, &mut call("GET /", &[])) else {
        panic!("a refusal");
    };
    assert_eq!(refusal.challenge.as_deref(), Some("Bearer realm=\"shop\""));
    let mut malformed = call("GET /", &[("Authorization", "Bearer")]);
    assert_eq!(word(&provider.run(&filter, &mut malformed)), "unacceptable 400");
    assert_eq!(
        (
            provider.count("/.well-known/openid-configuration"),
            provider.count("/keys")
        ),
        (1, 1)
    );
}

#[test]
fn random_key_ids_cause_one_fetch() {
    let provider = FakeProvider::new();
    let filter = filter(|config| config.methods = vec![Method::Bearer]);
    let claims = json!({"iss": ISSUER, "sub": "alice", "exp": NOW_S + 60});
    let (_, _, pem) = key("x");
    for number in 0..1_000 {
        let signer = SigningKey::new(Algorithm::ES256, &pem, Some(&format!("k{number}x"))).expect("a key");
        let token = signer.sign(&claims).expect("signed");
        let mut bearer = call("GET /", &[("Authorization", &format!("Bearer {token}"))]);
        assert_eq!(word(&provider.run(&filter, &mut bearer)), "answered 401");
    }
    assert_eq!(provider.count("/keys"), 1);
}

#[test]
fn calls_are_refused_while_the_provider_is_down() {
    let provider = FakeProvider::new();
    provider.is_up.set(false);
    let bearer = filter(|config| config.methods = vec![Method::Bearer]);
    let token = provider.token(json!({}));
    let authorization = format!("Bearer {token}");
    let mut first = call("GET /", &[("Authorization", &authorization)]);
    assert_eq!(word(&provider.run(&bearer, &mut first)), "answered 401");
    let login = filter(|_| {});
    assert_eq!(
        word(&provider.run(&login, &mut call("GET /", &[]))),
        "plugin_failed 503"
    );
    // It is not asked again at once.
    let asked = provider.asked.borrow().len();
    let mut second = call("GET /", &[("Authorization", &authorization)]);
    provider.run(&bearer, &mut second);
    assert_eq!(provider.asked.borrow().len(), asked);
    // Once it is there, calls go on without a reload.
    provider.is_up.set(true);
    let mut third = Exchange::new(|| NOW_MS + 30_000, 7);
    prepare(&mut third, "GET /", &[("Authorization", &authorization)]);
    assert_eq!(word(&provider.run(&bearer, &mut third)), "continue");
}

#[test]
fn opaque_tokens_are_explained_by_the_provider() {
    let provider = FakeProvider::new();
    let filter = filter(|config| {
        config.methods = vec![Method::Introspection];
        config.required.scopes = vec!["read".into()];
    });
    let run = |token: &str| {
        let mut bearer = call("GET /", &[("Authorization", &format!("bearer {token}"))]);
        word(&provider.run(&filter, &mut bearer))
    };
    assert_eq!((run("t1"), run("t1")), ("continue".into(), "continue".into()));
    assert_eq!(provider.count("/introspect"), 1);
    for (answer, expected) in [
        (json!({"active": false}), "answered 401"),
        (json!({"active": "true"}), "answered 401"),
        (
            json!({"active": true, "exp": NOW_S - 1, "scope": "read"}),
            "answered 401",
        ),
        (json!({"active": true, "scope": "other"}), "answered 403"),
        (json!([]), "answered 401"),
    ] {
        *provider.introspection.borrow_mut() = answer.clone();
        assert_eq!(run(&format!("t {answer}")), expected, "{answer}");
    }
}

#[test]
fn consumers_are_found_by_a_claim() {
    let provider = FakeProvider::new();
    for (claims, optional, expected) in [
        (json!({"name": "ALICE"}), false, "continue"),
        (json!({"name": "cid"}), false, "continue"),
        (json!({"name": "unknown"}), false, "answered 403"),
        (json!({}), false, "answered 403"),
        (json!({"name": "unknown"}), true, "continue"),
    ] {
        let filter = filter(|config| {
            config.methods = vec![Method::Bearer];
            config.consumer = Some(ConsumerRules {
                claim: vec!["name".into()],
                by: vec![
                    crate::consumer_names::ConsumerName::Username,
                    crate::consumer_names::ConsumerName::CustomId,
                ],
                optional,
            });
        });
        let token = provider.token(claims.clone());
        let headers = [
            ("Authorization", format!("Bearer {token}")),
            ("X-Consumer-Username", "forged".into()),
        ];
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let mut bearer = call("GET /", &headers);
        assert_eq!(word(&provider.run(&filter, &mut bearer)), expected, "{claims}");
        if expected == "continue" && !optional {
            assert_eq!(
                bearer.request.headers.get(b"x-consumer-username"),
                Some(&b"ALICE"[..])
            );
            assert_eq!(
                bearer.identity.map(|it| it.consumer.id.clone()).as_deref(),
                Some("alice")
            );
        }
    }
}

#[test]
fn headers_of_a_client_are_removed_from_calls_that_are_not_looked_at() {
    let provider = FakeProvider::new();
    let filter = filter(|config| {
        config.identity.on_preflight = false;
        config.cleared_headers = vec!["X-Cleared".into()];
        config.upstream_headers =
            serde_json::from_value(json!([{"name": "X-Who", "value": "id-claims"}])).expect("good");
    });
    let mut preflight = call(
        "OPTIONS /",
        &[
            ("X-Who", "forged"),
            ("X_Cleared", "forged"),
            ("Authorization", "a"),
        ],
    );
    assert_eq!(word(&provider.run(&filter, &mut preflight)), "continue");
    let headers = &preflight.request.headers;
    for (name, is_there) in [("X-Who", false), ("X_Cleared", false), ("Authorization", true)] {
        assert_eq!(headers.contains(name.as_bytes()), is_there, "{name}");
    }
}

#[test]
fn bad_configurations_are_refused_at_their_place() {
    let good = || serde_json::to_value(config(|_| {})).expect("JSON");
    for (field, value, place) in [
        ("discovery", json!("id.example"), "discovery"),
        ("client_id", json!(""), "client_id"),
        ("client_secret", json!(null), "client_secret"),
        ("session", json!(null), "session"),
        ("session", json!({"secret": ""}), "session.secret"),
        ("methods", json!([]), "methods"),
        ("redirect_uri", json!("x"), "redirect_uri"),
        ("public_key", json!("x"), "public_key"),
        ("realm", json!("a\"b"), "realm"),
        ("client_auth", json!("private-key-jwt"), "client_assertion"),
        (
            "upstream_headers",
            json!([{"name": "a b", "value": "id-token"}]),
            "upstream_headers[0]",
        ),
        ("http", json!({"proxy": "https://p"}), "http.proxy"),
        ("required", json!({"schema": {"type": 1}}), "required.schema"),
    ] {
        let mut config = good();
        config[field] = value;
        assert_eq!(
            refused_at(&OpenIdConnect::default(), &config),
            [place],
            "{config}"
        );
    }
    assert!(build(&OpenIdConnect::default(), &example(include_str!("mod.rs"))).is_ok());
    assert!(!format!("{:?}", config(|_| {})).contains("secret\""));
}
