//! `jwt` as its users see it.

use super::vectors::*;
use super::verifier::{BASE64_URL, Verifier};
use super::*;
use crate::testkit::*;
use aws_lc_rs::hmac;
use base64::Engine as _;
use serde_json::json;
use weir_plugin::{Exchange, Outcome};

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
fn every_algorithm_verifies_its_own_tokens_only() {
    for (algorithm, key, token) in TOKENS {
        let field = if algorithm.starts_with("HS") {
            "secret"
        } else {
            "public_key"
        };
        let credential = json!({"key": "key", "algorithm": algorithm, field: key});
        assert_eq!(check_credential(&credential), Ok(()), "{algorithm}");
        let filter = build_with(&Jwt, &json!({}), &[("alice", Some("c"), credential)]).expect("valid");
        let send = |token: &str| {
            let mut exchange = exchange();
            prepare(
                &mut exchange,
                "GET /",
                &[("Authorization", &format!("Bearer {token}"))],
            );
            word(&filter.on_request(&mut exchange))
        };
        for (other, _, token) in TOKENS {
            let expected = if other == algorithm {
                "continue"
            } else {
                "AlgorithmMismatch"
            };
            assert_eq!(send(token), expected, "{other} to {algorithm}");
        }
        let (message, signature) = token.rsplit_once('.').expect("a token");
        let mut bytes = BASE64_URL.decode(signature).expect("Base64");
        bytes[5] ^= 1;
        assert_eq!(
            send(&format!("{message}.{}", BASE64_URL.encode(&bytes))),
            "BadSignature",
            "{algorithm}"
        );
        assert_eq!(send(&format!("{message}.AAAA")), "BadSignature", "{algorithm}");
    }
}

#[test]
fn published_examples_verify() {
    const CLAIMS: &str =
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let a1 = json!({"key": "k", "secret_is_base64": true,
        "secret": "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"});
    let public = |algorithm: &str, key: &str| json!({"key": "k", "algorithm": algorithm, "public_key": key});
    for (name, credential, message, signature) in [
        (
            "A.1",
            a1,
            format!("eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.{CLAIMS}"),
            "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        ),
        (
            "A.2",
            public("RS256", RFC7515_A2_KEY),
            format!("eyJhbGciOiJSUzI1NiJ9.{CLAIMS}"),
            RFC7515_A2_SIGNATURE,
        ),
        (
            "A.2",
            public("RS256", RFC7515_A2_KEY_PKCS1),
            format!("eyJhbGciOiJSUzI1NiJ9.{CLAIMS}"),
            RFC7515_A2_SIGNATURE,
        ),
        (
            "A.3",
            public("ES256", RFC7515_A3_KEY),
            format!("eyJhbGciOiJFUzI1NiJ9.{CLAIMS}"),
            "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
        ),
        (
            "A.4",
            public("ES512", RFC7515_A4_KEY),
            "eyJhbGciOiJFUzUxMiJ9.UGF5bG9hZA".to_owned(),
            "AdwMgeerwtHoh-l192l60hp9wAHZFVJbLfD_UxMi70cwnZOYaRI1bKPWROc-mZZqwqT2SI-KGDKB34XO0aw_7XdtAG8GaSwFKdCAPZgo\
             XD2YBJZCPEX3xKpRwcdOO8KpEHwJjyqOgzDO7iKvU8vcnwNrmxYbSW9ERBXukOXolLzeO_Jn",
        ),
        (
            "RFC 8037",
            public("EdDSA", RFC8037_A4_KEY),
            "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc".to_owned(),
            "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
        ),
    ] {
        let credential: Credential = serde_json::from_value(credential).expect("valid");
        let verifier = Verifier::new(&credential).expect("valid");
        let signature = BASE64_URL.decode(signature).expect("Base64");
        assert!(verifier.verify(false, message.as_bytes(), &signature), "{name}");
        assert!(
            !verifier.verify(false, &message.as_bytes()[1..], &signature),
            "{name}"
        );
    }
}

#[test]
fn faults_are_told_apart() {
    let good = token(r#"{"iss":"hs"}"#);
    let head = r#"{"alg":"HS256"}"#;
    let lenient = json!({"signature_required": false, "check_typ": false, "key_in_header": false});
    for (config, token, expected) in [
        (&json!({}), good.clone(), "continue"),
        (&json!({}), format!("{good}.x"), "Malformed(\"signature\")"),
        (
            &json!({}),
            good[..good.len() - 43].to_owned(),
            "Malformed(\"signature\")",
        ),
        (&lenient, good[..good.len() - 43].to_owned(), "BadSignature"),
        (&json!({}), "abc".to_owned(), "Malformed(\"JSON\")"),
        (&json!({}), "a.b.c".to_owned(), "Malformed(\"JSON\")"),
        (
            &json!({}),
            "eyJhbGciOiJIUzI1NiJ9.WzFd.xx".to_owned(),
            "NoKeyClaim(\"iss\")",
        ),
        (&json!({}), "bm90anNvbg.e30.xx".to_owned(), "Malformed(\"JSON\")"),
        (
            &json!({}),
            sign(r#"{"alg":"none"}"#, r#"{"iss":"hs"}"#, "secret"),
            "Malformed(\"alg\")",
        ),
        (
            &json!({}),
            sign(r#"{"alg":5}"#, r#"{"iss":"hs"}"#, "secret"),
            "Malformed(\"alg\")",
        ),
        (
            &json!({}),
            sign(r#"{"alg":"HS256","typ":"at+jwt"}"#, r#"{"iss":"hs"}"#, "secret"),
            "Malformed(\"typ\")",
        ),
        (
            &lenient,
            sign(r#"{"alg":"HS256","typ":"at+jwt"}"#, r#"{"iss":"hs"}"#, "secret"),
            "continue",
        ),
        (
            &json!({}),
            sign(head, r#"{"iss":""}"#, "secret"),
            "BadKeyClaim(\"iss\")",
        ),
        (
            &json!({}),
            sign(head, r#"{"iss":7}"#, "secret"),
            "BadKeyClaim(\"iss\")",
        ),
        (
            &json!({}),
            sign(head, r#"{"iss":"x"}"#, "secret"),
            "UnknownKey { claim: \"iss\", value: \"x\" }",
        ),
        (
            &json!({}),
            sign(r#"{"alg":"HS256","iss":"hs"}"#, "{}", "secret"),
            "continue",
        ),
        (
            &lenient,
            sign(r#"{"alg":"HS256","iss":"hs"}"#, "{}", "secret"),
            "NoKeyClaim(\"iss\")",
        ),
        (
            &json!({"key_claim": "kid"}),
            sign(r#"{"alg":"HS256","kid":"hs"}"#, "{}", "secret"),
            "continue",
        ),
        (&json!({}), sign(head, r#"{"iss":"hs"}"#, "other"), "BadSignature"),
        // The public key, which everybody may know, as the secret of an HMAC.
        (
            &json!({}),
            sign(head, r#"{"iss":"rs"}"#, RSA_KEY),
            "AlgorithmMismatch",
        ),
        (&json!({}), sign(head, r#"{"iss":"b64"}"#, "secret"), "continue"),
        (
            &json!({"secret_is_base64": true}),
            sign(head, r#"{"iss":"b64"}"#, "secret"),
            "continue",
        ),
        (
            &json!({"secret_is_base64": true}),
            sign(head, r#"{"iss":"hs"}"#, "secret"),
            "BadSignature",
        ),
    ] {
        assert_eq!(bearer(config, &token), expected, "{config} {token}");
    }
}

#[test]
fn claims_are_checked() {
    let required = json!({"required_claims": ["exp", "nbf"]});
    let unchecked = json!({"checked_claims": []});
    let max = json!({"max_expiration_seconds": 60});
    let aud = json!({"expected_claims": {"aud": "orders", "iss": "hs"}});
    for (config, claims, expected) in [
        (&json!({}), r#""exp":NOW+1"#, "continue"),
        (&json!({}), r#""exp":NOW+0"#, r#"Claims([("exp", Expired)])"#),
        (&json!({}), r#""nbf":NOW+0"#, "continue"),
        (
            &json!({}),
            r#""nbf":NOW+1,"exp":NOW-1"#,
            r#"Claims([("exp", Expired), ("nbf", NotYetValid)])"#,
        ),
        (&json!({}), r#""exp":4102444800.5"#, "continue"),
        (
            &json!({}),
            r#""exp":"4102444800""#,
            r#"Claims([("exp", NotANumber)])"#,
        ),
        (&json!({}), r#""exp":null"#, r#"Claims([("exp", NotANumber)])"#),
        (
            &json!({"leeway_seconds": 5}),
            r#""exp":NOW-4,"nbf":NOW+5"#,
            "continue",
        ),
        (
            &json!({"leeway_seconds": 5}),
            r#""exp":NOW-5"#,
            r#"Claims([("exp", Expired)])"#,
        ),
        (&json!({}), r#""iss":"late","exp":NOW-99"#, "continue"),
        (
            &required,
            r#""a":1"#,
            r#"Claims([("exp", Missing), ("nbf", Missing)])"#,
        ),
        (&required, r#""exp":NOW+1,"nbf":NOW-1"#, "continue"),
        (&unchecked, r#""exp":1,"nbf":"x""#, "continue"),
        (&max, r#""exp":NOW+60"#, "continue"),
        (&max, r#""exp":NOW+61"#, r#"Claims([("exp", TooFarAhead)])"#),
        (&max, r#""a":1"#, r#"Claims([("exp", Missing)])"#),
        (&aud, r#""aud":"orders""#, "continue"),
        (&aud, r#""aud":["x","orders"]"#, "continue"),
        (&aud, r#""aud":"x""#, r#"Claims([("aud", Mismatch)])"#),
        (&aud, r#""a":1"#, r#"Claims([("aud", Missing)])"#),
    ] {
        let mut text = format!(r#"{{"iss":"hs",{claims}}}"#);
        for offset in [-99_i64, -5, -4, -1, 0, 1, 5, 60, 61] {
            let time = NOW.saturating_add_signed(offset);
            text = text.replace(&format!("NOW{offset:+}}}"), &format!("{time}}}"));
            text = text.replace(&format!("NOW{offset:+},"), &format!("{time},"));
        }
        assert_eq!(bearer(config, &token(&text)), expected, "{config} {text}");
    }
}

/// A call: configuration, request line, headers, and its outcome. `TOKEN` stands for a token of alice, `OTHER` for one
/// of bob.
type TokenCase<'c> = (&'c Value, &'c str, &'c [&'c str], &'c str);

/// Sends the calls. `left` says what is left of query, cookies and Authorization where the token is hidden.
fn tokens_are_found(cases: &[TokenCase<'_>], left: &[[Option<&str>; 3]]) {
    let alice = token(r#"{"iss":"hs"}"#);
    let bob = sign(r#"{"alg":"HS256"}"#, r#"{"iss":"b64"}"#, "secret");
    let filled = |text: &str| text.replace("TOKEN", &alice).replace("OTHER", &bob);
    let mut left = left.iter();
    for (config, line, headers, expected) in cases {
        let headers: Vec<String> = headers.iter().map(|header| filled(header)).collect();
        let headers: Vec<_> = headers
            .iter()
            .filter_map(|header| header.split_once(": "))
            .collect();
        let (outcome, exchange) = call(config, &filled(line), &headers);
        assert_eq!(word(&outcome), *expected, "{config} {line} {headers:?}");
        if config["hide"] == true && *expected == "continue" {
            let text = |bytes: Option<&[u8]>| bytes.map(|it| String::from_utf8_lossy(it).into_owned());
            let request = &exchange.request;
            let rest = [
                text(request.query.as_deref()),
                text(request.headers.get(b"cookie")),
                text(request.headers.get(b"authorization")),
            ];
            let wanted = left.next().expect("one for each");
            assert_eq!(rest, wanted.map(|it| it.map(str::to_owned)), "{line}");
        }
    }
    assert!(left.next().is_none());
}

#[test]
fn tokens_are_found_where_they_may_stand() {
    let none = &json!({});
    let all = &json!({"look_in": [{"query": "jwt"}, {"cookie": "jwt"}, {"header": "Authorization"}]});
    let hidden = &json!({"look_in": all["look_in"], "hide": true});
    let cases: [TokenCase<'_>; 12] = [
        (none, "GET /", &["Authorization: bearer   TOKEN"], "continue"),
        (none, "GET /", &["Authorization: TOKEN"], "Missing"),
        (none, "GET /", &["Authorization: BearerTOKEN"], "Missing"),
        (none, "GET /", &["Authorization: Bearer"], "Missing"),
        (none, "GET /?jwt=TOKEN", &[], "Missing"),
        (all, "GET /?jwt=TOKEN", &[], "continue"),
        (
            all,
            "GET /?jwt=TOKEN&jwt=TOKEN",
            &["Authorization: Bearer TOKEN"],
            "continue",
        ),
        (all, "GET /?jwt=TOKEN&jwt=OTHER", &[], "Duplicate"),
        (
            all,
            "GET /?jwt=TOKEN",
            &["Authorization: Bearer OTHER"],
            "Duplicate",
        ),
        (all, "GET /?jwt=", &["Cookie: a=1; jwt=TOKEN"], "continue"),
        (
            hidden,
            "GET /?a&jwt=TOKEN",
            &["Cookie: a=1; jwt=TOKEN; b=2"],
            "continue",
        ),
        (hidden, "GET /?jwt=TOKEN", &["Authorization: Basic x"], "continue"),
    ];
    tokens_are_found(
        &cases,
        &[[Some("a"), Some("a=1; b=2"), None], [None, None, Some("Basic x")]],
    );
}

#[test]
fn the_first_of_several_tokens_counts_where_asked() {
    let first = &json!({
        "look_in": [{"header": "authorization"}, {"query": "jwt"}, {"cookie": "jwt"}],
        "several": "first", "schemes": ["Bearer", "bearer"], "scheme_required": false, "hide": true,
    });
    let cases: [TokenCase<'_>; 7] = [
        (first, "GET /?jwt=bad", &["Authorization: TOKEN"], "continue"),
        (
            first,
            "GET /?jwt=TOKEN",
            &["Authorization: bad"],
            "Malformed(\"JSON\")",
        ),
        (
            first,
            "GET /?jwt=bad",
            &["Cookie: jwt=TOKEN"],
            "Malformed(\"JSON\")",
        ),
        (first, "GET /", &["Authorization: "], "Malformed(\"JSON\")"),
        (first, "GET /", &["Cookie: jwt=TOKEN"], "continue"),
        (first, "GET /?a=1&jwt=TOKEN", &[], "continue"),
        (first, "GET /", &[], "Missing"),
    ];
    let left = [
        [Some("jwt=bad"), None, None],
        [None, None, None],
        [Some("a=1"), None, None],
    ];
    tokens_are_found(&cases, &left);
}

#[test]
fn callers_are_known_and_challenged() {
    let (_, exchange) = call(
        &json!({}),
        "GET /",
        &[
            ("Authorization", &format!("Bearer {}", token(r#"{"iss":"hs"}"#))),
            ("X-Consumer-Username", "evil"),
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
    assert!(build(&Jwt, &example(include_str!("mod.rs"))).is_ok());
    for (config, places) in [
        (
            json!({"look_in": [{"header": ""}], "key_claim": ""}),
            vec!["look_in[0]", "key_claim"],
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
