//! Ids of operations in older revisions. Plans name operations as the draft does; a revision that is published may know
//! the same operations by former ids. No I/O.

use crate::entities::{Plan, Rename, Version};
use crate::plans::NO_OPERATION;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Notes that operations of a draft have other ids than in its newest revision.
pub fn note(version: &mut Version, renamed: &BTreeMap<String, String>) {
    // Before there is a revision, nothing knows the former ids.
    if version.last_revision == 0 || renamed.is_empty() {
        return;
    }
    if version
        .renames
        .last()
        .is_none_or(|it| it.after != version.last_revision)
    {
        version.renames.push(Rename {
            after: version.last_revision,
            ids: BTreeMap::new(),
        });
    }
    let Some(last) = version.renames.last_mut() else {
        return;
    };
    let reached: BTreeSet<String> = last.ids.values().cloned().collect();
    for id in last.ids.values_mut() {
        if let Some(today) = renamed.get(id) {
            id.clone_from(today);
        }
    }
    let more = renamed.iter().filter(|(from, _)| !reached.contains(*from));
    last.ids.extend(more.map(|(from, to)| (from.clone(), to.clone())));
    last.ids.retain(|from, to| from != to);
    if last.ids.is_empty() {
        version.renames.pop();
    }
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

    fn renamed(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(from, to): &(&str, &str)| ((*from).to_owned(), (*to).to_owned());
        pairs.iter().map(owned).collect()
    }

    /// A version whose draft was changed so after these revisions.
    fn version(steps: &[(u32, &[(&str, &str)])]) -> Version {
        let mut version = Version::default();
        for (revision, pairs) in steps {
            version.last_revision = *revision;
            note(&mut version, &renamed(pairs));
        }
        version
    }

    #[test]
    fn plans_open_the_same_operations_of_each_revision() {
        for (steps, opened, revision, expected) in [
            // Nothing was renamed; the revision has the ids of the draft.
            (&[][..], &["a", "b"][..], 1, &["a", "b"][..]),
            (&[(1, &[("b", "new")][..])], &["a", "new"], 1, &["a", "b"]),
            (&[(1, &[("b", "new")][..])], &["a", "new"], 2, &["a", "new"]),
            // There is no revision with the former id.
            (&[(0, &[("b", "new")][..])], &["new"], 1, &["new"]),
            // Twice before the next revision, there and back, and two that change their names.
            (&[(1, &[("b", "c")][..]), (1, &[("c", "d")])], &["d"], 1, &["b"]),
            (&[(1, &[("b", "c")][..]), (1, &[("c", "b")])], &["b"], 1, &["b"]),
            (&[(1, &[("a", "b"), ("b", "a")][..])], &["a"], 1, &["b"]),
            // Once after each of two revisions.
            (&[(1, &[("a", "b")][..]), (2, &[("b", "c")])], &["c"], 1, &["a"]),
            (&[(1, &[("a", "b")][..]), (2, &[("b", "c")])], &["c"], 2, &["b"]),
            (&[(1, &[("a", "b")][..]), (2, &[("b", "c")])], &["c"], 3, &["c"]),
            // The former id belongs to another operation by now.
            (&[(1, &[("a", "b")][..])], &["a"], 1, &[""]),
            (&[(1, &[("a", "b")][..])], &["a", "b"], 1, &["", "a"]),
        ] {
            let version = version(steps);
            let plan = Plan {
                operations: opened.iter().map(|it| (*it).to_owned()).collect(),
                operation_limits: opened.iter().map(|it| ((*it).to_owned(), Vec::new())).collect(),
                ..Plan::default()
            };
            let plan = as_of(&plan, &version.renames, revision);
            assert_eq!(plan.operations, expected, "{steps:?} {opened:?} {revision}");
            let limited: BTreeSet<&str> = plan.operation_limits.keys().map(String::as_str).collect();
            let expected: BTreeSet<&str> = expected
                .iter()
                .copied()
                .filter(|it| *it != NO_OPERATION)
                .collect();
            assert_eq!(limited, expected, "{steps:?} {opened:?} {revision}");
        }
    }

    #[test]
    fn operations_have_the_ids_of_the_draft() {
        let version = version(&[(1, &[("a", "b")]), (2, &[("b", "c"), ("x", "y")])]);
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
