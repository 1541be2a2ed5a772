//! Where tokens are found.

use super::*;

/// A call: configuration, request line, headers, and its outcome. `TOKEN` stands for a token of alice, `OTHER` for one
/// of bob.
type TokenCase<'c> = (&'c Value, &'c str, &'c [&'c str], &'c str);

/// Sends the calls. `left` is what remains of query, cookies and Authorization if the token is hidden.
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
        if config["strip"] == true && *expected == "continue" {
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
    let all = &json!({"locations": [{"query": "jwt"}, {"cookie": "jwt"}, {"header": "Authorization"}]});
    let hidden = &json!({"locations": all["locations"], "strip": true});
    let cases: [TokenCase<'_>; 17] = [
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
        (all, "GET /", &["Cookie: jwt=TOKEN; jwt=OTHER"], "Duplicate"),
        (
            all,
            "GET /",
            &["Cookie: jwt=TOKEN", "Cookie: jwt=OTHER"],
            "Duplicate",
        ),
        (all, "GET /", &["Cookie: jwt=; jwt=TOKEN; jwt=TOKEN"], "Missing"),
        (
            all,
            "GET /",
            &["Authorization: Bearer TOKEN", "Authorization: Bearer OTHER"],
            "Duplicate",
        ),
        (
            hidden,
            "GET /?jwt=TOKEN&jwt=TOKEN",
            &["Cookie: jwt=TOKEN; b=2; jwt=TOKEN", "Cookie: jwt=TOKEN"],
            "continue",
        ),
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
        &[
            [None, Some("b=2"), None],
            [Some("a"), Some("a=1; b=2"), None],
            [None, None, Some("Basic x")],
        ],
    );
}

#[test]
fn the_first_of_several_tokens_counts_where_asked() {
    let first = &json!({
        "locations": [{"header": "authorization"}, {"query": "jwt"}, {"cookie": "jwt"}],
        "on_multiple": "first", "schemes": ["Bearer", "bearer"], "scheme_required": false, "strip": true,
    });
    let cases: [TokenCase<'_>; 10] = [
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
        (first, "GET /?jwt=TOKEN&jwt=OTHER", &[], "Duplicate"),
        (first, "GET /", &["Cookie: jwt=TOKEN; jwt=OTHER"], "Duplicate"),
        (
            first,
            "GET /",
            &["Cookie: jwt=TOKEN", "Cookie: jwt=bad"],
            "Duplicate",
        ),
    ];
    let left = [
        [Some("jwt=bad"), None, None],
        [None, None, None],
        [Some("a=1"), None, None],
    ];
    tokens_are_found(&cases, &left);
}
