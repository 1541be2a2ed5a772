//! The changes of a publish for subscribers: which plans it begins to serve, and which operations they open and close.
//!
//! A plan that is changed holds at once, in every environment with its version. So what a publish changes of it is what
//! the revision has more or less than the one before.

use crate::entities::{Limit, Plan, PlanSecurity, PlanState};
use crate::openapi::Description;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A plan that opens something else after a publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanChange {
    /// The plan.
    pub plan: String,
    /// Whether it was served here before.
    pub is_new: bool,
    /// How callers are recognised.
    pub security: PlanSecurity,
    /// Its limits, such as `1000 per day`.
    pub limits: Vec<String>,
    /// Operations that it opens now, by their ids.
    pub opens: Vec<String>,
    /// Operations that it opened before.
    pub closes: Vec<String>,
}

fn is_served(plan: &&Plan) -> bool {
    matches!(plan.state, PlanState::Published | PlanState::Deprecated)
}

fn limit_text(limit: &Limit) -> String {
    let per = serde_json::json!(limit.per);
    format!("{} per {}", limit.count, per.as_str().unwrap_or_default())
}

fn opened(plan: &Plan, description: Option<&Description>) -> BTreeSet<String> {
    let operations = description.into_iter().flat_map(|it| &it.operations);
    let ids = operations.map(|it| &it.id);
    ids.filter(|id| plan.operations.is_empty() || plan.operations.contains(id))
        .cloned()
        .collect()
}

/// The changes of the plans of a version; `old` is what is published.
pub fn plan_changes(plans: &[Plan], old: Option<&Description>, new: &Description) -> Vec<PlanChange> {
    let mut changes = Vec::new();
    for plan in plans.iter().filter(is_served) {
        let (before, after) = (opened(plan, old), opened(plan, Some(new)));
        if old.is_some() && before == after {
            continue;
        }
        let of_plan = plan.limits.iter().map(limit_text);
        let of_operations = plan
            .operation_limits
            .iter()
            .flat_map(|(id, all)| all.iter().map(move |it| format!("{} of {id}", limit_text(it))));
        changes.push(PlanChange {
            plan: plan.name.clone(),
            is_new: old.is_none(),
            security: plan.security,
            limits: of_plan.chain(of_operations).collect(),
            opens: after.difference(&before).cloned().collect(),
            closes: before.difference(&after).cloned().collect(),
        });
    }
    changes
}

/// A line for each plan: the limits of a new one, and what others open and close.
pub fn plans_in_lines(changes: &[PlanChange]) -> String {
    let mut out = String::new();
    for change in changes {
        let parts = match change.is_new {
            true => vec![("", &change.limits)],
            false => vec![("opens ", &change.opens), ("closes ", &change.closes)],
        };
        let parts: Vec<String> = parts
            .into_iter()
            .filter(|(_, all)| !all.is_empty())
            .map(|(word, all)| format!("{word}{}", all.join(", ")))
            .collect();
        let security = serde_json::json!(change.security);
        // Writing into a text cannot fail.
        let _written = writeln!(
            out,
            "{} plan {} ({}){}{}",
            if change.is_new { '+' } else { '~' },
            change.plan,
            security.as_str().unwrap_or_default(),
            if parts.is_empty() { "" } else { ": " },
            parts.join("; ")
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entities::Period;
    use crate::openapi::from_value;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn described(ids: &[&str]) -> Description {
        let paths: serde_json::Map<String, serde_json::Value> = ids
            .iter()
            .map(|id| (format!("/{id}"), json!({"get": {"operationId": id}})))
            .collect();
        from_value(json!({"openapi": "3.1.0", "info": {}, "paths": paths})).expect("a description")
    }

    #[test]
    fn plan_lines_say_what_opens_and_closes() {
        let plan = |name: &str, operations: &[&str], state| Plan {
            name: name.to_owned(),
            operations: operations.iter().map(|it| (*it).to_owned()).collect(),
            limits: vec![Limit {
                count: 5,
                per: Period::Day,
            }],
            operation_limits: BTreeMap::from([(
                "a".to_owned(),
                vec![Limit {
                    count: 1,
                    per: Period::Minute,
                }],
            )]),
            state,
            ..Plan::default()
        };
        let plans = [
            plan("all", &[], PlanState::Published),
            plan("some", &["a", "b"], PlanState::Deprecated),
            plan("later", &[], PlanState::Staging),
            plan("over", &[], PlanState::Closed),
        ];
        for (old, new, expected) in [
            (
                None,
                vec!["a"],
                "+ plan all (key): 5 per day, 1 per minute of a\n+ plan some (key): 5 per day, 1 per minute of a\n",
            ),
            (
                Some(vec!["a", "b"]),
                vec!["a", "c"],
                "~ plan all (key): opens c; closes b\n~ plan some (key): closes b\n",
            ),
            (Some(vec!["a"]), vec!["a", "c"], "~ plan all (key): opens c\n"),
            (Some(vec!["a"]), vec!["a"], ""),
        ] {
            let before = old.as_deref().map(described);
            let changes = plan_changes(&plans, before.as_ref(), &described(&new));
            assert_eq!(plans_in_lines(&changes), expected, "{old:?} {new:?}");
        }
    }
}
