//! The values of secrets, as they were last had, and how vaults are asked for them. Which vault a reference means is
//! found elsewhere.

use super::reading::{Reading, SecretReadings, SecretState};
use super::syntaxes::field_of;
use crate::follow::{EngineEvent, Inputs};
use crate::http::{ClientRequest, HttpError, host_of};
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
/// How long somebody waits who asks for one value now.
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
/// Most secrets whose faults are told one by one when they are new; the others are counted.
const MAX_TOLD: usize = 8;

/// The values. Cheap to share.
#[derive(Clone, Default)]
pub struct Cache {
    known: Arc<Mutex<HashMap<SecretLocation, CachedSecret>>>,
    /// Where values are asked for; without it, only the environment is read.
    runtime: Option<Handle>,
}

/// Values are secrets.
impl std::fmt::Debug for Cache {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cache").finish_non_exhaustive()
    }
}

struct CachedSecret {
    /// What was last had; `None`: nothing yet.
    value: Option<String>,
    /// Why it could not be had the last time; `None`: it could, or there is no answer yet.
    fault: Option<String>,
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
            fault: None,
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
        let life = if self.fault.is_some() || self.value.is_none() {
            RETRY.min(self.life)
        } else {
            self.life
        };
        now.duration_since(self.asked) >= life
    }
}

/// What came of asking for some values.
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
    reason: String,
    /// Whether the vault lets its callers wait in vain, which costs each of them its whole timeout.
    is_silent: bool,
}

impl From<&str> for FetchError {
    fn from(reason: &str) -> Self {
        Self {
            reason: reason.to_owned(),
            is_silent: false,
        }
    }
}

impl From<HttpError> for FetchError {
    fn from(error: HttpError) -> Self {
        Self {
            reason: error.to_string(),
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
                Some(CachedSecret {
                    fault: Some(fault), ..
                }) => Err(fault.clone()),
                _ => Err(format!("{place:?} has not answered yet")),
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
                    Some(host) => self.failed(&place, format!("{host}: it is silent"), &mut round),
                    None => drop(asking.spawn(async move {
                        let value = fetch(&place).await;
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
                    self.failed(&place, fault.reason, &mut round);
                }
                // The runtime ends.
                Err(_) => {}
            }
        }
        if round.new_faults > 0 {
            let Round {
                faults, new_faults, ..
            } = round;
            tracing::warn!(faults, new_faults, "secrets cannot be had");
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
        (entry.value, entry.fault) = (Some(value), None);
    }

    fn failed(&self, place: &SecretLocation, reason: String, round: &mut Round) {
        let mut known = self.known();
        let Some(entry) = known.get_mut(place) else {
            return;
        };
        (entry.asked, entry.is_wanted, entry.failed) = (Instant::now(), false, Some(SystemTime::now()));
        round.faults += 1;
        if entry.fault.is_none() {
            round.new_faults += 1;
            if round.new_faults <= MAX_TOLD {
                tracing::warn!(secret = ?place, fault = %reason, is_known = entry.value.is_some(), "a secret cannot be had");
            }
        }
        entry.fault = Some(reason);
    }

    /// Keeps values fresh, and tells the engine of those that have changed, until the process ends.
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
                inputs.tell(EngineEvent::Secrets).await;
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
        let state = match (&held, &entry.fault) {
            (Some(Ok(())), None) => SecretState::Resolved,
            (Some(Ok(())), Some(_)) => SecretState::Stale,
            (None, None) => SecretState::Waiting,
            (Some(Err(_)), _) | (None, Some(_)) => SecretState::Missing,
        };
        Reading {
            state,
            reason: entry.fault.clone().or_else(|| held.and_then(Result::err)),
            read: entry.read,
            changed: entry.changed,
            failed: entry.failed,
        }
    }

    async fn read_now(&self, target: &SecretTarget) -> Reading {
        let now = SystemTime::now();
        let found = match &target.place {
            place @ SecretLocation::Variable(_) => {
                return Reading::of(self.get(place).and_then(|it| holds(&it, target)));
            }
            place @ SecretLocation::Http { .. } => {
                match tokio::time::timeout(TEST_TIMEOUT, fetch(place)).await {
                    Ok(found) => found.map_err(|fault| fault.reason),
                    Err(_late) => Err("the vault does not answer in time".to_owned()),
                }
            }
        };
        // A value that is known is changed by the rounds alone, which tell the engine.
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
        None => Err(format!("{:?} holds no such field", target.place)),
    }
}

/// Whom a place's vault is called.
fn host(place: &SecretLocation) -> Option<String> {
    match place {
        SecretLocation::Http { url, .. } => host_of(url).ok(),
        SecretLocation::Variable(_) => None,
    }
}

/// Asks a vault that speaks as HashiCorp's does, with secrets of version 1 or 2. Gives the secret's fields as JSON.
async fn fetch(place: &SecretLocation) -> Result<String, FetchError> {
    let SecretLocation::Http {
        url,
        token,
        namespace,
    } = place
    else {
        return Err("not kept in a vault".into());
    };
    let mut call = ClientRequest::get(url.clone()).header("x-vault-token", token.clone());
    call.max_body = MAX_ANSWER;
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
