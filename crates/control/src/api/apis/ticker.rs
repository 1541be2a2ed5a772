//! The work that is due by time: keys expire, subscriptions end and are announced before, plans are closed, sunsets are
//! enforced, canaries get their next share or are taken back by a guard. Each change of a publication is one commit in
//! the name of `weir`.
//!
//! One control plane at a time does this, by a lease. What is due shows in the documents themselves, and each commit
//! checks it again at the revision that it is made on: so nothing is done twice, not even while a lease changes hands.

use super::access::affected;
use super::entity_snapshot::{self, EntitySnapshot, PREFIX};
use super::guards::{self, GuardViolation};
use super::plans;
use super::write_effects::WriteEffects;
use crate::api::{Api, Problem};
use crate::lease;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use weir_apis::due::{self, DueAction};
use weir_apis::entities::{
    Canary, CanaryRollback, Credential, HistoryItem, Plan, Publication, Subscription, SubscriptionState,
};
use weir_model::unix_time;
use weir_store::StoreError;

/// In whose name it acts.
const AUTHOR: &str = "weir";
/// How long it sleeps at most, and how often guards are judged.
const INTERVAL: Duration = Duration::from_secs(10);
/// For how long one control plane acts before it says so again.
const LEASE: Duration = Duration::from_secs(20);
/// The lease's name.
const LEASE_NAME: &str = "ticker";
/// How long it waits after a failure.
const PAUSE: Duration = Duration::from_secs(2);
/// The kinds of documents that it looks at.
const KINDS: [&str; 5] = [
    "publications/",
    "plans/",
    "product-plans/",
    "subscriptions/",
    "credentials/",
];

/// The work on a store that is due by time.
pub struct Ticker {
    api: Arc<Api>,
    /// The name of this process among control planes.
    holder: String,
    /// Up to when what begins and ends was rendered.
    since: Option<u64>,
}

/// The entities that time changes.
struct Entities {
    publications: Vec<Publication>,
    plans: Vec<Plan>,
    subscriptions: Vec<Subscription>,
    credentials: Vec<Credential>,
}

impl Entities {
    async fn read(api: &Api) -> Result<Self, Problem> {
        let mut documents = Vec::new();
        for kind in KINDS {
            documents.extend(api.store.read(&format!("{PREFIX}{kind}")).await?.0);
        }
        Self::of(&EntitySnapshot::new(documents))
    }

    fn of(snapshot: &EntitySnapshot) -> Result<Self, Problem> {
        Ok(Self {
            publications: snapshot.list(&format!("{PREFIX}publications/"))?,
            plans: {
                let mut plans: Vec<Plan> = snapshot.list(&format!("{PREFIX}plans/"))?;
                plans.extend(snapshot.list::<Plan>(&format!("{PREFIX}product-plans/"))?);
                plans
            },
            subscriptions: snapshot.list(&format!("{PREFIX}subscriptions/"))?,
            credentials: snapshot.list(&format!("{PREFIX}credentials/"))?,
        })
    }

    fn input(&self) -> due::Input<'_> {
        due::Input {
            publications: &self.publications,
            plans: &self.plans,
            subscriptions: &self.subscriptions,
            credentials: &self.credentials,
        }
    }
}

impl Ticker {
    /// Over the store of an API, in a process of this name.
    pub fn new(api: Arc<Api>, holder: impl Into<String>) -> Self {
        Self {
            api,
            holder: holder.into(),
            since: None,
        }
    }

    /// Does what is due as soon as it is, until the process ends.
    ///
    /// # Errors
    /// The store cannot be followed.
    pub async fn run(mut self, now: fn() -> u64) -> Result<(), StoreError> {
        let store = Arc::clone(&self.api.store);
        let (_, _, mut following) = weir_store::follow::start(store, PREFIX).await?;
        loop {
            let pause = match self.turn(now()).await {
                Ok(Some(next)) => Duration::from_secs(next.saturating_sub(now())).min(INTERVAL),
                Ok(None) => INTERVAL,
                Err(problem) => {
                    tracing::warn!(%problem, "scheduled changes cannot be made; retrying");
                    PAUSE
                }
            };
            let wake = tokio::time::sleep(pause);
            tokio::pin!(wake);
            loop {
                tokio::select! {
                    () = &mut wake => break,
                    changes = following.next() => {
                        let is_ours = |key: &str| KINDS.iter().any(|it| key[PREFIX.len()..].starts_with(it));
                        if changes.documents.iter().any(|(key, _)| is_ours(key.as_str())) {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Does what is due, if no other control plane does.
    async fn turn(&mut self, now: u64) -> Result<Option<u64>, Problem> {
        let operational = &self.api.options.operational;
        let time = unix_time::from_seconds(now);
        match lease::hold(operational, LEASE_NAME, (&self.holder, LEASE), time).await? {
            true => self.tick(now).await,
            false => Ok(None),
        }
    }

    /// Does what is due at a time. Returns the time at which something is due next.
    ///
    /// # Errors
    /// The store failed, or something that is due cannot be done; all else is done nevertheless.
    pub async fn tick(&mut self, now: u64) -> Result<Option<u64>, Problem> {
        let entities = Entities::read(&self.api).await?;
        let mut failed = None;
        for id in due::due(&entities.input(), self.since, now).into_keys() {
            if let Err(problem) = self.advance(&id, now).await {
                failed = Some(problem.about(&id));
            }
        }
        if let Err(problem) = self.guard(&entities.publications, now).await {
            failed = Some(problem);
        }
        match failed {
            Some(problem) => Err(problem),
            None => {
                self.since = Some(now);
                Ok(due::next(&Entities::read(&self.api).await?.input(), now))
            }
        }
    }

    /// Does what is due for a publication.
    async fn advance(&self, id: &str, now: u64) -> Result<(), Problem> {
        let since = self.since;
        self.api
            .manage_at(AUTHOR, now, |snapshot| {
                let entities = Entities::of(snapshot)?;
                let due = due::due(&entities.input(), since, now)
                    .remove(id)
                    .unwrap_or_default();
                let notes = apply(snapshot, id, &due, now)?;
                Ok(WriteEffects {
                    note: format!("by time: {}", notes.join("; ")),
                    publications: targets(snapshot, id)?,
                    answer: (),
                })
            })
            .await?;
        Ok(())
    }

    /// Takes back canaries that are beyond a guard.
    async fn guard(&self, publications: &[Publication], now: u64) -> Result<(), Problem> {
        let guarded: Vec<Publication> = publications
            .iter()
            .filter(|it| it.canary.as_ref().is_some_and(|canary| !canary.guards.is_empty()))
            .cloned()
            .collect();
        let (Some(analytics), false) = (&self.api.options.analytics, guarded.is_empty()) else {
            return Ok(());
        };
        let snapshot = self.api.snapshot().await?;
        let rules = guards::rules(&snapshot, &guarded, now)?;
        let beyond = guards::beyond(analytics, rules, now).await;
        let beyond =
            beyond.map_err(|error| Problem::unreadable(format!("guards cannot be judged: {error}")))?;
        for (id, beyond) in beyond {
            let started: BTreeMap<String, u64> = guarded
                .iter()
                .filter_map(|it| Some((it.id(), it.canary.as_ref()?.started)))
                .collect();
            self.take_back(&id, started.get(&id).copied(), &beyond, now)
                .await?;
        }
        Ok(())
    }

    /// Takes a canary back, if it is still the one that was judged.
    async fn take_back(
        &self,
        id: &str,
        started: Option<u64>,
        beyond: &GuardViolation,
        now: u64,
    ) -> Result<(), Problem> {
        let reason = &beyond.reason();
        let written = self
            .api
            .manage_at(AUTHOR, now, |snapshot| {
                let mut publication = snapshot.publication(id)?;
                let is_it = |it: &Canary| Some(it.started) == started;
                if !publication.canary.as_ref().is_some_and(is_it) {
                    return Ok(WriteEffects::quiet("", false));
                }
                publication.canary_rollback = publication.canary.take().map(|canary| CanaryRollback {
                    revision: canary.revision,
                    guard: beyond.guard.clone(),
                    value: beyond.value,
                    at: now,
                });
                note(&mut publication, "canary rolled back", reason, now);
                snapshot.put(&entity_snapshot::publication_key(id), &publication)?;
                Ok(WriteEffects {
                    note: format!("the canary of {id} is rolled back: {reason}"),
                    publications: BTreeSet::from([id.to_owned()]),
                    answer: true,
                })
            })
            .await?;
        if written.answer {
            tracing::warn!(publication = id, reason, "a canary was rolled back by its guard");
        }
        Ok(())
    }
}

/// The publications to render for work that is due.
fn targets(snapshot: &EntitySnapshot, id: &str) -> Result<BTreeSet<String>, Problem> {
    match snapshot.find::<Plan>(id)? {
        Some(plan) => plans::targets(snapshot, &plan),
        None => affected(snapshot, id),
    }
}

fn note(publication: &mut Publication, action: &str, note: &str, now: u64) {
    publication.note(HistoryItem {
        action: action.to_owned(),
        revision: publication.revision,
        hash: publication.hash.clone(),
        by: AUTHOR.to_owned(),
        at: now,
        note: note.to_owned(),
        ..HistoryItem::default()
    });
}

/// Changes what is due. Returns what was done, in words.
fn apply(
    snapshot: &mut EntitySnapshot,
    id: &str,
    due: &BTreeSet<DueAction>,
    now: u64,
) -> Result<Vec<String>, Problem> {
    let mut notes = Vec::new();
    for due in due {
        match due {
            DueAction::Ended(name) => {
                let key = entity_snapshot::subscription_key(name);
                let mut subscription: Subscription = snapshot.get(&key)?;
                subscription.state = SubscriptionState::Expired;
                subscription.reason = "its time is over".to_owned();
                snapshot.put(&key, &subscription)?;
                notes.push(format!(
                    "the subscription {name} of {} has ended",
                    subscription.application
                ));
            }
            DueAction::Notice(name, days) => {
                let key = entity_snapshot::subscription_key(name);
                let mut subscription: Subscription = snapshot.get(&key)?;
                subscription.noticed = Some(*days);
                snapshot.put(&key, &subscription)?;
                notes.push(format!(
                    "the subscription {name} of {} has had the notice of {days} days before its end",
                    subscription.application
                ));
            }
            DueAction::ClosePlan => notes.push(plans::close_by_time(snapshot, id)?),
            DueAction::Sunset => {
                let mut publication = snapshot.publication(id)?;
                publication.retired = true;
                publication.canary = None;
                note(&mut publication, "sunset", "its sunset date has passed", now);
                snapshot.put(&entity_snapshot::publication_key(id), &publication)?;
                notes.push(format!("{id} answers 410 from now on"));
            }
            DueAction::Share(share) => {
                let mut publication = snapshot.publication(id)?;
                if let Some(canary) = &mut publication.canary {
                    canary.share = *share;
                }
                note(&mut publication, "canary step", &format!("share {share}"), now);
                snapshot.put(&entity_snapshot::publication_key(id), &publication)?;
                notes.push(format!(
                    "the canary of {id} gets {}.{:02} %",
                    share / 100,
                    share % 100
                ));
            }
            DueAction::Render => notes.push(format!("keys or subscriptions of {id} begin or end")),
        }
    }
    Ok(notes)
}

#[cfg(test)]
mod tests;
