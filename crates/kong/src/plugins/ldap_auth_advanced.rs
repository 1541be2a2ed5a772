//! `ldap-auth-advanced` of the paid edition: users that are searched for in a directory, with groups, as `ldap-auth` of the
//! catalogue.

use super::enterprise_fields::flag;
use super::ldap_auth::{check_encryption, config_of};
use super::{Consumers, Definition, UnsupportedOption, typed, untyped};
use crate::schema::{Check, Default, EntityCheck, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::identity::GROUPS_HEADER;
use weir_plugins::ldap_auth::{Config, ConsumerName, Groups, Search};

/// The definition of `ldap-auth-advanced`.
pub const DEFINITION: Definition = Definition {
    name: "ldap-auth-advanced",
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

const TEXT: Field = Field::element(Kind::String);
const NAME: Field = Field::element(Kind::String).check(&[Check::OneOf(&["username", "custom_id"])]);

const FIELDS: &[Field] = &[
    Field::new("ldap_host", Kind::String).required(),
    Field::new("ldap_password", Kind::String),
    Field::new("ldap_port", Kind::Number).or(Default::Integer(389)),
    Field::new("bind_dn", Kind::String),
    flag("ldaps", false).required(),
    flag("start_tls", false).required(),
    flag("verify_ldap_host", false).required(),
    Field::new("base_dn", Kind::String).required(),
    Field::new("attribute", Kind::String).required(),
    Field::new("cache_ttl", Kind::Number)
        .required()
        .or(Default::Integer(60)),
    flag("hide_credentials", false).required(),
    Field::new("timeout", Kind::Number).or(Default::Integer(10_000)),
    Field::new("keepalive", Kind::Number).or(Default::Integer(60_000)),
    Field::new("anonymous", Kind::Text),
    Field::new("header_type", Kind::String).or(Default::Text("ldap")),
    flag("consumer_optional", false),
    Field::new("consumer_by", Kind::Array(&NAME)).or(Default::Texts(&["username", "custom_id"])),
    Field::new("group_base_dn", Kind::String),
    Field::new("group_name_attribute", Kind::String),
    Field::new("group_member_attribute", Kind::String).or(Default::Text("memberOf")),
    flag("log_search_results", false),
    Field::new("groups_required", Kind::Array(&TEXT)),
    Field::new("realm", Kind::String),
];

#[derive(Deserialize)]
struct Options {
    ldap_password: Option<String>,
    bind_dn: Option<String>,
    consumer_optional: Option<bool>,
    consumer_by: Option<Vec<String>>,
    group_base_dn: Option<String>,
    group_name_attribute: Option<String>,
    group_member_attribute: Option<String>,
    groups_required: Option<Vec<String>>,
}

fn translate(config: &Value, consumers: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    let is_optional = options.consumer_optional.unwrap_or_default();
    let names = options.consumer_by.unwrap_or_default();
    let by = names.iter().map(|name| match name.as_str() {
        "custom_id" => ConsumerName::CustomId,
        _ => ConsumerName::Username,
    });
    let member_attribute = options.group_member_attribute;
    Ok(untyped(Config {
        search: options.bind_dn.map(|bind_dn| Search {
            bind_dn: Some(bind_dn),
            password: options.ldap_password,
            size_limit: 2,
            time_limit_seconds: 5,
        }),
        groups: Some(Groups {
            attribute: member_attribute.unwrap_or_else(|| "memberOf".to_owned()),
            base_dn: options.group_base_dn,
            name_attribute: options.group_name_attribute,
            required: options.groups_required.unwrap_or_default(),
            header: Some(GROUPS_HEADER.to_owned()),
        }),
        consumer_required: !is_optional,
        consumer_by: match is_optional {
            true => Vec::new(),
            false => by.collect(),
        },
        ..config_of(config, consumers)?
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The defect: an empty name was refused, though it stands for none.
    #[test]
    fn an_empty_anonymous_consumer_is_none() {
        let field = DEFINITION.config.field("anonymous").expect("a field");
        assert!(matches!(field.kind, Kind::Text));
        for (name, expected) in [
            (json!(""), None),
            (Value::Null, None),
            (json!("guest"), Some("guest")),
        ] {
            let config = json!({
                "ldap_host": "a", "ldap_port": 389, "ldaps": false, "start_tls": false, "verify_ldap_host": false,
                "base_dn": "b", "attribute": "c", "cache_ttl": 60, "hide_credentials": false, "anonymous": name,
            });
            let made = translate(&config, &Consumers::NONE).expect("it is served");
            assert_eq!(made["identity"]["anonymous"].as_str(), expected, "{name}");
        }
    }
}
