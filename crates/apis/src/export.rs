//! A version as OpenAPI 3.1, with the gateway's servers and the security that its plans ask for: what callers need, and
//! nothing of what is behind the gateway.

use crate::entities::{Plan, PlanSecurity, PlanState, Publication};
use crate::openapi::Description;
use serde_json::{Map, Value, json};

/// The name of the security scheme that stands for the plans' keys.
pub const KEY_SCHEME: &str = "weir_key";

/// The name of the security scheme that stands for the plans' tokens.
pub const TOKEN_SCHEME: &str = "weir_token";

/// The document. `base_urls` are what callers see of the environment.
pub fn export(
    description: &Description,
    base_urls: &[String],
    publication: Option<&Publication>,
    plans: &[Plan],
    hidden: impl Fn(&str) -> bool,
) -> Value {
    let is_active = |plan: &&Plan| matches!(plan.state, PlanState::Published | PlanState::Deprecated);
    let asks_for = |security| {
        plans
            .iter()
            .filter(is_active)
            .any(|plan| plan.security == security)
    };
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
    let schemes = [
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
    ];
    let mut one_of: Vec<Value> = Vec::new();
    for (security, name, scheme) in schemes {
        if asks_for(security) {
            components["securitySchemes"][name] = scheme;
            one_of.push(json!({ name: [] }));
        }
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
        assert!(made["paths"]["/pets"].get("delete").is_none());
        let again = from_value(made).expect("a document");
        assert_eq!(again.operations[0].id, "list");
    }
}
