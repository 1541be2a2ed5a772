//! What callers must show to be allowed in.

use super::{Change, ChangeCollector, entries, text};
use crate::openapi::Description;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What is different about security schemes, by their names.
pub(super) type ChangedSchemes = BTreeMap<String, Vec<Change>>;

/// The security schemes that two descriptions have, and that callers meet in another way.
pub(super) fn changed_schemes(old: &Description, new: &Description) -> ChangedSchemes {
    let both = old.security_schemes.iter().filter_map(|(name, was)| {
        let changes = scheme_changes(&format!("security.{name}"), was, new.security_schemes.get(name)?);
        (!changes.is_empty()).then(|| (name.clone(), changes))
    });
    both.collect()
}

fn scheme_changes(place: &str, old: &Value, new: &Value) -> Vec<Change> {
    let (was, now) = (credential(old), credential(new));
    if was != now {
        return vec![change(true, place, format!("is {now}, was {was}"))];
    }
    let mut changes = Vec::new();
    let (before, after) = (entries(old, "flows"), entries(new, "flows"));
    for (name, flow) in before.into_iter().flatten() {
        let place = format!("{place}.flows.{name}");
        match after.and_then(|it| it.get(name)) {
            Some(now) => flow_changes(&place, flow, now, &mut changes),
            None => changes.push(change(true, &place, "the flow is gone")),
        }
    }
    let is_new = |name: &&String| before.is_none_or(|it| !it.contains_key(*name));
    for name in after.into_iter().flat_map(Map::keys).filter(is_new) {
        changes.push(change(false, &format!("{place}.flows.{name}"), "a new flow"));
    }
    changes
}

/// Callers get their tokens at the addresses of a flow, and ask for its scopes.
fn flow_changes(place: &str, old: &Value, new: &Value, changes: &mut Vec<Change>) {
    for address in [
        "authorizationUrl",
        "deviceAuthorizationUrl",
        "tokenUrl",
        "refreshUrl",
    ] {
        let (was, now) = (text(old, address), text(new, address));
        if was == now {
            continue;
        }
        let (breaking, message) = match (was, now) {
            ("", now) => (false, format!("'{address}' is '{now}', was none")),
            (was, "") => (true, format!("'{address}' is none, was '{was}'")),
            (was, now) => (true, format!("'{address}' is '{now}', was '{was}'")),
        };
        changes.push(change(breaking, place, message));
    }
    let scopes =
        |flow| -> BTreeSet<&String> { entries(flow, "scopes").into_iter().flat_map(Map::keys).collect() };
    let (before, after) = (scopes(old), scopes(new));
    for scope in before.difference(&after) {
        changes.push(change(true, place, format!("the scope '{scope}' is gone")));
    }
    for scope in after.difference(&before) {
        changes.push(change(false, place, format!("the scope '{scope}' is new")));
    }
}

fn change(breaking: bool, place: &str, message: impl Into<String>) -> Change {
    Change {
        place: place.to_owned(),
        message: message.into(),
        breaking,
    }
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
        for it in changed.get(name).into_iter().flatten() {
            notes.add(it.breaking, &it.place, it.message.as_str());
        }
    }
}
