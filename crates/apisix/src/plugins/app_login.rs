//! The common part of `dingtalk-auth` and `feishu-auth`: their options, and what these are in `app-login` of the
//! catalogue.

use serde::Deserialize;
use weir_plugins::app_login::{Config, Provider};
use weir_plugins::http_rules::HttpRules;
use weir_plugins::session_cookie::SessionConfig;

/// Options of both plugins.
#[derive(Deserialize)]
pub(super) struct AppOptions {
    app_secret: String,
    code_header: String,
    code_query: String,
    userinfo_url: String,
    set_userinfo_header: bool,
    redirect_uri: String,
    timeout: u64,
    ssl_verify: bool,
    secret: String,
    #[serde(default)]
    secret_fallbacks: Vec<String>,
    cookie_expires_in: u64,
}

impl AppOptions {
    /// Logging in through an app of this provider.
    pub(super) fn config(self, provider: Provider, client_id: String, token_url: String) -> Config {
        let cookie_name = match provider {
            Provider::Dingtalk => "dingtalk_session",
            Provider::Feishu => "feishu_session",
        };
        let session = SessionConfig {
            former_secrets: self.secret_fallbacks,
            cookie_name: cookie_name.to_owned(),
            cookie_secure: false,
            absolute_timeout_seconds: self.cookie_expires_in,
            ..SessionConfig::new(self.secret)
        };
        Config {
            provider,
            client_id,
            client_secret: self.app_secret,
            login_url: self.redirect_uri,
            redirect_uri: None,
            code_header: self.code_header,
            code_query: self.code_query,
            token_url,
            userinfo_url: self.userinfo_url,
            set_userinfo_header: self.set_userinfo_header,
            session,
            http: HttpRules {
                timeout_ms: self.timeout.max(1),
                verify_tls: self.ssl_verify,
                ..HttpRules::default()
            },
        }
    }
}
