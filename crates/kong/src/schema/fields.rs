//! The fields of an entity: those that a document gives, and those that reading makes of them.

use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Fields as written, some perhaps put in the place of others. Values that stay as they are stay in the document.
#[derive(Debug, Default)]
pub struct RawFields<'d>(Vec<(&'d str, Cow<'d, Value>)>);

impl<'d> RawFields<'d> {
    /// The fields of a map.
    pub fn of(fields: &'d Map<String, Value>) -> Self {
        Self(
            fields
                .iter()
                .map(|(name, value)| (name.as_str(), Cow::Borrowed(value)))
                .collect(),
        )
    }

    /// None, with room for so many.
    pub fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// All names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value.as_ref()))
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// The value of a field, to be changed.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        let found = self.0.iter_mut().find(|(known, _)| *known == name)?;
        Some(found.1.to_mut())
    }

    /// Adds a field as the document gives it, which no other has the name of.
    pub fn add(&mut self, name: &'d str, value: &'d Value) {
        self.0.push((name, Cow::Borrowed(value)));
    }

    /// Gives a field this value.
    pub fn insert(&mut self, name: &'static str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = Cow::Owned(value),
            None => self.0.push((name, Cow::Owned(value))),
        }
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) -> Option<Cow<'d, Value>> {
        let position = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(position).1)
    }
}

/// Fields that have been read: those that have a value, in the order of their description.
#[derive(Debug, Default)]
pub struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    /// None, with room for so many.
    pub fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// The value of a field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }

    /// Gives a field this value.
    pub fn insert(&mut self, name: &'static str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let position = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.remove(position).1)
    }

    /// Adds a field that is not there yet.
    pub fn add(&mut self, name: &'static str, value: Value) {
        self.0.push((name, value));
    }

    /// The fields as a value of their own.
    ///
    /// # Errors
    /// A value that the type has no room for.
    pub fn typed<T: DeserializeOwned>(self) -> Result<T, serde_json::Error> {
        T::deserialize(MapDeserializer::new(self.0.into_iter()))
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Self {
        let mut map = Map::with_capacity(fields.0.len());
        map.extend(fields.0.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Self::Object(map)
    }
}
