//! The fields of a plugin's configuration as rows of a table, read from its schema. Here is what reads a JSON Schema; a
//! dialect whose original describes fields in another way reads them itself.
//!
//! A field of a map has the map's name before it (`batch.delay_ms`), one of the maps in a list `[]` between them
//! (`limits[].count`), one of maps that have names of their own `*` (`pages.*.body`).

mod json_schema;

pub use json_schema::of_json_schema;

use serde_json::Value;

/// A default that is longer as JSON is left to the schema.
const LONGEST_DEFAULT: usize = 300;

/// The part of a plugin's configuration that a table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigPart {
    /// What stands at a route, a service or elsewhere.
    Plugin,
    /// What stands at a consumer: a credential.
    Consumer,
    /// What stands once for all instances.
    Metadata,
}

/// A table of fields.
#[derive(Debug)]
pub struct FieldTable {
    /// The part that it is about.
    pub part: ConfigPart,
    /// Its rows.
    pub fields: Vec<Field>,
}

/// A row.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub struct Field {
    /// Its name, with those of the maps that it is in.
    pub path: String,
    /// The type of its values.
    pub is: String,
    /// Its default, or `required`; empty: it can be left out.
    pub default: String,
    /// Its meaning; empty if the schema does not say.
    pub meaning: String,
}

/// A default as it stands in a row.
pub fn display_default(default: &Value) -> String {
    let json = default.to_string();
    match json.len() > LONGEST_DEFAULT {
        true => "in the schema".to_owned(),
        false => format!("`{json}`"),
    }
}

/// A value as it is written: texts without quotes.
pub fn display_plain(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        Value::Null => String::new(),
        other => format!("`{other}`"),
    }
}

/// Several of what a word says.
pub fn many(word: &str) -> String {
    for (one, several) in [
        ("text", "texts"),
        ("number", "numbers"),
        ("map", "maps"),
        ("list", "lists"),
    ] {
        if let Some(rest) = word.strip_prefix(one).filter(|rest| !rest.starts_with('s')) {
            return format!("{several}{rest}");
        }
    }
    word.to_owned()
}

/// The bounds of a number, behind the word for it.
pub fn bounds(least: Option<f64>, most: Option<f64>) -> String {
    match (least, most) {
        (Some(least), Some(most)) if least == most => format!(", {least}"),
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) => format!(", at least {least}"),
        (None, Some(most)) => format!(", at most {most}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
fn rows(fields: &[Field]) -> Vec<[&str; 4]> {
    let mut rows = Vec::new();
    for field in fields {
        rows.push([&field.path, &field.is, &field.default, &field.meaning].map(String::as_str));
    }
    rows
}
