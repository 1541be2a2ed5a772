//! A dialect's Admin API below Weir's own: callers are let in by the guard of Weir's API, and may do there what they may
//! do at the dialect's own listener. So the console reaches it under its own address.

use super::caller::Caller;
use super::guard::is_allowed;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use std::sync::Arc;
use weir_dialect::{AccessError, Dialect};

/// Puts the check of rights in front of a dialect's Admin API. Callers are expected in the calls' extensions.
pub fn check_rights(router: Router, dialect: Arc<dyn Dialect>) -> Router {
    router.layer(middleware::from_fn_with_state(dialect, check))
}

async fn check(
    State(dialect): State<Arc<dyn Dialect>>,
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Response {
    let access = dialect.admin_access();
    if is_allowed(access, &caller, request.method(), request.uri().path()) {
        return next.run(request).await;
    }
    let refused = AccessError::Forbidden {
        who: caller.name(),
        is_write: !request.method().is_safe(),
    };
    let reply = access.refuse(&refused);
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::FORBIDDEN);
    let mut answer = (status, [(header::CONTENT_TYPE, reply.content_type)], reply.body).into_response();
    for (name, value) in reply.headers {
        let (name, value) = (HeaderName::from_static(name), HeaderValue::from_static(value));
        answer.headers_mut().insert(name, value);
    }
    answer.extensions_mut().insert(super::guard::NotAllowed);
    answer
}
