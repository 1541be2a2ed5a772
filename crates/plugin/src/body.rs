//! Request bodies with named fields, read once for all who ask: forms, JSON, GraphQL.

use crate::graphql::Operation;
use crate::multipart;
use crate::request::Request;
use crate::uri::{decode_form, query_pairs};
use serde_json::{Map, Value};
use std::cell::OnceCell;

/// The most bytes of a body that are read for variables, unless settings allow a larger one with a GraphQL query. If a
/// body is larger, these variables have no value; the body is forwarded as usual.
pub const MAX_VARIABLE_BODY: usize = 1 << 20;

/// What has been read out of a request's body.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParsedBody {
    fields: OnceCell<Option<Value>>,
    operation: OnceCell<Option<Operation>>,
}

/// How a body names its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    UrlEncoded,
    Multipart,
}

impl Form {
    /// The form that a `Content-Type` names; `application/json-patch+json` counts as JSON too.
    fn of(content_type: &[u8]) -> Option<Self> {
        let content_type = content_type.to_ascii_lowercase();
        let has = |text: &str| memchr::memmem::find(&content_type, text.as_bytes()).is_some();
        if has("application/json") {
            Some(Self::Json)
        } else if has("application/x-www-form-urlencoded") {
            Some(Self::UrlEncoded)
        } else {
            has("multipart/form-data").then_some(Self::Multipart)
        }
    }
}

impl Request {
    /// Whether its body has named fields, as far as the head shows.
    pub(crate) fn has_fields(&self) -> bool {
        self.has_body && self.content_type().and_then(Form::of).is_some()
    }

    /// The body's fields: an object for a form, any value for JSON. `None` if the body has not been read or is not what
    /// its `Content-Type` says.
    pub(crate) fn body_fields(&self) -> Option<&Value> {
        let body = self.body.as_deref()?;
        let read = || {
            self.work.allow_body(body.len());
            let content_type = self.content_type()?;
            match Form::of(content_type)? {
                Form::Json => serde_json::from_slice(body).ok(),
                Form::UrlEncoded => Some(form_fields(body)),
                Form::Multipart => Some(part_fields(body, multipart::boundary(content_type)?)),
            }
        };
        self.parsed.fields.get_or_init(read).as_ref()
    }

    /// The first value of a field of an `application/x-www-form-urlencoded` body, decoded.
    pub(crate) fn form_field(&self, name: &[u8]) -> Option<Vec<u8>> {
        if self.content_type().and_then(Form::of) != Some(Form::UrlEncoded) {
            return None;
        }
        let body = self.body.as_deref()?;
        self.work.allow_body(body.len());
        self.work.spend_bytes(body.len()).ok()?;
        let mut pairs = query_pairs(body);
        let (_, value) = pairs.find(|(key, _)| decode_form(key) == name)?;
        Some(decode_form(value.unwrap_or_default()).into_owned())
    }

    /// The body, if it is read and short enough for a GraphQL query.
    pub(crate) fn graphql_body(&self) -> Option<&[u8]> {
        let body = self.body.as_deref()?;
        (body.len() <= self.max_graphql_bytes).then_some(body)
    }

    /// The first operation of the GraphQL document that the request carries: in the argument `query` of a GET, in
    /// the member `query` of a POST's JSON, and else as the body of a POST.
    pub(crate) fn graphql_operation(&self) -> Option<&Operation> {
        let body = match self.method.as_slice() {
            b"GET" => None,
            b"POST" => Some(self.graphql_body()?),
            _ => return None,
        };
        let operation = |document: &str| {
            self.work.allow_body(document.len());
            self.work.spend(document.len() / 8).ok()?;
            Operation::read(document)
        };
        let read = || match (body, self.content_type().and_then(Form::of)) {
            (None, _) => operation(std::str::from_utf8(&self.query_arg(b"query")?).ok()?),
            (Some(_), Some(Form::Json)) => operation(self.body_fields()?.get("query")?.as_str()?),
            (Some(body), _) => operation(std::str::from_utf8(body).ok()?),
        };
        self.parsed.operation.get_or_init(read).as_ref()
    }

    /// Whether the request carries more GraphQL operations than the one that [`Self::graphql_operation`] finds: in its
    /// document, in a list of such requests, or in a second place that servers read too.
    pub(crate) fn has_several_operations(&self) -> bool {
        let is_post = self.method == b"POST";
        if !is_post && self.method != b"GET" {
            return false;
        }
        let found = self.graphql_operation();
        if found.is_some_and(|operation| !operation.is_alone) {
            return true;
        }
        let is_query = |item: &Value| item.get("query").is_some_and(Value::is_string);
        let is_elsewhere = match (self.content_type().and_then(Form::of), self.body_fields()) {
            (Some(Form::Json), Some(Value::Array(items))) => items.iter().any(is_query),
            (Some(Form::UrlEncoded | Form::Multipart), Some(fields)) => {
                is_query(fields) || fields.get("operations").is_some()
            }
            _ => false,
        };
        if is_post && is_elsewhere {
            return true;
        }
        let pairs = self.query.as_deref().into_iter().flat_map(query_pairs);
        let mut queries = pairs.filter(|(name, _)| decode_form(name) == &b"query"[..]);
        // Of a GET, the first has been taken.
        if !is_post {
            queries.next();
        }
        queries.any(|(_, value)| {
            let document = decode_form(value.unwrap_or_default());
            std::str::from_utf8(&document).is_ok_and(|document| Operation::read(document).is_some())
        })
    }

    /// Lets go of what variables have read out of the body; they read it again when they are asked again. It may
    /// take many times the memory of the body itself.
    pub fn forget_parsed_body(&mut self) {
        self.parsed = ParsedBody::default();
    }

    fn content_type(&self) -> Option<&[u8]> {
        self.headers.get(b"content-type")
    }
}

/// A name that comes several times holds a list; one without `=` holds `true`.
fn form_fields(body: &[u8]) -> Value {
    let mut fields = Map::new();
    for (name, value) in query_pairs(body) {
        let value = value.map_or(Value::Bool(true), |value| text(&decode_form(value)));
        match fields.entry(lossy(&decode_form(name))) {
            serde_json::map::Entry::Vacant(place) => drop(place.insert(value)),
            serde_json::map::Entry::Occupied(mut place) => match place.get_mut() {
                Value::Array(values) => values.push(value),
                first => *first = Value::Array(vec![first.take(), value]),
            },
        }
    }
    Value::Object(fields)
}

/// Of parts with the same name, the first counts.
fn part_fields(body: &[u8], boundary: &[u8]) -> Value {
    let mut fields = Map::new();
    for part in multipart::parts(body, boundary) {
        if let Some(name) = part.name() {
            fields.entry(lossy(name)).or_insert_with(|| text(part.content));
        }
    }
    Value::Object(fields)
}

fn text(bytes: &[u8]) -> Value {
    Value::String(lossy(bytes))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
