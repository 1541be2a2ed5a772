//! Erasing a developer of a portal: the account with sessions, links and invitations, the applications that are no one
//! else's with their subscriptions, keys and webhooks, messages to and about the person, and the names that analytics
//! have of these applications. Counts stay, without a name.
//!
//! The account is suspended first, so that nothing is made meanwhile, and goes last: what fails half-way is asked for
//! again, and goes on where it stopped.
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
    Developer, DeveloperState, Inbox, Membership, Notices, Team, TeamRole, key, owner_name, random_id,
    team_owner_name,
};
use crate::outbox::{Delivery, Message, Webhook};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
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

/// Who goes.
struct Leaver {
    developer: Developer,
    memberships: Vec<Membership>,
    /// In whose names applications go, too.
    owners: BTreeSet<String>,
}

impl Leaver {
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

    /// What the answer says.
    fn erased(&self, owned: &Owned) -> Erased {
        let teams = self.memberships.iter().map(|it| it.team.name.clone());
        Erased {
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
fn check(caller: &Caller, portal: &str, owned: &Owned) -> Result<(), Problem> {
    let scopes = [Scope::Portal(portal.to_owned()), Scope::Everything];
    let may_remove = scopes.iter().any(|it| caller.can(Action::SubscriptionsWrite, it));
    if owned.applications.is_empty() || may_remove {
        return Ok(());
    }
    let why = refusal(caller, Action::SubscriptionsWrite, &scopes[..1]);
    Err(Problem::forbidden(format!(
        "the developer has applications: {why}"
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
    let leaver = Leaver::of(&api, who, now).await?;
    let owned = Owned::of(&api.library().await?, &leaver.owners)?;
    check(&caller, &portal, &owned)?;
    if is_dry_run(&headers) {
        let about = About::of((&portal, &leaver.developer), &owned.applications);
        let messages = outbox.list(now).await?;
        return Ok(tried(Json(Erased {
            links: people.links_of(&portal, &leaver.developer, now).await?.len(),
            messages: messages.iter().filter(|it| about.has(it)).count(),
            ..leaver.erased(&owned)
        })));
    }
    Leaver::lock_out(&api, who, now).await?;
    let leaver = Leaver::of(&api, who, now).await?;
    let (owned, renamed) = remove_owned(&api, (&caller, &headers), who, &leaver.owners, now).await?;
    let names = renamed.iter().map(|(name, _)| name.clone());
    // Those of consumers have a dot. An earlier attempt may have removed more than this one.
    let applications: Vec<String> = names.filter(|it| !it.contains('.')).collect();
    let mut erased = leaver.erased(&owned);
    erased.names = renamed.len();
    if let Some(analytics) = &api.options.analytics {
        let anonymised = analytics.with(move |kept| kept.store.anonymise(&renamed));
        anonymised.await.map_err(failed)?;
    }
    for membership in &leaver.memberships {
        leave(&api, &portal, membership, &id, now).await?;
    }
    let links = people.links_of(&portal, &leaver.developer, now).await?;
    erased.links = links.len();
    people.store.remove(links, now).await?;
    let about = About::of((&portal, &leaver.developer), &applications);
    erased.messages = outbox.forget(|it| about.has(it), now).await?;
    Inbox::forget(&people.store, &applications, now).await?;
    tell(&api, &portal, &leaver.developer, &caller, now).await?;
    people.remove(&portal, &leaver.developer, now).await?;
    let noted = [key(&portal, &format!("erasing/{id}"))?];
    people.store.remove(noted, now).await?;
    Ok(Json(erased).into_response())
}

/// Removes what belongs to these owners alone. Gives it, and the names that analytics are to forget.
async fn remove_owned(
    api: &Arc<Api>,
    (caller, headers): (&Caller, &HeaderMap),
    who: (&str, &str),
    owners: &BTreeSet<String>,
    now: SystemTime,
) -> Result<(Owned, Vec<(String, String)>), Problem> {
    let owned = Owned::of(&api.library().await?, owners)?;
    note_names(api, who, &owned, now).await?;
    let removed = api.manage(caller, headers, |library| {
        // A request that was under way may have made more.
        let owned = Owned::of(library, owners)?;
        check(caller, who.0, &owned)?;
        Ok(Done {
            note: "erase the applications of a developer".to_owned(),
            publications: owned.remove(library)?,
            answer: owned,
        })
    });
    let owned = removed.await?.answer;
    let renamed = note_names(api, who, &owned, now).await?;
    Ok((owned, renamed))
}

/// Kinds of messages about developers and what they have. Alerts, reports and approvals stay for all who get them: people
/// of the provider may have the same address.
const OF_DEVELOPERS: [&str; 8] = [
    "application.",
    "credential.",
    "developer.",
    "portal",
    "publication.",
    "subscription.",
    "team.",
    "webhook.",
];
/// Of these, mails to people of the provider.
const TO_PROVIDER: [&str; 3] = [
    "developer.confirmed",
    "publication.canary-taken-back",
    "subscription.requested",
];

/// Which messages go to a developer or say something of one.
struct About<'d> {
    portal: &'d str,
    developer: &'d Developer,
    /// The applications that are gone.
    applications: &'d [String],
}

impl<'d> About<'d> {
    fn of((portal, developer): (&'d str, &'d Developer), applications: &'d [String]) -> Self {
        Self {
            portal,
            developer,
            applications,
        }
    }

    fn has(&self, delivery: &Delivery) -> bool {
        let kind = delivery.kind.as_str();
        let is_of_developers = OF_DEVELOPERS.iter().any(|it| kind.starts_with(it));
        match &delivery.message {
            Message::Mail(mail) => {
                let is_theirs = is_of_developers && !TO_PROVIDER.contains(&kind);
                is_theirs && mail.to.eq_ignore_ascii_case(&self.developer.mail)
            }
            Message::Webhook(Webhook {
                of_application: Some((of, _)),
                ..
            }) if self.applications.contains(of) => true,
            Message::Webhook(hook) => is_of_developers && self.is_named_in(&hook.body),
        }
    }

    /// Whether a text in the body is the developer's name. Another portal may have somebody with the same address.
    fn is_named_in(&self, body: &str) -> bool {
        let Ok(body) = serde_json::from_str::<Value>(body) else {
            return false;
        };
        let Developer { id, mail, .. } = self.developer;
        let mut names = vec![id.clone(), owner_name(id), format!("developer {mail}")];
        match body["data"]["about"]["portal"].as_str() {
            Some(portal) if portal != self.portal => return false,
            Some(_) => names.push(mail.clone()),
            // Without a portal, an address alone may be one of the provider's people.
            None => {}
        }
        holds(&body, &names)
    }
}

/// Whether one of the texts in a value is one of these.
fn holds(value: &Value, texts: &[String]) -> bool {
    match value {
        Value::String(text) => texts.iter().any(|it| it.eq_ignore_ascii_case(text)),
        Value::Array(all) => all.iter().any(|it| holds(it, texts)),
        Value::Object(all) => all.values().any(|it| holds(it, texts)),
        _ => false,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::{DeliveryState, Mail};
    use serde_json::json;

    const MAIL: &str = "m@example.com";
    const ID: &str = "0123456789abcdef";

    fn delivery(kind: &str, message: Message) -> Delivery {
        Delivery {
            id: "1".to_owned(),
            kind: kind.to_owned(),
            message,
            state: DeliveryState::Waiting,
            created: 0,
            due: 0,
            attempts: Vec::new(),
        }
    }

    fn has(delivery: &Delivery) -> bool {
        let developer = Developer {
            id: ID.to_owned(),
            mail: MAIL.to_owned(),
            name: "M".to_owned(),
            password: None,
            state: DeveloperState::Active,
            groups: BTreeSet::new(),
            provided: BTreeSet::new(),
            created: 0,
            decided: None,
        };
        let applications = ["till".to_owned()];
        About::of(("main", &developer), &applications).has(delivery)
    }

    #[test]
    fn mails_of_the_provider_stay() {
        for (kind, to, expected) in [
            ("portal", MAIL, true),
            ("developer.created", "M@Example.com", true),
            ("subscription.accepted", MAIL, true),
            ("subscription.accepted", "tim@example.com", false),
            ("subscription.requested", MAIL, false),
            ("developer.confirmed", MAIL, false),
            ("approval.requested", MAIL, false),
            ("alert", MAIL, false),
            ("report", MAIL, false),
        ] {
            let mail = Mail {
                to: to.to_owned(),
                ..Mail::default()
            };
            let found = has(&delivery(kind, Message::Mail(mail)));
            assert_eq!(found, expected, "{kind} {to}");
        }
    }

    #[test]
    fn webhooks_about_others_stay() {
        let of = |portal: &str, mail: &str| json!({"data": {"about": {"portal": portal, "mail": mail}}});
        let by = |who: &str| json!({"by": who, "data": {"about": {"application": "other"}}});
        for (kind, body, application, expected) in [
            ("developer.created", of("main", MAIL), None, true),
            ("developer.created", of("main", "tim@example.com"), None, false),
            ("developer.created", of("other", MAIL), None, false),
            (
                "developer.removed",
                json!({"data": {"about": {"portal": "main", "developer": ID}}}),
                None,
                true,
            ),
            (
                "subscription.requested",
                by("developer m@example.com"),
                None,
                true,
            ),
            (
                "subscription.requested",
                by("developer tim@example.com"),
                None,
                false,
            ),
            // An operator with this name.
            ("subscription.accepted", by(MAIL), None, false),
            ("approval.requested", of("main", MAIL), None, false),
            ("alert", of("main", MAIL), None, false),
            ("publication.deprecated", json!({}), Some("till"), true),
            ("publication.deprecated", json!({}), Some("tills"), false),
        ] {
            let hook = Webhook {
                url: "https://hooks.example.com".to_owned(),
                secret: String::new(),
                body: body.to_string(),
                of_application: application.map(|it| (it.to_owned(), "mine".to_owned())),
            };
            let found = has(&delivery(kind, Message::Webhook(hook)));
            assert_eq!(found, expected, "{kind} {body} {application:?}");
        }
    }
}
