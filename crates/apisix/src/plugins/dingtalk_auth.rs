//! `dingtalk-auth`: `app-login` of the catalogue, for Dingtalk.

use super::captured::Captured;
use super::{Phases, PluginAdapter, PluginContext, Warnings, read};
use crate::schema::Schema;
use serde::Deserialize;
use serde_json::Value;
use weir_plugins::app_login::{Config, Provider};
use weir_plugins::http_rules::HttpRules;
use weir_plugins::session_cookie::SessionConfig;

/// The plugin.
pub struct DingtalkAuth;

static SCHEMAS: Captured = Captured::new(include_str!("schemas/dingtalk-auth.json"));

#[derive(Deserialize)]
struct Options {
    app_key: String,
    app_secret: String,
    code_header: String,
    code_query: String,
    userinfo_url: String,
    access_token_url: String,
    set_userinfo_header: bool,
    redirect_uri: String,
    timeout: u64,
    ssl_verify: bool,
    secret: String,
    #[serde(default)]
    secret_fallbacks: Vec<String>,
    cookie_expires_in: u64,
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
        let session = SessionConfig {
            former_secrets: options.secret_fallbacks,
            cookie_name: "dingtalk_session".to_owned(),
            cookie_secure: false,
            absolute_timeout_seconds: options.cookie_expires_in,
            ..SessionConfig::new(options.secret)
        };
        serde_json::to_value(Config {
            provider: Provider::Dingtalk,
            client_id: options.app_key,
            client_secret: options.app_secret,
            login_url: options.redirect_uri,
            redirect_uri: None,
            code_header: options.code_header,
            code_query: options.code_query,
            token_url: options.access_token_url,
            userinfo_url: options.userinfo_url,
            tell_user: options.set_userinfo_header,
            session,
            http: HttpRules {
                timeout_ms: options.timeout.max(1),
                verify_tls: options.ssl_verify,
                ..HttpRules::default()
            },
        })
    }
}
