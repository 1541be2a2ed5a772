//! `saml-auth`: `saml` of the catalogue, with both bindings of the original and its three places for logouts.

use super::printed_schemas::PrintedSchemas;
use super::{Phases, PluginAdapter, PluginContext, Warnings, read};
use crate::schema::Schema;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::cookie::SameSite;
use weir_plugins::saml::{
    Binding, Config, HashName, LogoutRules, Provider, RequestRules, ResponseRules, Signing, Unauthenticated,
};
use weir_plugins::session_cookie::SessionConfig;

/// The plugin `saml-auth`.
pub struct SamlAuth;

static SCHEMAS: PrintedSchemas = PrintedSchemas::new(include_str!("schemas/saml-auth.json"));

#[derive(Deserialize)]
struct Options {
    sp_issuer: String,
    idp_uri: String,
    idp_cert: String,
    login_callback_uri: String,
    logout_uri: String,
    logout_callback_uri: String,
    logout_redirect_uri: String,
    sp_cert: String,
    sp_private_key: String,
    auth_protocol_binding_method: String,
    secret: String,
    #[serde(default)]
    secret_fallbacks: Vec<String>,
}

impl PluginAdapter for SamlAuth {
    fn name(&self) -> &'static str {
        "saml-auth"
    }

    fn priority(&self) -> i64 {
        2598
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

    fn plugin(&self) -> &'static str {
        "saml"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(options.config())
    }
}

impl Options {
    fn config(self) -> Config {
        let is_posted = self.auth_protocol_binding_method == "HTTP-POST";
        let binding = if is_posted {
            Binding::Post
        } else {
            Binding::Redirect
        };
        Config {
            issuer: self.sp_issuer,
            provider: Provider {
                issuer: None,
                logout_url: Some(self.idp_uri.clone()),
                login_url: self.idp_uri,
                certificates: vec![self.idp_cert],
            },
            callback: self.login_callback_uri,
            request: RequestRules {
                binding,
                answer: binding,
                name_id_format: None,
                signing: Some(Signing {
                    key: self.sp_private_key,
                    certificate: Some(self.sp_cert),
                    hash: HashName::Sha256,
                    digest: HashName::Sha256,
                }),
            },
            response: ResponseRules::default(),
            logout: Some(LogoutRules {
                path: path(&self.logout_uri),
                callback: Some(self.logout_callback_uri),
                redirect: self.logout_redirect_uri,
            }),
            unauthenticated: Unauthenticated::Login,
            consumer: None,
            upstream_headers: Vec::new(),
            session: SessionConfig {
                former_secrets: self.secret_fallbacks,
                cookie_name: "saml_session".to_owned(),
                cookie_secure: is_posted,
                cookie_same_site: if is_posted { SameSite::None } else { SameSite::Lax },
                ..SessionConfig::new(self.secret)
            },
            identity: weir_plugins::identity::Config::default(),
        }
    }
}

/// The path of an address; what is a path already stays as it is.
fn path(place: &str) -> String {
    let behind = place.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
    behind.map_or_else(|| place.to_owned(), |(_, rest)| format!("/{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config() -> Value {
        json!({
            "sp_issuer": "https://sp.example.com", "idp_uri": "https://idp.example.com/sso", "idp_cert": "MIIC...",
            "login_callback_uri": "https://sp.example.com/login/callback",
            "logout_uri": "https://sp.example.com/logout",
            "logout_callback_uri": "https://sp.example.com/logout/callback",
            "logout_redirect_uri": "https://sp.example.com/logout/done",
            "sp_cert": "MIIC...", "sp_private_key": "MIIE...", "secret": "mysecret1",
        })
    }

    #[test]
    fn bindings_decide_on_cookies() {
        for (method, binding, same_site, secure) in [
            ("HTTP-Redirect", "redirect", "Lax", false),
            ("HTTP-POST", "post", "None", true),
        ] {
            let mut given = config();
            given["auth_protocol_binding_method"] = json!(method);
            SamlAuth.shape().check(&mut given).expect("valid");
            let options: Options = read(&given).expect("options");
            let made = serde_json::to_value(options.config()).expect("JSON");
            assert_eq!(made["request"]["binding"], json!(binding));
            assert_eq!(made["session"]["cookie_same_site"], json!(same_site));
            assert_eq!(made["session"]["cookie_secure"], json!(secure));
            assert_eq!(made["logout"]["path"], json!("/logout"));
        }
    }

    /// The blocks of the original's own tests about its schema.
    #[test]
    fn configurations_are_checked_as_in_the_original() {
        let required = |field: &str| format!("property \"{field}\" is required");
        for (field, value, words) in [
            ("sp_issuer", Value::Null, required("sp_issuer")),
            ("idp_uri", Value::Null, required("idp_uri")),
            ("secret", Value::Null, required("secret")),
            (
                "secret",
                json!("short"),
                "property \"secret\" validation failed: string too short, expected at least 8, got 5".to_owned(),
            ),
            (
                "auth_protocol_binding_method",
                json!("HTTP-INVALID"),
                "property \"auth_protocol_binding_method\" validation failed: matches none of the enum values".to_owned(),
            ),
        ] {
            let mut given = config();
            let fields = given.as_object_mut().expect("a map");
            match value {
                Value::Null => drop(fields.remove(field)),
                value => drop(fields.insert(field.to_owned(), value)),
            }
            assert_eq!(SamlAuth.shape().check(&mut given), Err(words), "{field}");
        }
        let mut given = config();
        given["secret_fallbacks"] = json!(["oldsecret1", "oldsecret2"]);
        assert_eq!(SamlAuth.shape().check(&mut given), Ok(()));
    }
}
