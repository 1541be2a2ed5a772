//! Refusals in the original's form: a code, its name, a message and the fields that it is about.

use super::lua;
use super::response::ApiResponse;
use crate::schema::Problems;
use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use weir_model::diagnostic::PathStep;
use weir_model::{Diagnostic, Severity};

/// The field under which complaints about an entity as a whole stand.
pub const WHOLE: &str = "@entity";

/// Why a call is refused.
#[derive(Debug, Clone)]
pub struct Failure(pub ApiResponse);

impl From<ApiResponse> for Failure {
    fn from(answer: ApiResponse) -> Self {
        Self(answer)
    }
}

fn refuse(status: StatusCode, code: u8, name: &str, message: &str, fields: Option<Value>) -> Failure {
    let mut body = json!({ "code": code, "name": name, "message": message });
    if let Some(fields) = fields {
        body["fields"] = fields;
    }
    Failure(ApiResponse::json(status, &body))
}

impl Failure {
    /// The path leads to nothing.
    pub fn not_found() -> Self {
        Self(ApiResponse::not_found())
    }

    /// A refusal that has no code.
    pub fn message(status: StatusCode, message: &str) -> Self {
        Self(ApiResponse::message(status, message))
    }

    /// Something that is no id.
    pub fn invalid_primary_key() -> Self {
        let fields = json!({ "id": "expected a valid UUID" });
        let message = format!("invalid primary key: '{}'", lua::inline(&fields));
        refuse(
            StatusCode::BAD_REQUEST,
            1,
            "invalid primary key",
            &message,
            Some(fields),
        )
    }

    /// An entity that is not as it must be.
    pub fn schema_violation(fields: Value) -> Self {
        let message = violation_message(&fields);
        refuse(
            StatusCode::BAD_REQUEST,
            2,
            "schema violation",
            &message,
            Some(fields),
        )
    }

    /// One field that is not as it must be.
    pub fn of_field(field: &str, message: &str) -> Self {
        Self::schema_violation(json!({ field: message }))
    }

    /// An id that is taken.
    pub fn primary_key_violation(id: &str) -> Self {
        let fields = json!({ "id": id });
        let message = format!("primary key violation on key '{}'", lua::inline(&fields));
        refuse(
            StatusCode::BAD_REQUEST,
            3,
            "primary key violation",
            &message,
            Some(fields),
        )
    }

    /// A reference to something that is not there.
    pub fn dangling(field: &str, id: &str, entity_type: &str) -> Self {
        let key = json!({ "id": id });
        let message = format!(
            "the foreign key '{}' does not reference an existing '{entity_type}' entity.",
            lua::inline(&key)
        );
        let fields = json!({ field: key });
        refuse(
            StatusCode::BAD_REQUEST,
            4,
            "foreign key violation",
            &message,
            Some(fields),
        )
    }

    /// Something is to be removed that others refer to.
    pub fn referenced(entity_type: &str, by: &str) -> Self {
        let message = format!("an existing '{by}' entity references this '{entity_type}' entity");
        let fields = json!({ "@referenced_by": by });
        refuse(
            StatusCode::BAD_REQUEST,
            4,
            "foreign key violation",
            &message,
            Some(fields),
        )
    }

    /// Values that another entity has.
    pub fn unique_violation(key: Value) -> Self {
        let message = format!("UNIQUE violation detected on '{}'", lua::inline(&key));
        refuse(
            StatusCode::CONFLICT,
            5,
            "unique constraint violation",
            &message,
            Some(key),
        )
    }

    /// Something that another entity has, by more than equal values.
    pub fn conflict(message: &str, fields: Value) -> Self {
        refuse(
            StatusCode::CONFLICT,
            5,
            "unique constraint violation",
            message,
            Some(fields),
        )
    }

    /// The entity cannot be stored as it is; the log has the reason.
    pub fn of_store(error: &dyn std::error::Error) -> Self {
        tracing::error!(%error, "an entity cannot be stored");
        Self(ApiResponse::unexpected())
    }

    /// An entity that is to be changed is not there.
    pub fn no_such_entity(key: Value, is_primary: bool) -> Self {
        let key_text = lua::inline(&key);
        let message = if is_primary {
            format!("could not find the entity with primary key '{key_text}'")
        } else {
            format!("could not find the entity with '{key_text}'")
        };
        refuse(StatusCode::NOT_FOUND, 6, "not found", &message, Some(key))
    }

    /// A page that cannot be found.
    pub fn invalid_offset(offset: &str, reason: &str) -> Self {
        let message = format!("'{offset}' is not a valid offset: {reason}");
        refuse(StatusCode::BAD_REQUEST, 7, "invalid offset", &message, None)
    }

    /// A page of a size that there is not.
    pub fn invalid_size(message: &str) -> Self {
        refuse(StatusCode::BAD_REQUEST, 9, "invalid size", message, None)
    }

    /// A name that no entity can have.
    pub fn invalid_unique(field: &str, message: &str) -> Self {
        let name = format!("invalid unique {field}");
        refuse(StatusCode::BAD_REQUEST, 10, &name, message, None)
    }

    /// An option of a list that cannot be followed.
    pub fn invalid_option(option: &str, message: &str) -> Self {
        let body = json!({
            "code": 11,
            "name": "invalid options",
            "message": format!("invalid option ({option}: {message})"),
            "options": { option: message },
        });
        Self(ApiResponse::json(StatusCode::BAD_REQUEST, &body))
    }

    /// A write of single entities without a database. `field`: the one by which the entity is named.
    pub fn unsupported(operation: &str, entity_type: &str, field: Option<&str>) -> Self {
        let by = field.map_or(String::new(), |field| format!(" by '{field}'"));
        let message = format!("cannot {operation} '{entity_type}' entities{by} when not using a database");
        let status = StatusCode::METHOD_NOT_ALLOWED;
        refuse(status, 12, "operation unsupported", &message, None)
    }

    /// References by unknown names: by field, the name's field, the name and the entity type.
    pub fn unresolved(field: &str, by: &str, name: &str, entity_type: &str) -> Self {
        let key = lua::inline(&json!({ by: name }));
        let reason =
            format!("the foreign key cannot be resolved with '{key}' for an existing '{entity_type}' entity");
        let message = format!("foreign key unresolved ({field}.{by}: {reason})");
        let fields = json!({ field: { by: reason } });
        refuse(
            StatusCode::BAD_REQUEST,
            13,
            "foreign keys unresolved",
            &message,
            Some(fields),
        )
    }

    /// A declarative configuration that is not as it must be.
    pub fn declarative(fields: &Value) -> Self {
        Self(ApiResponse::json(StatusCode::BAD_REQUEST, &declarative(fields)))
    }

    /// Something is to be removed that others name by its id.
    pub fn still_referenced(message: &str) -> Self {
        refuse(StatusCode::BAD_REQUEST, 19, "referenced by others", message, None)
    }

    /// The document has changed since it was read.
    pub fn precondition() -> Self {
        Self::message(
            StatusCode::PRECONDITION_FAILED,
            "the entity has changed: it has another revision than the one in If-Match",
        )
    }

    /// The complaints of a reading as a schema violation; `None`: there are none.
    pub fn of_problems(problems: &Problems) -> Option<Self> {
        let tree = tree(
            problems
                .0
                .iter()
                .filter(|found| found.severity == Severity::Error),
        );
        tree.map(Self::schema_violation)
    }
}

/// The body of a refusal of a declarative configuration.
pub fn declarative(fields: &Value) -> Value {
    json!({
        "code": 14,
        "name": "invalid declarative configuration",
        "message": format!("declarative config is invalid: {}", lua::inline(fields)),
        "fields": fields,
    })
}

fn violation_message(fields: &Value) -> String {
    let mut complaints: Vec<String> = Vec::new();
    let Value::Object(fields) = fields else {
        return String::new();
    };
    if let Some(Value::Array(whole)) = fields.get(WHOLE) {
        complaints.extend(whole.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    let mut names: Vec<&String> = fields.keys().filter(|name| *name != WHOLE).collect();
    names.sort();
    for name in names {
        match &fields[name] {
            Value::Object(inner) => {
                let mut inner_names: Vec<&String> = inner.keys().collect();
                inner_names.sort();
                for inner_name in inner_names {
                    complaints.push(format!(
                        "{name}.{inner_name}: {}",
                        violation_text(&inner[inner_name])
                    ));
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate().filter(|(_, item)| !item.is_null()) {
                    complaints.push(format!("{name}.{}: {}", index + 1, violation_text(item)));
                }
            }
            other => complaints.push(format!("{name}: {}", violation_text(other))),
        }
    }
    match complaints.as_slice() {
        [only] => format!("schema violation ({only})"),
        several => format!("{} schema violations ({})", several.len(), several.join("; ")),
    }
}

fn violation_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => lua::indented(other),
    }
}

/// Complaints by the fields that they are about, in lists with `null` for elements without a complaint.
pub fn tree<'d>(found: impl Iterator<Item = &'d Diagnostic>) -> Option<Value> {
    let mut tree = Value::Null;
    for diagnostic in found {
        insert(&mut tree, &diagnostic.path.0, &diagnostic.message);
    }
    (!tree.is_null()).then_some(tree)
}

fn insert(tree: &mut Value, path: &[PathStep], message: &str) {
    let is_about_all = |step: &&PathStep| matches!(step, PathStep::Field(name) if name == WHOLE);
    match path.split_first().filter(|(first, _)| !is_about_all(first)) {
        Some((PathStep::Field(name), rest)) => {
            if !tree.is_object() {
                *tree = Value::Object(Map::new());
            }
            insert_into(&mut tree[name.as_str()], rest, message);
        }
        Some((PathStep::Index(index), rest)) => {
            if !tree.is_array() {
                *tree = Value::Array(Vec::new());
            }
            if let Value::Array(items) = tree {
                if items.len() <= *index {
                    items.resize(index + 1, Value::Null);
                }
                insert_into(&mut items[*index], rest, message);
            }
        }
        None => {
            if !tree.is_object() {
                *tree = Value::Object(Map::new());
            }
            match &mut tree[WHOLE] {
                Value::Array(messages) => messages.push(message.into()),
                whole => *whole = json!([message]),
            }
        }
    }
}

/// Of a field it is said once what is wrong; of a record both what is wrong with it and with its fields.
fn insert_into(place: &mut Value, rest: &[PathStep], message: &str) {
    if !rest.is_empty() {
        if !place.is_string() {
            insert(place, rest, message);
        }
    } else if is_about_several_fields(message) || place.is_object() {
        insert(place, rest, message);
    } else if place.is_null() {
        *place = message.into();
    }
}

/// Whether a complaint is about fields that do not go together. A place alone does not show that: a record may be wrong
/// as a value of its field, or in itself.
fn is_about_several_fields(message: &str) -> bool {
    const BEGINNINGS: [&str; 6] = [
        "at least one of these fields must be non-empty",
        "only one or none of these fields must be set",
        "exactly one of these fields must be non-empty",
        "all or none of these fields must be set",
        "values of these fields must be distinct",
        "failed conditional validation",
    ];
    BEGINNINGS.iter().any(|beginning| message.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_are_reported_as_in_the_original() {
        for (fields, message) in [
            (
                json!({"name": "required field missing"}),
                "schema violation (name: required field missing)",
            ),
            (
                json!({"b": "x", "@entity": ["whole"], "a": {"z": "1", "y": "2"}}),
                "4 schema violations (whole; a.y: 2; a.z: 1; b: x)",
            ),
            (json!({"tags": [null, "bad"]}), "schema violation (tags.2: bad)"),
        ] {
            assert_eq!(violation_message(&fields), message);
        }
    }
}
