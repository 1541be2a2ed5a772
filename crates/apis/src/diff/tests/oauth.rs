//! Flows of OAuth 2.0.

use super::*;

#[test]
fn flows_of_oauth_are_compared() {
    let of = |flows: Value| {
        from_value(json!({
            "openapi": "3.1.0", "info": {}, "security": [{"login": []}],
            "components": {"securitySchemes": {"login": {"type": "oauth2", "flows": flows}}},
            "paths": {"/a": {"get": {"operationId": "a", "responses": {}}}},
        }))
        .expect("a description")
    };
    let flow =
        |token: &str, scopes: Value| json!({"clientCredentials": {"tokenUrl": token, "scopes": scopes}});
    let base = flow("https://a/token", json!({"read": "", "write": ""}));
    const AT: &str = "security.login.flows.clientCredentials";
    for (new, expected) in [
        (
            flow("https://b/token", json!({"read": "", "write": ""})),
            vec![(true, "'tokenUrl' is 'https://b/token', was 'https://a/token'")],
        ),
        (
            flow("https://a/token", json!({"read": "other words", "admin": ""})),
            vec![
                (true, "the scope 'write' is gone"),
                (false, "the scope 'admin' is new"),
            ],
        ),
        (json!({}), vec![(true, "the flow is gone")]),
        (base.clone(), vec![]),
    ] {
        let found = diff(&of(base.clone()), &of(new.clone()));
        let changes = found.operations.iter().flat_map(|it| &it.changes);
        let messages: Vec<_> = changes
            .map(|it| (it.breaking, it.place.as_str(), it.message.as_str()))
            .collect();
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(breaking, message)| (breaking, AT, message))
            .collect();
        assert_eq!(messages, expected, "{new}");
        let back = diff(&of(new.clone()), &of(base.clone()));
        assert_eq!(
            back.is_breaking(),
            expected
                .iter()
                .any(|it| it.2.contains("tokenUrl") || it.2.contains("is new")),
            "{new}"
        );
    }
}
