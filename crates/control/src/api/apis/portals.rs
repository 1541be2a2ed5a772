//! Developer portals and their pages as documents: read, written, removed. What comes of them is shown by the portal
//! itself (`weir-portal`).

use super::entities::{answered, body_of, listed, parse, read_entity};
use super::entity_snapshot::{EntitySnapshot, PREFIX};
use super::write_effects::WriteEffects;
use crate::access::{Action, Caller};
use crate::api::json_body::Json;
use crate::api::operation::{Operation, WRITES};
use crate::api::shapes::List;
use crate::api::{Api, Problem};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::Value;
use std::sync::Arc;
use std::time::SystemTime;
use weir_apis::entities::{Api as ApiEntity, Environment, Page, Portal};
use weir_apis::naming;
use weir_apis::portal::{FieldError, page_faults, portal_faults};

const ALL: &str = "/api/v1/portals";
const ONE: &str = "/api/v1/portals/{portal}";
const PAGES: &str = "/api/v1/portals/{portal}/pages";
const PAGE: &str = "/api/v1/portals/{portal}/pages/{page}";

/// The calls, for the table of all calls.
pub fn operations() -> Vec<Operation> {
    let (see, write) = (Action::PortalsRead, Action::PortalsWrite);
    vec![
        Operation::get(ALL, "listPortals", see, list)
            .about("Portals", "Lists the developer portals that the caller may read")
            .partial()
            .answers::<List<Portal>>(),
        Operation::get(ONE, "getPortal", see, read)
            .about("Portals", "Reads a developer portal")
            .answers::<Portal>(),
        Operation::put(ONE, "putPortal", write, put)
            .headers(WRITES)
            .body::<Portal>()
            .answers::<Portal>()
            .about("Portals", "Creates or changes a developer portal")
            .description("Colours that cannot be read on each other are refused with their contrast."),
        Operation::delete(ONE, "deletePortal", write, delete)
            .about("Portals", "Removes a developer portal with its pages")
            .headers(WRITES),
        Operation::get(PAGES, "listPages", see, list_pages)
            .about("Portals", "Lists the pages of a portal")
            .answers::<List<Page>>(),
        Operation::get(PAGE, "getPage", see, read_page)
            .about("Portals", "Reads a page of a portal")
            .answers::<Page>(),
        Operation::put(PAGE, "putPage", write, put_page)
            .headers(WRITES)
            .body::<Page>()
            .answers::<Page>()
            .about("Portals", "Creates or changes a page of a portal"),
        Operation::delete(PAGE, "deletePage", write, delete_page)
            .about("Portals", "Removes a page of a portal")
            .headers(WRITES),
    ]
}

pub fn portal_key(name: &str) -> String {
    format!("{PREFIX}portals/{name}")
}

pub fn page_key(portal: &str, page: &str) -> String {
    format!("{PREFIX}pages/{portal}/{page}")
}

pub fn refused(faults: Vec<FieldError>) -> Result<(), Problem> {
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Problem::step("check", faults)),
    }
}

async fn list(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<Value>, Problem> {
    listed(&api, &caller, "portals").await
}

async fn read(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    read_entity(&api, &caller, &portal_key(&name)).await
}

/// What a portal names although it does not exist.
fn missing(snapshot: &EntitySnapshot, portal: &Portal) -> Vec<FieldError> {
    let mut faults = Vec::new();
    for (index, name) in portal.environments.iter().enumerate() {
        if !matches!(snapshot.environment(name), Ok(Environment { .. })) {
            let message = format!("there is no environment '{name}'");
            faults.push((format!("environments[{index}]"), message));
        }
    }
    for (field, names) in [("apis", &portal.apis), ("featured", &portal.featured)] {
        for (index, name) in names.iter().enumerate() {
            let known = snapshot.get::<ApiEntity>(&super::entity_snapshot::api_key(name));
            if known.is_err() {
                faults.push((format!("{field}[{index}]"), format!("there is no API '{name}'")));
            }
        }
    }
    faults
}

/// Identity providers that a portal names and that are not there.
fn unknown_providers(api: &Api, portal: &Portal) -> Vec<FieldError> {
    let known = api.options.users.providers();
    let unknown = portal.providers.iter().enumerate();
    let unknown = unknown.filter(|(_, it)| known.get(&it.name).is_none());
    unknown
        .map(|(index, it)| {
            let message = format!("there is no identity provider '{}'", it.name);
            (format!("providers[{index}].name"), message)
        })
        .collect()
}

/// Checks a portal against what there is.
pub fn check(
    api: &Api,
    snapshot: &EntitySnapshot,
    portal: &Portal,
    has_first_developers: bool,
) -> Result<(), Problem> {
    let others: Vec<Portal> = snapshot.list(&format!("{PREFIX}portals/"))?;
    let mut faults = portal_faults(portal, &others);
    faults.extend(unknown_providers(api, portal));
    faults.extend(missing(snapshot, portal));
    refused(faults)?;
    // Without any document the portal is called `default`. Who signed up there would be gone under another name.
    if others.is_empty() && portal.name != Portal::DEFAULT && has_first_developers {
        let detail = format!(
            "developers have signed up at the default portal '{0}': create '{0}' before other portals",
            Portal::DEFAULT
        );
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    Ok(())
}

/// Whether there are developers of the portal that there is without any document.
pub async fn has_first_developers(api: &Api) -> Result<bool, Problem> {
    let known = api.developers.all(Portal::DEFAULT, SystemTime::now()).await?;
    Ok(!known.is_empty())
}

async fn put(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Result<Response, Problem> {
    if !naming::is_name(&name) {
        let detail = format!("'{name}' is not a valid name: expected {}", naming::EXPECTED_NAME);
        return Err(Problem::bad(detail));
    }
    let mut body = body_of(&body)?;
    body["name"] = name.as_str().into();
    let portal: Portal = parse(&body)?;
    let key = portal_key(&name);
    let has_first = has_first_developers(&api).await?;
    let stored = api
        .manage_document(&caller, &headers, &key, |snapshot| {
            check(&api, snapshot, &portal, has_first)?;
            let is_new = snapshot.bytes(&key).is_none();
            snapshot.put(&key, &portal)?;
            Ok(WriteEffects::quiet(format!("PUT portals {name}"), is_new))
        })
        .await?;
    Ok(stored.tagged(answered(stored.answer, &portal)))
}

async fn delete(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let key = portal_key(&name);
    api.manage_document(&caller, &headers, &key, |snapshot| {
        let _there: Portal = snapshot.get(&key)?;
        snapshot.remove(&key);
        for page in snapshot.keys(&format!("{PREFIX}pages/{name}/")) {
            snapshot.remove(page.as_str());
        }
        Ok(WriteEffects::quiet(format!("DELETE portals {name}"), ()))
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn list_pages(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(portal): Path<String>,
) -> Result<Json<Value>, Problem> {
    listed(&api, &caller, &format!("pages/{portal}")).await
}

async fn read_page(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((portal, page)): Path<(String, String)>,
) -> Result<Response, Problem> {
    read_entity(&api, &caller, &page_key(&portal, &page)).await
}

async fn put_page(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((portal, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: String,
) -> Result<Response, Problem> {
    let mut body = body_of(&body)?;
    body["portal"] = portal.as_str().into();
    body["name"] = name.as_str().into();
    let page: Page = parse(&body)?;
    refused(page_faults(&page))?;
    let key = page_key(&portal, &name);
    let stored = api
        .manage_document(&caller, &headers, &key, |snapshot| {
            let _there: Portal = snapshot.get(&portal_key(&portal))?;
            if let Some(of) = &page.api {
                let _there: ApiEntity = snapshot.get(&super::entity_snapshot::api_key(of))?;
            }
            let is_new = snapshot.bytes(&key).is_none();
            snapshot.put(&key, &page)?;
            Ok(WriteEffects::quiet(format!("PUT pages {portal} {name}"), is_new))
        })
        .await?;
    Ok(stored.tagged(answered(stored.answer, &page)))
}

async fn delete_page(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path((portal, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let key = page_key(&portal, &name);
    api.manage_document(&caller, &headers, &key, |snapshot| {
        let _there: Page = snapshot.get(&key)?;
        snapshot.remove(&key);
        Ok(WriteEffects::quiet(format!("DELETE pages {portal} {name}"), ()))
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}
