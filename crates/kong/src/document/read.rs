//! The first step of reading: the document's own fields, and every entity at every level of nesting.

use super::entity_type::{EntityType, IdFrom, UNREAD, entity_type};
use super::{id, plugin, route, service, upstream};
use crate::schema::{Fields, ItemLocation, Location, MOST_UNKNOWN, Problems, RawFields};
use serde_json::{Map, Value};
use std::sync::Arc;
use uuid::Uuid;
use weir_model::Diagnostic;

/// An entity with its defaults, not yet linked to others.
pub struct RawEntity {
    /// Its entity type.
    pub entity_type: &'static EntityType,
    /// Its id, given or made.
    pub id: Uuid,
    /// All fields of its entity type.
    pub fields: Fields,
    /// Its place in the document.
    pub place: ItemLocation,
    /// The field that refers to the entity inside of which it stands; it holds that one's id.
    pub parent_field: Option<&'static str>,
    /// Whether something was reported about it.
    pub is_broken: bool,
}

/// The entity inside of which others stand.
#[derive(Clone, Copy)]
struct Parent {
    /// The field of the inner ones that refers to it.
    field: &'static str,
    id: Uuid,
}

struct Reader<'r> {
    /// Before format 3.0 paths were marked otherwise.
    has_old_paths: bool,
    entities: Vec<RawEntity>,
    /// How many fields of the document itself are unknown.
    unknown: usize,
    problems: &'r mut Problems,
}

/// Reads all entities of a document.
pub fn document(document: &Value, problems: &mut Problems) -> Vec<RawEntity> {
    let root = Location::ROOT;
    let Value::Object(fields) = document else {
        problems.error(
            &root,
            "failed parsing declarative configuration: expected an object",
        );
        return Vec::new();
    };
    let version = format_version(fields, problems);
    let mut reader = Reader {
        has_old_paths: version.is_some_and(|version| version != "3.0"),
        entities: Vec::new(),
        unknown: 0,
        problems,
    };
    for (name, value) in fields {
        reader.document_field(name, value, &root.field(name));
    }
    reader.entities
}

fn format_version<'d>(fields: &'d Map<String, Value>, problems: &mut Problems) -> Option<&'d str> {
    let root = Location::ROOT;
    let place = root.field("_format_version");
    let message = match fields.get("_format_version") {
        Some(Value::String(version)) if matches!(version.as_str(), "1.1" | "2.1" | "3.0") => {
            return Some(version);
        }
        Some(Value::String(_)) => "expected one of: 1.1, 2.1, 3.0",
        None | Some(Value::Null) => "required field missing",
        Some(_) => "expected a string",
    };
    problems.error(&place, message);
    None
}

impl Reader<'_> {
    fn document_field(&mut self, name: &str, value: &Value, place: &Location<'_>) {
        match name {
            "_format_version" => {}
            "_transform" if value.is_boolean() || value.is_null() => {}
            "_transform" => self.problems.error(place, "expected a boolean"),
            "_comment" | "_ignore" => self.note(name, value, place),
            "filter_chains" if is_empty(value) => {}
            "filter_chains" => self
                .problems
                .error(place, "filter chains are not available in this version of Weir"),
            name if UNREAD.contains(&name) => {
                if !is_empty(value) {
                    let message = format!("{name} are not used by this version of Weir");
                    self.problems.warning(place.to_path(), message);
                }
            }
            name => match entity_type(name) {
                Some(entity_type) => self.list(entity_type, value, place, None),
                None if self.unknown < MOST_UNKNOWN => {
                    self.unknown += 1;
                    self.problems.error(place, "unknown field");
                }
                None => {}
            },
        }
    }

    /// `_comment` and `_ignore`, which may stand in the document and in every entity.
    fn note(&mut self, name: &str, value: &Value, place: &Location<'_>) {
        match (name, value) {
            (_, Value::Null) | ("_comment", Value::String(_)) | ("_ignore", Value::Array(_)) => {}
            ("_comment", _) => self.problems.error(place, "expected a string"),
            _ => self.problems.error(place, "expected an array"),
        }
    }

    fn list(
        &mut self,
        entity_type: &'static EntityType,
        value: &Value,
        place: &Location<'_>,
        parent: Option<Parent>,
    ) {
        match value {
            value if is_empty(value) => {}
            Value::Array(items) => {
                let list = Arc::new(place.to_path());
                for (index, item) in items.iter().enumerate() {
                    let kept = ItemLocation {
                        list: Arc::clone(&list),
                        index,
                    };
                    self.item(entity_type, item, (&place.index(index), kept), parent);
                }
            }
            _ => self.problems.error(place, "expected an array"),
        }
    }

    fn item(
        &mut self,
        entity_type: &'static EntityType,
        value: &Value,
        (place, kept_place): (&Location<'_>, ItemLocation),
        parent: Option<Parent>,
    ) {
        let before = self.problems.0.len();
        let mut given = RawFields::default();
        let mut nested = Vec::new();
        match value {
            Value::Object(fields) => {
                given = RawFields::with_capacity(fields.len() + 1);
                for (name, value) in fields {
                    if matches!(name.as_str(), "_comment" | "_ignore") {
                        self.note(name, value, &place.field(name));
                    } else if let Some((child, field)) = entity_type.child(name) {
                        nested.push((child, field, value));
                    } else {
                        given.add(name, value);
                    }
                }
            }
            Value::Array(items) if items.is_empty() => {}
            Value::String(_) if entity_type.is("snis") && parent.is_some() => given.add("name", value),
            _ => {
                self.problems.error(place, "expected a record");
                return;
            }
        }
        self.adapt(entity_type, &mut given, place);
        let id = identify(entity_type, &given, parent, place);
        if let Some(parent) = parent {
            given.insert(parent.field, parent.id.to_string().into());
        }
        let mut fields = entity_type.record.read(given.iter(), place, self.problems);
        if entity_type.is("plugins") {
            let config = given.get("config");
            plugin::read_config(&mut fields, config, parent.is_some(), place, self.problems);
            plugin::refuse_cluster(&fields, place, self.problems);
        }
        fields.insert("id", id.to_string().into());
        self.entities.push(RawEntity {
            entity_type,
            id,
            fields,
            place: kept_place,
            parent_field: parent.map(|parent| parent.field),
            is_broken: self.problems.0.len() > before,
        });
        for (child, field, value) in nested {
            self.list(child, value, &place.field(child.name), Some(Parent { field, id }));
        }
    }

    /// Replaces values that stand for something else before the fields are read.
    fn adapt(&mut self, entity_type: &EntityType, given: &mut RawFields<'_>, place: &Location<'_>) {
        if entity_type.is("routes") {
            if self.has_old_paths {
                route::mark_regex_paths(given);
            }
            if given.remove("filter_chains").is_some_and(|it| !is_empty(&it)) {
                let message = "filter chains are not available in this version of Weir";
                self.problems.error(&place.field("filter_chains"), message);
            }
        }
        adapt(entity_type, given);
    }
}

/// Replaces what stands for something else by it, and gives the defaults that depend on other fields.
pub(crate) fn adapt(entity_type: &EntityType, given: &mut RawFields<'_>) {
    match entity_type.name {
        "services" => service::expand_url(given),
        "upstreams" => upstream::fit_defaults(given),
        "routes" => route::fit_defaults(given),
        "plugins" => plugin::fit_defaults(given),
        _ => {}
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn identify(
    entity_type: &EntityType,
    given: &RawFields<'_>,
    parent: Option<Parent>,
    place: &Location<'_>,
) -> Uuid {
    let text = |field: &str| given.get(field).and_then(Value::as_str);
    if let Some(id) = text("id").and_then(|id| Uuid::try_parse(id).ok()) {
        return id;
    }
    let made = match entity_type.id_from {
        IdFrom::Key => entity_type
            .key
            .and_then(text)
            .map(|key| id::from_key(entity_type.name, key)),
        IdFrom::Fields(fields) => from_fields(entity_type, fields, given, parent),
        IdFrom::Nothing => None,
    };
    made.unwrap_or_else(|| id::from_place(entity_type.name, &place.to_path().to_string()))
}

/// The id of an entity that several fields distinguish; none if one that it needs is missing.
fn from_fields(
    entity_type: &EntityType,
    fields: &[&str],
    given: &RawFields<'_>,
    parent: Option<Parent>,
) -> Option<Uuid> {
    let mut values = Vec::with_capacity(fields.len());
    for field in fields {
        match (given.get(field), parent) {
            (Some(Value::String(text)), _) => values.push(text.clone()),
            (None, Some(parent)) if parent.field == *field => values.push(parent.id.to_string()),
            (None, _)
                if entity_type
                    .record
                    .field(field)
                    .is_some_and(|field| field.required) =>
            {
                return None;
            }
            (None, _) => values.push(String::new()),
            (Some(_), _) => {}
        }
    }
    Some(id::from_fields(
        entity_type.name,
        values.iter().map(String::as_str),
    ))
}

impl RawEntity {
    /// Reports something about the entity as a whole.
    pub fn complain(&self, message: String, problems: &mut Problems) {
        problems.0.push(Diagnostic::error(self.place.to_path(), message));
    }
}
