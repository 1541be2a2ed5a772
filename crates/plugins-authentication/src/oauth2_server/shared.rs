//! Codes and tokens that all gateways of a store know: they are committed there before a call is answered, and each gateway
//! has a copy of all of them. A token that the copy lacks is looked for in the store, as it may be a moment old.

use super::records::{Change, Hash, Put, Record, Records, hash};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_plugin::{
    Committed, PendingResult, SharedChange, SharedRecord, SharedRecords, SharedStore, StoreUnavailable,
    awaited, system_clock,
};

/// How long a call waits for the store.
pub(super) const STORE_TIMEOUT: Duration = Duration::from_secs(6);
/// How many unknown tokens are looked for in the store in a second, and how many of them for one client; others are
/// unknown. Guesses do not keep the store busy, and those of one client leave room for the tokens of others.
const MAX_FETCHES: u32 = 500;
const MAX_FETCHES_OF_CLIENT: u32 = 50;
/// A token that the store did not have is not looked up again for one to two of these periods. If the token appears,
/// the store's change feed reports it.
const MISSING_MS: u64 = 5_000;

/// Where records are shared.
pub(super) struct Sharing {
    store: Arc<dyn SharedStore>,
    fetches: Mutex<Fetches>,
}

/// What was looked for of late. It is bounded by how much is looked for in the time that it is of.
#[derive(Default)]
struct Fetches {
    second: u64,
    /// In this second: how many for each client, and for all.
    by_client: HashMap<IpAddr, u32>,
    count: u32,
    /// Which time it is, and the tokens that the store did not have, in this one and in the one before.
    time: u64,
    missing: [HashSet<Hash>; 2],
}

impl Fetches {
    fn go_on(&mut self, now_ms: u64) {
        let (second, time) = (now_ms / 1_000, now_ms / MISSING_MS);
        if self.second != second {
            (self.second, self.count) = (second, 0);
            self.by_client.clear();
        }
        if self.time != time {
            let last = std::mem::take(&mut self.missing[0]);
            self.missing[1] = if self.time + 1 == time {
                last
            } else {
                HashSet::new()
            };
            self.time = time;
        }
    }

    /// Whether a token may be looked for. It is counted then.
    fn admit(&mut self, hash: &Hash, client: IpAddr, now_ms: u64) -> bool {
        self.go_on(now_ms);
        if self.count >= MAX_FETCHES || self.missing.iter().any(|missing| missing.contains(hash)) {
            return false;
        }
        let of_client = self.by_client.entry(network(client)).or_insert(0);
        if *of_client >= MAX_FETCHES_OF_CLIENT {
            return false;
        }
        *of_client += 1;
        self.count += 1;
        true
    }
}

/// What stands for a client: who has one address of IPv6 has its whole /64.
pub(super) fn network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

/// A record as the store has it.
#[derive(Serialize, Deserialize)]
struct StoreRecord {
    made_ms: u64,
    record: Record,
}

/// The result of a change.
pub(super) enum ChangeResult {
    /// Whether it was made.
    Now(bool),
    /// The store says so later.
    Later(PendingResult<Result<bool, StoreUnavailable>>),
}

/// The records of a plugin, as all of its instances have them.
pub(super) struct SharedTokens(pub(super) Arc<Records>);

fn name(hash: &Hash) -> String {
    HEXLOWER.encode(hash)
}

fn hash_of(name: &str) -> Option<Hash> {
    HEXLOWER.decode(name.as_bytes()).ok()?.try_into().ok()
}

fn stored(record: &Record, made_ms: u64) -> Value {
    let record = serde_json::to_value(record).unwrap_or_default();
    json!({"made_ms": made_ms, "record": record})
}

/// `None`: a version of later has written it, and this one does not know what it is.
fn read(hash: Hash, shared: SharedRecord) -> Option<Put> {
    let StoreRecord { made_ms, record } = serde_json::from_value(shared.value).ok()?;
    Some(Put {
        hash,
        record,
        ends_ms: shared.ends_ms,
        made_ms,
    })
}

impl Records {
    /// Makes a change, in the store if there is one.
    pub(super) fn commit(self: &Arc<Self>, mut change: Change, now_ms: u64) -> ChangeResult {
        let Some(sharing) = self.sharing.get() else {
            return ChangeResult::Now(self.apply(&change, now_ms));
        };
        if change.puts.is_empty() && change.removes.is_empty() {
            return ChangeResult::Now(true);
        }
        change.removes.extend(self.surplus(&change));
        let Some(shared) = self.shared_change(&change) else {
            return ChangeResult::Now(false);
        };
        let (deliver, awaited) = awaited();
        let records = Arc::clone(self);
        sharing.store.commit(
            shared,
            Box::new(move |done| {
                deliver.deliver(done.map(|revision| match revision {
                    Some(revision) => {
                        let gone = change.removes.into_iter().map(|hash| (hash, None));
                        let puts = change.puts.into_iter().map(|put| (put.hash, Some(put)));
                        records.apply_newer(revision, gone.chain(puts).collect());
                        true
                    }
                    None => false,
                }));
            }),
        );
        ChangeResult::Later(awaited)
    }

    /// `None`: another call was faster.
    fn shared_change(&self, change: &Change) -> Option<SharedChange> {
        let mut expected = Vec::new();
        if let Some((hash, record)) = &change.unless_changed {
            let state = self.read();
            let kept = state.kept(hash).filter(|kept| kept.record == *record)?;
            expected.push((name(hash), Some(stored(&kept.record, kept.made_ms))));
        }
        if let Some(hash) = &change.unless_there {
            expected.push((name(hash), None));
        }
        let is_put = |hash: &Hash| change.puts.iter().any(|put| put.hash == *hash);
        let mut removes = change.removes.clone();
        removes.retain(|hash| !is_put(hash));
        removes.sort_unstable();
        removes.dedup();
        let puts = change.puts.iter().map(|put| {
            let record = SharedRecord {
                value: stored(&put.record, put.made_ms),
                ends_ms: put.ends_ms,
            };
            (name(&put.hash), record)
        });
        Some(SharedChange {
            expected,
            puts: puts.collect(),
            removes: removes.iter().map(name).collect(),
        })
    }

    /// Looks in the store for a record that is not known. `None`: it is known, the store did not have it a moment ago, or
    /// there is nowhere to look.
    pub(super) fn fetch(
        self: &Arc<Self>,
        hash: &Hash,
        client: IpAddr,
        now_ms: u64,
    ) -> Option<PendingResult<Result<(), StoreUnavailable>>> {
        let sharing = self.sharing.get()?;
        if self.find(hash, now_ms).is_some() || !sharing.fetches().admit(hash, client, now_ms) {
            return None;
        }
        let (deliver, awaited) = awaited();
        let (records, hash) = (Arc::clone(self), *hash);
        sharing.store.read(
            &name(&hash),
            Box::new(move |found| {
                deliver.deliver(found.map(|(shared, revision)| {
                    match shared.and_then(|shared| read(hash, shared)) {
                        Some(put) => records.apply_newer(revision, vec![(hash, Some(put))]),
                        None => records.note_missing(hash),
                    }
                }));
            }),
        );
        Some(awaited)
    }

    /// The store does not have a record.
    fn note_missing(&self, hash: Hash) {
        if let Some(sharing) = self.sharing.get() {
            sharing.fetches().missing[0].insert(hash);
        }
    }
}

impl Sharing {
    fn fetches(&self) -> MutexGuard<'_, Fetches> {
        // Every change leaves it whole.
        self.fetches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedRecords for SharedTokens {
    fn share(&self, store: Arc<dyn SharedStore>) {
        let fetches = Mutex::default();
        // The first one stays: there is one store for a process.
        let _is_first = self.0.sharing.set(Sharing { store, fetches });
    }

    fn apply(&self, revision: u64, changes: Vec<(String, Option<SharedRecord>)>) {
        let changes = changes.into_iter().filter_map(|(name, shared)| {
            let hash = hash_of(&name)?;
            Some((hash, shared.and_then(|shared| read(hash, shared))))
        });
        self.0.follow(revision, changes.collect(), system_clock());
    }

    fn list(&self, now_ms: u64) -> Vec<(String, Value)> {
        let state = self.0.read();
        let tokens = state.all().filter_map(|(hash, kept)| {
            let Record::Token(token) = &*kept.record else {
                return None;
            };
            let is_there = kept.ends_ms.is_none_or(|end| now_ms < end);
            let (dialect, workspace) = token.owner.place();
            let value = json!({
                "dialect": dialect,
                "workspace": workspace,
                "client": token.owner.client,
                "service": token.grant.service,
                "scope": token.grant.scope,
                "user": token.grant.user,
                "created_s": token.created_ms / 1_000,
                "expires_seconds": token.expires_seconds,
                "has_refresh_token": token.refresh.is_some(),
                "ends_ms": kept.ends_ms,
            });
            is_there.then(|| (name(hash), value))
        });
        let mut tokens: Vec<(String, Value)> = tokens.collect();
        tokens.sort_by(|one, other| one.0.cmp(&other.0));
        tokens
    }

    fn name_of(&self, text: &str) -> String {
        name(&hash(text))
    }

    fn remove(&self, name: &str, then: Committed) {
        let Some(hash) = hash_of(name) else {
            return then(Ok(None));
        };
        let change = Change {
            removes: vec![hash],
            ..Change::default()
        };
        let Some(sharing) = self.0.sharing.get() else {
            self.0.apply(&change, system_clock());
            return then(Ok(Some(0)));
        };
        let records = Arc::clone(&self.0);
        let shared = SharedChange {
            removes: vec![name.to_owned()],
            ..SharedChange::default()
        };
        sharing.store.commit(
            shared,
            Box::new(move |done| {
                if let Ok(Some(revision)) = done {
                    records.apply_newer(revision, vec![(hash, None)]);
                }
                then(done);
            }),
        );
    }
}

#[cfg(test)]
mod tests;
