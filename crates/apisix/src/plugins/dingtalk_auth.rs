//! `dingtalk-auth`: `app-login` of the catalogue, for Dingtalk.

use super::app_login::AppOptions;
use super::printed_schemas::PrintedSchemas;
use super::{Phases, PluginAdapter, PluginContext, Warnings, read};
use crate::schema::Schema;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::app_login::Provider;

/// The plugin `dingtalk-auth`.
pub struct DingtalkAuth;

static SCHEMAS: PrintedSchemas = PrintedSchemas::new(include_str!("schemas/dingtalk-auth.json"));

#[derive(Deserialize)]
struct Options {
    app_key: String,
    access_token_url: String,
    #[serde(flatten)]
    app: AppOptions,
}

impl PluginAdapter for DingtalkAuth {
    fn name(&self) -> &'static str {
        "dingtalk-auth"
    }

    fn priority(&self) -> i64 {
        2430
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
        serde_json::to_value(app.config(Provider::Dingtalk, options.app_key, options.access_token_url))
    }
}
