//! The schemas for clients, compared with those of the original: the same fields with the same types, defaults,
//! enumerations and bounds, for every entity and every plugin. Those of the original are `original/described.json`: what a
//! Kong 3.9.3 answered, without its words for people.

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use weir_kong::describe;
use weir_kong::plugins::{PluginSupport, known};

/// What clients use of a field's description. Words for people, and what one server does with the value (encrypt
/// it, take it from a vault), are not among it.
const COMPARED: &[&str] = &[
    "type",
    "required",
    "default",
    "one_of",
    "not_one_of",
    "between",
    "gt",
    "auto",
    "uuid",
    "reference",
    "eq",
    "timestamp",
    "abstract",
    "len_min",
    "unique",
];
/// The known differences of the descriptions, and their reasons.
const KNOWN: &[(&str, &str)] = &[
    (
        "upstreams.healthchecks: default",
        "the original forgets the threshold, which has a default of its own",
    ),
    (
        "acme.config.storage_config.redis.scan_count: type",
        "the original's former name takes less than the present one",
    ),
    (
        "clustering_data_planes.cert_details.expiry_timestamp: timestamp",
        "no client writes it",
    ),
    (
        "response-ratelimiting.config.limits: len_min",
        "is checked by code",
    ),
];

/// The original's description, without its words for people.
fn original(part: &str) -> Map<String, Value> {
    let described: Value = serde_json::from_str(include_str!("original/described.json")).expect("JSON");
    described[part].as_object().expect("schemas by name").clone()
}

fn named(list: &Value) -> Map<String, Value> {
    let items = list.as_array().map_or(&[][..], Vec::as_slice);
    items
        .iter()
        .filter_map(Value::as_object)
        .flat_map(|field| field.iter().map(|(name, held)| (name.clone(), held.clone())))
        .collect()
}

/// `false` and `null` are as good as nothing, and so is the least length that every text has.
fn attribute<'s>(field: &'s Value, name: &str) -> Option<&'s Value> {
    let value = field.get(name)?;
    let is_nothing = match name {
        "eq" => false,
        "len_min" => field["type"] == "string" && *value == 1,
        _ => value.is_null() || *value == false,
    };
    (!is_nothing).then_some(value)
}

fn same(ours: Option<&Value>, theirs: Option<&Value>) -> bool {
    match (ours, theirs) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => a.as_f64() == b.as_f64(),
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b)))
        }
        (a, b) => a == b,
    }
}

fn compare(ours: &Value, theirs: &Value, place: &str, out: &mut BTreeSet<String>) {
    for name in COMPARED {
        let (a, b) = (attribute(ours, name), attribute(theirs, name));
        if !same(a, b) {
            let text = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
            out.insert(format!("{place}: {name} is {}, not {}", text(a), text(b)));
        }
    }
    for list in ["fields", "shorthand_fields"] {
        let (a, b) = (named(&ours[list]), named(&theirs[list]));
        for (name, theirs) in &b {
            let place = format!("{place}.{name}");
            match a.get(name) {
                Some(ours) => compare(ours, theirs, &place, out),
                None => {
                    out.insert(format!("{place} is not told"));
                }
            }
        }
        for name in a.keys().filter(|name| !b.contains_key(*name)) {
            out.insert(format!("{place}.{name} is told, and not there"));
        }
    }
    for part in ["elements", "keys", "values"] {
        if theirs.get(part).is_some() || ours.get(part).is_some() {
            compare(&ours[part], &theirs[part], &format!("{place}.{part}"), out);
        }
    }
}

fn differences(part: &str, describe: fn(&str) -> Option<Value>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let schemas = original(part);
    assert!(schemas.len() > 20, "{} {part}", schemas.len());
    for (name, theirs) in schemas {
        match describe(&name) {
            Some(ours) => compare(&ours, &theirs, &name, &mut found),
            // A plugin that the dialect does not know yet has none.
            None if matches!(known(&name), PluginSupport::Unavailable(_)) => {}
            None => {
                found.insert(format!("{name} has no schema"));
            }
        }
    }
    found.retain(|text| !KNOWN.iter().any(|(place, _)| text.starts_with(place)));
    found
}

fn report(found: &BTreeSet<String>) {
    let list: Vec<&str> = found.iter().map(String::as_str).collect();
    assert!(
        found.is_empty(),
        "{} differences:\n{}",
        found.len(),
        list.join("\n")
    );
}

#[test]
fn entities_are_described_as_in_the_original() {
    report(&differences("entities", describe::entity));
}

#[test]
fn plugins_are_described_as_in_the_original() {
    report(&differences("plugins", describe::plugin));
}
