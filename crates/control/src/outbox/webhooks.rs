//! Webhooks about events: for hooks of operators, and for those of applications.
//!
//! **What it is not**: who gets one is decided in [`super::receivers`].

use super::message::{Message, Webhook};
use serde_json::json;
use weir_apis::entities::Hook;
use weir_apis::events::{self, Event};

/// The webhooks of an event: whose doing it was and when, and the revision of the configuration, if it is a change of that.
pub fn webhooks<'h>(
    hooks: &'h [Hook],
    event: &'h Event,
    (by, at): (&str, u64),
    revision: Option<u64>,
) -> impl Iterator<Item = Message> + use<'h> {
    let mut body = json!({ "type": event.kind, "timestamp": at, "by": by, "data": event });
    if let Some(revision) = revision {
        body["revision"] = revision.into();
    }
    let body = body.to_string();
    hooks.iter().filter(|it| it.wants(event)).map(move |hook| {
        Message::Webhook(Webhook {
            url: hook.url.clone(),
            secret: hook.secret.clone(),
            body: body.clone(),
            of_application: None,
        })
    })
}

/// The webhook of an application about an event. Names of the provider's people are left out.
pub fn webhook_of_application(hook: &Hook, event: &Event, (by, at): (&str, u64)) -> Option<Message> {
    let message = events::for_application(event).filter(|it| hook.wants(it))?;
    let by = if by.starts_with("developer ") {
        by
    } else {
        "provider"
    };
    let body = json!({ "type": message.kind, "timestamp": at, "by": by, "data": message });
    Some(Message::Webhook(Webhook {
        url: hook.url.clone(),
        secret: hook.secret.clone(),
        body: body.to_string(),
        of_application: Some((hook.application.clone(), hook.name.clone())),
    }))
}
