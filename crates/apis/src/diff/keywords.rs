//! The keywords of one schema, without the schemas that are in it: types, values, bounds, and conditions that are not
//! understood.

use super::{ChangeCollector, Direction};
use serde_json::{Map, Value};

/// A condition: words of a schema that belong together, and that are compared as they are written.
pub(super) struct Condition {
    /// The words.
    pub words: &'static [&'static str],
    /// The type of values that it is about; all, if there is none.
    kind: Option<&'static str>,
}

const fn condition(words: &'static [&'static str], kind: Option<&'static str>) -> Condition {
    Condition { words, kind }
}

/// What such a condition allows is not worked out: another one may be narrower as well as wider.
pub(super) const CONDITIONS: [Condition; 9] = [
    condition(&["not"], None),
    condition(&["if", "then", "else"], None),
    // What is left of `allOf` if its parts cannot be merged.
    condition(&["allOf"], None),
    condition(&["patternProperties"], Some("object")),
    condition(&["propertyNames"], Some("object")),
    condition(&["dependentRequired"], Some("object")),
    condition(&["dependentSchemas"], Some("object")),
    condition(&["contains", "minContains", "maxContains"], Some("array")),
    condition(&["unevaluatedItems"], Some("array")),
];

impl Condition {
    /// Whether both schemas have values that it is about. If one has none, their types say all.
    pub fn is_about(&self, old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
        self.kind
            .is_none_or(|kind| allows(old, kind) && allows(new, kind))
    }

    /// Its words in a schema; `None`: it is not there.
    pub fn of(&self, schema: &Map<String, Value>) -> Option<Value> {
        let words = self.words.iter().map(|word| schema.get(*word));
        let found: Vec<Value> = words.map(|it| it.cloned().unwrap_or_default()).collect();
        found
            .iter()
            .any(|it| !it.is_null())
            .then_some(Value::Array(found))
    }

    /// Notes that it is another one, of which one of both may be `None`.
    pub fn note(
        &self,
        (old, new): (Option<&Value>, Option<&Value>),
        direction: Direction,
        place: &str,
        notes: &mut ChangeCollector,
    ) {
        let (breaking, what) = match (old, new) {
            (None, _) => (direction.breaks(true, false), "new"),
            (_, None) => (direction.breaks(false, true), "gone"),
            _ => (true, "another one"),
        };
        let word = self.words[0];
        let reason = if breaking {
            ": it is unclear which callers this breaks, so it counts as breaking"
        } else {
            ""
        };
        notes.add(breaking, place, format!("'{word}' is {what}{reason}"));
    }
}

/// The types that a schema allows; `None`: all.
fn kinds(schema: &Map<String, Value>) -> Option<Vec<&str>> {
    kinds_in(schema.get("type")?)
}

/// The types that the value of `type` names.
pub(super) fn kinds_in(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::String(kind) => Some(vec![kind]),
        Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).collect()),
        _ => None,
    }
}

/// Whether a schema allows values of a type.
pub(super) fn allows(schema: &Map<String, Value>, kind: &str) -> bool {
    kinds(schema).is_none_or(|kinds| kinds.contains(&kind))
}

/// Whether whatever one allows the other allows, too.
pub(super) fn covers(wide: Option<&[&str]>, narrow: Option<&[&str]>) -> bool {
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

pub(super) fn types(
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
    notes.add(
        direction.breaks(is_narrower, is_wider),
        place,
        format!("is {}, was {}", kinds_text(after), kinds_text(before)),
    );
}

/// A narrower enumeration breaks those who send what it lacks; one in an answer breaks those who wait for it.
pub(super) fn enumerations(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    direction: Direction,
    place: &str,
    notes: &mut ChangeCollector,
) {
    let list = |schema: &Map<String, Value>| schema.get("enum").and_then(Value::as_array).cloned();
    match (list(old), list(new)) {
        (None, None) => {}
        (Some(_), None) => notes.add(direction.breaks(false, true), place, "any value is possible now"),
        (None, Some(values)) => {
            let message = format!("only {} are possible now", Value::Array(values));
            notes.add(direction.breaks(true, false), place, message);
        }
        (Some(before), Some(after)) => {
            let gone: Vec<&Value> = before.iter().filter(|it| !after.contains(it)).collect();
            let fresh: Vec<&Value> = after.iter().filter(|it| !before.contains(it)).collect();
            for value in gone {
                notes.add(true, place, format!("the value {value} is no longer possible"));
            }
            for value in fresh {
                let message = format!("the value {value} is new");
                notes.add(direction.breaks(false, true), place, message);
            }
        }
    }
}

/// Bounds: the word, and whether a greater number is narrower.
pub(super) const BOUNDS: [(&str, bool); 10] = [
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

pub(super) fn bounds(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    direction: Direction,
    place: &str,
    notes: &mut ChangeCollector,
) {
    let is_request = direction == Direction::Request;
    let note = |notes: &mut ChangeCollector, breaking: bool, word: &str, (now, before): (String, String)| {
        notes.add(
            is_request && breaking,
            place,
            format!("'{word}' is {now}, was {before}"),
        );
    };
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
        note(notes, is_narrower, word, (shown(of(new)), shown(of(old))));
    }
    for word in ["pattern", "format", "multipleOf", "uniqueItems"] {
        if old.get(word) != new.get(word) {
            let shown = |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), Value::to_string);
            let breaking = new.contains_key(word) && word != "format";
            note(
                notes,
                breaking,
                word,
                (shown(new.get(word)), shown(old.get(word))),
            );
        }
    }
}
