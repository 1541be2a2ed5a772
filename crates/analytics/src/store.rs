//! The contract of a store of analytics, for every engine.

use crate::batch::Batch;
use crate::query::{Query, QueryError, QueryResponse};
use crate::retention::Retention;
use schemars::JsonSchema;
use serde::Serialize;

/// Why a store does not do what it is asked to.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The query asks for what is not kept.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Another batch came under this number.
    #[error("batch {number} of gateway '{gateway}' was already received with other content")]
    OtherBatch {
        /// Whose.
        gateway: String,
        /// Its number.
        number: u64,
    },
    /// The engine failed.
    #[error("the analytics store failed: {0}")]
    Engine(String),
    /// The stored data cannot be read.
    #[error("the analytics store holds damaged data: {0}")]
    Damaged(String),
}

/// The outcome of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IngestResult {
    /// It counts from now on.
    Added,
    /// It had come before, and counts once.
    Duplicate,
}

/// The result of clearing up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionStats {
    /// Rows whose minutes were put together.
    pub repacked: u64,
    /// Rows that were deleted.
    pub deleted: u64,
}

/// A period without complete data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Gap {
    /// The gateway that it is missing from.
    pub gateway: String,
    /// From when, in seconds since the Unix epoch.
    pub from: u64,
    /// Until when.
    pub to: u64,
    /// Why.
    pub reason: String,
}

/// Callers that are to be known no more, each with the name that takes the place of its own. A consumer and an application
/// may have the same name, and so may consumers of several documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renames {
    /// Applications.
    pub applications: Vec<(String, String)>,
    /// Consumers, whatever they have called.
    pub consumers: Vec<(String, String)>,
    /// Consumers whose names others have, too: in calls of some services alone.
    pub consumers_of_services: Vec<(String, String)>,
    /// The prefixes of the names of these services.
    pub services: Vec<String>,
}

impl Renames {
    /// Whether there is nothing to be renamed.
    pub fn is_empty(&self) -> bool {
        self.applications.is_empty() && self.consumers.is_empty() && self.consumers_of_services.is_empty()
    }
}

/// A store of analytics. Its functions block; call them from threads that may block.
pub trait AnalyticsStore: Send + Sync {
    /// Adds a batch, exactly once by its gateway, run and number.
    ///
    /// # Errors
    /// Another batch came under its number, or the engine failed. Then nothing of it counts.
    fn ingest(&self, batch: &Batch, now: u64) -> Result<IngestResult, StoreError>;

    /// Answers a query at a time, in seconds since the Unix epoch.
    ///
    /// # Errors
    /// It asks for what is not kept, or the engine failed.
    fn query(&self, query: &Query, now: u64) -> Result<QueryResponse, StoreError>;

    /// Makes callers nameless: each gets its new name, which leads to no one, or its rows are deleted. Returns how
    /// many rows were changed here; a server elsewhere does not say.
    ///
    /// # Errors
    /// The engine failed. What was done stays done; it may be asked again.
    fn anonymise(&self, renamed: &Renames) -> Result<u64, StoreError>;

    /// Does what is due: puts minutes together, deletes what is too old, gives space back.
    ///
    /// # Errors
    /// The engine failed. What was done stays done.
    fn retain(&self, retention: &Retention, now: u64) -> Result<RetentionStats, StoreError>;
}
