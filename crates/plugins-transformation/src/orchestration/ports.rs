//! The inputs and outputs of nodes and their types. What it is not: how they are connected, which is `graph`.

use super::Node;
use serde_json::Value;
use std::collections::BTreeMap;

/// The type of a value, as far as it is known before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PortType {
    /// It is known at a call.
    Any,
    Text,
    Number,
    Truth,
    /// Names and texts.
    Map,
    /// All ports of a node.
    Object,
}

impl PortType {
    /// Its name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Any => "any value",
            Self::Text => "a text",
            Self::Number => "a number",
            Self::Truth => "true or false",
            Self::Map => "names and texts",
            Self::Object => "an object of named values",
        }
    }

    /// Whether a value of this type may be one of the other.
    pub(super) fn may_be(self, other: Self) -> bool {
        let converts = [(Self::Text, Self::Number), (Self::Number, Self::Text)];
        self == other || self == Self::Any || other == Self::Any || converts.contains(&(self, other))
    }

    /// Whether a fixed value is of this type. Null is of all.
    pub(super) fn takes(self, value: &Value) -> bool {
        let is_text = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
        let are_texts = |value: &Value| match value {
            Value::Array(items) => items.iter().all(is_text),
            value => value.is_null() || is_text(value),
        };
        value.is_null()
            || match self {
                Self::Any => true,
                Self::Text => is_text(value),
                Self::Number => {
                    value.is_number() || value.as_str().is_some_and(|text| text.parse::<f64>().is_ok())
                }
                Self::Truth => value.is_boolean(),
                Self::Map => value.as_object().is_some_and(|map| map.values().all(are_texts)),
                Self::Object => value.is_object(),
            }
    }
}

/// Ports that have names of their own.
pub(super) type Ports = &'static [(&'static str, PortType)];

pub(super) const CALL_INPUTS: Ports = &[
    ("body", PortType::Any),
    ("headers", PortType::Map),
    ("query", PortType::Map),
    ("url", PortType::Text),
];
const CALL_OUTPUTS: Ports = &[
    ("body", PortType::Any),
    ("headers", PortType::Map),
    ("status", PortType::Number),
    ("raw_body", PortType::Text),
];
const CACHE_INPUTS: Ports = &[
    ("key", PortType::Text),
    ("ttl", PortType::Number),
    ("data", PortType::Any),
];
const CACHE_OUTPUTS: Ports = &[
    ("hit", PortType::Truth),
    ("miss", PortType::Truth),
    ("stored", PortType::Truth),
    ("data", PortType::Any),
];
/// Of the nodes `exit` and `response`.
pub(super) const ANSWER_INPUTS: Ports = &[("body", PortType::Any), ("headers", PortType::Map)];
/// Of the node `request`.
pub(super) const REQUEST_OUTPUTS: Ports = &[
    ("body", PortType::Any),
    ("headers", PortType::Map),
    ("query", PortType::Map),
    ("method", PortType::Text),
    ("path", PortType::Text),
    ("raw_path", PortType::Text),
    ("port", PortType::Number),
    ("scheme", PortType::Text),
    ("version", PortType::Number),
];
/// Of the node `service_request`.
pub(super) const SERVICE_REQUEST_INPUTS: Ports = &[
    ("body", PortType::Any),
    ("headers", PortType::Map),
    ("query", PortType::Map),
];
/// Of the node `service_response`.
pub(super) const SERVICE_RESPONSE_OUTPUTS: Ports = CALL_OUTPUTS;
/// What is a form of another output, and so no part of all of them.
pub(super) const RAW: [&str; 2] = ["raw_body", "raw_path"];

/// What a node takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum InputPorts {
    Nothing,
    /// One value, without a name.
    One(PortType),
    /// One value without a name, or values with names of the document.
    Free,
    Named(Ports),
}

/// What a node gives.
#[derive(Debug, Clone, Copy)]
pub(super) enum OutputPorts<'n> {
    Nothing,
    /// One value, without a name.
    One(PortType),
    Named(Ports),
    /// Values that are known before.
    Fixed(&'n BTreeMap<String, Value>),
    /// Texts that are known before, and secret.
    Secrets(&'n BTreeMap<String, String>),
}

impl Node {
    /// Its inputs.
    pub(super) fn accepts(&self) -> InputPorts {
        match self {
            Self { call: Some(_), .. } => InputPorts::Named(CALL_INPUTS),
            Self { cache: Some(_), .. } => InputPorts::Named(CACHE_INPUTS),
            Self { exit: Some(_), .. } => InputPorts::Named(ANSWER_INPUTS),
            Self { jq: Some(_), .. }
            | Self {
                json_to_xml: Some(_), ..
            } => InputPorts::Free,
            Self { branch: Some(_), .. } => InputPorts::One(PortType::Truth),
            Self {
                property: Some(_), ..
            } => InputPorts::One(PortType::Any),
            Self {
                xml_to_json: Some(_), ..
            } => InputPorts::One(PortType::Any),
            _ => InputPorts::Nothing,
        }
    }

    /// Its outputs.
    pub(super) fn gives(&self) -> OutputPorts<'_> {
        match self {
            Self { call: Some(_), .. } => OutputPorts::Named(CALL_OUTPUTS),
            Self { cache: Some(_), .. } => OutputPorts::Named(CACHE_OUTPUTS),
            Self {
                values: Some(values), ..
            } => OutputPorts::Fixed(values),
            Self {
                json_to_xml: Some(_), ..
            } => OutputPorts::One(PortType::Text),
            Self { jq: Some(_), .. }
            | Self {
                property: Some(_), ..
            }
            | Self {
                xml_to_json: Some(_), ..
            } => OutputPorts::One(PortType::Any),
            _ => OutputPorts::Nothing,
        }
    }
}
