//! How Kong's documents refer to secrets: `{vault://PREFIX/RESOURCE/KEY}`, and the vaults that they describe.

use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use weir_dialect::{DEFAULT_WORKSPACE, SecretLocation, SecretStore, SecretSyntax, SecretTarget};

/// The parts of a reference.
#[derive(Debug, PartialEq, Eq)]
struct Reference<'t> {
    /// The vault's prefix; `env` is always there.
    vault: &'t str,
    /// The place in the vault.
    resource: &'t str,
    /// The part of the secret, if it holds several values.
    field: Option<&'t str>,
    /// The `?prefix=` at its end, in place of the vault's own.
    prefix: Option<&'t str>,
}

impl<'t> Reference<'t> {
    /// Reads a reference; `None`: it is none. A broken one refers to what is not there.
    fn of(text: &'t str) -> Option<Self> {
        let inner = text.strip_prefix("{vault://")?.strip_suffix('}')?;
        let (path, query) = inner.split_once('?').unwrap_or((inner, ""));
        let prefix = query.split('&').find_map(|pair| pair.strip_prefix("prefix="));
        let (vault, rest) = path.split_once('/').unwrap_or((path, ""));
        let rest = rest.trim_end_matches('/');
        let (resource, field) = match rest.rsplit_once('/') {
            Some((resource, field)) => (resource, Some(field)),
            None => (rest, None),
        };
        Some(Self {
            vault,
            resource,
            field,
            prefix,
        })
    }
}

/// Whether a vault of this kind is asked for what a file refers to. Files are read without asking servers.
pub fn is_used_in_files(kind: &str) -> bool {
    kind == "env"
}

/// The vaults that a file describes, each with the key that it would have in a store.
pub fn of_file(document: &Value) -> Vec<(String, Value)> {
    let all = document.get("vaults").and_then(Value::as_array);
    let all = all.into_iter().flatten().enumerate();
    let used = all.filter(|(_, vault)| vault["name"].as_str().is_some_and(is_used_in_files));
    used.map(|(index, vault)| (format!("{DEFAULT_WORKSPACE}/vaults/{index}"), vault.clone()))
        .collect()
}

/// A vault that a document describes.
#[derive(Clone)]
struct Vault {
    prefix: String,
    kind: String,
    config: Map<String, Value>,
}

impl Vault {
    fn of(document: &[u8]) -> Option<Self> {
        let fields: Map<String, Value> = serde_json::from_slice(document).ok()?;
        let text = |name: &str| Some(fields.get(name)?.as_str()?.to_owned());
        let config = fields.get("config").and_then(Value::as_object).cloned();
        Some(Self {
            prefix: text("prefix")?,
            kind: text("name")?,
            config: config.unwrap_or_default(),
        })
    }
}

/// Kong's references, and its vaults.
#[derive(Clone, Default)]
pub struct Vaults {
    by_key: HashMap<String, Vault>,
    /// The keys by the prefix, each with whether it is of another workspace than the one that is always there.
    by_prefix: HashMap<String, BTreeSet<(bool, String)>>,
}

/// Their configurations hold tokens.
impl std::fmt::Debug for Vaults {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Vaults").finish_non_exhaustive()
    }
}

impl SecretSyntax for Vaults {
    fn apply(&mut self, key: &str, value: Option<&[u8]>) -> bool {
        let mut segments = key.split('/').skip(1);
        if (segments.next(), segments.clone().count()) != (Some("vaults"), 1) {
            return false;
        }
        let ranked = (!is_of_default(key), key.to_owned());
        if let Some(before) = self.by_key.remove(key)
            && let Some(keys) = self.by_prefix.get_mut(&before.prefix)
        {
            keys.remove(&ranked);
            if keys.is_empty() {
                self.by_prefix.remove(&before.prefix);
            }
        }
        if let Some(vault) = value.and_then(Vault::of) {
            let keys = self.by_prefix.entry(vault.prefix.clone());
            keys.or_default().insert(ranked);
            self.by_key.insert(key.to_owned(), vault);
        }
        true
    }

    fn is_reference(&self, text: &str) -> bool {
        text.starts_with("{vault://") && text.ends_with('}')
    }

    fn locate(
        &self,
        reference: &str,
        _environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<SecretTarget, String> {
        let reference = Reference::of(reference).ok_or("it is not a valid reference")?;
        let none = Map::new();
        let (kind, config) = match reference.vault {
            "env" => ("env", &none),
            prefix => self.vault(prefix)?,
        };
        let text = |name: &str| config.get(name).and_then(Value::as_str);
        let life = config.get("ttl").and_then(Value::as_u64).filter(|ttl| *ttl > 0);
        let place = match kind {
            "env" => {
                let prefix = reference.prefix.or_else(|| text("prefix")).unwrap_or_default();
                let name = format!("{prefix}{}", reference.resource)
                    .to_uppercase()
                    .replace('-', "_");
                SecretLocation::variable(&name)?
            }
            "hcv" => hashicorp(config, reference.resource),
            other => {
                return Err(format!(
                    "vaults of the kind '{other}' are not available in this version of Weir"
                ));
            }
        };
        Ok(SecretTarget {
            place,
            field: reference.field.map(str::to_owned),
            life: life.map_or(SecretTarget::LIFE, Duration::from_secs),
        })
    }

    fn store_of(&self, reference: &str) -> Option<String> {
        Some(Reference::of(reference)?.vault.to_owned())
    }

    fn stores(&self) -> Vec<SecretStore> {
        let described = self.by_key.iter().map(|(key, vault)| SecretStore {
            name: vault.prefix.clone(),
            kind: vault.kind.clone(),
            key: Some(key.clone()),
            address: (vault.kind == "hcv").then(|| server(&vault.config)),
        });
        std::iter::once(SecretStore::environment())
            .chain(described)
            .collect()
    }

    fn snapshot(&self) -> Box<dyn SecretSyntax> {
        Box::new(self.clone())
    }
}

impl Vaults {
    /// The kind and the configuration of a vault. As in Kong, vaults serve all workspaces. No other workspace may take the
    /// place of a vault of the one that is always there.
    fn vault(&self, prefix: &str) -> Result<(&str, &Map<String, Value>), String> {
        let keys = self.by_prefix.get(prefix);
        let found = keys.and_then(|keys| self.by_key.get(&keys.first()?.1));
        let vault = found.ok_or_else(|| format!("no vault has the prefix '{prefix}'"))?;
        Ok((&vault.kind, &vault.config))
    }
}

/// Whether a key is of the workspace that is always there.
fn is_of_default(key: &str) -> bool {
    let rest = key.strip_prefix(DEFAULT_WORKSPACE);
    rest.is_some_and(|it| it.starts_with('/'))
}

/// The address of a server of HashiCorp's kind.
fn server(config: &Map<String, Value>) -> String {
    let text = |name: &str| config.get(name).and_then(Value::as_str);
    let host = text("host").unwrap_or("127.0.0.1");
    let port = config.get("port").and_then(Value::as_u64).unwrap_or(8200);
    let protocol = text("protocol").unwrap_or("http");
    format!("{protocol}://{host}:{port}")
}

fn hashicorp(config: &Map<String, Value>, resource: &str) -> SecretLocation {
    let text = |name: &str| config.get(name).and_then(Value::as_str);
    let server = server(config);
    let mount = text("mount").unwrap_or("secret");
    let kind = match text("kv") {
        Some("v2") => "/data",
        _ => "",
    };
    SecretLocation::Http {
        url: format!("{server}/v1/{mount}{kind}/{resource}"),
        token: text("token").unwrap_or_default().to_owned(),
        namespace: text("namespace").map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_shown_without_their_credentials() {
        let mut vaults = Vaults::default();
        let document = br#"{"name": "hcv", "prefix": "mine", "config": {"host": "v", "port": 1, "protocol": "https", "token": "t"}}"#;
        assert!(vaults.apply("default/vaults/1", Some(document)));
        let stores: Vec<_> = vaults
            .stores()
            .into_iter()
            .map(|it| format!("{} {} {:?} {:?}", it.name, it.kind, it.key, it.address))
            .collect();
        let expected = [
            "env env None None",
            r#"mine hcv Some("default/vaults/1") Some("https://v:1")"#,
        ];
        assert_eq!(stores, expected);
        for (reference, store) in [
            ("{vault://env/a}", Some("env")),
            ("{vault://mine/a/b}", Some("mine")),
            ("a", None),
        ] {
            assert_eq!(vaults.store_of(reference).as_deref(), store, "{reference}");
        }
    }

    #[test]
    fn references_are_distinguished_from_texts() {
        let reference = |vault, resource, field| Reference {
            vault,
            resource,
            field,
            prefix: None,
        };
        for (text, expected) in [
            ("{vault://env/my-key}", Some(reference("env", "my-key", None))),
            (
                "{vault://hcv/a/b/key}",
                Some(reference("hcv", "a/b", Some("key"))),
            ),
            ("{vault://}", Some(reference("", "", None))),
            ("{vault://env/x", None),
            ("vault://env/x", None),
            ("$env://A", None),
            ("ééé€€", None),
            ("", None),
        ] {
            let is_reference = Vaults::default().is_reference(text);
            assert_eq!(is_reference, expected.is_some(), "{text}");
            assert_eq!(Reference::of(text), expected, "{text}");
        }
    }

    #[test]
    fn references_lead_into_vaults() {
        let mut vaults = Vaults::default();
        for (key, value) in [
            (
                "default/vaults/1",
                r#"{"prefix":"mine","name":"env","config":{"prefix":"MY_","ttl":5}}"#,
            ),
            (
                "default/vaults/2",
                r#"{"prefix":"hc","name":"hcv","config":{"host":"h","token":"t","kv":"v2"}}"#,
            ),
            ("default/vaults/3", r#"{"prefix":"aw","name":"aws"}"#),
            (
                "alpha/vaults/0",
                r#"{"prefix":"mine","name":"env","config":{"prefix":"THEIRS_"}}"#,
            ),
            (
                "default/vaults/4",
                r#"{"prefix":"own","name":"env","config":{"prefix":"we"}}"#,
            ),
        ] {
            assert!(vaults.apply(key, Some(value.as_bytes())), "{key}");
        }
        assert!(!vaults.apply("default/routes/1", Some(b"{}")));
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
            let found = vaults.locate(text, &|_| None);
            let described = found.map(|it| {
                format!(
                    "{} {:?} {}",
                    location_text(&it.place),
                    it.field,
                    it.life.as_secs()
                )
            });
            assert_eq!(described.unwrap_or_else(|error| error), expected, "{text}");
        }
    }

    fn location_text(place: &SecretLocation) -> String {
        match place {
            SecretLocation::Http { url, .. } => url.clone(),
            variable @ SecretLocation::Variable(_) => format!("{variable:?}"),
        }
    }

    /// Each step changes one vault; then a reference leads to the variable of the first by workspace and key.
    #[test]
    fn vaults_are_found_by_the_prefix_that_they_have_now() {
        let mut vaults = Vaults::default();
        for (key, prefix, expected) in [
            ("team/vaults/1", Some("p"), Ok("team-1")),
            ("default/vaults/2", Some("p"), Ok("default-2")),
            ("default/vaults/1", Some("p"), Ok("default-1")),
            ("default/vaults/1", Some("other"), Ok("default-2")),
            ("default/vaults/2", None, Ok("team-1")),
            ("team/vaults/1", None, Err("no vault has the prefix 'p'")),
        ] {
            let own = key.replace("/vaults/", "-");
            let document = prefix.map(|prefix| {
                format!(r#"{{"name": "hcv", "prefix": "{prefix}", "config": {{"host": "{own}"}}}}"#)
            });
            assert!(vaults.apply(key, document.as_deref().map(str::as_bytes)));
            let found = vaults.locate("{vault://p/a/b}", &|_| None);
            let found = found.map(|it| location_text(&it.place));
            let expected = expected.map(|host| format!("http://{host}:8200/v1/secret/a"));
            assert_eq!(found, expected.map_err(str::to_owned), "{key} {prefix:?}");
        }
    }
}
