//! Certificates: those that clients are shown by server name, and what services are met with.

use crate::document::{Document, ServerCertificate, Service, Upstream};
use std::collections::HashMap;
use uuid::Uuid;
use weir_model::{KeyPair, TlsVersion, UpstreamTls};

/// The certificates and authorities of a document by id.
pub struct Certificates<'d> {
    by_id: HashMap<Uuid, &'d ServerCertificate>,
    authorities: HashMap<Uuid, &'d str>,
}

impl<'d> Certificates<'d> {
    /// Those of a document.
    pub fn of(document: &'d Document) -> Self {
        let certificates = document.certificates.iter().map(|it| &it.value);
        let authorities = document.ca_certificates.iter().map(|it| &it.value);
        Self {
            by_id: certificates.map(|it| (it.id, it)).collect(),
            authorities: authorities.map(|it| (it.id, it.cert.as_str())).collect(),
        }
    }

    /// How the targets of a service are met over TLS, whose host is the name of `upstream`, if there is one. Without a word
    /// on it the original checks no certificate. The certificate of the service comes before that of the upstream.
    pub fn upstream_tls(&self, service: &Service, upstream: Option<&Upstream>) -> UpstreamTls {
        let ids = service.ca_certificates.iter().flatten();
        let authorities: Vec<&str> = ids.filter_map(|id| self.authorities.get(id).copied()).collect();
        let of_upstream = upstream.and_then(|it| it.client_certificate);
        let presented = service.client_certificate.or(of_upstream);
        let presented = presented.and_then(|id| self.by_id.get(&id));
        UpstreamTls {
            verify: service.tls_verify.unwrap_or(false),
            authorities: (!authorities.is_empty()).then(|| authorities.join("\n")),
            server_name: None,
            certificate: presented.map(|certificate| key_pair(&certificate.cert, &certificate.key)),
        }
    }
}

/// The certificates for clients, in the document's order.
pub fn translate(document: &Document) -> Vec<weir_model::Certificate> {
    let mut names: HashMap<Uuid, Vec<String>> = HashMap::new();
    for sni in document
        .snis
        .iter()
        .map(|it| &it.value)
        .filter(|it| can_be_asked(&it.name))
    {
        names.entry(sni.certificate).or_default().push(sni.name.clone());
    }
    let certificates = document.certificates.iter().filter_map(|it| {
        let certificate = &it.value;
        let names = names.remove(&certificate.id)?;
        let alternate = certificate.cert_alt.as_ref().zip(certificate.key_alt.as_ref());
        let mut key_pairs = vec![key_pair(&certificate.cert, &certificate.key)];
        key_pairs.extend(alternate.map(|(certificate, key)| key_pair(certificate, key)));
        Some(weir_model::Certificate {
            names,
            key_pairs,
            client: None,
            min_version: TlsVersion::default(),
            ocsp_stapling: None,
        })
    });
    certificates.collect()
}

/// Whether the original looks for this name: what stands next to a wildcard is a dot.
fn can_be_asked(name: &str) -> bool {
    name == "*" || !name.contains('*') || name.starts_with("*.") || name.ends_with(".*")
}

fn key_pair(certificate: &str, key: &str) -> KeyPair {
    KeyPair {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    }
}
