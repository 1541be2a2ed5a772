//! The data that a portal keeps about a developer, for the developer: account, teams, sessions, applications and
//! subscriptions. Secrets are in none of it.

use super::account::session_lines;
use super::account_common::profile_response;
use super::account_shapes::{ProfileResponse, SessionLine, TokenLine};
use super::app_shapes::OwnApp;
use super::apps::own_apps;
use super::authenticated_developer::AuthenticatedDeveloper;
use super::operation::{Operation, Shared};
use super::tokens::token_lines;
use crate::people::TeamRole;
use crate::state::PortalContext;
use axum::Extension;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::time::SystemTime;
use weir_control::api::Json;
use weir_control::api::Problem;
use weir_model::unix_time::seconds;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let about = ("readOwnData", "Reads all stored data about you, to download");
    let operations = vec![
        Operation::get("/portal/v1/account/data", about, read)
            .by_session()
            .answers::<OwnData>(),
    ];
    Operation::tagged("Account", operations)
}

/// The data that is kept about a developer.
#[derive(Serialize, JsonSchema)]
pub struct OwnData {
    /// When it was read, in seconds since 1970.
    read: u64,
    /// The account.
    account: ProfileResponse,
    /// Since when there is the account, in seconds since 1970.
    created: u64,
    /// Groups that control visibility.
    groups: BTreeSet<String>,
    /// The teams.
    teams: Vec<OwnTeam>,
    /// The sessions.
    sessions: Vec<SessionLine>,
    /// The personal tokens, without the tokens themselves.
    tokens: Vec<TokenLine>,
    /// Your applications and those of your teams.
    applications: Vec<OwnApp>,
}

/// A team.
#[derive(Serialize, JsonSchema)]
pub struct OwnTeam {
    /// Its name.
    name: String,
    /// The developer's role in it.
    role: TeamRole,
}

async fn read(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
) -> Result<Response, Problem> {
    let now = SystemTime::now();
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    let teams = authenticated.memberships.iter().map(|it| OwnTeam {
        name: it.team.name.clone(),
        role: it.role,
    });
    let developer = &authenticated.developer;
    let data = OwnData {
        read: seconds(now),
        account: profile_response(developer),
        created: developer.created,
        groups: developer.groups.union(&developer.provided).cloned().collect(),
        teams: teams.collect(),
        sessions: session_lines(&portals, &visit, developer, now).await?,
        tokens: token_lines(&portals, &visit, &developer.id, now).await?,
        applications: own_apps(&portals, &authenticated),
    };
    let kind = [(
        header::CONTENT_DISPOSITION,
        "attachment; filename=\"my-data.json\"",
    )];
    Ok((kind, Json(data)).into_response())
}
