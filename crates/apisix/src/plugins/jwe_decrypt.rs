//! `jwe-decrypt`: `jwe-decrypt` of the catalogue.

use super::{CredentialAdapter, Phases, PluginAdapter, PluginContext, Warnings, meta, read};
use crate::schema::{Schema, boolean, object, text};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::jwe_decrypt::{Config, Credential};

/// The plugin `jwe-decrypt`.
pub struct JweDecrypt;

/// Bytes of a secret.
const SECRET: usize = 32;

#[derive(Deserialize)]
struct Options {
    header: String,
    forward_header: String,
    strict: bool,
}

impl PluginAdapter for JweDecrypt {
    fn name(&self) -> &'static str {
        "jwe-decrypt"
    }

    fn priority(&self) -> i64 {
        2509
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
                ("header", text().or("Authorization")),
                ("forward_header", text().or("Authorization")),
                ("strict", boolean().or(true)),
                ("_meta", meta::shape()),
            ])
            .required(["header", "forward_header"])
        });
        &SHAPE
    }

    fn credentials(&self) -> Option<&dyn CredentialAdapter> {
        Some(self)
    }

    fn plugin(&self) -> &'static str {
        "jwe-decrypt"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            header: options.header,
            forward_header: options.forward_header,
            required: options.strict,
            header_is_protected: false,
            missing_status: 403,
            invalid_status: 400,
            ..Config::default()
        })
    }
}

#[derive(Deserialize)]
struct Secret {
    key: String,
    secret: String,
    #[serde(default)]
    is_base64_encoded: bool,
}

impl CredentialAdapter for JweDecrypt {
    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("key", text()),
                ("secret", text()),
                ("is_base64_encoded", boolean()),
            ])
            .required(["key", "secret"])
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let secret = config.get("secret").and_then(Value::as_str).unwrap_or_default();
        let digits = secret.trim_end_matches('=').len();
        match config.get("is_base64_encoded") == Some(&Value::Bool(true)) {
            true if digits * 6 / 8 != SECRET => {
                Err("the secret length after base64 decode should be 32 chars".to_owned())
            }
            false if secret.len() != SECRET => Err("the secret length should be 32 chars".to_owned()),
            _ => Ok(()),
        }
    }

    fn translate(&self, config: &Value) -> Result<Value, serde_json::Error> {
        let options: Secret = read(config)?;
        serde_json::to_value(Credential {
            key: options.key,
            secret: options.secret,
            secret_is_base64: options.is_base64_encoded,
        })
    }
}
