//! Uploaded texts: kept by their hashes, in pieces that every store can hold, and read as descriptions.

use super::entity_snapshot::{EntitySnapshot, PREFIX};
use crate::api::Problem;
use crate::run_blocking::run_blocking;
use std::sync::{Arc, Mutex, PoisonError};
use weir_apis::lint::{self, Options, Ruleset};
use weir_apis::openapi::{self, Description};
use weir_apis::{Finding, diff, hash};

/// The longest piece, in bytes.
const PIECE: usize = 512 << 10;
/// Descriptions that are kept for the next write, and the bytes of their texts.
const KEPT: usize = 16;
const KEPT_BYTES: usize = 16 << 20;

/// Descriptions that were read lately: the hash and the length of the text.
static READ: Mutex<Vec<(String, usize, Arc<Description>)>> = Mutex::new(Vec::new());

fn prefix(hash: &str) -> String {
    format!("{PREFIX}specs/{hash}/")
}

/// Keeps a text. Returns its hash.
pub fn keep(snapshot: &mut EntitySnapshot, text: &str) -> Result<String, Problem> {
    let hash = hash::of_bytes(text.as_bytes());
    for (number, piece) in text.as_bytes().chunks(PIECE).enumerate() {
        snapshot.put_bytes(&format!("{}{number:04}", prefix(&hash)), piece)?;
    }
    Ok(hash)
}

/// A text that was kept.
pub fn text(snapshot: &EntitySnapshot, hash: &str) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    for key in snapshot.keys(&prefix(hash)) {
        bytes.extend_from_slice(snapshot.bytes(key.as_str()).unwrap_or_default());
    }
    match bytes.is_empty() {
        true => Err(Problem::not_found(format_args!("the document {hash}"))),
        false => String::from_utf8(bytes).map_err(|error| Problem::unreadable(error.to_string())),
    }
}

/// A description that was read lately.
fn known(hash: &str) -> Option<Arc<Description>> {
    let known = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known.iter().find(|(it, _, _)| it == hash);
    found.map(|(_, _, found)| Arc::clone(found))
}

/// Reads a text as a description.
pub fn read(text: &str) -> Result<Arc<Description>, Problem> {
    let hash = hash::of_bytes(text.as_bytes());
    if let Some(found) = known(&hash) {
        return Ok(found);
    }
    let description = run_blocking(|| openapi::read(text)).map_err(|found| unreadable(&found))?;
    let description = Arc::new(description);
    let mut known = READ.lock().unwrap_or_else(PoisonError::into_inner);
    known.push((hash, text.len(), Arc::clone(&description)));
    // The latest one is kept, however large it is: what reads it next is part of the same write.
    let is_too_much = |known: &[(String, usize, Arc<Description>)]| {
        known.len() > KEPT || known.iter().map(|it| it.1).sum::<usize>() > KEPT_BYTES
    };
    while known.len() > 1 && is_too_much(&known) {
        known.remove(0);
    }
    Ok(description)
}

/// The description of a text that was kept.
pub fn description(snapshot: &EntitySnapshot, hash: &str) -> Result<Arc<Description>, Problem> {
    match known(hash) {
        Some(found) => Ok(found),
        None => read(&text(snapshot, hash)?),
    }
}

/// What lint finds in a text and its description.
pub fn findings(
    text: &str,
    description: &Description,
    ruleset: &Ruleset,
    options: Options<'_>,
) -> Vec<Finding> {
    run_blocking(|| lint::run(text, description, ruleset, options))
}

/// What differs between two descriptions.
pub fn difference(before: &Description, after: &Description) -> diff::Diff {
    run_blocking(|| diff::diff(before, after))
}

/// Why a text is no description, with lines and columns.
pub fn unreadable(found: &[Finding]) -> Problem {
    let errors = found
        .iter()
        .map(|it| (it.path.to_string(), it.to_string()))
        .collect();
    Problem::step("lint", errors)
}

/// Reads a severities file; without one, the recommended rules count.
pub fn ruleset(text: Option<&str>) -> Result<Ruleset, Problem> {
    match text {
        Some(text) => Ruleset::parse(text).map_err(|found| unreadable(&found)),
        None => Ok(Ruleset::default()),
    }
}
