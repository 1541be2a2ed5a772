//! Logins with an identity provider, without one.

use super::*;
use crate::access::openid::jose::tests::{signed, signer};
use crate::access::openid::provider::tests::sample;
use serde_json::json;
use std::time::UNIX_EPOCH;

const REDIRECT: &str = "https://weir.test/api/v1/session/openid/corp/callback";

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
}

fn document() -> Value {
    json!({
        "issuer": "https://id.test",
        "authorization_endpoint": "https://id.test/auth?tenant=1",
        "token_endpoint": "https://id.test/token",
        "jwks_uri": "https://id.test/keys",
        "end_session_endpoint": "https://id.test/logout",
        "authorization_response_iss_parameter_supported": true,
    })
}

fn metadata() -> Metadata {
    Metadata::read(&sample(), document().to_string().as_bytes()).expect("metadata")
}

fn begun() -> PendingLogin {
    let random = ["state", "nonce", "verifier"].map(str::to_owned);
    PendingLogin::new(&sample(), REDIRECT.to_owned(), "/ui/".to_owned(), random, at(0))
}

#[test]
fn a_provider_has_to_be_the_one_that_was_configured_and_private() {
    let read = |document: &Value| Metadata::read(&sample(), document.to_string().as_bytes());
    for (field, value) in [
        ("issuer", json!("https://evil.test")),
        ("issuer", json!("https://id.test/")),
        ("token_endpoint", json!("http://id.test/token")),
        ("jwks_uri", json!(null)),
        ("userinfo_endpoint", json!("ftp://id.test")),
    ] {
        let mut document = document();
        document[field] = value;
        assert!(
            matches!(read(&document), Err(LoginError::Provider(_))),
            "{document}"
        );
    }
    for (url, expected) in [
        ("https://id.test", true),
        ("http://127.0.0.1:80/x", true),
        ("http://[::1]:80/x", true),
        ("http://localhost", true),
        ("http://localhost.evil.test", false),
        ("http://127.0.0.1.evil.test/", false),
        ("http://evil.test/127.0.0.1", false),
        ("https://", false),
        ("javascript:alert(1)", false),
    ] {
        assert_eq!(is_private(url), expected, "{url}");
    }
}

#[test]
fn the_request_asks_for_a_code_with_pkce_state_and_nonce() {
    let url = begun().authorization_url(&sample(), &metadata(), Some("ada"));
    // BASE64URL(SHA256("verifier")).
    let challenge = "iMnq5o6zALKXGivsnlom_0F5_WYda32GHkxlV7mq7hQ";
    assert_eq!(
        url,
        format!(
            "https://id.test/auth?tenant=1&response_type=code&client_id=weir&redirect_uri=https%3A%2F%2Fweir.test%2Fapi%2Fv1%2Fsession%2Fopenid%2Fcorp%2Fcallback&scope=openid%20groups&state=state&nonce=nonce&code_challenge={challenge}&code_challenge_method=S256&login_hint=ada"
        )
    );
    let fresh = begun().fresh();
    let again = fresh.authorization_url(&sample(), &metadata(), Some("ada"));
    assert_eq!(again, format!("{url}&prompt=login&max_age=0"));
    assert_eq!(PendingLogin::from_cookie(&fresh.to_cookie()), Some(fresh));
    assert_eq!(PendingLogin::from_cookie(&begun().to_cookie()), Some(begun()));
    assert_eq!(PendingLogin::from_cookie("x"), None);
}

#[test]
fn a_callback_belongs_to_the_login_of_its_browser() {
    let good = Callback {
        code: Some("c".to_owned()),
        state: Some("state".to_owned()),
        iss: Some("https://id.test".to_owned()),
        ..Callback::default()
    };
    let code = |callback: &Callback, now| {
        begun()
            .code(&sample(), &metadata(), callback, at(now))
            .map(str::to_owned)
    };
    assert_eq!(code(&good, 600), Ok("c".to_owned()));
    let with = |change: fn(&mut Callback)| {
        let mut callback = good.clone();
        change(&mut callback);
        callback
    };
    for (callback, now) in [
        (with(|it| it.state = None), 0),
        (with(|it| it.state = Some("other".to_owned())), 0),
        (with(|it| it.iss = Some("https://evil.test".to_owned())), 0),
        (with(|it| it.iss = None), 0),
        (good.clone(), 601),
    ] {
        assert_eq!(code(&callback, now), Err(LoginError::State), "{callback:?}");
    }
    let refused = with(|it| it.error = Some("access_denied".to_owned()));
    assert_eq!(
        code(&refused, 0),
        Err(LoginError::Refused("access_denied".to_owned()))
    );
    assert!(matches!(
        code(&with(|it| it.code = None), 0),
        Err(LoginError::Provider(_))
    ));
    let other = Provider {
        name: "other".to_owned(),
        ..sample()
    };
    assert_eq!(
        begun().code(&other, &metadata(), &good, at(0)),
        Err(LoginError::State)
    );
}

#[test]
fn the_client_shows_its_secret_as_the_provider_wants_it() {
    let (body, header) = begun().token_request(&sample(), &metadata(), "a/b");
    let shared = "grant_type=authorization_code&code=a%2Fb&redirect_uri=https%3A%2F%2Fweir.test%2Fapi%2Fv1%2Fsession%2Fopenid%2Fcorp%2Fcallback&code_verifier=verifier";
    assert_eq!(body, shared);
    // weir:s%2Be%2Fc (RFC 6749, section 2.3.1).
    assert_eq!(header.as_deref(), Some("Basic d2VpcjpzJTJCZSUyRmM="));
    let posting = Metadata {
        token_endpoint_auth_methods_supported: Some(vec!["client_secret_post".to_owned()]),
        ..metadata()
    };
    let (body, header) = begun().token_request(&sample(), &posting, "a/b");
    assert_eq!(
        (body, header),
        (format!("{shared}&client_id=weir&client_secret=s%2Be%2Fc"), None)
    );
    let public = Provider {
        client_secret: None,
        ..sample()
    };
    let (body, header) = begun().token_request(&public, &metadata(), "a/b");
    assert_eq!((body, header), (format!("{shared}&client_id=weir"), None));
}

#[test]
fn an_id_token_has_to_be_for_this_login() {
    let (pair, keys) = signer();
    let header = json!({ "alg": "ES256", "kid": "k" });
    let good = json!({
        "iss": "https://id.test", "aud": "weir", "sub": "1", "nonce": "nonce", "iat": 1_000_000, "exp": 1_000_300,
    });
    let checked = |claims: &Value, now| {
        let token = signed(&pair, &header, claims);
        begun().claims(&sample(), (&token, &keys), at(now))
    };
    assert_eq!(checked(&good, 0), Ok(good.clone()));
    assert_eq!(checked(&good, 359), Ok(good.clone()), "clocks differ");
    let mut several = good.clone();
    several["aud"] = json!(["other", "weir"]);
    several["azp"] = json!("weir");
    assert!(checked(&several, 0).is_ok());
    for (field, value, now, expected) in [
        ("iss", json!("https://evil.test"), 0, "iss"),
        ("aud", json!("other"), 0, "aud"),
        ("aud", json!(["other"]), 0, "aud"),
        ("aud", json!(["other", "weir"]), 0, "aud"),
        ("aud", json!(null), 0, "aud"),
        ("azp", json!("other"), 0, "azp"),
        ("nonce", json!("other"), 0, "nonce"),
        ("nonce", json!(null), 0, "nonce"),
        ("exp", json!(null), 0, "exp"),
        ("exp", json!(1_000_300), 360, "exp"),
        ("iat", json!(1_000_061), 0, "iat"),
        ("iat", json!(null), 0, "iat"),
        ("sub", json!(""), 0, "sub"),
        ("sub", json!(1), 0, "sub"),
    ] {
        let mut claims = good.clone();
        claims[field] = value;
        assert_eq!(
            checked(&claims, now),
            Err(TokenError::Claim(expected)),
            "{claims}"
        );
    }
    for (time, is_good) in [
        (json!(null), false),
        (json!(999_939), false),
        (json!(999_940), true),
        (json!(1_000_100), true),
    ] {
        let mut claims = good.clone();
        claims["auth_time"] = time;
        let token = signed(&pair, &header, &claims);
        let fresh = begun().fresh().claims(&sample(), (&token, &keys), at(200));
        assert_eq!(fresh.is_ok(), is_good, "{claims}");
        assert!(
            checked(&claims, 200).is_ok(),
            "only a fresh login has to say when"
        );
    }
    let (other, _) = signer();
    let forged = signed(&other, &header, &good);
    assert_eq!(
        begun().claims(&sample(), (&forged, &keys), at(0)),
        Err(TokenError::Signature)
    );
}

#[test]
fn more_claims_are_of_the_same_person() {
    let claims = json!({ "sub": "1", "groups": ["a"] });
    let more = json!({ "sub": "1", "groups": ["admins"], "email": "a@b" });
    let both = with_userinfo(claims.clone(), &more).expect("of the same");
    assert_eq!(both, json!({ "sub": "1", "groups": ["a"], "email": "a@b" }));
    assert!(with_userinfo(claims.clone(), &json!({ "sub": "2" })).is_err());
    assert!(with_userinfo(claims, &json!({})).is_err());
}

#[test]
fn browsers_go_back_to_the_console_only() {
    for (wanted, expected) in [
        (Some("/ui/routes?q=1#x"), "/ui/routes?q=1#x"),
        (Some("https://evil.test"), "/ui/"),
        (Some("//evil.test"), "/ui/"),
        (Some("/ui/\\evil"), "/ui/"),
        (Some("/ui/\r\nset-cookie: x"), "/ui/"),
        (Some("/api/v1/users"), "/ui/"),
        (None, "/ui/"),
    ] {
        assert_eq!(safe_return(wanted), expected);
    }
    assert_eq!(
        logout_url(&sample(), &metadata(), "https://weir.test/ui/").as_deref(),
        Some(
            "https://id.test/logout?client_id=weir&post_logout_redirect_uri=https%3A%2F%2Fweir.test%2Fui%2F"
        )
    );
}
