//! Keys that the gateway makes for `jwt-signer`: all gateways of a store sign with them, before and after a restart,
//! and what they publish checks the tokens.

use crate::support::{Call, Weir, server, status_of, until};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

/// What callers show: it need not be good.
const SHOWN: &str = "eyJhbGciOiJSUzI1NiJ9.e30.e30";

/// The token that the upstream was shown in place of the caller's.
fn token(proxy: &str) -> Option<String> {
    let answer = Call::get(proxy, "/sign")
        .header("Authorization", &format!("Bearer {SHOWN}"))
        .attempt()?;
    let token = answer
        .body
        .strip_prefix("Bearer ")
        .filter(|_| answer.status == 200)?;
    // Before the plugin is served, callers' own tokens pass.
    (token != SHOWN).then(|| token.to_owned())
}

/// The ids of the published keys.
fn published(kong: &str) -> Vec<String> {
    let keys: Value = Call::get(kong, "/jwt-signer/jwks/kong").make().expect(200).json();
    let keys = keys["keys"].as_array().expect("keys").iter();
    keys.filter_map(|key| key["kid"].as_str().map(str::to_owned))
        .collect()
}

/// The status of a call with a token, at a route that checks it against the published keys.
fn checked(proxy: &str, token: &str) -> u16 {
    let call = Call::get(proxy, "/check");
    call.header("Authorization", &format!("Bearer {token}"))
        .make()
        .status
}

fn configure(kong: &str) {
    let echo = server(|head| {
        let is_it = |line: &&str| line.to_ascii_lowercase().starts_with("authorization: ");
        let line = head.lines().find(is_it).and_then(|line| line.split_once(": "));
        (200, line.map(|(_, value)| value.to_owned()).unwrap_or_default())
    });
    let service = json!({"url": format!("http://{echo}")}).to_string();
    // Whatever comes is signed, and lasts an hour.
    let signs = json!({"name": "jwt-signer", "config": {
        "verify_access_token_signature": false, "verify_access_token_expiry": false,
        "set_claims": {"exp": "4102444800"},
    }});
    let checks = json!({"name": "jwt-signer", "config": {
        "access_token_jwks_uri": format!("http://{kong}/jwt-signer/jwks/kong")
    }});
    for (method, path, body, status) in [
        ("PUT", "/services/s", service, 200),
        (
            "PUT",
            "/services/s/routes/sign",
            json!({"paths": ["/sign"]}).to_string(),
            200,
        ),
        (
            "PUT",
            "/services/s/routes/check",
            json!({"paths": ["/check"]}).to_string(),
            200,
        ),
        ("POST", "/routes/check/plugins", checks.to_string(), 201),
        ("POST", "/routes/sign/plugins", signs.to_string(), 201),
    ] {
        Call::new(method, kong, path).body(&body).make().expect(status);
    }
}

#[test]
fn all_gateways_sign_with_the_same_keys_also_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["--data", "kept", "--kong-admin", "127.0.0.1:0"];
    let weir = Weir::start(folder.path(), &flags);
    configure(&weir.kong());
    until("tokens are signed", || token(&weir.proxy()).is_some());
    let before = published(&weir.kong());
    let first = token(&weir.proxy()).expect("a token");
    until("the published keys check tokens", || {
        checked(&weir.proxy(), &first) == 200
    });
    assert_eq!(checked(&weir.proxy(), SHOWN), 401);
    weir.kill();
    // The store has them: another process signs so that the same keys check it.
    let weir = Weir::start(folder.path(), &flags);
    until("it serves", || status_of(&weir.proxy(), "/sign").is_some());
    assert_eq!(published(&weir.kong()), before);
    until("tokens are signed", || token(&weir.proxy()).is_some());
    let (kong, proxy) = (weir.kong(), weir.proxy());
    let rotated = Call::new("POST", &kong, "/jwt-signer/jwks/kong/rotate")
        .make()
        .expect(200)
        .json();
    assert_eq!(rotated["previous"].as_array().map(Vec::len), Some(before.len()));
    assert!(published(&kong).iter().all(|id| !before.contains(id)));
    let kid = |token: &str| {
        let head = token.split('.').next().unwrap_or_default();
        let head = URL_SAFE_NO_PAD.decode(head).unwrap_or_default();
        let head: Value = serde_json::from_slice(&head).unwrap_or_default();
        head["kid"].as_str().unwrap_or_default().to_owned()
    };
    until("the new keys sign", || {
        token(&proxy).is_some_and(|token| published(&kong).contains(&kid(&token)))
    });
}
