//! `oauth2`: is an OAuth 2.0 authorization server, and asks for its tokens.

use super::{Consumers, Definition, UnsupportedOption, identity, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, Record};
use ipnet::IpNet;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::oauth2_server::{Config, Grant, Pkce};

/// The definition of `oauth2`.
pub const DEFINITION: Definition = Definition {
    name: "oauth2",
    priority: 1_400,
    config: CONFIG,
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: CATALOGUE_NAME,
    translate,
};

/// The name in Weir's catalogue.
pub const CATALOGUE_NAME: &str = "oauth2-server";

const CONFIG: Record = Record {
    fields: FIELDS,
    checks: &[EntityCheck::Test(check_scopes), EntityCheck::Test(check_flows)],
};

const FIELDS: &[Field] = &[
    Field::new("scopes", Kind::Array(&Field::element(Kind::String))),
    Field::new("mandatory_scope", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("provision_key", Kind::String)
        .required()
        .unique()
        .auto(),
    Field::new("token_expiration", Kind::Number)
        .required()
        .or(Default::Integer(7200)),
    Field::new("enable_authorization_code", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("enable_implicit_grant", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("enable_client_credentials", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("enable_password_grant", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("hide_credentials", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("accept_http_if_already_terminated", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("anonymous", Kind::String),
    Field::new("global_credentials", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("auth_header_name", Kind::String).or(Default::Text("authorization")),
    Field::new("refresh_token_ttl", Kind::Number)
        .required()
        .or(Default::Integer(1_209_600))
        .check(&[Check::Between(0, 100_000_000)]),
    Field::new("reuse_refresh_token", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("pkce", Kind::String)
        .or(Default::Text("lax"))
        .check(&[Check::OneOf(&["none", "lax", "strict"])]),
    Field::new("realm", Kind::String),
];

fn check_scopes(config: &Fields) -> Result<(), String> {
    let is_mandatory = config.get("mandatory_scope").is_some_and(|value| value == true);
    if is_mandatory && config.get("scopes").is_none_or(serde_json::Value::is_null) {
        return Err("failed conditional validation given value of field 'mandatory_scope'".to_owned());
    }
    Ok(())
}

const FLOWS: [&str; 4] = [
    "enable_authorization_code",
    "enable_implicit_grant",
    "enable_client_credentials",
    "enable_password_grant",
];

fn check_flows(config: &Fields) -> Result<(), String> {
    if FLOWS
        .iter()
        .any(|flow| config.get(flow).is_some_and(|value| value == true))
    {
        Ok(())
    } else {
        let flows = FLOWS.join(", ");
        Err(format!("at least one of these fields must be true: {flows}"))
    }
}

#[derive(Deserialize)]
struct Options {
    scopes: Option<Vec<String>>,
    mandatory_scope: bool,
    provision_key: Option<String>,
    token_expiration: f64,
    enable_authorization_code: bool,
    enable_implicit_grant: bool,
    enable_client_credentials: bool,
    enable_password_grant: bool,
    hide_credentials: bool,
    accept_http_if_already_terminated: bool,
    anonymous: Option<String>,
    global_credentials: bool,
    auth_header_name: Option<String>,
    refresh_token_ttl: f64,
    reuse_refresh_token: bool,
    pkce: Option<Pkce>,
    realm: Option<String>,
}

/// Hosts and networks that belong to the one who runs the gateway. The original believes those of its `trusted_ips`, which is
/// not read here.
const OWN_NETWORKS: [&str; 6] = [
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "::1/128",
    "fc00::/7",
];

fn translate(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let config: Options = typed(config)?;
    let grants = [
        (config.enable_authorization_code, Grant::AuthorizationCode),
        (config.enable_implicit_grant, Grant::Implicit),
        (config.enable_client_credentials, Grant::ClientCredentials),
        (config.enable_password_grant, Grant::Password),
    ];
    let grants = grants
        .into_iter()
        .filter(|(is_on, _)| *is_on)
        .map(|(_, grant)| grant);
    let own_networks: Vec<IpNet> = match config.accept_http_if_already_terminated {
        true => OWN_NETWORKS.iter().filter_map(|net| net.parse().ok()).collect(),
        false => Vec::new(),
    };
    let standard = Config::new(grants.collect());
    Ok(untyped(Config {
        scopes: config.scopes,
        mandatory_scope: config.mandatory_scope,
        provision_key: config.provision_key.filter(|key| !key.is_empty()),
        token_seconds: config.token_expiration.max(0.0) as u64,
        refresh_token_seconds: config.refresh_token_ttl.max(0.0) as u64,
        reuse_refresh_token: config.reuse_refresh_token,
        pkce: config.pkce.unwrap_or_default(),
        all_services: config.global_credentials,
        header: config.auth_header_name.unwrap_or_else(|| standard.header.clone()),
        strip: config.hide_credentials,
        tls_terminated_by: own_networks,
        realm: config.realm,
        identity: identity(config.anonymous.as_deref(), true, consumers),
        ..standard
    }))
}
