//! The reports of a gateway about itself for the list of gateways.

use crate::api::{GatewayReport, Gateways, MAX_USED, ReportResponse};
use crate::drain_state;
use crate::follow::{Contact, OpenStore, StateHandle};
use crate::http::ClientRequest;
use crate::process_usage::{self, ProcessUsage};
use hyper::Method;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use weir_model::unix_time;
use weir_plugin::last_use;
use weir_store::{Change, Key, Store, Transaction};

/// How often it says so at least.
const INTERVAL: Duration = Duration::from_secs(10);
/// How long a report stays in a store.
const LIFE: Duration = Duration::from_secs(120);

/// How long the first answer of a control plane is waited for. It is asked again with every report.
const FIRST_TIMEOUT: Duration = Duration::from_secs(2);

/// To whom.
#[derive(Clone)]
pub enum ReportTarget {
    /// To a list in this process, and the store that says which gateways are taken out.
    Here(Gateways, OpenStore),
    /// To a control plane.
    Control {
        /// Its URL.
        url: String,
        /// The token for it.
        token: Option<String>,
    },
    /// Into the store that is followed.
    Store(OpenStore),
}

/// The gateway that reports.
#[derive(Debug, Clone)]
pub struct ReporterInfo {
    /// The gateway's name.
    pub name: String,
    /// The address for calls to it.
    pub address: String,
    /// The version of the program.
    pub version: &'static str,
    /// The environments whose documents it serves.
    pub environments: Vec<String>,
    /// When the process was started.
    pub started: SystemTime,
}

/// Reports after every change, and now and then without one, until the process ends. `is_drained`: whether the gateway begins as one
/// that is taken out. `drain` gets each change of that.
pub async fn report(
    reporter: ReporterInfo,
    followed: StateHandle,
    target: ReportTarget,
    mut is_drained: bool,
    drain: impl Fn(bool) + Send + Sync,
) {
    let mut changed = followed.subscribe();
    // A report in the store is a commit, of which the gateway hears in turn.
    let pause = match target {
        ReportTarget::Here(..) | ReportTarget::Control { .. } => Duration::from_millis(200),
        ReportTarget::Store(_) => Duration::from_secs(2),
    };
    let mut last_report: Option<GatewayReport> = None;
    let mut usage = ProcessUsage::current();
    loop {
        let report = reporter.report(&followed, is_drained);
        let is_due = last_report.as_ref().is_none_or(|last_report| {
            let is_other = last_report.hash != report.hash
                || last_report.state != report.state
                || last_report.draining != report.draining
                || last_report.skipped != report.skipped;
            // In a store, a revision that changes nothing else may be that of the last report.
            let is_further =
                !matches!(target, ReportTarget::Store(_)) && last_report.revision != report.revision;
            is_other
                || is_further
                || report.time.saturating_sub(last_report.time) >= INTERVAL.as_millis() as u64
        });
        let mut has_news = false;
        if is_due {
            let now = ProcessUsage::current();
            let report = GatewayReport {
                used: used_since(),
                cpu_permille: now.cpu_permille(&usage),
                memory_bytes: process_usage::memory(),
                ..report
            };
            usage = now;
            match target.send(&reporter.name, &report).await {
                Ok(answer) => {
                    last_report = Some(report);
                    if answer.drain != is_drained {
                        is_drained = answer.drain;
                        tracing::info!(is_drained, "drain state changed");
                        drain(is_drained);
                        has_news = true;
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "the control plane refused this gateway's report");
                    last_use::give_back(
                        report
                            .used
                            .into_iter()
                            .map(|(id, day)| (id.into(), day))
                            .collect(),
                    );
                }
            }
        }
        // Control planes that disagree must not be asked without end.
        tokio::time::sleep(pause).await;
        // That it is out, or back, is reported without waiting for a change.
        if !has_news {
            // No change for a while is no error.
            let _late = tokio::time::timeout(INTERVAL, changed.changed()).await;
        }
    }
}

/// Credentials of subscribers that were used since the last report, as many as one has room for.
fn used_since() -> BTreeMap<String, u32> {
    let mut used = last_use::take_used();
    if let Some(first) = used.keys().nth(MAX_USED).cloned() {
        last_use::give_back(used.split_off(&first));
    }
    used.into_iter().map(|(id, day)| (id.to_string(), day)).collect()
}

/// Whether a control plane says that this gateway is taken out, before it takes calls: so it needs no disk to stay out over a
/// restart. `None`: no control plane is followed, or it does not answer in time.
pub async fn is_drained_by_control_plane(
    reporter: &ReporterInfo,
    followed: &StateHandle,
    target: &ReportTarget,
) -> Option<bool> {
    if !matches!(target, ReportTarget::Control { .. }) {
        return None;
    }
    let report = reporter.report(followed, false);
    let sent = tokio::time::timeout(FIRST_TIMEOUT, target.send(&reporter.name, &report)).await;
    Some(sent.ok()?.ok()?.drain)
}

impl ReporterInfo {
    fn report(&self, followed: &StateHandle, is_drained: bool) -> GatewayReport {
        let state = followed.state();
        GatewayReport {
            revision: state.revision.0,
            hash: state.hash.clone(),
            skipped: state.skipped.len(),
            state: match (state.is_last_known_good, &state.contact) {
                (true, _) => "last-known-good",
                (false, Contact::Unreachable { .. }) => "store-unreachable",
                (false, _) => "serving",
            }
            .to_owned(),
            draining: is_drained,
            version: self.version.to_owned(),
            address: self.address.clone(),
            time: unix_time::millis(SystemTime::now()),
            environments: self.environments.clone(),
            started: unix_time::millis(self.started),
            cpu_permille: None,
            memory_bytes: None,
            used: BTreeMap::new(),
        }
    }
}

impl ReportTarget {
    async fn send(&self, name: &str, report: &GatewayReport) -> Result<ReportResponse, String> {
        match self {
            Self::Here(gateways, store) => {
                gateways.note_own(name, report.clone(), SystemTime::now());
                // The list may not have read the store yet, or never reads it.
                let drain = drain_state::in_store(store, name).await?;
                Ok(ReportResponse { drain })
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
                let opened: Arc<dyn Store> = store.get().ok_or("the store is unreachable")?;
                leave(&*opened, name, report).await?;
                let drain = drain_state::in_store(store, name).await?;
                Ok(ReportResponse { drain })
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

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Instant;

    /// Control planes behind one address that disagree: every other answer takes the gateway out. Records for each
    /// report when it came, and whether it says that the gateway is out.
    fn disagreeing() -> (String, Receiver<(Instant, bool)>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let (sender, heard) = channel();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let mut reader = BufReader::new(stream);
                let (mut line, mut length) = (String::new(), 0);
                while reader.read_line(&mut line).expect("a line") > 2 {
                    let (name, value) = line.split_once(':').unwrap_or_default();
                    if name.eq_ignore_ascii_case("content-length") {
                        length = value.trim().parse().expect("a number");
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).expect("a body");
                let report: GatewayReport = serde_json::from_slice(&body).expect("a report");
                let answer = format!("{{\"drain\":{}}}", number % 2 == 0);
                let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length";
                let answer = format!("{head}: {}\r\n\r\n{answer}", answer.len());
                // The pause begins behind the answer, so two of these are never closer than it is long.
                let came = Instant::now();
                reader.get_mut().write_all(answer.as_bytes()).expect("written");
                if sender.send((came, report.draining)).is_err() {
                    return;
                }
            }
        });
        (url, heard)
    }

    #[tokio::test]
    async fn control_planes_that_disagree_are_asked_with_pauses() {
        let (url, heard) = disagreeing();
        let reporter = ReporterInfo {
            name: "edge-1".to_owned(),
            address: String::new(),
            version: "1",
            environments: Vec::new(),
            started: UNIX_EPOCH,
        };
        let set = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&set);
        let drain = move |is_drained| noted.lock().expect("whole").push(is_drained);
        let target = ReportTarget::Control { url, token: None };
        let task = tokio::spawn(report(reporter, StateHandle::default(), target, false, drain));
        let heard = tokio::task::spawn_blocking(move || heard.into_iter().take(4).collect::<Vec<_>>());
        let heard = heard.await.expect("four reports");
        task.abort();
        let drained: Vec<bool> = heard.iter().map(|(_, is_drained)| *is_drained).collect();
        assert_eq!(
            drained,
            [false, true, false, true],
            "each says what the last answer was"
        );
        assert_eq!(set.lock().expect("whole")[..3], [true, false, true]);
        for pair in heard.windows(2) {
            let between = pair[1].0 - pair[0].0;
            assert!(between >= Duration::from_millis(200), "{between:?}");
        }
    }
}
