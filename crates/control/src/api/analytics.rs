//! Analytics in Weir's own API: the definition, queries (also as CSV), the request log, and calls as they end.

use super::Api;
use super::json_body::{self, Json, JsonBody};
use super::problem::Problem;
use super::statistics;
use crate::access::{Action, Caller, NoAudit, Scope};
use crate::analytics::{Analytics, now, workspaces};
use crate::listen::StreamingResponse;
use crate::run_blocking::run_blocking;
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use weir_analytics::batch::Batch;
use weir_analytics::calls::{CallLine, CallOwner, CallSearchResponse, MAX_DELIVERED, MAX_FOUND, Search};
use weir_analytics::query::{QueryError, TimePoint, time};
use weir_analytics::{IngestResult, StoreError, csv, definition};
use weir_dialect::{DEFAULT_ENVIRONMENT, DEFAULT_WORKSPACE};
use weir_model::{Diagnostic, DocPath};
use weir_telemetry::metrics::Refusal;

/// How often the live view looks for calls, and how many it sends in a second.
const LIVE_TICK: Duration = Duration::from_millis(200);
const LIVE_LINES: usize = 200;
/// Events that are written before the browser has taken them.
const MAX_WAITING: usize = 64;
/// How often it is said that the live view goes on.
const BEATS: u32 = 50;
/// Lines of gateways that wait to be written, at most: then gateways wait, and drop their oldest.
const MAX_UNWRITTEN: usize = 20_000;
/// How far the clock of a gateway may go before this one's, and how old its lines may be, in milliseconds.
const AHEAD_MS: u64 = 300_000;
const OLD_MS: u64 = 3_600_000;

impl Api {
    /// The analytics of this process.
    pub(super) fn analytics(&self) -> Result<&Analytics, Problem> {
        self.options.analytics.as_ref().ok_or_else(|| {
            let detail = "analytics are off: start Weir with --data DIR or --analytics FOLDER; if it was, see its log for why their store cannot be opened";
            Problem::new(StatusCode::NOT_FOUND, detail).of_type("analytics-off")
        })
    }
}

/// The problem for an error of a store of analytics.
pub(super) fn failed(error: StoreError) -> Problem {
    match error {
        StoreError::Query(error) => wrong(&error),
        StoreError::OtherBatch { .. } => Problem::new(StatusCode::CONFLICT, error.to_string()),
        StoreError::Engine(_) | StoreError::Damaged(_) => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
        }
    }
}

/// The problem for a fault of a query or a rule, with its place.
pub(super) fn wrong(error: &QueryError) -> Problem {
    let place = DocPath::root().field(&error.field);
    Problem::invalid(&[Diagnostic::error(place, error.message.clone())]).of_type("query")
}

/// Reads a body, of whatever type the client says that it is. A fault is reported with its place.
pub(super) fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let text = std::str::from_utf8(body).map_err(|error| Problem::bad(format!("not JSON: {error}")))?;
    json_body::parsed(text)
}

pub async fn definition(State(api): State<Arc<Api>>) -> Result<Json<Value>, Problem> {
    let kept = api.analytics()?.kept();
    let mut definition = definition::definition(&kept.retention);
    definition["privacy"] = json!(kept.privacy);
    definition["store"] = json!(if kept.is_elsewhere { "clickhouse" } else { "sqlite" });
    Ok(Json(definition))
}

pub async fn query(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let query: weir_analytics::query::Query = read(&body)?;
    let wants_csv = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/csv"));
    if wants_csv {
        super::statistics::permit(&caller, Action::AnalyticsExport, &query.filter)?;
    }
    let query = super::statistics::within_rights(&api, &caller, query).await?;
    let environments = query.filter.get("environment");
    let environments = environments.map_or(Vec::new(), |it| it.values().to_vec());
    let wants_marks = query.wants_marks() && !wants_csv;
    let asked = api.analytics()?.with(move |kept| kept.store.query(&query, now()));
    let mut answer = asked.await.map_err(failed)?;
    if wants_marks && caller.can(Action::HistoryRead, &Scope::Everything) {
        let source = (&*api.store, &api.options.dialects);
        let marks = api.marks.between(source, (answer.from, answer.to), &environments);
        match marks.await {
            Ok(marks) => answer.marks = marks,
            // Numbers without marks are better than none.
            Err(error) => answer.notes.push(format!("commits cannot be read: {error}")),
        }
    }
    let answer = match wants_csv {
        true => {
            let name = "attachment; filename=\"analytics.csv\"";
            let head = [
                (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
                (header::CONTENT_DISPOSITION, name),
            ];
            (head, csv::write(&answer)).into_response()
        }
        false => Json(answer).into_response(),
    };
    // It is asked with a body, and changes nothing.
    Ok((Extension(NoAudit), answer).into_response())
}

/// A number that can only be a time in milliseconds, as the lines of the log have it: seconds would be beyond the year 5000.
fn milliseconds(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number >= 100_000_000_000)
}

/// Whether it is a status that a call can have, or a class of such.
fn is_status(text: &str) -> bool {
    let digits = text.strip_suffix("xx").unwrap_or(text);
    let is_class = digits.len() < text.len();
    digits.bytes().all(|it| it.is_ascii_digit())
        && match digits.parse::<u16>() {
            Ok(class) if is_class => (1..=5).contains(&class),
            Ok(status) => (100..600).contains(&status),
            Err(_) => false,
        }
}

/// A search in the request log.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CallsQuery {
    /// From when: seconds or milliseconds since 1970, RFC 3339, or `-1h`.
    from: Option<String>,
    /// Until when.
    to: Option<String>,
    /// The request id.
    request_id: Option<String>,
    /// The service.
    service: Option<String>,
    /// The route.
    route: Option<String>,
    /// The consumer.
    consumer: Option<String>,
    /// The API.
    api: Option<String>,
    /// The application that called the API.
    application: Option<String>,
    /// Why it was refused.
    refusal: Option<String>,
    /// The status, such as `404`, or a class, such as `5xx`.
    status: Option<String>,
    /// The begin of the path.
    path: Option<String>,
    /// The shortest time, in milliseconds.
    min_ms: Option<u32>,
    /// How many calls, 1 to 1,000; left out: 100.
    limit: Option<usize>,
    /// Where an earlier search ended: its `next`.
    after: Option<String>,
}

impl CallsQuery {
    fn read(query: Option<&str>) -> Result<Self, Problem> {
        let uri = format!("/?{}", query.unwrap_or_default());
        let uri: axum::http::Uri = uri
            .parse()
            .map_err(|_| Problem::bad("the query is not understood"))?;
        let read = axum::extract::Query::<Self>::try_from_uri(&uri);
        Ok(read.map_err(|error| Problem::bad(error.body_text()))?.0)
    }

    /// Refuses values that no call can have: nothing would be found, and look like an answer.
    fn check(&self) -> Result<(), QueryError> {
        if let Some(status) = &self.status
            && !is_status(status)
        {
            let message = format!("'{status}' is not a valid status; write '404' or '5xx'");
            return Err(QueryError::new("status", message));
        }
        if let Some(refusal) = self.refusal.as_deref()
            && !Refusal::ALL.iter().any(|it| it.label() == refusal)
        {
            let known: Vec<&str> = Refusal::ALL.iter().map(|it| it.label()).collect();
            let message = format!("'{refusal}' is no refusal: there are {}", known.join(", "));
            return Err(QueryError::new("refusal", message));
        }
        match self.limit {
            Some(limit) if !(1..=MAX_FOUND).contains(&limit) => Err(QueryError::new(
                "limit",
                format!("expected 1 to {MAX_FOUND}, found {limit}"),
            )),
            _ => Ok(()),
        }
    }

    fn search(self) -> Result<Search, Problem> {
        let at = |field: &str, text: Option<String>| match text {
            None => Ok(None),
            Some(text) if milliseconds(&text).is_some() => Ok(milliseconds(&text)),
            Some(text) => match time::read(field, &TimePoint::Text(text), now()) {
                Ok(seconds) => Ok(Some(seconds.saturating_mul(1_000))),
                Err(error) => Err(wrong(&error)),
            },
        };
        self.check().map_err(|error| wrong(&error))?;
        let after = match self.after.as_deref().map(str::parse) {
            None => None,
            Some(Ok(after)) => Some(after),
            Some(Err(())) => {
                let message = "expected the 'next' of an earlier search".to_owned();
                return Err(wrong(&QueryError::new("after", message)));
            }
        };
        Ok(Search {
            from: at("from", self.from)?.unwrap_or(0),
            to: at("to", self.to)?.unwrap_or(u64::MAX),
            after,
            request_id: self.request_id,
            service: self.service,
            route: self.route,
            consumer: self.consumer,
            api: self.api,
            application: self.application,
            refusal: self.refusal,
            status: self.status,
            path: self.path,
            min_us: self.min_ms.unwrap_or(0).saturating_mul(1_000),
            limit: self.limit.unwrap_or(100),
            parts: None,
        })
    }
}

/// The parts whose calls a caller may see; `None`: all calls. `services` finds the services of all workspaces.
pub(super) fn parts_of(
    caller: &Caller,
    services: impl Fn() -> Vec<(String, String)>,
) -> Option<Vec<CallOwner>> {
    let scopes = caller.scopes(Action::AnalyticsRead);
    let part = |scope: &Scope| match scope {
        Scope::Workspace(name) if name == DEFAULT_WORKSPACE => {
            Some(CallOwner::Services(workspaces::of_default(&services())))
        }
        Scope::Workspace(name) => Some(CallOwner::Workspace(name.clone())),
        Scope::Environment(name) => Some(CallOwner::Environment(name.clone())),
        Scope::Api(name) => Some(CallOwner::Api(name.clone())),
        Scope::Everything | Scope::Portal(_) => None,
    };
    (!scopes.contains(&Scope::Everything)).then(|| scopes.iter().filter_map(part).collect())
}

pub async fn calls(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Json<CallSearchResponse>, Problem> {
    let mut search = CallsQuery::read(query.as_deref())?.search()?;
    search.parts = parts_of(&caller, || run_blocking(|| statistics::services(&api)));
    let found = api.analytics()?.with(move |kept| {
        let found = kept.log.search(&search);
        found.map_err(|error| StoreError::Engine(format!("the request log: {error}")))
    });
    Ok(Json(found.await.map_err(failed)?))
}

/// Events on their way to a browser.
struct Events(mpsc::Receiver<String>);

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0
            .poll_recv(context)
            .map(|event| event.map(|event| Ok(event.into())))
    }
}

pub async fn live(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let mut search = CallsQuery::read(query.as_deref())?.search()?;
    // It is for pages of calls that are over: none comes before one that is yet to come.
    search.after = None;
    search.parts = parts_of(&caller, || run_blocking(|| statistics::services(&api)));
    let analytics = api.analytics()?.clone();
    let (events, taken) = mpsc::channel(MAX_WAITING);
    let users = api.options.users.clone();
    let scopes = caller.scopes(Action::AnalyticsRead);
    let may_go_on = move || {
        let now = caller
            .reauthorize(&users)
            .map(|it| it.scopes(Action::AnalyticsRead));
        now.is_some_and(|now| !now.is_empty() && now == scopes)
    };
    tokio::spawn(follow(analytics, search, events, may_go_on));
    let head = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((
        Extension(StreamingResponse),
        head,
        Body::from_stream(Events(taken)),
    )
        .into_response())
}

/// Sends calls as they end, until the browser has gone or the caller may not see them any more.
async fn follow(
    analytics: Analytics,
    search: Search,
    events: mpsc::Sender<String>,
    may_go_on: impl Fn() -> bool,
) {
    let (mut seen, _) = analytics.kept().log.since(u64::MAX);
    let mut tick = tokio::time::interval(LIVE_TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let most = LIVE_LINES * LIVE_TICK.as_millis() as usize / 1_000;
    for round in 0_u32.. {
        tokio::select! {
            _ = tick.tick() => {}
            () = events.closed() => return,
        }
        let (added, lines) = analytics.kept().log.since(seen);
        let fell_out = (added - seen).saturating_sub(lines.len() as u64);
        seen = added;
        let mut text = String::new();
        let mut skipped = fell_out;
        let wanted = lines.iter().filter(|line| search.holds(line));
        for (place, line) in wanted.enumerate() {
            match place < most {
                true => text.push_str(&event("call", &json!(line))),
                false => skipped += 1,
            }
        }
        if skipped > 0 {
            text.push_str(&event("skipped", &json!({ "calls": skipped })));
        }
        if round % BEATS == 0 {
            if !may_go_on() {
                return;
            }
            text.push_str(": still here\n\n");
        }
        if !text.is_empty() && events.send(text).await.is_err() {
            return;
        }
    }
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

pub async fn deliver(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Result<Response, Problem> {
    let gateways = &api.options.gateways;
    gateways.claim_name(&name, &caller, SystemTime::now())?;
    let batch = Batch::decode(&body).map_err(|error| Problem::bad(format!("no batch of counts: {error}")))?;
    if batch.gateway != name {
        let detail = format!("the batch is one of '{}', not of '{name}'", batch.gateway);
        return Err(Problem::bad(detail));
    }
    let ingested = api
        .analytics()?
        .with(move |kept| kept.store.ingest(&batch, now()));
    let is_duplicate = ingested.await.map_err(failed)? == IngestResult::Duplicate;
    Ok((Extension(NoAudit), Json(json!({ "duplicate": is_duplicate }))).into_response())
}

/// Lines of a gateway's request log.
#[derive(Deserialize, JsonSchema)]
pub struct DeliveredCalls {
    /// The lines.
    calls: Vec<CallLine>,
}

/// Takes lines of a gateway's request log. Lines whose time cannot be, or whose environment the gateway may not follow, are
/// left out.
pub async fn deliver_calls(
    State(api): State<Arc<Api>>,
    Path(name): Path<String>,
    Extension(caller): Extension<Caller>,
    JsonBody(DeliveredCalls { calls: mut lines }): JsonBody<DeliveredCalls>,
) -> Result<Response, Problem> {
    api.options
        .gateways
        .claim_name(&name, &caller, SystemTime::now())?;
    if lines.len() > MAX_DELIVERED || !lines.iter().all(CallLine::is_short) {
        let detail = format!("expected at most {MAX_DELIVERED} lines, as gateways write them");
        return Err(Problem::bad(detail));
    }
    let kept = api.analytics()?.kept();
    let log = &kept.log;
    if log.waiting() > MAX_UNWRITTEN {
        let detail = "more lines arrive than can be written; try again later";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail));
    }
    let now_ms = now() * 1_000;
    let times = now_ms.saturating_sub(OLD_MS)..now_ms + AHEAD_MS;
    let may_follow = |environment: &str| {
        let name = if environment.is_empty() {
            DEFAULT_ENVIRONMENT
        } else {
            environment
        };
        caller.can(Action::ConfigurationFollow, &Scope::Environment(name.to_owned()))
    };
    // Routes of dialects are in no environment: their calls are in the one that the gateway serves.
    let reported = api.options.gateways.environments(&name);
    let given = caller.scopes(Action::ConfigurationFollow).into_iter();
    let mut given = given.filter_map(|it| match it {
        Scope::Environment(name) => Some(name),
        _ => None,
    });
    let served = reported.into_iter().next().or_else(|| given.next());
    if let Some(served) = served.filter(|_| !may_follow("")) {
        let served = Arc::<str>::from(served);
        let unnamed = lines.iter_mut().filter(|it| it.environment.is_empty());
        unnamed.for_each(|it| it.environment = Arc::clone(&served));
    }
    lines.retain(|line| times.contains(&line.time) && may_follow(&line.environment));
    // What the control plane does not keep counts for all gateways.
    lines.retain_mut(|line| {
        let hidden = kept.privacy.hidden(&line.environment);
        if hidden.clients {
            (line.network, line.agent) = Default::default();
        }
        if hidden.consumers {
            line.consumer = Arc::default();
        }
        !hidden.calls
    });
    let (count, gateway) = (lines.len(), Arc::<str>::from(name));
    log.add(lines.into_iter().map(|line| CallLine {
        gateway: Arc::clone(&gateway),
        ..line
    }));
    Ok((Extension(NoAudit), Json(json!({ "taken": count }))).into_response())
}
