//! Two schemas compared: what became narrower, and what became wider.

use super::flat::{MAX_DEPTH, flat, has_reference, name_of, required, strip_annotations, targets};
use super::keywords::{CONDITIONS, allows, bounds, enumerations, types};
use super::{ChangeCollector, Direction};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// Pairs of schemas that are compared for one operation.
const MAX_PAIRS: usize = 20_000;
/// Pairs of schemas that are compared for two descriptions.
const MAX_ALL_PAIRS: usize = 2_000_000;

/// Pairs of alternatives that are looked at for what they have in common.
const MAX_ALTERNATIVE_PAIRS: usize = 2_500;

/// Two schemas by their names, and whether they are of a request.
type SchemaPair = (String, String, bool);

/// Compares schemas of two descriptions. References are followed; a pair of references is compared once.
pub(crate) struct Comparison<'d> {
    old: &'d Map<String, Value>,
    new: &'d Map<String, Value>,
    seen: HashSet<SchemaPair>,
    /// Pairs in which nothing was found for an operation before: most operations share their schemas.
    same: HashSet<SchemaPair>,
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

    /// Whether a schema of the old description allows lists or maps.
    pub fn was_list_or_map(&self, schema: &Value) -> bool {
        let all = flat(self.old, schema);
        all.is_none_or(|schema| allows(&schema, "array") || allows(&schema, "object"))
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
        self.items(&old, &new, direction, place, depth, notes);
        self.other_fields(&old, &new, direction, place, depth, notes);
        self.conditions(&old, &new, direction, place, notes);
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
            let is_there = (
                was_required.contains(name.as_str()),
                is_required.contains(name.as_str()),
            );
            requirement(is_there, direction, &place, notes);
            self.pair(schema, now, direction, &place, depth + 1, notes);
        }
        for name in after.keys().filter(|name| !before.contains_key(*name)) {
            let is_newly_required =
                is_required.contains(name.as_str()) && !was_required.contains(name.as_str());
            let breaking = is_request && is_newly_required;
            let what = if breaking {
                "a new required field"
            } else {
                "a new field"
            };
            notes.add(breaking, &format!("{place}.{name}"), what);
        }
        if allows(old, "object") && allows(new, "object") {
            // Fields that are required without being described.
            for name in new_names(&was_required, &is_required, &after) {
                requirement((false, true), direction, &format!("{place}.{name}"), notes);
            }
            for name in new_names(&is_required, &was_required, &before) {
                requirement((true, false), direction, &format!("{place}.{name}"), notes);
            }
        }
    }

    /// Fields that have no name in the schema.
    fn other_fields(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        direction: Direction,
        place: &str,
        depth: usize,
        notes: &mut ChangeCollector,
    ) {
        let refuses = |schema: &Map<String, Value>| {
            ["additionalProperties", "unevaluatedProperties"]
                .iter()
                .any(|word| schema.get(*word) == Some(&Value::Bool(false)))
        };
        match (refuses(old), refuses(new)) {
            (false, true) if direction == Direction::Request => {
                notes.add(true, place, "other fields are refused now");
            }
            (false, false) if allows(old, "object") && allows(new, "object") => {
                let any = Value::Bool(true);
                let of = |schema: &Map<String, Value>| schema.get("additionalProperties").cloned();
                let (old, new) = (of(old).unwrap_or_else(|| any.clone()), of(new).unwrap_or(any));
                self.pair(&old, &new, direction, &format!("{place}.*"), depth + 1, notes);
            }
            _ => {}
        }
    }

    fn items(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        direction: Direction,
        place: &str,
        depth: usize,
        notes: &mut ChangeCollector,
    ) {
        if !(allows(old, "array") && allows(new, "array")) {
            return;
        }
        let any = Value::Bool(true);
        let first = |schema: &Map<String, Value>| -> Vec<Value> {
            let list = schema.get("prefixItems").and_then(Value::as_array);
            list.cloned().unwrap_or_default()
        };
        let rest = |schema: &Map<String, Value>| schema.get("items").cloned().unwrap_or_else(|| any.clone());
        let (was_first, is_first, was_rest, is_rest) = (first(old), first(new), rest(old), rest(new));
        for index in 0..was_first.len().max(is_first.len()) {
            let (old, new) = (
                was_first.get(index).unwrap_or(&was_rest),
                is_first.get(index).unwrap_or(&is_rest),
            );
            self.pair(
                old,
                new,
                direction,
                &format!("{place}[{index}]"),
                depth + 1,
                notes,
            );
        }
        self.pair(
            &was_rest,
            &is_rest,
            direction,
            &format!("{place}[]"),
            depth + 1,
            notes,
        );
    }

    fn conditions(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        direction: Direction,
        place: &str,
        notes: &mut ChangeCollector,
    ) {
        for condition in CONDITIONS.iter().filter(|it| it.is_about(old, new)) {
            let (before, after) = (condition.of(old), condition.of(new));
            let is_same = match (&before, &after) {
                (None, None) => true,
                (Some(before), Some(after)) => {
                    strip_annotations(before) == strip_annotations(after) && self.has_same_targets(after)
                }
                _ => false,
            };
            if !is_same {
                condition.note((before.as_ref(), after.as_ref()), direction, place, notes);
            }
        }
    }

    /// Whether all schemas that a value refers to, however far, are as they were.
    fn has_same_targets(&mut self, value: &Value) -> bool {
        if self.is_same {
            return true;
        }
        let schemas = self.new;
        let (mut open, mut seen) = (Vec::new(), HashSet::new());
        targets(value, &mut open);
        while let Some(name) = open.pop() {
            if !seen.insert(name) {
                continue;
            }
            self.pairs += 1;
            self.all_pairs += 1;
            if self.pairs > MAX_PAIRS || self.all_pairs > MAX_ALL_PAIRS {
                self.is_cut = true;
                return true;
            }
            let (before, after) = (self.old.get(name), schemas.get(name));
            if before.map(strip_annotations) != after.map(strip_annotations) {
                return false;
            }
            if let Some(after) = after {
                targets(after, &mut open);
            }
        }
        true
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
            for (index, other) in self.partners(&before, &after) {
                let place = format!("{place}.{word}[{index}]");
                self.pair(&before[index], &after[other], direction, &place, depth + 1, notes);
            }
            if before.len() == after.len() {
                continue;
            }
            let is_fewer = !before.is_empty() && (after.len() < before.len() && !after.is_empty());
            let is_narrower = is_fewer || before.is_empty();
            let breaking = is_narrower == (direction == Direction::Request);
            let message = format!("'{word}' has {} alternatives, had {}", after.len(), before.len());
            notes.add(breaking, place, message);
        }
    }

    /// Which alternative was which: those that are written alike wherever they stand, then those of the same name or with
    /// most in common, and what is left in its order. Where there are more on one side, some have no partner.
    fn partners(&self, before: &[Value], after: &[Value]) -> Vec<(usize, usize)> {
        let mut found = written_alike(before, after);
        let mut taken: HashSet<usize> = found.iter().copied().flatten().collect();
        let open: Vec<usize> = (0..before.len())
            .filter(|index| found[*index].is_none())
            .collect();
        let others: Vec<usize> = (0..after.len()).filter(|index| !taken.contains(index)).collect();
        let mut pairs = Vec::new();
        if open.len() * others.len() <= MAX_ALTERNATIVE_PAIRS {
            let merged = |schemas, schema| flat(schemas, schema).unwrap_or_default();
            let new: Vec<_> = others
                .iter()
                .map(|index| merged(self.new, &after[*index]))
                .collect();
            for one in &open {
                let old = merged(self.old, &before[*one]);
                for (other, new) in others.iter().zip(&new) {
                    let has_same_name =
                        name_of(&before[*one]).is_some_and(|name| name_of(&after[*other]) == Some(name));
                    pairs.push((has_same_name, likeness(&old, new), *one, *other));
                }
            }
            // The most alike first; among equals, in their order.
            pairs.sort_by_key(|(has_same_name, likeness, one, other)| {
                std::cmp::Reverse((*has_same_name, *likeness, std::cmp::Reverse((*one, *other))))
            });
        }
        for (_, _, one, other) in pairs {
            if found[one].is_none() && taken.insert(other) {
                found[one] = Some(other);
            }
        }
        let mut left = others.into_iter().filter(|index| !taken.contains(index));
        let all = found.into_iter().enumerate();
        all.filter_map(|(index, partner)| Some((index, partner.or_else(|| left.next())?)))
            .collect()
    }
}

/// Whether a field that was required is required still.
fn requirement(is_there: (bool, bool), direction: Direction, place: &str, notes: &mut ChangeCollector) {
    match is_there {
        (false, true) => notes.add(direction.breaks(true, false), place, "is required now"),
        (true, false) => notes.add(direction.breaks(false, true), place, "is no longer always there"),
        _ => {}
    }
}

/// Names that only the second list has, without those that are described.
fn new_names<'n>(
    before: &HashSet<String>,
    after: &'n HashSet<String>,
    described: &Map<String, Value>,
) -> Vec<&'n String> {
    let is_new = |name: &&String| !before.contains(*name) && !described.contains_key(*name);
    let mut names: Vec<&String> = after.iter().filter(is_new).collect();
    names.sort();
    names
}

/// Which alternatives are written alike, wherever they stand: for each of those before, one of those after.
fn written_alike(before: &[Value], after: &[Value]) -> Vec<Option<usize>> {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, schema) in after.iter().enumerate().rev() {
        places
            .entry(strip_annotations(schema).to_string())
            .or_default()
            .push(index);
    }
    let mut alike = |schema: &Value| places.get_mut(&strip_annotations(schema).to_string())?.pop();
    before.iter().map(&mut alike).collect()
}

/// How much two alternatives have in common that are not written alike.
fn likeness(old: &Map<String, Value>, new: &Map<String, Value>) -> usize {
    let fields = |schema: &Map<String, Value>| schema.get("properties").and_then(Value::as_object).cloned();
    let (before, after) = (fields(old).unwrap_or_default(), fields(new).unwrap_or_default());
    let same_fields = before.keys().filter(|name| after.contains_key(*name));
    // A field of one value, such as the name of a kind, tells alternatives apart.
    let same_values = before.iter().filter(|(name, was)| {
        let one = |schema: &Value| schema.get("const").or_else(|| schema.get("enum")).cloned();
        one(was).is_some() && one(was) == after.get(*name).and_then(one)
    });
    let same_type = usize::from(old.get("type") == new.get("type"));
    same_type + 2 * same_fields.count() + 100 * same_values.count()
}
