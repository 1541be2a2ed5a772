//! The stream that gateways follow: lines of JSON, for as long as the gateway takes them.
//!
//! `GET /api/v1/sync?after=REVISION` begins with what changed since, where the store still knows that, and else with
//! everything: a line `{"begin":true}`, lines of documents, and a line with the revision that they are of. From then
//! on each commit is a line `{"revision":…,"documents":[[KEY,VALUE],…]}`, in which a value of `null` is a document
//! that is gone. A line `{}` says that the stream still goes on. A gateway that takes too long to read is cut off when
//! the store is: it asks again.

use super::problem::Problem;
use super::{Api, demand};
use crate::access::{Caller, Role};
use crate::follow::is_told;
use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use serde::Deserialize;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use weir_store::{Changes, Document, Key, Revision, Store, Watch, WatchError};

/// Documents on a line.
const BATCH: usize = 200;
/// Lines that are written before the gateway has taken them.
const MAX_WAITING: usize = 8;
/// How often something is said.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// From where.
#[derive(Deserialize)]
pub struct From {
    after: Option<u64>,
}

/// What is written, as it comes.
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
    Query(from): Query<From>,
) -> Result<Response, Problem> {
    demand(&caller, Role::Gateway)?;
    let (lines, taken) = mpsc::channel(MAX_WAITING);
    let store = Arc::clone(&api.store);
    tokio::spawn(async move {
        let after = from.after.map(Revision);
        // An error is the gateway's being gone, or the store's: it asks again.
        if let Err(Ended::Store(error)) = write(&*store, after, &lines).await {
            tracing::debug!(%error, "a gateway's stream ends");
        }
    });
    let body = Body::from_stream(Lines(taken));
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

/// Why a stream is over.
enum Ended {
    /// The gateway takes no more.
    Gone,
    Store(WatchError),
}

impl<E: Into<WatchError>> std::convert::From<E> for Ended {
    fn from(error: E) -> Self {
        Self::Store(error.into())
    }
}

async fn write(
    store: &dyn Store,
    after: Option<Revision>,
    lines: &mpsc::Sender<String>,
) -> Result<(), Ended> {
    let resumed = match after {
        Some(after) => match store.watch("", after).await {
            Ok(watch) => Some(watch),
            Err(WatchError::Compacted) => None,
            Err(error) => return Err(error.into()),
        },
        None => None,
    };
    let mut watch = match resumed {
        Some(watch) => watch,
        None => begin(store, lines).await?,
    };
    loop {
        match tokio::time::timeout(HEARTBEAT, watch.next()).await {
            Ok(changes) => say_changes(changes?, lines).await?,
            Err(_) => say(json!({}), lines).await?,
        }
    }
}

/// Everything that is there, and a watch of what comes after.
async fn begin(store: &dyn Store, lines: &mpsc::Sender<String>) -> Result<Box<dyn Watch>, Ended> {
    let (documents, revision) = store.read("").await?;
    let watch = store.watch("", revision).await?;
    say(json!({ "begin": true }), lines).await?;
    let served: Vec<&Document> = documents.iter().filter(|it| is_told(&it.key)).collect();
    for batch in served.chunks(BATCH) {
        let pairs = batch.iter().map(|it| pair(&it.key, Some(&it.value)));
        say(json!({ "documents": pairs.collect::<Vec<_>>() }), lines).await?;
    }
    say(json!({ "revision": revision.0 }), lines).await?;
    Ok(watch)
}

async fn say_changes(changes: Changes, lines: &mpsc::Sender<String>) -> Result<(), Ended> {
    let served = changes.documents.iter().filter(|(key, _)| is_told(key));
    let pairs = served.map(|(key, document)| pair(key, document.as_ref().map(|it| it.value.as_ref())));
    say(
        json!({ "revision": changes.revision.0, "documents": pairs.collect::<Vec<_>>() }),
        lines,
    )
    .await
}

/// Documents are text. One that is not is broken, and stays so.
fn pair(key: &Key, value: Option<&[u8]>) -> Value {
    json!([key.as_str(), value.map(String::from_utf8_lossy)])
}

async fn say(line: Value, lines: &mpsc::Sender<String>) -> Result<(), Ended> {
    lines.send(format!("{line}\n")).await.map_err(|_| Ended::Gone)
}
