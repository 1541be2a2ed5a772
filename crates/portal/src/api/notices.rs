//! The bell: what has happened to the applications that a developer may see, and whether it was read.
//!
//! **What it is not**: it writes no notices; the configuration's history does ([`weir_control::outbox::feed`]).

use super::authenticated_developer::AuthenticatedDeveloper;
use super::operation::{Operation, Shared};
use crate::people::{Inbox, failed, has_read, read_until};
use crate::state::PortalContext;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::SystemTime;
use weir_apis::entities::Application;
use weir_control::api::Json;
use weir_control::api::Problem;

/// Notices that are listed.
const MOST: usize = 100;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get(
            "/portal/v1/notices",
            ("listNotices", "Lists the notices about your applications"),
            list,
        )
        .personal()
        .answers::<NoticeList>(),
        Operation::post(
            "/portal/v1/notices/read",
            ("readNotices", "Notes that all notices up to now were read"),
            read,
        )
        .personal()
        .status(StatusCode::NO_CONTENT),
    ];
    Operation::tagged("Notices", operations)
}

/// Notices.
#[derive(Serialize, JsonSchema)]
pub struct NoticeList {
    /// The latest first.
    items: Vec<NoticeLine>,
    /// How many were not read.
    unread: usize,
}

/// A notice.
#[derive(Serialize, JsonSchema)]
pub struct NoticeLine {
    /// When, in seconds since 1970.
    at: u64,
    /// The kind of the event, such as `subscription.accepted`.
    kind: String,
    /// In a few words.
    title: String,
    /// In sentences.
    text: String,
    /// The application.
    app: String,
    /// Its title.
    app_title: String,
    /// Whether it is unread.
    is_new: bool,
}

async fn list(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
) -> Result<Json<NoticeList>, Problem> {
    let now = SystemTime::now();
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    let (store, portal) = (&portals.people.store, visit.portal.name.as_str());
    let until = read_until(store, (portal, &authenticated.developer.id), now).await?;
    let all: Vec<Application> = portals.documents.list("apis/applications/");
    let mut items = Vec::new();
    for app in all.iter().filter(|it| authenticated.role(it).is_some()) {
        let found = Inbox::of(store, &app.name, now).await.map_err(failed)?;
        items.extend(found.into_iter().map(|it| NoticeLine {
            is_new: it.at > until,
            at: it.at,
            kind: it.kind,
            title: it.title,
            text: it.text,
            app: app.name.clone(),
            app_title: super::apps::title(app).to_owned(),
        }));
    }
    items.sort_by_key(|it| std::cmp::Reverse(it.at));
    items.truncate(MOST);
    Ok(Json(NoticeList {
        unread: items.iter().filter(|it| it.is_new).count(),
        items,
    }))
}

async fn read(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
) -> Result<StatusCode, Problem> {
    let authenticated = AuthenticatedDeveloper::of(&portals, &visit).await?;
    let of = (visit.portal.name.as_str(), authenticated.developer.id.as_str());
    has_read(&portals.people.store, of, SystemTime::now()).await?;
    Ok(StatusCode::NO_CONTENT)
}
