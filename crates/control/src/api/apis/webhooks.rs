//! Webhooks of applications: what their developers name in a portal. They hear of what concerns the application only, and
//! go where operators let those of developers go.
//!
//! **What it is not**: hooks of operators are in [`super::hooks`].

use super::entities::{answered, check_name, ensure_visible};
use super::entity_snapshot::{PREFIX, webhooks_of};
use super::hooks::{keep, redacted, secret, wanted};
use super::write_effects::WriteEffects;
use crate::access::{Action, Caller, Scope};
use crate::api::json_body::Json;
use crate::api::operation::Operation;
use crate::api::shapes::List;
use crate::api::shapes::lifecycle::HookResponse;
use crate::api::{Api, Problem};
use crate::webhook_addresses::without_path;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use weir_apis::entities::{Application, Hook};

/// Webhooks of an application.
const MOST: usize = 5;
const ALL: &str = "/api/v1/applications/{name}/webhooks";
const ONE: &str = "/api/v1/applications/{name}/webhooks/{webhook}";

/// The calls, for the table of all calls.
pub fn operations() -> Vec<Operation> {
    let (see, write) = (Action::SubscriptionsRead, Action::SubscriptionsWrite);
    vec![
        Operation::get(ALL, "listWebhooks", see, list)
            .about(
                "Subscriptions",
                "Lists the webhooks of an application, without their secrets",
            )
            .partial()
            .answers::<List<HookResponse>>(),
        Operation::put(ONE, "putWebhook", write, put)
            .about("Subscriptions", "Creates or changes a webhook of an application")
            .description("The secret of a new one is in the answer, and nowhere else.")
            .headers(&["Weir-Dry-Run"])
            .body::<Hook>()
            .answers::<HookResponse>(),
        Operation::delete(ONE, "deleteWebhook", write, delete)
            .about("Subscriptions", "Removes a webhook of an application")
            .headers(&["Weir-Dry-Run"]),
    ]
}

async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    let snapshot = api.snapshot().await?;
    ensure_visible(&snapshot, &caller, &format!("{PREFIX}applications/{name}"))?;
    let mut hooks: Vec<Hook> = snapshot.list(&webhooks_of(&name))?;
    // A caller that knows such a URL can write to the server behind it.
    if !caller.can(Action::SubscriptionsWrite, &Scope::Everything) {
        hooks.iter_mut().for_each(|it| it.url = without_path(&it.url));
    }
    let items: Vec<Value> = hooks.iter().map(redacted).collect();
    Ok(Json(json!({ "items": items })))
}

async fn put(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((application, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: String,
) -> Result<Response, Problem> {
    check_name(&name)?;
    let wanted = wanted(&body, &[("name", &name), ("application", &application)])?;
    let (secret, key) = (secret()?, format!("{}{name}", webhooks_of(&application)));
    let written = api
        .manage(&caller, &headers, |snapshot| {
            let _there: Application = snapshot.get(&format!("{PREFIX}applications/{application}"))?;
            let is_new = snapshot.bytes(&key).is_none();
            if is_new && snapshot.keys(&webhooks_of(&application)).len() >= MOST {
                let detail = format!("the application has {MOST} webhooks, the maximum");
                return Err(Problem::new(StatusCode::CONFLICT, detail));
            }
            let answer = keep(snapshot, &key, &wanted, &secret)?;
            Ok(WriteEffects::quiet(
                format!("PUT webhooks {application} {name}"),
                answer,
            ))
        })
        .await?;
    Ok(answered(written.answer.0, &written.answer.1))
}

async fn delete(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((application, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let key = format!("{}{name}", webhooks_of(&application));
    api.manage(&caller, &headers, |snapshot| {
        let _there: Hook = snapshot.get(&key)?;
        snapshot.remove(&key);
        Ok(WriteEffects::quiet(
            format!("DELETE webhooks {application} {name}"),
            (),
        ))
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}
