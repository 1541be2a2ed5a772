//! Rules of Spectral's set for what only some versions of OpenAPI have: hosts and definitions of 2.0, callbacks and webhooks,
//! variables of servers.

use super::operations::text;
use super::values::{at, walk};
use super::{Context, Rule, optional, rule};
use crate::finding::Level::{Error, Warn};
use crate::openapi::Format;
use serde_json::{Map, Value};
use std::collections::HashSet;
use weir_model::DocPath;

pub(super) const RULES: [Rule; 14] = [
    optional("oas2-host-not-example", Warn, host_example),
    rule("oas2-host-trailing-slash", Warn, host_slash),
    rule("oas2-operation-formData-consume-check", Warn, form_data),
    rule("oas2-discriminator", Error, discriminator),
    rule("oas2-anyOf", Warn, any_of),
    rule("oas2-oneOf", Warn, one_of),
    rule("oas2-unused-definition", Warn, unused_definition),
    rule("oas3-examples-value-or-externalValue", Warn, example_values),
    rule("oas3-server-variables", Error, server_variables),
    rule("oas3-links-parameters-expression", Error, link_expressions),
    rule("oas3-callbacks-in-callbacks", Warn, nested_callbacks),
    rule("oas3_1-servers-in-webhook", Warn, webhook_servers),
    rule("oas3_1-callbacks-in-webhook", Warn, webhook_callbacks),
    rule("oas3_2-no-deprecated-xml-attribute", Warn, xml_attribute),
];

fn is_2(context: &Context<'_>) -> bool {
    context.description.format == Format::V2
}

fn map<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    value.get(field).and_then(Value::as_object).into_iter().flatten()
}

fn host(context: &mut Context<'_>, is_wrong: fn(&str) -> bool, message: &str) {
    let description = context.description;
    if is_2(context) && text(&description.source, "host").is_some_and(is_wrong) {
        context.add(at(&["host"]), message);
    }
}

fn host_example(context: &mut Context<'_>) {
    host(
        context,
        |it| it.contains("example.com"),
        "Host URL must not point at example.com.",
    );
}

fn host_slash(context: &mut Context<'_>) {
    host(
        context,
        |it| it.ends_with('/'),
        "Server URL must not have trailing slash.",
    );
}

/// The operations of 2.0 as they are written, with their places.
fn written_operations<'d>(context: &Context<'d>) -> Vec<(&'d Value, DocPath)> {
    let mut found = Vec::new();
    for (path, item) in map(&context.description.source, "paths") {
        for (method, operation) in item.as_object().into_iter().flatten() {
            if operation.get("responses").is_some() || operation.get("operationId").is_some() {
                found.push((
                    operation,
                    at(&["paths"]).field(path.as_str()).field(method.as_str()),
                ));
            }
        }
    }
    found
}

fn form_data(context: &mut Context<'_>) {
    if !is_2(context) {
        return;
    }
    let source = &context.description.source;
    for (operation, place) in written_operations(context) {
        let parameters = operation.get("parameters").and_then(Value::as_array);
        let mut parameters = parameters.into_iter().flatten();
        let has_form = parameters.any(|it| text(it, "in") == Some("formData"));
        let consumes = operation.get("consumes").or_else(|| source.get("consumes"));
        let mut consumes = consumes.and_then(Value::as_array).into_iter().flatten();
        let takes_forms = consumes.any(|it| {
            matches!(
                it.as_str(),
                Some("application/x-www-form-urlencoded" | "multipart/form-data")
            )
        });
        if has_form && !takes_forms {
            context.add(place.field("consumes"), "Operations with \"in: formData\" parameter must include \"application/x-www-form-urlencoded\" or \"multipart/form-data\" in their \"consumes\" property.");
        }
    }
}

fn discriminator(context: &mut Context<'_>) {
    if !is_2(context) {
        return;
    }
    let description = context.description;
    for (name, schema) in map(&description.source, "definitions") {
        let Some(field) = text(schema, "discriminator") else {
            continue;
        };
        let place = at(&["definitions"]).field(name.as_str()).field("discriminator");
        let required = schema.get("required").and_then(Value::as_array);
        if !required.into_iter().flatten().any(|it| it == field) {
            context.add(
                place.clone(),
                "The discriminator property must be in the required property list.",
            );
        }
        if !map(schema, "properties").any(|(it, _)| it == field) {
            context.add(
                place,
                "The discriminator property must be defined in this schema.",
            );
        }
    }
}

fn keyword_of_3(context: &mut Context<'_>, word: &str) {
    if !is_2(context) {
        return;
    }
    let mut places = Vec::new();
    walk(
        &context.description.source,
        &DocPath::root(),
        &mut |value, path| {
            if value.get(word).is_some_and(Value::is_array) {
                places.push(path.field(word));
            }
        },
    );
    let message = format!("\"{word}\" keyword must not be used in OpenAPI v2 document.");
    places.into_iter().for_each(|it| context.add(it, message.clone()));
}

fn any_of(context: &mut Context<'_>) {
    keyword_of_3(context, "anyOf");
}

fn one_of(context: &mut Context<'_>) {
    keyword_of_3(context, "oneOf");
}

fn unused_definition(context: &mut Context<'_>) {
    if !is_2(context) {
        return;
    }
    let description = context.description;
    let mut used = HashSet::new();
    walk(&description.source, &DocPath::root(), &mut |value, _| {
        let target = text(value, "$ref").and_then(|it| it.strip_prefix("#/definitions/"));
        used.extend(target.and_then(|it| it.split('/').next()));
    });
    for (name, _) in map(&description.source, "definitions") {
        if !used.contains(name.as_str()) {
            context.add(
                at(&["definitions"]).field(name.as_str()),
                "Potentially unused definition has been detected.",
            );
        }
    }
}

/// Each map of examples that stands next to a schema, or among the components.
fn example_values(context: &mut Context<'_>) {
    if is_2(context) {
        return;
    }
    let mut places = Vec::new();
    let has_one = |example: &Map<String, Value>| {
        example.contains_key("$ref") || example.contains_key("value") != example.contains_key("externalValue")
    };
    walk(
        &context.description.source,
        &DocPath::root(),
        &mut |value, path| {
            let is_holder = value.get("schema").is_some() || value.get("content").is_some();
            if !is_holder && *path != at(&["components"]) {
                return;
            }
            for (name, example) in map(value, "examples") {
                // A schema's own are a list, and hold values.
                if example.as_object().is_some_and(|it| !has_one(it)) {
                    places.push(path.field("examples").field(name.as_str()));
                }
            }
        },
    );
    let message = "Examples must have either \"value\" or \"externalValue\" field.";
    places.into_iter().for_each(|it| context.add(it, message));
}

fn server_variables(context: &mut Context<'_>) {
    if is_2(context) {
        return;
    }
    let mut found = Vec::new();
    walk(
        &context.description.source,
        &DocPath::root(),
        &mut |value, path| {
            for (index, server) in value
                .get("servers")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .enumerate()
            {
                let place = path.field("servers").index(index);
                found.extend(faults_of_server(server).into_iter().map(|(field, message)| {
                    let place =
                        field.map_or_else(|| place.field("url"), |it| place.field("variables").field(it));
                    (place, message)
                }));
            }
        },
    );
    found
        .into_iter()
        .for_each(|(place, message)| context.add(place, message));
}

/// The faults of a server's variables: each with the variable's name, or none if it is the URL.
fn faults_of_server(server: &Value) -> Vec<(Option<String>, String)> {
    let Some(url) = text(server, "url") else {
        return Vec::new();
    };
    let named: HashSet<&str> = super::operations::parameters_of(url).into_iter().collect();
    let mut faults = Vec::new();
    for (name, variable) in map(server, "variables") {
        let mut add = |message: String| faults.push((Some(name.clone()), message));
        if !named.contains(name.as_str()) {
            add(format!(
                "Server's \"variables\" object has unused defined \"{name}\" url variable."
            ));
        }
        let values = variable.get("enum").and_then(Value::as_array);
        match variable.get("default") {
            None => add(format!("Server Variable \"{name}\" has a missing default.")),
            Some(default) if values.is_some_and(|it| !it.contains(default)) => add(format!(
                "Server Variable \"{name}\" has a default not listed in the enum."
            )),
            Some(_) => {}
        }
    }
    let known: HashSet<&str> = map(server, "variables").map(|(name, _)| name.as_str()).collect();
    let mut missing: Vec<&str> = named.difference(&known).copied().collect();
    missing.sort_unstable();
    if !missing.is_empty() {
        let message = format!(
            "Not all server's variables are described with \"variables\" object. Missed: {}.",
            missing.join(", ")
        );
        faults.push((None, message));
    }
    faults
}

/// Parameters of links that begin with `$` are expressions.
fn link_expressions(context: &mut Context<'_>) {
    let description = context.description;
    let is_good = |text: &str| {
        let rest = text
            .strip_prefix("$request.")
            .or_else(|| text.strip_prefix("$response."));
        let is_part = |rest: &str| {
            let parts = ["header.", "query.", "path."];
            rest == "body" || rest.starts_with("body#") || parts.iter().any(|it| rest.starts_with(it))
        };
        matches!(text, "$url" | "$method" | "$statusCode") || rest.is_some_and(is_part)
    };
    for operation in &description.operations {
        for (code, response) in map(&operation.value, "responses") {
            for (name, link) in map(response, "links") {
                for (parameter, value) in map(link, "parameters") {
                    let text = value.as_str().unwrap_or_default();
                    if text.starts_with('$') && !is_good(text) {
                        let place = operation
                            .place
                            .field("responses")
                            .field(code.as_str())
                            .field("links");
                        let place = place
                            .field(name.as_str())
                            .field("parameters")
                            .field(parameter.as_str());
                        context.add(place, format!("'{text}' is not a runtime expression."));
                    }
                }
            }
        }
    }
}

fn nested_callbacks(context: &mut Context<'_>) {
    let description = context.description;
    for operation in &description.operations {
        for (name, callback) in map(&operation.value, "callbacks") {
            for (expression, item) in callback.as_object().into_iter().flatten() {
                for (method, inner) in item.as_object().into_iter().flatten() {
                    if inner.get("callbacks").is_some() {
                        let place = operation.place.field("callbacks").field(name.as_str());
                        let place = place.field(expression.as_str()).field(method.as_str());
                        context.add(
                            place.field("callbacks"),
                            "Callbacks should not be defined within a callback",
                        );
                    }
                }
            }
        }
    }
}

fn in_webhooks(context: &mut Context<'_>, field: &str, message: &str) {
    let description = context.description;
    if description.format < Format::V3_1 {
        return;
    }
    for (name, item) in map(&description.source, "webhooks") {
        for (method, operation) in item.as_object().into_iter().flatten() {
            if operation.get(field).is_some() {
                let place = at(&["webhooks"]).field(name.as_str()).field(method.as_str());
                context.add(place.field(field), message);
            }
        }
    }
}

fn webhook_servers(context: &mut Context<'_>) {
    in_webhooks(context, "servers", "Servers should not be defined in a webhook.");
}

fn webhook_callbacks(context: &mut Context<'_>) {
    in_webhooks(
        context,
        "callbacks",
        "Callbacks should not be defined in a webhook.",
    );
}

fn xml_attribute(context: &mut Context<'_>) {
    if context.description.format != Format::V3_2 {
        return;
    }
    let mut places = Vec::new();
    walk(
        &context.description.source,
        &DocPath::root(),
        &mut |value, path| {
            if value.pointer("/xml/attribute") == Some(&Value::Bool(true)) {
                places.push(path.field("xml").field("attribute"));
            }
        },
    );
    let message = "\"xml.attribute\" is deprecated in OAS 3.2; use \"xml.nodeType: attribute\" instead.";
    places.into_iter().for_each(|it| context.add(it, message));
}
