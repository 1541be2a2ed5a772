//! The receivers of an event, and their messages: hooks of operators, webhooks of applications, owners of applications
//! and APIs, and the bell of portals.
//!
//! **What it is not**: it finds no events. The configuration's history does ([`super::feed`]), and quotas do
//! ([`crate::quotas`]).

use super::Outbox;
use super::concurrency::{HookState, PendingByApplication};
use super::message::{Mail, Message};
use super::origin::Origin;
use super::webhooks::{webhook_of_application, webhooks};
use crate::developers::{Inbox, Notice, Owners};
use crate::operational::{OperationalError, OperationalWrite};
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;
use weir_apis::entities::{
    Api, Application, Hook, Portal, Product, ProductState, Subscription, SubscriptionState,
};
use weir_apis::events::{self, Event};
use weir_model::unix_time::seconds;
use weir_store::{Document, HistoryEntry};

/// The prefix of the keys of entities.
pub(super) const PREFIX: &str = "apis/";
/// Whose doing it is if something has happened by itself.
const AUTHOR: &str = "weir";

/// The notices for developers in their portal, gathered from the commits that are read at once.
#[derive(Default)]
pub struct Inboxes(BTreeMap<String, Vec<Notice>>);

impl Inboxes {
    /// Adds what an event says to the applications that it concerns.
    pub fn take(&mut self, receivers: &Receivers, event: &Event, at: u64) {
        let application_notice = events::for_application(event).and_then(|event| {
            let (title, text) = events::notice_to_application(&event)?;
            Some(Notice {
                at,
                kind: event.kind.clone(),
                title,
                text,
            })
        });
        let Some(notice) = application_notice else { return };
        for name in receivers.concerned(event) {
            let owner = receivers.applications.get(&name).map_or("", |it| &it.owner);
            // No portal shows the notices of other applications.
            if owner.starts_with("developer/") || owner.starts_with("team/") {
                self.0.entry(name).or_default().push(notice.clone());
            }
        }
    }

    /// The writes for it. Only the holder of the lease for writing messages may do it.
    pub async fn writes(
        self,
        outbox: &Outbox,
        now: SystemTime,
    ) -> Result<Vec<OperationalWrite>, OperationalError> {
        let mut writes = Vec::new();
        for (application, notices) in self.0 {
            writes.push(Inbox::with(&outbox.0.store, &application, notices, now).await?);
        }
        Ok(writes)
    }
}

/// The receivers.
pub struct Receivers {
    hooks: Vec<Hook>,
    /// Those of applications.
    own_hooks: Vec<Hook>,
    apis: BTreeMap<String, Api>,
    applications: BTreeMap<String, Application>,
    subscriptions: BTreeMap<String, Subscription>,
    products: BTreeMap<String, Product>,
    portals: BTreeMap<String, Portal>,
    /// The addresses of developers by the owners of applications, as far as they were asked for.
    owners: BTreeMap<String, Vec<String>>,
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
    /// As these documents say.
    pub fn of(documents: &[Document]) -> Self {
        Self {
            hooks: entities(documents, "hooks").into_values().collect(),
            own_hooks: entities(documents, "webhooks").into_values().collect(),
            apis: entities(documents, "apis"),
            applications: entities(documents, "applications"),
            subscriptions: entities(documents, "subscriptions"),
            products: entities(documents, "products"),
            portals: entities(documents, "portals"),
            owners: BTreeMap::new(),
        }
    }

    /// How a webhook of an application is now.
    pub(super) fn state_of(&self, application: &str, name: &str) -> HookState {
        let mut own = self.own_hooks.iter();
        match own.find(|it| it.application == application && it.name == name) {
            Some(hook) if hook.disabled => HookState::Disabled,
            Some(_) => HookState::InUse,
            None => HookState::Gone,
        }
    }

    /// The events of a change, with all that is known about its subject.
    pub(super) fn events(&self, entry: &HistoryEntry) -> Vec<Event> {
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

    /// Asks for the addresses of the developers who own the applications that an event concerns, if they get mails of it.
    pub async fn look_up(
        &mut self,
        outbox: &Outbox,
        event: &Event,
        now: SystemTime,
    ) -> Result<(), OperationalError> {
        if !outbox.can_mail() || events::mail_to_application(event).is_none() {
            return Ok(());
        }
        let portals: Vec<&str> = match self.portals.is_empty() {
            // On the first day there is one without a document.
            true => vec![Portal::DEFAULT],
            false => self.portals.keys().map(String::as_str).collect(),
        };
        let known = Owners::new(outbox.store(), portals);
        for name in self.concerned(event) {
            let owner = self.applications.get(&name).map_or("", |it| &it.owner);
            if !owner.is_empty() && !self.owners.contains_key(owner) {
                let addresses = known.addresses(owner, now).await?;
                self.owners.insert(owner.to_owned(), addresses);
            }
        }
        Ok(())
    }

    /// The messages about an event: whose doing it was and when, and the revision of the configuration, if it is a change of
    /// that.
    pub fn messages(
        &self,
        outbox: &Outbox,
        event: &Event,
        about: (&str, u64),
        revision: Option<u64>,
    ) -> Vec<(Origin, Message)> {
        let origin = match event.get("application") {
            "" => Origin::Provider,
            application => Origin::Application(application.to_owned()),
        };
        let to_hooks = webhooks(&self.hooks, event, about, revision);
        let mut messages: Vec<(Origin, Message)> = to_hooks.map(|it| (origin.clone(), it)).collect();
        let concerned = self.concerned(event);
        for hook in self
            .own_hooks
            .iter()
            .filter(|it| concerned.contains(&it.application))
        {
            let origin = Origin::Application(hook.application.clone());
            messages.extend(webhook_of_application(hook, event, about).map(|it| (origin, it)));
        }
        if outbox.can_mail() {
            messages.extend(self.mails(event, &concerned));
        }
        messages
    }

    fn mails(&self, event: &Event, concerned: &BTreeSet<String>) -> Vec<(Origin, Message)> {
        // One mail to an address, however many of its applications are concerned.
        let mut mails: BTreeMap<String, (Origin, (String, String))> = BTreeMap::new();
        if let Some(text) = events::mail_to_owner(event) {
            for to in self.contacts(event) {
                mails.insert(to, (Origin::Provider, text.clone()));
            }
        }
        if let Some(text) = events::mail_to_application(event) {
            for name in concerned {
                for to in self.addresses(name) {
                    let about = || (Origin::Application(name.clone()), text.clone());
                    mails.entry(to).or_insert_with(about);
                }
            }
        }
        let mail = |(to, (origin, (subject, text)))| {
            let mail = Mail {
                to,
                subject,
                text,
                ..Mail::default()
            };
            (origin, Message::Mail(mail))
        };
        mails.into_iter().map(mail).collect()
    }

    /// The applications that an event concerns: the one that it names, or those that are subscribed.
    fn concerned(&self, event: &Event) -> BTreeSet<String> {
        let (named, publication) = (event.get("application"), event.get("publication"));
        if !named.is_empty() {
            return BTreeSet::from([named.to_owned()]);
        }
        let is_over =
            |it: &Subscription| matches!(it.state, SubscriptionState::Closed | SubscriptionState::Rejected);
        let subscribed = self
            .subscriptions
            .values()
            .filter(|it| !publication.is_empty() && !is_over(it) && self.opens(it, publication));
        subscribed.map(|it| it.application.clone()).collect()
    }

    /// Whether a subscription is to a publication, by itself or as a part of a product.
    fn opens(&self, subscription: &Subscription, publication: &str) -> bool {
        if subscription.product.is_empty() {
            return subscription.publication == publication;
        }
        let product = self.products.get(&subscription.product);
        product.is_some_and(|it| {
            it.state == ProductState::Published && it.publications.contains_key(publication)
        })
    }

    /// The addresses of an application's people: those that it names, and those of the developers who own it.
    fn addresses(&self, application: &str) -> BTreeSet<String> {
        let Some(known) = self.applications.get(application) else {
            return BTreeSet::new();
        };
        let owners = self.owners.get(&known.owner).into_iter().flatten();
        known.mails.iter().chain(owners).cloned().collect()
    }

    /// The addresses of an API's people.
    fn contacts(&self, event: &Event) -> BTreeSet<String> {
        let api = self.apis.get(event.get("api"));
        let contacts = api.into_iter().flat_map(|it| &it.contacts);
        contacts.filter(|it| it.contains('@')).cloned().collect()
    }
}

impl Outbox {
    /// Writes what an event that is no change of the configuration leads to: messages, and what portals show. Only the
    /// one that writes alone may do it ([`Outbox::write_alone`]). The new messages wait from now on.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn writes_about(
        &self,
        receivers: &mut Receivers,
        waiting: &mut PendingByApplication,
        event: &Event,
        now: SystemTime,
    ) -> Result<Vec<OperationalWrite>, OperationalError> {
        receivers.look_up(self, event, now).await?;
        let at = seconds(now);
        let mut writes = Vec::new();
        for (origin, message) in receivers.messages(self, event, (AUTHOR, at), None) {
            if waiting.take(&message) {
                writes.push(self.entry(None, (origin, &event.kind, message), now)?);
            }
        }
        let mut inboxes = Inboxes::default();
        inboxes.take(receivers, event, at);
        writes.extend(inboxes.writes(self, now).await?);
        Ok(writes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use weir_store::{Key, Revision};

    fn document((key, value): (&str, Value)) -> Document {
        Document {
            key: Key::new(key).expect("a key"),
            value: value.to_string().into_bytes().into(),
            created: Revision(1),
            modified: Revision(1),
        }
    }

    #[test]
    fn subscribers_of_products_are_concerned_and_former_ones_are_not() {
        let subscription = |application: &str, to: (&str, &str), state: &str| json!({"application": application, to.0: to.1, "plan": "gold", "state": state});
        let pets = ("publication", "pets/1/test");
        let documents = [
            (
                "apis/products/bundle",
                json!({"name": "bundle", "state": "published", "publications": {"pets/1/test": ["list"]}}),
            ),
            (
                "apis/products/draft",
                json!({"name": "draft", "publications": {"pets/1/test": []}}),
            ),
            ("apis/subscriptions/1", subscription("direct", pets, "accepted")),
            ("apis/subscriptions/2", subscription("paused", pets, "paused")),
            ("apis/subscriptions/3", subscription("closed", pets, "closed")),
            ("apis/subscriptions/4", subscription("refused", pets, "rejected")),
            (
                "apis/subscriptions/5",
                subscription("bundled", ("product", "bundle"), "accepted"),
            ),
            (
                "apis/subscriptions/6",
                subscription("early", ("product", "draft"), "accepted"),
            ),
            (
                "apis/subscriptions/7",
                subscription("lost", ("product", "gone"), "accepted"),
            ),
            (
                "apis/subscriptions/8",
                subscription("other", ("publication", "pets/2/test"), "accepted"),
            ),
        ];
        let receivers = Receivers::of(&documents.map(document));
        let event = |about: &[(&'static str, &str)]| Event {
            kind: "publication.deprecated".to_owned(),
            about: about
                .iter()
                .map(|(name, value)| (*name, (*value).to_owned()))
                .collect(),
            note: String::new(),
        };
        let concerned = |event: &Event| receivers.concerned(event).into_iter().collect::<Vec<_>>();
        assert_eq!(concerned(&event(&[pets])), ["bundled", "direct", "paused"]);
        assert_eq!(concerned(&event(&[pets, ("application", "closed")])), ["closed"]);
        assert!(concerned(&event(&[("publication", "cats/1/test")])).is_empty());
        assert!(concerned(&event(&[])).is_empty());
    }
}
