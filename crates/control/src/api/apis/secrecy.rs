//! What is shown of the secrets that entities of API management hold: who may write an entity sees them, other readers see
//! `***` in their place, as in documents of gateways.
//!
//! **What it is not**: whether a caller sees an entity at all is decided in [`super::visible`].

use crate::access::{Action, Caller, Scope};
use serde_json::Value;
use weir_model::secrets::{self, HIDDEN};

/// Hides the secrets of an entity of a kind, unless the caller may write it.
pub fn hide(caller: &Caller, kind: &str, entity: &mut Value) {
    let text = |field: &str| entity[field].as_str().unwrap_or_default().to_owned();
    let (action, scopes) = match kind {
        "versions" | "revisions" => (Action::ApisWrite, vec![Scope::Api(text("api"))]),
        "publications" => {
            let (api, environment) = (text("api"), text("environment"));
            let scopes = vec![Scope::Api(api), Scope::Environment(environment)];
            (Action::ApisPublish, scopes)
        }
        "approvals" => {
            let publication = text("publication");
            let mut parts = publication.split('/').map(str::to_owned);
            let api = parts.next().map(Scope::Api);
            let environment = parts.next_back().map(Scope::Environment);
            let scopes = api.into_iter().chain(environment).collect();
            (Action::ApisPublish, scopes)
        }
        "environments" => (Action::EnvironmentsWrite, vec![Scope::Environment(text("name"))]),
        _ => return,
    };
    let sees = scopes.iter().any(|scope| caller.can(action, scope))
        || caller.can(Action::ConfigurationWrite, &Scope::Everything);
    if sees {
        return;
    }
    match kind {
        "versions" => hide_content(&mut entity["draft"]),
        "revisions" => hide_content(entity),
        "environments" => {
            hide_field(entity, "chain");
            hide_variables(entity);
        }
        _ => {
            for holder in ["runtime", "canary"] {
                if let Some(holder) = entity.get_mut(holder) {
                    hide_backends(holder);
                    hide_variables(holder);
                }
            }
        }
    }
}

/// Of a draft or a revision.
fn hide_content(content: &mut Value) {
    hide_field(content, "chain");
    let components = content.get_mut("components").and_then(Value::as_array_mut);
    for component in components.into_iter().flatten() {
        hide_field(component, "plugins");
    }
    // Operations may be named like secrets.
    let operations = content.get_mut("operations").and_then(Value::as_object_mut);
    for (_, settings) in operations.into_iter().flatten() {
        hide_field(settings, "plugins");
    }
}

/// Backends may be named like secrets, too.
fn hide_backends(holder: &mut Value) {
    let backends = holder.get_mut("backends").and_then(Value::as_object_mut);
    for (_, backend) in backends.into_iter().flatten() {
        secrets::hide(backend);
    }
}

/// What a variable holds, its name may not say.
fn hide_variables(holder: &mut Value) {
    let variables = holder.get_mut("variables").and_then(Value::as_object_mut);
    for (_, value) in variables.into_iter().flatten() {
        *value = HIDDEN.into();
    }
}

fn hide_field(holder: &mut Value, field: &str) {
    holder.get_mut(field).into_iter().for_each(secrets::hide);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Right, Role, User};
    use serde_json::json;
    use std::sync::Arc;

    fn caller(role: Role, scope: &str) -> Caller {
        let scope = Scope::parse(scope).expect("a scope");
        Caller::User(Arc::new(User {
            name: "ada".to_owned(),
            token_hash: None,
            password_hash: None,
            rights: vec![Right { role, scope }],
            created: 0,
        }))
    }

    #[test]
    fn secrets_are_for_those_who_may_write_the_entity() {
        let chain = json!([{"openid-connect": {"client_secret": "hush"}}, {"request-id": {}}]);
        let content = json!({
            "api": "a", "hash": "h", "chain": chain,
            "components": [{"name": "main", "plugins": [{"key-auth": {"key": "hush"}}]}],
            "operations": {"getToken": {"known_as": "x", "plugins": [{"webhook": {"secret": "hush"}}]}},
        });
        let backends =
            json!({"auth": {"url": "http://h", "tls": {"certificate": {"certificate": "c", "key": "hush"}}}});
        let runtime = json!({"base_path": "/a", "backends": backends, "variables": {"HOST": "hush"}});
        let version = json!({"api": "a", "draft": content});
        let publication =
            json!({"api": "a", "environment": "test", "runtime": runtime, "canary": {"backends": backends}});
        let approval = json!({"publication": "a/1/test", "hash": "h", "runtime": runtime});
        let environment = json!({"name": "test", "chain": chain, "variables": {"DB": "hush"}});
        let everywhere = "everything";
        for (kind, entity, expected) in [
            (
                "versions",
                version,
                vec![(Role::ApiOwner, "api:a"), (Role::Write, everywhere)],
            ),
            (
                "revisions",
                content,
                vec![(Role::ApiOwner, "api:a"), (Role::Operator, everywhere)],
            ),
            (
                "publications",
                publication,
                vec![(Role::ApiOwner, "api:a"), (Role::Operator, "environment:test")],
            ),
            ("approvals", approval, vec![(Role::ApiOwner, "api:a")]),
            (
                "environments",
                environment,
                vec![(Role::Operator, "environment:test")],
            ),
        ] {
            for (role, scope) in expected {
                let mut seen = entity.clone();
                hide(&caller(role, scope), kind, &mut seen);
                assert_eq!(seen, entity, "{kind} {role:?} {scope}");
            }
            for (role, scope) in [
                (Role::Read, everywhere),
                (Role::ApiOwner, "api:b"),
                (Role::Operator, "environment:prod"),
                (Role::Approver, everywhere),
            ] {
                let mut seen = entity.clone();
                hide(&caller(role, scope), kind, &mut seen);
                let text = seen.to_string();
                assert!(
                    !text.contains("hush") && text.contains("***"),
                    "{kind} {role:?} {seen}"
                );
                // All else stays readable.
                for word in ["known_as", "\"h\"", "http://h", "\"x\""] {
                    assert_eq!(
                        text.contains(word),
                        entity.to_string().contains(word),
                        "{word} {seen}"
                    );
                }
            }
        }
    }
}
