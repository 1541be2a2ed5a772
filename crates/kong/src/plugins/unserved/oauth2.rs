//! `oauth2`: is an OAuth 2.0 authorization server, and asks for its tokens.

use super::{Definition, refusing};
use crate::schema::{Check, Default, EntityCheck, Field, Fields, Kind, Record};

/// The plugin.
pub const DEFINITION: Definition = refusing("oauth2", 1_400, CONFIG).never_on_consumers();

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
