//! From the configuration's history to messages: each commit is read once, and what it means is written to the outbox
//! together with the place up to which the history was read.

use super::message::{Delivery, Mail, Message, Webhook};
use super::places::{HookState, Waiting, stopped};
use super::{LEASE, Outbox, WAITING, seconds};
use crate::developers::{Inbox, Notice};
use crate::lease;
use crate::operational::{Entry, OperationalError, Write};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use weir_apis::entities::{Api, Application, Hook, Subscription};
use weir_apis::events::{self, Event};
use weir_store::{Document, HistoryEntry, Key, Revision, Store, StoreError};

/// What the keys of entities begin with.
const PREFIX: &str = "apis/";
/// Where the place in the history is kept.
const CURSOR: &str = "outbox/cursor";
/// Changes that are read at once.
const BATCH: usize = 500;
/// Commits that are read in one go. What is older was missed for a long time; its messages are not sent any more.
const MAX_CHANGES: usize = 50_000;
/// How long the reader sleeps at most.
const INTERVAL: Duration = Duration::from_secs(10);
/// The lease's name.
const LEASE_NAME: &str = "outbox-feed";

/// Up to where the history was read.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Cursor {
    revision: u64,
}

/// Why the history is not read.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The configuration's store does not do its part.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operational store does not do its part.
    #[error(transparent)]
    Operational(#[from] OperationalError),
}

/// Reads the history as it grows, until the process ends.
///
/// # Errors
/// The store cannot be followed.
pub async fn run(store: Arc<dyn Store>, outbox: Outbox) -> Result<(), StoreError> {
    let (_, _, mut following) = weir_store::follow::start(Arc::clone(&store), PREFIX).await?;
    loop {
        if let Err(error) = round(&*store, &outbox, SystemTime::now()).await {
            tracing::warn!(%error, "messages about changes are not written; it is tried again");
        }
        tokio::select! {
            _ = following.next() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

async fn round(store: &dyn Store, outbox: &Outbox, now: SystemTime) -> Result<(), FeedError> {
    let holder = outbox.0.holder.as_str();
    if lease::hold(&outbox.0.store, LEASE_NAME, (holder, LEASE), now).await? {
        read(store, outbox, now).await?;
    }
    Ok(())
}

/// Writes messages for all commits that were not read before. The first time, it only notes where the history ends.
///
/// # Errors
/// One of the stores does not do its part. The same commits are read again then.
pub async fn read(store: &dyn Store, outbox: &Outbox, now: SystemTime) -> Result<(), FeedError> {
    let key = Key::new(CURSOR).map_err(OperationalError::Name)?;
    let known = outbox.0.store.read::<Cursor>(&key, now).await?;
    // Before the documents: the webhook of a message was there before the message was.
    let waiting: Vec<Entry<Delivery>> = outbox.0.store.list(WAITING, now).await?;
    let (documents, head) = store.read(PREFIX).await?;
    let mut writes = Vec::new();
    if let Some(known) = known {
        if known.value.revision >= head.0 {
            return Ok(());
        }
        let receivers = Receivers::of(&documents);
        let (mut places, mut dropped) = (Waiting::of(&waiting), 0);
        writes.extend(stopped(&waiting, |app, name| receivers.state_of(app, name), now)?);
        let mut inboxes = Inboxes::default();
        for entry in since(store, Revision(known.value.revision), head).await? {
            for (number, event) in receivers.events(&entry).into_iter().enumerate() {
                let id = format!(
                    "{:012}-{:04}-{}",
                    entry.revision.0,
                    number,
                    short(entry.key.as_str())
                );
                for (place, message) in receivers.messages(outbox, &event, &entry).into_iter().enumerate() {
                    if !places.take(&message) {
                        dropped += 1;
                        continue;
                    }
                    let id = format!("{id}-{place}");
                    writes.push(outbox.entry(Some(&id), (&event.kind, message), now)?);
                }
                inboxes.take(&receivers, &event, seconds(entry.time));
            }
        }
        if dropped > 0 {
            tracing::warn!(dropped, "webhooks of applications are dropped: too many wait");
        }
        writes.extend(inboxes.writes(outbox, now).await?);
    }
    let is_new = !writes.is_empty();
    writes.push(Write::put(key, &Cursor { revision: head.0 }, None)?);
    outbox.0.store.write(writes, now).await?;
    if is_new {
        outbox.notify();
    }
    Ok(())
}

/// A few characters that tell documents of one commit apart.
fn short(key: &str) -> String {
    weir_apis::hash::of_bytes(key.as_bytes())[..8].to_owned()
}

/// The changes after a revision and up to another one, the earliest first.
async fn since(store: &dyn Store, from: Revision, to: Revision) -> Result<Vec<HistoryEntry>, StoreError> {
    let mut found = Vec::new();
    let mut before = Some(Revision(to.0.saturating_add(1)));
    loop {
        let batch = store.history(PREFIX, before, BATCH).await?;
        let count = batch.len();
        before = batch.last().map(|it| it.revision);
        let newer = batch.into_iter().take_while(|it| it.revision > from);
        let known = found.len();
        found.extend(newer);
        if found.len() - known < count || count < BATCH || found.len() > MAX_CHANGES {
            found.reverse();
            return Ok(found);
        }
    }
}

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
    let told = events::for_application(event).filter(|it| hook.wants(it))?;
    let by = if by.starts_with("developer ") {
        by
    } else {
        "provider"
    };
    let body = json!({ "type": told.kind, "timestamp": at, "by": by, "data": told });
    Some(Message::Webhook(Webhook {
        url: hook.url.clone(),
        secret: hook.secret.clone(),
        body: body.to_string(),
        of_application: Some((hook.application.clone(), hook.name.clone())),
    }))
}

/// What developers read in their portal, gathered from the commits that are read at once.
#[derive(Default)]
struct Inboxes(BTreeMap<String, Vec<Notice>>);

impl Inboxes {
    fn take(&mut self, receivers: &Receivers, event: &Event, at: u64) {
        let told = events::for_application(event).and_then(|event| {
            let (title, text) = events::notice_to_application(&event)?;
            Some(Notice {
                at,
                kind: event.kind.clone(),
                title,
                text,
            })
        });
        let Some(notice) = told else { return };
        for name in receivers.concerned(event) {
            let owner = receivers.applications.get(&name).map_or("", |it| &it.owner);
            // No portal shows the notices of other applications.
            if owner.starts_with("developer/") || owner.starts_with("team/") {
                self.0.entry(name).or_default().push(notice.clone());
            }
        }
    }

    async fn writes(self, outbox: &Outbox, now: SystemTime) -> Result<Vec<Write>, OperationalError> {
        let mut writes = Vec::new();
        for (application, notices) in self.0 {
            writes.push(Inbox::with(&outbox.0.store, &application, notices, now).await?);
        }
        Ok(writes)
    }
}

/// Who is told.
struct Receivers {
    hooks: Vec<Hook>,
    /// Those of applications.
    own_hooks: Vec<Hook>,
    apis: BTreeMap<String, Api>,
    applications: BTreeMap<String, Application>,
    subscriptions: BTreeMap<String, Subscription>,
}

fn entities<T: serde::de::DeserializeOwned>(documents: &[Document], kind: &str) -> BTreeMap<String, T> {
    let prefix = format!("{PREFIX}{kind}/");
    let read = |it: &Document| {
        let name = it.key.as_str().strip_prefix(&prefix)?;
        Some((name.to_owned(), serde_json::from_slice(&it.value).ok()?))
    };
    documents.iter().filter_map(read).collect()
}

impl Receivers {
    fn of(documents: &[Document]) -> Self {
        Self {
            hooks: entities(documents, "hooks").into_values().collect(),
            own_hooks: entities(documents, "webhooks").into_values().collect(),
            apis: entities(documents, "apis"),
            applications: entities(documents, "applications"),
            subscriptions: entities(documents, "subscriptions"),
        }
    }

    /// How a webhook of an application is now.
    fn state_of(&self, application: &str, name: &str) -> HookState {
        let mut own = self.own_hooks.iter();
        match own.find(|it| it.application == application && it.name == name) {
            Some(hook) if hook.disabled => HookState::Disabled,
            Some(_) => HookState::InUse,
            None => HookState::Gone,
        }
    }

    /// What a change means, with all that is known of what it is about.
    fn events(&self, entry: &HistoryEntry) -> Vec<Event> {
        let mut events = events::of(
            entry.key.as_str(),
            entry.before.as_deref(),
            entry.after.as_deref(),
        );
        for event in &mut events {
            let known = self.subscriptions.get(event.get("subscription"));
            if let Some(known) = known.filter(|_| event.get("publication").is_empty()) {
                event.about_subscription(known);
            }
        }
        events
    }

    fn messages(&self, outbox: &Outbox, event: &Event, entry: &HistoryEntry) -> Vec<Message> {
        let about = (entry.author.as_str(), seconds(entry.time));
        let mut messages: Vec<Message> =
            webhooks(&self.hooks, event, about, Some(entry.revision.0)).collect();
        if !self.own_hooks.is_empty() {
            let concerned = self.concerned(event);
            let own = self
                .own_hooks
                .iter()
                .filter(|it| concerned.contains(&it.application));
            messages.extend(own.filter_map(|it| webhook_of_application(it, event, about)));
        }
        if !outbox.can_mail() {
            return messages;
        }
        let to_applications = events::mail_to_application(event).map(|mail| (self.addresses(event), mail));
        let to_owners = events::mail_to_owner(event).map(|mail| (self.owners(event), mail));
        for (addresses, (subject, text)) in to_applications.into_iter().chain(to_owners) {
            for to in addresses {
                messages.push(Message::Mail(Mail {
                    to,
                    subject: subject.clone(),
                    text: text.clone(),
                    ..Mail::default()
                }));
            }
        }
        messages
    }

    /// The applications that an event concerns: the one that it names, or those that are subscribed.
    fn concerned(&self, event: &Event) -> BTreeSet<String> {
        let named = Some(event.get("application").to_owned()).filter(|it| !it.is_empty());
        let subscribed = self
            .subscriptions
            .values()
            .filter(|it| named.is_none() && !it.publication.is_empty())
            .filter(|it| it.publication == event.get("publication"))
            .map(|it| it.application.clone());
        named.iter().cloned().chain(subscribed).collect()
    }

    /// The addresses of the applications that an event concerns.
    fn addresses(&self, event: &Event) -> BTreeSet<String> {
        let names = self.concerned(event);
        let applications = names.iter().filter_map(|it| self.applications.get(it));
        applications.flat_map(|it| it.mails.iter().cloned()).collect()
    }

    /// The addresses of the people behind an API.
    fn owners(&self, event: &Event) -> BTreeSet<String> {
        let api = self.apis.get(event.get("api"));
        let contacts = api.into_iter().flat_map(|it| &it.contacts);
        contacts.filter(|it| it.contains('@')).cloned().collect()
    }
}
