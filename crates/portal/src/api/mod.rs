//! `/portal/v1`: all that the pages of a portal know and do. To add a call, write what answers it and add its line to the
//! list of its group; the router, the check and the OpenAPI document follow.

mod account;
mod account_common;
mod account_shapes;
mod app_shapes;
mod apps;
mod authenticated_developer;
mod catalogue;
mod catalogue_entries;
mod confirming;
mod describe;
mod keys;
mod notices;
mod openid;
mod operation;
mod own_data;
mod reference;
mod reset;
mod second_factor;
mod session;
mod shapes;
mod sign_up;
mod signed_in;
mod status;
mod teams;
mod tokens;
mod trials;
mod try_it;
mod usage;
mod versions;
mod webhooks;

use crate::state::Portals;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::map_response;
use operation::Operation;
use serde_json::Value;
use std::sync::{Arc, LazyLock};
use weir_control::api::Json;
use weir_control::api::{Problem, as_problem};

/// The largest body of a call, in bytes. A call that is tried may carry 1 MiB, as text in JSON.
const MAX_BODY: usize = 3 << 20;

/// The description, made once: it is the same for all.
static DESCRIPTION: LazyLock<Arc<Value>> = LazyLock::new(|| Arc::new(describe::document(&all())));

/// Every call.
fn all() -> Vec<Operation> {
    let groups = [
        catalogue::operations(),
        versions::operations(),
        status::operations(),
        try_it::operations(),
        trials::operations(),
        account::operations(),
        sign_up::operations(),
        session::operations(),
        reset::operations(),
        second_factor::operations(),
        openid::operations(),
        tokens::operations(),
        own_data::operations(),
        teams::operations(),
        apps::operations(),
        keys::operations(),
        webhooks::operations(),
        notices::operations(),
        usage::operations(),
        of_itself(),
    ];
    groups.into_iter().flatten().collect()
}

fn of_itself() -> Vec<Operation> {
    let about = ("getOpenapi", "This document");
    let operations = vec![Operation::get("/portal/v1/openapi.json", about, openapi).answers::<Value>()];
    Operation::tagged("Portal", operations)
}

async fn openapi() -> Json<Arc<Value>> {
    Json(Arc::clone(&DESCRIPTION))
}

/// The paths.
pub fn router(portals: &Arc<Portals>) -> Router {
    let routes = all().into_iter().map(Operation::into_route);
    let router = routes.fold(Router::new(), |router, (path, handler)| {
        router.route(path, handler)
    });
    let nothing = || async { Problem::not_found("this path") };
    router
        .route("/portal/{*path}", axum::routing::any(nothing))
        .route("/api/{*path}", axum::routing::any(nothing))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .layer(map_response(|answer| as_problem(answer, MAX_BODY)))
        .with_state(Arc::clone(portals))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const DOCUMENT: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/schema/portal.openapi.json"
    );

    #[test]
    fn the_openapi_document_is_that_of_the_table() {
        let made = format!("{:#}\n", *DESCRIPTION);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(DOCUMENT, &made).expect("written");
        }
        let known = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
        assert!(
            known == made,
            "docs/schema/portal.openapi.json is out of date: run UPDATE_GOLDEN=1 cargo test -p weir-portal --lib openapi"
        );
    }

    #[test]
    fn operations_are_named_and_described() {
        let mut names = BTreeSet::new();
        for operation in all() {
            let what = format!("{} {}", operation.method, operation.path);
            assert!(names.insert(operation.id), "{what}: {} twice", operation.id);
            assert!(
                !operation.tag.is_empty() && !operation.summary.is_empty(),
                "{what}"
            );
            assert!(operation.path.starts_with("/portal/v1/"), "{what}");
        }
    }
}
