//! How quotas stand: by the limiter's own count if a gateway of this process serves the environment, else by the calls that
//! gateways have reported. Developers are told when one is nearly used up ([`watch`]).
//!
//! **What it is not**: it is never on the way of a call, and it limits nothing.

pub mod watch;

use crate::analytics::Analytics;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_analytics::StoreError;
use weir_analytics::query::{Frame, MAX_LIMIT, OneOrMany, Query};
use weir_apis::entities::{Period, Subscription};
use weir_apis::quota::{Place, window};
use weir_apis::render::consumer_of;

/// What the limits of the gateway of this process have counted of a consumer, by environment; `None`: it does not serve it.
pub type CountedIn = Arc<dyn Fn(&str, &Limited<'_>) -> Option<Counted> + Send + Sync>;

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
pub struct Counted {
    /// Calls in the window that is open.
    pub used: u64,
    /// Milliseconds until it ends.
    pub reset_ms: u64,
}

/// What of a limit is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// Calls in the window that is open.
    pub calls: u64,
    /// When the next one begins, in seconds since 1970.
    pub resets: u64,
    /// Whether the number is the limiter's own.
    pub is_exact: bool,
}

/// Calls of an application to a service that no gateway refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    application: String,
    service: String,
    calls: u64,
}

/// What knows how limits stand. Cheap to share.
#[derive(Clone)]
pub struct Meter {
    counted: CountedIn,
    analytics: Option<Analytics>,
}

impl Meter {
    /// With what the limits of this process have counted, and what gateways have reported.
    pub fn new(counted: CountedIn, analytics: Option<Analytics>) -> Self {
        Self { counted, analytics }
    }

    /// What the limiter itself has counted, if a gateway of this process serves the environment.
    pub fn counted(&self, place: &Place, (of, per): (&Subscription, Period), now: u64) -> Option<Used> {
        let limited = Limited {
            limit: &place.limit,
            consumer: &consumer_of(of),
            per,
        };
        let counted = (self.counted)(&place.environment, &limited)?;
        Some(Used {
            calls: counted.used,
            resets: now + counted.reset_ms.div_ceil(1_000),
            is_exact: true,
        })
    }

    /// What gateways have reported of applications in a time; `None`: nothing is counted here.
    ///
    /// # Errors
    /// The store of analytics does not answer.
    pub async fn reported(
        &self,
        applications: Vec<String>,
        (from, to): (u64, u64),
    ) -> Result<Option<Vec<Reported>>, StoreError> {
        let Some(analytics) = &self.analytics else {
            return Ok(None);
        };
        let query = Query {
            metrics: vec!["calls".to_owned(), "refused".to_owned()],
            group_by: vec!["consumer".to_owned(), "service".to_owned()],
            filter: BTreeMap::from([("consumer".to_owned(), OneOrMany::Many(applications))]),
            limit: Some(MAX_LIMIT),
            ..Query::of("calls", from, to)
        };
        let answer = analytics.with(move |kept| kept.store.query(&query, to)).await?;
        let reported = |frame: &Frame| {
            let value = |metric: &str| frame.total.get(metric).copied().flatten().unwrap_or(0.0);
            let name = |dimension: &str| frame.group.get(dimension).cloned().unwrap_or_default();
            Reported {
                application: name("consumer"),
                service: name("service"),
                // Calls that the gateway refused did not count. Counts are whole.
                calls: (value("calls") - value("refused")).max(0.0) as u64,
            }
        };
        Ok(Some(answer.frames.iter().map(reported).collect()))
    }

    /// What of a limit is used; `None`: it is not known.
    ///
    /// # Errors
    /// The store of analytics does not answer.
    pub async fn used(
        &self,
        place: &Place,
        (of, per): (&Subscription, Period),
        now: u64,
    ) -> Result<Option<Used>, StoreError> {
        if let Some(counted) = self.counted(place, (of, per), now) {
            return Ok(Some(counted));
        }
        let (begin, end) = window(per, now);
        let reported = self.reported(vec![of.application.clone()], (begin, now)).await?;
        Ok(reported.map(|all| summed(&all, place, of, end)))
    }
}

/// What gateways have reported of a subscription.
fn summed(all: &[Reported], place: &Place, of: &Subscription, end: u64) -> Used {
    let own = all.iter().filter(|it| it.application == of.application);
    let here = own.filter(|it| place.has(&it.service));
    Used {
        calls: here.map(|it| it.calls).sum(),
        resets: end,
        is_exact: false,
    }
}
