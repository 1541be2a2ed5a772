//! What a gateway reports about itself for the list of gateways.

use crate::api::{DRAINS, GatewayReport, Gateways, ReportResponse};
use crate::follow::{Contact, OpenStore, StateHandle};
use crate::http::ClientRequest;
use hyper::Method;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_store::{Change, Key, Store, Transaction};

/// How often it says so at least.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long a report stays in a store.
const LIFE: Duration = Duration::from_secs(120);

/// To whom.
#[derive(Clone)]
pub enum ReportTarget {
    /// To a list in this process.
    Here(Gateways),
    /// To a control plane.
    Control {
        /// Where it is.
        url: String,
        /// The token for it.
        token: Option<String>,
    },
    /// Into the store that is followed.
    Store(OpenStore),
}

/// Who says so.
#[derive(Debug, Clone)]
pub struct ReporterInfo {
    /// The gateway's name.
    pub name: String,
    /// Where it takes calls.
    pub address: String,
    /// The version of the program.
    pub version: &'static str,
    /// The environments whose documents it serves.
    pub environments: Vec<String>,
}

/// Reports after every change, and now and then without one, until the process ends. `drain` is told whether the gateway is
/// taken out, each time that it hears so.
pub async fn report(
    reporter: ReporterInfo,
    followed: StateHandle,
    target: ReportTarget,
    drain: impl Fn(bool) + Send + Sync,
) {
    let mut changed = followed.subscribe();
    // A report in the store is a commit, of which the gateway hears in turn.
    let pause = match target {
        ReportTarget::Here(_) | ReportTarget::Control { .. } => Duration::from_millis(200),
        ReportTarget::Store(_) => Duration::from_secs(2),
    };
    let mut said: Option<GatewayReport> = None;
    let mut is_out = false;
    loop {
        let report = reporter.report(&followed, is_out);
        let is_due = said.as_ref().is_none_or(|said| {
            let is_other =
                said.hash != report.hash || said.state != report.state || said.left_out != report.left_out;
            // In a store, a revision that changes nothing else may be that of the last report.
            let is_further = !matches!(target, ReportTarget::Store(_)) && said.revision != report.revision;
            is_other || is_further || report.time.saturating_sub(said.time) >= INTERVAL.as_millis() as u64
        });
        if is_due {
            match target.say(&reporter.name, &report).await {
                Ok(answer) => {
                    said = Some(report);
                    if answer.drain != is_out {
                        is_out = answer.drain;
                        tracing::info!(is_out, "this gateway is taken out, or back");
                        drain(is_out);
                        // It says so at once.
                        continue;
                    }
                }
                Err(error) => tracing::debug!(%error, "this gateway's report is not taken"),
            }
        }
        tokio::time::sleep(pause).await;
        // No change for a while is no error.
        let _late = tokio::time::timeout(INTERVAL, changed.changed()).await;
    }
}

impl ReporterInfo {
    fn report(&self, followed: &StateHandle, is_out: bool) -> GatewayReport {
        let state = followed.state();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        GatewayReport {
            revision: state.revision.0,
            hash: state.hash.clone(),
            left_out: state.left_out.len(),
            state: match (is_out, state.is_last_known_good, &state.contact) {
                (true, ..) => "draining",
                (_, true, _) => "last-known-good",
                (_, false, Contact::Away { .. }) => "store-away",
                (_, false, _) => "serving",
            }
            .to_owned(),
            version: self.version.to_owned(),
            address: self.address.clone(),
            time: now.map_or(0, |it| it.as_millis() as u64),
            environments: self.environments.clone(),
        }
    }
}

impl ReportTarget {
    async fn say(&self, name: &str, report: &GatewayReport) -> Result<ReportResponse, String> {
        match self {
            Self::Here(gateways) => {
                gateways.note_own(name, report.clone(), SystemTime::now());
                Ok(ReportResponse {
                    drain: gateways.is_drained(name),
                })
            }
            Self::Control { url, token } => {
                let url = format!("{}/api/v1/gateways/{name}", url.trim_end_matches('/'));
                let body = serde_json::to_value(report).map_err(|error| error.to_string())?;
                let call = ClientRequest::json(Method::POST, url, &body).token(token.as_deref());
                let (status, body) = call.make().await.map_err(|error| error.to_string())?;
                match status.is_success() {
                    // One of an earlier version says nothing.
                    true => Ok(serde_json::from_slice(&body).unwrap_or_default()),
                    false => Err(status.to_string()),
                }
            }
            Self::Store(store) => {
                let store: Arc<dyn Store> = store.get().ok_or("the store is away")?;
                leave(&*store, name, report).await?;
                let key = format!("{DRAINS}{name}");
                let (known, _) = store.read(&key).await.map_err(|error| error.to_string())?;
                Ok(ReportResponse {
                    drain: known.iter().any(|it| it.key.as_str() == key),
                })
            }
        }
    }
}

async fn leave(store: &dyn Store, name: &str, report: &GatewayReport) -> Result<(), String> {
    let key = Key::new(&format!("weir/gateways/{name}")).map_err(|error| error.to_string())?;
    let value = serde_json::to_vec(report).map_err(|error| error.to_string())?;
    let transaction = Transaction {
        author: name.to_owned(),
        note: "report".to_owned(),
        time: SystemTime::now(),
        changes: vec![Change::Put {
            key,
            value: value.into(),
            time_to_live: Some(LIFE),
        }],
    };
    let committed = store.append(transaction).await;
    committed.map(drop).map_err(|error| error.to_string())
}

/// A name that can stand in a key and in a path.
pub fn gateway_name(wanted: &str) -> String {
    let good = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' | ':' => character,
        _ => '-',
    };
    wanted.chars().map(good).take(200).collect()
}
