//! Which version of a document a call wants to change: `If-Match` and `If-None-Match` (RFC 9110), and who has stored
//! another one since. The version of a document is the revision that changed it last; reads say it as the `ETag`.

use super::problem::{LastChange, Problem};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use serde::Serialize;
use weir_model::unix_time;
use weir_store::{Key, Revision, Store};

/// Entries of the history that are looked through for a document that is gone.
const LOOKED_THROUGH: usize = 100;

/// The `ETag` of a version.
pub fn tag_of(revision: Revision) -> String {
    format!("\"{revision}\"")
}

/// The `ETag` of a document whose version is no revision of the store: a hash of what is stored.
pub fn tag_of_content(document: &impl Serialize) -> String {
    let text = serde_json::to_string(document).unwrap_or_default();
    format!("\"{}\"", &weir_apis::hash::of_bytes(text.as_bytes())[..32])
}

/// An answer with the version of what it shows.
pub fn tagged(answer: Response, version: Option<Revision>) -> Response {
    let tag = version.map(tag_of);
    with_tag(answer, tag.as_deref())
}

/// The same with a tag that is made already.
pub fn with_tag(mut answer: Response, tag: Option<&str>) -> Response {
    // Digits between quotes.
    if let Some(Ok(tag)) = tag.map(HeaderValue::from_str) {
        answer.headers_mut().insert(header::ETAG, tag);
    }
    answer
}

/// The version that a call wants to change.
#[derive(Debug, Default)]
pub struct Precondition {
    /// The versions of which there has to be one.
    matches: Option<String>,
    /// Those of which there may be none.
    matches_not: Option<String>,
}

impl Precondition {
    /// Reads the headers of a call.
    pub fn of(headers: &HeaderMap) -> Self {
        let text = |name| {
            let value: &HeaderValue = headers.get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            matches: text(header::IF_MATCH),
            matches_not: text(header::IF_NONE_MATCH),
        }
    }

    /// The same as `If-Match`, from a body.
    pub fn matching(tag: Option<&str>) -> Self {
        Self {
            matches: tag.map(str::to_owned),
            matches_not: None,
        }
    }

    /// Whether a version may be changed; `None`: there is no document yet.
    pub fn holds(&self, version: Option<Revision>) -> bool {
        self.holds_tag(version.map(tag_of).as_deref())
    }

    /// The same of a document whose version is no revision of the store.
    pub fn holds_tag(&self, tag: Option<&str>) -> bool {
        self.matches.as_deref().is_none_or(|it| names(it, tag))
            && !self.matches_not.as_deref().is_some_and(|it| names(it, tag))
    }

    /// The refusal of a change of another version, of a document without a history.
    pub fn refusal_of(&self, what: &str, is_there: bool) -> Problem {
        let detail = match (is_there, &self.matches) {
            (true, None) => format!("{what} already exists, and If-None-Match requires that it does not"),
            (true, Some(_)) => {
                format!("{what} was changed: its ETag is not the one in If-Match; read it again")
            }
            (false, _) => format!("{what} does not exist, and If-Match requires a version of it"),
        };
        Problem::precondition(detail, None)
    }

    /// The refusal of a change that was begun with another version than the one that is there, whatever the call says
    /// of versions.
    pub async fn overtaken(&self, store: &dyn Store, key: &Key, version: Option<Revision>) -> Problem {
        if !self.holds(version) {
            return self.refusal(store, key, version).await;
        }
        let what = key.as_str().split_once('/').map_or("", |(_, what)| what);
        let changed = last_change(store, key, version).await;
        let by = changed.as_ref().map_or_else(String::new, |it| {
            format!(" by {} in revision {}", it.author, it.revision)
        });
        Problem::precondition(
            format!("{what} was changed{by} at the same time: read it and try again"),
            changed,
        )
    }

    /// The refusal of a change of another version than the one that is there (`None`: no version), with the user who
    /// has stored that one.
    pub async fn refusal(&self, store: &dyn Store, key: &Key, version: Option<Revision>) -> Problem {
        let what = key.as_str().split_once('/').map_or("", |(_, what)| what);
        let tag = version.map(tag_of);
        let is_matched = self.matches.as_deref().is_none_or(|it| names(it, tag.as_deref()));
        let changed = last_change(store, key, version).await;
        let by = changed.as_ref().map_or_else(String::new, |it| {
            format!(" by {} in revision {}", it.author, it.revision)
        });
        let detail = match (is_matched, version) {
            (true, _) => format!("{what} already exists, and If-None-Match requires that it does not"),
            (false, Some(_)) => {
                format!("{what} was changed{by}: its ETag is not the one in If-Match; read it again")
            }
            (false, None) => format!("{what} does not exist, and If-Match requires a version of it"),
        };
        Problem::precondition(detail, changed)
    }
}

/// Whether a version is one of those that are named. `*` names whatever there is. A proxy that compresses answers makes
/// their tags weak (RFC 9110, section 8.8.1), and a tag names what is stored, not its bytes on the way: `W/"7"` is
/// taken as `"7"`.
pub fn names(tags: &str, tag: Option<&str>) -> bool {
    let Some(tag) = tag else {
        return false;
    };
    tags.split(',')
        .map(str::trim)
        .any(|named| named == "*" || named.strip_prefix("W/").unwrap_or(named) == tag)
}

/// The last change of a document, if the store still knows it.
async fn last_change(store: &dyn Store, key: &Key, version: Option<Revision>) -> Option<LastChange> {
    // Other keys may begin like this one. A version is the commit that made it, and the history shows a commit whole.
    let (before, limit) = match version {
        Some(version) => (Some(Revision(version.0.saturating_add(1))), 1),
        None => (None, LOOKED_THROUGH),
    };
    let entries = store.history(key.as_str(), before, limit).await.ok()?;
    let entry = entries.into_iter().find(|it| it.key == *key)?;
    Some(LastChange {
        revision: entry.revision.0,
        author: entry.author,
        time: unix_time::seconds(entry.time),
    })
}

#[cfg(test)]
mod tests {

    use super::*;
    use std::time::{Duration, SystemTime};
    use weir_store::memory::MemoryStore;
    use weir_store::{Change, Transaction};

    #[test]
    fn a_change_is_made_if_the_version_is_the_one_that_is_named() {
        const THERE: Option<Revision> = Some(Revision(7));
        for (headers, version, expected) in [
            (&[][..], THERE, true),
            (&[], None, true),
            (&[("if-match", "\"7\"")], THERE, true),
            (&[("if-match", "\"6\", \"7\"")], THERE, true),
            (&[("if-match", "W/\"7\"")], THERE, true),
            (&[("if-match", "\"5\", W/\"7\"")], THERE, true),
            (&[("if-match", "W/\"6\"")], THERE, false),
            (&[("if-match", "W/7")], THERE, false),
            (&[("if-match", "*")], THERE, true),
            (&[("if-match", "*")], None, false),
            (&[("if-match", "\"6\"")], THERE, false),
            (&[("if-match", "7")], THERE, false),
            (&[("if-match", "\"7\"")], None, false),
            (&[("if-match", "")], THERE, false),
            (&[("if-none-match", "*")], None, true),
            (&[("if-none-match", "*")], THERE, false),
            (&[("if-none-match", "\"6\"")], THERE, true),
            (&[("if-none-match", "\"7\"")], THERE, false),
            (&[("if-match", "\"7\""), ("if-none-match", "*")], THERE, false),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(*name, HeaderValue::from_static(value));
            }
            assert_eq!(
                Precondition::of(&map).holds(version),
                expected,
                "{headers:?} {version:?}"
            );
        }
    }

    #[tokio::test]
    async fn a_refusal_says_who_changed_it_last_and_when() {
        let store = MemoryStore::new();
        let key = |name: &str| Key::new(name).expect("a key");
        let (one, longer) = (key("apis/portals/main"), key("apis/portals/main-2"));
        let commits = [
            ("alice", Change::put(one.clone(), *b"1")),
            ("bob", Change::put(one.clone(), *b"2")),
            ("carol", Change::put(longer.clone(), *b"3")),
            ("dave", Change::Delete { key: longer.clone() }),
        ];
        let mut revisions = Vec::new();
        for (index, (author, change)) in commits.into_iter().enumerate() {
            let transaction = Transaction {
                author: author.to_owned(),
                note: String::new(),
                time: SystemTime::UNIX_EPOCH + Duration::from_secs(index as u64),
                changes: vec![change],
            };
            revisions.push(store.append(transaction).await.expect("a commit"));
        }
        for (key, version, expected) in [
            (&one, Some(revisions[1]), Some(("bob", 1))),
            (&one, Some(revisions[0]), Some(("alice", 0))),
            (&longer, None, Some(("dave", 3))),
            (&key("apis/portals/none"), None, None),
        ] {
            let found = last_change(&store, key, version).await;
            let found = found.as_ref().map(|it| (it.author.as_str(), it.time));
            assert_eq!(found, expected, "{key}");
        }
    }
}
