//! Sessions of people in browsers, and their personal tokens. Both are in the operational store, under
//! `sessions/USER/HASH` and `tokens/USER/HASH`: of the secret itself only a hash is kept.
//!
//! A session ends an hour after it was last used, twelve hours after it was begun, when its user logs out or is removed,
//! and when the user gets another password. It has then ended on every control plane, since each follows the store.

use super::scope::Right;
use super::token::{Token, TokenHash};
use crate::operational::{
    Cache, DocumentLimit, OperationalEntry, OperationalError, OperationalStore, OverflowPolicy,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use weir_model::unix_time::{self, millis};
use weir_store::{Key, Revision, StoreError};

/// How long a session lasts, whatever happens.
pub const LONGEST: Duration = Duration::from_secs(12 * 3600);
/// How long a session lasts without a call.
pub const IDLE: Duration = Duration::from_secs(3600);
/// The use of a session is written down at most so often, and that of a token.
const SESSION_TOUCH: Duration = Duration::from_secs(60);
const TOKEN_TOUCH: Duration = Duration::from_secs(3600);
/// Sessions of a user, at most; the oldest ends with one more.
const MAX_SESSIONS: usize = 20;
/// Personal tokens of a user, at most.
pub const MAX_TOKENS: usize = 50;
/// The longest life of a personal token, in days.
pub const MAX_TOKEN_DAYS: u16 = 366;
/// The longest text that a client chose, in characters.
const MAX_TEXT: usize = 160;
const SESSIONS: &str = "sessions/";
const TOKENS: &str = "tokens/";
/// The characters that stay as they are in a segment of a key.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'@');

/// The prefix of the method of a session whose user an identity provider keeps.
pub const OPENID: &str = "openid:";

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The name for its user. It is no secret.
    pub id: String,
    /// Its owner.
    pub user: String,
    /// How the user has logged in: `password`, `token`, or `openid:PROVIDER`.
    pub method: String,
    /// The groups of the user, if an identity provider keeps the user; `None`: the user is kept here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<Vec<String>>,
    /// When it was begun, in milliseconds since the Unix epoch.
    pub created: u64,
    /// When it was last used, to the minute.
    pub last_used: u64,
    /// From which address it was begun.
    pub address: String,
    /// With which program.
    pub agent: String,
}

/// A personal token: for programs that act as their user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonalToken {
    /// The name for its user. It is no secret.
    pub id: String,
    /// Its owner.
    pub user: String,
    /// Its purpose.
    pub name: String,
    /// The limit of its rights; `None`: all that its user may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<Vec<Right>>,
    /// When it was made, in milliseconds since the Unix epoch.
    pub created: u64,
    /// When it was last used, to the hour; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used: Option<u64>,
}

impl Session {
    /// The identity provider that keeps its user.
    pub fn provider(&self) -> Option<&str> {
        self.method.strip_prefix(OPENID)
    }

    /// Whether its use is to be written down.
    pub(super) fn is_due(&self, now: SystemTime) -> bool {
        is_due(self.last_used, SESSION_TOUCH, now).is_some()
    }
}

impl PersonalToken {
    /// Whether its use is to be written down.
    pub(super) fn is_due(&self, now: SystemTime) -> bool {
        is_due(self.last_used.unwrap_or_default(), TOKEN_TOUCH, now).is_some()
    }
}

/// The user who logs in, and the source of the call.
#[derive(Debug, Clone)]
pub struct Login {
    /// The user.
    pub user: String,
    /// How.
    pub method: String,
    /// In which groups, if an identity provider keeps the user.
    pub groups: Option<Vec<String>>,
    /// From which address.
    pub address: String,
    /// With which program.
    pub agent: String,
}

/// The common part of a session and a personal token: what `IssuedStore` needs of them.
pub trait IssuedRecord: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// The name for its user.
    fn id(&self) -> &str;
    /// When it was made, in milliseconds.
    fn created(&self) -> u64;
    /// The same, used now; and its end. `None`: it was used a moment ago.
    fn used(&self, ends: Option<SystemTime>, now: SystemTime) -> Option<(Self, Option<SystemTime>)>;
}

impl IssuedRecord for Session {
    fn id(&self) -> &str {
        &self.id
    }

    fn created(&self) -> u64 {
        self.created
    }

    fn used(&self, _: Option<SystemTime>, now: SystemTime) -> Option<(Self, Option<SystemTime>)> {
        let last_used = is_due(self.last_used, SESSION_TOUCH, now)?;
        let used = Self {
            last_used,
            ..self.clone()
        };
        Some((used, Some(end(self.created, now))))
    }
}

impl IssuedRecord for PersonalToken {
    fn id(&self) -> &str {
        &self.id
    }

    fn created(&self) -> u64 {
        self.created
    }

    fn used(&self, ends: Option<SystemTime>, now: SystemTime) -> Option<(Self, Option<SystemTime>)> {
        let last_used = is_due(self.last_used.unwrap_or_default(), TOKEN_TOUCH, now)?;
        let used = Self {
            last_used: Some(last_used),
            ..self.clone()
        };
        Some((used, ends))
    }
}

/// Now, in milliseconds, if the last time is that long ago.
fn is_due(last: u64, interval: Duration, now: SystemTime) -> Option<u64> {
    let now = millis(now);
    (now.saturating_sub(last) >= interval.as_millis() as u64).then_some(now)
}

/// When a session ends that was begun at one time and used at another.
fn end(created: u64, used: SystemTime) -> SystemTime {
    (unix_time::from_millis(created) + LONGEST).min(used + IDLE)
}

/// A text that a client chose, not too long.
fn short(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

/// Records that were issued to users and have an end, by the hashes of their secrets. Cheap to share.
#[derive(Debug)]
pub struct IssuedStore<T> {
    store: OperationalStore,
    known: Cache<T>,
    prefix: &'static str,
}

impl<T> Clone for IssuedStore<T> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            known: self.known.clone(),
            prefix: self.prefix,
        }
    }
}

/// The sessions.
pub type Sessions = IssuedStore<Session>;
/// The personal tokens.
pub type PersonalTokens = IssuedStore<PersonalToken>;

impl<T: IssuedRecord> IssuedStore<T> {
    async fn follow(store: &OperationalStore, prefix: &'static str) -> Result<Self, StoreError> {
        Ok(Self {
            store: store.clone(),
            known: Cache::open(store, prefix).await?,
            prefix,
        })
    }

    /// The prefix of the keys of a user's records.
    fn prefix_of(&self, user: &str) -> String {
        format!("{}{}/", self.prefix, utf8_percent_encode(user, SEGMENT))
    }

    fn key(&self, user: &str, hash: TokenHash) -> Result<Key, OperationalError> {
        let key = Key::new(&format!("{}{hash}", self.prefix_of(user)));
        key.map_err(|error| OperationalError::Store(StoreError::Failed(error.to_string())))
    }

    async fn begin(
        &self,
        user: &str,
        (value, ends): (T, SystemTime),
        (max, when_full): (usize, OverflowPolicy),
        now: SystemTime,
    ) -> Result<(Token, Arc<OperationalEntry<T>>), OperationalError> {
        let token = Token::random().ok_or_else(no_random_bits)?;
        let key = self.key(user, TokenHash::of(token.as_str()))?;
        let bound = DocumentLimit {
            prefix: &self.prefix_of(user),
            max,
            when_full,
        };
        self.store.create(&key, &value, (Some(ends), now), bound).await?;
        let entry = Arc::new(OperationalEntry {
            key,
            value,
            ends: Some(ends),
            created: Revision::default(),
            modified: Revision::default(),
        });
        self.known.remember(Arc::clone(&entry));
        Ok((token, entry))
    }

    /// The one of this secret, if it is there now.
    pub(super) fn of(&self, secret: &str, now: SystemTime) -> Option<Arc<OperationalEntry<T>>> {
        self.known.get(&TokenHash::of(secret).to_string(), now)
    }

    /// The same as it is by now.
    pub(super) fn reauthorize(
        &self,
        entry: &OperationalEntry<T>,
        now: SystemTime,
    ) -> Option<Arc<OperationalEntry<T>>> {
        let (_, hash) = entry.key.as_str().rsplit_once('/')?;
        self.known.get(hash, now).filter(|it| it.key == entry.key)
    }

    /// Those of a user, the oldest first.
    pub fn list(&self, user: &str, now: SystemTime) -> Vec<Arc<OperationalEntry<T>>> {
        let mut all = self.known.below(&self.prefix_of(user), now);
        all.sort_by_key(|it| it.value.created());
        all
    }

    /// Writes down that it was used, if that was not done a moment ago.
    pub(super) async fn touch(&self, entry: &OperationalEntry<T>, now: SystemTime) {
        if entry.value.used(entry.ends, now).is_none() {
            return;
        }
        // One that has ended meanwhile stays so.
        let touched = self
            .store
            .update(&entry.key, now, |known: Option<&OperationalEntry<T>>| {
                known.and_then(|it| it.value.used(it.ends, now))
            });
        if let Err(error) = touched.await {
            tracing::debug!(%error, key = %entry.key, "the last use of a session or token cannot be stored");
        }
    }

    /// Ends some of a user's.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn end(
        &self,
        user: &str,
        is_meant: impl Fn(&OperationalEntry<T>) -> bool,
        now: SystemTime,
    ) -> Result<usize, OperationalError> {
        let all = self.known.below(&self.prefix_of(user), now);
        let keys: Vec<Key> = all
            .iter()
            .filter(|it| is_meant(it))
            .map(|it| it.key.clone())
            .collect();
        self.store.remove(keys.iter().cloned(), now).await?;
        keys.iter().for_each(|key| self.known.forget(key));
        Ok(keys.len())
    }

    /// Ends the one with an id; `false`: no session has it.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn end_one(&self, user: &str, id: &str, now: SystemTime) -> Result<bool, OperationalError> {
        Ok(self.end(user, |it| it.value.id() == id, now).await? > 0)
    }
}

fn no_random_bits() -> OperationalError {
    OperationalError::Store(StoreError::Failed("no random bits".to_owned()))
}

/// A random name for something that has a secret.
fn random_id() -> Result<String, OperationalError> {
    let random = Token::random().ok_or_else(no_random_bits)?;
    Ok(TokenHash::of(random.as_str())
        .to_string()
        .split_at(16)
        .0
        .to_owned())
}

impl Sessions {
    /// Reads the sessions of a store and follows them.
    ///
    /// # Errors
    /// The store cannot be reached or read.
    pub async fn open(store: &OperationalStore) -> Result<Self, StoreError> {
        Self::follow(store, SESSIONS).await
    }

    /// Begins a session. The token is what its browser shows from then on.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn log_in(
        &self,
        login: Login,
        now: SystemTime,
    ) -> Result<(Token, Arc<OperationalEntry<Session>>), OperationalError> {
        let session = Session {
            id: random_id()?,
            method: login.method,
            groups: login.groups,
            created: millis(now),
            last_used: millis(now),
            address: login.address,
            agent: short(&login.agent),
            user: login.user.clone(),
        };
        let ends = end(session.created, now);
        let bound = (MAX_SESSIONS, OverflowPolicy::RemoveOldest);
        self.begin(&login.user, (session, ends), bound, now).await
    }
}

impl PersonalTokens {
    /// Reads the personal tokens of a store and follows them.
    ///
    /// # Errors
    /// The store cannot be reached or read.
    pub async fn open(store: &OperationalStore) -> Result<Self, StoreError> {
        Self::follow(store, TOKENS).await
    }

    /// Makes one for so many days.
    ///
    /// # Errors
    /// There are too many, or the store cannot be written.
    pub async fn make(
        &self,
        user: &str,
        (name, rights): (&str, Option<Vec<Right>>),
        days: u16,
        now: SystemTime,
    ) -> Result<(Token, Arc<OperationalEntry<PersonalToken>>), OperationalError> {
        let token = PersonalToken {
            id: random_id()?,
            user: user.to_owned(),
            name: short(name),
            rights,
            created: millis(now),
            last_used: None,
        };
        let ends = now + Duration::from_secs(86_400 * u64::from(days));
        self.begin(user, (token, ends), (MAX_TOKENS, OverflowPolicy::Refuse), now)
            .await
    }
}

/// Without a store; nothing outlives the process.
impl Default for Sessions {
    fn default() -> Self {
        Self {
            store: OperationalStore::in_memory(),
            known: Cache::default(),
            prefix: SESSIONS,
        }
    }
}

/// The same.
impl Default for PersonalTokens {
    fn default() -> Self {
        Self {
            store: OperationalStore::in_memory(),
            known: Cache::default(),
            prefix: TOKENS,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds)
    }

    fn login(user: &str) -> Login {
        Login {
            user: user.to_owned(),
            method: "password".to_owned(),
            groups: None,
            address: "192.0.2.1".to_owned(),
            agent: "a".repeat(1000),
        }
    }

    #[tokio::test]
    async fn a_session_ends_when_it_is_idle_or_old() {
        let sessions = Sessions::default();
        let (token, begun) = sessions.log_in(login("a/b"), at(0)).await.expect("begun");
        assert_eq!(begun.value.agent.len(), MAX_TEXT);
        assert!(begun.key.as_str().starts_with("sessions/a%2Fb/"), "{}", begun.key);
        assert!(
            !begun.key.as_str().contains(token.as_str()),
            "only a hash is kept"
        );
        let mut now = 0;
        let is_there = |now| sessions.of(token.as_str(), at(now)).is_some();
        assert!(is_there(3599) && !is_there(3600));
        // Used every 50 minutes, it lasts for twelve hours.
        for _ in 0..20 {
            let Some(entry) = sessions.of(token.as_str(), at(now)) else {
                break;
            };
            sessions.touch(&entry, at(now)).await;
            // What follows the store does so a moment later.
            let written = sessions
                .store
                .read::<Session>(&entry.key, at(now))
                .await
                .expect("read");
            sessions.known.remember(Arc::new(written.expect("there")));
            now += 3000;
        }
        assert_eq!(now, 45_000, "the last use was at 42,000 seconds");
        assert!(is_there(43_199) && !is_there(43_200));
    }

    #[tokio::test]
    async fn what_has_ended_is_not_brought_back_by_its_use() {
        let sessions = Sessions::default();
        let (token, entry) = sessions.log_in(login("ada"), at(0)).await.expect("begun");
        assert!(
            sessions
                .end_one("ada", &entry.value.id, at(1))
                .await
                .expect("ended")
        );
        sessions.touch(&entry, at(100)).await;
        assert!(sessions.of(token.as_str(), at(100)).is_none());
        let stored = sessions.store.list::<Session>("", at(100)).await.expect("read");
        assert_eq!(stored, []);
        assert!(
            !sessions
                .end_one("ada", &entry.value.id, at(1))
                .await
                .expect("nothing")
        );
    }

    #[tokio::test]
    async fn users_have_a_bounded_number_and_see_only_their_own() {
        let sessions = Sessions::default();
        let (first, _) = sessions.log_in(login("ada"), at(0)).await.expect("begun");
        sessions.log_in(login("ad"), at(0)).await.expect("begun");
        for number in 1..=MAX_SESSIONS as u64 {
            sessions.log_in(login("ada"), at(number)).await.expect("begun");
        }
        let stored = sessions
            .store
            .list::<Session>("sessions/ada/", at(50))
            .await
            .expect("read");
        assert_eq!(stored.len(), MAX_SESSIONS);
        let hash = TokenHash::of(first.as_str()).to_string();
        assert!(
            stored.iter().all(|it| !it.key.as_str().ends_with(&hash)),
            "the oldest has ended"
        );
        assert_eq!(sessions.list("ad", at(50)).len(), 1);
        let tokens = PersonalTokens::default();
        for _ in 0..MAX_TOKENS {
            tokens.make("ada", ("ci", None), 1, at(0)).await.expect("made");
        }
        let refused = tokens.make("ada", ("ci", None), 1, at(0)).await;
        assert!(matches!(refused, Err(OperationalError::Full(MAX_TOKENS))));
        tokens
            .make("ada", ("ci", None), 1, at(86_400))
            .await
            .expect("the others have ended");
    }

    #[tokio::test]
    async fn the_use_of_a_token_is_written_down_once_an_hour() {
        let tokens = PersonalTokens::default();
        let (token, made) = tokens.make("ada", ("ci", None), 30, at(0)).await.expect("made");
        for (now, expected) in [(10, 10), (100, 10), (3_609, 10), (3_610, 3_610)] {
            let entry = tokens.of(token.as_str(), at(now)).expect("there");
            tokens.touch(&entry, at(now)).await;
            let written = tokens
                .store
                .read::<PersonalToken>(&made.key, at(now))
                .await
                .expect("read");
            let written = written.expect("there");
            assert_eq!(written.value.last_used, Some(millis(at(expected))));
            assert_eq!(written.ends, made.ends);
            tokens.known.remember(Arc::new(written));
        }
    }
}
