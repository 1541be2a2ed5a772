//! Who calls: consumers as filters see them, and the index by which credentials lead to them.

use crate::last_use::CredentialUses;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use weir_model::{DialectName, DocPath};

/// A consumer as compiled into a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConsumerIdentity {
    /// Position in the snapshot's list of consumers.
    pub index: u32,
    /// The consumer's id.
    pub id: String,
    /// The name that is sent to upstreams.
    pub username: Option<String>,
    /// The consumer's name in another system.
    pub custom_id: Option<String>,
    /// The group that the consumer belongs to.
    pub group: Option<String>,
    /// Free labels, by name.
    pub labels: Vec<(String, String)>,
    /// What else its dialect writes about it, in the dialect's words.
    pub details: BTreeMap<String, Value>,
    /// Its credentials whose uses are noted.
    pub uses: CredentialUses,
}

/// The outcome of authentication.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Who calls.
    pub consumer: Arc<ConsumerIdentity>,
    /// The credential's own name; `None` for the anonymous consumer.
    pub credential_id: Option<Arc<str>>,
}

/// A credential in the index, with what the plugin made of its configuration (`T`).
#[derive(Debug)]
pub struct CredentialEntry<T> {
    /// What the plugin needs to check it.
    pub secret: T,
    /// Who it belongs to.
    pub identity: Identity,
    /// When it ends, in milliseconds since 1970; [`NO_END`]: never.
    pub ends_ms: u64,
}

/// The end of what has none.
pub const NO_END: u64 = u64::MAX;

/// Credentials of one plugin and dialect by the key that calls carry. They are found by a hash that is keyed with a secret
/// of the process: keys are secrets, and callers choose what is looked up.
#[derive(Debug)]
pub struct CredentialIndex<T>(HashMap<Box<[u8]>, CredentialEntry<T>>);

impl<T> Default for CredentialIndex<T> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<T> CredentialIndex<T> {
    /// Adds a credential; of two with the same key, the last counts. Gives the one that counts no longer.
    pub fn insert(&mut self, key: &[u8], entry: CredentialEntry<T>) -> Option<CredentialEntry<T>> {
        self.0.insert(key.into(), entry)
    }

    /// Whether it has no credential.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is made of each credential, in no order.
    pub fn secrets(&self) -> impl Iterator<Item = &T> {
        self.0.values().map(|entry| &entry.secret)
    }

    /// The credential with this key. One that has ended is as one that is not there. The time is asked for only if the
    /// credential has an end.
    #[inline]
    pub fn get(&self, key: &[u8], now_ms: impl FnOnce() -> u64) -> Option<&CredentialEntry<T>> {
        let found = self.0.get(key)?;
        (found.ends_ms == NO_END || now_ms() < found.ends_ms).then_some(found)
    }
}

/// A credential of the model that a plugin turns into index entries.
pub struct CredentialSource<'m> {
    /// Its configuration.
    pub config: &'m serde_json::Value,
    /// Where it stands in the model.
    pub place: DocPath,
    /// Who it belongs to.
    pub identity: Identity,
    /// When it ends, in seconds since 1970.
    pub expires: Option<u64>,
    /// The dialect in which it is good.
    pub dialect: DialectName,
    /// The workspace in which it is good.
    pub workspace: Option<&'m Arc<str>>,
}

impl CredentialSource<'_> {
    /// Its end as in an index.
    pub(crate) fn ends_ms(&self) -> u64 {
        self.expires.map_or(NO_END, |end| end.saturating_mul(1_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_found_until_their_end() {
        let mut index = CredentialIndex::default();
        for (key, ends_ms) in [("endless", NO_END), ("short", 5_000)] {
            let identity = Identity {
                consumer: Arc::default(),
                credential_id: None,
            };
            let entry = CredentialEntry {
                secret: (),
                identity,
                ends_ms,
            };
            index.insert(key.as_bytes(), entry);
        }
        for (now_ms, is_found) in [(0, true), (4_999, true), (5_000, false), (9_000, false)] {
            assert_eq!(index.get(b"short", || now_ms).is_some(), is_found, "{now_ms}");
        }
        let no_clock = || panic!("the time is not needed");
        assert!(index.get(b"endless", no_clock).is_some());
        assert!(index.get(b"none", no_clock).is_none());
    }
}
