//! How the requests of a collection prove who calls, as security schemes. A request has the way of its folder, and a folder
//! that of the collection, unless it says otherwise. The secrets themselves stay behind.

use serde_json::{Map, Value, json};

/// The most schemes that a collection can have. Real ones have a few, and each request is compared with all of them.
const MAX_SCHEMES: usize = 50;

/// The security schemes of a collection, by their names.
#[derive(Default)]
pub struct Schemes {
    pub all: Map<String, Value>,
}

/// The requirement of a request or a folder.
#[derive(Clone)]
pub enum Requirement {
    /// Nothing is asked for.
    None,
    /// The scheme with this name, with these scopes.
    Scheme(String, Vec<String>),
    /// A way that OpenAPI has no words for, or one more than there is room for.
    Unknown(String),
}

impl Requirement {
    /// As `security` has it; `None`: it cannot be told.
    pub fn value(&self) -> Option<Value> {
        match self {
            Self::None => Some(json!([])),
            Self::Scheme(name, scopes) => Some(json!([{ name: scopes }])),
            Self::Unknown(_) => None,
        }
    }
}

impl Schemes {
    /// What `auth` of a holder says; `None`: it says nothing, and what is above it holds.
    pub fn of(&mut self, holder: &Value) -> Option<Requirement> {
        let auth = holder.get("auth").filter(|it| it.is_object())?;
        let kind = auth.get("type").and_then(Value::as_str)?;
        let setting = |name: &str| setting(auth.get(kind)?, name);
        let (scheme, scopes) = match kind {
            "noauth" => return Some(Requirement::None),
            "basic" | "digest" => (json!({ "type": "http", "scheme": kind }), Vec::new()),
            "bearer" => (json!({ "type": "http", "scheme": "bearer" }), Vec::new()),
            "jwt" => (
                json!({ "type": "http", "scheme": "bearer", "bearerFormat": "JWT" }),
                Vec::new(),
            ),
            "apikey" => {
                let place = if setting("in") == Some("query") {
                    "query"
                } else {
                    "header"
                };
                let name = setting("key")
                    .filter(|it| !it.is_empty())
                    .unwrap_or("Authorization");
                (json!({ "type": "apiKey", "in": place, "name": name }), Vec::new())
            }
            "oauth2" => match flow(&setting) {
                Some(found) => found,
                None => return Some(Requirement::Unknown(kind.to_owned())),
            },
            other => return Some(Requirement::Unknown(other.to_owned())),
        };
        Some(match self.named(kind, scheme) {
            Some(name) => Requirement::Scheme(name, scopes),
            None => Requirement::Unknown(kind.to_owned()),
        })
    }

    /// The name of a scheme: that of its kind, with a number if another scheme has it. `None`: there are too many.
    fn named(&mut self, kind: &str, scheme: Value) -> Option<String> {
        for number in 1..=MAX_SCHEMES {
            let name = match number {
                1 => kind.to_owned(),
                _ => format!("{kind}-{number}"),
            };
            let Some(known) = self.all.get_mut(&name) else {
                self.all.insert(name.clone(), scheme);
                return Some(name);
            };
            if *known == scheme || (kind == "oauth2" && merge(known, &scheme)) {
                return Some(name);
            }
        }
        None
    }
}

/// A setting: of format 2.1 an item of a list, of 2.0 a field.
fn setting<'v>(settings: &'v Value, name: &str) -> Option<&'v str> {
    match settings {
        Value::Array(items) => items
            .iter()
            .find(|it| it.get("key").is_some_and(|key| key == name))?
            .get("value")?
            .as_str(),
        settings => settings.get(name)?.as_str(),
    }
}

/// The scheme of OAuth 2.0, and the scopes that are asked for. `None`: its addresses are missing.
fn flow<'s>(setting: &impl Fn(&str) -> Option<&'s str>) -> Option<(Value, Vec<String>)> {
    let scopes: Vec<String> = setting("scope")
        .unwrap_or_default()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    let url = |name: &str| setting(name).filter(|it| !it.is_empty());
    let (name, has_page, has_token) = match setting("grant_type").unwrap_or("authorization_code") {
        "client_credentials" => ("clientCredentials", false, true),
        "password_credentials" => ("password", false, true),
        "implicit" => ("implicit", true, false),
        _ => ("authorizationCode", true, true),
    };
    let described: Map<String, Value> = scopes.iter().map(|it| (it.clone(), "".into())).collect();
    let mut flow = json!({ "scopes": described });
    if has_page {
        flow["authorizationUrl"] = url("authUrl")?.into();
    }
    if has_token {
        flow["tokenUrl"] = url("accessTokenUrl")?.into();
    }
    Some((json!({ "type": "oauth2", "flows": { name: flow } }), scopes))
}

/// Adds the scopes of a scheme to one that is the same but for them.
fn merge(known: &mut Value, other: &Value) -> bool {
    let without_scopes = |scheme: &Value| {
        let mut bare = scheme.clone();
        let flows = bare["flows"].as_object_mut();
        flows
            .into_iter()
            .flatten()
            .for_each(|(_, flow)| flow["scopes"] = json!({}));
        bare
    };
    let is_same = without_scopes(known) == without_scopes(other);
    if is_same {
        let flows = other["flows"].as_object().into_iter().flatten();
        for (name, flow) in flows {
            for (scope, text) in flow["scopes"].as_object().into_iter().flatten() {
                known["flows"][name]["scopes"][scope] = text.clone();
            }
        }
    }
    is_same
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_become_schemes() {
        let list = |kind: &str, settings: &[(&str, &str)]| {
            let settings: Vec<Value> = settings
                .iter()
                .map(|(key, value)| json!({ "key": key, "value": value, "type": "string" }))
                .collect();
            json!({ "auth": { "type": kind, kind: settings } })
        };
        let mut schemes = Schemes::default();
        let oauth = |scope: &str| {
            list(
                "oauth2",
                &[
                    ("grant_type", "client_credentials"),
                    ("accessTokenUrl", "https://a.test/t"),
                    ("scope", scope),
                    ("clientSecret", "s3cret"),
                ],
            )
        };
        let mut messages = Vec::new();
        for holder in [
            json!({}),
            json!({ "auth": null }),
            list("noauth", &[]),
            list("basic", &[("username", "ann"), ("password", "s3cret")]),
            list("bearer", &[("token", "s3cret")]),
            list(
                "apikey",
                &[("key", "X-Key"), ("value", "s3cret"), ("in", "header")],
            ),
            list("apikey", &[("key", "key"), ("value", "s3cret"), ("in", "query")]),
            // As format 2.0 has it.
            json!({ "auth": { "type": "apikey", "apikey": { "key": "X-Key", "value": "s3cret" } } }),
            oauth("read"),
            oauth("read write"),
            list("oauth2", &[("grant_type", "authorization_code")]),
            list("awsv4", &[("secretKey", "s3cret")]),
        ] {
            messages.push(match schemes.of(&holder) {
                None => "-".to_owned(),
                Some(Requirement::Unknown(kind)) => format!("? {kind}"),
                Some(it) => it.value().unwrap_or_default().to_string(),
            });
        }
        assert_eq!(
            messages,
            [
                "-",
                "-",
                "[]",
                "[{\"basic\":[]}]",
                "[{\"bearer\":[]}]",
                "[{\"apikey\":[]}]",
                "[{\"apikey-2\":[]}]",
                "[{\"apikey\":[]}]",
                "[{\"oauth2\":[\"read\"]}]",
                "[{\"oauth2\":[\"read\",\"write\"]}]",
                "? oauth2",
                "? awsv4"
            ]
        );
        let all = Value::Object(schemes.all);
        assert_eq!(
            all["apikey-2"],
            json!({ "type": "apiKey", "in": "query", "name": "key" })
        );
        assert_eq!(
            all["oauth2"]["flows"]["clientCredentials"],
            json!({ "tokenUrl": "https://a.test/t", "scopes": { "read": "", "write": "" } })
        );
        assert!(!all.to_string().contains("s3cret"), "{all}");
    }
}
