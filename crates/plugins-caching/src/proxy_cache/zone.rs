//! A bounded store of responses, shared by all workers.

use super::config::Disk;
use super::disk_codec;
use super::entry::{CacheEntry, Freshness, Key, Slot};
use super::flight::{FetchCompleted, FetchLeader, Flight, FlightRole};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use weir_plugin::{DiskCache, DiskCaches, Headers};

/// Keys without a response that may stand in the order of a shard, however few responses it has.
const FEW_PURGED: usize = 64;
/// Parts that are locked by themselves.
const SHARDS: usize = 16;

#[derive(Default)]
struct Shard {
    slots: HashMap<Key, Slot>,
    /// Keys in the order in which they are looked at when room is needed; each once.
    hand: VecDeque<Key>,
    /// Those of them whose responses were purged. Looking for them in the whole order would keep calls waiting.
    purged: HashSet<Key>,
    bytes: usize,
    flights: HashMap<Key, Arc<Flight>>,
}

impl Shard {
    /// A key stands in the order without a response. Many such are taken out together.
    fn note_purged(&mut self, key: Key) {
        self.purged.insert(key);
        if self.purged.len() > self.slots.len().max(FEW_PURGED) {
            self.hand.retain(|known| !self.purged.contains(known));
            self.purged.clear();
        }
    }
}

/// What a look for a response finds.
pub(super) enum ZoneLookup {
    /// A response. It stands under this key.
    Hit(Arc<CacheEntry>, Freshness, Key),
    /// Nothing under this key, and no call should wait.
    Pass(Key),
    /// Nothing under this key.
    Nothing(Key),
    /// Nothing in memory under this key, but perhaps on the disk.
    OnDisk(Key),
}

/// The store.
pub(super) struct Zone {
    shards: [Mutex<Shard>; SHARDS],
    max_shard_bytes: usize,
    salt: AtomicU64,
    /// Where responses are kept besides, and the place once it was needed.
    disk: Option<(Disk, Arc<dyn DiskCaches>)>,
    disk_cache: OnceLock<Arc<dyn DiskCache>>,
}

impl Zone {
    /// A store of so many bytes of memory at most.
    pub(super) fn new(max_bytes: usize, disk: Option<(Disk, Arc<dyn DiskCaches>)>) -> Self {
        Self {
            shards: Default::default(),
            max_shard_bytes: max_bytes / SHARDS,
            salt: AtomicU64::new(1),
            disk,
            disk_cache: OnceLock::new(),
        }
    }

    /// The disk. It is opened by the first call that needs it, not by a configuration that is only checked.
    pub(super) fn disk_cache(&self) -> Option<&Arc<dyn DiskCache>> {
        let (disk, disk_caches) = self.disk.as_ref()?;
        Some(
            self.disk_cache
                .get_or_init(|| disk_caches.open(&disk.path, disk.size)),
        )
    }

    /// The largest body that is stored.
    pub(super) fn max_body(&self) -> usize {
        self.max_shard_bytes / 2
    }

    fn shard(&self, key: &Key) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[usize::from(key[0]) % SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for the response to a request.
    pub(super) fn look(&self, key: &Key, request: &Headers, now_ms: u64) -> ZoneLookup {
        let (names, salt) = match self.shard(key).slots.get(key) {
            Some(Slot::Vary { names, salt, .. }) => (Arc::clone(names), *salt),
            Some(slot) => return slot.found(*key, now_ms),
            None => return self.look_on_disk(*key),
        };
        let variant = variant_key(key, &names, salt, request);
        if let Some(slot) = self.shard(&variant).slots.get(&variant) {
            return slot.found(variant, now_ms);
        }
        self.look_on_disk(variant)
    }

    fn look_on_disk(&self, key: Key) -> ZoneLookup {
        match self
            .disk_cache()
            .is_some_and(|disk_cache| disk_cache.may_have(&key))
        {
            true => ZoneLookup::OnDisk(key),
            false => ZoneLookup::Nothing(key),
        }
    }

    /// The lead of fetching what stands under a key, or how to wait for the caller that has it. A caller leads for as long
    /// as others wait, which is `wait_ms`; then the next one takes over.
    pub(super) fn lead(self: &Arc<Self>, key: Key, now_ms: u64, wait_ms: u64) -> FlightRole {
        let mut shard = self.shard(&key);
        if let Some(flight) = shard.flights.get(&key)
            && !flight.is_overdue(now_ms, wait_ms)
        {
            return FetchCompleted::of(flight).map_or(FlightRole::Full, FlightRole::Wait);
        }
        let flight = Arc::new(Flight::new(now_ms));
        shard.flights.insert(key, Arc::clone(&flight));
        FlightRole::FetchLeader(FetchLeader::new(Arc::clone(self), key, flight))
    }

    /// A fetch is over. Another one may have taken over meanwhile.
    pub(super) fn land(&self, key: &Key, flight: &Arc<Flight>) {
        let mut shard = self.shard(key);
        if shard.flights.get(key).is_some_and(|it| Arc::ptr_eq(it, flight)) {
            shard.flights.remove(key);
        }
    }

    /// Callers that wait for a fetch.
    #[cfg(test)]
    pub(super) fn waiters(&self) -> usize {
        let lock = |shard: &Mutex<Shard>| {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard
                .flights
                .values()
                .map(|flight| flight.waiters())
                .sum::<usize>()
        };
        self.shards.iter().map(lock).sum()
    }

    /// Stores a response. `vary`: the request headers by which responses to this key differ.
    pub(super) fn store(&self, key: &Key, vary: &[String], request: &Headers, entry: CacheEntry) {
        let place = match vary.is_empty() {
            true => *key,
            false => {
                let (names, salt) = self.vary(key, vary, entry.times.stored);
                let place = variant_key(key, &names, salt, request);
                if let Some(Slot::Vary { latest, .. }) = self.shard(key).slots.get_mut(key) {
                    *latest = Some(place);
                }
                place
            }
        };
        let slot = Slot::Response {
            entry: Arc::new(entry),
            used: AtomicBool::new(false),
        };
        self.keep(&place, slot);
    }

    /// Stores a response again under the key under which it stands, with newer headers or times.
    pub(super) fn renew(&self, place: &Key, entry: CacheEntry) {
        let slot = Slot::Response {
            entry: Arc::new(entry),
            used: AtomicBool::new(true),
        };
        self.keep(place, slot);
    }

    /// Keeps something in memory and on the disk.
    fn keep(&self, key: &Key, slot: Slot) {
        if let Some(disk_cache) = self.disk_cache()
            && let Some(data) = disk_codec::write(&slot)
        {
            disk_cache.write(*key, data);
        }
        self.put(key, slot);
    }

    /// Notes by which headers responses to this key differ. Those stored under others are found no more.
    fn vary(&self, key: &Key, vary: &[String], now_ms: u64) -> (Arc<[String]>, u64) {
        if let Some(Slot::Vary { names, salt, .. }) = self.shard(key).slots.get(key)
            && names[..] == *vary
        {
            return (Arc::clone(names), *salt);
        }
        let names: Arc<[String]> = vary.into();
        // One that no process before this one has used: what is on a disk under it was to be forgotten.
        let salt = self.new_salt(now_ms);
        let slot = Slot::Vary {
            names: Arc::clone(&names),
            salt,
            latest: None,
        };
        self.keep(key, slot);
        (names, salt)
    }

    /// A salt that no earlier list of headers has had.
    pub(super) fn new_salt(&self, now_ms: u64) -> u64 {
        now_ms << 12 | self.salt.fetch_add(1, Ordering::Relaxed) & 0xfff
    }

    /// Records that no call should wait for this key, unless there is a response.
    pub(super) fn pass(&self, key: &Key, until_ms: u64) {
        let is_response = matches!(
            self.shard(key).slots.get(key),
            Some(Slot::Response { .. } | Slot::Vary { .. })
        );
        if !is_response {
            self.put(key, Slot::Pass { until_ms });
        }
    }

    /// Whether a usable entry is in memory under a key.
    pub(super) fn is_in_memory(&self, key: &Key) -> bool {
        matches!(
            self.shard(key).slots.get(key),
            Some(Slot::Response { .. } | Slot::Vary { .. })
        )
    }

    /// Whether nothing is in memory under a key, but perhaps on the disk.
    pub(super) fn is_perhaps_on_disk(&self, key: &Key) -> bool {
        !self.shard(key).slots.contains_key(key) && matches!(self.look_on_disk(*key), ZoneLookup::OnDisk(_))
    }

    /// Forgets all responses to a key. Says whether there was one, or may have been one on the disk.
    pub(super) fn purge(&self, key: &Key) -> bool {
        let was_on_disk = self.disk_cache().is_some_and(|disk_cache| {
            let was_there = disk_cache.may_have(key);
            disk_cache.remove(*key);
            was_there
        });
        let mut shard = self.shard(key);
        let removed = shard.slots.remove(key);
        if let Some(slot) = &removed {
            shard.bytes -= slot.bytes();
            shard.note_purged(*key);
        }
        was_on_disk || matches!(removed, Some(Slot::Response { .. } | Slot::Vary { .. }))
    }

    /// The usable response under a key, whatever callers accept; the latest, if there are several.
    pub(super) fn kept(&self, key: &Key, now_ms: u64) -> Option<Arc<CacheEntry>> {
        let variant = match self.shard(key).slots.get(key)? {
            Slot::Vary { latest, .. } => *latest,
            slot => return slot.entry(now_ms),
        };
        let variant = variant?;
        self.shard(&variant).slots.get(&variant)?.entry(now_ms)
    }

    /// Forgets all that is in memory. What is being fetched is kept once it is there.
    pub(super) fn clear(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.slots.clear();
            shard.hand.clear();
            shard.purged.clear();
            shard.bytes = 0;
        }
    }

    /// Keeps in memory what comes from the disk, unless something newer came meanwhile.
    pub(super) fn put_if_absent(&self, key: &Key, slot: Slot) {
        if !self.shard(key).slots.contains_key(key) {
            self.put(key, slot);
        }
    }

    fn put(&self, key: &Key, slot: Slot) {
        let bytes = slot.bytes();
        if bytes > self.max_shard_bytes {
            return;
        }
        let mut shard = self.shard(key);
        match shard.slots.insert(*key, slot) {
            Some(old) => shard.bytes -= old.bytes(),
            // It may still stand in the order.
            None if shard.purged.remove(key) => {}
            None => shard.hand.push_back(*key),
        }
        shard.bytes += bytes;
        while shard.bytes > self.max_shard_bytes {
            let Some(oldest) = shard.hand.pop_front() else {
                break;
            };
            let is_used = match shard.slots.get(&oldest) {
                Some(Slot::Response { used, .. }) => used.swap(false, Ordering::Relaxed),
                _ => false,
            };
            shard.purged.remove(&oldest);
            if is_used || oldest == *key {
                shard.hand.push_back(oldest);
            } else if let Some(slot) = shard.slots.remove(&oldest) {
                shard.bytes -= slot.bytes();
            }
        }
    }

    /// How many bytes the entries take.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let shards = self.shards.iter();
        shards
            .map(|shard| shard.lock().expect("not poisoned").bytes)
            .sum()
    }
}

impl Slot {
    /// The response, if there is one that can still be used.
    fn entry(&self, now_ms: u64) -> Option<Arc<CacheEntry>> {
        match self {
            Self::Response { entry, .. } if entry.times.freshness(now_ms) != Freshness::Over => {
                Some(Arc::clone(entry))
            }
            _ => None,
        }
    }

    fn found(&self, key: Key, now_ms: u64) -> ZoneLookup {
        match self {
            Self::Response { entry, used } => {
                let freshness = entry.times.freshness(now_ms);
                if freshness != Freshness::Over {
                    used.store(true, Ordering::Relaxed);
                }
                ZoneLookup::Hit(Arc::clone(entry), freshness, key)
            }
            Self::Pass { until_ms } if now_ms < *until_ms => ZoneLookup::Pass(key),
            Self::Pass { .. } | Self::Vary { .. } => ZoneLookup::Nothing(key),
        }
    }
}

/// The key of the responses to requests that are alike in these headers.
pub(super) fn variant_key(key: &Key, names: &[String], salt: u64, request: &Headers) -> Key {
    let mut digest = super::key::Digest::new();
    digest.part(key);
    digest.part(&salt.to_le_bytes());
    for name in names {
        digest.values(request.get_all(name.as_bytes()));
    }
    digest.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purged_keys_leave_no_trail_and_stand_in_the_order_once() {
        let zone = Zone::new(1 << 20, None);
        let key = |number: u32| {
            let mut key = Key::default();
            key[1..5].copy_from_slice(&number.to_be_bytes());
            key
        };
        for round in 0..20 {
            for number in 0..1_000 {
                zone.pass(&key(number), 5);
            }
            for number in (0..1_000).filter(|number| (number + round) % 3 > 0) {
                zone.purge(&key(number));
            }
            let shard = zone.shard(&key(0));
            assert_eq!(
                shard.hand.len(),
                shard.slots.len() + shard.purged.len(),
                "{round}"
            );
            assert!(shard.purged.len() <= shard.slots.len().max(FEW_PURGED), "{round}");
            let in_order: HashSet<&Key> = shard.hand.iter().collect();
            assert_eq!(in_order.len(), shard.hand.len(), "each once");
        }
    }
}
