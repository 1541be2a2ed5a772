//! Values that pass between nodes, and the parts of messages that are made of them. What it is not: where values come from
//! and go to.

use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;
use weir_plugin::headers::{is_name, is_value};
use weir_plugin::uri::{decode_form, query_pairs};
use weir_plugin::{Headers, WorkBudget};
use weir_plugins_shared::header_edits::is_own;
use weir_plugins_shared::http_request::add_form_argument;

/// Bytes that a value takes besides what it holds.
const VALUE_BYTES: usize = 72;
/// Bytes that a member takes besides those of its name and what its value holds.
const MEMBER_BYTES: usize = 112;
/// Bytes of an object that has members: besides these, which have room for four at least.
const OBJECT_BYTES: usize = 64;
/// A larger value is kept as a text while something is waited for.
const MAX_TREE: usize = 16 << 10;

/// A value. A copy shares what it holds.
#[derive(Debug, Clone)]
pub(super) enum Datum {
    Json(Arc<Value>),
    /// A body that is neither JSON nor UTF-8.
    Bytes(Arc<[u8]>),
    /// A list or an object as JSON, which takes far less memory than its value.
    Packed(Arc<[u8]>),
}

/// A value that cannot be what it is used as.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub(super) struct Mismatch(pub(super) &'static str);

impl Datum {
    pub(super) fn null() -> Self {
        Self::json(Value::Null)
    }

    pub(super) fn json(value: impl Into<Value>) -> Self {
        Self::Json(Arc::new(value.into()))
    }

    /// A text, or what is none.
    pub(super) fn of_bytes(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::json(text),
            Err(error) => Self::Bytes(error.into_bytes().into()),
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Json(value) if value.is_null())
    }

    /// The value as JSON; bytes that are no text are replaced.
    pub(super) fn value(&self) -> Arc<Value> {
        match self {
            Self::Json(value) => Arc::clone(value),
            Self::Bytes(bytes) => Arc::new(String::from_utf8_lossy(bytes).into_owned().into()),
            Self::Packed(text) => Arc::new(serde_json::from_slice(text).unwrap_or_default()),
        }
    }

    /// A copy of the value as JSON.
    pub(super) fn to_json(&self) -> Value {
        Arc::unwrap_or_clone(self.value())
    }

    /// As it is kept while something is waited for.
    pub(super) fn packed(self) -> Self {
        match &self {
            Self::Json(value) if value.is_array() || value.is_object() => match size(value) > MAX_TREE {
                true => Self::Packed(value.to_string().into_bytes().into()),
                false => self,
            },
            _ => self,
        }
    }

    /// As it is used.
    pub(super) fn unpacked(self) -> Self {
        match self {
            Self::Packed(_) => Self::Json(self.value()),
            other => other,
        }
    }

    /// The value of a member; null if there is none.
    pub(super) fn member(&self, name: &str) -> Self {
        match self {
            Self::Bytes(_) => Self::null(),
            other => (other.value().get(name).cloned()).map_or_else(Self::null, Self::json),
        }
    }

    /// The bytes of a text, a number or a truth value; `None`: null.
    pub(super) fn text(&self) -> Result<Option<Cow<'_, [u8]>>, Mismatch> {
        let text = |text: String| Ok(Some(Cow::Owned(text.into_bytes())));
        match self {
            Self::Bytes(bytes) => Ok(Some(Cow::Borrowed(bytes))),
            Self::Packed(_) => Err(Mismatch("a text")),
            Self::Json(value) => match &**value {
                Value::Null => Ok(None),
                Value::String(text) => Ok(Some(Cow::Borrowed(text.as_bytes()))),
                Value::Number(number) => text(number.to_string()),
                Value::Bool(truth) => text(truth.to_string()),
                Value::Array(_) | Value::Object(_) => Err(Mismatch("a text")),
            },
        }
    }

    /// A whole number, also as a text; `None`: null.
    pub(super) fn whole_number(&self) -> Result<Option<u64>, Mismatch> {
        let expected = Mismatch("a whole number");
        let Self::Json(value) = self else {
            return Err(expected);
        };
        match &**value {
            Value::Null => Ok(None),
            Value::Number(number) => {
                let rounded = number
                    .as_f64()
                    .filter(|it| it.fract() == 0.0 && (0.0..9e15).contains(it));
                rounded.map(|it| Some(it as u64)).ok_or(expected)
            }
            Value::String(text) => text.parse().map(Some).map_err(|_| expected),
            _ => Err(expected),
        }
    }

    pub(super) fn truth(&self) -> Result<bool, Mismatch> {
        match self {
            Self::Json(value) => value.as_bool().ok_or(Mismatch("true or false")),
            Self::Bytes(_) | Self::Packed(_) => Err(Mismatch("true or false")),
        }
    }

    /// About how many bytes it takes in memory.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Json(value) => size(value),
            Self::Bytes(bytes) | Self::Packed(bytes) => VALUE_BYTES + bytes.len(),
        }
    }

    /// The steps of the work of using it: one for each value and for each 64 bytes of texts.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Json(value) => weight(value),
            Self::Bytes(bytes) | Self::Packed(bytes) => 1 + bytes.len() / 64,
        }
    }
}

/// About how many bytes a value takes in memory.
fn size(value: &Value) -> usize {
    VALUE_BYTES + held(value)
}

/// About how many bytes a value takes besides itself.
fn held(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) if !members.is_empty() => {
            let names: usize = (members.iter())
                .map(|(name, value)| name.len() + held(value))
                .sum();
            OBJECT_BYTES + MEMBER_BYTES * members.len().max(4) + names
        }
        _ => 0,
    }
}

fn weight(value: &Value) -> usize {
    1 + match value {
        Value::String(text) => text.len() / 64,
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => (members.iter())
            .map(|(name, value)| name.len() / 64 + weight(value))
            .sum(),
        _ => 0,
    }
}

/// Whether a `Content-Type` names JSON.
fn is_json(content_type: &[u8]) -> bool {
    let end = memchr::memchr(b';', content_type).unwrap_or(content_type.len());
    let media_type = content_type[..end].trim_ascii().to_ascii_lowercase();
    media_type == b"application/json" || media_type.ends_with(b"+json")
}

/// How often nodes may go through a body whose values are as many as can be, in steps for each of its bytes.
const STEPS_OF_BYTE: usize = 4;

/// What a body is: the value of its JSON, if its `Content-Type` names that, and else its text. An empty one is null. The call may do
/// more work for it, so that what takes time in proportion to the body is done.
pub(super) fn read_body(
    content_type: Option<&[u8]>,
    body: &[u8],
    work: &WorkBudget,
) -> Result<Datum, Mismatch> {
    work.allow_pass(body.len().saturating_mul(STEPS_OF_BYTE));
    match content_type {
        _ if body.is_empty() => Ok(Datum::null()),
        Some(content_type) if is_json(content_type) => {
            let value: Value = serde_json::from_slice(body).map_err(|_| Mismatch("a body that is JSON"))?;
            Ok(Datum::json(value))
        }
        _ => Ok(Datum::of_bytes(body.to_vec())),
    }
}

/// A text, or a list of texts if there are several of a name.
fn add(map: &mut Map<String, Value>, name: String, value: Value) {
    match map.get_mut(&name) {
        None => drop(map.insert(name, value)),
        Some(Value::Array(values)) => values.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
    }
}

/// Headers as an object, with the names as they came.
pub(super) fn headers_object(headers: &Headers) -> Datum {
    let mut map = Map::new();
    for header in headers.iter() {
        let name = String::from_utf8_lossy(header.name).into_owned();
        let value = String::from_utf8_lossy(header.value).into_owned();
        // Of names that differ only in case, the first counts.
        let spelling = map
            .keys()
            .find(|known: &&String| known.eq_ignore_ascii_case(&name));
        let name = spelling.cloned().unwrap_or(name);
        add(&mut map, name, value.into());
    }
    Datum::json(Value::Object(map))
}

/// The arguments of a query as an object, decoded. One without `=` is empty.
pub(super) fn query_object(query: &[u8]) -> Datum {
    let mut map = Map::new();
    for (name, value) in query_pairs(query) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(&decode_form(bytes)).into_owned();
        add(&mut map, text(name), text(value.unwrap_or_default()).into());
    }
    Datum::json(Value::Object(map))
}

/// The texts of a member: one, several, or none for null.
fn texts(value: &Value) -> Result<Vec<String>, Mismatch> {
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(truth) => Ok(truth.to_string()),
        _ => Err(Mismatch("members that are texts or lists of texts")),
    };
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items.iter().map(one).collect(),
        value => Ok(vec![one(value)?]),
    }
}

/// The members of an object and their texts.
type Members<'v> = Vec<(&'v String, Vec<String>)>;

/// The members of an object; `None`: null.
fn members(value: &Value) -> Result<Option<Members<'_>>, Mismatch> {
    match value {
        Value::Null => Ok(None),
        Value::Object(map) => {
            let read = map.iter().map(|(name, value)| Ok((name, texts(value)?)));
            read.collect::<Result<_, _>>().map(Some)
        }
        _ => Err(Mismatch("an object")),
    }
}

/// Headers that are set: names and values. Without values, the header is removed.
pub(super) type HeaderChanges = Vec<(String, Vec<String>)>;

/// What an object says about headers. Those that frame a message are left out.
pub(super) fn header_changes(datum: &Datum) -> Result<HeaderChanges, Mismatch> {
    let mut changes = Vec::new();
    for (name, values) in members(&datum.value())?.unwrap_or_default() {
        if !is_name(name.as_bytes()) {
            return Err(Mismatch("names of headers"));
        }
        if !values.iter().all(|value| is_value(value.as_bytes())) {
            return Err(Mismatch("values that a header can hold"));
        }
        if !is_own(name) {
            changes.push((name.clone(), values));
        }
    }
    Ok(changes)
}

/// A query of the members of an object; `None`: null.
pub(super) fn query_text(datum: &Datum) -> Result<Option<String>, Mismatch> {
    form_text(&datum.value())
}

fn form_text(value: &Value) -> Result<Option<String>, Mismatch> {
    let Some(members) = members(value)? else {
        return Ok(None);
    };
    let mut query = String::new();
    for (name, values) in members {
        for value in values {
            add_form_argument(&mut query, name, &value);
        }
    }
    Ok(Some(query))
}

/// A body as it is sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EncodedBody {
    pub(super) bytes: Vec<u8>,
    /// Its type, if the value says so.
    pub(super) content_type: Option<&'static str>,
}

/// A body of a value, for a message with this `Content-Type`; `None`: null.
pub(super) fn encode_body(
    datum: &Datum,
    content_type: Option<&str>,
) -> Result<Option<EncodedBody>, Mismatch> {
    if let Datum::Bytes(bytes) = datum {
        let (bytes, content_type) = (bytes.to_vec(), None);
        return Ok(Some(EncodedBody { bytes, content_type }));
    }
    let value = datum.value();
    let is_form = content_type.is_some_and(|given| {
        let media_type = given.split(';').next().unwrap_or_default().trim();
        media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded")
    });
    Ok(match &*value {
        Value::Null => None,
        Value::String(text) => Some(EncodedBody {
            bytes: text.clone().into_bytes(),
            content_type: None,
        }),
        Value::Object(_) if is_form => form_text(&value)?.map(|form| EncodedBody {
            bytes: form.into_bytes(),
            content_type: None,
        }),
        value => Some(EncodedBody {
            bytes: value.to_string().into_bytes(),
            content_type: Some("application/json"),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bodies_are_read_by_their_types_and_written_by_their_values() {
        let work = WorkBudget::default();
        for (content_type, body, expected) in [
            (None, "", Ok(json!(null))),
            (Some("application/json"), "", Ok(json!(null))),
            (
                Some("application/json; charset=utf-8"),
                "{\"a\":1}",
                Ok(json!({"a": 1})),
            ),
            (Some("application/problem+JSON"), "7", Ok(json!(7))),
            (Some("application/json"), "{", Err("a body that is JSON")),
            (Some("text/plain"), "{\"a\":1}", Ok(json!("{\"a\":1}"))),
            (None, "a", Ok(json!("a"))),
        ] {
            let read = read_body(content_type.map(str::as_bytes), body.as_bytes(), &work);
            let found = read.map(|it| it.to_json()).map_err(|it| it.0);
            assert_eq!(found, expected, "{content_type:?} {body}");
        }
        let binary = read_body(None, &[0xff, 0], &work).expect("bytes");
        let sent = encode_body(&binary, None).expect("a body").expect("bytes");
        assert_eq!((sent.bytes, sent.content_type), (vec![0xff, 0], None));
        let form = Some("application/x-www-form-urlencoded; x=y");
        for (value, content_type, expected) in [
            (json!(null), None, Ok(None)),
            (json!("a"), form, Ok(Some(("a", None)))),
            (json!({"a": [1, "&"]}), form, Ok(Some(("a=1&a=%26", None)))),
            (
                json!({"a": {}}),
                form,
                Err("members that are texts or lists of texts"),
            ),
            (
                json!({"a": 1}),
                None,
                Ok(Some(("{\"a\":1}", Some("application/json")))),
            ),
            (json!([1]), form, Ok(Some(("[1]", Some("application/json"))))),
            (json!(true), None, Ok(Some(("true", Some("application/json"))))),
        ] {
            let sent = encode_body(&Datum::json(value.clone()), content_type);
            let found = sent.map_err(|it| it.0).map(|body| {
                body.map(|body| (String::from_utf8(body.bytes).expect("text"), body.content_type))
            });
            let expected = expected.map(|it| it.map(|(text, of): (&str, _)| (text.to_owned(), of)));
            assert_eq!(found, expected, "{value}");
        }
    }

    #[test]
    fn headers_and_queries_are_objects() {
        let mut headers = Headers::default();
        for (name, value) in [("X-A", "1"), ("x-a", "2"), ("B", "3")] {
            headers.append(name.as_bytes(), value.as_bytes());
        }
        assert_eq!(
            headers_object(&headers).to_json(),
            json!({"X-A": ["1", "2"], "B": "3"})
        );
        assert_eq!(
            query_object(b"a=1&b&a=%20&").to_json(),
            json!({"a": ["1", " "], "b": ""})
        );
        let of = |name: &str, values: &[&str]| {
            (
                name.to_owned(),
                values.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>(),
            )
        };
        for (value, expected) in [
            (json!(null), Ok(vec![])),
            (
                json!({"A": "1", "B": null, "C": [2, true]}),
                Ok(vec![of("A", &["1"]), of("B", &[]), of("C", &["2", "true"])]),
            ),
            (json!({"Content-Length": "1", "te": "x"}), Ok(vec![])),
            // Servers may take them for those that frame a message.
            (
                json!({"Content_Length": "1", "transfer_encoding": "chunked"}),
                Ok(vec![]),
            ),
            (json!("a"), Err("an object")),
            (json!({"a b": "1"}), Err("names of headers")),
            (json!({"a": "1\r\nb: 2"}), Err("values that a header can hold")),
            (
                json!({"a": {"b": 1}}),
                Err("members that are texts or lists of texts"),
            ),
        ] {
            let found = header_changes(&Datum::json(value.clone())).map_err(|it| it.0);
            assert_eq!(found, expected, "{value}");
        }
    }
    #[test]
    fn sizes_are_those_in_memory() {
        assert!(size_of::<Value>() <= VALUE_BYTES, "{}", size_of::<Value>());
        assert!(size_of::<(usize, String, Value)>() <= MEMBER_BYTES);
        for (value, least) in [
            (json!([0, 0, 0]), 4 * 72),
            (json!({"a": 1}), 400),
            (json!([{"a": 1}, {"a": 1}]), 800),
            (json!("abc"), 75),
        ] {
            let found = Datum::json(value.clone()).size();
            assert!((least..3 * least).contains(&found), "{value}: {found}");
        }
    }

    #[test]
    fn large_values_wait_as_texts() {
        for (value, is_packed) in [
            (json!([1, 2]), false),
            (json!("a".repeat(MAX_TREE + 1)), false),
            (json!(vec![0; 1000]), true),
            (json!({"a": vec![json!({"b": 1}); 100]}), true),
        ] {
            let kept = Datum::json(value.clone()).packed();
            assert_eq!(matches!(kept, Datum::Packed(_)), is_packed, "{value}");
            assert!(!is_packed || kept.size() < 4 * value.to_string().len());
            assert_eq!(kept.to_json(), value);
            let sent = encode_body(&kept, None).expect("a body").expect("bytes");
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            assert_eq!(sent.bytes, text.into_bytes());
            assert_eq!(kept.unpacked().to_json(), value);
        }
    }
}
