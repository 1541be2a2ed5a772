//! OpenAPI documents: reading a text of any version, and one normal form for all that come after.
//!
//! The normal form is that of OpenAPI 3.1. Each operation is a small value of its own, in which references to
//! parameters, bodies, responses, headers and examples are replaced by what they lead to. References to schemas stay as
//! `#/components/schemas/NAME`, and [`Description::schemas`] holds those: schemas may refer to themselves.
//!
//! Everything is bounded: the text ([`MAX_BYTES`]), the values in it, their depth, the operations
//! ([`MAX_OPERATIONS`]), and the length of a chain of references.

mod budget;
mod json_text;
mod locate;
mod operations;
mod references;
mod repeats;
mod schemas;
mod source;
mod swagger;

pub use locate::positions;
pub use references::{MAX_CHAIN, resolve};
pub use repeats::{RepeatedKey, repeated_keys};
pub use source::{MAX_BYTES, parse};

use crate::finding::Finding;
use budget::Budget;
use serde_json::{Map, Value};
use weir_model::DocPath;

/// The most operations of one document.
pub const MAX_OPERATIONS: usize = 50_000;
/// The most findings that are reported about one document.
pub const MAX_FINDINGS: usize = 1_000;
/// The rule for a text that is not an OpenAPI document.
pub const UNREADABLE: &str = "unrecognized-format";
/// The rule for a reference that leads nowhere. Spectral's name.
pub const INVALID_REF: &str = "invalid-ref";
/// The rule for a name that stands in a map twice. Spectral's name: its parser reports them.
pub const REPEATED_KEY: &str = "parser";

/// The version of OpenAPI that a document is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// Swagger 2.0.
    V2,
    /// OpenAPI 3.0.
    V3_0,
    /// OpenAPI 3.1.
    V3_1,
    /// OpenAPI 3.2.
    V3_2,
}

impl Format {
    fn of(document: &Value) -> Result<Self, String> {
        let text = |field: &str| document.get(field).and_then(Value::as_str);
        let version = match (text("openapi"), text("swagger")) {
            (Some(version), _) | (None, Some(version)) => version,
            (None, None) => {
                return Err(
                    "expected an OpenAPI document: neither 'openapi' nor 'swagger' is a text".to_owned(),
                );
            }
        };
        let mut parts = version.split('.');
        match (parts.next(), parts.next()) {
            (Some("2"), Some("0")) => Ok(Self::V2),
            (Some("3"), Some("0")) => Ok(Self::V3_0),
            (Some("3"), Some("1")) => Ok(Self::V3_1),
            (Some("3"), Some("2")) => Ok(Self::V3_2),
            _ => Err(format!(
                "OpenAPI {version} is not known: expected 2.0, 3.0, 3.1 or 3.2"
            )),
        }
    }

    /// The version as a text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2 => "2.0",
            Self::V3_0 => "3.0",
            Self::V3_1 => "3.1",
            Self::V3_2 => "3.2",
        }
    }
}

/// An operation in the normal form.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    /// The operation's `operationId`, or a name made of its method and path. Unique in its document.
    pub id: String,
    /// Whether the document gives it an `operationId`.
    pub has_own_id: bool,
    /// The method in upper case.
    pub method: String,
    /// The path as the document writes it, such as `/pets/{id}`.
    pub path: String,
    /// One line about it.
    pub summary: Option<String>,
    /// Whether callers should no longer use it.
    pub deprecated: bool,
    /// The tags.
    pub tags: Vec<String>,
    /// The whole operation: parameters with those of its path, security with that of the document.
    pub value: Value,
    /// Where it is in the document; the path's item may be a reference to where it is written.
    pub place: DocPath,
}

/// A document in the normal form.
#[derive(Debug, Clone)]
pub struct Description {
    /// The version that it is written in.
    pub format: Format,
    /// The document as it is written.
    pub source: Value,
    /// `info`.
    pub info: Value,
    /// `servers`; those of Swagger 2.0 made of `schemes`, `host` and `basePath`.
    pub servers: Vec<Value>,
    /// `security` of the document.
    pub security: Option<Value>,
    /// The security schemes by their names.
    pub security_schemes: Map<String, Value>,
    /// The schemas by their names, in the form of JSON Schema 2020-12.
    pub schemas: Map<String, Value>,
    /// `tags`.
    pub tags: Vec<Value>,
    /// The operations, in the order of the document.
    pub operations: Vec<Operation>,
    /// References that lead nowhere.
    pub faults: Vec<Finding>,
}

/// Reads a document of any version, in JSON or YAML.
///
/// # Errors
/// Why it cannot be used, each finding with its line and column.
pub fn read(text: &str) -> Result<Description, Vec<Finding>> {
    let source = source::parse(text).map_err(|found| vec![found])?;
    let mut description = match from_value(source) {
        Ok(description) => description,
        Err(mut found) => {
            locate(text, &mut found);
            return Err(found);
        }
    };
    locate(text, &mut description.faults);
    Ok(description)
}

/// Reads a document that is a value already. Findings have no positions then.
///
/// # Errors
/// As [`read`].
pub fn from_value(source: Value) -> Result<Description, Vec<Finding>> {
    let fail = |path: DocPath, message: String| vec![Finding::error(UNREADABLE, path, message)];
    let format = Format::of(&source).map_err(|message| fail(DocPath::root(), message))?;
    let checked = references::check(&source);
    if !checked.cycles.is_empty() {
        return Err(checked.cycles);
    }
    let budget = Budget::new(budget::MAX_COPIED);
    let converted;
    let document = match format {
        Format::V2 => {
            converted = swagger::convert(&source, &budget);
            &converted
        }
        _ => &source,
    };
    let count = operations::count(document);
    if count > MAX_OPERATIONS {
        let message = format!("{count} operations: expected at most {MAX_OPERATIONS}");
        return Err(fail(DocPath::root().field("paths"), message));
    }
    let operations =
        operations::all(document, format, &budget).map_err(|(path, message)| fail(path, message))?;
    if budget.is_spent() {
        let message = format!("its references expand to more than {} values", budget::MAX_COPIED);
        return Err(fail(DocPath::root().field("paths"), message));
    }
    let list = |name: &str| match document.get(name) {
        Some(Value::Array(items)) => items.clone(),
        _ => Vec::new(),
    };
    let map = |pointer: &str| match document.pointer(pointer) {
        Some(Value::Object(map)) => map.clone(),
        _ => Map::new(),
    };
    let mut schemas = map("/components/schemas");
    schemas
        .values_mut()
        .for_each(|schema| schemas::modernise(schema, format));
    let mut security_schemes = map("/components/securitySchemes");
    for scheme in security_schemes.values_mut() {
        let target = resolve(document, scheme).ok().filter(|(_, hops)| *hops > 0);
        if let Some(target) = target.map(|(target, _)| budget.copy(target)) {
            *scheme = target;
        }
    }
    let (info, servers, tags) = (document.get("info").cloned(), list("servers"), list("tags"));
    let security = document.get("security").cloned();
    Ok(Description {
        format,
        info: info.unwrap_or(Value::Null),
        servers,
        security,
        security_schemes,
        schemas,
        tags,
        operations,
        faults: checked.broken,
        source,
    })
}

/// Gives findings their positions in the text.
pub fn locate(text: &str, findings: &mut [Finding]) {
    let missing: Vec<usize> = (0..findings.len())
        .filter(|index| findings[*index].position.is_none())
        .collect();
    let paths: Vec<&DocPath> = missing.iter().map(|index| &findings[*index].path).collect();
    let found = positions(text, &paths);
    for (index, position) in missing.into_iter().zip(found) {
        findings[index].position = Some(position);
    }
}

#[cfg(test)]
mod tests;
