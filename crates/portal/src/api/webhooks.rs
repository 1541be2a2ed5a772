//! Webhooks of an application: their addresses, and the outcome of deliveries. What changes is a call of Weir's own
//! API, made for the developer from inside; they are delivered by the outbox.

use super::authenticated_developer::AuthenticatedDeveloper;
use super::operation::{Operation, Shared};
use crate::people::{TeamRole, random_id};
use crate::state::{PortalContext, Portals};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::SystemTime;
use weir_apis::entities::Hook;
use weir_control::api::Json;
use weir_control::api::Problem;
use weir_control::outbox::{
    Attempt, Delivery, DeliveryState, MOST_OF_APPLICATION, Message, Origin, TEST as TEST_KIND, Webhook,
};
use weir_model::unix_time::seconds;

const ALL: &str = "/portal/v1/apps/{app}/webhooks";
const ONE: &str = "/portal/v1/apps/{app}/webhooks/{webhook}";
const TEST: &str = "/portal/v1/apps/{app}/webhooks/{webhook}/test";
const DELIVERIES: &str = "/portal/v1/apps/{app}/webhooks/{webhook}/deliveries";
const RETRY: &str = "/portal/v1/apps/{app}/webhooks/{webhook}/deliveries/{delivery}/retry";
/// Deliveries that are listed.
const MOST: usize = 50;
/// Tests and repetitions of a developer in a minute.
const MOST_TESTS: u32 = 10;
/// How often a developer may list deliveries in a minute.
const MOST_LISTS: u32 = 60;
/// The longest URL, in bytes.
const MAX_URL: usize = 2_000;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get(
            ALL,
            ("listWebhooks", "Lists the webhooks of an application"),
            list,
        )
        .personal()
        .answers::<WebhookList>(),
        Operation::post(
            ALL,
            (
                "createWebhook",
                "Creates a webhook; its secret is in the answer and nowhere else",
            ),
            create,
        )
        .personal()
        .body::<NewWebhook>()
        .status(StatusCode::CREATED)
        .answers::<WebhookLine>(),
        Operation::put(ONE, ("changeWebhook", "Changes a webhook"), change)
            .personal()
            .body::<NewWebhook>()
            .answers::<WebhookLine>(),
        Operation::delete(ONE, ("deleteWebhook", "Removes a webhook"), delete).personal(),
        Operation::post(TEST, ("testWebhook", "Sends a test to a webhook"), test)
            .personal()
            .status(StatusCode::ACCEPTED),
        Operation::get(
            DELIVERIES,
            (
                "listDeliveries",
                "Lists the messages to a webhook with their attempts",
            ),
            deliveries,
        )
        .personal()
        .answers::<DeliveryList>(),
        Operation::post(RETRY, ("retryDelivery", "Resends undelivered messages"), retry)
            .personal()
            .status(StatusCode::ACCEPTED),
    ];
    Operation::tagged("Webhooks", operations)
}

/// Webhooks.
#[derive(Serialize, JsonSchema)]
pub struct WebhookList {
    /// By name.
    items: Vec<WebhookLine>,
}

/// A webhook.
#[derive(Serialize, JsonSchema)]
pub struct WebhookLine {
    /// Its name.
    name: String,
    /// Its address.
    url: String,
    /// The kinds of events, such as `subscription.*`; empty: all that concern the application.
    events: Vec<String>,
    /// It gets nothing for the time being.
    disabled: bool,
    /// The secret that signs calls, shown this once (Standard Webhooks).
    secret: Option<String>,
}

/// A webhook to be made or changed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// Its address.
    url: String,
    /// The kinds of events; left out: all that concern the application.
    #[serde(default)]
    events: Vec<String>,
    /// It gets nothing for the time being.
    #[serde(default)]
    disabled: bool,
}

/// A message that was sent to a webhook.
#[derive(Serialize, JsonSchema)]
pub struct DeliveryList {
    /// The latest first.
    items: Vec<DeliveryLine>,
}

/// Something that was sent.
#[derive(Serialize, JsonSchema)]
pub struct DeliveryLine {
    /// Its id: the receiver sees it as `webhook-id`.
    id: String,
    /// The kind of its event.
    kind: String,
    /// How far it has come.
    state: DeliveryState,
    /// Since when, in seconds since 1970.
    created: u64,
    /// When it is tried next, if it waits.
    next: Option<u64>,
    /// The attempts.
    attempts: Vec<Attempt>,
}

fn line(hook: Hook, secret: Option<String>) -> WebhookLine {
    WebhookLine {
        name: hook.name,
        url: hook.url,
        events: hook.events,
        disabled: hook.disabled,
        secret,
    }
}

fn key(app: &str, webhook: &str) -> String {
    format!("apis/webhooks/{app}/{webhook}")
}

fn find(portals: &Portals, app: &str, webhook: &str) -> Result<Hook, Problem> {
    let found: Option<Hook> = portals.documents.get(&key(app, webhook));
    found.ok_or_else(|| Problem::not_found(format_args!("the webhook '{webhook}'")))
}

fn checked(wanted: &NewWebhook) -> Result<(), Problem> {
    let refused = |field: &str, message: &str| {
        Err(Problem::step(
            "check",
            vec![(field.to_owned(), message.to_owned())],
        ))
    };
    let is_url = wanted.url.starts_with("https://") || wanted.url.starts_with("http://");
    if !is_url || wanted.url.len() > MAX_URL {
        return refused("url", "expected a URL such as https://example.com/hooks/weir");
    }
    let is_kind = |it: &String| {
        it.len() <= 80
            && it
                .bytes()
                .all(|it| it.is_ascii_lowercase() || b".-*".contains(&it))
    };
    match wanted.events.len() <= 20 && wanted.events.iter().all(is_kind) {
        true => Ok(()),
        false => refused("events", "expected at most 20 kinds such as subscription.*"),
    }
}

async fn write(
    portals: &Portals,
    authenticated: &AuthenticatedDeveloper,
    (app, name): (&str, &str),
    wanted: &NewWebhook,
) -> Result<WebhookLine, Problem> {
    let body = json!({ "url": wanted.url, "events": wanted.events, "disabled": wanted.disabled });
    let path = format!("/api/v1/applications/{app}/webhooks/{name}");
    let made = authenticated
        .write(portals, (Method::PUT, &path), Some(&body))
        .await?;
    let secret = made["secret"].as_str().map(str::to_owned);
    Ok(line(find(portals, app, name)?, secret))
}

async fn list(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path(app): Path<String>,
) -> Result<Json<WebhookList>, Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &app, TeamRole::Viewer)?;
    let all: Vec<Hook> = portals.documents.list(&key(&app, ""));
    Ok(Json(WebhookList {
        items: all.into_iter().map(|it| line(it, None)).collect(),
    }))
}

async fn create(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path(app): Path<String>,
    Json(wanted): Json<NewWebhook>,
) -> Result<(StatusCode, Json<WebhookLine>), Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &app, TeamRole::Member)?;
    checked(&wanted)?;
    let name = random_id()?[..8].to_owned();
    let made = write(&portals, &authenticated, (&app, &name), &wanted).await?;
    Ok((StatusCode::CREATED, Json(made)))
}

async fn change(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((app, name)): Path<(String, String)>,
    Json(wanted): Json<NewWebhook>,
) -> Result<Json<WebhookLine>, Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &app, TeamRole::Member)?;
    find(&portals, &app, &name)?;
    checked(&wanted)?;
    Ok(Json(
        write(&portals, &authenticated, (&app, &name), &wanted).await?,
    ))
}

async fn delete(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((app, name)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &app, TeamRole::Member)?;
    find(&portals, &app, &name)?;
    let path = format!("/api/v1/applications/{app}/webhooks/{name}");
    authenticated
        .write(&portals, (Method::DELETE, &path), None)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Few in a minute: each makes a call to somewhere, or reads all that waits.
fn take_turn(
    portals: &Portals,
    authenticated: &AuthenticatedDeveloper,
    (what, most): (&str, u32),
    now: SystemTime,
) -> Result<(), Problem> {
    let who = format!("{what} {}", authenticated.developer.id);
    portals.tries.take(&who, most, seconds(now)).map_err(|wait| {
        let detail = format!("at most {most} of these calls per minute; try again in {wait} seconds");
        Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
    })
}

/// Refuses a webhook that is disabled.
fn need_enabled(hook: &Hook) -> Result<(), Problem> {
    match hook.disabled {
        true => Err(Problem::new(
            StatusCode::CONFLICT,
            "the webhook is disabled: enable it first",
        )),
        false => Ok(()),
    }
}

/// A receiver that hangs does not let ever more wait.
async fn need_place(portals: &Portals, app: &str, now: SystemTime) -> Result<(), Problem> {
    let is_full = portals.outbox().is_full(app, now).await;
    match is_full.map_err(crate::people::failed)? {
        true => Err(Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            format!(
                "{MOST_OF_APPLICATION} messages wait for the application: wait until some have arrived or were given up"
            ),
        )),
        false => Ok(()),
    }
}

async fn test(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((app, name)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let now = SystemTime::now();
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &app, TeamRole::Member)?;
    let hook = find(&portals, &app, &name)?;
    take_turn(&portals, &authenticated, ("webhook", MOST_TESTS), now)?;
    need_enabled(&hook)?;
    need_place(&portals, &app, now).await?;
    let data = json!({ "kind": TEST_KIND, "about": { "application": app, "webhook": name } });
    let body =
        json!({ "type": TEST_KIND, "timestamp": seconds(now), "by": authenticated.name(), "data": data });
    let origin = Origin::Application(app.clone());
    let message = Message::Webhook(Webhook {
        url: hook.url,
        secret: hook.secret,
        body: body.to_string(),
        of_application: Some((app, name)),
    });
    let sent = portals.outbox().send((origin, TEST_KIND, message), now).await;
    sent.map_err(crate::people::failed)?;
    Ok(StatusCode::ACCEPTED)
}

/// The messages that were sent to a webhook, the latest first.
async fn sent(portals: &Portals, app: &str, webhook: &str) -> Result<Vec<Delivery>, Problem> {
    let all = portals.outbox().list(SystemTime::now()).await;
    let mut all = all.map_err(crate::people::failed)?;
    all.retain(|it| match &it.message {
        Message::Webhook(Webhook {
            of_application: Some((of, name)),
            ..
        }) => of == app && name == webhook,
        _ => false,
    });
    Ok(all)
}

async fn deliveries(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((app, name)): Path<(String, String)>,
) -> Result<Json<DeliveryList>, Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &app, TeamRole::Viewer)?;
    find(&portals, &app, &name)?;
    take_turn(
        &portals,
        &authenticated,
        ("deliveries", MOST_LISTS),
        SystemTime::now(),
    )?;
    let lines = sent(&portals, &app, &name).await?.into_iter().take(MOST);
    let lines = lines.map(|it| DeliveryLine {
        next: (it.state == DeliveryState::Waiting).then_some(it.due),
        id: it.id,
        kind: it.kind,
        state: it.state,
        created: it.created,
        attempts: it.attempts.into_iter().map(Attempt::for_developers).collect(),
    });
    Ok(Json(DeliveryList {
        items: lines.collect(),
    }))
}

async fn retry(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((app, name, id)): Path<(String, String, String)>,
) -> Result<StatusCode, Problem> {
    let now = SystemTime::now();
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    authenticated.app(&portals, &app, TeamRole::Member)?;
    let hook = find(&portals, &app, &name)?;
    take_turn(&portals, &authenticated, ("webhook", MOST_TESTS), now)?;
    need_enabled(&hook)?;
    let missing = || Problem::not_found("this delivery, waiting or failed,");
    // One of another webhook does not exist here.
    let all = sent(&portals, &app, &name).await?;
    let known = all.iter().find(|it| it.id == id).ok_or_else(missing)?;
    if known.state == DeliveryState::Failed {
        need_place(&portals, &app, now).await?;
    }
    let is_tried = portals.outbox().retry(&id, now).await;
    match is_tried.map_err(crate::people::failed)? {
        true => Ok(StatusCode::ACCEPTED),
        false => Err(missing()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhooks_are_checked() {
        for (url, events, is_good) in [
            ("https://example.com/x", &["subscription.*"][..], true),
            ("http://example.com", &[], true),
            ("ftp://example.com", &[], false),
            ("javascript:alert(1)", &[], false),
            ("https://example.com", &["Über"], false),
        ] {
            let wanted = json!({ "url": url, "events": events });
            let wanted: NewWebhook = serde_json::from_value(wanted).expect("a webhook");
            assert_eq!(checked(&wanted).is_ok(), is_good, "{url} {events:?}");
        }
    }
}
