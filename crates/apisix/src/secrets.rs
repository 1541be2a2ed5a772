//! How APISIX's documents refer to secrets: `$env://NAME/FIELD` and `$secret://vault/ID/PATH/FIELD`, and the vaults that
//! they describe.

use serde_json::{Map, Value};
use std::collections::HashMap;
use weir_dialect::{SecretLocation, SecretStore, SecretSyntax, SecretTarget};

/// The original's prefix for the name of a variable, in any case.
const VARIABLE: &str = "$env://";
/// Its prefix for the place in a vault.
const SECRET: &str = "$secret://";

/// A variable, and what of its value if that is JSON.
fn variable(text: &str) -> Option<(&str, Option<&str>)> {
    let start = text.get(..VARIABLE.len())?;
    if !start.eq_ignore_ascii_case(VARIABLE) {
        return None;
    }
    let rest = text.get(VARIABLE.len()..)?;
    Some(match rest.split_once('/') {
        Some((name, field)) => (name, Some(field)),
        None => (rest, None),
    })
}

/// The place in a vault. One that is broken leads to what is not there.
#[derive(Debug, PartialEq, Eq)]
struct VaultReference<'t> {
    /// Which kind of vault, and which one: `vault/ID`.
    vault: String,
    /// The place in it.
    path: &'t str,
    /// The part of the secret.
    field: &'t str,
}

impl<'t> VaultReference<'t> {
    fn of(text: &'t str) -> Option<Self> {
        let inner = text.strip_prefix(SECRET)?;
        let mut parts = inner.splitn(3, '/');
        let mut part = || parts.next().unwrap_or_default();
        let (kind, id, rest) = (part(), part(), part());
        let (path, field) = rest.rsplit_once('/').unwrap_or_default();
        Some(Self {
            vault: format!("{kind}/{id}"),
            path,
            field,
        })
    }
}

/// APISIX's references, and its vaults: `vault/ID`.
#[derive(Clone, Default)]
pub struct Vaults(HashMap<String, Map<String, Value>>);

/// Their configurations hold tokens.
impl std::fmt::Debug for Vaults {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Vaults").finish_non_exhaustive()
    }
}

impl SecretSyntax for Vaults {
    fn apply(&mut self, key: &str, value: Option<&[u8]>) -> bool {
        let Some(name) = key.strip_prefix("secrets/") else {
            return false;
        };
        if name.split('/').count() != 2 {
            return false;
        }
        match value.and_then(|value| serde_json::from_slice(value).ok()) {
            Some(fields) => self.0.insert(name.to_owned(), fields),
            None => self.0.remove(name),
        };
        true
    }

    fn is_reference(&self, text: &str) -> bool {
        text.starts_with('$') && (text.starts_with(SECRET) || variable(text).is_some())
    }

    fn locate(
        &self,
        reference: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<SecretTarget, String> {
        if let Some((name, field)) = variable(reference) {
            return Ok(SecretTarget {
                place: SecretLocation::variable(name)?,
                field: field.map(str::to_owned),
                life: SecretTarget::LIFE,
            });
        }
        let reference = VaultReference::of(reference).ok_or("it is not a valid reference")?;
        let VaultReference { vault, path, field } = &reference;
        if !vault.starts_with("vault/") {
            return Err(format!(
                "vaults of the kind '{vault}' are not available in this version of Weir"
            ));
        }
        let config = self
            .0
            .get(vault)
            .ok_or_else(|| format!("there is no '{vault}'"))?;
        let text = |name: &str| config.get(name).and_then(Value::as_str);
        let token = text("token").unwrap_or_default();
        // A vault's token may stand in the environment.
        let token = match variable(token) {
            Some((name, _)) => {
                SecretLocation::variable(name)?;
                environment(name).unwrap_or_default()
            }
            None => token.to_owned(),
        };
        let (uri, prefix) = (
            text("uri").unwrap_or_default(),
            text("prefix").unwrap_or_default(),
        );
        Ok(SecretTarget {
            place: SecretLocation::Http {
                url: format!(
                    "{}/v1/{}/{path}",
                    uri.trim_end_matches('/'),
                    prefix.trim_matches('/')
                ),
                token,
                namespace: text("namespace").map(str::to_owned),
            },
            field: Some((*field).to_owned()),
            life: SecretTarget::LIFE,
        })
    }

    fn store_of(&self, reference: &str) -> Option<String> {
        match variable(reference) {
            Some(_) => Some(SecretStore::environment().name),
            None => VaultReference::of(reference).map(|it| it.vault),
        }
    }

    fn stores(&self) -> Vec<SecretStore> {
        let described = self.0.iter().map(|(name, config)| SecretStore {
            name: name.clone(),
            kind: name.split('/').next().unwrap_or_default().to_owned(),
            key: Some(format!("secrets/{name}")),
            address: config
                .get("uri")
                .and_then(Value::as_str)
                .and_then(SecretLocation::origin),
        });
        std::iter::once(SecretStore::environment())
            .chain(described)
            .collect()
    }

    fn snapshot(&self) -> Box<dyn SecretSyntax> {
        Box::new(self.clone())
    }

    /// In the original a variable that is not set stays what it is.
    fn stays_text(&self, reference: &str) -> bool {
        variable(reference).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_shown_without_their_credentials() {
        let mut vaults = Vaults::default();
        for (id, uri) in [("1", "https://jack:secret@v:8200/x?token=t"), ("2", "no address")] {
            let document = serde_json::json!({"uri": uri, "prefix": "kv", "token": "t"}).to_string();
            assert!(vaults.apply(&format!("secrets/vault/{id}"), Some(document.as_bytes())));
        }
        let mut stores: Vec<_> = vaults
            .stores()
            .into_iter()
            .map(|it| (it.name, it.kind, it.key, it.address))
            .collect();
        stores.sort();
        let text = |it: &str| it.to_owned();
        let vault = |id: &str, address: Option<&str>| {
            let name = format!("vault/{id}");
            let key = format!("secrets/{name}");
            (name, text("vault"), Some(key), address.map(text))
        };
        let expected = [
            (text("env"), text("env"), None, None),
            vault("1", Some("https://v:8200")),
            vault("2", None),
        ];
        assert_eq!(stores, expected);
        for (reference, store) in [
            ("$env://A/b", Some("env")),
            ("$secret://vault/1/jack/key", Some("vault/1")),
            ("a", None),
        ] {
            assert_eq!(vaults.store_of(reference).as_deref(), store, "{reference}");
        }
    }

    #[test]
    fn references_are_distinguished_from_texts() {
        for (text, is_reference, stays) in [
            ("$env://A", true, true),
            ("$ENV://A/b", true, true),
            ("$secret://vault/1/jack/key", true, false),
            ("$secret://", true, false),
            ("$secret", false, false),
            ("{vault://env/a}", false, false),
            ("ééé€€", false, false),
            ("", false, false),
        ] {
            let vaults = Vaults::default();
            let found = (vaults.is_reference(text), vaults.stays_text(text));
            assert_eq!(found, (is_reference, stays), "{text}");
        }
        assert_eq!(variable("$ENV://A/b"), Some(("A", Some("b"))));
        let broken = VaultReference {
            vault: "/".to_owned(),
            path: "",
            field: "",
        };
        assert_eq!(VaultReference::of("$secret://"), Some(broken));
    }

    #[test]
    fn references_lead_into_vaults() {
        let mut vaults = Vaults::default();
        for (key, value) in [
            (
                "secrets/vault/3",
                r#"{"uri":"http://v:8200","prefix":"kv","token":"$env://WEIR_TOKEN"}"#,
            ),
            (
                "secrets/vault/1",
                r#"{"uri":"http://v:8200","prefix":"kv/apisix","token":"$env://T"}"#,
            ),
        ] {
            assert!(vaults.apply(key, Some(value.as_bytes())), "{key}");
        }
        assert!(!vaults.apply("routes/1", Some(b"{}")));
        let environment = |name: &str| (name == "T").then(|| "of-env".to_owned());
        for (text, expected) in [
            ("$env://A", "the variable A None 60"),
            (
                "$secret://vault/1/jack/key",
                "http://v:8200/v1/kv/apisix/jack Some(\"key\") 60",
            ),
            ("$secret://vault/2/jack/key", "there is no 'vault/2'"),
            (
                "$secret://vault/3/jack/key",
                "the variable WEIR_TOKEN is Weir's own",
            ),
            ("$env://WEIR_STORE/a", "the variable WEIR_STORE is Weir's own"),
            ("$ENV://weir-token", "the variable weir-token is Weir's own"),
        ] {
            let found = vaults.locate(text, &environment);
            let location = found.map(|it| {
                let place = match &it.place {
                    SecretLocation::Http { url, token, .. } => {
                        assert_eq!(token, "of-env");
                        url.clone()
                    }
                    variable @ SecretLocation::Variable(_) => format!("{variable:?}"),
                };
                format!("{place} {:?} {}", it.field, it.life.as_secs())
            });
            assert_eq!(location.unwrap_or_else(|error| error), expected, "{text}");
        }
    }
}
