//! What an agent is sent of a call: the document `input` in both of its forms.

use super::{BodyForm, Config, InputForm};
use crate::shared_fetch::{KeyParts, SharedKey};
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{Exchange, Identity, RouteInfo};
use weir_plugins_shared::{ROUTE_DOCUMENT_LABEL, SERVICE_DOCUMENT_LABEL};

/// The highest number of a group that is told by its number.
const MAX_GROUPS: usize = 1_000;

/// The document for a call.
pub(super) fn of(config: &Config, exchange: &mut Exchange) -> Value {
    let seconds = exchange.unix_ms() / 1_000;
    let mut input = match config.input {
        InputForm::Flat => flat(exchange, seconds),
        InputForm::Nested => nested(exchange),
    };
    let request = match config.input {
        InputForm::Flat => &mut input["request"],
        InputForm::Nested => &mut input["request"]["http"],
    };
    if config.captures {
        request["uri_captures"] = captures(exchange);
    }
    let body = exchange.request.body.as_deref();
    match config.body {
        BodyForm::None => {}
        BodyForm::Text => request["body"] = body.map(text).into(),
        BodyForm::Json => {
            request["parsed_body"] = body
                .and_then(|body| serde_json::from_slice(body).ok())
                .unwrap_or_default();
        }
    }
    if let Some(route) = exchange.route.as_deref() {
        let labelled = |label: &str| serde_json::from_str(route.labels.get(label)?).ok();
        if config.route {
            let document = config.route_document.clone();
            let document = document.or_else(|| labelled(ROUTE_DOCUMENT_LABEL));
            input["route"] = document.unwrap_or_else(|| named(route));
        }
        if config.service {
            let document = config.service_document.clone();
            let document = document.or_else(|| labelled(SERVICE_DOCUMENT_LABEL));
            let name = || (!route.service.is_empty()).then(|| json!({"name": route.service}));
            if let Some(document) = document.or_else(name) {
                input["service"] = document;
            }
        }
    }
    if let (true, Some(identity)) = (config.consumer, &exchange.identity) {
        input["consumer"] = caller(config.input, identity);
    }
    json!({ "input": input })
}

/// What groups have taken: all by their numbers, and those that have one by their name. One that took no part is `false`.
fn captures(exchange: &Exchange) -> Value {
    let (mut named, mut unnamed) = (Map::new(), Vec::new());
    for (name, value) in &exchange.captures {
        match name.parse::<usize>() {
            Ok(number) if (1..=MAX_GROUPS).contains(&number) => {
                unnamed.resize(unnamed.len().max(number), Value::Bool(false));
                unnamed[number - 1] = text(value).into();
            }
            _ => {
                named.insert(name.to_string(), text(value).into());
            }
        }
    }
    json!({"named": named, "unnamed": unnamed})
}

/// Who calls, in the words of the form's original: APISIX's or Kong's. What the consumer has not is left out.
fn caller(form: InputForm, identity: &Identity) -> Value {
    let consumer = &identity.consumer;
    let text = |it: &Option<String>| it.as_deref().map(Value::from);
    let mut details: Map<String, Value> = consumer.details.clone().into_iter().collect();
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            details.insert(name.to_owned(), value);
        }
    };
    add("id", Some(consumer.id.as_str().into()));
    add("username", text(&consumer.username));
    add("custom_id", text(&consumer.custom_id));
    add("group", text(&consumer.group));
    if form == InputForm::Flat {
        let labels = consumer.labels.iter();
        let labels: Map<String, Value> = labels
            .map(|(name, value)| (name.clone(), value.as_str().into()))
            .collect();
        add("consumer_name", Some(consumer.id.as_str().into()));
        add("group_id", text(&consumer.group));
        add("labels", (!labels.is_empty()).then(|| labels.into()));
        add(
            "credential_id",
            identity.credential_id.as_deref().map(Value::from),
        );
    }
    details.into()
}

/// A route by its name and labels.
fn named(route: &RouteInfo) -> Value {
    let labels = route
        .labels
        .iter()
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    let mut labels_map: Map<String, Value> = labels.collect();
    labels_map.insert("name".to_owned(), route.name.as_str().into());
    labels_map.into()
}

/// All that the document for a call depends on, but for the caller's port and the time: a key that shows none of it.
pub(super) fn key(config: &Config, instance: &KeyParts, exchange: &Exchange) -> SharedKey {
    let mut key = instance.clone();
    let request = &exchange.request;
    let port = request.host_port.unwrap_or(request.local.port());
    key.add(&port.to_le_bytes());
    key.add(&[u8::from(request.is_tls)]);
    for part in [&request.method, &request.host, &request.path] {
        key.add(part);
    }
    key.add_if_there(request.query.as_deref());
    for address in [request.client, request.local.ip()] {
        match address.to_canonical() {
            IpAddr::V4(address) => key.add(&address.octets()),
            IpAddr::V6(address) => key.add(&address.octets()),
        }
    }
    key.add(&request.local.port().to_le_bytes());
    if config.body != BodyForm::None {
        key.add_if_there(request.body.as_deref());
    }
    if config.route || config.service {
        let route = exchange.route.as_deref();
        key.add_if_there(route.map(|route| route.name.as_bytes()));
        key.add_if_there(route.map(|route| route.service.as_bytes()));
        for label in [ROUTE_DOCUMENT_LABEL, SERVICE_DOCUMENT_LABEL] {
            let document = route.and_then(|route| route.labels.get(label));
            key.add_if_there(document.map(String::as_bytes));
        }
    }
    if config.captures {
        for (name, value) in &exchange.captures {
            key.add(name.as_bytes());
            key.add(value);
        }
    }
    if config.consumer {
        let identity = exchange.identity.as_ref();
        let consumer = identity.map(|it| caller(config.input, it).to_string());
        key.add_if_there(consumer.as_deref().map(str::as_bytes));
    }
    for header in request.headers.iter() {
        key.add(header.name);
        key.add(header.value);
    }
    key.finish(&[])
}

fn flat(exchange: &Exchange, seconds: u64) -> Value {
    let request = &exchange.request;
    json!({
        "type": "http",
        "request": {
            "scheme": request.scheme(),
            "method": text(&request.method),
            "host": text(&request.host),
            "port": request.host_port.unwrap_or(request.local.port()),
            "path": text(&request.path),
            "headers": headers(exchange),
            "query": query(exchange),
        },
        "var": {
            "server_addr": request.local.ip().to_canonical().to_string(),
            "server_port": request.local.port().to_string(),
            "remote_addr": request.client.to_canonical().to_string(),
            "remote_port": request.client_port.unwrap_or(request.peer.port()).to_string(),
            "timestamp": seconds,
        },
    })
}

fn nested(exchange: &Exchange) -> Value {
    let request = &exchange.request;
    json!({
        "request": {
            "http": {
                "scheme": request.scheme(),
                "method": text(&request.method),
                "host": text(&request.host),
                "port": request.host_port.unwrap_or(request.local.port()),
                "path": text(&request.path),
                "headers": headers(exchange),
                "querystring": query(exchange),
                "tls": if request.is_tls { json!({}) } else { Value::Null },
            },
        },
        "client_ip": request.client.to_canonical().to_string(),
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Values by name in lower case; several values are a list.
fn headers(exchange: &Exchange) -> Map<String, Value> {
    let mut found = Map::new();
    for header in exchange.request.headers.iter() {
        add(
            &mut found,
            text(header.name).to_ascii_lowercase(),
            text(header.value).into(),
        );
    }
    found
}

/// Values by name; several values are a list. An argument without `=` is `true`.
fn query(exchange: &Exchange) -> Map<String, Value> {
    let mut found = Map::new();
    for (name, value) in query_pairs(exchange.request.query.as_deref().unwrap_or_default()) {
        let value = match value {
            Some(value) => text(&decode_form(value)).into(),
            None => Value::Bool(true),
        };
        if !name.is_empty() {
            add(&mut found, text(&decode_form(name)), value);
        }
    }
    found
}

fn add(found: &mut Map<String, Value>, name: String, value: Value) {
    match found.get_mut(&name) {
        None => {
            found.insert(name, value);
        }
        Some(Value::Array(values)) => values.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
}
