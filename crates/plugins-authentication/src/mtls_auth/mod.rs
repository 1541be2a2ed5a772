//! `mtls-auth`: identifies callers by a certificate.
//!
//! ```yaml
//! authorities: []
//! consumer_by: [custom-id, username]
//! ```
//!
//! Clients of the route's names are asked for a certificate in the TLS handshake; clients of other names are not. Each
//! call is checked: its certificate must lead to one of `authorities`, be within its validity period, and not be
//! revoked. Alternatively a proxy in front ends TLS and sends the certificate in a header (`source`).
//!
//! Security: a certificate in a header is accepted only from the peers in `trusted`; the header of other peers is
//! removed. Revocation lists are fetched only from addresses in certificates with a valid signature.

mod filter;
mod presented_certificates;
mod revocation_list;
mod verify;

use crate::consumer_names::{ConsumerName, ConsumerNames, scoped_key};
use crate::http_rules::HttpRules;
use crate::identity::{self, Gate};
use filter::{CertificateFilter, Crls, Verdicts};
use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use verify::Authorities;
use weir_flow::expiring::ExpiringMap;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::{BuildContext, CredentialKind, Filter, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

/// Configuration of `mtls-auth`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The authorities that may have signed the certificates, in PEM; empty: no certificate is accepted, except
    /// `registered` ones.
    pub authorities: Vec<String>,
    /// The scope of credentials for `mtls-auth`: only their certificates are accepted, from any signer, and lead to
    /// their consumers. With `authorities`, one of those must also have signed them. Absent: names lead to consumers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registered: Option<String>,
    /// Whether an intermediate authority may be the end of the chain.
    #[serde(default)]
    pub partial_chain: bool,
    /// The source of the certificate.
    #[serde(default)]
    pub source: Source,
    /// By which names consumers are found: the alternative names of the certificate, then its common name.
    #[serde(default = "standard_names")]
    pub consumer_by: Vec<ConsumerName>,
    /// Whether calls without a consumer of such a name are refused.
    #[serde(default = "weir_plugins_shared::yes")]
    pub consumer_required: bool,
    /// The part of the certificate that names its holder's group, for `acl`, if no consumer is found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<CertificateGroup>,
    /// Id or name of the consumer for callers with a valid certificate and no consumer of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_consumer: Option<String>,
    /// How the revocation of certificates is checked.
    #[serde(default)]
    pub revocation: Revocation,
    /// How long what was found about a certificate is used again, in seconds.
    #[serde(default = "one_minute")]
    pub cache_seconds: u64,
    /// How certificate revocation lists (CRLs) are fetched.
    #[serde(default)]
    pub http: HttpRules,
    /// The headers that name the caller to upstreams, and the anonymous consumer.
    #[serde(default)]
    pub identity: identity::Config,
}

/// What of a certificate names a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CertificateGroup {
    /// The common name of its subject.
    CommonName,
    /// All of its subject.
    Subject,
}

/// The source of the certificate.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Source {
    /// The TLS handshake.
    #[default]
    Handshake,
    /// A header that a proxy in front sets.
    Header(HeaderSource),
}

/// A header with a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeaderSource {
    /// Its name.
    pub name: String,
    /// Its form.
    pub encoding: HeaderEncoding,
    /// The peers whose header is trusted.
    #[schemars(with = "Vec<String>")]
    pub trusted: Vec<IpNet>,
}

/// The form of a certificate in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderEncoding {
    /// PEM, with escapes as in a URL.
    Url,
    /// DER in Base64, also with the colons of RFC 9440.
    Base64,
}

/// How revocation is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Revocation {
    /// Revocation is not checked.
    Skip,
    /// Revoked certificates are refused. If no list is available, the certificate is accepted.
    #[default]
    Lenient,
    /// Only certificates with an available list that does not name them are accepted.
    Strict,
}

impl Config {
    /// The defaults of all options, with these authorities.
    pub fn new(authorities: Vec<String>) -> Self {
        Self {
            authorities,
            registered: None,
            partial_chain: false,
            source: Source::default(),
            consumer_by: standard_names(),
            consumer_required: true,
            group: None,
            default_consumer: None,
            revocation: Revocation::default(),
            cache_seconds: one_minute(),
            http: HttpRules::default(),
            identity: identity::Config::default(),
        }
    }
}

/// A credential of `mtls-auth`: a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    /// The scope; instances with the same one in `registered` look at it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// SHA-256 of the certificate in DER, as 64 hexadecimal digits in small letters; unique in its scope.
    #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
    pub fingerprint: String,
}

fn standard_names() -> Vec<ConsumerName> {
    vec![ConsumerName::CustomId, ConsumerName::Username]
}

fn one_minute() -> u64 {
    60
}

const NAME: &str = "mtls-auth";
/// The most bytes of what was found about certificates, and of lists.
const VERDICT_BYTES: usize = 8 << 20;
const LIST_BYTES: usize = 64 << 20;

/// The plugin `mtls-auth`.
pub struct MtlsAuth {
    verdicts: Arc<Verdicts>,
    lists: Arc<Crls>,
}

impl Default for MtlsAuth {
    fn default() -> Self {
        Self {
            verdicts: ExpiringMap::new(VERDICT_BYTES),
            lists: ExpiringMap::new(LIST_BYTES),
        }
    }
}

impl Plugin for MtlsAuth {
    fn name(&self) -> &'static str {
        "mtls-auth"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        let authorities = Authorities::read(&config.authorities, config.partial_chain);
        let authorities = authorities.unwrap_or_else(|index| {
            let place = DocPath::root().field("authorities").index(index);
            let message = "expected the certificates of authorities in PEM";
            faults.extend(vec![Diagnostic::error(place, message)]);
            Authorities::default()
        });
        if let Source::Header(header) = &config.source
            && !weir_plugin::headers::is_name(header.name.as_bytes())
        {
            faults.add_at(&["source", "header", "name"], "expected a header name");
        }
        let registered = config.registered.as_ref().map(|_| {
            context.credential_index(NAME, |credential| {
                let credential = Credential::deserialize(credential).ok()?;
                Some((scoped_key(&credential.scope, &credential.fingerprint), ()))
            })
        });
        let names = ConsumerNames::of(context);
        let default_consumer = config.default_consumer.as_ref().map(|name| {
            let found = names.find(name, &[ConsumerName::Id, ConsumerName::Username]);
            if found.is_none() && !context.consumers_may_be_missing {
                faults.add(
                    "default_consumer",
                    format!("no consumer has the id or name '{name}'"),
                );
            }
            found.cloned()
        });
        config.http.check(&mut faults);
        faults.done()?;
        let mut rules = config.http.rules();
        // Lists of large authorities are long.
        rules.max_answer_bytes = 16 << 20;
        Ok(Arc::new(CertificateFilter {
            gate: Gate::build(NAME, config.identity.clone(), context)?,
            key: filter::key(&config),
            default_consumer: default_consumer.flatten(),
            verdicts: Arc::clone(&self.verdicts),
            lists: Arc::clone(&self.lists),
            authorities,
            registered,
            names,
            rules,
            config,
        }))
    }

    fn credentials(&self) -> Option<CredentialKind> {
        Some(CredentialKind {
            // A certificate may be there once for each scope.
            identities: &[],
            schema: schemars::schema_for!(Credential),
            check: |config| {
                let credential: Credential = parse_config(config)?;
                let mut faults = ConfigErrors::default();
                let is_digit = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
                if credential.fingerprint.len() != 64 || !credential.fingerprint.bytes().all(is_digit) {
                    faults.add("fingerprint", "expected 64 hexadecimal digits in small letters");
                }
                faults.done()
            },
        })
    }

    fn warnings(&self, config: &Value, _: &BuildContext<'_>) -> Vec<Diagnostic> {
        let Ok(config) = parse_config::<Config>(config) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        let read = Authorities::read(&config.authorities, config.partial_chain);
        if !config.authorities.is_empty() && read.is_ok_and(|it| it.has_no_root()) {
            let message = "none of the authorities is signed by itself: no certificate is good without `partial_chain: true`";
            found.push(Diagnostic::warning(DocPath::root().field("authorities"), message));
        }
        if let Source::Header(HeaderSource { trusted, .. }) = &config.source
            && trusted.iter().any(|net| net.prefix_len() == 0)
        {
            let place = DocPath::root().field("source").field("header").field("trusted");
            let message = "everybody is believed: a caller can send the certificate of another one";
            found.push(Diagnostic::warning(place, message));
        }
        found
    }
}

#[cfg(test)]
mod tests;
