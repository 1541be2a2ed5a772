//! The entities of a store at one revision, as a write reads and changes them.

use crate::api::Problem;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_apis::entities::{Environment, LineState, Plan, Publication, Revision as ApiRevision, Version};
use weir_store::{Document, Key, Revision};

/// The prefix of the keys of all entities.
pub const PREFIX: &str = "apis/";
/// The prefix of the keys of environments.
pub const ENVIRONMENT_KEYS: &str = "apis/environments/";

/// Changes of documents: what they become; `None`: they go.
pub type Changes = BTreeMap<Key, Option<Arc<[u8]>>>;

/// A document as it is.
struct CachedDocument {
    value: Arc<[u8]>,
    /// The commit that changed it last.
    modified: Revision,
}

/// Documents at a revision, and the changes that a write wants to make.
pub struct EntitySnapshot {
    documents: BTreeMap<Key, CachedDocument>,
    changes: BTreeMap<Key, Option<Arc<[u8]>>>,
}

impl EntitySnapshot {
    /// All that was read.
    pub fn new(documents: Vec<Document>) -> Self {
        let known = |it: Document| {
            let (value, modified) = (it.value, it.modified);
            (it.key, CachedDocument { value, modified })
        };
        Self {
            documents: documents.into_iter().map(known).collect(),
            changes: BTreeMap::new(),
        }
    }

    /// A document as it would be after the changes.
    pub fn bytes(&self, key: &str) -> Option<&[u8]> {
        match self.changes.get(key) {
            Some(changed) => changed.as_deref(),
            None => self.before(key),
        }
    }

    /// A document as it is.
    pub fn before(&self, key: &str) -> Option<&[u8]> {
        self.documents.get(key).map(|it| &*it.value)
    }

    /// The version of a document as it is.
    pub fn version_of(&self, key: &str) -> Option<Revision> {
        self.documents.get(key).map(|it| it.modified)
    }

    /// An entity.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<T, Problem> {
        let bytes = self.bytes(key).ok_or_else(|| {
            let what = key.strip_prefix(PREFIX).unwrap_or(key);
            Problem::not_found(what)
        })?;
        serde_json::from_slice(bytes)
            .map_err(|error| Problem::unreadable(format!("{key} in the store is not understood: {error}")))
    }

    /// An entity that may not be there.
    pub fn find<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, Problem> {
        self.bytes(key).is_some().then(|| self.get(key)).transpose()
    }

    /// All entities below a prefix, by their keys.
    pub fn list<T: DeserializeOwned>(&self, prefix: &str) -> Result<Vec<T>, Problem> {
        self.keys(prefix)
            .iter()
            .map(|key| self.get(key.as_str()))
            .collect()
    }

    /// The keys below a prefix after the changes.
    pub fn keys(&self, prefix: &str) -> Vec<Key> {
        let below = |key: &&Key| key.as_str().starts_with(prefix);
        let known = self
            .documents
            .range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded));
        let known = known.map(|(key, _)| key).take_while(below);
        let fresh = self.changes.keys().filter(below);
        let mut keys: Vec<Key> = known
            .chain(fresh)
            .filter(|key| self.bytes(key.as_str()).is_some())
            .cloned()
            .collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// Writes a document.
    pub fn put_bytes(&mut self, key: &str, value: &[u8]) -> Result<(), Problem> {
        let key = Key::new(key).map_err(|error| Problem::bad(error.to_string()))?;
        // What stays as it is is no change.
        if self.documents.get(&key).is_some_and(|it| *it.value == *value) {
            self.changes.remove(&key);
        } else {
            self.changes.insert(key, Some(value.into()));
        }
        Ok(())
    }

    /// Writes an entity.
    pub fn put<T: Serialize>(&mut self, key: &str, entity: &T) -> Result<(), Problem> {
        let text = serde_json::to_vec(entity).map_err(|error| Problem::unreadable(error.to_string()))?;
        self.put_bytes(key, &text)
    }

    /// Removes a document.
    pub fn remove(&mut self, key: &str) {
        if let Ok(key) = Key::new(key) {
            match self.documents.contains_key(&key) {
                true => self.changes.insert(key, None),
                false => self.changes.remove(&key),
            };
        }
    }

    /// The changes of the write.
    pub fn changes(&self) -> &BTreeMap<Key, Option<Arc<[u8]>>> {
        &self.changes
    }

    /// All documents as they are.
    pub fn documents(&self) -> impl Iterator<Item = (&Key, &Arc<[u8]>)> {
        self.documents.iter().map(|(key, it)| (key, &it.value))
    }

    /// A version.
    ///
    /// It is over when somebody has retired all of its publications: a sunset is taken back by hand, and older releases retired a
    /// version with the first one.
    pub fn version(&self, api: &str, version: &str) -> Result<Version, Problem> {
        let mut found: Version = self.get(&version_key(api, version))?;
        if found.line == LineState::Retired {
            let all: Vec<Publication> = self.list(&publication_key(&format!("{api}/{version}/")))?;
            let now = super::clock::now();
            if all.iter().any(|it| !it.is_retired_by_hand(now)) {
                found.line = LineState::Deprecated;
            }
        }
        Ok(found)
    }

    /// A revision of a version.
    pub fn revision(&self, api: &str, version: &str, number: u32) -> Result<ApiRevision, Problem> {
        self.find(&revision_key(api, version, number))?
            .ok_or_else(|| Problem::not_found(format_args!("revision {number} of {api} {version}")))
    }

    /// An environment.
    pub fn environment(&self, name: &str) -> Result<Environment, Problem> {
        self.get(&environment_key(name))
    }

    /// A publication by `API/VERSION/ENVIRONMENT`.
    pub fn publication(&self, id: &str) -> Result<Publication, Problem> {
        self.get(&publication_key(id))
    }

    /// The publications for which something holds, by their ids.
    pub fn publications(&self, holds: impl Fn(&Publication) -> bool) -> Result<BTreeSet<String>, Problem> {
        let all: Vec<Publication> = self.list(&format!("{PREFIX}publications/"))?;
        Ok(all.iter().filter(|it| holds(it)).map(Publication::id).collect())
    }

    /// The plans of a version.
    pub fn plans(&self, api: &str, version: &str) -> Result<Vec<Plan>, Problem> {
        self.list(&format!("{PREFIX}plans/{api}/{version}/"))
    }
}

pub fn product_key(name: &str) -> String {
    format!("{PREFIX}products/{name}")
}

pub fn product_plan_key(product: &str, plan: &str) -> String {
    format!("{PREFIX}product-plans/{product}/{plan}")
}

pub fn environment_key(name: &str) -> String {
    format!("{ENVIRONMENT_KEYS}{name}")
}

/// The prefix of the webhooks of an application.
pub fn webhooks_of(application: &str) -> String {
    format!("{PREFIX}webhooks/{application}/")
}

pub fn api_key(name: &str) -> String {
    format!("{PREFIX}apis/{name}")
}

pub fn version_key(api: &str, version: &str) -> String {
    format!("{PREFIX}versions/{api}/{version}")
}

/// The prefix of the keys of all revisions of a version.
pub fn revisions_key(api: &str, version: &str) -> String {
    format!("{PREFIX}revisions/{api}/{version}/")
}

pub fn revision_key(api: &str, version: &str, number: u32) -> String {
    format!("{PREFIX}revisions/{api}/{version}/{number:08}")
}

pub fn publication_key(id: &str) -> String {
    format!("{PREFIX}publications/{id}")
}

pub fn plan_key(api: &str, version: &str, plan: &str) -> String {
    format!("{PREFIX}plans/{api}/{version}/{plan}")
}

pub fn test_key(api: &str, version: &str, test: &str) -> String {
    format!("{PREFIX}tests/{api}/{version}/{test}")
}

pub fn subscription_key(id: &str) -> String {
    format!("{PREFIX}subscriptions/{id}")
}

pub fn credential_key(id: &str) -> String {
    format!("{PREFIX}credentials/{id}")
}

pub fn application_key(name: &str) -> String {
    format!("{PREFIX}applications/{name}")
}

pub fn approval_key(id: &str) -> String {
    format!("{PREFIX}approvals/{id}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_apis::entities::Deprecation;

    /// The defect: a version whose sunset had come in one environment, and that was retired in the others, could not be taken
    /// back.
    #[test]
    fn a_version_is_over_when_all_of_its_publications_were_retired_by_hand() {
        use LineState::{Deprecated, Published, Retired};
        let publication = |(retired, sunset): &(bool, Option<u64>)| Publication {
            api: "a".to_owned(),
            version: "1".to_owned(),
            retired: *retired,
            deprecation: Some(Deprecation {
                enforce: true,
                sunset: *sunset,
                ..Deprecation::default()
            }),
            ..Publication::default()
        };
        let (by_hand, by_time, live) = ((true, None), (true, Some(1)), (false, None));
        for (line, publications, expected) in [
            (Retired, vec![], Retired),
            (Retired, vec![by_hand], Retired),
            (Retired, vec![by_hand, by_hand], Retired),
            (Retired, vec![by_hand, by_time], Deprecated),
            (Retired, vec![by_time], Deprecated),
            (Retired, vec![by_hand, live], Deprecated),
            (Published, vec![by_hand], Published),
        ] {
            let mut snapshot = EntitySnapshot::new(Vec::new());
            let version = Version {
                line,
                ..Version::default()
            };
            snapshot.put(&version_key("a", "1"), &version).expect("put");
            for (number, it) in publications.iter().enumerate() {
                let publication = Publication {
                    environment: format!("e{number}"),
                    ..publication(it)
                };
                let key = publication_key(&publication.id());
                snapshot.put(&key, &publication).expect("put");
            }
            let found = snapshot.version("a", "1").expect("a version").line;
            assert_eq!(found, expected, "{line:?} {publications:?}");
        }
    }
}
