//! The common part of all entities: labels, and reading one from a value with the places of faults.

use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;

/// Free labels.
pub type Labels = BTreeMap<String, String>;

/// Whether a field can be left out.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Reads an entity.
///
/// # Errors
/// The field that is wrong, and why.
pub fn parse<T: DeserializeOwned>(value: &Value) -> Result<T, (String, String)> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { path };
        (place, error.into_inner().to_string())
    })
}
