//! `feishu-auth`: `app-login` of the catalogue, for Feishu.

use super::app_login::AppOptions;
use super::printed_schemas::PrintedSchemas;
use super::{Phases, PluginAdapter, PluginContext, Warnings, read};
use crate::schema::Schema;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::app_login::{Config, Provider};

/// The plugin `feishu-auth`.
pub struct FeishuAuth;

static SCHEMAS: PrintedSchemas = PrintedSchemas::new(include_str!("schemas/feishu-auth.json"));

#[derive(Deserialize)]
struct Options {
    app_id: String,
    access_token_url: String,
    auth_redirect_uri: String,
    #[serde(flatten)]
    app: AppOptions,
}

impl PluginAdapter for FeishuAuth {
    fn name(&self) -> &'static str {
        "feishu-auth"
    }

    fn priority(&self) -> i64 {
        2420
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
        "app-login"
    }

    fn translate(
        &self,
        config: &Value,
        _: &PluginContext<'_>,
        _: &mut Warnings,
    ) -> Result<Value, serde_json::Error> {
        let options: Options = read(config)?;
        let app = options.app;
        serde_json::to_value(Config {
            redirect_uri: Some(options.auth_redirect_uri),
            ..app.config(Provider::Feishu, options.app_id, options.access_token_url)
        })
    }
}
