//! Snapshots on their way from the thread that compiles to the gateway: the first one starts it, the others are published.

use crate::status::Status;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;
use weir_snapshot::Snapshot;

/// Takes snapshots over from the thread that compiles.
pub struct Serving {
    status: Arc<Status>,
    /// The snapshot that came before there was a gateway.
    waiting: Mutex<Option<Snapshot>>,
    came: Notify,
}

impl Serving {
    /// Nothing has come yet.
    pub fn new(status: &Arc<Status>) -> Self {
        Self {
            status: Arc::clone(status),
            waiting: Mutex::default(),
            came: Notify::new(),
        }
    }

    /// Called by the thread that compiles.
    pub fn take(&self, snapshot: Snapshot) {
        let mut waiting = self.waiting();
        if self.status.gateway().is_some() {
            drop(waiting);
            self.status.publish(snapshot);
            self.status.served();
        } else {
            *waiting = Some(snapshot);
            self.came.notify_one();
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Option<Snapshot>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first snapshot. Workers must not be started by the thread that compiles: they would be as low in priority.
    pub async fn first(&self) -> Snapshot {
        loop {
            if let Some(snapshot) = self.waiting().take() {
                return snapshot;
            }
            self.came.notified().await;
        }
    }

    /// From now on there is a gateway.
    pub fn begin(&self, gateway: weir_proxy::Gateway) {
        let newer = {
            let mut waiting = self.waiting();
            self.status.set_gateway(gateway);
            waiting.take()
        };
        if let Some(snapshot) = newer {
            self.status.publish(snapshot);
        }
        self.status.served();
    }
}
