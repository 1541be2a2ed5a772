//! What callers must show to be allowed in.

use super::{ChangeCollector, text};
use crate::openapi::Description;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Security schemes by their names that ask for something else now: what it was, and what it is.
pub(super) type ChangedSchemes = BTreeMap<String, (String, String)>;

/// The security schemes that two descriptions have, and that callers meet in another way.
pub(super) fn changed_schemes(old: &Description, new: &Description) -> ChangedSchemes {
    let both = old.security_schemes.iter().filter_map(|(name, was)| {
        let (was, now) = (credential(was), credential(new.security_schemes.get(name)?));
        (was != now).then(|| (name.clone(), (was, now)))
    });
    both.collect()
}

/// What a scheme asks callers to send.
fn credential(scheme: &Value) -> String {
    let (kind, place) = (text(scheme, "type"), text(scheme, "in"));
    match (kind, place) {
        // Names of headers are the same in capital letters.
        ("apiKey", "header") => format!("a key in the header '{}'", text(scheme, "name").to_lowercase()),
        ("apiKey", _) => format!("a key in the {place} '{}'", text(scheme, "name")),
        ("http", _) => format!("HTTP '{}'", text(scheme, "scheme").to_lowercase()),
        ("openIdConnect", _) => format!("a token of '{}'", text(scheme, "openIdConnectUrl")),
        _ => format!("'{kind}'"),
    }
}

/// Each alternative as the sorted list of its schemes with their scopes.
fn alternatives(value: &Value) -> Vec<Vec<String>> {
    let list = value.get("security").and_then(Value::as_array);
    let mut all: Vec<Vec<String>> = list
        .into_iter()
        .flatten()
        .map(|alternative| {
            let mut needs: Vec<String> = Vec::new();
            for (scheme, scopes) in alternative.as_object().into_iter().flatten() {
                needs.push(scheme.clone());
                let scopes = scopes.as_array().into_iter().flatten().filter_map(Value::as_str);
                needs.extend(scopes.map(|scope| format!("{scheme} with {scope}")));
            }
            needs.sort();
            needs
        })
        .collect();
    if all.is_empty() {
        all.push(Vec::new());
    }
    all
}

/// Stricter: an old way in is good enough for none of the new ones.
pub(super) fn security(old: &Value, new: &Value, changed: &ChangedSchemes, notes: &mut ChangeCollector) {
    let (before, after) = (alternatives(old), alternatives(new));
    let still_opens = |way: &Vec<String>| after.iter().any(|it| it.iter().all(|need| way.contains(need)));
    for way in before.iter().filter(|way| !still_opens(way)) {
        let way = if way.is_empty() {
            "without credentials".to_owned()
        } else {
            format!("with {}", way.join(" and "))
        };
        notes.add(true, "security", format!("calls {way} are no longer accepted"));
    }
    if before != after && before.iter().all(still_opens) {
        notes.add(false, "security", "there are other ways in");
    }
    let names = |value: &Value| -> BTreeSet<String> {
        let all = value.get("security").and_then(Value::as_array);
        let maps = all.into_iter().flatten().filter_map(Value::as_object);
        maps.flat_map(|it| it.keys().cloned()).collect()
    };
    for name in names(old).intersection(&names(new)) {
        if let Some((before, after)) = changed.get(name) {
            let message = format!("is {after}, was {before}");
            notes.add(true, &format!("security.{name}"), message);
        }
    }
}
