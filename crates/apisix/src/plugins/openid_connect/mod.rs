//! `openid-connect`: `openid-connect` of the catalogue.

mod checks;
mod options;

use super::printed_schemas::PrintedSchemas;
use super::{Phases, PluginAdapter, PluginContext, Warnings, read};
use crate::schema::Schema;
use options::Options;
use serde_json::{Map, Value};

/// The plugin `openid-connect`.
pub struct OpenidConnect;

static SCHEMAS: PrintedSchemas = PrintedSchemas::new(include_str!("../schemas/openid-connect.json"));

impl PluginAdapter for OpenidConnect {
    fn name(&self) -> &'static str {
        "openid-connect"
    }

    fn priority(&self) -> i64 {
        2599
    }

    fn phases(&self) -> Phases {
        Phases {
            rewrite: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        SCHEMAS.request()
    }

    /// The original checks what belongs together before it looks at its schema.
    fn explain(&self, config: &Value, error: String) -> String {
        let first = config.as_object().map(checks::before_schema);
        first.and_then(Result::err).unwrap_or(error)
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        checks::before_schema(config)?;
        checks::after_schema(config)
    }

    fn plugin(&self) -> &'static str {
        "openid-connect"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        notes: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(options.config(notes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::rsa::{KeyPair, KeySize};
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    };
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    fn checked(config: &Value) -> Result<(), String> {
        let mut config = config.clone();
        let checked = OpenidConnect.shape().check(&mut config);
        checked.map_err(|error| OpenidConnect.explain(&config, error))?;
        OpenidConnect.check(config.as_object().expect("a map"))
    }

    #[test]
    fn configurations_are_checked_as_in_the_original() {
        for (config, words) in [
            (
                json!({}),
                "property \"session.secret\" is required when \"bearer_only\" is false",
            ),
            (
                json!({"session": {"secret": "s"}}),
                "property \"client_secret\" is required",
            ),
            (
                json!({"bearer_only": true, "client_secret": "s"}),
                "property \"client_id\" is required",
            ),
            (
                json!({"bearer_only": true, "use_jwks": true, "client_id": 1}),
                "property \"client_id\" validation failed: wrong type: expected string, got number",
            ),
            (
                json!({"bearer_only": true, "use_jwks": true, "client_id": "a", "discovery": "https://a", "use_par": true}),
                "property \"use_par\" is not allowed, use \"par.enabled\" instead",
            ),
            (
                json!({"session": {"secret": "0123456789abcdef"}, "client_id": "a", "client_secret": "b", "discovery": "https://a", "token_endpoint_auth_method": "client_secret_jwt", "client_jwt_assertion_alg": "RS256"}),
                "property \"client_jwt_assertion_alg\" \"RS256\" is asymmetric and cannot be used with the client_secret_jwt selected by \"token_endpoint_auth_method\"",
            ),
            (
                json!({"bearer_only": true, "use_jwks": true, "client_id": "a", "discovery": "https://a", "claim_schema": {"properties": {"user": {"type": "invalid_type"}}}}),
                "check claim_schema failed: invalid JSON type: invalid_type",
            ),
            (
                json!({"session": {"secret": "0123456789abcdef"}, "client_id": "a", "use_pkce": true, "discovery": "https://a", "par": {"enabled": true, "endpoint_auth_method": "client_secret_jwt"}}),
                "property \"par.endpoint_auth_method\" \"client_secret_jwt\" requires \"client_secret\" when \"par.enabled\" is true",
            ),
            (
                json!({"bearer_only": true, "use_jwks": true, "client_id": "a", "discovery": "https://a", "dpop": {"enabled": true, "private_key": "k", "public_jwk": {"kty": "RSA"}}}),
                "property \"dpop.public_jwk\" validation failed: kty \"RSA\" requires e, n",
            ),
        ] {
            assert_eq!(checked(&config), Err(words.to_owned()), "{config}");
        }
    }

    #[test]
    fn algorithms_of_assertions_must_fit_their_keys() {
        let pem = |der: &[u8]| {
            let body = STANDARD.encode(der);
            format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")
        };
        let on_curve = |curve| {
            let made = EcdsaKeyPair::generate_pkcs8(curve, &SystemRandom::new()).expect("a key");
            pem(made.as_ref())
        };
        let rsa = KeyPair::generate(KeySize::Rsa2048).expect("a key");
        let rsa = pem(AsDer::<Pkcs8V1Der<'_>>::as_der(&rsa).expect("a key").as_ref());
        let p256 = on_curve(&ECDSA_P256_SHA256_FIXED_SIGNING);
        let p521 = on_curve(&ECDSA_P521_SHA512_FIXED_SIGNING);
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        let ed25519 = pem(ed25519.as_ref());
        let public = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----";
        let invalid = "property \"client_rsa_private_key\" is not a valid key: expected a private key in PEM, not \
                       encrypted, of RSA with at least 2048 bits or of EC";
        let not_rsa =
            "property \"client_jwt_assertion_alg\" \"RS256\" requires an RSA \"client_rsa_private_key\"";
        let not_ec =
            "property \"client_jwt_assertion_alg\" \"ES256\" requires an EC \"client_rsa_private_key\"";
        let other_curve = "property \"client_jwt_assertion_alg\" \"ES512\" requires a \"client_rsa_private_key\" on \
                           curve \"P-521\", got \"P-256\"";
        for (algorithm, key, wanted) in [
            ("RS256", rsa.as_str(), Ok(())),
            ("RS512", &rsa, Ok(())),
            ("ES256", &p256, Ok(())),
            ("ES512", &p521, Ok(())),
            ("ES256", "$secret://vault/1/key", Ok(())),
            ("ES256", &rsa, Err(not_ec)),
            ("ES256", &ed25519, Err(not_ec)),
            ("ES512", &p256, Err(other_curve)),
            ("RS256", &p256, Err(not_rsa)),
            ("RS256", "k", Err(invalid)),
            (
                "RS256",
                public,
                Err("property \"client_rsa_private_key\" has no private key in it"),
            ),
        ] {
            let mut config = json!({
                "session": {"secret": "0123456789abcdef"}, "client_id": "a", "discovery": "https://a",
                "token_endpoint_auth_method": "private_key_jwt", "client_rsa_private_key": key,
                "client_jwt_assertion_alg": algorithm,
            });
            assert_eq!(
                checked(&config),
                wanted.map_err(str::to_owned),
                "{algorithm} {key}"
            );
            // What no endpoint is shown does not matter.
            config["token_endpoint_auth_method"] = json!("client_secret_basic");
            config["client_secret"] = json!("b");
            assert_eq!(checked(&config), Ok(()), "{algorithm} {key}");
        }
    }

    fn translated(mut config: Value) -> (Value, Vec<String>) {
        OpenidConnect.shape().check(&mut config).expect("valid");
        let mut notes = Warnings::default();
        let options: Options = read(&config).expect("options");
        let made = serde_json::to_value(options.config(&mut notes)).expect("JSON");
        (
            made,
            notes.0.into_iter().map(|note| note.field.to_owned()).collect(),
        )
    }

    #[test]
    fn options_are_translated() {
        let (made, notes) = translated(json!({
            "client_id": "a", "client_secret": "b", "discovery": "https://id/.well-known/openid-configuration",
            "session": {"secret": "0123456789abcdef", "cookie": {"lifetime": 60}}, "scope": "openid email", "timeout": 4,
        }));
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!(made["methods"], json!(["session", "authorization-code"]));
        assert_eq!(made["session"]["absolute_timeout_seconds"], json!(60));
        assert_eq!(made["session"]["cookie_secure"], json!(false));
        assert_eq!(made["scopes"], json!(["openid", "email"]));
        assert_eq!(made["redirect_suffix"], json!("/.apisix/redirect"));
        assert_eq!((&made["pkce"], &made["nonce"]), (&json!("never"), &json!(false)));
        assert_eq!(made["http"]["timeout_ms"], json!(4_000));
        assert_eq!(made["login_failure_status"], json!(500));
        let (made, notes) = translated(json!({
            "client_id": "a", "bearer_only": true, "use_jwks": true, "discovery": "https://id", "timeout": 5000,
            "required_scopes": ["a", "b"], "access_token_in_authorization_header": true,
            "claim_validator": {"audience": {"match_with_client_id": true}, "issuer": {"valid_issuers": ["i"]}},
            "session": {"secret": "0123456789abcdef", "storage": "redis", "redis": {}},
        }));
        assert_eq!(notes, ["session"]);
        assert_eq!(made["methods"], json!(["bearer"]));
        assert_eq!(made["unauthenticated"], json!("refuse"));
        assert_eq!(made["required"]["scopes"], json!(["a b"]));
        assert_eq!(made["required"]["audiences"], json!(["a"]));
        assert_eq!(made["issuers"], json!(["i"]));
        assert_eq!(made["http"]["timeout_ms"], json!(5_000));
        assert_eq!(
            made["upstream_headers"][0],
            json!({"name": "Authorization", "value": "bearer-token"})
        );
    }
}
