//! `acme`: certificates from an ACME authority, such as Let's Encrypt.
//!
//! It does nothing to calls: its configuration becomes entries of the model. The original gets a certificate with
//! the first handshake for a name, Weir gets those of all names that are listed at once.

use super::unserved::shared::{PORT, TIMEOUT};
use super::{Consumers, Definition, Shorthand, UnsupportedOption, typed};
use crate::document::Plugin;
use crate::schema::{Check, Default, EntityCheck, Field, FieldTest, Fields, Kind, Record, Requirement};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;
use weir_model::{Acme, AcmeKey, ExternalAccount};

/// The definition of `acme`.
pub const DEFINITION: Definition = Definition {
    name: "acme",
    priority: 1705,
    config: CONFIG,
    checks: &[
        EntityCheck::Test(check_terms),
        EntityCheck::When {
            field: "config.storage",
            is: FieldTest::Equal("redis"),
            then: "config.storage_config.redis.host",
            must: Requirement::BeGiven,
        },
        EntityCheck::When {
            field: "config.storage",
            is: FieldTest::Equal("redis"),
            then: "config.storage_config.redis.port",
            must: Requirement::BeGiven,
        },
    ],
    shorthands: SHORTHANDS,
    on_consumers: false,
    // Its instances stand in no chain.
    catalogue_name: "",
    translate,
};

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

#[derive(Deserialize)]
struct Config {
    account_email: String,
    account_key: Option<Value>,
    api_uri: String,
    tos_accepted: bool,
    eab_kid: Option<String>,
    eab_hmac_key: Option<String>,
    cert_type: String,
    rsa_key_size: f64,
    renew_threshold_days: f64,
    domains: Option<Vec<String>>,
    allow_any_domain: bool,
    preferred_chain: Option<String>,
}

/// Only finds out whether it can be done: nothing of it stands in a chain.
fn translate(config: &Value, _: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    read(config).map(|_| Value::Null)
}

/// The entries of the enabled instances: one for each name, as the original gets a certificate for each.
pub fn entries<'p>(plugins: impl Iterator<Item = &'p Plugin>) -> Vec<Acme> {
    let asked = plugins.filter(|it| it.name == DEFINITION.name && it.enabled);
    let mut names = HashSet::new();
    asked
        .filter_map(|plugin| read(&plugin.config).ok())
        .flatten()
        .filter(|entry| names.insert(entry.name.clone()))
        .collect()
}

fn read(config: &Value) -> Result<Vec<Acme>, UnsupportedOption> {
    let config: Config = typed(config)?;
    let unfit = |field: &'static str, what: &str| {
        Err(UnsupportedOption {
            field,
            what: what.to_owned(),
        })
    };
    if config.allow_any_domain {
        return unfit("allow_any_domain", "a certificate for a name that is not listed");
    }
    // Without names there is nothing to do, as in the original.
    let domains = config.domains.unwrap_or_default();
    if domains.iter().any(|domain| domain.contains('*')) {
        return unfit("domains", "a certificate for a name with a wildcard");
    }
    if config.account_key.as_ref().is_some_and(|it| !it.is_null()) {
        return unfit("account_key", "an account's key from a set of keys");
    }
    if config.preferred_chain.is_some() {
        return unfit("preferred_chain", "another chain than the authority's own");
    }
    if !config.api_uri.starts_with("https://") {
        return unfit("api_uri", "an authority without TLS");
    }
    let external = config.eab_kid.zip(config.eab_hmac_key);
    let entry = Acme {
        directory: directory(&config.api_uri),
        terms_accepted: config.tos_accepted,
        contact: vec![format!("mailto:{}", config.account_email)],
        key: match (config.cert_type.as_str(), config.rsa_key_size as u32) {
            ("ecc", _) => AcmeKey::EcdsaP256,
            (_, 2048) => AcmeKey::Rsa2048,
            (_, 3072) => AcmeKey::Rsa3072,
            _ => AcmeKey::Rsa4096,
        },
        renew_before_days: Some(config.renew_threshold_days.clamp(1.0, 36_500.0).ceil() as u32),
        external_account: external.map(|(id, key)| ExternalAccount { id, key }),
        ..Acme::new(String::new(), Vec::new())
    };
    let named = |domain: &String| Acme {
        name: format!("kong:{domain}"),
        hosts: vec![domain.clone()],
        ..entry.clone()
    };
    Ok(domains.iter().map(named).collect())
}

/// The original adds what is missing.
fn directory(uri: &str) -> String {
    match uri.ends_with("/directory") {
        true => uri.to_owned(),
        false => format!("{}/directory", uri.trim_end_matches('/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(change: &Value) -> Value {
        let mut config = json!({
            "account_email": "ops@a.test", "account_key": null, "tos_accepted": true, "eab_kid": null,
            "eab_hmac_key": null, "api_uri": "https://ca.test/dir/", "cert_type": "rsa", "rsa_key_size": 4096,
            "renew_threshold_days": 14, "domains": ["a.test", "b.test", "a.test"], "allow_any_domain": false,
            "preferred_chain": null,
        });
        for (field, value) in change.as_object().expect("a map") {
            config[field] = value.clone();
        }
        config
    }

    #[test]
    fn each_name_becomes_an_entry() {
        let plugin = |enabled| Plugin {
            id: uuid::Uuid::nil(),
            name: "acme".to_owned(),
            route: None,
            service: None,
            consumer: None,
            config: config(&json!({"eab_kid": "k", "eab_hmac_key": "s"})),
            enabled,
        };
        let (on, off) = (plugin(true), plugin(false));
        assert!(entries([&off].into_iter()).is_empty());
        let made = entries([&on, &on].into_iter());
        let names: Vec<&str> = made.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["kong:a.test", "kong:b.test"]);
        let first = &made[0];
        assert_eq!(first.directory, "https://ca.test/dir/directory");
        assert_eq!(first.contact, ["mailto:ops@a.test"]);
        assert_eq!((first.key, first.renew_before_days), (AcmeKey::Rsa4096, Some(14)));
        let account = first.external_account.as_ref().expect("an account");
        assert_eq!((account.id.as_str(), account.key.as_str()), ("k", "s"));
    }

    #[test]
    fn what_weir_does_otherwise_is_refused() {
        for (change, field) in [
            (json!({"allow_any_domain": true}), "allow_any_domain"),
            (json!({"domains": ["*.a.test"]}), "domains"),
            (json!({"account_key": {"key_id": "x"}}), "account_key"),
            (json!({"preferred_chain": "ISRG Root X1"}), "preferred_chain"),
            (json!({"api_uri": "http://ca.test"}), "api_uri"),
        ] {
            let unfit = read(&config(&change)).expect_err("refused");
            assert_eq!(unfit.field, field, "{change}");
        }
    }
}
