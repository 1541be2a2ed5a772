//! Keeps a store small: makes it forget its old history from time to time. It changes no document.

use std::sync::Arc;
use std::time::{Duration, SystemTime};
use weir_store::Store;

/// How often old history is forgotten.
const INTERVAL: Duration = Duration::from_secs(600);

/// Forgets, now and then until the process ends, what was recorded longer ago than that.
pub async fn compact_periodically(store: Arc<dyn Store>, kept: Duration) {
    let mut tick = tokio::time::interval(INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let Some(before) = SystemTime::now().checked_sub(kept) else {
            continue;
        };
        if let Err(error) = store.compact(before).await {
            tracing::warn!(%error, "old history cannot be removed from the store; retrying");
        }
    }
}
