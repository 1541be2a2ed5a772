//! The Admin API over an `apisix.yaml`, as that of the original's standalone mode: it reads what the file says, takes
//! the configuration whole, and knows no writes of single resources.
//!
//! The items of the text that is served are known as a [`FileBacking`] has it.

use super::call::ApiCall;
use super::response::{ApiResponse, Outcome};
use super::state::AdminState;
use super::write::ChangePlan;
use super::{Admin, AdminOptions, configs};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::Value;
use std::sync::Arc;
use weir_dialect::FileBacking;
use weir_store::memory::MemoryStore;
use weir_store::{Author, DeclaredConfig, StoreError};

impl Admin {
    /// The Admin API over a configuration that stands in a file. The text is YAML with its variables replaced.
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

    /// Reads the items of the text that is served, unless they are known.
    ///
    /// # Errors
    /// The text is served but cannot be read here.
    pub(super) async fn read_file(&self) -> Outcome<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let turn = file.turn().await;
        let Some((number, text)) = turn.unknown() else {
            return Ok(());
        };
        let reading = tokio::task::spawn_blocking(move || weir_model::document::parse(&text));
        let document = match reading.await {
            Ok(Ok(document)) => document,
            Ok(Err(error)) => return Err(ApiResponse::error(StatusCode::SERVICE_UNAVAILABLE, error.message)),
            Err(_) => return Err(ApiResponse::empty(StatusCode::SERVICE_UNAVAILABLE)),
        };
        let time = (self.options.clock)();
        let uri = Uri::from_static("/apisix/admin/configs");
        let call = ApiCall::new(Method::PUT, &uri, HeaderMap::new(), Author::anonymous(), time);
        let plan = |state: &AdminState| {
            Ok(ChangePlan {
                changes: configs::changes_of_file(state, &document),
                time_to_live: None,
                answer: ApiResponse::empty(StatusCode::ACCEPTED),
            })
        };
        // The file's own diagnostics say what is not served of it.
        let (answer, _) = self.commit_without_warnings(&call, plan).await;
        if !answer.status.is_success() {
            return Err(answer);
        }
        turn.publish(number);
        Ok(())
    }

    /// Puts the whole configuration. Over a file it is served before it is known here.
    pub(super) async fn put_whole(&self, call: &ApiCall) -> ApiResponse {
        let Some(file) = &self.file else {
            return self.commit(call, |state| configs::plan(state, call)).await;
        };
        let turn = file.turn().await;
        let planned = {
            let state = self.state();
            configs::plan(&state, call).and_then(|plan| {
                super::commit::check_confined(call, &plan)?;
                super::takeover_rights::check(call, &plan, &state, &self.options)?;
                Ok(configs::after(&state, &plan.changes))
            })
        };
        let whole: Value = match planned {
            Ok(whole) => whole,
            Err(answer) => return answer,
        };
        if call.is_dry_run() {
            return self.commit(call, |state| configs::plan(state, call)).await;
        }
        let number = match turn.replace(whole.to_string().into()).await {
            Ok(number) => number,
            Err(reason) => return ApiResponse::bad(reason.trim_end()),
        };
        let answer = self.commit(call, |state| configs::plan(state, call)).await;
        if answer.status.is_success() {
            turn.publish(number);
        }
        answer
    }
}
