//! `oauth2-introspection`: bearer tokens about which another server is asked, as `openid-connect` of the catalogue.

use super::enterprise_fields::flag;
use super::{Consumers, Definition, UnsupportedOption, identity, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::consumer_names::ConsumerName;
use weir_plugins::http_rules::HttpRules;
use weir_plugins::openid_connect::{
    Config, ConsumerRules, Method, TokenHeader, TokenSource, TokenValue, Unauthenticated,
};

/// The definition of `oauth2-introspection`.
pub const DEFINITION: Definition = Definition {
    name: "oauth2-introspection",
    priority: 1_700,
    config: Record::of(&[
        Field::new("introspection_url", Kind::String).required(),
        Field::new("authorization_value", Kind::String).required(),
        Field::new("token_type_hint", Kind::String),
        Field::new("ttl", Kind::Number).or(Default::Integer(30)),
        Field::new("timeout", Kind::Integer).or(Default::Integer(10_000)),
        Field::new("keepalive", Kind::Integer).or(Default::Integer(60_000)),
        flag("introspect_request", false).required(),
        flag("hide_credentials", false),
        flag("run_on_preflight", true).required(),
        Field::new("anonymous", Kind::Text).or(Default::Text("")),
        Field::new("consumer_by", Kind::String)
            .required()
            .or(Default::Text("username"))
            .check(&[Check::OneOf(&["username", "client_id"])]),
        Field::new(
            "custom_introspection_headers",
            Kind::Map {
                keys: &Field::element(Kind::String),
                values: &Field::element(Kind::String),
            },
        )
        .required()
        .or(Default::Json("{}")),
        Field::new("custom_claims_forward", Kind::Set(&Field::element(Kind::String)))
            .required()
            .or(Default::Texts(&[])),
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "openid-connect",
    translate,
};

#[derive(Deserialize)]
struct Options {
    introspection_url: String,
    authorization_value: String,
    token_type_hint: Option<String>,
    ttl: f64,
    timeout: u64,
    keepalive: u64,
    introspect_request: bool,
    hide_credentials: bool,
    run_on_preflight: bool,
    anonymous: Option<String>,
    consumer_by: String,
    custom_introspection_headers: BTreeMap<String, String>,
    custom_claims_forward: Vec<String>,
}

/// Headers with facts about the token for upstreams. The last one is the former name of the third.
const CREDENTIAL_HEADERS: [(&str, &str); 12] = [
    ("X-Credential-Scope", "scope"),
    ("X-Credential-Client-ID", "client_id"),
    ("X-Credential-Identifier", "username"),
    ("X-Credential-Token-Type", "token_type"),
    ("X-Credential-Exp", "exp"),
    ("X-Credential-Iat", "iat"),
    ("X-Credential-Nbf", "nbf"),
    ("X-Credential-Sub", "sub"),
    ("X-Credential-Aud", "aud"),
    ("X-Credential-Iss", "iss"),
    ("X-Credential-Jti", "jti"),
    ("X-Credential-Username", "username"),
];

fn translate(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: Options = typed(config)?;
    for (field, is_set, what) in [
        (
            "introspect_request",
            config.introspect_request,
            "telling the server about the call",
        ),
        (
            "custom_introspection_headers",
            !config.custom_introspection_headers.is_empty(),
            "a header of its own for the server",
        ),
    ] {
        if is_set {
            let what = what.to_owned();
            return Err(UnsupportedOption { field, what });
        }
    }
    let anonymous = config.anonymous.as_deref().filter(|name| !name.is_empty());
    let header = |name: String, claim: &str| TokenHeader {
        name,
        value: TokenValue::Claim(vec![claim.to_owned()]),
    };
    let standard = CREDENTIAL_HEADERS
        .into_iter()
        .map(|(name, claim)| header(name.to_owned(), claim));
    let more = config.custom_claims_forward.iter();
    let more = more.map(|claim| header(format!("X-Credential-{claim}"), claim));
    // A user is a consumer of the name, a client one whose name in another system is the client's.
    let by = match config.consumer_by.as_str() {
        "client_id" => ConsumerName::CustomId,
        _ => ConsumerName::Username,
    };
    Ok(untyped(Config {
        methods: vec![Method::Introspection],
        unauthenticated: Unauthenticated::Refuse,
        introspection_endpoint: Some(config.introspection_url.clone()),
        introspection_authorization: Some(config.authorization_value),
        introspection_seconds: (config.ttl as u64).max(1),
        bearer_locations: vec![
            TokenSource::Bearer,
            TokenSource::Query("access_token".into()),
            TokenSource::Body("access_token".into()),
        ],
        strip: config.hide_credentials,
        introspection_hint: config.token_type_hint.unwrap_or_default(),
        consumer: Some(ConsumerRules {
            claim: vec![config.consumer_by],
            by: vec![by],
            optional: true,
        }),
        upstream_headers: standard.chain(more).collect(),
        identity: identity(anonymous, config.run_on_preflight, consumers),
        http: HttpRules {
            timeout_ms: config.timeout.max(1),
            pool_size: if config.keepalive == 0 { 0 } else { 16 },
            pool_idle_timeout_ms: config.keepalive,
            ..HttpRules::default()
        },
        // The document is not needed, as the endpoint is known.
        ..Config::new(config.introspection_url, "weir".to_owned())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn translated(change: (&str, Value)) -> Result<Value, UnsupportedOption> {
        let mut config = json!({
            "introspection_url": "https://id.example/i", "authorization_value": "Basic x", "ttl": 30, "timeout": 1000,
            "keepalive": 60000, "introspect_request": false, "hide_credentials": false, "run_on_preflight": true,
            "consumer_by": "username", "custom_introspection_headers": {}, "custom_claims_forward": [],
        });
        config[change.0] = change.1;
        translate(&config, &Consumers::NONE)
    }

    /// The defect: a client was looked for among the names of consumers, and most of these headers were left out.
    #[test]
    fn fields_become_rules() {
        for (field, value, pointer, expected) in [
            (
                "ttl",
                json!(5),
                "/consumer",
                json!({"claim": ["username"], "by": ["username"], "optional": true}),
            ),
            (
                "consumer_by",
                json!("client_id"),
                "/consumer",
                json!({"claim": ["client_id"], "by": ["custom-id"], "optional": true}),
            ),
            ("hide_credentials", json!(true), "/strip", json!(true)),
            (
                "custom_claims_forward",
                json!(["tenant"]),
                "/upstream_headers/12",
                json!({"name": "X-Credential-tenant", "value": {"claim": ["tenant"]}}),
            ),
        ] {
            let rules = translated((field, value)).expect("it is served");
            assert_eq!(rules.pointer(pointer), Some(&expected), "{field}");
        }
        let plain = translated(("ttl", json!(5))).expect("it is served");
        let headers: Vec<_> = (plain["upstream_headers"].as_array().into_iter().flatten())
            .filter_map(|header| header["name"].as_str()?.strip_prefix("X-Credential-"))
            .collect();
        let expected = "Scope Client-ID Identifier Token-Type Exp Iat Nbf Sub Aud Iss Jti Username";
        assert_eq!(headers.join(" "), expected);
    }

    #[test]
    fn what_there_is_not_is_refused_at_its_field() {
        for (field, value) in [
            ("introspect_request", json!(true)),
            ("custom_introspection_headers", json!({"X-A": "1"})),
        ] {
            assert_eq!(translated((field, value)).expect_err("refused").field, field);
        }
    }
}
