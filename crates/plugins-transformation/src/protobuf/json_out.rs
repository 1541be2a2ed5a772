//! Messages as JSON, by the JSON mapping of Protocol Buffers. The other way stands beside.

use super::{Enums, Integers, JsonForm, Mapping, Names};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage, SerializeOptions, Value};
use serde_json::Value as Json;
use std::collections::HashMap;

/// Writes a message.
pub(crate) fn write_message(message: &DynamicMessage, form: &JsonForm, out: &mut Vec<u8>) {
    let descriptor = message.descriptor();
    if form.mapping == Mapping::Canonical && is_well_known(descriptor.full_name()) {
        write_well_known(message, form, out);
        return;
    }
    if form.mapping == Mapping::FieldsAndTimes && descriptor.full_name() == "google.protobuf.Timestamp" {
        write_time(message, out);
        return;
    }
    out.push(b'{');
    let mut is_first = true;
    for field in descriptor.fields() {
        let is_there = message.has_field(&field);
        let is_default = form.defaults && !field.supports_presence();
        if is_there || is_default {
            separate(&mut is_first, out);
            let name = match form.names {
                Names::Json => field.json_name(),
                Names::Proto => field.name(),
            };
            write_text(name, out);
            out.push(b':');
            write_field(&field, &message.get_field(&field), form, out);
        }
    }
    out.push(b'}');
}

fn separate(is_first: &mut bool, out: &mut Vec<u8>) {
    if !std::mem::take(is_first) {
        out.push(b',');
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    write_json(&text, out);
}

/// Writes what cannot fail to be JSON, as memory takes everything.
fn write_json(value: &impl serde::Serialize, out: &mut Vec<u8>) {
    let length = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(length);
        out.extend_from_slice(b"null");
    }
}

/// Messages for which the JSON mapping has a form of its own.
fn is_well_known(name: &str) -> bool {
    let Some(name) = name.strip_prefix("google.protobuf.") else {
        return false;
    };
    matches!(
        name,
        "Any" | "Timestamp" | "Duration" | "Struct" | "FieldMask" | "Empty"
    ) || name.ends_with("Value")
}

/// How deep messages may lie in each other below an `Any`.
const MAX_PACKED_DEPTH: usize = 32;

/// Whether messages lie in each other no deeper than so. What an `Any` holds is decoded by itself, with a bound on its
/// depth of its own, so that a small message could hold thousands of them, more than the stack has room for.
fn is_shallow(message: &DynamicMessage, most: usize) -> bool {
    let descriptor = message.descriptor();
    if descriptor.full_name() != "google.protobuf.Any" {
        let is_packer = |field: &FieldDescriptor| matches!(field.kind(), Kind::Message(_));
        let mut inner = message.fields().filter(|(field, _)| is_packer(field));
        return inner.all(|(_, value)| is_shallow_value(value, most));
    }
    let Some(most) = most.checked_sub(1) else {
        return false;
    };
    let (url, packed) = (message.get_field_by_number(1), message.get_field_by_number(2));
    let url = url.as_deref().and_then(Value::as_str).unwrap_or_default();
    let name = url.rsplit('/').next().unwrap_or_default();
    let kind = descriptor.parent_pool().get_message_by_name(name);
    let packed = packed.as_deref().and_then(Value::as_bytes);
    // What cannot be read is not written either.
    let inner = kind
        .zip(packed)
        .map(|(kind, packed)| DynamicMessage::decode(kind, packed.clone()));
    inner
        .and_then(Result::ok)
        .is_none_or(|inner| is_shallow(&inner, most))
}

fn is_shallow_value(value: &Value, most: usize) -> bool {
    let one = |message: &DynamicMessage| most > 0 && is_shallow(message, most - 1);
    match value {
        Value::Message(message) => one(message),
        Value::List(items) => items.iter().filter_map(Value::as_message).all(one),
        Value::Map(members) => members.values().filter_map(Value::as_message).all(one),
        _ => true,
    }
}

fn write_well_known(message: &DynamicMessage, form: &JsonForm, out: &mut Vec<u8>) {
    if message.descriptor().full_name() == "google.protobuf.Any" && !is_shallow(message, MAX_PACKED_DEPTH) {
        out.extend_from_slice(b"null");
        return;
    }
    let options = SerializeOptions::new()
        .stringify_64_bit_integers(form.integers == Integers::Text)
        .use_enum_numbers(form.enums == Enums::Number)
        .use_proto_field_name(form.names == Names::Proto)
        .skip_default_fields(!form.defaults);
    let length = out.len();
    let mut serializer = serde_json::Serializer::new(&mut *out);
    if message.serialize_with_options(&mut serializer, &options).is_err() {
        // An `Any` of an unknown type, or an invalid time.
        out.truncate(length);
        out.extend_from_slice(b"null");
    }
}

/// A time of UTC without its zone.
fn write_time(message: &DynamicMessage, out: &mut Vec<u8>) {
    let text = serde_json::to_value(message).ok();
    let text = text.as_ref().and_then(Json::as_str).unwrap_or_default();
    let seconds = text.split(['.', 'Z']).next().unwrap_or_default();
    write_text(seconds, out);
}

/// Writes the value of a field.
pub(crate) fn write_field(field: &FieldDescriptor, value: &Value, form: &JsonForm, out: &mut Vec<u8>) {
    match (value, field.kind()) {
        (Value::List(items), kind) => {
            out.push(b'[');
            let mut is_first = true;
            for item in items {
                separate(&mut is_first, out);
                write_value(&kind, item, form, out);
            }
            out.push(b']');
        }
        (Value::Map(members), Kind::Message(entry)) => {
            write_map(&entry.map_entry_value_field().kind(), members, form, out);
        }
        (value, kind) => write_value(&kind, value, form, out),
    }
}

fn write_map(kind: &Kind, members: &HashMap<MapKey, Value>, form: &JsonForm, out: &mut Vec<u8>) {
    let mut members: Vec<_> = members.iter().map(|(key, value)| (name_of(key), value)).collect();
    members.sort_by(|(one, _), (other, _)| one.cmp(other));
    out.push(b'{');
    let mut is_first = true;
    for (name, value) in members {
        separate(&mut is_first, out);
        write_text(&name, out);
        out.push(b':');
        write_value(kind, value, form, out);
    }
    out.push(b'}');
}

fn name_of(key: &MapKey) -> String {
    match key {
        MapKey::Bool(key) => key.to_string(),
        MapKey::I32(key) => key.to_string(),
        MapKey::I64(key) => key.to_string(),
        MapKey::U32(key) => key.to_string(),
        MapKey::U64(key) => key.to_string(),
        MapKey::String(key) => key.clone(),
    }
}

fn write_value(kind: &Kind, value: &Value, form: &JsonForm, out: &mut Vec<u8>) {
    match value {
        Value::Bool(value) => write_json(value, out),
        Value::I32(value) => write_json(value, out),
        Value::U32(value) => write_json(value, out),
        Value::I64(value) => write_long(i128::from(*value), form, out),
        Value::U64(value) => write_long(i128::from(*value), form, out),
        Value::F32(value) if value.is_finite() => write_json(value, out),
        Value::F64(value) if value.is_finite() => write_json(value, out),
        Value::F32(value) => write_text(word_of(f64::from(*value)), out),
        Value::F64(value) => write_text(word_of(*value), out),
        Value::String(text) => write_text(text, out),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if form.mapping != Mapping::Canonical => write_text(text, out),
            _ => write_text(&STANDARD.encode(bytes), out),
        },
        Value::EnumNumber(number) => {
            let known = kind.as_enum().and_then(|it| it.get_value(*number));
            match (known, kind.as_enum().map(|it| it.full_name())) {
                (_, Some("google.protobuf.NullValue")) => out.extend_from_slice(b"null"),
                (Some(known), _) if form.enums == Enums::Name => write_text(known.name(), out),
                _ => write_json(number, out),
            }
        }
        Value::Message(message) => write_message(message, form, out),
        Value::List(_) | Value::Map(_) => out.extend_from_slice(b"null"),
    }
}

fn word_of(value: f64) -> &'static str {
    if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

fn write_long(value: i128, form: &JsonForm, out: &mut Vec<u8>) {
    let is_short = (i128::from(i32::MIN)..=i128::from(u32::MAX)).contains(&value);
    let sign = if value < 0 { "-" } else { "" };
    match form.integers {
        Integers::Text => write_text(&value.to_string(), out),
        Integers::MarkedText if !is_short => write_text(&format!("#{value}"), out),
        Integers::MarkedHex if !is_short => {
            write_text(&format!("#{sign}0x{:X}", value.unsigned_abs()), out);
        }
        _ => out.extend_from_slice(value.to_string().as_bytes()),
    }
}
