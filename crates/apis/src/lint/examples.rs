//! Rules about examples and defaults: whether their schemas would refuse them.

use super::check_schema::SchemaChecker;
use super::locations::of_parameter;
use super::values::walk;
use super::{Context, Rule, rule};
use crate::finding::Level::Error;
use crate::openapi::Format;
use serde_json::Value;
use weir_model::DocPath;

pub(super) const RULES: [Rule; 4] = [
    rule("oas3-valid-media-example", Error, media_examples_3),
    rule("oas2-valid-media-example", Error, media_examples_2),
    rule("oas3-valid-schema-example", Error, schema_examples_3),
    rule("oas2-valid-schema-example", Error, schema_examples_2),
];

fn refused(fault: &str) -> String {
    format!("The example is refused by its schema: {fault}.")
}

/// Examples next to the schemas of bodies, responses and parameters.
fn media_examples_3(context: &mut Context<'_>) {
    let description = context.description;
    if description.format == Format::V2 {
        return;
    }
    let checker = SchemaChecker::new(&description.schemas);
    for operation in &description.operations {
        let mut holders = vec![(
            operation.value.get("requestBody"),
            operation.place.field("requestBody"),
        )];
        let responses = operation.value.get("responses").and_then(Value::as_object);
        for (code, response) in responses.into_iter().flatten() {
            let place = operation.place.field("responses").field(code.as_str());
            holders.push((Some(response), place));
        }
        for (holder, place) in holders {
            let content = holder.and_then(|it| it.get("content")).and_then(Value::as_object);
            for (kind, media) in content.into_iter().flatten() {
                let place = place.field("content").field(kind.as_str());
                beside(context, &checker, media, &|| place.clone());
            }
        }
        let parameters = operation.value.get("parameters").and_then(Value::as_array);
        for parameter in parameters.into_iter().flatten() {
            beside(context, &checker, parameter, &|| {
                of_parameter(description, operation, parameter)
            });
        }
    }
}

/// The example, or the examples, next to a schema.
fn beside(
    context: &mut Context<'_>,
    checker: &SchemaChecker<'_>,
    holder: &Value,
    place: &dyn Fn() -> DocPath,
) {
    let Some(schema) = holder.get("schema").filter(|_| !context.is_full()) else {
        return;
    };
    if let Some(example) = holder.get("example")
        && let Err(fault) = checker.check(schema, example)
    {
        context.add(place().field("example"), refused(&fault));
    }
    for (name, example) in holder
        .get("examples")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if let Some(value) = example.get("value")
            && let Err(fault) = checker.check(schema, value)
        {
            let place = place().field("examples").field(name.as_str()).field("value");
            context.add(place, refused(&fault));
        }
    }
}

/// Responses of 2.0: an example for each type.
fn media_examples_2(context: &mut Context<'_>) {
    let description = context.description;
    if description.format != Format::V2 {
        return;
    }
    let checker = SchemaChecker::new(&description.schemas);
    let mut found = Vec::new();
    walk(&description.source, &DocPath::root(), &mut |value, path| {
        let (Some(schema), Some(Value::Object(examples))) = (value.get("schema"), value.get("examples"))
        else {
            return;
        };
        for (kind, example) in examples {
            if let Err(fault) = checker.check(schema, example) {
                found.push((path.field("examples").field(kind.as_str()), fault));
            }
        }
    });
    found
        .into_iter()
        .for_each(|(place, fault)| context.add(place, refused(&fault)));
}

fn schema_examples_3(context: &mut Context<'_>) {
    let description = context.description;
    if description.format != Format::V2 {
        in_schemas(context, &SchemaChecker::new(&description.schemas));
    }
}

fn schema_examples_2(context: &mut Context<'_>) {
    let description = context.description;
    if description.format == Format::V2 {
        in_schemas(context, &SchemaChecker::new(&description.schemas));
    }
}

/// `example` and `default` inside of schemas. A map with one of the words of schemas is taken for one.
fn in_schemas(context: &mut Context<'_>, checker: &SchemaChecker<'_>) {
    const WORDS: [&str; 6] = ["type", "format", "enum", "$ref", "properties", "items"];
    let mut found = Vec::new();
    walk(
        &context.description.source,
        &DocPath::root(),
        &mut |value, path| {
            // A map of properties may have some of these names.
            let is_map = path.0.last().is_some_and(
                |it| matches!(it, weir_model::diagnostic::PathStep::Field(name) if name == "properties"),
            );
            if is_map || !WORDS.iter().any(|word| value.get(*word).is_some()) {
                return;
            }
            for word in ["example", "x-example", "default"] {
                let Some(example) = value.get(word) else { continue };
                let is_null = example.is_null() && value.get("nullable") == Some(&Value::Bool(true));
                if let (false, Err(fault)) = (is_null, checker.check(value, example)) {
                    found.push((path.field(word), fault));
                }
            }
        },
    );
    found
        .into_iter()
        .for_each(|(place, fault)| context.add(place, refused(&fault)));
}
