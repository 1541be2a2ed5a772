//! Teams: developers who own applications together.

use super::store::{Developer, DeveloperState, DeveloperStore, failed, hash, key};
use crate::api::Problem;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;
use weir_apis::entities::{RoleInTeam, SignInProvider};
use weir_model::unix_time::seconds;

/// Members of a team.
const MAX_MEMBERS: usize = 200;

/// The role of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TeamRole {
    /// Sees its applications.
    Viewer,
    /// Changes its applications, too.
    Member,
    /// Invites and removes, too.
    Owner,
}

/// A team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Team {
    /// A random name.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The members by their ids.
    pub members: BTreeMap<String, TeamRole>,
    /// Seconds since 1970.
    pub created: u64,
}

/// A team and the role of a member in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// The team.
    pub team: Team,
    /// The role.
    pub role: TeamRole,
}

impl Team {
    /// Whether another member than this one is an owner.
    pub fn has_other_owner(&self, member: &str) -> bool {
        let mut members = self.members.iter();
        members.any(|(id, role)| id != member && *role == TeamRole::Owner)
    }
}

impl From<RoleInTeam> for TeamRole {
    fn from(role: RoleInTeam) -> Self {
        match role {
            RoleInTeam::Viewer => Self::Viewer,
            RoleInTeam::Member => Self::Member,
            RoleInTeam::Owner => Self::Owner,
        }
    }
}

/// The team that an identity provider's groups make: the same for all who belong to it.
fn provided_id(provider: &str, team: &str) -> String {
    let whole = hash(&format!("{provider}\n{team}"));
    whole.chars().take(16).collect()
}

impl DeveloperStore {
    /// Puts a developer into the teams that a provider's groups give, and takes the developer out of its others.
    pub async fn provide_teams(
        &self,
        portal: &str,
        provider: &SignInProvider,
        (developer, groups): (&str, &BTreeSet<String>),
        now: SystemTime,
    ) -> Result<(), Problem> {
        let mut wanted: BTreeMap<&str, Option<TeamRole>> = BTreeMap::new();
        for it in &provider.teams {
            let role = groups.contains(&it.group).then(|| TeamRole::from(it.role));
            let known = wanted.entry(it.team.trim()).or_default();
            *known = (*known).max(role);
        }
        for (name, role) in wanted {
            let key = key(portal, &format!("teams/{}", provided_id(&provider.name, name)))?;
            let changed = self.store.update::<Team>(&key, now, |known| {
                let known = known.map(|it| &it.value);
                let is_as_wanted = known.and_then(|it| it.members.get(developer)).copied() == role;
                let mut team = known.cloned().unwrap_or_else(|| Team {
                    id: provided_id(&provider.name, name),
                    name: name.to_owned(),
                    members: BTreeMap::new(),
                    created: seconds(now),
                });
                match role {
                    Some(role) => team.members.insert(developer.to_owned(), role),
                    None => team.members.remove(developer),
                };
                (!is_as_wanted).then_some((team, None))
            });
            changed.await.map_err(failed)?;
        }
        Ok(())
    }

    /// The teams of a developer.
    pub async fn memberships(
        &self,
        portal: &str,
        developer: &str,
        now: SystemTime,
    ) -> Result<Vec<Membership>, Problem> {
        let prefix = format!("portal/{portal}/teams/");
        let all = self.store.list::<Team>(&prefix, now).await.map_err(failed)?;
        let of = |team: Team| {
            let role = *team.members.get(developer)?;
            Some(Membership { team, role })
        };
        let mut found: Vec<Membership> = all.into_iter().filter_map(|it| of(it.value)).collect();
        found.sort_by_cached_key(|it| it.team.name.to_lowercase());
        Ok(found)
    }

    /// All teams of a portal.
    pub async fn teams(&self, portal: &str, now: SystemTime) -> Result<Vec<Team>, Problem> {
        let prefix = format!("portal/{portal}/teams/");
        let all = self.store.list::<Team>(&prefix, now).await.map_err(failed)?;
        Ok(all.into_iter().map(|it| it.value).collect())
    }

    /// Removes a developer, who leaves all teams before. `check` is asked about the developer as it is when the removal
    /// begins, in the step that suspends the account: what others change meanwhile does not go unseen.
    ///
    /// # Errors
    /// A team with further members would have no owner, or `check` refuses.
    pub async fn remove_from_all(
        &self,
        portal: &str,
        developer: &Developer,
        check: impl Fn(&Developer) -> Result<(), Problem>,
        now: SystemTime,
    ) -> Result<(), Problem> {
        let memberships = self.memberships(portal, &developer.id, now).await?;
        let last = memberships.iter().find(|it| {
            let is_owner = it.role == TeamRole::Owner && it.team.members.len() > 1;
            is_owner && !it.team.has_other_owner(&developer.id)
        });
        if let Some(last) = last {
            let detail = format!(
                "{} is the only owner of the team '{}': make another member an owner first",
                developer.name, last.team.name
            );
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        let suspend = |it: &mut Developer| {
            check(it)?;
            it.state = DeveloperState::Suspended;
            Ok(Vec::new())
        };
        // Its mail may have changed since it was read.
        let developer = &self.change(portal, &developer.id, now, suspend).await?;
        for membership in memberships {
            let leave = |team: &mut Team| team.members.remove(&developer.id).is_some();
            self.change_team(portal, &membership.team.id, now, leave).await?;
        }
        self.remove(portal, developer, now).await
    }

    /// A team.
    pub async fn team(&self, portal: &str, id: &str, now: SystemTime) -> Result<Option<Team>, Problem> {
        let key = key(portal, &format!("teams/{id}"))?;
        let found = self.store.read::<Team>(&key, now).await.map_err(failed)?;
        Ok(found.map(|it| it.value))
    }

    /// Writes a new team.
    pub async fn add_team(&self, portal: &str, team: &Team, now: SystemTime) -> Result<(), Problem> {
        let key = key(portal, &format!("teams/{}", team.id))?;
        self.store.put(&key, team, (None, now)).await.map_err(failed)
    }

    /// Changes the members of a team; `None` from `change`: it stays as it is. A team without members goes.
    pub async fn change_team(
        &self,
        portal: &str,
        id: &str,
        now: SystemTime,
        change: impl Fn(&mut Team) -> bool,
    ) -> Result<Option<Team>, Problem> {
        let key = key(portal, &format!("teams/{id}"))?;
        let changed = self.store.update::<Team>(&key, now, |known| {
            let mut team = known?.value.clone();
            let is_changed = change(&mut team) && team.members.len() <= MAX_MEMBERS;
            is_changed.then_some((team, None))
        });
        changed.await.map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::password::Passwords;
    use crate::operational::OperationalStore;
    use std::time::{Duration, UNIX_EPOCH};

    const ANN: &str = "0123456789abcdef";

    /// Somebody approves Ann between the moment in which she is read and the one in which she goes.
    #[tokio::test]
    async fn a_developer_who_was_changed_meanwhile_stays_with_all_teams() {
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let people = DeveloperStore::new(OperationalStore::in_memory(), Passwords::default());
        let ann = serde_json::json!({"id": ANN, "mail": "a@b.test", "name": "Ann", "state": "confirmed", "created": 1});
        let read: Developer = serde_json::from_value(ann).expect("a developer");
        people.put("main", &read, now).await.expect("written");
        let team = Team {
            id: "t".to_owned(),
            name: "Team".to_owned(),
            members: [(ANN.to_owned(), TeamRole::Owner)].into(),
            created: 1,
        };
        people.add_team("main", &team, now).await.expect("written");
        let approve = |it: &mut Developer| {
            it.state = DeveloperState::Active;
            Ok(Vec::new())
        };
        let approved = people.change("main", ANN, now, approve).await.expect("written");
        for (expected, is_gone) in [(&read, false), (&approved, true)] {
            let check = |it: &Developer| match it == expected {
                true => Ok(()),
                false => Err(Problem::bad("changed")),
            };
            let removed = people.remove_from_all("main", &read, check, now).await;
            assert_eq!(removed.is_ok(), is_gone);
            let left = people.developer("main", ANN, now).await.expect("read");
            let teams = people.memberships("main", ANN, now).await.expect("read");
            let known = (!is_gone).then_some(&approved);
            assert_eq!((left.as_ref(), teams.len()), (known, usize::from(!is_gone)));
        }
    }

    /// Ann has another address between the moment in which she is read and the one in which she goes.
    #[tokio::test]
    async fn the_new_address_of_a_developer_who_goes_is_free() {
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let people = DeveloperStore::new(OperationalStore::in_memory(), Passwords::default());
        let ann = |mail: &str| -> Developer {
            let ann =
                serde_json::json!({"id": ANN, "mail": mail, "name": "Ann", "state": "active", "created": 1});
            serde_json::from_value(ann).expect("a developer")
        };
        let changed = ann("new@b.test");
        assert!(people.add("main", &changed, now).await.expect("written"));
        let removed = people
            .remove_from_all("main", &ann("a@b.test"), |_| Ok(()), now)
            .await;
        removed.expect("removed");
        assert!(
            people.add("main", &changed, now).await.expect("written"),
            "it is free"
        );
    }
}
