//! Events in words: what developers may know of one, and the mails and notices about it. Who gets them is decided elsewhere.

use super::Event;

/// The part of an event for developers whose application it concerns; `None`: it is not for them. Who of the
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
            | "publication.removed"
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

/// The notice of an event for an application's developers in their portal: a title and a text; `None`: nothing.
pub fn notice_to_application(event: &Event) -> Option<(String, String)> {
    let texts = match event.kind.as_str() {
        "credential.created" => ("A key was made", "is good from now on"),
        "credential.rotated" => ("A key was replaced", "takes the place of another one"),
        "credential.revoked" => ("A key was revoked", "is good no longer"),
        _ => return mail_to_application(event),
    };
    let (title, what) = texts;
    let text = format!("The key {}… for {} {what}.", event.get("prefix"), target(event));
    Some((title.to_owned(), text))
}

/// A mail to an application's developers: its subject and its text; `None`: they get no mail about this.
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
            format!("Calls are accepted again: {what}."),
        ),
        "subscription.closed" => (
            format!("Subscription to {api} closed"),
            format!("Closed: {what}. Its keys are no longer valid."),
        ),
        "subscription.moved" => (
            format!("Another plan for {api}"),
            format!("Moved to the plan {}: {what}.", event.get("plan")),
        ),
        "subscription.ending" => (
            format!("Subscription to {api} ends {}", end(event)),
            format!(
                "It ends {}: {what}. After that, calls are answered with 403.",
                end(event)
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
        "publication.removed" => (
            format!("{api} is removed"),
            format!(
                "{api} is no longer published in {}. Calls are answered with 404.",
                event.get("environment")
            ),
        ),
        _ => return None,
    };
    Some((subject, with_note(text, &event.note)))
}

/// A mail to the owners of an API; `None`: they get no mail about this.
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

/// The target of a subscription, for people.
fn target(event: &Event) -> String {
    match event.get("product") {
        "" => format!("{} {}", event.get("api"), event.get("version")),
        product => product.to_owned(),
    }
}

/// When a subscription ends. A notice may come late, so the date counts, if there is one, and not the days before it.
fn end(event: &Event) -> String {
    match event.get("ends").parse() {
        Ok(end) => format!("on {}", date(end)),
        Err(_) => format!("in {}", days(event.get("days"))),
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
