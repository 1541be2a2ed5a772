//! `openid-connect` with a real provider: Node's `oidc-provider`, which `make deps FOR=test` installs.

use crate::browser::{Jar, target};
use crate::directory::echo;
use crate::provider::Provider;
use crate::weir::Weir;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::Path;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/openid-provider");
const HOST: &str = "shop.test";
const CALLBACK: &str = "http://shop.test/a/.apisix/redirect";

impl Provider {
    fn with_shop() -> Self {
        let client = json!({"client_id": "shop", "client_secret": "s+/e", "redirect_uris": [CALLBACK]});
        Self::start(FOLDER, &json!({"clients": [client]}))
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

/// What the upstream was told about the user.
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
    let told = userinfo(&call.text);
    assert_eq!(told.len(), 1, "{}", call.text);
    assert_eq!(told[0]["sub"], json!("ada"));
    for (secret, status) in [("0123456789abcdef", 200), ("fedcba9876543210", 302)] {
        let other = gateway(&folder.path().join(secret), &provider, upstream, secret);
        let answer = browser.clone().get(&other.proxy(), HOST, "/a");
        assert_eq!(answer.status, status, "{secret}: {}", answer.text);
    }
}

#[test]
fn a_provider_that_is_down_stops_only_those_who_need_it() {
    let mut provider = Provider::with_shop();
    let upstream = echo();
    let folder = tempfile::tempdir().expect("a folder");
    provider.process.kill().expect("it runs");
    provider.process.wait().expect("it ends");
    let weir = gateway(folder.path(), &provider, upstream, "0123456789abcdef");
    assert_eq!(Jar::default().get(&weir.proxy(), HOST, "/a").status, 503);
    assert_eq!(Jar::default().get(&weir.proxy(), HOST, "/open").status, 200);
}
