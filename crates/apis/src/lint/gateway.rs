//! Rules that no linter of documents has: what a gateway would make of the document.

use super::operations::{parameters_of, text};
use super::{Context, Rule, rule};
use crate::finding::Level::{Error, Hint, Warn};
use crate::openapi::{Format, Operation};
use crate::path_pattern;
use crate::render::is_served;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use weir_model::DocPath;

pub(super) const RULES: [Rule; 7] = [
    rule("weir-operation-shadowed", Error, shadowed),
    rule("weir-servers-base-path", Warn, base_path),
    rule("weir-path-parameter", Error, path_parameter),
    rule("weir-path-empty-segment", Error, empty_segment),
    rule("weir-method-not-served", Warn, method_not_served),
    rule("weir-security-scheme", Hint, unused_scheme),
    rule("weir-response-without-schema", Hint, response_without_schema),
];

/// Operations compared with each other at most: a document with more is not searched for shadows.
const MAX_COMPARED: usize = 5_000;

/// Two operations that a gateway cannot distinguish: the same method, and each path takes the other's calls. One whose
/// path is more specific wins against one with parameters, so those are no shadows.
fn shadowed(context: &mut Context<'_>) {
    let description = context.description;
    if description.operations.len() > MAX_COMPARED {
        return;
    }
    let mut known: HashMap<(&str, String), &Operation> = HashMap::new();
    for operation in &description.operations {
        let key = (operation.method.as_str(), path_pattern::shape(&operation.path));
        if let Some(first) = known.get(&key) {
            let message = format!(
                "{} {} never gets a call: {} takes the same paths.",
                operation.method, operation.path, first.path
            );
            context.add(operation.place.clone(), message);
        } else {
            known.insert(key, operation);
        }
    }
}

fn base_path(context: &mut Context<'_>) {
    let Some(base) = context.base_path else { return };
    let description = context.description;
    for (index, server) in description.servers.iter().enumerate() {
        let Some(url) = text(server, "url") else { continue };
        let path = match url.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("", |at| &rest[at..]),
            None => url,
        };
        if path.trim_end_matches('/') != base.trim_end_matches('/') {
            let message = format!(
                "The server's path '{path}' is not the base path '{base}' that the API is published under."
            );
            let place = match description.format {
                // Its servers are made of host, base path and schemes.
                Format::V2 => DocPath::root().field("basePath"),
                _ => DocPath::root().field("servers").index(index).field("url"),
            };
            context.add(place, message);
        }
    }
}

/// A parameter has to end somewhere, and a path must not have the same one twice.
fn path_parameter(context: &mut Context<'_>) {
    let description = context.description;
    for operation in &description.operations {
        let path = &operation.path;
        let mut names = HashSet::new();
        let repeated = parameters_of(path).into_iter().find(|name| !names.insert(*name));
        let place = || DocPath::root().field("paths").field(path.as_str());
        if let Some(message) = path_pattern::fault(path) {
            context.add(place(), message);
        } else if let Some(name) = repeated {
            context.add(place(), format!("The path has the parameter '{name}' twice."));
        }
    }
}

/// Gateways compare calls with one slash in place of several, and without `.` and `..`.
fn empty_segment(context: &mut Context<'_>) {
    let description = context.description;
    for operation in &description.operations {
        let mut segments = operation.path.split('/');
        let reason = match operation.path.contains("//") {
            true => "several slashes of a call's path are read as one",
            false if segments.any(path_pattern::is_dots) => {
                "'.' and '..' of a call's path are resolved before"
            }
            false => continue,
        };
        let message = format!(
            "{} {} never gets a call: {reason}.",
            operation.method, operation.path
        );
        context.add(operation.place.clone(), message);
    }
}

/// Gateways refuse some methods before they look for a route.
fn method_not_served(context: &mut Context<'_>) {
    let description = context.description;
    for operation in description.operations.iter().filter(|it| !is_served(&it.method)) {
        let message = format!(
            "The gateway answers {} itself, with an error: {} is published without this operation.",
            operation.method, operation.path
        );
        context.add(operation.place.clone(), message);
    }
}

fn unused_scheme(context: &mut Context<'_>) {
    let description = context.description;
    for name in description.security_schemes.keys() {
        let uses = |security: Option<&Value>| {
            let all = security.and_then(Value::as_array).into_iter().flatten();
            all.into_iter().any(|it| it.get(name).is_some())
        };
        let is_used = uses(description.security.as_ref())
            || description
                .operations
                .iter()
                .any(|it| uses(it.value.get("security")));
        if !is_used {
            let place = match description.format {
                Format::V2 => DocPath::root().field("securityDefinitions"),
                _ => DocPath::root().field("components").field("securitySchemes"),
            };
            let place = place.field(name.as_str());
            context.add(place, format!("No operation uses the security scheme '{name}'."));
        }
    }
}

fn response_without_schema(context: &mut Context<'_>) {
    let description = context.description;
    for operation in &description.operations {
        for (code, response) in operation
            .value
            .get("responses")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            for (kind, media) in response
                .get("content")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                if kind.contains("json") && media.get("schema").is_none() {
                    let place = operation.place.field("responses").field(code.as_str());
                    context.add(
                        place.field("content").field(kind.as_str()),
                        format!("The response {code} as {kind} has no schema: it cannot be checked."),
                    );
                }
            }
        }
    }
}
