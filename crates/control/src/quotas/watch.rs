//! Tells developers that a quota is nearly used up, and that it is: by mail, by webhook, and behind the bell. Once for each
//! level, window and subscription, whichever control plane sees it.
//!
//! **What it is not**: limits by the second, minute and hour are over before somebody reads of them; nothing is told.

use super::{Meter, Used, summed};
use crate::operational::{OperationalError, Write};
use crate::outbox::feed::FeedError;
use crate::outbox::{Outbox, Receivers};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weir_analytics::StoreError as AnalyticsError;
use weir_apis::entities::{Limit, Period, Plan, Product, Subscription, SubscriptionState};
use weir_apis::quota::{self, Place, Reached};
use weir_store::{Document, Key, Store};

/// How often quotas are looked at.
const EVERY: Duration = Duration::from_secs(5);
/// Looking at them takes at most one part of so many of the time.
const REST: u32 = 50;
/// Applications that analytics are asked for at once.
const AT_ONCE: usize = 100;
/// Below here is what was told.
const TOLD: &str = "quotas/";

/// What was said about a quota in the window that is open.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Told {
    level: u8,
}

/// Why developers are not told.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// A store does not do its part.
    #[error(transparent)]
    Store(#[from] FeedError),
    /// The analytics do not answer.
    #[error(transparent)]
    Analytics(#[from] AnalyticsError),
}

impl From<OperationalError> for WatchError {
    fn from(error: OperationalError) -> Self {
        Self::Store(error.into())
    }
}

/// What watches over the quotas of a store.
pub struct Watch {
    store: Arc<dyn Store>,
    outbox: Outbox,
    meter: Meter,
}

/// A quota of a subscription in an environment.
struct Quota {
    subscription: Subscription,
    place: Place,
    limit: Limit,
}

fn entities<T: serde::de::DeserializeOwned>(documents: &[Document], prefix: &str) -> BTreeMap<String, T> {
    let read = |it: &Document| {
        let name = it.key.as_str().strip_prefix(prefix)?;
        Some((name.to_owned(), serde_json::from_slice(&it.value).ok()?))
    };
    documents.iter().filter_map(read).collect()
}

/// The quotas of all subscriptions that are good.
fn quotas(documents: &[Document]) -> Vec<Quota> {
    let plans: BTreeMap<String, Plan> = entities(documents, "apis/plans/");
    let of_products: BTreeMap<String, Plan> = entities(documents, "apis/product-plans/");
    let products: BTreeMap<String, Product> = entities(documents, "apis/products/");
    let subscriptions: BTreeMap<String, Subscription> = entities(documents, "apis/subscriptions/");
    let mut found = Vec::new();
    for subscription in subscriptions.into_values() {
        if subscription.state != SubscriptionState::Accepted {
            continue;
        }
        let plan = match subscription.product.as_str() {
            "" => subscription
                .publication
                .rsplit_once('/')
                .and_then(|(version, _)| plans.get(&format!("{version}/{}", subscription.plan))),
            product => of_products.get(&format!("{product}/{}", subscription.plan)),
        };
        let limits = plan
            .into_iter()
            .flat_map(|it| &it.limits)
            .filter(|it| it.is_quota());
        let places = quota::places(&subscription, products.get(&subscription.product));
        for limit in limits {
            found.extend(places.iter().map(|place| Quota {
                subscription: subscription.clone(),
                place: place.clone(),
                limit: *limit,
            }));
        }
    }
    found
}

impl Watch {
    /// Over a store, with what knows how limits stand.
    pub fn new(store: Arc<dyn Store>, outbox: Outbox, meter: Meter) -> Self {
        Self { store, outbox, meter }
    }

    /// Tells developers until the process ends.
    pub async fn run(self) {
        let mut pause = EVERY;
        loop {
            tokio::time::sleep(pause).await;
            let began = Instant::now();
            if let Err(error) = self.round(SystemTime::now()).await {
                tracing::warn!(%error, "developers do not hear about quotas; it is tried again");
            }
            pause = EVERY.max(began.elapsed() * REST);
        }
    }

    /// Tells what is to be told at a time. Gives how many quotas that were.
    ///
    /// # Errors
    /// A store does not do its part. What was told stays told.
    pub async fn round(&self, now: SystemTime) -> Result<usize, WatchError> {
        // Most have no quotas.
        let (plans, _) = self.store.read("apis/plans/").await.map_err(FeedError::from)?;
        let (of_products, _) = self
            .store
            .read("apis/product-plans/")
            .await
            .map_err(FeedError::from)?;
        let has_quota = |it: &Document| {
            let plan = serde_json::from_slice::<Plan>(&it.value);
            plan.is_ok_and(|it| it.is_shared())
        };
        if !plans.iter().chain(&of_products).any(has_quota) {
            return Ok(0);
        }
        let Some(_alone) = self.outbox.write_alone(now).await? else {
            return Ok(0);
        };
        let (documents, _) = self.store.read("apis/").await.map_err(FeedError::from)?;
        let quotas = quotas(&documents);
        let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
        let mut receivers = Receivers::of(&documents);
        let mut count = 0;
        for (quota, used) in self.used(quotas, seconds).await? {
            let Some(level) = quota::level(used.calls, quota.limit.count) else {
                continue;
            };
            let reached = Reached {
                level,
                used: used.calls,
                resets: used.resets,
            };
            count += usize::from(self.tell(&quota, &reached, &mut receivers, now).await?);
        }
        if count > 0 {
            self.outbox.notify();
        }
        Ok(count)
    }

    /// How quotas stand. Those of which nothing is known are left out.
    async fn used(&self, quotas: Vec<Quota>, now: u64) -> Result<Vec<(Quota, Used)>, AnalyticsError> {
        let mut known = Vec::new();
        let mut unknown: BTreeMap<&str, (Period, Vec<Quota>)> = BTreeMap::new();
        for quota in quotas {
            let per = quota.limit.per;
            match self.meter.counted(&quota.place, (&quota.subscription, per), now) {
                Some(used) => known.push((quota, used)),
                None => {
                    let name = match per {
                        Period::Month => "month",
                        Period::Week => "week",
                        _ => "day",
                    };
                    unknown
                        .entry(name)
                        .or_insert_with(|| (per, Vec::new()))
                        .1
                        .push(quota);
                }
            }
        }
        for (per, quotas) in unknown.into_values() {
            let (begin, end) = quota::window(per, now);
            let names: BTreeSet<String> = quotas
                .iter()
                .map(|it| it.subscription.application.clone())
                .collect();
            let names: Vec<String> = names.into_iter().collect();
            let mut reported = Vec::new();
            for names in names.chunks(AT_ONCE) {
                match self.meter.reported(names.to_vec(), (begin, now)).await? {
                    Some(more) => reported.extend(more),
                    None => return Ok(known),
                }
            }
            known.extend(quotas.into_iter().map(|quota| {
                let used = summed(&reported, &quota.place, &quota.subscription, end);
                (quota, used)
            }));
        }
        Ok(known)
    }

    /// Tells developers of a quota, if they do not know of it. `false`: they do.
    async fn tell(
        &self,
        quota: &Quota,
        reached: &Reached,
        receivers: &mut Receivers,
        now: SystemTime,
    ) -> Result<bool, WatchError> {
        let event = quota::event(
            &quota.subscription,
            &quota.place.environment,
            &quota.limit,
            reached,
        );
        let key = format!(
            "{TOLD}{}/{}/{}",
            quota.subscription.id,
            quota.place.environment,
            event.get("per")
        );
        let key = Key::new(&key).map_err(OperationalError::Name)?;
        let store = self.outbox.store();
        let told = store.read::<Told>(&key, now).await?;
        if told.is_some_and(|it| it.value.level >= reached.level) {
            return Ok(false);
        }
        let noted = Told { level: reached.level };
        let until = UNIX_EPOCH + Duration::from_secs(reached.resets);
        let mut writes = vec![Write::put(key, &noted, Some(until))?];
        writes.extend(self.outbox.writes_about(receivers, &event, now).await?);
        store.write(writes, now).await?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
