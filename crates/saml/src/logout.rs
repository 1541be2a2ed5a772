//! Messages of single logout that an identity provider sends: that a session ends, or that it has ended.

use crate::binding::Received;
use crate::error::{SamlError, ensure};
use crate::instant::parse_instant;
use crate::login::NameId;
use crate::names::{ASSERTION, PROTOCOL};
use crate::signature::{Trust, allowed_only_in, signed};
use crate::xml::{Document, Limits};

/// How long a request is good, in seconds, whatever it says of itself: as long as a login may take.
const LIFETIME_S: i64 = 600;
/// The most sessions that a message names.
const MAX_SESSIONS: usize = 50;

/// A request to end sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogoutRequest {
    /// Its id, for the answer.
    pub id: String,
    /// Whose sessions.
    pub name_id: NameId,
    /// Which of them; none: all.
    pub session_indexes: Vec<String>,
    /// Until when it is good, in seconds since the Unix epoch. So long it must be remembered that it was used.
    pub ends_s: i64,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogoutMessage {
    /// Sessions end.
    Request(LogoutRequest),
    /// The own request was answered.
    Response,
}

impl LogoutMessage {
    /// Reads a message that the provider has signed, sent to this place.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(
        received: &Received,
        trust: &Trust,
        issuer: Option<&str>,
        destination: &str,
        (now_s, leeway_s): (i64, i64),
    ) -> Result<Self, SamlError> {
        let document = Document::parse(&received.xml, Limits::default())?;
        let root = document.root();
        document.ids_are_unique()?;
        allowed_only_in(&document, &[root])?;
        let is_signed = signed(&document, root, trust)? || received.is_signed;
        ensure(is_signed, "the message is not signed")?;
        let attribute = |name: &str| document.attribute(root, name);
        ensure(
            attribute("Version") == Some("2.0"),
            "the message is not of version 2.0",
        )?;
        ensure(
            attribute("Destination") == Some(destination),
            "the message was sent to another place",
        )?;
        let name = document.only(root, ASSERTION, "Issuer")?;
        let name = name.and_then(|it| document.name(it)).unwrap_or_default();
        ensure(
            !name.is_empty() && issuer.is_none_or(|wanted| wanted == name),
            "the message is one of another identity provider",
        )?;
        if document.is(root, PROTOCOL, "LogoutResponse") {
            return Ok(Self::Response);
        }
        ensure(
            document.is(root, PROTOCOL, "LogoutRequest"),
            "the message is not about a logout",
        )?;
        let made_s = attribute("IssueInstant").and_then(parse_instant);
        let made_s = made_s.ok_or(SamlError("the message does not say when it was made"))?;
        let ends_s = match attribute("NotOnOrAfter") {
            Some(instant) => {
                parse_instant(instant).ok_or(SamlError("the message does not say until when it is good"))?
            }
            None => made_s + LIFETIME_S,
        };
        let ends_s = ends_s.min(made_s + LIFETIME_S) + leeway_s;
        ensure(
            made_s <= now_s + leeway_s && now_s < ends_s,
            "the message is not good yet or not any more",
        )?;
        let id = attribute("ID")
            .ok_or(SamlError("the message has no ID"))?
            .to_owned();
        let user = document.only(root, ASSERTION, "NameID")?;
        let user = user.ok_or(SamlError("the message does not name the user"))?;
        let indexes = document
            .named(root, PROTOCOL, "SessionIndex")
            .take(MAX_SESSIONS + 1);
        let session_indexes: Vec<String> = indexes.filter_map(|it| document.text(it)).collect();
        ensure(
            session_indexes.len() <= MAX_SESSIONS,
            "the message names too many sessions",
        )?;
        Ok(Self::Request(LogoutRequest {
            id,
            name_id: NameId::read(&document, user)?,
            session_indexes,
            ends_s,
        }))
    }
}
