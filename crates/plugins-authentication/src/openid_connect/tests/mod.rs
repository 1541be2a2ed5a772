//! Tests of `openid-connect` from a user's view, with a provider instead of the engine's network. This file holds the
//! shared parts.

mod bearer;
mod logins;
mod options;

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
    /// A path that answers 500.
    broken: Cell<&'static str>,
    /// The status of the token endpoint, and its error.
    refusal: Cell<Option<(u16, &'static str)>>,
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
            broken: Cell::default(),
            refusal: Cell::default(),
            asked: RefCell::default(),
            claims: RefCell::default(),
            nonce: RefCell::default(),
            introspection: RefCell::new(json!({"active": true, "sub": "alice", "scope": "read"})),
            expires_in: Cell::new(300),
            userinfo_sub: RefCell::new("alice".into()),
        }
    }

    fn token(&self, more: Value) -> String {
        self.token_of("JWT", &more)
    }

    /// A token of a kind. A claim that is null is left out.
    fn token_of(&self, kind: &str, more: &Value) -> String {
        let mut claims = json!({"iss": ISSUER, "sub": "alice", "exp": NOW_S + 60});
        let all = claims.as_object_mut().expect("claims");
        all.extend(more.as_object().expect("claims").clone());
        all.retain(|_, value| !value.is_null());
        self.key.sign_as(kind, &claims).expect("signed")
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
        let failed = |status: u16, error: &str| {
            Some(SubrequestResponse {
                status,
                body: json!({ "error": error }).to_string().into_bytes(),
                ..SubrequestResponse::default()
            })
        };
        if path == self.broken.get() {
            return failed(500, "server_error");
        }
        if let ("/token", Some((status, error))) = (path.as_str(), self.refusal.get()) {
            return failed(status, error);
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
            "/me" if self.userinfo_sub.borrow().is_empty() => return failed(401, "invalid_token"),
            "/me" => json!({"sub": *self.userinfo_sub.borrow(), "email": "a@b"}),
            // Some providers refuse what is no token of theirs.
            "/introspect" if self.introspection.borrow().is_string() => {
                return failed(400, self.introspection.borrow().as_str().unwrap_or_default());
            }
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
    filter_of(&OpenIdConnect::default(), change)
}

/// An instance of a plugin, which shares its caches.
fn filter_of(plugin: &OpenIdConnect, change: impl FnOnce(&mut Config)) -> Arc<dyn Filter> {
    let config = serde_json::to_value(config(change)).expect("JSON");
    build(plugin, &config).expect("valid")
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
    come_back_at(|| NOW_MS, provider, filter, jar, query)
}

/// The same with a clock of its own.
fn come_back_at(
    clock: fn() -> u64,
    provider: &FakeProvider,
    filter: &Arc<dyn Filter>,
    jar: &mut Vec<(String, String)>,
    query: &str,
) -> Outcome {
    let mut back = Exchange::new(clock, 7);
    prepare(
        &mut back,
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
        ("client", json!({"claims": []}), "client.claims"),
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
    assert!(build(&OpenIdConnect::default(), &example(include_str!("../mod.rs"))).is_ok());
    assert!(!format!("{:?}", config(|_| {})).contains("secret\""));
}
