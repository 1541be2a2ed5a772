//! The values of secrets, as they were last had.

use super::vaults::{Lead, Place};
use crate::follow::{Input, Inputs};
use crate::http::Call;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// How long a compile waits for values that are not known yet.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often is looked for values that are no longer fresh.
const TICK: Duration = Duration::from_secs(1);
/// How long a value that could not be had is not asked for again.
const RETRY: Duration = Duration::from_secs(5);
/// Most values that are kept. They stay as long as the process: whatever refers to one may come back.
const MAX_KNOWN: usize = 10_000;

/// The values. Cheap to share.
#[derive(Clone, Default)]
pub struct Cache {
    known: Arc<Mutex<HashMap<Place, Known>>>,
    /// Where values are asked for; without it, only the environment is read.
    runtime: Option<Handle>,
}

/// Values are secrets.
impl std::fmt::Debug for Cache {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cache").finish_non_exhaustive()
    }
}

struct Known {
    /// What was last had; `None`: nothing yet.
    value: Option<String>,
    /// Why it could not be had the last time.
    fault: Option<String>,
    asked: Instant,
    life: Duration,
}

impl Known {
    fn is_due(&self, now: Instant) -> bool {
        let life = if self.fault.is_some() {
            RETRY.min(self.life)
        } else {
            self.life
        };
        now.duration_since(self.asked) >= life
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

    fn known(&self) -> MutexGuard<'_, HashMap<Place, Known>> {
        // Every change leaves it whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that values are wanted, and waits a moment for those that were never asked for.
    pub fn want(&self, leads: Vec<Lead>) {
        let now = Instant::now();
        let mut fresh = Vec::new();
        {
            let mut known = self.known();
            let room = MAX_KNOWN.saturating_sub(known.len());
            for lead in leads
                .into_iter()
                .filter(|it| matches!(it.place, Place::Http { .. }))
            {
                match known.get_mut(&lead.place) {
                    Some(known) => known.life = lead.life,
                    None if fresh.len() < room => fresh.push(lead),
                    None => {}
                }
            }
            for lead in &fresh {
                let entry = Known {
                    value: None,
                    fault: Some("it was not asked for yet".to_owned()),
                    asked: now,
                    life: lead.life,
                };
                known.entry(lead.place.clone()).or_insert(entry);
            }
        }
        if let (false, Some(runtime)) = (fresh.is_empty(), &self.runtime) {
            let places = fresh.into_iter().map(|it| it.place).collect();
            // What comes later comes with the next refresh.
            let _late = runtime.block_on(async { tokio::time::timeout(PATIENCE, self.ask(places)).await });
        }
    }

    /// The value at a place.
    pub fn get(&self, place: &Place) -> Result<String, String> {
        match place {
            Place::Variable(name) => std::env::var(name).map_err(|_| format!("{place:?} is not set")),
            Place::Http { .. } => match self.known().get(place) {
                Some(Known {
                    value: Some(value), ..
                }) => Ok(value.clone()),
                Some(Known {
                    fault: Some(fault), ..
                }) => Err(fault.clone()),
                _ => Err(format!("{place:?} was not asked for")),
            },
        }
    }

    /// Asks for values; says whether any is another one than before.
    async fn ask(&self, places: Vec<Place>) -> bool {
        let mut asking = JoinSet::new();
        for place in places {
            asking.spawn(async move {
                let value = fetch(&place).await;
                (place, value)
            });
        }
        let mut is_other = false;
        while let Some(asked) = asking.join_next().await {
            let Ok((place, value)) = asked else { continue };
            let mut known = self.known();
            let Some(entry) = known.get_mut(&place) else {
                continue;
            };
            entry.asked = Instant::now();
            match value {
                Ok(value) => {
                    is_other |= entry.value.as_ref() != Some(&value);
                    (entry.value, entry.fault) = (Some(value), None);
                }
                Err(fault) => {
                    tracing::warn!(secret = ?place, %fault, is_known = entry.value.is_some(), "a secret cannot be had");
                    entry.fault = Some(fault);
                }
            }
        }
        is_other
    }

    /// Keeps values fresh, and tells the engine of those that have changed, until the process ends.
    pub async fn refresh(self, inputs: Inputs) {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let now = Instant::now();
            let due: Vec<Place> = {
                let known = self.known();
                known
                    .iter()
                    .filter(|(_, it)| it.is_due(now))
                    .map(|(place, _)| place.clone())
                    .collect()
            };
            if !due.is_empty() && self.ask(due).await {
                inputs.tell(Input::Secrets).await;
            }
        }
    }
}

/// Asks a vault that speaks as HashiCorp's does, with secrets of version 1 or 2. Gives the secret's fields as JSON.
async fn fetch(place: &Place) -> Result<String, String> {
    let Place::Http {
        url,
        token,
        namespace,
    } = place
    else {
        return Err("not kept in a vault".to_owned());
    };
    let mut call = Call::get(url.clone()).header("x-vault-token", token.clone());
    if let Some(namespace) = namespace {
        call = call.header("x-vault-namespace", namespace.clone());
    }
    let (status, body) = call.make().await.map_err(|error| error.to_string())?;
    if !status.is_success() {
        return Err(format!("the vault answers {status}"));
    }
    let answer: Value = serde_json::from_slice(&body).map_err(|_| "the vault answers no JSON".to_owned())?;
    let data = answer.get("data").ok_or("the vault answers without data")?;
    let is_versioned = data.get("metadata").is_some_and(Value::is_object);
    match data.get("data").filter(|_| is_versioned) {
        Some(inner) => Ok(inner.to_string()),
        None => Ok(data.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    /// A vault that answers so many calls, each with its own body, and is gone then.
    fn vault(bodies: &'static [(u16, &'static str)]) -> Place {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        std::thread::spawn(move || {
            for (status, body) in bodies {
                let (mut stream, _) = listener.accept().expect("a call");
                let mut lines = BufReader::new(stream.try_clone().expect("a stream")).lines();
                let has_token = lines
                    .by_ref()
                    .map_while(Result::ok)
                    .take_while(|line| !line.is_empty())
                    .any(|line| line == "x-vault-token: t");
                assert!(has_token);
                let length = body.len();
                let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).expect("sent");
            }
        });
        Place::Http {
            url: format!("http://{address}/v1/kv/jack"),
            token: "t".to_owned(),
            namespace: None,
        }
    }

    #[test]
    fn the_last_good_value_stays() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let place = vault(&[
            (200, r#"{"data":{"key":"one"}}"#),
            (200, r#"{"data":{"data":{"key":"two"},"metadata":{"version":2}}}"#),
            (403, "{}"),
        ]);
        let cache = Cache::new(runtime.handle().clone());
        assert!(cache.get(&place).is_err());
        cache.want(vec![Lead {
            place: place.clone(),
            field: None,
            life: Duration::from_secs(60),
        }]);
        assert_eq!(cache.get(&place).as_deref(), Ok(r#"{"key":"one"}"#));
        let ask = || runtime.block_on(cache.ask(vec![place.clone()]));
        assert!(ask(), "another value");
        // Refused, and gone.
        for _ in 0..2 {
            assert!(!ask());
            assert_eq!(cache.get(&place).as_deref(), Ok(r#"{"key":"two"}"#));
        }
    }
}
