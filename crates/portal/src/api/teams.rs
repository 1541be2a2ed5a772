//! Teams: made, joined by invitation, left. What belongs to a team stays with it.

use super::account_common::checked_name;
use super::account_shapes::{MessageResponse, UsedLink};
use super::operation::{Operation, Shared};
use super::signed_in::developer;
use crate::people::{Membership, Purpose, Team, TeamRole, mail_of, random_id};
use crate::state::{Mail, PortalContext, Portals};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::SystemTime;
use weir_control::api::Json;
use weir_control::api::Problem;
use weir_model::unix_time::seconds;

/// Teams of a developer.
const MAX_TEAMS: usize = 20;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get(
            "/portal/v1/teams",
            ("listTeams", "Lists your teams with their members"),
            list,
        )
        .personal()
        .answers::<TeamList>(),
        Operation::post("/portal/v1/teams", ("createTeam", "Creates a team"), create)
            .by_session()
            .body::<NewTeam>()
            .status(StatusCode::CREATED)
            .answers::<TeamLine>(),
        Operation::post(
            "/portal/v1/teams/{team}/invitations",
            ("inviteMember", "Invites a person into a team by mail"),
            invite,
        )
        .by_session()
        .body::<NewInvitation>()
        .status(StatusCode::ACCEPTED)
        .answers::<MessageResponse>(),
        Operation::post(
            "/portal/v1/invitations",
            ("acceptInvitation", "Joins a team by the link of a mail"),
            accept,
        )
        .by_session()
        .body::<UsedLink>()
        .answers::<TeamLine>(),
        Operation::put(
            "/portal/v1/teams/{team}/members/{member}",
            ("changeMember", "Changes the role of a member"),
            change,
        )
        .by_session()
        .body::<NewRole>()
        .answers::<MessageResponse>(),
        Operation::delete(
            "/portal/v1/teams/{team}/members/{member}",
            ("removeMember", "Removes a member, or leaves"),
            remove,
        )
        .by_session(),
    ];
    Operation::tagged("Teams", operations)
}

/// Teams.
#[derive(Serialize, JsonSchema)]
pub struct TeamList {
    /// The teams, by name.
    items: Vec<TeamLine>,
}

/// A team.
#[derive(Serialize, JsonSchema)]
pub struct TeamLine {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
    /// The developer's role in it.
    role: TeamRole,
    /// Its members.
    members: Vec<Member>,
}

/// A member.
#[derive(Serialize, JsonSchema)]
pub struct Member {
    /// The developer's id.
    id: String,
    /// The name.
    name: String,
    /// The mail address.
    mail: String,
    /// The role.
    role: TeamRole,
}

/// A team to be made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTeam {
    /// Its name.
    name: String,
}

/// A person to be invited.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInvitation {
    /// The mail address.
    mail: String,
    /// As what.
    role: TeamRole,
}

/// A member's role.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRole {
    /// The role.
    role: TeamRole,
}

async fn line(
    portals: &Portals,
    visit: &PortalContext,
    membership: Membership,
    now: SystemTime,
) -> Result<TeamLine, Problem> {
    let mut members = Vec::new();
    for (id, role) in &membership.team.members {
        if let Some(known) = portals.people.developer(&visit.portal.name, id, now).await? {
            members.push(Member {
                id: known.id,
                name: known.name,
                mail: known.mail,
                role: *role,
            });
        }
    }
    Ok(TeamLine {
        id: membership.team.id,
        name: membership.team.name,
        role: membership.role,
        members,
    })
}

async fn list(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
) -> Result<Json<TeamList>, Problem> {
    let now = SystemTime::now();
    let me = developer(&portals, &visit, now).await?;
    let mut items = Vec::new();
    for membership in portals
        .people
        .memberships(&visit.portal.name, &me.id, now)
        .await?
    {
        items.push(line(&portals, &visit, membership, now).await?);
    }
    Ok(Json(TeamList { items }))
}

async fn create(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Json(wanted): Json<NewTeam>,
) -> Result<(StatusCode, Json<TeamLine>), Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let me = developer(&portals, &visit, now).await?;
    // It stands in the mails of invitations.
    let name = checked_name(&wanted.name)?;
    if portals.people.memberships(portal, &me.id, now).await?.len() >= MAX_TEAMS {
        let detail = format!("you are in {MAX_TEAMS} teams, the maximum");
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    let team = Team {
        id: random_id()?,
        name,
        members: BTreeMap::from([(me.id, TeamRole::Owner)]),
        created: seconds(now),
    };
    portals.people.add_team(portal, &team, now).await?;
    let role = TeamRole::Owner;
    Ok((
        StatusCode::CREATED,
        Json(line(&portals, &visit, Membership { team, role }, now).await?),
    ))
}

/// A developer's membership in a team. For those who are in no team of this id, it does not exist.
async fn membership(
    portals: &Portals,
    visit: &PortalContext,
    team: &str,
    me: &str,
    now: SystemTime,
) -> Result<Membership, Problem> {
    let found = portals.people.team(&visit.portal.name, team, now).await?;
    let of = |team: Team| {
        let role = *team.members.get(me)?;
        Some(Membership { team, role })
    };
    found.and_then(of).ok_or_else(|| Problem::not_found("this team"))
}

fn owners_only(membership: &Membership) -> Result<(), Problem> {
    match membership.role {
        TeamRole::Owner => Ok(()),
        _ => Err(Problem::forbidden("only owners of the team may do this")),
    }
}

async fn invite(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path(team): Path<String>,
    Json(wanted): Json<NewInvitation>,
) -> Result<(StatusCode, Json<MessageResponse>), Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let me = developer(&portals, &visit, now).await?;
    let membership = membership(&portals, &visit, &team, &me.id, now).await?;
    owners_only(&membership)?;
    let wrong = || {
        Problem::step(
            "check",
            vec![("mail".to_owned(), "expected a mail address".to_owned())],
        )
    };
    let mail = mail_of(&wanted.mail).ok_or_else(wrong)?;
    portals.need_mail()?;
    let url = visit.link_url()?;
    let who = format!("invite {}", me.id);
    if portals.tries.take(&who, 20, seconds(now)).is_err() {
        let detail = "too many invitations; try again in a minute";
        return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail));
    }
    let purpose = Purpose::Invitation {
        team,
        role: wanted.role,
        mail: mail.clone(),
    };
    let link = portals.people.link(portal, &purpose, now).await?;
    // Names of people and teams are free text; the address is confirmed.
    let text = format!(
        "Hello,\n\n{} invites you into a team of developers. Open this link to see the team and to join; it is good \
         once, for a week.\n\n{url}/invitation#{}\n\nIf you do not know who invites you, ignore this mail.\n",
        me.mail, link.token
    );
    portals
        .send(Mail::new((portal, &mail), "You are invited into a team", text))
        .await?;
    let message = format!("The invitation to {mail} is on its way.");
    Ok((StatusCode::ACCEPTED, Json(MessageResponse { message })))
}

async fn accept(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Json(link): Json<UsedLink>,
) -> Result<Json<TeamLine>, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let me = developer(&portals, &visit, now).await?;
    let gone = || {
        Problem::new(
            StatusCode::GONE,
            "this invitation was already used or has expired: ask for another one",
        )
    };
    let Some(Purpose::Invitation { team, role, mail }) =
        portals.people.look(portal, &link.token, now).await?
    else {
        return Err(gone());
    };
    if mail != me.mail {
        return Err(Problem::forbidden(format!(
            "this invitation is for {mail}: sign in with that account"
        )));
    }
    portals
        .people
        .take(portal, &link.token, now)
        .await?
        .ok_or_else(gone)?;
    let join = |team: &mut Team| {
        let known = team.members.get(&me.id).copied();
        // An owner is not made less by an invitation.
        team.members
            .insert(me.id.clone(), known.map_or(role, |it| it.max(role)));
        true
    };
    let team = portals
        .people
        .change_team(portal, &team, now, join)
        .await?
        .ok_or_else(gone)?;
    let role = team.members.get(&me.id).copied().unwrap_or(role);
    Ok(Json(
        line(&portals, &visit, Membership { team, role }, now).await?,
    ))
}

async fn change(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((team, member)): Path<(String, String)>,
    Json(wanted): Json<NewRole>,
) -> Result<Json<MessageResponse>, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let me = developer(&portals, &visit, now).await?;
    owners_only(&membership(&portals, &visit, &team, &me.id, now).await?)?;
    let step = |team: &mut Team| {
        let may = wanted.role == TeamRole::Owner || team.has_other_owner(&member);
        may && team
            .members
            .get_mut(&member)
            .map(|it| *it = wanted.role)
            .is_some()
    };
    let changed = portals.people.change_team(portal, &team, now, step).await?;
    match changed.and_then(|it| it.members.get(&member).copied()) {
        Some(role) if role == wanted.role => Ok(Json(MessageResponse {
            message: "Changed.".to_owned(),
        })),
        Some(_) => Err(Problem::new(
            StatusCode::CONFLICT,
            "a team keeps at least one owner",
        )),
        None => Err(Problem::not_found("this member")),
    }
}

async fn remove(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((team, member)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let (now, portal) = (SystemTime::now(), &visit.portal.name);
    let me = developer(&portals, &visit, now).await?;
    let membership = membership(&portals, &visit, &team, &me.id, now).await?;
    if member != me.id {
        owners_only(&membership)?;
    }
    let has_apps = super::authenticated_developer::team_has_apps(&portals, &team);
    let step = |team: &mut Team| {
        // The last one may go with the team, if nothing belongs to it.
        let is_last = team.members.len() == 1 && !has_apps;
        (is_last || team.has_other_owner(&member)) && team.members.remove(&member).is_some()
    };
    let left = portals.people.change_team(portal, &team, now, step).await?;
    match left {
        Some(team) if team.members.contains_key(&member) => Err(Problem::new(
            StatusCode::CONFLICT,
            "a team keeps at least one owner: make another member an owner first",
        )),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}
