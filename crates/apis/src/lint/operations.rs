//! Rules about operations, paths, and their parameters, tags and responses.

use super::locations::of_parameter;
use super::{Context, Rule, optional, rule};
use crate::finding::Level::{Error, Warn};
use crate::openapi::{Format, Operation};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use weir_model::DocPath;

pub(super) const RULES: [Rule; 20] = [
    rule("operation-operationId", Warn, own_id),
    rule("operation-operationId-unique", Error, unique_id),
    rule("operation-operationId-valid-in-url", Warn, id_in_url),
    rule("operation-description", Warn, description),
    rule("operation-tags", Warn, tags),
    rule("operation-tag-defined", Warn, tag_defined),
    optional("operation-singular-tag", Warn, singular_tag),
    rule("operation-success-response", Warn, success),
    rule("operation-parameters", Warn, same_parameters),
    rule("path-params", Error, path_params),
    rule("path-declarations-must-exist", Warn, path_declarations),
    rule("path-keys-no-trailing-slash", Warn, trailing_slash),
    rule("path-not-include-query", Warn, query_in_path),
    rule("oas3-operation-security-defined", Warn, security_defined),
    rule("oas2-operation-security-defined", Warn, security_defined_2),
    optional("oas3-parameter-description", Warn, parameter_description),
    optional("oas2-parameter-description", Warn, parameter_description_2),
    rule("oas2-api-host", Warn, host_2),
    rule("oas2-api-schemes", Warn, schemes_2),
    rule("oas3-api-servers", Warn, servers),
];

/// The text of a field, if it has one that is not empty.
pub(super) fn text<'v>(value: &'v Value, field: &str) -> Option<&'v str> {
    value.get(field)?.as_str().filter(|it| !it.trim().is_empty())
}

fn list<'v>(value: &'v Value, field: &str) -> &'v [Value] {
    value
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn each(context: &mut Context<'_>, fault: impl Fn(&Operation) -> Option<(DocPath, String)>) {
    let description = context.description;
    for operation in &description.operations {
        if let Some((path, message)) = fault(operation) {
            context.add(path, message);
        }
    }
}

fn each_path(context: &mut Context<'_>, fault: impl Fn(&str) -> Option<String>) {
    let description = context.description;
    let paths = description.source.get("paths").and_then(Value::as_object);
    for path in paths.into_iter().flatten().map(|(path, _)| path) {
        if let Some(message) = fault(path) {
            context.add(DocPath::root().field("paths").field(path.as_str()), message);
        }
    }
}

fn own_id(context: &mut Context<'_>) {
    each(context, |it| {
        (!it.has_own_id).then(|| {
            (
                it.place.field("operationId"),
                "Operation must have \"operationId\".".to_owned(),
            )
        })
    });
}

fn unique_id(context: &mut Context<'_>) {
    let mut seen = HashSet::new();
    let description = context.description;
    for operation in description.operations.iter().filter(|it| it.has_own_id) {
        if let Some(id) = text(&operation.value, "operationId")
            && !seen.insert(id)
        {
            let message = format!("Every operation must have unique \"operationId\": '{id}' appears twice.");
            context.add(operation.place.field("operationId"), message);
        }
    }
}

fn id_in_url(context: &mut Context<'_>) {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=".contains(&byte);
    each(context, |it| {
        let id = text(&it.value, "operationId")?;
        (!id.bytes().all(is_safe)).then(|| {
            let message = "operationId must not contain characters that are invalid when used in URL.";
            (it.place.field("operationId"), message.to_owned())
        })
    });
}

fn description(context: &mut Context<'_>) {
    each(context, |it| {
        let message = "Operation \"description\" must be present and non-empty string.";
        text(&it.value, "description")
            .is_none()
            .then(|| (it.place.field("description"), message.to_owned()))
    });
}

fn tags(context: &mut Context<'_>) {
    each(context, |it| {
        let message = "Operation must have non-empty \"tags\" array.";
        it.tags
            .is_empty()
            .then(|| (it.place.field("tags"), message.to_owned()))
    });
}

fn tag_defined(context: &mut Context<'_>) {
    let description = context.description;
    let defined: HashSet<&str> = description
        .tags
        .iter()
        .filter_map(|tag| text(tag, "name"))
        .collect();
    for operation in &description.operations {
        for (index, tag) in operation.tags.iter().enumerate() {
            if !defined.contains(tag.as_str()) {
                let message = format!("Operation tags must be defined in global tags: '{tag}' is not.");
                context.add(operation.place.field("tags").index(index), message);
            }
        }
    }
}

fn singular_tag(context: &mut Context<'_>) {
    each(context, |it| {
        let message = "Operation must not have more than a single tag.";
        (it.tags.len() > 1).then(|| (it.place.field("tags"), message.to_owned()))
    });
}

fn success(context: &mut Context<'_>) {
    each(context, |it| {
        let responses = it.value.get("responses")?.as_object()?;
        let is_good = |code: &String| code.starts_with(['2', '3']) || code == "default";
        let message = "Operation must have at least a single \"2xx\" or \"3xx\" response.";
        (!responses.keys().any(is_good)).then(|| (it.place.field("responses"), message.to_owned()))
    });
}

fn same_parameters(context: &mut Context<'_>) {
    let description = context.description;
    for operation in &description.operations {
        let mut seen = HashSet::new();
        let written = source_of(context, &operation.place);
        for (index, parameter) in list(written, "parameters").iter().enumerate() {
            let (Some(name), Some(place)) = (text(parameter, "name"), text(parameter, "in")) else {
                continue;
            };
            if !seen.insert((name, place)) {
                let message = format!(
                    "A parameter in this operation already exposes the same combination of \"name\" and \"in\" values: '{name}' in {place}."
                );
                context.add(operation.place.field("parameters").index(index), message);
            }
        }
    }
}

/// The text at a place of the document as it is written.
fn source_of<'d>(context: &Context<'d>, place: &DocPath) -> &'d Value {
    use weir_model::diagnostic::PathStep;
    let mut value = &context.description.source;
    for step in &place.0 {
        value = match step {
            PathStep::Field(name) => value.get(name.as_str()),
            PathStep::Index(index) => value.get(*index),
        }
        .unwrap_or(&Value::Null);
    }
    value
}

/// The names between braces in a path.
pub(super) fn parameters_of(path: &str) -> Vec<&str> {
    names_and_shape(path).0
}

/// The names between braces in a path, and the path without them.
fn names_and_shape(path: &str) -> (Vec<&str>, String) {
    let (mut names, mut shape) = (Vec::new(), String::with_capacity(path.len()));
    let mut rest = path;
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((name, behind)) = behind.split_once('}') else {
            break;
        };
        names.push(name);
        shape.push_str(before);
        shape.push_str("{}");
        rest = behind;
    }
    shape.push_str(rest);
    (names, shape)
}

fn path_params(context: &mut Context<'_>) {
    let description = context.description;
    let mut shapes: HashMap<String, &str> = HashMap::new();
    let mut last = "";
    for operation in &description.operations {
        let (names, shape) = names_and_shape(&operation.path);
        let of_this_path: HashSet<&str> = names.iter().copied().collect();
        if operation.path != last {
            last = &operation.path;
            if let Some(other) = shapes.insert(shape, last).filter(|other| *other != last) {
                let message = format!("Paths \"{other}\" and \"{last}\" must not be equivalent.");
                context.add(DocPath::root().field("paths").field(last), message);
            }
        }
        let of_path = |it: &&Value| text(it, "in") == Some("path");
        let declared: Vec<&Value> = list(&operation.value, "parameters")
            .iter()
            .filter(of_path)
            .collect();
        let declared_names: HashSet<&str> = declared.iter().filter_map(|it| text(it, "name")).collect();
        for name in &names {
            if !declared_names.contains(name) {
                let message = format!(
                    "Operation must define parameter \"{{{name}}}\" as expected by path \"{}\".",
                    operation.path
                );
                context.add(operation.place.clone(), message);
            }
        }
        for parameter in declared {
            if context.is_full() {
                return;
            }
            let name = text(parameter, "name").unwrap_or_default();
            if !of_this_path.contains(name) {
                let message = format!(
                    "Parameter \"{name}\" must be used in path \"{}\".",
                    operation.path
                );
                let place = of_parameter(description, operation, parameter);
                context.add(place.field("name"), message);
            } else if parameter.get("required") != Some(&Value::Bool(true)) {
                let message = format!(
                    "Path parameter \"{name}\" must have \"required\" property that is set to \"true\"."
                );
                let place = of_parameter(description, operation, parameter);
                context.add(place.field("required"), message);
            }
        }
    }
}

fn path_declarations(context: &mut Context<'_>) {
    each_path(context, |path| {
        let is_empty = path.contains("{}");
        is_empty
            .then(|| "Path parameter declarations must not be empty, ex.\"/given/{}\" is invalid.".to_owned())
    });
}

fn trailing_slash(context: &mut Context<'_>) {
    each_path(context, |path| {
        (path.len() > 1 && path.ends_with('/')).then(|| "Path must not end with slash.".to_owned())
    });
}

fn query_in_path(context: &mut Context<'_>) {
    each_path(context, |path| {
        path.contains('?')
            .then(|| "Path must not include query string.".to_owned())
    });
}

fn check_security(context: &mut Context<'_>) {
    let description = context.description;
    let check = |context: &mut Context<'_>, security: &Value, place: DocPath| {
        for (index, requirement) in security.as_array().into_iter().flatten().enumerate() {
            for name in requirement
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name)
            {
                if !description.security_schemes.contains_key(name) {
                    let message = format!("\"{name}\" is not defined among the security schemes.");
                    context.add(place.index(index).field(name.as_str()), message);
                }
            }
        }
    };
    if let Some(security) = &description.security {
        check(context, security, DocPath::root().field("security"));
    }
    for operation in &description.operations {
        // One that is the document's has been looked at.
        let own = operation
            .value
            .get("security")
            .filter(|it| description.security.as_ref() != Some(it));
        if let Some(own) = own {
            check(context, own, operation.place.field("security"));
        }
    }
}

fn security_defined(context: &mut Context<'_>) {
    if context.description.format != Format::V2 {
        check_security(context);
    }
}

fn security_defined_2(context: &mut Context<'_>) {
    if context.description.format == Format::V2 {
        check_security(context);
    }
}

fn check_parameter_description(context: &mut Context<'_>) {
    let description = context.description;
    for operation in &description.operations {
        for parameter in list(&operation.value, "parameters") {
            if text(parameter, "description").is_none() && !context.is_full() {
                let name = text(parameter, "name").unwrap_or_default();
                let place = of_parameter(description, operation, parameter).field("description");
                context.add(place, format!("Parameter '{name}' should have \"description\"."));
            }
        }
    }
}

fn parameter_description(context: &mut Context<'_>) {
    if context.description.format != Format::V2 {
        check_parameter_description(context);
    }
}

fn parameter_description_2(context: &mut Context<'_>) {
    if context.description.format == Format::V2 {
        check_parameter_description(context);
    }
}

fn host_2(context: &mut Context<'_>) {
    if context.description.format == Format::V2 && text(&context.description.source, "host").is_none() {
        context.add(
            DocPath::root().field("host"),
            "OpenAPI \"host\" must be present and non-empty string.",
        );
    }
}

fn schemes_2(context: &mut Context<'_>) {
    if context.description.format == Format::V2 && list(&context.description.source, "schemes").is_empty() {
        context.add(
            DocPath::root().field("schemes"),
            "OpenAPI host \"schemes\" must be present and non-empty array.",
        );
    }
}

fn servers(context: &mut Context<'_>) {
    if context.description.format != Format::V2 && context.description.servers.is_empty() {
        context.add(
            DocPath::root().field("servers"),
            "OpenAPI \"servers\" must be present and non-empty array.",
        );
    }
}
