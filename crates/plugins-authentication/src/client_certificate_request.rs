//! `client-certificate-request`: asks clients for a certificate in the TLS handshake, and does nothing with it.
//!
//! Clients that connect to the route's names are asked. The call goes on with any certificate, or without one. Another
//! plugin (`client-certificate-headers`) or the access log can record it.
//!
//! Security: only the possession of the certificate's key is checked. Use `mtls-auth` to admit only clients with a
//! valid certificate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, Filter, Phases, Plugin, parse_config};

/// Configuration of `client-certificate-request`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {}

/// The plugin `client-certificate-request`.
pub struct ClientCertificateRequest;

impl Plugin for ClientCertificateRequest {
    fn name(&self) -> &'static str {
        "client-certificate-request"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let Config {} = parse_config(config)?;
        Ok(Arc::new(CertificateRequestFilter))
    }
}

/// An instance of `client-certificate-request`.
struct CertificateRequestFilter;

impl Filter for CertificateRequestFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn requests_client_certificate(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugins_testkit::*;

    #[test]
    fn it_asks_and_calls_go_on() {
        let filter = build(&ClientCertificateRequest, &json!({})).expect("valid");
        assert!(filter.requests_client_certificate());
        assert_eq!(word(&filter.on_request(&mut exchange())), "continue");
        assert_eq!(refused_at(&ClientCertificateRequest, &json!({"a": 1})).len(), 1);
    }
}
