//! Turns of those that read for the same group, so that each record is given to one of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::OwnedMutexGuard;
use weir_plugin::KafkaRead;

/// A group, by the cluster that it is of.
type Group = (Vec<(String, u16)>, String);

/// The groups that are being read.
#[derive(Default)]
pub struct Turns(Mutex<HashMap<Group, Weak<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// Waits until no other reads for the group; others wait until what this gives is dropped.
    pub async fn take(&self, read: &KafkaRead) -> OwnedMutexGuard<()> {
        let turn = {
            let key = (read.source.cluster.brokers.clone(), read.group.clone());
            let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match groups.get(&key).and_then(Weak::upgrade) {
                Some(turn) => turn,
                None => {
                    groups.retain(|_, turn| turn.strong_count() > 0);
                    let turn = Arc::default();
                    groups.insert(key, Arc::downgrade(&turn));
                    turn
                }
            }
        };
        turn.lock_owned().await
    }
}
