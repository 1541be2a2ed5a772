//! The stream that gateways follow: lines of JSON, for as long as the gateway takes them.
//!
//! A gateway that sends the `version` of the stream that it knows first gets the version of this one: a line
//! `{"weir":{"version":…,"program":…,"requires":[…]}}` ([`crate::follow::skew`]). Gateways pass over fields that they do not
//! know.
//!
//! `GET /api/v1/sync?after=REVISION` begins with what changed since, if the store still knows that, and otherwise with
//! everything: a line `{"begin":true}`, lines of documents, and a line with the revision that they are of. From then
//! on each commit is a line `{"revision":…,"documents":[[KEY,VALUE],…]}`, in which a value of `null` is a document
//! that is gone. A line `{}` says that the stream still goes on. A gateway that takes too long to read is cut off when
//! the store is: it asks again.
//!
//! With `hash=true` a line that keeps the stream alive also has the state of the control plane:
//! `{"served":{"revision":…,"hash":…}}`. A gateway that has other documents of that revision has followed another
//! store, or this one before it was set back, and asks for everything. A gateway of other environments than the control
//! plane's has other documents: it gets the hash of its own once, when its stream was resumed and has caught up.
//!
//! A caller with the right to follow in some environments follows no others. What is in no environment is for all.

use super::Api;
use super::operation::refusal;
use super::problem::Problem;
use crate::access::{Action, Caller, Scope};
use crate::follow::skew::Head;
use crate::follow::{Documents, is_replicated, is_served, replicated_prefixes};
use crate::listen::StreamingResponse;
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use serde::Deserialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use weir_dialect::{DEFAULT_ENVIRONMENT, DialectSet};
use weir_store::{Changes, Document, Key, Revision, Store, StoreError, Watch, WatchError};

/// Documents on a line, at most, and bytes of their values: the one that goes beyond is the line's last.
const BATCH: usize = 200;
const BATCH_BYTES: usize = 4 << 20;
/// Lines that are written before the gateway has taken them.
const MAX_WAITING: usize = 8;
/// How often something is said, and the caller's right asked for again.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// Streams for which everything is read at a time.
pub const MAX_READING: usize = 4;
/// How often everything is read part by part, until nothing was committed meanwhile.
const ATTEMPTS: usize = 4;

/// From where.
#[derive(Deserialize, schemars::JsonSchema)]
pub struct SyncQuery {
    /// The revision that the gateway has; left out: it gets everything.
    after: Option<u64>,
    /// Whether the gateway gets hashes of what it should serve.
    #[serde(default)]
    hash: bool,
    /// The newest version of the stream that the gateway knows; the first ones do not say.
    version: Option<u64>,
    /// The environments that the gateway serves, with commas between them; left out: `default`.
    environment: Option<String>,
}

/// The lines to write, as they come.
struct Lines(mpsc::Receiver<String>);

impl Stream for Lines {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0
            .poll_recv(context)
            .map(|line| line.map(|line| Ok(line.into())))
    }
}

pub async fn sync(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Query(from): Query<SyncQuery>,
) -> Result<Response, Problem> {
    let (lines, taken) = mpsc::channel(MAX_WAITING);
    let mut beats = tokio::time::interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let own = &api.options.dialects;
    let dialects = own
        .clone()
        .in_environments(environments_of(&caller, from.environment.as_deref())?);
    // The hash of what is served here says nothing about a gateway of other environments.
    let is_alike = dialects.environments() == own.environments();
    let writer = Writer {
        api,
        caller,
        dialects,
        wants_hash: from.hash && is_alike,
        wants_own_hash: from.hash && !is_alike,
        wants_head: from.version.is_some(),
        lines,
        beats,
    };
    tokio::spawn(async move {
        // An error is the gateway's being gone, or the store's: it asks again.
        match writer.write(from.after.map(Revision)).await {
            Err(StreamEnd::Store(error)) => {
                tracing::debug!(%error, "a gateway's stream was closed: the store failed")
            }
            Err(StreamEnd::Refused) => tracing::info!(
                "a gateway's stream was closed: its user may no longer follow the configuration"
            ),
            Err(StreamEnd::Gone) | Ok(()) => {}
        }
    });
    let body = Body::from_stream(Lines(taken));
    let head = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((Extension(StreamingResponse), head, body).into_response())
}

/// The environments that a gateway names, if it may follow all of them.
pub(super) fn environments_of(caller: &Caller, names: Option<&str>) -> Result<Vec<String>, Problem> {
    let names = names.unwrap_or(DEFAULT_ENVIRONMENT).split(',');
    let names: Vec<String> = names.map(str::to_owned).collect();
    match names.iter().find(|it| !may_follow(caller, it)) {
        None => Ok(names),
        Some(refused) => {
            let scope = [Scope::Environment(refused.clone())];
            Err(Problem::forbidden(refusal(
                caller,
                Action::ConfigurationFollow,
                &scope,
            )))
        }
    }
}

/// Whether a caller may follow the configuration as a gateway of an environment does.
pub(super) fn may_follow(caller: &Caller, environment: &str) -> bool {
    caller.can(
        Action::ConfigurationFollow,
        &Scope::Environment(environment.to_owned()),
    )
}

/// Why a stream is over.
enum StreamEnd {
    /// The gateway takes no more.
    Gone,
    /// The caller has lost the right to it.
    Refused,
    Store(WatchError),
}

impl<E: Into<WatchError>> std::convert::From<E> for StreamEnd {
    fn from(error: E) -> Self {
        Self::Store(error.into())
    }
}

/// The writer of a stream.
struct Writer {
    api: Arc<Api>,
    caller: Caller,
    /// With the environments of the gateway.
    dialects: DialectSet,
    wants_hash: bool,
    /// Whether the gateway gets the hash of its own documents, since it is not that of what is served here.
    wants_own_hash: bool,
    wants_head: bool,
    lines: mpsc::Sender<String>,
    beats: Interval,
}

impl Writer {
    async fn write(mut self, after: Option<Revision>) -> Result<(), StreamEnd> {
        if self.wants_head {
            self.send(json!({ "weir": Head::own() })).await?;
        }
        let store = Arc::clone(&self.api.store);
        let resumed = match after {
            Some(after) => match store.watch("", after).await {
                Ok(watch) => Some(watch),
                Err(WatchError::Compacted) => None,
                Err(error) => return Err(error.into()),
            },
            None => None,
        };
        // Only what was resumed may be of another store, or of this one before it was set back.
        let mut own = match (&resumed, self.wants_own_hash) {
            (Some(_), true) => Some(self.own_hash(&*store).await?),
            _ => None,
        };
        let mut watch = match resumed {
            Some(watch) => watch,
            None => self.begin(&*store).await?,
        };
        let mut at = after.unwrap_or_default();
        loop {
            if let Some((_, hash)) = own.take_if(|(revision, _)| *revision <= at) {
                self.send(json!({ "served": { "revision": at.0, "hash": hash } }))
                    .await?;
            }
            let changes = self.with_heartbeat(watch.next()).await??;
            at = changes.revision;
            self.send_changes(&changes).await?;
        }
    }

    /// The hash of what this gateway has to have, and the revision of that.
    async fn own_hash(&mut self, store: &dyn Store) -> Result<(Revision, String), StreamEnd> {
        let (api, dialects) = (Arc::clone(&self.api), self.dialects.clone());
        let reading = async {
            let _turn = api.reading.acquire().await;
            read_replicated(store, &dialects).await
        };
        let (changes, revision) = self.with_heartbeat(reading).await??;
        let mut documents = Documents::default();
        for document in changes
            .into_iter()
            .filter(|it| is_served(&self.dialects, &it.key))
        {
            documents.apply(&document.key, Some(document.value));
        }
        Ok((revision, documents.hash()))
    }

    /// Everything that is there, and a watch of what comes after.
    async fn begin(&mut self, store: &dyn Store) -> Result<Box<dyn Watch>, StreamEnd> {
        let (api, dialects) = (Arc::clone(&self.api), self.dialects.clone());
        let reading = async {
            // When many come at once, each waits rather than that all are held at once.
            let _turn = api.reading.acquire().await;
            read_replicated(store, &dialects).await
        };
        let (documents, revision) = self.with_heartbeat(reading).await??;
        let watch = store.watch("", revision).await?;
        self.send(json!({ "begin": true })).await?;
        let (mut pairs, mut bytes) = (Vec::new(), 0);
        for document in &documents {
            pairs.push(pair(&document.key, Some(&document.value)));
            bytes += document.value.len();
            if pairs.len() >= BATCH || bytes >= BATCH_BYTES {
                self.send(json!({ "documents": std::mem::take(&mut pairs) }))
                    .await?;
                bytes = 0;
            }
        }
        self.send(json!({ "documents": pairs })).await?;
        self.send(json!({ "revision": revision.0 })).await?;
        Ok(watch)
    }

    /// Does something that may take long; the gateway hears meanwhile that the stream goes on.
    async fn with_heartbeat<T>(&mut self, work: impl Future<Output = T>) -> Result<T, StreamEnd> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                () = self.lines.closed() => return Err(StreamEnd::Gone),
                _ = self.beats.tick() => self.beat().await?,
            }
        }
    }

    /// Writes that the stream goes on, if the caller may still follow it.
    async fn beat(&self) -> Result<(), StreamEnd> {
        let caller = self.caller.reauthorize(&self.api.options.users);
        let environments = self.dialects.environments();
        if !caller.is_some_and(|it| environments.iter().all(|name| may_follow(&it, name))) {
            return Err(StreamEnd::Refused);
        }
        let state = self.api.options.followed.state();
        let is_known = self.wants_hash && state.served_at.is_some() && !state.is_last_known_good;
        self.send(match is_known {
            true => json!({ "served": { "revision": state.revision.0, "hash": state.hash } }),
            false => json!({}),
        })
        .await
    }

    async fn send_changes(&self, changes: &Changes) -> Result<(), StreamEnd> {
        let replicated = changes
            .documents
            .iter()
            .filter(|(key, _)| is_replicated(&self.dialects, key));
        let pairs =
            replicated.map(|(key, document)| pair(key, document.as_ref().map(|it| it.value.as_ref())));
        self.send(json!({ "revision": changes.revision.0, "documents": pairs.collect::<Vec<_>>() }))
            .await
    }

    async fn send(&self, line: Value) -> Result<(), StreamEnd> {
        let sent = self.lines.send(format!("{line}\n")).await;
        sent.map_err(|_| StreamEnd::Gone)
    }
}

/// All documents that gateways get, and their revision. What others keep in the store may be
/// many times as much.
async fn read_replicated(
    store: &dyn Store,
    dialects: &DialectSet,
) -> Result<(Vec<Document>, Revision), StoreError> {
    'again: for _ in 0..ATTEMPTS {
        let (mut documents, mut known) = (Vec::new(), None);
        for prefix in replicated_prefixes(dialects) {
            let (some, revision) = store.read(prefix).await?;
            if *known.get_or_insert(revision) != revision {
                continue 'again;
            }
            documents.extend(some);
        }
        if let Some(revision) = known {
            return Ok((documents, revision));
        }
    }
    let (mut documents, revision) = store.read("").await?;
    documents.retain(|it| is_replicated(dialects, &it.key));
    Ok((documents, revision))
}

/// Documents are text. One that is not is broken, and stays so.
fn pair(key: &Key, value: Option<&[u8]>) -> Value {
    json!([key.as_str(), value.map(String::from_utf8_lossy)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;
    use weir_store::memory::MemoryStore;
    use weir_store::{Change, Transaction};

    #[tokio::test]
    async fn only_what_is_replicated_is_read() {
        let (store, dialects) = (MemoryStore::new(), crate::sample::all());
        let replicated_keys = ["native/routes/1", "sample/routes/1", "weir/purges/1"];
        let others = ["weir/audit/1", "weir/gateways/1", "weir/users/1"];
        let put = |key: &str| Change::put(Key::new(key).expect("a key"), *b"{}");
        let transaction = Transaction {
            author: String::new(),
            note: String::new(),
            time: SystemTime::UNIX_EPOCH,
            changes: replicated_keys.into_iter().chain(others).map(put).collect(),
        };
        store.commit(transaction, Revision(0)).await.expect("made");
        let (documents, revision) = read_replicated(&store, &dialects).await.expect("documents");
        let mut keys: Vec<&str> = documents.iter().map(|it| it.key.as_str()).collect();
        keys.sort_unstable();
        assert_eq!((keys.as_slice(), revision), (&replicated_keys[..], Revision(1)));
        assert!(documents.iter().all(|it| is_replicated(&dialects, &it.key)));
    }
}
