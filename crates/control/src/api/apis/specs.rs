//! Uploaded texts: kept by their hashes, in pieces that every store can hold, and read as descriptions.

use super::library::{Library, PREFIX};
use crate::api::Problem;
use std::sync::{Arc, Mutex, PoisonError};
use weir_apis::openapi::{self, Description};
use weir_apis::{Finding, hash};

/// The longest piece, in bytes.
const PIECE: usize = 512 << 10;
/// Descriptions that are kept for the next write.
const KEPT: usize = 16;

/// Descriptions that were read lately.
static READ: Mutex<Vec<(String, Arc<Description>)>> = Mutex::new(Vec::new());

fn prefix(hash: &str) -> String {
    format!("{PREFIX}specs/{hash}/")
}

/// Keeps a text. Gives its hash.
pub fn keep(library: &mut Library, text: &str) -> Result<String, Problem> {
    let hash = hash::of_bytes(text.as_bytes());
    for (number, piece) in text.as_bytes().chunks(PIECE).enumerate() {
        library.put_bytes(&format!("{}{number:04}", prefix(&hash)), piece)?;
    }
    Ok(hash)
}

/// A text that was kept.
pub fn text(library: &Library, hash: &str) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    for key in library.keys(&prefix(hash)) {
        bytes.extend_from_slice(library.bytes(key.as_str()).unwrap_or_default());
    }
    match bytes.is_empty() {
        true => Err(Problem::not_found(format_args!("the document {hash}"))),
        false => String::from_utf8(bytes).map_err(|error| Problem::unreadable(error.to_string())),
    }
}

/// Reads a text as a description.
pub fn read(text: &str) -> Result<Arc<Description>, Problem> {
    let hash = hash::of_bytes(text.as_bytes());
    let mut known = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, found)) = known.iter().find(|(it, _)| *it == hash) {
        return Ok(Arc::clone(found));
    }
    let description = Arc::new(openapi::read(text).map_err(|found| unreadable(&found))?);
    if known.len() >= KEPT {
        known.remove(0);
    }
    known.push((hash, Arc::clone(&description)));
    Ok(description)
}

/// The description of a text that was kept.
pub fn description(library: &Library, hash: &str) -> Result<Arc<Description>, Problem> {
    {
        let known = READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = known.iter().find(|(it, _)| it == hash) {
            return Ok(Arc::clone(found));
        }
    }
    read(&text(library, hash)?)
}

/// Why a text is no description, with lines and columns.
pub fn unreadable(found: &[Finding]) -> Problem {
    let errors = found
        .iter()
        .map(|it| (it.path.to_string(), it.to_string()))
        .collect();
    Problem::step("lint", errors)
}
