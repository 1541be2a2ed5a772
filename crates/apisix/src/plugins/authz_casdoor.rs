//! `authz-casdoor`: `casdoor-login` of the catalogue.

use super::printed_schemas::PrintedSchemas;
use super::{Phases, PluginAdapter, PluginContext, Warnings, read};
use crate::schema::Schema;
use aws_lc_rs::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::casdoor_login::Config;
use weir_plugins::http_rules::HttpRules;
use weir_plugins::session_cookie::SessionConfig;

/// The plugin `authz-casdoor`.
pub struct AuthzCasdoor;

static SCHEMAS: PrintedSchemas = PrintedSchemas::new(include_str!("schemas/authz-casdoor.json"));

#[derive(Deserialize)]
struct Options {
    endpoint_addr: String,
    client_id: String,
    client_secret: String,
    callback_url: String,
}

impl PluginAdapter for AuthzCasdoor {
    fn name(&self) -> &'static str {
        "authz-casdoor"
    }

    fn priority(&self) -> i64 {
        2559
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

    fn plugin(&self) -> &'static str {
        "casdoor-login"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Config {
            url: options.endpoint_addr,
            session: SessionConfig {
                cookie_name: cookie_name(&options.client_id),
                cookie_secure: false,
                audience: options.client_id.clone(),
                // All gateways with the same app know the session.
                ..SessionConfig::new(options.client_secret.clone())
            },
            client_id: options.client_id,
            client_secret: options.client_secret,
            callback_url: options.callback_url,
            http: HttpRules::default(),
        })
    }
}

/// Each app has its own cookie, so that the logins of two apps on one host do not end each other.
fn cookie_name(client_id: &str) -> String {
    let hash = digest(&SHA256, client_id.as_bytes());
    let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("authz_casdoor_session_{hash}")
}
