//! RSA keys of fewer than 2048 bits, for callers who already have them.

use super::*;

#[test]
fn short_rsa_keys_verify_where_they_are_allowed() {
    let config = json!({"key_claim": "key"});
    for (algorithm, key, token) in [
        ("RS256", RSA_512_KEY, RSA_512_TOKEN),
        ("RS384", RSA_1024_KEY, RSA_1024_TOKEN),
        ("RS512", RSA_1024_KEY, RSA_1024_LONG_TOKEN),
    ] {
        assert!(Credential::is_short_rsa_key(key));
        let credential =
            json!({"key": "short", "algorithm": algorithm, "public_key": key, "short_rsa_key": true});
        let filter = build_with(&Jwt, &config, &[("alice", Some("s"), credential)]).expect("valid");
        let answer = |token: &str| {
            let mut exchange = exchange();
            prepare(
                &mut exchange,
                "GET /",
                &[("Authorization", &format!("Bearer {token}"))],
            );
            word(&filter.on_request(&mut exchange))
        };
        assert_eq!(answer(token), "continue", "{algorithm}");
        // Another byte in the middle of the signature, one more, one fewer, nothing.
        let dot = token.rfind('.').expect("a signature") + 1;
        let mut bytes = token.as_bytes().to_vec();
        bytes[dot + 20] = if bytes[dot + 20] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).expect("a text");
        let claims = token.replacen("eyJrZXkiOiJzaG9ydCJ9", "eyJrZXkiOiJzaG9ydCIsIngiOjF9", 1);
        for wrong in [
            changed,
            format!("{token}AAAA"),
            token[..token.len() - 4].to_owned(),
            claims,
        ] {
            assert_eq!(answer(&wrong), "BadSignature", "{algorithm} {wrong}");
        }
    }
}

#[test]
fn short_rsa_keys_are_refused_unless_they_are_allowed() {
    for (algorithm, key, is_allowed, is_good) in [
        ("RS256", RSA_512_KEY, false, false),
        ("RS256", RSA_512_KEY, true, true),
        // A digest of 64 bytes and its frame do not fit into 64 bytes.
        ("RS512", RSA_512_KEY, true, false),
        ("RS512", RSA_1024_KEY, true, true),
        ("PS256", RSA_1024_KEY, true, false),
        ("RS256", RSA_KEY, true, true),
    ] {
        let credential =
            json!({"key": "k", "algorithm": algorithm, "public_key": key, "short_rsa_key": is_allowed});
        assert_eq!(check_credential(&credential).is_ok(), is_good, "{credential}");
    }
    assert!(!Credential::is_short_rsa_key(RSA_KEY));
    assert!(!Credential::is_short_rsa_key(P256_KEY));
}

#[test]
fn a_token_is_looked_at_in_the_order_of_the_dialect() {
    let header = r#"{"alg":"HS999"}"#;
    let lenient = json!({"key_claim": "key", "check_typ": false});
    let strict = json!({"key_claim": "key", "check_typ": true});
    for (config, claims, word) in [
        (&lenient, r#"{"a":1}"#, "NoKeyClaim(\"key\")"),
        (&lenient, r#"{"key":"hs"}"#, "Malformed(\"alg\")"),
        (&strict, r#"{"a":1}"#, "Malformed(\"alg\")"),
    ] {
        assert_eq!(
            bearer(config, &sign(header, claims, "secret")),
            word,
            "{config} {claims}"
        );
    }
}
