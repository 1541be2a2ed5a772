//! The styles in which OpenAPI (and RFC 6570) writes values into paths, queries, headers and cookies.

use super::shape::Shape;
use serde_json::{Map, Value};
use std::borrow::Cow;
use weir_plugin::uri::{decode_form, unescape};

/// The most parts of one text.
const MAX_PARTS: usize = 10_000;

/// Where a parameter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterLocation {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// In a header.
    Header,
    /// In a cookie.
    Cookie,
}

impl ParameterLocation {
    /// The place of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "path" => Some(Self::Path),
            "query" => Some(Self::Query),
            "header" => Some(Self::Header),
            "cookie" => Some(Self::Cookie),
            _ => None,
        }
    }

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }

    /// The style of parameters that name none.
    pub fn standard_style(self) -> Style {
        match self {
            Self::Path | Self::Header => Style::Simple,
            Self::Query | Self::Cookie => Style::Form,
        }
    }
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `a,b`
    Simple,
    /// `.a.b`
    Label,
    /// `;name=a;name=b`
    Matrix,
    /// `name=a,b`, or `name=a&name=b`
    Form,
    /// `name=a%20b`
    SpaceDelimited,
    /// `name=a|b`
    PipeDelimited,
    /// `name[a]=1&name[b]=2`
    DeepObject,
}

impl Style {
    /// The style of this name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "simple" => Some(Self::Simple),
            "label" => Some(Self::Label),
            "matrix" => Some(Self::Matrix),
            "form" => Some(Self::Form),
            "spaceDelimited" => Some(Self::SpaceDelimited),
            "pipeDelimited" => Some(Self::PipeDelimited),
            "deepObject" => Some(Self::DeepObject),
            _ => None,
        }
    }

    /// Whether it exists for parameters in this place.
    pub fn fits(self, place: ParameterLocation) -> bool {
        match place {
            ParameterLocation::Path => matches!(self, Self::Simple | Self::Label | Self::Matrix),
            ParameterLocation::Query => !matches!(self, Self::Simple | Self::Label | Self::Matrix),
            ParameterLocation::Header => self == Self::Simple,
            ParameterLocation::Cookie => self == Self::Form,
        }
    }
}

/// Decodes a part of a text.
fn decode(place: ParameterLocation, text: &[u8]) -> Cow<'_, [u8]> {
    match place {
        ParameterLocation::Query => decode_form(text),
        ParameterLocation::Path | ParameterLocation::Cookie => unescape(text),
        ParameterLocation::Header => Cow::Borrowed(text.trim_ascii()),
    }
}

/// The value that a text stands for.
///
/// # Errors
/// That the text is not of this style.
pub(super) fn value(
    style: Style,
    explode: bool,
    place: ParameterLocation,
    name: &str,
    shape: &Shape,
    text: &[u8],
) -> Result<Value, String> {
    let text = match style {
        Style::Label => text
            .strip_prefix(b".")
            .ok_or("expected a value that begins with '.'")?,
        Style::Matrix => text
            .strip_prefix(b";")
            .ok_or("expected a value that begins with ';'")?,
        _ => text,
    };
    let own_name = |part: &'_ [u8]| -> Option<usize> {
        let is_own = part.strip_prefix(name.as_bytes())?.starts_with(b"=");
        is_own.then_some(name.len() + 1)
    };
    match shape {
        Shape::Any | Shape::Scalar(_) => {
            let text = match style {
                Style::Matrix => &text[own_name(text).ok_or_else(|| format!("expected ';{name}='"))?..],
                _ => text,
            };
            Ok(shape.scalar(&decode(place, text)))
        }
        Shape::List(item) => {
            let parts = match (style, explode) {
                (Style::Matrix, true) => {
                    let mut items = Vec::new();
                    for part in split(text, Splitter::Byte(b';'))? {
                        let start = own_name(part).ok_or_else(|| format!("expected ';{name}='"))?;
                        items.push(&part[start..]);
                    }
                    items
                }
                (Style::Matrix, false) => {
                    let start = own_name(text).ok_or_else(|| format!("expected ';{name}='"))?;
                    split(&text[start..], Splitter::Byte(b','))?
                }
                (Style::Label, true) => split(text, Splitter::Byte(b'.'))?,
                (style, _) => split(text, Splitter::of(style))?,
            };
            let items = parts.into_iter().map(|part| item.scalar(&decode(place, part)));
            Ok(Value::Array(items.collect()))
        }
        Shape::Map(fields) => {
            let mut map = Map::new();
            let mut add = |name: &[u8], value: &[u8]| {
                let name = String::from_utf8_lossy(&decode(place, name)).into_owned();
                let value = fields.any(&name).scalar(&decode(place, value));
                match map.insert(name, value) {
                    None => Ok(()),
                    Some(_) => Err("a property appears twice".to_owned()),
                }
            };
            if explode {
                let by = match style {
                    Style::Label => Splitter::Byte(b'.'),
                    Style::Matrix => Splitter::Byte(b';'),
                    style => Splitter::of(style),
                };
                for part in split(text, by)? {
                    let middle = part.iter().position(|byte| *byte == b'=');
                    let middle = middle.ok_or("expected properties of the form name=value")?;
                    add(&part[..middle], &part[middle + 1..])?;
                }
                return Ok(Value::Object(map));
            }
            let text = match style {
                Style::Matrix => &text[own_name(text).ok_or_else(|| format!("expected ';{name}='"))?..],
                _ => text,
            };
            let parts = split(text, Splitter::of(style))?;
            for pair in parts.chunks(2) {
                match pair {
                    [name, value] => add(name, value)?,
                    _ => return Err("expected a value for each property".to_owned()),
                }
            }
            Ok(Value::Object(map))
        }
    }
}

/// What stands between the parts of a text.
#[derive(Clone, Copy)]
enum Splitter {
    Byte(u8),
    /// A byte, or its escape in lower or upper case.
    Escaped(&'static [u8], &'static [&'static [u8]]),
}

impl Splitter {
    fn of(style: Style) -> Self {
        match style {
            Style::SpaceDelimited => Self::Escaped(b" +", &[b"%20"]),
            Style::PipeDelimited => Self::Escaped(b"|", &[b"%7C", b"%7c"]),
            _ => Self::Byte(b','),
        }
    }
}

/// The parts of a text; of an empty one, none.
fn split(text: &[u8], by: Splitter) -> Result<Vec<&[u8]>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < text.len() {
        let length = match by {
            Splitter::Byte(byte) => usize::from(text[at] == byte),
            Splitter::Escaped(bytes, escapes) => match bytes.contains(&text[at]) {
                true => 1,
                false => {
                    let escape = escapes.iter().find(|escape| text[at..].starts_with(escape));
                    escape.map_or(0, |escape| escape.len())
                }
            },
        };
        if length > 0 {
            parts.push(&text[start..at]);
            start = at + length;
        }
        at += length.max(1);
        if parts.len() >= MAX_PARTS {
            return Err(format!("more than {MAX_PARTS} parts"));
        }
    }
    parts.push(&text[start..]);
    Ok(parts)
}
