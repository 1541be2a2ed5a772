//! A version as OpenAPI 3.1, with the gateway's servers and the security that its plans ask for: what callers need, and
//! nothing of what is behind the gateway.

use crate::entities::{Plan, PlanSecurity, PlanState, Publication};
use crate::openapi::Description;
use serde_json::{Map, Value, json};

/// The name of the security scheme that stands for the plans' keys.
pub const KEY_SCHEME: &str = "weir_key";

/// The name of the security scheme that stands for the plans' tokens.
pub const TOKEN_SCHEME: &str = "weir_token";

/// The name of the security scheme that stands for the plans' user names and passwords.
pub const PASSWORD_SCHEME: &str = "weir_password";

/// The name of the security scheme that stands for the plans' signatures.
pub const SIGNATURE_SCHEME: &str = "weir_signature";

/// The name of the security scheme that stands for the plans' authorization servers; further ones have a number after
/// it.
pub const SERVER_SCHEME: &str = "weir_oauth";

/// The name of the security scheme that stands for the plans' certificates.
pub const CERTIFICATE_SCHEME: &str = "weir_certificate";

/// The document. `base_urls` are what callers see of the environment.
pub fn export(
    description: &Description,
    base_urls: &[String],
    publication: Option<&Publication>,
    plans: &[Plan],
    hidden: impl Fn(&str) -> bool,
) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in description.operations.iter().filter(|it| !hidden(&it.id)) {
        let mut value = operation.value.clone();
        if let Value::Object(fields) = &mut value {
            fields.remove("servers");
            fields.remove("security");
            fields.insert("operationId".to_owned(), operation.id.as_str().into());
        }
        let item = paths.entry(operation.path.clone()).or_insert_with(|| json!({}));
        let method = operation.method.to_lowercase();
        const FIXED: [&str; 8] = [
            "get", "put", "post", "delete", "options", "head", "patch", "trace",
        ];
        match FIXED.contains(&method.as_str()) {
            true => item[method] = value,
            // 3.1 has no other methods; the extension keeps them.
            false => item["x-additionalOperations"][&operation.method] = value,
        }
    }
    let mut components = json!({ "schemas": description.schemas });
    let mut document = json!({ "openapi": "3.1.1", "info": description.info, "paths": paths });
    if let Some(publication) = publication {
        let base = publication.runtime.base_path.trim_end_matches('/');
        let urls: Vec<Value> = base_urls
            .iter()
            .map(|url| json!({ "url": format!("{}{base}", url.trim_end_matches('/')) }))
            .collect();
        document["servers"] = match urls.is_empty() {
            true => json!([{ "url": if base.is_empty() { "/" } else { base } }]),
            false => Value::Array(urls),
        };
    }
    let mut one_of: Vec<Value> = Vec::new();
    for (name, scheme) in schemes(plans) {
        one_of.push(json!({ name.as_str(): [] }));
        components["securitySchemes"][name] = scheme;
    }
    if !one_of.is_empty() {
        document["security"] = Value::Array(one_of);
    }
    if !description.tags.is_empty() {
        document["tags"] = json!(description.tags);
    }
    document["components"] = components;
    document
}

/// The security schemes of the plans, one after the other in a fixed order.
fn schemes(plans: &[Plan]) -> Vec<(String, Value)> {
    let is_active = |plan: &&Plan| matches!(plan.state, PlanState::Published | PlanState::Deprecated);
    let active: Vec<&Plan> = plans.iter().filter(is_active).collect();
    let fixed = [
        (
            PlanSecurity::Key,
            KEY_SCHEME,
            json!({ "type": "apiKey", "in": "header", "name": "X-API-Key" }),
        ),
        (
            PlanSecurity::Jwt,
            TOKEN_SCHEME,
            json!({ "type": "http", "scheme": "bearer", "bearerFormat": "JWT" }),
        ),
        (
            PlanSecurity::Basic,
            PASSWORD_SCHEME,
            json!({ "type": "http", "scheme": "basic" }),
        ),
        (
            PlanSecurity::Hmac,
            SIGNATURE_SCHEME,
            json!({ "type": "http", "scheme": "hmac" }),
        ),
        (
            PlanSecurity::Mtls,
            CERTIFICATE_SCHEME,
            json!({ "type": "mutualTLS" }),
        ),
    ];
    let asks_for = |security| active.iter().any(|plan| plan.security == security);
    let mut found: Vec<(String, Value)> = Vec::new();
    for (_, name, scheme) in fixed.into_iter().filter(|(security, ..)| asks_for(*security)) {
        found.push((name.to_owned(), scheme));
    }
    let mut servers: Vec<String> = Vec::new();
    for plan in active.iter().filter(|it| it.security == PlanSecurity::Oauth2) {
        let settings = plan.oauth2.clone().unwrap_or_default();
        let url = match settings.discovery.contains("/.well-known/") {
            true => settings.discovery,
            false => format!(
                "{}/.well-known/openid-configuration",
                settings.discovery.trim_end_matches('/')
            ),
        };
        if !servers.contains(&url) {
            servers.push(url);
        }
    }
    for (index, url) in servers.into_iter().enumerate() {
        let name = match index {
            0 => SERVER_SCHEME.to_owned(),
            index => format!("{SERVER_SCHEME}_{}", index + 1),
        };
        found.push((name, json!({ "type": "openIdConnect", "openIdConnectUrl": url })));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::Runtime;
    use crate::openapi::from_value;

    #[test]
    fn callers_see_the_gateway_and_not_what_is_behind_it() {
        let source = json!({
            "openapi": "3.0.0", "info": {"title": "Pets", "version": "1"},
            "servers": [{"url": "http://internal:8080"}],
            "security": [{"internal": []}],
            "components": {"securitySchemes": {"internal": {"type": "http", "scheme": "basic"}}},
            "paths": {"/pets": {"get": {"operationId": "list", "responses": {}}, "delete": {"operationId": "wipe", "responses": {}}}},
        });
        let description = from_value(source).expect("a description");
        let publication = Publication {
            runtime: Runtime {
                base_path: "/v1".into(),
                ..Runtime::default()
            },
            ..Publication::default()
        };
        let plan = Plan {
            state: PlanState::Published,
            ..Plan::default()
        };
        let urls = ["https://api.example.com/".to_owned()];
        let made = export(&description, &urls, Some(&publication), &[plan], |id| {
            id == "wipe"
        });
        assert_eq!(made["servers"], json!([{"url": "https://api.example.com/v1"}]));
        assert_eq!(made["security"], json!([{KEY_SCHEME: []}]));
        assert!(!made.to_string().contains("internal"), "{made}");
        let plan = |security, discovery: &str| Plan {
            security,
            oauth2: Some(crate::entities::OauthSettings {
                discovery: discovery.to_owned(),
                ..Default::default()
            }),
            state: PlanState::Published,
            ..Plan::default()
        };
        let kinds = [
            plan(PlanSecurity::Oauth2, "https://one/"),
            plan(PlanSecurity::Mtls, ""),
            plan(
                PlanSecurity::Oauth2,
                "https://two/.well-known/openid-configuration",
            ),
            plan(PlanSecurity::Oauth2, "https://one"),
            plan(PlanSecurity::Basic, ""),
        ];
        let other = export(&description, &[], None, &kinds, |_| false);
        assert_eq!(
            other["components"]["securitySchemes"],
            json!({
                PASSWORD_SCHEME: {"type": "http", "scheme": "basic"},
                CERTIFICATE_SCHEME: {"type": "mutualTLS"},
                "weir_oauth": {"type": "openIdConnect", "openIdConnectUrl": "https://one/.well-known/openid-configuration"},
                "weir_oauth_2": {"type": "openIdConnect", "openIdConnectUrl": "https://two/.well-known/openid-configuration"},
            })
        );
        assert!(made["paths"]["/pets"].get("delete").is_none());
        let again = from_value(made).expect("a document");
        assert_eq!(again.operations[0].id, "list");
    }
}
