//! The members of an object in a text that is checked while it is read: which of a schema's properties a name is, and which
//! have been met. What their values must look like is in [`super::stream`].

use super::Fields;
use serde::de::{DeserializeSeed, Error, Visitor};
use std::fmt;

/// Which of many have been met. Few need no memory of their own.
pub(super) struct MemberSet {
    first: u64,
    further: Vec<bool>,
}

impl MemberSet {
    pub(super) fn of(count: usize) -> Self {
        Self {
            first: 0,
            further: match count > 64 {
                true => vec![false; count - 64],
                false => Vec::new(),
            },
        }
    }

    pub(super) fn has(&self, place: usize) -> bool {
        match place.checked_sub(64) {
            None => self.first & (1 << place) != 0,
            Some(place) => self.further.get(place) == Some(&true),
        }
    }

    /// Notes one. Says whether it was met before.
    pub(super) fn set(&mut self, place: usize) -> bool {
        let had = self.has(place);
        match place.checked_sub(64) {
            None => self.first |= 1 << place,
            Some(place) => {
                if let Some(seen) = self.further.get_mut(place) {
                    *seen = true;
                }
            }
        }
        had
    }
}

/// What a member's name is.
pub(super) enum MemberKind {
    /// The property at this place.
    Property(usize),
    /// Another one of which the schema says something.
    Other(String),
    /// One of which it says nothing.
    Free,
}

/// The name of a member, looked up while it is read.
pub(super) struct Key<'f> {
    pub(super) fields: &'f Fields,
    /// The property that comes next if the text has the schema's order.
    pub(super) expected: usize,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = MemberKind;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<MemberKind, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = MemberKind;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<MemberKind, E> {
        let fields = self.fields;
        let is_next = |place: usize| {
            fields
                .properties
                .get(place)
                .is_some_and(|it| it.name.looked_up == name)
        };
        // A double is found by its last place only.
        if is_next(self.expected) && !fields.has_doubles {
            return Ok(MemberKind::Property(self.expected));
        }
        match fields.places.get(name) {
            Some(place) => Ok(MemberKind::Property(*place)),
            None if fields.patterns.is_empty() && fields.others.is_none() && fields.required.is_empty() => {
                Ok(MemberKind::Free)
            }
            None => Ok(MemberKind::Other(name.to_owned())),
        }
    }
}
