//! The Admin APIs of the originals below Weir's own, for the console: `/api/v1/dialects/NAME/…`. One that no flag asks for
//! is opened with the first call of it, and has no listener.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use tokio::sync::OnceCell;
use tower::ServiceExt;
use weir_control::access::check_rights;
use weir_control::api::Problem;
use weir_dialect::{AdminContext, Dialect};
use weir_store::StoreError;

/// The path of a dialect's Admin API.
pub fn path(dialect: &dyn Dialect) -> String {
    format!("/api/v1/dialects/{}", dialect.name())
}

/// The Admin API of a dialect that is opened when it is called.
struct LazyAdminApi {
    dialect: Arc<dyn Dialect>,
    context: AdminContext,
    router: OnceCell<Router>,
}

/// The Admin API of a dialect, opened with its first call.
pub fn late(dialect: &Arc<dyn Dialect>, context: AdminContext) -> Router {
    let late = Arc::new(LazyAdminApi {
        dialect: Arc::clone(dialect),
        context,
        router: OnceCell::new(),
    });
    Router::new().fallback(pass_on).with_state(late)
}

/// An Admin API as it stands below Weir's own. If no store would keep changes, it refuses them.
pub fn below(router: Router, dialect: &Arc<dyn Dialect>, is_read_only: bool) -> Router {
    let router = match is_read_only {
        true => router.layer(middleware::from_fn(refuse_changes)),
        false => router,
    };
    check_rights(router, Arc::clone(dialect))
}

async fn refuse_changes(request: Request, next: Next) -> Response {
    match request.method().is_safe() {
        true => next.run(request).await,
        false => Problem::read_only().into_response(),
    }
}

impl LazyAdminApi {
    async fn open(&self) -> Result<Router, StoreError> {
        match self.dialect.open_admin(self.context.clone()) {
            Some(opening) => Ok(opening.await?.router),
            None => Ok(Router::new()),
        }
    }
}

async fn pass_on(State(late): State<Arc<LazyAdminApi>>, request: Request) -> Response {
    match late.router.get_or_try_init(|| late.open()).await {
        Ok(router) => router.clone().oneshot(request).await.into_response(),
        Err(error) => {
            let body = serde_json::json!({ "message": format!("the store is unreachable: {error}") });
            (StatusCode::SERVICE_UNAVAILABLE, weir_control::api::Json(body)).into_response()
        }
    }
}
