//! A portal with all of its pages as one document: read in one place and applied in another, as one commit.

use super::entities::{body_of, parse};
use super::entity_snapshot::PREFIX;
use super::portals::{check, has_first_developers, page_key, portal_key, refused};
use super::write_effects::WriteEffects;
use crate::access::{Action, Caller};
use crate::api::json_body::Json;
use crate::api::operation::Operation;
use crate::api::{Api, Problem};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_apis::entities::{Api as ApiEntity, Page, Portal};
use weir_apis::naming;
use weir_apis::portal::page_faults;

const FILES: &str = "/api/v1/portals/{portal}/files";

/// The calls, for the table of all calls.
pub fn operations() -> Vec<Operation> {
    vec![
        Operation::get(FILES, "exportPortal", Action::PortalsRead, export)
            .about(
                "Portals",
                "Reads a portal with its pages, to be applied elsewhere",
            )
            .answers::<Value>(),
        Operation::put(FILES, "applyPortal", Action::PortalsWrite, apply)
            .about("Portals", "Replaces a portal and its pages in one commit")
            .description("Pages that are not named are removed. Nothing is written if something is wrong.")
            .headers(&["Weir-Dry-Run"])
            .body::<Value>()
            .answers::<ApplyResponse>(),
    ]
}

/// The changes by an application of files.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ApplyResponse {
    /// `made`, `changed` or `unchanged`.
    portal: &'static str,
    /// Pages that were made.
    made: Vec<String>,
    /// Pages that were changed.
    changed: Vec<String>,
    /// Pages that were removed.
    removed: Vec<String>,
}

async fn export(State(api): State<Arc<Api>>, Path(name): Path<String>) -> Result<Json<Value>, Problem> {
    let snapshot = api.snapshot().await?;
    let mut portal: Value = snapshot.get(&portal_key(&name))?;
    let pages: Vec<Value> = snapshot.list(&format!("{PREFIX}pages/{name}/"))?;
    let pages = pages.into_iter().filter_map(|mut page| {
        let fields = page.as_object_mut()?;
        fields.remove("portal");
        let name = fields.remove("name")?.as_str()?.to_owned();
        Some((name, page))
    });
    let pages: BTreeMap<String, Value> = pages.collect();
    if let Some(fields) = portal.as_object_mut() {
        // The name comes from the portal that the files are applied to.
        fields.remove("name");
    }
    Ok(Json(serde_json::json!({ "portal": portal, "pages": pages })))
}

/// The portal and its pages of a body.
fn read(body: &Value, name: &str) -> Result<(Portal, Vec<Page>), Problem> {
    let unknown = body
        .as_object()
        .and_then(|it| it.keys().find(|key| *key != "portal" && *key != "pages"));
    if let Some(unknown) = unknown {
        return Err(Problem::bad(format!(
            "'{unknown}' is not known: expected 'portal' and 'pages'"
        )));
    }
    let mut portal = body["portal"].clone();
    if !portal.is_object() {
        return Err(Problem::bad("expected an object in 'portal'"));
    }
    portal["name"] = name.into();
    // What is not named is removed: pages that are left out by mistake must not read as none.
    let named = body["pages"].as_object().ok_or_else(|| {
        let expected = "expected an object with the pages, empty if there are none";
        Problem::step("read", vec![("pages".to_owned(), expected.to_owned())])
    })?;
    let mut pages = Vec::new();
    for (page, value) in named {
        let mut value = value.clone();
        if !value.is_object() {
            return Err(Problem::bad(format!("expected an object in 'pages.{page}'")));
        }
        value["portal"] = name.into();
        value["name"] = page.as_str().into();
        let page: Page = parse(&value)?;
        let place = |(field, message)| (format!("pages.{}.{field}", page.name), message);
        refused(page_faults(&page).into_iter().map(place).collect())?;
        pages.push(page);
    }
    Ok((parse(&portal)?, pages))
}

async fn apply(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<ApplyResponse>, Problem> {
    if !naming::is_name(&name) {
        let detail = format!("'{name}' is not a valid name: expected {}", naming::EXPECTED_NAME);
        return Err(Problem::bad(detail));
    }
    let (portal, pages) = read(&body_of(&body)?, &name)?;
    let has_first = has_first_developers(&api).await?;
    let written = api
        .manage(&caller, &headers, |snapshot| {
            check(&api, snapshot, &portal, has_first)?;
            let mut applied = ApplyResponse::default();
            let known: Option<Portal> = snapshot.find(&portal_key(&name))?;
            applied.portal = match &known {
                None => "made",
                Some(known) if *known != portal => "changed",
                Some(_) => "unchanged",
            };
            if known.as_ref() != Some(&portal) {
                snapshot.put(&portal_key(&name), &portal)?;
            }
            for page in &pages {
                if let Some(of) = &page.api {
                    let _there: ApiEntity = snapshot.get(&super::entity_snapshot::api_key(of))?;
                }
                let key = page_key(&name, &page.name);
                match snapshot.find::<Page>(&key)? {
                    Some(known) if known == *page => continue,
                    Some(_) => applied.changed.push(page.name.clone()),
                    None => applied.made.push(page.name.clone()),
                }
                snapshot.put(&key, page)?;
            }
            for key in snapshot.keys(&format!("{PREFIX}pages/{name}/")) {
                let page = key.as_str().rsplit('/').next().unwrap_or_default();
                if !pages.iter().any(|it| it.name == page) {
                    applied.removed.push(page.to_owned());
                    snapshot.remove(key.as_str());
                }
            }
            Ok(WriteEffects::quiet(format!("PUT portals {name} files"), applied))
        })
        .await?;
    Ok(Json(written.answer))
}
