//! From a text to a value: JSON by a reader of JSON, everything else as YAML. Faults have a line and a column.

use super::json_text;
use super::{Finding, UNREADABLE};
use crate::finding::Position;
use saphyr_parser::Parser;
use serde_json::Value;
use weir_model::{DocPath, document};

/// The longest text, in bytes.
pub const MAX_BYTES: usize = 100 << 20;

/// Reads a text in JSON or YAML.
///
/// # Errors
/// What is wrong with it, at its line and column.
pub fn parse(text: &str) -> Result<Value, Finding> {
    let fail = |message: String, position: Position| {
        Finding::error(UNREADABLE, DocPath::root(), message).at(position)
    };
    if text.len() > MAX_BYTES {
        let message = format!("{} bytes: expected at most {MAX_BYTES}", text.len());
        return Err(fail(message, Position::START));
    }
    if text.trim_start().is_empty() {
        return Err(fail(
            "expected an OpenAPI document, found nothing".to_owned(),
            Position::START,
        ));
    }
    let looks_like_json = text.trim_start().starts_with(['{', '[']);
    if looks_like_json {
        if let Err(position) = json_text::check_size(text) {
            let message = format!("more than {} values", json_text::MAX_VALUES);
            return Err(fail(message, position));
        }
        match serde_json::from_str(text) {
            Ok(value) => return Ok(value),
            Err(error) => {
                // A YAML document may begin with a brace too, but few do; its faults are reported as faults of JSON.
                return document::parse(text).map_err(|_| {
                    let position = Position {
                        line: error.line().max(1),
                        column: error.column().max(1),
                    };
                    fail(format!("not JSON: {error}"), position)
                });
            }
        }
    }
    document::parse(text).map_err(|found| {
        let line = found.line.unwrap_or(1);
        fail(
            found.message,
            syntax_error(text).unwrap_or(Position { line, column: 1 }),
        )
    })
}

/// Where the text stops being YAML.
fn syntax_error(text: &str) -> Option<Position> {
    let error = Parser::new_from_str(text).find_map(Result::err)?;
    let marker = error.marker();
    Some(Position {
        line: marker.line().max(1),
        column: marker.col() + 1,
    })
}
