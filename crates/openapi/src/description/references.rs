//! References inside a document: what they lead to, and which ones lead nowhere or in a circle.
//!
//! Only references into the same document are followed. A schema may refer to itself below its own fields; a chain of
//! references that never reaches a value is a fault.

use super::{INVALID_REF, MAX_FINDINGS};
use crate::finding::Finding;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use std::collections::HashMap;
use weir_model::DocPath;

/// The longest chain of references that is followed.
pub const MAX_CHAIN: usize = 64;

/// Why a reference cannot be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// It leads out of the document.
    #[error("refers to another document; expected '#/…': files are not read")]
    Outside,
    /// There is nothing at its end.
    #[error("refers to nothing")]
    Missing,
    /// It leads back to itself.
    #[error("is circular, or follows more than {MAX_CHAIN} other references")]
    Cycle,
}

/// What stands at the end of the references that `value` is the first of, and how many there were. A value that is no
/// reference is its own end.
///
/// # Errors
/// Why there is no end.
pub fn resolve<'d>(document: &'d Value, value: &'d Value) -> Result<(&'d Value, usize), ReferenceError> {
    let mut current = value;
    for hops in 0..=MAX_CHAIN {
        let Some(target) = reference_of(current) else {
            return Ok((current, hops));
        };
        current = target_of(document, target)?;
    }
    Err(ReferenceError::Cycle)
}

/// The reference that a value is.
pub fn reference_of(value: &Value) -> Option<&str> {
    value.as_object()?.get("$ref")?.as_str()
}

fn target_of<'d>(document: &'d Value, target: &str) -> Result<&'d Value, ReferenceError> {
    let pointer = target.strip_prefix('#').ok_or(ReferenceError::Outside)?;
    if let Some(found) = document.pointer(pointer) {
        return Ok(found);
    }
    let decoded = percent_decode_str(pointer)
        .decode_utf8()
        .map_err(|_| ReferenceError::Missing)?;
    document.pointer(&decoded).ok_or(ReferenceError::Missing)
}

/// What is wrong with the references of a document.
pub struct ReferenceReport {
    /// They lead nowhere.
    pub broken: Vec<Finding>,
    /// They never end.
    pub cycles: Vec<Finding>,
}

/// Checks every reference of a document.
pub fn check(document: &Value) -> ReferenceReport {
    let mut walk = Walk {
        document,
        known: HashMap::new(),
        path: DocPath::root(),
        checked: ReferenceReport {
            broken: Vec::new(),
            cycles: Vec::new(),
        },
    };
    walk.visit(document);
    walk.checked
}

struct Walk<'d> {
    document: &'d Value,
    /// The resolved values of references that occur more than once.
    known: HashMap<&'d str, Option<ReferenceError>>,
    path: DocPath,
    checked: ReferenceReport,
}

impl<'d> Walk<'d> {
    /// Values are as deep as a reader allows.
    fn visit(&mut self, value: &'d Value) {
        use weir_model::diagnostic::PathStep;
        match value {
            Value::Object(map) => {
                if let Some(target) = reference_of(value) {
                    self.reference(value, target);
                }
                for (name, below) in map {
                    if is_data(name) {
                        continue;
                    }
                    self.path.0.push(PathStep::Field(name.clone()));
                    self.visit(below);
                    self.path.0.pop();
                }
            }
            Value::Array(items) => {
                for (index, below) in items.iter().enumerate() {
                    self.path.0.push(PathStep::Index(index));
                    self.visit(below);
                    self.path.0.pop();
                }
            }
            _ => {}
        }
    }

    fn reference(&mut self, value: &'d Value, target: &'d str) {
        let document = self.document;
        let fault = *self
            .known
            .entry(target)
            .or_insert_with(|| resolve(document, value).err());
        let Some(fault) = fault else { return };
        let list = match fault {
            ReferenceError::Cycle => &mut self.checked.cycles,
            ReferenceError::Outside | ReferenceError::Missing => &mut self.checked.broken,
        };
        if list.len() < MAX_FINDINGS {
            let place = self.path.field("$ref");
            list.push(Finding::error(INVALID_REF, place, format!("'{target}' {fault}")));
        }
    }
}

/// Fields whose values are data, in which `$ref` means nothing.
fn is_data(name: &str) -> bool {
    matches!(name, "example" | "default" | "enum" | "const") || name.starts_with("x-")
}
