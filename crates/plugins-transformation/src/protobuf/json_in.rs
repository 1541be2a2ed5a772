//! Messages from JSON, by the JSON mapping of Protocol Buffers. The other way stands beside.

use super::fields::field;
use super::{JsonForm, Mapping};
use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::{alphabet, engine::DecodePaddingMode};
use prost_reflect::{
    DeserializeOptions, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage,
    Value,
};
use serde_json::Value as Json;
use std::collections::HashMap;

const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
/// Base64 with or without its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Reads a message.
///
/// # Errors
/// What is wrong with the value.
pub(crate) fn read_message(
    descriptor: &MessageDescriptor,
    json: &Json,
    form: &JsonForm,
) -> Result<DynamicMessage, String> {
    if form.mapping == Mapping::Canonical {
        let options = DeserializeOptions::new().deny_unknown_fields(true);
        return DynamicMessage::deserialize_with_options(descriptor.clone(), json.clone(), &options)
            .map_err(|error| error.to_string());
    }
    let mut message = DynamicMessage::new(descriptor.clone());
    fill(&mut message, json, form).map_err(|name| format!("the field '{name}' cannot have this value"))?;
    Ok(message)
}

/// Sets the fields of a message; the name of one that cannot have its value is the error.
fn fill(message: &mut DynamicMessage, json: &Json, form: &JsonForm) -> Result<(), String> {
    let descriptor = message.descriptor();
    let members = match json {
        Json::Object(members) => members,
        // An empty table is a list as well.
        Json::Array(items) if items.is_empty() => return Ok(()),
        _ => return Err(descriptor.name().to_owned()),
    };
    for (name, value) in members {
        if let Some(field) = field(&descriptor, name) {
            let value =
                value_of(&field, value, form).map_err(|inner| inner.unwrap_or_else(|| name.clone()))?;
            message.set_field(&field, value);
        }
    }
    Ok(())
}

/// The value of a field; the name of an inner one that is wrong is the error, `None`: the field itself is.
fn value_of(field: &FieldDescriptor, json: &Json, form: &JsonForm) -> Result<Value, Option<String>> {
    let kind = field.kind();
    if field.is_map() {
        let entry = kind.as_message().ok_or(None)?;
        let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
        let members = json.as_object().ok_or(None)?;
        let mut map = HashMap::with_capacity(members.len());
        for (name, member) in members {
            let key = key_of(&key.kind(), name).ok_or(None)?;
            map.insert(key, one(&value.kind(), member, form)?);
        }
        return Ok(Value::Map(map));
    }
    if field.is_list() {
        let items = match json {
            Json::Array(items) => items.as_slice(),
            Json::Object(members) if members.is_empty() => &[],
            single => std::slice::from_ref(single),
        };
        let values: Result<Vec<Value>, _> = items.iter().map(|item| one(&kind, item, form)).collect();
        return Ok(Value::List(values?));
    }
    one(&kind, json, form)
}

fn one(kind: &Kind, json: &Json, form: &JsonForm) -> Result<Value, Option<String>> {
    let Kind::Message(descriptor) = kind else {
        return scalar(kind, json, form).ok_or(None);
    };
    if form.mapping == Mapping::FieldsAndTimes
        && descriptor.full_name() == "google.protobuf.Timestamp"
        && let Json::String(text) = json
    {
        return time(descriptor, text).ok_or(None);
    }
    let mut message = DynamicMessage::new(descriptor.clone());
    fill(&mut message, json, form).map_err(Some)?;
    Ok(Value::Message(message))
}

/// A time, which without a zone is UTC.
fn time(descriptor: &MessageDescriptor, text: &str) -> Option<Value> {
    let day = text.find('T')?;
    let has_zone = text.ends_with('Z') || text[day..].contains(['+', '-']);
    let zone = if has_zone { "" } else { "Z" };
    let json = Json::String(format!("{text}{zone}"));
    Some(Value::Message(
        DynamicMessage::deserialize(descriptor.clone(), json).ok()?,
    ))
}

fn key_of(kind: &Kind, name: &str) -> Option<MapKey> {
    let text = Json::String(name.to_owned());
    match kind {
        Kind::Bool => Some(MapKey::Bool(name.parse().ok()?)),
        _ => scalar(kind, &text, &JsonForm::default())?.into_map_key(),
    }
}

/// A value that is not a message. Numbers may be texts.
pub(super) fn scalar(kind: &Kind, json: &Json, form: &JsonForm) -> Option<Value> {
    Some(match kind {
        Kind::String => Value::String(json.as_str()?.to_owned()),
        Kind::Bytes => Value::Bytes(bytes(json.as_str()?, form)?.into()),
        Kind::Bool => Value::Bool(json.as_bool()?),
        Kind::Double => Value::F64(float(json)?),
        Kind::Float => Value::F32(float(json)? as f32),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(integer(json)?.try_into().ok()?),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(integer(json)?.try_into().ok()?),
        Kind::Uint32 | Kind::Fixed32 => Value::U32(integer(json)?.try_into().ok()?),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(integer(json)?.try_into().ok()?),
        Kind::Enum(descriptor) => Value::EnumNumber(match json.as_str() {
            Some(name) => match descriptor.get_value_by_name(name) {
                Some(value) => value.number(),
                None => name.parse().ok()?,
            },
            None => integer(json)?.try_into().ok()?,
        }),
        Kind::Message(_) => return None,
    })
}

fn bytes(text: &str, form: &JsonForm) -> Option<Vec<u8>> {
    match form.mapping {
        Mapping::Canonical => BASE64.decode(text).or_else(|_| URL_BASE64.decode(text)).ok(),
        Mapping::Fields | Mapping::FieldsAndTimes => Some(text.as_bytes().to_vec()),
    }
}

fn float(json: &Json) -> Option<f64> {
    match json {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => match text.as_str() {
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            "NaN" => Some(f64::NAN),
            text => text.parse().ok().filter(|it: &f64| it.is_finite()),
        },
        _ => None,
    }
}

/// A whole number: a number, a text of one, or one with a `#` in front, perhaps in hexadecimal.
fn integer(json: &Json) -> Option<i128> {
    match json {
        Json::Number(number) => {
            let whole = number.as_i64().map(i128::from);
            let whole = whole.or_else(|| number.as_u64().map(i128::from));
            whole.or_else(|| {
                let float = number.as_f64()?;
                let is_whole = float.fract() == 0.0 && float.abs() < 1e19;
                is_whole.then_some(float as i128)
            })
        }
        Json::String(text) => {
            let plain = text.strip_prefix('#').unwrap_or(text);
            let (sign, digits) = match plain.strip_prefix('-') {
                Some(digits) => (-1, digits),
                None => (1, plain),
            };
            let is_number = digits.as_bytes().first().is_some_and(u8::is_ascii_digit) && digits.len() <= 20;
            let number = match digits.strip_prefix("0x") {
                _ if !is_number => None,
                Some(digits) => i128::from_str_radix(digits, 16).ok(),
                None => digits.parse().ok(),
            };
            number.map(|number: i128| sign * number)
        }
        _ => None,
    }
}
