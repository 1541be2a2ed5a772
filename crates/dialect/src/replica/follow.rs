//! Keeping up with the store: what other writers commit, and a store that was away. It commits nothing.

use super::{Replica, ReplicaState};
use std::sync::{PoisonError, Weak};
use std::time::Duration;
use weir_store::Changes;
use weir_store::follow::Subscription;

/// How long until a store that cannot be read is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// The event that woke the task.
enum Event {
    /// The store reports changes.
    Changes(Changes),
    /// The store is away, or back.
    Link,
    /// The state is another one.
    Progress,
}

/// Takes over what other writers commit, until the replica is gone.
pub async fn follow<S: ReplicaState>(replica: Weak<Replica<S>>, mut following: Subscription) {
    let Some(mut progress) = replica.upgrade().map(|it| it.progress.subscribe()) else {
        return;
    };
    let mut epoch = 0;
    let mut reported = following.revision();
    let mut link = following.link();
    loop {
        let event = tokio::select! {
            changes = following.next() => Event::Changes(changes),
            // The sender lives in what is followed.
            _ = link.changed() => Event::Link,
            known = progress.changed() => match known {
                Ok(()) => Event::Progress,
                Err(_) => return,
            },
        };
        let Some(replica) = replica.upgrade() else {
            return;
        };
        let renewed = replica
            .renewed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(renewed) = renewed {
            (epoch, following) = renewed;
            reported = following.revision();
            link = following.link();
            continue;
        }
        // A store that was unavailable may have been reset, or replaced by another one. It may have forgotten commits
        // of this process, and that cannot be detected.
        let must_read = match &event {
            Event::Changes(changes) => changes.revision < reported,
            Event::Link => link.borrow_and_update().is_connected(),
            Event::Progress => false,
        };
        if must_read {
            while let Err(error) = replica.read_again().await {
                tracing::warn!(%error, "the store is reachable again but cannot be read; retrying");
                tokio::time::sleep(PAUSE).await;
            }
            continue;
        }
        if let Event::Changes(changes) = event {
            reported = changes.revision;
            replica.take(&changes, epoch).await;
        }
    }
}
