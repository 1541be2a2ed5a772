//! The days on which the keys of subscribers were used last: gateways report them, and the operational store keeps
//! them.
//!
//! They come with the reports of gateways. A control plane keeps the latest day of each key, if it is one of an
//! environment that the gateway serves. **What it is not**: a count of calls. Analytics have those.

use crate::operational::{OperationalError, OperationalStore, OperationalWrite};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use weir_apis::entities::{Credential, Product, Subscription};
use weir_model::unix_time::seconds;
use weir_store::{Key, Store};

/// The prefix of the keys of documents.
const PREFIX: &str = "credentials/used/";
/// Seconds of a day.
const DAY: u64 = 86_400;
/// How long a day is kept.
const LIFE: Duration = Duration::from_secs(400 * DAY);
/// How often reported days are written.
const EVERY: Duration = Duration::from_secs(5);
/// Keys that are kept at a time.
const A_TURN: usize = 1_000;
/// Uses that wait to be kept.
const MAX_WAITING: usize = 200_000;

/// What gateways have reported and the store does not have yet. Cheap to share.
#[derive(Debug, Clone, Default)]
pub struct ReportedUses(Arc<Mutex<BTreeMap<String, ReportedUse>>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ReportedUse {
    /// Counted from 1970.
    day: u32,
    /// Those of the gateway.
    environments: BTreeSet<String>,
}

impl ReportedUses {
    /// Adds the report of a gateway of these environments. A day that is yet to come is that of a wrong clock.
    pub fn add(&self, used: BTreeMap<String, u32>, environments: &[String], now: SystemTime) {
        let today = seconds(now) / DAY;
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, day) in used {
            let has_room = waiting.len() < MAX_WAITING || waiting.contains_key(&id);
            if !has_room || u64::from(day) > today + 1 {
                continue;
            }
            let none = ReportedUse {
                day,
                environments: BTreeSet::new(),
            };
            let known = waiting.entry(id).or_insert(none);
            known.day = known.day.max(day);
            known.environments.extend(environments.iter().cloned());
        }
    }

    fn give_back(&self, batch: Vec<(String, ReportedUse)>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, used) in batch {
            // What was reported meanwhile is later.
            waiting.entry(id).or_insert(used);
        }
    }

    fn take(&self) -> Vec<(String, ReportedUse)> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ids: Vec<String> = waiting.keys().take(A_TURN).cloned().collect();
        ids.into_iter()
            .filter_map(|id| waiting.remove_entry(&id))
            .collect()
    }
}

/// Writes what gateways report, until the process ends.
pub async fn keep(reported: ReportedUses, store: Arc<dyn Store>, operational: OperationalStore) {
    loop {
        tokio::time::sleep(EVERY).await;
        let batch = reported.take();
        if let Err(error) = turn(&batch, &*store, &operational, SystemTime::now()).await {
            tracing::warn!(%error, "the last uses of keys cannot be stored; retrying");
            reported.give_back(batch);
        }
    }
}

async fn turn(
    batch: &[(String, ReportedUse)],
    store: &dyn Store,
    operational: &OperationalStore,
    now: SystemTime,
) -> Result<(), OperationalError> {
    let mut writes = Vec::new();
    for (id, used) in batch {
        let Some(environments) = environments_of(store, id).await? else {
            continue;
        };
        let key = key_of(id)?;
        let known = operational.read::<u32>(&key, now).await?;
        let is_new = known.is_none_or(|it| it.value < used.day);
        if is_new && !environments.is_disjoint(&used.environments) {
            writes.push(OperationalWrite::put(key, &used.day, Some(now + LIFE))?);
        }
    }
    match writes.is_empty() {
        true => Ok(()),
        false => operational.write(writes, now).await,
    }
}

fn key_of(id: &str) -> Result<Key, OperationalError> {
    Key::new(&format!("{PREFIX}{id}")).map_err(OperationalError::Name)
}

async fn entity<T: DeserializeOwned>(store: &dyn Store, key: &str) -> Result<Option<T>, OperationalError> {
    let (documents, _) = store.read(key).await?;
    let found = documents.iter().find(|it| it.key.as_str() == key);
    Ok(found.and_then(|it| serde_json::from_slice(&it.value).ok()))
}

/// The environments in which a credential is good; `None`: it does not exist.
async fn environments_of(store: &dyn Store, id: &str) -> Result<Option<BTreeSet<String>>, OperationalError> {
    let Some(credential) = entity::<Credential>(store, &format!("apis/credentials/{id}")).await? else {
        return Ok(None);
    };
    let key = format!("apis/subscriptions/{}", credential.subscription);
    let Some(subscription) = entity::<Subscription>(store, &key).await? else {
        return Ok(None);
    };
    if subscription.product.is_empty() {
        let environment = subscription.publication.rsplit('/').next().unwrap_or_default();
        return Ok(Some(BTreeSet::from([environment.to_owned()])));
    }
    let product = entity::<Product>(store, &format!("apis/products/{}", subscription.product)).await?;
    Ok(product.map(|it| it.environments().into_iter().collect()))
}

/// When credentials were used last: the beginning of the day in UTC, in seconds since 1970. Those that are not in it were not used
/// for long.
///
/// # Errors
/// The store cannot be reached or read.
pub async fn last_uses(
    operational: &OperationalStore,
    ids: &[String],
    now: SystemTime,
) -> Result<BTreeMap<String, u64>, OperationalError> {
    let mut found = BTreeMap::new();
    for id in ids {
        if let Some(day) = operational.read::<u32>(&key_of(id)?, now).await? {
            found.insert(id.clone(), u64::from(day.value) * DAY);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use serde_json::json;
    use weir_store::memory::MemoryStore;
    use weir_store::{Change, Transaction};

    #[tokio::test]
    async fn the_latest_day_of_keys_of_the_gateways_environments_is_kept() {
        let store = MemoryStore::new();
        let documents = [
            ("credentials/a", json!({"id": "a", "subscription": "s"})),
            ("credentials/b", json!({"id": "b", "subscription": "t"})),
            ("subscriptions/s", json!({"publication": "pets/1/test"})),
            ("subscriptions/t", json!({"product": "all"})),
            (
                "products/all",
                json!({"publications": {"pets/1/prod": [], "cats/1/test": []}}),
            ),
        ];
        let changes = documents.map(|(key, value)| {
            let key = Key::new(&format!("apis/{key}")).expect("a key");
            Change::put(key, value.to_string().into_bytes())
        });
        let written = Transaction {
            author: "ann".to_owned(),
            note: String::new(),
            time: SystemTime::now(),
            changes: changes.into(),
        };
        store.append(written).await.expect("written");
        let (operational, reported) = (OperationalStore::in_memory(), ReportedUses::default());
        let now = UNIX_EPOCH + Duration::from_secs(20_000 * DAY);
        for (id, day, environments, expected) in [
            ("a", 20_000, vec!["test"], Some(20_000)),
            ("a", 19_999, vec!["test"], Some(20_000)),
            // A clock that is ahead for more than a day, and a gateway of another environment.
            ("a", 20_002, vec!["test"], Some(20_000)),
            ("a", 20_001, vec!["prod"], Some(20_000)),
            ("a", 20_001, vec!["prod", "test"], Some(20_001)),
            ("b", 20_000, vec!["other"], None),
            ("b", 20_000, vec!["prod"], Some(20_000)),
            ("c", 20_000, vec!["test"], None),
        ] {
            let environments: Vec<String> = environments.into_iter().map(str::to_owned).collect();
            reported.add(BTreeMap::from([(id.to_owned(), day)]), &environments, now);
            let batch = reported.take();
            turn(&batch, &store, &operational, now).await.expect("kept");
            let found = last_uses(&operational, &[id.to_owned()], now)
                .await
                .expect("read");
            let expected = expected.map(|day: u64| day * DAY);
            assert_eq!(found.get(id).copied(), expected, "{id} {day} {environments:?}");
        }
        assert!(reported.take().is_empty());
    }
}
