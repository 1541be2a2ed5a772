//! What has happened, for people and their programs: found by comparing an entity before and after a
//! commit. So nothing that changes an entity can forget to say so.

use crate::entities::{
    Approval, ApprovalState, Credential, HistoryItem, Plan, Publication, Subscription, SubscriptionState,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// What the keys of entities begin with.
const PREFIX: &str = "apis/";

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Event {
    /// Such as `subscription.accepted`.
    pub kind: String,
    /// What it is about: `publication`, `api`, `version`, `environment`, `plan`, `application`, `subscription`, …
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

/// What a change of a document means. Documents that are no entities, and changes that
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
        "canary taken back" => "canary-taken-back",
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
    let Some(after) = after else {
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

/// What developers may know of an event that concerns an application of theirs; `None`: it is not for them. Who of the
/// provider has done it, and hashes of the inside, are left out.
pub fn for_application(event: &Event) -> Option<Event> {
    const ABOUT: [&str; 19] = [
        "publication",
        "api",
        "version",
        "environment",
        "product",
        "plan",
        "application",
        "subscription",
        "credential",
        "prefix",
        "days",
        "ends",
        "sunset",
        "webhook",
        "limit",
        "per",
        "used",
        "percent",
        "resets",
    ];
    let is_theirs = ["subscription.", "credential.", "quota."]
        .iter()
        .any(|it| event.kind.starts_with(it));
    let is_of_api = matches!(
        event.kind.as_str(),
        "publication.published"
            | "publication.deprecated"
            | "publication.undeprecated"
            | "publication.retired"
    );
    let about = event.about.iter().filter(|(name, _)| ABOUT.contains(name));
    (is_theirs || is_of_api).then(|| Event {
        kind: event.kind.clone(),
        about: about.map(|(name, value)| (*name, value.clone())).collect(),
        note: match is_theirs {
            true => event.note.clone(),
            false => String::new(),
        },
    })
}

/// What the people behind an application read of an event in their portal: a title and a text; `None`: nothing.
pub fn notice_to_application(event: &Event) -> Option<(String, String)> {
    let told = match event.kind.as_str() {
        "credential.created" => ("A key was made", "is good from now on"),
        "credential.rotated" => ("A key was replaced", "takes the place of another one"),
        "credential.revoked" => ("A key was revoked", "is good no longer"),
        _ => return mail_to_application(event),
    };
    let (title, what) = told;
    let text = format!("The key {}… for {} {what}.", event.get("prefix"), target(event));
    Some((title.to_owned(), text))
}

/// A mail to the people behind an application: its subject and its text; `None`: they get no mail about this.
pub fn mail_to_application(event: &Event) -> Option<(String, String)> {
    let api = target(event);
    let place = match event.get("environment") {
        "" => String::new(),
        environment => format!(" ({environment})"),
    };
    let what = format!("the subscription of {} to {api}{place}", event.get("application"),);
    let (subject, text) = match event.kind.as_str() {
        "subscription.accepted" => (
            format!("Subscription to {api} accepted"),
            format!("Accepted: {what}, plan {}.", event.get("plan")),
        ),
        "subscription.rejected" => (
            format!("Subscription to {api} rejected"),
            format!("Rejected: {what}."),
        ),
        "subscription.paused" => (
            format!("Subscription to {api} paused"),
            format!("The provider has paused {what}. Calls are answered with 403."),
        ),
        "subscription.resumed" => (
            format!("Subscription to {api} resumed"),
            format!("Calls are possible again: {what}."),
        ),
        "subscription.closed" => (
            format!("Subscription to {api} closed"),
            format!("Closed: {what}. Its keys are no longer good."),
        ),
        "subscription.moved" => (
            format!("Another plan for {api}"),
            format!("Moved to the plan {}: {what}.", event.get("plan")),
        ),
        "subscription.ending" => (
            format!("Subscription to {api} ends in {}", days(event.get("days"))),
            format!(
                "In {} ends {what}. After that, calls are answered with 403.",
                days(event.get("days"))
            ),
        ),
        "subscription.expired" => (
            format!("Subscription to {api} has ended"),
            format!("Ended: {what}. Calls are answered with 403."),
        ),
        "quota.near" => (
            format!("{} % of the quota of {api} is used", event.get("percent")),
            used(event),
        ),
        "quota.reached" => (
            format!("The quota of {api} is used up"),
            format!("{} Further calls are answered with 429 until then.", used(event)),
        ),
        "publication.deprecated" => {
            let until = match event.get("sunset").parse::<u64>() {
                Ok(sunset) => format!(" It ends on {}.", date(sunset)),
                Err(_) => String::new(),
            };
            (
                format!("{api} is deprecated"),
                format!("{api} in {} is deprecated.{until}", event.get("environment")),
            )
        }
        "publication.retired" => (
            format!("{api} is retired"),
            format!(
                "{api} in {} is retired. Calls are answered with 410.",
                event.get("environment")
            ),
        ),
        _ => return None,
    };
    Some((subject, with_note(text, &event.note)))
}

/// A mail to the people behind an API; `None`: they get no mail about this.
pub fn mail_to_owner(event: &Event) -> Option<(String, String)> {
    let api = format!("{} {}", event.get("api"), event.get("version"));
    let (subject, text) = match event.kind.as_str() {
        "subscription.requested" => (
            format!("{} asks for a subscription to {api}", event.get("application")),
            format!(
                "{} asks for the plan {} of {api} in {}.",
                event.get("application"),
                event.get("plan"),
                event.get("environment")
            ),
        ),
        "publication.canary-taken-back" => (
            format!("The canary of {api} was taken back"),
            format!(
                "A guard has taken back the canary of {api} in {}.",
                event.get("environment")
            ),
        ),
        "approval.requested" => (
            format!("Approval requested: {api} in {}", event.get("environment")),
            format!(
                "{} asks for approval to publish {api} ({}) to {}.",
                event.get("requested_by"),
                event.get("hash"),
                event.get("environment")
            ),
        ),
        _ => return None,
    };
    Some((subject, with_note(text, &event.note)))
}

/// How much of a quota is used, and when the next window begins.
fn used(event: &Event) -> String {
    let resets = event.get("resets").parse().map_or_else(|_| String::new(), date);
    format!(
        "{} has used {} of {} calls of this {} to {} ({}). New calls come on {resets}.",
        event.get("application"),
        event.get("used"),
        event.get("limit"),
        event.get("per"),
        target(event),
        event.get("environment"),
    )
}

/// What a subscription is to, for people.
fn target(event: &Event) -> String {
    match event.get("product") {
        "" => format!("{} {}", event.get("api"), event.get("version")),
        product => product.to_owned(),
    }
}

fn days(text: &str) -> String {
    match text {
        "1" => "one day".to_owned(),
        more => format!("{more} days"),
    }
}

fn date(seconds: u64) -> String {
    let seconds = seconds.min(253_402_300_799);
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds))
}

fn with_note(text: String, note: &str) -> String {
    match note {
        "" => text,
        note => format!("{text}\n\n{note}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn kinds(key: &str, before: Value, after: Value) -> Vec<String> {
        let bytes = |value: &Value| (!value.is_null()).then(|| value.to_string().into_bytes());
        let (before, after) = (bytes(&before), bytes(&after));
        let found = of(key, before.as_deref(), after.as_deref());
        found.into_iter().map(|it| it.kind).collect()
    }

    #[test]
    fn changes_become_events() {
        let subscription = |state: &str, more: Value| {
            let mut value = json!({"id": "s", "application": "shop", "publication": "pets/1/test", "plan": "gold", "state": state});
            value
                .as_object_mut()
                .expect("a map")
                .extend(more.as_object().cloned().unwrap_or_default());
            value
        };
        let of_subscriptions = "apis/subscriptions/s";
        for (key, before, after, expected) in [
            (
                of_subscriptions,
                Value::Null,
                subscription("pending", json!({})),
                vec!["subscription.requested"],
            ),
            (
                of_subscriptions,
                subscription("pending", json!({})),
                subscription("accepted", json!({})),
                vec!["subscription.accepted"],
            ),
            (
                of_subscriptions,
                subscription("paused", json!({})),
                subscription("accepted", json!({})),
                vec!["subscription.resumed"],
            ),
            (
                of_subscriptions,
                subscription("accepted", json!({})),
                subscription("accepted", json!({"noticed": 7, "ends": 9})),
                vec!["subscription.ending"],
            ),
            (
                of_subscriptions,
                subscription("accepted", json!({})),
                subscription("accepted", json!({"plan": "silver"})),
                vec!["subscription.moved"],
            ),
            (
                of_subscriptions,
                subscription("accepted", json!({})),
                subscription("accepted", json!({"request": "x"})),
                vec![],
            ),
        ] {
            assert_eq!(kinds(key, before, after), expected, "{key}");
        }
    }

    #[test]
    fn changes_of_keys_approvals_plans_and_publications_become_events() {
        let approval = |state: &str| json!({"id": "a", "publication": "pets/1/test", "state": state});
        let publication = |actions: &[&str]| {
            let history: Vec<Value> = actions
                .iter()
                .enumerate()
                .map(|(at, it)| json!({"action": it, "at": at}))
                .collect();
            json!({"api": "pets", "version": "1", "environment": "test", "history": history})
        };
        for (key, before, after, expected) in [
            (
                "apis/credentials/c",
                Value::Null,
                json!({"id": "c"}),
                vec!["credential.created"],
            ),
            (
                "apis/credentials/c",
                Value::Null,
                json!({"id": "c", "replaces": "b"}),
                vec!["credential.rotated"],
            ),
            (
                "apis/credentials/c",
                json!({"id": "c"}),
                json!({"id": "c", "revoked": 1}),
                vec!["credential.revoked"],
            ),
            (
                "apis/approvals/a",
                Value::Null,
                approval("open"),
                vec!["approval.requested"],
            ),
            (
                "apis/approvals/a",
                approval("open"),
                approval("granted"),
                vec!["approval.granted"],
            ),
            (
                "apis/plans/pets/1/gold",
                json!({"name": "gold"}),
                json!({"name": "gold", "state": "published"}),
                vec!["plan.published"],
            ),
            (
                "apis/publications/pets/1/test",
                publication(&["publish"]),
                publication(&["publish", "canary", "canary taken back"]),
                vec!["publication.canary-started", "publication.canary-taken-back"],
            ),
            (
                "apis/publications/pets/1/test",
                publication(&["publish"]),
                Value::Null,
                vec!["publication.removed"],
            ),
            ("native/routes/r", Value::Null, json!({}), vec![]),
            ("apis/plans/x", Value::Null, json!("no plan"), vec![]),
        ] {
            assert_eq!(kinds(key, before, after), expected, "{key}");
        }
    }

    /// Approvals, canaries and the names of operators are none of the developers' business.
    #[test]
    fn developers_hear_of_what_concerns_them() {
        for (kind, is_told, note) in [
            ("subscription.rejected", true, "why"),
            ("credential.revoked", true, "why"),
            ("publication.deprecated", true, ""),
            ("publication.canary-started", false, ""),
            ("publication.rolled-back", false, ""),
            ("approval.requested", false, ""),
            ("plan.published", false, ""),
            ("developer.registered", false, ""),
        ] {
            let event = Event {
                note: "why".to_owned(),
                ..Event::new(kind)
                    .of_publication("pets/1/test")
                    .with("by", "root")
                    .with("hash", "abc")
            };
            let found = for_application(&event);
            assert_eq!(found.is_some(), is_told, "{kind}");
            if let Some(found) = found {
                assert_eq!(
                    (found.get("by"), found.get("hash"), found.get("api")),
                    ("", "", "pets")
                );
                assert_eq!(found.note, note, "{kind}");
            }
        }
        let revoked = Event::new("credential.revoked")
            .of_publication("pets/1/test")
            .with("prefix", "abcd");
        let (title, text) = notice_to_application(&revoked).expect("a notice");
        assert_eq!(
            (title.as_str(), text.as_str()),
            ("A key was revoked", "The key abcd… for pets 1 is good no longer.")
        );
    }

    #[test]
    fn people_are_told_in_words() {
        let event = Event::new("subscription.ending")
            .of_publication("pets/1/test")
            .with("application", "shop")
            .with("days", "1");
        let (subject, text) = mail_to_application(&event).expect("a mail");
        assert_eq!(subject, "Subscription to pets 1 ends in one day");
        assert!(
            text.starts_with("In one day ends the subscription of shop to pets 1 (test)."),
            "{text}"
        );
        assert_eq!(mail_to_owner(&event), None);
        assert_eq!(mail_to_application(&Event::new("publication.published")), None);
    }
}
