//! A dialect's Admin API, as the program opens it.

use crate::{ForeignRoutes, Node};
use axum::Router;
use std::pin::Pin;
use std::sync::Arc;
use weir_store::{DeclaredConfig, Store, StoreError};

/// What an Admin API works with.
#[derive(Debug, Clone)]
pub struct AdminContext {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The configuration that stands in a file of the dialect; `None`: the store holds it.
    pub declared: Option<Arc<DeclaredConfig>>,
    /// The routes that are served, of all dialects.
    pub routes: Arc<dyn ForeignRoutes>,
    /// What the Admin API reports about the process.
    pub node: Node,
}

/// An Admin API that is open.
pub struct AdminApi {
    /// Its paths. Callers are known to a guard in front of it, which puts [`crate::Rights`] into the extensions of calls.
    pub router: Router,
    /// The revisions that metrics report; `None`: none.
    pub revisions: Option<Arc<dyn Revisions>>,
}

impl std::fmt::Debug for AdminApi {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("AdminApi").finish_non_exhaustive()
    }
}

/// In the extensions of a call: it comes through Weir's own API, as those of the console do, and not through a listener
/// of the Admin API's own.
#[derive(Debug, Clone, Copy)]
pub struct ThroughOwnApi;

/// The revisions of what an Admin API holds.
pub trait Revisions: Send + Sync {
    /// Each with the name that the original's metrics have for it.
    fn revisions(&self) -> Vec<(&'static str, u64)>;
}

/// An Admin API that is being opened.
pub type AdminOpening = Pin<Box<dyn Future<Output = Result<AdminApi, StoreError>> + Send>>;
