//! `upstream-oauth`: shows upstreams a token that the gateway gets for itself.

use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use weir_plugins::http_rules::HttpRules;
use weir_plugins::openid_connect::ClientAuth;
use weir_plugins::upstream_oauth::{Config, FailureBody};

/// The definition of `upstream-oauth`.
pub const DEFINITION: Definition = Definition {
    name: "upstream-oauth",
    priority: 760,
    config: Record::of(FIELDS),
    checks: &[],
    shorthands: &[],
    on_consumers: true,
    catalogue_name: "upstream-oauth",
    translate,
};

const FIELDS: &[Field] = &[
    Field::new("oauth", Kind::Record(&OAUTH)).required(),
    Field::new("client", Kind::Record(&CLIENT)).required(),
    Field::new("cache", Kind::Record(&CACHE)).required(),
    Field::new("behavior", Kind::Record(&BEHAVIOR)).required(),
];

const TEXTS: Kind = Kind::Map {
    keys: &Field::element(Kind::String),
    values: &Field::element(Kind::String),
};

static OAUTH: Record = Record::of(&[
    Field::new("token_endpoint", Kind::String).required(),
    Field::new("token_headers", TEXTS),
    Field::new("token_post_args", TEXTS),
    Field::new("grant_type", Kind::String)
        .or(Default::Text("client_credentials"))
        .check(&[Check::OneOf(&["client_credentials", "password"])]),
    Field::new("client_id", Kind::String),
    Field::new("client_secret", Kind::String),
    Field::new("username", Kind::String),
    Field::new("password", Kind::String),
    Field::new("scopes", Kind::Array(&Field::element(Kind::String))).or(Default::Texts(&["openid"])),
    Field::new("audience", Kind::Array(&Field::element(Kind::String))).or(Default::Texts(&[])),
]);

static CLIENT: Record = Record::of(&[
    Field::new("auth_method", Kind::String)
        .or(Default::Text("client_secret_post"))
        .check(&[Check::OneOf(&[
            "client_secret_post",
            "client_secret_basic",
            "client_secret_jwt",
            "none",
        ])]),
    Field::new("timeout", Kind::Integer).or(Default::Integer(10_000)),
    Field::new("keep_alive", Kind::Boolean).or(Default::Boolean(true)),
    Field::new("ssl_verify", Kind::Boolean).or(Default::Boolean(true)),
    Field::new("http_proxy", Kind::String),
    Field::new("http_proxy_authorization", Kind::String),
    Field::new("https_proxy", Kind::String),
    Field::new("https_proxy_authorization", Kind::String),
]);

static CACHE: Record = Record::of(&[
    Field::new("strategy", Kind::String)
        .or(Default::Text("memory"))
        .check(&[Check::OneOf(&["memory", "redis"])]),
    Field::new("eagerly_expire", Kind::Integer).or(Default::Integer(5)),
    Field::new("default_ttl", Kind::Number).or(Default::Integer(3_600)),
]);

static BEHAVIOR: Record = Record::of(&[
    Field::new("upstream_access_token_header_name", Kind::String).or(Default::Text("Authorization")),
    Field::new(
        "purge_token_on_upstream_status_codes",
        Kind::Array(&Field::element(Kind::Integer).check(&[Check::Between(100, 599)])),
    )
    .or(Default::Integers(&[401])),
    Field::new("idp_error_response_status_code", Kind::Integer)
        .required()
        .or(Default::Integer(502))
        .check(&[Check::Between(500, 599)]),
    Field::new("idp_error_response_content_type", Kind::String)
        .or(Default::Text("application/json; charset=utf-8")),
    Field::new("idp_error_response_message", Kind::String)
        .or(Default::Text("Failed to authenticate request to upstream")),
    Field::new("idp_error_response_body_template", Kind::String).or(Default::Text(
        "{ \"code\": \"{{status}}\", \"message\": \"{{message}}\" }",
    )),
]);

#[derive(Deserialize)]
struct Options {
    oauth: OauthOptions,
    client: ClientOptions,
    cache: CacheOptions,
    behavior: BehaviorOptions,
}

#[derive(Deserialize)]
struct OauthOptions {
    token_endpoint: String,
    token_headers: Option<BTreeMap<String, String>>,
    token_post_args: Option<BTreeMap<String, String>>,
    grant_type: String,
    client_id: Option<String>,
    client_secret: Option<String>,
    username: Option<String>,
    password: Option<String>,
    scopes: Option<Vec<String>>,
    audience: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct ClientOptions {
    auth_method: String,
    timeout: u64,
    keep_alive: bool,
    ssl_verify: bool,
    http_proxy: Option<String>,
    http_proxy_authorization: Option<String>,
    https_proxy: Option<String>,
    https_proxy_authorization: Option<String>,
}

#[derive(Deserialize)]
struct CacheOptions {
    eagerly_expire: u64,
    default_ttl: f64,
}

#[derive(Deserialize)]
struct BehaviorOptions {
    upstream_access_token_header_name: String,
    purge_token_on_upstream_status_codes: Vec<u16>,
    idp_error_response_status_code: u16,
    idp_error_response_content_type: Option<String>,
    idp_error_response_message: Option<String>,
    idp_error_response_body_template: Option<String>,
}

impl BehaviorOptions {
    /// The body of the answer while there is no token. A message inside of JSON is written as JSON has it.
    fn failure_body(&self) -> FailureBody {
        let content_type = self.idp_error_response_content_type.clone().unwrap_or_default();
        let message = self.idp_error_response_message.clone().unwrap_or_default();
        let message = match content_type.contains("json") {
            true => {
                let quoted = Value::from(message).to_string();
                quoted[1..quoted.len() - 1].to_owned()
            }
            false => message,
        };
        let template = self
            .idp_error_response_body_template
            .as_deref()
            .unwrap_or_default();
        let status = self.idp_error_response_status_code.to_string();
        FailureBody {
            text: template
                .replace("{{status}}", &status)
                .replace("{{message}}", &message),
            content_type,
        }
    }
}

fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let Options {
        oauth,
        client,
        cache,
        behavior,
    } = typed(config)?;
    let is_https = oauth.token_endpoint.starts_with("https://");
    let (proxy, proxy_authorization) = match is_https {
        true => (client.https_proxy, client.https_proxy_authorization),
        false => (client.http_proxy, client.http_proxy_authorization),
    };
    let mut arguments = oauth.token_post_args.unwrap_or_default();
    if let Some(audience) = oauth.audience.filter(|audience| !audience.is_empty()) {
        arguments.insert("audience".to_owned(), audience.join(" "));
    }
    let is_password = oauth.grant_type == "password";
    let failure_body = behavior.failure_body();
    Ok(untyped(Config {
        client_secret: oauth.client_secret,
        client_auth: match client.auth_method.as_str() {
            "client_secret_basic" => ClientAuth::Basic,
            "client_secret_jwt" => ClientAuth::SecretJwt,
            "none" => ClientAuth::None,
            _ => ClientAuth::Post,
        },
        username: oauth.username.filter(|_| is_password),
        password: oauth.password.filter(|_| is_password),
        scopes: oauth.scopes.unwrap_or_default(),
        arguments,
        headers: oauth.token_headers.unwrap_or_default(),
        upstream_header: behavior.upstream_access_token_header_name,
        default_seconds: cache.default_ttl as u64,
        refresh_leeway_seconds: cache.eagerly_expire,
        failure_status: behavior.idp_error_response_status_code,
        failure_body: Some(failure_body),
        purge_on: behavior.purge_token_on_upstream_status_codes,
        http: HttpRules {
            timeout_ms: client.timeout.max(1),
            verify_tls: client.ssl_verify,
            pool_size: if client.keep_alive { 16 } else { 0 },
            proxy,
            proxy_authorization,
            ..HttpRules::default()
        },
        ..Config::new(oauth.token_endpoint, oauth.client_id.unwrap_or_default())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_without_a_token_is_made_of_its_template() {
        for (content_type, message, template, expected) in [
            (
                "application/json",
                "no",
                "{ \"code\": \"{{status}}\", \"message\": \"{{message}}\" }",
                "{ \"code\": \"503\", \"message\": \"no\" }",
            ),
            ("application/json", "a \"b\"", "{{message}}", "a \\\"b\\\""),
            ("text/plain", "a \"b\"", "{{message}}: {{status}}", "a \"b\": 503"),
            ("text/plain", "{{status}}", "fixed", "fixed"),
        ] {
            let behavior = BehaviorOptions {
                upstream_access_token_header_name: "Authorization".to_owned(),
                purge_token_on_upstream_status_codes: Vec::new(),
                idp_error_response_status_code: 503,
                idp_error_response_content_type: Some(content_type.to_owned()),
                idp_error_response_message: Some(message.to_owned()),
                idp_error_response_body_template: Some(template.to_owned()),
            };
            let body = behavior.failure_body();
            assert_eq!(
                (body.text.as_str(), body.content_type.as_str()),
                (expected, content_type)
            );
        }
    }
}
