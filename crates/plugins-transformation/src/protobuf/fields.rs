//! Fields of messages that are named by a path (`book.author.name`), and set from a text.

use super::{JsonForm, Mapping, json_in};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};
use serde_json::Value as Json;
use std::fmt;

/// Most fields of a path.
const MAX_DEPTH: usize = 16;
/// Most values of a list that is filled one by one.
const MAX_LIST: usize = 1_000;

/// The way to a field through the messages around it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldPath(Vec<FieldDescriptor>);

/// A value that a field cannot have; the text is the field's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldTypeError(pub String);

impl fmt::Display for FieldTypeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the field '{}' cannot have this value", self.0)
    }
}

/// The field of this name, as defined or as in JSON.
pub(super) fn field(message: &MessageDescriptor, name: &str) -> Option<FieldDescriptor> {
    message
        .get_field_by_name(name)
        .or_else(|| message.get_field_by_json_name(name))
}

impl FieldPath {
    /// Finds the field; `None` if there is none, or the path leads through something that is not a message.
    pub(crate) fn find(message: &MessageDescriptor, path: &str) -> Option<Self> {
        let mut fields: Vec<FieldDescriptor> = Vec::new();
        for name in path.split('.') {
            let around = match fields.last() {
                None => message.clone(),
                Some(last) if last.is_list() || last.is_map() => return None,
                Some(last) => last.kind().as_message()?.clone(),
            };
            fields.push(field(&around, name).filter(|_| fields.len() < MAX_DEPTH)?);
        }
        Some(Self(fields))
    }

    /// The field itself.
    pub(crate) fn last(&self) -> Option<&FieldDescriptor> {
        self.0.last()
    }

    /// Whether a text can say what the field holds: not a map, and not a message that JSON has no text for.
    pub(crate) fn takes_text(&self) -> bool {
        self.last().is_some_and(|field| {
            let is_plain = |kind: Kind| kind.as_message().is_none_or(|it| has_text(it.full_name()));
            !field.is_map() && is_plain(field.kind())
        })
    }

    /// Sets the field, or adds to it if it is a list.
    pub(crate) fn set(
        &self,
        message: &mut DynamicMessage,
        text: &str,
        form: &JsonForm,
    ) -> Result<(), FieldTypeError> {
        let unfit = |field: &FieldDescriptor| FieldTypeError(field.name().to_owned());
        let Some((last, around)) = self.0.split_last() else {
            return Ok(());
        };
        let mut message = message;
        for field in around {
            message = message
                .get_field_mut(field)
                .as_message_mut()
                .ok_or_else(|| unfit(field))?;
        }
        if last.is_map() {
            return Err(unfit(last));
        }
        let value = of_text(&last.kind(), text, form).ok_or_else(|| unfit(last))?;
        if last.is_list() {
            let list = message.get_field_mut(last).as_list_mut();
            let list = list.filter(|list| list.len() < MAX_LIST);
            list.ok_or_else(|| unfit(last))?.push(value);
        } else {
            message.set_field(last, value);
        }
        Ok(())
    }
}

/// Well-known messages that JSON has as texts, numbers or words.
fn has_text(name: &str) -> bool {
    let Some(name) = name.strip_prefix("google.protobuf.") else {
        return false;
    };
    matches!(name, "Timestamp" | "Duration" | "FieldMask") || name.ends_with("Value") && name != "ListValue"
}

/// The value that a text of a path or a query stands for.
fn of_text(kind: &Kind, text: &str, form: &JsonForm) -> Option<Value> {
    Some(match kind {
        Kind::Bool if form.mapping != Mapping::Canonical => Value::Bool(!matches!(text, "0" | "false")),
        Kind::Bool => Value::Bool(match text {
            "true" | "1" => true,
            "false" | "0" => false,
            _ => return None,
        }),
        Kind::Enum(descriptor) => {
            let number = match descriptor.get_value_by_name(text) {
                Some(value) => value.number(),
                None => text.parse().ok()?,
            };
            Value::EnumNumber(number)
        }
        Kind::Message(descriptor) => {
            let json = match descriptor.name() {
                "BoolValue" => Json::Bool(text.parse().ok()?),
                "DoubleValue" | "FloatValue" | "Int32Value" | "UInt32Value" => {
                    serde_json::from_str(text).ok()?
                }
                _ => Json::String(text.to_owned()),
            };
            Value::Message(DynamicMessage::deserialize(descriptor.clone(), json).ok()?)
        }
        _ => json_in::scalar(kind, &Json::String(text.to_owned()), form)?,
    })
}
