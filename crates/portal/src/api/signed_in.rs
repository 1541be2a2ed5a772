//! The developer who is signed in, for calls that need more than an id. Each call decides what that developer may do.

use crate::people::Developer;
use crate::state::{PortalContext, Portals};
use axum::http::StatusCode;
use std::time::SystemTime;
use weir_control::api::Problem;

/// The one who is signed in.
pub async fn developer(
    portals: &Portals,
    visit: &PortalContext,
    now: SystemTime,
) -> Result<Developer, Problem> {
    let unauthorized = || Problem::new(StatusCode::UNAUTHORIZED, "sign in first");
    let id = visit.viewer.developer.as_deref().ok_or_else(unauthorized)?;
    let found = portals.people.developer(&visit.portal.name, id, now).await?;
    found.ok_or_else(unauthorized)
}
