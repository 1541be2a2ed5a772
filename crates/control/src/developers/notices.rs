//! Events of developers, for programs and people: webhooks of the hooks that want it, and mails. They are written to
//! the outbox, together with what they are about.
//!
//! **What it is not**: subscriptions, keys and publications are announced by the configuration's history
//! ([`crate::outbox::feed`]).

use super::names::checked_name;
use super::store::Developer;
use crate::operational::{OperationalError, OperationalWrite};
use crate::outbox::webhooks::webhooks;
use crate::outbox::{Mail, Message, Origin, Outbox};
use std::time::SystemTime;
use weir_apis::entities::{Hook, Portal};
use weir_apis::events::Event;
use weir_model::unix_time::seconds;

/// The kind of mails to those who decide about sign-ups.
pub const WAITS: &str = "developer.confirmed";

/// The title of a portal.
pub fn title_of(portal: &Portal) -> &str {
    match portal.display_name.as_str() {
        "" => "the developer portal",
        title => title,
    }
}

/// The end of the subject of a notice of a sign-up.
pub fn waits_at(title: &str) -> String {
    format!(" waits for approval: {title}")
}

/// Writes notices of a portal.
pub struct Notices<'n> {
    /// The outbox in which they wait.
    pub outbox: &'n Outbox,
    /// The hooks that there are.
    pub hooks: Vec<Hook>,
    /// The portal.
    pub portal: &'n Portal,
}

impl Notices<'_> {
    /// The portal's title.
    pub fn title(&self) -> &str {
        title_of(self.portal)
    }

    /// The portal's URL, if it is known.
    pub fn url(&self) -> Option<&str> {
        Some(self.portal.url.trim_end_matches('/')).filter(|it| !it.is_empty())
    }

    fn origin(&self) -> Origin {
        Origin::Portal(self.portal.name.clone())
    }

    /// Webhooks about a developer.
    ///
    /// # Errors
    /// They have no JSON form.
    pub fn event(
        &self,
        kind: &str,
        developer: &Developer,
        by: &str,
        now: SystemTime,
    ) -> Result<Vec<OperationalWrite>, OperationalError> {
        let event = Event {
            kind: kind.to_owned(),
            about: [
                ("portal", self.portal.name.clone()),
                ("developer", developer.id.clone()),
                ("mail", developer.mail.clone()),
                ("name", developer.name.clone()),
            ]
            .into(),
            note: developer
                .decided
                .as_ref()
                .map_or_else(String::new, |it| it.reason.clone()),
        };
        webhooks(&self.hooks, &event, (by, seconds(now)), None)
            .map(|message| self.outbox.entry(None, (self.origin(), kind, message), now))
            .collect()
    }

    /// A mail; nothing if none can be sent.
    ///
    /// # Errors
    /// It has no JSON form.
    pub fn mail(
        &self,
        kind: &str,
        to: &str,
        (subject, text): (String, String),
        now: SystemTime,
    ) -> Result<Vec<OperationalWrite>, OperationalError> {
        if !self.outbox.can_mail() {
            return Ok(Vec::new());
        }
        let mail = Mail {
            to: to.to_owned(),
            subject,
            text,
            ..Mail::default()
        };
        let about = (self.origin(), kind, Message::Mail(mail));
        Ok(vec![self.outbox.entry(None, about, now)?])
    }

    /// Mails to those who decide about sign-ups: a developer waits.
    ///
    /// # Errors
    /// They have no JSON form.
    pub fn waiting(
        &self,
        developer: &Developer,
        now: SystemTime,
    ) -> Result<Vec<OperationalWrite>, OperationalError> {
        let Developer { name, mail, .. } = developer;
        let subject = format!("{mail}{}", waits_at(self.title()));
        // The name is what a stranger has typed.
        let called = checked_name(name).map_or_else(|_| String::new(), |name| format!(" ({name})"));
        let text = format!(
            "{mail}{called} has signed up at {} and waits for approval.\n\nApprove or refuse it in the console, under Developers.\n",
            self.title()
        );
        let mut writes = Vec::new();
        for to in &self.portal.sign_up.notify {
            let mail = (subject.clone(), text.clone());
            writes.extend(self.mail(WAITS, to, mail, now)?);
        }
        Ok(writes)
    }
}
