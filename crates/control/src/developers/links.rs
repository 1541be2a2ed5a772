//! Links that mails carry: each is good once, for one purpose, and for a while. The store holds only their hashes.

use super::store::{Developer, DeveloperStore, failed, hash, key};
use super::teams::TeamRole;
use crate::access::Token;
use crate::api::Problem;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime};
use weir_store::Key;

/// How long a link is good.
const CONFIRM: Duration = Duration::from_secs(24 * 3600);
const RESET: Duration = Duration::from_secs(3600);
const INVITATION: Duration = Duration::from_secs(7 * 24 * 3600);

/// The purpose of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "purpose")]
pub enum Purpose {
    /// Confirms a developer's mail address.
    Confirm {
        /// Who.
        developer: String,
        /// The credential in the mail to the owner of the address. The link vouches for nothing that came later.
        of: UnconfirmedCredential,
    },
    /// Sets a new password.
    Reset {
        /// Who.
        developer: String,
    },
    /// Sets the first password of an account that an administrator has made.
    Welcome {
        /// Who.
        developer: String,
    },
    /// Joins a team.
    Invitation {
        /// The team.
        team: String,
        /// As what.
        role: TeamRole,
        /// The mail address of the person who is invited.
        mail: String,
    },
}

/// The credential of a developer who has not confirmed the mail address yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnconfirmedCredential {
    /// The mark of a password ([`Developer::password_mark`](super::Developer::password_mark)).
    Password(String),
    /// The mark of an account at an identity provider ([`mark_of`](super::mark_of)).
    Account(String),
}

/// A link, as it goes into a mail.
pub struct Link {
    /// The secret in it.
    pub token: String,
}

impl Purpose {
    fn length(&self) -> Duration {
        match self {
            Self::Confirm { .. } => CONFIRM,
            Self::Reset { .. } => RESET,
            Self::Welcome { .. } | Self::Invitation { .. } => INVITATION,
        }
    }
}

impl DeveloperStore {
    /// Makes a link.
    pub async fn link(&self, portal: &str, purpose: &Purpose, now: SystemTime) -> Result<Link, Problem> {
        let token = Token::random().ok_or_else(|| Problem::unreadable("the system yields no random bits"))?;
        let key = key(portal, &format!("links/{}", hash(token.as_str())))?;
        let ends = Some(now + purpose.length());
        self.store.put(&key, purpose, (ends, now)).await.map_err(failed)?;
        Ok(Link {
            token: token.as_str().to_owned(),
        })
    }

    /// The links and invitations of a developer.
    pub async fn links_of(
        &self,
        portal: &str,
        developer: &Developer,
        now: SystemTime,
    ) -> Result<Vec<Key>, Problem> {
        let prefix = format!("portal/{portal}/links/");
        let all = self.store.list::<Purpose>(&prefix, now).await.map_err(failed)?;
        let is_own = |purpose: &Purpose| match purpose {
            Purpose::Confirm { developer: id, .. }
            | Purpose::Reset { developer: id }
            | Purpose::Welcome { developer: id } => *id == developer.id,
            Purpose::Invitation { mail, .. } => *mail == developer.mail,
        };
        let own = all.into_iter().filter(|it| is_own(&it.value));
        Ok(own.map(|it| it.key).collect())
    }

    /// The purpose of a link, without using it up.
    pub async fn look(&self, portal: &str, token: &str, now: SystemTime) -> Result<Option<Purpose>, Problem> {
        let key = key(portal, &format!("links/{}", hash(token)))?;
        let found = self.store.read::<Purpose>(&key, now).await.map_err(failed)?;
        Ok(found.map(|it| it.value))
    }

    /// Uses a link up; `None`: it is unknown, was used, or is too old.
    pub async fn take(&self, portal: &str, token: &str, now: SystemTime) -> Result<Option<Purpose>, Problem> {
        let key = key(portal, &format!("links/{}", hash(token)))?;
        let found = self.store.take::<Purpose>(&key, now).await.map_err(failed)?;
        Ok(found.map(|it| it.value))
    }
}
