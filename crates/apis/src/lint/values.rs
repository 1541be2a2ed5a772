//! Rules about the document's head, its tags, its texts, schemas and examples.

use super::operations::text;
use super::{Context, Rule, check_schema, optional, rule};
use crate::finding::Level::{Error, Warn};
use crate::openapi::Format;
use serde_json::Value;
use std::collections::HashSet;
use weir_model::DocPath;

pub(super) const RULES: [Rule; 18] = [
    rule("info-contact", Warn, contact),
    rule("info-description", Warn, info_description),
    optional("info-license", Warn, license),
    optional("license-url", Warn, license_url),
    optional("contact-properties", Warn, contact_properties),
    optional("openapi-tags", Warn, some_tags),
    optional("openapi-tags-alphabetical", Warn, tags_in_order),
    rule("openapi-tags-uniqueness", Error, unique_tags),
    optional("tag-description", Warn, tag_description),
    rule("no-eval-in-markdown", Warn, eval_in_markdown),
    rule("no-script-tags-in-markdown", Warn, script_in_markdown),
    rule("no-$ref-siblings", Error, siblings),
    rule("duplicated-entry-in-enum", Warn, repeated_values),
    rule("typed-enum", Warn, typed_values),
    rule("array-items", Error, array_items),
    rule("oas3-server-trailing-slash", Warn, server_slash),
    optional("oas3-server-not-example.com", Warn, server_example),
    rule("oas3-unused-component", Warn, unused),
];

pub(super) fn at(fields: &[&str]) -> DocPath {
    fields
        .iter()
        .fold(DocPath::root(), |path, field| path.field(*field))
}

/// Calls `visit` for each value of the document with its place, but not inside of examples.
pub(super) fn walk<'v>(value: &'v Value, path: &DocPath, visit: &mut dyn FnMut(&'v Value, &DocPath)) {
    visit(value, path);
    match value {
        Value::Object(map) => {
            for (name, below) in map {
                let is_data = matches!(
                    name.as_str(),
                    "example" | "examples" | "default" | "const" | "value"
                );
                let is_walked = !is_data || has_schemas(below);
                if is_walked && (below.is_object() || below.is_array()) {
                    walk(below, &path.field(name.as_str()), visit);
                }
            }
        }
        Value::Array(items) => {
            for (index, below) in items.iter().enumerate() {
                if below.is_object() || below.is_array() {
                    walk(below, &path.index(index), visit);
                }
            }
        }
        _ => {}
    }
}

/// A property that is named `value` or `default` is a schema.
fn has_schemas(value: &Value) -> bool {
    value.get("type").is_some() || value.get("properties").is_some()
}

fn demand(context: &mut Context<'_>, parent: &[&str], field: &str, message: &str) {
    let pointer: String = parent.iter().map(|it| format!("/{it}")).collect();
    let holder = context.description.source.pointer(&pointer);
    let is_there = holder
        .and_then(|it| it.get(field))
        .is_some_and(|value| match value {
            Value::String(text) => !text.trim().is_empty(),
            Value::Null => false,
            _ => true,
        });
    if !is_there {
        context.add(at(parent).field(field), message);
    }
}

fn contact(context: &mut Context<'_>) {
    demand(
        context,
        &["info"],
        "contact",
        "Info object must have \"contact\" object.",
    );
}

fn info_description(context: &mut Context<'_>) {
    demand(
        context,
        &["info"],
        "description",
        "Info \"description\" must be present and non-empty string.",
    );
}

fn license(context: &mut Context<'_>) {
    demand(
        context,
        &["info"],
        "license",
        "Info object must have \"license\" object.",
    );
}

fn license_url(context: &mut Context<'_>) {
    demand(
        context,
        &["info", "license"],
        "url",
        "License object must include \"url\".",
    );
}

fn contact_properties(context: &mut Context<'_>) {
    for field in ["name", "url", "email"] {
        let message = format!("Contact object must have \"{field}\".");
        demand(context, &["info", "contact"], field, &message);
    }
}

fn some_tags(context: &mut Context<'_>) {
    if context.description.tags.is_empty() {
        context.add(
            at(&["tags"]),
            "OpenAPI object must have non-empty \"tags\" array.",
        );
    }
}

fn tags_in_order(context: &mut Context<'_>) {
    let names: Vec<String> = context
        .description
        .tags
        .iter()
        .map(|tag| text(tag, "name").unwrap_or_default().to_lowercase())
        .collect();
    if let Some(before) = names.windows(2).position(|pair| pair[0] > pair[1]) {
        let place = at(&["tags"]).index(before + 1).field("name");
        context.add(place, "OpenAPI object must have alphabetical \"tags\".");
    }
}

fn unique_tags(context: &mut Context<'_>) {
    let mut seen = HashSet::new();
    let description = context.description;
    for (index, tag) in description.tags.iter().enumerate() {
        if let Some(name) = text(tag, "name")
            && !seen.insert(name)
        {
            let place = at(&["tags"]).index(index).field("name");
            context.add(
                place,
                format!("\"tags\" object contains duplicate tag name \"{name}\"."),
            );
        }
    }
}

fn tag_description(context: &mut Context<'_>) {
    let description = context.description;
    for (index, tag) in description.tags.iter().enumerate() {
        if text(tag, "description").is_none() {
            context.add(
                at(&["tags"]).index(index).field("description"),
                "Tag object must have \"description\".",
            );
        }
    }
}

fn markdown(context: &mut Context<'_>, word: &str, message: &str) {
    let description = context.description;
    let mut places = Vec::new();
    walk(&description.source, &DocPath::root(), &mut |value, path| {
        for field in ["description", "title"] {
            if text(value, field).is_some_and(|it| it.to_lowercase().contains(word)) {
                places.push(path.field(field));
            }
        }
    });
    places.into_iter().for_each(|place| context.add(place, message));
}

fn eval_in_markdown(context: &mut Context<'_>) {
    markdown(context, "eval(", "Markdown descriptions must not have \"eval(\".");
}

fn script_in_markdown(context: &mut Context<'_>) {
    markdown(
        context,
        "<script",
        "Markdown descriptions must not have \"<script>\" tags.",
    );
}

fn siblings(context: &mut Context<'_>) {
    let description = context.description;
    if description.format > Format::V3_0 {
        return;
    }
    let mut places = Vec::new();
    walk(&description.source, &DocPath::root(), &mut |value, path| {
        let Some(map) = value
            .as_object()
            .filter(|map| map.get("$ref").is_some_and(Value::is_string))
        else {
            return;
        };
        // A property may be named so.
        if map.len() > 1
            && !matches!(path.0.last(), Some(weir_model::diagnostic::PathStep::Field(it)) if it == "properties")
        {
            let others = map
                .keys()
                .filter(|name| *name != "$ref" && !name.starts_with("x-"));
            places.extend(others.map(|name| path.field(name.as_str())));
        }
    });
    let message = "$ref must not be placed next to any other properties.";
    places.into_iter().for_each(|place| context.add(place, message));
}

fn each_schema_with_values(
    context: &mut Context<'_>,
    fault: impl Fn(&Value, &[Value]) -> Option<(usize, String)>,
) {
    let description = context.description;
    let mut found = Vec::new();
    walk(&description.source, &DocPath::root(), &mut |value, path| {
        if let Some(Value::Array(values)) = value.get("enum")
            && let Some((index, message)) = fault(value, values)
        {
            found.push((path.field("enum").index(index), message));
        }
    });
    found
        .into_iter()
        .for_each(|(place, message)| context.add(place, message));
}

fn repeated_values(context: &mut Context<'_>) {
    each_schema_with_values(context, |_, values| {
        let mut seen = HashSet::new();
        let index = values.iter().position(|value| !seen.insert(value.to_string()))?;
        Some((
            index,
            format!(
                "\"enum\" property must not have duplicate items: {}.",
                values[index]
            ),
        ))
    });
}

fn typed_values(context: &mut Context<'_>) {
    each_schema_with_values(context, |schema, values| {
        let kind = schema.get("type")?;
        let is_null_allowed = schema.get("nullable").is_some_and(|it| *it == true);
        let is_wrong =
            |value: &Value| !(check_schema::is_of_type(kind, value) || is_null_allowed && value.is_null());
        let index = values.iter().position(is_wrong)?;
        Some((
            index,
            format!(
                "Enum value {} must be \"{}\".",
                values[index],
                kind.as_str().unwrap_or("of its types")
            ),
        ))
    });
}

fn array_items(context: &mut Context<'_>) {
    let description = context.description;
    let mut places = Vec::new();
    walk(&description.source, &DocPath::root(), &mut |value, path| {
        let is_array = value.get("type").is_some_and(|it| it == "array");
        let says = ["items", "prefixItems", "contains"]
            .iter()
            .any(|word| value.get(*word).is_some());
        if is_array && !says {
            places.push(path.clone());
        }
    });
    let message = "Schemas with \"type: array\", require a sibling \"items\" field.";
    places.into_iter().for_each(|place| context.add(place, message));
}

fn each_server(context: &mut Context<'_>, is_wrong: fn(&str) -> bool, message: &str) {
    if context.description.format == Format::V2 {
        return;
    }
    let description = context.description;
    for (index, server) in description.servers.iter().enumerate() {
        if text(server, "url").is_some_and(is_wrong) {
            context.add(at(&["servers"]).index(index).field("url"), message);
        }
    }
}

fn server_slash(context: &mut Context<'_>) {
    each_server(
        context,
        |url| url.len() > 1 && url.ends_with('/'),
        "Server URL must not have trailing slash.",
    );
}

fn server_example(context: &mut Context<'_>) {
    each_server(
        context,
        |url| url.contains("example.com"),
        "Server URL must not point at example.com.",
    );
}

fn unused(context: &mut Context<'_>) {
    let description = context.description;
    if description.format == Format::V2 {
        return;
    }
    let mut used = HashSet::new();
    walk(&description.source, &DocPath::root(), &mut |value, _| {
        if let Some(target) = text(value, "$ref") {
            used.insert(target);
        }
        for target in value
            .pointer("/discriminator/mapping")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            used.extend(target.1.as_str());
        }
    });
    let kinds = [
        "schemas",
        "responses",
        "parameters",
        "examples",
        "requestBodies",
        "headers",
        "links",
        "callbacks",
        "pathItems",
    ];
    for kind in kinds {
        let components = description
            .source
            .pointer(&format!("/components/{kind}"))
            .and_then(Value::as_object);
        for name in components.into_iter().flatten().map(|(name, _)| name) {
            if !used.contains(format!("#/components/{kind}/{name}").as_str()) {
                context.add(
                    at(&["components", kind]).field(name.as_str()),
                    "Potentially unused component has been detected.",
                );
            }
        }
    }
}
