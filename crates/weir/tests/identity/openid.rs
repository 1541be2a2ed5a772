//! `openid-connect` with a real provider: Node's `oidc-provider`, which `make deps FOR=test` installs.

use crate::browser::{Jar, target};
use crate::directory::{echo, until};
use crate::ports::free_port;
use crate::provider::Provider;
use crate::weir::Weir;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/openid-provider");
const HOST: &str = "shop.test";
const CALLBACK: &str = "http://shop.test/a/.apisix/redirect";

fn shop() -> Value {
    json!({
        "client_id": "shop", "client_secret": "s+/e", "redirect_uris": [CALLBACK],
        "grant_types": ["authorization_code", "refresh_token", "client_credentials"], "scope": "openid offline_access email",
    })
}

impl Provider {
    fn with_shop() -> Self {
        Self::start(FOLDER, &json!({"clients": [shop()]}))
    }
}

fn gateway(folder: &Path, provider: &Provider, upstream: u16, secret: &str) -> Weir {
    let document = json!({"weir": 1, "services": [{
        "name": "api",
        "url": format!("http://127.0.0.1:{upstream}"),
        "routes": [
            {"name": "open", "paths": ["/open"]},
            {"name": "shop", "paths": ["/"], "plugins": [{"openid-connect": {
                "discovery": format!("http://{}", provider.address),
                "client_id": "shop", "client_secret": "s+/e", "redirect_uri": CALLBACK,
                "session": {"secret": secret, "cookie_secure": false},
            }}]},
        ],
    }]});
    std::fs::create_dir_all(folder).expect("a folder");
    let file = folder.join("weir.yaml");
    std::fs::write(&file, document.to_string()).expect("written");
    Weir::start(folder, &["-c", "weir.yaml"])
}

/// Follows a login at the provider until it sends the browser back. Gives where to.
fn follow(provider: &Provider, first: &str) -> String {
    let mut at_provider = Jar::default();
    let mut url = first.to_owned();
    for _ in 0..10 {
        if url.starts_with(CALLBACK) {
            return url;
        }
        let target = match url.starts_with('/') {
            true => url.clone(),
            false => target(&url, &provider.address).to_owned(),
        };
        let answer = at_provider.get(&provider.address, &provider.address, &target);
        assert!(matches!(answer.status, 302 | 303), "{url}: {}", answer.text);
        url = answer.location;
    }
    panic!("the provider sends on for ever: {url}");
}

/// The user's data that the upstream got.
fn userinfo(echoed: &str) -> Vec<Value> {
    let lines = echoed
        .lines()
        .filter(|line| line.to_lowercase().starts_with("x-userinfo:"));
    let values = lines.filter_map(|line| STANDARD.decode(line.split_once(':')?.1.trim()).ok());
    values
        .filter_map(|json| serde_json::from_slice(&json).ok())
        .collect()
}

#[test]
fn browsers_log_in_at_a_real_provider_and_every_gateway_with_the_secret_knows_them() {
    let provider = Provider::with_shop();
    let upstream = echo();
    let folder = tempfile::tempdir().expect("a folder");
    let weir = gateway(
        &folder.path().join("one"),
        &provider,
        upstream,
        "0123456789abcdef",
    );
    let mut browser = Jar::default();
    let start = browser.get(&weir.proxy(), HOST, "/a?x=1");
    assert_eq!(start.status, 302, "{}", start.text);
    for part in [
        "response_type=code",
        "state=",
        "nonce=",
        "code_challenge_method=S256",
    ] {
        assert!(start.location.contains(part), "{}", start.location);
    }
    // A second tab begins before the first one has ended.
    let second = browser.get(&weir.proxy(), HOST, "/b");
    for (login, wanted) in [(start, "/a?x=1"), (second, "/b")] {
        let back = follow(&provider, &login.location);
        let done = browser.get(&weir.proxy(), HOST, target(&back, HOST));
        assert_eq!(
            (done.status, done.location.as_str()),
            (302, wanted),
            "{}",
            done.text
        );
        // Another browser gets nothing for the address.
        let stolen = Jar::default().get(&weir.proxy(), HOST, target(&back, HOST));
        assert_ne!(stolen.location, wanted, "{}", stolen.text);
    }
    let call = browser.get(&weir.proxy(), HOST, "/a?x=1");
    assert_eq!(call.status, 200, "{}", call.text);
    assert!(!call.text.contains("forged"), "{}", call.text);
    let claims = userinfo(&call.text);
    assert_eq!(claims.len(), 1, "{}", call.text);
    assert_eq!(claims[0]["sub"], json!("ada"));
    for (secret, status) in [("0123456789abcdef", 200), ("fedcba9876543210", 302)] {
        let other = gateway(&folder.path().join(secret), &provider, upstream, secret);
        let answer = browser.clone().get(&other.proxy(), HOST, "/a");
        assert_eq!(answer.status, status, "{secret}: {}", answer.text);
    }
}

#[test]
fn a_provider_that_is_down_stops_only_those_who_need_it() {
    let port = free_port();
    let options = || json!({"clients": [shop()], "port": port});
    let mut provider = Provider::start(FOLDER, &options());
    let upstream = echo();
    let folder = tempfile::tempdir().expect("a folder");
    provider.process.kill().expect("it runs");
    provider.process.wait().expect("it ends");
    let weir = gateway(folder.path(), &provider, upstream, "0123456789abcdef");
    assert_eq!(Jar::default().get(&weir.proxy(), HOST, "/a").status, 503);
    assert_eq!(Jar::default().get(&weir.proxy(), HOST, "/open").status, 200);
    // Once the provider is there, browsers log in without a reload.
    let provider = Provider::start(FOLDER, &options());
    let mut browser = Jar::default();
    until("logins begin", || {
        browser.get(&weir.proxy(), HOST, "/a").status == 302
    });
    let login = browser.get(&weir.proxy(), HOST, "/a?x=1");
    let back = follow(&provider, &login.location);
    let done = browser.get(&weir.proxy(), HOST, target(&back, HOST));
    assert_eq!(
        (done.status, done.location.as_str()),
        (302, "/a?x=1"),
        "{}",
        done.text
    );
    assert_eq!(browser.get(&weir.proxy(), HOST, "/a?x=1").status, 200);
}

/// A gateway whose file has one route for everything, with APISIX's `openid-connect` and these options.
fn apisix_gateway(folder: &Path, provider: &Provider, options: &Value) -> Weir {
    let mut config = json!({
        "client_id": "shop", "client_secret": "s+/e",
        "discovery": format!("http://{}/.well-known/openid-configuration", provider.address),
    });
    for (name, value) in options.as_object().expect("options") {
        config[name] = value.clone();
    }
    let document = json!({
        "routes": [{"id": "shop", "uri": "/*", "upstream_id": "u", "plugins": {"openid-connect": config}}],
        "upstreams": [{"id": "u", "type": "roundrobin", "nodes": {format!("127.0.0.1:{}", echo()): 1}}],
    });
    // JSON is YAML too.
    std::fs::write(folder.join("apisix.yaml"), format!("{document}\n#END\n")).expect("written");
    Weir::start(folder, &["-c", "apisix.yaml"])
}

/// Options of APISIX's plugin with which browsers log in.
fn logins() -> Value {
    json!({
        "redirect_uri": CALLBACK, "scope": "openid offline_access", "use_nonce": true, "use_pkce": true,
        "authorization_params": {"prompt": "consent"}, "session": {"secret": "0123456789abcdef"},
    })
}

fn logged_in(weir: &Weir, provider: &Provider) -> Jar {
    let mut browser = Jar::default();
    let start = browser.get(&weir.proxy(), HOST, "/a?x=1");
    assert_eq!(start.status, 302, "{}", start.text);
    for part in ["state=", "nonce=", "code_challenge_method=S256"] {
        assert!(start.location.contains(part), "{}", start.location);
    }
    let back = follow(provider, &start.location);
    let done = browser.get(&weir.proxy(), HOST, target(&back, HOST));
    assert_eq!(
        (done.status, done.location.as_str()),
        (302, "/a?x=1"),
        "{}",
        done.text
    );
    browser
}

/// How many grants of tokens the provider has given and refused for refresh tokens.
fn refreshes(provider: &Provider) -> (u64, u64) {
    let answer = Jar::default().get(&provider.address, &provider.address, "/grants");
    let (_, body) = answer.text.split_once("\r\n\r\n").expect("a body");
    // The body may come in chunks.
    let json = body.lines().find(|line| line.starts_with('{')).expect("JSON");
    let grants: Value = serde_json::from_str(json).expect("JSON");
    let count = |name: &str| grants[name].as_u64().unwrap_or(0);
    (count("given refresh_token"), count("refused refresh_token"))
}

#[test]
fn apisix_renews_a_token_once_for_twenty_calls() {
    let provider = Provider::start(FOLDER, &json!({"clients": [shop()], "access_token_seconds": 3}));
    let folder = tempfile::tempdir().expect("a folder");
    let weir = apisix_gateway(folder.path(), &provider, &logins());
    let start = Instant::now();
    let mut browser = logged_in(&weir, &provider);
    let call = browser.get(&weir.proxy(), HOST, "/a?x=1");
    assert_eq!(call.status, 200, "{}", call.text);
    assert!(!call.text.contains("forged"), "{}", call.text);
    let claims = userinfo(&call.text);
    assert_eq!(
        (claims.len(), &claims[0]["sub"]),
        (1, &json!("ada")),
        "{}",
        call.text
    );
    assert_eq!(refreshes(&provider), (0, 0));
    until("the token has expired", || {
        start.elapsed() > Duration::from_secs(5)
    });
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (mut browser, proxy) = (browser.clone(), weir.proxy());
            std::thread::spawn(move || {
                let answer = browser.get(&proxy, HOST, "/a?x=1");
                (answer.status, browser)
            })
        })
        .collect();
    for call in calls {
        let (status, mut browser) = call.join().expect("no panic");
        assert_eq!(status, 200);
        // What each of them was given is good too.
        assert_eq!(browser.get(&weir.proxy(), HOST, "/b").status, 200);
    }
    assert_eq!(refreshes(&provider), (1, 0));
}

/// An opaque token of the client itself, with the scope `email`.
fn client_token(provider: &Provider) -> String {
    let basic = format!("Authorization: Basic {}\r\n", STANDARD.encode("shop:s%2B%2Fe"));
    let form = "grant_type=client_credentials&scope=email";
    let line = ("POST", "/token");
    let answer = Jar::default().send_with(&provider.address, &provider.address, line, &basic, form);
    let json = answer.text.lines().find(|line| line.starts_with('{'));
    let json = json.unwrap_or_else(|| panic!("no token: {}", answer.text));
    let token: Value = serde_json::from_str(json).expect("JSON");
    token["access_token"].as_str().expect("a token").to_owned()
}

#[test]
fn apisix_takes_tokens_and_no_logins_with_bearer_only() {
    let provider = Provider::start(FOLDER, &json!({"clients": [shop()]}));
    let folder = tempfile::tempdir().expect("a folder");
    let token = client_token(&provider);
    let endpoint = format!("http://{}/token/introspection", provider.address);
    let unsigned = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.";
    let bad = "Bearer realm=\"apisix\", error=\"invalid_token\"";
    for (scopes, token, status, challenge, body) in [
        (json!(["email"]), token.as_str(), 200, "", ""),
        (
            json!(["email", "a", "b"]),
            token.as_str(),
            403,
            "",
            r#"{"error":"required scopes email, a, b not present"}"#,
        ),
        (json!([]), "", 401, "Bearer realm=\"apisix\"", ""),
        (json!([]), "unknown", 401, bad, ""),
        (json!([]), unsigned, 401, bad, ""),
    ] {
        let mut options = json!({"bearer_only": true, "introspection_endpoint": endpoint});
        if scopes != json!([]) {
            options["required_scopes"] = scopes;
        }
        let weir = apisix_gateway(folder.path(), &provider, &options);
        let authorization = match token {
            "" => String::new(),
            token => format!("Authorization: Bearer {token}\r\n"),
        };
        let answer = Jar::default().send_with(&weir.proxy(), HOST, ("GET", "/a"), &authorization, "");
        assert_eq!(answer.status, status, "{options} {token:?}: {}", answer.text);
        if !challenge.is_empty() {
            let line = format!("www-authenticate: {challenge}").to_lowercase();
            assert!(
                answer.text.to_lowercase().contains(&line),
                "{token:?}: {}",
                answer.text
            );
        }
        assert!(answer.text.contains(body), "{token:?}: {}", answer.text);
        if status == 200 {
            assert!(!answer.text.contains("forged"), "{}", answer.text);
        }
    }
}

#[test]
fn kong_finds_consumers_by_a_claim() {
    let provider = Provider::start(FOLDER, &json!({"clients": [shop()]}));
    let token = client_token(&provider);
    let folder = tempfile::tempdir().expect("a folder");
    let plugin = |more: Value| {
        let mut config = json!({
            "issuer": format!("http://{}", provider.address), "client_id": ["shop"], "client_secret": ["s+/e"],
            "auth_methods": ["introspection"], "consumer_claim": ["client_id"],
        });
        for (name, value) in more.as_object().expect("options") {
            config[name] = value.clone();
        }
        json!({"name": "openid-connect", "config": config})
    };
    let guest = "66666666-6666-4666-8666-666666666666";
    let route = |name: &str, more: Value| json!({"name": name, "paths": [format!("/{name}")], "strip_path": false, "plugins": [plugin(more)]});
    let document = json!({
        "_format_version": "3.0",
        "services": [{"name": "s", "url": format!("http://127.0.0.1:{}", echo()), "routes": [
            route("known", json!({})),
            route("custom", json!({"consumer_by": ["custom_id"]})),
            route("optional", json!({"consumer_by": ["custom_id"], "consumer_optional": true})),
            route("anonymous", json!({"anonymous": guest})),
        ]}],
        "consumers": [{"username": "shop"}, {"id": guest, "username": "guest"}],
    });
    std::fs::write(folder.path().join("kong.yml"), document.to_string()).expect("written");
    let weir = Weir::start(folder.path(), &["-c", "kong.yml"]);
    let good = format!("Authorization: Bearer {token}\r\n");
    let bad = "Authorization: Bearer unknown\r\n";
    for (path, headers, status, parts) in [
        (
            "/known",
            good.as_str(),
            200,
            &["x-consumer-username: shop\r\n"][..],
        ),
        ("/known", "", 401, &["www-authenticate: bearer"]),
        ("/known", bad, 401, &["www-authenticate: bearer"]),
        ("/custom", &good, 403, &[]),
        ("/optional", &good, 200, &[]),
        (
            "/anonymous",
            "",
            200,
            &["x-consumer-username: guest\r\n", "x-anonymous-consumer: true\r\n"],
        ),
        (
            "/anonymous",
            bad,
            200,
            &["x-consumer-username: guest\r\n", "x-anonymous-consumer: true\r\n"],
        ),
        ("/anonymous", &good, 200, &["x-consumer-username: shop\r\n"]),
    ] {
        let headers = format!("{headers}X-Consumer-Username: forged\r\nX_Consumer_Username: forged\r\n");
        let answer = Jar::default().send_with(&weir.proxy(), HOST, ("GET", path), &headers, "");
        assert_eq!(answer.status, status, "{path} {headers}: {}", answer.text);
        let text = answer.text.to_lowercase();
        for part in parts {
            assert!(text.contains(part), "{path} {headers}: {text}");
        }
        for name in ["x-consumer-username: forged", "x_consumer_username"] {
            assert!(!text.contains(name), "{path} {headers}: {text}");
        }
    }
}
