//! The stored documents as the Admin API holds them: all of them in memory, with what must be found fast.

use super::kind::Kind;
use super::references::{identities, references};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use weir_dialect::ReplicaState;
use weir_store::{Document, Key, Revision};

/// What this dialect's keys begin with in the store.
pub const PREFIX: &str = "apisix/";

/// A document.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its key, without the dialect's prefix.
    pub key: Arc<str>,
    pub value: Value,
    pub created: Revision,
    pub modified: Revision,
}

impl Entry {
    /// Its id: what stands last in its key.
    pub fn id(&self) -> &str {
        self.key.rsplit('/').next().unwrap_or_default()
    }
}

/// All documents of one revision of the store.
#[derive(Debug, Default)]
pub struct State {
    pub revision: Revision,
    entries: BTreeMap<Arc<str>, Arc<Entry>>,
    /// The keys of each collection by age.
    ages: HashMap<String, BTreeSet<(Revision, Arc<str>)>>,
    /// When a document of a kind was last put.
    newest: BTreeMap<&'static str, Revision>,
    /// For the key of each document that others refer to, theirs. It need not be there itself.
    referrers: HashMap<String, BTreeSet<Arc<str>>>,
    /// For each credential by which callers are recognised, the keys of those that have it.
    owners: HashMap<(String, String), BTreeSet<Arc<str>>>,
}

impl ReplicaState for State {
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
        crate::expiry::take_out(&mut value);
        self.insert(Entry {
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

impl State {
    /// Puts a document in the place of the one with its key.
    pub fn insert(&mut self, entry: Entry) {
        self.remove(&entry.key);
        let key = &entry.key;
        if let Some(collection) = collection_of(key) {
            let age = (entry.created, Arc::clone(key));
            self.ages.entry(collection.to_owned()).or_default().insert(age);
        }
        if let Some(kind) = Kind::of_key(key) {
            let newest = self.newest.entry(kind.name()).or_default();
            *newest = entry.modified.max(*newest);
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
        if let Some(ages) = collection_of(key).and_then(|collection| self.ages.get_mut(collection)) {
            ages.remove(&(entry.created, Arc::clone(&entry.key)));
        }
        for reference in references(key, &entry.value) {
            forget(&mut self.referrers, &reference, key);
        }
        for identity in identities(key, &entry.value) {
            forget(&mut self.owners, &identity, key);
        }
    }

    /// A document by its key.
    pub fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.entries.get(key)
    }

    /// The documents whose keys begin with a text, in the order of their keys.
    pub fn below<'s>(&'s self, prefix: &'s str) -> impl Iterator<Item = &'s Arc<Entry>> {
        self.entries
            .range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(prefix))
            .map(|(_, entry)| entry)
    }

    /// The documents of a collection (`routes`, `consumers/jack/credentials`), in the order of their keys.
    pub fn collection<'s>(&'s self, collection: &'s str) -> impl Iterator<Item = &'s Arc<Entry>> {
        self.entries
            .range::<str, _>((std::ops::Bound::Excluded(collection), std::ops::Bound::Unbounded))
            .take_while(move |(key, _)| key.starts_with(collection))
            .filter(move |(key, _)| collection_of(key) == Some(collection))
            .map(|(_, entry)| entry)
    }

    /// Likewise, in the order of their age.
    pub fn by_age(&self, collection: &str) -> impl Iterator<Item = &Arc<Entry>> {
        let ages = self.ages.get(collection).into_iter().flatten();
        ages.filter_map(|(_, key)| self.entries.get(key))
    }

    /// The revision in which a document of a kind was last put; 0 where there was none.
    pub fn newest(&self, kind: Kind) -> Revision {
        self.newest.get(kind.name()).copied().unwrap_or_default()
    }

    /// How many documents a collection has.
    pub fn count(&self, collection: &str) -> usize {
        self.ages.get(collection).map_or(0, BTreeSet::len)
    }

    /// The documents of a kind that belong to no other document.
    pub fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Arc<Entry>> {
        self.collection(kind.name())
    }

    /// The documents that refer to one, in the order of their keys.
    pub fn referrers(&self, key: &str) -> impl Iterator<Item = &Arc<Entry>> {
        let keys = self.referrers.get(key).into_iter().flatten();
        keys.filter_map(|key| self.entries.get(key))
    }

    /// The keys of the consumers and credentials that have a credential: a plugin's name and what it knows callers by.
    pub fn owners(&self, plugin: &str, identity: &str) -> impl Iterator<Item = &Arc<str>> {
        let found = self.owners.get(&(plugin.to_owned(), identity.to_owned()));
        found.into_iter().flatten()
    }
}

/// The collection that a key is in; `None`: it is none of a resource.
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
