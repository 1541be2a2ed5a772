//! The options of sessions that `openid-connect` and `saml` have in common.

use serde::Deserialize;
use weir_plugins::cookie::SameSite;
use weir_plugins::session_cookie::SessionConfig;

/// The options, without the secret.
#[derive(Deserialize)]
pub(super) struct SessionOptions {
    session_audience: String,
    session_cookie_name: String,
    session_cookie_path: String,
    session_cookie_domain: Option<String>,
    pub(super) session_cookie_same_site: SameSite,
    session_cookie_http_only: bool,
    session_cookie_secure: Option<bool>,
    session_remember: bool,
    session_idling_timeout: u64,
    session_rolling_timeout: u64,
    session_absolute_timeout: u64,
}

impl SessionOptions {
    /// Sessions that this secret seals.
    pub(super) fn config(&self, secret: String) -> SessionConfig {
        SessionConfig {
            audience: self.session_audience.clone(),
            cookie_name: self.session_cookie_name.clone(),
            cookie_path: self.session_cookie_path.clone(),
            cookie_domain: self.session_cookie_domain.clone(),
            cookie_same_site: self.session_cookie_same_site,
            cookie_http_only: self.session_cookie_http_only,
            cookie_secure: self.session_cookie_secure.unwrap_or(false),
            persistent: self.session_remember,
            idling_timeout_seconds: self.session_idling_timeout,
            rolling_timeout_seconds: self.session_rolling_timeout,
            absolute_timeout_seconds: self.session_absolute_timeout,
            ..SessionConfig::new(secret)
        }
    }
}
