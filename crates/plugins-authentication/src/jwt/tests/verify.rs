//! Which tokens are good.

use super::*;

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
fn what_must_be_understood_is_refused() {
    for header in [
        r#"{"alg":"HS256","crit":["exp"],"exp":1}"#,
        r#"{"alg":"HS256","crit":["b64"],"b64":false,"crit":null}"#,
        r#"{"alg":"HS256","crit":[]}"#,
        r#"{"alg":"HS256","\u0063rit":"x"}"#,
    ] {
        let token = sign(header, r#"{"iss":"hs"}"#, "secret");
        assert_eq!(bearer(&json!({}), &token), "Malformed(\"crit\")", "{header}");
    }
}

#[test]
fn faults_are_distinguished() {
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
        (&max, r#""a":1"#, r#"Claims([("exp", TooFarAhead)])"#),
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
