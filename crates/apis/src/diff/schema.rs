//! Two schemas compared: what became narrower, and what became wider.

use super::{ChangeCollector, Direction};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// How deep schemas are compared.
const MAX_DEPTH: usize = 32;
/// Pairs of schemas that are compared for one operation.
const MAX_PAIRS: usize = 20_000;
/// Pairs of schemas that are compared for two descriptions.
const MAX_ALL_PAIRS: usize = 2_000_000;
/// Parts that one schema is merged of, by `$ref` and `allOf`.
const MAX_PARTS: usize = 1_000;

/// Two schemas by their names, and whether they are of a request.
type NamedPair = (String, String, bool);

/// Compares schemas of two descriptions. References are followed; a pair of references is compared once.
pub(crate) struct Comparison<'d> {
    old: &'d Map<String, Value>,
    new: &'d Map<String, Value>,
    seen: HashSet<NamedPair>,
    /// Pairs in which nothing was found for an operation before: most operations share their schemas.
    same: HashSet<NamedPair>,
    pairs: usize,
    all_pairs: usize,
    /// Whether a schema had too many parts, or went too deep.
    is_cut: bool,
    /// Whether no named schema is another one.
    is_same: bool,
}

impl<'d> Comparison<'d> {
    pub fn new(old: &'d Map<String, Value>, new: &'d Map<String, Value>) -> Self {
        Self {
            old,
            new,
            seen: HashSet::new(),
            same: HashSet::new(),
            pairs: 0,
            all_pairs: 0,
            is_cut: false,
            is_same: old == new,
        }
    }

    /// Notes what is different, as seen from callers.
    pub fn compare(
        &mut self,
        old: &Value,
        new: &Value,
        direction: Direction,
        place: &str,
        notes: &mut ChangeCollector,
    ) {
        if self.is_same && old == new {
            return;
        }
        (self.pairs, self.is_cut) = (0, false);
        let before = notes.count();
        self.pair(old, new, direction, place, 0, notes);
        let seen = self.seen.drain();
        if self.is_cut {
            notes.add(
                false,
                place,
                "has schemas that are too large to be compared whole",
            );
        } else if notes.count() == before {
            self.same.extend(seen);
        }
    }

    fn pair(
        &mut self,
        old: &Value,
        new: &Value,
        direction: Direction,
        place: &str,
        depth: usize,
        notes: &mut ChangeCollector,
    ) {
        self.pairs += 1;
        self.all_pairs += 1;
        if depth > MAX_DEPTH || self.pairs > MAX_PAIRS || self.all_pairs > MAX_ALL_PAIRS {
            self.is_cut = true;
            return;
        }
        if let (Some(one), Some(other)) = (name_of(old), name_of(new)) {
            let key = (one.to_owned(), other.to_owned(), direction == Direction::Request);
            if self.same.contains(&key) || !self.seen.insert(key) {
                return;
            }
        }
        let (Some(old), Some(new)) = (flat(self.old, old), flat(self.new, new)) else {
            self.is_cut = true;
            return;
        };
        if old == new && !has_reference(&Value::Object(old.clone())) {
            return;
        }
        types(&old, &new, direction, place, notes);
        enumerations(&old, &new, direction, place, notes);
        bounds(&old, &new, direction, place, notes);
        self.fields(&old, &new, direction, place, depth, notes);
        if let (Some(old), Some(new)) = (old.get("items"), new.get("items")) {
            self.pair(old, new, direction, &format!("{place}[]"), depth + 1, notes);
        }
        if let (Some(old @ Value::Object(_)), Some(new @ Value::Object(_))) =
            (old.get("additionalProperties"), new.get("additionalProperties"))
        {
            self.pair(old, new, direction, &format!("{place}.*"), depth + 1, notes);
        }
        self.alternatives(&old, &new, direction, place, depth, notes);
    }

    fn fields(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        direction: Direction,
        place: &str,
        depth: usize,
        notes: &mut ChangeCollector,
    ) {
        let none = Map::new();
        let of = |schema: &Map<String, Value>| schema.get("properties").and_then(Value::as_object).cloned();
        let (before, after) = (of(old).unwrap_or_else(|| none.clone()), of(new).unwrap_or(none));
        let (was_required, is_required) = (required(old), required(new));
        let is_request = direction == Direction::Request;
        for (name, schema) in &before {
            let place = format!("{place}.{name}");
            let Some(now) = after.get(name) else {
                // An answer that may lack a field is read by callers who know that.
                let breaking = !is_request && was_required.contains(name.as_str());
                let what = if breaking {
                    "the required field is gone"
                } else {
                    "the field is gone"
                };
                notes.add(breaking, &place, what);
                continue;
            };
            match (
                was_required.contains(name.as_str()),
                is_required.contains(name.as_str()),
            ) {
                (false, true) => notes.add(is_request, &place, "is required now"),
                (true, false) => notes.add(!is_request, &place, "is no longer always there"),
                _ => {}
            }
            self.pair(schema, now, direction, &place, depth + 1, notes);
        }
        for name in after.keys().filter(|name| !before.contains_key(*name)) {
            let breaking = is_request && is_required.contains(name.as_str());
            let what = if breaking {
                "a new required field"
            } else {
                "a new field"
            };
            notes.add(breaking, &format!("{place}.{name}"), what);
        }
        let refuses =
            |schema: &Map<String, Value>| schema.get("additionalProperties") == Some(&Value::Bool(false));
        if is_request && refuses(new) && !refuses(old) {
            notes.add(true, place, "other fields are refused now");
        }
    }

    fn alternatives(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        direction: Direction,
        place: &str,
        depth: usize,
        notes: &mut ChangeCollector,
    ) {
        for word in ["oneOf", "anyOf"] {
            let list = |schema: &Map<String, Value>| {
                schema
                    .get(word)
                    .and_then(Value::as_array)
                    .cloned()
                    .unwrap_or_default()
            };
            let (before, after) = (list(old), list(new));
            if before.len() == after.len() {
                for (index, (old, new)) in before.iter().zip(&after).enumerate() {
                    self.pair(
                        old,
                        new,
                        direction,
                        &format!("{place}.{word}[{index}]"),
                        depth + 1,
                        notes,
                    );
                }
                continue;
            }
            let is_fewer = !before.is_empty() && (after.len() < before.len() && !after.is_empty());
            let is_narrower = is_fewer || before.is_empty();
            let breaking = is_narrower == (direction == Direction::Request);
            let message = format!("'{word}' has {} alternatives, had {}", after.len(), before.len());
            notes.add(breaking, place, message);
        }
    }
}

fn name_of(schema: &Value) -> Option<&str> {
    schema.get("$ref").and_then(Value::as_str)
}

fn has_reference(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key("$ref") || map.values().any(has_reference),
        Value::Array(items) => items.iter().any(has_reference),
        _ => false,
    }
}

/// A schema with its references and `allOf` resolved, one level deep. `None`: it has too many parts, as one that is a part of
/// itself twice.
fn flat(schemas: &Map<String, Value>, schema: &Value) -> Option<Map<String, Value>> {
    let (mut made, mut left) = (Map::new(), MAX_PARTS);
    merge(schemas, schema, &mut made, (0, &mut left));
    (left > 0).then_some(made)
}

fn merge(
    schemas: &Map<String, Value>,
    schema: &Value,
    made: &mut Map<String, Value>,
    (depth, left): (usize, &mut usize),
) {
    let Some(map) = schema.as_object().filter(|_| depth < MAX_DEPTH && *left > 0) else {
        return;
    };
    *left -= 1;
    if let Some(found) = name_of(schema)
        .and_then(|target| target.strip_prefix("#/components/schemas/"))
        .and_then(|name| schemas.get(name))
    {
        merge(schemas, found, made, (depth + 1, left));
    }
    for part in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        merge(schemas, part, made, (depth + 1, left));
    }
    for (word, value) in map {
        match (word.as_str(), value) {
            (
                "$ref" | "allOf" | "title" | "description" | "examples" | "example" | "default"
                | "deprecated",
                _,
            ) => {}
            ("properties", Value::Object(fields)) => {
                let all = made
                    .entry("properties")
                    .or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(all) = all {
                    all.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
                }
            }
            ("required", Value::Array(names)) => {
                let all = made.entry("required").or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(all) = all {
                    all.extend(names.iter().filter(|name| name.is_string()).cloned());
                }
            }
            (_, value) => {
                made.insert(word.clone(), value.clone());
            }
        }
    }
}

fn required(schema: &Map<String, Value>) -> HashSet<String> {
    let names = schema.get("required").and_then(Value::as_array);
    names
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// The types that a schema allows; `None`: all.
fn kinds(schema: &Map<String, Value>) -> Option<Vec<&str>> {
    match schema.get("type")? {
        Value::String(kind) => Some(vec![kind]),
        Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

/// Whether whatever one allows the other allows, too.
fn covers(wide: Option<&[&str]>, narrow: Option<&[&str]>) -> bool {
    match (wide, narrow) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(wide), Some(narrow)) => narrow
            .iter()
            .all(|kind| wide.contains(kind) || (*kind == "integer" && wide.contains(&"number"))),
    }
}

fn kinds_text(kinds: Option<&[&str]>) -> String {
    kinds.map_or_else(|| "any type".to_owned(), |kinds| kinds.join(" or "))
}

fn types(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    direction: Direction,
    place: &str,
    notes: &mut ChangeCollector,
) {
    let (before, after) = (kinds(old), kinds(new));
    let (before, after) = (before.as_deref(), after.as_deref());
    let (is_narrower, is_wider) = (!covers(after, before), !covers(before, after));
    if !is_narrower && !is_wider {
        return;
    }
    let breaking = match direction {
        Direction::Request => is_narrower,
        Direction::Response => is_wider,
    };
    notes.add(
        breaking,
        place,
        format!("is {}, was {}", kinds_text(after), kinds_text(before)),
    );
}

/// A narrower enumeration breaks those who send what it lacks; one in an answer breaks those who wait for it.
fn enumerations(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    direction: Direction,
    place: &str,
    notes: &mut ChangeCollector,
) {
    let list = |schema: &Map<String, Value>| schema.get("enum").and_then(Value::as_array).cloned();
    match (list(old), list(new)) {
        (None, None) => {}
        (Some(_), None) => notes.add(
            direction == Direction::Response,
            place,
            "any value is possible now",
        ),
        (None, Some(values)) => {
            let message = format!("only {} are possible now", Value::Array(values));
            notes.add(direction == Direction::Request, place, message);
        }
        (Some(before), Some(after)) => {
            let gone: Vec<&Value> = before.iter().filter(|it| !after.contains(it)).collect();
            let fresh: Vec<&Value> = after.iter().filter(|it| !before.contains(it)).collect();
            for value in gone {
                notes.add(true, place, format!("the value {value} is no longer possible"));
            }
            for value in fresh {
                notes.add(
                    direction == Direction::Response,
                    place,
                    format!("the value {value} is new"),
                );
            }
        }
    }
}

/// Bounds: the word, and whether a greater number is narrower.
const BOUNDS: [(&str, bool); 10] = [
    ("minimum", true),
    ("exclusiveMinimum", true),
    ("minLength", true),
    ("minItems", true),
    ("minProperties", true),
    ("maximum", false),
    ("exclusiveMaximum", false),
    ("maxLength", false),
    ("maxItems", false),
    ("maxProperties", false),
];

fn bounds(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    direction: Direction,
    place: &str,
    notes: &mut ChangeCollector,
) {
    let is_request = direction == Direction::Request;
    for (word, greater_is_narrower) in BOUNDS {
        let of = |schema: &Map<String, Value>| schema.get(word).and_then(Value::as_f64);
        let is_narrower = match (of(old), of(new)) {
            (None, None) => continue,
            (None, Some(_)) => true,
            (Some(_), None) => false,
            (Some(before), Some(after)) if before == after => continue,
            (Some(before), Some(after)) => (after > before) == greater_is_narrower,
        };
        let shown = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |it| it.to_string());
        let message = format!("'{word}' is {}, was {}", shown(of(new)), shown(of(old)));
        notes.add(is_request && is_narrower, place, message);
    }
    for word in ["pattern", "format", "multipleOf", "const", "uniqueItems"] {
        if old.get(word) != new.get(word) {
            let shown = |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), Value::to_string);
            let message = format!(
                "'{word}' is {}, was {}",
                shown(new.get(word)),
                shown(old.get(word))
            );
            notes.add(
                is_request && new.contains_key(word) && word != "format",
                place,
                message,
            );
        }
    }
}
