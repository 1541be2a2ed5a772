//! Bringing commits to the disk soon after they are made, for those who do not wait for it.

use crate::store::StoreError;
use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;

/// To say that something was committed. Its thread ends with it.
#[derive(Debug)]
pub struct Flusher(SyncSender<()>);

impl Flusher {
    /// Flushes the file to which SQLite writes commits first.
    pub fn start(log: PathBuf) -> Result<Self, StoreError> {
        // One that waits stands for all that come while the disk is busy.
        let (commits, made) = sync_channel(1);
        thread::Builder::new()
            .name("weir-store-disk".into())
            .spawn(move || {
                while made.recv().is_ok() {
                    // SQLite flushes it by itself as well, and reports what is wrong with the disk.
                    if let Err(error) = File::open(&log).and_then(|log| log.sync_data()) {
                        tracing::debug!(%error, "commits cannot be flushed to disk yet");
                    }
                }
            })
            .map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(Self(commits))
    }

    /// Has everything that is committed by now brought to the disk.
    pub fn flush(&self) {
        match self.0.try_send(()) {
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        }
    }
}
