//! A version of an API: its operations, schemas, plans, document, and what differs from another one. What is hidden
//! from the one who asks does not exist.

use super::catalogue_entries::{place_line, plan_card, text_of, word};
use super::operation::{Operation, Shared};
use super::reference;
use super::shapes::{
    ChangeLine, ChangedOperation, OperationDetail, OperationLine, Schemas, TagLine, VersionChanges,
    VersionDetail,
};
use crate::catalogue::{Catalogue, Deployment, PublishedApi, PublishedVersion};
use crate::markdown::{self, Node};
use crate::state::{PortalContext, Portals};
use crate::yaml;
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use weir_apis::render::is_served;
use weir_apis::{diff, export};
use weir_control::api::Json;
use weir_control::api::Problem;

/// The calls.
pub fn operations() -> Vec<Operation> {
    let operations = vec![
        Operation::get(
            VERSION,
            ("getVersion", "Reads a version with its operations and plans"),
            version,
        )
        .answers::<VersionDetail>(),
        Operation::get(
            "/portal/v1/apis/{api}/versions/{version}/operations/{operation}",
            ("getOperation", "Reads an operation with its schemas"),
            operation,
        )
        .answers::<OperationDetail>(),
        Operation::get(
            "/portal/v1/apis/{api}/versions/{version}/schemas/{schema}",
            ("getSchema", "Reads a schema of a version"),
            schema,
        )
        .answers::<Schemas>(),
        Operation::get(
            "/portal/v1/apis/{api}/versions/{version}/openapi.json",
            ("downloadOpenapi", "Reads the OpenAPI document of a version"),
            document,
        )
        .answers::<Value>(),
        Operation::get(
            "/portal/v1/apis/{api}/versions/{version}/openapi.yaml",
            (
                "downloadOpenapiYaml",
                "Reads the OpenAPI document of a version as YAML",
            ),
            document_yaml,
        )
        .answers::<String>()
        .media("application/openapi+yaml"),
        Operation::get(
            "/portal/v1/apis/{api}/versions/{version}/changes",
            ("compareVersions", "Lists the differences from another version"),
            changes,
        )
        .query::<CompareQuery>()
        .answers::<VersionChanges>(),
    ];
    Operation::tagged("Catalogue", operations)
}

const VERSION: &str = "/portal/v1/apis/{api}/versions/{version}";

/// With what a version is compared.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
pub struct CompareQuery {
    /// The other version; without it, the one before.
    from: String,
}

pub fn find_api(catalogue: &Catalogue, visit: &PortalContext, name: &str) -> Result<PublishedApi, Problem> {
    let found = catalogue.api(&visit.portal, &visit.viewer, name);
    found.ok_or_else(|| Problem::not_found(format_args!("the API '{name}'")))
}

/// A version as it is shown to the visitor.
pub fn find_version(
    catalogue: &Catalogue,
    visit: &PortalContext,
    (name, version): (&str, &str),
) -> Result<(PublishedApi, PublishedVersion), Problem> {
    let api = find_api(catalogue, visit, name)?;
    let found = api.versions.iter().find(|it| it.version.version == version);
    let found = found.cloned();
    let missing = || Problem::not_found(format_args!("version '{version}' of the API '{name}'"));
    Ok((api, found.ok_or_else(missing)?))
}

/// The place of a version whose document is shown.
pub fn first_place(version: &PublishedVersion) -> Result<&Deployment, Problem> {
    let first = version.places.first();
    first.ok_or_else(|| Problem::not_found("a publication of this version"))
}

pub async fn version(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Json<VersionDetail>, Problem> {
    let catalogue = portals.catalogue().await;
    let (_, version) = find_version(&catalogue, &visit, (&name, &version))?;
    let place = first_place(&version)?;
    let description = &place.description;
    let tags = description.tags.iter().map(|it| TagLine {
        name: text_of(&it["name"]).to_owned(),
        description: text_of(&it["description"]).to_owned(),
    });
    let operations = place.operations().map(|it| OperationLine {
        id: it.id.clone(),
        method: it.method.clone(),
        path: it.path.clone(),
        summary: it.summary.clone().unwrap_or_default(),
        tag: it.tags.first().cloned().unwrap_or_default(),
        is_deprecated: it.deprecated,
    });
    Ok(Json(VersionDetail {
        api: name,
        version: version.version.version.clone(),
        title: text_of(&description.info["title"]).to_owned(),
        state: word(&version.version.line),
        description: markdown::read(text_of(&description.info["description"])),
        news: markdown::read(&version.version.description),
        places: version.places.iter().map(|it| place_line(&portals, it)).collect(),
        plans: version
            .plans
            .iter()
            .map(|it| plan_card(it, (&version.version, place), &visit))
            .collect(),
        tags: tags.collect(),
        operations: operations.collect(),
    }))
}

pub async fn operation(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((name, version, id)): Path<(String, String, String)>,
) -> Result<Json<OperationDetail>, Problem> {
    let catalogue = portals.catalogue().await;
    let (_, version) = find_version(&catalogue, &visit, (&name, &version))?;
    let place = first_place(&version)?;
    let operation = place.operation(&id);
    let operation = operation.ok_or_else(|| Problem::not_found(format_args!("the operation '{id}'")))?;
    let schemas = reference::named_in(&operation.value, &place.description.schemas);
    let mut value = operation.value.as_object().cloned().unwrap_or_default();
    // The backend's address, and whom it trusts, concerns no caller: plans say how to call.
    value.remove("servers");
    value.remove("security");
    let text = value.remove("description");
    Ok(Json(OperationDetail {
        id: operation.id.clone(),
        method: operation.method.clone(),
        path: operation.path.clone(),
        summary: operation.summary.clone().unwrap_or_default(),
        is_deprecated: operation.deprecated,
        description: described(text),
        value,
        schemas,
    }))
}

fn described(text: Option<Value>) -> Vec<Node> {
    match text {
        Some(Value::String(text)) => markdown::read(&text),
        _ => Vec::new(),
    }
}

pub async fn schema(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((name, version, schema)): Path<(String, String, String)>,
) -> Result<Json<Schemas>, Problem> {
    let catalogue = portals.catalogue().await;
    let (_, version) = find_version(&catalogue, &visit, (&name, &version))?;
    let place = first_place(&version)?;
    // A schema counts if an operation that is shown leads to it.
    let is_reached = place
        .operations()
        .any(|it| reference::leads_to(&it.value, &place.description.schemas, &schema));
    match is_reached {
        true => Ok(Json(Schemas {
            schemas: reference::from(&schema, &place.description.schemas),
        })),
        false => Err(Problem::not_found(format_args!("the schema '{schema}'"))),
    }
}

pub async fn document(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let exported = exported(&portals, &visit, (&name, &version)).await?;
    let file = format!("{name}-{version}.openapi.json");
    Ok(download(
        "application/openapi+json",
        &file,
        format!("{exported:#}\n"),
    ))
}

pub async fn document_yaml(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let exported = exported(&portals, &visit, (&name, &version)).await?;
    let file = format!("{name}-{version}.openapi.yaml");
    Ok(download("application/openapi+yaml", &file, yaml::of(&exported)))
}

fn download(media: &str, file: &str, body: String) -> Response {
    let kind = [
        (header::CONTENT_TYPE, media.to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{file}\""),
        ),
    ];
    (kind, body).into_response()
}

/// The OpenAPI document of a version, as callers may see it.
async fn exported(
    portals: &Arc<Portals>,
    visit: &PortalContext,
    (name, version): (&str, &str),
) -> Result<Value, Problem> {
    let catalogue = portals.catalogue().await;
    let (_, found) = find_version(&catalogue, visit, (name, version))?;
    let place = first_place(&found)?;
    let base = place.base_url(&portals.gateway);
    let path = place.publication.runtime.base_path.trim_end_matches('/');
    // The export puts the base path behind each.
    let servers: Vec<String> = base
        .iter()
        .map(|it| it.strip_suffix(path).unwrap_or(it).to_owned())
        .collect();
    let visible_ids: HashSet<&str> = place.operations().map(|it| it.id.as_str()).collect();
    let exported = export::export(
        &place.description,
        &servers,
        Some(&place.publication),
        &found.plans,
        |id| !visible_ids.contains(id),
    );
    Ok(exported)
}

pub async fn changes(
    State(portals): Shared,
    Extension(visit): Extension<PortalContext>,
    Path((name, version)): Path<(String, String)>,
    Query(since): Query<CompareQuery>,
) -> Result<Json<VersionChanges>, Problem> {
    let catalogue = portals.catalogue().await;
    let (api, new) = find_version(&catalogue, &visit, (&name, &version))?;
    let old = match since.from.as_str() {
        "" => {
            let index = api.versions.iter().position(|it| it.version.version == version);
            api.versions.get(index.map_or(0, |it| it + 1)).cloned()
        }
        from => Some(find_version(&catalogue, &visit, (&name, from))?.1),
    };
    let old = old.ok_or_else(|| Problem::not_found("an earlier version"))?;
    let (before, after) = (first_place(&old)?, first_place(&new)?);
    let difference = diff::diff(&before.description, &after.description);
    let is_shown = |id: &str| before.shows(id) && after.shows(id);
    let operations = difference.operations.into_iter();
    let operations = operations.filter(|it| is_shown(&it.id) && is_served(&it.method));
    let changed = operations.map(|it| ChangedOperation {
        operation: format!("{} {}", it.method, it.path),
        changes: match it.kind {
            diff::Kind::Added => vec![ChangeLine {
                text: "is new".to_owned(),
                is_breaking: false,
            }],
            _ => it
                .changes
                .into_iter()
                .map(|it| ChangeLine {
                    text: match it.place.as_str() {
                        "" => it.message,
                        place => format!("{place}: {}", it.message),
                    },
                    is_breaking: it.breaking,
                })
                .collect(),
        },
    });
    Ok(Json(VersionChanges {
        from: old.version.version.clone(),
        to: version,
        operations: changed.collect(),
    }))
}
