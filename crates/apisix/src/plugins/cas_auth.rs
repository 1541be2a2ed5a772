//! `cas-auth`: `cas-login` of the catalogue.

use super::printed_schemas::PrintedSchemas;
use super::{Phases, PluginAdapter, PluginContext, Warnings, read};
use crate::schema::Schema;
use serde::Deserialize;
use serde_json::{Map, Value};
use weir_plugins::cas_login::Config;
use weir_plugins::cookie::SameSite;
use weir_plugins::http_rules::HttpRules;
use weir_plugins::session_cookie::SessionConfig;

/// The plugin `cas-auth`.
pub struct CasAuth;

static SCHEMAS: PrintedSchemas = PrintedSchemas::new(include_str!("schemas/cas-auth.json"));

#[derive(Deserialize)]
struct Options {
    max_req_body_size: usize,
    idp_uri: String,
    cas_callback_uri: String,
    logout_uri: String,
    cookie: Cookie,
}

#[derive(Deserialize)]
struct Cookie {
    secret: String,
    secure: bool,
    samesite: String,
}

impl PluginAdapter for CasAuth {
    fn name(&self) -> &'static str {
        "cas-auth"
    }

    fn priority(&self) -> i64 {
        2597
    }

    fn phases(&self) -> Phases {
        Phases {
            access: true,
            ..Phases::default()
        }
    }

    fn shape(&self) -> &'static Schema {
        SCHEMAS.request()
    }

    fn check(&self, config: &Map<String, Value>) -> Result<(), String> {
        let part = |field: &str| config.get("cookie").and_then(|cookie| cookie.get(field));
        let is_open =
            part("samesite") == Some(&Value::from("None")) && part("secure") == Some(&Value::from(false));
        match is_open {
            true => Err("cookie.secure must be true when cookie.samesite is \"None\"".to_owned()),
            false => Ok(()),
        }
    }

    fn plugin(&self) -> &'static str {
        "cas-login"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            url: options.idp_uri,
            callback: options.cas_callback_uri,
            logout_path: options.logout_uri,
            max_body_bytes: options.max_req_body_size,
            session: SessionConfig {
                cookie_name: "CAS_SESSION".to_owned(),
                cookie_secure: options.cookie.secure,
                cookie_same_site: match options.cookie.samesite.as_str() {
                    "None" => SameSite::None,
                    _ => SameSite::Lax,
                },
                idling_timeout_seconds: 3_600,
                rolling_timeout_seconds: 0,
                absolute_timeout_seconds: 0,
                ..SessionConfig::new(options.cookie.secret)
            },
            http: HttpRules::default(),
        })
    }
}
