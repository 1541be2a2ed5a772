//! `ldap-auth`: recognises users by a directory.

use super::shared::PORT;
use super::{Definition, refusing};
use crate::schema::{Default, EntityCheck, Field, Fields, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = refusing("ldap-auth", 1_200, CONFIG).never_on_consumers();

const CONFIG: Record = Record {
    fields: FIELDS,
    checks: &[EntityCheck::Test(check_encryption)],
};

const FIELDS: &[Field] = &[
    Field::new("ldap_host", Kind::String).required(),
    Field::new("ldap_port", Kind::Integer)
        .required()
        .or(Default::Integer(389))
        .check(PORT),
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

fn check_encryption(config: &Fields) -> Result<(), String> {
    let is_set = |name: &str| config.get(name).is_some_and(|value| value == true);
    if is_set("ldaps") && is_set("start_tls") {
        return Err("'ldaps' and 'start_tls' cannot be enabled simultaneously".to_owned());
    }
    Ok(())
}
