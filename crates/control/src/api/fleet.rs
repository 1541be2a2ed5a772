//! The gateways that follow this control plane or its store: what each serves, and how far it is behind.
//! The calls that ask for it are in [`super::gateways`].
//!
//! A gateway that follows the control plane's stream reports to it; one that follows the store itself leaves its
//! reports there, under `weir/gateways/NAME`, for a while.

use super::problem::Problem;
use crate::access::Caller;
use crate::events::Commits;
use crate::last_use::ReportedUses;
use crate::shared_limits::{LimitExchange, LimitExchanges};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use weir_dialect::DEFAULT_ENVIRONMENT;
use weir_model::unix_time;
use weir_store::follow::Subscription;
use weir_store::{Key, Revision, Store, StoreError};

/// The prefix of the keys of reports.
pub const PREFIX: &str = "weir/gateways/";
/// The prefix of the keys of documents that take gateways out.
pub const DRAINS: &str = "weir/drains/";
/// The state of a gateway that serves what it hears.
const SERVING: &str = "serving";
/// A gateway that was silent for so long is shown as away.
pub(super) const OFFLINE_AFTER: Duration = Duration::from_secs(30);
/// A gateway that was silent for so long is forgotten.
const GONE: Duration = Duration::from_secs(24 * 60 * 60);
/// Commits that are remembered to calculate how far a gateway is behind.
const MAX_COMMITS: usize = 10_000;
/// Gateways that are remembered.
const MAX_GATEWAYS: usize = 10_000;
/// The longest name of a gateway, and the longest text of a report, in bytes.
pub(super) const MAX_TEXT: usize = 256;
/// Used credentials of one report.
pub(crate) const MAX_USED: usize = 10_000;
/// Environments of a gateway.
const MAX_ENVIRONMENTS: usize = 64;

/// A gateway's report about itself. One of another version may say more, or less.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct GatewayReport {
    /// The revision that it serves.
    pub revision: u64,
    /// The hash of the configuration that it serves.
    pub hash: String,
    /// How many documents it had to leave out.
    #[serde(alias = "left_out")]
    pub skipped: usize,
    /// `serving`, `last-known-good` or `store-unreachable`.
    pub state: String,
    /// Whether it knows that it is drained. It still serves as its state says.
    pub draining: bool,
    /// The version of the program.
    pub version: String,
    /// The address for calls to it.
    pub address: String,
    /// When it said so, in milliseconds since the Unix epoch by its own clock.
    pub time: u64,
    /// The environments whose documents it serves; empty: its version does not report them.
    pub environments: Vec<String>,
    /// When it was started, in milliseconds since the Unix epoch by its own clock; 0: it does not say.
    pub started: u64,
    /// Its processor time since the report before, in thousandths of a core; `null`: it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_permille: Option<u64>,
    /// The memory that it holds, in bytes; `null`: it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Credentials of subscribers that were used since the last report: the day by their ids, counted from 1970.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub used: BTreeMap<String, u32>,
}

/// The answer to a gateway's report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ReportResponse {
    /// Whether it is drained: then it is not ready and reports that it drains.
    pub drain: bool,
}

/// How far a revision has come in an environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rollout {
    /// The revision of the store.
    pub revision: u64,
    /// Whether there are gateways and all of them serve it.
    pub served: bool,
    /// The gateways of the environment with a recent report.
    pub gateways: usize,
    /// Those of them that serve something older.
    pub lagging: Vec<String>,
    /// Gateways of the environment without a recent report.
    pub offline: Vec<String>,
}

impl GatewayReport {
    /// Whether it is as short as reports are. They are kept in memory.
    pub(super) fn is_short(&self) -> bool {
        let texts = [&self.hash, &self.state, &self.version, &self.address];
        texts.iter().all(|text| text.len() <= MAX_TEXT)
            && self.environments.len() <= MAX_ENVIRONMENTS
            && self.environments.iter().all(|name| name.len() <= MAX_TEXT)
            && self.used.len() <= MAX_USED
            && self.used.keys().all(|id| id.len() <= MAX_TEXT)
    }
}

/// The gateways that are known. Cheap to share.
#[derive(Debug, Clone, Default)]
pub struct Gateways {
    known: Arc<Mutex<FleetState>>,
    limits: LimitExchanges,
    used: ReportedUses,
}

/// How a report in the store was seen.
#[derive(Debug, Clone, Copy)]
enum ReportAge {
    /// It was written now, by the clock of this process: that of the gateway may be wrong.
    New,
    /// It was there at the start. Only it can say since when; its gateway may follow this control plane by now.
    AtStart,
}

#[derive(Debug, Default)]
struct FleetState {
    reports: BTreeMap<String, (GatewayReport, SystemTime)>,
    /// The user that speaks for a name, and when that was last.
    speakers: BTreeMap<String, (String, SystemTime)>,
    /// Those that are taken out.
    drained: BTreeSet<String>,
    /// The latest commits of configuration, and when they were seen.
    commits: VecDeque<(Revision, SystemTime)>,
}

impl Gateways {
    /// The exchange in which gateways of these environments share limits; `None`: there are too many sets of
    /// environments.
    pub fn limits(&self, environments: Vec<String>) -> Option<LimitExchange> {
        self.limits.of(environments, weir_plugin::system_clock())
    }

    fn known(&self) -> MutexGuard<'_, FleetState> {
        // Every change leaves it whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a caller speaks for the gateway of a name. As long as one does, no other may: its reports would be
    /// taken for those of that gateway. A name is free again when its gateway was silent for a while.
    ///
    /// # Errors
    /// Another one speaks for it.
    pub(super) fn claim_name(&self, name: &str, caller: &Caller, now: SystemTime) -> Result<(), Problem> {
        if name.len() > MAX_TEXT {
            let detail = format!("the name is longer than {MAX_TEXT} bytes");
            return Err(Problem::bad(detail));
        }
        if name.trim().is_empty() || name.contains(char::is_control) {
            let detail = "expected the name of a gateway, without control characters such as line ends";
            return Err(Problem::bad(detail));
        }
        match self.known().claim_name(name, &caller.name(), now) {
            true => Ok(()),
            // What is refused so is tried again.
            false => Err(Problem::forbidden(format!(
                "a gateway with the token of another user is named '{name}': start this one with another --name; if the \
                 other one has ended, the name is free after {} seconds",
                OFFLINE_AFTER.as_secs()
            ))),
        }
    }

    /// Takes over the report of this process. It speaks for its gateway, also if another one did before.
    pub fn note_own(&self, name: &str, report: GatewayReport, now: SystemTime) {
        let own = (String::new(), now);
        self.known().speakers.insert(name.to_owned(), own);
        self.note(name, report, now);
    }

    /// Takes over the report that a gateway has left in the store. Who writes there may do more than any token: it speaks for
    /// its name, and no token does as long as it reports.
    fn note_stored(&self, name: &str, report: GatewayReport, age: ReportAge, now: SystemTime) {
        let reported_at = (unix_time::from_millis(report.time)).min(now);
        let spoke = match age {
            ReportAge::New => now,
            ReportAge::AtStart => reported_at,
        };
        if name.len() <= MAX_TEXT && since(spoke, now) <= OFFLINE_AFTER {
            self.known().claim_from_store(name, spoke);
        }
        self.note(name, report, reported_at);
    }

    /// The uses of credentials that gateways have reported.
    pub fn used(&self) -> &ReportedUses {
        &self.used
    }

    /// Takes over a report. One that is too long is passed over.
    pub fn note(&self, name: &str, mut report: GatewayReport, now: SystemTime) {
        if name.len() > MAX_TEXT || !report.is_short() {
            return;
        }
        let used = std::mem::take(&mut report.used);
        self.used.add(used, &report.environments, now);
        let mut known = self.known();
        if known.reports.len() < MAX_GATEWAYS || known.reports.contains_key(name) {
            known.reports.insert(name.to_owned(), (report, now));
        }
    }

    /// Forgets a gateway until it reports again.
    pub(super) fn forget(&self, name: &str) {
        self.known().reports.remove(name);
    }

    /// Whether a gateway has reported lately enough to be remembered.
    pub(super) fn is_known(&self, name: &str) -> bool {
        self.known().reports.contains_key(name)
    }

    /// Whether a gateway is taken out.
    pub fn is_drained(&self, name: &str) -> bool {
        self.known().drained.contains(name)
    }

    /// Notes that a gateway is taken out, or back.
    pub(super) fn note_drained(&self, name: &str, is_drained: bool) {
        let mut known = self.known();
        match is_drained {
            true => known.drained.insert(name.to_owned()),
            false => known.drained.remove(name),
        };
    }

    /// The time since the last report of a gateway; `None`: it is not known.
    pub(super) fn silence(&self, name: &str, now: SystemTime) -> Option<Duration> {
        let known = self.known();
        known.reports.get(name).map(|(_, seen)| since(*seen, now))
    }

    /// The environments that a gateway has reported.
    pub(super) fn environments(&self, name: &str) -> Vec<String> {
        let known = self.known();
        let report = known.reports.get(name);
        report
            .map(|(report, _)| report.environments.clone())
            .unwrap_or_default()
    }

    /// Whether every gateway that has reported lately serves a revision.
    pub fn serve(&self, revision: Revision, now: SystemTime) -> bool {
        let known = self.known();
        let is_so_far = |(report, seen): &(GatewayReport, SystemTime)| {
            since(*seen, now) > OFFLINE_AFTER || report.state != SERVING || report.revision >= revision.0
        };
        known.reports.values().all(is_so_far)
    }

    /// How far a revision has come in an environment.
    pub fn rollout(&self, environment: &str, revision: Revision, now: SystemTime) -> Rollout {
        let known = self.known();
        let mut rollout = Rollout {
            revision: revision.0,
            ..Rollout::default()
        };
        for (name, (report, seen)) in &known.reports {
            let is_of_it = match report.environments.as_slice() {
                [] => environment == DEFAULT_ENVIRONMENT,
                names => names.iter().any(|it| it == environment),
            };
            match since(*seen, now) {
                _ if !is_of_it => {}
                silent if silent > GONE => {}
                silent if silent > OFFLINE_AFTER => rollout.offline.push(name.clone()),
                _ => {
                    rollout.gateways += 1;
                    // One that serves its last known good file says of which revision that is.
                    if report.revision < revision.0 {
                        rollout.lagging.push(name.clone());
                    }
                }
            }
        }
        rollout.served = rollout.gateways > 0 && rollout.lagging.is_empty();
        rollout
    }

    /// Whether the gateway that left a report serves a revision, or is away.
    pub fn is_at(report: &[u8], revision: Revision, now: SystemTime) -> bool {
        let Ok(report) = serde_json::from_slice::<GatewayReport>(report) else {
            return true;
        };
        let reported_at = unix_time::from_millis(report.time);
        since(reported_at, now) > OFFLINE_AFTER || report.state != SERVING || report.revision >= revision.0
    }

    fn commit(&self, revision: Revision, now: SystemTime) {
        let mut known = self.known();
        if known.commits.len() == MAX_COMMITS {
            known.commits.pop_front();
        }
        known.commits.push_back((revision, now));
    }

    /// Follows the store for reports, and for commits of documents whose keys begin so. All commits are passed on.
    pub(super) async fn open(
        &self,
        store: Arc<dyn Store>,
        prefixes: Vec<&'static str>,
        commits: Commits,
    ) -> Result<(), StoreError> {
        let (documents, _, following) = weir_store::follow::start(store, "").await?;
        for document in documents {
            let value = Some(document.value.as_ref());
            self.take(&document.key, value, ReportAge::AtStart);
        }
        tokio::spawn(self.clone().follow(following, prefixes, commits));
        Ok(())
    }

    async fn follow(self, mut following: Subscription, prefixes: Vec<&'static str>, commits: Commits) {
        loop {
            let changes = following.next().await;
            commits.send(&changes);
            let is_configuration = |key: &Key| prefixes.iter().any(|prefix| key.as_str().starts_with(prefix));
            if changes.documents.iter().any(|(key, _)| is_configuration(key)) {
                self.commit(changes.revision, SystemTime::now());
            }
            for (key, document) in &changes.documents {
                let value = document.as_ref().map(|it| it.value.as_ref());
                self.take(key, value, ReportAge::New);
            }
        }
    }

    fn take(&self, key: &Key, value: Option<&[u8]>, age: ReportAge) {
        if let Some(name) = key.as_str().strip_prefix(DRAINS) {
            return self.note_drained(name, value.is_some());
        }
        let Some(name) = key.as_str().strip_prefix(PREFIX) else {
            return;
        };
        // Reports leave the store soon after a gateway is away; it is remembered for longer.
        if let Some(report) = value.and_then(|value| serde_json::from_slice::<GatewayReport>(value).ok()) {
            self.note_stored(name, report, age, SystemTime::now());
        }
    }

    /// All of them, for people and their tools.
    pub fn to_json(&self, now: SystemTime) -> Vec<Value> {
        let mut known = self.known();
        known.reports.retain(|_, (_, seen)| since(*seen, now) < GONE);
        let one = |(name, (report, seen)): (&String, &(GatewayReport, SystemTime))| {
            let missing = known
                .commits
                .iter()
                .filter(|(revision, _)| revision.0 > report.revision);
            let lag = missing
                .clone()
                .next()
                .map_or(Duration::ZERO, |(_, at)| since(*at, now));
            let silent = since(*seen, now);
            json!({
                "name": name,
                "address": report.address,
                "version": report.version,
                "state": if silent > OFFLINE_AFTER { "offline" } else { report.state.as_str() },
                "drain": known.drained.contains(name),
                "draining": report.draining,
                "revision": report.revision,
                "hash": report.hash,
                "skipped": report.skipped,
                "environments": report.environments,
                "lag_revisions": missing.count(),
                "lag_ms": lag.as_millis() as u64,
                "uptime_s": (report.started > 0).then(|| report.time.saturating_sub(report.started) / 1000),
                "cpu_permille": report.cpu_permille,
                "memory_bytes": report.memory_bytes,
                "last_seen": unix_time::seconds(*seen),
                "silent_ms": silent.as_millis() as u64,
            })
        };
        known.reports.iter().map(one).collect()
    }
}

impl FleetState {
    /// Notes that a writer to the store speaks for a name from now on, as far as there is room for names.
    fn claim_from_store(&mut self, name: &str, now: SystemTime) {
        if self.speakers.len() < MAX_GATEWAYS || self.speakers.contains_key(name) {
            self.speakers.insert(name.to_owned(), (String::new(), now));
        }
    }

    fn claim_name(&mut self, name: &str, speaker: &str, now: SystemTime) -> bool {
        let is_silent = |last: SystemTime| since(last, now) > OFFLINE_AFTER;
        match self.speakers.get_mut(name) {
            Some((known, last)) if known == speaker || is_silent(*last) => {
                speaker.clone_into(known);
                *last = now;
                true
            }
            Some(_) => false,
            None => {
                if self.speakers.len() >= MAX_GATEWAYS {
                    self.speakers.retain(|_, (_, last)| !is_silent(*last));
                }
                let has_room = self.speakers.len() < MAX_GATEWAYS;
                if has_room {
                    self.speakers.insert(name.to_owned(), (speaker.to_owned(), now));
                }
                has_room
            }
        }
    }
}

fn since(then: SystemTime, now: SystemTime) -> Duration {
    now.duration_since(then).unwrap_or_default()
}

#[cfg(test)]
mod tests;
