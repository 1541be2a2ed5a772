//! `/oauth2_tokens`: the tokens that an administrator has written, and those that calls have got from instances of
//! `oauth2`.
//!
//! Of those, neither the gateway nor its store has the texts: `access_token` and `refresh_token` are `null`. They can be found and
//! removed by their ids, or by the text of the access token.

use super::Admin;
use super::call::ApiCall;
use super::failure::Failure;
use super::page::{PageRequest, escape, offset};
use super::path::{EntitySelector, uuid};
use super::plan::WorkspaceView;
use super::render_entity::complete;
use super::response::ApiResponse;
use crate::document::entity_type::{EntityType, entity_type};
use crate::name::NAME;
use axum::http::{Method, StatusCode};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::SystemTime;
use uuid::Uuid;
use weir_dialect::DEFAULT_WORKSPACE;
use weir_model::unix_time;
use weir_plugin::SharedRecords;

const TOKENS: &str = "oauth2_tokens";
/// The plugin whose tokens these are.
const PLUGIN: &str = "oauth2-server";

/// A token that a call has got.
struct IssuedToken {
    id: Uuid,
    name: String,
    fields: Map<String, Value>,
}

/// Answers a call that is for tokens of calls, too; `None`: it is for those of an administrator alone.
pub async fn answer(admin: &Admin, call: &ApiCall) -> Option<Result<ApiResponse, Failure>> {
    let records = admin.options.node.shared_records(PLUGIN)?;
    let entity_type = entity_type(TOKENS)?;
    match call.path.as_slice() {
        [first] if first == TOKENS && call.is_read() && call.argument("tags").is_none() => {
            Some(list(admin, call, entity_type, records.as_ref()))
        }
        [first, member] if first == TOKENS && (call.is_read() || call.method == Method::DELETE) => {
            if is_written(admin, call, entity_type, member) {
                return None;
            }
            let found = issued(admin, call, records.as_ref()).into_iter();
            let wanted = records.name_of(member);
            let id = uuid(member);
            let token = found
                .into_iter()
                .find(|it| Some(it.id) == id || it.name == wanted)?;
            Some(match call.is_read() {
                true => Ok(ApiResponse::ok(&Value::Object(token.fields))),
                false => remove(call, records, &token.name).await,
            })
        }
        _ => None,
    }
}

/// Whether an administrator has written this one.
fn is_written(admin: &Admin, call: &ApiCall, entity_type: &'static EntityType, member: &str) -> bool {
    let state = admin.state();
    let view = WorkspaceView::of(&state, call, SystemTime::now());
    let found = EntitySelector::of(entity_type, member).find(entity_type, view.workspace);
    found.map_or(true, |found| found.is_some())
}

/// The tokens of the workspace's clients, by their ids.
fn issued(admin: &Admin, call: &ApiCall, records: &dyn SharedRecords) -> Vec<IssuedToken> {
    let state = admin.state();
    let view = WorkspaceView::of(&state, call, SystemTime::now());
    let now_ms = unix_time::millis(SystemTime::now());
    let Some((clients, tokens)) = entity_type("oauth2_credentials").zip(entity_type(TOKENS)) else {
        return Vec::new();
    };
    let clients = view.workspace.table(clients);
    let all = records.list(now_ms).into_iter();
    let own = all.filter_map(|(name, token)| {
        let client = uuid(token["client"].as_str()?)?;
        clients.get(client).filter(|_| is_of(&token, view.name))?;
        let mut bytes = [0; 16];
        let start = data_encoding::HEXLOWER.decode(name.get(..32)?.as_bytes()).ok()?;
        bytes.copy_from_slice(&start);
        let id = uuid::Builder::from_sha1_bytes(bytes).into_uuid();
        let mut fields = fields(id, client, &token, now_ms);
        complete(tokens.record, &mut fields);
        Some(IssuedToken { id, name, fields })
    });
    let mut own: Vec<IssuedToken> = own.collect();
    own.sort_by_key(|it| it.id);
    own
}

/// Whether a token is of a client of this workspace. Clients of other workspaces may have the same ids: who writes a client
/// may choose its id.
fn is_of(record: &Value, workspace: &str) -> bool {
    let own = (workspace != DEFAULT_WORKSPACE).then_some(workspace);
    record["dialect"] == NAME.as_str() && record["workspace"].as_str() == own
}

fn fields(id: Uuid, client: Uuid, record: &Value, now_ms: u64) -> Map<String, Value> {
    let service = record["service"].as_str().map(|id| json!({ "id": id }));
    let ttl = record["ends_ms"]
        .as_u64()
        .map(|ends_ms| ends_ms.saturating_sub(now_ms) / 1_000);
    Map::from_iter([
        ("id".to_owned(), json!(id.to_string())),
        ("created_at".to_owned(), record["created_s"].clone()),
        ("credential".to_owned(), json!({ "id": client.to_string() })),
        ("service".to_owned(), json!(service)),
        ("token_type".to_owned(), json!("bearer")),
        ("expires_in".to_owned(), record["expires_seconds"].clone()),
        ("scope".to_owned(), record["scope"].clone()),
        ("authenticated_userid".to_owned(), record["user"].clone()),
        ("ttl".to_owned(), json!(ttl)),
    ])
}

/// A page of both kinds, by their ids.
fn list(
    admin: &Admin,
    call: &ApiCall,
    entity_type: &'static EntityType,
    records: &dyn SharedRecords,
) -> Result<ApiResponse, Failure> {
    let wanted = PageRequest::read(call)?;
    let (size, from) = wanted.cut_of();
    let issued = issued(admin, call, records);
    let state = admin.state();
    let view = WorkspaceView::of(&state, call, SystemTime::now());
    let written = view.workspace.table(entity_type).all(from).take(size + 1);
    let mut page: Vec<(Uuid, Value)> = written
        .map(|row| {
            (
                row.id,
                serde_json::from_slice(&view.render(entity_type, row)).unwrap_or_default(),
            )
        })
        .collect();
    let own = issued.into_iter().filter(|it| it.id >= from).take(size + 1);
    page.extend(own.map(|it| (it.id, Value::Object(it.fields))));
    page.sort_by_key(|(id, _)| *id);
    let mut body = Map::new();
    let next = page.get(size).map(|(id, _)| offset(*id));
    page.truncate(size);
    body.insert(
        "data".to_owned(),
        page.into_iter().map(|(_, fields)| fields).collect(),
    );
    let address = next
        .as_ref()
        .map(|next| format!("/{}?offset={}{}", entity_type.path, escape(next), wanted.rest()));
    body.insert("next".to_owned(), json!(address));
    if let Some(next) = next {
        body.insert("offset".to_owned(), json!(next));
    }
    Ok(ApiResponse::json(StatusCode::OK, &Value::Object(body)))
}

async fn remove(call: &ApiCall, records: Arc<dyn SharedRecords>, name: &str) -> Result<ApiResponse, Failure> {
    if call.dry_run {
        return Ok(ApiResponse::no_content().tried());
    }
    let (tell, committed) = tokio::sync::oneshot::channel();
    records.remove(
        name,
        Box::new(move |done| {
            // The client may have gone.
            let _is_heard = tell.send(done);
        }),
    );
    match committed.await {
        Ok(Ok(_)) => Ok(ApiResponse::no_content()),
        _ => Err(Failure::of_store(&StoreUnavailable)),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the store does not answer")]
struct StoreUnavailable;
