//! Whether what a document refers to is there.

use super::CheckContext;
use crate::document::id_text;
use serde_json::Value;

/// Checks that the document with an id is in a collection.
///
/// # Errors
/// In APISIX's words.
pub fn check(
    id: Option<&Value>,
    what: &str,
    collection: &str,
    around: CheckContext<'_>,
) -> Result<(), String> {
    let (Some(id), Some(state)) = (id.and_then(id_text), around.state) else {
        return Ok(());
    };
    match state.get(&format!("{collection}/{id}")) {
        Some(_) => Ok(()),
        None => Err(format!(
            "failed to fetch {what} info by {what} id [{id}], response code: 404"
        )),
    }
}
