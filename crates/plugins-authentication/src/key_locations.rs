//! Locations in a request that may hold a key: headers, query arguments, and fields of bodies. Who owns the key is
//! decided elsewhere.

use crate::body_fields::{Field, Form};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use weir_plugin::Request;
use weir_plugin::uri::{decode_form, query_pairs};

/// A location for a key, with its name there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KeyLocation {
    /// A request header.
    Header(String),
    /// A query argument.
    Query(String),
    /// A field of a body: of a form, of a multipart form, or a text at the top of a JSON object.
    Body(String),
}

/// What several keys in one place mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MultipleKeys {
    /// The call is refused.
    #[default]
    Refuse,
    /// The first of several headers counts; several query arguments are a wrong key.
    First,
}

/// What a place holds.
pub(crate) enum Lookup<'x> {
    Absent,
    Key(Cow<'x, [u8]>),
    /// There are several keys, but only one is allowed.
    Several,
    /// A wrong key, whatever it is.
    Wrong,
    /// The body must be read first.
    Body,
}

/// The form of the request's body, if it is a form that can be searched.
pub(crate) fn form_of_body(request: &Request) -> Option<Form> {
    match request.has_body {
        true => Form::of(request.headers.get(b"content-type")?),
        false => None,
    }
}

impl KeyLocation {
    /// What stands in this place.
    pub(crate) fn look<'x>(&'x self, request: &'x Request, on_multiple: MultipleKeys) -> Lookup<'x> {
        match self {
            Self::Header(name) => {
                let mut values = request.headers.get_all(name.as_bytes());
                let Some(first) = values.next() else {
                    return Lookup::Absent;
                };
                match on_multiple == MultipleKeys::Refuse && values.next().is_some() {
                    true => Lookup::Several,
                    false => Lookup::Key(first.into()),
                }
            }
            Self::Query(name) => {
                let query = request.query.as_deref().unwrap_or_default();
                let mut values = query_pairs(query).filter(|(key, _)| decode_form(key) == name.as_bytes());
                match (values.next(), values.next(), on_multiple) {
                    (None, ..) => Lookup::Absent,
                    (Some((_, value)), None, _) => Lookup::Key(decode_form(value.unwrap_or_default())),
                    (Some(_), Some(_), MultipleKeys::Refuse) => Lookup::Several,
                    (Some(_), Some(_), MultipleKeys::First) => Lookup::Wrong,
                }
            }
            Self::Body(name) => match (form_of_body(request), &request.body) {
                (None, _) => Lookup::Absent,
                (Some(_), None) => Lookup::Body,
                (Some(form), Some(body)) => match form.field(body, name) {
                    Field::Absent => Lookup::Absent,
                    Field::One(key) => Lookup::Key(key.into()),
                    Field::Several => Lookup::Several,
                },
            },
        }
    }

    /// Takes what stands there out of the request.
    pub(crate) fn remove(&self, request: &mut Request, remove_argument: fn(&mut Request, &[u8])) {
        match self {
            Self::Header(name) => {
                request.headers.remove(name.as_bytes());
            }
            Self::Query(name) => remove_argument(request, name.as_bytes()),
            Self::Body(name) => {
                let form = form_of_body(request);
                let rest = form
                    .zip(request.body.as_ref())
                    .and_then(|(form, body)| form.without(body, name));
                if let Some(rest) = rest {
                    request.body = Some(rest);
                }
            }
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Header(name) | Self::Query(name) | Self::Body(name) => name,
        }
    }
}
