//! Users, as the store holds them under `weir/users/NAME`.

use super::action::Action;
use super::caller::Caller;
use super::openid::Providers;
use super::password::PasswordHash;
use super::role::Role;
use super::scope::{Right, Scope};
use super::session::{PersonalToken, PersonalTokens, Session, Sessions};
use super::token::TokenHash;
use crate::operational::{OperationalEntry, OperationalStore};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use weir_store::follow::Subscription;
use weir_store::{Key, Store, StoreError};

/// The prefix of the keys of users.
pub const PREFIX: &str = "weir/users/";
/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The name under which changes are recorded.
    pub name: String,
    /// The hash of the token; `None`: the user has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_hash: Option<TokenHash>,
    /// The hash of the password; `None`: the user cannot log in with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password_hash: Option<PasswordHash>,
    /// The user's rights, with their scopes.
    pub rights: Vec<Right>,
    /// Since when, in seconds since the Unix epoch.
    pub created: u64,
}

/// Whether rights allow an action in a scope. They add up: none takes away what another gives.
pub fn allow(rights: &[Right], action: Action, scope: &Scope) -> bool {
    rights
        .iter()
        .any(|right| right.role.allows(action) && right.scope.contains(scope))
}

impl User {
    /// Whether the user may do there what one of the basic roles may. What is not of one workspace is of
    /// [`EVERYWHERE`](super::EVERYWHERE).
    pub fn may(&self, role: Role, workspace: &str) -> bool {
        let scope = Scope::workspace(workspace);
        match action_of(role) {
            Some(action) => allow(&self.rights, action, &scope),
            None => false,
        }
    }
}

/// The action that distinguishes a basic role from the one below it.
pub(super) fn action_of(role: Role) -> Option<Action> {
    Some(match role {
        Role::Gateway => Action::ConfigurationFollow,
        Role::Read => Action::ConfigurationRead,
        Role::Write => Action::ConfigurationWrite,
        Role::Admin => Action::UsersManage,
        _ => return None,
    })
}

/// The key of a user.
///
/// # Errors
/// If the name is invalid.
pub fn key_of(name: &str) -> Result<Key, BadUserName> {
    let is_good = !name.contains('/') && name.len() <= MAX_NAME;
    let key = is_good.then(|| Key::new(&format!("{PREFIX}{name}")).ok());
    key.flatten().ok_or_else(|| BadUserName(name.to_owned()))
}

/// The longest name of a user, in bytes.
const MAX_NAME: usize = 128;

/// A text that no user can have as a name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "'{0}' is not a valid name of a user: expected 1 to {MAX_NAME} bytes without '/' and control characters"
)]
pub struct BadUserName(pub String);

/// All users with their sessions and personal tokens, kept up to date. Cheap to share.
#[derive(Debug, Clone, Default)]
pub struct Users {
    known: Arc<Mutex<CachedUsers>>,
    sessions: Sessions,
    tokens: PersonalTokens,
    providers: Providers,
}

#[derive(Debug, Default)]
struct CachedUsers {
    /// By key. A user that cannot be read is `None`: there are users, but that one has no rights.
    users: HashMap<Key, Option<Arc<User>>>,
    by_token: HashMap<TokenHash, Arc<User>>,
}

impl Users {
    /// Reads the users of a store, and their sessions and personal tokens of the operational one, and follows them.
    ///
    /// # Errors
    /// A store cannot be reached or read.
    pub async fn open(store: Arc<dyn Store>, operational: &OperationalStore) -> Result<Self, StoreError> {
        let providers = Providers::open(Arc::clone(&store)).await?;
        let (documents, _, following) = weir_store::follow::start(store, PREFIX).await?;
        let users = Self {
            providers,
            known: Arc::default(),
            sessions: Sessions::open(operational).await?,
            tokens: PersonalTokens::open(operational).await?,
        };
        for document in documents {
            users.apply(&document.key, Some(&document.value));
        }
        tokio::spawn(users.clone().follow(following));
        Ok(users)
    }

    async fn follow(self, mut following: Subscription) {
        loop {
            for (key, document) in following.next().await.documents {
                self.apply(&key, document.as_ref().map(|it| it.value.as_ref()));
            }
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, CachedUsers> {
        // Every change leaves it whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sessions.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The identity providers.
    pub fn providers(&self) -> &Providers {
        &self.providers
    }

    /// The personal tokens.
    pub fn personal_tokens(&self) -> &PersonalTokens {
        &self.tokens
    }

    /// Takes over one user; `None`: gone.
    pub fn apply(&self, key: &Key, value: Option<&[u8]>) {
        let mut known = self.known();
        match value {
            None => {
                known.users.remove(key);
            }
            Some(value) => {
                let user: Option<User> = serde_json::from_slice(value).ok();
                if user.is_none() {
                    tracing::error!(%key, "a stored user cannot be parsed; the user has no rights");
                }
                known.users.insert(key.clone(), user.map(Arc::new));
            }
        }
        let by_token = known.users.values().flatten();
        let by_token = by_token.filter_map(|user| Some((user.token_hash?, Arc::clone(user))));
        known.by_token = by_token.collect();
    }

    /// Whether there are none, neither here nor at an identity provider.
    pub fn is_empty(&self) -> bool {
        self.known().users.is_empty() && self.providers.is_empty()
    }

    /// Whose token this is.
    pub fn by_token(&self, token: &str) -> Option<Arc<User>> {
        self.by_token_hash(&TokenHash::of(token))
    }

    /// Whose token has this hash.
    pub fn by_token_hash(&self, hash: &TokenHash) -> Option<Arc<User>> {
        self.known().by_token.get(hash).cloned()
    }

    /// The caller with this token: a user, or a program of a user.
    pub(super) fn caller_of_token(&self, token: &str, now: SystemTime) -> Option<Caller> {
        if let Some(user) = self.by_token(token) {
            return Some(Caller::User(user));
        }
        let personal = self.tokens.of(token, now)?;
        Some(Caller::PersonalToken(
            self.by_personal_token(&personal)?,
            personal,
        ))
    }

    /// The caller in the session with this cookie.
    pub fn caller_of_cookie(&self, value: &str, now: SystemTime) -> Option<Caller> {
        let session = self.sessions.of(value, now)?;
        Some(Caller::Session(self.by_session(&session)?, session))
    }

    /// The user of a session. An identity provider may say what the user may do; else it is what the store says now.
    pub(super) fn by_session(&self, session: &OperationalEntry<Session>) -> Option<Arc<User>> {
        let Some(groups) = &session.value.groups else {
            return self.by_name_since(&session.value.user, session.value.created);
        };
        // What its groups may do is what is said of them now. They themselves are those of the login.
        let rights = self.providers.get(session.value.provider()?)?.rights_of(groups);
        Some(Arc::new(User {
            name: session.value.user.clone(),
            token_hash: None,
            password_hash: None,
            rights,
            created: session.value.created / 1_000,
        }))
    }

    /// The user of a personal token.
    pub(super) fn by_personal_token(&self, token: &OperationalEntry<PersonalToken>) -> Option<Arc<User>> {
        self.by_name_since(&token.value.user, token.value.created)
    }

    /// The user of a name, if there is one since then (in milliseconds): another user of the same name does not count.
    fn by_name_since(&self, name: &str, since: u64) -> Option<Arc<User>> {
        self.by_name(name).filter(|user| user.created <= since / 1_000)
    }

    /// The user of a name.
    pub fn by_name(&self, name: &str) -> Option<Arc<User>> {
        let key = key_of(name).ok()?;
        self.known().users.get(&key).cloned().flatten()
    }

    /// All of them, by name.
    pub fn list(&self) -> Vec<Arc<User>> {
        let mut users: Vec<Arc<User>> = self.known().users.values().flatten().cloned().collect();
        users.sort_by(|one, other| one.name.cmp(&other.name));
        users
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::EVERYWHERE;

    fn user(rights: &[(&str, Role)]) -> User {
        let right = |(workspace, role): &(&str, Role)| Right::in_workspace(workspace, *role);
        User {
            name: "alice".to_owned(),
            token_hash: Some(TokenHash::of("t")),
            password_hash: None,
            rights: rights.iter().map(right).collect(),
            created: 0,
        }
    }

    #[test]
    fn rights_hold_in_their_workspace() {
        use Role::{Admin, Gateway, Read, Write};
        for (rights, role, workspace, expected) in [
            (&[(EVERYWHERE, Admin)][..], Admin, "default", true),
            (&[(EVERYWHERE, Admin)], Admin, EVERYWHERE, true),
            (&[(EVERYWHERE, Admin)], Gateway, EVERYWHERE, true),
            (&[(EVERYWHERE, Write)], Read, "team", true),
            (&[(EVERYWHERE, Write)], Admin, "team", false),
            (&[(EVERYWHERE, Write)], Gateway, EVERYWHERE, false),
            (&[("team", Write)], Write, "team", true),
            (&[("team", Write)], Write, "default", false),
            (&[("team", Write)], Read, EVERYWHERE, false),
            (&[("team", Write), (EVERYWHERE, Read)], Read, "default", true),
            (&[(EVERYWHERE, Gateway)], Gateway, EVERYWHERE, true),
            (&[(EVERYWHERE, Gateway)], Read, "default", false),
            (&[], Read, "default", false),
        ] {
            assert_eq!(
                user(rights).may(role, workspace),
                expected,
                "{rights:?} {role:?} {workspace}"
            );
        }
    }

    #[test]
    fn users_are_known_by_their_tokens() {
        let users = Users::default();
        let key = key_of("alice").expect("a key");
        assert!(users.is_empty());
        let value = serde_json::to_vec(&user(&[])).expect("JSON");
        users.apply(&key, Some(&value));
        assert_eq!(
            users.by_token("t").map(|it| it.name.clone()).as_deref(),
            Some("alice")
        );
        assert!(users.by_token("u").is_none());
        users.apply(&key, Some(b"{"));
        assert!(users.by_token("t").is_none() && !users.is_empty());
        users.apply(&key, None);
        assert!(users.is_empty());
        assert!(key_of("a/b").is_err() && key_of("").is_err());
    }
}
