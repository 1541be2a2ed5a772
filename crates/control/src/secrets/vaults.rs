//! The vaults that documents describe, and where a reference leads in them.

use super::reference::Reference;
use crate::http::host_of;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::time::Duration;

/// How long a value counts as fresh, where its vault says nothing.
const LIFE: Duration = Duration::from_secs(60);

/// What the names of Weir's own variables begin with.
const OWN: &str = "WEIR_";
/// What the keys of Kong's documents begin with that are of the workspace that is always there.
const DEFAULT_WORKSPACE: &str = "kong/default/";

/// Where a value is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Place {
    /// In a variable of the environment.
    Variable(String),
    /// Behind a URL of a vault that speaks as HashiCorp's does.
    Http {
        /// What is asked for.
        url: String,
        /// `X-Vault-Token`.
        token: String,
        /// `X-Vault-Namespace`.
        namespace: Option<String>,
    },
}

impl Place {
    /// A variable of the environment. Those that set up Weir itself hold the keys of its Admin APIs, which are nobody's
    /// to read who may write documents.
    ///
    /// # Errors
    /// It is one of those.
    pub fn variable(name: &str) -> Result<Self, String> {
        let written = name.to_ascii_uppercase().replace('-', "_");
        match written.starts_with(OWN) {
            true => Err(format!("the variable {name} is Weir's own")),
            false => Ok(Self::Variable(name.to_owned())),
        }
    }

    /// Behind a URL of a vault.
    ///
    /// # Errors
    /// The URL is none that can be asked.
    fn http(url: String, token: String, namespace: Option<&str>) -> Result<Self, String> {
        host_of(&url).map_err(|error| error.to_string())?;
        Ok(Self::Http {
            url,
            token,
            namespace: namespace.map(str::to_owned),
        })
    }
}

/// Tokens are secrets.
impl std::fmt::Debug for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Variable(name) => write!(formatter, "the variable {name}"),
            Self::Http { url, .. } => write!(formatter, "{url}"),
        }
    }
}

/// Where a reference leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretTarget {
    /// The secret.
    pub place: Place,
    /// What of it.
    pub field: Option<String>,
    /// How long it counts as fresh.
    pub life: Duration,
}

/// The vaults, by what references call them.
#[derive(Default)]
pub struct Vaults {
    /// Kong's by their keys: prefix, kind and configuration.
    kong: HashMap<String, (String, String, Map<String, Value>)>,
    /// APISIX's: `vault/ID`.
    apisix: HashMap<String, Map<String, Value>>,
}

/// Their configurations hold tokens.
impl std::fmt::Debug for Vaults {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Vaults").finish_non_exhaustive()
    }
}

impl Vaults {
    /// Takes over a document, where it describes a vault. Says whether it does.
    pub fn apply(&mut self, key: &str, value: Option<&[u8]>) -> bool {
        let fields = || value.and_then(|value| serde_json::from_slice::<Map<String, Value>>(value).ok());
        let segments: Vec<&str> = key.split('/').collect();
        match segments.as_slice() {
            ["kong", _, "vaults", _] => {
                let read = |fields: Map<String, Value>| {
                    let text = |name: &str| Some(fields.get(name)?.as_str()?.to_owned());
                    let config = fields.get("config").and_then(Value::as_object).cloned();
                    Some((text("prefix")?, text("name")?, config.unwrap_or_default()))
                };
                match fields().and_then(read) {
                    Some(vault) => self.kong.insert(key.to_owned(), vault),
                    None => self.kong.remove(key),
                };
                true
            }
            ["apisix", "secrets", manager, id] => {
                let name = format!("{manager}/{id}");
                match fields() {
                    Some(fields) => self.apisix.insert(name, fields),
                    None => self.apisix.remove(&name),
                };
                true
            }
            _ => false,
        }
    }

    /// Where a reference leads.
    ///
    /// # Errors
    /// Nowhere, and why.
    pub fn locate(
        &self,
        reference: &Reference,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<SecretTarget, String> {
        match reference {
            Reference::Variable { name, field } => Ok(SecretTarget {
                place: Place::variable(name)?,
                field: field.clone(),
                life: LIFE,
            }),
            Reference::Kong {
                vault,
                resource,
                field,
                prefix,
            } => self.of_kong(vault, resource, field.as_deref(), prefix.as_deref()),
            Reference::Secret { vault, path, field } => self.of_apisix(vault, path, field, environment),
        }
    }

    fn of_kong(
        &self,
        vault: &str,
        resource: &str,
        field: Option<&str>,
        prefix: Option<&str>,
    ) -> Result<SecretTarget, String> {
        let none = Map::new();
        let (kind, config) = match vault {
            "env" => ("env", &none),
            _ => {
                // As in Kong, vaults serve all workspaces. No other workspace may take the place of a vault of the
                // one that is always there.
                let known = self.kong.iter().filter(|(_, (prefix, ..))| prefix == vault);
                let found = known.min_by_key(|(key, _)| (!key.starts_with(DEFAULT_WORKSPACE), *key));
                let (_, (_, kind, config)) =
                    found.ok_or_else(|| format!("no vault has the prefix '{vault}'"))?;
                (kind.as_str(), config)
            }
        };
        let text = |name: &str| config.get(name).and_then(Value::as_str);
        let life = config.get("ttl").and_then(Value::as_u64).filter(|ttl| *ttl > 0);
        let life = life.map_or(LIFE, Duration::from_secs);
        match kind {
            "env" => {
                let prefix = prefix.or_else(|| text("prefix")).unwrap_or_default();
                let name = format!("{prefix}{resource}").to_uppercase().replace('-', "_");
                Ok(SecretTarget {
                    place: Place::variable(&name)?,
                    field: field.map(str::to_owned),
                    life,
                })
            }
            "hcv" => {
                let host = text("host").unwrap_or("127.0.0.1");
                let port = config.get("port").and_then(Value::as_u64).unwrap_or(8200);
                let protocol = text("protocol").unwrap_or("http");
                let mount = text("mount").unwrap_or("secret");
                let kind = match text("kv") {
                    Some("v2") => "/data",
                    _ => "",
                };
                let url = format!("{protocol}://{host}:{port}/v1/{mount}{kind}/{resource}");
                let token = text("token").unwrap_or_default().to_owned();
                Ok(SecretTarget {
                    place: Place::http(url, token, text("namespace"))?,
                    field: field.map(str::to_owned),
                    life,
                })
            }
            other => Err(format!(
                "vaults of the kind '{other}' are not available in this version of Weir"
            )),
        }
    }

    fn of_apisix(
        &self,
        vault: &str,
        path: &str,
        field: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<SecretTarget, String> {
        if !vault.starts_with("vault/") {
            return Err(format!(
                "vaults of the kind '{vault}' are not available in this version of Weir"
            ));
        }
        let config = self
            .apisix
            .get(vault)
            .ok_or_else(|| format!("there is no '{vault}'"))?;
        let text = |name: &str| config.get(name).and_then(Value::as_str);
        let token = text("token").unwrap_or_default();
        // A vault's token may stand in the environment.
        let token = match Reference::of(token) {
            Some(Reference::Variable { name, .. }) => {
                Place::variable(&name)?;
                environment(&name).unwrap_or_default()
            }
            _ => token.to_owned(),
        };
        let (uri, prefix) = (
            text("uri").unwrap_or_default(),
            text("prefix").unwrap_or_default(),
        );
        let url = format!(
            "{}/v1/{}/{path}",
            uri.trim_end_matches('/'),
            prefix.trim_matches('/')
        );
        Ok(SecretTarget {
            place: Place::http(url, token, text("namespace"))?,
            field: Some(field.to_owned()),
            life: LIFE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_lead_into_vaults() {
        let mut vaults = Vaults::default();
        let mut describe =
            |key: &str, value: &str| assert!(vaults.apply(key, Some(value.as_bytes())), "{key}");
        describe(
            "kong/default/vaults/1",
            r#"{"prefix":"mine","name":"env","config":{"prefix":"MY_","ttl":5}}"#,
        );
        describe(
            "kong/default/vaults/2",
            r#"{"prefix":"hc","name":"hcv","config":{"host":"h","token":"t","kv":"v2"}}"#,
        );
        describe("kong/default/vaults/3", r#"{"prefix":"aw","name":"aws"}"#);
        describe(
            "kong/alpha/vaults/0",
            r#"{"prefix":"mine","name":"env","config":{"prefix":"THEIRS_"}}"#,
        );
        describe(
            "kong/default/vaults/4",
            r#"{"prefix":"own","name":"env","config":{"prefix":"we"}}"#,
        );
        describe(
            "apisix/secrets/vault/3",
            r#"{"uri":"http://v:8200","prefix":"kv","token":"$env://WEIR_TOKEN"}"#,
        );
        describe(
            "apisix/secrets/vault/1",
            r#"{"uri":"http://v:8200","prefix":"kv/apisix","token":"$env://T"}"#,
        );
        describe(
            "apisix/secrets/vault/4",
            r#"{"uri":"http://jack:secret@v:8200","prefix":"kv","token":"t"}"#,
        );
        assert!(!vaults.apply("kong/default/routes/1", Some(b"{}")));
        let environment = |name: &str| (name == "T").then(|| "of-env".to_owned());
        for (text, expected) in [
            ("{vault://env/my-key}", "the variable MY_KEY None 60"),
            ("{vault://mine/my-key/f}", "the variable MY_MY_KEY Some(\"f\") 5"),
            (
                "{vault://hc/a/b/k}",
                "http://h:8200/v1/secret/data/a/b Some(\"k\") 60",
            ),
            ("{vault://gone/a}", "no vault has the prefix 'gone'"),
            (
                "{vault://aw/a}",
                "vaults of the kind 'aws' are not available in this version of Weir",
            ),
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
            (
                "$secret://vault/4/jack/key",
                "expected a URL without user and password",
            ),
            ("$env://WEIR_STORE/a", "the variable WEIR_STORE is Weir's own"),
            ("$ENV://weir-token", "the variable weir-token is Weir's own"),
            (
                "{vault://env/weir-apisix-admin-key}",
                "the variable WEIR_APISIX_ADMIN_KEY is Weir's own",
            ),
            ("{vault://own/ir-token}", "the variable WEIR_TOKEN is Weir's own"),
            (
                "{vault://mine/token?prefix=Weir_}",
                "the variable WEIR_TOKEN is Weir's own",
            ),
        ] {
            let reference = Reference::of(text).expect("a reference");
            let lead = vaults.locate(&reference, &environment);
            let told = lead.map(|it| format!("{:?} {:?} {}", it.place, it.field, it.life.as_secs()));
            assert_eq!(told.unwrap_or_else(|error| error), expected, "{text}");
        }
    }
}
