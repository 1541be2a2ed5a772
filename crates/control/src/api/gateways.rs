//! The gateways that follow this control plane or its store: what each serves, and how far it is behind.
//!
//! A gateway that follows the control plane's stream reports to it; one that follows the store itself leaves its
//! reports there, under `weir/gateways/NAME`, for a while.

use super::problem::Problem;
use super::sync::environments_of;
use super::writing::tried;
use super::{Api, is_dry_run};
use crate::access::{Caller, NoAudit};
use crate::events::Commits;
use crate::shared_limits::{LimitExchange, LimitExchanges, LimitReport, MAX_COUNTS, MAX_EXCHANGES};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_dialect::DEFAULT_ENVIRONMENT;
use weir_store::follow::Subscription;
use weir_store::{Key, Revision, Store, StoreError};

/// What the keys of reports begin with.
pub const PREFIX: &str = "weir/gateways/";
/// What the keys of documents begin with that take gateways out.
pub const DRAINS: &str = "weir/drains/";
/// The state of a gateway that serves what it hears.
const SERVING: &str = "serving";
/// A gateway that was silent for so long is shown as away.
const AWAY: Duration = Duration::from_secs(30);
/// A gateway that was silent for so long is forgotten.
const GONE: Duration = Duration::from_secs(24 * 60 * 60);
/// Commits that are remembered to tell how far a gateway is behind.
const MAX_COMMITS: usize = 10_000;
/// Gateways that are remembered.
const MAX_GATEWAYS: usize = 10_000;
/// The longest name of a gateway, and the longest text of a report, in bytes.
const MAX_TEXT: usize = 256;
/// Environments of a gateway.
const MAX_ENVIRONMENTS: usize = 64;

/// What a gateway says of itself. One of another version may say more, or less.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct GatewayReport {
    /// The revision that it serves.
    pub revision: u64,
    /// The hash of what it serves.
    pub hash: String,
    /// How many documents it had to leave out.
    pub left_out: usize,
    /// `serving`, `last-known-good` or `store-away`.
    pub state: String,
    /// Whether it has heard that it is taken out. It serves what its state says all the same.
    pub draining: bool,
    /// The version of the program.
    pub version: String,
    /// Where it takes calls.
    pub address: String,
    /// When it said so, in milliseconds since the Unix epoch by its own clock.
    pub time: u64,
    /// The environments whose documents it serves; empty: it is of a version that does not say so.
    pub environments: Vec<String>,
}

/// What a gateway is told in turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct ReportResponse {
    /// Whether it is taken out: it is not ready then, and says that it drains.
    pub drain: bool,
}

/// How far a revision has come in an environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Rollout {
    /// The revision of the store.
    pub revision: u64,
    /// Whether there are gateways and all of them serve it.
    pub served: bool,
    /// The gateways of the environment that were heard of lately.
    pub gateways: usize,
    /// Those of them that serve something older.
    pub behind: Vec<String>,
    /// Gateways of the environment that were not heard of lately.
    pub away: Vec<String>,
}

impl GatewayReport {
    /// Whether it is as short as reports are. They are kept in memory.
    fn is_short(&self) -> bool {
        let texts = [&self.hash, &self.state, &self.version, &self.address];
        texts.iter().all(|text| text.len() <= MAX_TEXT)
            && self.environments.len() <= MAX_ENVIRONMENTS
            && self.environments.iter().all(|name| name.len() <= MAX_TEXT)
    }
}

/// What is known of gateways. Cheap to share.
#[derive(Debug, Clone, Default)]
pub struct Gateways {
    known: Arc<Mutex<FleetState>>,
    limits: LimitExchanges,
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
    /// Who speaks for a name, and when that was last.
    speakers: BTreeMap<String, (String, SystemTime)>,
    /// Those that are taken out.
    drained: BTreeSet<String>,
    /// The latest commits of configuration, and when they were seen.
    commits: VecDeque<(Revision, SystemTime)>,
}

impl Gateways {
    /// Where those of these environments settle limits that are for all of them; `None`: there are too many sets of
    /// environments.
    pub fn limits(&self, environments: Vec<String>) -> Option<LimitExchange> {
        self.limits.of(environments, weir_plugin::system_clock())
    }

    fn known(&self) -> MutexGuard<'_, FleetState> {
        // Every change leaves it whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that a caller speaks for the gateway of a name. As long as one does, no other may: its reports would be taken
    /// for those of that gateway. A name is free again when its gateway was silent for a while.
    ///
    /// # Errors
    /// Another one speaks for it.
    pub(super) fn speak_for(&self, name: &str, caller: &Caller, now: SystemTime) -> Result<(), Problem> {
        if name.len() > MAX_TEXT {
            let detail = format!("the name is longer than {MAX_TEXT} bytes");
            return Err(Problem::bad(detail));
        }
        match self.known().speak_for(name, &caller.name(), now) {
            true => Ok(()),
            // What is refused so is tried again.
            false => Err(Problem::forbidden(format!(
                "a gateway with the token of another user is named '{name}': start this one with another --name; if the \
                 other one has ended, the name is free after {} seconds",
                AWAY.as_secs()
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
        let said = (UNIX_EPOCH + Duration::from_millis(report.time)).min(now);
        let spoke = match age {
            ReportAge::New => now,
            ReportAge::AtStart => said,
        };
        if name.len() <= MAX_TEXT && since(spoke, now) <= AWAY {
            self.known().speak_from_store(name, spoke);
        }
        self.note(name, report, said);
    }

    /// Takes over a report. One that is too long is passed over.
    pub fn note(&self, name: &str, report: GatewayReport, now: SystemTime) {
        if name.len() > MAX_TEXT || !report.is_short() {
            return;
        }
        let mut known = self.known();
        if known.reports.len() < MAX_GATEWAYS || known.reports.contains_key(name) {
            known.reports.insert(name.to_owned(), (report, now));
        }
    }

    /// Forgets a gateway until it reports again.
    fn forget(&self, name: &str) {
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
    pub(super) fn note_drained(&self, name: &str, is_out: bool) {
        let mut known = self.known();
        match is_out {
            true => known.drained.insert(name.to_owned()),
            false => known.drained.remove(name),
        };
    }

    /// For how long nothing was heard of a gateway; `None`: it is not known.
    fn silence(&self, name: &str, now: SystemTime) -> Option<Duration> {
        let known = self.known();
        known.reports.get(name).map(|(_, seen)| since(*seen, now))
    }

    /// Whether every gateway that was heard of lately serves a revision.
    pub fn serve(&self, revision: Revision, now: SystemTime) -> bool {
        let known = self.known();
        let is_so_far = |(report, seen): &(GatewayReport, SystemTime)| {
            since(*seen, now) > AWAY || report.state != SERVING || report.revision >= revision.0
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
                silent if silent > AWAY => rollout.away.push(name.clone()),
                _ => {
                    rollout.gateways += 1;
                    // One that serves its last known good file says of which revision that is.
                    if report.revision < revision.0 {
                        rollout.behind.push(name.clone());
                    }
                }
            }
        }
        rollout.served = rollout.gateways > 0 && rollout.behind.is_empty();
        rollout
    }

    /// Whether the gateway that left a report serves a revision, or is away.
    pub fn is_at(report: &[u8], revision: Revision, now: SystemTime) -> bool {
        let Ok(report) = serde_json::from_slice::<GatewayReport>(report) else {
            return true;
        };
        let said = UNIX_EPOCH + Duration::from_millis(report.time);
        since(said, now) > AWAY || report.state != SERVING || report.revision >= revision.0
    }

    fn commit(&self, revision: Revision, now: SystemTime) {
        let mut known = self.known();
        if known.commits.len() == MAX_COMMITS {
            known.commits.pop_front();
        }
        known.commits.push_back((revision, now));
    }

    /// Follows the store for reports, and for commits of documents whose keys begin so. All commits are told on.
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
            commits.tell(&changes);
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
                "state": if silent > AWAY { "away" } else { report.state.as_str() },
                "drain": known.drained.contains(name),
                "draining": report.draining,
                "revision": report.revision,
                "hash": report.hash,
                "left_out": report.left_out,
                "environments": report.environments,
                "lag_revisions": missing.count(),
                "lag_ms": lag.as_millis() as u64,
                "last_seen": seen.duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs()),
                "silent_ms": silent.as_millis() as u64,
            })
        };
        known.reports.iter().map(one).collect()
    }
}

impl FleetState {
    /// Who writes into the store speaks for a name from now on, as far as there is room for names.
    fn speak_from_store(&mut self, name: &str, now: SystemTime) {
        if self.speakers.len() < MAX_GATEWAYS || self.speakers.contains_key(name) {
            self.speakers.insert(name.to_owned(), (String::new(), now));
        }
    }

    fn speak_for(&mut self, name: &str, speaker: &str, now: SystemTime) -> bool {
        let is_silent = |last: SystemTime| since(last, now) > AWAY;
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

pub async fn list(State(api): State<Arc<Api>>) -> Json<Value> {
    let state = api.options.followed.state();
    let items = api.options.gateways.to_json(SystemTime::now());
    Json(json!({ "revision": state.revision.0, "hash": state.hash, "items": items }))
}

pub async fn report(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Json(report): Json<GatewayReport>,
) -> Result<Response, Problem> {
    if name.len() > MAX_TEXT || !report.is_short() {
        let detail = format!("the name or a text of the report is longer than {MAX_TEXT} bytes");
        return Err(Problem::bad(detail));
    }
    if is_dry_run(&headers) {
        return Ok(tried(Json(ReportResponse::default())));
    }
    let (gateways, now) = (&api.options.gateways, SystemTime::now());
    gateways.speak_for(&name, &caller, now)?;
    gateways.note(&name, report, now);
    // Each report in the record would be a revision that gateways report in turn.
    let answer = ReportResponse {
        drain: gateways.is_drained(&name),
    };
    Ok((Extension(NoAudit), Json(answer)).into_response())
}

/// Forgets a gateway that is away. One that is still running would be back with its next report. What it has left in the
/// store goes by itself.
pub async fn forget(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let gateways = &api.options.gateways;
    let silence = gateways.silence(&name, SystemTime::now());
    let silence = silence.ok_or_else(|| Problem::not_found(format_args!("the gateway '{name}'")))?;
    if silence <= AWAY {
        let detail = format!(
            "the gateway '{name}' was heard of {} s ago: stop it first, and wait until it is away",
            silence.as_secs()
        );
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    if is_dry_run(&headers) {
        return Ok(tried(StatusCode::NO_CONTENT));
    }
    gateways.forget(&name);
    // Another one of this name is not taken out.
    if gateways.is_drained(&name) {
        super::draining::write(&*api.store, &caller, (&name, false)).await?;
        gateways.note_drained(&name, false);
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// With whom a gateway settles its counts.
#[derive(Deserialize, schemars::JsonSchema)]
pub struct LimitQuery {
    /// The environments that the gateway serves, with commas between them; left out: `default`.
    environment: Option<String>,
}

/// Takes what a gateway has counted, and tells what the others of its environments have.
pub async fn limits(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<LimitQuery>,
    Json(report): Json<LimitReport>,
) -> Result<Response, Problem> {
    let environments = environments_of(&caller, query.environment.as_deref())?;
    let gateways = &api.options.gateways;
    gateways.speak_for(&name, &caller, SystemTime::now())?;
    let exchange = gateways.limits(environments).ok_or_else(|| {
        Problem::bad(format!(
            "gateways of {MAX_EXCHANGES} other sets of environments share limits: that is the most"
        ))
    })?;
    let answer = exchange.settle(&name, &report, weir_plugin::system_clock());
    let answer = answer.ok_or_else(|| {
        Problem::bad(format!(
            "expected at most {MAX_COUNTS} counts with names of hexadecimal digits"
        ))
    })?;
    // Each report in the record would be a line four times in a second.
    Ok((Extension(NoAudit), Json(answer)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_store::memory::MemoryStore;
    use weir_store::{Change, Transaction};

    #[test]
    fn what_is_too_long_is_not_kept() {
        let gateways = Gateways::default();
        let report = |length: usize| GatewayReport {
            revision: 1,
            hash: String::new(),
            left_out: 0,
            state: SERVING.to_owned(),
            draining: false,
            version: "1".repeat(length),
            address: String::new(),
            time: 0,
            environments: Vec::new(),
        };
        for (name, length) in [
            ("a", MAX_TEXT),
            ("b", MAX_TEXT + 1),
            (&*"c".repeat(MAX_TEXT + 1), 1),
        ] {
            gateways.note(name, report(length), UNIX_EPOCH);
        }
        let shown = gateways.to_json(UNIX_EPOCH);
        assert_eq!((shown.len(), &shown[0]["name"]), (1, &json!("a")));
    }

    #[test]
    fn one_user_at_a_time_speaks_for_a_name() {
        let mut known = FleetState::default();
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        for (name, speaker, seconds, expected) in [
            ("edge-1", "one", 100, true),
            ("edge-1", "other", 101, false),
            ("edge-2", "other", 101, true),
            ("edge-1", "one", 120, true),
            ("edge-1", "other", 150, false),
            // 30 seconds of silence: what was refused is no word of it.
            ("edge-1", "other", 151, true),
            ("edge-1", "one", 152, false),
        ] {
            let may = known.speak_for(name, speaker, at(seconds));
            assert_eq!(may, expected, "{speaker} for {name} at {seconds}");
        }
        // Names are bounded; those that are silent make room, as `edge-2` is.
        let mut named = |range: std::ops::Range<usize>, seconds: u64| {
            range
                .filter(|it| known.speak_for(&format!("n{it}"), "many", at(seconds)))
                .count()
        };
        assert_eq!(named(0..MAX_GATEWAYS, 160), MAX_GATEWAYS - 1);
        assert_eq!(named(0..MAX_GATEWAYS, 160), MAX_GATEWAYS - 1);
        assert_eq!(named(MAX_GATEWAYS..MAX_GATEWAYS + 5, 300), 5);
    }

    #[test]
    fn a_gateway_that_follows_the_store_speaks_for_its_name() {
        let (gateways, at) = (Gateways::default(), |seconds| {
            UNIX_EPOCH + Duration::from_secs(seconds)
        });
        let token = |name: &str, seconds| gateways.known().speak_for(name, "token", at(seconds));
        let stored = |name: &str, seconds| {
            gateways.note_stored(name, GatewayReport::default(), ReportAge::New, at(seconds));
        };
        assert!(token("late", 100));
        stored("edge", 100);
        stored("late", 101);
        for (name, seconds, expected) in [
            ("edge", 101, false),
            ("late", 102, false),
            ("edge", 130, false),
            ("edge", 131, true),
        ] {
            assert_eq!(token(name, seconds), expected, "{name} {seconds}");
        }
        stored(&"x".repeat(MAX_TEXT + 1), 200);
        assert_eq!(gateways.known().speakers.len(), 2);
    }

    #[tokio::test]
    async fn reports_that_are_found_at_the_start_hold_their_names_from_when_they_were_made() {
        let store = MemoryStore::new();
        let now = SystemTime::now();
        let made = |ago: i64| {
            let now = now.duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as i64;
            (now - ago * 1_000) as u64
        };
        let report = |(name, ago): (&str, i64)| {
            let key = Key::new(&format!("{PREFIX}{name}")).expect("a key");
            Change::put(key, json!({ "time": made(ago) }).to_string().into_bytes())
        };
        let reports = Transaction {
            author: "test".to_owned(),
            note: String::new(),
            time: now,
            changes: [("moved", 35), ("silent", 20), ("ahead", -60)].map(report).into(),
        };
        store.commit(reports, Revision(0)).await.expect("made");
        let (gateways, (commits, _told)) = (Gateways::default(), crate::events::commits());
        let opened = gateways.open(Arc::new(store), Vec::new(), commits).await;
        opened.expect("opened");
        assert_eq!(gateways.to_json(now).len(), 3);
        for (name, later, expected) in [
            ("moved", 0, true),
            ("silent", 5, false),
            ("silent", 11, true),
            ("ahead", 25, false),
            ("ahead", 40, true),
        ] {
            let may = gateways
                .known()
                .speak_for(name, "token", now + Duration::from_secs(later));
            assert_eq!(may, expected, "{name} after {later}");
        }
    }

    #[test]
    fn a_process_speaks_for_its_own_gateway() {
        let (gateways, now) = (Gateways::default(), UNIX_EPOCH + Duration::from_secs(100));
        let edge = Caller::Key(crate::access::Role::Gateway);
        assert!(gateways.speak_for("here", &edge, now).is_ok());
        gateways.note_own("here", GatewayReport::default(), now);
        assert!(gateways.speak_for("here", &edge, now).is_err());
        assert!(gateways.speak_for(&"x".repeat(MAX_TEXT + 1), &edge, now).is_err());
    }

    #[test]
    fn a_gateway_is_forgotten_until_it_reports_again() {
        let gateways = Gateways::default();
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(gateways.silence("edge", at(1)), None);
        gateways.note("edge", GatewayReport::default(), at(100));
        assert_eq!(gateways.silence("edge", at(140)), Some(Duration::from_secs(40)));
        gateways.forget("edge");
        assert!(gateways.to_json(at(140)).is_empty());
        gateways.note("edge", GatewayReport::default(), at(150));
        assert_eq!(gateways.to_json(at(150)).len(), 1);
    }

    #[test]
    fn lag_is_what_was_committed_since() {
        let gateways = Gateways::default();
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        for (revision, seconds) in [(5, 100), (7, 101), (9, 104)] {
            gateways.commit(Revision(revision), at(seconds));
        }
        for (name, revision) in [("a", 9), ("b", 8), ("c", 4)] {
            let report = GatewayReport {
                revision,
                hash: String::new(),
                left_out: 0,
                state: "serving".to_owned(),
                draining: false,
                version: String::new(),
                address: String::new(),
                time: 0,
                environments: Vec::new(),
            };
            gateways.note(name, report, at(104));
        }
        let shown = |now| -> Vec<(u64, u64, String)> {
            let number = |it: &Value, field: &str| it[field].as_u64().expect("a number");
            let one = |it: &Value| {
                let state = it["state"].as_str().expect("a text").to_owned();
                (number(it, "lag_revisions"), number(it, "lag_ms"), state)
            };
            gateways.to_json(at(now)).iter().map(one).collect()
        };
        let serving = || "serving".to_owned();
        assert_eq!(
            shown(105),
            [(0, 0, serving()), (1, 1000, serving()), (3, 5000, serving())]
        );
        assert!(shown(200).iter().all(|(.., state)| state == "away"));
        assert!(shown(100_000).is_empty());
    }

    #[test]
    fn one_that_is_out_has_to_serve_a_revision_as_others_do() {
        let at = UNIX_EPOCH + Duration::from_secs(100);
        for (state, draining, revision, expected) in [
            (SERVING, false, 8, false),
            (SERVING, true, 8, false),
            (SERVING, true, 9, true),
            // What is cut off is not waited for.
            ("store-away", false, 8, true),
            ("last-known-good", true, 8, true),
        ] {
            let report = GatewayReport {
                revision,
                state: state.to_owned(),
                draining,
                time: 100_000,
                ..GatewayReport::default()
            };
            let stored = serde_json::to_vec(&report).expect("a text");
            let gateways = Gateways::default();
            gateways.note("edge", report, at);
            let found = (
                gateways.serve(Revision(9), at),
                Gateways::is_at(&stored, Revision(9), at),
            );
            assert_eq!(found, (expected, expected), "{state} {draining} {revision}");
            let shown = gateways.to_json(at).remove(0);
            assert_eq!(
                (&shown["state"], &shown["draining"]),
                (&json!(state), &json!(draining))
            );
        }
    }

    #[test]
    fn a_revision_is_served_when_all_gateways_of_its_environment_have_it() {
        let gateways = Gateways::default();
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let note = |name: &str, revision: u64, environments: &[&str], seconds: u64| {
            let report = GatewayReport {
                revision,
                state: SERVING.to_owned(),
                environments: environments.iter().map(|it| (*it).to_owned()).collect(),
                ..GatewayReport::default()
            };
            gateways.note(name, report, at(seconds));
        };
        note("old", 9, &[], 100);
        note("one", 9, &["test"], 100);
        note("two", 8, &["test", "prod"], 100);
        note("gone", 3, &["prod"], 50);
        for (environment, revision, served, count, behind, away) in [
            ("test", 8, true, 2, vec![], vec![]),
            ("test", 9, false, 2, vec!["two"], vec![]),
            ("prod", 8, true, 1, vec![], vec!["gone"]),
            ("default", 9, true, 1, vec![], vec![]),
            ("empty", 1, false, 0, vec![], vec![]),
        ] {
            let expected = Rollout {
                revision,
                served,
                gateways: count,
                behind: behind.into_iter().map(str::to_owned).collect(),
                away: away.into_iter().map(str::to_owned).collect(),
            };
            assert_eq!(
                gateways.rollout(environment, Revision(revision), at(101)),
                expected
            );
        }
    }
}
