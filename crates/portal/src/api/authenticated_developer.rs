//! The developer who asks, with teams, and the developer's role for an application. Every call about applications
//! begins here.

use super::signed_in::developer;
use crate::people::{Developer, Membership, TeamRole, owner_name};
use crate::state::{PortalContext, Portals};
use axum::http::{HeaderValue, Method};
use serde_json::Value;
use std::time::SystemTime;
use weir_apis::entities::Application;
use weir_control::api::Problem;
use weir_store::Revision;

pub fn of_team(team: &str) -> String {
    format!("team/{team}")
}

/// Whether a developer has applications that belong to no team.
pub fn has_own(portals: &Portals, developer: &str) -> bool {
    owned_by(portals, &owner_name(developer)) > 0
}

/// Whether applications belong to a team.
pub fn team_has_apps(portals: &Portals, team: &str) -> bool {
    owned_by(portals, &of_team(team)) > 0
}

pub fn owned_by(portals: &Portals, owner: &str) -> usize {
    let all: Vec<Application> = portals.documents.list("apis/applications/");
    all.iter().filter(|it| it.owner == owner).count()
}

/// The developer who asks, with teams.
pub struct AuthenticatedDeveloper {
    pub developer: Developer,
    pub memberships: Vec<Membership>,
}

impl AuthenticatedDeveloper {
    pub async fn of(portals: &Portals, visit: &PortalContext) -> Result<Self, Problem> {
        let now = SystemTime::now();
        let developer = developer(portals, visit, now).await?;
        let memberships = portals
            .people
            .memberships(&visit.portal.name, &developer.id, now)
            .await?;
        Ok(Self {
            developer,
            memberships,
        })
    }

    /// The name for the history.
    pub fn name(&self) -> String {
        format!("developer {}", self.developer.mail)
    }

    /// Makes a call of Weir's own API in the asker's name, and waits until the portal knows what it has changed.
    pub async fn write(
        &self,
        portals: &Portals,
        (method, path): (Method, &str),
        body: Option<&Value>,
    ) -> Result<Value, Problem> {
        self.write_if(portals, (method, path), body, None).await
    }

    /// Makes such a call, only of the version that `If-Match` names.
    pub async fn write_if(
        &self,
        portals: &Portals,
        call: (Method, &str),
        body: Option<&Value>,
        if_match: Option<&HeaderValue>,
    ) -> Result<Value, Problem> {
        let made = portals
            .delegate
            .call_if(&self.name(), call, body, if_match)
            .await?;
        portals.documents.catch_up().await?;
        Ok(made)
    }

    pub fn membership(&self, owner: &str) -> Option<&Membership> {
        self.memberships.iter().find(|it| of_team(&it.team.id) == owner)
    }

    /// The asker's role for an application; `None`: it does not exist for the asker.
    pub fn role(&self, application: &Application) -> Option<TeamRole> {
        match application.owner == owner_name(&self.developer.id) {
            true => Some(TeamRole::Owner),
            false => self.membership(&application.owner).map(|it| it.role),
        }
    }

    /// An application that the asker may see, or change.
    pub fn app(&self, portals: &Portals, name: &str, least: TeamRole) -> Result<Application, Problem> {
        self.app_version(portals, name, least).map(|(_, app)| app)
    }

    /// An application that the asker may see, or change, with its version.
    pub fn app_version(
        &self,
        portals: &Portals,
        name: &str,
        least: TeamRole,
    ) -> Result<(Revision, Application), Problem> {
        let key = format!("apis/applications/{name}");
        let found: Option<(Revision, Application)> = portals.documents.get_version(&key);
        let found = found.and_then(|it| Some((self.role(&it.1)?, it)));
        match found {
            None => Err(Problem::not_found(format_args!("the application '{name}'"))),
            Some((role, _)) if role < least => Err(Problem::forbidden(
                "viewers of the team may not change its applications",
            )),
            Some((_, found)) => Ok(found),
        }
    }

    /// The owner of something in a team, if the asker may give it there.
    pub fn owner(&self, team: Option<&str>) -> Result<String, Problem> {
        let Some(team) = team else {
            return Ok(owner_name(&self.developer.id));
        };
        let membership = self.membership(&of_team(team));
        match membership.map(|it| it.role) {
            Some(TeamRole::Member | TeamRole::Owner) => Ok(of_team(team)),
            Some(TeamRole::Viewer) => Err(Problem::forbidden(
                "viewers of the team may not change its applications",
            )),
            None => Err(Problem::not_found("this team")),
        }
    }
}
