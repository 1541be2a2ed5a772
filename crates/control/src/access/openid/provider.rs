//! Identity providers, as the store holds them under `weir/identity-providers/NAME`, and how groups become rights.

use crate::access::role::Role;
use crate::access::scope::{Right, Scope};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_store::follow::Subscription;
use weir_store::{BadKey, Key, Store, StoreError};

/// The prefix of the keys of identity providers.
pub const PREFIX: &str = "weir/identity-providers/";
/// Groups of a person that count, at most; and the longest, in bytes.
const MAX_GROUPS: usize = 500;
const MAX_TEXT: usize = 256;

/// An identity provider.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provider {
    /// Its name in paths.
    pub name: String,
    /// Its name for people.
    pub display_name: String,
    /// Its issuer: what discovery is below.
    pub issuer: String,
    /// The id of this Weir at the provider.
    pub client_id: String,
    /// The secret for it; `None`: a public client, which has PKCE alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The scopes to request.
    pub scopes: Vec<String>,
    /// The address of this Weir for browsers; `None`: as the browser says in `Host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The claim that holds the name of the user.
    pub name_claim: String,
    /// The claim that holds the groups.
    pub groups_claim: String,
    /// The rights of members of groups.
    pub mappings: Vec<Mapping>,
}

/// The rights of members of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// The group; `*`: all who log in.
    pub group: String,
    /// The rights.
    pub rights: Vec<Right>,
}

/// The client secret is a secret.
impl fmt::Debug for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Provider")
            .field("name", &self.name)
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

impl Provider {
    /// Whether members of some group may manage users.
    pub fn has_admin(&self) -> bool {
        let is_admin = |it: &Right| it.role == Role::Admin && it.scope == Scope::Everything;
        self.mappings.iter().flat_map(|it| &it.rights).any(is_admin)
    }

    /// The rights of a user in these groups.
    pub fn rights_of(&self, groups: &[String]) -> Vec<Right> {
        let is_of = |mapping: &&Mapping| mapping.group == "*" || groups.contains(&mapping.group);
        let mut rights: Vec<Right> = Vec::new();
        for right in self.mappings.iter().filter(is_of).flat_map(|it| &it.rights) {
            if !rights.contains(right) {
                rights.push(right.clone());
            }
        }
        rights
    }

    /// The groups among the claims of a person: a text, or a list of texts.
    pub fn groups_in(&self, claims: &Value) -> Vec<String> {
        let all = match claims.get(&self.groups_claim) {
            Some(Value::String(only)) => vec![only.clone()],
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let short = all.into_iter().filter(|it| it.len() <= MAX_TEXT);
        short.take(MAX_GROUPS).collect()
    }

    /// The name under which a person is recorded. A `/` is in no name of a user of this Weir, so that the two are never
    /// taken for one another.
    pub fn name_in(&self, claims: &Value) -> Option<String> {
        let text = |claim: &str| {
            claims
                .get(claim)
                .and_then(Value::as_str)
                .filter(|it| !it.is_empty())
        };
        let name = text(&self.name_claim).or_else(|| text("sub"))?;
        let is_good = name.len() <= MAX_TEXT && !name.contains(char::is_control);
        is_good.then(|| format!("{}/{name}", self.name))
    }
}

/// The key of an identity provider.
///
/// # Errors
/// If the name is invalid.
pub fn key_of(name: &str) -> Result<Key, BadKey> {
    match weir_apis::naming::is_name(name) {
        true => Key::new(&format!("{PREFIX}{name}")),
        false => Err(BadKey(name.to_owned())),
    }
}

/// All identity providers, kept up to date. Cheap to share.
#[derive(Debug, Clone, Default)]
pub struct Providers(Arc<Mutex<BTreeMap<Key, Arc<Provider>>>>);

impl Providers {
    /// Reads the identity providers of a store and follows them.
    ///
    /// # Errors
    /// The store cannot be reached or read.
    pub async fn open(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let (documents, _, following) = weir_store::follow::start(store, PREFIX).await?;
        let providers = Self::default();
        for document in documents {
            providers.apply(&document.key, Some(&document.value));
        }
        tokio::spawn(providers.clone().follow(following));
        Ok(providers)
    }

    async fn follow(self, mut following: Subscription) {
        loop {
            for (key, document) in following.next().await.documents {
                self.apply(&key, document.as_ref().map(|it| it.value.as_ref()));
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Provider>>> {
        // Every change leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over one; `None`: gone.
    pub fn apply(&self, key: &Key, value: Option<&[u8]>) {
        let provider = value.and_then(|it| {
            serde_json::from_slice::<Provider>(it)
                .inspect_err(|error| tracing::error!(%key, %error, "a stored identity provider cannot be parsed and is ignored"))
                .ok()
        });
        match provider {
            Some(provider) => self.known().insert(key.clone(), Arc::new(provider)),
            None => self.known().remove(key),
        };
    }

    /// The one of a name.
    pub fn get(&self, name: &str) -> Option<Arc<Provider>> {
        self.known().get(&key_of(name).ok()?).cloned()
    }

    /// All of them, by name.
    pub fn list(&self) -> Vec<Arc<Provider>> {
        self.known().values().cloned().collect()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.known().is_empty()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// A provider in whose group `admins` everything is allowed.
    pub fn sample() -> Provider {
        let right = |role, scope: &str| Right {
            role,
            scope: Scope::parse(scope).expect("a scope"),
        };
        let mapping = |group: &str, rights: &[Right]| Mapping {
            group: group.to_owned(),
            rights: rights.to_vec(),
        };
        Provider {
            name: "corp".to_owned(),
            display_name: "Corp".to_owned(),
            issuer: "https://id.test".to_owned(),
            client_id: "weir".to_owned(),
            client_secret: Some("s+e/c".to_owned()),
            scopes: vec!["openid".to_owned(), "groups".to_owned()],
            base_url: None,
            name_claim: "preferred_username".to_owned(),
            groups_claim: "groups".to_owned(),
            mappings: vec![
                mapping("admins", &[right(Role::Admin, "everything")]),
                mapping(
                    "dev",
                    &[
                        right(Role::ApiOwner, "api:orders"),
                        right(Role::Viewer, "everything"),
                    ],
                ),
                mapping("*", &[right(Role::Viewer, "everything")]),
            ],
        }
    }

    #[test]
    fn groups_become_rights() {
        let provider = sample();
        for (claims, expected) in [
            (json!({}), vec!["viewer everything"]),
            (
                json!({ "groups": "admins" }),
                vec!["admin everything", "viewer everything"],
            ),
            (
                json!({ "groups": ["dev", 7, "x"] }),
                vec!["api-owner api:orders", "viewer everything"],
            ),
            (json!({ "groups": { "admins": true } }), vec!["viewer everything"]),
            (json!({ "roles": ["admins"] }), vec!["viewer everything"]),
        ] {
            let rights = provider.rights_of(&provider.groups_in(&claims));
            let described: Vec<String> = rights
                .iter()
                .map(|it| format!("{} {}", it.role.as_str(), it.scope))
                .collect();
            assert_eq!(described, expected, "{claims}");
        }
        let many: Vec<String> = (0..2 * MAX_GROUPS).map(|it| it.to_string()).collect();
        assert_eq!(provider.groups_in(&json!({ "groups": many })).len(), MAX_GROUPS);
    }

    #[test]
    fn names_are_apart_from_those_of_users_here() {
        for (claims, expected) in [
            (
                json!({ "preferred_username": "ada", "sub": "1" }),
                Some("corp/ada"),
            ),
            (json!({ "preferred_username": "", "sub": "1" }), Some("corp/1")),
            (json!({ "preferred_username": 5, "sub": "1" }), Some("corp/1")),
            (json!({ "preferred_username": "a\nb" }), None),
            (json!({}), None),
        ] {
            assert_eq!(sample().name_in(&claims).as_deref(), expected, "{claims}");
        }
        assert!(
            crate::access::users::key_of("corp/ada").is_err(),
            "no user here has such a name"
        );
        assert!(key_of("corp").is_ok() && key_of("a/b").is_err() && key_of("").is_err());
    }
}
