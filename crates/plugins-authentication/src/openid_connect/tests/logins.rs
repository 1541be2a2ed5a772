//! Browsers log in, stay logged in, and log out.

use super::*;

#[test]
fn browsers_log_in_and_come_back_to_where_they_wanted_to_go() {
    let provider = FakeProvider::new();
    let filter = filter(|_| {});
    let mut jar = Vec::new();
    let url = begin(&provider, &filter, &mut jar, "GET /a?x=1");
    assert!(
        url.starts_with("https://id.example/auth?response_type=code&client_id=shop&"),
        "{url}"
    );
    for (name, value) in [
        ("redirect_uri", "http%3A%2F%2Fapi.example%2Fa%2F.weir%2Fredirect"),
        ("scope", "openid"),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(argument(&url, name).as_deref(), Some(value));
    }
    *provider.nonce.borrow_mut() = argument(&url, "nonce").expect("a nonce");
    let state = argument(&url, "state").expect("a state");
    let outcome = come_back(&provider, &filter, &mut jar, &format!("code=c&state={state}"));
    assert_eq!(location(&outcome), "/a?x=1");
    assert_eq!(jar.len(), 1, "one session, and no login under way");

    let forged = [
        ("Cookie", cookies(&jar)),
        ("X-Userinfo", "forged".into()),
        ("x_id_token", "forged".into()),
    ];
    let forged: Vec<(&str, &str)> = forged
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let mut next = call("GET /a", &forged);
    assert_eq!(word(&provider.run(&filter, &mut next)), "continue");
    let header = |name: &[u8]| {
        let value = next.request.headers.get(name).expect("a header");
        serde_json::from_slice::<Value>(&STANDARD.decode(value).expect("Base64")).expect("JSON")
    };
    assert_eq!(header(b"X-Userinfo"), json!({"sub": "alice", "email": "a@b"}));
    assert_eq!(header(b"X-ID-Token")["sub"], json!("alice"));
    assert!(next.request.headers.get(b"x-access-token").is_some());
    assert!(
        next.request.headers.get(b"cookie").is_none(),
        "upstreams do not see sessions"
    );
    assert_eq!(next.request.headers.get_all(b"x-userinfo").count(), 1);
    // Another gateway with the same secret knows the session, and one with another secret does not.
    let same = self::filter(|_| {});
    let other = self::filter(|config| {
        config.session = Some(crate::session_cookie::SessionConfig::new(
            "another secret!!".into(),
        ));
    });
    for (gateway, expected) in [(&same, "continue"), (&other, "reply 302")] {
        let mut next = call("GET /a", &[("Cookie", &cookies(&jar))]);
        assert_eq!(word(&provider.run(gateway, &mut next)), expected);
    }
}

#[test]
fn two_tabs_log_in_at_once() {
    let provider = FakeProvider::new();
    let filter = filter(|config| config.nonce = false);
    let mut jar = Vec::new();
    let first = begin(&provider, &filter, &mut jar, "GET /a/one");
    let second = begin(&provider, &filter, &mut jar, "GET /a/two");
    for (url, expected) in [(second, "/a/two"), (first, "/a/one")] {
        let state = argument(&url, "state").expect("a state");
        let outcome = come_back(&provider, &filter, &mut jar, &format!("code=c&state={state}"));
        assert_eq!(location(&outcome), expected);
    }
    // Logins that are never finished do not pile up.
    for number in 0..20 {
        jar.retain(|(name, _)| name != "session");
        begin(&provider, &filter, &mut jar, &format!("GET /{number}"));
    }
    assert!(jar.len() <= 6, "{}", jar.len());
}

#[test]
fn answers_that_were_not_asked_for_begin_no_session() {
    let provider = FakeProvider::new();
    let filter = filter(|_| {});
    let log_in_with = |change: &dyn Fn(String) -> String| {
        let mut jar = Vec::new();
        let url = begin(&provider, &filter, &mut jar, "GET /a");
        *provider.nonce.borrow_mut() = argument(&url, "nonce").expect("a nonce");
        let query = change(argument(&url, "state").expect("a state"));
        let outcome = come_back(&provider, &filter, &mut jar, &query);
        let has_session = jar.iter().any(|(name, _)| name == "session");
        (word(&outcome), has_session)
    };
    for (what, change, expected) in [
        (
            "good",
            &(|state| format!("code=c&state={state}")) as &dyn Fn(String) -> String,
            ("reply 302", true),
        ),
        // An old state: the browser begins again.
        (
            "another state",
            &|state: String| format!("code=c&state={}", state.replace(['0', '1', '2', '3'], "f")),
            ("reply 302", false),
        ),
        ("no state", &|_| "code=c".into(), ("reply 302", false)),
        (
            "an error",
            &|state| format!("error=access_denied&state={state}"),
            ("answered 401", false),
        ),
        (
            "no code",
            &|state| format!("state={state}"),
            ("answered 401", false),
        ),
        (
            "unavailable",
            &|state| format!("error=temporarily_unavailable&state={state}"),
            ("reply 302", false),
        ),
        (
            "mix-up",
            &|state| format!("code=c&state={state}&iss=https%3A%2F%2Fevil.example"),
            ("answered 401", false),
        ),
        (
            "its issuer",
            &|state| format!("code=c&state={state}&iss=https%3A%2F%2Fid.example"),
            ("reply 302", true),
        ),
        (
            "another client",
            &|state| format!("code=c&state={state}&client_id=x"),
            ("answered 401", false),
        ),
    ] {
        let (found, has_session) = log_in_with(change);
        assert_eq!((found.as_str(), has_session), expected, "{what}");
    }
    // Without the cookie of the login, another browser cannot use the answer.
    let mut jar = Vec::new();
    let url = begin(&provider, &filter, &mut jar, "GET /a");
    let state = argument(&url, "state").expect("a state");
    let outcome = come_back(
        &provider,
        &filter,
        &mut Vec::new(),
        &format!("code=c&state={state}"),
    );
    assert_eq!(word(&outcome), "answered 401");
    // A second use of the same answer finds no login.
    *provider.nonce.borrow_mut() = argument(&url, "nonce").expect("a nonce");
    let query = format!("code=c&state={state}");
    assert_eq!(location(&come_back(&provider, &filter, &mut jar, &query)), "/a");
    assert_eq!(
        word(&come_back(&provider, &filter, &mut jar, &query)),
        "answered 401"
    );
}

#[test]
fn restarts_end() {
    let provider = FakeProvider::new();
    let filter = filter(|_| {});
    let mut jar = Vec::new();
    let mut words = Vec::new();
    for _ in 0..5 {
        let url = begin(&provider, &filter, &mut jar, "GET /a");
        let state = argument(&url, "state").expect("a state");
        let query = format!("error=temporarily_unavailable&state={state}");
        words.push(word(&come_back(&provider, &filter, &mut jar, &query)));
    }
    assert_eq!(words[..3], ["reply 302", "reply 302", "reply 302"]);
    assert_eq!(words[3], "answered 401");
}

#[test]
fn browsers_are_sent_back_to_the_same_host_only() {
    let provider = FakeProvider::new();
    let filter = filter(|config| config.nonce = false);
    for (line, expected) in [
        ("GET //evil.example/a", "/.//evil.example/a"),
        ("GET /\\evil.example", "/./\\evil.example"),
        ("GET /a?next=//evil.example", "/a?next=//evil.example"),
    ] {
        let mut jar = Vec::new();
        let url = begin(&provider, &filter, &mut jar, line);
        let state = argument(&url, "state").expect("a state");
        let outcome = come_back(&provider, &filter, &mut jar, &format!("code=c&state={state}"));
        assert_eq!(location(&outcome), expected, "{line}");
    }
}

#[test]
fn identity_tokens_must_be_good() {
    let provider = FakeProvider::new();
    for (what, claims, expected) in [
        ("good", json!({}), true),
        ("another audience", json!({"aud": "bank"}), false),
        (
            "two audiences",
            json!({"aud": ["bank", "shop"], "azp": "shop"}),
            true,
        ),
        (
            "another party",
            json!({"aud": ["bank", "shop"], "azp": "bank"}),
            false,
        ),
        ("another issuer", json!({"iss": "https://evil.example"}), false),
        ("another nonce", json!({"nonce": "x"}), false),
        ("expired", json!({"exp": NOW_S - 1}), false),
        ("from the future", json!({"iat": NOW_S + 600}), false),
        ("no subject", json!({"sub": null}), false),
    ] {
        *provider.claims.borrow_mut() = claims.as_object().expect("claims").clone();
        let outcome = log_in(&provider, &filter(|_| {}), &mut Vec::new());
        let expected = if expected { "reply 302" } else { "answered 401" };
        assert_eq!(word(&outcome), expected, "{what}");
    }
    provider.claims.borrow_mut().clear();
    // Claims of another user.
    *provider.userinfo_sub.borrow_mut() = "bob".into();
    assert_eq!(
        word(&log_in(&provider, &filter(|_| {}), &mut Vec::new())),
        "answered 401"
    );
}

#[test]
fn identity_tokens_are_good_that_are_issued_while_the_call_waits() {
    thread_local! {
        static READ: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
    }
    // Each look at the clock is a second after the one before.
    let clock = || NOW_MS + 1_000 * READ.replace(READ.get() + 1);
    let provider = FakeProvider::new();
    let filter = filter(|_| {});
    let mut jar = Vec::new();
    let url = begin(&provider, &filter, &mut jar, "GET /a");
    *provider.nonce.borrow_mut() = argument(&url, "nonce").expect("a nonce");
    provider
        .claims
        .borrow_mut()
        .insert("iat".into(), json!(NOW_S + 1));
    let query = format!("code=c&state={}", argument(&url, "state").expect("a state"));
    let outcome = come_back_at(clock, &provider, &filter, &mut jar, &query);
    assert_eq!(location(&outcome), "/a");
}

#[test]
fn logging_out_ends_the_session_here_and_at_the_provider() {
    let provider = FakeProvider::new();
    let filter = filter(|config| config.logout.redirect_uri = Some("https://shop.example/bye".into()));
    let mut jar = Vec::new();
    log_in(&provider, &filter, &mut jar);
    assert!(cookies(&jar).contains("session="));
    let mut out = call("GET /logout", &[("Cookie", &cookies(&jar))]);
    let url = location(&provider.run(&filter, &mut out));
    take_cookies(&mut jar, &out);
    assert!(
        url.starts_with("https://id.example/end?client_id=shop&id_token_hint="),
        "{url}"
    );
    assert_eq!(
        argument(&url, "post_logout_redirect_uri").as_deref(),
        Some("https%3A%2F%2Fshop.example%2Fbye")
    );
    assert_eq!(cookies(&jar), "");
}

#[test]
fn expired_tokens_are_renewed_once_for_all_calls() {
    let provider = FakeProvider::new();
    let filter = filter(|_| {});
    let mut jar = Vec::new();
    provider.expires_in.set(0);
    log_in(&provider, &filter, &mut jar);
    provider.expires_in.set(300);
    let before = provider.count("/token");
    // Twenty calls that begin before the first answer is there.
    let mut calls: Vec<Exchange> = (0..20)
        .map(|_| call("GET /a", &[("Cookie", &cookies(&jar))]))
        .collect();
    let begun: Vec<Outcome> = calls.iter_mut().map(|call| filter.on_request(call)).collect();
    let asked = begun
        .iter()
        .filter(|outcome| matches!(outcome, Outcome::Subrequest(_)))
        .count();
    assert_eq!(asked, 1);
    for (call, outcome) in calls.iter_mut().zip(begun) {
        if let Outcome::Subrequest(asked) = outcome {
            call.subrequest_response = Some(provider.answer(&asked.message));
        }
        assert_eq!(word(&provider.run(&filter, call)), "continue");
        assert!(!call.response_headers.is_empty(), "each gets the renewed session");
    }
    assert_eq!(provider.count("/token"), before + 1);
    // A refresh that fails leads to a new login.
    provider.is_up.set(false);
    take_cookies(&mut jar, &calls[0]);
    provider.expires_in.set(0);
    let mut late = call("GET /a", &[("Cookie", &cookies(&jar))]);
    assert_eq!(
        word(&provider.run(&filter, &mut late)),
        "continue",
        "what was renewed is still good"
    );
}

#[test]
fn a_copy_of_the_session_is_dead_after_the_logout() {
    let provider = FakeProvider::new();
    let filter = filter(|_| {});
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for jar in [&mut one, &mut other] {
        log_in(&provider, &filter, jar);
    }
    let calls = |jar: &[(String, String)]| {
        let mut call = call("GET /a", &[("Cookie", &cookies(jar))]);
        word(&provider.run(&filter, &mut call))
    };
    assert_eq!(
        (calls(&one), calls(&other)),
        ("continue".into(), "continue".into())
    );
    let mut out = call("GET /logout", &[("Cookie", &cookies(&one))]);
    assert_eq!(word(&provider.run(&filter, &mut out)), "reply 302");
    assert_eq!(
        (calls(&one), calls(&other)),
        ("reply 302".into(), "continue".into())
    );
}
