//! `wolf-rbac`: the plugin of the same name of the catalogue.

use super::printed_schemas::PrintedSchemas;
use super::{CredentialAdapter, Phases, PluginAdapter, PluginContext, Warnings, headers, read};
use crate::schema::Schema;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::http_rules::HttpRules;
use weir_plugins::wolf_rbac::{Config, Credential};

/// The plugin `wolf-rbac`.
pub struct WolfRbac;

static SCHEMAS: PrintedSchemas = PrintedSchemas::new(include_str!("schemas/wolf-rbac.json"));

impl PluginAdapter for WolfRbac {
    fn name(&self) -> &'static str {
        "wolf-rbac"
    }

    fn priority(&self) -> i64 {
        2555
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

    fn credentials(&self) -> Option<&dyn CredentialAdapter> {
        Some(self)
    }

    fn plugin(&self) -> &'static str {
        "wolf-rbac"
    }

    fn translate(
        &self,
        _: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        serde_json::to_value(Config {
            http: HttpRules {
                timeout_ms: 10_000,
                ..HttpRules::default()
            },
            identity: headers::identity(None),
        })
    }
}

#[derive(Deserialize)]
struct Options {
    appid: String,
    server: String,
    header_prefix: String,
    #[serde(default)]
    ssl_verify: bool,
}

impl CredentialAdapter for WolfRbac {
    fn shape(&self) -> &'static Schema {
        SCHEMAS.request()
    }

    fn translate(&self, config: &Value) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        serde_json::to_value(Credential {
            app_id: options.appid,
            server: options.server,
            header_prefix: options.header_prefix,
            verify_tls: options.ssl_verify,
        })
    }
}
