//! A document again: what people have added to operations stays with the operations.

use crate::diff::shape;
use crate::entities::OperationSettings;
use crate::openapi::Operation;
use std::collections::BTreeMap;

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MergeResult {
    /// What people have added, by the operations' ids of today. What belongs to operations that are gone stays, too: an
    /// operation that comes back finds it.
    pub operations: BTreeMap<String, OperationSettings>,
    /// Operations that have another id now: the former one, and that of today.
    pub renamed: BTreeMap<String, String>,
    /// Operations with settings that the document no longer has.
    pub gone: Vec<String>,
}

/// Finds the settings' operations again: by their id, then by method and path.
pub fn merge(
    settings: &BTreeMap<String, OperationSettings>,
    old: &[Operation],
    new: &[Operation],
) -> MergeResult {
    let shapes: BTreeMap<&str, String> = old
        .iter()
        .map(|it| (it.id.as_str(), shape(&it.method, &it.path)))
        .collect();
    let mut merged = MergeResult::default();
    for (id, known) in settings {
        let same_id = new.iter().find(|it| it.id == *id);
        let known_as = match shapes.get(id.as_str()) {
            Some(shape) => shape.clone(),
            None => known.known_as.clone(),
        };
        let found = same_id.or_else(|| {
            // One that has settings of its own keeps those.
            let mut others = new.iter().filter(|it| !settings.contains_key(&it.id));
            others.find(|it| shape(&it.method, &it.path) == known_as)
        });
        let mut kept = known.clone();
        let today = match found {
            Some(operation) => {
                kept.known_as = shape(&operation.method, &operation.path);
                operation.id.clone()
            }
            None => {
                kept.known_as = known_as;
                merged.gone.push(id.clone());
                id.clone()
            }
        };
        merged.operations.insert(today, kept);
    }
    for before in old {
        let is_there = new.iter().any(|it| it.id == before.id);
        let shape_before = shape(&before.method, &before.path);
        let today = new.iter().find(|it| shape(&it.method, &it.path) == shape_before);
        if let (false, Some(today)) = (is_there, today) {
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
        let told: Vec<(String, String)> = merged
            .operations
            .iter()
            .map(|(id, it)| {
                (
                    format!("{id} {}", it.known_as),
                    it.plugins[0]["cors"]["name"].to_string(),
                )
            })
            .collect();
        let told: Vec<(&str, &str)> = told
            .iter()
            .map(|(one, other)| (one.as_str(), other.as_str()))
            .collect();
        assert_eq!(
            told,
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
}
