//! The stored documents as the Admin API holds them: all of them in memory, with what must be found fast.

use super::kind::Kind;
use super::references::{identities, references};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use weir_dialect::ReplicaState;
use weir_store::{Document, Key, Revision};

/// The prefix of this dialect's keys in the store.
pub const PREFIX: &str = "apisix/";

/// A document.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentEntry {
    /// Its key, without the dialect's prefix.
    pub key: Arc<str>,
    pub value: Value,
    pub created: Revision,
    pub modified: Revision,
}

impl DocumentEntry {
    /// Its id: what stands last in its key.
    pub fn id(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or_default()
    }
}

/// All documents of one revision of the store.
#[derive(Debug, Default)]
pub struct AdminState {
    pub revision: Revision,
    entries: BTreeMap<Arc<str>, Arc<DocumentEntry>>,
    /// The keys of each collection by age.
    by_created: HashMap<String, BTreeSet<(Revision, Arc<str>)>>,
    /// When a document of a kind was last put.
    last_modified: BTreeMap<&'static str, Revision>,
    /// For the key of each document that others refer to, theirs. It need not be there itself.
    referrers: HashMap<String, BTreeSet<Arc<str>>>,
    /// For each credential by which callers are recognised, the keys of those that have it.
    owners: HashMap<(String, String), BTreeSet<Arc<str>>>,
}

impl ReplicaState for AdminState {
    fn empty(&self) -> Self {
        Self::default()
    }

    /// One that is no JSON is skipped here; it is reported when it is to be served.
    fn apply(&mut self, key: &Key, document: Option<&Document>) {
        let Some(key) = key.as_str().strip_prefix(PREFIX) else {
            return;
        };
        let value = document.and_then(|it| Some((it, serde_json::from_slice(&it.value).ok()?)));
        let Some((document, mut value)) = value else {
            return self.remove(key);
        };
        crate::expiry::strip(&mut value);
        self.insert(DocumentEntry {
            key: key.into(),
            value,
            created: document.created,
            modified: document.modified,
        });
    }

    fn note(&mut self, revision: Revision, _has_changed: bool) {
        self.revision = revision;
    }

    fn created(&self, key: &Key) -> Option<Revision> {
        let entry = self.get(key.as_str().strip_prefix(PREFIX)?)?;
        Some(entry.created)
    }
}

impl AdminState {
    /// Puts a document in the place of the one with its key.
    pub fn insert(&mut self, entry: DocumentEntry) {
        self.remove(&entry.key);
        let key = &entry.key;
        if let Some(collection) = collection_of(key) {
            let age = (entry.created, Arc::clone(key));
            self.by_created
                .entry(collection.to_owned())
                .or_default()
                .insert(age);
        }
        if let Some(kind) = Kind::of_key(key) {
            let last_modified = self.last_modified.entry(kind.name()).or_default();
            *last_modified = entry.modified.max(*last_modified);
        }
        for reference in references(key, &entry.value) {
            self.referrers
                .entry(reference)
                .or_default()
                .insert(Arc::clone(key));
        }
        for identity in identities(key, &entry.value) {
            self.owners.entry(identity).or_default().insert(Arc::clone(key));
        }
        self.entries.insert(Arc::clone(key), Arc::new(entry));
    }

    /// Takes a document out.
    pub fn remove(&mut self, key: &str) {
        let Some(entry) = self.entries.remove(key) else {
            return;
        };
        if let Some(by_created) =
            collection_of(key).and_then(|collection| self.by_created.get_mut(collection))
        {
            by_created.remove(&(entry.created, Arc::clone(&entry.key)));
        }
        for reference in references(key, &entry.value) {
            forget(&mut self.referrers, &reference, key);
        }
        for identity in identities(key, &entry.value) {
            forget(&mut self.owners, &identity, key);
        }
    }

    /// A document by its key.
    pub fn get(&self, key: &str) -> Option<&Arc<DocumentEntry>> {
        self.entries.get(key)
    }

    /// The documents whose keys begin with a text, in the order of their keys.
    pub fn below<'s>(&'s self, prefix: &'s str) -> impl Iterator<Item = &'s Arc<DocumentEntry>> {
        self.entries
            .range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
            .map(|(_, entry)| entry)
    }

    /// The documents of a collection (`routes`, `consumers/jack/credentials`), in the order of their keys.
    pub fn collection<'s>(&'s self, collection: &'s str) -> impl Iterator<Item = &'s Arc<DocumentEntry>> {
        self.entries
            .range::<str, _>((std::ops::Bound::Excluded(collection), std::ops::Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(collection))
            .filter(move |(key, _)| collection_of(key) == Some(collection))
            .map(|(_, entry)| entry)
    }

    /// The documents of a collection, in the order of their age.
    pub fn iter_by_created(&self, collection: &str) -> impl Iterator<Item = &Arc<DocumentEntry>> {
        let by_created = self.by_created.get(collection).into_iter().flatten();
        by_created.filter_map(|(_, key)| self.entries.get(key))
    }

    /// The revision in which a document of a kind was last put; 0 if none was.
    pub fn last_modified(&self, kind: Kind) -> Revision {
        self.last_modified.get(kind.name()).copied().unwrap_or_default()
    }

    /// How many documents a collection has.
    pub fn count(&self, collection: &str) -> usize {
        self.by_created.get(collection).map_or(0, BTreeSet::len)
    }

    /// The documents of a kind that belong to no other document.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Arc<DocumentEntry>> {
        self.collection(kind.name())
    }

    /// The documents that refer to one, in the order of their keys.
    pub fn referrers(&self, key: &str) -> impl Iterator<Item = &Arc<DocumentEntry>> {
        let keys = self.referrers.get(key).into_iter().flatten();
        keys.filter_map(|key| self.entries.get(key))
    }

    /// The keys of the consumers and credentials that have a credential: a plugin's name and what it knows callers by.
    pub fn owners(&self, plugin: &str, identity: &str) -> impl Iterator<Item = &Arc<str>> {
        let found = self.owners.get(&(plugin.to_owned(), identity.to_owned()));
        found.into_iter().flatten()
    }
}

/// The collection that a key is in; `None`: it is no resource's key.
fn collection_of(key: &str) -> Option<&str> {
    let kind = Kind::of_key(key)?;
    match kind {
        Kind::Credential | Kind::CostDecoration => key.rsplit_once('/').map(|(collection, _)| collection),
        kind => Some(kind.name()),
    }
}

fn forget<K: std::hash::Hash + Eq>(index: &mut HashMap<K, BTreeSet<Arc<str>>>, at: &K, key: &str) {
    if let Some(keys) = index.get_mut(at) {
        keys.remove(key);
        if keys.is_empty() {
            index.remove(at);
        }
    }
}
