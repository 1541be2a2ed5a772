//! `hmac-auth`: `hmac-auth` of the catalogue.

use super::key_auth::realm;
use super::{CredentialAdapter, Phases, PluginAdapter, PluginContext, Warnings, headers, meta, read};
use crate::schema::{Schema, array, boolean, integer, object, text};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::LazyLock;
use weir_plugins::hmac_auth::{Algorithm, Config, Credential, Form};
use weir_plugins::request_uri::UriForm;

/// The plugin `hmac-auth`.
pub struct HmacAuth;

#[derive(Deserialize)]
struct Options {
    allowed_algorithms: Vec<Algorithm>,
    clock_skew: u64,
    signed_headers: Vec<String>,
    validate_request_body: bool,
    max_req_body_size: usize,
    hide_credentials: bool,
    realm: String,
    anonymous_consumer: Option<String>,
}

impl PluginAdapter for HmacAuth {
    fn name(&self) -> &'static str {
        "hmac-auth"
    }

    fn priority(&self) -> i64 {
        2530
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            let algorithm = || text().options(["hmac-sha1", "hmac-sha256", "hmac-sha512"]);
            object([
                (
                    "allowed_algorithms",
                    array(algorithm())
                        .min_items(1)
                        .or(json!(["hmac-sha1", "hmac-sha256", "hmac-sha512"])),
                ),
                ("clock_skew", integer().at_least(1).or(300)),
                ("signed_headers", array(text().length(1, 50)).or(json!(["date"]))),
                ("validate_request_body", boolean().or(false)),
                ("max_req_body_size", integer().at_least(1).or(67_108_864)),
                ("hide_credentials", boolean().or(false)),
                ("realm", realm("hmac")),
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
        "hmac-auth"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            form: Form::Signature,
            algorithms: options.allowed_algorithms,
            clock_skew_seconds: options.clock_skew,
            x_date: false,
            required_headers: options.signed_headers,
            uri: UriForm::Matched,
            check_body: options.validate_request_body,
            max_body_bytes: options.max_req_body_size,
            strip: options.hide_credentials,
            challenge: Some(format!("hmac realm=\"{}\"", options.realm)),
            identity: headers::identity(options.anonymous_consumer),
            ..Config::default()
        })
    }
}

impl CredentialAdapter for HmacAuth {
    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("key_id", text().length(1, 256)),
                ("secret_key", text().length(1, 256)),
            ])
            .required(["key_id", "secret_key"])
        });
        &SHAPE
    }

    fn translate(&self, config: &Value) -> Result<Value, serde_json::Error> {
        #[derive(Deserialize)]
        struct Options {
            key_id: String,
            secret_key: String,
        }
        let options: Options = read(config)?;
        serde_json::to_value(Credential {
            key: options.key_id,
            secret: options.secret_key,
        })
    }
}
