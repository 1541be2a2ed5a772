//! The search and the order of a list, and the begin of a page.

use super::index::IndexedRow;
use crate::api::problem::Problem;
use data_encoding::BASE64URL_NOPAD;
use std::cmp::Ordering;
use weir_model::overview::Row;

/// The conditions on rows.
pub struct Search {
    words: Vec<String>,
    fields: Vec<(Field, String)>,
}

/// A field that can be searched by itself.
#[derive(Clone, Copy, PartialEq)]
enum Field {
    Name,
    Dialect,
    Workspace,
    Host,
    Path,
    Method,
    Service,
    Upstream,
    Url,
    Target,
    Plugin,
    AppliesTo,
    Group,
    Credential,
    CustomId,
    Algorithm,
    ServerName,
    Label,
    Status,
}

const FIELDS: [(&str, Field); 19] = [
    ("name", Field::Name),
    ("dialect", Field::Dialect),
    ("workspace", Field::Workspace),
    ("host", Field::Host),
    ("path", Field::Path),
    ("method", Field::Method),
    ("service", Field::Service),
    ("upstream", Field::Upstream),
    ("url", Field::Url),
    ("target", Field::Target),
    ("plugin", Field::Plugin),
    ("applies-to", Field::AppliesTo),
    ("group", Field::Group),
    ("credential", Field::Credential),
    ("custom", Field::CustomId),
    ("algorithm", Field::Algorithm),
    ("server-name", Field::ServerName),
    ("label", Field::Label),
    ("status", Field::Status),
];

impl Search {
    /// Reads words and `FIELD:VALUE`. What has a colon and no known field before it is a word. Quotes keep words together;
    /// `*` stands for anything.
    pub fn parse(text: &str) -> Self {
        let (mut words, mut fields) = (Vec::new(), Vec::new());
        for word in split(&text.to_lowercase()) {
            let field = word.split_once(':').and_then(|(name, value)| {
                let (_, field) = FIELDS.iter().find(|(known, _)| *known == name)?;
                Some((*field, value.to_owned()))
            });
            match field {
                Some(field) => fields.push(field),
                None => words.push(word),
            }
        }
        Self { words, fields }
    }

    /// Whether a row holds all of it.
    pub fn takes(&self, row: &IndexedRow) -> bool {
        self.words.iter().all(|word| holds(&row.text, word))
            && (self.fields.iter()).all(|(field, wanted)| field.has(&row.row, wanted))
    }
}

/// Splits at spaces that stand in no quotes; a quote that is still open ends with the text.
fn split(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for character in text.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            _ if character.is_whitespace() && !is_quoted => words.push(String::new()),
            _ => words
                .last_mut()
                .expect("invariant: there is a word")
                .push(character),
        }
    }
    words.retain(|it| !it.is_empty());
    words
}

/// Whether a text has the parts between the `*` of a pattern, one after the other.
fn holds(text: &str, pattern: &str) -> bool {
    let mut rest = text;
    pattern.split('*').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

impl Field {
    fn has(self, row: &Row, wanted: &str) -> bool {
        let part = |text: &String| holds(&text.to_lowercase(), wanted);
        let whole = |text: &String| text.eq_ignore_ascii_case(wanted);
        match self {
            Self::Name => part(&row.name),
            Self::Dialect => row.dialect.as_str() == wanted,
            Self::Workspace => row.workspace.as_ref().is_some_and(whole),
            Self::Host => row.hosts.iter().any(part),
            Self::Path => row.paths.iter().any(part),
            Self::Method => row.methods.iter().any(whole),
            Self::Service => row.service.as_ref().is_some_and(part),
            Self::Upstream => row.upstream.as_ref().is_some_and(part),
            Self::Url => row.url.as_ref().is_some_and(part),
            Self::Target => row.targets.iter().any(part),
            Self::Plugin => row.plugins.iter().any(whole),
            Self::AppliesTo => row.applies_to.as_ref().is_some_and(part),
            Self::Group => row.groups.iter().any(whole),
            Self::Credential => row.credentials.iter().any(whole),
            Self::CustomId => row.custom_id.as_ref().is_some_and(part),
            Self::Algorithm => row.algorithm.as_ref().is_some_and(part),
            Self::ServerName => row.server_names.iter().any(part),
            Self::Label => {
                let (name, value) = wanted.split_once('=').unwrap_or((wanted, ""));
                row.labels.iter().any(|(known, its)| {
                    let has_value = value.is_empty() || its.eq_ignore_ascii_case(value);
                    // A tag may hold a `=` itself.
                    known.eq_ignore_ascii_case(wanted) || (known.eq_ignore_ascii_case(name) && has_value)
                })
            }
            Self::Status => match wanted {
                "enabled" => !row.is_disabled,
                "disabled" => row.is_disabled,
                _ => false,
            },
        }
    }
}

/// The order of rows.
pub struct Order {
    by: &'static str,
    is_reverse: bool,
}

/// The fields that rows are sorted by.
const ORDERS: [&str; 10] = [
    "name",
    "id",
    "dialect",
    "workspace",
    "host",
    "path",
    "service",
    "upstream",
    "url",
    "not-after",
];

impl Order {
    /// Reads a field, with `-` before it for the reverse.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let (is_reverse, name) = match text.strip_prefix('-') {
            Some(name) => (true, name),
            None => (false, text),
        };
        let by = ORDERS.into_iter().find(|it| *it == name).ok_or_else(|| {
            Problem::bad(format!(
                "sort: expected one of {}, found '{name}'",
                ORDERS.join(", ")
            ))
        })?;
        Ok(Self { by, is_reverse })
    }

    /// The sort key of a row.
    pub fn key(&self, row: &Row) -> String {
        let text = |text: Option<&String>| text.map(|it| it.to_lowercase()).unwrap_or_default();
        match self.by {
            "id" => row.id.clone(),
            "dialect" => row.dialect.as_str().to_owned(),
            "workspace" => text(row.workspace.as_ref()),
            "host" => text(row.hosts.first()),
            "path" => text(row.paths.first()),
            "service" => text(row.service.as_ref()),
            "upstream" => text(row.upstream.as_ref()),
            "url" => text(row.url.as_ref()),
            "not-after" => format!("{:020}", row.not_after.unwrap_or(u64::MAX)),
            _ => row.name.to_lowercase(),
        }
    }

    /// Which of two rows comes first. Rows of equal keys are ordered by their identifiers.
    pub fn compare(&self, one: (&str, &str), other: (&str, &str)) -> Ordering {
        match self.is_reverse {
            false => one.cmp(&other),
            true => other.cmp(&one),
        }
    }
}

/// The cursor of the page after this row.
pub fn cursor(key: &str, id: &str) -> String {
    BASE64URL_NOPAD.encode(serde_json::json!([key, id]).to_string().as_bytes())
}

/// The key and the identifier of a cursor.
pub fn read_cursor(text: &str) -> Result<(String, String), Problem> {
    let bytes = BASE64URL_NOPAD.decode(text.as_bytes()).ok();
    let read = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    read.ok_or_else(|| Problem::bad("cursor: expected what 'next' of a page says"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_words_together() {
        for (text, expected) in [
            ("a  b", vec!["a", "b"]),
            ("name:\"pet shop\" x", vec!["name:pet shop", "x"]),
            ("\"two words\"", vec!["two words"]),
            ("name:\"still typ", vec!["name:still typ"]),
            ("\"\" ", vec![]),
        ] {
            assert_eq!(split(text), expected, "{text}");
        }
    }

    #[test]
    fn stars_stand_for_anything() {
        for (text, pattern, expected) in [
            ("api.example.com", "*.example.com", true),
            ("*.example.com", "*.example.com", true),
            ("example.com", "*.example.com", false),
            ("/orders/1", "/o*/1", true),
            ("/orders/1", "1*o", false),
            ("anything", "*", true),
            ("orders", "rder", true),
        ] {
            assert_eq!(holds(text, pattern), expected, "{text} {pattern}");
        }
    }
}
