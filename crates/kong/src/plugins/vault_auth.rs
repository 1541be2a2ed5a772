//! `vault-auth` of the paid edition: `vault-auth` of the catalogue, with a vault that is an entity.

use super::{Consumers, Definition, UnsupportedOption, identity, typed, untyped};
use crate::schema::{Check, Default, Field, Kind, Record};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::key_auth::KeyLocation;
use weir_plugins::vault_auth::{Config, VaultServer};

/// The definition of `vault-auth`.
pub const DEFINITION: Definition = Definition {
    name: "vault-auth",
    priority: 1_350,
    config: Record::of(&[
        Field::new("access_token_name", Kind::String)
            .required()
            .or(Default::Text("access_token"))
            .check(&[Check::Text(names)]),
        Field::new("secret_token_name", Kind::String)
            .required()
            .or(Default::Text("secret_token"))
            .check(&[Check::Text(names)]),
        Field::new("vault", Kind::Foreign("vault_auth_vaults")).required(),
        Field::new("hide_credentials", Kind::Boolean).or(Default::Boolean(false)),
        Field::new("anonymous", Kind::String),
        Field::new("tokens_in_body", Kind::Boolean).or(Default::Boolean(false)),
        Field::new("run_on_preflight", Kind::Boolean).or(Default::Boolean(true)),
    ]),
    checks: &[],
    shorthands: &[],
    on_consumers: false,
    catalogue_name: "vault-auth",
    translate,
};

/// Names in a list with commas, of letters, digits, `_` and `-`.
fn names(text: &str) -> Result<(), String> {
    let is_name = |name: &str| {
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        !name.is_empty() && name.bytes().all(is_fine)
    };
    match split(text).all(is_name) {
        true => Ok(()),
        false => Err(format!(
            "bad header name '{text}', allowed characters are A-Z, a-z, 0-9, '_', and '-'"
        )),
    }
}

fn split(names: &str) -> impl Iterator<Item = &str> {
    names.split(',').map(str::trim)
}

#[derive(Deserialize)]
struct Options {
    access_token_name: String,
    secret_token_name: String,
    vault: Value,
    hide_credentials: Option<bool>,
    anonymous: Option<String>,
    tokens_in_body: Option<bool>,
    run_on_preflight: Option<bool>,
}

fn translate(config: &Value, known: &Consumers<'_>) -> Result<Value, UnsupportedOption> {
    let options: Options = typed(config)?;
    // With none that exists, no token is good.
    let vault = vault_of(&options.vault, known);
    let is_in_body = options.tokens_in_body == Some(true);
    let anonymous = options.anonymous.as_deref().filter(|name| !name.is_empty());
    Ok(untyped(Config {
        access_token: places(&options.access_token_name, is_in_body),
        secret_token: places(&options.secret_token_name, is_in_body),
        strip: options.hide_credentials == Some(true),
        identity: identity(anonymous, options.run_on_preflight != Some(false), known),
        ..Config::new(vault)
    }))
}

fn vault_of(reference: &Value, known: &Consumers<'_>) -> Option<VaultServer> {
    let name = reference.as_str().or_else(|| reference["id"].as_str());
    name.and_then(|name| (known.vault)(name))
}

/// A name in a configuration that does not exist.
pub(super) fn missing(config: &Value, known: &Consumers<'_>) -> Option<UnsupportedOption> {
    vault_of(&config["vault"], known)
        .is_none()
        .then(|| UnsupportedOption {
            field: "vault",
            what: "checking tokens in a vault that does not exist (write it at `/vault-auth` first)"
                .to_owned(),
        })
}

fn places(names: &str, is_in_body: bool) -> Vec<KeyLocation> {
    let mut places = Vec::new();
    for name in split(names) {
        places.push(KeyLocation::Header(name.to_owned()));
        // The original asks its web server for headers, for which `_` and `-` are the same.
        if name.contains('_') {
            places.push(KeyLocation::Header(name.replace('_', "-")));
        }
        places.push(KeyLocation::Query(name.to_owned()));
        if is_in_body {
            places.push(KeyLocation::Body(name.to_owned()));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins::vault_auth::EngineVersion;

    #[test]
    fn the_vault_is_found_by_id_or_name() {
        let known = Consumers {
            vault: &|name| {
                (name == "v").then(|| VaultServer {
                    address: "http://v:1".to_owned(),
                    mount: "m".to_owned(),
                    version: EngineVersion::V2,
                    token: "t".to_owned(),
                })
            },
            ..Consumers::NONE
        };
        let config = |vault: Value| {
            json!({
                "access_token_name": "access_token, a", "secret_token_name": "s", "vault": vault,
                "hide_credentials": true, "tokens_in_body": true, "run_on_preflight": false,
            })
        };
        for vault in [json!("v"), json!({"id": "v"})] {
            let made = translate(&config(vault), &known).expect("it is served");
            assert_eq!(made["vault"]["version"], json!("v2"));
            assert_eq!(
                made["access_token"],
                json!([
                    {"header": "access_token"}, {"header": "access-token"}, {"query": "access_token"},
                    {"body": "access_token"}, {"header": "a"}, {"query": "a"}, {"body": "a"},
                ])
            );
            assert_eq!(
                (&made["strip"], &made["identity"]["on_preflight"]),
                (&json!(true), &json!(false))
            );
        }
        for vault in [json!("w"), json!({}), Value::Null] {
            let made = translate(&config(vault.clone()), &known).expect("it is served");
            assert_eq!(made.get("vault"), None);
            let refused = missing(&config(vault), &known).expect("refused");
            assert_eq!(refused.field, "vault");
        }
        assert!(names("a_b, C-1").is_ok() && names("a b").is_err() && names("a,").is_err());
    }
}
