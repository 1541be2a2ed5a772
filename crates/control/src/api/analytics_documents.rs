//! Documents that are kept with the analytics: alert rules, boards and reports. What is the same for all of them:
//! reading one from a body, its id, writing it, and removing it.
//!
//! **What it is not**: it knows nothing of what a document says. The check of that is done before.

use super::analytics::{failed, wrong};
use super::is_dry_run;
use super::json_body;
use super::precondition::{Precondition, tag_of_content, with_tag};
use super::problem::Problem;
use super::writing::tried;
use crate::analytics::{Analytics, AnalyticsStorage};
use crate::api::json_body::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use weir_analytics::StoreError;
use weir_analytics::query::QueryError;
use weir_analytics::sqlite::{InsertResult, RemoveResult};

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
    /// Which version it may replace.
    pub precondition: Precondition,
}

/// The version of a document as it is stored. One that is not understood has another one than any that was read.
fn tag_of_stored<T: Serialize + DeserializeOwned>(text: &str) -> String {
    match serde_json::from_str::<T>(text) {
        Ok(document) => tag_of_content(&document),
        Err(_) => tag_of_content(&text),
    }
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
        json_body::read(&document)
    }

    /// No document has this id.
    pub fn missing(&self, id: &str) -> Problem {
        Problem::not_found(format_args!("the {} '{id}'", self.name))
    }

    /// Writes a document whose content is checked. `check` asks for what only the store knows; `shown` makes the
    /// answer.
    pub async fn write<T: Serialize + DeserializeOwned + Send + 'static, S: Serialize + Send + 'static>(
        &'static self,
        analytics: &Analytics,
        written: DocumentWrite<T>,
        check: impl FnOnce(&AnalyticsStorage, &T) -> Result<(), StoreError> + Send + 'static,
        to_response: impl FnOnce(&AnalyticsStorage, T) -> S + Send + 'static,
    ) -> Result<Response, Problem> {
        check_id(&written.id)?;
        let (is_dry, what) = (written.is_dry, format!("the {} '{}'", self.name, written.id));
        let tag = tag_of_content(&written.document);
        let placed = analytics.with(move |kept| {
            let DocumentWrite {
                document,
                id,
                precondition,
                ..
            } = written;
            check(kept, &document)?;
            let text =
                serde_json::to_string(&document).map_err(|error| StoreError::Engine(error.to_string()))?;
            let text = (!is_dry).then_some(text.as_str());
            let limits = (written.is_new, self.most);
            let mut was_there = false;
            let placed = kept
                .documents
                .place_document((self.stored, &id), text, limits, |there| {
                    was_there = there.is_some();
                    precondition.holds_tag(there.map(tag_of_stored::<T>).as_deref())
                })?;
            Ok(match placed {
                InsertResult::Made => Ok((StatusCode::CREATED, to_response(kept, document))),
                InsertResult::Replaced => Ok((StatusCode::OK, to_response(kept, document))),
                InsertResult::Exists => Err(conflict(format!(
                    "the {} '{id}' exists already; use PUT",
                    self.name
                ))),
                InsertResult::Full => Err(conflict(format!(
                    "there are {} of them already: remove one",
                    self.most
                ))),
                InsertResult::Changed => Err(precondition.refusal_of(&what, was_there)),
            })
        });
        match placed.await.map_err(failed)? {
            Err(problem) => Err(problem),
            Ok((status, answer)) if is_dry => Ok(tried((status, Json(answer)))),
            Ok((status, answer)) => {
                let answer = (status, Json(answer)).into_response();
                Ok(with_tag(answer, Some(&tag)))
            }
        }
    }

    /// Removes a document, if it is the version that the call names.
    pub async fn remove<T: Serialize + DeserializeOwned>(
        &'static self,
        analytics: &Analytics,
        id: &str,
        headers: &HeaderMap,
    ) -> Result<Response, Problem> {
        let is_dry = is_dry_run(headers);
        let (wanted, precondition) = (id.to_owned(), Precondition::of(headers));
        let removed = analytics.with(move |kept| {
            let may_remove = |there: &str| precondition.holds_tag(Some(&tag_of_stored::<T>(there)));
            let removed = kept
                .documents
                .remove_document((self.stored, &wanted), is_dry, may_remove)?;
            Ok((removed, precondition))
        });
        match removed.await.map_err(failed)? {
            (RemoveResult::Removed, _) if is_dry => Ok(tried(StatusCode::NO_CONTENT)),
            (RemoveResult::Removed, _) => Ok(StatusCode::NO_CONTENT.into_response()),
            (RemoveResult::Missing, _) => Err(self.missing(id)),
            (RemoveResult::Changed, precondition) => {
                Err(precondition.refusal_of(&format!("the {} '{id}'", self.name), true))
            }
        }
    }
}

fn conflict(detail: String) -> Problem {
    Problem::new(StatusCode::CONFLICT, detail)
}

/// An id of a name: small letters, digits and dashes.
pub fn id_of(name: &str) -> String {
    let mut id = String::new();
    for character in name.chars().take(MAX_ID) {
        match character.to_ascii_lowercase() {
            ch @ ('a'..='z' | '0'..='9') => id.push(ch),
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
        let refused = KIND
            .read::<std::collections::BTreeMap<String, u8>>(br#"{"a": "x"}"#)
            .expect_err("another type");
        assert_eq!(refused.body()["errors"][0]["path"], "a", "{refused}");
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
