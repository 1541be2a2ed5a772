//! Notifies developers that a quota is nearly used up, and that it is: by mail, by webhook, and behind the bell. Once
//! for each level, window and subscription, whichever control plane sees it.
//!
//! **What it is not**: limits by the second, minute and hour are over before a developer reads of them; nothing is
//! sent.

use super::{Meter, QuotaUsage};
use crate::operational::{OperationalError, OperationalWrite};
use crate::outbox::feed::FeedError;
use crate::outbox::{Outbox, PendingByApplication, Receivers};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use weir_analytics::StoreError as AnalyticsError;
use weir_analytics::retention::MINUTE;
use weir_apis::entities::{Limit, Period, Plan, Product, Subscription, SubscriptionState};
use weir_apis::quota::{self, QuotaLevel, QuotaScope};
use weir_model::unix_time;
use weir_store::{BadKey, Document, Key, Store};

/// How often quotas are looked at.
const EVERY: Duration = Duration::from_secs(5);
/// Looking at them takes at most one part of so many of the time.
const REST: u32 = 50;
/// The prefix of what was sent.
const NOTIFIED_PREFIX: &str = "quotas/";

/// The notice about a quota in the window that is open.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct NoticeRecord {
    level: u8,
    /// The limit then: with another one, the same level is news. Earlier versions did not write it.
    #[serde(default)]
    limit: Option<u64>,
}

impl NoticeRecord {
    /// Whether developers know that a level of a limit is reached.
    fn covers(self, level: u8, limit: u64) -> bool {
        self.level >= level && self.limit.is_none_or(|it| it == limit)
    }
}

/// Why developers get no notification.
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

/// Watches over the quotas of a store.
pub struct QuotaWatcher {
    store: Arc<dyn Store>,
    outbox: Outbox,
    meter: Meter,
}

/// What is needed to notify developers, read once for all quotas.
struct NotifyContext {
    receivers: Receivers,
    waiting: PendingByApplication,
    /// When the round began.
    now: SystemTime,
    began: Instant,
}

/// A quota of a subscription in an environment.
struct Quota {
    subscription: Subscription,
    place: QuotaScope,
    limit: Limit,
}

/// The window of a quota, as it is written.
fn word(per: Period) -> &'static str {
    match per {
        Period::Month => "month",
        Period::Week => "week",
        _ => "day",
    }
}

impl Quota {
    /// The key under which the store keeps which notices were sent.
    fn key(&self) -> Result<Key, BadKey> {
        let (subscription, environment) = (&self.subscription.id, &self.place.environment);
        let per = word(self.limit.per);
        Key::new(&format!("{NOTIFIED_PREFIX}{subscription}/{environment}/{per}"))
    }
}

fn entities<T: serde::de::DeserializeOwned>(documents: &[Document], prefix: &str) -> BTreeMap<String, T> {
    let read = |it: &Document| {
        let name = it.key.as_str().strip_prefix(prefix)?;
        Some((name.to_owned(), serde_json::from_slice(&it.value).ok()?))
    };
    documents.iter().filter_map(read).collect()
}

/// The quotas of a plan: of several in one window, the smallest counts.
fn tightest(limits: &[Limit]) -> Vec<Limit> {
    let mut found: Vec<Limit> = Vec::new();
    for limit in limits.iter().filter(|it| it.is_quota()) {
        match found.iter_mut().find(|it| it.per == limit.per) {
            Some(known) => known.count = known.count.min(limit.count),
            None => found.push(*limit),
        }
    }
    found
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
        let limits = plan.into_iter().flat_map(|it| tightest(&it.limits));
        let places = quota::places(&subscription, products.get(&subscription.product));
        for limit in limits {
            found.extend(places.iter().map(|place| Quota {
                subscription: subscription.clone(),
                place: place.clone(),
                limit,
            }));
        }
    }
    found
}

/// Quotas by the times in which their calls count: analytics are asked for those of one time at once. Minutes are the
/// finest that analytics keep, so that all that a closed plan has moved is asked for together.
fn by_time(quotas: Vec<Quota>, now: u64) -> BTreeMap<(u64, u64), Vec<Quota>> {
    let mut times: BTreeMap<(u64, u64), Vec<Quota>> = BTreeMap::new();
    for quota in quotas {
        let (begin, end) = quota::counted_in(&quota.subscription, quota.limit.per, now);
        let time = (begin - begin % MINUTE, end);
        times.entry(time).or_default().push(quota);
    }
    times
}

impl QuotaWatcher {
    /// Over a store, with what knows how limits stand.
    pub fn new(store: Arc<dyn Store>, outbox: Outbox, meter: Meter) -> Self {
        Self { store, outbox, meter }
    }

    /// Notifies developers until the process ends.
    pub async fn run(self) {
        let mut pause = EVERY;
        loop {
            tokio::time::sleep(pause).await;
            let began = Instant::now();
            if let Err(error) = self.round(SystemTime::now()).await {
                tracing::warn!(%error, "developers cannot be notified about quotas; retrying");
            }
            pause = EVERY.max(began.elapsed() * REST);
        }
    }

    /// Sends what is due at a time. Returns for how many quotas.
    ///
    /// # Errors
    /// If a store fails. What was sent stays noted.
    pub async fn round(&self, now: SystemTime) -> Result<usize, WatchError> {
        let began = Instant::now();
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
        let seconds = unix_time::seconds(now);
        let mut reached = Vec::new();
        for (quota, used) in self.used(quotas, seconds).await? {
            if let Some(level) = quota::level(used.calls, quota.limit.count) {
                let (used, resets) = (used.calls, used.resets);
                reached.push((quota, QuotaLevel { level, used, resets }));
            }
        }
        if reached.is_empty() {
            return Ok(0);
        }
        let context = NotifyContext {
            receivers: Receivers::of(&documents),
            waiting: self.outbox.waiting(now).await?,
            now,
            began,
        };
        let count = self.notify_all(&reached, context).await?;
        if count > 0 {
            self.outbox.notify();
        }
        Ok(count)
    }

    /// Notifies developers of quotas that they do not know of, as long as no other control plane does. Returns for how
    /// many.
    async fn notify_all(
        &self,
        reached: &[(Quota, QuotaLevel)],
        mut context: NotifyContext,
    ) -> Result<usize, WatchError> {
        let notified = self
            .outbox
            .store()
            .list::<Value>(NOTIFIED_PREFIX, context.now)
            .await?;
        let notified: BTreeMap<Key, Value> = notified.into_iter().map(|it| (it.key, it.value)).collect();
        let mut count = 0;
        for (quota, reached) in reached {
            let key = quota.key().map_err(OperationalError::Name)?;
            let known = notified.get(&key);
            let as_told = known.and_then(|it| NoticeRecord::deserialize(it).ok());
            if as_told.is_some_and(|it| it.covers(reached.level, quota.limit.count)) {
                continue;
            }
            // With many quotas a round takes longer than the lease.
            let now = context.now + context.began.elapsed();
            if !self.outbox.is_still_alone(now).await? {
                break;
            }
            let is_notified = self.notify((quota, reached), (key, known.cloned()), &mut context);
            count += usize::from(is_notified.await?);
        }
        Ok(count)
    }

    /// How quotas stand. Those of which nothing is known are left out.
    async fn used(&self, quotas: Vec<Quota>, now: u64) -> Result<Vec<(Quota, QuotaUsage)>, AnalyticsError> {
        let mut known = Vec::new();
        let mut unknown = Vec::new();
        for quota in quotas {
            let per = quota.limit.per;
            match self.meter.counted(&quota.place, (&quota.subscription, per), now) {
                Some(used) => known.push((quota, used)),
                None => unknown.push(quota),
            }
        }
        for ((begin, end), quotas) in by_time(unknown, now) {
            let of = quotas.iter().map(|it| &it.subscription);
            let Some(reported) = self.meter.reported(of, (begin, now)).await? else {
                return Ok(known);
            };
            known.extend(quotas.into_iter().filter_map(|quota| {
                let used = reported.used(&quota.place, &quota.subscription, end)?;
                Some((quota, used))
            }));
        }
        Ok(known)
    }

    /// Notifies developers of a quota, if the note of what was sent is still what it was when it was read. `false`:
    /// another control plane has sent it meanwhile.
    async fn notify(
        &self,
        (quota, reached): (&Quota, &QuotaLevel),
        (key, known): (Key, Option<Value>),
        context: &mut NotifyContext,
    ) -> Result<bool, WatchError> {
        let event = quota::event(
            &quota.subscription,
            &quota.place.environment,
            &quota.limit,
            reached,
        );
        let noted = NoticeRecord {
            level: reached.level,
            limit: Some(quota.limit.count),
        };
        let until = unix_time::from_seconds(reached.resets);
        let mut writes = vec![OperationalWrite::put(key.clone(), &noted, Some(until))?];
        let (receivers, waiting) = (&mut context.receivers, &mut context.waiting);
        let about = self.outbox.writes_about(receivers, waiting, &event, context.now);
        writes.extend(about.await?);
        let store = self.outbox.store();
        let written = store.write_if(&[(key, known)], writes, context.now).await?;
        Ok(written.is_some())
    }
}

#[cfg(test)]
mod tests;
