//! Certificates, server names and authorities; vaults, which are checked in shape and kept.

use super::common::{CREATED_AT, ID, PORT, TAGS, UPDATED_AT};
use crate::schema::{Check, EntityCheck, Field, Fields, Kind, Record, text};
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;
use weir_model::x509::{Certificate, is_private_key};

/// The fields of a certificate with its key.
pub static CERTIFICATE: Record = Record {
    fields: &[
        ID,
        CREATED_AT,
        UPDATED_AT,
        Field::new("cert", Kind::String)
            .required()
            .check(&[Check::Text(certificate)]),
        Field::new("key", Kind::String)
            .required()
            .check(&[Check::Text(key)]),
        Field::new("cert_alt", Kind::String).check(&[Check::Text(certificate)]),
        Field::new("key_alt", Kind::String).check(&[Check::Text(key)]),
        TAGS,
    ],
    checks: &[
        EntityCheck::MutuallyRequired(&["cert_alt", "key_alt"]),
        EntityCheck::Test(check_key),
        EntityCheck::Test(check_alternative_key),
        EntityCheck::Test(check_kinds),
    ],
};

/// The fields of a server name that leads to a certificate.
pub static SNI: Record = Record::of(&[
    ID,
    Field::new("name", Kind::String)
        .required()
        .check(&[Check::Text(text::certificate_name)])
        .unique(),
    CREATED_AT,
    UPDATED_AT,
    TAGS,
    Field::new("certificate", Kind::Foreign("certificates")).required(),
]);

/// The fields of a certificate authority.
pub static CA_CERTIFICATE: Record = Record {
    fields: &[
        ID,
        CREATED_AT,
        UPDATED_AT,
        Field::new("cert", Kind::String)
            .required()
            .check(&[Check::Text(certificate)]),
        Field::new("cert_digest", Kind::String).unique(),
        TAGS,
    ],
    checks: &[EntityCheck::Test(check_authority)],
};

/// The fields of a vault.
pub static VAULT: Record = Record {
    fields: VAULT_FIELDS,
    checks: &[EntityCheck::Fields(fields_of_others)],
};

const VAULT_FIELDS: &[Field] = &[
    ID,
    Field::new("prefix", Kind::String)
        .required()
        .check(&[Check::NotOneOf(&["env"]), Check::Text(vault_prefix)])
        .unique(),
    Field::new("name", Kind::String)
        .required()
        .check(&[Check::Text(vault_name)]),
    Field::new("description", Kind::String),
    Field::new("config", Kind::Record(&VAULT_CONFIG)),
    CREATED_AT,
    UPDATED_AT,
    TAGS,
];

/// The fields of vaults of all kinds. Which of them an entity may have depends on its kind.
pub static VAULT_CONFIG: Record = Record::of(&[
    PREFIX,
    PROTOCOL,
    HOST,
    VAULT_PORT,
    NAMESPACE,
    MOUNT,
    VERSION,
    AUTH_METHOD,
    TOKEN,
]);

/// The fields of the environment as a vault.
pub static ENVIRONMENT: Record = Record::of(&[PREFIX]);

/// The fields of a vault that speaks as HashiCorp's does.
pub static HASHICORP: Record = Record::of(&[
    PROTOCOL,
    HOST,
    VAULT_PORT,
    NAMESPACE,
    MOUNT,
    VERSION,
    AUTH_METHOD,
    TOKEN,
]);

const PREFIX: Field = Field::new("prefix", Kind::String).check(&[Check::Text(environment_prefix)]);
const PROTOCOL: Field = Field::new("protocol", Kind::String).check(&[Check::OneOf(&["http", "https"])]);
const HOST: Field = Field::new("host", Kind::String).check(&[Check::Text(text::host)]);
const VAULT_PORT: Field = Field::new("port", Kind::Integer).check(PORT);
const NAMESPACE: Field = Field::new("namespace", Kind::String);
const MOUNT: Field = Field::new("mount", Kind::String);
const VERSION: Field = Field::new("kv", Kind::String).check(&[Check::OneOf(&["v1", "v2"])]);
const AUTH_METHOD: Field = Field::new("auth_method", Kind::String).check(&[Check::OneOf(&["token"])]);
const TOKEN: Field = Field::new("token", Kind::String);

/// Fields that vaults of the entity's kind do not have.
fn fields_of_others(entity: &Fields) -> Vec<(&'static str, String)> {
    const OF_HASHICORP: [(&str, &str); 8] = [
        ("protocol", "config.protocol"),
        ("host", "config.host"),
        ("port", "config.port"),
        ("namespace", "config.namespace"),
        ("mount", "config.mount"),
        ("kv", "config.kv"),
        ("auth_method", "config.auth_method"),
        ("token", "config.token"),
    ];
    let Some(Value::Object(config)) = entity.get("config") else {
        return Vec::new();
    };
    let others: &[(&str, &'static str)] = match entity.get("name").and_then(Value::as_str) {
        Some("env") => &OF_HASHICORP,
        Some("hcv") => &[("prefix", "config.prefix")],
        _ => &[],
    };
    let given = |name: &str| config.get(name).is_some_and(|value| !value.is_null());
    let unknown = others.iter().filter(|(name, _)| given(name));
    unknown
        .map(|(_, place)| (*place, "unknown field".to_owned()))
        .collect()
}

/// The certificate in a field; `None`: the field is empty, or a vault has it.
fn certificate_in(entity: &Fields, field: &str) -> Option<Certificate> {
    Certificate::of_pem(entity.get(field)?.as_str()?)
}

fn check_key(entity: &Fields) -> Result<(), String> {
    check_pair(entity, "cert", "key", "certificate does not match key")
}

fn check_alternative_key(entity: &Fields) -> Result<(), String> {
    let message = "alternative certificate does not match key";
    check_pair(entity, "cert_alt", "key_alt", message)
}

fn check_pair(entity: &Fields, certificate: &str, key: &str, message: &str) -> Result<(), String> {
    let certificate = certificate_in(entity, certificate);
    let key = entity.get(key).and_then(Value::as_str);
    match (certificate, key) {
        (Some(certificate), Some(key)) if !certificate.fits(key) => Err(message.to_owned()),
        _ => Ok(()),
    }
}

fn check_kinds(entity: &Fields) -> Result<(), String> {
    let (one, other) = (certificate_in(entity, "cert"), certificate_in(entity, "cert_alt"));
    match (one, other) {
        (Some(one), Some(other)) if one.algorithm == other.algorithm => Err(
            "certificate and alternative certificate need to have different type (e.g. RSA and ECDSA), the \
             provided certificates were both of the same type"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

fn check_authority(entity: &Fields) -> Result<(), String> {
    let text = entity.get("cert").and_then(Value::as_str).unwrap_or_default();
    if text.matches("-----BEGIN CERTIFICATE-----").count() > 1 {
        return Err("please submit only one certificate at a time".to_owned());
    }
    match certificate_in(entity, "cert") {
        Some(certificate) if !certificate.is_authority => Err(
            "certificate does not appear to be a CA because it is missing the \"CA\" basic constraint"
                .to_owned(),
        ),
        _ => Ok(()),
    }
}

/// A certificate with its key. Not `Debug`: the key is a secret.
#[derive(Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct ServerCertificate {
    pub id: Uuid,
    pub cert: String,
    pub key: String,
    pub cert_alt: Option<String>,
    pub key_alt: Option<String>,
}

/// A server name that leads to a certificate.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct Sni {
    pub name: String,
    pub certificate: Uuid,
}

/// A certificate authority.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs, reason = "the fields are Kong's own")]
pub struct CaCertificate {
    pub id: Uuid,
    pub cert: String,
}

fn certificate(text: &str) -> Result<(), String> {
    if is_reference(text) || Certificate::of_pem(text).is_some() {
        Ok(())
    } else {
        Err("invalid certificate: expected a PEM-encoded certificate".to_owned())
    }
}

fn key(text: &str) -> Result<(), String> {
    if is_reference(text) || is_private_key(text) {
        Ok(())
    } else {
        Err("invalid key: expected a PEM-encoded private key".to_owned())
    }
}

/// A value that a vault holds: `{vault://…}`.
pub(super) fn is_reference(text: &str) -> bool {
    text.starts_with("{vault://") && text.ends_with('}')
}

fn vault_prefix(text: &str) -> Result<(), String> {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(is_fine)
        && !text.ends_with('-')
    {
        Ok(())
    } else {
        Err(format!("invalid value: {text}"))
    }
}

/// The prefix of names of variables.
fn environment_prefix(text: &str) -> Result<(), String> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if text.chars().all(is_fine) && !text.starts_with(|first: char| first.is_ascii_digit()) {
        Ok(())
    } else {
        Err(format!("invalid value: {text}"))
    }
}

fn vault_name(text: &str) -> Result<(), String> {
    if matches!(text, "env" | "hcv") {
        Ok(())
    } else {
        Err(format!("vault '{text}' is not installed"))
    }
}
