//! `oauth2-introspection`: bearer tokens about which another server is asked, as `openid-connect` of the catalogue.

use super::{Consumers, Definition, UnsupportedOption, identity, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
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
        Field::new("hide_credentials", Kind::Boolean).or(Default::Boolean(false)),
        Field::new("run_on_preflight", Kind::Boolean)
            .required()
            .or(Default::Boolean(true)),
        Field::new("anonymous", Kind::Text).or(Default::Text("")),
        Field::new("consumer_by", Kind::String)
            .required()
            .or(Default::Text("username"))
            .check(&[Check::OneOf(&["username", "client_id"])]),
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
    hide_credentials: bool,
    run_on_preflight: bool,
    anonymous: Option<String>,
    consumer_by: String,
}

/// Headers with facts about the token for upstreams.
const TOLD: [(&str, &str); 4] = [
    ("X-Credential-Scope", "scope"),
    ("X-Credential-Client-ID", "client_id"),
    ("X-Credential-Username", "username"),
    ("X-Credential-Sub", "sub"),
];

fn translate(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: Options = typed(config)?;
    if config.hide_credentials {
        return Err(UnsupportedOption {
            field: "hide_credentials",
            what: "taking the token out of the request".to_owned(),
        });
    }
    let anonymous = config.anonymous.as_deref().filter(|name| !name.is_empty());
    let header = |(name, claim): (&str, &str)| TokenHeader {
        name: name.to_owned(),
        value: TokenValue::Claim(vec![claim.to_owned()]),
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
        introspection_hint: config.token_type_hint.unwrap_or_default(),
        consumer: Some(ConsumerRules {
            claim: vec![config.consumer_by],
            by: vec![ConsumerName::Username],
            optional: true,
        }),
        upstream_headers: TOLD.into_iter().map(header).collect(),
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
