//! How plugins ask servers over HTTP: what is configured alike in all of them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use weir_model::UpstreamTls;
use weir_plugin::{Connector, HttpProxy};
use weir_plugins_shared::config_checks::ConfigErrors;
use weir_plugins_shared::http_request::{ServerCallRules, http_proxy};

/// The most bytes of an answer.
const MAX_ANSWER: usize = 1 << 20;

/// The HTTP settings for calls to a server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HttpRules {
    /// The longest that an answer may take, in milliseconds.
    pub timeout_ms: u64,
    /// Whether the server's certificate is verified, over TLS.
    pub verify_tls: bool,
    /// Idle connections to each server that each worker keeps; 0: none.
    pub pool_size: u32,
    /// How long they are kept, in milliseconds.
    pub pool_idle_timeout_ms: u64,
    /// An HTTP proxy for these calls: `http://host:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// `Proxy-Authorization`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy_authorization: Option<String>,
}

/// What proves to the proxy who asks is left out.
impl std::fmt::Debug for HttpRules {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("HttpRules")
            .field("timeout_ms", &self.timeout_ms)
            .finish_non_exhaustive()
    }
}

impl Default for HttpRules {
    fn default() -> Self {
        Self {
            timeout_ms: 3_000,
            verify_tls: true,
            pool_size: 16,
            pool_idle_timeout_ms: 60_000,
            proxy: None,
            proxy_authorization: None,
        }
    }
}

impl HttpRules {
    /// Tells what is wrong with them, in the field `http`.
    pub(crate) fn check(&self, faults: &mut ConfigErrors) {
        if self.timeout_ms == 0 {
            faults.add_at(&["http", "timeout_ms"], "expected at least 1 millisecond");
        }
        if self.proxy.is_some() && self.proxy_rules().is_none() {
            faults.add_at(&["http", "proxy"], "expected an address that begins with http://");
        }
    }

    fn proxy_rules(&self) -> Option<HttpProxy> {
        http_proxy(self.proxy.as_deref()?, self.proxy_authorization.as_deref())
    }

    /// The rules for the engine.
    pub(crate) fn rules(&self) -> ServerCallRules {
        let proxy = self.proxy_rules();
        let connector = proxy.map(|proxy| {
            let tls = UpstreamTls {
                verify: self.verify_tls,
                ..UpstreamTls::default()
            };
            Arc::new(Connector::new(tls, Some(proxy)))
        });
        ServerCallRules {
            verify_tls: self.verify_tls,
            timeout: Duration::from_millis(self.timeout_ms),
            pool_size: self.pool_size,
            pool_idle_timeout: Duration::from_millis(self.pool_idle_timeout_ms),
            max_answer_bytes: MAX_ANSWER,
            connector,
        }
    }
}
