//! `GET /api/v1/events`: what happens, as server-sent events for browsers; and the sources of the events.
//!
//! | event | data | receivers |
//! |---|---|---|
//! | `commit` | revision, author, note, the documents (at most 100 are named) | who may read the history of a document; of that document only |
//! | `publication` | its id, environment, API, version; revision and state, or `null`: it is gone | who may read APIs there |
//! | `gateway` | name, state, revision, hash, documents left out; `null` state: it is forgotten | who may see gateways |
//! | `alert` | rule, its name, group, state, value | who may query analytics |
//! | `missed` | nothing | a client that has missed events: it reads again what it shows |
//! | `open` | nothing | everybody, once: the stream has begun |

use super::Api;
use super::problem::Problem;
use crate::access::{Action, Caller, Scope};
use crate::events::{ClientSlot, Event, Events, MAX_DOCUMENTS};
use crate::listen::StreamingResponse;
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use weir_apis::entities::Publication;
use weir_dialect::{DialectSet, ENVIRONMENTS};
use weir_store::{Changes, Document, Key, Revision};

/// Texts that are written before the client has taken them.
const MAX_WAITING: usize = 4;
/// How often the caller's rights are asked for again, and after how many of these times something is said.
const BEAT: Duration = Duration::from_secs(2);
const SILENT_BEATS: u32 = 7;
/// How often gateways and alerts are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// The prefix of the keys of publications.
const PUBLICATIONS: &str = "apis/publications/";

/// From where.
#[derive(Deserialize, schemars::JsonSchema)]
pub struct EventsQuery {
    /// The last event that was seen, if the header `Last-Event-ID` cannot be sent.
    #[serde(default)]
    after: Option<String>,
    /// Kinds of events, separated by commas; left out: all.
    #[serde(default)]
    kinds: Option<String>,
}

/// The texts to write, as they come.
struct Texts(mpsc::Receiver<String>);

impl Stream for Texts {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.0.poll_recv(context);
        next.map(|text| text.map(|text| Ok(text.into())))
    }
}

pub async fn follow(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Query(query): Query<EventsQuery>,
) -> Result<Response, Problem> {
    let place = api.events.join(&caller.name()).ok_or_else(|| {
        let detail = "too many follow the events; close other pages, or try again later";
        Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).of_type("too-many-streams")
    })?;
    let last = headers.get("last-event-id").and_then(|it| it.to_str().ok());
    let last = last.map(str::to_owned).or(query.after);
    let (texts, taken) = mpsc::channel(MAX_WAITING);
    let kinds = query.kinds.map(|it| it.split(',').map(str::to_owned).collect());
    let client = Client {
        api,
        caller,
        kinds,
        texts,
        _place: place,
    };
    tokio::spawn(client.serve(last));
    let head = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    Ok((
        Extension(StreamingResponse),
        head,
        Body::from_stream(Texts(taken)),
    )
        .into_response())
}

/// A client that follows the events.
struct Client {
    api: Arc<Api>,
    caller: Caller,
    /// `None`: all.
    kinds: Option<Vec<String>>,
    texts: mpsc::Sender<String>,
    _place: ClientSlot,
}

impl Client {
    /// Sends events until the client has gone, or may not see them any more.
    async fn serve(mut self, last: Option<String>) {
        let events = self.api.events.clone();
        let mut newest = events.subscribe();
        let mut at = match &last {
            None => *newest.borrow_and_update(),
            // An event of another process comes before all of this one's.
            Some(id) => events.number(id).unwrap_or(u64::MAX),
        };
        let mut text = format!(
            "retry: 2000\nid: {}\nevent: open\ndata: {{}}\n\n",
            events.id(at.min(*newest.borrow()))
        );
        let mut beats = tokio::time::interval_at(Instant::now() + BEAT, BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut silent = 0;
        loop {
            newest.mark_unchanged();
            let next = events.after(at);
            if next.has_missed {
                text.push_str("event: missed\ndata: {}\n\n");
            }
            for (number, event) in next.numbered().filter(|(_, it)| self.wants(it)) {
                if let Some(data) = event.shown_to(&self.caller) {
                    text.push_str(&format!("event: {}\ndata: {data}\n", event.kind));
                    text.push_str(&format!("id: {}\n\n", events.id(number)));
                }
            }
            at = next.number;
            if silent >= SILENT_BEATS {
                text.push_str(": still here\n\n");
            }
            if !text.is_empty() {
                silent = 0;
                if self.texts.send(std::mem::take(&mut text)).await.is_err() {
                    return;
                }
            }
            tokio::select! {
                changed = newest.changed() => if changed.is_err() { return },
                () = self.texts.closed() => return,
                _ = beats.tick() => {
                    silent += 1;
                    match self.caller.reauthorize(&self.api.options.users) {
                        Some(caller) => self.caller = caller,
                        None => return,
                    }
                }
            }
        }
    }

    fn wants(&self, event: &Event) -> bool {
        let kinds = self.kinds.as_ref();
        kinds.is_none_or(|kinds| kinds.iter().any(|it| it == event.kind))
    }
}

/// Sends what happens, until nothing else of the API is left.
pub async fn watch(api: Weak<Api>, mut commits: mpsc::Receiver<Changes>) {
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = PolledState::default();
    loop {
        tokio::select! {
            changes = commits.recv() => {
                let (Some(changes), Some(api)) = (changes, api.upgrade()) else { return };
                send_commit(&api, &changes).await;
            }
            _ = look.tick() => {
                let Some(api) = api.upgrade() else { return };
                if api.events.have_clients() {
                    seen.look(&api).await;
                }
            }
        }
    }
}

/// The right that is needed to read a document; `None`: no caller reads it, it is no configuration.
fn readers(dialects: &DialectSet, key: &Key) -> Option<(Action, Scope)> {
    let key = key.as_str();
    let scope = if let Some(rest) = key.strip_prefix(ENVIRONMENTS) {
        Scope::Environment(rest.split('/').next()?.to_owned())
    } else if let Some(rest) = key.strip_prefix("apis/") {
        let (kind, rest) = rest.split_once('/')?;
        let name = rest.split('/').next().unwrap_or(rest);
        match kind {
            "apis" | "versions" | "revisions" | "plans" | "publications" => Scope::Api(name.to_owned()),
            "environments" => Scope::Environment(name.to_owned()),
            _ => Scope::Everything,
        }
    } else {
        let (dialect, rest) = dialects.of_key(key)?;
        let workspace = dialect.overview(rest, &Value::Null).workspace;
        Scope::workspace(workspace.as_deref().unwrap_or_else(|| dialect.workspace()))
    };
    Some((Action::HistoryRead, scope))
}

async fn send_commit(api: &Api, changes: &Changes) {
    let dialects = &api.options.dialects;
    let readable = changes
        .documents
        .iter()
        .filter_map(|(key, document)| Some((key, document.as_ref(), readers(dialects, key)?)));
    let readable: Vec<_> = readable.collect();
    let Some((first, ..)) = readable.first() else {
        return;
    };
    // Author and note are in the history. It is not read if no client receives the event.
    let (mut author, mut note) = (None, None);
    if api.events.have_clients() {
        let before = Some(Revision(changes.revision.0 + 1));
        let history = api
            .store
            .history(first.as_str(), before, 1)
            .await
            .unwrap_or_default();
        let entry = history.into_iter().find(|it| it.revision == changes.revision);
        (author, note) = entry.map(|it| (it.author, it.note)).unzip();
    }
    let one = |(key, document, needs): &(&Key, Option<&Document>, (Action, Scope))| {
        let change = match document {
            None => "removed",
            Some(document) if document.created == document.modified => "created",
            Some(_) => "changed",
        };
        (
            json!({ "document": key.as_str(), "change": change }),
            needs.clone(),
        )
    };
    api.events.send(Event {
        kind: "commit",
        data: json!({
            "revision": changes.revision.0,
            "author": author,
            "note": note,
            "count": readable.len(),
        }),
        needs: Vec::new(),
        documents: readable.iter().take(MAX_DOCUMENTS).map(one).collect(),
    });
    for (key, document, _) in &readable {
        if let Some(id) = key.as_str().strip_prefix(PUBLICATIONS) {
            send_publication(&api.events, id, *document);
        }
    }
}

fn send_publication(events: &Events, id: &str, document: Option<&Document>) {
    let mut parts = id.splitn(3, '/').map(str::to_owned);
    let (Some(name), Some(version), Some(environment)) = (parts.next(), parts.next(), parts.next()) else {
        return;
    };
    let publication = document.and_then(|it| serde_json::from_slice::<Publication>(&it.value).ok());
    events.send(Event {
        kind: "publication",
        data: json!({
            "id": id,
            "environment": environment,
            "api": name,
            "version": version,
            "revision": publication.as_ref().map(|it| it.revision),
            "state": publication.as_ref().map(|it| it.state),
        }),
        needs: [Scope::Api(name), Scope::Environment(environment)]
            .map(|scope| (Action::ApisRead, scope))
            .into(),
        documents: Vec::new(),
    });
}

/// The last seen state of things that have no events of their own.
#[derive(Debug, Default)]
struct PolledState {
    gateways: Option<BTreeMap<String, Value>>,
    alerts: Option<BTreeMap<String, Value>>,
}

impl PolledState {
    async fn look(&mut self, api: &Api) {
        let gateways = api.options.gateways.to_json(SystemTime::now());
        let gateways = gateways.into_iter().map(|it| {
            let name = it["name"].as_str().unwrap_or_default().to_owned();
            let fields = ["name", "state", "revision", "hash", "skipped"];
            let fields = fields.map(|field| (field.to_owned(), it[field].clone()));
            (name, Value::Object(fields.into_iter().collect()))
        });
        let needs = (Action::GatewaysRead, Scope::Everything);
        let gone = |name: &str| json!({ "name": name, "state": null });
        let events = difference("gateway", &mut self.gateways, gateways.collect(), needs, gone);
        events.into_iter().for_each(|it| api.events.send(it));
        let Some(analytics) = &api.options.analytics else {
            return;
        };
        let Ok(alerts) = analytics.with(|kept| Ok(alerts(kept))).await else {
            return;
        };
        let needs = (Action::AnalyticsRead, Scope::Everything);
        let gone = |id: &str| json!({ "id": id, "state": null });
        let events = difference("alert", &mut self.alerts, alerts, needs, gone);
        events.into_iter().for_each(|it| api.events.send(it));
    }
}

/// How the groups of all rules stand.
fn alerts(kept: &crate::analytics::AnalyticsStorage) -> BTreeMap<String, Value> {
    let rules = kept.rules().unwrap_or_default();
    let of_rule = |rule: &weir_analytics::alerts::Rule| {
        let (id, name) = (rule.id.clone(), rule.name.clone());
        let alerts = kept.alerts_of(&rule.id).into_iter();
        alerts.map(move |(group, alert)| {
            let key = format!("{id} {group:?}");
            let summary = json!({
                "id": key, "rule": id, "name": name, "group": group,
                "state": alert.state, "since": alert.since, "value": alert.start_value,
            });
            (key, summary)
        })
    };
    rules.iter().flat_map(of_rule).collect()
}

/// Events for what is other than it was. What is seen for the first time is no event.
fn difference(
    kind: &'static str,
    seen: &mut Option<BTreeMap<String, Value>>,
    now: BTreeMap<String, Value>,
    needs: (Action, Scope),
    gone: impl Fn(&str) -> Value,
) -> Vec<Event> {
    let event = |data| Event {
        kind,
        data,
        needs: vec![needs.clone()],
        documents: Vec::new(),
    };
    let mut events = Vec::new();
    if let Some(before) = seen {
        let changed = now.iter().filter(|(name, data)| before.get(*name) != Some(data));
        events.extend(changed.map(|(_, data)| event(data.clone())));
        let missing = before.keys().filter(|name| !now.contains_key(*name));
        events.extend(missing.map(|name| event(gone(name))));
    }
    *seen = Some(now);
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differences_are_events() {
        let mut seen = None;
        let map = |pairs: &[(&str, u64)]| -> BTreeMap<String, Value> {
            pairs
                .iter()
                .map(|(name, it)| ((*name).to_owned(), json!(it)))
                .collect()
        };
        for (now, expected) in [
            (map(&[("a", 1), ("b", 1)]), vec![]),
            (map(&[("a", 1), ("b", 1)]), vec![]),
            (map(&[("a", 2), ("c", 1)]), vec![json!(2), json!(1), json!("b")]),
            (map(&[]), vec![json!("a"), json!("c")]),
        ] {
            let needs = (Action::GatewaysRead, Scope::Everything);
            let events = difference("gateway", &mut seen, now, needs, |name| json!(name));
            assert_eq!(events.into_iter().map(|it| it.data).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn each_document_has_its_readers() {
        let dialects = crate::sample::all();
        for (key, expected) in [
            ("native/routes/a", Some("everything")),
            ("env/prod/native/routes/a", Some("environment:prod")),
            ("apis/apis/orders", Some("api:orders")),
            ("apis/revisions/orders/1.0/00000001", Some("api:orders")),
            ("apis/publications/orders/1.0.0/prod", Some("api:orders")),
            ("apis/environments/prod", Some("environment:prod")),
            ("apis/subscriptions/x", Some("everything")),
            ("weir/users/ada", None),
            ("weir/audit/1", None),
        ] {
            let found = readers(&dialects, &Key::new(key).expect("a key"));
            assert_eq!(
                found.map(|(_, scope)| scope.to_string()).as_deref(),
                expected,
                "{key}"
            );
        }
    }
}
