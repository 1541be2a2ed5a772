//! The people who own applications, and their addresses.
//!
//! **What it is not**: addresses that an application names itself are in its document.

use super::store::{Developer, DeveloperState};
use super::teams::{Team, TeamRole};
use crate::operational::{OperationalError, OperationalStore};
use serde::de::DeserializeOwned;
use std::time::SystemTime;
use weir_store::Key;

/// Developers and teams of some portals. Ids are random: an owner is in one portal.
pub struct Owners<'s> {
    store: &'s OperationalStore,
    portals: Vec<&'s str>,
}

impl<'s> Owners<'s> {
    /// Of these portals.
    pub fn new(store: &'s OperationalStore, portals: Vec<&'s str>) -> Self {
        Self { store, portals }
    }

    /// The addresses of those who may change applications of an owner. Who may not sign in gets no mail.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn addresses(&self, owner: &str, now: SystemTime) -> Result<Vec<String>, OperationalError> {
        for portal in &self.portals {
            let ids = match owner.split_once('/') {
                Some(("developer", id)) => vec![id.to_owned()],
                Some(("team", id)) => match self.read::<Team>(portal, "teams", id, now).await? {
                    Some(team) => {
                        let may_change = team
                            .members
                            .into_iter()
                            .filter(|(_, role)| *role >= TeamRole::Member);
                        may_change.map(|(id, _)| id).collect()
                    }
                    None => continue,
                },
                _ => return Ok(Vec::new()),
            };
            let mut addresses = Vec::new();
            let mut is_here = false;
            for id in ids {
                if let Some(known) = self.read::<Developer>(portal, "developers", &id, now).await? {
                    is_here = true;
                    addresses.extend((known.state == DeveloperState::Active).then_some(known.mail));
                }
            }
            if is_here {
                return Ok(addresses);
            }
        }
        Ok(Vec::new())
    }

    async fn read<T: DeserializeOwned>(
        &self,
        portal: &str,
        kind: &str,
        id: &str,
        now: SystemTime,
    ) -> Result<Option<T>, OperationalError> {
        // An invalid name leads to nothing.
        let Ok(key) = Key::new(&format!("portal/{portal}/{kind}/{id}")) else {
            return Ok(None);
        };
        Ok(self.store.read::<T>(&key, now).await?.map(|it| it.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::password::Passwords;
    use crate::developers::DeveloperStore;

    #[tokio::test]
    async fn owners_have_addresses() {
        let store = OperationalStore::in_memory();
        let people = DeveloperStore::new(store.clone(), Passwords::default());
        let now = SystemTime::UNIX_EPOCH;
        for (id, state) in [
            ("ann", DeveloperState::Active),
            ("bob", DeveloperState::Active),
            ("eve", DeveloperState::Suspended),
            ("tim", DeveloperState::Active),
        ] {
            let developer = Developer {
                id: id.to_owned(),
                mail: format!("{id}@example.com"),
                name: id.to_owned(),
                password: None,
                state,
                groups: Default::default(),
                provided: Default::default(),
                second_factor: None,
                created: 0,
                decided: None,
            };
            people.put("other", &developer, now).await.expect("written");
        }
        let members = [
            ("ann", TeamRole::Owner),
            ("bob", TeamRole::Member),
            ("eve", TeamRole::Owner),
            ("tim", TeamRole::Viewer),
        ];
        let team = Team {
            id: "shop".to_owned(),
            name: "Shop".to_owned(),
            members: members.map(|(id, role)| (id.to_owned(), role)).into(),
            created: 0,
        };
        people.add_team("other", &team, now).await.expect("written");
        let owners = Owners::new(&store, vec!["main", "other"]);
        for (owner, expected) in [
            ("developer/ann", &["ann@example.com"][..]),
            ("developer/eve", &[]),
            ("developer/none", &[]),
            ("team/shop", &["ann@example.com", "bob@example.com"]),
            ("team/none", &[]),
            ("sales", &[]),
            ("", &[]),
            ("developer/../x", &[]),
        ] {
            let found = owners.addresses(owner, now).await.expect("read");
            assert_eq!(found, expected, "{owner}");
        }
        let elsewhere = Owners::new(&store, vec!["main"]);
        assert!(
            elsewhere
                .addresses("developer/ann", now)
                .await
                .expect("read")
                .is_empty()
        );
    }
}
