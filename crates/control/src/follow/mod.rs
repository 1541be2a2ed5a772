//! Following: from a store's documents to what the gateway serves, again with every change.
//!
//! A [`Source`] delivers documents; a thread ([`engine`]) reads, compiles and hands over; one of low priority does
//! it for it while changes come fast. What comes faster than it compiles is served together.

mod background;
mod compile;
mod dialects;
mod documents;
mod engine;
mod expiry;
mod last_known_good;
mod remote;
pub(crate) mod skew;
mod source;
mod state;
mod store_source;

pub use compile::{ReducedModel, SkippedResource, compile, compile_reduced};
pub(crate) use compile::{name_of, resource_of};
pub use dialects::{DialectModels, is_replicated, is_served, replicated_prefixes};
pub use documents::Documents;
pub use engine::{Engine, EngineEvent, FileContent, InvalidateFn};
pub use last_known_good::{FILE_NAME as LAST_KNOWN_GOOD_FILE, LastKnownGoodFile};
pub use remote::ControlSource;
pub use source::{Source, SourceEvent};
pub use state::{Contact, FollowState, StateHandle};
pub(crate) use store_source::sealed;
pub use store_source::{OpenStore, StoreSource, open as open_store};

use background::Background;
use engine::Work;
use expiry::ExpiryQueue;
use last_known_good::LastKnownGoodWriter;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use weir_dialect::DialectSet;

/// The events that wait to be taken, at most.
const MAX_WAITING: usize = 1024;
/// How long a source may be silent at the start before the last known good documents are served.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Sends events to the engine that do not come from its source.
#[derive(Debug, Clone)]
pub struct Inputs {
    sender: mpsc::Sender<EngineEvent>,
    dialects: DialectSet,
}

impl Inputs {
    /// Sends an event. It is dropped if the engine has ended.
    pub async fn send(&self, input: EngineEvent) {
        let _ended = self.sender.send(input).await;
    }
}

/// Starts the thread of an engine, before there is a source. What is served is kept in the file `last_known_good`.
///
/// # Errors
/// A thread cannot be started.
pub fn start(
    engine: Engine,
    dialects: DialectSet,
    last_known_good: Option<LastKnownGoodFile>,
) -> std::io::Result<Inputs> {
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    let weak = sender.downgrade();
    let ask = move || {
        if let Some(sender) = weak.upgrade() {
            let _ended = sender.blocking_send(EngineEvent::Keep);
        }
    };
    let followed = engine.followed.clone();
    let on_written = move |revision| followed.update(|state| state.last_known_good = Some(revision));
    let writer = last_known_good
        .clone()
        .map(|file| LastKnownGoodWriter::start(file, ask, on_written))
        .transpose()?;
    let set = dialects.clone();
    let background = Background::start("weir-compile-low", Work::build)?;
    std::thread::Builder::new()
        .name("weir-compile".to_owned())
        .spawn(move || engine.run(set, (writer, last_known_good), &background, receiver))?;
    Ok(Inputs { sender, dialects })
}

/// Passes on the events of a source, until the engine ends. If the source is away at the start, the documents kept
/// in `last_known_good` are served.
pub async fn follow(mut source: Box<dyn Source>, inputs: Inputs, last_known_good: Option<LastKnownGoodFile>) {
    let first = tokio::time::timeout(TIMEOUT, source.next()).await;
    let is_away = !matches!(first, Ok(SourceEvent::Whole { .. }));
    let mut ends = ExpiryQueue::new(inputs.dialects.clone());
    if is_away && let Some(file) = last_known_good {
        match tokio::task::spawn_blocking(move || file.load()).await {
            Ok(Ok(Some((mut documents, revision)))) => {
                ends.observe_all(&mut documents, SystemTime::now());
                tracing::warn!(%revision, documents = documents.len(), "the store is unreachable; serving the last known good configuration");
                inputs.send(EngineEvent::LastKnownGood(documents, revision)).await;
            }
            Ok(Ok(None)) => {}
            Ok(Err(error)) => tracing::error!(%error, "the last known good configuration cannot be read"),
            Err(error) => {
                tracing::error!(%error, "the task that reads the last known good configuration has failed")
            }
        }
    }
    let mut next = match first {
        Ok(heard) => heard,
        Err(_) => next_event(&mut *source, &mut ends, &inputs).await,
    };
    loop {
        ends.observe(&mut next, SystemTime::now());
        if let SourceEvent::Unreachable(reason) = &next {
            tracing::warn!(%reason, "the store is unreachable");
        }
        if inputs.sender.send(EngineEvent::Source(next)).await.is_err() {
            return;
        }
        next = next_event(&mut *source, &mut ends, &inputs).await;
    }
}

/// The next event of the source. Until then, expired documents are removed.
async fn next_event(source: &mut dyn Source, ends: &mut ExpiryQueue, inputs: &Inputs) -> SourceEvent {
    let mut next = source.next();
    loop {
        tokio::select! {
            heard = &mut next => return heard,
            () = ends.next() => {
                let over = ends.over(SystemTime::now());
                if !over.is_empty() {
                    inputs.send(EngineEvent::Over(over)).await;
                }
            }
        }
    }
}
