//! Marks that outlive calls: sessions that have ended before their time, answers that were used. With a store, all gateways
//! know them a moment later; without one, only the gateway that has set them.
//!
//! **What it is not**: no call waits for the store. Where two gateways must not take the same thing at once, records are
//! committed first, as `oauth2-server` does.

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use weir_flow::expiring::{ExpiringMap, Lifetime, Lookup};
use weir_plugin::{Committed, SharedChange, SharedRecord, SharedRecords, SharedStore};

/// What a mark takes in memory besides its key.
const MARK_BYTES: usize = 64;
/// The most marks that a gateway writes into the store in a second. Others are its own.
const MAX_SHARED_PER_SECOND: u32 = 100;
/// The member of a record with the time of its mark.
const AT: &str = "at_ms";

/// How long a mark stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RevocationLifetime {
    /// In the memory of the gateway that sets it, in seconds.
    pub(crate) here_s: u64,
    /// In the store and at the other gateways, in seconds.
    pub(crate) shared_s: u64,
}

impl RevocationLifetime {
    /// The same everywhere.
    pub(crate) fn everywhere(seconds: u64) -> Self {
        Self {
            here_s: seconds,
            shared_s: seconds,
        }
    }
}

/// The marks of a plugin, as all of its instances know them. Bounded: of too many, the first are forgotten.
pub(crate) struct SharedRevocations {
    marks: Arc<ExpiringMap<u64>>,
    store: OnceLock<Arc<dyn SharedStore>>,
    /// How many were written into the store in which second.
    shared: Mutex<(u64, u32)>,
}

impl fmt::Debug for SharedRevocations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SharedRevocations({} bytes)", self.marks.bytes())
    }
}

impl SharedRevocations {
    pub(crate) fn new(max_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            marks: ExpiringMap::new(max_bytes),
            store: OnceLock::new(),
            shared: Mutex::default(),
        })
    }

    /// When a mark was set, in milliseconds since the Unix epoch; `None`: it is not set, or no longer.
    pub(crate) fn get(&self, key: &[u8], now_ms: u64) -> Option<u64> {
        self.marks.get(key, now_ms)
    }

    /// Sets a mark.
    pub(crate) fn set(&self, key: &[u8], life: RevocationLifetime, now_ms: u64) {
        self.keep(key, now_ms, life.here_s.saturating_mul(1_000));
        self.share(key, life, now_ms);
    }

    /// Sets a mark if it is not set. Of several calls that try, one gets `true`.
    pub(crate) fn set_first(&self, key: &[u8], life: RevocationLifetime, now_ms: u64) -> bool {
        let Lookup::Miss(first) = self.marks.lookup(key, now_ms) else {
            return false;
        };
        let lifetime = Lifetime::fresh(life.here_s.saturating_mul(1_000));
        first.store(now_ms, key.len() + MARK_BYTES, lifetime, now_ms);
        self.share(key, life, now_ms);
        true
    }

    /// The bytes that all marks take.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.marks.bytes()
    }

    fn keep(&self, key: &[u8], at_ms: u64, life_ms: u64) {
        let lifetime = Lifetime::fresh(life_ms);
        self.marks
            .insert(key, at_ms, key.len() + MARK_BYTES, lifetime, at_ms);
    }

    fn share(&self, key: &[u8], life: RevocationLifetime, now_ms: u64) {
        let Some(store) = self.store.get().filter(|_| self.may_share(now_ms)) else {
            return;
        };
        let record = SharedRecord {
            value: json!({ AT: now_ms }),
            ends_ms: Some(now_ms.saturating_add(life.shared_s.saturating_mul(1_000))),
        };
        let change = SharedChange {
            puts: vec![(HEXLOWER.encode(key), record)],
            ..SharedChange::default()
        };
        // The store logs what goes wrong.
        store.commit(change, Box::new(|_| {}));
    }

    fn may_share(&self, now_ms: u64) -> bool {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.0 != now_ms / 1_000 {
            *shared = (now_ms / 1_000, 0);
        }
        shared.1 = shared.1.saturating_add(1);
        shared.1 <= MAX_SHARED_PER_SECOND
    }
}

/// The marks, as the store's change feed delivers them.
pub(crate) struct RevocationRecords(pub(crate) Arc<SharedRevocations>);

impl SharedRecords for RevocationRecords {
    fn share(&self, store: Arc<dyn SharedStore>) {
        // The first one stays: there is one store for a process.
        let _is_first = self.0.store.set(store);
    }

    fn apply(&self, _: u64, changes: Vec<(String, Option<SharedRecord>)>) {
        for (name, record) in changes {
            // What is gone from the store has ended here by itself.
            let Some(SharedRecord {
                value,
                ends_ms: Some(ends_ms),
            }) = record
            else {
                continue;
            };
            let at_ms = value.get(AT).and_then(Value::as_u64);
            if let (Ok(key), Some(at_ms)) = (HEXLOWER.decode(name.as_bytes()), at_ms)
                && at_ms < ends_ms
            {
                self.0.keep(&key, at_ms, ends_ms - at_ms);
            }
        }
    }

    /// Marks say nothing to people.
    fn list(&self, _: u64) -> Vec<(String, Value)> {
        Vec::new()
    }

    fn name_of(&self, _: &str) -> String {
        String::new()
    }

    fn remove(&self, _: &str, then: Committed) {
        then(Ok(None));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cas_login::CasLogin;
    use crate::openid_connect::OpenIdConnect;
    use crate::saml::Saml;
    use crate::session::SessionPlugin;
    use std::sync::atomic::{AtomicU64, Ordering};
    use weir_plugin::{Plugin, RecordRead};
    use weir_plugins_testkit::NOW_MS;

    /// A store that delivers to another gateway at once what one gateway writes.
    pub(crate) struct Relay {
        to: Arc<dyn SharedRecords>,
        commits: AtomicU64,
    }

    impl SharedStore for Relay {
        fn read(&self, _: &str, then: RecordRead) {
            then(Ok((None, 0)));
        }

        fn commit(&self, change: SharedChange, then: Committed) {
            let revision = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
            let puts = change.puts.into_iter();
            self.to.apply(
                revision,
                puts.map(|(name, record)| (name, Some(record))).collect(),
            );
            then(Ok(Some(revision)));
        }
    }

    /// Delivers to one gateway what another writes.
    pub(crate) fn relay(from: &dyn SharedRecords, to: Arc<dyn SharedRecords>) -> Arc<Relay> {
        let relay = Arc::new(Relay {
            to,
            commits: AtomicU64::new(0),
        });
        from.share(Arc::clone(&relay) as _);
        relay
    }

    fn gateways() -> (Arc<SharedRevocations>, Arc<SharedRevocations>, Arc<Relay>) {
        let (one, other) = (SharedRevocations::new(1 << 20), SharedRevocations::new(1 << 20));
        let relay = relay(
            &RevocationRecords(Arc::clone(&one)),
            Arc::new(RevocationRecords(Arc::clone(&other))),
        );
        (one, other, relay)
    }

    #[test]
    fn gateways_of_a_store_share_their_marks() {
        let (one, other, _) = gateways();
        let now_ms = NOW_MS;
        let life = RevocationLifetime {
            here_s: 3_600,
            shared_s: 60,
        };
        one.set(b"session", life, now_ms);
        assert!(one.set_first(b"answer", life, now_ms) && !one.set_first(b"answer", life, now_ms));
        assert_eq!(other.get(b"session", now_ms), Some(now_ms));
        assert!(
            !other.set_first(b"answer", life, now_ms),
            "another gateway has used it"
        );
        let later_ms = now_ms + 61_000;
        assert_eq!(
            (one.get(b"session", later_ms), other.get(b"session", later_ms)),
            (Some(now_ms), None)
        );
    }

    #[test]
    fn records_that_are_no_marks_are_nothing() {
        let marks = SharedRevocations::new(1 << 20);
        let record = |value: Value, ends_ms| Some(SharedRecord { value, ends_ms });
        let ends = Some(NOW_MS + 60_000);
        let changes = vec![
            ("00".to_owned(), record(json!({ AT: NOW_MS }), Some(NOW_MS))),
            ("01".to_owned(), record(json!({ AT: 1 }), None)),
            ("02".to_owned(), record(json!("x"), ends)),
            ("xy".to_owned(), record(json!({ AT: 1 }), ends)),
            ("03".to_owned(), None),
        ];
        RevocationRecords(Arc::clone(&marks)).apply(1, changes);
        assert_eq!(marks.bytes(), 0);
    }

    #[test]
    fn a_flood_of_marks_does_not_keep_the_store_busy() {
        let (marks, _, relay) = gateways();
        let now_ms = NOW_MS;
        let set = |numbers: std::ops::Range<u32>, now_ms| {
            numbers.for_each(|it| marks.set(&it.to_be_bytes(), RevocationLifetime::everywhere(60), now_ms));
            relay.commits.load(Ordering::Relaxed)
        };
        assert_eq!(set(0..1_000, now_ms), u64::from(MAX_SHARED_PER_SECOND));
        assert_eq!(
            set(1_000..1_001, now_ms + 1_000),
            u64::from(MAX_SHARED_PER_SECOND) + 1
        );
        assert_eq!(marks.get(&999_u32.to_be_bytes(), now_ms), Some(now_ms));
    }

    #[test]
    fn plugins_with_sessions_share_their_marks() {
        let plugins: [&dyn Plugin; 4] = [
            &SessionPlugin::default(),
            &OpenIdConnect::default(),
            &Saml::default(),
            &CasLogin::default(),
        ];
        for plugin in plugins {
            assert!(plugin.shared_records().is_some(), "{}", plugin.name());
        }
    }
}
