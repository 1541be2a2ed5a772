//! Developers and their sessions in the operational store.

use super::second_factor::SecondFactor;
use crate::access::password::{PasswordHash, Passwords};
use crate::access::{Attempts, Token, TokenHash};
use crate::api::Problem;
use crate::operational::{
    DocumentLimit, OperationalError, OperationalStore, OperationalWrite, OverflowPolicy,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};
use weir_model::unix_time::seconds;
use weir_store::Key;

/// How long a session lasts.
pub const SESSION: Duration = Duration::from_secs(12 * 3600);
/// Sessions of a developer; a further one ends the oldest.
const MAX_SESSIONS: usize = 20;
/// Developers of a portal.
const MAX_DEVELOPERS: usize = 100_000;

/// How far a developer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeveloperState {
    /// Signed up; the mail address is not confirmed.
    Registered,
    /// Confirmed; an administrator has to approve.
    Confirmed,
    /// May sign in.
    Active,
    /// May not sign in for now.
    Suspended,
    /// Was not approved.
    Refused,
}

/// A developer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Developer {
    /// A random name.
    pub id: String,
    /// The mail address, in small letters.
    pub mail: String,
    /// The name for people.
    pub name: String,
    /// The password's hash; `None`: the developer signs in otherwise, or has to set one first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<PasswordHash>,
    /// The second factor; `None`: the account has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second_factor: Option<SecondFactor>,
    /// How far the developer has come.
    pub state: DeveloperState,
    /// Groups that control visibility.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub groups: BTreeSet<String>,
    /// Groups from the identity provider at the last login.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub provided: BTreeSet<String>,
    /// Seconds since 1970.
    pub created: u64,
    /// The last decision of an administrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<AdminDecision>,
}

impl Developer {
    /// The mark of the password in links; another password has another one.
    pub fn password_mark(&self) -> Option<String> {
        self.password.as_ref().map(PasswordHash::mark)
    }
}

/// A decision of an administrator about a developer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdminDecision {
    /// Who.
    pub by: String,
    /// When, in seconds since 1970.
    pub at: u64,
    /// The reason; empty: none was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Its id, to end it.
    pub id: String,
    /// Whose.
    pub developer: String,
    /// Seconds since 1970.
    pub created: u64,
    /// From which address.
    pub address: String,
    /// With which browser.
    pub agent: String,
    /// When an identity provider asked the developer, in seconds since 1970, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
}

/// The people of all portals. Cheap to share.
#[derive(Clone)]
pub struct DeveloperStore {
    /// The store that holds them.
    pub store: OperationalStore,
    /// Hashes passwords.
    pub passwords: Passwords,
    /// Logins of the last minutes.
    pub attempts: std::sync::Arc<Attempts>,
}

/// A random name of 16 digits.
pub fn random_id() -> Result<String, Problem> {
    let token = Token::random().ok_or_else(|| Problem::unreadable("the system yields no random bits"))?;
    Ok(TokenHash::of(token.as_str())
        .to_string()
        .chars()
        .take(16)
        .collect())
}

/// The problem for an error of the operational store.
pub fn failed(error: OperationalError) -> Problem {
    use axum::http::StatusCode;
    let status = match error {
        OperationalError::Exists(_) | OperationalError::Full(_) => StatusCode::CONFLICT,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    Problem::new(status, error.to_string())
}

/// A key of what is kept for a portal.
pub fn key(portal: &str, rest: &str) -> Result<Key, Problem> {
    Key::new(&format!("portal/{portal}/{rest}")).map_err(|error| Problem::bad(error.to_string()))
}

/// A mail address as it is compared; `None`: it is no address.
pub fn mail_of(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let (name, domain) = text.split_once('@')?;
    let is_good = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|it| !it.is_whitespace() && !it.is_control() && !"<>,;:\"@\\()[]".contains(it))
    };
    (text.len() <= 254 && is_good(name) && is_good(domain) && domain.contains('.')).then_some(text)
}

pub(super) fn hash(text: &str) -> String {
    TokenHash::of(text).to_string()
}

impl DeveloperStore {
    /// In a store.
    pub fn new(store: OperationalStore, passwords: Passwords) -> Self {
        Self {
            store,
            passwords,
            attempts: std::sync::Arc::default(),
        }
    }

    /// A developer by id.
    pub async fn developer(
        &self,
        portal: &str,
        id: &str,
        now: SystemTime,
    ) -> Result<Option<Developer>, Problem> {
        let key = key(portal, &format!("developers/{id}"))?;
        let found = self.store.read::<Developer>(&key, now).await.map_err(failed)?;
        Ok(found.map(|it| it.value))
    }

    /// A developer by mail address.
    pub async fn by_mail(
        &self,
        portal: &str,
        mail: &str,
        now: SystemTime,
    ) -> Result<Option<Developer>, Problem> {
        let key = key(portal, &format!("mails/{}", hash(mail)))?;
        let id = self.store.read::<String>(&key, now).await.map_err(failed)?;
        match id {
            Some(id) => self.developer(portal, &id.value, now).await,
            None => Ok(None),
        }
    }

    /// Makes a developer; `false`: there is one with this address.
    pub async fn add(&self, portal: &str, developer: &Developer, now: SystemTime) -> Result<bool, Problem> {
        // The address first: of two who sign up with one, the second is refused here.
        let of_mail = key(portal, &format!("mails/{}", hash(&developer.mail)))?;
        let bound = DocumentLimit {
            prefix: of_mail.as_str(),
            max: MAX_DEVELOPERS,
            when_full: OverflowPolicy::Refuse,
        };
        let made = self
            .store
            .create(&of_mail, &developer.id, (None, now), bound)
            .await;
        match made {
            Ok(()) => {}
            Err(OperationalError::Exists(_)) => return Ok(false),
            Err(error) => return Err(failed(error)),
        }
        self.put(portal, developer, now).await?;
        Ok(true)
    }

    /// Writes a developer.
    pub async fn put(&self, portal: &str, developer: &Developer, now: SystemTime) -> Result<(), Problem> {
        let key = key(portal, &format!("developers/{}", developer.id))?;
        self.store.put(&key, developer, (None, now)).await.map_err(failed)
    }

    /// All developers of a portal.
    pub async fn all(&self, portal: &str, now: SystemTime) -> Result<Vec<Developer>, Problem> {
        let prefix = format!("portal/{portal}/developers/");
        let found = self.store.list::<Developer>(&prefix, now).await.map_err(failed)?;
        Ok(found.into_iter().map(|it| it.value).collect())
    }

    /// Changes a developer, and writes what belongs to it in the same step, such as mails. Returns the developer
    /// afterwards.
    ///
    /// # Errors
    /// If it does not exist, or `change` refuses.
    pub async fn change(
        &self,
        portal: &str,
        id: &str,
        now: SystemTime,
        change: impl Fn(&mut Developer) -> Result<Vec<OperationalWrite>, Problem>,
    ) -> Result<Developer, Problem> {
        let key = key(portal, &format!("developers/{id}"))?;
        let changed = self.store.update_with(&key, now, |known: Option<Developer>| {
            let mut developer = known.ok_or_else(|| Problem::not_found("this developer"))?;
            let more = change(&mut developer)?;
            Ok::<_, Problem>((developer, more))
        });
        changed.await
    }

    /// Removes a developer with all sessions and personal tokens.
    pub async fn remove(&self, portal: &str, developer: &Developer, now: SystemTime) -> Result<(), Problem> {
        self.end_sessions(portal, &developer.id, |_| true, now).await?;
        self.revoke_tokens(portal, &developer.id, |_| true, now).await?;
        self.remove_accounts(portal, &developer.id, |_| true, now).await?;
        let keys = [
            key(portal, &format!("mails/{}", hash(&developer.mail)))?,
            key(portal, &format!("developers/{}", developer.id))?,
            key(portal, &format!("read/{}", developer.id))?,
            key(portal, &format!("new-factors/{}", developer.id))?,
        ];
        self.store.remove(keys, now).await.map_err(failed)
    }

    /// Begins a session. Returns the value of the cookie.
    pub async fn begin(
        &self,
        portal: &str,
        (developer, asked): (&str, Option<u64>),
        (address, agent): (String, String),
        now: SystemTime,
    ) -> Result<String, Problem> {
        let token = Token::random().ok_or_else(|| Problem::unreadable("the system yields no random bits"))?;
        let session = Session {
            id: random_id()?,
            developer: developer.to_owned(),
            created: seconds(now),
            address,
            agent: agent.chars().take(160).collect(),
            // A clock that is ahead gives no more time.
            asked: asked.map(|it| it.min(seconds(now))),
        };
        let prefix = format!("portal/{portal}/sessions/{developer}/");
        let key = key(portal, &format!("sessions/{developer}/{}", hash(token.as_str())))?;
        let bound = DocumentLimit {
            prefix: &prefix,
            max: MAX_SESSIONS,
            when_full: OverflowPolicy::RemoveOldest,
        };
        let ends = Some(now + SESSION);
        self.store
            .create(&key, &session, (ends, now), bound)
            .await
            .map_err(failed)?;
        Ok(format!("{developer}.{}", token.as_str()))
    }

    /// The developer of a cookie.
    pub async fn of_cookie(
        &self,
        portal: &str,
        cookie: &str,
        now: SystemTime,
    ) -> Result<Option<Developer>, Problem> {
        let Some(session) = self.session(portal, cookie, now).await? else {
            return Ok(None);
        };
        let developer = self.developer(portal, &session.developer, now).await?;
        Ok(developer.filter(|it| it.state == DeveloperState::Active))
    }

    /// The session of a cookie.
    pub async fn session(
        &self,
        portal: &str,
        cookie: &str,
        now: SystemTime,
    ) -> Result<Option<Session>, Problem> {
        let Some(key) = session_key(portal, cookie) else {
            return Ok(None);
        };
        let session = self.store.read::<Session>(&key, now).await.map_err(failed)?;
        Ok(session.map(|it| it.value))
    }

    /// Ends the session of a cookie.
    pub async fn end(&self, portal: &str, cookie: &str, now: SystemTime) -> Result<(), Problem> {
        match session_key(portal, cookie) {
            Some(key) => self.store.remove([key], now).await.map_err(failed),
            None => Ok(()),
        }
    }

    /// The sessions of a developer, the latest last.
    pub async fn sessions(
        &self,
        portal: &str,
        developer: &str,
        now: SystemTime,
    ) -> Result<Vec<Session>, Problem> {
        let prefix = format!("portal/{portal}/sessions/{developer}/");
        let found = self.store.list::<Session>(&prefix, now).await.map_err(failed)?;
        let mut all: Vec<Session> = found.into_iter().map(|it| it.value).collect();
        all.sort_by_key(|it| it.created);
        Ok(all)
    }

    /// Ends sessions of a developer.
    pub async fn end_sessions(
        &self,
        portal: &str,
        developer: &str,
        is_meant: impl Fn(&Session) -> bool,
        now: SystemTime,
    ) -> Result<(), Problem> {
        let prefix = format!("portal/{portal}/sessions/{developer}/");
        let found = self.store.list::<Session>(&prefix, now).await.map_err(failed)?;
        let keys = found
            .into_iter()
            .filter(|it| is_meant(&it.value))
            .map(|it| it.key);
        self.store.remove(keys, now).await.map_err(failed)
    }
}

/// The key of the session of a cookie; `None`: the cookie has another form.
fn session_key(portal: &str, cookie: &str) -> Option<Key> {
    let (developer, token) = cookie.split_once('.')?;
    let is_id = developer.len() == 16 && developer.bytes().all(|it| it.is_ascii_hexdigit());
    let path = format!("sessions/{developer}/{}", hash(token));
    is_id.then(|| key(portal, &path).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_addresses_are_read() {
        for (text, expected) in [
            (" Ann@Example.com ", Some("ann@example.com")),
            ("ann", None),
            ("ann@example", None),
            ("a@b@c.test", None),
            ("ann@exa mple.com", None),
            ("ann\r\nBcc: x@example.com", None),
            ("<ann@example.com>", None),
        ] {
            assert_eq!(mail_of(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn cookies_of_others_are_none() {
        assert!(session_key("main", "0123456789abcdef.secret").is_some());
        for cookie in ["", "x.y", "../../../../x.y", "0123456789abcdef", "weir-token"] {
            assert!(session_key("main", cookie).is_none(), "{cookie}");
        }
    }
}
