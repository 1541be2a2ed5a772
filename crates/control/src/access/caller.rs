//! The caller of an Admin API, and its rights there: anonymous, by a key, as a user, in a session, or as a
//! program of a user.

use super::action::Action;
use super::role::Role;
use super::scope::{EVERYWHERE, Right, Scope};
use super::session::{PersonalToken, Session};
use super::users::{User, Users, action_of, allow};
use crate::operational::OperationalEntry;
use std::sync::Arc;
use std::time::SystemTime;
use weir_dialect::Rights;
use weir_store::Author;

/// The caller.
#[derive(Debug, Clone)]
pub enum Caller {
    /// A caller on this machine, while there are no users.
    LocalAnonymous,
    /// A caller with one of the dialect's own keys.
    Key(Role),
    /// A user, by the user's token.
    User(Arc<User>),
    /// A user, by the cookie of a session.
    Session(Arc<User>, Arc<OperationalEntry<Session>>),
    /// A user's program, by a personal token.
    PersonalToken(Arc<User>, Arc<OperationalEntry<PersonalToken>>),
}

impl Caller {
    /// Whether the caller may do there what the role may.
    pub fn may(&self, role: Role, workspace: &str) -> bool {
        match self {
            Self::LocalAnonymous => true,
            _ => action_of(role).is_some_and(|action| self.can(action, &Scope::workspace(workspace))),
        }
    }

    /// Whether the caller may do this there.
    pub fn can(&self, action: Action, scope: &Scope) -> bool {
        match self {
            Self::LocalAnonymous => true,
            Self::Key(given) => given.allows(action),
            Self::User(user) | Self::Session(user, _) => {
                action == Action::Own || allow(&user.rights, action, scope)
            }
            Self::PersonalToken(user, token) => {
                let is_within = |rights: &Vec<Right>| allow(rights, action, scope);
                let is_in_token = token.value.rights.as_ref().is_none_or(is_within);
                action == Action::Own || (is_in_token && allow(&user.rights, action, scope))
            }
        }
    }

    /// Whether only the rights of a personal token keep its user from doing this in one of these parts.
    pub fn is_narrowed(&self, action: Action, scopes: &[Scope]) -> bool {
        match self {
            Self::PersonalToken(user, _) => scopes
                .iter()
                .any(|scope| allow(&user.rights, action, scope) && !self.can(action, scope)),
            _ => false,
        }
    }

    /// The parts in which the caller may do this; everything is a part that contains all others.
    pub fn scopes(&self, action: Action) -> Vec<Scope> {
        let of = |rights: &[Right]| -> Vec<Scope> {
            let rights = rights.iter().filter(|right| right.role.allows(action));
            rights.map(|right| right.scope.clone()).collect()
        };
        match self {
            Self::LocalAnonymous => vec![Scope::Everything],
            Self::Key(given) => given
                .allows(action)
                .then_some(Scope::Everything)
                .into_iter()
                .collect(),
            Self::User(user) | Self::Session(user, _) => of(&user.rights),
            Self::PersonalToken(user, token) => match &token.value.rights {
                None => of(&user.rights),
                Some(rights) => in_both(&of(&user.rights), &of(rights)),
            },
        }
    }

    /// The user; `None`: the caller is no user.
    pub fn user(&self) -> Option<&Arc<User>> {
        match self {
            Self::LocalAnonymous | Self::Key(_) => None,
            Self::User(user) | Self::Session(user, _) | Self::PersonalToken(user, _) => Some(user),
        }
    }

    /// The rights that were given to the caller; `None`: it has all, since there are no users.
    pub fn rights(&self) -> Option<Vec<Right>> {
        match self {
            Self::LocalAnonymous => None,
            Self::Key(role) => Some(vec![Right::in_workspace(EVERYWHERE, *role)]),
            Self::User(user) | Self::Session(user, _) => Some(user.rights.clone()),
            Self::PersonalToken(user, token) => {
                Some(token.value.rights.clone().unwrap_or_else(|| user.rights.clone()))
            }
        }
    }

    /// The same caller as the users are by now; `None`: it would not be let in any more.
    pub fn reauthorize(&self, users: &Users) -> Option<Self> {
        let now = SystemTime::now();
        match self {
            Self::LocalAnonymous => users.is_empty().then_some(Self::LocalAnonymous),
            Self::Key(role) => Some(Self::Key(*role)),
            Self::User(user) => users.by_token_hash(user.token_hash.as_ref()?).map(Self::User),
            Self::Session(_, session) => {
                let session = users.sessions().reauthorize(session, now)?;
                Some(Self::Session(users.by_session(&session)?, session))
            }
            Self::PersonalToken(_, token) => {
                let token = users.personal_tokens().reauthorize(token, now)?;
                Some(Self::PersonalToken(users.by_personal_token(&token)?, token))
            }
        }
    }

    /// The rights that Admin APIs see.
    pub(super) fn rights_in_workspaces(&self) -> Rights {
        if self.may(Role::Write, EVERYWHERE) {
            return Rights::default();
        }
        let caller = self.clone();
        Rights::new(move |workspace| caller.may(Role::Write, workspace))
    }

    /// The name for the record.
    pub fn name(&self) -> String {
        match self {
            Self::LocalAnonymous => Author::anonymous().0.to_string(),
            Self::Key(Role::Read) => "viewer".to_owned(),
            Self::Key(_) => "admin".to_owned(),
            Self::User(user) | Self::Session(user, _) | Self::PersonalToken(user, _) => user.name.clone(),
        }
    }
}

/// The parts that lie in one of the first and in one of the second.
fn in_both(first: &[Scope], second: &[Scope]) -> Vec<Scope> {
    let pairs = first
        .iter()
        .flat_map(|one| second.iter().map(move |other| (one, other)));
    let both = pairs.filter_map(|(one, other)| match (one.contains(other), other.contains(one)) {
        (true, _) => Some(other.clone()),
        (_, true) => Some(one.clone()),
        _ => None,
    });
    both.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_store::{Key, Revision};

    #[test]
    fn a_personal_token_may_what_both_it_and_its_user_may() {
        let right = |role, scope: &str| Right {
            role,
            scope: Scope::parse(scope).expect("a scope"),
        };
        let caller = |user: &[Right], token: Option<&[Right]>| {
            let user = User {
                name: "ada".to_owned(),
                token_hash: None,
                password_hash: None,
                rights: user.to_vec(),
                created: 0,
            };
            let token = OperationalEntry {
                key: Key::new("tokens/ada/x").expect("a key"),
                value: PersonalToken {
                    id: "x".to_owned(),
                    user: "ada".to_owned(),
                    name: String::new(),
                    rights: token.map(<[Right]>::to_vec),
                    created: 0,
                    last_used: None,
                },
                ends: None,
                created: Revision::default(),
                modified: Revision::default(),
            };
            Caller::PersonalToken(Arc::new(user), Arc::new(token))
        };
        let (admin, reader) = (right(Role::Admin, "everything"), right(Role::Read, "workspace:a"));
        let operator = right(Role::Operator, "environment:test");
        let (read, write) = (Action::ConfigurationRead, Action::ConfigurationWrite);
        for (user, token, action, scope, expected) in [
            (&admin, None, write, "everything", true),
            (&admin, Some(&reader), read, "workspace:a", true),
            (&admin, Some(&reader), read, "workspace:b", false),
            (&admin, Some(&reader), write, "workspace:a", false),
            (&reader, Some(&admin), read, "workspace:a", true),
            (&reader, Some(&admin), write, "workspace:a", false),
            (&reader, Some(&operator), read, "workspace:a", false),
            (&reader, None, Action::Own, "everything", true),
        ] {
            let token = token.map(std::slice::from_ref);
            let caller = caller(std::slice::from_ref(user), token);
            let scope = Scope::parse(scope).expect("a scope");
            assert_eq!(
                caller.can(action, &scope),
                expected,
                "{user:?} {token:?} {action:?} {scope}"
            );
            let may_without_token =
                matches!(&caller, Caller::PersonalToken(user, _) if allow(&user.rights, action, &scope));
            assert_eq!(
                caller.is_narrowed(action, std::slice::from_ref(&scope)),
                may_without_token && !expected,
                "{token:?} {action:?}"
            );
            let is_in_a_scope = caller.scopes(action).iter().any(|it| it.contains(&scope));
            assert_eq!(
                is_in_a_scope || action == Action::Own,
                expected,
                "{user:?} {token:?}"
            );
        }
    }
}
