//! When a document expires: the time is kept in the document, so that its history shows it. No dialect shows it.

use serde_json::Value;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use weir_model::unix_time;

/// The field with the end, in milliseconds since 1970.
const FIELD: &str = "_ends_at";

/// Notes the end in a document.
pub(crate) fn set(document: &mut Value, end: SystemTime) {
    if let Some(fields) = document.as_object_mut() {
        fields.insert(FIELD.to_owned(), unix_time::millis(end).into());
    }
}

/// Takes the end out of a document that was read.
pub(crate) fn strip(document: &mut Value) {
    if let Some(fields) = document.as_object_mut() {
        fields.shift_remove(FIELD);
    }
}

/// When a document of the store goes by itself; `None`: it stays.
pub fn end_of(document: &[u8]) -> Option<SystemTime> {
    // Most documents have no end, and are not read.
    let has_field = document.windows(FIELD.len()).any(|part| part == FIELD.as_bytes());
    let document: Value = has_field.then(|| serde_json::from_slice(document).ok())??;
    UNIX_EPOCH.checked_add(Duration::from_millis(document.get(FIELD)?.as_u64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_noted_and_taken_out() {
        let end = UNIX_EPOCH + Duration::from_millis(1500);
        let plain = serde_json::json!({"uri": "/", "desc": "_ends_at"});
        let mut document = plain.clone();
        set(&mut document, end);
        assert_eq!(end_of(document.to_string().as_bytes()), Some(end));
        strip(&mut document);
        assert_eq!(document, plain);
        for none in [plain.to_string().as_str(), "_ends_at", ""] {
            assert_eq!(end_of(none.as_bytes()), None, "{none}");
        }
    }
}
