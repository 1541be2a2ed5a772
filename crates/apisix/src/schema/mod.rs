//! Schemas: what a value of an APISIX document must look like, which defaults are filled in, and the words of a
//! violation.
//!
//! A [`Schema`] is a JSON Schema as far as this dialect needs one. It is written in Rust rather than read from a file
//! so that every default stands once, next to the code that reads it; checking speaks the words of APISIX's own
//! checker, which its users search their logs for. Documents and plugins bring their own schemas; here are the
//! engine and the schemas that several of them share.

mod check;
mod common;
pub(crate) mod pattern;
mod print;
mod read;
mod violation;

pub use check::kind_of;
pub use common::{address, host, id, label_map, long_text, method, methods, short_text, timeout, timestamp};

use pattern::Pattern;
use serde_json::Value;

/// A type of JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Object,
    Array,
    Text,
    Integer,
    Number,
    Boolean,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::Text => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// The shape of a value. Made by the functions of this module and narrowed by methods.
#[derive(Debug, Default)]
pub struct Schema {
    kind: Option<Kind>,
    description: Option<&'static str>,
    default: Option<Value>,
    options: Vec<Value>,
    exactly: Option<Value>,
    minimum: Option<f64>,
    above: Option<f64>,
    maximum: Option<f64>,
    length: (Option<usize>, Option<usize>),
    pattern: Option<Pattern>,
    is_address: bool,
    fields: Vec<(&'static str, Schema)>,
    required: Vec<&'static str>,
    closed: bool,
    other_fields: Vec<(Pattern, Schema)>,
    field_count: (Option<usize>, Option<usize>),
    dependents: Vec<(&'static str, Schema)>,
    needed: Vec<(&'static str, Vec<&'static str>)>,
    item: Option<Box<Schema>>,
    contains: Option<Box<Schema>>,
    min_items: Option<usize>,
    max_items: Option<usize>,
    unique: bool,
    all_of: Vec<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    not: Option<Box<Schema>>,
    condition: Option<Box<(Schema, Schema, Schema)>>,
}

/// Whether a text stands for a secret that is kept elsewhere.
pub fn is_secret_reference(text: &str) -> bool {
    const VARIABLE: &str = "$ENV://";
    let start = text.get(..VARIABLE.len());
    text.starts_with("$secret://") || start.is_some_and(|start| start.eq_ignore_ascii_case(VARIABLE))
}

/// Anything.
pub fn any() -> Schema {
    Schema::default()
}

fn of_kind(kind: Kind) -> Schema {
    Schema {
        kind: Some(kind),
        ..Schema::default()
    }
}

/// A map with these fields; others are allowed unless it is [`Schema::closed`].
pub fn object<const N: usize>(fields: [(&'static str, Schema); N]) -> Schema {
    Schema {
        fields: fields.into(),
        ..of_kind(Kind::Object)
    }
}

/// A list of such items.
pub fn array(item: Schema) -> Schema {
    Schema {
        item: Some(Box::new(item)),
        ..of_kind(Kind::Array)
    }
}

/// A text.
pub fn text() -> Schema {
    of_kind(Kind::Text)
}

/// A whole number.
pub fn integer() -> Schema {
    of_kind(Kind::Integer)
}

/// A number.
pub fn number() -> Schema {
    of_kind(Kind::Number)
}

/// `true` or `false`.
pub fn boolean() -> Schema {
    of_kind(Kind::Boolean)
}

/// Anything that has these fields.
pub fn having<const N: usize>(fields: [&'static str; N]) -> Schema {
    any().required(fields)
}

/// Exactly one of these shapes.
pub fn one_of<const N: usize>(shapes: [Schema; N]) -> Schema {
    Schema {
        one_of: shapes.into(),
        ..any()
    }
}

/// At least one of these shapes.
pub fn any_of<const N: usize>(shapes: [Schema; N]) -> Schema {
    Schema {
        any_of: shapes.into(),
        ..any()
    }
}

/// Not such a value.
pub fn not(shape: Schema) -> Schema {
    Schema {
        not: Some(Box::new(shape)),
        ..any()
    }
}

impl Schema {
    /// Put in if the field is absent.
    #[must_use]
    pub fn or(mut self, default: impl Into<Value>) -> Self {
        self.default = Some(default.into());
        self
    }

    /// One of these values.
    #[must_use]
    pub fn options(mut self, options: impl IntoIterator<Item = &'static str>) -> Self {
        self.options = options.into_iter().map(Value::from).collect();
        self
    }

    /// One of these numbers.
    #[must_use]
    pub fn numbers<const N: usize>(mut self, options: [i64; N]) -> Self {
        self.options = options.map(Value::from).into();
        self
    }

    /// One of these numbers, some of which are not whole.
    #[must_use]
    pub fn decimals<const N: usize>(mut self, options: [f64; N]) -> Self {
        self.options = options.map(Value::from).into();
        self
    }

    /// No less than this.
    #[must_use]
    pub fn at_least(mut self, minimum: u32) -> Self {
        self.minimum = Some(minimum.into());
        self
    }

    /// No less than this fraction.
    #[must_use]
    pub fn at_least_fraction(mut self, minimum: f64) -> Self {
        self.minimum = Some(minimum);
        self
    }

    /// More than this.
    #[must_use]
    pub fn above(mut self, bound: u32) -> Self {
        self.above = Some(bound.into());
        self
    }

    /// No more than this.
    #[must_use]
    pub fn at_most(mut self, maximum: u32) -> Self {
        self.maximum = Some(maximum.into());
        self
    }

    /// Of so many characters.
    #[must_use]
    pub fn length(mut self, at_least: usize, at_most: usize) -> Self {
        self.length = (Some(at_least), Some(at_most));
        self
    }

    /// Of at least so many characters.
    #[must_use]
    pub fn longer(mut self, at_least: usize) -> Self {
        self.length.0 = Some(at_least);
        self
    }

    /// Of at most so many characters.
    #[must_use]
    pub fn shorter(mut self, at_most: usize) -> Self {
        self.length.1 = Some(at_most);
        self
    }

    /// A text in which this regular expression finds something.
    #[must_use]
    pub fn pattern(mut self, pattern: &'static str) -> Self {
        self.pattern = Some(Pattern::new(pattern));
        self
    }

    /// What it is, for those who read the schema.
    #[must_use]
    pub fn described(mut self, description: &'static str) -> Self {
        self.description = Some(description);
        self
    }

    /// An address or a network.
    #[must_use]
    fn address(mut self) -> Self {
        self.is_address = true;
        self
    }

    /// These fields are there.
    #[must_use]
    pub fn required<const N: usize>(mut self, fields: [&'static str; N]) -> Self {
        self.required = fields.into();
        self
    }

    /// No other fields are there.
    #[must_use]
    pub fn closed(mut self) -> Self {
        self.closed = true;
        self
    }

    /// Fields with such names, listed or not, hold such values. Without a pattern: all fields that are not listed.
    #[must_use]
    pub fn each_field(mut self, names: &'static str, shape: Schema) -> Self {
        self.other_fields.push((Pattern::new(names), shape));
        self
    }

    /// At least so many fields.
    #[must_use]
    pub fn min_fields(mut self, count: usize) -> Self {
        self.field_count.0 = Some(count);
        self
    }

    /// At most so many fields.
    #[must_use]
    pub fn max_fields(mut self, count: usize) -> Self {
        self.field_count.1 = Some(count);
        self
    }

    /// If this field is there, the whole map has this shape too.
    #[must_use]
    pub fn if_present(mut self, field: &'static str, shape: Schema) -> Self {
        self.dependents.push((field, shape));
        self
    }

    /// At least so many items.
    #[must_use]
    pub fn min_items(mut self, count: usize) -> Self {
        self.min_items = Some(count);
        self
    }

    /// At most so many items.
    #[must_use]
    pub fn max_items(mut self, count: usize) -> Self {
        self.max_items = Some(count);
        self
    }

    /// Of any kind: what is said about its parts binds values that have such parts.
    #[must_use]
    pub fn of_any_kind(mut self) -> Self {
        self.kind = None;
        self
    }

    /// No two items are equal.
    #[must_use]
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// All of these shapes too.
    #[must_use]
    pub fn all_of<const N: usize>(mut self, shapes: [Schema; N]) -> Self {
        self.all_of = shapes.into();
        self
    }

    /// At least one of these shapes too.
    #[must_use]
    pub fn any_of<const N: usize>(mut self, shapes: [Schema; N]) -> Self {
        self.any_of = shapes.into();
        self
    }

    /// Exactly one of these shapes too.
    #[must_use]
    pub fn one_of<const N: usize>(mut self, shapes: [Schema; N]) -> Self {
        self.one_of = shapes.into();
        self
    }

    /// Not this shape.
    #[must_use]
    pub fn unless(mut self, shape: Schema) -> Self {
        self.not = Some(Box::new(shape));
        self
    }

    /// If it has the first shape, it must have the second too, otherwise the third.
    #[must_use]
    pub fn when(mut self, condition: Schema, then: Schema, otherwise: Schema) -> Self {
        self.condition = Some(Box::new((condition, then, otherwise)));
        self
    }

    /// Adds a field.
    #[must_use]
    pub fn field(mut self, name: &'static str, shape: Schema) -> Self {
        self.fields.push((name, shape));
        self
    }
}
