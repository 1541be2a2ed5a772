//! Certificates: what clients are shown, what they must show, and what upstreams are shown.

use crate::document::{Documents, Item, Ssl};
use weir_model::{Certificate, ClientCertificate, Diagnostic, KeyPair, OcspStapling, TlsVersion};

/// The certificates for clients, of all documents that are on. References to secrets stay what they are.
pub fn translate(documents: &Documents, diagnostics: &mut Vec<Diagnostic>) -> Vec<Certificate> {
    let presented = documents
        .ssls
        .iter()
        .filter(|item| item.value.kind == "server" && item.value.status == 1);
    presented
        .map(|item| {
            let ssl = &item.value;
            let client = ssl.client.as_ref();
            let mut certificate = Certificate {
                names: ssl.names().cloned().collect(),
                key_pairs: ssl
                    .pairs()
                    .map(|(certificate, key)| pair(certificate, key))
                    .collect(),
                client: client.map(|client| ClientCertificate {
                    authorities: client.ca.clone(),
                    optional: false,
                    exempt_paths: exempt_paths(item, &client.skip_mtls_uri_regex, diagnostics),
                }),
                min_version: min_version(ssl),
                ocsp_stapling: ocsp_stapling(ssl),
            };
            if ssl.refuses_handshakes {
                certificate.refuse_handshakes();
            }
            certificate
        })
        .collect()
}

/// The expressions of paths for which clients need no certificate. One that cannot be served exempts no path.
fn exempt_paths(item: &Item<Ssl>, written: &[String], diagnostics: &mut Vec<Diagnostic>) -> Vec<String> {
    let place = || item.path.field("client").field("skip_mtls_uri_regex");
    let mut served = Vec::with_capacity(written.len());
    for (index, expression) in written.iter().enumerate() {
        match regex::bytes::Regex::new(expression) {
            Ok(_) => served.push(expression.clone()),
            Err(error) => {
                // The lines before it repeat the expression.
                let error = error.to_string();
                let reason = error.lines().last().unwrap_or_default();
                let reason = reason.trim_start_matches("error: ");
                let message = format!("this exempts no path from client certificates: {reason}");
                diagnostics.push(Diagnostic::dropped(place().index(index), message));
            }
        }
    }
    served
}

/// The client certificate for upstreams that name one by its id; `None`: there is none to show.
pub fn of_upstream(documents: &Documents, id: &str) -> Option<KeyPair> {
    let item = documents.ssls.iter().find(|item| item.id == id)?;
    (item.value.kind == "client").then(|| pair(&item.value.cert, &item.value.key))
}

fn pair(certificate: &str, key: &str) -> KeyPair {
    KeyPair {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
    }
}

/// How what responders say is shown, if it is.
fn ocsp_stapling(ssl: &Ssl) -> Option<OcspStapling> {
    let stapling = ssl.ocsp_stapling.as_ref().filter(|stapling| stapling.enabled)?;
    Some(OcspStapling {
        skip_verify: stapling.skip_verify,
        cache_ttl_seconds: stapling.cache_ttl.try_into().unwrap_or(u32::MAX),
    })
}

/// The oldest version that is named and that there is: TLS 1.1 is no more.
fn min_version(ssl: &Ssl) -> TlsVersion {
    let only_newest = ssl
        .ssl_protocols
        .as_ref()
        .is_some_and(|versions| !versions.is_empty() && versions.iter().all(|version| version == "TLSv1.3"));
    match only_newest {
        true => TlsVersion::Tls13,
        false => TlsVersion::Tls12,
    }
}
