//! What the tables of the objects of OpenAPI are made of.

use crate::openapi::Format;
use Format::{V2, V3_2};

/// An object of OpenAPI.
#[derive(Debug)]
pub struct Object {
    /// The fields that it may have, beside extensions (`x-…`).
    pub fields: &'static [Field],
    /// Lists of those that it has in common with other objects.
    pub common: &'static [&'static [Field]],
    /// What the fields have to be together.
    pub needs: &'static [Need],
    /// Whether it may have any other field.
    pub is_open: bool,
}

/// An object with no other fields than those that are named.
pub const CLOSED: Object = Object {
    fields: &[],
    common: &[],
    needs: &[],
    is_open: false,
};

/// A field of an object. One that changed with a version of OpenAPI stands in the table more than once.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    /// The first version that has it, and the last one.
    pub versions: (Format, Format),
    /// The last version in which an object has to have it.
    pub required_until: Option<Format>,
}

/// An optional field of all versions.
pub const fn field(name: &'static str, kind: Kind) -> Field {
    Field {
        name,
        kind,
        versions: (V2, V3_2),
        required_until: None,
    }
}

impl Field {
    /// In this version and in later ones.
    pub const fn since(self, first: Format) -> Self {
        let (_, last) = self.versions;
        Self {
            versions: (first, last),
            ..self
        }
    }

    /// Up to this version.
    pub const fn until(self, last: Format) -> Self {
        let (first, _) = self.versions;
        Self {
            versions: (first, last),
            ..self
        }
    }

    /// An object has to have it.
    pub const fn required(self) -> Self {
        self.required_until(V3_2)
    }

    /// An object has to have it up to this version.
    pub const fn required_until(self, last: Format) -> Self {
        Self {
            required_until: Some(last),
            ..self
        }
    }

    /// Whether a version has it.
    pub fn is_in(&self, format: Format) -> bool {
        self.versions.0 <= format && format <= self.versions.1
    }

    /// Whether an object has to have it.
    pub fn is_required(&self, format: Format) -> bool {
        self.is_in(format) && self.required_until.is_some_and(|last| format <= last)
    }
}

/// What fields of an object have to be together.
#[derive(Debug)]
pub enum Need {
    /// With one of these values in this field, these fields have to be there.
    With(&'static str, &'static [&'static str], &'static [&'static str]),
    /// Exactly one of these fields has to be there.
    One(&'static [&'static str]),
    /// These must not be there together.
    NotBoth(&'static str, &'static str),
}

/// What a value has to be.
#[derive(Debug)]
pub enum Kind {
    Any,
    Text,
    Bool,
    Number,
    /// An integer from 0.
    Count,
    /// One of these texts.
    Words(&'static [&'static str]),
    Object(&'static Object),
    /// An object, or a reference to one.
    OrReference(&'static Object),
    /// A schema, in the words of the document's version.
    Schema,
    List(&'static Kind),
    /// A list of at least one.
    Some(&'static Kind),
    /// A map with names of this form.
    Map(Names, &'static Kind),
    /// The first of these whose JSON type the value has.
    Either(&'static [Kind]),
}

/// The form of a map's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    Any,
    /// Those of `components`.
    Component,
    /// Paths, and extensions.
    Path,
    /// Status codes, and extensions.
    Status,
    /// Expressions, and extensions.
    Expression,
}

impl Names {
    /// Whether names that begin with `x-` are extensions.
    pub fn has_extensions(self) -> bool {
        matches!(self, Self::Path | Self::Status | Self::Expression)
    }

    /// What a name of another form should be.
    pub fn fault(self, name: &str, format: Format) -> Option<&'static str> {
        let is_good = match self {
            Self::Any | Self::Expression => true,
            Self::Path => name.starts_with('/'),
            Self::Component => name
                .bytes()
                .all(|it| it.is_ascii_alphanumeric() || b"._-".contains(&it)),
            Self::Status => match name.as_bytes() {
                b"default" => true,
                [b'1'..=b'5', b'X', b'X'] => format > V2,
                [first, rest @ ..] => {
                    (format == V2 || (b'1'..=b'5').contains(first))
                        && rest.len() == 2
                        && first.is_ascii_digit()
                        && rest.iter().all(u8::is_ascii_digit)
                }
                [] => false,
            },
        };
        (!is_good).then_some(match self {
            Self::Component => "a name has letters, digits, \".\", \"-\" and \"_\"",
            Self::Status => "expected a status code or \"default\"",
            _ => "expected a path that begins with \"/\"",
        })
    }
}

/// A list of texts.
pub const TEXTS: Kind = Kind::List(&Kind::Text);
/// A map of texts.
pub const TEXT_MAP: Kind = Kind::Map(Names::Any, &Kind::Text);
/// A schema, or a yes or no.
pub const SCHEMA_OR_BOOL: Kind = Kind::Either(&[Kind::Bool, Kind::Schema]);
