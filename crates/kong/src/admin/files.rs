//! The Admin API over a `kong.yml`, as that of the original without a database: it reads what the file says, takes
//! configurations whole ([`super::config`]), and refuses all other writes in the original's words.
//!
//! The entities of the text that is served are known as a [`FileBacking`] has it.

use super::call::ApiCall;
use super::config;
use super::failure::Failure;
use super::path::{EntitySelector, ResourcePath};
use super::plan::WorkspaceView;
use super::response::ApiResponse;
use super::write::WriteRequest;
use super::{Admin, AdminOptions};
use axum::http::{Method, StatusCode};
use std::sync::Arc;
use std::time::SystemTime;
use weir_dialect::{FileBacking, Writer};
use weir_store::memory::MemoryStore;
use weir_store::{Author, DeclaredConfig, StoreError};

/// The codes of refusals that the original's database makes; without one the write is refused before.
const OF_DATABASES: [u64; 3] = [3, 4, 5];

impl Admin {
    /// The Admin API over a configuration that stands in a file.
    ///
    /// # Errors
    /// The store in memory cannot be read, which does not happen.
    pub async fn over_file(
        declared: Arc<DeclaredConfig>,
        options: AdminOptions,
    ) -> Result<Arc<Self>, StoreError> {
        let file = FileBacking::new(declared);
        Self::start(Arc::new(MemoryStore::new()), options, Some(file)).await
    }

    /// Reads the entities of the text that is served, unless they are known.
    ///
    /// # Errors
    /// The text is served but cannot be read here; the log says why.
    pub(super) async fn read_file(&self) -> Result<(), Failure> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let turn = file.turn().await;
        if let Some((number, text)) = turn.unknown() {
            let writer = Writer {
                author: Author::anonymous(),
                note: "the file".to_owned(),
                time: SystemTime::now(),
                is_dry: false,
            };
            config::read_text(self, text.to_string(), &writer).await?;
            turn.publish(number);
        }
        Ok(())
    }

    /// Refuses a write: first what is wrong with it, then that there is no database.
    pub(super) fn refuse_write(&self, call: &ApiCall, place: &ResourcePath) -> Result<ApiResponse, Failure> {
        let state = self.state();
        let now = SystemTime::now();
        let view = WorkspaceView::new(&state, &call.workspace, now);
        let planned = WriteRequest {
            call,
            view,
            now,
            new_keys: None,
            plugin_check: None,
        }
        .plan(place);
        match planned {
            // To remove what is not there is no write.
            Ok(plan) if plan.changes.is_empty() && call.method == Method::DELETE => Ok(plan.answer),
            Err(failure) if !is_of_database(&failure.0) => Err(failure),
            _ => {
                let (operation, entity_type, field) = refused(call, place);
                Err(Failure::unsupported(operation, entity_type, field))
            }
        }
    }
}

fn is_of_database(answer: &ApiResponse) -> bool {
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let code = body["code"].as_u64();
    answer.status == StatusCode::CONFLICT || code.is_some_and(|code| OF_DATABASES.contains(&code))
}

/// The parts of a refusal: the operation's name, the entity type, and the field by which the entity is named.
fn refused(call: &ApiCall, place: &ResourcePath) -> (&'static str, &'static str, Option<&'static str>) {
    let by = |pick: &EntitySelector| match pick {
        EntitySelector::Key(field, _) => Some(*field),
        _ => None,
    };
    let (entity_type, field, is_nested) = match place {
        ResourcePath::Collection(entity_type, parent) => (entity_type.name, None, parent.is_some()),
        ResourcePath::Member(entity_type, pick, parent) => (entity_type.name, by(pick), parent.is_some()),
        ResourcePath::Foreign { entity_type, .. } => (entity_type.name, None, false),
    };
    let operation = match call.method {
        Method::DELETE => "remove",
        Method::PATCH => "update",
        // A target is changed by `PUT` as by `PATCH`.
        Method::PUT if entity_type == "targets" && is_nested => "update",
        Method::PUT => "create or update",
        _ => "create",
    };
    // Below another entity, the one that is to go was looked up before.
    let field = field.filter(|_| !(is_nested && call.method == Method::DELETE));
    (operation, entity_type, field)
}
