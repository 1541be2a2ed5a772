//! Ids of operations in older revisions. Plans name operations as the draft does; a revision that is published may know
//! the same operations by former ids. No I/O.

use crate::diff::shape;
use crate::entities::{Plan, Rename, Version};
use crate::openapi::Operation;
use crate::plans::NO_OPERATION;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Notes which operations of its newest revision have another id in the draft.
pub fn note(version: &mut Version, revision: &[Operation], draft: &[Operation]) {
    version.renames.retain(|it| it.after != version.last_revision);
    let ids = renamed(revision, draft);
    if !ids.is_empty() {
        version.renames.push(Rename {
            after: version.last_revision,
            ids,
        });
    }
}

/// The operations with another id: those of the same method and path whose id is new.
fn renamed(former: &[Operation], today: &[Operation]) -> BTreeMap<String, String> {
    let former_ids: HashSet<&str> = former.iter().map(|it| it.id.as_str()).collect();
    let mut new = HashMap::new();
    for operation in today.iter().filter(|it| !former_ids.contains(it.id.as_str())) {
        new.entry(shape(&operation.method, &operation.path))
            .or_insert(operation);
    }
    let pairs = former.iter().filter_map(|it| {
        let today = new.get(&shape(&it.method, &it.path))?;
        Some((it.id.clone(), today.id.clone()))
    });
    pairs.collect()
}

/// The id that the draft gives an operation of a revision.
pub fn latest<'i>(id: &'i str, renames: &'i [Rename], revision: u32) -> &'i str {
    renames
        .iter()
        .filter(|it| it.after >= revision)
        .fold(id, |id, it| it.ids.get(id).map_or(id, String::as_str))
}

/// A plan with the ids of a revision. An operation that the revision does not have is an id that nothing has: a plan
/// without any id would open all operations.
pub fn as_of(plan: &Plan, renames: &[Rename], revision: u32) -> Plan {
    let steps: Vec<(&Rename, HashMap<&str, &str>)> = renames
        .iter()
        .rev()
        .filter(|it| it.after >= revision)
        .map(|it| {
            let former = it.ids.iter().map(|(from, to)| (to.as_str(), from.as_str()));
            (it, former.collect())
        })
        .collect();
    let former = |id: &str| {
        let id = steps
            .iter()
            .try_fold(id, |id, (rename, former)| match former.get(id) {
                Some(former) => Some(*former),
                // The id is in use by now for another operation, which was not there then.
                None if rename.ids.contains_key(id) => None,
                None => Some(id),
            });
        id.unwrap_or(NO_OPERATION).to_owned()
    };
    let mut plan = plan.clone();
    for id in &mut plan.operations {
        *id = former(id);
    }
    let limits = std::mem::take(&mut plan.operation_limits).into_iter();
    plan.operation_limits = limits.map(|(id, all)| (former(&id), all)).collect();
    plan.operation_limits.remove(NO_OPERATION);
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::from_value;
    use serde_json::{Map, json};
    use std::collections::BTreeSet;

    /// Operations from `id path`.
    fn operations(all: &[&str]) -> Vec<Operation> {
        let paths: Map<String, serde_json::Value> = all
            .iter()
            .filter_map(|it| it.split_once(' '))
            .map(|(id, path)| (path.to_owned(), json!({"get": {"operationId": id}})))
            .collect();
        let document = json!({"openapi": "3.1.0", "info": {}, "paths": paths});
        from_value(document).expect("a description").operations
    }

    /// A version with these revisions; the last document is its draft.
    fn version(documents: &[&[&str]]) -> Version {
        let mut version = Version::default();
        for (before, after) in documents.iter().zip(&documents[1..]) {
            version.last_revision += 1;
            note(&mut version, &operations(before), &operations(after));
        }
        version
    }

    #[test]
    fn plans_open_the_same_operations_of_each_revision() {
        let swapped: &[&[&str]] = &[&["a /1", "b /2"], &["b /1", "a /2"]];
        let twice: &[&[&str]] = &[&["a /1"], &["b /1"], &["c /1"]];
        let reused: &[&[&str]] = &[&["a /1"], &["q /1", "a /2"]];
        let removed: &[&[&str]] = &[&["a /1"], &["m /2"]];
        for (documents, opened, revision, expected) in [
            (
                &[&["a /1", "b /2"][..], &["a /1", "b /2"]][..],
                &["a", "b"][..],
                1,
                &["a", "b"][..],
            ),
            (
                &[&["a /1", "b /2"], &["a /1", "n /2"]],
                &["a", "n"],
                1,
                &["a", "b"],
            ),
            (
                &[&["a /1", "b /2"], &["a /1", "n /2"]],
                &["a", "n"],
                2,
                &["a", "n"],
            ),
            // Ids that stay are the same operations, wherever they are.
            (swapped, &["a"], 1, &["a"]),
            (twice, &["c"], 1, &["a"]),
            (twice, &["c"], 2, &["b"]),
            (twice, &["c"], 3, &["c"]),
            // The former id belongs to another operation by now.
            (reused, &["q"], 1, &["a"]),
            (reused, &["a"], 1, &[NO_OPERATION]),
            (reused, &["a", "q"], 1, &[NO_OPERATION, "a"]),
            // Another operation is not the one that is gone.
            (removed, &["m"], 1, &["m"]),
        ] {
            let version = version(documents);
            let plan = Plan {
                operations: opened.iter().map(|it| (*it).to_owned()).collect(),
                operation_limits: opened.iter().map(|it| ((*it).to_owned(), Vec::new())).collect(),
                ..Plan::default()
            };
            let plan = as_of(&plan, &version.renames, revision);
            assert_eq!(plan.operations, expected, "{documents:?} {opened:?} {revision}");
            let limited: BTreeSet<&str> = plan.operation_limits.keys().map(String::as_str).collect();
            let expected: BTreeSet<&str> = expected
                .iter()
                .copied()
                .filter(|it| *it != NO_OPERATION)
                .collect();
            assert_eq!(limited, expected, "{documents:?} {opened:?} {revision}");
        }
    }

    #[test]
    fn operations_have_the_ids_of_the_draft() {
        let version = version(&[&["a /1", "x /2"], &["b /1", "x /2"], &["c /1", "y /2"]]);
        for (id, revision, expected) in [
            ("a", 1, "c"),
            ("b", 2, "c"),
            ("c", 3, "c"),
            ("x", 1, "y"),
            ("z", 1, "z"),
        ] {
            assert_eq!(
                latest(id, &version.renames, revision),
                expected,
                "{id} {revision}"
            );
        }
    }
}
