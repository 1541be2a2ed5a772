//! Erasing a developer of a portal: the account with sessions, links and invitations, the applications that are no one
//! else's with their subscriptions, keys and webhooks, messages to and about the person, and the names that analytics
//! have of these applications. Counts stay, without a name.
//!
//! The account is suspended first, so that nothing is made meanwhile, and goes last: what fails half-way is asked for
//! again, and continues from the point where it stopped.
//!
//! **What it is not**: former revisions of the configuration and the audit log stay as they are, with who wrote them.

use super::access::affected_by;
use super::entity_snapshot::{EntitySnapshot, PREFIX, webhooks_of};
use super::erasing_messages::DeveloperMessages;
use super::erasing_names::{RenameTable, note_names};
use super::write_effects::WriteEffects;
use crate::api::json_body::Json;

use crate::api::analytics::failed;
use crate::api::operation::refusal;

use crate::access::{Action, Caller, Scope};
use crate::api::writing::tried;
use crate::api::{Api, Problem, is_dry_run};
use crate::developers::{
    Developer, DeveloperState, Inbox, Membership, Notices, Team, TeamRole, key, owner_name, team_owner_name,
};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;
use weir_apis::entities::{Application, Credential, Hook, Portal, Subscription};

/// The data that was erased, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErasureSummary {
    /// The applications that are gone.
    applications: Vec<String>,
    /// Their subscriptions.
    subscriptions: usize,
    /// The keys of these.
    credentials: usize,
    /// Teams that the developer has left.
    teams: Vec<String>,
    /// Links and invitations that are no longer valid.
    links: usize,
    /// Mails and webhooks to or about the developer, waiting or done.
    messages: usize,
    /// Names of consumers and applications that analytics have no more.
    names: usize,
}

/// The data that belongs to a developer, and to no one else.
struct DeveloperData {
    applications: Vec<String>,
    subscriptions: Vec<Subscription>,
    credentials: Vec<String>,
}

impl DeveloperData {
    fn of(snapshot: &EntitySnapshot, owners: &BTreeSet<String>) -> Result<Self, Problem> {
        let all: Vec<Application> = snapshot.list(&format!("{PREFIX}applications/"))?;
        let own = all.into_iter().filter(|it| owners.contains(&it.owner));
        let applications: Vec<String> = own.map(|it| it.name).collect();
        let all: Vec<Subscription> = snapshot.list(&format!("{PREFIX}subscriptions/"))?;
        let own = all
            .into_iter()
            .filter(|it| applications.contains(&it.application));
        let subscriptions: Vec<Subscription> = own.collect();
        let all: Vec<Credential> = snapshot.list(&format!("{PREFIX}credentials/"))?;
        let is_own = |it: &Credential| subscriptions.iter().any(|known| known.id == it.subscription);
        let credentials = all.into_iter().filter(is_own).map(|it| it.id).collect();
        Ok(Self {
            applications,
            subscriptions,
            credentials,
        })
    }

    /// Removes it. Returns the publications that change.
    fn remove(&self, snapshot: &mut EntitySnapshot) -> Result<BTreeSet<String>, Problem> {
        let publications = affected_by(snapshot, self.subscriptions.iter())?;
        for application in &self.applications {
            for key in snapshot.keys(&webhooks_of(application)) {
                snapshot.remove(key.as_str());
            }
        }
        let subscriptions = self.subscriptions.iter().map(|it| it.id.as_str());
        for (kind, name) in (self.applications.iter().map(|it| ("applications", it.as_str())))
            .chain(subscriptions.map(|it| ("subscriptions", it)))
            .chain(self.credentials.iter().map(|it| ("credentials", it.as_str())))
        {
            snapshot.remove(&format!("{PREFIX}{kind}/{name}"));
        }
        Ok(publications)
    }
}

/// The developer who goes.
struct DepartingDeveloper {
    developer: Developer,
    memberships: Vec<Membership>,
    /// In whose names applications go, too.
    owners: BTreeSet<String>,
}

impl DepartingDeveloper {
    async fn of(api: &Api, (portal, id): (&str, &str), now: SystemTime) -> Result<Self, Problem> {
        let people = &api.developers;
        let developer = people.developer(portal, id, now).await?;
        let developer = developer.ok_or_else(|| Problem::not_found(format_args!("the developer '{id}'")))?;
        let memberships = people.memberships(portal, id, now).await?;
        let mut owners = BTreeSet::from([owner_name(id)]);
        // A team of one is this developer.
        let alone = memberships.iter().filter(|it| it.team.members.len() == 1);
        owners.extend(alone.map(|it| team_owner_name(&it.team.id)));
        Ok(Self {
            developer,
            memberships,
            owners,
        })
    }

    /// Suspends the account: what is made meanwhile would stay.
    async fn lock_out(api: &Api, (portal, id): (&str, &str), now: SystemTime) -> Result<(), Problem> {
        let people = &api.developers;
        let suspend = |it: &mut Developer| {
            it.state = DeveloperState::Suspended;
            Ok(Vec::new())
        };
        people.change(portal, id, now, suspend).await?;
        people.end_sessions(portal, id, |_| true, now).await
    }

    /// The summary for the answer.
    fn erased(&self, owned: &DeveloperData) -> ErasureSummary {
        let teams = self.memberships.iter().map(|it| it.team.name.clone());
        ErasureSummary {
            applications: owned.applications.clone(),
            subscriptions: owned.subscriptions.len(),
            credentials: owned.credentials.len(),
            teams: teams.collect(),
            links: 0,
            messages: 0,
            names: owned.applications.len() + owned.subscriptions.len(),
        }
    }
}

/// Whether the caller may remove what belongs to a developer.
fn check(caller: &Caller, portal: &str, owned: &DeveloperData) -> Result<(), Problem> {
    let scopes = [Scope::Portal(portal.to_owned()), Scope::Everything];
    let may_remove = scopes.iter().any(|it| caller.can(Action::SubscriptionsWrite, it));
    if owned.applications.is_empty() || may_remove {
        return Ok(());
    }
    let reason = refusal(caller, Action::SubscriptionsWrite, &scopes[..1]);
    Err(Problem::forbidden(format!(
        "the developer has applications: {reason}"
    )))
}

pub async fn erase(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((portal, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let now = SystemTime::now();
    let (people, outbox) = (&api.developers, &api.options.outbox);
    let who = (portal.as_str(), id.as_str());
    let leaver = DepartingDeveloper::of(&api, who, now).await?;
    let owned = DeveloperData::of(&api.snapshot().await?, &leaver.owners)?;
    check(&caller, &portal, &owned)?;
    if is_dry_run(&headers) {
        let about =
            DeveloperMessages::of(&api, (&portal, &leaver.developer), &owned.applications, now).await?;
        let messages = outbox.list(now).await?;
        return Ok(tried(Json(ErasureSummary {
            links: people.links_of(&portal, &leaver.developer, now).await?.len(),
            messages: messages.iter().filter(|it| about.has(it)).count(),
            ..leaver.erased(&owned)
        })));
    }
    DepartingDeveloper::lock_out(&api, who, now).await?;
    let leaver = DepartingDeveloper::of(&api, who, now).await?;
    let (owned, renamed) = remove_owned(&api, (&caller, &headers), who, &leaver.owners, now).await?;
    // An earlier attempt may have removed more than this one.
    let applications: Vec<String> = renamed.applications().map(|(name, _)| name.clone()).collect();
    let mut erased = leaver.erased(&owned);
    erased.names = renamed.len();
    if let Some(analytics) = &api.options.analytics {
        let names = renamed.new_names(&api).await?;
        let anonymised = analytics.with(move |kept| kept.store.anonymise(&names));
        anonymised.await.map_err(failed)?;
    }
    for membership in &leaver.memberships {
        leave(&api, &portal, membership, &id, now).await?;
    }
    let links = people.links_of(&portal, &leaver.developer, now).await?;
    erased.links = links.len();
    people.store.remove(links, now).await?;
    let about = DeveloperMessages::of(&api, (&portal, &leaver.developer), &applications, now).await?;
    erased.messages = outbox.forget(|it| about.has(it), now).await?;
    Inbox::forget(&people.store, &applications, now).await?;
    notify_hooks(&api, &portal, &leaver.developer, &caller, now).await?;
    people.remove(&portal, &leaver.developer, now).await?;
    let noted = [key(&portal, &format!("erasing/{id}"))?];
    people.store.remove(noted, now).await?;
    Ok(Json(erased).into_response())
}

/// Removes what belongs to these owners alone. Returns it, and the names that analytics are to forget.
async fn remove_owned(
    api: &Arc<Api>,
    (caller, headers): (&Caller, &HeaderMap),
    who: (&str, &str),
    owners: &BTreeSet<String>,
    now: SystemTime,
) -> Result<(DeveloperData, RenameTable), Problem> {
    let owned = DeveloperData::of(&api.snapshot().await?, owners)?;
    note_names(api, who, (&owned.applications, &owned.subscriptions), now).await?;
    let removed = api.manage(caller, headers, |snapshot| {
        // A request that was under way may have made more.
        let owned = DeveloperData::of(snapshot, owners)?;
        check(caller, who.0, &owned)?;
        Ok(WriteEffects {
            note: "erase the applications of a developer".to_owned(),
            publications: owned.remove(snapshot)?,
            answer: owned,
        })
    });
    let owned = removed.await?.answer;
    let renamed = note_names(api, who, (&owned.applications, &owned.subscriptions), now).await?;
    Ok((owned, renamed))
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

/// Notifies hooks that the developer is gone, by the id alone.
async fn notify_hooks(
    api: &Api,
    portal: &str,
    developer: &Developer,
    caller: &Caller,
    now: SystemTime,
) -> Result<(), Problem> {
    let snapshot = api.snapshot().await?;
    let known: Option<Portal> = snapshot.find(&format!("{PREFIX}portals/{portal}"))?;
    let portal = known.unwrap_or_else(|| Portal {
        name: portal.to_owned(),
        ..Portal::default()
    });
    let hooks: Vec<Hook> = snapshot.list(&format!("{PREFIX}hooks/"))?;
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
