//! Tokens that a server explains.

use super::*;

#[test]
fn opaque_tokens_are_explained() {
    let inner = signed(
        Algorithm::RS256,
        "issuer",
        &json!({"sub": "inner", "exp": NOW_S - 5}),
    );
    let explains = |more: Value| {
        let mut rules = json!({
            "endpoint": "https://id.example/introspect", "authorization": "Basic QQ==", "hint": "access_token",
            "arguments": "resource=a",
        });
        rules
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        with(config(), &[("/access_token/introspection", rules)])
    };
    let active = json!({"active": true, "sub": "alice", "exp": NOW_S + 60, "scope": "a", "token": inner});
    for (what, config, answer, expected) in [
        ("active", explains(json!({})), Some(active.clone()), "continue"),
        (
            "inactive",
            explains(json!({})),
            Some(json!({"active": false})),
            "Rejected(\"the token is not active\")",
        ),
        (
            "active as a text",
            explains(json!({})),
            Some(json!({"active": "true"})),
            "plugin_failed 500",
        ),
        ("no answer", explains(json!({})), None, "plugin_failed 500"),
        (
            "expired",
            explains(json!({})),
            Some(json!({"active": true, "exp": NOW_S - 1})),
            "Rejected(\"the token has expired\")",
        ),
        (
            "scopes",
            explains(json!({"claims": {"scopes": ["b"]}})),
            Some(active.clone()),
            "forbidden 403",
        ),
        (
            "a token within",
            explains(json!({"token_claim": ["token"]})),
            Some(active.clone()),
            "continue",
        ),
        (
            "a token within that is checked",
            explains(json!({"token_claim": ["token"], "is_trusted": false})),
            Some(active.clone()),
            "Rejected(\"the token has expired\")",
        ),
        (
            "no token within",
            explains(json!({"token_claim": ["other"]})),
            Some(active.clone()),
            "Rejected(\"the answer has no signed token\")",
        ),
    ] {
        let servers = Servers::new();
        *servers.explained.borrow_mut() = answer;
        let (found, headers) = call(&servers, &config, &[("Authorization", "Bearer a&b")]);
        assert_eq!(found, expected, "{what}");
        let asked = servers.asked.borrow();
        assert!(
            asked[0].contains("Authorization: Basic QQ==\r\n")
                && asked[0].ends_with("\r\n\r\ntoken=a%26b&token_type_hint=access_token&resource=a"),
            "{}",
            asked[0]
        );
        if found == "continue" {
            let subject = if what == "active" { "alice" } else { "inner" };
            assert_eq!(
                upstream_headers(&headers, "Authorization")["sub"],
                subject,
                "{what}"
            );
        }
    }
}

#[test]
fn an_answer_that_is_not_kept_is_asked_for_once_in_a_call() {
    let explains = json!({"endpoint": "https://id.example/introspect", "cache_seconds": 0});
    let mut config = with(config(), &[("/access_token/introspection", explains.clone())]);
    config["channel_token"] = json!({"request_header": "X-Channel", "introspection": explains});
    let servers = Servers::new();
    *servers.explained.borrow_mut() = Some(json!({"active": true, "exp": NOW_S + 60}));
    let headers = [("Authorization", "Bearer a"), ("X-Channel", "b")];
    let (found, _) = call(&servers, &config, &headers);
    assert_eq!((found.as_str(), servers.asked.borrow().len()), ("continue", 2));
}
