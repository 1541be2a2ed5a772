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

/// A method and its locations; the call's line, a header and the body; what is left of query and body if the call goes on.
type GrantCase<'c> = (
    Method,
    &'c [GrantLocation],
    &'c str,
    (&'c str, &'c str),
    &'c str,
    Option<&'c str>,
);

fn check_grant((method, locations, line, header, body, left): GrantCase<'_>) {
    let provider = FakeProvider::new();
    let filter = filter(|config| {
        config.methods = vec![method];
        config.bearer_locations = Vec::new();
        config.upstream_headers = Vec::new();
        config.password_locations = locations.to_vec();
        config.client_credentials_locations = locations.to_vec();
        config.strip = true;
    });
    let mut call = call(line, &[header]);
    call.request.has_body = !body.is_empty();
    let mut outcome = provider.run(&filter, &mut call);
    let reads = matches!(outcome, Outcome::NeedBody { max_bytes: 1_048_576 });
    let form = body.is_empty() || header.1 == "text/plain";
    assert_eq!(
        reads,
        !form && locations.contains(&GrantLocation::Body),
        "{line} {body}"
    );
    if reads {
        call.request.body = Some(body.as_bytes().to_vec());
        outcome = provider.run(&filter, &mut call);
    }
    let expected = if left.is_some() {
        "continue"
    } else {
        "answered 401"
    };
    assert_eq!(word(&outcome), expected, "{method:?} {locations:?} {line} {body}");
    assert_eq!(
        provider.count("/token"),
        usize::from(left.is_some()),
        "{line} {body}"
    );
    if let Some(left) = left {
        let text = |bytes: &Option<Vec<u8>>| {
            String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned()
        };
        let rest = format!("{} {}", text(&call.request.query), text(&call.request.body));
        assert_eq!(rest.trim_end(), left, "{line} {body}");
        assert!(call.request.headers.get(b"authorization").is_none(), "{line}");
    }
}

/// The defect: only the header was read.
#[test]
fn what_is_exchanged_for_a_token_is_found_in_its_locations() {
    use GrantLocation::{Body, Header, Query};
    const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
    const JSON: (&str, &str) = ("Content-Type", "application/json");
    let basic = ("Authorization", "Basic YWxpY2U6c2VjcmV0");
    let all = &[Header, Query, Body][..];
    let (user, client) = (Method::Password, Method::ClientCredentials);
    let by_client = "client_id=alice&client_secret=secret";
    for case in [
        (user, all, "GET /", basic, "", Some("")),
        (
            user,
            all,
            "GET /?username=alice&a=1&password=secret",
            ("X", "1"),
            "",
            Some("a=1"),
        ),
        (
            user,
            all,
            "POST /",
            FORM,
            "a=1&username=alice&password=s+e",
            Some(" a=1"),
        ),
        (
            user,
            all,
            "POST /",
            JSON,
            r#"{"username":"alice","password":"s","a":1}"#,
            Some(r#" {"a":1}"#),
        ),
        (client, all, "GET /", basic, "", Some("")),
        (
            client,
            all,
            &format!("GET /?{by_client}"),
            ("X", "1"),
            "",
            Some(""),
        ),
        (client, all, "POST /", FORM, by_client, Some("")),
        // What another method reads.
        (user, all, "POST /", FORM, by_client, None),
        (
            client,
            all,
            "GET /?username=alice&password=secret",
            ("X", "1"),
            "",
            None,
        ),
        // Not all of it, or twice.
        (user, all, "POST /?username=alice", FORM, "password=secret", None),
        (user, all, "GET /?username=alice&password=", ("X", "1"), "", None),
        (
            user,
            all,
            "GET /?username=alice&password=a&password=b",
            ("X", "1"),
            "",
            None,
        ),
        (
            user,
            all,
            "POST /",
            ("Content-Type", "text/plain"),
            "username=alice&password=s",
            None,
        ),
        // Locations that are not looked at.
        (user, &[Query, Body], "GET /", basic, "", None),
        (
            user,
            &[Header],
            "GET /?username=alice&password=secret",
            ("X", "1"),
            "",
            None,
        ),
        (
            user,
            &[Header, Query],
            "POST /",
            FORM,
            "username=alice&password=secret",
            None,
        ),
        (client, &[Header], "POST /", FORM, by_client, None),
        (user, &[], "GET /", basic, "", None),
    ] {
        check_grant(case);
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
