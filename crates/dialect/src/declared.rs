//! The file that holds a dialect's whole configuration, as the Admin API over it sees it.
//!
//! Its documents are held in a store in memory of that Admin API's own, so that the same engine answers. They are read from
//! the text when a call comes and another text is served than the one known: a gateway whose Admin API nothing calls does
//! not keep them. What a text says is the dialect's business.

use std::sync::Arc;
use tokio::sync::{Mutex, MutexGuard};
use weir_store::DeclaredConfig;

/// The file behind an Admin API.
#[derive(Debug)]
pub struct FileBacking {
    /// The text that is served.
    declared: Arc<DeclaredConfig>,
    /// The number of the text whose documents are known; 0: none yet.
    known: Mutex<u64>,
}

impl FileBacking {
    /// None of its texts is known yet.
    pub fn new(declared: Arc<DeclaredConfig>) -> Self {
        Self {
            declared,
            known: Mutex::new(0),
        }
    }

    /// The turn of one that reads or replaces the text. Others wait until both sides have it.
    pub async fn turn(&self) -> FileGuard<'_> {
        FileGuard {
            declared: &self.declared,
            known: self.known.lock().await,
        }
    }
}

/// The turn of one that reads or replaces the text.
#[derive(Debug)]
pub struct FileGuard<'f> {
    declared: &'f DeclaredConfig,
    known: MutexGuard<'f, u64>,
}

impl FileGuard<'_> {
    /// The text that is served and its number, unless its documents are known.
    pub fn unknown(&self) -> Option<(u64, Arc<str>)> {
        let (number, text) = self.declared.current();
        (number != *self.known).then_some((number, text))
    }

    /// Has another text served. Gives its number.
    ///
    /// # Errors
    /// Why it is not served; the one before is.
    pub async fn replace(&self, text: Arc<str>) -> Result<u64, String> {
        self.declared.replace(text).await
    }

    /// The documents of the text with this number are known now.
    pub fn publish(mut self, number: u64) {
        *self.known = number;
    }
}
