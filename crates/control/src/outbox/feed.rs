//! From the configuration's history to messages: each commit is read once, and what it means is written to the outbox
//! together with the place up to which the history was read.

use super::concurrency::{PendingByApplication, stopped};
use super::message::Delivery;
use super::receivers::{Inboxes, PREFIX, Receivers};
use super::{Outbox, WAITING};
use crate::operational::{OperationalEntry, OperationalError, OperationalWrite};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use weir_model::unix_time::seconds;
use weir_store::{HistoryEntry, Key, Revision, Store, StoreError};

/// The key of the place in the history.
const CURSOR: &str = "outbox/cursor";
/// Changes that are read at once.
const BATCH: usize = 500;
/// Commits that are read in one go. What is older was missed for a long time; its messages are not sent any more.
const MAX_CHANGES: usize = 50_000;
/// How long the reader sleeps at most.
const INTERVAL: Duration = Duration::from_secs(10);

/// The revision up to which the history was read.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Cursor {
    revision: u64,
}

/// Why the history is not read.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The configuration's store does not do its part.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The operational store does not do its part.
    #[error(transparent)]
    Operational(#[from] OperationalError),
}

/// Reads the history as it grows, until the process ends.
///
/// # Errors
/// The store cannot be followed.
pub async fn run(store: Arc<dyn Store>, outbox: Outbox) -> Result<(), StoreError> {
    let (_, _, mut following) = weir_store::follow::start(Arc::clone(&store), PREFIX).await?;
    loop {
        if let Err(error) = round(&*store, &outbox, SystemTime::now()).await {
            tracing::warn!(%error, "messages about changes cannot be written into the outbox; retrying");
        }
        tokio::select! {
            _ = following.next() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

async fn round(store: &dyn Store, outbox: &Outbox, now: SystemTime) -> Result<(), FeedError> {
    match outbox.write_alone(now).await? {
        Some(_alone) => read(store, outbox, now).await,
        None => Ok(()),
    }
}

/// Writes messages for all commits that were not read before. The first time, it only notes the end of the history.
///
/// # Errors
/// One of the stores does not do its part. The same commits are read again then.
pub async fn read(store: &dyn Store, outbox: &Outbox, now: SystemTime) -> Result<(), FeedError> {
    let key = Key::new(CURSOR).map_err(OperationalError::Name)?;
    let known = outbox.0.store.read::<Cursor>(&key, now).await?;
    // Before the documents: the webhook of a message was there before the message was.
    let waiting: Vec<OperationalEntry<Delivery>> = outbox.0.store.list(WAITING, now).await?;
    let (documents, head) = store.read(PREFIX).await?;
    let mut writes = Vec::new();
    if let Some(known) = known {
        if known.value.revision >= head.0 {
            return Ok(());
        }
        let mut receivers = Receivers::of(&documents);
        let (mut places, mut dropped) = (PendingByApplication::of(&waiting), 0);
        writes.extend(stopped(&waiting, |app, name| receivers.state_of(app, name), now)?);
        let mut inboxes = Inboxes::default();
        for entry in since(store, Revision(known.value.revision), head).await? {
            for (number, event) in receivers.events(&entry).into_iter().enumerate() {
                let id = format!(
                    "{:012}-{:04}-{}",
                    entry.revision.0,
                    number,
                    short(entry.key.as_str())
                );
                receivers.look_up(outbox, &event, now).await?;
                let about = (entry.author.as_str(), seconds(entry.time));
                let messages = receivers.messages(outbox, &event, about, Some(entry.revision.0));
                for (place, (origin, message)) in messages.into_iter().enumerate() {
                    if !places.take(&message) {
                        dropped += 1;
                        continue;
                    }
                    let id = format!("{id}-{place}");
                    writes.push(outbox.entry(Some(&id), (origin, &event.kind, message), now)?);
                }
                inboxes.take(&receivers, &event, seconds(entry.time));
            }
        }
        if dropped > 0 {
            tracing::warn!(
                dropped,
                "webhooks of applications are dropped: too many are waiting"
            );
        }
        writes.extend(inboxes.writes(outbox, now).await?);
    }
    let is_new = !writes.is_empty();
    writes.push(OperationalWrite::put(key, &Cursor { revision: head.0 }, None)?);
    outbox.0.store.write(writes, now).await?;
    if is_new {
        outbox.notify();
    }
    Ok(())
}

/// A few characters that distinguish documents of one commit.
fn short(key: &str) -> String {
    weir_apis::hash::of_bytes(key.as_bytes())[..8].to_owned()
}

/// The changes after a revision and up to another one, the earliest first.
async fn since(store: &dyn Store, from: Revision, to: Revision) -> Result<Vec<HistoryEntry>, StoreError> {
    let mut found = Vec::new();
    let mut before = Some(Revision(to.0.saturating_add(1)));
    loop {
        let batch = store.history(PREFIX, before, BATCH).await?;
        let count = batch.len();
        before = batch.last().map(|it| it.revision);
        let newer = batch.into_iter().take_while(|it| it.revision > from);
        let known = found.len();
        found.extend(newer);
        if found.len() - known < count || count < BATCH || found.len() > MAX_CHANGES {
            found.reverse();
            return Ok(found);
        }
    }
}
