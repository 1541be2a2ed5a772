//! Fields of request bodies: reading one by name, and taking it out.

use serde_json::Value;
use weir_plugin::multipart::{boundary, parts};
use weir_plugin::uri::{decode_form, query_pairs};

/// The form of a body with fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// `application/x-www-form-urlencoded`.
    UrlEncoded,
    /// `application/json`, with an object at the top.
    Json,
    /// `multipart/form-data` (RFC 7578) with its boundary.
    Multipart(Vec<u8>),
}

/// What a body holds under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    /// Nothing, or something that is not a text.
    Absent,
    /// One text.
    One(Vec<u8>),
    /// Several values.
    Several,
}

impl Form {
    /// The form that a `Content-Type` names.
    pub(crate) fn of(content_type: &[u8]) -> Option<Self> {
        let media_type = content_type.split(|byte| *byte == b';').next()?;
        match media_type.trim_ascii().to_ascii_lowercase().as_slice() {
            b"application/x-www-form-urlencoded" => Some(Self::UrlEncoded),
            b"application/json" => Some(Self::Json),
            b"multipart/form-data" => Some(Self::Multipart(boundary(content_type)?.to_vec())),
            _ => None,
        }
    }

    /// The field of this name. A body that is not of its form has no fields.
    pub(crate) fn field(&self, body: &[u8], name: &str) -> Field {
        match self {
            Self::UrlEncoded => {
                let values = query_pairs(body).filter(|(key, _)| decode_form(key) == name.as_bytes());
                one_of(values.map(|(_, value)| decode_form(value.unwrap_or_default()).into_owned()))
            }
            Self::Json => match serde_json::from_slice::<Value>(body)
                .ok()
                .as_ref()
                .and_then(|it| it.get(name))
            {
                Some(Value::String(text)) => Field::One(text.as_bytes().to_vec()),
                Some(Value::Array(_)) => Field::Several,
                _ => Field::Absent,
            },
            Self::Multipart(boundary) => {
                let named = parts(body, boundary)
                    .into_iter()
                    .filter(|part| part.name() == Some(name.as_bytes()));
                one_of(named.map(|part| part.content.to_vec()))
            }
        }
    }

    /// The body without the fields of this name; `None` if the body cannot be read in its form.
    pub(crate) fn without(&self, body: &[u8], name: &str) -> Option<Vec<u8>> {
        match self {
            Self::UrlEncoded => {
                let kept = body.split(|byte| *byte == b'&').filter(|pair| {
                    let key = pair.split(|byte| *byte == b'=').next().unwrap_or_default();
                    decode_form(key) != name.as_bytes()
                });
                Some(kept.collect::<Vec<_>>().join(&b'&'))
            }
            Self::Json => {
                let mut value: Value = serde_json::from_slice(body).ok()?;
                value.as_object_mut()?.shift_remove(name);
                serde_json::to_vec(&value).ok()
            }
            Self::Multipart(boundary) => {
                let delimiter = [b"--", boundary.as_slice()].concat();
                let mut out = Vec::with_capacity(body.len());
                for part in parts(body, boundary)
                    .iter()
                    .filter(|part| part.name() != Some(name.as_bytes()))
                {
                    out.extend_from_slice(&delimiter);
                    out.extend_from_slice(b"\r\n");
                    out.extend_from_slice(part.head);
                    out.extend_from_slice(b"\r\n\r\n");
                    out.extend_from_slice(part.content);
                    out.extend_from_slice(b"\r\n");
                }
                out.extend_from_slice(&delimiter);
                out.extend_from_slice(b"--\r\n");
                Some(out)
            }
        }
    }
}

fn one_of(mut values: impl Iterator<Item = Vec<u8>>) -> Field {
    match (values.next(), values.next()) {
        (None, _) => Field::Absent,
        (Some(value), None) => Field::One(value),
        (Some(_), Some(_)) => Field::Several,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MULTIPART: &str = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B\r\n\
        content-disposition: form-data; name=k\r\nContent-Type: text/plain\r\n\r\nv\r\nw\r\n--B--\r\n";

    #[test]
    fn fields_are_found_and_taken_out() {
        let without = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--B--\r\n";
        let one = |text: &str| Field::One(text.as_bytes().to_vec());
        for (content_type, body, field, rest) in [
            (
                "application/x-www-form-urlencoded",
                "a=1&k=v+w&b",
                one("v w"),
                Some("a=1&b"),
            ),
            (
                "application/x-www-form-urlencoded; charset=utf-8",
                "k",
                one(""),
                Some(""),
            ),
            (
                "Application/X-WWW-Form-Urlencoded",
                "k=1&k=2",
                Field::Several,
                Some(""),
            ),
            (
                "application/json",
                r#"{"b":1,"k":"v","a":2}"#,
                one("v"),
                Some(r#"{"b":1,"a":2}"#),
            ),
            ("application/json", r#"{"k":1}"#, Field::Absent, Some("{}")),
            ("application/json", r#"{"k":["v"]}"#, Field::Several, Some("{}")),
            ("application/json", "[1]", Field::Absent, None),
            ("application/json", "{broken", Field::Absent, None),
            (
                "multipart/form-data; boundary=B",
                MULTIPART,
                one("v\r\nw"),
                Some(without),
            ),
            (
                "multipart/form-data; boundary=\"B\"",
                "--B",
                Field::Absent,
                Some("--B--\r\n"),
            ),
        ] {
            let form = Form::of(content_type.as_bytes()).expect("known");
            assert_eq!(form.field(body.as_bytes(), "k"), field, "{content_type}: {body}");
            let left = form.without(body.as_bytes(), "k");
            let left = left.as_deref().map(String::from_utf8_lossy);
            assert_eq!(left.as_deref(), rest, "{content_type}: {body}");
        }
        for unknown in [
            "",
            "text/plain",
            "multipart/form-data",
            "multipart/form-data; boundary=",
        ] {
            assert_eq!(Form::of(unknown.as_bytes()), None, "{unknown}");
        }
    }
}
