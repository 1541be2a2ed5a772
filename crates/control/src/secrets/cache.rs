//! The values of secrets, as they were last had, and how vaults are asked for them. Which vault a reference means is
//! found elsewhere.

use super::reading::{Reading, SecretReadings, SecretState};
use super::syntaxes::field_of;
use crate::follow::{EngineEvent, Inputs};
use crate::http::{ClientRequest, HttpError, host_of};
use crate::webhook_addresses::WebhookAddressPolicy;
use async_trait::async_trait;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use weir_dialect::{SecretLocation, SecretTarget};

/// How long a compile waits for values that are not known yet.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long a caller waits who asks for one value now.
const TEST_TIMEOUT: Duration = Duration::from_secs(10);
/// How often is looked for values that are no longer fresh.
const TICK: Duration = Duration::from_secs(1);
/// How long a value that could not be had is not asked for again.
const RETRY: Duration = Duration::from_secs(5);
/// Most values that are kept. They stay as long as the process: whatever refers to one may come back.
const MAX_KNOWN: usize = 10_000;
/// Most values that are asked for at once.
const MAX_ASKED: usize = 32;
/// The largest answer of a vault, in bytes.
const MAX_ANSWER: usize = 1 << 20;
/// Why a secret is of no use that a vault gives.
pub(super) const NO_FIELD: &str = "the secret holds no such field";
/// Why a vault does not give a value, for those who may read documents. What came from the network is for the log alone: it
/// would reveal what is at an address.
const NOT_GIVEN: &str = "its vault does not return it; see Weir's log";
/// The same of a value that nothing served refers to.
const NOT_GIVEN_TO_TESTS: &str = "its vault does not return it; see Weir's log. Until the served configuration refers to it, Weir requests it only from public addresses and those of --webhook-allow";
/// Most secrets whose faults are logged one by one when they are new; the others are counted.
const MAX_LOGGED_FAULTS: usize = 8;

/// The values. Cheap to share.
#[derive(Clone, Default)]
pub struct Cache {
    known: Arc<Mutex<HashMap<SecretLocation, CachedSecret>>>,
    /// The runtime for asking vaults; without it, only the environment is read.
    runtime: Option<Handle>,
}

/// Values are secrets.
impl std::fmt::Debug for Cache {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cache").finish_non_exhaustive()
    }
}

struct CachedSecret {
    /// The last value; `None`: none yet.
    value: Option<String>,
    /// Whether it could not be had the last time.
    is_failing: bool,
    asked: Instant,
    life: Duration,
    /// Whether it is asked for with the next round, however fresh it is.
    is_wanted: bool,
    /// When it was last had, last another one than before, and last asked for in vain.
    read: Option<SystemTime>,
    changed: Option<SystemTime>,
    failed: Option<SystemTime>,
}

impl CachedSecret {
    fn new(now: Instant, life: Duration) -> Self {
        Self {
            value: None,
            is_failing: false,
            asked: now,
            life,
            is_wanted: false,
            read: None,
            changed: None,
            failed: None,
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        if self.is_wanted {
            return true;
        }
        let life = if self.is_failing || self.value.is_none() {
            RETRY.min(self.life)
        } else {
            self.life
        };
        now.duration_since(self.asked) >= life
    }
}

/// The outcome of asking for some values.
#[derive(Debug, Default, PartialEq, Eq)]
struct Round {
    /// Whether any is another one than before.
    is_other: bool,
    /// How many could not be had.
    faults: usize,
    /// Of these, those that could be had before, or were never asked for.
    new_faults: usize,
}

/// Why a value cannot be had.
struct FetchError {
    /// For the log.
    detail: String,
    /// Whether the vault lets its callers wait in vain, which costs each of them its whole timeout.
    is_silent: bool,
}

impl From<&str> for FetchError {
    fn from(detail: &str) -> Self {
        Self {
            detail: detail.to_owned(),
            is_silent: false,
        }
    }
}

impl From<HttpError> for FetchError {
    fn from(error: HttpError) -> Self {
        Self {
            detail: error.to_string(),
            is_silent: matches!(error, HttpError::Late(_)),
        }
    }
}

impl Cache {
    /// A cache that asks for values on this runtime.
    pub fn new(runtime: Handle) -> Self {
        Self {
            runtime: Some(runtime),
            ..Self::default()
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SecretLocation, CachedSecret>> {
        // Every change leaves it whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that values are wanted, and waits a moment for those that were never asked for.
    pub fn want(&self, leads: Vec<SecretTarget>) {
        let fresh = self.note(leads);
        if let (false, Some(runtime)) = (fresh.is_empty(), &self.runtime) {
            // What comes later comes with the next refresh.
            let _late = runtime.block_on(async { tokio::time::timeout(TIMEOUT, self.ask(fresh)).await });
        }
    }

    /// Notes that values are wanted; gives those that were never asked for.
    fn note(&self, leads: Vec<SecretTarget>) -> Vec<SecretLocation> {
        let now = Instant::now();
        let mut fresh = Vec::new();
        let mut known = self.known();
        for SecretTarget { place, life, .. } in leads {
            if !matches!(place, SecretLocation::Http { .. }) {
                continue;
            }
            if let Some(known) = known.get_mut(&place) {
                known.life = life;
            } else if known.len() < MAX_KNOWN {
                known.insert(place.clone(), CachedSecret::new(now, life));
                fresh.push(place);
            }
        }
        fresh
    }

    /// The value at a place.
    pub fn get(&self, place: &SecretLocation) -> Result<String, String> {
        match place {
            SecretLocation::Variable(name) => {
                std::env::var(name).map_err(|_| format!("{place:?} is not set"))
            }
            SecretLocation::Http { .. } => match self.known().get(place) {
                Some(CachedSecret {
                    value: Some(value), ..
                }) => Ok(value.clone()),
                Some(CachedSecret { is_failing: true, .. }) => Err(NOT_GIVEN.to_owned()),
                _ => Err("its vault has not answered yet".to_owned()),
            },
        }
    }

    /// Asks for values, so many at once. A vault that is silent is left alone for the rest of the round: what waits for
    /// it would hold up what other vaults have.
    async fn ask(&self, places: Vec<SecretLocation>) -> Round {
        let mut round = Round::default();
        let mut waiting = places.into_iter();
        let mut silent: HashSet<String> = HashSet::new();
        let mut asking = JoinSet::new();
        loop {
            while asking.len() < MAX_ASKED {
                let Some(place) = waiting.next() else { break };
                match host(&place).filter(|host| silent.contains(host)) {
                    Some(host) => self.failed(&place, &format!("{host}: no answer"), &mut round),
                    None => drop(asking.spawn(async move {
                        let value = fetch(&place, None).await;
                        (place, value)
                    })),
                }
            }
            let Some(asked) = asking.join_next().await else {
                break;
            };
            match asked {
                Ok((place, Ok(value))) => self.had(&place, value, &mut round),
                Ok((place, Err(fault))) => {
                    silent.extend(host(&place).filter(|_| fault.is_silent));
                    self.failed(&place, &fault.detail, &mut round);
                }
                // The runtime ends.
                Err(_) => {}
            }
        }
        if round.new_faults > 0 {
            let Round {
                faults, new_faults, ..
            } = round;
            tracing::warn!(faults, new_faults, "secrets are not available");
        }
        round
    }

    fn had(&self, place: &SecretLocation, value: String, round: &mut Round) {
        let mut known = self.known();
        let Some(entry) = known.get_mut(place) else {
            return;
        };
        let now = SystemTime::now();
        (entry.asked, entry.is_wanted, entry.read) = (Instant::now(), false, Some(now));
        if entry.value.as_ref() != Some(&value) {
            round.is_other = true;
            entry.changed = Some(now);
        }
        (entry.value, entry.is_failing) = (Some(value), false);
    }

    fn failed(&self, place: &SecretLocation, detail: &str, round: &mut Round) {
        let mut known = self.known();
        let Some(entry) = known.get_mut(place) else {
            return;
        };
        (entry.asked, entry.is_wanted, entry.failed) = (Instant::now(), false, Some(SystemTime::now()));
        round.faults += 1;
        if !entry.is_failing {
            round.new_faults += 1;
            if round.new_faults <= MAX_LOGGED_FAULTS {
                tracing::warn!(vault = ?place, path = path(place), fault = detail, is_known = entry.value.is_some(), "a secret is not available");
            }
        }
        entry.is_failing = true;
    }

    /// Keeps values fresh, and notifies the engine of those that have changed, until the process ends.
    pub async fn refresh(self, inputs: Inputs) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let now = Instant::now();
            let due: Vec<SecretLocation> = {
                let known = self.known();
                known
                    .iter()
                    .filter(|(_, it)| it.is_due(now))
                    .map(|(place, _)| place.clone())
                    .collect()
            };
            if !due.is_empty() && self.ask(due).await.is_other {
                inputs.send(EngineEvent::Secrets).await;
            }
        }
    }
}

#[async_trait]
impl SecretReadings for Cache {
    fn reading(&self, target: &SecretTarget) -> Reading {
        let known = self.known();
        let Some(entry) = known.get(&target.place) else {
            drop(known);
            return match target.place {
                SecretLocation::Variable(_) => {
                    Reading::of(self.get(&target.place).and_then(|it| holds(&it, target)))
                }
                SecretLocation::Http { .. } => Reading {
                    state: SecretState::Waiting,
                    ..Reading::of(Ok(()))
                },
            };
        };
        let held = entry.value.as_deref().map(|value| holds(value, target));
        let state = match (&held, entry.is_failing) {
            (Some(Ok(())), false) => SecretState::Resolved,
            (Some(Ok(())), true) => SecretState::Stale,
            (None, false) => SecretState::Waiting,
            (Some(Err(_)), _) | (None, true) => SecretState::Missing,
        };
        let fault = entry.is_failing.then(|| NOT_GIVEN.to_owned());
        Reading {
            state,
            reason: fault.or_else(|| held.and_then(Result::err)),
            read: entry.read,
            changed: entry.changed,
            failed: entry.failed,
        }
    }

    async fn read_now(&self, target: &SecretTarget, reach: &Arc<WebhookAddressPolicy>) -> Reading {
        let now = SystemTime::now();
        let found = match &target.place {
            place @ SecretLocation::Variable(_) => {
                return Reading::of(self.get(place).and_then(|it| holds(&it, target)));
            }
            place @ SecretLocation::Http { .. } => {
                // What is served is asked for anyway, at whatever address its vault is.
                let is_served = self.known().contains_key(place);
                let (reach, reason) = match is_served {
                    true => (None, NOT_GIVEN),
                    false => (Some(Arc::clone(reach)), NOT_GIVEN_TO_TESTS),
                };
                let asked = tokio::time::timeout(TEST_TIMEOUT, fetch(place, reach)).await;
                let found = asked.unwrap_or_else(|_late| Err("no answer in time".into()));
                found.map_err(|fault| {
                    let detail = fault.detail;
                    tracing::warn!(vault = ?place, path = path(place), fault = detail, "a tested secret is not available");
                    reason.to_owned()
                })
            }
        };
        // A value that is known is changed by the rounds alone, which notify the engine.
        if let Some(entry) = self.known().get_mut(&target.place) {
            entry.is_wanted = true;
        }
        let reading = Reading::of(found.and_then(|value| holds(&value, target)));
        match reading.state {
            SecretState::Resolved => Reading {
                read: Some(now),
                ..reading
            },
            _ => Reading {
                failed: Some(now),
                ..reading
            },
        }
    }
}

/// Whether a secret holds what is asked of it.
fn holds(secret: &str, target: &SecretTarget) -> Result<(), String> {
    match field_of(secret, target.field.as_deref()) {
        Some(_) => Ok(()),
        None => Err(NO_FIELD.to_owned()),
    }
}

/// Whom a place's vault is called.
fn host(place: &SecretLocation) -> Option<String> {
    match place {
        SecretLocation::Http { url, .. } => host_of(url).ok(),
        SecretLocation::Variable(_) => None,
    }
}

/// A place in its vault, for the log. Behind a `?` may stand what opens the vault.
fn path(place: &SecretLocation) -> Option<String> {
    let SecretLocation::Http { url, .. } = place else {
        return None;
    };
    let url: hyper::Uri = url.parse().ok()?;
    Some(url.path().to_owned())
}

/// Asks a vault that speaks as HashiCorp's does, with secrets of version 1 or 2, at the addresses of `reach` (`None`: at
/// all). Returns the secret's fields as JSON.
async fn fetch(
    place: &SecretLocation,
    reach: Option<Arc<WebhookAddressPolicy>>,
) -> Result<String, FetchError> {
    let SecretLocation::Http {
        url,
        token,
        namespace,
    } = place
    else {
        return Err("not kept in a vault".into());
    };
    let mut call = ClientRequest::get(url.clone()).header("x-vault-token", token.clone());
    (call.max_body, call.reach) = (MAX_ANSWER, reach);
    if let Some(namespace) = namespace {
        call = call.header("x-vault-namespace", namespace.clone());
    }
    let (status, body) = call.make().await?;
    if !status.is_success() {
        return Err(format!("the vault answers {status}").as_str().into());
    }
    let answer: Value = serde_json::from_slice(&body).map_err(|_| "the vault answers no JSON")?;
    let data = answer.get("data").ok_or("the vault answers without data")?;
    let is_versioned = data.get("metadata").is_some_and(Value::is_object);
    match data.get("data").filter(|_| is_versioned) {
        Some(inner) => Ok(inner.to_string()),
        None => Ok(data.to_string()),
    }
}

#[cfg(test)]
mod tests;
