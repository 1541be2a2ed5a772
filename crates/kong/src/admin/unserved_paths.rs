//! Paths of the original without a counterpart here: filters of WebAssembly, which it has switched off by default, and
//! its plugin for certificates on demand, whose work Weir does without being asked.

use super::call::ApiCall;
use super::failure::Failure;
use super::plan::WorkspaceView;
use super::response::ApiResponse;
use crate::document::entity_type::entity_type;
use axum::http::{Method, StatusCode};
use serde_json::Value;
use uuid::Uuid;

/// Answers a call for such a path; `None`: it is for something else.
pub(super) fn answer(call: &ApiCall, view: WorkspaceView<'_>) -> Option<Result<ApiResponse, Failure>> {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    Some(match path.as_slice() {
        ["filter-chains"]
        | ["filter-chains", _]
        | ["filter-chains", _, "route" | "service"]
        | ["routes" | "services", _, "filter-chains"]
        | ["routes" | "services", _, "filter-chains", _]
        | ["routes", _, "filters", "all" | "disabled" | "enabled"] => Err(Failure::message(
            StatusCode::BAD_REQUEST,
            "this endpoint is only available when wasm is enabled",
        )),
        ["acme"] if matches!(call.method, Method::POST | Method::PATCH) => on_demand(view),
        ["acme", "certificates"] | ["acme", "certificates", _] if call.is_read() => on_demand(view),
        ["acme"] | ["acme", "certificates"] | ["acme", "certificates", _]
            if call.method != Method::OPTIONS =>
        {
            Err(Failure(ApiResponse::method_not_allowed()))
        }
        ["acme", ..] => Err(Failure::not_found()),
        _ => return None,
    })
}

/// Without an instance of the plugin there is nothing to ask or to do.
fn on_demand(view: WorkspaceView<'_>) -> Result<ApiResponse, Failure> {
    let has_plugin = entity_type("plugins").is_some_and(|plugins| {
        let mut instances = view.workspace.table(plugins).all(Uuid::nil());
        instances.any(|kept| kept.fields().get("name") == Some(&Value::from("acme")))
    });
    Err(match has_plugin {
        false => Failure::not_found(),
        true => Failure::message(
            StatusCode::BAD_REQUEST,
            "Weir itself orders and renews certificates on demand",
        ),
    })
}
