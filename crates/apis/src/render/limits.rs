//! The limits of plans: a plugin for each plan, and one for each operation with limits of its own.

use super::access::{Head, NO_OPERATION, consumer_of, outcome};
use super::products::limit_id;
use super::{Content, Renderer};
use crate::entities::{Limit, Period, Plan, PlanSecurity};
use crate::naming::slug;
use crate::openapi::UniqueNames;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

impl Renderer<'_> {
    /// The plugin that keeps subscribers to a plan's limits. Its id stays the same, so counts survive a publish.
    pub(super) fn limit(&mut self, plan: &Plan, by: &str) -> Option<String> {
        if plan.limits.is_empty() {
            return None;
        }
        // A product's limits are counted over all of its publications.
        if !plan.product.is_empty() {
            return Some(limit_id(&plan.product, &plan.name));
        }
        let config = limit_config(&plan.limits, by);
        Some(self.plugin(&format!("plan.{}", plan.name), "rate-limit", config))
    }

    /// The limits that plans have of single operations. They come before those of the plans, and both have to allow a
    /// call.
    pub(super) fn limits_of_operations(&mut self, head: &mut Head, plans: &[&Plan], anonymous: Option<&str>) {
        let input = self.input;
        let contents: Vec<Content<'_>> = [Some(input.stable), input.candidate]
            .into_iter()
            .flatten()
            .collect();
        let served = contents.iter().flat_map(|it| &it.description.operations);
        let served: BTreeSet<&String> = served.map(|it| &it.id).collect();
        let limited = plans.iter().flat_map(|plan| plan.operation_limits.keys());
        let limited: BTreeSet<&String> = limited.filter(|id| served.contains(id)).collect();
        let mut names = UniqueNames::default();
        for id in limited {
            let suffix = names.unique(slug(id));
            let (mut steps, mut instances) = (Vec::new(), Map::new());
            for plan in plans {
                let Some(limits) = plan.operation_limits.get(id).filter(|it| !it.is_empty()) else {
                    continue;
                };
                let is_keyless = plan.security == PlanSecurity::Keyless;
                let config = limit_config(limits, if is_keyless { "ip" } else { "consumer" });
                let plugin = self.plugin(&format!("plan.{}.{suffix}", plan.name), "rate-limit", config);
                match (is_keyless, anonymous) {
                    (true, None) => steps.push(json!({ "use": plugin })),
                    (true, Some(anonymous)) => {
                        instances.insert(anonymous.to_owned(), plugin.into());
                    }
                    (false, _) => {
                        let known = input.subscriptions.iter().filter(|it| it.plan == plan.name);
                        let known = known.filter(|it| outcome(it, input.now).is_some());
                        instances.extend(known.map(|it| (consumer_of(it), plugin.as_str().into())));
                    }
                }
            }
            if !instances.is_empty() {
                let table = self.table(&format!("limits.{suffix}"), instances);
                steps.push(json!({ "overrides": [table] }));
            }
            if steps.is_empty() {
                continue;
            }
            // Any call below the prefix may be one of this operation.
            if contents.iter().any(|it| is_below_prefix(*it, id)) {
                let below = head.limit_of.entry(NO_OPERATION.to_owned()).or_default();
                below.extend(steps.iter().cloned());
            }
            head.limit_of.insert(id.clone(), steps);
        }
    }
}

/// Whether an operation has no route of its own, as its component has one for all calls below a prefix.
fn is_below_prefix(content: Content<'_>, id: &str) -> bool {
    let (components, operations) = (&content.revision.components, &content.revision.operations);
    let component = match operations.get(id).and_then(|it| it.component.as_ref()) {
        Some(name) => components.iter().find(|it| it.name == *name),
        None => components.first(),
    };
    component.is_some_and(|it| it.prefix.is_some())
}

/// The configuration of the plugin that keeps callers to limits. What a subscriber may call in a month does not depend on how many
/// gateways there are: with a quota they count together.
pub(super) fn limit_config(limits: &[Limit], by: &str) -> Value {
    let windows: Vec<Value> = limits.iter().map(window).collect();
    let mut config = json!({ "limits": windows, "by": by });
    if by == "consumer" && limits.iter().any(Limit::is_quota) {
        config["across"] = "gateways".into();
    }
    if limits.iter().any(Limit::is_quota) {
        config["quota"] = true.into();
    }
    config
}

fn window(limit: &Limit) -> Value {
    let per = match limit.per {
        Period::Second => json!("second"),
        Period::Minute => json!("minute"),
        Period::Hour => json!("hour"),
        Period::Day => json!("day"),
        Period::Week => json!("week"),
        Period::Month => json!("month"),
    };
    json!({ "count": limit.count, "per": per })
}
