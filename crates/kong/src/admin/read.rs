//! Calls to the Admin API that only read: entities and lists of them. Those that change something are in files of their
//! own.

use super::call::ApiCall;
use super::failure::Failure;
use super::page::{Page, PageRequest, escape};
use super::path::{EntitySelector, Parent, ResourcePath};
use super::plan::WorkspaceView;
use super::response::ApiResponse;
use super::table::foreign_id;
use super::write::check_belongs;
use crate::document::entity_type::EntityType;
use axum::http::StatusCode;
use std::collections::BTreeSet;
use weir_dialect::DEFAULT_WORKSPACE;

/// Answers a call that asks for what a path leads to.
///
/// # Errors
/// It is not there, or is asked for in a way that cannot be.
pub fn answer(call: &ApiCall, view: WorkspaceView<'_>, place: &ResourcePath) -> Result<ApiResponse, Failure> {
    match place {
        ResourcePath::Collection(entity_type, None) => {
            if let Some(custom_id) = call.argument("custom_id").filter(|_| entity_type.is("consumers")) {
                return by_custom_id(view, entity_type, custom_id);
            }
            let wanted = PageRequest::read(call)?;
            let page = wanted.page(view.workspace.table(entity_type), None);
            let next = format!("{}/{}?offset=", root(view), entity_type.path);
            Ok(list(view, entity_type, &page, &next, wanted.rest()))
        }
        ResourcePath::Collection(entity_type, Some(parent)) => nested(call, view, entity_type, parent),
        ResourcePath::Member(entity_type, pick, parent) => {
            let owner = parent
                .as_ref()
                .map(|parent| parent.owner(view.workspace))
                .transpose()?;
            let found = pick.find_below(entity_type, view.workspace, owner)?;
            if let Some(owner) = owner {
                check_belongs(found.as_deref(), owner)?;
            }
            let found = found.ok_or_else(|| match pick {
                EntitySelector::ServerName(_) => pick.missing(),
                _ => Failure::not_found(),
            })?;
            Ok(
                ApiResponse::bytes(StatusCode::OK, view.render(entity_type, &found))
                    .with_revision(found.modified),
            )
        }
        ResourcePath::Foreign {
            of,
            member,
            field,
            entity_type,
        } => {
            let member = member.find(of, view.workspace)?.ok_or_else(Failure::not_found)?;
            let id = member.fields().get(*field).and_then(foreign_id);
            let found = id.and_then(|id| view.workspace.table(entity_type).get(id));
            let found = found.ok_or_else(Failure::not_found)?;
            Ok(
                ApiResponse::bytes(StatusCode::OK, view.render(entity_type, found))
                    .with_revision(found.modified),
            )
        }
    }
}

/// The consumer with a custom id, as a list.
fn by_custom_id(
    view: WorkspaceView<'_>,
    entity_type: &'static EntityType,
    custom_id: &str,
) -> Result<ApiResponse, Failure> {
    if custom_id.is_empty() {
        let message = "custom_id must be an unempty string";
        return Err(Failure::message(StatusCode::BAD_REQUEST, message));
    }
    let members = view
        .workspace
        .table(entity_type)
        .find("custom_id", custom_id)
        .cloned();
    let page = Page {
        members: members.into_iter().collect(),
        offset: None,
    };
    Ok(list(view, entity_type, &page, "", ""))
}

fn nested(
    call: &ApiCall,
    view: WorkspaceView<'_>,
    entity_type: &'static EntityType,
    parent: &Parent,
) -> Result<ApiResponse, Failure> {
    let (_, id) = parent.owner(view.workspace)?;
    // Below another entity tags select nothing, as in the original.
    let wanted = PageRequest::read(call)?.without_tags();
    let table = view.workspace.table(entity_type);
    let none = BTreeSet::new();
    let among = table.referring(parent.field, id).unwrap_or(&none);
    let page = wanted.page(table, Some(among));
    let all = match call.path.last() {
        Some(last) if last == "all" => "/all",
        _ => "",
    };
    let next = format!(
        "{}/{}/{id}/{}{all}?offset=",
        root(view),
        parent.entity_type.path,
        entity_type.nested_path
    );
    Ok(list(view, entity_type, &page, &next, ""))
}

/// The path below which the workspace's entities stand.
fn root(view: WorkspaceView<'_>) -> String {
    match view.name {
        DEFAULT_WORKSPACE => String::new(),
        name => format!("/{name}"),
    }
}

fn list(
    view: WorkspaceView<'_>,
    entity_type: &'static EntityType,
    page: &Page,
    next: &str,
    rest: &str,
) -> ApiResponse {
    let mut body = Vec::with_capacity(64 + page.members.len() * 1024);
    body.extend_from_slice(b"{\"data\":[");
    for (index, member) in page.members.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(&view.render(entity_type, member));
    }
    match &page.offset {
        Some(offset) => {
            let next = format!("{next}{}{rest}", escape(offset));
            let next = serde_json::Value::from(next);
            body.extend_from_slice(format!("],\"next\":{next},\"offset\":\"{offset}\"}}").as_bytes());
        }
        None => body.extend_from_slice(b"],\"next\":null}"),
    }
    ApiResponse::bytes(StatusCode::OK, body)
}
