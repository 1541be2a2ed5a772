//! Applications. What changes is a call of Weir's own API, made for the developer from inside; whether the developer
//! may is decided by [`AuthenticatedDeveloper`].

use super::app_shapes::{AppDetail, AppIdentity, AppLine, AppList, NewApp, OwnApp};
use super::authenticated_developer::{AuthenticatedDeveloper, owned_by};
use super::keys::{add_last_uses, subscription_line, subscriptions};
use super::operation::{Operation, Shared};
use crate::people::{TeamRole, random_id};
use crate::state::{PortalContext, Portals};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use weir_apis::entities::{Application, fingerprint};
use weir_apis::naming::slug;
use weir_control::api::Json;
use weir_control::api::{Problem, names, tag_of};
use weir_control::developers::turns_text;
use weir_store::Revision;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get(
            APPS,
            ("listApps", "Lists your applications and those of your teams"),
            list,
        )
        .personal()
        .answers::<AppList>(),
        Operation::post(APPS, ("createApp", "Creates an application"), create)
            .personal()
            .body::<NewApp>()
            .status(StatusCode::CREATED)
            .answers::<AppLine>(),
        Operation::get(
            APP,
            ("getApp", "Reads an application with its subscriptions"),
            read,
        )
        .personal()
        .answers::<AppDetail>(),
        Operation::put(
            APP,
            (
                "changeApp",
                "Changes an application, or gives it to a team; with the `ETag` of a read as `If-Match`, only if \
                 it has not changed since",
            ),
            change,
        )
        .personal()
        .body::<NewApp>()
        .answers::<AppLine>(),
        Operation::delete(
            APP,
            ("deleteApp", "Removes an application without subscriptions"),
            delete,
        )
        .personal(),
    ];
    Operation::tagged("Applications", operations)
}

/// Attempts of a change that names no version, while others write too.
const MAX_ATTEMPTS: usize = 5;

/// Applications of a developer or a team, and subscriptions of an application.
const MAX_APPS: usize = 500;

/// The same for whatever is the reason: the caller learns nothing about others.
const UNUSABLE: &str = "it cannot be used for this application: check it, or ask the provider";

const APPS: &str = "/portal/v1/apps";

const APP: &str = "/portal/v1/apps/{app}";

fn line(
    portals: &Portals,
    authenticated: &AuthenticatedDeveloper,
    application: &Application,
) -> Option<AppLine> {
    let membership = authenticated.membership(&application.owner);
    Some(AppLine {
        name: application.name.clone(),
        title: title(application).to_owned(),
        description: application.description.clone(),
        team: membership.map(|it| it.team.id.clone()),
        team_name: membership.map_or_else(String::new, |it| it.team.name.clone()),
        role: authenticated.role(application)?,
        subscriptions: subscriptions(portals, &application.name).len(),
    })
}

/// The title of an application.
pub fn title(application: &Application) -> &str {
    match application.display_name.as_str() {
        "" => &application.name,
        title => title,
    }
}

fn identity(application: &Application) -> AppIdentity {
    AppIdentity {
        client_id: application.client_id.clone(),
        certificates: application.certificates.clone(),
    }
}

/// The applications that a developer may see, with their subscriptions.
pub fn own_apps(portals: &Portals, authenticated: &AuthenticatedDeveloper) -> Vec<OwnApp> {
    let all: Vec<Application> = portals.documents.list("apis/applications/");
    let seen = all
        .iter()
        .filter_map(|it| Some((line(portals, authenticated, it)?, it)));
    let with_subscriptions = seen.map(|(application, stored)| OwnApp {
        subscribed: subscriptions(portals, &application.name)
            .iter()
            .map(|it| subscription_line(portals, it))
            .collect(),
        known_by: identity(stored),
        application,
    });
    with_subscriptions.collect()
}

async fn list(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
) -> Result<Json<AppList>, Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    let all: Vec<Application> = portals.documents.list("apis/applications/");
    let mut items: Vec<AppLine> = all
        .iter()
        .filter_map(|it| line(&portals, &authenticated, it))
        .collect();
    items.sort_by_cached_key(|it| it.title.to_lowercase());
    Ok(Json(AppList { items }))
}

fn checked(wanted: &NewApp) -> Result<(), Problem> {
    let is_text = !wanted
        .title
        .contains(|it: char| it.is_control() || turns_text(it));
    let is_good = (1..=80).contains(&wanted.title.trim().chars().count()) && is_text;
    let fault = match (is_good, wanted.description.len() > 2_000) {
        (false, _) => (
            "title",
            "expected 1 to 80 characters without bidirectional control characters",
        ),
        (_, true) => ("description", "expected at most 2000 bytes"),
        _ => return Ok(()),
    };
    Err(Problem::step(
        "check",
        vec![(fault.0.to_owned(), fault.1.to_owned())],
    ))
}

/// Refuses what another application is known by, without a word about that one.
fn check_identity(portals: &Portals, wanted: &Application) -> Result<(), Problem> {
    if wanted.client_id.is_empty() && wanted.certificates.is_empty() {
        return Ok(());
    }
    let all: Vec<Application> = portals.documents.list("apis/applications/");
    let others = || all.iter().filter(|it| it.name != wanted.name);
    let print = |pem: &String| fingerprint(pem);
    let mut wrong = Vec::new();
    if !wanted.client_id.is_empty() && others().any(|it| it.client_id == wanted.client_id) {
        wrong.push("client_id".to_owned());
    }
    let taken: HashSet<String> = others()
        .flat_map(|it| &it.certificates)
        .filter_map(print)
        .collect();
    for (index, pem) in wanted.certificates.iter().enumerate() {
        if print(pem).is_some_and(|it| taken.contains(&it)) {
            wrong.push(format!("certificates[{index}]"));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Problem::step(
            "check",
            wrong.into_iter().map(|it| (it, UNUSABLE.to_owned())).collect(),
        )),
    }
}

/// Stores an application. It may be told that another one was stored with the same identity meanwhile.
async fn store(
    portals: &Portals,
    authenticated: &AuthenticatedDeveloper,
    call: (Method, &str),
    (wanted, if_match): (&Application, Option<&HeaderValue>),
) -> Result<Value, Problem> {
    check_identity(portals, wanted)?;
    let made = authenticated
        .write_if(portals, call, Some(&json!(wanted)), if_match)
        .await;
    if made.is_err() {
        portals.documents.catch_up().await?;
        check_identity(portals, wanted)?;
    }
    made
}

async fn create(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Json(wanted): Json<NewApp>,
) -> Result<(StatusCode, Json<AppLine>), Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    checked(&wanted)?;
    let owner = authenticated.owner(wanted.team.as_ref().and_then(|it| it.as_deref()))?;
    if owned_by(&portals, &owner) >= MAX_APPS {
        let detail = format!("there are already {MAX_APPS} applications, the maximum");
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    let begin: String = slug(&wanted.title).chars().take(40).collect();
    let name = format!(
        "{}-{}",
        if begin.is_empty() {
            "app"
        } else {
            begin.trim_end_matches('-')
        },
        &random_id()?[..8]
    );
    let wanted = Application {
        name,
        owner,
        ..written(wanted, Application::default())
    };
    let made = store(
        &portals,
        &authenticated,
        (Method::POST, "/api/v1/applications"),
        (&wanted, None),
    )
    .await?;
    let application = understood::<Application>(made)?;
    let line =
        line(&portals, &authenticated, &application).ok_or_else(|| Problem::not_found("the application"))?;
    Ok((StatusCode::CREATED, Json(line)))
}

/// An application as it is to be.
fn written(wanted: NewApp, known: Application) -> Application {
    Application {
        display_name: wanted.title.trim().to_owned(),
        description: wanted.description,
        client_id: wanted
            .client_id
            .map_or(known.client_id, |it| it.trim().to_owned()),
        certificates: wanted.certificates.unwrap_or(known.certificates),
        ..known
    }
}

fn understood<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Problem> {
    serde_json::from_value(value).map_err(|error| Problem::unreadable(error.to_string()))
}

async fn read(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    let (version, application) = authenticated.app_version(&portals, &name, TeamRole::Viewer)?;
    let app =
        line(&portals, &authenticated, &application).ok_or_else(|| Problem::not_found("the application"))?;
    let all = subscriptions(&portals, &name);
    let mut subscriptions: Vec<_> = all.iter().map(|it| subscription_line(&portals, it)).collect();
    add_last_uses(&portals, &mut subscriptions).await?;
    let detail = AppDetail {
        app,
        known_by: identity(&application),
        subscriptions,
    };
    Ok(tagged(Json(detail), version))
}

fn tagged(answer: impl IntoResponse, version: Revision) -> Response {
    let mut answer = answer.into_response();
    answer.headers_mut().insert(header::ETAG, tag(version));
    answer
}

/// The `ETag` of an application: that of its document.
fn tag(version: Revision) -> HeaderValue {
    HeaderValue::from_str(&tag_of(version)).expect("invariant: digits between quotes")
}

async fn change(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path(name): Path<String>,
    headers: HeaderMap,
    Json(wanted): Json<NewApp>,
) -> Result<Response, Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    checked(&wanted)?;
    let named = headers.get(header::IF_MATCH);
    for _ in 0..MAX_ATTEMPTS {
        portals.documents.catch_up().await?;
        match changed(&portals, &authenticated, (&name, wanted.clone()), named).await {
            // The call says nothing of versions, and what it leaves out is kept as it is by now.
            Err(problem) if problem.is_overtaken() && named.is_none() => {}
            Err(problem) if problem.is_overtaken() => break,
            done => return done,
        }
    }
    let detail = "this application was changed after you read it: reload it and try again";
    Err(Problem::precondition(detail, None))
}

/// Changes an application if it is the version that the call names, and the one that was looked at here.
async fn changed(
    portals: &Arc<Portals>,
    authenticated: &AuthenticatedDeveloper,
    (name, wanted): (&str, NewApp),
    named: Option<&HeaderValue>,
) -> Result<Response, Problem> {
    let (version, known) = authenticated.app_version(portals, name, TeamRole::Member)?;
    let is_named =
        named.is_none_or(|it| names(&String::from_utf8_lossy(it.as_bytes()), Some(&tag_of(version))));
    if !is_named {
        return Err(Problem::precondition("another version", None));
    }
    let owner = match &wanted.team {
        None => known.owner.clone(),
        Some(team) => authenticated.owner(team.as_deref())?,
    };
    if owner != known.owner && authenticated.role(&known) != Some(TeamRole::Owner) {
        return Err(Problem::forbidden(
            "only owners of the team can transfer its applications",
        ));
    }
    let application = Application {
        owner,
        ..written(wanted, known)
    };
    let path = format!("/api/v1/applications/{name}");
    let call = (Method::PUT, &*path);
    store(portals, authenticated, call, (&application, Some(&tag(version)))).await?;
    // What is stored may differ from what was sent: lists in an order of their own, for example.
    let (version, stored) = authenticated.app_version(portals, name, TeamRole::Viewer)?;
    let line = line(portals, authenticated, &stored).ok_or_else(|| Problem::not_found("the application"))?;
    Ok(tagged(Json(line), version))
}

async fn delete(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &name, TeamRole::Member)?;
    let path = format!("/api/v1/applications/{name}");
    authenticated
        .write(&portals, (Method::DELETE, &path), None)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
