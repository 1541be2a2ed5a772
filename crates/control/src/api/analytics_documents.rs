//! Documents that are kept with the analytics: alert rules, boards and reports. What is the same for all of them: reading
//! one from a body, its id, writing it, and removing it.
//!
//! **What it is not**: it knows nothing of what a document says. The check of that is done before.

use super::analytics::{failed, wrong};
use super::problem::Problem;
use super::writing::tried;
use crate::analytics::{Analytics, AnalyticsStorage};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use weir_analytics::StoreError;
use weir_analytics::query::QueryError;
use weir_analytics::sqlite::InsertResult;

/// The largest document, in bytes.
const MAX_BYTES: usize = 256 << 10;
/// The longest id, in bytes.
const MAX_ID: usize = 100;

/// A kind of documents.
pub struct Kind {
    /// The name for one of them, such as `alert rule`.
    pub name: &'static str,
    /// Under which name the store has them.
    pub stored: &'static str,
    /// How many there may be.
    pub most: usize,
    /// Fields that answers have in addition to those of a document. A body may hold them; they are ignored.
    pub beside: &'static [&'static str],
}

/// A document that is to be written.
pub struct DocumentWrite<T> {
    /// The document.
    pub document: T,
    /// Its id.
    pub id: String,
    /// Whether it must not be there yet.
    pub is_new: bool,
    /// Whether it is only tried.
    pub is_dry: bool,
}

impl Kind {
    /// The document in a body.
    pub fn read<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, Problem> {
        if body.len() > MAX_BYTES {
            let detail = format!("the {} has more than {MAX_BYTES} bytes", self.name);
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
        }
        let mut document: Value = super::analytics::read(body)?;
        if let Some(fields) = document.as_object_mut() {
            self.beside.iter().for_each(|it| drop(fields.remove(*it)));
        }
        serde_json::from_value(document)
            .map_err(|error| Problem::bad(format!("the {} is not understood: {error}", self.name)))
    }

    /// No document has this id.
    pub fn missing(&self, id: &str) -> Problem {
        Problem::not_found(format_args!("the {} '{id}'", self.name))
    }

    /// Writes a document whose content is checked. `check` asks for what only the store knows; `shown` makes the answer.
    pub async fn write<T: Serialize + Send + 'static, S: Serialize + Send + 'static>(
        &'static self,
        analytics: &Analytics,
        written: DocumentWrite<T>,
        check: impl FnOnce(&AnalyticsStorage, &T) -> Result<(), StoreError> + Send + 'static,
        shown: impl FnOnce(&AnalyticsStorage, T) -> S + Send + 'static,
    ) -> Result<Response, Problem> {
        check_id(&written.id)?;
        let is_dry = written.is_dry;
        let placed = analytics.with(move |kept| {
            let DocumentWrite { document, id, .. } = written;
            check(kept, &document)?;
            let text =
                serde_json::to_string(&document).map_err(|error| StoreError::Engine(error.to_string()))?;
            let text = (!is_dry).then_some(text.as_str());
            let limits = (written.is_new, self.most);
            let placed = kept.documents.place_document((self.stored, &id), text, limits)?;
            Ok(match placed {
                InsertResult::Made => Ok((StatusCode::CREATED, shown(kept, document))),
                InsertResult::Replaced => Ok((StatusCode::OK, shown(kept, document))),
                InsertResult::Exists => Err(format!("the {} '{id}' exists already; use PUT", self.name)),
                InsertResult::Full => Err(format!("there are {} of them already: remove one", self.most)),
            })
        });
        match placed.await.map_err(failed)? {
            Err(conflict) => Err(Problem::new(StatusCode::CONFLICT, conflict)),
            Ok((status, answer)) if is_dry => Ok(tried((status, Json(answer)))),
            Ok((status, answer)) => Ok((status, Json(answer)).into_response()),
        }
    }

    /// Removes a document.
    pub async fn remove(&'static self, analytics: &Analytics, id: &str) -> Result<StatusCode, Problem> {
        let wanted = id.to_owned();
        let removed = analytics.with(move |kept| kept.documents.remove_document(self.stored, &wanted));
        match removed.await.map_err(failed)? {
            true => Ok(StatusCode::NO_CONTENT),
            false => Err(self.missing(id)),
        }
    }
}

/// An id of a name: small letters, digits and dashes.
pub fn id_of(name: &str) -> String {
    let mut id = String::new();
    for character in name.chars().take(MAX_ID) {
        match character.to_ascii_lowercase() {
            letter @ ('a'..='z' | '0'..='9') => id.push(letter),
            _ if id.ends_with('-') || id.is_empty() => {}
            _ => id.push('-'),
        }
    }
    id.trim_end_matches('-').to_owned()
}

/// Checks the id of a document.
fn check_id(id: &str) -> Result<(), Problem> {
    let is_good = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    match !id.is_empty() && id.len() <= MAX_ID && id.chars().all(is_good) {
        true => Ok(()),
        false => {
            let message = format!("'{id}' is not a valid id: write letters, digits, '-', '_' or '.'");
            Err(wrong(&QueryError::new("id", message)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind {
        name: "note",
        stored: "note",
        most: 2,
        beside: &["seen"],
    };

    #[test]
    fn bodies_are_read_without_what_answers_add() {
        let read = KIND.read::<std::collections::BTreeMap<String, u8>>(br#"{"a": 1, "seen": "x"}"#);
        assert_eq!(read.expect("read").len(), 1);
        let refused = KIND
            .read::<u8>(&vec![b' '; MAX_BYTES + 1])
            .expect_err("too large");
        assert!(refused.to_string().contains("bytes"), "{refused}");
        assert!(KIND.read::<u8>(b"{").is_err());
    }

    #[test]
    fn ids_are_made_of_names_and_checked() {
        for (name, id) in [
            ("The week", "the-week"),
            ("  5xx > 2 %! ", "5xx-2"),
            ("ä", ""),
            ("a/b", "a-b"),
        ] {
            assert_eq!(id_of(name), id);
            assert_eq!(check_id(&id_of(name)).is_ok(), !id.is_empty());
        }
        assert!(check_id(&"a".repeat(MAX_ID + 1)).is_err());
        assert!(check_id("a/b").is_err());
    }
}
