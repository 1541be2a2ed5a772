//! Evaluates alert rules at intervals, and sends what has changed.

use super::{Analytics, AnalyticsStorage, now};
use crate::outbox::{Mail, Message, Origin, Outbox, Webhook};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::{Duration, SystemTime};
use weir_analytics::StoreError;
use weir_analytics::alerts::{Channel, Event, EventKind, Rule, States};
use weir_analytics::sqlite::SqliteAnalytics;

/// The kind of documents that rules are.
pub const RULES: &str = "alert";
/// The kind of the document that says how rules stand.
const STATES: &str = "alert-states";

/// How rules stood when the process before ended.
pub fn known_states(documents: &SqliteAnalytics) -> Result<States, StoreError> {
    let known = documents.documents(STATES)?.into_iter().next();
    Ok(known.map_or_else(States::default, |(_, text)| {
        serde_json::from_str(&text).unwrap_or_else(|error| {
            tracing::warn!(%error, "stored alert state cannot be read; starting with an empty state");
            States::default()
        })
    }))
}

impl AnalyticsStorage {
    /// All rules, by id. One that cannot be read is left out.
    ///
    /// # Errors
    /// The store failed.
    pub fn rules(&self) -> Result<Vec<Rule>, StoreError> {
        let mut rules = Vec::new();
        for (id, text) in self.documents.documents(RULES)? {
            match serde_json::from_str::<Rule>(&text) {
                Ok(rule) => rules.push(Rule { id, ..rule }),
                Err(error) => {
                    tracing::warn!(id, %error, "a stored alert rule cannot be parsed and is ignored")
                }
            }
        }
        Ok(rules)
    }

    /// Keeps how rules stand, for the next start, unless it is kept already.
    fn keep_states(&self) -> Result<(), StoreError> {
        let text = serde_json::to_string(&*self.states());
        let text = text.map_err(|error| StoreError::Engine(error.to_string()))?;
        let mut kept = self.kept_states.lock().unwrap_or_else(PoisonError::into_inner);
        if *kept == text {
            return Ok(());
        }
        let place = (STATES, "all");
        self.documents
            .place_document(place, Some(&text), (false, 1), |_| true)?;
        *kept = text;
        Ok(())
    }

    /// How the groups of a rule stand.
    pub fn alerts_of(&self, rule: &str) -> Vec<(BTreeMap<String, String>, weir_analytics::alerts::Alert)> {
        self.states().of(rule)
    }

    /// Evaluates all rules. Returns the events to send, with their channels.
    fn evaluate(&self, now: u64) -> Result<Vec<(Event, Vec<Channel>)>, StoreError> {
        let rules = self.rules()?;
        let mut notifications = Vec::new();
        for event in self.states().keep(&rules, now) {
            let channels = rules.iter().find(|rule| rule.id == event.rule);
            notifications.push((
                event,
                channels.map_or(vec![Channel::Log], |rule| rule.channels.clone()),
            ));
        }
        for rule in rules.iter().filter(|rule| rule.enabled) {
            let answers: Result<Vec<_>, _> = rule
                .queries(now)
                .iter()
                .map(|query| self.answer(query, now))
                .collect();
            match answers {
                Ok(answers) => {
                    let events = self.states().evaluate(rule, &rule.values(&answers), now);
                    notifications.extend(events.into_iter().map(|event| (event, rule.channels.clone())));
                }
                Err(error) => tracing::warn!(rule = rule.name, %error, "an alert rule cannot be evaluated"),
            }
        }
        Ok(notifications)
    }
}

impl Analytics {
    /// Evaluates the rules every so often, until the process ends.
    pub async fn watch_alerts(self, every: Duration) {
        let mut tick = tokio::time::interval(every);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            // What changes before anything sends would reach no reader.
            if self.outbox().is_none() {
                continue;
            }
            match self.with(|kept| kept.evaluate(now())).await {
                Ok(notifications) => {
                    notify(
                        notifications,
                        self.kept().link("alerts").as_deref(),
                        self.outbox(),
                    )
                    .await;
                    // Only then: a process that ends before tells it again, and does not forget it.
                    if let Err(error) = self.with(AnalyticsStorage::keep_states).await {
                        tracing::warn!(%error, "alert state cannot be stored");
                    }
                }
                Err(error) => tracing::warn!(%error, "alert rules cannot be evaluated"),
            }
        }
    }
}

/// Sends each channel its events: a webhook and an address get all of them at once.
async fn notify(notifications: Vec<(Event, Vec<Channel>)>, link: Option<&str>, outbox: Option<&Outbox>) {
    let mut webhooks: BTreeMap<String, Vec<Event>> = BTreeMap::new();
    let mut mails: BTreeMap<String, Vec<Event>> = BTreeMap::new();
    for (event, channels) in notifications {
        for channel in channels {
            match channel {
                Channel::Log => log(&event),
                Channel::Webhook { url } => webhooks.entry(url).or_default().push(event.clone()),
                Channel::Mail { to } => mails.entry(to).or_default().push(event.clone()),
            }
        }
    }
    let webhooks = webhooks.into_iter().map(|(url, events)| {
        Message::Webhook(Webhook {
            url,
            secret: String::new(),
            body: body(&events, link),
            of_application: None,
        })
    });
    let mails = mails
        .into_iter()
        .map(|(to, events)| Message::Mail(mail(to, &events, link)));
    for message in webhooks.chain(mails) {
        let Some(outbox) = outbox else {
            tracing::warn!(
                to = message.receiver(),
                "an alert is not sent: the outbox is not open yet"
            );
            continue;
        };
        if let Err(error) = outbox
            .send((Origin::Provider, "alert", message), SystemTime::now())
            .await
        {
            tracing::warn!(%error, "an alert cannot be put into the outbox");
        }
    }
}

/// An event, in a line.
fn line(event: &Event) -> String {
    let kind = match event.kind {
        EventKind::Started => "started",
        EventKind::Ended => "ended",
        EventKind::NoData => "has no data",
        EventKind::Digest => "goes on",
    };
    let group: Vec<String> = event
        .group
        .iter()
        .map(|(name, value)| match value.is_empty() {
            // Such as the service of calls that no route took.
            true => format!("no {name}"),
            false => format!("{name} {value}"),
        })
        .collect();
    match group.is_empty() {
        true => format!("{} {kind}: {}", event.name, event.text),
        false => format!("{} {kind}: {} ({})", event.name, event.text, group.join(", ")),
    }
}

/// The body for a webhook: the events, and a text that chat systems show.
fn body(events: &[Event], link: Option<&str>) -> String {
    let text = lines(events, link);
    json!({ "alerts": events, "text": text.trim_end() }).to_string()
}

/// A line for each event, and then the link.
fn lines(events: &[Event], link: Option<&str>) -> String {
    let lines = events.iter().map(line).chain(link.map(str::to_owned));
    lines.map(|line| line + "\n").collect()
}

/// One mail for several events.
fn mail(to: String, events: &[Event], link: Option<&str>) -> Mail {
    let subject = match events {
        [only] => line(only),
        many => format!("{} alerts", many.len()),
    };
    Mail {
        to,
        subject,
        text: lines(events, link),
        ..Mail::default()
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

#[cfg(test)]
mod tests {
    use super::*;
    use weir_analytics::alerts::Severity;

    /// The defect: a group without a name was told as "(service )".
    #[test]
    fn an_event_names_its_group() {
        for (group, expected) in [
            (json!({}), "Errors started: 5xx share is 3 %"),
            (
                json!({"service": "shop"}),
                "Errors started: 5xx share is 3 % (service shop)",
            ),
            (
                json!({"environment": "prod", "service": ""}),
                "Errors started: 5xx share is 3 % (environment prod, no service)",
            ),
        ] {
            let event = Event {
                kind: EventKind::Started,
                rule: "errors".to_owned(),
                name: "Errors".to_owned(),
                severity: Severity::Warning,
                group: serde_json::from_value(group).expect("a map"),
                metric: "share_5xx".to_owned(),
                threshold: 0.02,
                start_value: Some(0.03),
                value: Some(0.03),
                since: 0,
                at: 0,
                text: "5xx share is 3 %".to_owned(),
            };
            assert_eq!(line(&event), expected);
        }
    }
}
