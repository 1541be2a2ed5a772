//! Events for people and their programs: found by comparing an entity before and after a
//! commit. So nothing that changes an entity can forget to say so. How it is put into words is in [`messages`].

pub mod kinds;
mod messages;
#[cfg(test)]
mod tests;

pub use messages::{for_application, mail_to_application, mail_to_owner, notice_to_application};

use crate::entities::{
    Approval, ApprovalState, Credential, HistoryItem, Plan, Publication, Subscription, SubscriptionState,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// The prefix of the keys of entities.
const PREFIX: &str = "apis/";

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Event {
    /// Such as `subscription.accepted`.
    pub kind: String,
    /// Its subject: `publication`, `api`, `version`, `environment`, `plan`, `application`, `subscription`, …
    pub about: BTreeMap<&'static str, String>,
    /// Why, or other words about it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Event {
    fn new(kind: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            ..Self::default()
        }
    }

    fn with(mut self, name: &'static str, value: &str) -> Self {
        if !value.is_empty() {
            self.about.insert(name, value.to_owned());
        }
        self
    }

    fn of_publication(self, id: &str) -> Self {
        let mut parts = id.split('/');
        let mut next = || parts.next().unwrap_or_default();
        let (api, version, environment) = (next(), next(), next());
        self.with("publication", id)
            .with("api", api)
            .with("version", version)
            .with("environment", environment)
    }

    /// Adds what a subscription is of.
    pub fn about_subscription(&mut self, subscription: &Subscription) {
        *self = std::mem::take(self)
            .of_publication(&subscription.publication)
            .with("product", &subscription.product)
            .with("subscription", &subscription.id)
            .with("application", &subscription.application)
            .with("plan", &subscription.plan);
    }

    /// A field of what it is about; empty: it has none.
    pub fn get(&self, name: &str) -> &str {
        self.about.get(name).map_or("", String::as_str)
    }
}

/// The events of a document's change. Documents that are no entities, and changes that
/// only concern the inside, mean nothing.
pub fn of(key: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Vec<Event> {
    let kind = key.strip_prefix(PREFIX).and_then(|it| it.split('/').next());
    match kind {
        Some("publications") => pair(before, after, of_publication),
        Some("subscriptions") => pair(before, after, of_subscription),
        Some("credentials") => pair(before, after, of_credential),
        Some("approvals") => pair(before, after, of_approval),
        Some("plans") => pair(before, after, of_plan),
        _ => Vec::new(),
    }
}

fn pair<T: DeserializeOwned>(
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    events: impl Fn(Option<&T>, Option<&T>) -> Vec<Event>,
) -> Vec<Event> {
    let read = |bytes: Option<&[u8]>| bytes.and_then(|it| serde_json::from_slice::<T>(it).ok());
    events(read(before).as_ref(), read(after).as_ref())
}

/// The kind of event that a step in the life of a publication is.
fn kind_of_step(action: &str) -> String {
    let name = match action {
        "publish" | "promote" => "published",
        "rollback" => "rolled-back",
        "deprecate" => "deprecated",
        "undeprecate" => "undeprecated",
        "retire" | "sunset" => "retired",
        "canary" => "canary-started",
        "abort canary" => "canary-aborted",
        "canary step" => "canary-step",
        // The second is the former name, in histories that are stored.
        "canary rolled back" | "canary taken back" => "canary-taken-back",
        "disable" => "disabled",
        "enable" => "enabled",
        other => return format!("publication.{}", crate::naming::slug(other)),
    };
    format!("publication.{name}")
}

fn of_publication(before: Option<&Publication>, after: Option<&Publication>) -> Vec<Event> {
    let Some(after) = after else {
        let gone = before.map(|it| Event::new("publication.removed").of_publication(&it.id()));
        return gone.into_iter().collect();
    };
    let known = before.map_or(&[][..], |it| &it.history);
    let is_new = |item: &&HistoryItem| !known.contains(item);
    after
        .history
        .iter()
        .filter(is_new)
        .map(|item| {
            let mut event = Event::new(kind_of_step(&item.action))
                .of_publication(&after.id())
                .with("revision", &item.revision.to_string())
                .with("hash", &item.hash)
                .with("by", &item.by);
            if let Some(sunset) = after.deprecation.as_ref().and_then(|it| it.sunset) {
                event = event.with("sunset", &sunset.to_string());
            }
            event.note.clone_from(&item.note);
            event
        })
        .collect()
}

fn about_subscription(mut event: Event, subscription: &Subscription) -> Event {
    event.about_subscription(subscription);
    event
}

fn of_subscription(before: Option<&Subscription>, after: Option<&Subscription>) -> Vec<Event> {
    let Some(after) = after else {
        return Vec::new();
    };
    let mut events = Vec::new();
    if before.is_none_or(|it| it.state != after.state) {
        let name = match (after.state, before.map(|it| it.state)) {
            (SubscriptionState::Pending, _) => "requested",
            (SubscriptionState::Accepted, Some(SubscriptionState::Paused | SubscriptionState::Stopped)) => {
                "resumed"
            }
            (SubscriptionState::Accepted, _) => "accepted",
            (SubscriptionState::Rejected, _) => "rejected",
            (SubscriptionState::Paused, _) => "paused",
            (SubscriptionState::Stopped, _) => "stopped",
            (SubscriptionState::Closed, _) => "closed",
            (SubscriptionState::Expired, _) => "expired",
        };
        let mut event = about_subscription(Event::new(format!("subscription.{name}")), after);
        event.note.clone_from(&after.reason);
        events.push(event);
    }
    if before.is_some_and(|it| it.plan != after.plan) {
        events.push(about_subscription(Event::new("subscription.moved"), after));
    }
    if let Some(days) = after.noticed
        && before.is_none_or(|it| it.noticed != after.noticed)
    {
        let mut event =
            about_subscription(Event::new("subscription.ending"), after).with("days", &days.to_string());
        if let Some(end) = after.ends {
            event = event.with("ends", &end.to_string());
        }
        events.push(event);
    }
    events
}

fn of_credential(before: Option<&Credential>, after: Option<&Credential>) -> Vec<Event> {
    // A key for a quarter of an hour is no news.
    let Some(after) = after.filter(|it| !it.trial) else {
        return Vec::new();
    };
    let name = match before {
        None if after.replaces.is_some() => "rotated",
        None => "created",
        Some(before) if before.revoked.is_none() && after.revoked.is_some() => "revoked",
        Some(_) => return Vec::new(),
    };
    let event = Event::new(format!("credential.{name}"))
        .with("subscription", &after.subscription)
        .with("credential", &after.id)
        .with("prefix", &after.prefix);
    vec![event]
}

fn of_approval(before: Option<&Approval>, after: Option<&Approval>) -> Vec<Event> {
    let Some(after) = after.filter(|it| before.is_none_or(|before| before.state != it.state)) else {
        return Vec::new();
    };
    let name = match after.state {
        ApprovalState::Open => "requested",
        ApprovalState::Granted => "granted",
        ApprovalState::Refused => "refused",
        ApprovalState::Withdrawn => "withdrawn",
        ApprovalState::Outdated => "outdated",
    };
    let mut event = Event::new(format!("approval.{name}"))
        .of_publication(&after.publication)
        .with("approval", &after.id)
        .with("hash", &after.hash)
        .with("requested_by", &after.requested_by)
        .with("decided_by", &after.decided_by);
    event.note.clone_from(match after.state {
        ApprovalState::Open => &after.reason,
        _ => &after.decision,
    });
    vec![event]
}

fn of_plan(before: Option<&Plan>, after: Option<&Plan>) -> Vec<Event> {
    let Some(after) = after.filter(|it| before.is_none_or(|before| before.state != it.state)) else {
        return Vec::new();
    };
    let event = Event::new(format!(
        "plan.{}",
        serde_json::json!(after.state).as_str().unwrap_or_default()
    ))
    .with("api", &after.api)
    .with("version", &after.version)
    .with("plan", &after.name);
    vec![event]
}
