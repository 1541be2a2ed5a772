//! References in documents to secrets that are kept elsewhere, and their locations.

use std::fmt;
use std::time::Duration;

/// What the names of Weir's own variables begin with.
const OWN: &str = "WEIR_";

/// The references of one dialect, and the vaults that its documents describe.
pub trait SecretSyntax: fmt::Debug + Send + Sync {
    /// Takes over a document if it describes a vault; `None`: it is gone. Says whether it does. The key is without the
    /// dialect's prefix.
    fn apply(&mut self, key: &str, value: Option<&[u8]>) -> bool;

    /// Whether a text is a reference. Asked for every text of a plugin's configuration.
    fn is_reference(&self, text: &str) -> bool;

    /// Where a reference leads. `environment` gives the values of variables.
    ///
    /// # Errors
    /// Nowhere, and why.
    fn locate(
        &self,
        reference: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<SecretTarget, String>;

    /// Which store a reference names, as [`SecretStore::name`] does; one that is broken may name one that is not there.
    fn store_of(&self, reference: &str) -> Option<String>;

    /// The stores that references may name: those that are always there, and those that documents describe.
    fn stores(&self) -> Vec<SecretStore>;

    /// The same, to ask it while documents change.
    fn snapshot(&self) -> Box<dyn SecretSyntax>;

    /// Whether a reference that leads nowhere stays as a text in a plugin's configuration, instead of leaving out the
    /// plugin. In a credential it never does: it would let in everybody who knows the reference.
    fn stays_text(&self, reference: &str) -> bool {
        let _unused = reference;
        false
    }
}

/// A store of secrets, without what opens it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretStore {
    /// What references call it.
    pub name: String,
    /// What it is, in the dialect's word: `env`, `hcv`, `vault`.
    pub kind: String,
    /// The key of the document that describes it, without the dialect's prefix; `None`: it is always there.
    pub key: Option<String>,
    /// Where it is asked, without user and password; `None`: in the environment of the process.
    pub address: Option<String>,
}

impl SecretStore {
    /// The environment of the process.
    pub fn environment() -> Self {
        Self {
            name: "env".to_owned(),
            kind: "env".to_owned(),
            key: None,
            address: None,
        }
    }
}

/// Where a reference leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretTarget {
    /// The secret.
    pub place: SecretLocation,
    /// What of it; `None`: all.
    pub field: Option<String>,
    /// How long it counts as fresh.
    pub life: Duration,
}

impl SecretTarget {
    /// How long a value counts as fresh if its vault says nothing.
    pub const LIFE: Duration = Duration::from_secs(60);
}

/// Where a value is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum SecretLocation {
    /// In a variable of the environment.
    Variable(String),
    /// Behind a URL of a vault that speaks as HashiCorp's does.
    Http {
        /// The address.
        url: String,
        /// `X-Vault-Token`.
        token: String,
        /// `X-Vault-Namespace`.
        namespace: Option<String>,
    },
}

impl SecretLocation {
    /// A variable of the environment. Those that set up Weir itself hold the keys of its Admin APIs; writers of documents
    /// must not read them.
    ///
    /// # Errors
    /// It is one of those.
    pub fn variable(name: &str) -> Result<Self, String> {
        let written = name.to_ascii_uppercase().replace('-', "_");
        if written.starts_with(OWN) {
            Err(format!("the variable {name} is Weir's own"))
        } else {
            Ok(Self::Variable(name.to_owned()))
        }
    }

    /// The origin of a URL: what is before the host or behind it may open the vault. `None`: it has none.
    pub fn origin(url: &str) -> Option<String> {
        let (scheme, rest) = url.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let host = authority.rsplit('@').next()?;
        Some(format!("{scheme}://{host}"))
    }
}

/// Tokens are secrets, and the rest of a URL may hold one.
impl fmt::Debug for SecretLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(formatter, "the variable {name}"),
            Self::Http { url, .. } => {
                formatter.write_str(&Self::origin(url).unwrap_or_else(|| "no URL".to_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_shown_without_what_opens_them() {
        for (url, expected) in [
            ("https://v:1/x?token=t", "https://v:1"),
            ("https://v?token=t/v1/kv/a", "https://v"),
            ("https://jack:t@v/x", "https://v"),
            ("https://v#t", "https://v"),
            ("t", "no URL"),
        ] {
            let place = SecretLocation::Http {
                url: url.to_owned(),
                token: "t".to_owned(),
                namespace: Some("t".to_owned()),
            };
            assert_eq!(format!("{place:?}"), expected, "{url}");
        }
    }
}
