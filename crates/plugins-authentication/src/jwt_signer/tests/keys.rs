//! Where keys come from, and which of them fit.

use super::*;

#[test]
fn secrets_are_keys_only_where_they_are_wanted() {
    let secret = json!({"kty": "oct", "kid": "s", "k": URL_SAFE_NO_PAD.encode([7; 32])});
    let set = json!({"keys": [secret]});
    let key = SigningKey::of_set(Algorithm::HS256, set.to_string().as_bytes()).expect("a key");
    let token = format!("Bearer {}", key.sign(&claims()).expect("signed"));
    for (accepts, expected) in [
        (true, "continue"),
        (false, "Rejected(\"the token's algorithm is not accepted\")"),
    ] {
        let servers = Servers::new();
        *servers.keys.borrow_mut() = Some(set.clone());
        let config = with(
            config(),
            &[("/access_token/allow_symmetric_keys", json!(accepts))],
        );
        let (found, _) = call(&servers, &config, &[("Authorization", &token)]);
        assert_eq!(found, expected);
    }
}

#[test]
fn keys_are_fetched_once_and_again_when_they_do_not_fit() {
    let servers = Servers::new();
    *servers.keys.borrow_mut() = Some(json!({"keys": [public("gateway")]}));
    let plugin = JwtSigner::default();
    let filter = build(&plugin, &config()).expect("valid");
    let token = format!("Bearer {}", signed(Algorithm::RS256, "issuer", &claims()));
    let again = || {
        let mut call = exchange();
        prepare(&mut call, "GET /", &[("Authorization", &token)]);
        (
            word(&servers.run(&filter, &mut call)),
            servers.asked.borrow().len(),
        )
    };
    // The set has just been fetched, so it is not fetched again.
    let unknown = "Rejected(\"the token's key is not known\")";
    assert_eq!(again(), (unknown.to_owned(), 1));
    for _ in 0..5 {
        assert_eq!(again(), (unknown.to_owned(), 1));
    }
    let other = JwtSigner::default();
    let filter = build(&other, &config()).expect("valid");
    *servers.keys.borrow_mut() = None;
    let mut down = exchange();
    prepare(&mut down, "GET /", &[("Authorization", &token)]);
    assert_eq!(word(&servers.run(&filter, &mut down)), "plugin_failed 500");
    assert_eq!(servers.asked.borrow().len(), 2);
}

#[test]
fn keys_are_renewed_when_they_do_not_fit_and_stay_if_that_fails() {
    let servers = Servers::new();
    *servers.keys.borrow_mut() = Some(json!({"keys": [public("gateway")]}));
    let plugin = JwtSigner::default();
    let filter = build(&plugin, &config()).expect("valid");
    let tokens = ["issuer", "p256"].map(|id| {
        let algorithm = if id == "issuer" {
            Algorithm::RS256
        } else {
            Algorithm::ES256
        };
        format!("Bearer {}", signed(algorithm, id, &claims()))
    });
    let at = |seconds: u64, token: &str| {
        let mut call = exchange();
        prepare(&mut call, "GET /", &[("Authorization", token)]);
        call.set_unix_ms(NOW_MS + seconds * 1_000);
        let outcome = word(&servers.run(&filter, &mut call));
        (outcome, servers.asked.borrow().len())
    };
    let good = |questions| ("continue".to_owned(), questions);
    let unknown = |questions| {
        let word = "Rejected(\"the token's key is not known\")";
        (word.to_owned(), questions)
    };
    let [token, other] = &tokens;
    assert_eq!(at(0, token), unknown(1));
    *servers.keys.borrow_mut() = Some(json!({"keys": [public("issuer")]}));
    assert_eq!(at(29, token), unknown(1));
    assert_eq!(at(31, token), good(2));
    // The server is away: what it has said stays, and it is asked every 30 seconds only.
    *servers.keys.borrow_mut() = None;
    for (seconds, questions) in [(40, 2), (62, 3), (65, 3), (91, 3), (93, 4)] {
        assert_eq!(at(seconds, other), unknown(questions), "{seconds}");
        assert_eq!(at(seconds, token), good(questions), "{seconds}");
    }
}

#[test]
fn instances_share_answers_only_if_they_trust_them_alike() {
    let plugin = JwtSigner::default();
    let servers = Servers::new();
    *servers.explained.borrow_mut() = Some(json!({"active": true, "exp": NOW_S + 60}));
    let filter = |http: &Value, cache_seconds: u64| {
        let explains = json!({"endpoint": "https://id.example/introspect", "cache_seconds": cache_seconds});
        let changes = [
            ("/http", http.clone()),
            ("/access_token/introspection", explains),
            (
                "/access_token/verification_keys/cache_seconds",
                json!(cache_seconds),
            ),
        ];
        build(&plugin, &with(config(), &changes)).expect("valid")
    };
    let call = |token: &str| {
        let mut call = exchange();
        prepare(&mut call, "GET /", &[("Authorization", token)]);
        call
    };
    let ask = |http: &Value, cache_seconds: u64, token: &str| {
        let before = servers.asked.borrow().len();
        let outcome = word(&servers.run(&filter(http, cache_seconds), &mut call(token)));
        (outcome, servers.asked.borrow().len() - before)
    };
    let token = signed(Algorithm::RS256, "issuer", &claims());
    for (http, cache_seconds, explanations, documents) in [
        (json!({"verify_tls": false}), 60, 1, 1),
        (json!({}), 60, 1, 1),
        (json!({"proxy": "http://one:3128"}), 60, 1, 1),
        (json!({"proxy": "http://two:3128"}), 60, 1, 1),
        (json!({}), 5, 1, 1),
        (json!({}), 0, 1, 1),
        (json!({}), 0, 1, 0),
        (json!({}), 60, 0, 0),
    ] {
        let what = format!("{http} {cache_seconds}");
        let expected = |questions| ("continue".to_owned(), questions);
        assert_eq!(
            ask(&http, cache_seconds, "Bearer opaque"),
            expected(explanations),
            "{what}"
        );
        assert_eq!(ask(&http, cache_seconds, &token), expected(documents), "{what}");
    }
    // A token that was revoked is not good any more if nothing is kept.
    *servers.explained.borrow_mut() = Some(json!({"active": false}));
    let revoked = "Rejected(\"the token is not active\")";
    assert_eq!(ask(&json!({}), 0, "Bearer opaque"), (revoked.to_owned(), 1));
    assert_eq!(ask(&json!({}), 60, "Bearer opaque"), ("continue".to_owned(), 0));
    // Calls at the same time do not share an answer either.
    let alone = filter(&json!({}), 0);
    let mut calls = [call("Bearer opaque"), call("Bearer opaque")];
    let words = calls.each_mut().map(|call| word(&alone.on_request(call)));
    assert_eq!(words, ["ask", "ask"]);
}
