//! Plans that know their subscribers by a password, a signature, a token of an authorization server or a certificate.

use crate::provider::Provider;
use crate::support::{Answer, Call, server, until, upstream};
use crate::tools::program;
use crate::{Plane, petstore};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

const PLANS: &str = "/api/v1/apis/pets/versions/1.0.0/plans";

/// Pets in `test` with these plans, and an application with these fields.
fn offered(flags: &[&str], plans: &[(&str, Value)], application: Value) -> Plane {
    let plane = Plane::with(&[&["--environment", "test"], flags].concat());
    plane.version(&petstore());
    for (name, plan) in plans {
        let mut plan = plan.clone();
        plan["state"] = "published".into();
        plane.put(&format!("{PLANS}/{name}"), plan).expect(201);
    }
    plane.put("/api/v1/applications/shop", application).expect(201);
    plane.publish("test", upstream("pets"));
    until("something is asked for", || {
        plane.status("/v1/pets", None) == Some(401)
    });
    plane
}

fn subscribe(plane: &Plane, plan: &str) -> Value {
    let wanted = json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": plan});
    plane.post("/api/v1/subscriptions", wanted).expect(201).json()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("{pointer}: {value}"))
}

fn call(plane: &Plane, headers: &[(&str, &str)]) -> Answer {
    let call = Call::get(&plane.weir.proxy(), "/v1/pets");
    let call = headers
        .iter()
        .fold(call, |call, (name, value)| call.header(name, value));
    call.make()
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// What a call carries that is signed now.
fn signature(key: &str, secret: &str, path: &str) -> [(&'static str, String); 2] {
    let date = Command::new("date")
        .args(["-u", "+%a, %d %b %Y %H:%M:%S GMT"])
        .env("LC_ALL", "C")
        .output();
    let date = String::from_utf8(date.expect("a date").stdout)
        .expect("a text")
        .trim()
        .to_owned();
    let signed = format!("date: {date}\n@request-target: get {path}");
    let tag = hmac::sign(
        &hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()),
        signed.as_bytes(),
    );
    let tag = STANDARD.encode(tag.as_ref());
    let authorization = format!(
        "hmac username=\"{key}\", algorithm=\"hmac-sha256\", headers=\"date @request-target\", signature=\"{tag}\""
    );
    [("Date", date), ("Authorization", authorization)]
}

fn signed(plane: &Plane, key: &str, secret: &str) -> Answer {
    let headers = signature(key, secret, "/v1/pets");
    call(
        plane,
        &headers.each_ref().map(|(name, value)| (*name, value.as_str())),
    )
}

fn set(plane: &Plane, id: &str, state: &str) {
    let path = format!("/api/v1/subscriptions/{id}/state");
    plane.post(&path, json!({"state": state})).expect(200);
}

/// In how many files below a folder a text is.
fn files_with(folder: &Path, text: &str) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let has_it = |entry: std::fs::DirEntry| match entry.file_type().expect("a file").is_dir() {
        true => files_with(&entry.path(), text),
        false => {
            let bytes = std::fs::read(entry.path()).expect("readable");
            usize::from(bytes.windows(text.len()).any(|it| it == text.as_bytes()))
        }
    };
    entries.map(has_it).sum()
}

/// 20, 21, 23 with passwords.
#[test]
fn passwords_are_shown_once_and_work_as_keys_do() {
    let plan = json!({"security": "basic", "limits": [{"count": 900, "per": "month"}]});
    let plane = offered(&[], &[("gold", plan)], json!({}));
    let made = subscribe(&plane, "gold");
    let (user, password) = (text(&made, "/credential/name"), text(&made, "/credential/key"));
    let (id, good) = (text(&made, "/id"), basic(user, password));
    let status = |value: &str| call(&plane, &[("Authorization", value)]).status;
    until("the password is good", || status(&good) == 200);
    assert_eq!(status(&basic(user, "wrong")), 401);
    assert_eq!(status(&basic("stranger", password)), 401);
    let answer = call(&plane, &[("Authorization", &good)]);
    assert_eq!(answer.header("ratelimit-limit").as_deref(), Some("900"));
    let path = format!("/api/v1/subscriptions/{id}/credentials");
    let listed = plane.get(&path).expect(200);
    assert!(
        listed.body.contains(user) && !listed.body.contains(password),
        "{listed:?}"
    );
    assert!(!listed.body.contains("\"hash\""), "{listed:?}");
    assert_eq!(
        files_with(plane._folder.path(), password),
        0,
        "the password is in a file"
    );

    // The old one is good for no longer than it may overlap.
    let replaces = json!({"replaces": text(&made, "/credential/id"), "overlap": 0});
    let other = plane.post(&path, replaces).expect(201).json();
    let other = basic(text(&other, "/name"), text(&other, "/key"));
    until("the new one is good", || status(&other) == 200);
    until("the old one is not", || status(&good) == 401);

    set(&plane, id, "paused");
    until("it is paused", || status(&other) == 403);
    let explained = json!({"url": "http://localhost/v1/pets", "headers": {"Authorization": other}});
    let explained = plane.post("/api/v1/explain", explained).expect(200).json();
    assert_eq!(explained["plans"][0]["verdict"], "paused", "{explained:#}");
    set(&plane, id, "accepted");
    until("it goes on", || status(&other) == 200);
    set(&plane, id, "closed");
    until("it is unknown", || status(&other) == 401);
    let exported = plane
        .get("/api/v1/apis/pets/versions/1.0.0/openapi?environment=test")
        .json();
    assert_eq!(exported["security"], json!([{"weir_password": []}]));
}

/// A secret that calls are signed with has to be kept. A store that is not sealed gets none.
#[test]
fn signatures_need_a_sealed_store_and_work_as_keys_do() {
    let plain = Plane::start();
    plain.version(&petstore());
    let refused = plain
        .put(&format!("{PLANS}/gold"), json!({"security": "hmac"}))
        .expect(422);
    assert!(refused.body.contains("--store-key"), "{refused:?}");

    let plan = json!({"security": "hmac", "limits": [{"count": 800, "per": "month"}]});
    let plane = offered(&["--store-key", "store.key"], &[("gold", plan)], json!({}));
    let made = subscribe(&plane, "gold");
    let (key, secret) = (text(&made, "/credential/name"), text(&made, "/credential/key"));
    until("the signature is good", || {
        signed(&plane, key, secret).status == 200
    });
    let answer = signed(&plane, key, secret);
    assert_eq!(answer.header("ratelimit-limit").as_deref(), Some("800"));
    assert_eq!(signed(&plane, key, "wrong").status, 401);
    let old = signature(key, secret, "/v1/pets/1");
    let old = old.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(call(&plane, &old).status, 401, "another path is signed");
    let listed = plane.get(&format!(
        "/api/v1/subscriptions/{}/credentials",
        text(&made, "/id")
    ));
    assert!(
        !listed.body.contains(secret) && !listed.body.contains("\"secret\""),
        "{listed:?}"
    );
    let resource = plane.get("/api/v1/history?limit=50");
    assert!(!resource.body.contains(secret), "{resource:?}");
    assert_eq!(
        files_with(plane._folder.path(), secret),
        0,
        "the secret is in a file"
    );
    let revoked = format!("/api/v1/subscriptions/{}/credentials/{key}", text(&made, "/id"));
    plane.call("DELETE", &revoked, &Value::Null).make().expect(204);
    until("it is revoked", || signed(&plane, key, secret).status == 401);
}

/// An authorization server that signs tokens, with its own key and address.
struct Issuer {
    pair: EcdsaKeyPair,
    url: String,
}

impl Issuer {
    fn start() -> Self {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref()).expect("a key");
        let point = pair.public_key().as_ref();
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let keys = json!({"keys": [{"kty": "EC", "crv": "P-256", "kid": "k1", "use": "sig", "alg": "ES256", "x": part(&point[1..33]), "y": part(&point[33..])}]});
        let address = server(move |head| {
            let host = head.lines().find_map(|it| {
                it.to_ascii_lowercase()
                    .strip_prefix("host:")
                    .map(|it| it.trim().to_owned())
            });
            let url = format!("http://{}", host.unwrap_or_default());
            let body = match head.contains("/keys ") {
                true => keys.clone(),
                false => {
                    json!({"issuer": url, "jwks_uri": format!("{url}/keys"), "token_endpoint": format!("{url}/token"), "authorization_endpoint": format!("{url}/auth")})
                }
            };
            (200, body.to_string())
        });
        Self {
            pair,
            url: format!("http://{address}"),
        }
    }

    fn token(&self, claims: Value) -> String {
        let mut all = json!({"iss": self.url, "sub": "x", "exp": 4_102_444_800_u64});
        let claimed = all.as_object_mut().expect("a map");
        claimed.extend(claims.as_object().expect("a map").clone());
        claimed.retain(|_, value| !value.is_null());
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!(
            "{}.{}",
            part(&json!({"alg": "ES256", "kid": "k1", "typ": "JWT"})),
            part(&all)
        );
        let tag = self
            .pair
            .sign(&SystemRandom::new(), text.as_bytes())
            .expect("signed");
        format!("Bearer {text}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
    }
}

/// 26 with a key and the token of an authorization server, whose client is the application's.
#[test]
fn tokens_of_a_server_lead_to_the_application_by_its_client_id() {
    let issuer = Issuer::start();
    let oauth = json!({"discovery": issuer.url, "audiences": ["pets"], "scopes": ["read", "list"]});
    let plans = [
        (
            "by-token",
            json!({"security": "oauth2", "oauth2": oauth, "order": 2, "limits": [{"count": 700, "per": "month"}]}),
        ),
        (
            "by-key",
            json!({"order": 1, "limits": [{"count": 600, "per": "month"}]}),
        ),
    ];
    let plane = offered(&[], &plans, json!({}));
    let path = "/api/v1/apis/pets/versions/1.0.0/plans/open";
    for (audiences, is_warned) in [(json!([]), true), (json!(["pets"]), false)] {
        let settings = json!({"discovery": issuer.url, "audiences": audiences});
        let answer = plane.put(path, json!({"security": "oauth2", "oauth2": settings}));
        let warning = answer.header("warning").unwrap_or_default();
        assert!(answer.status < 300, "{answer:?}");
        assert_eq!(warning.contains("oauth2.audiences"), is_warned, "{answer:?}");
    }
    let wanted = json!({"application": "shop", "publication": "pets/1.0.0/test", "plan": "by-token"});
    let refused = plane.post("/api/v1/subscriptions", wanted).expect(409);
    assert!(refused.body.contains("client_id"), "{refused:?}");
    plane
        .put("/api/v1/applications/shop", json!({"client_id": "client-1"}))
        .expect(200);
    let refused = plane
        .put("/api/v1/applications/other", json!({"client_id": "client-1"}))
        .expect(422);
    assert!(refused.body.contains("another application"), "{refused:?}");
    let made = subscribe(&plane, "by-token");
    assert_eq!(made.get("credential"), None, "{made}");
    let key = text(&subscribe(&plane, "by-key"), "/credential/key").to_owned();
    let limit = |token: &str, key: Option<&str>| {
        let mut headers = vec![("Authorization", token)];
        headers.extend(key.map(|it| ("X-API-Key", it)));
        let answer = call(&plane, &headers);
        (
            answer.status,
            answer.header("ratelimit-limit").unwrap_or_default(),
        )
    };
    let good = issuer.token(json!({"client_id": "client-1", "aud": "pets", "scope": "list read"}));
    until("the token is good", || limit(&good, None) == (200, "700".into()));
    until("the first plan in order takes it", || {
        limit(&good, Some(&key)) == (200, "600".into())
    });
    assert_eq!(limit(&good, Some("wrong")), (200, "700".into()));
    for (claims, what) in [
        (
            json!({"client_id": "client-2", "aud": "pets", "scope": "list read"}),
            "another client",
        ),
        (
            json!({"client_id": "client-1", "aud": "cats", "scope": "list read"}),
            "another audience",
        ),
        (
            json!({"client_id": "client-1", "aud": "pets", "scope": "read"}),
            "a scope is missing",
        ),
        (
            json!({"client_id": "client-1", "aud": "pets", "scope": "list read", "exp": 1_000_000_000}),
            "expired",
        ),
        (
            json!({"client_id": "client-1", "aud": "pets", "scope": "list read", "exp": null}),
            "no end",
        ),
        (
            json!({"client_id": "client-1", "aud": "pets", "scope": "list read", "nonce": "n"}),
            "an identity token",
        ),
    ] {
        assert_eq!(limit(&issuer.token(claims), None).0, 401, "{what}");
    }
    let id = text(&made, "/id");
    let path = format!("/api/v1/subscriptions/{id}/credentials");
    let refused = plane.post(&path, json!({})).expect(409);
    assert!(refused.body.contains("client_id"), "{refused:?}");
    let listed = plane.get(&path).expect(200).json();
    assert_eq!(listed["items"][0]["name"], "client-1", "{listed}");

    // The application has another client from now on.
    plane
        .put("/api/v1/applications/shop", json!({"client_id": "client-3"}))
        .expect(200);
    until("the old client is unknown", || limit(&good, None).0 == 401);
    let other = issuer.token(json!({"azp": "client-3", "aud": ["pets"], "scope": "list read"}));
    until("the new one is known", || limit(&other, None).0 == 200);
    set(&plane, id, "paused");
    until("it is paused", || limit(&other, None).0 == 403);
    set(&plane, id, "closed");
    until("it is closed", || limit(&other, None).0 == 401);
}

/// Opaque tokens, which the server is asked about. The secret for that is never read back.
#[test]
fn opaque_tokens_are_explained_by_a_real_server() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/openid-provider");
    let client = |id: &str| json!({"client_id": id, "client_secret": format!("{id}-secret-of-the-tests"), "grant_types": ["client_credentials"], "redirect_uris": [], "response_types": []});
    let provider = Provider::start(
        folder,
        &json!({"clients": [client("gateway"), client("shop-client"), client("stranger")]}),
    );
    let oauth = json!({"discovery": format!("http://{}", provider.address), "check": "introspection",
        "client_id": "gateway", "client_secret": "gateway-secret-of-the-tests"});
    let plan = json!({"security": "oauth2", "oauth2": oauth});
    let plane = offered(
        &[],
        &[("gold", plan.clone())],
        json!({"client_id": "shop-client"}),
    );
    subscribe(&plane, "gold");
    let token = |id: &str| {
        let secret = basic(id, &format!("{id}-secret-of-the-tests"));
        let answer = post_form(&provider.address, &secret, "grant_type=client_credentials");
        let (_, body) = answer.split_once("\r\n\r\n").expect("an answer");
        let start = body.find('{').expect("JSON");
        let end = body.rfind('}').expect("JSON");
        let body: Value = serde_json::from_str(&body[start..=end]).expect("JSON");
        format!("Bearer {}", text(&body, "/access_token"))
    };
    let (own, other) = (token("shop-client"), token("stranger"));
    until("the token is good", || {
        call(&plane, &[("Authorization", &own)]).status == 200
    });
    assert_eq!(call(&plane, &[("Authorization", &other)]).status, 401);
    assert_eq!(call(&plane, &[("Authorization", "Bearer unknown")]).status, 401);
    for path in [format!("{PLANS}/gold"), PLANS.to_owned()] {
        let read = plane.get(&path).expect(200);
        assert!(!read.body.contains("secret-of-the-tests"), "{read:?}");
    }
    // A write without the secret keeps it, but not for another server.
    let mut changed = plan;
    changed["state"] = "published".into();
    changed["display_name"] = "Gold".into();
    changed["oauth2"]
        .as_object_mut()
        .expect("a map")
        .remove("client_secret");
    plane.put(&format!("{PLANS}/gold"), changed.clone()).expect(200);
    let fresh = token("shop-client");
    until("it is good still", || {
        call(&plane, &[("Authorization", &fresh)]).status == 200
    });
    changed["oauth2"]["discovery"] = "http://127.0.0.1:9".into();
    let refused = plane.put(&format!("{PLANS}/gold"), changed).expect(422);
    assert!(refused.body.contains("client_secret"), "{refused:?}");
}

/// What a token endpoint answers to a form.
fn post_form(address: &str, authorization: &str, form: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let head = format!(
        "POST /token HTTP/1.1\r\nHost: {address}\r\nAuthorization: {authorization}\r\nConnection: close"
    );
    let length = form.len();
    let call = format!(
        "{head}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{form}"
    );
    stream.write_all(call.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// A certificate that is good for a client, in a folder.
fn certificate(folder: &Path, name: &str) -> String {
    let made = rcgen::generate_simple_self_signed([format!("{name}.test")]).expect("a certificate");
    std::fs::write(folder.join(format!("{name}.pem")), made.cert.pem()).expect("written");
    std::fs::write(
        folder.join(format!("{name}.key")),
        made.signing_key.serialize_pem(),
    )
    .expect("written");
    made.cert.pem()
}

#[test]
fn certificates_of_the_application_are_its_credentials() {
    let Some(curl) = program("curl") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [server, own, other] = ["server", "own", "other"].map(|name| certificate(folder.path(), name));
    let plan = json!({"security": "mtls", "limits": [{"count": 500, "per": "month"}]});
    let plane = offered(
        &["--listen-tls", "127.0.0.1:0"],
        &[("gold", plan)],
        json!({"certificates": [own]}),
    );
    let key = std::fs::read_to_string(folder.path().join("server.key")).expect("a key");
    for (certificates, place) in [
        (json!(["x"]), "certificates[0]"),
        (json!([other, other]), "certificates[1]"),
        (json!([own]), "certificates[0]"),
        (json!([key]), "certificates[0]"),
    ] {
        let refused = plane
            .put(
                "/api/v1/applications/thief",
                json!({"certificates": certificates}),
            )
            .expect(422);
        assert!(refused.body.contains(place), "{refused:?}");
    }
    let shown = json!({"names": ["*"], "key_pairs": [{"certificate": server, "key": key}]});
    plane.put("/api/v1/resources/certificates/all", shown).expect(201);
    let made = subscribe(&plane, "gold");
    let tls = plane.weir.address("https://");
    let status = |name: Option<&str>| {
        let mut command = Command::new(&curl);
        command.args([
            "-sk",
            "-o",
            "/dev/null",
            "-D",
            "-",
            "--connect-to",
            &format!("api.test:443:{tls}"),
            "https://api.test/v1/pets",
        ]);
        if let Some(name) = name {
            command.args(["--cert", &format!("{name}.pem"), "--key", &format!("{name}.key")]);
        }
        let output = command.current_dir(folder.path()).output().expect("curl runs");
        let head = String::from_utf8_lossy(&output.stdout).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|it| it.parse::<u16>().ok());
        (status, head.contains("ratelimit-limit: 500"))
    };
    until("the certificate is good", || {
        status(Some("own")) == (Some(200), true)
    });
    assert_eq!(status(Some("other")).0, Some(401));
    assert_eq!(status(None).0, Some(401));
    let path = format!("/api/v1/subscriptions/{}/credentials", text(&made, "/id"));
    let listed = plane.get(&path).expect(200).json();
    let print = digest::digest(&digest::SHA256, &der(&own));
    let print: String = print.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(listed["items"][0]["name"], print, "{listed}");
    // A new certificate next to the old one, and then without the old one.
    plane
        .put("/api/v1/applications/shop", json!({"certificates": [own, other]}))
        .expect(200);
    until("both are good", || {
        status(Some("other")).0 == Some(200) && status(Some("own")).0 == Some(200)
    });
    plane
        .put("/api/v1/applications/shop", json!({"certificates": [other]}))
        .expect(200);
    until("the old one is not", || status(Some("own")).0 == Some(401));
    set(&plane, text(&made, "/id"), "paused");
    until("it is paused", || status(Some("other")).0 == Some(403));
}

fn der(pem: &str) -> Vec<u8> {
    let lines = pem.lines().filter(|it| !it.starts_with("-----"));
    STANDARD.decode(lines.collect::<String>()).expect("Base64")
}

/// Analytics attribute calls to an application by each of its credentials; a product has one credential for all of its
/// APIs.
#[test]
fn products_and_analytics_know_passwords_too() {
    let plane = offered(&[], &[("gold", json!({"security": "basic"}))], json!({}));
    let product = json!({"state": "published", "publications": {"pets/1.0.0/test": ["listPets"]}});
    plane.put("/api/v1/products/bundle", product).expect(201);
    plane
        .put(
            "/api/v1/products/bundle/plans/gold",
            json!({"state": "published", "security": "basic"}),
        )
        .expect(201);
    let wanted = json!({"application": "shop", "product": "bundle", "plan": "gold"});
    let made = plane.post("/api/v1/subscriptions", wanted).expect(201).json();
    let good = basic(text(&made, "/credential/name"), text(&made, "/credential/key"));
    until("the password is good", || {
        call(&plane, &[("Authorization", &good)]).status == 200
    });
    let own = subscribe(&plane, "gold");
    let own = basic(text(&own, "/credential/name"), text(&own, "/credential/key"));
    until("its own is good, too", || {
        call(&plane, &[("Authorization", &own)]).status == 200
    });
    let asked = json!({"metrics": ["calls"], "from": "-1h", "group_by": ["consumer"]});
    until("calls are counted by application", || {
        let answer = plane.post("/api/v1/analytics/query", asked.clone());
        answer.body.contains("\"consumer\":\"shop\"")
    });
}
