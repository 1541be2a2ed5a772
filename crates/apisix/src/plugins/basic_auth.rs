//! `basic-auth`: `basic-auth` of the catalogue.

use super::key_auth::realm;
use super::{CredentialAdapter, Phases, PluginAdapter, PluginContext, Warnings, headers, meta, read};
use crate::schema::{Schema, boolean, object, text};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;
use weir_plugins::basic_auth::{Config, Credential};

/// The plugin `basic-auth`.
pub struct BasicAuth;

#[derive(Deserialize)]
struct Options {
    hide_credentials: bool,
    realm: String,
    anonymous_consumer: Option<String>,
}

impl PluginAdapter for BasicAuth {
    fn name(&self) -> &'static str {
        "basic-auth"
    }

    fn priority(&self) -> i64 {
        2520
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
                ("hide_credentials", boolean().or(false)),
                ("realm", realm("basic")),
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
        "basic-auth"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            ignore_spaces: true,
            strip: options.hide_credentials,
            challenge: Some(format!("Basic realm=\"{}\"", options.realm)),
            identity: headers::identity(options.anonymous_consumer),
            ..Config::default()
        })
    }
}

impl CredentialAdapter for BasicAuth {
    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([("username", text()), ("password", text())]).required(["username", "password"])
        });
        &SHAPE
    }

    fn translate(&self, config: &Value) -> Result<Value, serde_json::Error> {
        #[derive(Deserialize)]
        struct Options {
            username: String,
            password: String,
        }
        let Options { username, password } = read(config)?;
        serde_json::to_value(Credential {
            username,
            password: Some(password),
            password_sha256: None,
            password_sha1: None,
        })
    }
}
