//! A violation, in the words of APISIX's checker. The checker decides what is found, and when.

use super::{Kind, Schema};
use std::fmt;

/// A violation. Of the alternatives that a shape has, most fail all the time without a message, so the
/// common ones are put into words only when a message is needed.
pub(super) enum Violation<'s> {
    /// This field is missing.
    Missing(&'static str),
    /// The value is not of this kind, but of the one that is called so.
    Type(Kind, &'static str),
    /// None of these shapes fits.
    NoneOf(&'s [Schema]),
    /// These words.
    Fixed(&'static str),
    /// A message, composed at run time.
    Message(String),
}

impl fmt::Display for Violation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(field) => write!(f, "property \"{field}\" is required"),
            Self::Type(expected, found) => {
                write!(f, "wrong type: expected {}, got {found}", expected.as_str())
            }
            Self::NoneOf(shapes) => {
                let requirements = named_requirements(shapes);
                write!(f, "object matches none of the required{requirements}")
            }
            Self::Fixed(words) => f.write_str(words),
            Self::Message(words) => f.write_str(words),
        }
    }
}

/// `: ["a"] or ["b"]`, the requirements that none of the shapes found met.
fn named_requirements(shapes: &[Schema]) -> String {
    let lists: Vec<String> = shapes
        .iter()
        .filter(|shape| !shape.required.is_empty())
        .map(|shape| format!("{:?}", shape.required).replace(", ", ","))
        .collect();
    if lists.is_empty() {
        String::new()
    } else {
        format!(": {}", lists.join(" or "))
    }
}
