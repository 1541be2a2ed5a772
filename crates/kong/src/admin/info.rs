//! What the Admin API says about itself: `/`, `/status`, `/endpoints`, and the paths for parts of the
//! original that have no counterpart here.

use super::call::ApiCall;
use super::endpoints::endpoints;
use super::failure::Failure;
use super::node::{self, Node};
use super::plan::WorkspaceView;
use super::response::ApiResponse;
use super::{AdminOptions, VERSION};
use crate::document::entity_type::entity_type;
use crate::metrics::EXPOSITION;
use crate::plugins;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, StatusCode};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use weir_dialect::DEFAULT_WORKSPACE;

/// Answers a call for information; `None`: the path leads elsewhere.
/// `hash` is that of the configuration if it stands in a file.
pub(super) fn answer(
    call: &ApiCall,
    view: WorkspaceView<'_>,
    options: &AdminOptions,
    hash: Option<&str>,
) -> Option<Result<ApiResponse, Failure>> {
    let path: Vec<&str> = call.path.iter().map(String::as_str).collect();
    let is_delete = call.method == Method::DELETE;
    let found = match path.as_slice() {
        ["cache"] if is_delete => Ok(ApiResponse::no_content()),
        ["cache", _] if is_delete => Ok(ApiResponse::no_content()),
        ["cache", _] if call.is_read() => Err(Failure::not_found()),
        ["debug", _, "log-level", _] if call.method == Method::PUT => Err(Failure::message(
            StatusCode::METHOD_NOT_ALLOWED,
            "the log level cannot be changed while Weir runs",
        )),
        []
        | ["status"]
        | ["status", "dns" | "ready"]
        | ["endpoints"]
        | ["metrics"]
        | ["timers"]
        | ["plugins", "enabled"]
        | ["clustering", "data-planes" | "status"]
        | ["cache", ..]
        | ["debug", ..] => {
            if call.is_read() {
                respond(&path, view, options, hash)
            } else {
                Err(Failure(ApiResponse::method_not_allowed()))
            }
        }
        _ => return None,
    };
    Some(found)
}

/// The metrics, as Prometheus reads them. A workspace sees its own, but for the one of calls that name none: it sees those of
/// the node.
fn metrics(node: &Node, workspace: &str) -> ApiResponse {
    let text = node.plugin_metrics.render(EXPOSITION);
    let text = match workspace {
        DEFAULT_WORKSPACE => text,
        own => crate::metrics::of_workspace(&text, own),
    };
    let kind = HeaderValue::from_static("text/plain; charset=UTF-8");
    ApiResponse::bytes(StatusCode::OK, text.into_bytes()).with(CONTENT_TYPE, kind)
}

fn respond(
    path: &[&str],
    view: WorkspaceView<'_>,
    options: &AdminOptions,
    hash: Option<&str>,
) -> Result<ApiResponse, Failure> {
    if path == ["metrics"] {
        return Ok(metrics(&options.node, view.name));
    }
    Ok(ApiResponse::ok(&match path {
        [] => root(view, options, hash.is_none()),
        ["status"] => status(&options.node, hash),
        ["status", "ready"] => json!({ "message": "ready" }),
        ["endpoints"] => json!({ "data": endpoints() }),
        ["plugins", "enabled"] => {
            let names: Vec<&str> = plugins::all().map(|plugin| plugin.name).collect();
            json!({ "enabled_plugins": names })
        }
        ["timers"] => json!({
            "worker": { "id": 0, "count": 1 },
            "stats": { "sys": { "total": 0, "runs": 0, "running": 0, "pending": 0, "waiting": 0 }, "timers": {} },
        }),
        ["debug", "node", "log-level"] => json!({ "message": "log level: notice" }),
        ["status", "dns"] => {
            let message = "not implemented with the legacy DNS client";
            return Err(Failure::message(StatusCode::NOT_IMPLEMENTED, message));
        }
        ["clustering", _] => {
            let message = "this endpoint is only available when Kong is configured to run as Control Plane for \
                           the cluster";
            return Err(Failure::message(StatusCode::BAD_REQUEST, message));
        }
        _ => return Err(Failure::not_found()),
    }))
}

fn root(view: WorkspaceView<'_>, options: &AdminOptions, has_database: bool) -> Value {
    let node = &options.node;
    let available: Map<String, Value> = plugins::all()
        .map(|plugin| {
            let entry = json!({ "priority": plugin.priority, "version": VERSION });
            (plugin.name.to_owned(), entry)
        })
        .collect();
    json!({
        "version": VERSION,
        "edition": "community",
        "tagline": "Welcome to kong",
        "hostname": node.hostname,
        "node_id": node.id,
        "lua_version": "none",
        "timers": { "running": 0, "pending": 0 },
        "pids": { "master": std::process::id(), "workers": [std::process::id()] },
        "plugins": {
            "available_on_server": available,
            "enabled_in_cluster": used_plugins(view),
        },
        "configuration": configuration(options, has_database),
    })
}

/// The names of the plugins that have instances.
fn used_plugins(view: WorkspaceView<'_>) -> BTreeSet<String> {
    let Some(plugins) = entity_type("plugins") else {
        return BTreeSet::new();
    };
    let instances = view.workspace.table(plugins).all(uuid::Uuid::nil());
    instances
        .filter_map(|kept| match kept.fields().remove("name") {
            Some(Value::String(name)) => Some(name),
            _ => None,
        })
        .collect()
}

/// The settings of the original that clients look at.
fn configuration(options: &AdminOptions, has_database: bool) -> Value {
    let node = &options.node;
    let names: Vec<&str> = plugins::all().map(|plugin| plugin.name).collect();
    let loaded: Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), true.into()))
        .collect();
    let described = |listeners: &[weir_dialect::Listener]| -> Vec<Value> {
        listeners.iter().map(node::described).collect()
    };
    let texts = |listeners: &[weir_dialect::Listener]| -> Vec<String> {
        listeners.iter().map(node::text_of).collect()
    };
    json!({
        "database": if has_database { "postgres" } else { "off" },
        "role": "traditional",
        "router_flavor": options.translation.router.word(),
        "plugins": names,
        "loaded_plugins": loaded,
        "loaded_vaults": { "env": true },
        "vaults": ["bundled"],
        "wasm": false,
        "kic": false,
        "log_level": "notice",
        "anonymous_reports": false,
        "allow_debug_header": false,
        "cluster_rpc": false,
        "proxy_listen": texts(&node.listeners),
        "proxy_listeners": described(&node.listeners),
        "proxy_ssl_enabled": node.listeners.iter().any(|listener| listener.is_tls),
        "admin_listen": texts(&node.admin_listeners),
        "admin_listeners": described(&node.admin_listeners),
        "admin_ssl_enabled": node.admin_listeners.iter().any(|listener| listener.is_tls),
        "stream_listen": ["off"],
        "stream_listeners": [],
        "status_listen": ["off"],
        "status_listeners": [],
        "cluster_listen": ["off"],
        "cluster_listeners": [],
        "db_update_frequency": 0,
        "db_update_propagation": 0,
        "worker_consistency": "strict",
    })
}

fn status(node: &Node, hash: Option<&str>) -> Value {
    let counts = node.statistics.as_ref().map(|it| it.counts()).unwrap_or_default();
    let mut body = json!({
        "memory": { "lua_shared_dicts": {}, "workers_lua_vms": [] },
        "server": {
            "connections_active": counts.open_connections,
            "connections_accepted": counts.accepted_connections,
            "connections_handled": counts.accepted_connections,
            "connections_reading": 0,
            "connections_writing": 0,
            "connections_waiting": counts.open_connections,
            "total_requests": counts.requests,
        },
    });
    match hash {
        Some(hash) => body["configuration_hash"] = hash.into(),
        None => body["database"] = json!({ "reachable": true }),
    }
    body
}
