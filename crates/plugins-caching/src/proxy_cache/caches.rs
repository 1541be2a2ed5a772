//! The stores of a process as Admin APIs manage them: what they hold, and purging it.
//!
//! **What it is not**: it does not reach the stores of other processes, and none on disks.

use super::config::PurgeName;
use super::entry::Key;
use super::zone::Zone;
use data_encoding::HEXLOWER_PERMISSIVE;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use weir_model::DialectName;
use weir_plugin::Headers;

/// Names of instances that are held at most once their stores are gone.
const MAX_NAMED: usize = 1 << 16;

/// The stores of a process by their names. Cheap to share.
#[derive(Clone, Default)]
pub struct Caches {
    zones: Arc<Mutex<HashMap<String, Arc<Zone>>>>,
    /// The stores of instances that are purged by name.
    named: Arc<Mutex<HashMap<String, PurgeableStore>>>,
}

/// The store of an instance that is purged by name.
struct PurgeableStore {
    store: String,
    zone: Weak<Zone>,
}

/// The result of a purge by an instance's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purged {
    /// The response is forgotten.
    Forgotten,
    /// There was none.
    Nothing,
    /// There is no such instance.
    Unknown,
    /// The instance keeps its responses in a store of another kind.
    OtherStore,
}

/// A response that is kept.
#[derive(Debug, Clone)]
pub struct CachedResponse {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: Arc<Headers>,
    /// Its body.
    pub body: Arc<[u8]>,
    /// When it was stored, in milliseconds since the Unix epoch.
    pub stored_ms: u64,
    /// For how long it is fresh from then on, in milliseconds.
    pub fresh_ms: u64,
}

/// A purge, in the form in which processes send it to each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purge {
    /// Whose store: dialects have stores of their own.
    #[serde(alias = "voice")]
    pub dialect: DialectName,
    /// The store's name.
    pub zone: String,
    /// The key of one response, in hexadecimal digits; absent: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl Caches {
    pub(super) fn zones(&self) -> MutexGuard<'_, HashMap<String, Arc<Zone>>> {
        self.zones.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn named(&self) -> MutexGuard<'_, HashMap<String, PurgeableStore>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes by what an instance is purged.
    pub(super) fn note(&self, dialect: DialectName, purged_as: &PurgeName, zone: &Arc<Zone>) {
        let mut named = self.named();
        if named.len() > MAX_NAMED {
            named.retain(|_, known| known.zone.strong_count() > 0);
        }
        let known = PurgeableStore {
            store: purged_as.store.clone(),
            zone: Arc::downgrade(zone),
        };
        named.insert(Self::name(dialect, &purged_as.name), known);
    }

    /// Forgets the response under a key, in hexadecimal digits, of an instance.
    pub fn purge(&self, dialect: DialectName, instance: &str, store: &str, key: &str) -> Purged {
        let zone = match self.named().get(&Self::name(dialect, instance)) {
            None => return Purged::Unknown,
            Some(known) if known.store != store => return Purged::OtherStore,
            Some(known) => known.zone.upgrade(),
        };
        let is_forgotten = zone
            .zip(read_key(key))
            .is_some_and(|(zone, key)| zone.purge(&key));
        match is_forgotten {
            true => Purged::Forgotten,
            false => Purged::Nothing,
        }
    }

    /// The name of a store among all.
    pub(super) fn name(dialect: DialectName, zone: &str) -> String {
        format!("{}/{zone}", dialect.as_str())
    }

    fn zone(&self, dialect: DialectName, zone: &str) -> Option<Arc<Zone>> {
        self.zones().get(&Self::name(dialect, zone)).cloned()
    }

    /// The usable response under a key in hexadecimal digits; if responses vary, the latest.
    pub fn response(
        &self,
        dialect: DialectName,
        zone: &str,
        key: &str,
        now_ms: u64,
    ) -> Option<CachedResponse> {
        let entry = self.zone(dialect, zone)?.kept(&read_key(key)?, now_ms)?;
        Some(CachedResponse {
            status: entry.status,
            headers: Arc::clone(&entry.headers),
            body: Arc::clone(&entry.body),
            stored_ms: entry.times.stored,
            fresh_ms: entry.times.fresh,
        })
    }

    /// Forgets a response, or a whole store. Says whether there was something.
    pub fn forget(&self, purge: &Purge) -> bool {
        let Some(zone) = self.zone(purge.dialect, &purge.zone) else {
            return false;
        };
        match &purge.key {
            None => {
                zone.clear();
                true
            }
            Some(key) => read_key(key).is_some_and(|key| zone.purge(&key)),
        }
    }
}

impl fmt::Debug for Caches {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Caches({} stores)", self.zones().len())
    }
}

/// Reads a key of hexadecimal digits; `None` if it is not one.
fn read_key(text: &str) -> Option<Key> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()?;
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::super::entry::{CacheEntry, Times};
    use super::*;
    use data_encoding::HEXLOWER;

    #[test]
    fn keys_are_read() {
        let key: Key = std::array::from_fn(|at| at as u8 * 8);
        assert_eq!(read_key(&HEXLOWER.encode(&key)), Some(key));
        assert_eq!(read_key(&HEXLOWER.encode(&key).to_uppercase()), Some(key));
        for wrong in ["", "00", &"g".repeat(64), &"0".repeat(65), &"é".repeat(32)] {
            assert_eq!(read_key(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn instances_are_purged_by_name() {
        let caches = Caches::default();
        let zone = Arc::new(Zone::new(1 << 20, None));
        let purged_as = PurgeName {
            name: "routes/1".to_owned(),
            store: "memory".to_owned(),
        };
        caches.note(DialectName::new("apisix"), &purged_as, &zone);
        let times = Times {
            stored: 1_000,
            fresh: 2_000,
            keep: 2_000,
            ..Times::default()
        };
        let entry = CacheEntry {
            status: 200,
            headers: Arc::default(),
            body: b"body".as_slice().into(),
            times,
        };
        zone.store(&[7; 32], &[], &Headers::default(), entry);
        let key = "07".repeat(32);
        for (dialect, instance, store, key, outcome) in [
            (
                DialectName::new("apisix"),
                "routes/2",
                "memory",
                key.as_str(),
                Purged::Unknown,
            ),
            (
                DialectName::new("kong"),
                "routes/1",
                "memory",
                &key,
                Purged::Unknown,
            ),
            (
                DialectName::new("apisix"),
                "routes/1",
                "disk",
                &key,
                Purged::OtherStore,
            ),
            (
                DialectName::new("apisix"),
                "routes/1",
                "memory",
                "abc",
                Purged::Nothing,
            ),
            (
                DialectName::new("apisix"),
                "routes/1",
                "memory",
                &key,
                Purged::Forgotten,
            ),
            (
                DialectName::new("apisix"),
                "routes/1",
                "memory",
                &key,
                Purged::Nothing,
            ),
        ] {
            assert_eq!(
                caches.purge(dialect, instance, store, key),
                outcome,
                "{instance} {store} {key}"
            );
        }
    }

    #[test]
    fn responses_are_listed_and_purged() {
        let caches = Caches::default();
        let zone = Arc::new(Zone::new(1 << 20, None));
        let name = Caches::name(DialectName::new("kong"), "z");
        caches.zones().insert(name, Arc::clone(&zone));
        let keep = |first: u8, vary: &[String]| {
            let key: Key = std::array::from_fn(|at| if at == 0 { first } else { 0 });
            let times = Times {
                stored: 1_000,
                fresh: 2_000,
                keep: 2_000,
                ..Times::default()
            };
            let entry = CacheEntry {
                status: 200,
                headers: Arc::default(),
                body: b"body".as_slice().into(),
                times,
            };
            zone.store(&key, vary, &Headers::default(), entry);
            HEXLOWER.encode(&key)
        };
        let keys = [keep(1, &[]), keep(2, &[]), keep(3, &["accept".to_owned()])];
        let is_there =
            |dialect, zone: &str, key: &str, now| caches.response(dialect, zone, key, now).is_some();
        assert!(
            keys.iter()
                .all(|key| is_there(DialectName::new("kong"), "z", key, 1_500))
        );
        assert!(
            !is_there(DialectName::new("kong"), "z", &keys[0], 3_000),
            "its time is over"
        );
        assert!(!is_there(DialectName::new("apisix"), "z", &keys[0], 1_500));
        assert!(!is_there(DialectName::new("kong"), "y", &keys[0], 1_500));
        let forget = |zone: &str, key: Option<&str>| {
            caches.forget(&Purge {
                dialect: DialectName::new("kong"),
                zone: zone.to_owned(),
                key: key.map(str::to_owned),
            })
        };
        assert!(forget("z", Some(&keys[0])) && !forget("z", Some(&keys[0])));
        assert!(!forget("y", None) && !forget("z", Some("no key")));
        assert!(!is_there(DialectName::new("kong"), "z", &keys[0], 1_500));
        assert!(is_there(DialectName::new("kong"), "z", &keys[1], 1_500));
        assert!(forget("z", Some(&keys[2])) && !is_there(DialectName::new("kong"), "z", &keys[2], 1_500));
        assert!(forget("z", None) && !is_there(DialectName::new("kong"), "z", &keys[1], 1_500));
        assert_eq!(zone.bytes(), 0);
    }

    #[test]
    fn a_purge_of_an_older_process_is_understood() {
        for text in [
            r#"{"dialect":"kong","zone":"z"}"#,
            r#"{"voice":"kong","zone":"z"}"#,
        ] {
            let purge: Purge = serde_json::from_str(text).expect("understood");
            assert_eq!(
                (purge.dialect, purge.zone.as_str(), purge.key),
                (DialectName::new("kong"), "z", None)
            );
        }
    }
}
