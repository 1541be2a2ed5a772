//! `key-auth`: `key-auth` of the catalogue.

use super::{CredentialAdapter, Phases, PluginAdapter, PluginContext, Warnings, headers, meta, read};
use crate::schema::{Schema, boolean, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::key_auth::{Config, Credential, KeyLocation, MultipleKeys, StripCredential};

/// The plugin `key-auth`.
pub struct KeyAuth;

#[derive(Deserialize)]
struct Options {
    header: String,
    query: String,
    realm: String,
    hide_credentials: bool,
    anonymous_consumer: Option<String>,
}

impl PluginAdapter for KeyAuth {
    fn name(&self) -> &'static str {
        "key-auth"
    }

    fn priority(&self) -> i64 {
        2500
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("header", text().or("apikey")),
                ("query", text().or("apikey")),
                ("realm", realm("key")),
                ("hide_credentials", boolean().or(false)),
                ("anonymous_consumer", text().longer(1)),
                ("_meta", meta::shape()),
            ])
        });
        &SHAPE
    }

    fn credentials(&self) -> Option<&dyn CredentialAdapter> {
        Some(self)
    }

    fn plugin(&self) -> &'static str {
        "key-auth"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            locations: vec![
                KeyLocation::Header(options.header),
                KeyLocation::Query(options.query),
            ],
            strip: if options.hide_credentials {
                StripCredential::Found
            } else {
                StripCredential::No
            },
            on_multiple: MultipleKeys::First,
            empty_is_missing: false,
            challenge: Some(format!("apikey realm=\"{}\"", options.realm)),
            identity: headers::identity(options.anonymous_consumer),
            ..Config::default()
        })
    }
}

impl CredentialAdapter for KeyAuth {
    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| object([("key", text())]).required(["key"]));
        &SHAPE
    }

    fn translate(&self, config: &Value) -> Result<Value, serde_json::Error> {
        #[derive(Deserialize)]
        struct Options {
            key: String,
        }
        let Options { key } = read(config)?;
        serde_json::to_value(Credential::plain(key))
    }
}

/// The realm of a challenge.
pub fn realm(default: &'static str) -> Schema {
    text().length(1, 128).pattern(r"^[ -!#-[\]-~]+$").or(default)
}
