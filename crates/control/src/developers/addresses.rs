//! Which portals know a mail address: those at which a developer with it has signed up, was made, or is invited.
//!
//! **What it is not**: no call reads it. All that is kept of all portals is read to make one.

use super::store::hash;
use crate::operational::{OperationalEntry, OperationalError, OperationalStore};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

/// Portals by the addresses that they know.
#[derive(Debug, Default)]
pub struct AddressBook(BTreeMap<String, BTreeSet<String>>);

impl AddressBook {
    /// As the store has it.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn of(store: &OperationalStore, now: SystemTime) -> Result<Self, OperationalError> {
        let mut book = Self::default();
        let all: Vec<OperationalEntry<Value>> = store.list("portal/", now).await?;
        for entry in all {
            let mut parts = entry.key.as_str().splitn(4, '/').skip(1);
            let (Some(portal), Some(kind), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            match kind {
                "mails" => book.add(name.to_owned(), portal),
                "links" => {
                    // Links that are no invitations are for those who have signed up.
                    if let Some(mail) = entry.value["mail"].as_str() {
                        book.add(hash(mail), portal);
                    }
                }
                _ => {}
            }
        }
        Ok(book)
    }

    fn add(&mut self, mark: String, portal: &str) {
        self.0.entry(mark).or_default().insert(portal.to_owned());
    }

    /// The portals that know an address.
    pub fn portals(&self, mail: &str) -> Vec<String> {
        let known = self.0.get(&hash(&mail.to_lowercase()));
        known.into_iter().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::password::Passwords;
    use crate::developers::{Developer, DeveloperState, DeveloperStore, Purpose, TeamRole};

    #[tokio::test]
    async fn addresses_lead_to_their_portals() {
        let store = OperationalStore::in_memory();
        let people = DeveloperStore::new(store.clone(), Passwords::default());
        let now = SystemTime::UNIX_EPOCH;
        let developer = |mail: &str| Developer {
            id: hash(mail)[..16].to_owned(),
            mail: mail.to_owned(),
            name: "A".to_owned(),
            password: None,
            state: DeveloperState::Active,
            groups: BTreeSet::new(),
            provided: BTreeSet::new(),
            second_factor: None,
            created: 0,
            decided: None,
        };
        for (portal, mail) in [
            ("main", "ann@example.com"),
            ("other", "ann@example.com"),
            ("main", "bob@example.com"),
        ] {
            assert!(people.add(portal, &developer(mail), now).await.expect("written"));
        }
        let invitation = Purpose::Invitation {
            team: "t".to_owned(),
            role: TeamRole::Member,
            mail: "tim@example.com".to_owned(),
        };
        people.link("other", &invitation, now).await.expect("written");
        let book = AddressBook::of(&store, now).await.expect("read");
        for (mail, expected) in [
            ("ann@example.com", &["main", "other"][..]),
            ("Bob@Example.com", &["main"]),
            ("tim@example.com", &["other"]),
            ("eve@example.com", &[]),
        ] {
            assert_eq!(book.portals(mail), expected, "{mail}");
        }
    }
}
