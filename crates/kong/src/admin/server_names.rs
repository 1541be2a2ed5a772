//! The server names of a certificate, which calls give with it and which are entities of their own.

use super::failure::Failure;
use crate::schema::text;
use serde_json::{Map, Value, json};

/// The changes of a call to other entities than its own.
#[derive(Debug, Default)]
pub struct ServerNameChange {
    /// The server names that a certificate has from now on; `None`: those that it has.
    pub server_names: Option<Vec<String>>,
}

/// Adds a server name to those that are given for a certificate.
pub fn add_server_name(given: &mut Map<String, Value>, name: &str) {
    match given.entry("snis").or_insert(Value::Null) {
        Value::Array(names) => {
            if !names.iter().any(|known| known == name) {
                names.push(name.into());
            }
        }
        // If none are given it has none from then on, this one included, as in the original.
        Value::Null => {}
        one if one == name => *one = json!([name]),
        one => *one = json!([one.take(), name]),
    }
}

/// The server names that are given for a certificate.
///
/// # Errors
/// If one of them is invalid, or is there twice.
pub fn read_server_names(given: &[Value]) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> = Vec::with_capacity(given.len());
    for (index, name) in given.iter().enumerate() {
        let message = match name.as_str() {
            None => Some("expected a string".to_owned()),
            Some(name) if names.iter().any(|known| known == name) => {
                return Err(Failure::of_field("snis", &format!("{name} is duplicated")));
            }
            Some(name) => text::certificate_name(name).err(),
        };
        if let Some(message) = message {
            let mut list = vec![Value::Null; index];
            list.push(message.into());
            return Err(Failure::schema_violation(json!({ "snis": list })));
        }
        names.extend(name.as_str().map(str::to_owned));
    }
    Ok(names)
}
