//! Commits of those who do not mind what others committed meanwhile, and what is done to keep a store small.

use std::sync::Arc;
use std::time::{Duration, SystemTime};
use weir_store::{CommitError, Revision, Store, Transaction};

/// Commits, again when somebody else was faster, at most so many times. For changes that stand for themselves: no
/// other document and no earlier value decides whether they are right.
///
/// # Errors
/// As [`Store::commit`].
pub async fn insist(
    store: &dyn Store,
    transaction: Transaction,
    mut expected: Revision,
    attempts: usize,
) -> Result<Revision, CommitError> {
    for _ in 1..attempts.max(1) {
        match store.commit(transaction.clone(), expected).await {
            Err(CommitError::Conflict { current }) => expected = current,
            done => return done,
        }
    }
    store.commit(transaction, expected).await
}

/// How often old history is forgotten.
const INTERVAL: Duration = Duration::from_secs(600);

/// Forgets, now and then until the process ends, what was recorded longer ago than that.
pub async fn forget(store: Arc<dyn Store>, kept: Duration) {
    let mut tick = tokio::time::interval(INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(before) = SystemTime::now().checked_sub(kept) else {
            continue;
        };
        if let Err(error) = store.compact(before).await {
            tracing::warn!(%error, "old history is not forgotten; it is tried again");
        }
    }
}
