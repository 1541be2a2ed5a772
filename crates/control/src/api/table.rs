//! All calls of `/api/v1`. To add one, write what answers it and add its line to the list of its group; the router, the
//! check of rights and the OpenAPI document follow.

mod analytics;
mod configuration;
mod gateways;
mod users;

use super::operation::Operation;
use super::shapes::{List, PermittedOperation};
use super::{Api, apis, current_user, describe, developers, login_operations};
use crate::access::{Action, Caller};
use crate::api::json_body::Json;
use axum::Extension;
use serde_json::{Map, Value};
use std::sync::{Arc, LazyLock};

const CREATES: &[&str] = &["Weir-Dry-Run", "Weir-Note"];
const DRY_RUN: &[&str] = &["Weir-Dry-Run"];

/// The description, made once: it is the same for all.
static DESCRIPTION: LazyLock<Arc<Value>> = LazyLock::new(|| Arc::new(describe::document(&all())));

/// Every call.
pub fn all() -> Vec<Operation> {
    let groups = [
        configuration::of_resources(),
        configuration::of_views(),
        configuration::of_explanations(),
        configuration::of_state(),
        configuration::of_tries(),
        configuration::of_history(),
        gateways::of_gateways(),
        users::of_access(),
        login_operations::operations(),
        analytics::of_analytics(),
        analytics::of_deliveries(),
        analytics::of_boards(),
        analytics::of_reports(),
        apis::operations(),
        developers::operations(),
        of_itself(),
    ];
    groups.into_iter().flatten().collect()
}

fn of_itself() -> Vec<Operation> {
    vec![
        Operation::get("/api/v1/me/can", "getMyPermissions", Action::Own, permissions)
            .about(
                "Me",
                "Lists every call of this API, whether the caller may make it, and where",
            )
            .answers::<List<PermittedOperation>>(),
        Operation::get("/api/v1/openapi.json", "getOpenapi", Action::Own, openapi)
            .about("API", "This document")
            .answers::<Map<String, Value>>(),
    ]
}

/// Every call with the right that it asks for, and whether a right in a part is enough; made once.
static PERMISSIONS: LazyLock<Vec<(&'static str, Action, bool)>> = LazyLock::new(|| {
    let all = all();
    let one = |it: &Operation| (it.id, it.action, it.has_parts());
    all.iter().map(one).collect()
});

async fn permissions(Extension(caller): Extension<Caller>) -> Json<List<PermittedOperation>> {
    let all = PERMISSIONS.iter();
    let items = all.map(|(id, action, has_parts)| current_user::permitted(&caller, id, *action, *has_parts));
    Json(List {
        items: items.collect(),
    })
}

async fn openapi() -> Json<Arc<Value>> {
    Json(Arc::clone(&DESCRIPTION))
}

/// Joins all calls into a router.
pub(super) fn router() -> axum::Router<Arc<Api>> {
    let routes = all().into_iter().flat_map(Operation::into_routes);
    routes.fold(axum::Router::new(), |router, (path, handler)| {
        router.route(path, handler)
    })
}

#[cfg(test)]
mod tests;
