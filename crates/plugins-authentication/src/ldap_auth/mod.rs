//! `ldap-auth`: recognises users by their passwords in an LDAP directory.
//!
//! ```yaml
//! host: ldap.example.com
//! tls: start-tls
//! base_dn: ou=people,dc=example,dc=com
//! attribute: uid
//! ```
//!
//! The user's name and password stand in `Authorization`, as for Basic authentication. The directory checks the password: by
//! the user's entry `uid=NAME,ou=people,…`, or with `search` by the one entry that has the name.
//!
//! Security: names are escaped, so that they cannot lead to another entry. An empty password is refused, as directories take
//! it for an anonymous bind and accept it. Calls are refused while the directory does not answer. Referrals are not
//! followed. Without TLS, passwords can be read on the way.

mod ber;
mod config;
mod dialogue;
mod filter;
mod groups;

pub use crate::consumer_names::ConsumerName;
pub use config::{Config, Credential, DirectoryTls, Groups, Search};

use crate::consumer_names::ConsumerNames;
use crate::identity::Gate;
use filter::{DirectoryFilter, Verdicts};
use serde::Deserialize as _;
use serde_json::Value;
use std::sync::Arc;
use weir_flow::expiring::ExpiringMap;
use weir_model::{Diagnostic, DocPath};
use weir_plugin::headers::is_name;
use weir_plugin::{BuildContext, CredentialKind, Filter, Plugin, parse_config};
use weir_plugins_shared::config_checks::ConfigErrors;

/// The most bytes of the cache.
const CACHE_BYTES: usize = 16 << 20;

/// The plugin `ldap-auth`.
pub struct LdapAuth(Arc<Verdicts>);

impl Default for LdapAuth {
    fn default() -> Self {
        Self(ExpiringMap::new(CACHE_BYTES))
    }
}

impl Plugin for LdapAuth {
    fn name(&self) -> &'static str {
        "ldap-auth"
    }

    fn config_schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn build(&self, config: &Value, context: &BuildContext<'_>) -> Result<Arc<dyn Filter>, Vec<Diagnostic>> {
        let mut config: Config = parse_config(config)?;
        let mut faults = ConfigErrors::default();
        for (field, text) in [
            ("host", &config.host),
            ("base_dn", &config.base_dn),
            ("attribute", &config.attribute),
        ] {
            if text.is_empty() {
                faults.add(field, "expected a text");
            }
        }
        if config.port == Some(0) {
            faults.add("port", "expected a port from 1 to 65535");
        }
        if config.schemes.is_empty() {
            faults.add("schemes", "expected at least one word");
        }
        if config.timeout_ms == 0 {
            faults.add("timeout_ms", "expected at least 1 millisecond");
        }
        if let Some(search) = &config.search {
            if search.bind_dn.is_some() && search.password.as_deref().unwrap_or_default().is_empty() {
                faults.add_at(&["search", "password"], "expected the password of `bind_dn`");
            }
            if search.size_limit < 2 {
                faults.add_at(&["search", "size_limit"], "expected at least 2");
            }
        }
        if let Some(groups) = &config.groups {
            if groups.attribute.is_empty() {
                faults.add_at(&["groups", "attribute"], "expected a text");
            }
            if groups
                .header
                .as_ref()
                .is_some_and(|name| !is_name(name.as_bytes()))
            {
                faults.add_at(&["groups", "header"], "expected a header name");
            }
        }
        faults.check_names("cleared_headers", &config.cleared_headers);
        faults.check_value("challenge", config.challenge.as_ref());
        faults.done()?;
        let groups_header = config.groups.as_ref().and_then(|groups| groups.header.clone());
        config.cleared_headers.extend(groups_header);
        let gate = Gate::build("ldap-auth", config.identity.clone(), context)?;
        let index = context.credential_index("ldap-auth", |credential| {
            let credential = Credential::deserialize(credential).ok()?;
            Some((credential.user_dn.into_bytes(), ()))
        });
        Ok(Arc::new(DirectoryFilter {
            config,
            gate,
            index,
            names: ConsumerNames::of(context),
            verdicts: Arc::clone(&self.0),
        }))
    }

    fn credentials(&self) -> Option<CredentialKind> {
        Some(CredentialKind {
            identities: &["user_dn"],
            schema: schemars::schema_for!(Credential),
            check: |config| {
                let credential: Credential = parse_config(config)?;
                match credential.user_dn.is_empty() {
                    true => Err(vec![Diagnostic::error(
                        DocPath::root().field("user_dn"),
                        "expected the name of an entry",
                    )]),
                    false => Ok(()),
                }
            },
        })
    }

    fn warnings(&self, config: &Value, _: &BuildContext<'_>) -> Vec<Diagnostic> {
        let is_open = parse_config::<Config>(config).is_ok_and(|config| config.tls == DirectoryTls::None);
        let message = "passwords can be read on the way to the directory: use `start-tls` or `ldaps`";
        match is_open {
            true => vec![Diagnostic::warning(DocPath::root().field("tls"), message)],
            false => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
