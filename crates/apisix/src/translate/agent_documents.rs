//! Routes and services in the data for policy agents: what is written about them, without their upstreams, and with
//! their secrets hidden.

use crate::admin::{Kind, hide_secrets};
use crate::document::{Item, Plugins, Route, Service, Timeout};
use crate::plugins::AgentDocuments;
use serde_json::{Map, Value, json};

/// The data for agents about a route with these plugins, and about its service.
pub fn of(route: &Item<Box<Route>>, plugins: Plugins, service: Option<&Item<Service>>) -> AgentDocuments {
    AgentDocuments {
        route: hidden(of_route(route, plugins)),
        service: service.map(|service| hidden(of_service(service))),
    }
}

fn of_route(item: &Item<Box<Route>>, plugins: Plugins) -> Map<String, Value> {
    let route = &item.value;
    let time_outs = |it: Timeout| json!({"connect": it.connect, "send": it.send, "read": it.read});
    let fields = [
        ("id", Some(item.id.clone().into())),
        ("name", route.name.clone().map(Value::from)),
        ("desc", route.desc.clone().map(Value::from)),
        ("labels", route.labels.clone()),
        ("uri", route.uri.clone().map(Value::from)),
        ("uris", route.uris.clone().map(Value::from)),
        ("host", route.host.clone().map(Value::from)),
        ("hosts", route.hosts.clone().map(Value::from)),
        ("remote_addr", route.remote_addr.clone().map(Value::from)),
        ("remote_addrs", route.remote_addrs.clone().map(Value::from)),
        ("methods", route.methods.clone().map(Value::from)),
        ("priority", Some(route.priority.into())),
        ("vars", route.vars.clone().map(Value::from)),
        ("status", Some(route.status.into())),
        ("enable_websocket", route.enable_websocket.map(Value::from)),
        ("timeout", route.timeout.map(time_outs)),
        ("plugins", Some(plugins.into())),
        ("plugin_config_id", id(route.plugin_config_id.as_ref())),
        ("service_id", id(route.service_id.as_ref())),
        ("upstream_id", id(route.upstream_id.as_ref())),
    ];
    present(fields)
}

fn of_service(item: &Item<Service>) -> Map<String, Value> {
    let service = &item.value;
    let fields = [
        ("id", Some(item.id.clone().into())),
        ("name", service.name.clone().map(Value::from)),
        ("desc", service.desc.clone().map(Value::from)),
        ("labels", service.labels.clone()),
        ("hosts", service.hosts.clone().map(Value::from)),
        ("plugins", Some(service.plugins.clone().into())),
        ("upstream_id", id(service.upstream_id.as_ref())),
        ("enable_websocket", service.enable_websocket.map(Value::from)),
    ];
    present(fields)
}

fn id(id: Option<&crate::document::Id>) -> Option<Value> {
    id.map(|id| id.0.as_str().into())
}

fn present<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    let present = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    present.collect()
}

fn hidden(document: Map<String, Value>) -> Value {
    let mut document = Value::from(document);
    hide_secrets(Kind::Route, &mut document);
    document
}
