//! Erasing a developer of a portal: the account with sessions, links and invitations, the applications that are no one
//! else's with their subscriptions, keys and webhooks, messages to and about the person, and the names that analytics
//! have of these applications. Counts stay, without a name.
//!
//! The account goes last: what fails half-way is asked for again, and goes on where it stopped.
//!
//! **What it is not**: former revisions of the configuration and the audit log stay as they are, with who wrote them.

use super::access::affected;
use super::commit::Done;
use super::library::{Library, PREFIX, webhooks_of};

use crate::api::analytics::failed;
use crate::api::operation::refusal;

use crate::access::{Action, Caller, Scope};
use crate::api::writing::tried;
use crate::api::{Api, Problem, is_dry_run};
use crate::developers::{
    Developer, Membership, Notices, Team, TeamRole, key, owner_name, random_id, team_owner_name,
};
use crate::outbox::{Delivery, Message};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;
use weir_apis::entities::{Application, Credential, Hook, Portal, Subscription};
use weir_apis::render::consumer_of;

/// What was erased, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Erased {
    /// The applications that are gone.
    applications: Vec<String>,
    /// Their subscriptions.
    subscriptions: usize,
    /// The keys of these.
    credentials: usize,
    /// Teams that the developer has left.
    teams: Vec<String>,
    /// Links and invitations that are good for nothing any more.
    links: usize,
    /// Mails and webhooks to or about the developer, waiting or done.
    messages: usize,
    /// Names of consumers and applications that analytics have no more.
    names: usize,
}

/// What belongs to a developer, and to no one else.
struct Owned {
    applications: Vec<String>,
    subscriptions: Vec<Subscription>,
    credentials: Vec<String>,
}

impl Owned {
    fn of(library: &Library, owners: &BTreeSet<String>) -> Result<Self, Problem> {
        let all: Vec<Application> = library.list(&format!("{PREFIX}applications/"))?;
        let own = all.into_iter().filter(|it| owners.contains(&it.owner));
        let applications: Vec<String> = own.map(|it| it.name).collect();
        let all: Vec<Subscription> = library.list(&format!("{PREFIX}subscriptions/"))?;
        let own = all
            .into_iter()
            .filter(|it| applications.contains(&it.application));
        let subscriptions: Vec<Subscription> = own.collect();
        let all: Vec<Credential> = library.list(&format!("{PREFIX}credentials/"))?;
        let is_own = |it: &Credential| subscriptions.iter().any(|known| known.id == it.subscription);
        let credentials = all.into_iter().filter(is_own).map(|it| it.id).collect();
        Ok(Self {
            applications,
            subscriptions,
            credentials,
        })
    }

    /// Removes it. Gives the publications that change.
    fn remove(&self, library: &mut Library) -> Result<BTreeSet<String>, Problem> {
        let mut publications = BTreeSet::new();
        for it in &self.subscriptions {
            publications.extend(affected(library, &it.target())?);
        }
        for application in &self.applications {
            for key in library.keys(&webhooks_of(application)) {
                library.remove(key.as_str());
            }
        }
        let subscriptions = self.subscriptions.iter().map(|it| it.id.as_str());
        for (kind, name) in (self.applications.iter().map(|it| ("applications", it.as_str())))
            .chain(subscriptions.map(|it| ("subscriptions", it)))
            .chain(self.credentials.iter().map(|it| ("credentials", it.as_str())))
        {
            library.remove(&format!("{PREFIX}{kind}/{name}"));
        }
        Ok(publications)
    }
}

/// Names that analytics are to forget, each with the one that takes its place. It is kept until all is done.
#[derive(Default, Serialize, Deserialize)]
struct Renamed(BTreeMap<String, String>);

pub async fn erase(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((portal, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let now = SystemTime::now();
    let people = &api.developers;
    let developer = people.developer(&portal, &id, now).await?;
    let developer = developer.ok_or_else(|| Problem::not_found(format_args!("the developer '{id}'")))?;
    let memberships = people.memberships(&portal, &id, now).await?;
    let mut owners = BTreeSet::from([owner_name(&id)]);
    // A team of one is this developer.
    let alone = memberships.iter().filter(|it| it.team.members.len() == 1);
    owners.extend(alone.map(|it| team_owner_name(&it.team.id)));
    let owned = Owned::of(&api.library().await?, &owners)?;
    let scopes = [Scope::Portal(portal.clone()), Scope::Everything];
    let may_remove = scopes.iter().any(|it| caller.can(Action::SubscriptionsWrite, it));
    if !owned.applications.is_empty() && !may_remove {
        let why = refusal(&caller, Action::SubscriptionsWrite, &scopes[..1]);
        return Err(Problem::forbidden(format!(
            "the developer has applications: {why}"
        )));
    }
    let links = people.links_of(&portal, &developer, now).await?;
    let outbox = &api.options.outbox;
    let is_about = |it: &Delivery| concerns(it, &developer);
    let messages = outbox.list(now).await?;
    let mut erased = Erased {
        subscriptions: owned.subscriptions.len(),
        credentials: owned.credentials.len(),
        names: owned.applications.len() + owned.subscriptions.len(),
        applications: owned.applications.clone(),
        teams: memberships.iter().map(|it| it.team.name.clone()).collect(),
        links: links.len(),
        messages: messages.iter().filter(|it| is_about(it)).count(),
    };
    if is_dry_run(&headers) {
        return Ok(tried(Json(erased)));
    }
    let renamed = note_names(&api, (&portal, &id), &owned, now).await?;
    if !owned.applications.is_empty() {
        api.manage(&caller, &headers, |library| {
            Ok(Done {
                note: "erase the applications of a developer".to_owned(),
                publications: Owned::of(library, &owners)?.remove(library)?,
                answer: (),
            })
        })
        .await?;
    }
    erased.names = renamed.len();
    if let Some(analytics) = &api.options.analytics {
        let anonymised = analytics.with(move |kept| kept.store.anonymise(&renamed));
        anonymised.await.map_err(failed)?;
    }
    for membership in memberships {
        leave(&api, &portal, &membership, &id, now).await?;
    }
    people.store.remove(links, now).await?;
    erased.messages = outbox.forget(is_about, now).await?;
    tell(&api, &portal, &developer, &caller, now).await?;
    people.remove(&portal, &developer, now).await?;
    let noted = [key(&portal, &format!("erasing/{id}"))?];
    people.store.remove(noted, now).await?;
    Ok(Json(erased).into_response())
}

/// Whether a message goes to a developer or says something of one.
fn concerns(delivery: &Delivery, developer: &Developer) -> bool {
    match &delivery.message {
        Message::Mail(mail) => mail.to.eq_ignore_ascii_case(&developer.mail),
        Message::Webhook(hook) => hook.body.contains(&developer.mail) || hook.body.contains(&developer.id),
    }
}

/// Notes which names go, with those that an earlier attempt has noted.
async fn note_names(
    api: &Api,
    (portal, id): (&str, &str),
    owned: &Owned,
    now: SystemTime,
) -> Result<Vec<(String, String)>, Problem> {
    let (store, key) = (&api.developers.store, key(portal, &format!("erasing/{id}"))?);
    let known = store.read::<Renamed>(&key, now).await?;
    let mut renamed = known.map(|it| it.value).unwrap_or_default();
    let consumers = owned.subscriptions.iter().map(consumer_of);
    for name in owned.applications.iter().cloned().chain(consumers) {
        let place = renamed.0.len();
        renamed
            .0
            .entry(name)
            .or_insert(format!("removed-{}-{place}", &random_id()?[..8]));
    }
    store.put(&key, &renamed, (None, now)).await?;
    Ok(renamed.0.into_iter().collect())
}

/// Leaves a team. The last owner hands it to the member who may do most.
async fn leave(
    api: &Api,
    portal: &str,
    membership: &Membership,
    id: &str,
    now: SystemTime,
) -> Result<(), Problem> {
    let leave = |team: &mut Team| {
        let is_last = team.members.get(id) == Some(&TeamRole::Owner) && !team.has_other_owner(id);
        let was_member = team.members.remove(id).is_some();
        if is_last && let Some(heir) = team.members.values_mut().max_by_key(|role| **role) {
            *heir = TeamRole::Owner;
        }
        was_member
    };
    api.developers
        .change_team(portal, &membership.team.id, now, leave)
        .await?;
    Ok(())
}

/// Tells hooks that the developer is gone, by the id alone.
async fn tell(
    api: &Api,
    portal: &str,
    developer: &Developer,
    caller: &Caller,
    now: SystemTime,
) -> Result<(), Problem> {
    let library = api.library().await?;
    let known: Option<Portal> = library.find(&format!("{PREFIX}portals/{portal}"))?;
    let portal = known.unwrap_or_else(|| Portal {
        name: portal.to_owned(),
        ..Portal::default()
    });
    let hooks: Vec<Hook> = library.list(&format!("{PREFIX}hooks/"))?;
    let notices = Notices {
        outbox: &api.options.outbox,
        hooks,
        portal: &portal,
    };
    let nameless = Developer {
        mail: String::new(),
        name: String::new(),
        decided: None,
        ..developer.clone()
    };
    let writes = notices.event("developer.removed", &nameless, &caller.name(), now)?;
    if !writes.is_empty() {
        api.options.operational.write(writes, now).await?;
        api.options.outbox.notify();
    }
    Ok(())
}
