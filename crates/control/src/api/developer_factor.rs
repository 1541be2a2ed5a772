//! Turning off the second factor of a developer who has lost app and recovery codes. An administrator does it, and the developer
//! gets a mail: the password alone is enough to sign in from then on.

use super::developers::PortalContext;
use super::problem::Problem;
use super::writing::tried;
use super::{Api, is_dry_run};
use crate::developers::greeting;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::SystemTime;

pub async fn remove(
    State(api): State<Arc<Api>>,
    Path((portal, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let now = SystemTime::now();
    let portal_context = PortalContext::of(&api, &portal).await?;
    let developer = portal_context.developer(&id, now).await?;
    if developer.second_factor.is_none() {
        let detail = format!("{} has no second factor", developer.name);
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    if is_dry_run(&headers) {
        return Ok(tried(StatusCode::NO_CONTENT));
    }
    let people = portal_context.people();
    people.remove_second_factor(&portal, &id, now).await?;
    let notices = portal_context.notices();
    let text = format!(
        "{}\n\nan administrator has turned off the two-factor login of your account of {}. You sign in with your password alone now.\n\nIf you did not request this, inform the administrators.\n",
        greeting(&developer.name),
        notices.title()
    );
    let subject = format!("Two-factor login is off: {}", notices.title());
    let writes = notices.mail("developer.second_factor", &developer.mail, (subject, text), now)?;
    api.options.operational.write(writes, now).await?;
    api.options.outbox.notify();
    Ok(StatusCode::NO_CONTENT.into_response())
}
