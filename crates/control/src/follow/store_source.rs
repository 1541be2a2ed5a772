//! A store as a source: it is opened as soon as it can be, and followed from then on.

use super::source::{Source, SourceEvent};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use weir_store::follow::{ConnectionStatus, Subscription};
use weir_store::seal::{Sealed, SealingKeys};
use weir_store::{Store, StoreError};

/// How long to wait after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A store that may not be open yet. Cheap to share.
#[derive(Debug, Clone)]
pub struct OpenStore(Arc<watch::Sender<Option<Arc<dyn Store>>>>);

impl Default for OpenStore {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl OpenStore {
    /// A store that is open.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(Arc::new(watch::Sender::new(Some(store))))
    }

    /// The store, if it is open.
    pub fn get(&self) -> Option<Arc<dyn Store>> {
        self.0.borrow().clone()
    }

    /// The store, as soon as it is open.
    pub async fn opened(&self) -> Arc<dyn Store> {
        let mut receiver = self.0.subscribe();
        loop {
            if let Some(store) = receiver.borrow_and_update().clone() {
                return store;
            }
            // The sender is here.
            let _never_closed = receiver.changed().await;
        }
    }
}

/// Opens the store at a location; `keys` seal what is in it.
///
/// # Errors
/// As [`weir_store::open`].
pub async fn open(location: &str, keys: Option<&SealingKeys>) -> Result<Arc<dyn Store>, StoreError> {
    Ok(sealed(weir_store::open(location).await?, keys))
}

/// A store whose writes are sealed with `keys`.
pub(crate) fn sealed(store: Arc<dyn Store>, keys: Option<&SealingKeys>) -> Arc<dyn Store> {
    match keys {
        Some(keys) => Arc::new(Sealed::new(store, keys.clone())),
        None => store,
    }
}

/// A store as a source.
pub struct StoreSource {
    location: String,
    keys: Option<SealingKeys>,
    store: OpenStore,
    following: Option<(Subscription, watch::Receiver<ConnectionStatus>)>,
    pause: Option<Duration>,
}

impl StoreSource {
    /// The store at a location. It is there for others in `store` as soon as it is open.
    pub fn new(location: String, keys: Option<SealingKeys>, store: OpenStore) -> Self {
        Self {
            location,
            keys,
            store,
            following: None,
            pause: None,
        }
    }

    async fn start(&mut self) -> Result<SourceEvent, StoreError> {
        let store = match self.store.get() {
            Some(store) => store,
            None => {
                let store = open(&self.location, self.keys.as_ref()).await?;
                self.store.0.send_replace(Some(Arc::clone(&store)));
                store
            }
        };
        let (documents, revision, following) = weir_store::follow::start(store, "").await?;
        let link = following.link();
        self.following = Some((following, link));
        Ok(SourceEvent::whole(documents, revision))
    }
}

#[async_trait]
impl Source for StoreSource {
    async fn next(&mut self) -> SourceEvent {
        if let Some((following, link)) = &mut self.following {
            return tokio::select! {
                changes = following.next() => SourceEvent::changed(changes),
                // The sender lives in what is followed.
                _ = link.changed() => {
                    let link = link.borrow_and_update().clone();
                    match link.fault {
                        Some(fault) => SourceEvent::Unreachable(fault),
                        None => SourceEvent::Changed { revision: following.revision(), documents: Vec::new() },
                    }
                }
            };
        }
        if let Some(pause) = self.pause {
            tokio::time::sleep(pause).await;
        }
        match self.start().await {
            Ok(heard) => heard,
            Err(error) => {
                self.pause = Some(
                    self.pause
                        .map_or(FIRST_PAUSE, |pause| (pause * 2).min(LONGEST_PAUSE)),
                );
                SourceEvent::Unreachable(error.to_string())
            }
        }
    }
}
