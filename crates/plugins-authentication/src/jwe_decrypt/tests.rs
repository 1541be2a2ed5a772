//! Tests of `jwe-decrypt`.

use super::*;
use serde_json::json;
use weir_plugins_testkit::*;

/// `hello-plain`, sealed by others without protecting the header.
const TOKEN: &str = "eyJhbGciOiAiZGlyIiwgImVuYyI6ICJBMjU2R0NNIiwgImtpZCI6ICJ1c2VyLWtleSJ9..AQEBAQEBAQEBAQEB.\
                     uPfc0njlFGcxA9c.zkga8xYty-moIw8aHyVxIQ";

fn call(config: &Value, authorization: Option<&str>) -> (String, Vec<String>) {
    let secret = "a".repeat(32);
    let credentials = [("alice", None, json!({"key": "user-key", "secret": secret}))];
    let filter = build_with(&JweDecrypt, config, &credentials).expect("valid");
    let mut exchange = exchange();
    if let Some(value) = authorization {
        exchange
            .request
            .headers
            .append(b"Authorization", value.as_bytes());
    }
    let word = word(&filter.on_request(&mut exchange));
    (word, lines(&exchange.request.headers))
}

#[test]
fn tokens_are_decrypted() {
    let apisix = json!({"header_is_protected": false});
    let other = json!({"header_is_protected": false, "forward_header": "X-Plain", "required": false});
    let unknown = "eyJhbGciOiAiZGlyIiwgImVuYyI6ICJBMjU2R0NNIiwgImtpZCI6ICJub2JvZHkifQ..AQEB.AQ.AQ";
    let critical = "eyJhbGciOiJkaXIiLCJraWQiOiJ1c2VyLWtleSIsImNyaXQiOlsieCJdfQ..AQEB.AQ.AQ";
    let nameless = "eyJhbGciOiJkaXIifQ..AQEB.AQ.AQ";
    let bearer = format!("Bearer {TOKEN}");
    for (config, token, expected) in [
        (&apisix, Some(TOKEN), "continue"),
        (&apisix, Some(bearer.as_str()), "continue"),
        (&other, Some(TOKEN), "continue"),
        (&other, None, "continue"),
        (&json!({}), Some(TOKEN), "BadSignature"),
        (&apisix, None, "Missing"),
        (&apisix, Some("junk"), "Malformed"),
        (&apisix, Some("a.b.c.d.e"), "Malformed"),
        (&apisix, Some(critical), "Malformed"),
        (&apisix, Some(nameless), "NoKeyClaim(\"kid\")"),
        (
            &apisix,
            Some(unknown),
            "UnknownKey { claim: \"kid\", value: \"nobody\" }",
        ),
    ] {
        assert_eq!(call(config, token).0, expected, "{config} {token:?}");
    }
    assert_eq!(call(&apisix, Some(TOKEN)).1, ["Authorization: hello-plain"]);
    assert_eq!(call(&other, Some(TOKEN)).1[1], "X-Plain: hello-plain");
}

#[test]
fn bad_configurations_and_credentials_are_refused() {
    let config = json!({"header": "", "missing_status": 1});
    assert_eq!(refused_at(&JweDecrypt, &config), ["header", "missing_status"]);
    assert!(build(&JweDecrypt, &example(include_str!("mod.rs"))).is_ok());
    let check = JweDecrypt.credentials().expect("has some").check;
    let base64 = URL_SAFE_NO_PAD.encode([7; 32]);
    for (credential, is_good) in [
        (json!({"key": "k", "secret": "short"}), false),
        (
            json!({"key": "k", "secret": base64, "secret_is_base64": true}),
            true,
        ),
        (json!({"key": "k", "secret": base64}), false),
    ] {
        assert_eq!(check(&credential).is_ok(), is_good, "{credential}");
    }
}

/// Keys, and tokens of `{"plan":"gold"}` that another library has sealed for them.
fn vectors() -> Value {
    serde_json::from_str(include_str!("vectors.json")).expect("JSON")
}

fn open(config: &Value, token: &str) -> (String, Vec<String>) {
    let filter = build(&JweDecrypt, config).expect("valid");
    let mut exchange = exchange();
    let headers = &mut exchange.request.headers;
    headers.append(b"X-Token", token.as_bytes());
    headers.append(b"X_Plain", b"forged");
    let word = word(&filter.on_request(&mut exchange));
    (word, lines(&exchange.request.headers))
}

fn with_keys(keys: &Value) -> Value {
    json!({"header": "X-Token", "forward_header": "X-Plain", "keys": keys})
}

#[test]
fn tokens_of_others_are_opened_with_keys() {
    let vectors = vectors();
    let config = with_keys(&vectors["keys"]);
    for case in vectors["tokens"].as_array().expect("a list") {
        let (name, token) = (case["name"].as_str(), case["token"].as_str().expect("a token"));
        let (found, headers) = open(&config, token);
        if name == Some("not the key's algorithm") {
            assert_eq!(found, "BadSignature");
            continue;
        }
        assert_eq!(found, "continue", "{name:?}");
        assert_eq!(headers[1..], ["X-Plain: {\"plan\":\"gold\"}"], "{name:?}");
    }
}

/// A token with another header, or with changed parts.
fn forged(token: &str, change: impl Fn(&mut Vec<String>)) -> String {
    let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    change(&mut parts);
    parts.join(".")
}

fn head(fields: &Value) -> String {
    URL_SAFE_NO_PAD.encode(fields.to_string())
}

/// The token of this name.
fn vector(wanted: &str) -> String {
    let vectors = vectors();
    let tokens = vectors["tokens"].as_array().expect("a list");
    let found = tokens.iter().find(|it| it["name"] == wanted);
    found.expect("a token")["token"]
        .as_str()
        .expect("a text")
        .to_owned()
}

/// That these tokens open nothing.
fn refuse(cases: Vec<(&str, String, &str)>) {
    let config = with_keys(&vectors()["keys"]);
    for (what, token, expected) in cases {
        let (found, headers) = open(&config, &token);
        assert_eq!(found, expected, "{what}");
        assert!(!headers.iter().any(|line| line.contains("gold")), "{what}");
    }
}

#[test]
fn other_headers_open_nothing() {
    let with_head = |token: &str, fields: Value| forged(token, |parts| parts[0] = head(&fields));
    let (rsa, direct) = (vector("RSA-OAEP A256GCM"), vector("dir A256GCM"));
    let of_direct =
        |alg: &str, enc: &str, kid: &str| with_head(&direct, json!({"alg": alg, "enc": enc, "kid": kid}));
    let of_rsa = |alg: &str, kid: &str| with_head(&rsa, json!({"alg": alg, "enc": "A256GCM", "kid": kid}));
    let more = |name: &str, value: Value| {
        with_head(
            &direct,
            json!({"alg": "dir", "enc": "A256GCM", "kid": "s32", name: value}),
        )
    };
    let closed = "BadSignature";
    refuse(vec![
        ("the header is bound", more("x", json!(1)), closed),
        ("a critical extension", more("crit", json!(["x"])), "Malformed"),
        ("a compressed text", more("zip", json!("DEF")), "Malformed"),
        (
            "an RSA key as a secret",
            of_direct("dir", "A256GCM", "rsa"),
            closed,
        ),
        ("a secret as an RSA key", of_rsa("RSA-OAEP", "s32"), closed),
        ("PKCS#1", of_rsa("RSA1_5", "rsa"), closed),
        ("none", of_direct("none", "A256GCM", "s32"), closed),
        (
            "another content algorithm",
            of_direct("dir", "A128GCM", "s32"),
            closed,
        ),
        (
            "no key id",
            with_head(&direct, json!({"alg": "dir", "enc": "A256GCM"})),
            "NoKeyClaim(\"kid\")",
        ),
        (
            "no algorithm",
            with_head(&direct, json!({"enc": "A256GCM", "kid": "s32"})),
            "NoKeyClaim(\"alg\")",
        ),
        (
            "no content algorithm",
            with_head(&direct, json!({"alg": "dir", "kid": "s32"})),
            "NoKeyClaim(\"enc\")",
        ),
    ]);
}

#[test]
fn changed_parts_open_nothing() {
    let (direct, blocks) = (vector("dir A256GCM"), vector("dir A128CBC-HS256"));
    let long = format!("{direct}{}", "A".repeat(64 * 1024));
    let closed = "BadSignature";
    refuse(vec![
        (
            "a key besides the secret",
            forged(&direct, |parts| parts[1] = "AAAA".into()),
            closed,
        ),
        (
            "a short tag",
            forged(&direct, |parts| parts[4].truncate(8)),
            closed,
        ),
        ("no tag", forged(&blocks, |parts| parts[4].clear()), closed),
        (
            "a short tag of blocks",
            forged(&blocks, |parts| parts[4].truncate(8)),
            closed,
        ),
        (
            "changed blocks",
            forged(&blocks, |parts| parts[2] = parts[3].clone()),
            closed,
        ),
        ("a sixth part", format!("{direct}.AA"), "Malformed"),
        ("a long one", long, "Malformed"),
    ]);
}

#[test]
fn keys_replace_credentials_and_the_answers_have_their_statuses() {
    let secret = "a".repeat(32);
    let credentials = [("alice", None, json!({"key": "user-key", "secret": secret}))];
    let status = |keys: Value, token: Option<&str>| {
        let mut config = with_keys(&keys);
        config["missing_status"] = json!(403);
        config["invalid_status"] = json!(400);
        config["decryption_failed_status"] = json!(418);
        let filter = build_with(&JweDecrypt, &config, &credentials).expect("valid");
        let mut exchange = exchange();
        if let Some(token) = token {
            exchange.request.headers.append(b"X-Token", token.as_bytes());
        }
        match filter.on_request(&mut exchange) {
            Outcome::Refuse(refusal) => refusal.status,
            _ => 200,
        }
    };
    let key =
        json!({"id": "s32", "jwk": json!({"kty": "oct", "k": URL_SAFE_NO_PAD.encode([7; 32])}).to_string()});
    let other = head(&json!({"alg": "dir", "enc": "A256GCM", "kid": "s32"}));
    let other = format!("{other}..AQEBAQEBAQEBAQEB.AAAA.AAAAAAAAAAAAAAAAAAAAAA");
    for (keys, token, expected) in [
        (json!([]), None, 403),
        (json!([]), Some("junk"), 400),
        // The credential is not asked.
        (json!([]), Some(TOKEN), 418),
        (json!([key]), Some(other.as_str()), 418),
    ] {
        assert_eq!(status(keys, token), expected, "{token:?}");
    }
}

#[test]
fn keys_that_open_nothing_are_reported() {
    let oct = |more: Value| {
        let mut key = json!({"kty": "oct", "k": "AAAA", "kid": "k"});
        key.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        json!({"jwk": key.to_string()})
    };
    let keys = json!([
        oct(json!({})),
        oct(json!({"use": "sig"})),
        oct(json!({"k": ""})),
        oct(json!({"kty": "EC"})),
        {"id": "a", "pem": "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"},
        {"jwk": "{\"kty\":\"oct\",\"k\":\"AAAA\"}"},
        {"id": "a"},
    ]);
    let config: Config = parse_config(&with_keys(&keys)).expect("valid");
    let keys = config.keys.expect("given");
    let refused: Vec<bool> = keys.iter().map(|key| read(key).is_none()).collect();
    assert_eq!(refused, [false, true, true, true, true, true, true]);
    assert!(!format!("{keys:?}").contains("AAAA"));
}

#[test]
fn a_text_that_cannot_stand_in_a_header_is_not_forwarded() {
    let secret = [7; 32];
    let protected = head(&json!({"alg": "dir", "enc": "A256GCM", "kid": "k"}));
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &secret).expect("32 bytes"));
    let mut text = b"a\r\nX-Admin: yes".to_vec();
    let nonce = aws_lc_rs::aead::Nonce::assume_unique_for_key([1; 12]);
    let bound = aws_lc_rs::aead::Aad::from(protected.as_bytes());
    key.seal_in_place_append_tag(nonce, bound, &mut text)
        .expect("short");
    let (sealed, tag) = text.split_at(text.len() - 16);
    let parts = [&[1; 12][..], sealed, tag].map(|part| URL_SAFE_NO_PAD.encode(part));
    let token = format!("{protected}..{}", parts.join("."));
    let jwk = json!({"kty": "oct", "k": URL_SAFE_NO_PAD.encode(secret)}).to_string();
    let (found, headers) = open(&with_keys(&json!([{"id": "k", "jwk": jwk}])), &token);
    assert_eq!(found, "BadSignature");
    assert!(!headers.iter().any(|line| line.contains("Admin")), "{headers:?}");
}
