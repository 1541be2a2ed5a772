//! Developers of portals, for those who administer them: who there is and who waits, approving and refusing, suspending,
//! making, changing and removing. What developers do themselves is answered by the portal (`weir-portal`).

use super::apis::{ErasureSummary, erase};
use super::developer_factor;
use super::operation::Operation;
use super::precondition::{Precondition, tag_of_content, with_tag};
use super::problem::Problem;
use super::writing::tried;
use super::{Api, is_dry_run};
use crate::access::{Action, Caller};
use crate::api::json_body::{Json, JsonBody};
use crate::developers::{
    AdminDecision, Decision, Developer, DeveloperState, DeveloperStore, Notices, Purpose, Team, TeamRole,
    checked_name, greeting, mail_of, owner_name, random_id,
};
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;
use weir_apis::entities::{Application, Hook, Portal};
use weir_model::unix_time::seconds;

const ALL: &str = "/api/v1/portals/{portal}/developers";
const ONE: &str = "/api/v1/portals/{portal}/developers/{developer}";
const DRY_RUN: &[&str] = &["Weir-Dry-Run"];
const CHANGE: &[&str] = &["Weir-Dry-Run", "If-Match"];
/// Developers of a list, unless fewer are asked for.
const MAX_LISTED: usize = 1_000;
/// The longest reason, in characters.
const MAX_REASON: usize = 1_000;
/// Groups of a developer, and the longest name of one.
const MAX_GROUPS: usize = 100;
const MAX_GROUP: usize = 64;

/// The calls, for the table of all calls.
pub fn operations() -> Vec<Operation> {
    let (see, write) = (Action::DevelopersRead, Action::DevelopersWrite);
    let about = |operation: Operation, summary| operation.about("Developers", summary);
    let mut all = vec![
        about(
            Operation::get(ALL, "listDevelopers", see, list),
            "Lists developers of a portal, those that wait for approval first",
        )
        .query::<DevelopersQuery>()
        .answers::<DeveloperList>(),
        about(
            Operation::post(ALL, "createDeveloper", write, create),
            "Creates a developer, who gets a mail to set a password",
        )
        .description("The portal needs a `url`, so that the mail can have a link.")
        .headers(DRY_RUN)
        .body::<NewDeveloper>()
        .status(StatusCode::CREATED)
        .answers::<DeveloperLine>(),
        about(
            Operation::get(ONE, "getDeveloper", see, read),
            "Reads a developer, with teams and applications",
        )
        .answers::<DeveloperLine>(),
        about(
            Operation::put(ONE, "changeDeveloper", write, change),
            "Changes name and groups of a developer",
        )
        .headers(CHANGE)
        .body::<DeveloperChange>()
        .answers::<DeveloperLine>(),
        about(
            Operation::delete(ONE, "deleteDeveloper", write, delete),
            "Removes a developer, who leaves all teams",
        )
        .headers(CHANGE),
        about(
            Operation::post(
                "/api/v1/portals/{portal}/developers/{developer}/erase",
                "eraseDeveloper",
                write,
                erase,
            ),
            "Erases a developer with their applications, keys and messages, and the names that analytics have of them",
        )
        .description(
            "Counts are kept without a name. Also requires `subscriptions:write` if the developer has applications.",
        )
        .headers(DRY_RUN)
        .answers::<ErasureSummary>(),
        about(
            Operation::delete(
                "/api/v1/portals/{portal}/developers/{developer}/second-factor",
                "removeDeveloperSecondFactor",
                write,
                developer_factor::remove,
            ),
            "Turns off the second factor of a developer who has lost it and sends a mail",
        )
        .headers(DRY_RUN),
    ];
    all.extend(decisions());
    all
}

/// The calls that decide about a developer.
fn decisions() -> Vec<Operation> {
    let decided = |operation: Operation, summary| {
        let operation = operation.about("Developers", summary).headers(CHANGE);
        operation.body::<Reason>().answers::<DeveloperLine>()
    };
    let step = |path, id, decision: Decision| {
        let answer =
            move |api, caller, path, headers, body| decide(decision, (api, caller), path, headers, body);
        Operation::post(path, id, Action::DevelopersWrite, answer)
    };
    vec![
        decided(
            step(
                "/api/v1/portals/{portal}/developers/{developer}/approve",
                "approveDeveloper",
                Decision::Approve,
            ),
            "Approves a waiting developer and sends a mail",
        ),
        decided(
            step(
                "/api/v1/portals/{portal}/developers/{developer}/refuse",
                "refuseDeveloper",
                Decision::Refuse,
            ),
            "Refuses a waiting developer and sends a mail with the reason",
        ),
        decided(
            step(
                "/api/v1/portals/{portal}/developers/{developer}/suspend",
                "suspendDeveloper",
                Decision::Suspend,
            ),
            "Suspends a developer, and ends the sessions; a mail has the reason",
        ),
        decided(
            step(
                "/api/v1/portals/{portal}/developers/{developer}/resume",
                "resumeDeveloper",
                Decision::Resume,
            ),
            "Readmits a suspended developer and sends a mail",
        ),
    ]
}

/// Which developers.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DevelopersQuery {
    /// Only those in this state.
    state: Option<DeveloperState>,
    /// Only developers whose name or mail address contains this.
    q: String,
    /// At most so many, 1 to 1,000; left out: 1,000.
    limit: Option<usize>,
}

/// Developers.
#[derive(Serialize, JsonSchema)]
pub struct DeveloperList {
    /// The developers: those that wait for approval first, then the newest.
    items: Vec<DeveloperLine>,
    /// How many were found, listed or not.
    total: usize,
    /// How many of the portal wait for approval.
    waiting: usize,
}

/// A developer.
#[derive(Serialize, JsonSchema)]
pub struct DeveloperLine {
    /// The id.
    id: String,
    /// The mail address.
    mail: String,
    /// The name.
    name: String,
    /// How far the account has come: `confirmed` waits for approval.
    state: DeveloperState,
    /// Whether a code of an authenticator app is required besides the password.
    has_second_factor: bool,
    /// Groups that control visibility.
    groups: BTreeSet<String>,
    /// Groups from the identity provider at the last login.
    provided: BTreeSet<String>,
    /// Since when, in seconds since 1970.
    created: u64,
    /// The last decision; `null`: none.
    decided: Option<DecisionLine>,
    /// The teams.
    teams: Vec<DeveloperTeam>,
    /// The applications that belong to the developer alone.
    applications: Vec<String>,
    /// Its version, as `If-Match` names it.
    etag: String,
}

/// The version of what is written here about a developer. What developers do themselves is another matter.
fn tag_of(developer: &Developer) -> String {
    let decided = developer.decided.as_ref().map(|it| (&it.by, it.at, &it.reason));
    tag_of_content(&(&developer.name, &developer.groups, developer.state, decided))
}

/// Refuses a change of another version than the one that the call names.
fn demand_version(headers: &HeaderMap, developer: &Developer) -> Result<(), Problem> {
    let precondition = Precondition::of(headers);
    match precondition.holds_tag(Some(&tag_of(developer))) {
        true => Ok(()),
        false => Err(precondition.refusal_of(&format!("the developer '{}'", developer.id), true)),
    }
}

/// A decision about a developer.
#[derive(Serialize, JsonSchema)]
pub struct DecisionLine {
    /// By whom.
    by: String,
    /// When, in seconds since 1970.
    at: u64,
    /// The reason; empty: none was given.
    reason: String,
}

/// A team of a developer.
#[derive(Serialize, JsonSchema)]
pub struct DeveloperTeam {
    /// Its id.
    id: String,
    /// Its name.
    name: String,
    /// The developer's role in it.
    role: TeamRole,
}

/// Why.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Reason {
    /// The reason; the developer sees it. Required to refuse and to suspend.
    reason: String,
}

/// A developer to be made.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewDeveloper {
    /// The mail address.
    mail: String,
    /// The name.
    name: String,
    /// Groups that control visibility.
    #[serde(default)]
    groups: BTreeSet<String>,
}

/// The changes of a developer.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeveloperChange {
    /// The name; left out: it stays.
    #[serde(default)]
    name: Option<String>,
    /// The groups; left out: they stay.
    #[serde(default)]
    groups: Option<BTreeSet<String>>,
}

/// A portal with what belongs to its developers.
pub struct PortalContext<'a> {
    api: &'a Api,
    portal: Portal,
    hooks: Vec<Hook>,
    applications: Vec<Application>,
}

impl<'a> PortalContext<'a> {
    pub async fn of(api: &'a Api, name: &str) -> Result<Self, Problem> {
        let snapshot = api.snapshot().await?;
        let portals: Vec<Portal> = snapshot.list("apis/portals/")?;
        let is_first_day = portals.is_empty() && name == Portal::DEFAULT;
        let known = portals.into_iter().find(|it| it.name == name);
        let portal = match known {
            Some(known) => known,
            // Without any document there is a portal that shows everything.
            None if is_first_day => Portal {
                name: name.to_owned(),
                ..Portal::default()
            },
            None => return Err(Problem::not_found(format_args!("the portal '{name}'"))),
        };
        Ok(Self {
            api,
            portal,
            hooks: snapshot.list("apis/hooks/")?,
            applications: snapshot.list("apis/applications/")?,
        })
    }

    pub fn people(&self) -> &DeveloperStore {
        &self.api.developers
    }

    pub fn notices(&self) -> Notices<'_> {
        Notices {
            outbox: &self.api.options.outbox,
            hooks: self.hooks.clone(),
            portal: &self.portal,
        }
    }

    pub async fn developer(&self, id: &str, now: SystemTime) -> Result<Developer, Problem> {
        let found = self.people().developer(&self.portal.name, id, now).await?;
        found.ok_or_else(|| Problem::not_found(format_args!("the developer '{id}'")))
    }

    fn line(&self, developer: Developer, teams: &[Team]) -> DeveloperLine {
        let teams = teams.iter().filter_map(|team| {
            let role = *team.members.get(&developer.id)?;
            Some(DeveloperTeam {
                id: team.id.clone(),
                name: team.name.clone(),
                role,
            })
        });
        let owner = owner_name(&developer.id);
        let own = self.applications.iter().filter(|it| it.owner == owner);
        DeveloperLine {
            etag: tag_of(&developer),
            teams: teams.collect(),
            applications: own.map(|it| it.name.clone()).collect(),
            id: developer.id,
            mail: developer.mail,
            name: developer.name,
            state: developer.state,
            has_second_factor: developer.second_factor.is_some(),
            groups: developer.groups,
            provided: developer.provided,
            created: developer.created,
            decided: developer.decided.map(|it| DecisionLine {
                by: it.by,
                at: it.at,
                reason: it.reason,
            }),
        }
    }

    async fn answer(&self, developer: Developer, now: SystemTime) -> Result<Response, Problem> {
        let teams = self.people().teams(&self.portal.name, now).await?;
        let tag = tag_of(&developer);
        let answer = Json(self.line(developer, &teams)).into_response();
        Ok(with_tag(answer, Some(&tag)))
    }
}

async fn list(
    State(api): State<Arc<Api>>,
    Path(portal): Path<String>,
    Query(wanted): Query<DevelopersQuery>,
) -> Result<Json<DeveloperList>, Problem> {
    let now = SystemTime::now();
    let portal_context = PortalContext::of(&api, &portal).await?;
    let all = portal_context.people().all(&portal, now).await?;
    let is_waiting = |it: &Developer| it.state == DeveloperState::Confirmed;
    let waiting = all.iter().filter(|it| is_waiting(it)).count();
    let words = wanted.q.trim().to_lowercase();
    let is_found = |it: &Developer| {
        wanted.state.is_none_or(|state| it.state == state)
            && (it.mail.contains(&words) || it.name.to_lowercase().contains(&words))
    };
    let mut found: Vec<Developer> = all.into_iter().filter(is_found).collect();
    found.sort_by(|one, other| {
        let rank = |it: &Developer| (is_waiting(it), it.created);
        rank(other)
            .cmp(&rank(one))
            .then_with(|| one.mail.cmp(&other.mail))
    });
    let total = found.len();
    found.truncate(wanted.limit.unwrap_or(MAX_LISTED).clamp(1, MAX_LISTED));
    let teams = portal_context.people().teams(&portal, now).await?;
    let items = found
        .into_iter()
        .map(|it| portal_context.line(it, &teams))
        .collect();
    Ok(Json(DeveloperList {
        items,
        total,
        waiting,
    }))
}

async fn read(
    State(api): State<Arc<Api>>,
    Path((portal, id)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let now = SystemTime::now();
    let portal_context = PortalContext::of(&api, &portal).await?;
    let developer = portal_context.developer(&id, now).await?;
    portal_context.answer(developer, now).await
}

fn wrong(field: &str, message: impl Into<String>) -> Problem {
    Problem::step("check", vec![(field.to_owned(), message.into())])
}

fn named(name: &str) -> Result<String, Problem> {
    checked_name(name).map_err(|expected| wrong("name", expected))
}

fn checked_groups(groups: BTreeSet<String>) -> Result<BTreeSet<String>, Problem> {
    let is_good = |it: &String| {
        (1..=MAX_GROUP).contains(&it.chars().count()) && !it.contains(char::is_control) && it.trim() == it
    };
    match groups.len() <= MAX_GROUPS && groups.iter().all(is_good) {
        true => Ok(groups),
        false => {
            let expected = format!(
                "expected at most {MAX_GROUPS} names of 1 to {MAX_GROUP} characters without space around them"
            );
            Err(wrong("groups", expected))
        }
    }
}

/// Makes a developer. Who reads the mailbox sets the password, which confirms the address.
async fn create(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(portal): Path<String>,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<NewDeveloper>,
) -> Result<Response, Problem> {
    let now = SystemTime::now();
    let portal_context = PortalContext::of(&api, &portal).await?;
    let notices = portal_context.notices();
    let mail = mail_of(&wanted.mail).ok_or_else(|| wrong("mail", "expected a mail address"))?;
    let name = named(&wanted.name)?;
    let Some(url) = notices.url() else {
        let detail = format!("the mail to a developer has a link: set 'url' of the portal '{portal}' first");
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    };
    if !api.options.outbox.can_mail() {
        let detail = "the developer gets a mail with a link: give --smtp and --mail-from first";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail));
    }
    let developer = Developer {
        id: random_id()?,
        mail,
        name,
        password: None,
        state: DeveloperState::Registered,
        groups: checked_groups(wanted.groups)?,
        provided: BTreeSet::new(),
        second_factor: None,
        created: seconds(now),
        decided: Some(AdminDecision {
            by: caller.name(),
            at: seconds(now),
            reason: String::new(),
        }),
    };
    let exists = || {
        let detail = format!("there is a developer with the address {}", developer.mail);
        Problem::new(StatusCode::CONFLICT, detail)
    };
    if is_dry_run(&headers) {
        return match portal_context
            .people()
            .by_mail(&portal, &developer.mail, now)
            .await?
        {
            Some(_) => Err(exists()),
            None => Ok(tried((
                StatusCode::CREATED,
                portal_context.answer(developer, now).await?,
            ))),
        };
    }
    if !portal_context.people().add(&portal, &developer, now).await? {
        return Err(exists());
    }
    let purpose = Purpose::Welcome {
        developer: developer.id.clone(),
    };
    let link = portal_context.people().link(&portal, &purpose, now).await?;
    let text = format!(
        "{}\n\nyou have an account at {}. Open this link to set your password. It is good once, for a \
         week.\n\n{url}/reset#{}\n",
        greeting(&developer.name),
        notices.title(),
        link.token
    );
    let subject = format!("Your account: {}", notices.title());
    let mut writes = notices.mail("developer.created", &developer.mail, (subject, text), now)?;
    writes.extend(notices.event("developer.created", &developer, &caller.name(), now)?);
    api.options.operational.write(writes, now).await?;
    api.options.outbox.notify();
    Ok((StatusCode::CREATED, portal_context.answer(developer, now).await?).into_response())
}

async fn change(
    State(api): State<Arc<Api>>,
    Path((portal, id)): Path<(String, String)>,
    headers: HeaderMap,
    JsonBody(wanted): JsonBody<DeveloperChange>,
) -> Result<Response, Problem> {
    let now = SystemTime::now();
    let portal_context = PortalContext::of(&api, &portal).await?;
    let name = wanted.name.as_deref().map(named).transpose()?;
    let groups = wanted.groups.map(checked_groups).transpose()?;
    let edit = |developer: &mut Developer| {
        demand_version(&headers, developer)?;
        if let Some(name) = &name {
            developer.name.clone_from(name);
        }
        if let Some(groups) = &groups {
            developer.groups.clone_from(groups);
        }
        Ok(Vec::new())
    };
    let mut developer = portal_context.developer(&id, now).await?;
    if is_dry_run(&headers) {
        edit(&mut developer).map(|_: Vec<crate::operational::OperationalWrite>| ())?;
        return Ok(tried(portal_context.answer(developer, now).await?));
    }
    let developer = portal_context.people().change(&portal, &id, now, edit).await?;
    portal_context.answer(developer, now).await
}

async fn delete(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((portal, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let now = SystemTime::now();
    let portal_context = PortalContext::of(&api, &portal).await?;
    let developer = portal_context.developer(&id, now).await?;
    demand_version(&headers, &developer)?;
    let owner = owner_name(&developer.id);
    if let Some(own) = portal_context.applications.iter().find(|it| it.owner == owner) {
        let detail = format!(
            "the application '{}' belongs to this developer: give it to a team, or remove it first",
            own.name
        );
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    if is_dry_run(&headers) {
        return Ok(tried(StatusCode::NO_CONTENT));
    }
    portal_context
        .people()
        .remove_from_all(&portal, &developer, |it| demand_version(&headers, it), now)
        .await?;
    let notices = portal_context.notices();
    let text = format!(
        "{}\n\nyour account of {} was removed.\n",
        greeting(&developer.name),
        notices.title()
    );
    let subject = format!("Your account is removed: {}", notices.title());
    let mut writes = Vec::new();
    // A person who never confirmed the address may not be its owner.
    if developer.state != DeveloperState::Registered {
        writes.extend(notices.mail("developer.removed", &developer.mail, (subject, text), now)?);
    }
    writes.extend(notices.event("developer.removed", &developer, &caller.name(), now)?);
    api.options.operational.write(writes, now).await?;
    api.options.outbox.notify();
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn decide(
    decision: Decision,
    (State(api), Extension(caller)): (State<Arc<Api>>, Extension<Caller>),
    Path((portal, id)): Path<(String, String)>,
    headers: HeaderMap,
    JsonBody(Reason { reason }): JsonBody<Reason>,
) -> Result<Response, Problem> {
    let now = SystemTime::now();
    let portal_context = PortalContext::of(&api, &portal).await?;
    let reason = reason.trim().to_owned();
    if reason.is_empty() && decision.needs_reason() {
        return Err(wrong("reason", "expected a reason: the developer will see it"));
    }
    if reason.chars().count() > MAX_REASON {
        return Err(wrong(
            "reason",
            format!("expected at most {MAX_REASON} characters"),
        ));
    }
    let decided = AdminDecision {
        by: caller.name(),
        at: seconds(now),
        reason,
    };
    let refused = |(status, detail): (StatusCode, String)| Problem::new(status, detail);
    if is_dry_run(&headers) {
        let mut developer = portal_context.developer(&id, now).await?;
        demand_version(&headers, &developer)?;
        decision.apply(&mut developer, decided).map_err(refused)?;
        return Ok(tried(portal_context.answer(developer, now).await?));
    }
    let notices = portal_context.notices();
    let decide = |developer: &mut Developer| {
        demand_version(&headers, developer)?;
        decision.apply(developer, decided.clone()).map_err(refused)?;
        let mail = decision.mail(developer, (notices.title(), notices.url()));
        let mut writes = notices.mail(decision.event(), &developer.mail, mail, now)?;
        writes.extend(notices.event(decision.event(), developer, &decided.by, now)?);
        Ok(writes)
    };
    let developer = portal_context.people().change(&portal, &id, now, decide).await?;
    api.options.outbox.notify();
    if decision == Decision::Suspend {
        portal_context
            .people()
            .end_sessions(&portal, &id, |_| true, now)
            .await?;
    }
    portal_context.answer(developer, now).await
}
