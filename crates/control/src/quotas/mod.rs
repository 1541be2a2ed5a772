//! How quotas stand: by the limiter's own count if a gateway of this process serves the environment, else by the calls that
//! gateways have reported. Developers get a notification when one is nearly used up ([`watch`]).
//!
//! **What it is not**: it is never on the way of a call, and it limits nothing.

pub mod watch;

use crate::analytics::Analytics;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_analytics::StoreError;
use weir_analytics::query::{Frame, MAX_GROUPS, OneOrMany, Query};
use weir_apis::entities::{Period, Subscription};
use weir_apis::quota::{QuotaScope, counted_in};
use weir_apis::render::consumer_of;

/// Values of a dimension that analytics are asked for at once.
const AT_ONCE: usize = 100;

/// Looks up the counts of a consumer in the limits of this process's gateway, by environment; `None`: it does not serve
/// it.
pub type LocalUsage = Arc<dyn Fn(&str, &Limited<'_>) -> Option<WindowUsage> + Send + Sync>;

/// A count of a limit.
#[derive(Debug, Clone, Copy)]
pub struct Limited<'l> {
    /// The limit: the id of its plugin.
    pub limit: &'l str,
    /// The consumer's id.
    pub consumer: &'l str,
    /// The window.
    pub per: Period,
}

/// How a count stands.
#[derive(Debug, Clone, Copy)]
pub struct WindowUsage {
    /// Calls in the window that is open.
    pub used: u64,
    /// Milliseconds until it ends.
    pub reset_ms: u64,
}

/// The used part of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaUsage {
    /// Calls in the window that is open.
    pub calls: u64,
    /// When the next one begins, in seconds since 1970.
    pub resets: u64,
    /// Whether the number is the limiter's own.
    pub is_exact: bool,
}

/// The counts that gateways have reported of subscriptions in a window. An application may have several to one API, each
/// with limits of its own.
#[derive(Debug, Default)]
pub struct ReportedUsage {
    /// By subscription: environments with the calls in them that no gateway refused.
    calls: BTreeMap<String, Vec<(String, u64)>>,
    /// Environments and plans of which calls were reported without the names of applications.
    nameless: BTreeSet<(String, String)>,
}

impl ReportedUsage {
    /// The used part of a limit; `None`: it is not known, as gateways do not report applications by name.
    fn used(&self, place: &QuotaScope, of: &Subscription, resets: u64) -> Option<QuotaUsage> {
        let asked = (place.environment.clone(), of.plan.clone());
        if self.nameless.contains(&asked) {
            return None;
        }
        let own = self.calls.get(&of.id).into_iter().flatten();
        let here = own.filter(|(environment, _)| *environment == place.environment);
        Some(QuotaUsage {
            calls: here.map(|(_, calls)| calls).sum(),
            resets,
            is_exact: false,
        })
    }
}

/// Finds out the state of limits. Cheap to share.
#[derive(Clone)]
pub struct Meter {
    counted: LocalUsage,
    analytics: Option<Analytics>,
}

impl Meter {
    /// With what the limits of this process have counted, and what gateways have reported.
    pub fn new(counted: LocalUsage, analytics: Option<Analytics>) -> Self {
        Self { counted, analytics }
    }

    /// The limiter's own count, if a gateway of this process serves the environment.
    pub fn counted(
        &self,
        place: &QuotaScope,
        (of, per): (&Subscription, Period),
        now: u64,
    ) -> Option<QuotaUsage> {
        let limited = Limited {
            limit: &place.limit,
            consumer: &consumer_of(of),
            per,
        };
        let counted = (self.counted)(&place.environment, &limited)?;
        Some(QuotaUsage {
            calls: counted.used,
            resets: now + counted.reset_ms.div_ceil(1_000),
            is_exact: true,
        })
    }

    /// The counts that gateways have reported of subscriptions in a time; `None`: nothing is counted here.
    ///
    /// # Errors
    /// The store of analytics does not answer.
    pub async fn reported(
        &self,
        of: impl Iterator<Item = &Subscription>,
        (from, to): (u64, u64),
    ) -> Result<Option<ReportedUsage>, StoreError> {
        let Some(analytics) = &self.analytics else {
            return Ok(None);
        };
        let (mut subscriptions, mut plans) = (BTreeSet::new(), BTreeSet::new());
        for subscription in of {
            subscriptions.insert(subscription.id.clone());
            plans.insert(subscription.plan.clone());
        }
        // A window begins with a moment of no length, which cannot be asked for.
        let query = Query::of("calls", from, to.max(from + 1));
        let by_environment = Query {
            metrics: vec!["calls".to_owned(), "refused".to_owned()],
            group_by: vec!["subscription".to_owned(), "environment".to_owned()],
            ..query.clone()
        };
        let nameless = Query {
            group_by: vec!["environment".to_owned(), "plan".to_owned()],
            filter: BTreeMap::from([("application".to_owned(), OneOrMany::One(String::new()))]),
            ..query
        };
        let mut reported = ReportedUsage::default();
        let name = |frame: &Frame, dimension: &str| frame.group.get(dimension).cloned().unwrap_or_default();
        for frame in frames_of(analytics, &by_environment, ("subscription", subscriptions), to).await? {
            let value = |metric: &str| frame.total.get(metric).copied().flatten().unwrap_or(0.0);
            // Calls that the gateway refused did not count. Counts are whole.
            let calls = (value("calls") - value("refused")).max(0.0) as u64;
            let known = reported.calls.entry(name(&frame, "subscription")).or_default();
            known.push((name(&frame, "environment"), calls));
        }
        for frame in frames_of(analytics, &nameless, ("plan", plans), to).await? {
            let about = (name(&frame, "environment"), name(&frame, "plan"));
            reported.nameless.insert(about);
        }
        Ok(Some(reported))
    }

    /// The used part of a limit; `None`: it is not known.
    ///
    /// # Errors
    /// The store of analytics does not answer.
    pub async fn used(
        &self,
        place: &QuotaScope,
        (of, per): (&Subscription, Period),
        now: u64,
    ) -> Result<Option<QuotaUsage>, StoreError> {
        if let Some(counted) = self.counted(place, (of, per), now) {
            return Ok(Some(counted));
        }
        let (begin, end) = counted_in(of, per, now);
        let reported = self.reported(std::iter::once(of), (begin, now)).await?;
        Ok(reported.and_then(|it| it.used(place, of, end)))
    }
}

/// All groups of a query for many values of a dimension. If there are more groups than a query returns, it is asked for
/// fewer values at once. Of a single value, the largest of so many are what is known.
async fn frames_of(
    analytics: &Analytics,
    query: &Query,
    (dimension, values): (&str, BTreeSet<String>),
    now: u64,
) -> Result<Vec<Frame>, StoreError> {
    let values: Vec<String> = values.into_iter().collect();
    let mut open: Vec<Vec<String>> = values.chunks(AT_ONCE).map(<[String]>::to_vec).collect();
    let mut found = Vec::new();
    while let Some(mut some) = open.pop() {
        let mut asked = query.clone();
        asked.all_groups = true;
        let wanted = OneOrMany::Many(some.clone());
        asked.filter.insert(dimension.to_owned(), wanted);
        let answer = analytics.with(move |kept| kept.store.query(&asked, now)).await?;
        if answer.frames.len() >= MAX_GROUPS && some.len() > 1 {
            let half = some.split_off(some.len() / 2);
            open.extend([some, half]);
            continue;
        }
        found.extend(answer.frames);
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
