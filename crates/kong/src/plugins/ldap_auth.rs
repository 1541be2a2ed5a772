//! `ldap-auth`: recognises users by a directory.

use super::{Consumers, Definition, UnsupportedOption, challenge, identity, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::ldap_auth::{Config, DirectoryTls};

/// The definition of `ldap-auth`.
pub const DEFINITION: Definition = Definition {
    name: "ldap-auth",
    priority: 1_200,
    config: CONFIG,
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "ldap-auth",
    translate,
};

const CONFIG: Record = Record {
    fields: FIELDS,
    checks: &[EntityCheck::Test(check_encryption)],
};

const FIELDS: &[Field] = &[
    Field::new("ldap_host", Kind::String).required(),
    Field::new("ldap_port", Kind::Integer)
        .required()
        .or(Default::Integer(389))
        .check(&[Check::Between(0, 65_535)]),
    Field::new("ldaps", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("start_tls", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("verify_ldap_host", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("base_dn", Kind::String).required(),
    Field::new("attribute", Kind::String).required(),
    Field::new("cache_ttl", Kind::Number)
        .required()
        .or(Default::Integer(60)),
    Field::new("hide_credentials", Kind::Boolean)
        .required()
        .or(Default::Boolean(false)),
    Field::new("timeout", Kind::Number).or(Default::Integer(10_000)),
    Field::new("keepalive", Kind::Number).or(Default::Integer(60_000)),
    Field::new("anonymous", Kind::String),
    Field::new("header_type", Kind::String).or(Default::Text("ldap")),
    Field::new("realm", Kind::String),
];

/// Refuses TLS of both kinds at once.
pub fn check_encryption(config: &Fields) -> Result<(), String> {
    let is_set = |name: &str| config.get(name).is_some_and(|value| value == true);
    if is_set("ldaps") && is_set("start_tls") {
        return Err("'ldaps' and 'start_tls' cannot be enabled simultaneously".to_owned());
    }
    Ok(())
}

#[derive(Deserialize)]
struct LdapAuth {
    ldap_host: String,
    ldap_port: u16,
    ldaps: bool,
    start_tls: bool,
    verify_ldap_host: bool,
    base_dn: String,
    attribute: String,
    cache_ttl: f64,
    hide_credentials: bool,
    timeout: Option<f64>,
    keepalive: Option<f64>,
    anonymous: Option<String>,
    header_type: Option<String>,
    realm: Option<String>,
}

fn translate(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    Ok(untyped(config_of(config, consumers)?))
}

/// The common part of `ldap-auth` and `ldap-auth-advanced`.
pub fn config_of(config: &Value, consumers: &Consumers<'_>) -> Result<Config, UnsupportedOption> {
    let config: LdapAuth = typed(config)?;
    let scheme = config.header_type.unwrap_or_else(|| "ldap".to_owned());
    let word = if scheme == "ldap" { "LDAP" } else { &scheme };
    let keepalive = config.keepalive.unwrap_or(60_000.0) as u64;
    let anonymous = config.anonymous.as_deref().filter(|name| !name.is_empty());
    Ok(Config {
        port: Some(config.ldap_port),
        tls: match (config.ldaps, config.start_tls) {
            (true, _) => DirectoryTls::Ldaps,
            (false, true) => DirectoryTls::StartTls,
            (false, false) => DirectoryTls::None,
        },
        verify_tls: config.verify_ldap_host,
        strip: config.hide_credentials,
        cache_seconds: config.cache_ttl as u64,
        timeout_ms: (config.timeout.unwrap_or(10_000.0) as u64).max(1),
        pool_size: if keepalive == 0 { 0 } else { 16 },
        pool_idle_timeout_ms: keepalive,
        challenge: Some(challenge(word, config.realm.as_deref())),
        schemes: vec![scheme.to_owned()],
        identity: identity(anonymous, true, consumers),
        ..Config::new(config.ldap_host, config.base_dn, config.attribute)
    })
}
