//! The sources of callers' identities in the current configuration: found once for each revision, because it takes the
//! whole configuration.

use super::Api;
use super::compiled_config::model_of;
use super::problem::Problem;
use crate::identity_sources::IdentitySources;
use axum::http::StatusCode;
use std::sync::Arc;
use tokio::sync::Mutex;
use weir_store::Revision;

/// A prefix without documents: reading it gives the revision.
const NOTHING: &str = "weir/nothing/";

/// The sources that were found last, with the revision of the store and the number of the files' changes.
#[derive(Default)]
pub struct CachedSources(Mutex<Option<(Revision, u64, Arc<IdentitySources>)>>);

impl Api {
    /// The sources of callers' identities at the gateway.
    pub(super) async fn identity_sources(self: &Arc<Self>) -> Result<Arc<IdentitySources>, Problem> {
        // Others who ask meanwhile wait, instead of reading everything too.
        let mut cached = self.identity.0.lock().await;
        let (_, newest) = self.store.read(NOTHING).await?;
        let changes = self.options.files.get().0;
        if let Some((revision, of_files, sources)) = &*cached
            && (*revision, *of_files) == (newest, changes)
        {
            return Ok(Arc::clone(sources));
        }
        let (documents, revision) = self.store.read("").await?;
        let api = Arc::clone(self);
        let read = tokio::task::spawn_blocking(move || IdentitySources::of(&model_of(&api, &documents)));
        let read = read.await;
        let sources = Arc::new(
            read.map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?,
        );
        *cached = Some((revision, changes, Arc::clone(&sources)));
        Ok(sources)
    }
}
