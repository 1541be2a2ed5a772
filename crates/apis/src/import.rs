//! A document again: what people have added to operations stays with the operations.

use crate::diff::shape;
use crate::entities::OperationSettings;
use crate::openapi::Operation;
use std::collections::{BTreeMap, HashMap};

/// The result of an import.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MergeResult {
    /// The additions of people, by the operations' ids of today. What belongs to operations that are gone stays, too:
    /// an operation that comes back finds it.
    pub operations: BTreeMap<String, OperationSettings>,
    /// Operations that have another id now: the former one, and that of today.
    pub renamed: BTreeMap<String, String>,
    /// Operations with settings that the document no longer has.
    pub gone: Vec<String>,
}

/// The first operation of each method and path.
fn by_shape<'o>(operations: impl Iterator<Item = &'o Operation>) -> HashMap<String, &'o Operation> {
    let mut found = HashMap::new();
    for operation in operations {
        found
            .entry(shape(&operation.method, &operation.path))
            .or_insert(operation);
    }
    found
}

/// Finds the settings' operations again: by their id, then by method and path.
pub fn merge(
    settings: &BTreeMap<String, OperationSettings>,
    old: &[Operation],
    new: &[Operation],
) -> MergeResult {
    let shapes: HashMap<&str, String> = old
        .iter()
        .map(|it| (it.id.as_str(), shape(&it.method, &it.path)))
        .collect();
    // One that has settings of its own keeps those.
    let free = by_shape(new.iter().filter(|it| !settings.contains_key(&it.id)));
    // The ids of a document are unique.
    let ids: HashMap<&str, &Operation> = new.iter().map(|it| (it.id.as_str(), it)).collect();
    let mut merged = MergeResult::default();
    for (id, known) in settings {
        let known_as = shapes.get(id.as_str()).unwrap_or(&known.known_as);
        let found = ids.get(id.as_str()).or_else(|| free.get(known_as));
        let mut kept = known.clone();
        let today = match found {
            Some(operation) => {
                kept.known_as = shape(&operation.method, &operation.path);
                operation.id.clone()
            }
            None => {
                kept.known_as.clone_from(known_as);
                merged.gone.push(id.clone());
                id.clone()
            }
        };
        merged.operations.insert(today, kept);
    }
    let all = by_shape(new.iter());
    for before in old.iter().filter(|it| !ids.contains_key(it.id.as_str())) {
        let today = shapes.get(before.id.as_str()).and_then(|it| all.get(it));
        if let Some(today) = today {
            merged.renamed.insert(before.id.clone(), today.id.clone());
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::from_value;
    use serde_json::{Value, json};

    fn operations(paths: Value) -> Vec<Operation> {
        let document = json!({"openapi": "3.1.0", "info": {}, "paths": paths});
        from_value(document).expect("a description").operations
    }

    #[test]
    fn settings_stay_with_their_operations() {
        let settings = |names: &[&str]| -> BTreeMap<String, OperationSettings> {
            let one = |name: &&str| {
                let plugins = vec![json!({"cors": {"name": name}})];
                (
                    (*name).to_owned(),
                    OperationSettings {
                        plugins,
                        ..OperationSettings::default()
                    },
                )
            };
            names.iter().map(one).collect()
        };
        let old = operations(
            json!({"/a": {"get": {"operationId": "a"}, "put": {"operationId": "b"}}, "/c": {"get": {"operationId": "c"}}}),
        );
        let new = operations(
            json!({"/moved": {"get": {"operationId": "a"}}, "/a": {"put": {"operationId": "writeA"}}}),
        );
        let merged = merge(&settings(&["a", "b", "c"]), &old, &new);
        let pairs: Vec<(String, String)> = merged
            .operations
            .iter()
            .map(|(id, it)| {
                (
                    format!("{id} {}", it.known_as),
                    it.plugins[0]["cors"]["name"].to_string(),
                )
            })
            .collect();
        let pairs: Vec<(&str, &str)> = pairs
            .iter()
            .map(|(one, other)| (one.as_str(), other.as_str()))
            .collect();
        assert_eq!(
            pairs,
            [
                ("a GET /moved", "\"a\""),
                ("c GET /c", "\"c\""),
                ("writeA PUT /a", "\"b\"")
            ]
        );
        assert_eq!(
            merged.renamed,
            BTreeMap::from([("b".to_owned(), "writeA".to_owned())])
        );
        assert_eq!(merged.gone, ["c"]);
        // One that comes back finds its settings.
        let back = operations(json!({"/c": {"get": {}}}));
        let again = merge(&merged.operations, &new, &back);
        assert_eq!(again.operations["get-c"].plugins[0]["cors"]["name"], "c");
    }

    /// As many as a document may have, none with an id that it had: a comparison of each with each would take minutes.
    #[test]
    fn fifty_thousand_operations_are_merged_at_once() {
        let paths = |prefix: &str| {
            let one = |it: usize| {
                (
                    format!("/p/{it}"),
                    json!({"get": {"operationId": format!("{prefix}{it}")}}),
                )
            };
            operations(
                (0..50_000)
                    .map(one)
                    .collect::<serde_json::Map<String, Value>>()
                    .into(),
            )
        };
        let (old, new) = (paths("a"), paths("b"));
        let settings = old
            .iter()
            .map(|it| (it.id.clone(), OperationSettings::default()))
            .collect();
        let merged = merge(&settings, &old, &new);
        assert_eq!((merged.operations.len(), merged.gone.len()), (50_000, 0));
        assert_eq!(merged.renamed["a49999"], "b49999");
    }
}
