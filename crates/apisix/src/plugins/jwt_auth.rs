//! `jwt-auth`: APISIX's fields and defaults for `jwt` of the catalogue, and its credentials.

use super::key_auth::realm;
use super::{CredentialAdapter, Phases, PluginAdapter, PluginContext, Warnings, headers, meta, read};
use crate::schema::{Schema, any, array, boolean, integer, object, one_of, text};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use weir_plugins::jwt::{Algorithm, Config, Credential, MultipleTokens, TimeClaim, TokenLocation};

/// The plugin `jwt-auth`.
pub struct JwtAuth;

#[derive(Deserialize)]
struct Options {
    header: String,
    query: String,
    cookie: String,
    realm: String,
    hide_credentials: bool,
    key_claim_name: String,
    #[serde(default)]
    claims_to_verify: Vec<TimeClaim>,
    anonymous_consumer: Option<String>,
}

impl PluginAdapter for JwtAuth {
    fn name(&self) -> &'static str {
        "jwt-auth"
    }

    fn priority(&self) -> i64 {
        2510
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
                ("header", text().or("authorization")),
                ("query", text().or("jwt")),
                ("cookie", text().or("jwt")),
                ("hide_credentials", boolean().or(false)),
                ("key_claim_name", text().longer(1).or("key")),
                ("store_in_ctx", boolean().or(false)),
                ("realm", realm("jwt")),
                ("anonymous_consumer", text().longer(1)),
                ("claims_to_verify", array(text().options(["exp", "nbf"])).unique()),
                ("_meta", meta::shape()),
            ])
        });
        &SHAPE
    }

    fn credentials(&self) -> Option<&dyn CredentialAdapter> {
        Some(self)
    }

    fn plugin(&self) -> &'static str {
        "jwt"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let challenge = Some(format!("Bearer realm=\"{}\"", options.realm));
        // Claims that are named must be there; if none is named, both count in tokens that have them.
        let checked_claims = if options.claims_to_verify.is_empty() {
            vec![TimeClaim::Exp, TimeClaim::Nbf]
        } else {
            Vec::new()
        };
        serde_json::to_value(Config {
            locations: vec![
                TokenLocation::Header(options.header),
                TokenLocation::Query(options.query),
                TokenLocation::Cookie(options.cookie),
            ],
            on_multiple: MultipleTokens::First,
            schemes: vec!["Bearer".to_owned(), "bearer".to_owned()],
            scheme_required: false,
            key_claim: options.key_claim_name,
            key_in_header: false,
            check_typ: false,
            required_claims: options.claims_to_verify,
            checked_claims,
            strip: options.hide_credentials,
            challenge: challenge.clone(),
            token_challenge: challenge,
            identity: headers::identity(options.anonymous_consumer),
            ..Config::default()
        })
    }
}

const SHORT_KEY: &str =
    "an RSA key of fewer than 2048 bits can be broken; the tokens of this consumer should get a longer one";

#[derive(Deserialize)]
struct CredentialOptions {
    key: String,
    secret: Option<String>,
    public_key: Option<String>,
    algorithm: Algorithm,
    base64_secret: bool,
    lifetime_grace_period: u64,
}

impl CredentialAdapter for JwtAuth {
    fn shape(&self) -> &'static Schema {
        static SHAPE: LazyLock<Schema> = LazyLock::new(|| {
            object([
                ("key", text().longer(1)),
                ("secret", text().longer(1)),
                (
                    "algorithm",
                    text()
                        .options([
                            "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "ES256", "ES384", "ES512",
                            "PS256", "PS384", "PS512", "EdDSA",
                        ])
                        .or("HS256"),
                ),
                ("exp", integer().at_least(1).or(86_400)),
                ("base64_secret", boolean().or(false)),
                ("lifetime_grace_period", integer().at_least(0).or(0)),
            ])
            .if_present("algorithm", one_of([shared_secret(), key_pair()]))
            .required(["key"])
        });
        &SHAPE
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let text = |field: &str| config.get(field).and_then(Value::as_str);
        let is_hmac = text("algorithm").is_some_and(|algorithm| algorithm.starts_with("HS"));
        let secret = text("secret");
        if is_hmac && secret.is_none() {
            return Err("property \"secret\" is required when using HS based algorithms".to_owned());
        }
        if config.get("base64_secret") == Some(&Value::Bool(true))
            && secret.is_some_and(|secret| STANDARD.decode(secret).is_err())
        {
            return Err("base64_secret required but the secret is not in base64 format".to_owned());
        }
        if !is_hmac && text("public_key").is_none() {
            return Err("missing valid public key".to_owned());
        }
        Ok(())
    }

    fn warning(&self, config: &Value) -> Option<(&'static str, &'static str)> {
        let is_short = config
            .get("public_key")?
            .as_str()
            .is_some_and(Credential::is_short_rsa_key);
        is_short.then_some(("public_key", SHORT_KEY))
    }

    fn translate(&self, config: &Value) -> Result<Value, serde_json::Error> {
        let options: CredentialOptions = read(config)?;
        let is_hmac = matches!(
            options.algorithm,
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512
        );
        let public_key = options.public_key.filter(|_| !is_hmac);
        serde_json::to_value(Credential {
            key: options.key,
            algorithm: options.algorithm,
            secret: options.secret.filter(|_| is_hmac),
            secret_is_base64: is_hmac && options.base64_secret,
            short_rsa_key: public_key.as_deref().is_some_and(Credential::is_short_rsa_key),
            public_key,
            leeway_seconds: options.lifetime_grace_period,
        })
    }
}

fn shared_secret() -> Schema {
    object([("algorithm", any().options(["HS256", "HS384", "HS512"]))])
}

fn key_pair() -> Schema {
    let algorithms = [
        "RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "EdDSA",
    ];
    object([
        ("public_key", text().longer(1)),
        ("algorithm", any().options(algorithms)),
    ])
    .required(["public_key"])
}
