//! Certificates, keys and vaults. They are checked in shape and kept; nothing serves them yet.

use super::common::{CREATED_AT, ID, NAME, TAGS, UPDATED_AT};
use crate::schema::{Check, EntityCheck, Field, Kind, Record, text};

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
    checks: &[EntityCheck::MutuallyRequired(&["cert_alt", "key_alt"])],
};

/// The fields of a server name that leads to a certificate.
pub static SNI: Record = Record::of(&[
    ID,
    Field::new("name", Kind::String)
        .required()
        .check(&[Check::Text(text::sni)])
        .unique(),
    CREATED_AT,
    UPDATED_AT,
    TAGS,
    Field::new("certificate", Kind::Foreign("certificates")).required(),
]);

/// The fields of a certificate authority.
pub static CA_CERTIFICATE: Record = Record::of(&[
    ID,
    CREATED_AT,
    UPDATED_AT,
    Field::new("cert", Kind::String)
        .required()
        .check(&[Check::Text(certificate)]),
    Field::new("cert_digest", Kind::String).unique(),
    TAGS,
]);

/// The fields of a vault.
pub static VAULT: Record = Record::of(&[
    ID,
    Field::new("prefix", Kind::String)
        .required()
        .check(&[Check::NotOneOf(&["env"]), Check::Text(vault_prefix)])
        .unique(),
    Field::new("name", Kind::String)
        .required()
        .check(&[Check::Text(vault_name)]),
    Field::new("description", Kind::String),
    Field::new("config", Kind::OpenRecord),
    CREATED_AT,
    UPDATED_AT,
    TAGS,
]);

/// The fields of a set of keys.
pub static KEY_SET: Record = Record::of(&[ID, NAME, TAGS, CREATED_AT, UPDATED_AT]);

/// The fields of a key.
pub static KEY: Record = Record {
    fields: &[
        ID,
        Field::new("set", Kind::Foreign("key_sets")),
        NAME,
        Field::new("kid", Kind::String).required(),
        Field::new("jwk", Kind::String),
        Field::new("pem", Kind::Record(&PEM)),
        TAGS,
        CREATED_AT,
        UPDATED_AT,
    ],
    checks: &[
        EntityCheck::MutuallyExclusive(&["jwk", "pem"]),
        EntityCheck::AtLeastOneOf(&["jwk", "pem"]),
    ],
};

static PEM: Record = Record {
    fields: &[
        Field::new("private_key", Kind::String),
        Field::new("public_key", Kind::String),
    ],
    checks: &[EntityCheck::AtLeastOneOf(&["private_key", "public_key"])],
};

fn certificate(text: &str) -> Result<(), String> {
    if is_reference(text) || text.contains("-----BEGIN CERTIFICATE-----") {
        Ok(())
    } else {
        Err("invalid certificate: expected a PEM-encoded certificate".to_owned())
    }
}

fn key(text: &str) -> Result<(), String> {
    if is_reference(text) || (text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----")) {
        Ok(())
    } else {
        Err("invalid key: expected a PEM-encoded private key".to_owned())
    }
}

/// A value that a vault holds: `{vault://…}`.
fn is_reference(text: &str) -> bool {
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

fn vault_name(text: &str) -> Result<(), String> {
    if text == "env" {
        Ok(())
    } else {
        Err(format!("vault '{text}' is not installed"))
    }
}
