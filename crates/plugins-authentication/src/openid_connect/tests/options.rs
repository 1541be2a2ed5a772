//! What options change: credentials that are removed, answers that are not kept, words of refusals, headers that stay.

use super::*;

#[test]
fn what_a_caller_is_recognised_by_is_removed_if_asked_for() {
    let provider = FakeProvider::new();
    for (method, place, line, headers, body, left) in [
        (
            Method::Introspection,
            TokenSource::Bearer,
            "GET /?a=1",
            vec![("Authorization", "Bearer opaque"), ("X-Other", "1")],
            "",
            "/?a=1 X-Other: 1",
        ),
        (
            Method::Introspection,
            TokenSource::Header("X-Token".into()),
            "GET /",
            vec![("X-Token", "opaque"), ("Authorization", "Digest x")],
            "",
            "/? Authorization: Digest x",
        ),
        (
            Method::Introspection,
            TokenSource::Query("t".into()),
            "GET /?a=1&t=opaque",
            vec![],
            "",
            "/?a=1 ",
        ),
        (
            Method::Introspection,
            TokenSource::Cookie("t".into()),
            "GET /",
            vec![("Cookie", "a=1; t=opaque")],
            "",
            "/? cookie: a=1",
        ),
        (
            Method::Introspection,
            TokenSource::Body("t".into()),
            "POST /",
            vec![("Content-Type", "application/x-www-form-urlencoded")],
            "a=1&t=opaque",
            "/? Content-Type: application/x-www-form-urlencoded a=1",
        ),
        (
            Method::Password,
            TokenSource::Bearer,
            "GET /",
            vec![("Authorization", "Basic YWxpY2U6c2VjcmV0")],
            "",
            "/? ",
        ),
    ] {
        for strips in [true, false] {
            let filter = filter(|config| {
                config.methods = vec![method];
                config.bearer_locations = vec![place.clone()];
                config.upstream_headers = Vec::new();
                config.strip = strips;
            });
            let mut call = call(line, &headers);
            call.request.has_body = !body.is_empty();
            call.request.body = call.request.has_body.then(|| body.as_bytes().to_vec());
            assert_eq!(word(&provider.run(&filter, &mut call)), "continue", "{place:?}");
            let request = &call.request;
            let query = String::from_utf8_lossy(request.query.as_deref().unwrap_or_default());
            let forwarded = String::from_utf8_lossy(request.body.as_deref().unwrap_or_default());
            let forwarded = format!("/?{query} {} {forwarded}", lines(&request.headers).join(" "));
            assert_eq!(
                forwarded.trim().eq_ignore_ascii_case(left.trim()),
                strips,
                "{place:?}: {forwarded}"
            );
        }
    }
}

#[test]
fn answers_are_kept_unless_the_configuration_says_otherwise() {
    for (method, answer, path) in [
        (
            Method::Introspection,
            ProviderAnswer::Introspection,
            "/introspect",
        ),
        (Method::Userinfo, ProviderAnswer::Userinfo, "/me"),
        (Method::Password, ProviderAnswer::Tokens, "/token"),
    ] {
        let plugin = OpenIdConnect::default();
        let provider = FakeProvider::new();
        for (is_kept, requests) in [(true, 1), (false, 3)] {
            let filter = filter_of(&plugin, |config| {
                config.methods = vec![method];
                config.uncached = if is_kept { Vec::new() } else { vec![answer] };
            });
            for clock in [|| NOW_MS, || NOW_MS + 2] {
                let authorization = match method {
                    Method::Password => "Basic YWxpY2U6c2VjcmV0",
                    _ => "Bearer opaque",
                };
                let mut call = Exchange::new(clock, 7);
                prepare(&mut call, "GET /", &[("Authorization", authorization)]);
                assert_eq!(word(&provider.run(&filter, &mut call)), "continue", "{method:?}");
            }
            assert_eq!(provider.count(path), requests, "{method:?} {is_kept}");
        }
    }
}

#[test]
fn refusals_have_the_words_of_the_configuration() {
    let provider = FakeProvider::new();
    let filter = filter(|config| {
        config.methods = vec![Method::Bearer];
        config.required.scopes = vec!["admin".into()];
        config.unauthorized_message = Some("who?".into());
        config.forbidden_message = Some("no".into());
    });
    for (token, expected) in [
        (None, (401, "who?")),
        (Some("x".to_owned()), (401, "who?")),
        (Some(provider.token(json!({"scope": "read"}))), (403, "no")),
    ] {
        let authorization = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<_> = (authorization.iter().map(|it| ("Authorization", it.as_str()))).collect();
        let Outcome::Refuse(refusal) = provider.run(&filter, &mut call("GET /", &headers)) else {
            panic!("it is refused");
        };
        assert_eq!(
            (refusal.status, refusal.message.as_deref().unwrap_or_default()),
            expected
        );
    }
}

/// The defect would be that an instance which lets a known caller pass removes what the other one has said.
#[test]
fn headers_of_the_plugin_that_knows_the_caller_stay() {
    let provider = FakeProvider::new();
    let filter = filter(|config| {
        config.methods = vec![Method::Introspection];
        config.identity.skip_authenticated = true;
        config.upstream_headers = serde_json::from_value(json!([
            {"name": "X-Credential-Identifier", "value": {"claim": ["username"]}},
            {"name": "X-Credential-Scope", "value": {"claim": ["scope"]}},
        ]))
        .expect("good");
    });
    let headers = [
        ("X-Credential-Identifier", "key"),
        ("X-Credential-Scope", "forged"),
    ];
    let mut call = call("GET /", &headers);
    call.identity = Some(identity("alice", Some("key")));
    assert_eq!(word(&provider.run(&filter, &mut call)), "continue");
    assert_eq!(lines(&call.request.headers), ["X-Credential-Identifier: key"]);
}
