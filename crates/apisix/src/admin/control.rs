//! The part of APISIX's control API that shows what is configured and how healthy it is.

use super::Admin;
use super::call::ApiCall;
use super::encrypted_fields::{redact, take_private_keys};
use super::key::Role;
use super::kind::Kind;
use super::response::ApiResponse;
use super::schemas;
use super::state::{AdminState, DocumentEntry};
use crate::document::split_port;
use crate::plugins::{Checker, PluginLocation};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use weir_dialect::{CheckCounts, HealthState, UpstreamHealth};

/// The health of a node, as the original writes it.
#[derive(Debug, Serialize)]
struct NodeHealth {
    /// Its address.
    ip: String,
    /// Its port.
    port: u16,
    /// Its name, or its address once more.
    hostname: String,
    /// `healthy`, `mostly_healthy`, `mostly_unhealthy` or `unhealthy`.
    status: &'static str,
    /// The results of its checks since the status last changed.
    counter: CheckCounts,
}

/// The nodes of an upstream that are checked.
fn nodes_of(health: UpstreamHealth) -> Vec<NodeHealth> {
    if health.state == HealthState::Unchecked {
        return Vec::new();
    }
    let targets = health.targets.into_iter();
    let nodes = targets.flat_map(|target| {
        let hostname = target.host;
        let addresses = target.addresses.into_iter();
        addresses.map(move |known| NodeHealth {
            ip: known.ip,
            port: known.port,
            hostname: hostname.clone(),
            status: known.checks,
            counter: known.counts,
        })
    });
    nodes.collect()
}

/// Answers a call.
pub fn answer(admin: &Admin, call: &ApiCall) -> ApiResponse {
    let segments: Vec<&str> = call.path.split('/').collect();
    let state = admin.state();
    let ok = |value: Value| ApiResponse::json(StatusCode::OK, &value);
    match (&call.method, segments.as_slice()) {
        (&Method::POST, ["", "v1", "gc"]) => ApiResponse::empty(StatusCode::OK),
        (&Method::PUT, ["", "v1", "plugins", "reload"]) => ApiResponse::text(StatusCode::OK, "done"),
        (&Method::GET, ["", "v1", rest @ ..]) => match rest {
            ["schema"] => ok(schemas::everything()),
            ["healthcheck"] => health_of_all(admin, &state, call),
            ["healthcheck", rest @ ..] => health_of_one(admin, &state, call, rest),
            ["routes"] => ok(dump(admin, &state, call.role, Kind::Route)),
            ["services"] => ok(dump(admin, &state, call.role, Kind::Service)),
            ["upstreams"] => ok(dump(admin, &state, call.role, Kind::Upstream)),
            ["route", id] => dump_one(admin, &state, call.role, Kind::Route, id),
            ["service", id] => dump_one(admin, &state, call.role, Kind::Service, id),
            ["upstream", id] => dump_one(admin, &state, call.role, Kind::Upstream, id),
            ["plugin_metadatas"] => ok(listed(
                schemas::in_order()
                    .filter_map(|name| state.get(&format!("plugin_metadata/{name}")))
                    .map(|entry| redact(Kind::PluginMetadata, &entry.value, call.role).into_owned())
                    .collect(),
            )),
            ["plugin_metadata", name] => match state.get(&format!("plugin_metadata/{name}")) {
                Some(entry) => ok(redact(Kind::PluginMetadata, &entry.value, call.role).into_owned()),
                None => missing(format!("plugin metadata[{name}] not found")),
            },
            _ => no_page(),
        },
        _ => no_page(),
    }
}

fn no_page() -> ApiResponse {
    ApiResponse::text(StatusCode::NOT_FOUND, "404 Not Found\n").with(CONTENT_TYPE, "text/plain")
}

fn missing(message: String) -> ApiResponse {
    ApiResponse::error(StatusCode::NOT_FOUND, message)
}

fn dump(admin: &Admin, state: &AdminState, role: Role, kind: Kind) -> Value {
    listed(
        state
            .of_kind(kind)
            .map(|entry| dumped(admin, kind, role, entry))
            .collect(),
    )
}

/// A list as APISIX's scripting language writes it: an empty one looks like an empty map.
fn listed(items: Vec<Value>) -> Value {
    match items.is_empty() {
        true => json!({}),
        false => Value::Array(items),
    }
}

fn dump_one(admin: &Admin, state: &AdminState, role: Role, kind: Kind, id: &str) -> ApiResponse {
    match state.get(&format!("{}/{id}", kind.name())) {
        Some(entry) => ApiResponse::json(StatusCode::OK, &dumped(admin, kind, role, entry)),
        None => missing(format!("{}[{id}] not found", kind.word())),
    }
}

/// A document as it is served: with defaults, and with its nodes as a list.
fn dumped(admin: &Admin, kind: Kind, role: Role, entry: &DocumentEntry) -> Value {
    let mut value = entry.value.clone();
    // A file may write an id as a number.
    if let Some(id @ Value::Number(_)) = value.get_mut("id") {
        *id = Value::String(id.to_string());
    }
    complete_plugins(admin, &mut value);
    if let Some(shape) = kind.shape() {
        // A wrong one is shown as it is stored.
        let _ = shape.check(&mut value);
    }
    for place in ["/nodes", "/upstream/nodes"] {
        if let Some(Value::Object(map)) = value.pointer_mut(place).map(|nodes| nodes.take()) {
            let list = map.iter().map(|(address, weight)| match split_port(address) {
                (host, Some(port)) => json!({"host": host, "port": port, "weight": weight}),
                (host, None) => json!({"host": host, "weight": weight}),
            });
            let list: Value = list.collect();
            if let Some(nodes) = value.pointer_mut(place) {
                *nodes = list;
            }
        } else if let Some(nodes) = value.pointer_mut(place) {
            *nodes = entry.value.pointer(place).cloned().unwrap_or_default();
        }
    }
    let mut value = redact(kind, &value, role).into_owned();
    // In the original, callers from this machine show no key: private keys are never shown here.
    take_private_keys(&mut value);
    json!({
        "key": admin.key_of(entry),
        "value": value,
        "createdIndex": entry.created.0,
        "modifiedIndex": entry.modified.0,
    })
}

/// Fills in the defaults of plugins.
fn complete_plugins(admin: &Admin, value: &mut Value) {
    let mut checker = Checker::new(admin.options.settings);
    let plugins = value.get_mut("plugins").and_then(Value::as_object_mut);
    for (name, config) in plugins.into_iter().flatten() {
        let mut whole = config.clone();
        // A wrong one is shown as it is stored.
        if checker.check(name, &mut whole, PluginLocation::Request).is_ok()
            && let Some(map) = whole.as_object_mut()
        {
            map.entry("_meta").or_insert_with(|| json!({}));
            *config = whole;
        }
    }
}

/// The health of the upstream in a document; `None`: it has no checks.
fn upstream_health(admin: &Admin, entry: &DocumentEntry) -> Option<Value> {
    let checks = ["/checks", "/upstream/checks"]
        .iter()
        .find_map(|place| entry.value.pointer(place))?;
    let kind = ["active", "passive"].iter().find_map(|way| {
        Some(
            checks
                .get(way)?
                .get("type")
                .cloned()
                .unwrap_or_else(|| json!("http")),
        )
    });
    let source = admin.options.health.as_ref();
    let health = source.and_then(|source| source.upstream(&entry.key));
    let mut nodes = health.map_or_else(Vec::new, nodes_of);
    let port = checks.pointer("/active/port").and_then(Value::as_u64);
    if let Some(port) = port.and_then(|port| u16::try_from(port).ok()) {
        merge_checked_nodes(port, &mut nodes);
    }
    Some(json!({
        "name": admin.key_of(entry),
        "type": kind,
        "nodes": nodes,
    }))
}

/// Shows nodes that are checked at one port with that port, and nodes of one address once.
fn merge_checked_nodes(port: u16, nodes: &mut Vec<NodeHealth>) {
    let mut names: Vec<(String, String)> = Vec::new();
    nodes.retain_mut(|node| {
        node.port = port;
        let address = (node.hostname.clone(), node.ip.clone());
        let is_new = !names.contains(&address);
        names.extend(is_new.then_some(address));
        is_new
    });
}

impl Admin {
    /// The original's name for a document: one of a file has no store's prefix.
    fn key_of(&self, entry: &DocumentEntry) -> String {
        match self.file {
            Some(_) => format!("/{}", entry.key),
            None => format!("/apisix/{}", entry.key),
        }
    }
}

fn health_of_all(admin: &Admin, state: &AdminState, call: &ApiCall) -> ApiResponse {
    let upstreams = [Kind::Route, Kind::StreamRoute, Kind::Service, Kind::Upstream]
        .into_iter()
        .flat_map(|kind| state.of_kind(kind))
        .filter_map(|entry| upstream_health(admin, entry))
        .collect();
    health_answer(call, upstreams, true)
}

fn health_of_one(admin: &Admin, state: &AdminState, call: &ApiCall, segments: &[&str]) -> ApiResponse {
    let (collection, id) = match segments {
        [collection] => return missing(format!("missing src id for src type {collection}")),
        [collection, id, ..] => (*collection, *id),
        [] => return no_page(),
    };
    if !["routes", "services", "upstreams", "stream_routes"].contains(&collection) {
        return ApiResponse::bad(format!("invalid src type {collection}"));
    }
    let entry: Option<&Arc<DocumentEntry>> = state.get(&format!("{collection}/{id}"));
    match entry.map(|entry| upstream_health(admin, entry)) {
        None => missing(format!("{collection}[{id}] not found")),
        Some(None) => missing(format!("no checker for {collection}[{id}]")),
        Some(Some(upstream)) => health_answer(call, vec![upstream], false),
    }
}

/// As JSON, or as a page if a browser asks.
fn health_answer(call: &ApiCall, mut upstreams: Vec<Value>, as_list: bool) -> ApiResponse {
    if call
        .header("accept")
        .is_some_and(|kinds| kinds.contains("text/html"))
    {
        return ApiResponse::text(StatusCode::OK, &page(&upstreams)).with(CONTENT_TYPE, "text/html");
    }
    match (as_list, upstreams.pop()) {
        (false, Some(one)) => ApiResponse::json(StatusCode::OK, &one),
        (_, last) => {
            upstreams.extend(last);
            ApiResponse::json(StatusCode::OK, &listed(upstreams))
        }
    }
}

fn page(upstreams: &[Value]) -> String {
    let mut page = "<html xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n  \
                    <title>APISIX upstream check status</title>\n</head>\n<body>\n\
                    <h1>APISIX upstream check status</h1>\n<table>\n<tr>"
        .to_owned();
    for title in [
        "Index",
        "Upstream",
        "Check type",
        "Host",
        "Status",
        "Success counts",
        "TCP Failures",
        "HTTP Failures",
        "TIMEOUT Failures",
    ] {
        let _ = write!(page, "<th>{title}</th>");
    }
    page.push_str("</tr>\n");
    let text = |value: Option<&Value>| match value {
        Some(Value::String(text)) => escaped(text),
        Some(other) => escaped(&other.to_string()),
        None => String::new(),
    };
    let mut index = 0;
    for upstream in upstreams {
        for node in upstream["nodes"].as_array().into_iter().flatten() {
            index += 1;
            let host = format!("{}:{}", text(node.get("ip")), text(node.get("port")));
            let counts = ["success", "tcp_failure", "http_failure", "timeout_failure"]
                .map(|count| text(node["counter"].get(count)));
            let cells = [
                index.to_string(),
                text(upstream.get("name")),
                text(upstream.get("type")),
                host,
                text(node.get("status")),
            ];
            page.push_str("<tr>");
            for cell in cells.iter().chain(&counts) {
                let _ = write!(page, "<td>{cell}</td>");
            }
            page.push_str("</tr>\n");
        }
    }
    page.push_str("</table>\n</body>\n</html>\n");
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
