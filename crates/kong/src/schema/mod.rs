//! The language in which this dialect describes Kong's entities: fields, defaults and checks as constants.
//!
//! One description serves reading a document, filling in what it leaves out, and (for an admin API) showing
//! clients the schema. The words of the checks are Kong's. **What it is not**: it knows no entity.

mod check;
mod fields;
mod location;
pub mod print;
mod read;
pub mod text;

pub use check::{Check, EntityCheck, FieldTest, Requirement};
pub use fields::{Fields, RawFields};
pub use location::{ItemLocation, Location, Problems};
pub use read::MOST_UNKNOWN;

use serde_json::Value;

/// The fields of an entity, or of a record inside of one, and the checks over several of them.
#[derive(Debug)]
pub struct Record {
    /// In the order in which Kong prints them.
    pub fields: &'static [Field],
    /// Checked once every field has been read.
    pub checks: &'static [EntityCheck],
}

impl Record {
    /// A record without checks over several fields.
    pub const fn of(fields: &'static [Field]) -> Self {
        Self { fields, checks: &[] }
    }

    /// The field of this name.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// A field.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name in documents; empty for the elements of lists.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: Kind,
    /// Whether it must have a value (a default is one).
    pub required: bool,
    /// The value if a document gives none.
    pub default: Default,
    /// Further conditions on its value.
    pub checks: &'static [Check],
    /// Whether no two entities may have the same value.
    pub unique: bool,
    /// Whether a value is made up if an administrator gives none.
    pub auto: bool,
}

/// The record that the field `type` of a value names.
pub fn record_by_type(records: &'static [(&'static str, Record)], value: &Value) -> Option<&'static Record> {
    let name = value.get("type")?.as_str()?;
    records
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, record)| record)
}

/// Lists of fields as one. `N` is the number of all: any other one does not compile.
pub const fn joined<const N: usize>(lists: &[&[Field]]) -> [Field; N] {
    let mut all = [Field::new("", Kind::String); N];
    let (mut at, mut list) = (0, 0);
    while list < lists.len() {
        let mut index = 0;
        while index < lists[list].len() {
            all[at] = lists[list][index];
            at += 1;
            index += 1;
        }
        list += 1;
    }
    assert!(at == N, "N is not the number of the fields");
    all
}

impl Field {
    /// An optional field without a default.
    pub const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            required: false,
            default: Default::None,
            checks: &[],
            unique: false,
            auto: false,
        }
    }

    /// The element of a list, or the key or value of a map.
    pub const fn element(kind: Kind) -> Self {
        Self::new("", kind)
    }

    /// The same field, required.
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// The same field with a default.
    pub const fn or(mut self, default: Default) -> Self {
        self.default = default;
        self
    }

    /// The same field with checks.
    pub const fn check(mut self, checks: &'static [Check]) -> Self {
        self.checks = checks;
        self
    }

    /// The same field, unique among the entities of its kind.
    pub const fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// The same field, made up if an administrator gives no value.
    pub const fn auto(mut self) -> Self {
        self.auto = true;
        self
    }
}

/// The kind of a field's value.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A text of at least one character.
    String,
    /// A text that may be empty.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A truth value.
    Boolean,
    /// A UUID.
    Uuid,
    /// Another entity, by name or `{"id": …}`; which entity type it is of.
    Foreign(&'static str),
    /// A list.
    Array(&'static Field),
    /// A list in which order and repetition mean nothing.
    Set(&'static Field),
    /// Names and values.
    Map {
        /// The form of names.
        keys: &'static Field,
        /// The form of values.
        values: &'static Field,
    },
    /// A record.
    Record(&'static Record),
    /// A record of the form that its field `type` names.
    ByType(&'static [(&'static str, Record)]),
    /// A record whose fields are described elsewhere; read as an empty one.
    OpenRecord,
    /// Anything.
    Any,
}

/// The value of a field that a document leaves out.
#[derive(Debug, Clone, Copy)]
pub enum Default {
    /// `null`.
    None,
    /// A truth value.
    Boolean(bool),
    /// A number.
    Integer(i64),
    /// A text.
    Text(&'static str),
    /// A list of texts.
    Texts(&'static [&'static str]),
    /// A list of numbers.
    Integers(&'static [i64]),
    /// Anything else, as JSON. Of a record it may be a part: its other fields have their own defaults.
    Json(&'static str),
}
