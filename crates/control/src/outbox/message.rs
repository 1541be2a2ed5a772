//! Messages: mails and webhooks, and what became of each of them. Values alone; nothing is sent here.

use super::origin::Origin;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of a webhook that only tries whether it arrives. It is sent once.
pub const TEST: &str = "webhook.test";
/// The outcome of a message whose webhook is disabled.
pub(super) const NOT_SENT: &str = "not sent: the webhook is disabled";
/// The begin of the outcome of an attempt that had an answer.
pub(super) const ANSWERED: &str = "the receiver answered";

/// A mail.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mail {
    /// The address.
    pub to: String,
    /// The subject.
    pub subject: String,
    /// The text.
    pub text: String,
    /// The same as HTML; empty: no HTML.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub html: String,
    /// Files: name, media type, and contents in base64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// A file of a mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Its name. The HTML shows a picture of this name as `cid:NAME`.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its contents in base64.
    pub contents: String,
    /// Whether it is shown in the HTML.
    pub is_inline: bool,
}

/// A call of a receiver's server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    /// The URL.
    pub url: String,
    /// The secret that it is signed with; empty: it is not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub secret: String,
    /// The body, JSON.
    pub body: String,
    /// The application whose developers have named the URL, and the name of their webhook; absent: operators have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_application: Option<(String, String)>,
}

/// Secrets and URLs, which may hold some, are not shown.
impl std::fmt::Debug for Webhook {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Webhook").finish_non_exhaustive()
    }
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// A mail.
    Mail(Mail),
    /// A webhook.
    Webhook(Webhook),
}

impl Message {
    /// Whom it is for: an address, or the host of a URL. The rest of a URL may hold a secret.
    pub fn receiver(&self) -> String {
        match self {
            Self::Mail(mail) => mail.to.clone(),
            Self::Webhook(hook) => crate::http::host_of(&hook.url).unwrap_or_else(|_| "?".to_owned()),
        }
    }

    /// `mail` or `webhook`.
    pub fn channel(&self) -> &'static str {
        match self {
            Self::Mail(_) => "mail",
            Self::Webhook(_) => "webhook",
        }
    }

    /// The application and its webhook that this is for, if developers have named the address.
    pub fn of_application(&self) -> Option<&(String, String)> {
        match self {
            Self::Mail(_) => None,
            Self::Webhook(hook) => hook.of_application.as_ref(),
        }
    }

    /// Forgets what it says: links in mails are good for something, and subjects name people.
    pub fn forget_contents(&mut self) {
        match self {
            Self::Mail(mail) => {
                mail.subject.clear();
                mail.text.clear();
                mail.html.clear();
                mail.attachments.clear();
            }
            Self::Webhook(hook) => {
                hook.secret.clear();
                hook.body.clear();
            }
        }
    }
}

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryState {
    /// It waits for its next attempt.
    Waiting,
    /// It has arrived.
    Delivered,
    /// It was given up.
    Failed,
}

/// An attempt to deliver a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// When, in seconds since 1970.
    pub at: u64,
    /// Whether it has arrived.
    pub is_delivered: bool,
    /// Its outcome, in words.
    pub outcome: String,
}

impl Attempt {
    /// The form for developers. Why there was no connection is for operators: it reveals their network and their flags.
    #[must_use]
    pub fn for_developers(mut self) -> Self {
        let is_theirs = self.outcome.starts_with(ANSWERED) || self.outcome == NOT_SENT;
        if !self.is_delivered && !is_theirs {
            self.outcome = "the receiver could not be reached, or gave no answer in time".to_owned();
        }
        self
    }
}

/// A message with what is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// Its id, by which receivers recognise it.
    pub id: String,
    /// The kind of the event, such as `subscription.accepted`.
    pub kind: String,
    /// In whose name it goes. Earlier versions did not note it.
    #[serde(default)]
    pub origin: Origin,
    /// The message.
    pub message: Message,
    /// How far it has come.
    pub state: DeliveryState,
    /// Since when it waits, in seconds since 1970.
    pub created: u64,
    /// When it is tried next.
    pub due: u64,
    /// The attempts.
    pub attempts: Vec<Attempt>,
}
