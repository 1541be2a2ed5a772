//! `client-certificate-headers`: sends the client's certificate to upstreams in request headers.
//!
//! ```yaml
//! subject: X-Client-Cert-Subject-DN
//! fingerprint: X-Client-Cert-Fingerprint
//! ```
//!
//! Security: a caller's own copies of these headers are always removed. The certificate is forwarded as the client
//! presented it: it is verified only if `mtls-auth` runs before.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use weir_model::Diagnostic;
use weir_plugin::{BuildContext, Exchange, Filter, Outcome, Phases, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `client-certificate-headers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whether the headers are set. If not, the headers that callers send are still removed.
    pub send_headers: bool,
    /// The header with the certificate, in PEM with escapes as in a URL.
    pub certificate: String,
    /// The header with the serial number, in hexadecimal digits.
    pub serial: String,
    /// The header with the name of the authority (RFC 2253).
    pub issuer: String,
    /// The header with the name of the client (RFC 2253).
    pub subject: String,
    /// The header with the SHA-1 fingerprint, in hexadecimal digits.
    pub fingerprint: String,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            send_headers: true,
            certificate: "X-Client-Cert".into(),
            serial: "X-Client-Cert-Serial".into(),
            issuer: "X-Client-Cert-Issuer-DN".into(),
            subject: "X-Client-Cert-Subject-DN".into(),
            fingerprint: "X-Client-Cert-Fingerprint".into(),
        }
    }
}

impl Config {
    fn names(&self) -> [(&'static str, &String); 5] {
        [
            ("certificate", &self.certificate),
            ("serial", &self.serial),
            ("issuer", &self.issuer),
            ("subject", &self.subject),
            ("fingerprint", &self.fingerprint),
        ]
    }
}

/// The plugin `client-certificate-headers`.
pub struct ClientCertificateHeaders;

impl Plugin for ClientCertificateHeaders {
    fn name(&self) -> &'static str {
        "client-certificate-headers"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, _: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        for (field, name) in config.names() {
            faults.check_name(field, name);
        }
        faults.done()?;
        Ok(Arc::new(HeadersFilter(config)))
    }
}

/// An instance of `client-certificate-headers`.
struct HeadersFilter(Config);

/// PEM with escapes as in a URL, as proxies write it.
fn escaped_pem(der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    let mut out = String::with_capacity(body.len() * 5 / 4 + 80);
    out.push_str("-----BEGIN%20CERTIFICATE-----%0A");
    for line in body.as_bytes().chunks(64) {
        for byte in line {
            match byte {
                b'+' => out.push_str("%2B"),
                b'/' => out.push_str("%2F"),
                b'=' => out.push_str("%3D"),
                character => out.push(char::from(*character)),
            }
        }
        out.push_str("%0A");
    }
    out.push_str("-----END%20CERTIFICATE-----%0A");
    out
}

impl Filter for HeadersFilter {
    fn phases(&self) -> Phases {
        Phases::REQUEST
    }

    fn on_request(&self, exchange: &mut Exchange) -> Outcome {
        let config = &self.0;
        let request = &mut exchange.request;
        for (_, name) in config.names() {
            request.headers.remove_owned(name.as_bytes());
        }
        let shown = request
            .client_certificates
            .as_ref()
            .filter(|_| config.send_headers);
        let facts = shown.and_then(|it| Some((it.chain.first()?, it.details()?, it.fingerprint()?)));
        let Some((own, details, fingerprint)) = facts else {
            return Outcome::Continue;
        };
        for (name, value) in [
            (&config.certificate, escaped_pem(own)),
            (&config.serial, details.serial),
            (&config.issuer, details.issuer),
            (&config.subject, details.subject),
            (&config.fingerprint, fingerprint),
        ] {
            request.headers.append(name.as_bytes(), value.as_bytes());
        }
        Outcome::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use weir_plugin::ClientCertificates;
    use weir_plugins_testkit::*;

    #[test]
    fn upstreams_get_what_was_shown_and_never_what_was_sent() {
        let forged = [
            ("x-client-cert", "forged"),
            ("X_Client_Cert_Serial", "1"),
            ("X-Client-Cert-Subject-DN", "CN=admin"),
        ];
        let mut parameters = rcgen::CertificateParams::new(["a.test".to_owned()]).expect("good");
        parameters.serial_number = Some(rcgen::SerialNumber::from(vec![0x0a, 0xff]));
        parameters
            .distinguished_name
            .push(rcgen::DnType::CommonName, "alice, x");
        parameters
            .distinguished_name
            .push(rcgen::DnType::OrganizationName, "Acme");
        let key = rcgen::KeyPair::generate().expect("a key");
        let der = parameters.self_signed(&key).expect("good").der().to_vec();
        for (send_headers, shows, count) in [(true, true, 5), (true, false, 0), (false, true, 0)] {
            let filter =
                build(&ClientCertificateHeaders, &json!({"send_headers": send_headers})).expect("valid");
            let mut call = exchange();
            prepare(&mut call, "GET /", &forged);
            call.request.client_certificates = shows.then(|| {
                Arc::new(ClientCertificates {
                    chain: vec![der.clone()],
                    is_verified: false,
                })
            });
            assert_eq!(word(&filter.on_request(&mut call)), "continue");
            let headers = lines(&call.request.headers);
            assert_eq!(headers.len(), count, "{headers:?}");
            if count > 0 {
                assert!(headers[0].starts_with("X-Client-Cert: -----BEGIN%20CERTIFICATE-----%0AMII"));
                assert_eq!(headers[1], "X-Client-Cert-Serial: 0AFF");
                assert_eq!(headers[3], "X-Client-Cert-Subject-DN: O=Acme,CN=alice\\, x");
                assert_eq!(headers[4].len(), "X-Client-Cert-Fingerprint: ".len() + 40);
            }
        }
        assert_eq!(
            refused_at(&ClientCertificateHeaders, &json!({"serial": "a b"})),
            ["serial"]
        );
        assert!(
            build(
                &ClientCertificateHeaders,
                &example(include_str!("client_certificate_headers.rs"))
            )
            .is_ok()
        );
    }
}
