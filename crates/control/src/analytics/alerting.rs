//! Evaluating alert rules now and then, and telling what has changed.

use super::{Analytics, Kept, now};
use crate::http::Call;
use hyper::Method;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_analytics::alerts::{Channel, Event, Rule};
use weir_analytics::{AnalyticsStore, StoreError};

/// The kind of documents that rules are.
pub const RULES: &str = "alert";
/// How often a webhook is tried, and the pause before the second time, which doubles.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// Until a webhook has answered.
const TIMEOUT: Duration = Duration::from_secs(10);

impl Kept {
    /// All rules, by id. One that cannot be read is left out.
    ///
    /// # Errors
    /// The store failed.
    pub fn rules(&self) -> Result<Vec<Rule>, StoreError> {
        let mut rules = Vec::new();
        for (id, text) in self.store.documents(RULES)? {
            match serde_json::from_str::<Rule>(&text) {
                Ok(rule) => rules.push(Rule { id, ..rule }),
                Err(error) => tracing::warn!(id, %error, "an alert rule is not understood"),
            }
        }
        Ok(rules)
    }

    /// How the groups of a rule stand.
    pub fn alerts_of(&self, rule: &str) -> Vec<(BTreeMap<String, String>, weir_analytics::alerts::Alert)> {
        self.states().of(rule)
    }

    /// Evaluates all rules. Gives what is to be told, with the channels.
    fn evaluate(&self, now: u64) -> Result<Vec<(Event, Vec<Channel>)>, StoreError> {
        let rules = self.rules()?;
        let mut told = Vec::new();
        for event in self.states().keep(&rules, now) {
            let channels = rules.iter().find(|rule| rule.id == event.rule);
            told.push((
                event,
                channels.map_or(vec![Channel::Log], |rule| rule.channels.clone()),
            ));
        }
        for rule in rules.iter().filter(|rule| rule.enabled) {
            let answers: Result<Vec<_>, _> = rule
                .queries(now)
                .iter()
                .map(|query| self.store.query(query, now))
                .collect();
            match answers {
                Ok(answers) => {
                    let events = self.states().evaluate(rule, &rule.values(&answers), now);
                    told.extend(events.into_iter().map(|event| (event, rule.channels.clone())));
                }
                Err(error) => tracing::warn!(rule = rule.name, %error, "an alert rule cannot be evaluated"),
            }
        }
        Ok(told)
    }
}

impl Analytics {
    /// Evaluates the rules every so often, until the process ends.
    pub async fn watch_alerts(self, every: Duration) {
        let mut tick = tokio::time::interval(every);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            match self.with(|kept| kept.evaluate(now())).await {
                Ok(told) => tell(told),
                Err(error) => tracing::warn!(%error, "alert rules are not evaluated"),
            }
        }
    }
}

/// Tells everybody what concerns them: a webhook everything at once.
fn tell(told: Vec<(Event, Vec<Channel>)>) {
    let mut webhooks: BTreeMap<String, Vec<Event>> = BTreeMap::new();
    for (event, channels) in told {
        for channel in channels {
            match channel {
                Channel::Log => log(&event),
                Channel::Webhook { url } => webhooks.entry(url).or_default().push(event.clone()),
            }
        }
    }
    for (url, events) in webhooks {
        tokio::spawn(call_webhook(url, events));
    }
}

fn log(event: &Event) {
    let kind = serde_json::to_value(event.kind).unwrap_or_default();
    tracing::warn!(
        alert = event.name,
        kind = kind.as_str().unwrap_or_default(),
        group = ?event.group,
        metric = event.metric,
        value = event.value,
        threshold = event.threshold,
        "an alert"
    );
}

async fn call_webhook(url: String, events: Vec<Event>) {
    let body = json!({ "alerts": events });
    let mut pause = PAUSE;
    for attempt in 1..=ATTEMPTS {
        let call = Call {
            timeout: TIMEOUT,
            max_body: 64 << 10,
            ..Call::json(Method::POST, url.clone(), &body)
        };
        let failure = match call.make().await {
            Ok((status, _)) if status.is_success() => return,
            Ok((status, _)) => status.to_string(),
            Err(error) => error.to_string(),
        };
        // The URL may hold a secret; whom it names is in the error.
        tracing::warn!(failure, attempt, "a webhook for alerts is not reached");
        tokio::time::sleep(pause).await;
        pause *= 2;
    }
}
