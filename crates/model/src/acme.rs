//! Certificates that an authority signs on demand (ACME, RFC 8555): for which names, by which authority, and how the
//! gateway shows that the names are its own.

use crate::{ClientCertificate, Diagnostic, DocPath, Model, TlsVersion, is_default};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;

/// Most names in one certificate: what common authorities sign.
const MAX_NAMES: usize = 100;
/// The longest name of an entry, in bytes; it is part of a document's key.
const MAX_ENTRY_NAME: usize = 200;

/// One certificate that is to be had, and renewed, by ACME.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Acme {
    /// Unique name of this entry: letters, digits, `-`, `_`, `.` and `:`. The certificate is kept under it.
    pub name: String,
    /// The host names that the certificate is for.
    pub hosts: Vec<String>,
    /// The URL of the authority's directory.
    #[serde(default = "lets_encrypt", skip_serializing_if = "is_lets_encrypt")]
    pub directory: String,
    /// Whether the authority's terms of service are accepted; those that have some sign nothing without.
    #[serde(default, skip_serializing_if = "is_default")]
    pub terms_accepted: bool,
    /// Contact addresses for the authority: `mailto:` and an address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contact: Vec<String>,
    /// How the gateway shows that the names are its own.
    #[serde(default, skip_serializing_if = "is_default")]
    pub challenge: AcmeChallenge,
    /// The kind of key that the certificate gets.
    #[serde(default, skip_serializing_if = "is_default")]
    pub key: AcmeKey,
    /// Days before the certificate's end at which it is renewed; absent: when a third of its life is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew_before_days: Option<u32>,
    /// An account that exists with the authority already (RFC 8555, section 7.3.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external_account: Option<ExternalAccount>,
    /// The authorities, in PEM, that may have signed the certificate of the directory's own server; absent: those of
    /// the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorities: Option<String>,
    /// The certificate that clients of these names must show; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientCertificate>,
    /// The oldest version of TLS for these names.
    #[serde(default, skip_serializing_if = "is_default")]
    pub min_version: TlsVersion,
}

/// How a gateway shows that a name is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AcmeChallenge {
    /// By an answer on port 80 of the name (RFC 8555, section 8.3).
    #[default]
    #[serde(rename = "http-01")]
    Http01,
    /// By a certificate on port 443 of the name (RFC 8737).
    #[serde(rename = "tls-alpn-01")]
    TlsAlpn01,
}

/// A kind of key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AcmeKey {
    /// ECDSA on P-256.
    #[default]
    #[serde(rename = "ecdsa-p256")]
    EcdsaP256,
    /// ECDSA on P-384.
    #[serde(rename = "ecdsa-p384")]
    EcdsaP384,
    /// RSA of 2048 bits.
    #[serde(rename = "rsa-2048")]
    Rsa2048,
    /// RSA of 3072 bits.
    #[serde(rename = "rsa-3072")]
    Rsa3072,
    /// RSA of 4096 bits.
    #[serde(rename = "rsa-4096")]
    Rsa4096,
}

/// An account that exists with an authority. `Debug` does not show the key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalAccount {
    /// The key's name, as the authority gave it.
    pub id: String,
    /// The key, in URL-safe base64, as the authority gave it.
    pub key: String,
}

impl fmt::Debug for ExternalAccount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ExternalAccount")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The directory of Let's Encrypt.
fn lets_encrypt() -> String {
    "https://acme-v02.api.letsencrypt.org/directory".to_owned()
}

fn is_lets_encrypt(directory: &str) -> bool {
    directory == lets_encrypt()
}

impl Acme {
    /// An entry for these hosts that says nothing else than what it must.
    pub fn new(name: String, hosts: Vec<String>) -> Self {
        Self {
            name,
            hosts,
            directory: lets_encrypt(),
            terms_accepted: false,
            contact: Vec::new(),
            challenge: AcmeChallenge::default(),
            key: AcmeKey::default(),
            renew_before_days: None,
            external_account: None,
            authorities: None,
            client: None,
            min_version: TlsVersion::default(),
        }
    }

    /// Whether nothing is wrong with the entry by itself.
    pub fn is_good(&self) -> bool {
        let mut found = Vec::new();
        self.check(&DocPath::root(), &mut found);
        found.is_empty()
    }

    /// What is wrong with the entry that stands at `place`.
    fn check(&self, place: &DocPath, found: &mut Vec<Diagnostic>) {
        let mut refuse = |place: DocPath, message: String| found.push(Diagnostic::error(place, message));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        if self.name.is_empty() || self.name.len() > MAX_ENTRY_NAME || !self.name.bytes().all(is_plain) {
            let message = "expected a name of letters, digits, '-', '_', '.' and ':'";
            refuse(place.field("name"), message.to_owned());
        }
        if self.hosts.is_empty() || self.hosts.len() > MAX_NAMES {
            refuse(
                place.field("hosts"),
                format!("expected 1 to {MAX_NAMES} host names"),
            );
        }
        for (index, host) in self.hosts.iter().enumerate() {
            let place = || place.field("hosts").index(index);
            if host.contains('*') {
                let message =
                    "a certificate for a wildcard needs a challenge over DNS, which Weir does not answer";
                refuse(place(), message.to_owned());
            } else if !is_host(host) {
                let message = format!("expected a host name, found '{}'", host.escape_debug());
                refuse(place(), message);
            }
        }
        if !self.directory.starts_with("https://") {
            refuse(place.field("directory"), "expected a URL with https".to_owned());
        }
        // Other authorities have no terms, or report it in their response.
        if !self.terms_accepted && self.directory.contains(".letsencrypt.org/") {
            let message =
                "expected true: Let's Encrypt signs nothing until its terms of service are accepted";
            refuse(place.field("terms_accepted"), message.to_owned());
        }
        for (index, contact) in self.contact.iter().enumerate() {
            if !contact.strip_prefix("mailto:").is_some_and(|it| it.contains('@')) {
                let place = place.field("contact").index(index);
                refuse(place, "expected 'mailto:' and an address".to_owned());
            }
        }
        if self.renew_before_days == Some(0) {
            refuse(place.field("renew_before_days"), "expected at least 1".to_owned());
        }
    }
}

/// A DNS name with at least one label: letters, digits and hyphens (RFC 1123, section 2.1).
fn is_host(name: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    name.len() <= 253 && !is_address && name.split('.').all(is_label)
}

impl Model {
    pub(crate) fn check_acme(&self, found: &mut Vec<Diagnostic>) {
        let mut names = HashSet::new();
        for (index, entry) in self.acme.iter().enumerate() {
            let place = DocPath::root().field("acme").index(index);
            if !names.insert(entry.name.as_str()) {
                let message = format!("'{}' is used more than once", entry.name);
                found.push(Diagnostic::error(place.field("name"), message));
            }
            entry.check(&place, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn found(change: &Value) -> Vec<String> {
        let mut entry = json!({"name": "a", "hosts": ["a.test"], "terms_accepted": true});
        for (field, value) in change.as_object().expect("a map") {
            entry[field] = value.clone();
        }
        let model: Model = serde_json::from_value(json!({"acme": [entry]})).expect("a model");
        let found = model.validate();
        found
            .iter()
            .map(|it| format!("{}: {}", it.path, it.message))
            .collect()
    }

    #[test]
    fn what_no_authority_would_sign_is_refused_with_its_place() {
        let many: Vec<String> = (0..101).map(|number| format!("{number}.test")).collect();
        assert_eq!(found(&json!({})), Vec::<String>::new());
        for (change, place) in [
            (json!({"name": ""}), "acme[0].name"),
            (json!({"name": "a/b"}), "acme[0].name"),
            (json!({"hosts": []}), "acme[0].hosts"),
            (json!({"hosts": many}), "acme[0].hosts"),
            (json!({"hosts": ["a.test", "*.b.test"]}), "acme[0].hosts[1]"),
            (json!({"hosts": ["127.0.0.1"]}), "acme[0].hosts[0]"),
            (json!({"hosts": ["a..test"]}), "acme[0].hosts[0]"),
            (json!({"hosts": ["a_b.test"]}), "acme[0].hosts[0]"),
            (json!({"hosts": ["a.test\n"]}), "acme[0].hosts[0]"),
            (json!({"directory": "http://127.0.0.1/dir"}), "acme[0].directory"),
            (json!({"terms_accepted": false}), "acme[0].terms_accepted"),
            (json!({"contact": ["ops@a.test"]}), "acme[0].contact[0]"),
            (json!({"renew_before_days": 0}), "acme[0].renew_before_days"),
        ] {
            let found = found(&change);
            assert!(
                found.len() == 1 && found[0].starts_with(&format!("{place}: ")),
                "{change}: {found:?}"
            );
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let account = ExternalAccount {
            id: "one".to_owned(),
            key: "secret".to_owned(),
        };
        assert!(!format!("{account:?}").contains("secret"));
    }
}
