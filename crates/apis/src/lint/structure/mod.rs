//! The rules `oas2-schema` and `oas3-schema`: whether a document has the form that OpenAPI gives it. [`kinds`] says what
//! the tables are made of, the modules of the versions are the tables, and this one walks a document along them.
//!
//! A document is checked as it is written: what a reference leads to is checked where it stands.

mod kinds;
mod schemas;
mod shared;
#[cfg(test)]
mod tests;
mod version_2;
mod version_3;

use super::{Context, Rule, rule};
use crate::finding::Level::Error;
use crate::openapi::Format;
use kinds::{Field, Kind, Need, Object};
use serde_json::{Map, Value};
use weir_model::DocPath;

pub(super) const RULES: [Rule; 2] = [
    rule("oas3-schema", Error, check_3),
    rule("oas2-schema", Error, check_2),
];

/// Findings about the form of a document at most: there has to be room for those of other rules.
const MAX_FINDINGS: usize = 300;

fn check_3(context: &mut Context<'_>) {
    if context.description.format != Format::V2 {
        check(context, &version_3::DOCUMENT);
    }
}

fn check_2(context: &mut Context<'_>) {
    if context.description.format == Format::V2 {
        check(context, &version_2::DOCUMENT);
    }
}

fn check(context: &mut Context<'_>, object: &'static Object) {
    let description = context.description;
    let mut walker = Walker {
        format: description.format,
        left: MAX_FINDINGS,
        context,
    };
    if let Some(map) = description.source.as_object() {
        walker.object(map, object, &Location::ROOT);
    }
}

/// A place, with those above it. Only a finding makes a path of it.
struct Location<'p> {
    above: Option<&'p Location<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Root,
    Field(&'p str),
    Index(usize),
}

impl Location<'_> {
    const ROOT: Location<'static> = Location {
        above: None,
        step: Step::Root,
    };

    fn below<'p>(&'p self, step: Step<'p>) -> Location<'p> {
        Location {
            above: Some(self),
            step,
        }
    }

    fn path(&self) -> DocPath {
        let above = self.above.map_or_else(DocPath::root, Location::path);
        match self.step {
            Step::Root => above,
            Step::Field(name) => above.field(name),
            Step::Index(index) => above.index(index),
        }
    }

    /// What a sentence calls the value.
    fn name(&self) -> String {
        match (self.step, self.above.map(|it| it.step)) {
            (Step::Root, _) => "Object".to_owned(),
            (Step::Field(name), _) => format!("\"{name}\" property"),
            (Step::Index(index), Some(Step::Field(list))) => format!("Item {index} of \"{list}\""),
            (Step::Index(index), _) => format!("Item {index}"),
        }
    }
}

struct Walker<'c, 'd> {
    context: &'c mut Context<'d>,
    format: Format,
    /// Findings that there is room for.
    left: usize,
}

impl Walker<'_, '_> {
    fn add(&mut self, place: &Location<'_>, message: String) {
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            self.context.add(place.path(), message);
        }
    }

    fn value(&mut self, value: &Value, kind: &'static Kind, place: &Location<'_>) {
        if self.left == 0 {
            return;
        }
        if let Kind::Either(kinds) = kind {
            match kinds.iter().find(|it| self.has_type(value, it)) {
                Some(kind) => self.value(value, kind, place),
                None => {
                    let types: Vec<&str> = kinds.iter().map(type_of).collect();
                    self.add(place, format!("{} must be {}.", place.name(), types.join(" or ")));
                }
            }
            return;
        }
        if !self.has_type(value, kind) {
            self.add(place, format!("{} must be {}.", place.name(), type_of(kind)));
            return;
        }
        match (kind, value) {
            (Kind::Words(words), Value::String(text)) if !words.contains(&text.as_str()) => {
                let message = format!(
                    "{} must be equal to one of the allowed values: \"{}\".",
                    place.name(),
                    words.join("\", \"")
                );
                self.add(place, message);
            }
            (Kind::Count, number) if !number.as_f64().is_some_and(|it| it >= 0.0 && it.fract() == 0.0) => {
                self.add(place, format!("{} must be an integer from 0.", place.name()));
            }
            (Kind::Some(_), Value::Array(items)) if items.is_empty() => {
                self.add(
                    place,
                    format!("{} must not have fewer than 1 items.", place.name()),
                );
            }
            (Kind::List(kind) | Kind::Some(kind), Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(item, kind, &place.below(Step::Index(index)));
                }
            }
            (Kind::Map(names, kind), Value::Object(map)) => {
                let is_extension = |name: &str| names.has_extensions() && name.starts_with("x-");
                for (name, below) in map.iter().filter(|(name, _)| !is_extension(name)) {
                    let place = place.below(Step::Field(name));
                    match names.fault(name, self.format) {
                        Some(fault) => self.add(&place, unexpected(name, fault)),
                        None => self.value(below, kind, &place),
                    }
                }
            }
            (Kind::Object(object), Value::Object(map)) => self.object(map, object, place),
            (Kind::OrReference(object), Value::Object(map)) => match map.get("$ref") {
                None => self.object(map, object, place),
                Some(target) => self.value(target, &Kind::Text, &place.below(Step::Field("$ref"))),
            },
            (Kind::Schema, Value::Object(map)) => match map.get("$ref") {
                // The words beside it have a rule of their own.
                Some(target) if self.format < Format::V3_1 => {
                    self.value(target, &Kind::Text, &place.below(Step::Field("$ref")));
                }
                _ => self.object(map, schemas::of(self.format), place),
            },
            _ => {}
        }
    }

    fn object(&mut self, map: &Map<String, Value>, object: &'static Object, place: &Location<'_>) {
        for (name, value) in map.iter().filter(|(name, _)| !name.starts_with("x-")) {
            let below = place.below(Step::Field(name));
            let mut known = fields(object).filter(|it| it.name == name).peekable();
            let elsewhere = known.peek().copied();
            match (known.find(|it| it.is_in(self.format)), elsewhere) {
                (Some(field), _) => self.value(value, &field.kind, &below),
                (None, _) if object.is_open => {}
                (None, Some(field)) => {
                    let fault = match field.versions {
                        (first, _) if self.format < first => {
                            format!("OpenAPI has it since {}", first.as_str())
                        }
                        (_, last) => format!("OpenAPI had it up to {}", last.as_str()),
                    };
                    self.add(&below, unexpected(name, &fault));
                }
                (None, None) => {
                    self.add(&below, format!("Property \"{name}\" is not expected to be here."));
                }
            }
        }
        for field in fields(object) {
            if field.is_required(self.format) && !map.contains_key(field.name) {
                self.add(place, missing(place, field.name));
            }
        }
        for need in object.needs {
            self.need(map, need, place);
        }
    }

    fn need(&mut self, map: &Map<String, Value>, need: &Need, place: &Location<'_>) {
        match need {
            Need::With(field, values, required) => {
                let value = map.get(*field).and_then(Value::as_str);
                if value.is_some_and(|it| values.contains(&it)) {
                    for name in required.iter().filter(|it| !map.contains_key(**it)) {
                        self.add(place, missing(place, name));
                    }
                }
            }
            Need::One(names) => {
                if names.iter().filter(|it| map.contains_key(**it)).count() != 1 {
                    let message = format!(
                        "{} must have exactly one of \"{}\".",
                        place.name(),
                        names.join("\", \"")
                    );
                    self.add(place, message);
                }
            }
            Need::NotBoth(one, other) => {
                if map.contains_key(*one) && map.contains_key(*other) {
                    let below = place.below(Step::Field(other));
                    self.add(
                        &below,
                        format!("Property \"{other}\" must not be next to \"{one}\"."),
                    );
                }
            }
        }
    }

    /// Whether a value has the JSON type that a kind of value has.
    fn has_type(&self, value: &Value, kind: &Kind) -> bool {
        match kind {
            Kind::Any => true,
            Kind::Text | Kind::Words(_) => value.is_string(),
            Kind::Bool => value.is_boolean(),
            Kind::Number | Kind::Count => value.is_number(),
            Kind::List(_) | Kind::Some(_) => value.is_array(),
            Kind::Object(_) | Kind::OrReference(_) | Kind::Map(..) => value.is_object(),
            Kind::Schema => value.is_object() || self.format > Format::V3_0 && value.is_boolean(),
            Kind::Either(kinds) => kinds.iter().any(|it| self.has_type(value, it)),
        }
    }
}

fn fields(object: &'static Object) -> impl Iterator<Item = &'static Field> {
    let common = object.common.iter().copied().flatten();
    object.fields.iter().chain(common)
}

/// The JSON type of a kind of value, as a sentence names it.
fn type_of(kind: &Kind) -> &'static str {
    match kind {
        Kind::Any | Kind::Either(_) => "any value",
        Kind::Text | Kind::Words(_) => "string",
        Kind::Bool => "boolean",
        Kind::Number | Kind::Count => "number",
        Kind::List(_) | Kind::Some(_) => "array",
        Kind::Object(_) | Kind::OrReference(_) | Kind::Map(..) | Kind::Schema => "object",
    }
}

fn unexpected(name: &str, fault: &str) -> String {
    format!("Property \"{name}\" is not expected to be here: {fault}.")
}

fn missing(place: &Location<'_>, name: &str) -> String {
    format!("{} must have required property \"{name}\".", place.name())
}
