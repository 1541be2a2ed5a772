//! Applications with their subscriptions and keys. What changes is a call of Weir's own API, made for the developer from
//! inside; whether the developer may is decided here.

use super::catalogue::{find_version, refusal, word};
use super::operation::{Operation, Shared};
use super::signed_in::developer;
use crate::people::{Developer, Membership, TeamRole, owner_name, random_id};
use crate::state::{Portals, Visit};
use axum::extract::{Path, State};
use axum::http::{Method, StatusCode};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::time::SystemTime;
use weir_apis::entities::{Application, Credential, Plan, Subscription};
use weir_apis::naming::slug;
use weir_control::api::Problem;

/// Applications of a developer or a team, and subscriptions of an application.
const MAX_APPS: usize = 500;
const MAX_SUBSCRIPTIONS: usize = 100;
/// Keys of a subscription that are good.
const MAX_KEYS: usize = 20;
/// The longest overlap of a rotation, in seconds.
const MAX_OVERLAP: u64 = 30 * 86_400;

const APPS: &str = "/portal/v1/apps";
const APP: &str = "/portal/v1/apps/{app}";

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get(
            APPS,
            ("listApps", "Lists applications of oneself and one's teams"),
            list,
        )
        .personal()
        .answers::<AppList>(),
        Operation::post(APPS, ("createApp", "Makes an application"), create)
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
            ("changeApp", "Changes an application, or gives it to a team"),
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
        Operation::post(
            "/portal/v1/apps/{app}/subscriptions",
            (
                "subscribe",
                "Subscribes an application to a plan; a key is in the answer, and nowhere else",
            ),
            subscribe,
        )
        .personal()
        .body::<NewSubscription>()
        .status(StatusCode::CREATED)
        .answers::<SubscriptionLine>(),
        Operation::post(
            "/portal/v1/apps/{app}/subscriptions/{subscription}/state",
            ("setSubscriptionState", "Stops, starts or closes a subscription"),
            set_state,
        )
        .personal()
        .body::<NewState>()
        .answers::<SubscriptionLine>(),
        Operation::post(
            "/portal/v1/apps/{app}/subscriptions/{subscription}/keys",
            (
                "addKey",
                "Makes a further key, or one that replaces another; it is shown this once",
            ),
            add_key,
        )
        .personal()
        .body::<NewKey>()
        .status(StatusCode::CREATED)
        .answers::<ShownKey>(),
        Operation::delete(
            "/portal/v1/apps/{app}/subscriptions/{subscription}/keys/{key}",
            ("revokeKey", "Revokes a key at once"),
            revoke_key,
        )
        .personal(),
    ];
    Operation::tagged("Applications", operations)
}

/// Applications.
#[derive(Serialize, JsonSchema)]
pub struct AppList {
    /// By title.
    items: Vec<AppLine>,
}

/// An application.
#[derive(Serialize, JsonSchema)]
pub struct AppLine {
    /// Its name.
    name: String,
    /// Its title.
    title: String,
    /// What it does.
    description: String,
    /// The team that it belongs to; `null`: it is one's own.
    team: Option<String>,
    /// The team's name.
    team_name: String,
    /// What one may do: `viewer`, `member` or `owner`.
    role: TeamRole,
    /// Its subscriptions.
    subscriptions: usize,
}

/// An application with its subscriptions.
#[derive(Serialize, JsonSchema)]
pub struct AppDetail {
    /// The application.
    app: AppLine,
    /// Its subscriptions, the latest first.
    subscriptions: Vec<SubscriptionLine>,
}

/// An application, as it is downloaded.
#[derive(Serialize, JsonSchema)]
pub struct OwnApp {
    /// The application.
    application: AppLine,
    /// Its subscriptions, the latest first.
    subscribed: Vec<SubscriptionLine>,
}

/// A subscription.
#[derive(Serialize, JsonSchema)]
pub struct SubscriptionLine {
    /// Its id.
    id: String,
    /// The publication, as `API/VERSION/ENVIRONMENT`.
    publication: String,
    /// The plan.
    plan: String,
    /// The plan's title.
    plan_title: String,
    /// `pending`, `accepted`, `rejected`, `paused`, `stopped`, `closed` or `expired`.
    state: String,
    /// Why.
    reason: String,
    /// Seconds since 1970.
    created: u64,
    /// When it ends.
    ends: Option<u64>,
    /// Its keys, the latest first.
    keys: Vec<KeyLine>,
    /// The key that was made with it, this once.
    key: Option<ShownKey>,
}

/// A key, without its secret.
#[derive(Serialize, JsonSchema)]
pub struct KeyLine {
    /// Its id.
    id: String,
    /// How it begins.
    prefix: String,
    /// Seconds since 1970.
    created: u64,
    /// Until when it is good.
    expires: Option<u64>,
    /// When it was revoked.
    revoked: Option<u64>,
}

/// A key that was made.
#[derive(Serialize, JsonSchema)]
pub struct ShownKey {
    /// Its id.
    id: String,
    /// The key itself.
    key: String,
}

/// An application to be made or changed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewApp {
    /// Its title.
    title: String,
    /// What it does.
    #[serde(default)]
    description: String,
    /// The team that it belongs to; left out: oneself.
    #[serde(default)]
    team: Option<String>,
}

/// A subscription to be made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSubscription {
    /// The publication, as `API/VERSION/ENVIRONMENT`.
    publication: String,
    /// The plan.
    plan: String,
    /// The revision of the plan's conditions that is agreed to.
    #[serde(default)]
    conditions_revision: u32,
    /// What the approver is told.
    #[serde(default)]
    request: String,
}

/// The state of a subscription.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewState {
    /// `stopped`, `accepted` (to start it again) or `closed`.
    state: String,
}

/// A key to be made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// The key that it replaces.
    #[serde(default)]
    replaces: Option<String>,
    /// For how many seconds the old one stays good; left out: as the plan says.
    #[serde(default)]
    overlap: Option<u64>,
}

fn of_team(team: &str) -> String {
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

fn owned_by(portals: &Portals, owner: &str) -> usize {
    let all: Vec<Application> = portals.documents.list("apis/applications/");
    all.iter().filter(|it| it.owner == owner).count()
}

/// Who asks, with their teams.
pub struct Asker {
    pub developer: Developer,
    pub memberships: Vec<Membership>,
}

impl Asker {
    pub async fn of(portals: &Portals, visit: &Visit) -> Result<Self, Problem> {
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
    fn name(&self) -> String {
        format!("developer {}", self.developer.mail)
    }

    fn membership(&self, owner: &str) -> Option<&Membership> {
        self.memberships.iter().find(|it| of_team(&it.team.id) == owner)
    }

    /// What the asker may do with an application; `None`: it does not exist for them.
    fn role(&self, application: &Application) -> Option<TeamRole> {
        match application.owner == owner_name(&self.developer.id) {
            true => Some(TeamRole::Owner),
            false => self.membership(&application.owner).map(|it| it.role),
        }
    }

    /// An application that the asker may see, or change.
    pub fn app(&self, portals: &Portals, name: &str, least: TeamRole) -> Result<Application, Problem> {
        let found: Option<Application> = portals.documents.get(&format!("apis/applications/{name}"));
        let found = found.and_then(|it| Some((self.role(&it)?, it)));
        match found {
            None => Err(Problem::not_found(format_args!("the application '{name}'"))),
            Some((role, _)) if role < least => Err(Problem::forbidden(
                "viewers of the team may not change its applications",
            )),
            Some((_, application)) => Ok(application),
        }
    }

    /// The owner of something in a team, if the asker may give it there.
    fn owner(&self, team: Option<&str>) -> Result<String, Problem> {
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

fn line(portals: &Portals, asker: &Asker, application: &Application) -> Option<AppLine> {
    let membership = asker.membership(&application.owner);
    Some(AppLine {
        name: application.name.clone(),
        title: match application.display_name.as_str() {
            "" => application.name.clone(),
            title => title.to_owned(),
        },
        description: application.description.clone(),
        team: membership.map(|it| it.team.id.clone()),
        team_name: membership.map_or_else(String::new, |it| it.team.name.clone()),
        role: asker.role(application)?,
        subscriptions: subscriptions(portals, &application.name).len(),
    })
}

/// The subscriptions of an application, the latest first.
pub fn subscriptions(portals: &Portals, application: &str) -> Vec<Subscription> {
    let mut all: Vec<Subscription> = portals.documents.list("apis/subscriptions/");
    all.retain(|it| it.application == application);
    all.sort_by_key(|it| std::cmp::Reverse(it.created));
    all
}

/// The plan of a subscription.
pub fn plan_of(portals: &Portals, subscription: &Subscription) -> Option<Plan> {
    let (version, _) = subscription.publication.rsplit_once('/')?;
    portals
        .documents
        .get(&format!("apis/plans/{version}/{}", subscription.plan))
}

fn subscription_line(portals: &Portals, subscription: &Subscription) -> SubscriptionLine {
    let mut keys: Vec<Credential> = portals.documents.list("apis/credentials/");
    keys.retain(|it| it.subscription == subscription.id);
    keys.sort_by_key(|it| std::cmp::Reverse(it.created));
    let plan = plan_of(portals, subscription);
    SubscriptionLine {
        id: subscription.id.clone(),
        publication: subscription.publication.clone(),
        plan: subscription.plan.clone(),
        plan_title: plan
            .map(|it| it.display_name)
            .filter(|it| !it.is_empty())
            .unwrap_or_else(|| subscription.plan.clone()),
        state: word(&subscription.state),
        reason: subscription.reason.clone(),
        created: subscription.created,
        ends: subscription.ends,
        keys: keys
            .into_iter()
            .map(|it| KeyLine {
                id: it.id,
                prefix: it.prefix,
                created: it.created,
                expires: it.expires,
                revoked: it.revoked,
            })
            .collect(),
        key: None,
    }
}

/// The applications that somebody may see, with their subscriptions.
pub fn own_apps(portals: &Portals, asker: &Asker) -> Vec<OwnApp> {
    let all: Vec<Application> = portals.documents.list("apis/applications/");
    let seen = all.iter().filter_map(|it| line(portals, asker, it));
    let with_subscriptions = seen.map(|application| OwnApp {
        subscribed: subscriptions(portals, &application.name)
            .iter()
            .map(|it| subscription_line(portals, it))
            .collect(),
        application,
    });
    with_subscriptions.collect()
}

async fn list(State(portals): Shared, Extension(visit): Extension<Visit>) -> Result<Json<AppList>, Problem> {
    let asker = Asker::of(&portals, &visit).await?;
    let all: Vec<Application> = portals.documents.list("apis/applications/");
    let mut items: Vec<AppLine> = all.iter().filter_map(|it| line(&portals, &asker, it)).collect();
    items.sort_by_cached_key(|it| it.title.to_lowercase());
    Ok(Json(AppList { items }))
}

fn checked(wanted: &NewApp) -> Result<(), Problem> {
    let is_good =
        (1..=80).contains(&wanted.title.trim().chars().count()) && !wanted.title.contains(char::is_control);
    let fault = match (is_good, wanted.description.len() > 2_000) {
        (false, _) => ("title", "expected 1 to 80 characters"),
        (_, true) => ("description", "expected at most 2000 bytes"),
        _ => return Ok(()),
    };
    Err(Problem::step(
        "check",
        vec![(fault.0.to_owned(), fault.1.to_owned())],
    ))
}

async fn create(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Json(wanted): Json<NewApp>,
) -> Result<(StatusCode, Json<AppLine>), Problem> {
    let asker = Asker::of(&portals, &visit).await?;
    checked(&wanted)?;
    let owner = asker.owner(wanted.team.as_deref())?;
    if owned_by(&portals, &owner) >= MAX_APPS {
        let detail = format!("there are {MAX_APPS} applications, which is the most there may be");
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
    let body = json!({ "name": name, "display_name": wanted.title.trim(), "description": wanted.description, "owner": owner });
    let made = portals
        .delegate
        .call(&asker.name(), Method::POST, "/api/v1/applications", Some(&body))
        .await?;
    let application = understood::<Application>(made)?;
    portals.documents.catch_up().await?;
    let line = line(&portals, &asker, &application).ok_or_else(|| Problem::not_found("the application"))?;
    Ok((StatusCode::CREATED, Json(line)))
}

fn understood<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Problem> {
    serde_json::from_value(value).map_err(|error| Problem::unreadable(error.to_string()))
}

async fn read(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path(name): Path<String>,
) -> Result<Json<AppDetail>, Problem> {
    let asker = Asker::of(&portals, &visit).await?;
    let application = asker.app(&portals, &name, TeamRole::Viewer)?;
    let app = line(&portals, &asker, &application).ok_or_else(|| Problem::not_found("the application"))?;
    let all = subscriptions(&portals, &name);
    Ok(Json(AppDetail {
        app,
        subscriptions: all.iter().map(|it| subscription_line(&portals, it)).collect(),
    }))
}

async fn change(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path(name): Path<String>,
    Json(wanted): Json<NewApp>,
) -> Result<Json<AppLine>, Problem> {
    let asker = Asker::of(&portals, &visit).await?;
    checked(&wanted)?;
    let known = asker.app(&portals, &name, TeamRole::Member)?;
    let owner = asker.owner(wanted.team.as_deref())?;
    if owner != known.owner && asker.role(&known) != Some(TeamRole::Owner) {
        return Err(Problem::forbidden(
            "only owners of the team may give its applications away",
        ));
    }
    let application = Application {
        display_name: wanted.title.trim().to_owned(),
        description: wanted.description,
        owner,
        ..known
    };
    let path = format!("/api/v1/applications/{name}");
    portals
        .delegate
        .call(&asker.name(), Method::PUT, &path, Some(&json!(application)))
        .await?;
    portals.documents.catch_up().await?;
    let line = line(&portals, &asker, &application).ok_or_else(|| Problem::not_found("the application"))?;
    Ok(Json(line))
}

async fn delete(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let asker = Asker::of(&portals, &visit).await?;
    asker.app(&portals, &name, TeamRole::Member)?;
    let path = format!("/api/v1/applications/{name}");
    portals
        .delegate
        .call(&asker.name(), Method::DELETE, &path, None)
        .await?;
    portals.documents.catch_up().await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn subscribe(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path(name): Path<String>,
    Json(wanted): Json<NewSubscription>,
) -> Result<(StatusCode, Json<SubscriptionLine>), Problem> {
    let asker = Asker::of(&portals, &visit).await?;
    asker.app(&portals, &name, TeamRole::Member)?;
    let parts: Vec<&str> = wanted.publication.split('/').collect();
    let [api, version, environment] = parts[..] else {
        return Err(Problem::bad("expected a publication as API/VERSION/ENVIRONMENT"));
    };
    let catalogue = portals.catalogue().await;
    let (_, found) = find_version(&catalogue, &visit, (api, version))?;
    let is_shown = found.places.iter().any(|it| it.environment.name == environment);
    let plan = found.plans.iter().find(|it| it.name == wanted.plan);
    let plan = plan
        .filter(|_| is_shown)
        .ok_or_else(|| Problem::not_found(format_args!("the plan '{}'", wanted.plan)))?;
    if let Some(reason) = refusal(plan, &visit) {
        return Err(Problem::forbidden(reason));
    }
    if subscriptions(&portals, &name).len() >= MAX_SUBSCRIPTIONS {
        let detail =
            format!("the application has {MAX_SUBSCRIPTIONS} subscriptions, which is the most there may be");
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    let body = json!({
        "application": name,
        "publication": wanted.publication,
        "plan": wanted.plan,
        "request": wanted.request.chars().take(2_000).collect::<String>(),
        "conditions_revision": wanted.conditions_revision,
    });
    let made = portals
        .delegate
        .call(&asker.name(), Method::POST, "/api/v1/subscriptions", Some(&body))
        .await?;
    portals.documents.catch_up().await?;
    let id = made["id"].as_str().unwrap_or_default();
    let known = find(&portals, &name, id)?;
    let mut line = subscription_line(&portals, &known);
    let text = |pointer: &str| made.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    line.key = text("/credential/id")
        .zip(text("/credential/key"))
        .map(|(id, key)| ShownKey { id, key });
    Ok((StatusCode::CREATED, Json(line)))
}

/// A subscription of an application.
fn find(portals: &Portals, application: &str, id: &str) -> Result<Subscription, Problem> {
    let found: Option<Subscription> = portals.documents.get(&format!("apis/subscriptions/{id}"));
    let found = found.filter(|it| it.application == application);
    found.ok_or_else(|| Problem::not_found("this subscription"))
}

async fn set_state(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path((name, id)): Path<(String, String)>,
    Json(wanted): Json<NewState>,
) -> Result<Json<SubscriptionLine>, Problem> {
    let asker = Asker::of(&portals, &visit).await?;
    asker.app(&portals, &name, TeamRole::Member)?;
    find(&portals, &name, &id)?;
    let body = json!({ "state": wanted.state, "side": "consumer" });
    let path = format!("/api/v1/subscriptions/{id}/state");
    portals
        .delegate
        .call(&asker.name(), Method::POST, &path, Some(&body))
        .await?;
    portals.documents.catch_up().await?;
    Ok(Json(subscription_line(&portals, &find(&portals, &name, &id)?)))
}

async fn add_key(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path((name, id)): Path<(String, String)>,
    Json(wanted): Json<NewKey>,
) -> Result<(StatusCode, Json<ShownKey>), Problem> {
    let asker = Asker::of(&portals, &visit).await?;
    asker.app(&portals, &name, TeamRole::Member)?;
    let known = find(&portals, &name, &id)?;
    if wanted.overlap.is_some_and(|it| it > MAX_OVERLAP) {
        let message = format!("expected at most {MAX_OVERLAP} seconds (30 days)");
        return Err(Problem::step("check", vec![("overlap".to_owned(), message)]));
    }
    let now = crate::people::seconds(SystemTime::now());
    let is_good = |it: &&KeyLine| it.revoked.is_none() && it.expires.is_none_or(|end| now < end);
    let good = subscription_line(&portals, &known)
        .keys
        .iter()
        .filter(is_good)
        .count();
    if good >= MAX_KEYS {
        let detail =
            format!("there are {MAX_KEYS} good keys, which is the most there may be: revoke one first");
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    let body = json!({ "replaces": wanted.replaces, "overlap": wanted.overlap });
    let path = format!("/api/v1/subscriptions/{id}/credentials");
    let made = portals
        .delegate
        .call(&asker.name(), Method::POST, &path, Some(&body))
        .await?;
    portals.documents.catch_up().await?;
    let text = |field: &str| made[field].as_str().unwrap_or_default().to_owned();
    let shown = ShownKey {
        id: text("id"),
        key: text("key"),
    };
    Ok((StatusCode::CREATED, Json(shown)))
}

async fn revoke_key(
    State(portals): Shared,
    Extension(visit): Extension<Visit>,
    Path((name, id, key)): Path<(String, String, String)>,
) -> Result<StatusCode, Problem> {
    let asker = Asker::of(&portals, &visit).await?;
    asker.app(&portals, &name, TeamRole::Member)?;
    let known = find(&portals, &name, &id)?;
    if !subscription_line(&portals, &known)
        .keys
        .iter()
        .any(|it| it.id == key)
    {
        return Err(Problem::not_found("this key"));
    }
    let path = format!("/api/v1/subscriptions/{id}/credentials/{key}");
    portals
        .delegate
        .call(&asker.name(), Method::DELETE, &path, None)
        .await?;
    portals.documents.catch_up().await?;
    Ok(StatusCode::NO_CONTENT)
}
