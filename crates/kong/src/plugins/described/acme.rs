//! `acme`: certificates from an ACME authority, such as Let's Encrypt.

use super::shared::{PORT, TIMEOUT};
use super::{Definition, Shorthand, passing};
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Is, Kind, Must, Record};

/// The plugin.
pub const DEFINITION: Definition = passing("acme", 1705, CONFIG)
    .never_on_consumers()
    .with_shorthands(SHORTHANDS)
    .with_checks(&[
        EntityCheck::Test(check_terms),
        EntityCheck::When {
            field: "config.storage",
            is: Is::Equal("redis"),
            then: "config.storage_config.redis.host",
            must: Must::BeGiven,
        },
        EntityCheck::When {
            field: "config.storage",
            is: Is::Equal("redis"),
            then: "config.storage_config.redis.port",
            must: Must::BeGiven,
        },
    ]);

/// Names from before they were those of the other plugins that use Redis.
const SHORTHANDS: &[Shorthand] = &[
    ("storage_config.redis.auth", "storage_config.redis", "password"),
    (
        "storage_config.redis.ssl_server_name",
        "storage_config.redis",
        "server_name",
    ),
    (
        "storage_config.redis.namespace",
        "storage_config.redis.extra_options",
        "namespace",
    ),
    (
        "storage_config.redis.scan_count",
        "storage_config.redis.extra_options",
        "scan_count",
    ),
];

const CONFIG: Record = Record::of(FIELDS);

const FIELDS: &[Field] = &[
    Field::new("account_email", Kind::String)
        .required()
        .check(&[Check::Text(check_email)]),
    Field::new("account_key", Kind::Record(&ACCOUNT_KEY)),
    Field::new("api_uri", Kind::String).or(Default::Text("https://acme-v02.api.letsencrypt.org/directory")),
    Field::new("tos_accepted", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("eab_kid", Kind::String),
    Field::new("eab_hmac_key", Kind::String),
    Field::new("cert_type", Kind::String)
        .or(Default::Text("rsa"))
        .check(&[Check::OneOf(&["rsa", "ecc"])]),
    Field::new("rsa_key_size", Kind::Number)
        .or(Default::Integer(4096))
        .check(&[Check::OneOfNumbers(&[2048, 3072, 4096])]),
    Field::new("renew_threshold_days", Kind::Number).or(Default::Integer(14)),
    Field::new(
        "domains",
        Kind::Array(&Field::element(Kind::String).check(&[Check::Text(check_domain)])),
    ),
    Field::new("allow_any_domain", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("fail_backoff_minutes", Kind::Number).or(Default::Integer(5)),
    Field::new("storage", Kind::String)
        .or(Default::Text("shm"))
        .check(&[Check::OneOf(&["kong", "shm", "redis", "consul", "vault"])]),
    Field::new("storage_config", Kind::Record(&STORAGE_CONFIG)).required(),
    Field::new("preferred_chain", Kind::String),
    Field::new("enable_ipv4_common_name", Kind::Boolean).or(Default::Boolean(true)),
];

static STORAGE_CONFIG: Record = Record::of(&[
    Field::new("shm", Kind::Record(&SHM)).required(),
    Field::new("kong", Kind::Record(&KONG)).required(),
    Field::new("redis", Kind::Record(&REDIS)).required(),
    Field::new("consul", Kind::Record(&CONSUL)).required(),
    Field::new("vault", Kind::Record(&VAULT)).required(),
]);

static VAULT: Record = Record::of(&[
    Field::new("https", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("host", Kind::String),
    Field::new("port", Kind::Integer).check(PORT),
    Field::new("kv_path", Kind::String),
    Field::new("timeout", Kind::Number),
    Field::new("token", Kind::String),
    Field::new("tls_verify", Kind::Boolean).or(Default::Boolean(true)),
    Field::new("tls_server_name", Kind::String),
    Field::new("auth_method", Kind::String)
        .or(Default::Text("token"))
        .check(&[Check::OneOf(&["token", "kubernetes"])]),
    Field::new("auth_path", Kind::String),
    Field::new("auth_role", Kind::String),
    Field::new("jwt_path", Kind::String),
]);

static CONSUL: Record = Record::of(&[
    Field::new("https", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("host", Kind::String),
    Field::new("port", Kind::Integer).check(PORT),
    Field::new("kv_path", Kind::String),
    Field::new("timeout", Kind::Number),
    Field::new("token", Kind::String),
]);

static REDIS: Record = Record::of(&[
    Field::new("host", Kind::String),
    Field::new("port", Kind::Integer)
        .or(Default::Integer(6379))
        .check(PORT),
    Field::new("timeout", Kind::Integer)
        .or(Default::Integer(2000))
        .check(TIMEOUT),
    Field::new("username", Kind::String),
    Field::new("password", Kind::Text),
    Field::new("database", Kind::Integer).or(Default::Integer(0)),
    Field::new("ssl", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("ssl_verify", Kind::Boolean).or(Default::Boolean(false)),
    Field::new("server_name", Kind::String),
    Field::new("extra_options", Kind::Record(&EXTRA_OPTIONS)).required(),
]);

static EXTRA_OPTIONS: Record = Record::of(&[
    Field::new("namespace", Kind::Text)
        .required()
        .or(Default::Text("")),
    Field::new("scan_count", Kind::Number).or(Default::Integer(10)),
]);

static KONG: Record = Record::of(&[]);

static SHM: Record = Record::of(&[Field::new("shm_name", Kind::String).or(Default::Text("kong"))]);

static ACCOUNT_KEY: Record = Record::of(&[
    Field::new("key_id", Kind::String).required(),
    Field::new("key_set", Kind::String),
]);

/// Any letters, an `@`, and what may be a domain.
fn check_email(text: &str) -> Result<(), String> {
    if text.contains('@') {
        Ok(())
    } else {
        Err(format!("invalid value: {text}"))
    }
}

fn check_domain(text: &str) -> Result<(), String> {
    let wildcards = text.matches('*').count();
    if wildcards > 1 {
        return Err("invalid wildcard: must have at most one wildcard".to_owned());
    }
    if wildcards == 1 && !text.starts_with("*.") && !text.ends_with(".*") {
        return Err("invalid wildcard: must be placed at leftmost or rightmost label".to_owned());
    }
    Ok(())
}

fn check_terms(instance: &Fields) -> Result<(), String> {
    let config = instance.get("config");
    let uri = config.and_then(|it| it["api_uri"].as_str()).unwrap_or_default();
    let is_asking = matches!(
        uri,
        "https://acme-v02.api.letsencrypt.org" | "https://acme-staging-v02.api.letsencrypt.org"
    );
    if is_asking && config.is_none_or(|it| it["tos_accepted"] != true) {
        return Err("terms of service must be accepted, see https://letsencrypt.org/repository/".to_owned());
    }
    Ok(())
}
